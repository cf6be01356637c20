"""Questions and prices that are refused: the class, the code, what to write instead, and nothing spent."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from discreet import Curator, DeclarationError, QuestionError
from discreet import open as open_declaration
from face_tools import Command, spent

BAD_PRICES = ["0", "-1", "NaN", "inf", "-inf", "1e400", "1e-320", "1e31", "1e-10", "", "a lot", "1e999999999", "0x1"]


def refused(curator: Curator, ask: Callable[[], Any]) -> QuestionError:
    """The refusal; the ledger is as it was, to the entry."""
    head = curator.ledger.head
    with pytest.raises(QuestionError) as error:
        ask()
    assert curator.ledger.head == head
    assert error.value.exit_code == 2
    assert error.value.message
    assert error.value.where
    assert error.value.fix
    assert set(error.value.to_dict()) == {"error", "code", "message", "where", "fix"}
    return error.value


# prices


@pytest.mark.parametrize("price", [*BAD_PRICES, 0, -1, math.nan, math.inf, 1e-320, Decimal("1e400"), 10**400, True, []])
def test_a_price_that_is_none(price: Any, exact: Curator) -> None:
    question = "SELECT COUNT(*) FROM visits"
    assert refused(exact, lambda: exact.ask(question, epsilon=price)).code == "price"
    assert refused(exact, lambda: exact.explain(question, epsilon=price)).code == "price"
    assert refused(exact, lambda: exact.left(question, epsilon=price)).code == "price"


@pytest.mark.parametrize("delta", ["-1e-9", "1", "2", "NaN", "inf", "1e400", "some"])
def test_a_delta_that_is_none(delta: str, exact: Curator) -> None:
    error = refused(exact, lambda: exact.ask("SELECT COUNT(*) FROM visits", epsilon=1, delta=delta))
    assert (error.code, error.where) == ("price", "delta")


@pytest.mark.parametrize(
    ("price", "code"),
    [
        ("0", "price"),
        ("-1", "price"),
        ("1e400", "price"),
        ("1e-320", "price"),
        ("1e999999999", "price"),
        ("NaN", "option"),
        ("inf", "option"),
        ("'1'", "option"),
        ("NULL", "option"),
        ("1 + 1", "option"),
        ("CAST('NaN' AS DOUBLE)", "option"),
    ],
)
def test_a_price_in_the_clause_that_is_none(price: str, code: str, exact: Curator) -> None:
    question = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {price}) COUNT(*) FROM visits"
    assert refused(exact, lambda: exact.ask(question)).code == code


def test_a_question_without_a_price(exact: Curator) -> None:
    never_asked = "SELECT COUNT(*) FROM visits WHERE age = 97 AND cost < 0.01"  # a stored answer would be given
    error = refused(exact, lambda: exact.ask(never_asked))
    assert error.fix == (
        "name epsilon, as in epsilon = 1e+24; or the owner declares [question] epsilon = 1e+23 for what names none"
    )


@pytest.mark.parametrize(
    ("within", "fix"),
    [
        ({"n": 0}, "write n=100"),
        ({"n": -5}, "write n=100"),
        ({"n": "nan"}, "write"),
        ({"m": 5}, "write n or a"),
        ({"a": "5 % of 20"}, "write a=0.5"),
        ({"n": "5 %"}, "write n=100"),
        ({"n": "5 of 20"}, "write n=100"),
        ({"n": "5 % of 0"}, "write n=100"),
        ({"n": "5 % of many"}, "write"),
        ({"n": ""}, "write"),
        ({"n": 1e-300}, "ask for a larger one"),
    ],
)
def test_an_error_that_no_price_gives(within: dict[str, Any], fix: str, exact: Curator) -> None:
    question = "SELECT COUNT(*) AS n, AVG(age) AS a FROM visits"
    assert refused(exact, lambda: exact.ask(question, within=within)).fix.startswith(fix)
    assert refused(exact, lambda: exact.ask(question, within={"n": 5}, epsilon=1)).fix == "name one of them"


@pytest.mark.parametrize("price", BAD_PRICES)
def test_a_price_at_the_terminal_that_is_none(price: str, cli: Command, clinic: Any) -> None:
    said = cli("explain", clinic, "SELECT COUNT(*) FROM visits", f"--epsilon={price}")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("epsilon: ")
    assert "→ write epsilon = 0.1" in said.err


def test_asking_at_a_price_that_is_none_spends_nothing(cli: Command, clinic: Any) -> None:
    said = cli("ask", clinic, "SELECT COUNT(*) FROM visits", "--epsilon=-1", "--json")
    assert (said.code, said.err) == (2, "")
    assert said.json == {
        "error": "QuestionError",
        "code": "price",
        "message": "epsilon must lie between 1e-9 and 1e30",
        "where": "epsilon",
        "fix": "write epsilon = 0.1",
    }
    assert spent(clinic.with_suffix(".ledger")) == 0


@pytest.mark.parametrize("price", ["0", "-1", "nan", "inf", "1e400", "1e-320"])
def test_a_declared_price_that_is_none(price: str, cli: Command, clinic: Any) -> None:
    for old, where in (("epsilon = 1.0", "budget.epsilon"), ("epsilon = 0.1", "question.epsilon")):
        text = clinic.read_text("utf-8")
        broken = clinic.with_name("broken.toml")
        broken.write_text(text.replace(old, f"epsilon = {price}"), "utf-8")
        said = cli("ask", broken, "SELECT COUNT(*) FROM visits")
        assert (said.code, said.out) == (2, "")
        assert f"{where}: " in said.err
        assert not broken.with_suffix(".ledger").exists()


# questions

ALLOWED = "use + - * /, comparisons"

QUESTIONS = [
    # names
    ("SELECT COUNT(*) FROM visit", "unknown-table", "write visits"),
    ("SELECT COUNT(*) FROM nobody", "unknown-table", "write one of visits, single"),
    ("SELECT COUNT(*) FROM 'visits.csv'", "unknown-table", "write visits"),
    ("SELECT COUNT(*) FROM shop.visits", "unknown-schema", "write public.visits, or visits alone"),
    ("SELECT COUNT(*) FROM information_schema.tables", "unknown-schema", "write public.tables, or tables alone"),
    ("SELECT COUNT(*) FROM a.b.c.visits", "source", "write FROM visits or single"),
    ("SELECT COUNT(ages) FROM visits", "unknown-column", "write age"),
    ("SELECT COUNT(x.age) FROM visits", "unknown-table", "write one of visits"),
    ("SELECT COUNT(visits.age) FROM single", "unknown-table", "write one of single"),
    ("SELECT COUNT(*) FROM visits WHERE rowid = 1", "unknown-column", "write one of person, city"),
    ("SELECT COUNT(*) FROM visits WHERE place_of_row = 1", "unknown-column", "write"),
    ("SELECT COUNT(*) FROM visits WHERE c0 = 'p1'", "unknown-column", "write"),
    (
        'SELECT COUNT(*) FROM visits WHERE city = "Bonn"',
        "unknown-column",
        "a text or date is written in single quotes: 'Bonn'; for a column, write one of person, city",
    ),
    ("SELECT COUNT(*) FROM visits HAVING city = 'north'", "unknown-column", "put city into GROUP BY"),
    ("SELECT city, city, COUNT(*) FROM visits GROUP BY city", "names", "name them with AS"),
    ("SELECT COUNT(*) AS a, SUM(age) AS A FROM visits", "names", "name them with AS"),
    ("SELECT COUNT(*) AS n, SUM(age) AS n FROM visits", "names", "name them with AS"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY 3", "position", "name the column"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city ORDER BY 3", "position", "name the column"),
    # functions
    ("SELECT STRING_AGG(note) FROM visits", "not-allowed", "write SELECT note, COUNT(*) … GROUP BY note"),
    ("SELECT nonsense(age) FROM visits", "not-allowed", "ask for COUNT, SUM or AVG"),
    ("SELECT COUNT(*) FROM visits WHERE nonsense(age)", "not-allowed", ALLOWED),
    ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "not-allowed", "a question must mean the same"),
    ("SELECT COUNT(*) FROM visits WHERE note = current_user", "not-allowed", "only declared columns"),
    (
        "SELECT COUNT(*) FROM visits WHERE age = current_time",
        "not-allowed",
        "write CURRENT_DATE, or the date: DATE '2020-01-31'",
    ),
    ("SELECT COUNT(*) FROM visits WHERE getenv('HOME') = ''", "not-allowed", "only declared columns"),
    ("SELECT COUNT(*) FROM visits WHERE error('x')", "not-allowed", "only declared columns"),
    ("SELECT COUNT(*) FROM visits WHERE note ~ '(a)\\1'", "pattern", "write a simpler one, or use LIKE"),
    ("SELECT COUNT(*) FROM visits WHERE age::json = '3'", "not-allowed", "cast to INTEGER"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (SELECT 1)", "clause", "write FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (age, 1)", "not-allowed", "write IN with a list of constants"),
    ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1)", "subquery", "write (SELECT COUNT(*) FROM …) > 0"),
    ("SELECT COUNT(*) FROM visits WHERE note LIKE city", "not-allowed", "write column LIKE 'pattern'"),
    ("SELECT COUNT(*) FROM visits WHERE note LIKE 'a%' ESCAPE '%'", "not-allowed", "let the pattern not end"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 1", "not-allowed", "conditions on COUNT(*) are written in HAVING"),
    ("SELECT SUM(COUNT(*)) FROM visits", "not-allowed", "conditions on COUNT(*) are written in HAVING"),
    ("SELECT SUM(DISTINCT age) FROM visits", "not-allowed", "write SUM(age), COUNT(DISTINCT age)"),
    # more than one question, and other statements
    ("", "empty", "write SELECT COUNT(*) FROM table"),
    ("-- nothing", "empty", "write SELECT COUNT(*) FROM table"),
    ("SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits", "statements", "ask one SELECT at a time"),
    ("SELECT COUNT(*) FROM visits; DROP TABLE visits", "statements", "ask one SELECT at a time"),
    ("COPY visits TO 'x.csv'", "statement", "write SELECT"),
    ("ATTACH 'x.duckdb' AS x", "syntax", "write SELECT"),
    ("PRAGMA database_list", "statement", "write SELECT"),
    ("SET memory_limit = '1GB'", "statement", "write SELECT"),
    ("INSERT INTO visits VALUES (1)", "statement", "write SELECT"),
    ("DROP TABLE visits", "statement", "write SELECT"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "statement", "write the question without EXPLAIN"),
    ("SHOW TABLES", "statement", "`discreet tables FILE`"),
    ("CALL pragma_version()", "statement", "write SELECT"),
    ("INSTALL httpfs", "statement", "write SELECT"),
    ("FROM visits", "star", "write COUNT(*), or SELECT column"),
    # sources
    ("SELECT COUNT(*) FROM read_csv('visits.csv')", "source", "write FROM visits or single"),
    ("SELECT COUNT(*) FROM read_text('/etc/passwd')", "source", "write FROM visits or single"),
    ("SELECT COUNT(*) FROM duckdb_settings()", "source", "write FROM visits or single"),
    ("SELECT COUNT(*) FROM visits, single", "join", "ask about one table"),
    ("SELECT COUNT(*) FROM visits JOIN single ON TRUE", "join", "ask about one table"),
    ("SELECT COUNT(*) FROM visits AS v(a, b, c, d, e, f, g, h, i, j)", "names", "give each column one name"),
    ("SELECT COUNT(*) FROM visits AS v(a, A)", "names", "give each column a name of its own"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT", "not-allowed", "write FROM visits or single"),
    # clauses
    ("SELECT SUM(age) OVER () FROM visits", "not-allowed", "windows read other rows: write GROUP BY"),
    ("SELECT row_number() OVER (ORDER BY age) FROM visits", "not-allowed", "windows read other rows: write GROUP BY"),
    ("SELECT COUNT(*) FROM visits QUALIFY TRUE", "clause", "write HAVING"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY CUBE(city, age, age + 1, age + 2)", "too-long", "name fewer"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city ORDER BY RANDOM()", "not-allowed", "a question must mean"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT -1", "limit", "write LIMIT 10"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT 1.5", "limit", "write LIMIT 10"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT 10 PERCENT", "limit", "write LIMIT 10"),
    # columns
    ("SELECT * FROM visits", "star", "write COUNT(*), or SELECT column"),
    ("SELECT visits.* FROM visits", "star", "write COUNT(*), or SELECT column"),
    ("SELECT COUNT(*) FROM visits WHERE (*) = 1", "not-allowed", "name a column: SUM(column)"),
    ("SELECT city FROM visits", "ungrouped", "add city to GROUP BY and count"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY smoker", "ungrouped", "add city to GROUP BY and count"),
    ("SELECT person, COUNT(*) FROM visits GROUP BY person", "person-key", "group by something that many persons share"),
    ("SELECT SQRT(cost), COUNT(*) FROM visits GROUP BY 1", "number-key", "group by FLOOR(SQRT(cost) / 10) * 10"),
    # types
    ("SELECT SUM(city) FROM visits", "type", "write CAST(city AS INTEGER) where it holds numbers"),
    ("SELECT AVG(smoker + 1) FROM visits", "type", "write COUNTIF(smoker)"),
    ("SELECT COUNT(*) FROM visits WHERE age", "type", "write a comparison such as x > 1"),
    ("SELECT COUNT(*) FROM visits WHERE age = 'x'", "type", "compare values of one type"),
    ("SELECT COUNT(*) FROM visits WHERE city > 5", "type", "compare values of one type"),
    ("SELECT COUNT(*) FROM visits WHERE day > '2024-02-30'", "date", "write year, month and day as DATE"),
    (
        "SELECT COUNT(*) FROM visits WHERE moment > '2024-01-01T00:00:00 Mars'",
        "date",
        "write year, month and day as DATE",
    ),
    ("SELECT COUNT(*) FROM visits WHERE age = 1e999", "number", "write a number below 1e300"),
    # bounds
    ("SELECT SUM(age, contribution_bounds_per_group => (5, 1)) FROM visits", "option", "exchange them"),
    ("SELECT SUM(age, contribution_bounds_per_group => (1)) FROM visits", "option", "write contribution_bounds"),
    ("SELECT SUM(age, contribution_bounds_per_group => (age, 1)) FROM visits", "option", "write contribution_bounds"),
    ("SELECT SUM(age, bounds => (0, 1)) FROM visits", "option", "write contribution_bounds_per_group"),
    ("SELECT SUM(age, 1) FROM visits", "arguments", "write SUM(x)"),
    ("SELECT COUNT(*, contribution_bounds_per_group => (0, 0)) FROM visits", "option", "write contribution_bounds"),
    ("SELECT COUNT(*, contribution_bounds_per_group => (0, 1.5)) FROM visits", "option", "write contribution_bounds"),
    ("SELECT AVG(age, contribution_bounds_per_group => (0, 5)) FROM visits", "option", "declare min and max"),
    # the end of a text
    ("SELECT COUNT(*) FROM visits WHERE city = 'x", "syntax", "close every quote and comment"),
    ("SELECT COUNT(*) FROM visits /* and", "syntax", "close every quote and comment"),
    ("SELECT COUNT(*) FROM visits WHERE", "syntax", "write a whole condition on each side"),
    ("SELECT COUNT(*) FROM visits WHERE ((age = 1)", "syntax", "close every bracket"),
    ("SELECT SELECT", "syntax", "write SELECT"),
    (
        "SELECT COUNT(*) FROM visits WHERE " + "DATE((" * 14 + "age" + "))" * 14 + " = 1",
        "syntax",
        "ask something simpler",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE " + "UUID(" * 40 + "age" + ")" * 40 + " = 1",
        "syntax",
        "ask something simpler",
    ),
    ("how many visits are there?", "syntax", "write SELECT"),
    ("SELECT COUNT(*) FROM visits WHERE " + "(" * 3000 + "TRUE" + ")" * 3000, "syntax", "ask something simpler"),
    ("SELECT COUNT(*) FROM visits WHERE TRUE" + " AND age > 1" * 20_000, "too-long", "ask something shorter"),
]


@pytest.mark.parametrize(("question", "code", "fix"), QUESTIONS, ids=lambda text: text[:60])
def test_a_question_that_is_refused(
    question: str, code: str, fix: str, exact: Curator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = refused(exact, lambda: exact.ask(question, epsilon=1))
    assert error.code == code, error
    assert error.fix.startswith(fix), error
    assert "sqlglot" not in str(error)
    assert len(str(error)) < 600
    assert not caplog.text  # a question's text goes to no log


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ("epsilon = 1, epsilon = 1", "write it once"),
        ("epsilon = 1, kappa = 3", "write one of epsilon, delta, max_groups_contributed, max_rows_contributed"),
        ("epsilon", "write one of epsilon"),
        ("epsilon = 1, max_groups_contributed = 0", "write max_groups_contributed = 1"),
        ("epsilon = 1, max_groups_contributed = 1.5", "write max_groups_contributed = 1"),
        ("epsilon = 1, privacy_unit_column = city", "write privacy_unit_column = person"),
        ("epsilon = 1, privacy_unit_column = nobody", "write one of person"),
    ],
)
def test_an_option_that_is_refused(options: str, fix: str, exact: Curator) -> None:
    question = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) COUNT(*) FROM visits"
    assert refused(exact, lambda: exact.ask(question)).fix.startswith(fix)


def test_a_sum_without_bounds(clinic: Any) -> None:
    text = clinic.read_text("utf-8").replace('{ type = "integer", min = 0, max = 20 }', '{ type = "integer", min = 0 }')
    clinic.write_text(text, "utf-8")
    with open_declaration(clinic) as curator:
        for question in ("SELECT SUM(age) AS s FROM visits", "SELECT AVG(age) AS a FROM visits"):
            release = curator.ask(question)
            assert release.charged["epsilon"] == 0.1
            assert any("bounds found at a fifth of the price" in words for words in release.bounds)
        bounded = "SELECT SUM(age, contribution_bounds_per_group => (0, 10)) AS s FROM visits"
        assert curator.ask(bounded).charged["epsilon"] == 0.1


def test_private_keys_need_a_delta(clinic: Any) -> None:
    clinic.write_text(clinic.read_text("utf-8").replace("delta = 1e-6\n", ""), "utf-8")
    with open_declaration(clinic) as curator:
        error = refused(curator, lambda: curator.ask("SELECT note, COUNT(*) FROM visits GROUP BY note"))
        assert error.fix.startswith("declare values for the grouped columns, or a budget with delta")


def test_too_many_public_groups(data: Any) -> None:
    from discreet import Table

    wide = {"type": "integer", "min": 1, "max": 1000}
    table = Table(data.parquet, columns={"age": wide, "cost": wide, "day": None}, one_row_per_person=True)
    with Curator({"t": table}, epsilon=1) as curator:
        question = "SELECT age, cost, COUNT(*) FROM t GROUP BY age, cost"
        error = refused(curator, lambda: curator.ask(question, epsilon="0.1"))
        assert (error.code, error.where) == ("too-many-groups", "GROUP BY")
        assert "1,002,001 groups" in error.message


def test_an_analyst_nobody_declared(clinic: Any) -> None:
    clinic.write_text(clinic.read_text("utf-8") + "\n[analysts.ana]\nepsilon = 0.5\n", "utf-8")
    with open_declaration(clinic) as curator:
        for analyst in ("bob", "", "ANA"):
            error = refused(
                curator, lambda analyst=analyst: curator.ask("SELECT COUNT(*) FROM visits", analyst=analyst)
            )
            assert (error.code, error.fix) == ("analyst", "name one of ana")
        assert spent(curator) == Fraction(0)


def test_min_above_max(clinic: Any) -> None:
    clinic.write_text(clinic.read_text("utf-8").replace("min = 0, max = 20", "min = 20, max = 0"), "utf-8")
    with pytest.raises(DeclarationError, match="min is larger than max → write min at most max"):
        open_declaration(clinic)
    assert not clinic.with_suffix(".ledger").exists()
