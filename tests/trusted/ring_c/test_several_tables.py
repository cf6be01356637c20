"""Marginals of views over several tables: what one person moves, in the real engine, and what a run is charged for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import BoundedRange, Declared
from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.errors import EngineError
from discreet.ledger import TOTAL, Caps, Ledger
from discreet.mechanisms import Gaussian
from discreet.procedures.arguments import with_owners
from discreet.synthesis.related import RelatedTable, related
from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_c.coded import UNIT, CodedRows, Marginal, build
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.marginals import DeclaringSeveral, Marginals
from kinds import examples
from related_tables import NAMES, declaration, frames

PERSONS = ["a", "b", "ü", ""]
CUSTOMER = st.tuples(
    st.sampled_from([*PERSONS, None]), st.sampled_from(["F", "M", "x", None]), st.sampled_from([0, 3, 9, None])
)
ORDER = st.tuples(
    st.sampled_from([1, 2, 3, 4, None]),
    st.sampled_from([*PERSONS, "nobody", None]),
    st.sampled_from(["web", "Laden ü", None]),
)
ITEM = st.tuples(st.sampled_from([1, 2, 3, 4, 5, None]), st.sampled_from(["book", "toy", "lamp", None]))
Tables = tuple[list[Any], list[Any], list[Any]]
TABLES = st.tuples(st.lists(CUSTOMER, max_size=6), st.lists(ORDER, max_size=10), st.lists(ITEM, max_size=14))


def apart(tables: Tables) -> Tables:
    """The tables where no order's number stands in orders of two customers: loading refuses those that are not."""
    customers, orders, items = tables
    owner: dict[Any, Any] = {}
    kept = [one for one in orders if owner.setdefault(one[0], one[1]) == one[1]]
    return customers, kept, items


def without(tables: Tables, person: str) -> Tables:
    """The tables without all rows of a person."""
    customers, orders, items = tables
    theirs = {one[0] for one in orders if one[1] == person} - {None}
    return (
        [one for one in customers if one[0] != person],
        [one for one in orders if one[1] != person],
        [one for one in items if one[0] not in theirs],
    )


def coding(one: RelatedTable) -> Coding:
    """Cells for every column of a view that is no key."""
    ids = {*one.keys, one.reference}
    found: list[ListedCells | Binned] = []
    for column in one.view.columns:
        if column.name in ids or column.name.startswith("\x1f"):
            continue
        cells = ListedCells(column, column.values or ()) if column.values else Binned(column, (2, 3, 5))
        found.append(cells)
    return Coding(tuple(found))


def vectors(tables: Tables, orders: int, items: int, *, evenly: bool | None = None) -> list[list[Marginal]]:
    """For each table the marginals of its view, under one salt: of each column alone, and of all together."""
    declared = declaration(frames(*tables), orders, items)
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in declared.tables.values():
        engine.load(table, b"salt")
    found = []
    for place, one in enumerate(related(declared, NAMES)):
        weighed = one.evenly if evenly is None else evenly
        rows = CodedRows(f"coded_{place}", one.view, coding(one), weighed)
        engine._coded([build(rows, Salt.of("1"), engine._dialect)], one.view)
        names = rows.coding.names
        found.append(engine.marginals(rows, [(), *((name,) for name in names), names], evenly=weighed))
    engine.close()
    return found


def moved(tables: Tables, person: str, orders: int, items: int, *, evenly: bool | None = None) -> list[list[Marginal]]:
    """What the person adds to each of them."""
    tables = apart(tables)
    whole = vectors(tables, orders, items, evenly=evenly)
    rest = vectors(without(tables, person), orders, items, evenly=evenly)
    return [[one - other for one, other in zip(*pair, strict=True)] for pair in zip(whole, rest, strict=True)]


@settings(max_examples=examples(200, 5), deadline=None)
@given(TABLES, st.sampled_from(PERSONS), st.integers(1, 3), st.integers(1, 4))
def test_a_person_moves_each_view_by_no_more_than_it_is_priced_for(
    tables: Tables, person: str, orders: int, items: int
) -> None:
    """Of persons one row with numbers of rows below; of others weights that add up to UNIT at most, with NULLs,
    duplicates, keys of nobody and rows of nobody."""
    for place, changes in enumerate(moved(tables, person, orders, items)):
        most = UNIT if place and (orders, items)[place - 1] > 1 else 1
        for change in changes:
            assert (change >= 0).all()
            assert int(change.sum()) <= most


@settings(max_examples=examples(100, 3), deadline=None)
@given(TABLES, st.sampled_from(PERSONS), st.integers(1, 3), st.integers(1, 4))
def test_counts_of_rows_move_by_the_rows_that_count(tables: Tables, person: str, orders: int, items: int) -> None:
    for most, changes in zip((1, orders, items), moved(tables, person, orders, items, evenly=False), strict=True):
        for change in changes:
            assert (change >= 0).all()
            assert int(change.sum()) <= most


def alone(tables: Tables, items: int) -> list[Marginal]:
    """Marginals of the items as they are published by themselves, under one salt: their number, and each kind's."""
    declared = declaration(frames(*tables), 3, items)
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in declared.tables.values():
        engine.load(table, b"salt")
    read = with_owners(declared, declared.tables["items"])
    kinds = Coding((ListedCells(column := read.columns[1], column.values or (), null=True),))
    rows = CodedRows("coded", read, kinds)
    engine._coded([build(rows, Salt.of("1"), engine._dialect)], read)
    found = engine.marginals(rows, [(), ("kind",)])
    engine.close()
    return found


@settings(max_examples=examples(100, 5), deadline=None)
@given(TABLES, st.sampled_from(PERSONS), st.integers(1, 4))
def test_a_table_below_others_moves_by_the_rows_that_count(tables: Tables, person: str, items: int) -> None:
    """Also where it is published alone: nobody's orders but the person's lead to the person's items."""
    tables = apart(tables)
    whole, rest = alone(tables, items), alone(without(tables, person), items)
    for one, other in zip(whole, rest, strict=True):
        assert (one >= other).all()
        assert int((one - other).sum()) <= items


def test_of_a_thousand_items_of_one_person_as_many_count_as_are_declared() -> None:
    found, _ = alone(crowded(1000), 4)
    assert int(found) == 4 + 1


def crowded(rows: int) -> Tables:
    customers = [("a", "F", 3), ("b", "M", 4)]
    orders = [(one, "a", "web") for one in range(rows)] + [(rows, "b", "Laden ü")]
    return customers, orders, [(one, "book") for one in range(rows)] * 2 + [(rows, "toy")]


def test_a_person_with_a_thousand_rows_weighs_as_much_as_one_with_three() -> None:
    """Each of the rows that count in one cell: ℓ2 is as large as ℓ1. A bound of half of it would not hold."""
    for change in moved(crowded(1000), "a", 3, 4)[1:]:
        whole = change[-1]
        assert np.count_nonzero(whole) == 1
        assert UNIT - 4 < int(whole.max()) <= UNIT
    alone = moved(crowded(1000), "b", 3, 4)
    assert int(alone[0][-1].max()) == 1
    assert int(alone[1][-1].max()) == int(alone[2][-1].max()) == UNIT
    customers, orders, items = (each[0].sum() for each in moved(crowded(1000), "a", 3, 4, evenly=False))
    assert (int(customers), int(orders), int(items)) == (1, 3, 4)


def test_numbers_of_rows_stand_beside_the_row_that_they_are_below() -> None:
    """None of an absent person, and no more than are declared of a present one."""
    tables: Tables = [("a", "F", 1), ("b", "F", 1)], [(1, "b", "web"), (2, "b", "web"), (3, "z", "web")], [(1, "book")]
    customers, orders, items = vectors(tables, 3, 4, evenly=False)
    assert customers[3].tolist() == [0, 1, 0, 0, 1]  # one, two, 3 to 4, 5 and more, none
    assert int(orders[0]) == 2  # the order of nobody has no row above
    assert int(items[0]) == 1
    below = orders[-1].sum(axis=tuple(range(orders[-1].ndim - 1)))
    assert below.tolist() == [1, 0, 0, 0, 1]


def opened(batch: Declared, tables: Tables) -> tuple[Marginals, tuple[RelatedTable, ...], Ledger]:
    declared = declaration(frames(*tables))
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in declared.tables.values():
        engine.load(table, b"salt")
    ledger = Ledger(None)
    ledger.register({TOTAL: Caps(Fraction(10**6), Fraction(1, 10**6), Fraction(1, 10**7))}, "")
    door = Door(ledger, engine, declared.tables.values())
    views = related(declared, NAMES)
    run = DeclaringSeveral(tuple(one.view for one in views[:2]), batch)
    grant = door.open(run, analyst=TOTAL, question="q", key="k", request=None)
    assert isinstance(grant, Grant)
    return Marginals(grant), views, ledger


SIGMA = Fraction(1, 10)
EVENT = Fraction(1, 10**8)


def parts(*squares: tuple[Fraction, int]) -> Declared:
    return Declared(tuple(Gaussian(sigma).loss(square) for sigma, square in squares), EVENT)


def coded(run: Marginals, one: RelatedTable, *, evenly: bool) -> Sequence[str]:
    known = coding(one)
    run.code(known, one.view, evenly=evenly)
    return known.names


def test_each_step_takes_the_loss_of_the_table_whose_rows_are_coded() -> None:
    """Of persons 1, of weights UNIT, of rows the declared three; less, as a halved sensitivity would be, is refused."""
    weights = 2 * SIGMA * UNIT
    run, views, _ = opened(parts((SIGMA, 1), (weights, UNIT**2), (SIGMA, 9)), crowded(5))
    names = coded(run, views[0], evenly=False)
    assert run.measure(names[:1], SIGMA).sum() == 2
    with pytest.raises(ValueError, match="batch"):
        run.measure(names[:1], SIGMA)
    names = coded(run, views[1], evenly=True)
    assert abs(int(run.measure((), weights)) - 2 * UNIT) < 10 * weights
    with pytest.raises(ValueError, match="batch"):
        run.measure((), weights)
    coded(run, views[1], evenly=False)
    assert int(run.measure((), SIGMA)) == 4


@pytest.mark.parametrize("square", [UNIT**2 // 4, 9, 1])
def test_a_batch_that_declares_less_than_a_person_weighs_buys_nothing(square: int) -> None:
    weights = SIGMA * UNIT
    run, views, _ = opened(parts((weights, square)), crowded(5))
    coded(run, views[1], evenly=True)
    with pytest.raises(ValueError, match="batch"):
        run.measure((), weights)


def test_distances_are_of_rows_and_priced_by_them() -> None:
    run, views, _ = opened(parts((SIGMA, 9)), crowded(5))
    coded(run, views[1], evenly=True)
    assert run.distances([()], [np.zeros((), np.int64)], SIGMA) == [4]


def test_a_table_that_was_not_declared_is_not_read() -> None:
    run, views, _ = opened(parts((SIGMA, 1)), crowded(5))
    with pytest.raises(ValueError, match="not declared"):
        run.code(coding(views[2]), views[2].view)
    with pytest.raises(ValueError, match="fixed before"):
        DeclaringSeveral((), parts((SIGMA, 1)))
    with pytest.raises(ValueError, match="weighed"):
        CodedRows("c", views[0].table, coding(views[0]), evenly=True)
    run._tables = (views[0].table,)
    with pytest.raises(ValueError, match="weighed"):
        run.code(Coding(()), views[0].table, evenly=True)


class Hashed(Fraction):
    """A number that has something done each time it is hashed."""

    done: Callable[[], object] = staticmethod(lambda: None)

    def __hash__(self) -> int:
        self.done()
        return super().__hash__()


class Divided(Fraction):
    """A number that has something done each time it is divided by."""

    done: Callable[[], object] = staticmethod(lambda: None)

    def __pow__(self, power: Any) -> Any:
        self.done()
        return super().__pow__(power)


def test_what_is_coded_between_a_price_and_its_draw_is_not_what_is_drawn() -> None:
    """A step whose price is of persons draws of persons, or nothing: weights with the noise of one row would show a
    person to whoever reads them."""
    sigma = Divided(SIGMA)
    run, views, _ = opened(parts((SIGMA, 1)), crowded(5))
    names = coded(run, views[0], evenly=False)
    sigma.done = lambda: coded(run, views[1], evenly=True)
    with pytest.raises(EngineError):
        run.measure(names[:1], sigma)
    epsilon = Hashed(1)
    run, views, _ = opened(Declared((BoundedRange(Fraction(1)),), EVENT), crowded(5))
    names = coded(run, views[0], evenly=False)
    epsilon.done = lambda: coded(run, views[1], evenly=True)
    with pytest.raises(EngineError):
        run.select(epsilon, [()], [np.zeros((), np.int64)], [1], [0])


def test_a_run_over_a_frozen_table_costs_nothing() -> None:
    """And one over tables that are not declared so."""
    run, views, ledger = opened(parts((SIGMA, 1)), crowded(5))
    door = run._grant._door
    reserved = ledger.reserve(Gaussian(SIGMA).loss(1), question="q", key="other", tables=["orders"])
    ledger.fail(reserved.reserve_id)
    before = ledger.replay().head.seq

    def begin(*tables: Any) -> None:
        door.open(DeclaringSeveral(tables, parts((SIGMA, 1))), analyst=TOTAL, question="q", key="new", request=None)

    with pytest.raises(EngineError, match="frozen"):
        begin(views[0].view, views[1].view)
    with pytest.raises(ValueError, match="differs"):
        begin(replace(views[0].view, rows_per_person=2))
    assert ledger.replay().head.seq == before
