"""What a person adds to a period: within the limits, remembered, and never another's affair."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.trusted.ring_c.arrivals import Memory, Person, arrived, keyed, present, within
from kinds import examples

KIND = "exact"
CELLS = st.dictionaries(st.integers(0, 3), st.integers(1, 9), max_size=4)
SNAPSHOTS = st.lists(st.dictionaries(st.sampled_from("abcdT"), CELLS, max_size=5), min_size=1, max_size=8)
LIMITS = st.tuples(st.integers(1, 5), st.integers(1, 4))


def followed(snapshots: list[dict[str, dict[int, int]]], rows: int, periods: int) -> tuple[list[list[int]], Memory]:
    memory: Memory = {}
    totals = []
    for one in snapshots:
        total, memory = arrived(memory, one, 4, rows, periods)
        totals.append(total)
    return totals, memory


@given(SNAPSHOTS, LIMITS)
@settings(max_examples=examples(300))
def test_with_a_person_and_without_only_the_persons_part_differs(
    snapshots: list[dict[str, dict[int, int]]], limits: tuple[int, int]
) -> None:
    """Whatever the person's rows do from day to day: come late, go, move to another group."""
    rows, periods = limits
    with_, memory = followed(snapshots, rows, periods)
    without, others = followed([{name: own for name, own in one.items() if name != "T"} for one in snapshots], *limits)
    alone, _ = followed([{name: own for name, own in one.items() if name == "T"} for one in snapshots], *limits)
    differences = [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(with_, without, strict=True)]
    assert differences == alone
    assert all(sum(map(abs, one)) <= rows for one in differences)
    assert sum(any(one) for one in differences) <= periods
    assert {name: one for name, one in memory.items() if name != "T"} == others


@given(CELLS, CELLS, st.integers(1, 40))
def test_what_is_taken_of_a_person_is_a_part_of_what_is_wanted(
    has: dict[int, int], counted: dict[int, int], rows: int
) -> None:
    wanted = {cell: has.get(cell, 0) - counted.get(cell, 0) for cell in has | counted}
    taken = within(rows, wanted)
    whole = sum(map(abs, wanted.values()))
    assert sum(map(abs, taken.values())) == min(rows, whole)
    assert all(0 < abs(one) <= abs(wanted[cell]) and one * wanted[cell] > 0 for cell, one in taken.items())


def test_a_late_row_counts_when_it_comes_and_one_that_goes_is_taken_off_when_that_is_seen() -> None:
    days: list[dict[str, dict[int, int]]] = [{"p": {0: 1}}, {"p": {0: 1}}, {"p": {0: 1, 2: 1}}, {"p": {2: 1}}, {}]
    totals, memory = followed(days, 1, 9)
    assert totals == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [-1, 0, 0, 0], [0, 0, -1, 0]]
    assert memory == {"p": Person(4, {})}


def test_what_is_beyond_the_rows_of_a_period_counts_in_the_next_and_nothing_beyond_the_periods() -> None:
    days: list[dict[str, dict[int, int]]] = [{"p": {1: 10**12}}] * 4
    totals, memory = followed(days, 5, 2)
    assert totals == [[0, 5, 0, 0], [0, 5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert memory == {"p": Person(2, {1: 10})}


def test_who_has_used_all_periods_is_not_taken_off_either() -> None:
    totals, _ = followed([{"p": {1: 1}}, {}], 5, 1)
    assert totals == [[0, 1, 0, 0], [0, 0, 0, 0]]


def test_a_person_is_known_again_by_the_id_alone() -> None:
    key = bytes(32)
    names: list[Any] = ["1", " 1", 1, -1, "", "a", "A", "é", "e\u0301", "\ud800", "x" * 1_000, 2**63 - 1]
    assert len({keyed(name, key) for name in names}) == len(names)
    assert keyed("1", key) != keyed("1", b"\1" * 32)
    assert present(["b", "a", "b", "b"], [0, 1, 2, 0], key) == {keyed("b", key): {0: 2, 2: 1}, keyed("a", key): {1: 1}}


def test_nothing_shows_what_was_counted_of_a_person() -> None:
    assert "7" not in repr(Person(2, {7: 7}))
