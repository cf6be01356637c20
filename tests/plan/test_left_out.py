"""The share that limits leave on average: every draw of small persons enumerated, with fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import pytest

from discreet.plan.left_out import Limit

MOST = 6
Draws = list[frozenset[int]]


def windows(rows: int, limit: int) -> Draws:
    """What each offset keeps of so many rows or groups."""
    if rows <= limit:
        return [frozenset(range(rows))]
    return [frozenset(p for p in range(rows) if (p + offset) % rows < limit) for offset in range(rows)]


def subsets(rows: int, limit: int) -> Draws:
    """What the smallest hashes keep: every subset alike."""
    return [frozenset(one) for one in itertools.combinations(range(rows), min(rows, limit))]


FORMS = {"windows": windows, "subsets": subsets}


def marked(rows: int) -> Iterator[frozenset[int]]:
    """Every set of rows that a question may look at: by WHERE, by a group, or by having a value."""
    for size in range(rows + 1):
        yield from (frozenset(one) for one in itertools.combinations(range(rows), size))


def mean(values: list[int | Fraction]) -> Fraction:
    return Fraction(sum(values, Fraction(0))) / len(values)


@pytest.mark.parametrize("form", list(FORMS))
def test_rows_and_persons_keep_their_share(form: str) -> None:
    """For every person of up to 6 rows, every pair of limits and every set of rows that count."""
    draws, rows_met, persons_met = FORMS[form], False, False
    for rows, limit in itertools.product(range(1, MOST + 1), repeat=2):
        for declared in range(1, MOST + 1):
            own = Limit("rows", limit, declared)
            assert own.share is not None
            assert own.share_of_persons is not None
            for these in marked(rows):
                kept = [len(these & one) for one in draws(rows, limit)]
                whole = [len(these & one) for one in draws(rows, declared)]
                assert mean([*kept]) >= own.share * mean([*whole])
                rows_met |= bool(these) and own.share < 1 and mean([*kept]) == own.share * mean([*whole])
                hit, met = mean([int(n > 0) for n in kept]), mean([int(n > 0) for n in whole])
                assert hit >= own.share_of_persons * met
                persons_met |= bool(these) and own.share < 1 and hit == own.share_of_persons * met
    assert rows_met  # no larger share would hold
    assert persons_met


@pytest.mark.parametrize("form", list(FORMS))
def test_groups_keep_their_share_also_of_what_the_rows_leave(form: str) -> None:
    """Every person of 4 rows in up to 3 groups, rows limited first and then groups: the shares multiply."""
    draws = FORMS[form]
    for places in itertools.product(range(3), repeat=4):
        for limits in itertools.product((1, 2, 4), repeat=4):
            rows, groups, most_rows, most_groups = limits
            if rows > most_rows or groups > most_groups:
                continue
            by_rows, by_groups = Limit("rows", rows, most_rows), Limit("groups", groups, most_groups)
            assert by_rows.share is not None
            assert by_rows.share_of_persons is not None
            assert by_groups.share is not None
            kept, persons = reached(places, rows, groups, draws)
            whole, all_persons = reached(places, most_rows, most_groups, draws)
            assert kept >= by_rows.share * by_groups.share * whole
            assert persons >= by_rows.share_of_persons * by_groups.share * all_persons


def reached(places: tuple[int, ...], rows: int, groups: int, draws: object) -> tuple[Fraction, Fraction]:
    """How many rows of group 0 count on average, and how often the person counts there."""
    assert callable(draws)
    counts: list[int | Fraction] = []
    hits: list[int | Fraction] = []
    for kept in draws(len(places), rows):
        touched = sorted({places[row] for row in kept})
        chosen = [frozenset(touched[place] for place in one) for one in draws(len(touched), groups)]
        here = sum(places[row] == 0 for row in kept)
        part = Fraction(sum(0 in one for one in chosen), len(chosen))
        counts.append(here * part)
        hits.append(part)
    return mean(counts), mean(hits)


def test_what_is_declared_loses_nothing() -> None:
    for limit in (5, 6, 10**9):
        assert Limit("rows", limit, 5).share == Limit("rows", limit, 5).share_of_persons == 1
    assert Limit("rows", 4, 10).share == Fraction(2, 5)
    assert Limit("rows", 4, 10).share_of_persons == Fraction(1, 3)
    assert Limit("groups", 4, 10).share_of_persons == Fraction(2, 5)
    assert Limit("rows", 4, None).share is None is Limit("rows", 4, None).share_of_persons
