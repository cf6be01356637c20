"""What several reports of one window show together, by enumeration; and that the audit would find what is wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from discreet.audit import channels
from discreet.audit.targets import run
from discreet.audit.textbook import DrawCounts
from discreet.local import choose
from discreet.local.channels import Projective, Response, odds_of
from discreet.trusted.ring_a.exact import exp_bounds

HALF, ONE = Fraction(1, 2), Fraction(1)


def courses(
    first: Response | Projective, again: Response | None, reports: int
) -> dict[tuple[int, ...], dict[tuple[int, ...], Fraction]]:
    """For each sequence of answers the joint distribution of the reports, through one memory for each answer."""
    outputs = range(first.outputs)
    memory = [[Fraction(weight, first.whole) for weight in first.weights(a)] for a in range(first.inputs)]

    def passes(y: int, z: int) -> Fraction:
        return Fraction(int(y == z)) if again is None else (again.truth if y == z else again.other)

    found = {}
    for answers in product(range(first.inputs), repeat=reports):
        law = {}
        for said in product(outputs, repeat=reports):
            chance = Fraction(1)
            for answer in set(answers):
                mine = [z for a, z in zip(answers, said, strict=True) if a == answer]
                total = Fraction(0)
                for y in outputs:
                    part = memory[answer][y]
                    for z in mine:
                        part *= passes(y, z)
                    total += part
                chance *= total
            law[said] = chance
        found[answers] = law
    return found


def loss(one: dict[tuple[int, ...], Fraction], two: dict[tuple[int, ...], Fraction]) -> Fraction | None:
    """The largest ratio of chances, or None where something is possible on one side alone."""
    assert sum(one.values()) == sum(two.values()) == 1
    if any((one[said] == 0) != (two[said] == 0) for said in one):
        return None
    return max(max(one[said] / two[said], two[said] / one[said]) for said in one if one[said])


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_reports_lose_at_most_each_whatever_changes_and_epsilon_if_nothing_does(reports: int) -> None:
    first, again = Response(3, odds_of(ONE)), Response(3, odds_of(HALF))
    found = courses(first, again, reports)
    limit = exp_bounds(reports * HALF, 64)[0]
    constant = [(answer,) * reports for answer in range(3)]
    for one, two in product(found, repeat=2):
        assert loss(found[one], found[two]) <= limit
        if one in constant and two in constant:
            assert loss(found[one], found[two]) <= exp_bounds(ONE, 64)[0]


def test_the_same_through_a_geometry() -> None:
    first = Projective(4, odds_of(ONE), 2, 3)
    again = choose.redrawn(first, odds_of(HALF))
    found = courses(first, again, 2)
    assert max(loss(one, two) for one, two in product(found.values(), repeat=2)) <= exp_bounds(ONE, 64)[0]


def test_memory_alone_would_prove_a_change() -> None:
    """Why a window without `each` has one report: two that differ are impossible unless the answer changed."""
    found = courses(Response(2, odds_of(ONE)), None, 2)
    assert loss(found[0, 0], found[0, 1]) is None
    assert loss(found[0, 0], found[1, 1]) <= exp_bounds(ONE, 64)[0]


def test_the_audit_holds_the_channels_and_finds_what_loses_more() -> None:
    sizes = DrawCounts(pair=300, fit=600)
    assert [one.subject for one in run(channels.everything(sizes), 1e-6) if one.broken] == []
    claimed = Fraction(9, 10)
    for known in (Response(5, odds_of(ONE)), Projective(13, odds_of(ONE), 3, 3)):
        exact, sampled, _ = channels.channel(known, claimed, DrawCounts(pair=20_000, fit=600))
        assert exact.attack(1e-6).broken
        assert sampled.attack(1e-6).found > 0.5
    exact, _ = channels.twice(Response(3, odds_of(ONE)), Response(3, odds_of(HALF)), Fraction(1, 5), Fraction(1, 10))
    assert exact.attack(1e-6).broken
