"""Stochastic gradient descent on rows: sums of clipped gradients over random samples of the persons, with noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.exact import ceiling, sqrt_ceiling
from discreet.trusted.ring_a.loss import Batch, EquivalentGaussian
from discreet.trusted.ring_a.loss import GaussianLoss as GaussianLoss
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.further_losses import SubsampledGaussian
from discreet.trusted.ring_c.batch import compose
from discreet.trusted.ring_c.engine import CodedEngine
from discreet.trusted.ring_c.equivalent import gaussian_equivalent
from discreet.trusted.ring_c.features import UNIT, Features, OneHot, Scaled
from discreet.trusted.ring_c.sampling import PoissonSample
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors

STEPS_OF_CLIP = 1 << 20
"""How many lattice steps the longest gradient of a person is."""

_WEIGHT = 1 << 20  # units to one weight
_LARGEST_WEIGHT = 64.0
_RESIDUAL = 1 << 12  # units to one residual
_PRODUCT = UNIT * _WEIGHT  # units of a feature times a weight
_FINE, _REACH = 1 << 10, 16  # the logistic curve's table: places to one, and from −16 to 16
_MOMENTUM = 0.9

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trained:
    """What a run releases: weights, the intercept last, and the noisy number of persons."""

    weights: tuple[float, ...]
    persons: int


@dataclass(frozen=True)
class Training:
    """Noisy stochastic gradient descent (Song, Chaudhuri & Sarwate 2013; Abadi et al. 2016), and a noisy count.

    Unit: a person, with all rows. Neighbours: one person added or removed.

    Sensitivity. In each step a person is in the sample with probability at most `sample_rate`, independently, and adds
    an integer vector that depends on that person's rows and on the public weights alone: see `parts`. Its squared ℓ2
    norm is at most STEPS_OF_CLIP², which is compared in integers, whatever was computed before; the sum is exact. So
    for one choice of everybody else's sample, neighbours differ by that one vector if the person is in the sample,
    and not at all if not. The count of persons has sensitivity 1.

    Loss. A step is the sampled Gaussian mechanism with noise multiplier `sigma`: rounded Gaussian noise of deviation
    sigma·STEPS_OF_CLIP on integers is Gaussian noise with post-processing. What weights a step is taken at follows from
    the noisy sums before it; steps, rate and sigma are fixed before the first, so the whole run costs what
    `SubsampledGaussian` says, however the weights go (adaptive composition: Dong, Roth & Su 2019, Theorem 3.2).
    The count is pure ε (discrete Laplace noise). `loss` states both, declared together; it follows from sigma, rate and
    steps, and from `event_delta`, the probability of the event outside which a sampled run counts as one Gaussian
    release (`run_loss`). All else is post-processing:
    the size of a step, momentum, the average over the second half of the steps.
    """

    table: Table
    features: Features
    target: OneHot | Scaled
    sigma: Fraction
    sample_rate: Fraction
    steps: int
    clip: Fraction
    learning_rate: float
    count_epsilon: Fraction
    event_delta: Fraction
    tell: Callable[[int], None] = field(compare=False, repr=False)

    @property
    def loss(self) -> Batch:
        """Of the whole run and of the noisy number of persons, declared together."""
        run = run_loss(self.sigma, self.sample_rate, self.steps, self.event_delta)
        return Batch((run, Laplace(1 / self.count_epsilon).loss(1)))

    def draw(self, engine: CodedEngine) -> Trained:
        """The weights, their mean over the second half of the steps, and the noisy number of persons. Steps begin at
        weights of 0; `tell` hears of each that is done."""
        rows = _rows(engine.vectors(self.table, self._wanted()), self)
        (persons,) = Laplace(1 / self.count_epsilon).release([rows.persons])
        expected = max(1.0, float(self.sample_rate) * persons)
        noise = Gaussian(self.sigma * STEPS_OF_CLIP)
        sample = PoissonSample(self.sample_rate)
        weights = np.zeros(rows.features.shape[1])
        velocity, total = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(self.steps):
            exact = rows.sum(sample.release(rows.persons), rounded(weights), self.clip)
            noisy = np.array([float(value) for value in noise.release(exact)])
            velocity = _MOMENTUM * velocity + noisy * (float(self.clip) / STEPS_OF_CLIP / expected)
            weights = np.clip(weights - self.learning_rate * velocity, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
            if step >= self.steps // 2:
                total += weights
            self.tell(step + 1)
        return Trained(tuple((total / (self.steps - self.steps // 2)).tolist()), persons)

    def _wanted(self) -> list[VectorColumn]:
        parts = (*self.features.parts, self.target)
        return [VectorColumn(part.column, part.values if isinstance(part, OneHot) else None) for part in parts]


@lru_cache(maxsize=64)
def run_loss(
    sigma: Fraction, sample_rate: Fraction, steps: int, event_delta: Fraction
) -> GaussianLoss | EquivalentGaussian:
    """The one loss that stands for the steps of a run.

    Without an event, or without sampling: `steps` Gaussian releases of μ = 1/sigma, μ·√steps together (Dong, Roth & Su
    2019, Corollary 3.3); sampling only hides more. With one of probability `event_delta`: the composed run is μ-GDP but
    for that event (`gaussian_equivalent`). Raises ValueError where no μ is found.
    """
    if sample_rate == 1 or event_delta == 0:
        return GaussianLoss(ceiling(sqrt_ceiling(steps / sigma**2), 20))
    whole = compose([SubsampledGaussian(sigma, sample_rate, steps)])
    return EquivalentGaussian(gaussian_equivalent(whole, event_delta), event_delta)


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a table in units: features and target, who they belong to, and the residual that trains the model."""

    person: Integers = field(repr=False)
    persons: int = field(repr=False)
    features: NDArray[np.int16] = field(repr=False)
    target: Integers = field(repr=False)
    known: NDArray[np.bool_] = field(repr=False)
    residual: Callable[[Floats, Integers], Integers]

    def sum(self, sampled: NDArray[np.bool_], weights: Floats, clip: Fraction) -> list[int]:
        """The exact sum of the parts of the persons in the sample. 2^43 persons would fit."""
        chosen = np.flatnonzero(sampled[self.person])
        if not len(chosen):
            return [0] * self.features.shape[1]
        total: list[int] = self.parts(chosen, weights, clip).sum(axis=0).tolist()
        return total

    def parts(self, chosen: Integers, weights: Floats, clip: Fraction) -> Integers:
        """What each person adds, in lattice steps: all rows of some persons, in order, persons × weights.

        A person's part is the same wherever its rows stand and whoever else is there: a row's product with the weights
        is a sum of whole numbers below 2^53, exact in every order of adding; the residual is looked up or computed
        elementwise; a person's rows are added in integers; and `clipped` is elementwise but for sums of integers.
        """
        features = self.features[chosen].astype(np.float64)
        residual = self.residual(features @ weights, self.target[chosen]) * self.known[chosen]
        rows: Integers = residual[:, None] * features.astype(np.int64)
        person = self.person[chosen]
        starts = np.flatnonzero(np.diff(person, prepend=-1))
        gradients = rows if len(starts) == len(rows) else np.add.reduceat(rows, starts, axis=0)
        return clipped(gradients, clip)


def clipped(gradients: Integers, clip: Fraction) -> Integers:
    """Each row scaled to a length of at most `clip`, in lattice steps of clip/STEPS_OF_CLIP, rounded toward zero.

    Gradients count units of 1/(2^12·2^14). Long ones are first halved, rounding down, until no entry is above 2^26, so
    the sum of squares of up to 2^10 entries is exact. Scaling is elementwise in doubles. What comes out is held against
    the bound in integers: a row whose squared norm were above STEPS_OF_CLIP² would count as nothing.
    """
    largest = np.abs(gradients).max(axis=1, initial=0)
    _, bits = np.frexp(largest.astype(np.float64))
    halvings = np.maximum(bits - 26, 0)
    short = gradients >> halvings[:, None]
    norms = np.sqrt((short * short).sum(axis=1).astype(np.float64))
    unclipped = np.ldexp(STEPS_OF_CLIP / float(clip) / (_RESIDUAL * UNIT), halvings)
    with np.errstate(divide="ignore"):
        factors = np.minimum(unclipped, STEPS_OF_CLIP / norms)
    return certified(np.trunc(short * factors[:, None]))


def certified(parts: Floats) -> Integers:
    """Whole numbers whose squared norm in each row is at most STEPS_OF_CLIP²; rows that are longer, or hold what is not
    a number, become zero. Integers decide, whatever came before."""
    bound = STEPS_OF_CLIP
    sane = np.nan_to_num(parts, nan=2.0 * bound, posinf=2.0 * bound, neginf=2.0 * bound)
    whole = np.clip(sane, -2.0 * bound, 2.0 * bound).astype(np.int64)
    whole[(whole * whole).sum(axis=1) > bound * bound] = 0
    return whole


def rounded(weights: Floats) -> Floats:
    """Weights in units, as whole doubles."""
    whole: Floats = np.rint(np.clip(weights, -_LARGEST_WEIGHT, _LARGEST_WEIGHT) * _WEIGHT)
    return whole


def _rows(vectors: Vectors, training: Training) -> TrainingRows:
    features = training.features.units(vectors.values, vectors.known, len(vectors.person))
    name = training.target.column.name
    known = vectors.known[name]
    residual: Callable[[Floats, Integers], Integers]
    if isinstance(training.target, OneHot):
        target, residual = np.where(known, vectors.values[name], 0).astype(np.int64), logistic
    else:
        scaled = training.target.units(vectors.values[name], known)[:, 0]
        target, residual = np.floor(scaled * (_RESIDUAL / UNIT)).astype(np.int64), linear
    return TrainingRows(vectors.person, vectors.persons, features.astype(np.int16), target, known, residual)


def logistic(products: Floats, target: Integers) -> Integers:
    """The probability of 1 minus the target, 0 or 1, in units: from a table of 2^15 places."""
    place = np.floor(products * (_FINE / _PRODUCT))
    inside = np.clip(place, -_REACH * _FINE, _REACH * _FINE - 1).astype(np.int64) + _REACH * _FINE
    residual: Integers = _curve()[inside] - target * _RESIDUAL
    return residual


def linear(products: Floats, target: Integers) -> Integers:
    """The prediction, clamped to [−2, 2], minus the target, in units."""
    prediction = np.floor(products * (_RESIDUAL / _PRODUCT))
    residual: Integers = np.clip(prediction, -2 * _RESIDUAL, 2 * _RESIDUAL).astype(np.int64) - target
    return residual


@lru_cache(maxsize=1)
def _curve() -> Any:
    """The logistic function in units, in the middle of each place. A public table: how it was rounded is no matter."""
    places = (np.arange(-_REACH * _FINE, _REACH * _FINE) + 0.5) / _FINE
    return np.rint(_RESIDUAL / (1 + np.exp(-places))).astype(np.int64)
