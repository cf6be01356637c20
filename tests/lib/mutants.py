"""Wrong versions of real pieces. Each is a mistake that somebody has made; the audit has to find every one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.accounting import Approximate, Filter, Gaussian, Loss, Pure
from discreet.audit.interaction import Guard, gain, worst_case
from discreet.mechanisms import AboveThreshold, ExponentialMechanism, Laplace, NoisyMax, Threshold, gaussian_threshold
from discreet.mechanisms import Gaussian as GaussianNoise
from discreet.noise import discrete_laplace, rounded_gaussian
from discreet.reference.response import RandomisedResponse
from discreet.trusted.ring_a.statement import Keep
from discreet.trusted.ring_b import gdp_filter as residue
from discreet.trusted.ring_b import relation_statements
from discreet.trusted.ring_b.noisy_max import winner
from discreet.trusted.ring_b.relation_statements import RelationSelect
from discreet.trusted.ring_b.relations import RowBefore
from discreet.trusted.ring_c.coded import UNIT


def smaller(factor: Fraction, real: Callable[..., Any] = discrete_laplace) -> Callable[..., Any]:
    """Noise of a part of the scale."""
    return lambda scale, size: real(scale * factor, size)


def nothing(_scale: Any, size: Any) -> Any:
    """No noise."""
    return np.zeros(size, np.int64)


class FloatLaplace(Laplace):
    """Noise in floating point: its last digits tell what it was added to (Mironov 2012)."""

    def release(self, exact: Sequence[int]) -> list[Any]:
        return [value + float(np.random.laplace(0, float(self.scale))) for value in exact]


class Truncated(Laplace):
    """A float on its way, and an integer again in the end: of another distribution, with too many zeros."""

    def release(self, exact: Sequence[int]) -> list[int]:
        return [value + int(np.random.laplace(0, float(self.scale))) for value in exact]


class OnceForAll(Laplace):
    """One noise value for the whole vector: differences are exact."""

    def release(self, exact: Sequence[int]) -> list[int]:
        return self.shared(exact)

    def shared(self: Laplace, exact: Sequence[int]) -> list[int]:  # type: ignore[misc]
        (noise,) = discrete_laplace(self.scale, 1).tolist()
        return [value + noise for value in exact]


class LowThreshold(Threshold):
    """A threshold that nothing certifies."""

    def __post_init__(self) -> None:
        pass


class BareThreshold(Threshold):
    """A group of `threshold` persons is shown: no noise."""

    def counts(self, persons: Sequence[int]) -> list[int | None]:
        return [count if count >= self.threshold else None for count in persons]


def continuous_threshold(epsilon: Fraction, delta: Fraction, cells: int) -> Threshold:
    """k = 1 − λ·ln(2δ), which is right for continuous noise and "> k", with integer noise and "≥ k"."""
    scale, share = cells / epsilon, float(delta / cells)
    return LowThreshold(Laplace(scale), math.ceil(1 - float(scale) * math.log(2 * share)), cells, delta)


@dataclass(frozen=True)
class WinnersCount(NoisyMax):
    """Gives the winner's noisy count away with its place, at the same price."""

    def release_with_gap(self, counts: Sequence[int], words: Any = None) -> tuple[int, int]:
        noisy, keys = self._noisy(counts, words)
        place, _ = winner(noisy, keys)
        return place, noisy[place]


@dataclass(frozen=True)
class PlainGap(NoisyMax):
    """Gives the plain difference to the runner-up, in which ties show."""

    def release_with_gap(self, counts: Sequence[int], words: Any = None) -> tuple[int, int]:
        noisy, keys = self._noisy(counts, words)
        place, _ = winner(noisy, keys)
        return place, noisy[place] - max(count for index, count in enumerate(noisy) if index != place)


class Unwatched(AboveThreshold):
    """No noise on the answers, as in a version of the sparse vector technique that was published."""

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        first, _ = super().scales
        return first, Fraction(1, 1000)


def louder_response(epsilon: Fraction, choices: int = 2) -> RandomisedResponse:
    """The truth with probability e^ε/(1 + e^ε) whatever the number of choices."""
    whole = 1 << 64
    other = int(whole / (1 + math.exp(float(epsilon)))) // (choices - 1)
    return RandomisedResponse(whole - (choices - 1) * other, other, choices, 64, epsilon)


# filters


@dataclass(frozen=True)
class Natural:
    """Composes the losses of what was run so far, and stops when their δ at ε would be above δ: the natural filter,
    which is wrong when the analyst chooses losses by answers (Rogers, Roth, Ullman & Vadhan 2016, section 5)."""

    epsilon: Fraction
    delta: Fraction
    run: tuple[Loss, ...] = ()
    courses: Any = field(default=None, compare=False)

    def _longer(self, loss: Loss) -> dict[float, float]:
        longer: dict[float, float] = {}
        for lost, mass in (self.courses or {0.0: 1.0}).items():
            for bit, chance in worst_case(loss).items():
                key = round(lost + bit, 12)
                longer[key] = longer.get(key, 0.0) + mass * chance
        return longer

    def admits(self, loss: Loss) -> bool:
        found = sum(mass * gain(lost, float(self.epsilon)) for lost, mass in self._longer(loss).items())
        return found <= float(self.delta) * (1 + 1e-9)

    def charge(self, loss: Loss) -> Guard:
        return replace(self, run=(*self.run, loss), courses=self._longer(loss))


@dataclass(frozen=True)
class Undead:
    """Pure sum or Gaussian residue, where what the pure sum alone admits leaves the residue as it was."""

    epsilon: Fraction
    delta: Fraction
    pure: Fraction = Fraction(0)
    left: Fraction | None = None

    @property
    def residue(self) -> Fraction:
        return residue.opening(self.epsilon, self.delta) if self.left is None else self.left

    def admits(self, loss: Any) -> bool:
        return self.pure + loss.pure <= self.epsilon or residue.charge(loss, self.residue) is not None

    def charge(self, loss: Any) -> Guard:
        left = residue.charge(loss, self.residue)
        return replace(self, pure=self.pure + loss.pure, left=self.residue if left is None else left)


@dataclass(frozen=True)
class Forgetful:
    """A right filter that does not count the δ of private keys."""

    inner: Filter

    def _bare(self, loss: Loss) -> Loss:
        return Pure(loss.epsilon) if isinstance(loss, Approximate) else loss

    def admits(self, loss: Loss) -> bool:
        return self.inner.admits(self._bare(loss))

    def charge(self, loss: Loss) -> Guard:
        return Forgetful(self.inner.charge(self._bare(loss)))


@dataclass(frozen=True)
class Halved:
    """A filter that charges half of each Gaussian release."""

    inner: Filter

    def _half(self, loss: Loss) -> Loss:
        return Gaussian(loss.mu / 2) if isinstance(loss, Gaussian) else loss

    def admits(self, loss: Loss) -> bool:
        return self.inner.admits(self._half(loss))

    def charge(self, loss: Loss) -> Guard:
        return Halved(self.inner.charge(self._half(loss)))


# publishing


class HalfNoise(GaussianNoise):
    """Half of the noise that the loss is for."""

    def release(self, exact: Sequence[int]) -> list[int]:
        noise = rounded_gaussian(self.sigma / 2, len(exact)).tolist()
        return [value + extra for value, extra in zip(exact, noise, strict=True)]


def half_noise_at(sigma: float) -> Callable[[Fraction], GaussianNoise]:
    """Half of the noise in the steps that should have this much."""
    return lambda given: HalfNoise(given) if math.isclose(given, sigma, rel_tol=1e-6) else GaussianNoise(given)


class HalfNoiseThreshold(Threshold):
    """The right threshold, and half of the noise."""

    def counts(self, persons: Sequence[int]) -> list[int | None]:
        noisy = HalfNoise(self.noise.sigma).release(persons)  # type: ignore[union-attr]
        return [count if count >= self.threshold else None for count in noisy]


def lone_threshold(mu_squared: Fraction, delta: Fraction, cells: int) -> Threshold:
    """A threshold that is not made for δ: one person is mostly enough."""
    return LowThreshold(gaussian_threshold(mu_squared, delta, cells).noise, 0, cells, delta)


class TwiceTheChoice(ExponentialMechanism):
    """The factor of scores that move in one direction alone, for scores that move in either."""

    @property
    def rate(self) -> Fraction:
        return 2 * super().rate


def all_rows(*_: Any) -> None:
    """No row of a person is left out, however many there are."""


def row_before_of_anybody(relation: RowBefore, keep: Keep) -> RelationSelect:
    """The row before a row is whoever's comes before it in time."""
    found = relation_statements._row_before(relation, keep)
    for window in found.select.find_all(exp.Window):
        window.set("partition_by", [])
    return found


def whole_weight(_: Any) -> str:
    """A row's weight that is not shared with the person's others."""
    return f"CAST({UNIT} AS BIGINT)"
