"""All cells for the price of one: which are chosen, what one person moves in them, and the noise that they have."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.plan.measurement import Measurement, Price
from discreet.plan.split import measurement
from discreet.plan.whole import MOST_CELLS, MOST_NUMBERS, _most, costs_the_same, whole
from discreet.trusted.ring_a.groups import exact_groups
from discreet.trusted.ring_a.nodes import PartKind
from discreet.trusted.ring_a.table import Table

SIZES = {"a": 20, "b": 16, "c": 15, "d": 2}
COLUMNS: dict[str, Any] = {
    "id": int,
    "pay": {"type": "integer", "min": 0, "max": 9},
    **{name: {"type": "integer", "min": 0, "max": size - 1, "nulls": False} for name, size in SIZES.items()},
}
ONE = "SELECT COUNT(*) AS n FROM t WHERE a = 3 AND b = 5 AND c = 7"
ASKED = {
    ONE: ("a", "b", "c"),
    "SELECT COUNT(*) AS n, SUM(pay) AS s FROM t WHERE c = 7 AND 5 = b AND a = 3 AND pay > 2": ("a", "b", "c"),
    f"{ONE} AND d = 1": ("a", "b", "c"),  # 4,800 cells: those with d have 9,600, and fewer with d in place of another
    "SELECT d, COUNT(*) AS n FROM t WHERE a = 3 AND b = 5 AND c = 7 GROUP BY d": ("a", "b", "d"),
    "SELECT d, SUM(pay) AS s FROM t WHERE a = 3 AND b = 5 AND c = 7 AND d = 1 GROUP BY d": ("a", "b", "c"),
}
"""Questions, and the keys of which all cells are measured for them."""


def rows(count: int = 400) -> pandas.DataFrame:
    """The cell of ONE has every tenth row."""
    cell = {"a": 3, "b": 5, "c": 7, "d": 1}
    spread = {name: [cell[name] if n % 10 == 0 else n % size for n in range(count)] for name, size in SIZES.items()}
    return pandas.DataFrame({"id": range(count), "pay": [n % 10 for n in range(count)], **spread})


def curator(frame: pandas.DataFrame) -> discreet.Curator:
    table = discreet.Table(frame, person="id", one_row_per_person=True, columns=COLUMNS)
    return discreet.Curator({"t": table}, epsilon=1e6, delta=1e-6)


@pytest.fixture(scope="module")
def one() -> Iterator[discreet.Curator]:
    with curator(rows()) as made:
        made.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        yield made


def asked_for(one: discreet.Curator, text: str, price: Price | None = None) -> tuple[Measurement, Table]:
    question = one._planner.one_table(text)
    return measurement(question.plan, price or Price(Fraction(1, 2), Fraction(0))), question.table


@pytest.mark.parametrize("text", ASKED)
def test_the_cells_are_as_many_as_there_is_room_for(one: discreet.Curator, text: str) -> None:
    asked, table = asked_for(one, text)
    found = whole(asked, table)
    assert found is not None
    cells = prod(len(key.groups or ()) for key in found.plan.keys)
    keys = {key.name for key in found.plan.keys if len(key.groups or ()) > 1}
    assert keys == set(ASKED[text])
    assert prod(SIZES[name] for name in keys) == cells <= MOST_CELLS
    assert costs_the_same(found, asked)
    said = one.explain(text, epsilon="0.5")
    assert any(f"all {cells:,} groups of" in line for line in said.advice)


@pytest.mark.parametrize("sums", [1, 4, 5, 30])
def test_where_each_cell_has_several_numbers_the_cells_are_fewer(one: discreet.Curator, sums: int) -> None:
    columns = ", ".join(f"SUM(pay + {number}) AS s{number}" for number in range(sums))
    found = whole(*asked_for(one, ONE.replace("COUNT(*) AS n", columns)))
    assert found is not None
    cells, numbers = (
        prod(len(key.groups or ()) for key in found.plan.keys),
        sum(len(p.vectors) for p in found.plan.parts),
    )
    assert cells * numbers <= MOST_NUMBERS
    assert cells == max(
        size
        for some in (("a", "b", "c"), ("a", "b"))
        if (size := prod(SIZES[k] for k in some)) * numbers <= MOST_NUMBERS
    )


@given(st.lists(st.integers(1, 40), max_size=5), st.integers(1, 3000))
def test_of_all_choices_that_fit_it_is_the_largest(sizes: list[int], room: int) -> None:
    named = {str(place): size for place, size in enumerate(sizes)}
    choices = [some for count in range(len(sizes) + 1) for some in itertools.combinations(named, count)]
    fit = [cells for some in choices if (cells := prod(named[name] for name in some)) <= room]
    assert prod(named[name] for name in _most(named, room)) == max(fit)


def cells_of(frame: pandas.DataFrame, text: str) -> tuple[Measurement, Mapping[Any, tuple[int, ...]]]:
    with curator(frame) as made:
        made.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        asked, table = asked_for(made, text)
        found = whole(asked, table)
        assert found is not None
        groups, totals = exact_groups(made._engine, found.plan, table)
        return found, dict(zip(groups, totals, strict=True))


@pytest.mark.parametrize("text", ASKED)
def test_a_person_moves_all_cells_together_by_what_they_move_the_one(text: str) -> None:
    """Neighbouring tables through the engine: with each of some persons, and without."""
    frame = rows(60)
    found, with_all = cells_of(frame, text)
    asked_sensitivities = [part.sensitivity for part in found.parts]
    moved = []
    for person in (0, 10, 20, 31, 59):
        other, without = cells_of(frame[frame.id != person], text)
        assert other.plan == found.plan
        assert [part.sensitivity for part in other.parts] == asked_sensitivities
        changed = {group: [a - b for a, b in zip(with_all[group], without[group], strict=True)] for group in with_all}
        touched = [change for change in changed.values() if any(change)]
        assert len(touched) <= 1  # one cell, of which the question's own is one
        moved += touched
        for part in found.parts:
            norm = (
                max if part.part.kind is PartKind.JOINT else sum
            )  # pairs with joint noise: each of them (ring_b.joint)
            for change in touched:
                vectors = part.part.vectors
                sizes = [abs(sum(weight * change[index] for index, weight in one.weights)) for one in vectors]
                assert norm(sizes) <= part.sensitivity.l1
    assert moved


def test_a_mutant_with_half_the_noise_costs_more_and_is_refused(one: discreet.Curator) -> None:
    asked, table = asked_for(one, ONE)
    found = whole(asked, table)
    assert found is not None
    dearer, _ = asked_for(one, ONE, Price(Fraction(1), Fraction(0)))
    assert costs_the_same(found, asked)
    assert not costs_the_same(found, dearer)
    forged = replace(found, mechanisms=dearer.mechanisms)
    assert not costs_the_same(forged, asked)
    assert forged.loss == dearer.loss  # what is charged follows from what will be drawn


@pytest.mark.parametrize("mutant", [1, 2])
def test_each_cell_has_the_noise_of_the_one_alone(mutant: int) -> None:
    """The mean of |noise| in 4,800 cells; the noise of a mutant is a half, as at twice the price. Its deviation is
    below scale/√4,800: 5.2 of these have a probability below 1e-6, and a half is 34 of them away."""
    scale = 20
    with curator(rows()) as made:
        made.ask(ONE, epsilon=Fraction(mutant, scale))
        (key,) = made._prices.answers._keys
        stored = made.ledger.answer(key, "")
        assert stored is not None
        kept = json.loads(stored)
        noisy = kept["parts"][0][0]
        assert kept["keys"] is None  # they follow from the plan
        asked, table = asked_for(made, ONE, Price(Fraction(mutant, scale), Fraction(0)))
        found = whole(asked, table)
        assert found is not None
        exact = [total[0] for total in exact_groups(made._engine, found.plan, table)[1]]
    assert len(noisy) == len(exact) == 4_800
    mean = sum(abs(a - b) for a, b in zip(noisy, exact, strict=True)) / len(noisy)
    assert (abs(mean - scale) < 5.2 * scale / 4_800**0.5) is (mutant == 1)


def test_what_is_kept_of_a_part_of_the_conditions_answers_what_shares_the_rest(one: discreet.Curator) -> None:
    first = one.ask(f"{ONE} AND d = 1", epsilon="0.25")
    assert first.charged
    width = first.intervals[0]["n"][1] - first.intervals[0]["n"][0]
    free = one.ask("SELECT COUNT(*) AS n FROM t WHERE d = 1 AND a = 0 AND b = 15 AND c = 2", epsilon="0.25")
    assert not free.charged
    assert free.intervals[0]["n"][1] - free.intervals[0]["n"][0] == width
    assert one.ask(f"{ONE} AND d = 0", epsilon="0.25").charged
