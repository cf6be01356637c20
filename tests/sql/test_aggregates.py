"""Every aggregate, in the clause and bare: exact where the price hides nothing, and never beyond its price."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402

ROWS = {
    "uid": [1, 1, 1, 2, 2, 3, 4, 5],
    "cat": ["a", "a", "b", "a", "b", "b", "c", "a"],
    "x": [1, 2, 3, 4, 5, 6, 7, 8],
    "y": [2.0, 4, 6, 8, 10, 12, 14, 15],
    "z": [100.0, 200, 300, 50, 60, 70, 1e4, 5],
}
NUMBERS = {
    "uid": {"type": "integer"},
    "x": {"type": "integer", "min": 0, "max": 10, "nulls": False},
    "y": {"type": "number", "min": 0, "max": 20},
    "z": {"type": "number"},
}


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    """`t` with several rows a person and private categories, `s` where each row is a person, and public categories."""
    frame = pandas.DataFrame(ROWS)
    tables = {
        "t": discreet.Table(frame, person="uid", rows_per_person=10, columns={**NUMBERS, "cat": {"type": "text"}}),
        "s": discreet.Table(
            frame, one_row_per_person=True, columns={**NUMBERS, "cat": {"values": ["a", "b", "c"], "nulls": False}}
        ),
        "pub": discreet.Table(pandas.DataFrame({"cat": ["a", "b", "q"]}), public=True, columns={"cat": str}),
    }
    with discreet.Curator(tables, epsilon=1e25, delta=1e-3, keys_delta=9e-4) as curator:
        yield curator


def clause(options: str, rest: str) -> str:
    given = f"epsilon=1e20, delta=1e-5{', ' + options if options else ''}"
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({given}) {rest}"


BARE: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("VAR_POP(x), VARIANCE(x), STDDEV_POP(x), STDDEV_SAMP(x) FROM s", [(5.25, 6.0, 5.25**0.5, 6.0**0.5)]),
    ("COVAR_POP(x, y), COVAR_SAMP(x, y) FROM s", [(10.0625, 11.5)]),
    ("CORR(x, y) FROM s", [(0.99811498,)]),
    ("MIN(x), MAX(x) FROM s", [(1, 8)]),
    ("APPROX_QUANTILES(x, 2) FROM s WHERE x <> 4", [([1, 5, 8],)]),
    ("cat, MEDIAN(x), COUNT(*) FROM s WHERE x IN (2, 3, 7) GROUP BY cat", [("a", 2, 1), ("b", 3, 1), ("c", 7, 1)]),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), QUANTILE(x, 0.9) FROM s", [(8, 8)]),
    ("COUNT(DISTINCT x), COUNT(DISTINCT cat), COUNT(DISTINCT x / 2 > 2) FROM s", [(8, 3, 2)]),
    ("COUNT(DISTINCT x), COUNT(DISTINCT cat), COUNT(DISTINCT uid) FROM t", [(8, 3, 5)]),
    ("APPROX_TOP_COUNT(cat, 2), MODE(cat) FROM s", [(["a", "b"], "a")]),
    (
        "COUNTIF(x > 3), COUNT(*) FILTER (WHERE x > 3), SUM(x) FILTER (WHERE cat = 'a'), AVG(x) FILTER (WHERE x > 6)"
        " FROM s",
        [(5, 5, 15, 7.5)],
    ),
    ("SUM(z), AVG(z), VAR_POP(z), COUNT(*) FROM t", [(10785.0, 1348.125, 10701437.109375, 8)]),
    ("SUM(x, contribution_bounds_per_group => (5, 5)) FROM t", [(25,)]),
    ("SUM(x, contribution_bounds_per_group => (0.5, 6.25)) FROM t", [(30.75,)]),
    ("SUM(y, contribution_bounds_per_group => (-0.1, -0.1)), COUNT(DISTINCT uid) FROM t", [(-0.5, 5)]),
    (
        "SUM(x, contribution_bounds_per_group => (2.5, 2.5)), AVG(x, contribution_bounds_per_group => (7, 7)) FROM s",
        [(20, 7)],
    ),
    ("WIDTH_BUCKET(x, 0, 10, 2) AS k, COUNT(*) FROM s GROUP BY k", [(0, 0), (1, 4), (2, 4), (3, 0)]),
    ("AVG(x), SUM(x), COUNT(x), AVG(y), SUM(y) FROM t", [(4.5, 36, 8, 8.875, 71.0)]),
    (
        "AVG(x, contribution_bounds_per_row => (2, 4)), SUM(x, contribution_bounds_per_row => (2, 4)) FROM t",
        [(3.375, 27)],
    ),
]


@pytest.mark.parametrize(("question", "rows"), BARE, ids=[question[:60] for question, _ in BARE])
def test_bare(curator: discreet.Curator, question: str, rows: list[tuple[Any, ...]]) -> None:
    same(curator.ask(f"SELECT {question}", epsilon=1e20), rows)


CLAUSE: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    (
        "max_groups_contributed=10",
        "cat, COUNT(*), SUM(x, contribution_bounds_per_group => (0, 4)),"
        " AVG(x, contribution_bounds_per_group => (0, 10)) FROM t GROUP BY cat",
        [("a", 4, 11, 4.5), ("b", 3, 11, 14 / 3)],
    ),
    ("", "AVG(x), COUNT(DISTINCT uid) FROM t", [(5.5, 5)]),  # the mean of 2, 4.5, 6, 7 and 8
    (
        "group_selection_strategy=PUBLIC_GROUPS, max_groups_contributed=10",
        "p.cat, COUNT(*) FROM t RIGHT OUTER JOIN (SELECT DISTINCT cat FROM pub) p ON t.cat = p.cat GROUP BY p.cat",
        [("a", 4), ("b", 3), ("q", 0)],
    ),
    (
        "min_privacy_units_per_group=2, max_groups_contributed=5",
        "cat, COUNT(*) FROM t GROUP BY cat",
        [("a", 4), ("b", 3)],
    ),
    ("min_privacy_units_per_group=3, max_groups_contributed=5", "cat, COUNT(*) FROM s GROUP BY cat", [("a", 4)]),
    ("max_rows_contributed=1", "COUNT(*) FROM t", [(5,)]),
    ("max_rows_contributed=2", "SUM(x) FROM t WHERE uid > 1", [(30,)]),
    ("max_groups_contributed=NULL", "COUNT(*) FROM t", [(8,)]),
    ("privacy_unit_column=uid", "COUNT(*), COUNT(*, contribution_bounds_per_group => (0, 2)) FROM t", [(8, 7)]),
    ("", "COUNT(*, epsilon => 4e19), SUM(x, epsilon => 5e19), COUNT(x) FROM s", [(8, 36, 8)]),
    ("", "VAR_POP(x, contribution_bounds_per_row => (0, 5)) FROM t", [(2.1875,)]),
    ("", "COUNT(DISTINCT cat, contribution_bounds_per_group => (0, 2)) FROM t", [(3,)]),
    ("", "SUM(x), SUM(z) FROM t", [(36, 10785.0)]),
]


@pytest.mark.parametrize(("options", "question", "rows"), CLAUSE, ids=[f"{o} {q}"[:70] for o, q, _ in CLAUSE])
def test_in_the_clause(curator: discreet.Curator, options: str, question: str, rows: list[tuple[Any, ...]]) -> None:
    same(curator.ask(clause(options, question)), rows)


def same(release: discreet.Release, rows: list[tuple[Any, ...]]) -> None:
    found = [tuple(row.values()) for row in release.rows]
    assert found == [tuple(pytest.approx(v, rel=1e-4) if isinstance(v, float) else v for v in row) for row in rows]


def test_a_report(curator: discreet.Curator) -> None:
    question = clause("", 'COUNT(*, report_format => "JSON") AS n FROM t')
    ((value,),) = (row.values() for row in curator.ask(question).rows)
    assert json.loads(value) == {
        "result": {
            "value": 8,
            "noise_confidence_interval": {"lower_bound": 8, "upper_bound": 8, "confidence_level": 0.95},
        }
    }


REFUSED = [
    (clause("max_rows_contributed=1, max_groups_contributed=1", "COUNT(*) FROM t"), "option", "leave out one"),
    (clause("group_selection_strategy=PUBLIC_GROUPS", "cat, COUNT(*) FROM t GROUP BY cat"), "option", "RIGHT JOIN"),
    (clause("group_selection_strategy=MAGIC", "COUNT(*) FROM t"), "option", "PUBLIC_GROUPS"),
    (
        clause("group_selection_strategy=PUBLIC_GROUPS, min_privacy_units_per_group=2", "COUNT(*) FROM t"),
        "option",
        "leave out one",
    ),
    (clause("foo=3", "COUNT(*) FROM t"), "option", "write one of epsilon"),
    (clause("max_groups_contributed=0", "COUNT(*) FROM t"), "option", "write max_groups_contributed = 1"),
    (clause("privacy_unit_column=x", "COUNT(*) FROM t"), "option", "privacy_unit_column = uid"),
    (clause("", "COUNT(*, epsilon => 8e19), SUM(x, epsilon => 5e19) FROM s"), "price", "name smaller ones"),
    (clause("", "SUM(x, contribution_bounds_per_group => (4, 0)) FROM t"), "option", "exchange them"),
    (clause("", 'COUNT(*, report_format => "PROTO") FROM t'), "option", "JSON"),
    ("SELECT ANY_VALUE(x) FROM s", "not-allowed", ""),
    ("SELECT VAR_POP(x, y) FROM s", "arguments", "write VAR_POP(x)"),
    ("SELECT CORR(x) FROM s", "arguments", "write CORR(x, y)"),
    ("SELECT SUM(DISTINCT x) FROM s", "not-allowed", "COUNT(DISTINCT x)"),
    ("SELECT MEDIAN(cat) FROM s", "type", "numbers"),
    ("SELECT PERCENTILE_CONT(x, 2) FROM s", "arguments", "write PERCENTILE_CONT(x, 0.5)"),
    ("SELECT PERCENTILE_CONT(x, x) FROM s", "arguments", "write PERCENTILE_CONT(x, 0.5)"),
    ("SELECT APPROX_QUANTILES(x, 0) FROM s", "arguments", "APPROX_QUANTILES(x, 4)"),
    ("SELECT APPROX_TOP_COUNT(uid, 2) FROM s", "no-values", "declare values"),
    ("SELECT sum() FROM s", "arguments", "write SUM(x)"),
    ("SELECT COUNT(cat, uid) FROM s", "syntax", "write COUNT(*), or COUNT(column)"),
    (
        "SELECT cat, APPROX_QUANTILES(x, 2) AS q FROM s GROUP BY cat HAVING q > 3",
        "type",
        "write texts in single quotes",
    ),
    ("SELECT cat, MODE(cat) AS q FROM s GROUP BY cat HAVING q > 3", "type", "write texts in single quotes"),
    ('SELECT COUNT(*, report_format => "JSON") AS n FROM s HAVING n > 3', "type", "write texts in single quotes"),
]


@pytest.mark.parametrize(("question", "code", "fix"), REFUSED, ids=[question[-60:] for question, _, _ in REFUSED])
def test_what_is_refused_and_costs_nothing(curator: discreet.Curator, question: str, code: str, fix: str) -> None:
    used = curator.budget.used
    with pytest.raises(discreet.QuestionError) as refusal:
        curator.ask(question, **({} if "WITH DIFFERENTIAL" in question else {"epsilon": 1}))
    assert (refusal.value.code, curator.budget.used) == (code, used)
    assert fix in refusal.value.fix


@pytest.mark.parametrize("aggregates", ["COUNT(*), SUM(x), AVG(y), VAR_POP(x), MEDIAN(x), MODE(cat)", "SUM(z), AVG(z)"])
def test_what_is_stated_is_what_is_charged(aggregates: str) -> None:
    """However many aggregates there are, the losses reserved add up to the price and no more."""
    frame = pandas.DataFrame(ROWS)
    table = discreet.Table(
        frame, one_row_per_person=True, columns={**NUMBERS, "cat": {"values": ["a", "b", "c"], "nulls": False}}
    )
    with discreet.Curator({"s": table}, epsilon=1, delta=0) as curator:
        release = curator.ask(f"SELECT {aggregates} FROM s", epsilon=1)
        assert release.cost.epsilon == 1
        assert curator.budget.used == pytest.approx(100)
        with pytest.raises(discreet.BudgetError):
            curator.ask("SELECT COUNT(*) FROM s WHERE x > 1", epsilon=0.0001)


def test_bounds_that_nobody_declared_are_found_and_said(curator: discreet.Curator) -> None:
    release = curator.ask("SELECT SUM(z) AS total FROM s", epsilon=1e19)
    assert any(line.startswith("z is clamped to [4, 16384], bounds found at a fifth") for line in release.bounds)
    explained = curator.explain("SELECT SUM(z) AS total FROM s", epsilon=1)
    assert any(words.startswith("bounds of z are found first") for words in explained.bounds)


def test_an_empty_table_gives_answers_like_any_other() -> None:
    """Nothing in the answer's form tells that there is nobody: bounds that are not found are fixed ones."""
    frame = pandas.DataFrame(ROWS).astype({"cat": "string"})[:0]
    table = discreet.Table(
        frame, one_row_per_person=True, columns={**NUMBERS, "cat": {"values": ["a", "b", "c"], "nulls": False}}
    )
    with discreet.Curator({"s": table}, epsilon=100, delta=0) as curator:
        question = "SELECT SUM(z) AS a, AVG(x) AS b, VAR_POP(x) AS c, MEDIAN(x) AS d, MODE(cat) AS e FROM s"
        row = curator.ask(question, epsilon=1).rows[0]
        assert list(row) == ["a", "b", "c", "d", "e"]
        assert row["e"] in ("a", "b", "c")
        assert 0 <= row["d"] <= 10


def test_explain_names_the_questions_that_tell_whom_the_limits_concern(curator: discreet.Curator) -> None:
    explained = curator.explain("SELECT cat, SUM(x), COUNT(DISTINCT uid) FROM t GROUP BY cat", epsilon=1)
    assert explained.advice
    told = [curator.ask(words.split(": ", 1)[1], epsilon=1e20).rows for words in explained.advice]
    assert told == [[{"k": 3}]]  # 95 % have 3 at most
    (limit,) = (one for one in explained.left_out if one.what == "rows")
    assert curator.ask(limit.question, epsilon=1e20).rows == [{"count": 0}]  # nobody has as many as are declared
    assert curator.explain("SELECT SUM(x) FROM s", epsilon=1).advice == ()


@pytest.mark.parametrize("chosen", ["SUM(z)", "AVG(z)", "MEDIAN(x)", "SUM(x) / COUNT(*)", "VAR_POP(z)"])
def test_no_error_is_promised_that_is_not_known(curator: discreet.Curator, chosen: str) -> None:
    for call in (curator.ask, curator.explain):
        with pytest.raises(discreet.QuestionError, match="no error can be promised"):
            call(f"SELECT {chosen} AS a FROM s", within={"a": 5})


def test_the_error_of_a_moment_can_be_asked_for(curator: discreet.Curator) -> None:
    explained = curator.explain("SELECT VAR_POP(x) AS v, STDDEV(x) AS d FROM s", within={"v": "0.5 of 500", "d": 2})
    assert explained.expected_error["v"] <= 1
    assert explained.expected_error["d"] <= 2


def test_choices_and_thresholds_take_plain_counts_only(curator: discreet.Curator) -> None:
    for chosen in ("MEDIAN(x)", "COUNT(DISTINCT x)", "COUNT(*) + 1", "SUM(z)", "VAR_POP(x)"):
        with pytest.raises(discreet.QuestionError):
            curator.select(f"SELECT cat, {chosen} AS n FROM s GROUP BY cat", epsilon=1)
        with pytest.raises(discreet.QuestionError):
            curator.above_threshold(3, epsilon=1).ask(f"SELECT {chosen} AS n FROM s")


def test_the_owner_sees_every_statement(curator: discreet.Curator) -> None:
    for chosen, statements in (("MEDIAN(x)", 1), ("MEDIAN(x), COUNT(*)", 2), ("SUM(z), COUNT(DISTINCT x)", 3)):
        assert curator.engine_sql(f"SELECT {chosen} FROM s").count(";\n\n") == statements - 1
