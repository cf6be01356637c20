"""The statements that are sent: three of them word for word, without windows, and what the engine makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.driver import DuckDB
from discreet.trusted.ring_a.statement import statement, table_name
from discreet.trusted.ring_a.windows import PLACE, ROWS, WORD, Salt
from engine_tools import Bench, declaration, planned

COLUMNS = {
    "p": {"type": "text"},
    "g": {"type": "text", "values": ["x", "it's"]},
    "k": {"type": "integer", "min": 1, "max": 3},
    "w": {"type": "number", "min": 0, "max": 8},
}
ONE = {"one_row_per_person": True}
MANY = {"person": "p", "rows_per_person": 3, "groups_per_person": 1}
SALT = Salt("factor", "shift", "salt")

BOTH_LIMITS = "SELECT k, COUNT(*, contribution_bounds_per_group => (0, 2)), SUM(w) FROM t GROUP BY k"
IN_STEPS = (
    "CASE WHEN c3 IS NULL THEN NULL ELSE CAST(GREATEST(LEAST(FLOOR(((c3 * CAST('134217728.0' AS DOUBLE)) +"
    " CAST('0.5' AS DOUBLE))), CAST('1073741824.0' AS DOUBLE)), CAST('0.0' AS DOUBLE)) AS BIGINT) END AS q0"
)


def at_most_2(total: str) -> str:
    return f"CAST(CASE WHEN {total} > 2 THEN 2 WHEN {total} < 0 THEN 0 ELSE {total} END AS BIGINT)"


def window(place: str, number: str, most: int) -> str:
    offset = "((factor * CAST(word_of_person AS BIGINT) + shift) % 2147483647)"
    turned = f"(CAST({place} AS BIGINT) + {offset}) % CAST({number} AS BIGINT)"
    return f"CASE WHEN {number} <= {most} THEN TRUE ELSE {turned} < {most} END"


_MD5 = (
    "LIST_EXTRACT(LIST_TRANSFORM([MD5_NUMBER_UPPER('salt' || CAST(person AS TEXT))], LAMBDA v : CAST(((v & 127) << 24)"
    " | (((v >> 8) & 255) << 16) | (((v >> 16) & 255) << 8) | ((v >> 24) & 255) AS BIGINT)), CAST('1' AS BIGINT))"
)


def term(word: str, factor: int | str) -> str:
    """A number below the prime, times a factor, below it again."""
    return f"((COALESCE(CAST({word} AS BIGINT), 1) * {factor}) % 2147483647)"


_HALVES = [
    f"(((({half}) % 2147483647) + 2147483647) % 2147483647)"
    for half in ("CAST(k0 AS BIGINT)", "CAST(k0 AS BIGINT) // 1073741824")
]
MIXED = (
    "SELECT *, ((((mixed_square * mixed_square) % 2147483647) * mixed_x) % 2147483647) AS mixed FROM (SELECT *,"
    " ((mixed_x * mixed_x) % 2147483647) AS mixed_square FROM (SELECT *, ((1002860549 +"
    f" {term(f'(({_MD5}) % 2147483647)', 904457464)} + {term(term(_HALVES[0], 'factor'), 650473778)}"
    f" + {term(term(_HALVES[1], 'factor'), 978804131)}) % 2147483647) AS mixed_x FROM"
)
"""Rows with a number that follows from salt, person and the group's key: the same for every engine."""

ROWS_KEPT = window("place_of_row", "rows_of_person", 3)
GOLDEN = [
    (
        ONE,
        "SELECT g, COUNT(*) FROM t WHERE w / k > 0.5 AND NOT p = 'a\\''' GROUP BY g",
        "SELECT k0, COALESCE(COUNT(*), 0) FROM (SELECT c1 AS k0 FROM t_74 WHERE (c1 IS NULL OR c1 IN ('x', 'it''s'))"
        " AND (((c3 / NULLIF(CAST(c2 AS DOUBLE), CAST('0.0' AS DOUBLE))) > CAST('0.5' AS DOUBLE))"
        " AND (c0 <> 'a\\'''))) AS bounded GROUP BY k0",
    ),
    (
        MANY,
        "SELECT AVG(w) FROM t",
        f"SELECT COALESCE(SUM(q0), 0), COALESCE(COUNT(q0), 0) FROM (SELECT {IN_STEPS}, c0 AS person FROM t_74"
        f" WHERE NOT c0 IS NULL AND {ROWS_KEPT}) AS bounded",
    ),
    (
        MANY,
        "SELECT k, COUNT(DISTINCT p), COUNT(*, contribution_bounds_per_group => (0, 2)) FROM t GROUP BY k",
        f"SELECT k0, COUNT(*), COALESCE(SUM({at_most_2('a1')}), 0) FROM (SELECT * FROM"
        f" totals_293d11fed007a68b7fbfffbc WHERE {window('place', 'places', 1)}) AS bounded GROUP BY k0",
    ),
    (
        MANY,
        BOTH_LIMITS,
        f"SELECT k0, COALESCE(SUM({at_most_2('a0')}), 0), COALESCE(SUM(a1), 0) FROM (SELECT * FROM (SELECT *,"
        " ROW_NUMBER() OVER (PARTITION BY person ORDER BY mixed NULLS FIRST, k0 NULLS FIRST) AS rank_of_person FROM"
        f" ({MIXED} (SELECT person, k0, COUNT(*) AS a0, SUM(q0) AS a1 FROM (SELECT c2 AS k0, {IN_STEPS}, c0 AS person"
        " FROM t_74 WHERE ((c2 IS NULL OR c2 BETWEEN CAST('1' AS BIGINT) AND CAST('3' AS BIGINT)) AND NOT c0 IS NULL)"
        f" AND {ROWS_KEPT}) AS row GROUP BY person, k0) AS unmixed) AS unmixed) AS unmixed) AS candidate) AS ranked"
        " WHERE rank_of_person BETWEEN 1 AND 1)"
        " AS bounded GROUP BY k0",
    ),
]


@pytest.mark.parametrize(("unit", "question", "expected"), GOLDEN)
def test_golden_statements(unit: Mapping[str, Any], question: str, expected: str) -> None:
    known = declaration(unit, COLUMNS)
    select = statement(planned(question, known).root, known.tables["t"], SALT)
    assert DUCKDB.text(select) == expected


def test_the_limits_run_as_windows(bench: Bench) -> None:
    """The engine would replace `row_number() <= k` by another operator; with the child's settings it must not."""
    known = declaration(MANY, COLUMNS)
    table = bench.load(known.tables["t"], [{"p": str(n % 70), "g": "x", "k": n % 3, "w": 1.0} for n in range(500)])
    assert bench.engine._process is not None
    setting = "SELECT current_setting('disabled_optimizers')"
    (disabled,) = bench.engine._process.call("run", setting, seconds=300)["rows"][0]
    assert "top_n_window_elimination" in disabled
    connection = duckdb.connect()
    connection.execute(f"SET disabled_optimizers = '{disabled}'")
    columns = f"c0 TEXT, c1 TEXT, c2 BIGINT, c3 DOUBLE, {PLACE} INT, {ROWS} INT, {WORD} INT"
    connection.execute(f"CREATE TABLE {table_name(table)} ({columns})")
    text = DUCKDB.text(statement(planned(BOTH_LIMITS, known).root, table, Salt.of("salt")))
    connection.execute(
        f"INSERT INTO {table_name(table)} SELECT n % 70, 'x', n % 3, 1.0, n // 70 + 1, 8, 7 FROM range(500) AS r(n)"
    )
    plan = connection.execute(f"EXPLAIN {text}").fetchall()[0][1].lower()
    assert "window" in plan
    assert "row_number" in plan
    assert "arg_min" not in plan
    assert "unnest" not in plan


def test_text_reaches_the_engine_as_it_is_and_nowhere_else(bench: Bench) -> None:
    """Quotes, backslashes and line ends in a constant stay inside it."""
    known = declaration(ONE, COLUMNS)
    for text in ("'", "''; DROP TABLE t_74; --", "\\", "\\'", "a\nb", "$$", '"', "/*", "🙂"):
        table = bench.load(known.tables["t"], [{"p": text}, {"p": "other"}])
        written = text.replace("'", "''")
        plan = planned(f"SELECT COUNT(*) FROM t WHERE p = '{written}'", known)
        assert bench.totals(plan, table, "salt") == {(): (1,)}


def test_what_the_owner_is_shown_has_no_salt() -> None:
    known = declaration(MANY, COLUMNS)
    shown = DuckDB(known.limits).sql(planned("SELECT AVG(w) FROM t", known).root, known.tables["t"])
    assert "a_fresh_factor * " in shown
    assert "a_fresh_shift" in shown


def test_every_run_has_a_fresh_salt(bench: Bench) -> None:
    """One person with forty rows of which one is kept: twenty runs keep the same one with probability 40^-19."""
    known = declaration({"person": "p", "rows_per_person": 1}, COLUMNS)
    table = bench.load(known.tables["t"], [{"p": "a", "w": n / 5} for n in range(40)])
    plan = planned("SELECT SUM(w) FROM t", known)
    assert len({bench.engine.run(plan.root, table)[0] for _ in range(20)}) > 1
