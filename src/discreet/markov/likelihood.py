"""Fits a Markov random field to noisy marginals by penalised least squares.

Let y_m be the counts of a clique m, each with noise of deviation σ_m, and p a distribution over all rows, N of them.
`fit` minimises, over p that are 0 at structural zeros, with r_m = c·σ_m and c the `shrinkage`,

    Σ_m ‖N·p_m − y_m‖²/(2·r_m) + N·KL(p ‖ q),

weighted least squares as in McKenna, Sheldon & Miklau (2019) with a prior: q is the product of the single columns'
counts. A cell of k rows is drawn to what q and the other measurements say of it with weight r_m against k: small cells,
of which the noise hides everything, give way, and large ones stay as measured. r_m grows like σ_m, not like its square,
and one c serves from epsilon 1 to 10: found by trial on public tables (bench/synthesis.py).

With p ∝ q·e^(Σ θ_m) the optimum is also that of the dual, which is smooth, strictly convex and unconstrained:

    N·log Σ_x q(x)·e^(Σ_m θ_m(x)) − Σ_m ⟨θ_m, y_m⟩ + Σ_m r_m·‖θ_m‖²/2.

Its gradient N·p_m − y_m + r_m·θ_m needs marginals on measured cliques only. It is minimised by a limited-memory
quasi-Newton method (Nocedal & Wright 2006, Algorithm 7.4) whose first guess of the curvature is max(N·p_m, y_m) + r_m:
the curvature itself, or where a cell is far too small the curvature at the optimum. scipy's L-BFGS-B
takes no such curvature: on Adult, in the many short fits between rounds, it ends farther from the optimum after as many
evaluations, and takes a little longer; in the one long fit at the end neither is always nearer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionError
from discreet.markov.calibrate import Calibrator, Floats, aligned, summed, zeros_by_clique
from discreet.markov.domain import Clique, Domain
from discreet.markov.field import MarkovRandomField
from discreet.markov.measurement import Average, Key, MarginalMeasurement, averages, total_rows
from discreet.markov.tree import junction_tree

LIMIT = 1 << 22
SHRINKAGE = 0.6
_MEMORY, _HALVINGS, _FAR = 8, 12, 100.0


def fit(
    domain: Domain,
    measurements: Sequence[MarginalMeasurement],
    *,
    potentials: Mapping[Key, Floats] | None = None,
    zeros: Mapping[Clique, NDArray[np.bool_]] | None = None,
    iterations: int = 100,
    limit: int = LIMIT,
    shrinkage: float = SHRINKAGE,
    rows: int | None = None,
) -> MarkovRandomField:
    """The Markov random field that fits the measurements, after so many iterations or when they stop to improve it.

    `potentials` are those of an earlier field, to start from. `zeros` says for cliques which of their cells are
    impossible. `limit` is the largest number of cells that the junction tree may have. The number of `rows`, where it
    is not known, is the weighted average of all that was measured, and never negative.
    Raises QuestionError where the tree would be larger, or the zeros leave no row possible.
    """
    for one in measurements:
        one.check(domain)
    known, total = averages(measurements), total_rows(measurements) if rows is None else float(rows)
    tree = junction_tree(domain, [one.like.clique for one in known] + list(zeros or {}))
    if tree.cells > limit:
        raise QuestionError(
            "domain",
            f"the model would have {tree.cells:,} cells, above the limit of {limit:,}",
            where=", ".join(tree.largest),
            fix="measure fewer columns together, or give them fewer and coarser cells",
        )
    forbidden = zeros_by_clique(domain, zeros or {})
    homes = outermost([one.like.clique for one in known])
    calibrator = Calibrator(tree, [*homes, *forbidden])
    problem = _Dual(calibrator, known, homes, list(forbidden.values()), max(total, 1.0), shrinkage)
    start = [(potentials or {}).get(one.like.key, guess) for one, guess in zip(known, problem.prior, strict=True)]
    found = minimised(problem, problem.joined(start), iterations)
    problem.calibrate(found)
    thetas = {one.like.key: theta for one, theta in zip(known, problem.split(found), strict=True)}
    return MarkovRandomField(tree, tuple(calibrator.beliefs), total, thetas)


def outermost(cliques: Sequence[Clique]) -> list[Clique]:
    """The maximal cliques: those that no other clique contains."""
    found: list[Clique] = []
    for clique in sorted(set(cliques), key=lambda clique: (-len(clique), clique)):
        if not any(set(clique) <= set(other) for other in found):
            found.append(clique)
    return found


def positive(values: Floats, sigma: float, total: float) -> Floats:
    """Counts above 0 that add up to `total`, from counts with noise.

    Each is the mean of a normal distribution around value − shift, cut off at 0: what is known of a count that is not
    negative. One shift for all makes the sum right.
    """
    low, high = float(values.min()) - total - 40 * sigma, float(values.max()) + 40 * sigma
    for _ in range(36):
        middle = (low + high) / 2
        low, high = (middle, high) if _cut(values - middle, sigma).sum() > total else (low, middle)
    return np.maximum(_cut(values - low, sigma), 1e-3 * sigma)


def _cut(means: Floats, sigma: float) -> Floats:
    """The mean of N(mean, σ²) given that it is above 0: mean + σ·φ(z)/Φ(z), z = mean/σ; near σ/|z| far below."""
    z = means / sigma
    near = np.maximum(z, -6.0)
    below = np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in near.ravel().tolist()]).reshape(near.shape)
    ordinary = near + np.exp(-near * near / 2) / math.sqrt(2 * math.pi) / below
    far = np.minimum(z, -6.0)
    return sigma * np.where(z > -6.0, ordinary, -1 / far + 2 / far**3)


@dataclass
class _Dual:
    """The dual problem in one long vector: the potentials of each average, one after the other."""

    calibrator: Calibrator
    known: Sequence[Average]
    homes: Sequence[Clique]
    forbidden: Sequence[Floats]
    total: float
    shrinkage: float
    prior: list[Floats] = field(init=False)

    def __post_init__(self) -> None:
        self.prior = [self._prior(one) for one in self.known]
        self.centre = self.joined(self.prior)
        self.target = self.joined([one.values for one in self.known])
        self.ridge = self.joined([np.full(one.values.shape, self.shrinkage * one.sigma) for one in self.known])
        self.largest = np.maximum(self.target, 0.0)
        self.sizes = [one.values.size for one in self.known]
        self.home_of = [
            next(place for place, home in enumerate(self.homes) if set(one.like.clique) <= set(home))
            for one in self.known
        ]

    def _prior(self, one: Average) -> Floats:
        """The logarithm of q's factor, where a single column was measured cell by cell; nothing elsewhere."""
        if len(one.like.clique) > 1 or one.like.key[1]:
            return np.zeros(one.values.shape)
        return np.log(positive(one.values, one.sigma, self.total) / self.total)

    def joined(self, parts: Sequence[Floats]) -> Floats:
        return np.concatenate([np.ravel(part) for part in parts]) if parts else np.zeros(0)

    def split(self, vector: Floats) -> list[Floats]:
        parts = np.split(vector, np.cumsum(self.sizes)[:-1]) if self.known else []
        return [part.reshape(one.values.shape) for part, one in zip(parts, self.known, strict=True)]

    def calibrate(self, vector: Floats) -> float:
        domain = self.calibrator.tree.domain
        factors = [np.zeros(domain.shape(home)) for home in self.homes]
        for one, theta, home in zip(self.known, self.split(vector), self.home_of, strict=True):
            factors[home] += aligned(one.like.spread(theta), one.like.clique, self.homes[home])
        return self.calibrator.run([*factors, *self.forbidden])

    def value(self, vector: Floats) -> tuple[float, Floats, Floats]:
        """The dual, its gradient, and the diagonal of its curvature, nearly."""
        constant = self.calibrate(vector)
        marginals = [self.calibrator.marginal(place) for place in range(len(self.homes))]
        expected = self.total * self.joined(
            [
                one.like.coarse(summed(marginals[home], self.homes[home], one.like.clique))
                for one, home in zip(self.known, self.home_of, strict=True)
            ]
        )
        away = vector - self.centre
        bent = self.ridge * away
        value = self.total * constant - float(vector @ self.target) + float(away @ bent) / 2
        return value, expected - self.target + bent, np.maximum(expected, self.largest) + self.ridge


Move = tuple[Floats, Floats, float]


def minimised(problem: _Dual, start: Floats, iterations: int) -> Floats:
    """The vector found after so many steps, or when no step lowers the dual by a ten-thousandth for each number."""
    place, least = start, 1e-4 * len(start)
    value, gradient, curvature = problem.value(place)
    moves: list[Move] = []
    for _ in range(iterations):
        direction = -_two_loops(gradient, moves, curvature)
        slope = float(direction @ gradient)
        length = min(1.0, _FAR / max(1e-300, float(np.abs(direction).max(initial=0.0))))
        if -slope * length <= least:
            break
        for _ in range(_HALVINGS):
            moved = place + length * direction
            new_value, new_gradient, new_curvature = problem.value(moved)
            if new_value <= value + 1e-4 * length * slope:
                break
            length /= 2.5
        else:
            break
        step, change = moved - place, new_gradient - gradient
        product = float(step @ change)
        if product > 1e-12 * float(step @ step):
            moves = [*moves[1 - _MEMORY :], (step, change, product)]
        place, value, gradient, curvature = moved, new_value, new_gradient, new_curvature
    return place


def _two_loops(gradient: Floats, moves: Sequence[Move], curvature: Floats) -> Floats:
    """The gradient times an approximate inverse of the curvature, which is positive definite."""
    direction, weights = gradient.copy(), []
    for step, change, product in reversed(moves):
        weights.append(float(step @ direction) / product)
        direction -= weights[-1] * change
    direction /= curvature
    if moves:
        _, change, product = moves[-1]
        direction *= product / float(change @ (change / curvature))
    for (step, change, product), weight in zip(moves, reversed(weights), strict=True):
        direction += (weight - float(change @ direction) / product) * step
    return direction
