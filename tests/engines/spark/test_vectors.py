"""The same key, salt and question give the same exact vectors on Spark and on DuckDB, to the bit."""

from __future__ import annotations

import datetime
import math
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from discreet.audit.hostile import HOSTILE, crowd, with_persons
from discreet.audit.maker import Maker
from discreet.catalog import Declaration, Table
from discreet.engines import chosen
from discreet.engines.protocol import Owned
from discreet.errors import QuestionError
from discreet.plan.measurement import Plan
from discreet.sql import lower
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import as_table
from discreet.trusted.ring_b.relations import Base, RowBefore
from discreet.trusted.ring_c.coding import Coding, ListedCells
from discreet.trusted.ring_c.vectors import VectorColumn
from engine_tools import DAY, LIMITS, Bench, Record, declaration, planned
from hunt_tools import framed
from relation_tools import moved, shop
from spark_tools import Spark, limits

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""A smaller example takes as long to try as another one."""

pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("ignore")]

UNITS: list[dict[str, Any]] = [
    {"person": "p", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "p", "one_row_per_person": True},
    {"one_row_per_person": True},
]

QUESTIONS = [
    "SELECT COUNT(*), SUM(w), AVG(s) FROM t",
    "SELECT g, COUNT(*), SUM(w), AVG(s) FROM t GROUP BY g",
    "SELECT h, COUNT(*), SUM(v) FROM t GROUP BY h",
    "SELECT h, SUM(w) FROM t WHERE v > 0 GROUP BY h",
    "SELECT g, h, COUNT(*), SUM(w) FROM t WHERE w <> 1 GROUP BY g, h",
    "SELECT k, AVG(w), COUNT(v) FROM t WHERE b GROUP BY k",
    "SELECT COUNT(DISTINCT h) FROM t",
    "SELECT COUNT(*) FROM t WHERE h LIKE '%a%' OR UPPER(h) = 'Ü'",
    "SELECT MEDIAN(w), VARIANCE(s) FROM t",
    "SELECT MIN(v) FROM t WHERE u > 5",
    "SELECT FLOOR(w / 2.0) * 2.0 AS x, ROUND(f, 1) AS y, s, COUNT(*) FROM t GROUP BY x, y, s",
]
"""Counts, sums, means, moments, quantiles and different values; rows and groups in windows, with WHERE and without."""

RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "p": st.sampled_from([None, "a", "b", "c", "ü", ""]),
            "g": st.sampled_from([None, "x", "y", "z", "q"]),
            "h": st.sampled_from([None, "a", "ab", "ü", "🙂", "", "\\"]),
            "k": st.none() | st.integers(-2, 5),
            "b": st.none() | st.booleans(),
            "v": st.none() | st.integers(-9, 9) | st.sampled_from([2**63 - 1, -(2**63)]),
            "w": st.none() | st.floats(),
            "s": st.none() | st.floats(-1, 4),
            "u": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | st.floats(),
            "d": st.none() | st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
        }
    ),
    max_size=40,
)


def run(engine: Owned, root: Root, table: Table, salt: str = "a salt") -> list[str]:
    with patch.object(secrets, "token_hex", lambda _size: salt):
        return sorted(map(repr, engine.run(root, table)))  # type: ignore[attr-defined]


def hold_alike(here: Bench, there: Bench, plans: list[Plan], known: Declaration, rows: list[Record]) -> None:
    """Both engines give the same for each plan over these rows."""
    here.count = there.count = max(here.count, there.count)
    tables = [bench.load(known.tables["t"], rows) for bench in (here, there)]
    for plan in plans:
        for root in plan.roots:
            loaded = moved(root, str(here.count))
            one, other = (run(bench.engine, loaded, table) for bench, table in zip((here, there), tables, strict=True))
            assert one == other, root


@pytest.mark.parametrize("unit", UNITS, ids=["windows", "one row", "rows"])
@given(RECORDS)
@settings(max_examples=2, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows(bench: Bench, there: Bench, unit: dict[str, Any], rows: list[Record]) -> None:
    known = declaration(unit)
    hold_alike(bench, there, [planned(text, known) for text in QUESTIONS], known, rows)


def test_one_person_with_everything(bench: Bench, there: Bench) -> None:
    numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e308, None]
    rows = [
        {"p": "a" if i % 7 else f"p{i}", "g": "xyz"[i % 3], "h": str(i % 11), "v": i, "w": numbers[i % 8], "s": i / 7}
        for i in range(300)
    ]
    known = declaration(UNITS[0])
    hold_alike(bench, there, [planned(text, known) for text in QUESTIONS], known, rows)


def test_rows_as_vectors_and_as_cells(bench: Bench, there: Bench) -> None:
    rows = [
        {"p": "abü"[i % 3], "g": "xyzq"[i % 4], "h": [None, "a", "ü🙂", ""][i % 4], "b": [None, True, False][i % 3]}
        | {"v": i - 20, "w": i / 7, "u": 2**63 - 1 - i, "f": [None, -0.0, 1e300][i % 3], "d": DAY}
        for i in range(50)
    ]
    here, known = bench, declaration(UNITS[0])
    here.count = there.count = max(here.count, there.count)
    tables = [one.load(known.tables["t"], rows) for one in (here, there)]
    columns = {column.name: column for column in tables[0].columns}
    wanted = [VectorColumn(column) for column in columns.values()]
    one, other = (bench.engine.vectors(table, wanted) for bench, table in zip((here, there), tables, strict=True))
    assert np.array_equal(one.person, other.person)
    for name, known_there in one.known.items():
        assert np.array_equal(known_there, other.known[name])
        assert np.array_equal(one.values[name][known_there], other.values[name][known_there])
    many = ("a", "ü🙂", "", *(f"value {i}" for i in range(10)))
    cells = (ListedCells(columns["g"], ("x", "y"), other=True), ListedCells(columns["h"], many))
    before = (*cells, ListedCells(replace(columns["g"], name="before"), ("x", "y"), other=True))
    found = []
    for bench, table in zip((here, there), tables, strict=True):
        view = as_table(RowBefore(Base.of(table), ("p",), "f", (("before", "g"),)))  # with ties, and NULL
        for source, coding in ((table, Coding(cells)), (view, Coding(before))):
            with patch.object(secrets, "token_hex", lambda _size: "salt"):
                coded = bench.engine.code(coding, source)
            found.append(bench.engine.marginals(coded, [["g"], ["g", "h"], coding.names, []]))
            bench.engine.uncode(coded)
    for one, other in zip(found[:2], found[2:], strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
    assert np.count_nonzero(found[1][2]) > 5


KNOWN = shop({"type": "text"}, {"type": "integer"})


@pytest.fixture(scope="module")
def world(spark: Spark) -> Iterator[tuple[Declaration, Owned, Owned]]:
    """A shop with a crowd and persons of edge values, in both engines."""
    rows = with_persons(KNOWN, crowd(KNOWN), [one for one in HOSTILE if one.values != "beyond"])
    known = replace(
        KNOWN, tables={one.name: replace(one, source=framed(one, rows[one.name])) for one in KNOWN.tables.values()}
    )
    here, there = chosen.engine(LIMITS), chosen.engine(limits(spark))
    with patch("discreet.engines.driver.positions", lambda *_: "one key"):
        for engine in (here, there):
            for table in known.tables.values():
                engine.load(table, b"")
            engine.lock()
    yield known, here, there
    here.close()
    there.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_questions(world: tuple[Declaration, Owned, Owned], seed: int) -> None:
    """Joins, subqueries, computed terms, private keys: what the twin lets through gives the same on both."""
    known, here, there = world
    twin, maker, compared = there.trial(known.tables.values()), Maker(known, seed), 0
    try:
        for text in (maker.question() for _ in range(1_000)):
            if compared == 10:
                break
            try:
                question = lower(text, known, lambda relation: here.public_values(relation, 1_000))
                twin.hold(question.plan.roots, question.table)
            except QuestionError:
                continue
            for root in question.plan.roots:
                assert run(here, root, question.table) == run(there, root, question.table), text
            compared += 1
    finally:
        twin.close()
    assert compared == 10  # the twin refuses what Spark cannot do alike, and nothing else
