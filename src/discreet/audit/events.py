"""What may tell two neighbours apart: features of an outcome, and the event that tells most, chosen on training draws.

An attack that looks at numbers alone misses what leaks beside them. So an outcome is looked at in several ways: its
value, whether it lies on the lattice that its type suggests, which groups are there, in which order, what was raised.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from discreet.audit.bound import wilson
from discreet.audit.claims import Claim

_SCORE = 5.5  # as careful as the test that follows: what looks best by chance would not pass it
_THRESHOLDS = 199
_ATOMS = 64
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Raised:
    """The outcome of a draw that failed: an outcome like any other."""

    error: str


@dataclass(frozen=True)
class Feature:
    """A way to look at an outcome: a number if `ordered` (then thresholds are events), else a label. None: nothing."""

    name: str
    of: Callable[[Any], Any]
    ordered: bool = False


@dataclass(frozen=True)
class Event:
    """A set of outcomes, and on which neighbour it is likelier."""

    text: str
    holds: Callable[[Any], bool]
    first: bool
    """Whether it is likelier on the first neighbour."""


def fine(outcome: Any) -> bool | None:
    """Whether a floating-point number in (0, 1/4) lies off the multiples of 2^−53.

    1 + x computed in doubles is a multiple of 2^−53 in there, 0 + x need not be: what tells them apart whatever the
    noise (Mironov 2012).
    """
    if not isinstance(outcome, float) or not math.isfinite(outcome):
        return None
    return 0 < outcome < 0.25 and not (outcome * 2.0**53).is_integer()


def number(outcome: Any) -> float | None:
    """The outcome as a number; None where it is none, as a boolean is."""
    return float(outcome) if isinstance(outcome, int | float) and not isinstance(outcome, bool) else None


def label(outcome: Any) -> Hashable:
    """The outcome, or in words where it has no hash."""
    return outcome if isinstance(outcome, Hashable) else repr(outcome)


def kind(outcome: Any) -> str:
    """The outcome's type, or that of the error that was raised instead."""
    return outcome.error if isinstance(outcome, Raised) else type(outcome).__name__


def answered(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The look at an outcome that is an answer; nothing where the draw failed."""
    return lambda outcome: None if isinstance(outcome, Raised) else look(outcome)


NUMBER = (
    Feature("value", number, ordered=True),
    Feature("value", label),
    Feature("off the lattice", fine),
    Feature("type", kind),
)
"""How a noisy number is looked at."""

LABEL = (Feature("outcome", label), Feature("type", kind))
"""How a choice is looked at."""


def choose(features: Sequence[Feature], one: Sequence[Any], two: Sequence[Any], claim: Claim) -> Event | None:
    """The event with the largest bound on training draws of two neighbours, as many of either."""
    best, chosen = -math.inf, None
    for event, hits_one, hits_two in _candidates(features, one, two):
        likely, rare = (hits_one, hits_two) if event.first else (hits_two, hits_one)
        guess = _guess(likely, rare, len(one), claim)
        if guess > best:
            best, chosen = guess, event
    return chosen


def _guess(likely: int, rare: int, draws: int, claim: Claim) -> float:
    low, high = wilson(likely, draws, _SCORE)[0] - claim.delta, wilson(rare, draws, _SCORE)[1]
    if low <= 0:
        return -math.inf
    if claim.mu is None:
        return math.log(low / high)
    return _probit(low) - _probit(high)


def _probit(chance: float) -> float:
    return _NORMAL.inv_cdf(min(max(chance, 1e-16), 1 - 1e-16))


Counted = tuple[Event, int, int]
"""An event, and how often it was seen on either neighbour."""


def _candidates(features: Sequence[Feature], one: Sequence[Any], two: Sequence[Any]) -> Iterator[Counted]:
    for feature in features:
        seen = [feature.of(outcome) for outcome in one], [feature.of(outcome) for outcome in two]
        if feature.ordered:
            yield from _thresholds(feature, *seen)
        else:
            yield from _labels(feature, *seen)


def _thresholds(feature: Feature, one: Sequence[Any], two: Sequence[Any]) -> Iterator[Counted]:
    """Values at least, and below, each of some quantiles of all values."""
    ranked = [sorted(value for value in values if value is not None) for values in (one, two)]
    every = sorted(ranked[0] + ranked[1])
    step = max(1, len(every) // _THRESHOLDS)
    for least in dict.fromkeys(every[::step]):
        above = [len(values) - _below(values, least) for values in ranked]
        below = [_below(values, least) for values in ranked]
        for first in (True, False):
            yield Event(f"{feature.name} ≥ {least:.6g}", _at_least(feature, least), first), above[0], above[1]
            yield Event(f"{feature.name} < {least:.6g}", _under(feature, least), first), below[0], below[1]


def _below(values: Sequence[float], least: float) -> int:
    return bisect_left(values, least)


def _at_least(feature: Feature, least: float) -> Callable[[Any], bool]:
    return lambda outcome: (value := feature.of(outcome)) is not None and value >= least


def _under(feature: Feature, least: float) -> Callable[[Any], bool]:
    return lambda outcome: (value := feature.of(outcome)) is not None and value < least


def _labels(feature: Feature, one: Sequence[Any], two: Sequence[Any]) -> Iterator[Counted]:
    """Each of the commonest labels, and those that speak most for either neighbour, added one by one."""
    counts = Counter(one), Counter(two)
    common = [value for value, _ in (counts[0] + counts[1]).most_common(_ATOMS) if value is not None]
    for first in (True, False):
        for value in common:
            members = frozenset([value])
            text = f"{feature.name} is {value}"
            yield Event(text, _among(feature, members), first), counts[0][value], counts[1][value]
        mine, others = counts if first else counts[::-1]
        ordered = sorted(common, key=lambda value, m=mine, o=others: (o[value] + 0.5) / (m[value] + 0.5))  # type: ignore[misc]
        for size in range(2, len(ordered)):
            members = frozenset(ordered[:size])
            hits = [sum(count[value] for value in members) for count in counts]
            text = f"{feature.name} is one of {size} that speak for {'the first' if first else 'the second'}"
            yield Event(text, _among(feature, members), first), hits[0], hits[1]


def _among(feature: Feature, members: frozenset[Any]) -> Callable[[Any], bool]:
    return lambda outcome: feature.of(outcome) in members
