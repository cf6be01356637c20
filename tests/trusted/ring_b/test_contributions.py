"""Histograms of what persons contribute: every outcome of neighbours enumerated, neighbouring tables through the real
engine, values that are awkward, and noise that is what was charged.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import related_tables
from discreet.accounting import DiscreteLaplace
from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.mechanisms import LogarithmicRange
from discreet.plan.profile import Wanted, buckets, person_histogram
from discreet.procedures.arguments import with_owners
from discreet.trusted.ring_a import additive
from discreet.trusted.ring_a.nodes import Aggregate, project_of
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.contributions import ContributionMeasurement, PersonHistogram
from discreet.trusted.ring_b.order_statistics import GroupHistograms
from engine_tools import Bench, Record, declaration
from kinds import examples
from neighbour_tools import ROW
from order_tools import decay

UNITS: Sequence[Mapping[str, Any]] = (
    {"person": "p", "rows_per_person": 1},
    {"person": "p", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "p", "rows_per_person": 50},
)
WANTED = (
    Wanted("rows"),
    Wanted("groups", ("g",)),
    Wanted("groups", ("h", "k")),
    Wanted("groups", ("b", "d")),
    Wanted("size", ("v",)),
    Wanted("size", ("w",)),
    Wanted("size", ("s",)),
    Wanted("size", ("u",)),
    Wanted("size", ("f",)),
)
ONE = Fraction(1)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    one = Bench()
    yield one
    one.close()


def exact(bench: Bench, table: Table, wanted: Wanted, rows: Sequence[Record]) -> tuple[int, ...]:
    """The counts that noise is added to, with a salt that neighbours share."""
    loaded = bench.load(table, rows)
    with (
        patch.object(additive, "discrete_laplace", lambda _scale, size: np.zeros(size, int)),
        patch.object(secrets, "token_hex", lambda _size: "1"),
    ):
        return person_histogram(loaded, wanted, ONE).released(bench.engine)


@given(st.sampled_from(UNITS), st.lists(ROW, max_size=10), st.data())
def test_one_person_moves_one_bucket_by_one(bench: Bench, unit: Any, rows: Any, data: Any) -> None:
    """Of each histogram; and one of rows holds each person once."""
    table = declaration(unit).tables["t"]
    persons = sorted({row["p"] for row in rows if row["p"] is not None})
    gone = data.draw(st.sampled_from(persons)) if persons else None
    others = [row for row in rows if row["p"] != gone]
    for wanted in WANTED:
        whole, rest = exact(bench, table, wanted, rows), exact(bench, table, wanted, others)
        assert sum(abs(one - two) for one, two in zip(whole, rest, strict=True)) <= 1
        assert sum(whole) == len(persons) if wanted.what == "rows" else sum(whole) <= len(persons)


def test_what_is_counted(bench: Bench) -> None:
    """One person with everything, one with a row, one with NULL; nobody's rows."""
    table = declaration({"person": "p", "rows_per_person": 50}).tables["t"]
    rows: list[Record] = [{"p": "a", "g": g, "f": 2.0**k, "u": k} for g in ("x", "y", "z") for k in range(20)]
    rows += [{"p": "b", "g": "x", "f": -math.inf, "u": -(2**63)}, {"p": "c", "f": math.nan}, {"p": None, "f": 1.0}]

    def where(wanted: Wanted) -> dict[int, int]:
        found = zip(buckets(table, wanted), exact(bench, table, wanted, rows), strict=True)
        return {bucket: count for bucket, count in found if count}

    assert where(Wanted("rows")) == {65 + 5: 1, 65: 2}  # 60 rows, of which 50 count; one each
    assert where(Wanted("groups", ("g",))) == {65 + 1: 1, 65: 2}  # NULL is a group
    assert where(Wanted("size", ("f",))) in ({65 + 19: 1, 128: 1}, {65 + 18: 1, 128: 1})  # of the rows that count
    assert where(Wanted("size", ("u",)))[128] == 1
    assert exact(bench, table, Wanted("rows"), []) == (0,) * len(buckets(table, Wanted("rows")))


def test_the_loss_is_what_outcomes_tell() -> None:
    """Every outcome within reach of two neighbours: two buckets, the person in one, in the other, or in none."""
    scale = Fraction(3, 2)
    q = decay(1 / scale)
    mass = [q ** abs(k) * (1 - q) / (1 + q) for k in range(-12, 13)]

    def law(counts: Sequence[int]) -> dict[tuple[int, int], Fraction]:
        noises = list(enumerate(mass, -12))
        return {(counts[0] + a, counts[1] + b): p * r for (a, p), (b, r) in itertools.product(noises, repeat=2)}

    largest = 0.0
    for one, other in (((4, 2), (5, 2)), ((4, 2), (4, 3)), ((0, 0), (0, 1))):
        left, right = law(one), law(other)
        for outcome in left.keys() & right.keys():
            largest = max(largest, abs(math.log(left[outcome] / right[outcome])))
    loss = histogram(1 / scale).loss
    assert isinstance(loss, DiscreteLaplace)
    assert loss == DiscreteLaplace(Fraction(2, 3), 1)
    assert largest == pytest.approx(2 / 3, abs=1e-12)


def histogram(epsilon: Fraction = ONE) -> PersonHistogram:
    return person_histogram(declaration(UNITS[2]).tables["t"], Wanted("rows"), epsilon)


def test_losses_add_up() -> None:
    table = declaration(UNITS[2]).tables["t"]
    whole = ContributionMeasurement(table, tuple(person_histogram(table, one, ONE / 9) for one in WANTED))
    assert whole.loss.pure == 1


def test_the_noise_is_what_was_charged(bench: Bench) -> None:
    """6,000 values of discrete Laplace noise of scale 20: their mean size is 20 within 6 deviations of 20/√6,000 = .26;
    half the noise would have 10."""
    table = declaration({"person": "p", "rows_per_person": 2**38}).tables["t"]
    one = person_histogram(bench.load(table, [{"p": "a"}]), Wanted("rows"), Fraction(1, 20))
    drawn: list[int] = []
    while len(drawn) < 6_000:
        drawn += one.released(bench.engine)[1:]
    size = sum(map(abs, drawn)) / len(drawn)
    assert abs(size - 20) < 6 * 20 / math.sqrt(len(drawn))


def test_a_histogram_that_is_forged_has_no_loss() -> None:
    """A bucket that is listed twice would be told twice; a relation of another table is not the person's one row."""
    one = histogram()
    for forged in (
        replace(one, buckets=(*one.buckets, one.buckets[-1])),
        replace(one, buckets=(65, 65)),
        replace(one, buckets=one.buckets[::-1]),
        replace(one, buckets=()),
        replace(one, buckets=(65, 66.0)),
        replace(one, of=replace(one.of, root=Aggregate(one.of.root.child, ()))),
        replace(one, of=replace(one.of, root=GroupHistograms(replace(project_of(one.of.root), quantities=())))),
        replace(one, table=replace(one.table, one_row_per_person=False)),
        replace(one, table=replace(one.table, name="u")),
    ):
        with pytest.raises(ValueError, match=r"bucket|powers|table"):
            _ = forged.loss
    with pytest.raises(ValueError, match="tuples"):
        replace(one, buckets=[65])
    with pytest.raises(ValueError, match="no histogram"):
        _ = ContributionMeasurement(declaration(UNITS[2]).tables["t"], ()).loss
    other = declaration(UNITS[1]).tables["t"]
    with pytest.raises(ValueError, match="another table"):
        _ = ContributionMeasurement(other, (one,)).loss


ORDER = st.tuples(st.sampled_from([1, 2, 3, 4, None]), st.sampled_from(["a", "b", "ü", "", "nobody", None]))
ITEM = st.tuples(st.sampled_from([1, 2, 3, 4, 5, None]), st.sampled_from(["book", "toy", "lamp", None]))


def of_items(orders: Sequence[Any], items: Sequence[Any]) -> list[tuple[int, ...]]:
    """The exact histograms of persons whose items lead to them along their orders."""
    tables = related_tables.frames([], [(number, whose, "web") for number, whose in orders], items)
    declared = related_tables.declaration(tables, 3, 5)
    read = with_owners(declared, declared.tables["items"])
    engine = DuckDB(EngineLimits(memory_gib=4))
    for table in declared.tables.values():
        engine.load(table, b"salt")
    with (
        patch.object(additive, "discrete_laplace", lambda _scale, size: np.zeros(size, int)),
        patch.object(secrets, "token_hex", lambda _size: "1"),
    ):
        wanted = (Wanted("rows"), Wanted("groups", ("kind",)))
        found = [person_histogram(read, one, ONE).released(engine) for one in wanted]
    engine.close()
    return found


@settings(max_examples=examples(100, 5), deadline=None)
@given(st.lists(ORDER, max_size=8), st.lists(ITEM, max_size=20), st.sampled_from(["a", "b", "ü", ""]))
def test_one_person_who_is_found_along_a_key_moves_one_bucket_by_one(orders: Any, items: Any, gone: str) -> None:
    owner: dict[Any, Any] = {}
    orders = [one for one in orders if owner.setdefault(one[0], one[1]) == one[1]]
    theirs = {number for number, whose in orders if whose == gone} - {None}
    rest = [one for one in orders if one[1] != gone], [one for one in items if one[0] not in theirs]
    for one, other in zip(of_items(orders, items), of_items(*rest), strict=True):
        assert sum(abs(left - right) for left, right in zip(one, other, strict=True)) <= 1


def test_persons_along_a_key_are_counted_once() -> None:
    """Five items of one person, of which three are of the second order; one of another; one that leads to nobody."""
    orders = [(1, "a"), (2, "a"), (3, "b"), (4, None)]
    items = [(1, "book"), (1, "toy"), *[(2, "book")] * 3, (3, "book"), (4, "book"), (9, "toy"), (None, "toy")]
    rows, kinds = of_items(orders, items)
    assert rows == (1, 0, 1)  # one row, two, four and more
    assert kinds == (1, 1, 0)


def test_a_histogram_of_tables_that_are_not_on_the_way_has_no_loss() -> None:
    declared = related_tables.declaration(related_tables.frames([], [], []))
    items, orders = (with_owners(declared, declared.tables[name]) for name in ("items", "orders"))
    one = person_histogram(items, Wanted("rows"), ONE)
    assert ContributionMeasurement(items, (one,)).loss.pure == 1
    with pytest.raises(ValueError, match="another table"):
        _ = ContributionMeasurement(orders, (one,)).loss
    other = related_tables.declaration(related_tables.frames([], [], []), items=9)
    with pytest.raises(ValueError, match="another table"):
        _ = ContributionMeasurement(with_owners(other, other.tables["items"]), (one,)).loss


def test_less_noise_costs_more() -> None:
    one = histogram()
    assert replace(one, mechanism=LogarithmicRange(Fraction(10))).loss.pure == 10
