"""The noise of a training run for its price, and the loss that the ledger is charged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.curves import mu_of_budget, mu_of_pure
from discreet.trusted.ring_a.exact import ceiling, floor, sqrt_ceiling
from discreet.trusted.ring_c.training import run_loss

COUNT_SHARE = Fraction(1, 100)
"""The part of ε that the noisy number of persons takes."""

_LEAST_SIGMA, _LARGEST_SIGMA = 0.3, 1e9
_CLOSE = 0.98
_TRIES = 12


@dataclass(frozen=True)
class TrainingNoise:
    """The noise multiplier of a run, the ε of its count, and the probability of the event outside which the run counts
    as one Gaussian release; 0 where it needs none."""

    sigma: Fraction
    count_epsilon: Fraction
    event_delta: Fraction


@lru_cache(maxsize=64)
def noise_for(
    epsilon: Fraction, delta: Fraction, event_delta: Fraction, rate: Fraction, steps: int
) -> TrainingNoise | None:
    """Nearly the least noise with which a run and its count cost no more than the price; None where none is found.

    The price (ε, δ) means: with μ the largest whose μ-GDP implies (ε, δ − event_delta), run and count together are
    μ-GDP but for an event of probability event_delta. The count, discrete Laplace noise at ε/100, takes μ_c² of μ²; the
    run gets the rest. Its (μ, event_delta) is the Gaussian loss that stands for the composed run, an upper bound, and
    what is charged follows from the very sigma that is used (`ring_c.training`): a search that ended early would waste
    noise, never privacy. Without sampling (rate 1), or where it is smaller, √steps/sigma needs no event.
    """
    count = floor(epsilon * COUNT_SHARE, 12)
    whole = mu_of_budget(epsilon, delta - event_delta)
    left = whole**2 - mu_of_pure(count) ** 2
    if left <= 0:
        return None
    mu = float(left) ** 0.5 * (1 - 1e-9)
    plain = ceiling(sqrt_ceiling(steps / left) * (1 + Fraction(1, 10**9)), 12)
    found = _sampled(mu, event_delta, rate, steps) if rate < 1 and event_delta > 0 else None
    return (
        TrainingNoise(found, count, event_delta)
        if found is not None and found < plain
        else TrainingNoise(plain, count, Fraction(0))
    )


def _sampled(mu: float, delta: Fraction, rate: Fraction, steps: int) -> Fraction | None:
    """A sigma whose run is μ-GDP but for an event of probability δ, at least 98 % used.

    Between σ and μ stands nearly the law for many small steps, μ = rate·√(steps·(e^(1/σ²) − 1)) (Bu, Dong, Long & Su
    2020); it guesses, the certified bound decides, and a wrong guess is corrected by how wrong it was.
    """
    rated = float(rate) * math.sqrt(steps)
    wanted, best = mu, None
    for _ in range(_TRIES):
        inside = math.log1p((wanted / rated) ** 2)
        guess = min(_LARGEST_SIGMA, max(_LEAST_SIGMA, 1 / math.sqrt(inside)))
        sigma = ceiling(Fraction(guess), 6)
        try:
            needed = run_loss(sigma, rate, steps, delta).mu
        except ValueError:
            wanted /= 2
            continue
        if needed <= mu and (best is None or sigma < best):
            best = sigma
        if mu * _CLOSE <= needed <= mu or (guess == _LEAST_SIGMA and best is not None):
            break
        wanted *= mu * (1 + _CLOSE) / 2 / float(needed)
    return best
