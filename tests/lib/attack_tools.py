"""An attacker who sees many answers about one of two neighbouring tables and guesses which."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from discreet import Curator
from discreet.engines.protocol import Row
from discreet.plan.measurement import Measurement, Price
from discreet.plan.split import measurement
from discreet.sql import lower
from discreet.trusted.ring_b.questions import Noisy, noisy_answer

LEVEL = 1e-6
SAMPLES = 4_000

Event = Callable[[Any], bool]


@dataclass(frozen=True)
class Known:
    """Exact totals that the real engine gave once, to be given again: the noise alone is drawn afresh."""

    rows: list[Row]

    def run(self, *_: object) -> list[Row]:
        return list(self.rows)


def answers(curator: Curator, question: str, price: Price, count: int = SAMPLES) -> list[Noisy]:
    """That many independent releases of one question, through the door's own code."""
    plan = lower(question, curator.declaration).plan
    priced: Measurement = measurement(plan, price)
    table = curator.declaration.tables[plan.table]
    exact = Known(curator._engine.run(plan.root, table))
    return [noisy_answer(exact, priced, table) for _ in range(count)]  # type: ignore[arg-type]


def epsilon_at_least(one: Sequence[Any], two: Sequence[Any], events: Sequence[Event], delta: float = 0.0) -> float:
    """An ε below which the two cannot be, but with probability 1e-6.

    Half of the answers choose the event, in either direction, that tells the tables apart best; the other half bound
    its two probabilities (Clopper & Pearson 1934).
    """
    half = len(one) // 2
    best, chosen = -math.inf, None
    for event in events:
        for first, second in ((one, two), (two, one)):
            bound = _bound(sum(map(event, first[:half])), sum(map(event, second[:half])), half, delta, LEVEL)
            if bound > best:
                best, chosen = bound, (event, first, second)
    if chosen is None:
        return -math.inf
    event, first, second = chosen
    return _bound(sum(map(event, first[half:])), sum(map(event, second[half:])), len(one) - half, delta, LEVEL)


def _bound(likely: int, rare: int, size: int, delta: float, level: float) -> float:
    low = stats.beta.ppf(level / 2, likely, size - likely + 1) if likely else 0.0
    high = stats.beta.ppf(1 - level / 2, rare + 1, size - rare) if rare < size else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf
