"""Pairs of a row and the one before it: what one person moves, in the real engine, and who is before whom."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.catalog import declare
from discreet.catalog.model import Declaration, EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.plan.read import _below
from discreet.plan.work import _Measure
from discreet.synthesis.related import related
from discreet.synthesis.row_before import cells_before
from discreet.trusted.ring_a.table import Type, as_table
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b import relation_statements
from discreet.trusted.ring_b.belonging import declared
from discreet.trusted.ring_b.relations import Base, RowBefore
from discreet.trusted.ring_c.coded import UNIT, CodedRows, Marginal, build
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from kinds import examples

NAMES = ["patients", "visits", "tests"]
PERSONS = ["a", "b", "ü"]
DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
STATES, KINDS = ["new", "ill", "well"], ["blood", "x-ray"]
Tables = Mapping[str, Sequence[tuple[Any, ...]]]
COLUMNS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "patients": {"id": {"type": "text"}, "sex": {"type": "text", "values": ["F", "M"]}},
    "visits": {
        "number": {"type": "integer"},
        "patient": {"type": "text"},
        "day": {"type": "date", "min": DAYS[0], "max": DAYS[-1]},
        "state": {"type": "text", "values": STATES},
    },
    "tests": {
        "visit": {"type": "integer"},
        "minute": {"type": "integer", "min": 0, "max": 9},
        "kind": {"type": "text", "values": KINDS},
    },
}

PATIENT = st.tuples(st.sampled_from(PERSONS), st.sampled_from(["F", "M", None]))
VISIT = st.tuples(
    st.sampled_from([1, 2, 3, 4, None]),
    st.sampled_from([*PERSONS, "nobody", None]),
    st.sampled_from([*DAYS, None]),
    st.sampled_from([*STATES, "other", None]),
)
TEST = st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from([0, 5, 9, None]), st.sampled_from([*KINDS, None]))
TABLES = st.fixed_dictionaries(
    {
        "patients": st.lists(PATIENT, max_size=4),
        "visits": st.lists(VISIT, max_size=12),
        "tests": st.lists(TEST, max_size=8),
    }
)


def declaration(tables: Tables, visits: int, tests: int) -> Declaration:
    said: dict[str, dict[str, Any]] = {
        "patients": {"person": "id", "one_row_per_person": True},
        "visits": {"person": "patient", "rows_per_person": visits, "time": "day"},
        "tests": {"person": "visit -> visits.number", "rows_per_person": tests, "time": "minute"},
    }
    for name, one in said.items():
        columns = COLUMNS[name]
        held = {
            column: pd.array(
                [row[place] for row in tables[name]],
                dtype={"text": "string", "integer": "Int64", "date": "object"}[known["type"]],  # type: ignore[call-overload]
            )
            for place, (column, known) in enumerate(columns.items())
        }
        one |= {"source": pd.DataFrame(held), "columns": columns}
    return declare({"budget": {"epsilon": 1, "delta": 1e-6}, "tables": said})


def vectors(tables: Tables, visits: int, tests: int, *, evenly: bool) -> list[dict[tuple[str, ...], Marginal]]:
    """Of the visits and the tests, under one salt, the marginals of each pair of a column and the column before, and of
    all columns together."""
    known = declaration(tables, visits, tests)
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in known.tables.values():
        engine.load(table, b"salt")
    found = []
    for place, one in enumerate(related(known, NAMES)[1:]):
        own: list[ListedCells | Binned] = []
        for each in one.columns:
            column = each.column
            own.append(ListedCells(column, column.values, other=True) if column.values else _cut(column))
        coding = Coding((*own, *(cells_before(cells) for cells in own if one.before)))
        rows = CodedRows(f"coded_{place}", one.view, coding, evenly and one.evenly)
        engine._coded([build(rows, Salt.of("1"), engine._dialect)], one.view)
        cliques = [*one.before.items(), coding.names]
        arrays = engine.marginals(rows, cliques, evenly=rows.evenly)
        found.append(dict(zip(cliques, arrays, strict=True)))
    engine.close()
    return found


def _cut(column: Any) -> Binned:
    return Binned(column, tuple(DAYS[1:]) if column.type is Type.DATE else (3, 7))


def apart(tables: Tables) -> Tables:
    """The tables where no visit's number stands in visits of two patients: loading refuses those that are not."""
    owner: dict[Any, Any] = {}
    visits = [one for one in tables["visits"] if owner.setdefault(one[0], one[1]) == one[1]]
    return {**tables, "visits": visits}


def without(tables: Tables, person: str) -> Tables:
    theirs = {one[0] for one in tables["visits"] if one[1] == person} - {None}
    return {
        "patients": [one for one in tables["patients"] if one[0] != person],
        "visits": [one for one in tables["visits"] if one[1] != person],
        "tests": [one for one in tables["tests"] if one[0] not in theirs],
    }


def moved(tables: Tables, person: str, visits: int, tests: int, *, evenly: bool = True) -> list[list[Marginal]]:
    """What the person adds to each marginal of each table."""
    tables = apart(tables)
    whole = vectors(tables, visits, tests, evenly=evenly)
    rest = vectors(without(tables, person), visits, tests, evenly=evenly)
    return [[one[clique] - other[clique] for clique in one] for one, other in zip(whole, rest, strict=True)]


def held(changes: Sequence[Sequence[Marginal]], limits: Sequence[int]) -> bool:
    """Whether nothing goes down, and no marginal up by more than a person is priced for."""
    return all(
        bool((one >= 0).all()) and int(one.sum()) <= most
        for most, each in zip(limits, changes, strict=True)
        for one in each
    )


@settings(max_examples=examples(200, 5), deadline=None)
@given(TABLES, st.sampled_from(PERSONS), st.integers(1, 3), st.integers(1, 4))
def test_a_person_moves_pairs_by_no_more_than_they_are_priced_for(
    tables: Tables, person: str, visits: int, tests: int
) -> None:
    """With days that several rows share, rows without a day, with one row and with more than count; also of rows below
    rows. Nobody's row has another row before it because somebody is there."""
    assert held(moved(tables, person, visits, tests), [UNIT if visits > 1 else 1, UNIT if tests > 1 else 1])
    assert held(moved(tables, person, visits, tests, evenly=False), [visits, tests])


CLINIC: Tables = {
    "patients": [("a", "F"), ("b", "M"), ("ü", "F")],
    "visits": [
        (1, "a", DAYS[1], "ill"),
        (2, "b", DAYS[0], "new"),
        (3, "a", DAYS[0], "new"),
        (4, "a", DAYS[2], "well"),
        (5, "b", None, "ill"),
        (6, "ü", DAYS[1], "new"),
        (7, "a", DAYS[2], "well"),
    ],
    "tests": [(1, 5, "blood"), (1, 0, "x-ray"), (3, 9, "blood"), (2, None, "blood")],
}


def test_the_row_before_is_the_person_s_own_by_time_and_null_comes_first() -> None:
    """a: new, ill, well, well. b: ill on no day, then new. ü: new. Tests of visit 1: x-ray, then blood."""
    visits, tests = vectors(CLINIC, 9, 9, evenly=False)
    pairs = visits["state", "state before"]
    none = pairs.shape[1] - 1
    new, ill, well = range(3)
    expected = {(new, none): 2, (ill, new): 1, (well, ill): 1, (well, well): 1, (ill, none): 1, (new, ill): 1}
    assert {tuple(map(int, cell)): int(pairs[cell]) for cell in zip(*pairs.nonzero(), strict=True)} == expected
    days = visits["day", "day before"]
    assert int(days[:3, :3].sum()) == 3
    assert all(days[now, before] == 0 for before in range(3) for now in (*range(before), 3))
    kinds = tests["kind", "kind before"]
    assert int(kinds[0, 1]) == 1  # of tests of other visits none is before another
    assert int(kinds[:, -1].sum()) == 3


def test_a_thousand_rows_of_a_person_weigh_as_much_as_three() -> None:
    visits = [(None, "a", DAYS[one % 3], "ill") for one in range(1000)] + [(1, "b", DAYS[0], "new")]
    crowd: Tables = {"patients": [("a", "F"), ("b", "M")], "visits": visits, "tests": [(1, 1, "blood")]}
    whole = moved(crowd, "a", 3, 4)[0]
    assert all(UNIT - 4 < int(one.sum()) <= UNIT for one in whole)
    assert [int(one.sum()) for one in moved(crowd, "a", 3, 4, evenly=False)[0]] == [3] * len(whole)
    assert all(int(one.sum()) == UNIT for one in moved(crowd, "b", 3, 4)[0])


def windows(change: Any) -> Any:
    """The statement of pairs, with something changed in each of its windows."""
    real = relation_statements._row_before

    def changed(relation: RowBefore, keep: Any) -> Any:
        rows = real(relation, keep)
        for one in rows.select.expressions:
            if isinstance(one, exp.Alias) and isinstance(one.this, exp.Window):
                change(one.this)
        return rows

    return patch.dict(relation_statements._BUILDERS, {RowBefore: changed})


def test_pairs_across_persons_are_found_out() -> None:
    """Where no person is said, rows of others have another row before them; here of visits, which refer to persons."""

    def mixed(window: exp.Window) -> None:
        window.set("partition_by", None)

    for person in PERSONS:
        assert held(moved(CLINIC, person, 3, 4), [UNIT, UNIT])
    with windows(mixed):
        assert not all(held(moved(CLINIC, person, 3, 4), [UNIT, UNIT]) for person in PERSONS)


def steps(tables: Tables) -> Marginal:
    """Pairs of a state and the one before it, where nothing but the person says which rows follow one another."""
    known = declaration(tables, 3, 3)
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in known.tables.values():
        engine.load(table, b"salt")
    visits = known.tables["visits"]
    view = as_table(RowBefore(declared(visits, known.tables), (), "day", (("state before", "state"),)))
    state = visits.column("state")
    assert state is not None
    own = ListedCells(state, state.values or (), other=True)
    coding = Coding((own, cells_before(own)))
    rows = CodedRows("coded", view, coding)
    engine._coded([build(rows, Salt.of("1"), engine._dialect)], view)
    (pairs,) = engine.marginals(rows, [coding.names], evenly=False)
    engine.close()
    return pairs


def test_the_row_before_is_the_person_s_own_where_no_column_says_so() -> None:
    """The bound rests on the person alone: with no column `within`, nobody's row follows another person's."""
    whole = steps(CLINIC)
    for person in PERSONS:
        change = whole - steps(without(CLINIC, person))
        assert (change >= 0).all()
        assert int(change.sum()) <= 3
    assert int(whole[:, -1].sum()) == len(PERSONS)  # one first row of each


def test_a_bound_of_half_a_person_or_of_one_pair_less_is_found_out() -> None:
    """R rows hold R pairs with the first one's, which has none before: R − 1 are not enough, and half a unit is not."""
    assert not held(moved(CLINIC, "a", 3, 4, evenly=False)[:1], [2])
    assert not held(moved(CLINIC, "a", 3, 4)[:1], [UNIT // 2])
    assert held(moved(CLINIC, "a", 3, 4, evenly=False)[:1], [3])


def test_what_is_read_and_what_it_takes_is_known_of_the_row_before_too() -> None:
    known = declaration(CLINIC, 3, 3)
    visits = declared(known.tables["visits"], known.tables)
    relation = RowBefore(visits, ("patient",), "day", (("x", "state"),))
    assert set(_below(relation, frozenset({"x"}))) >= {("visits", name) for name in ("patient", "day", "state")}
    assert ("visits", "state") not in set(_below(relation, frozenset()))
    plain, more = (_Measure(Nothing()).side(one) for one in (visits, relation))
    assert more.rows == plain.rows
    assert more.steps > plain.steps
    assert more.columns["x"] == plain.columns["state"]


class Nothing:
    """Of public tables there are none."""

    def most(self, *_: object) -> int:
        return 0

    def longest(self, *_: object) -> Mapping[str, int]:
        return {}


def test_who_cannot_be_told_has_no_row_before() -> None:
    known = declaration(CLINIC, 3, 3)
    visits = declared(known.tables["visits"], known.tables)
    as_table(RowBefore(visits, ("patient",), "day", (("x", "state"),)))
    with pytest.raises(ValueError, match="no such column"):
        as_table(RowBefore(visits, ("patient",), "hour", (("x", "state"),)))
    with pytest.raises(ValueError, match="different names"):
        as_table(RowBefore(visits, (), "day", (("state", "state"),)))
    public = declare(
        {
            "budget": {"epsilon": 1, "delta": 1e-6},
            "tables": {
                "days": {"public": True, "source": "days.csv", "columns": {"day": {"type": "integer"}}},
                "alone": {"one_row_per_person": True, "source": "a.csv", "columns": {"day": {"type": "integer"}}},
            },
        }
    )
    for table in public.tables.values():
        with pytest.raises(ValueError, match="among those of its person"):
            as_table(RowBefore(Base.of(table), (), "day", (("x", "day"),)))
