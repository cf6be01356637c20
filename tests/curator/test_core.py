"""Right answers: at a price where noise vanishes, every question gives what plain SQL gives on the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Curator, DeclarationError, QuestionError, Table
from face_tools import BUDGET, EXACT, Data, visits
from kinds import examples

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def tight(data: Data) -> Iterator[Curator]:
    """Bounds that bite: a person has ten rows in up to four cities."""
    with Curator({"visits": visits(data.csv, rows_per_person=3, groups_per_person=2)}, epsilon=BUDGET) as curator:
        yield curator


def truth(data: Data, sql: str) -> Rows:
    relation = data.truth.sql(sql)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def ask(curator: Curator, question: str) -> Rows:
    return curator.ask(question, epsilon=None if "epsilon" in question else EXACT).rows


def alike(rows: Rows, expected: Rows, *, places: float = 1e-9) -> bool:
    """The same rows in the same order, numbers up to the places that rows are counted in."""
    return len(rows) == len(expected) and all(
        row.keys() == other.keys() and all(_near(row[name], other[name], places) for name in row)
        for row, other in zip(rows, expected, strict=True)
    )


def _near(value: Any, other: Any, places: float) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(value == pytest.approx(float(other), abs=places, rel=1e-12))
    return bool(value == other)


# one group

WHOLE = [
    "COUNT(*) AS n",
    "COUNT(age) AS n, COUNT(cost) AS m, COUNT(smoker) AS o, COUNT(person) AS p",
    "COUNT(*) AS n, COUNT(*) AS m",
    "SUM(age) AS s",
    "SUM(cost) AS s",
    "SUM(age) AS s, COUNT(age) AS n, AVG(age) AS a, COUNT(*) AS m",
    "AVG(age) AS a, SUM(cost) AS s, COUNT(*) AS n",
    "AVG(cost) AS a, AVG(age) AS b",
    "SUM(-age) AS s, SUM(2 * age + 1) AS t, SUM(age * age) AS u",
    "SUM(ABS(age - 10)) AS s, AVG(ABS(-age)) AS a",
    "SUM(CASE WHEN smoker THEN age ELSE 0 END) AS s, SUM(CASE WHEN smoker THEN age END) AS t",
    "SUM(CASE age WHEN 3 THEN 1 WHEN 4 THEN 2 ELSE age END) AS s",
    "SUM(COALESCE(age, 5)) AS s, SUM(IF(smoker, 1, 0)) AS t",
    "COUNT(CASE WHEN age > 3 THEN 1 END) AS n, COUNT(age + cost) AS m, COUNT(age / 0) AS z",
    "COUNT(smoker AND age > 3) AS n, COUNT(day = '2024-01-04') AS m",
]


@pytest.mark.parametrize("table", ["visits", "single"])
@pytest.mark.parametrize("select", WHOLE)
def test_a_whole_table(select: str, table: str, exact: Curator, data: Data) -> None:
    assert alike(ask(exact, f"SELECT {select} FROM {table}"), truth(data, f"SELECT {select} FROM visits"))


@pytest.mark.parametrize(
    "select",
    [
        "SUM(cost / (age + 1)) AS s",
        "AVG(cost - age) AS a, SUM(cost * age) AS s",
        "SUM(cost * 0.1) AS s",
        "AVG(COALESCE(cost, age)) AS a",
    ],
)
def test_fractions_are_counted_in_small_steps(select: str, exact: Curator, data: Data) -> None:
    assert alike(ask(exact, f"SELECT {select} FROM visits"), truth(data, f"SELECT {select} FROM visits"), places=1e-3)


WHERE = [
    "age = 4",
    "age <> 4",
    "age < 4.5",
    "4 >= age",
    "age >= 4 AND cost < 100",
    "age >= 4 OR cost < 100 AND smoker",
    "NOT age > 4",
    "age IS NULL",
    "age IS NOT NULL",
    "age IN (1, 2, 3.5)",
    "age NOT IN (1, 2)",
    "age BETWEEN 3 AND 7",
    "age NOT BETWEEN 3 AND 7",
    "age + 1 > cost / 2",
    "-age + 5 < 0",
    "age / 0 IS NULL",
    "COALESCE(age, 3) = 3",
    "ABS(age - 5) < 2",
    "CASE WHEN age > 3 THEN smoker ELSE cost > 20 END",
    "city = 'Zürich'",
    "city > 'north'",
    "city IN ('north', 'south') OR note = 'note 1' AND NOT smoker",
    "city LIKE 'n%'",
    "city LIKE '%ü%'",
    "note LIKE 'note _'",
    "NOT city LIKE '%th'",
    "city NOT LIKE '%th'",
    "note <> 'it''s'",
    "smoker",
    "NOT smoker",
    "smoker IS NULL",
    "smoker = TRUE OR (smoker = FALSE AND age > 10)",
    "day > '2024-01-20'",
    "day = DATE '2024-01-05'",
    "day BETWEEN '2024-01-05' AND '2024-01-25'",
    "day IN ('2024-01-05', '2024-01-06')",
    "moment >= '2024-01-02 12:00:00'",
    "moment < DATE '2024-01-02'",
    "moment = '2024-01-02'",
    "moment > TIMESTAMP '2024-01-02 12:30:00.5'",
    "TRUE",
    "1 = 2",
    "((age)) = (3 + 1)",
]


@pytest.mark.parametrize("where", WHERE)
def test_where(where: str, exact: Curator, data: Data) -> None:
    question = f"SELECT COUNT(*) AS n FROM visits WHERE {where}"
    assert ask(exact, question) == truth(data, question)


NUMBERS = st.recursive(
    st.sampled_from(["age", "cost", "0", "3", "2.5", "7"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/"]), inner),
        st.builds("ABS({})".format, inner),
        st.builds("(-{})".format, inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("CASE WHEN smoker THEN {} ELSE {} END".format, inner, inner),
    ),
    max_leaves=4,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.builds("{} {} {}".format, NUMBERS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS),
        st.builds("{} BETWEEN {} AND {}".format, NUMBERS, NUMBERS, NUMBERS),
        st.builds("{} IS NULL".format, NUMBERS),
        st.builds("{} IN (1, 2.5, 7)".format, NUMBERS),
        st.builds("{} LIKE '{}'".format, st.sampled_from(["city", "note"]), st.sampled_from(["%o%", "n___h", "%"])),
        st.sampled_from(["smoker", "city < 'south'", "day > '2024-01-10'", "moment < '2024-01-03'", "NULL IS NULL"]),
    ),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


@given(condition=CONDITIONS, number=NUMBERS)
@settings(max_examples=examples(250), deadline=None, derandomize=True)
def test_any_condition(condition: str, number: str, exact: Curator, data: Data) -> None:
    question = f"SELECT COUNT(*) AS n, COUNT({number}) AS m FROM visits WHERE {condition}"
    assert ask(exact, question) == truth(data, question)


# groups


def test_public_keys_are_shown_and_no_others(exact: Curator, data: Data) -> None:
    """Every declared key, in the declared order, empty ones too; undeclared values and NULL are left out."""
    rows = ask(exact, "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY city")
    found = truth(data, "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY city")
    by_city = {row["city"]: row for row in found}
    assert "east" in by_city
    expected = [by_city.get(city, {"city": city, "n": 0, "s": 0}) for city in ("north", "south", "nowhere", "Zürich")]
    assert rows == expected


GROUPED = [
    ("SELECT smoker, COUNT(*) AS n FROM visits GROUP BY smoker", "TRUE", "smoker"),
    ("SELECT age, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE age <> 3 OR TRUE GROUP BY age", "TRUE", "age"),
    (
        "SELECT city, smoker, COUNT(*) AS n FROM visits WHERE city <> 'north' GROUP BY city, smoker",
        "city IS NOT NULL",
        "city",
    ),
]


@pytest.mark.parametrize(("question", "where", "key"), GROUPED)
def test_groups(question: str, where: str, key: str, exact: Curator, data: Data) -> None:
    """The groups that hold rows are those of plain SQL; the others are there and empty."""
    rows = [row for row in ask(exact, question) if row["n"]]
    joined = question.replace(
        " WHERE ", f" WHERE {where} AND city <> 'east' AND " if key == "city" else f" WHERE {where} AND "
    )
    if " WHERE " not in question:
        joined = question.replace(" GROUP", f" WHERE {where} GROUP")
    assert sorted(map(repr, rows)) == sorted(map(repr, truth(data, joined)))


def test_keys_of_each_type(exact: Curator, data: Data) -> None:
    rows = ask(exact, "SELECT age, COUNT(*) AS n FROM visits GROUP BY age")
    assert [row["age"] for row in rows] == [*range(21), None]
    rows = ask(exact, "SELECT day, COUNT(*) AS n FROM single GROUP BY day")
    sql = "SELECT day, COUNT(*) AS n FROM visits WHERE day IN ('2024-01-01', '2024-01-04', '2024-01-05') GROUP BY day"
    assert [row["day"] for row in rows] == [date(2024, 1, 1), date(2024, 1, 4), date(2024, 1, 5), None]
    assert {row["day"]: row["n"] for row in rows if row["n"]} == {row["day"]: row["n"] for row in truth(data, sql)}
    rows = ask(exact, "SELECT smoker, AVG(age) AS a FROM visits GROUP BY smoker")
    assert [row["smoker"] for row in rows] == [False, True, None]
    rows = ask(exact, "SELECT moment, COUNT(*) AS n FROM visits WHERE moment < '2024-01-01 02:00:00' GROUP BY moment")
    assert [row["moment"] for row in rows] == [datetime(2024, 1, 1), datetime(2024, 1, 1, 1)]


def test_private_keys(exact: Curator, data: Data) -> None:
    """Keys that enough persons share; nothing is known of the others, so no empty group is shown."""
    question = "SELECT note, COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM visits GROUP BY note ORDER BY note"
    assert ask(exact, question) == truth(data, question)
    question = "SELECT note FROM single WHERE note <> 'note 2' GROUP BY note ORDER BY 1"
    assert ask(exact, question) == truth(data, question)
    question = (
        "SELECT city, note, COUNT(*) AS n FROM visits WHERE city IN ('north', 'south') GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert ask(exact, question) == truth(data, question)
    assert ask(exact, "SELECT note, COUNT(*) AS n FROM visits WHERE person = 'p1' GROUP BY note") == []


def test_persons(exact: Curator, data: Data) -> None:
    question = (
        "SELECT smoker, COUNT(DISTINCT person) AS n FROM visits WHERE smoker IS NOT NULL GROUP BY smoker ORDER BY 1"
    )
    assert ask(exact, question) == truth(data, question)
    question = "SELECT COUNT(DISTINCT person) AS n, COUNT(*) AS m, AVG(age) AS a FROM visits WHERE age > 17"
    assert alike(ask(exact, question), truth(data, question))


# the noisy answer


@pytest.mark.parametrize(
    "rest",
    [
        "GROUP BY age HAVING COUNT(*) > 20 ORDER BY age",
        "GROUP BY age HAVING n > 20 AND age < 15 ORDER BY n DESC, age",
        "GROUP BY age HAVING n BETWEEN 20 AND 30 OR s IS NULL ORDER BY s, age",
        "GROUP BY age HAVING NOT s / n > 60 AND age IN (1, 2, 3, 4) ORDER BY age DESC",
        "GROUP BY age HAVING ABS(n - 25) < 3 AND CASE WHEN age > 3 THEN n > 1 ELSE TRUE END ORDER BY 2 DESC, 1",
        "GROUP BY age ORDER BY n DESC, age LIMIT 3",
        "GROUP BY 1 ORDER BY COUNT(*) ASC, 1 DESC LIMIT 5",
        "GROUP BY age HAVING SUM(cost) > 100 ORDER BY 3 DESC LIMIT 2",
        "GROUP BY age ORDER BY age LIMIT 0",
    ],
)
def test_having_order_and_limit(rest: str, exact: Curator, data: Data) -> None:
    question = f"SELECT age, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE age IS NOT NULL {rest}"
    assert alike(ask(exact, question), truth(data, question))


def test_having_on_keys_of_each_type(exact: Curator) -> None:
    def keys(question: str) -> list[Any]:
        return [next(iter(row.values())) for row in ask(exact, question)]

    assert keys("SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING city LIKE '%th' ORDER BY city") == [
        "north",
        "south",
    ]
    days = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day HAVING day {} '2024-01-04'"
    assert keys(days.format(">")) == [date(2024, 1, 5)]
    assert keys(days.format("=")) == [date(2024, 1, 4)]
    assert keys("SELECT smoker, COUNT(*) AS n FROM visits GROUP BY smoker HAVING smoker") == [True]
    assert keys("SELECT COUNT(*) AS n FROM visits HAVING n > 1000") == []


NAMES = [
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY city",
    'SELECT "city", COUNT(*) AS "n" FROM "visits" GROUP BY "city" ORDER BY "city"',
    "SELECT `city`, COUNT(*) `n` FROM `visits` GROUP BY `city` ORDER BY `city`",
    "select CITY as city, count(*) N from VISITS group by City order by CITY",
    "SELECT v.city, COUNT(v.person) AS n FROM visits AS v GROUP BY v.city ORDER BY v.city",
    "SELECT visits.city, COUNT(*) n FROM visits GROUP BY 1 ORDER BY 1 ASC",
    "SELECT city AS city, COUNT(*) AS n FROM visits AS x GROUP BY x.city ORDER BY city;",
    "/* a note */ SELECT city, -- another\n COUNT(*) AS n\nFROM visits\nGROUP BY city\nORDER BY city",
]


@pytest.mark.parametrize("question", NAMES)
def test_one_question_written_in_many_ways(question: str, exact: Curator) -> None:
    """Each way is the same question: asked before, and free."""
    first = exact.ask(NAMES[0], epsilon=EXACT)
    release = exact.ask(question, epsilon=EXACT)
    assert [list(row.values()) for row in release.rows] == [list(row.values()) for row in first.rows]


def test_names_of_an_answer(exact: Curator) -> None:
    release = exact.ask(
        "SELECT city, COUNT(*), SUM(age), AVG(cost), COUNT(age) FROM visits GROUP BY city", epsilon=EXACT
    )
    assert release.columns == ["city", "count", "sum_age", "avg_cost", "count_age"]
    others = [
        "MAX(v.Age), PERCENTILE_CONT(age, 0.9), percentile_cont(0.5) WITHIN GROUP (ORDER BY age)",
        "SUM(cost, contribution_bounds_per_row => (0, 9)), COUNT(DISTINCT city), COUNTIF(smoker), COUNT(*) AS Count_2",
        "COUNT(*), COUNT(1), MEDIAN(age + 1), min(cost) FILTER (WHERE smoker), SUM(cost) / 2, COUNT(*) + 1",
    ]
    release = exact.ask(f"SELECT {', '.join(others)} FROM visits v", epsilon=EXACT)
    assert release.columns == [
        *("max_age", "percentile_cont_age", "percentile_cont_age_2"),
        *("sum_cost", "count_distinct_city", "countif_smoker", "Count_2"),
        *("count", "count_3", "median", "min_cost", "value", "value_2"),
    ]
    release = exact.ask(
        "SELECT city, MAX(age) FROM visits GROUP BY city HAVING max_age > 1 ORDER BY max_age", epsilon=1
    )
    assert release.columns == ["city", "max_age"]
    release = exact.ask(
        'SELECT COUNT(*) AS Größe, city AS "the city\'s" FROM visits GROUP BY "the city\'s"', epsilon=EXACT
    )
    assert release.columns == ["Größe", "the city's"]
    assert list(release.rows[0]) == ["Größe", "the city's"]


# the clause


def clause(options: str, rest: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {EXACT}, {options}) {rest}"


def test_the_clause_takes_its_options(exact: Curator, data: Data) -> None:
    plain = (
        "SELECT city, COUNT(*) AS n FROM visits WHERE city IN ('north', 'south', 'Zürich') GROUP BY city ORDER BY city"
    )
    for options in (
        "delta = 0",
        "delta = 0, max_groups_contributed = 40, privacy_unit_column = person",
        "max_groups_contributed = NULL",
        "privacy_unit_column = visits.person",
    ):
        rows = ask(exact, clause(options, plain.removeprefix("SELECT ")))
        assert [row for row in rows if row["n"]] == truth(data, plain)
    bare = "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM visits"
    assert exact.ask(bare, epsilon=EXACT).rows == [{"n": 600}]
    assert exact.ask(bare.replace("PRIVACY", "PRIVACY OPTIONS()"), epsilon=EXACT).rows == [{"n": 600}]


CLAMPED = """SELECT city, {} FROM (SELECT city, person, {} FROM visits WHERE city <> 'east' GROUP BY ALL)
GROUP BY city ORDER BY city"""


@pytest.mark.parametrize(
    ("wanted", "outer", "inner"),
    [
        ("COUNT(*, contribution_bounds_per_group => (0, 2)) AS n", "SUM(least(c, 2))::INT AS n", "COUNT(*) AS c"),
        (
            "COUNT(age, contribution_bounds_per_group => (1, 3)) AS n",
            "SUM(greatest(1, least(c, 3)))::INT AS n",
            "COUNT(age) AS c",
        ),
        (
            "SUM(cost, contribution_bounds_per_group => (10, 99.5)) AS n",
            "SUM(greatest(10, least(c, 99.5))) AS n",
            "SUM(cost) AS c",
        ),
        (
            "SUM(age, contribution_bounds_per_group => (-5, 12)) AS n",
            "SUM(greatest(-5, least(c, 12))) AS n",
            "SUM(age) AS c",
        ),
        (
            "SUM(age - 10, contribution_bounds_per_group => (-5, -1)) AS n",
            "SUM(greatest(-5, least(c, -1))) AS n",
            "SUM(age - 10) AS c",
        ),
    ],
)
def test_contributions_are_clamped_by_person_and_group(
    wanted: str, outer: str, inner: str, exact: Curator, data: Data
) -> None:
    question = f"SELECT city, {wanted} FROM visits GROUP BY city HAVING city <> 'nowhere' ORDER BY city"
    assert alike(ask(exact, question), truth(data, CLAMPED.format(outer, inner)))


def test_what_bounds_a_person_counts_exactly(tight: Curator, exact: Curator) -> None:
    """Which rows and groups of a person stay is drawn; how many is not."""
    assert ask(tight, "SELECT COUNT(*) AS n FROM visits") == [{"n": 60 * 3}]
    groups = "SELECT city, COUNT(DISTINCT person) AS n FROM visits GROUP BY city"
    assert sum(row["n"] for row in ask(tight, groups)) == 60 * 2
    assert sum(row["n"] for row in ask(exact, groups)) == sum(
        row["n"] for row in ask(exact, groups.replace("GROUP", "WHERE TRUE GROUP"))
    )
    one = clause("max_groups_contributed = 1", "city, COUNT(DISTINCT person) AS n FROM visits GROUP BY city")
    assert sum(row["n"] for row in ask(exact, one)) == 60
    assert sum(row["n"] for row in ask(tight, one)) == 60


def test_options_and_call_name_one_price(exact: Curator) -> None:
    question = clause("delta = 0", "COUNT(*) AS n FROM visits")
    assert exact.ask(question, epsilon=EXACT).cost["epsilon"] == 1e20
    with pytest.raises(QuestionError, match="the call and the question name two values of epsilon"):
        exact.ask(question, epsilon=1)


@pytest.mark.parametrize("name", ["Towns", "towns", "TOWNS"])
def test_a_public_table_may_have_capitals_in_its_name(name: str) -> None:
    towns = Table(pd.DataFrame({"town": ["north", "south"]}), public=True, columns={"town": ["north", "south"]})
    people = Table(
        pd.DataFrame({"home": ["north", "south"] * 50}), one_row_per_person=True, columns={"home": ["north"]}
    )
    with Curator({"people": people, name: towns}, epsilon=BUDGET) as curator:
        for written in ("Towns", "towns"):
            free = curator.ask(f"SELECT town, COUNT(*) AS n FROM {written} GROUP BY town ORDER BY town")
            assert free.rows == [{"town": "north", "n": 1}, {"town": "south", "n": 1}]
            joined = f"FROM {written} AS t JOIN (SELECT home, COUNT(*) AS n FROM people GROUP BY home) AS p"
            assert ask(curator, f"SELECT t.town, p.n {joined} ON p.home = t.town") == [{"town": "north", "n": 50}]


@pytest.mark.parametrize("relation", ["gone", "made.x"])
def test_a_public_table_that_is_not_there_says_so(relation: str, tmp_path: Path) -> None:
    """Also where bounds are declared, and no type is known to hold them against."""
    with duckdb.connect(str(tmp_path / "made.duckdb")) as connection:
        connection.execute('CREATE TABLE "made.x" AS SELECT 1 AS a')
    source = f"{tmp_path / 'made.duckdb'}::{relation}"
    made = Table(source, public=True, columns={"a": {"min": 0, "max": 3}, "b": {"type": "integer"}})
    people = Table(pd.DataFrame({"home": ["north"] * 50}), one_row_per_person=True, columns={"home": ["north"]})
    with Curator({"people": people, "made": made}, epsilon=BUDGET) as curator:
        assert ask(curator, "SELECT COUNT(*) AS n FROM people") == [{"n": 50}]
        with pytest.raises(DeclarationError, match="cannot be read"):
            curator.ask("SELECT b, COUNT(*) AS n FROM made GROUP BY b")


def test_a_public_table_may_name_no_columns(tmp_path: Path) -> None:
    """Then it has all those of its source; a table about people has to name what may be asked about."""
    (tmp_path / "wards.csv").write_text("ward,beds\na,1\nb,2\n")
    frame = pd.DataFrame({"ward": ["a", "b"], "beds": [1, 2]})
    for source in (tmp_path / "wards.csv", frame):
        with Curator({"wards": Table(source, public=True)}, epsilon=1) as known:
            assert [row["ward"] for row in known.ask("SELECT ward, beds FROM wards ORDER BY ward").rows] == ["a", "b"]
        assert "columns of its source" in repr(Table(source, public=True))
        with pytest.raises(DeclarationError, match=r"columns: it is missing → write columns="):
            Curator({"wards": Table(source, one_row_per_person=True)}, epsilon=1)
