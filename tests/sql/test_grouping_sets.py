"""GROUP BY ROLLUP, CUBE and GROUPING SETS: one measured table for each list of keys, which share the price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import discreet
from discreet import Curator, QuestionError
from discreet.sql.grammar import parse
from discreet.sql.grouping_sets import MOST_SETS, grouping_sets, in_front

NEVER = 1e20
KEYS = ("a", "b", "c")

ROWS = (
    "SELECT i AS person, CASE WHEN i // 2 % 4 > 0 THEN i // 2 % 4 END AS a, ['x', 'y'][1 + i % 2] AS b, i % 3 = 0 AS c,"
    " i % 10 AS v FROM range(120) AS t(i)"
)


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    return connection


@pytest.fixture
def curator(plain: duckdb.DuckDBPyConnection, tmp_path: Path) -> Iterator[Curator]:
    plain.execute(f"COPY t TO '{tmp_path / 't.parquet'}'")
    columns = {
        "person": int,
        "a": {"type": "integer", "min": 1, "max": 3},
        "b": {"type": "text", "values": ["x", "y"], "nulls": False},
        "c": {"type": "boolean", "nulls": False},
        "v": {"type": "integer", "min": 0, "max": 9, "nulls": False},
    }
    table = discreet.Table(str(tmp_path / "t.parquet"), person="person", one_row_per_person=True, columns=columns)
    with discreet.Curator({"t": table}, epsilon=1e30) as made:
        yield made


@pytest.mark.parametrize(
    "question",
    [
        "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, GROUPING(a) AS all_of_them, SUM(v) AS s FROM t GROUP BY ROLLUP (a)",
        "SELECT b, c, GROUPING(b, c) AS g, GROUPING_ID(c) AS h, COUNT(*) AS n FROM t GROUP BY CUBE (b, c)",
        "SELECT a, b, c, SUM(v) AS s FROM t GROUP BY a, ROLLUP (b, c)",
        "SELECT a, b, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a, b), (a), b, ())",
        "SELECT b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((b), (b), ())",
        "SELECT v % 2 AS odd, COUNT(*) AS n FROM t GROUP BY ROLLUP (1)",
        "SELECT b AS key, COUNT(*) AS n FROM t GROUP BY GROUPING SETS (key, ()) HAVING GROUPING(b) = 1",
        "SELECT CASE WHEN GROUPING(b) = 1 THEN 'all' ELSE b END AS key, COUNT(*) AS n,"
        " 1.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING(b)) AS share FROM t GROUP BY ROLLUP (b)",
        "SELECT b, c FROM t GROUP BY ROLLUP (b, c)",
        "SELECT b, SUM(n) AS n FROM (SELECT b, c, COUNT(*) AS n FROM t GROUP BY b, c) AS u GROUP BY ROLLUP (b)",
    ],
)
def test_what_plain_sql_says(question: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    answer = curator.ask(question, epsilon=NEVER)
    found = plain.execute(question)
    assert answer.columns == [one[0] for one in found.description]
    assert Counter(tuple(row.values()) for row in answer.rows) == Counter(found.fetchall())


def test_behind_the_columns_it_is_meant_as_before_them(curator: Curator) -> None:
    first = curator.ask("SELECT b, c, COUNT(*) AS n FROM t GROUP BY ROLLUP (b, c)", epsilon=NEVER)
    assert curator.ask("SELECT b, c, COUNT(*) AS n FROM t GROUP BY b, c WITH ROLLUP", epsilon=NEVER).rows == first.rows


def test_a_group_of_null_is_told_apart_from_all(curator: Curator) -> None:
    answer = curator.ask("SELECT a, GROUPING(a) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)", epsilon=NEVER)
    assert {(row["g"], row["n"]) for row in answer if row["a"] is None} == {(0, 30), (1, 120)}


def test_the_levels_share_the_price_and_have_their_intervals(curator: Curator) -> None:
    rolled = "SELECT b, c, COUNT(*) AS n FROM t GROUP BY ROLLUP (b, c)"
    assert curator.explain(rolled, epsilon=3).price.epsilon == 3
    answer = curator.ask(rolled, epsilon=3)
    assert answer.charged.epsilon == 3
    assert all("n" in one for one in answer.intervals)
    assert not curator.ask("SELECT b, COUNT(*) AS n FROM t GROUP BY b", epsilon=1).charged  # one of its levels
    assert not curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1).charged


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("SELECT COUNT(*) FROM t GROUP BY CUBE (a, b, c, v)", "too-long"),
        ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (a, b, c, v, v + 1, v + 2, v + 3, v + 4)", "too-long"),
        ("SELECT b, GROUPING(c) FROM t GROUP BY ROLLUP (b)", "grouping"),
        ("SELECT person, COUNT(*) FROM t GROUP BY ROLLUP (person)", "person-key"),
        ("SELECT person, b, COUNT(*) FROM t GROUP BY person, ROLLUP (b)", "person-key"),
        ("SELECT AVG(n) FROM (SELECT person, b, COUNT(*) AS n FROM t GROUP BY person, ROLLUP (b)) u", "not-allowed"),
        ("SELECT v, COUNT(*) FROM t GROUP BY ROLLUP (b)", "ungrouped"),
        ("SELECT b, COUNT(*) FROM t GROUP BY b WITH TOTALS", "clause"),
    ],
)
def test_what_is_refused_costs_nothing(question: str, code: str, curator: Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(QuestionError) as error:
        curator.ask(question, epsilon=1)
    assert error.value.code == code, error.value
    assert error.value.fix
    assert curator.ledger.head == head


keys = st.sampled_from(KEYS)
lists = st.lists(keys, max_size=2).map(lambda names: f"({', '.join(names)})") | keys
parts = st.lists(lists.filter(lambda one: one != "()"), min_size=1, max_size=2).map(", ".join)
levels = st.builds("{} ({})".format, st.sampled_from(["ROLLUP", "CUBE"]), parts)
sets = st.lists(lists | levels, min_size=1, max_size=3).map(lambda items: f"GROUPING SETS ({', '.join(items)})")


@given(st.lists(keys | levels | sets, min_size=1, max_size=2))
def test_the_lists_are_those_of_plain_sql(items: list[str]) -> None:
    text = "GROUP BY " + ", ".join(items)
    group = parse(f"SELECT 1 FROM t {text}").args["group"]
    assert isinstance(group, exp.Group)
    in_front(group)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b, 3 AS c")
        # a key that is nowhere grouped by cannot stand in GROUPING
        named = sorted({one.name for one in group.find_all(exp.Column)})
        shown = f"GROUPING({', '.join(named)})" if named else "0"
        expected = Counter(row[0] for row in connection.execute(f"SELECT {shown}, COUNT(*) FROM t {text}").fetchall())
    if sum(expected.values()) > MOST_SETS:
        with pytest.raises(QuestionError, match="more than 8 levels"):
            grouping_sets(group)
        return
    made = grouping_sets(group)
    found = Counter[int]()
    for one in made:
        there = {item.name for item in one}
        found[sum((name not in there) << place for place, name in enumerate(reversed(named)))] += 1
    assert found == expected
