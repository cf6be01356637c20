"""Strategy selection: which measurements answer a workload with the least error, and how the budget is split among
them.

Marginals are measured as residuals (Gaussian noise) or as histograms (Laplace noise): together the base. What else is
asked of the same columns makes a block, which rows of weights answer. The error at a share p of the price is T/p
(Gaussian, p a part of μ²) or T/p² (Laplace, p a part of ε), with T the error at the whole price. So by Lagrange the
least sum takes shares in proportion to T^(1/2) or T^(1/3), and is (Σ T^(1/2))² or (Σ T^(1/3))³.

What is made small is the sum of the variances of all answers, where the ranges or prefixes of a column count as its
histogram's cells do, each held against the variance it would have from them; under two bounds. No answer has a larger
variance than by a question of its own, one of many with equal shares of the price. No item (a marginal, all ranges of a
column, a count) has a larger one in the mean than if every item had an equal share, ranges being summed from their
histogram; so none is drowned by another with more cells. The bounds are met by weights: an item above its bound gets
more, until it is there (the multipliers of the convex problem, found by iteration).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.mechanisms import Gaussian, Laplace, variance
from discreet.trusted.ring_a.exact import ceiling, floor, sqrt_ceiling
from discreet.trusted.ring_c.linear_queries import Linear
from discreet.workload import histograms, residuals
from discreet.workload.items import AnyIntegers, Clique, Floats, Intervals, Item, Marginal
from discreet.workload.optimum import independent, inverse, optimum, tree, whole
from discreet.workload.reconstruct import Reconstruction, on_cells
from discreet.workload.residuals import Shares

GAUSSIAN, LAPLACE = "gaussian", "laplace"

MOST_ROWS = 1_200
"""Rows of weights that blocks may have in all."""

_DENSE_CELLS, _DENSE_ATOMS = 1 << 14, 300
_ROUNDS, _DENSE_ROUNDS, _TRIES = 60, 8, 4
_AIM, _STEP, _HEAVIEST = 0.998, 1.5, 1e9
_SLACK = 1 + 1e-9
_EXACT = 1e-12  # a smaller variance, at prices that buy exact answers, is as good as none
_ROUNDING = 1 + Fraction(1, 10**12)  # so that μ of all together is not above the price when it is rounded up
_BRANCHES = (2, 3, 4, 8, 16)
_LATTICE, _FINE, _MOST_BITS = 1 << 12, 24, 60


@dataclass(frozen=True)
class NoiseBudget:
    """A kind of noise and the budget for it: μ for Gaussian noise, ε for Laplace noise."""

    kind: str
    amount: Fraction
    rows_per_person: int

    @property
    def power(self) -> int:
        """The variance of a measurement falls with this power of its share: of μ², or of ε."""
        return 1 if self.kind == GAUSSIAN else 2

    def mechanism(self, share: Fraction, sensitivity: int) -> Gaussian | Laplace:
        """Noise that takes at most this share of the price, for rows of that sensitivity."""
        if self.kind == GAUSSIAN:
            square = sensitivity * self.rows_per_person**2 / (share * self.amount**2)
            return Gaussian(ceiling(sqrt_ceiling(square * _ROUNDING), 15))
        return Laplace(sensitivity * self.rows_per_person / floor(share * self.amount, 15))

    def alone(self, questions: int) -> float:
        """The variance of a count that is one of so many questions with equal shares."""
        return max(variance(self.mechanism(Fraction(1, questions), 1)), _EXACT)


@dataclass(frozen=True, eq=False)
class Block:
    """Items over some columns, and the atoms that their queries do not divide."""

    columns: Clique
    members: tuple[int, ...]
    atoms: AnyIntegers = field(repr=False)
    queries: tuple[AnyIntegers, ...] = field(repr=False)
    """What each item asks, on atoms: its queries, or of ranges every cell."""
    grams: tuple[Floats, ...] = field(repr=False)
    """Per item, the mean of q·qᵀ over its queries, of shape (atoms, atoms); empty unless the item is a range."""

    @property
    def every(self) -> AnyIntegers:
        """What all items ask, one below another, on atoms."""
        return np.concatenate(self.queries)

    def gram(self, weights: Sequence[float]) -> Floats:
        """The Gram matrix of the weighted queries."""
        found = np.zeros((self.queries[0].shape[1],) * 2)
        for place, rows, own in zip(self.members, self.queries, self.grams, strict=True):
            asked = rows.astype(float)
            found += weights[place] * (own if own.size else asked.T @ asked / len(asked))
        return found

    def errors(self, answers: Floats) -> dict[int, float]:
        """Of each item the mean over its queries of ‖q·answers‖²."""
        found, covariance = {}, answers @ answers.T
        for place, rows, own in zip(self.members, self.queries, self.grams, strict=True):
            squares = (own * covariance).sum() if own.size else ((rows @ answers) ** 2).sum() / len(rows)
            found[place] = float(squares)
        return found


@dataclass(frozen=True, eq=False)
class Answered:
    """Rows that answer a block, and at the whole price the mean variance of each item."""

    block: Block
    rows: AnyIntegers = field(repr=False)
    errors: Mapping[int, float]

    def weighted_error(self, weights: Sequence[float]) -> float:
        """The items' mean variances, weighted and added up."""
        return sum(weights[place] * own for place, own in self.errors.items())


@dataclass(frozen=True, eq=False)
class Strategy:
    """Measurements, and for each item the place of the rows that answer it; None where marginals do."""

    noise: NoiseBudget
    measurements: tuple[Linear, ...]
    where: tuple[int | None, ...]
    reconstruction: Reconstruction = field(repr=False)
    variances: tuple[Floats, ...] = field(repr=False)
    """Of each item's answers, in rows²."""

    def total(self, items: Sequence[Item]) -> float:
        """The objective: the weighted sum of variances, in rows²."""
        return sum(item.weight * float(own.mean()) for item, own in zip(items, self.variances, strict=True))


@dataclass(frozen=True)
class VarianceLimits:
    """Upper bounds: of the variance of every answer, and of the mean variance of each item, in rows²."""

    answer: float
    means: tuple[float, ...]

    @classmethod
    def of(cls, items: Sequence[Item], noises: Sequence[NoiseBudget]) -> VarianceLimits:
        """One by one: every question by itself; every item by itself."""
        answer = min(noise.alone(sum(item.questions for item in items)) for noise in noises)
        fair = min(noise.alone(len(items)) for noise in noises)
        return cls(answer, tuple(min(answer, fair * item.cells_summed) for item in items))

    def ratios(self, one: Strategy) -> list[float]:
        """Of each item how far it is above the bounds, or below 1 how far it is below."""
        return [
            max(float(own.mean()) / mean, float(own.max()) / self.answer)
            for own, mean in zip(one.variances, self.means, strict=True)
        ]

    def held(self, one: Strategy) -> bool:
        """Whether every answer's variance is within its bound, but for rounding."""
        return max(float(own.max()) for own in one.variances) <= self.answer * _SLACK

    def fair(self, one: Strategy) -> bool:
        """Whether all bounds are held, each item's too, but for rounding."""
        return max(self.ratios(one)) <= _SLACK


def block(items: Sequence[Item], members: Sequence[int], sizes: Sequence[int]) -> Block:
    """The block of some items, over all their columns."""
    columns = tuple(sorted({column for place in members for column in items[place].columns}))
    shape = [sizes[column] for column in columns]
    signs = [_signs(items[place], columns, shape) for place in members]
    atoms = _atoms(np.concatenate(signs))
    cells = np.zeros(int(atoms.max(initial=-1)) + 1, np.int64)
    cells[atoms[atoms >= 0]] = np.flatnonzero(atoms >= 0)
    grams: list[Floats] = []
    for place, sign in zip(members, signs, strict=True):
        item, own = items[place], np.zeros((0, 0))
        if isinstance(item, Intervals):
            rows = sign[:, cells].astype(float)
            own = rows.T @ item.gram() @ rows / item.queries
        grams.append(own)
    return Block(columns, tuple(members), atoms, tuple(sign[:, cells] for sign in signs), tuple(grams))


def _signs(item: Item, columns: Clique, shape: Sequence[int]) -> AnyIntegers:
    """The weights that distinguish cells: an item's queries, or for ranges each ordered cell."""
    if not isinstance(item, Intervals):
        return on_cells(item, columns, shape)
    each = np.zeros((item.ordered, item.shape[0]), np.int64)
    np.fill_diagonal(each, 1)
    return _repeated(each, item.columns, columns, shape)


def _atoms(signs: AnyIntegers) -> AnyIntegers:
    """For each cell the number of its atom, in the order in which cells first show them; −1 where no row is 1."""
    packed = np.ascontiguousarray(np.packbits(signs.astype(bool), axis=0).T)
    signatures = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, places, found = np.unique(signatures, return_index=True, return_inverse=True)
    places = np.where(signs[:, places].any(axis=0), places, -1)
    order = np.argsort(np.argsort(places)) - int((places < 0).sum())
    atoms: AnyIntegers = order[found.reshape(-1)]
    return atoms


def _repeated(each: AnyIntegers, own: Clique, columns: Clique, shape: Sequence[int]) -> AnyIntegers:
    """Weights on the cells of `own`, on those of more columns."""
    spread = each.reshape(len(each), *(shape[place] if column in own else 1 for place, column in enumerate(columns)))
    return np.broadcast_to(spread, (len(each), *shape)).reshape(len(each), -1)


class WorkloadPlanner:
    """Searches the measurements with the least error, for one workload and one kind of noise."""

    def __init__(
        self, items: Sequence[Item], sizes: Sequence[int], noise: NoiseBudget, bounds: VarianceLimits | None = None
    ) -> None:
        self.items, self.sizes, self.noise = tuple(items), tuple(sizes), noise
        self.bounds = VarianceLimits.of(items, [noise]) if bounds is None else bounds
        self._weights = [item.weight for item in items]
        self._answered: dict[tuple[int, ...], Answered] = {}

    def best(self) -> Strategy:
        """The strategy with the least error among those found that keep the bounds; asking one by one is among them."""
        return chosen([*self.dense(), self.planned(), self.one_by_one()], self.bounds, self.items)

    def planned(self) -> Strategy:
        """Marginals in the base; what else is asked, by columns: in the base where that holds it and it is better."""
        marginals = [place for place, item in enumerate(self.items) if isinstance(item, Marginal)]
        groups: dict[Clique, list[int]] = {}
        for place, item in enumerate(self.items):
            if not isinstance(item, Marginal):
                groups.setdefault(item.columns, []).append(place)
        base = list(marginals)
        error = self._split(base, groups, self._weights)[0]
        for columns, members in list(groups.items()):
            alike = [place for place in marginals if self.items[place].columns == columns and len(columns) <= 1]
            rest = {other: known for other, known in groups.items() if other != columns}
            tries = [([*base, *members], rest)]
            if alike:
                without = [place for place in base if place not in alike]
                tries.append((without, {**groups, columns: [*members, *alike]}))
            for one, other in tries:
                if self._held(one):
                    new = self._split(one, other, self._weights)[0]
                    if new < error * (1 - 1e-9):
                        base, groups, error = one, other, new
        return self._balanced(base, groups)

    def _held(self, base: Sequence[int]) -> bool:
        """Whether the marginals of a base hold what else is asked of it."""
        cliques = [set(self.items[place].columns) for place in base if isinstance(self.items[place], Marginal)]
        return all(any(set(self.items[place].columns) <= clique for clique in cliques) for place in base)

    def _balanced(self, base: Sequence[int], groups: Mapping[Clique, Sequence[int]]) -> Strategy:
        """The least error under the bounds. Where single answers of an item are above theirs, its mean's is lowered."""
        means = list(self.bounds.means)
        for _ in range(_TRIES):
            found = self._under(means, base, groups)
            ratios = self.bounds.ratios(found)
            if max(ratios) <= _SLACK:
                break
            means = [mean / max(1.0, ratio / _AIM) for mean, ratio in zip(means, ratios, strict=True)]
        return found

    def _under(self, means: Sequence[float], base: Sequence[int], groups: Mapping[Clique, Sequence[int]]) -> Strategy:
        """The least error with no item's mean above these, as far as each item's own measurements say."""
        weights, unit = list(self._weights), float(self.noise.rows_per_person / self.noise.amount) ** 2
        best: tuple[float, Shares, list[tuple[Answered, float]]] = (math.inf, {}, [])
        for _ in range(_ROUNDS):
            _, shares, blocks = self._split(base, groups, weights)
            own = residuals.means([self.items[place] for place in base], self._precision(shares), self.sizes)
            found = dict(zip(base, own, strict=True))
            for one, part in blocks:
                found |= {place: error / part**self.noise.power for place, error in one.errors.items()}
            ratios = [found[place] * unit / mean for place, mean in enumerate(means)]
            if max(ratios) < best[0]:
                best = max(ratios), shares, blocks
            if max(ratios) <= 1:
                break
            weights = [
                min(_HEAVIEST * least, max(least, weight * (ratio / _AIM) ** _STEP))
                for least, weight, ratio in zip(self._weights, weights, ratios, strict=True)
            ]
        return self._strategy(best[1], [(one.block, one.rows, part) for one, part in best[2]])

    def _precision(self, shares: Shares) -> dict[Clique, float]:
        """How precisely measurements with these shares tell each component, where a whole share has variance 1 or 2."""
        if self.noise.kind == GAUSSIAN:
            return {kept: share / residuals.cost(kept, self.sizes) for kept, share in shares.items()}
        return histograms.precision(shares, self.sizes)

    def dense(self) -> list[Strategy]:
        """One block of the whole workload, where it is small: then nothing is lost between its parts."""
        columns = tuple(sorted({column for item in self.items for column in item.columns}))
        asked = sum(item.ordered if isinstance(item, Intervals) else item.queries for item in self.items)
        shape = [self.sizes[column] for column in columns]
        if len(self.items) == 1 or math.prod(shape) > _DENSE_CELLS or asked > _DENSE_ATOMS:
            return []
        if all(isinstance(item, Marginal) for item in self.items) and self.noise.kind == GAUSSIAN:
            return []
        if int(_atoms(np.concatenate([_signs(item, columns, shape) for item in self.items])).max()) >= _DENSE_ATOMS:
            return []
        one, weights, found = block(self.items, range(len(self.items)), self.sizes), list(self._weights), []
        for _ in range(_DENSE_ROUNDS):
            answered = self._rows(one, weights)
            found.append(self._strategy({}, [(one, answered.rows, 1.0)]))
            ratios = self.bounds.ratios(found[-1])
            if max(ratios) <= _SLACK:
                break
            weights = [weight * max(1.0, ratio / _AIM) ** 1.5 for weight, ratio in zip(weights, ratios, strict=True)]
        return found

    def one_by_one(self) -> Strategy:
        """Every query a question of its own, with an equal share; answers then made to agree.

        All ranges of a column get their questions' shares for its histogram. A range adds up no more cells than there
        are ranges, so its variance is no larger than by a question of its own, for either noise.
        """
        total = sum(item.questions for item in self.items)
        cliques: Shares = {}
        blocks = []
        for item in self.items:
            if isinstance(item, Marginal):
                cliques[item.columns] = cliques.get(item.columns, 0.0) + 1 / total
        rest = [place for place, item in enumerate(self.items) if not isinstance(item, Marginal)]
        alike = {(self.items[place].columns, isinstance(self.items[place], Intervals)) for place in rest}
        for columns, ranges in sorted(alike):
            members = [
                place
                for place in rest
                if self.items[place].columns == columns and isinstance(self.items[place], Intervals) == ranges
            ]
            one = block(self.items, members, self.sizes)
            rows = np.eye(one.every.shape[1], dtype=np.int64) if ranges else one.every
            blocks.append((one, rows, sum(self.items[place].questions for place in members) / total))
        shares = cliques if self.noise.kind == LAPLACE else residuals.of_histograms(cliques, self.sizes)
        return self._strategy(shares, blocks)

    def _split(
        self, base: Sequence[int], groups: Mapping[Clique, Sequence[int]], weights: Sequence[float]
    ) -> tuple[float, Shares, list[tuple[Answered, float]]]:
        """The least error for a base and blocks, and what each takes of the price."""
        make = residuals if self.noise.kind == GAUSSIAN else histograms
        total, shares = make.least([(self.items[place], weights[place]) for place in base], self.sizes)
        blocks = [self._answering(tuple(members)) for members in groups.values()]
        power = 1 / (1 + self.noise.power)
        parts = [total**power, *(one.weighted_error(weights) ** power for one in blocks)]
        price = sum(parts) or 1.0
        shares = {kept: share * parts[0] / price for kept, share in shares.items()}
        chosen_rows = [(one, part / price) for one, part in zip(blocks, parts[1:], strict=True)]
        return price ** (1 + self.noise.power), shares, chosen_rows

    def _answering(self, members: tuple[int, ...]) -> Answered:
        """The rows that answer the block of these items."""
        if members not in self._answered:
            self._answered[members] = self._rows(block(self.items, members, self.sizes), self._weights)
        return self._answered[members]

    def _rows(self, one: Block, weights: Sequence[float]) -> Answered:
        """The rows that answer a block with the least error, of those that are tried."""
        tries = [one.every]
        atoms = one.every.shape[1]
        if atoms <= MOST_ROWS:
            tries.append(np.eye(atoms, dtype=np.int64))
        if self.noise.kind == GAUSSIAN:
            heaviest = max(weights[place] for place in one.members)
            gram = one.gram([weight / heaviest for weight in weights])
            tries.append(whole(optimum(gram).rows, independent(one.every)))
        elif len(one.columns) == 1 and any(own.size for own in one.grams):
            tries += [tree(atoms, branches) for branches in _BRANCHES if branches < atoms]
        found = [Answered(one, rows, self._errors(one, rows)) for rows in tries]
        return min(found, key=lambda answered: answered.weighted_error(weights))

    def _errors(self, one: Block, rows: AnyIntegers) -> dict[int, float]:
        """The mean variances of a block's items at the whole price, from these rows."""
        if self.noise.kind == GAUSSIAN:
            noise = float((rows.astype(float) ** 2).sum(axis=0).max())
        else:
            noise = 2 * float(np.abs(rows).sum(axis=0).max()) ** 2
        scale = float(np.abs(rows).max()) or 1.0
        errors = one.errors(inverse(rows / scale))
        return {place: own * noise / scale**2 for place, own in errors.items()}

    def _residuals(self, shares: Mapping[Clique, Fraction]) -> list[Linear]:
        """Residuals with these shares of the price: all with one sigma, each on a lattice that is fine accordingly."""
        shapes = {columns: tuple(self.sizes[column] for column in columns) for columns in shares}
        wanted: dict[Clique, Fraction] = {}
        for columns, share in shares.items():
            cost = Fraction(math.prod(size - 1 for size in shapes[columns]), math.prod(shapes[columns]))
            mechanism = self.noise.mechanism(share / cost, 1)
            assert isinstance(mechanism, Gaussian)
            wanted[columns] = mechanism.sigma * math.prod(shapes[columns])
        largest = max(wanted.values(), default=Fraction(1))
        sigma = Fraction(2) ** (math.ceil(largest).bit_length() + _FINE)
        found = []
        for columns, shape in shapes.items():
            unit = math.prod(shape) * int(sigma / wanted[columns])
            found.append(Linear(columns, shape, Gaussian(sigma), residual=unit))
        return found

    def _sums(self, one: Block, rows: AnyIntegers, share: Fraction) -> Linear:
        """Rows of weights with this share of the price. With Gaussian noise they are multiplied until rounding the
        noise adds nothing."""
        squared = self.noise.kind == GAUSSIAN
        norm = max(sum(entry**2 if squared else abs(entry) for entry in column) for column in rows.T.tolist())
        mechanism = self.noise.mechanism(share, norm)
        if isinstance(mechanism, Gaussian) and mechanism.sigma < _LATTICE:
            room = _MOST_BITS - int(np.abs(rows).max()).bit_length()
            bits = min(room, math.ceil(_LATTICE / mechanism.sigma).bit_length())
            rows, mechanism = rows << bits, self.noise.mechanism(share, norm << (2 * bits))
        shape = tuple(self.sizes[column] for column in one.columns)
        return Linear(one.columns, shape, mechanism, rows=rows, atoms=one.atoms)

    def _strategy(self, shares: Shares, blocks: Sequence[tuple[Block, AnyIntegers, float]]) -> Strategy:
        """Measurements with these shares of the price."""
        noise = self.noise
        total = sum(map(Fraction, [*shares.values(), *(share for *_, share in blocks)]), Fraction(0))
        parts = {columns: Fraction(share) / total for columns, share in shares.items()}
        measurements = self._residuals(parts) if noise.kind == GAUSSIAN else []
        if noise.kind == LAPLACE:
            for columns, share in parts.items():
                shape = tuple(self.sizes[column] for column in columns)
                measurements.append(Linear(columns, shape, noise.mechanism(share, 1)))
        where: list[int | None] = [None] * len(self.items)
        for one, rows, part in blocks:
            for place in one.members:
                where[place] = len(measurements)
            measurements.append(self._sums(one, rows, Fraction(part) / total))
        found = Reconstruction(self.sizes, measurements)
        variances = tuple(found.variances(item, place) for item, place in zip(self.items, where, strict=True))
        return Strategy(noise, tuple(measurements), tuple(where), found, variances)


def chosen(found: Sequence[Strategy], bounds: VarianceLimits, items: Sequence[Item]) -> Strategy:
    """The one with the least error among those that keep both bounds, else the first of them."""
    held = [one for one in found if bounds.held(one)] or list(found)
    fair = [one for one in held if bounds.fair(one)] or held
    return min(fair, key=lambda one: one.total(items))


def strategy(items: Sequence[Item], sizes: Sequence[int], noises: Sequence[NoiseBudget]) -> tuple[Strategy, float]:
    """The best strategy, with whichever of these kinds of noise; and the variance of a count, asked one by one."""
    bounds = VarianceLimits.of(items, noises)
    found = [WorkloadPlanner(items, sizes, noise, bounds).best() for noise in noises]
    return chosen(found, bounds, items), bounds.answer
