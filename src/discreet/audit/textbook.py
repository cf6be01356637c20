"""The subjects of the mechanisms room: each mechanism with its claim, its hardest neighbours and its distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from discreet import mechanisms
from discreet.audit import pmf
from discreet.audit.claims import Claim, Result
from discreet.audit.events import LABEL, NUMBER, Feature, answered
from discreet.audit.pmf import Distribution
from discreet.audit.targets import ComputedAttack, ExactAttack, Fitted, SampledAttack, Target
from discreet.mechanisms import (
    AboveThreshold,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    LaplaceShares,
    NoisyMax,
    PermuteAndFlip,
    Threshold,
    TopK,
)
from discreet.reference.partition import PartitionSelection
from discreet.reference.response import RandomisedResponse, randomised_response, two_coins

Neighbours = tuple[Any, Any]


@dataclass(frozen=True)
class DrawCounts:
    """How many draws: on either neighbour of a pair, and for a fit."""

    pair: int = 3_000
    fit: int = 12_000


def additive(mechanism: Laplace | Gaussian, sensitivity: int, sizes: DrawCounts) -> list[Target]:
    """Noise on integers: one coordinate at the whole sensitivity, and two that share it."""
    gaussian = isinstance(mechanism, Gaussian)
    claim = Claim.of(mechanism.loss(sensitivity**2 if gaussian else sensitivity))
    width = float(mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale)
    reach = int((30 if not gaussian else 9) * width) + sensitivity
    mass, law = (pmf.gaussian, pmf.gaussian_law) if gaussian else (pmf.laplace, pmf.laplace_law)

    def one(value: int) -> Any:
        return mechanism.release([value])[0]

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        start = mass(width, 0, reach)
        return [(start, mass(width, moved, reach), f"0 and {moved}") for moved in range(1, sensitivity + 1)]

    name = mechanism.name
    found: list[Target] = [
        SampledAttack(name, claim, (0, sensitivity), one, NUMBER, sizes.pair),
        ExactAttack(name, claim, pairs),
        Fitted(name, claim, lambda count: mechanism.release([0] * count), sizes.fit, law(width)),
    ]
    if sensitivity > 1:
        sides = ((0, 0), (1, sensitivity - 1))
        features = [
            Feature("sum", answered(lambda pair: float(sum(pair))), ordered=True),
            Feature("difference", answered(lambda pair: pair[1] - pair[0]), ordered=True),
            Feature("likelihood", answered(lambda pair: _towards(pair, sides)), ordered=True),
        ]
        found.append(SampledAttack(f"{name}, two numbers", claim, sides, mechanism.release, features, sizes.pair))
    return found


def together(mechanism: LaplaceShares, sizes: DrawCounts) -> list[Target]:
    """Several parties' shares of a number and of its noise: what colluders can make of all that they get is the total
    of the honest parties. Its distribution is computed from the shares', and compared with the whole noise's."""
    claim, name, count = Claim.of(mechanism.loss()), mechanism.name, mechanism.honest
    width, moved = float(mechanism.scale), mechanism.sensitivity
    reach = int(30 * width) + moved

    def total(value: int) -> int:
        ring = mechanism.ring
        shares = [share for place in range(count) for share in mechanism.release([0 if place else value])]
        return ring.signed(ring.total(shares))[0]

    def draws(size: int) -> list[int]:
        ring = mechanism.ring
        return ring.signed(ring.total([share for _ in range(count) for share in mechanism.release([0] * size)]))

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        start = pmf.shared(width, count, 0, reach)
        return [(start, pmf.shared(width, count, step, reach), f"0 and {step}") for step in range(1, moved + 1)]

    return [
        SampledAttack(name, claim, (0, moved), total, NUMBER, sizes.pair),
        ExactAttack(name, claim, pairs),
        Fitted(name, claim, draws, sizes.fit, pmf.laplace_law(width)),
    ]


def _towards(outcome: Sequence[float], sides: Sequence[Sequence[int]]) -> float:
    """How much nearer the outcome lies to the second side, coordinate by coordinate."""
    first, second = sides
    return float(sum(abs(x - a) - abs(x - b) for x, a, b in zip(outcome, first, second, strict=True)))


def groups(mechanism: Threshold | PartitionSelection, sizes: DrawCounts) -> list[Target]:
    """Private keys. A neighbour is the number of persons in each of some groups; in a group of 0 nobody has a row."""
    claim = Claim.of(mechanism.loss())
    chance, turn = _chance(mechanism)
    cells = mechanism.cells

    def release(persons: Sequence[int]) -> tuple[bool, ...]:
        held = [count for count in persons if count]
        if isinstance(mechanism, PartitionSelection):
            found = iter(mechanism.release(held))
        else:
            found = iter([count is not None for count in mechanism.counts(held)])
        return tuple(bool(next(found)) if count else False for count in persons)

    def outcomes(persons: Sequence[int]) -> Distribution:
        return pmf.shown([chance(count) for count in persons])

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        counts = [*range(12), *range(max(12, turn - 6), turn + 7)]
        alone = [((0,) * cells, (1,) * cells)]
        moved = [((count,) * cells, (count + 1,) * cells) for count in counts]
        mixed = [((0, turn), (1, turn + 1))] if cells > 1 else []
        return [(outcomes(one), outcomes(two), f"groups of {one} and {two}") for one, two in alone + moved + mixed]

    name = mechanism.name if isinstance(mechanism, PartitionSelection) else "Laplace threshold"
    name = f"{name}, {cells} groups" if cells > 1 else name
    near = (turn,) * cells, (turn + 1,) * cells
    found: list[Target] = [ExactAttack(name, claim, pairs)]
    for neighbours in (((0,) * cells, (1,) * cells), near, (near[0], (turn - 1,) * cells)):
        found.append(SampledAttack(name, claim, neighbours, release, LABEL, sizes.pair))

    def draws(count: int) -> list[tuple[bool, ...]]:
        return [release(near[0]) for _ in range(count)]

    found.append(Fitted(name, claim, draws, sizes.fit // 4, expected=lambda: outcomes(near[0])))
    return found


def _chance(mechanism: Threshold | PartitionSelection) -> tuple[Callable[[int], float], int]:
    """With which probability a group of so many is shown, and from how many on more often than not."""
    if isinstance(mechanism, PartitionSelection):
        known = mechanism
        turn = next(count for count in range(1, 10**6) if known.chance(count) >= Fraction(1, 2))
        return lambda persons: float(known.chance(persons)), turn
    assert isinstance(mechanism.noise, Laplace)
    threshold, law = mechanism.threshold, pmf.laplace_law(float(mechanism.noise.scale))
    # P(X ≥ j) = P(X ≤ −j), which loses no digits
    return lambda persons: law(persons - threshold) if persons else 0.0, threshold


def thresholds(sizes: DrawCounts) -> list[Target]:
    """The threshold that the project computes: its δ at many prices, and all attacks at two of them."""
    found: list[Target] = [ComputedAttack("thresholds at 36 prices", _least_margin)]
    for cells in (1, 2):
        found += groups(mechanisms.laplace_threshold(Fraction(2), Fraction(1, 20), cells), sizes)
    return found


def _least_margin() -> Result:
    """At which of many prices a person's own groups come nearest to δ, or beyond: from the mechanism's own numbers."""
    worst, event, chosen = -1.0, "", Claim()
    for epsilon, delta, cells in product(("0.1", "0.5", "1", "2", "4", "8"), ("0.01", "1e-3", "1e-5"), (1, 3)):
        made = mechanisms.laplace_threshold(Fraction(epsilon), Fraction(delta), cells)
        alone, _ = _chance(made)
        found = -math.expm1(made.cells * math.log1p(-alone(1)))
        if found / float(made.delta) > worst:
            worst, event = found / float(made.delta), f"ε {epsilon}, {cells} own groups of one person"
            chosen = Claim(float(epsilon), float(made.delta), of_delta=True)
    found = worst * chosen.delta
    return Result("thresholds at 36 prices", "exact", chosen, found, chosen.exceeded(found), event)


def choice(
    name: str,
    claim: Claim,
    release: Callable[[Any], Any],
    distribution: Callable[[Any], Distribution],
    moves: tuple[Sequence[Any], Sequence[int]],
    hardest: Neighbours,
    sizes: DrawCounts,
) -> list[Target]:
    """A choice among few: exact over all starts and all moves of one person, draws on the hardest neighbours."""
    starts, steps = moves

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        found = []
        for start in starts:
            before = distribution(start)
            for move in product(steps, repeat=len(start)):
                after = tuple(score + step for score, step in zip(start, move, strict=True))
                found.append((before, distribution(after), f"{start} and {after}:"))
        return found

    def draws(count: int) -> list[Hashable]:
        return [release(hardest[0]) for _ in range(count)]

    return [
        ExactAttack(name, claim, pairs),
        SampledAttack(name, claim, hardest, release, LABEL, sizes.pair),
        Fitted(name, claim, draws, sizes.fit // 2, expected=lambda: distribution(hardest[0])),
    ]


_STARTS = ((0, 0), (2, 0), (1, 1, 0), (3, 0, 1))


def selections(sizes: DrawCounts, epsilon: Fraction = Fraction(1)) -> list[Target]:
    """Exponential mechanism, permute-and-flip and top-k, for scores that move either way, and monotone ones."""
    found: list[Target] = []
    for monotone, steps, start, after in (
        (False, (-1, 0, 1), (0, 0, 0), (-1, -1, 1)),
        (True, (0, 1), (0, 0, 0), (0, 0, 1)),
    ):
        words = ", counts" if monotone else ""
        single: list[tuple[Any, Callable[..., Distribution]]] = [
            (ExponentialMechanism(epsilon, monotone=monotone), pmf.exponential),
            (PermuteAndFlip(epsilon, monotone=monotone), pmf.permute_and_flip),
        ]
        for one, mass in single:
            distribution = partial(mass, float(one.rate))
            claim, name = Claim.of(one.loss()), one.name + words
            found += choice(name, claim, one.release, distribution, (_STARTS, steps), (start, after), sizes)
        best = TopK(epsilon / 2, monotone=monotone, k=2)
        found += choice(
            best.name + words,
            Claim.of(best.loss()),
            partial(_ordered, best),
            partial(pmf.top_k, float(best.rate), 2),
            (_STARTS, steps),
            (start, after),
            sizes,
        )
    return found


def _ordered(mechanism: TopK, scores: Sequence[int]) -> tuple[int, ...]:
    return tuple(mechanism.release(scores))


def largest(mechanism: NoisyMax, sizes: DrawCounts) -> list[Target]:
    """Report noisy max on counts of persons: the place alone, and with the gap."""
    claim, rate = Claim.of(mechanism.loss()), float(mechanism.rate)
    moves = (((0, 0), (2, 0), (1, 0, 0)), (0, 1))
    hardest = ((0, 0), (0, 1))
    place = partial(pmf.permute_and_flip, rate)
    with_gap = partial(pmf.lead, rate, gaps=8)
    return [
        *choice(mechanism.name, claim, mechanism.release, place, moves, hardest, sizes),
        *choice(f"{mechanism.name}, gap", claim, mechanism.release_with_gap, with_gap, moves, hardest, sizes),
    ]


def watch(mechanism: AboveThreshold, sizes: DrawCounts) -> list[Target]:
    """Above threshold: three questions, of which one person moves each by at most 1."""

    def said(answers: Sequence[int]) -> tuple[bool, ...]:
        return tuple(mechanism.release(answers))

    first, second = mechanism.scales
    scales = float(first), float(second)
    distribution = partial(pmf.replies, mechanism.threshold, scales, mechanism.limit)
    moves = (((0, 0, 0), (1, 0, -2), (2, -1, 0)), (-1, 0, 1))
    claim = Claim.of(mechanism.loss())
    return choice(mechanism.name, claim, said, distribution, moves, ((0, 0, 0), (-1, -1, 1)), sizes)


def response(mechanism: RandomisedResponse, sizes: DrawCounts) -> list[Target]:
    """Randomised response: any answer against any other, from the integers that decide."""
    name, claim = f"{mechanism.name} of {mechanism.choices}", Claim.of(mechanism.loss())
    rows: list[Distribution] = [dict(enumerate(map(float, row))) for row in mechanism.channel()]

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        return [(rows[a], rows[b], f"answers {a} and {b}:") for a, b in product(range(len(rows)), repeat=2) if a < b]

    def report(answer: int) -> int:
        return mechanism.release([answer])[0]

    return [
        ExactAttack(name, claim, pairs),
        SampledAttack(name, claim, (0, 1), report, LABEL, sizes.pair),
        Fitted(name, claim, lambda count: mechanism.release([0] * count), sizes.fit, expected=lambda: rows[0]),
    ]


def everything(sizes: DrawCounts) -> list[Target]:
    """Every mechanism at ε = 1 (or μ = 1), where an attack sees most for its draws."""
    one = Fraction(1)
    return [
        *additive(Laplace(one), 1, sizes),
        *additive(Laplace(3 * one), 3, sizes),
        *additive(Gaussian(2 * one), 2, sizes),
        *together(LaplaceShares(one, 1, parties=3, colluding=1), sizes),
        *thresholds(sizes),
        *groups(PartitionSelection(one, Fraction(1, 20)), sizes),
        *groups(PartitionSelection(2 * one, Fraction(1, 20), cells=2), sizes),
        *selections(sizes),
        *largest(NoisyMax(one), sizes),
        *watch(AboveThreshold(0, one), sizes),
        *watch(AboveThreshold(0, 2 * one, limit=2), sizes),
        *response(randomised_response(one), sizes),
        *response(randomised_response(one, 4), sizes),
        *response(two_coins(), sizes),
    ]
