"""The subjects of the local model: each channel by its whole table of chances, and its draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from discreet.audit.claims import Claim
from discreet.audit.events import LABEL, NUMBER, Feature
from discreet.audit.pmf import Distribution
from discreet.audit.targets import ExactAttack, Fitted, SampledAttack, Target
from discreet.audit.textbook import DrawCounts
from discreet.local import choose
from discreet.local.channels import Channel, Hashed, Projective, Response, mixed, odds_of
from discreet.local.draws import fresh
from discreet.local.hybrid import hybrid

TEXTS = (1, 2)
"""Two fingerprints of texts, which stand for any two."""


def channel(known: Channel, epsilon: Fraction, sizes: DrawCounts, features: Sequence[Feature] = LABEL) -> list[Target]:
    """Any answer against any other, and draws of the first and the last one."""
    claim, name = Claim(float(epsilon)), f"local: {known.name}, {known.inputs} answers"
    rows = [_distribution(known.weights(answer)) for answer in range(known.inputs)]

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        return [(rows[a], rows[b], f"answers {a} and {b}:") for a, b in combinations(range(len(rows)), 2)]

    def report(answer: int) -> int:
        return known.draw(answer, fresh())

    def draws(count: int) -> list[int]:
        return [report(0) for _ in range(count)]

    return [
        ExactAttack(name, claim, pairs),
        SampledAttack(name, claim, (0, known.inputs - 1), report, features, sizes.pair),
        Fitted(name, claim, draws, sizes.fit // 2, expected=lambda: rows[0]),
    ]


def _distribution(weights: Sequence[int]) -> Distribution:
    whole = sum(weights)
    return {report: weight / whole for report, weight in enumerate(weights) if weight}


def texts(known: Hashed, epsilon: Fraction, sizes: DrawCounts) -> list[Target]:
    """Local hashing: whether a report supports either of two texts, whose buckets under its seed may be any."""
    claim, name = Claim(float(epsilon)), f"local: {known.name}, {known.buckets} buckets"
    rows = [_distribution(known.weights(bucket)) for bucket in range(known.buckets)]

    def supported(text: int) -> tuple[bool, ...]:
        seed, bucket = divmod(known.draw(text, fresh()), known.buckets)
        own = [int(mixed(np.array([seed], np.uint32), one)[0]) % known.buckets for one in TEXTS]
        return tuple(bucket == one for one in own)

    def pairs() -> list[tuple[Distribution, Distribution, str]]:
        return [(a, b, "under any seed:") for a, b in combinations(rows, 2)]

    return [ExactAttack(name, claim, pairs), SampledAttack(name, claim, TEXTS, supported, LABEL, sizes.pair)]


def twice(first: Response, second: Response, epsilon: Fraction, each: Fraction) -> list[Target]:
    """Two reports of one window through one memory: whatever the answers, 2·each; where they do not change, epsilon."""
    size = range(first.inputs)
    memory, again = ([[weight / one.whole for weight in one.weights(a)] for a in size] for one in (first, second))

    def joint(one: int, other: int) -> Distribution:
        found: dict[Any, float] = {}
        for reports in product(size, repeat=2):
            if one == other:
                found[reports] = sum(memory[one][y] * again[y][reports[0]] * again[y][reports[1]] for y in size)
            else:
                near, far = reports
                alone = sum(memory[one][y] * again[y][near] for y in size)
                found[reports] = alone * sum(memory[other][y] * again[y][far] for y in size)
        return found

    courses = {answers: joint(*answers) for answers in product(size, repeat=2)}

    def pairs(kept: Callable[[tuple[int, ...]], bool]) -> list[tuple[Distribution, Distribution, str]]:
        chosen = [answers for answers in courses if kept(answers)]
        return [(courses[a], courses[b], f"answers {a} and {b}:") for a, b in combinations(chosen, 2)]

    return [
        ExactAttack("local: two reports a window", Claim(2 * float(each)), lambda: pairs(lambda _: True)),
        ExactAttack("local: two reports, no change", Claim(float(epsilon)), lambda: pairs(lambda a: a[0] == a[1])),
    ]


def everything(sizes: DrawCounts) -> list[Target]:
    """Every channel at ε = 1, and the memory with two reports."""
    one = Fraction(1)
    odds = odds_of(one)
    numbers = hybrid(8, odds)
    assert numbers is not None
    return [
        *channel(Response(5, odds), one, sizes),
        *channel(Projective(13, odds, 3, 3), one, sizes),
        *channel(numbers, one, sizes, NUMBER),
        *texts(choose.hashed(odds), one, sizes),
        *twice(Response(3, odds), Response(3, odds_of(one / 2)), one, one / 2),
    ]
