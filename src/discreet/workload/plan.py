"""Which measurements to make for a workload, and how the price is shared among them.

Marginals are measured as residuals (Gaussian noise) or as histograms (Laplace noise): together the base. What else is
asked of the same columns makes a block, which rows of weights answer. The error at a share p of the price is T/p
(Gaussian, p a part of μ²) or T/p² (Laplace, p a part of ε), with T the error at the whole price. So by Lagrange the
least sum takes shares in proportion to T^(1/2) or T^(1/3), and is (Σ T^(1/2))² or (Σ T^(1/3))³.

The error that is made small is the sum over the items (a marginal, all ranges of a column, a count) of their mean
variance, each over the variance that it would have by itself at the same price, so that no item is drowned by another
with more cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.door.workload import Linear
from discreet.exact import ceiling, floor, sqrt_ceiling
from discreet.mechanisms import Gaussian, Laplace
from discreet.workload import histograms, residuals
from discreet.workload.items import Clique, Floats, Integers, Intervals, Item, Marginal
from discreet.workload.optimum import independent, inverse, optimum, tree, whole
from discreet.workload.reconstruct import NO_NOISE, Reconstruction, on_cells
from discreet.workload.residuals import Shares

GAUSSIAN, LAPLACE = "gaussian", "laplace"

MOST_ROWS = 1_200
"""Rows of weights that blocks may have in all."""

_DENSE_CELLS, _DENSE_ATOMS = 1 << 14, 300
_ROUNDS = 6
_SLACK = 1 + 1e-9
_ROUNDING = 1 + Fraction(1, 10**12)  # so that μ of all together is not above the price when it is rounded up
_BRANCHES = (2, 3, 4, 8, 16)
_LATTICE, _FINE = 1 << 12, 24


@dataclass(frozen=True)
class Noise:
    """One kind of noise and how much of it the price allows: μ of Gaussian, ε of Laplace noise."""

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
        return max(self.mechanism(Fraction(1, questions), 1).variance, NO_NOISE**2)


@dataclass(frozen=True, eq=False)
class Block:
    """Items over some columns, the atoms that their queries do not divide, and the weighted queries' Gram matrix."""

    columns: Clique
    members: tuple[int, ...]
    atoms: Integers = field(repr=False)
    queries: Integers = field(repr=False)
    """What is asked, on atoms: the queries themselves, or every atom where ranges are asked."""
    gram: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Strategy:
    """Measurements, and for each item the place of the rows that answer it; None where marginals do."""

    noise: Noise
    measurements: tuple[Linear, ...]
    where: tuple[int | None, ...]
    reconstruction: Reconstruction = field(repr=False)
    variances: tuple[Floats, ...] = field(repr=False)
    """Of each item's answers, in rows²."""

    def mean_error(self, items: Sequence[Item]) -> float:
        """What is made small, over that of a count that has the price for itself."""
        means = (float(own.mean()) / item.cells_summed for own, item in zip(self.variances, items, strict=True))
        return sum(means) / self.noise.alone(1)


def block(items: Sequence[Item], members: Sequence[int], weights: Sequence[float], sizes: Sequence[int]) -> Block:
    """The block of some items, over all their columns."""
    columns = tuple(sorted({column for place in members for column in items[place].columns}))
    shape = [sizes[column] for column in columns]
    signs = [_signs(items[place], columns, shape) for place in members]
    atoms = _atoms(np.concatenate(signs))
    cells = np.zeros(int(atoms.max(initial=-1)) + 1, np.int64)
    cells[atoms[atoms >= 0]] = np.flatnonzero(atoms >= 0)
    gram = np.zeros((len(cells), len(cells)))
    queries: list[Integers] = []
    for place, sign in zip(members, signs, strict=True):
        item, rows = items[place], sign[:, cells]
        queries.append(rows)
        weighted = rows.astype(float)
        part = weighted.T @ item.gram() @ weighted if isinstance(item, Intervals) else weighted.T @ weighted
        gram += weights[place] / item.queries * part
    return Block(columns, tuple(members), atoms, np.concatenate(queries), gram)


def _signs(item: Item, columns: Clique, shape: Sequence[int]) -> Integers:
    """What tells cells apart: an item's queries; of ranges, each ordered cell."""
    if not isinstance(item, Intervals):
        return on_cells(item, columns, shape)
    each = np.zeros((item.ordered, item.shape[0]), np.int64)
    np.fill_diagonal(each, 1)
    return _repeated(each, item.columns, columns, shape)


def _atoms(signs: Integers) -> Integers:
    """For each cell the number of its atom, in the order in which cells first show them; −1 where no row is 1."""
    packed = np.ascontiguousarray(np.packbits(signs.astype(bool), axis=0).T)
    signatures = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, places, found = np.unique(signatures, return_index=True, return_inverse=True)
    places = np.where(signs[:, places].any(axis=0), places, -1)
    order = np.argsort(np.argsort(places)) - int((places < 0).sum())
    atoms: Integers = order[found.reshape(-1)]
    return atoms


def _repeated(each: Integers, own: Clique, columns: Clique, shape: Sequence[int]) -> Integers:
    """Weights on the cells of `own`, on those of more columns."""
    spread = each.reshape(len(each), *(shape[place] if column in own else 1 for place, column in enumerate(columns)))
    return np.broadcast_to(spread, (len(each), *shape)).reshape(len(each), -1)


class Planner:
    """Looks for the measurements with the least error, for one workload and one kind of noise."""

    def __init__(self, items: Sequence[Item], sizes: Sequence[int], noise: Noise) -> None:
        self.items, self.sizes, self.noise = tuple(items), tuple(sizes), noise
        self._rows: dict[tuple[tuple[int, ...], tuple[float, ...]], tuple[Integers, float]] = {}

    def best(self, allowed: float) -> Strategy:
        """The strategy with the least error among those found in which no answer's variance is above `allowed`, that of
        asking one by one. There is always one where that is what this noise gives: asking one by one is tried too."""
        weights = [1 / item.cells_summed for item in self.items]
        found: list[Strategy] = []
        questions = sum(item.questions for item in self.items)
        possible = self.noise.alone(questions) <= allowed * _SLACK
        dense = self.dense(weights)
        for _ in range(_ROUNDS if possible else 1):
            candidates = [self.planned(weights), *([dense] if dense is not None else [])]
            good = [one for one in candidates if _largest(one) <= allowed * _SLACK]
            if good:
                found += good
                break
            over = [float(own.max()) / allowed for own in candidates[0].variances]
            weights = [weight * max(1.0, ratio) ** 2 for weight, ratio in zip(weights, over, strict=True)]
        found.append(self.one_by_one())
        good = [one for one in found if _largest(one) <= allowed * _SLACK] or candidates
        return min(good, key=lambda one: one.mean_error(self.items))

    def planned(self, weights: Sequence[float]) -> Strategy:
        """Marginals in the base; what else is asked, by columns: in the base where that holds it and it is better."""
        marginals = [place for place, item in enumerate(self.items) if isinstance(item, Marginal)]
        groups: dict[Clique, list[int]] = {}
        for place, item in enumerate(self.items):
            if not isinstance(item, Marginal):
                groups.setdefault(item.columns, []).append(place)
        base = list(marginals)
        split = self._split(base, list(groups.values()), weights)
        for columns, members in list(groups.items()):
            holds = any(set(columns) <= set(self.items[place].columns) for place in marginals)
            alike = [place for place in marginals if self.items[place].columns == columns and len(columns) <= 1]
            rest = {other: known for other, known in groups.items() if other != columns}
            tries = [([*base, *members], rest)] if holds else []
            if alike:
                without = [place for place in base if place not in alike]
                tries.append((without, {**groups, columns: [*members, *alike]}))
            for one, other in tries:
                if self._held(one):
                    new = self._split(one, list(other.values()), weights)
                    if new[0] < split[0] * (1 - 1e-9):
                        base, groups, split = one, other, new
        return self._strategy(split[1], split[2])

    def _held(self, base: Sequence[int]) -> bool:
        """Whether the marginals of a base hold what else is asked of it."""
        cliques = [set(self.items[place].columns) for place in base if isinstance(self.items[place], Marginal)]
        return all(any(set(self.items[place].columns) <= clique for clique in cliques) for place in base)

    def dense(self, weights: Sequence[float]) -> Strategy | None:
        """One block of the whole workload, where it is small: then nothing is lost between its parts."""
        columns = sorted({column for item in self.items for column in item.columns})
        asked = sum(item.ordered if isinstance(item, Intervals) else item.queries for item in self.items)
        cells = math.prod(self.sizes[column] for column in columns)
        if len({item.columns for item in self.items}) == 1 or cells > _DENSE_CELLS or asked > _DENSE_ATOMS:
            return None
        if all(isinstance(item, Marginal) for item in self.items) and self.noise.kind == GAUSSIAN:
            return None
        shape = [self.sizes[column] for column in columns]
        signs = [_signs(item, tuple(columns), shape) for item in self.items]
        if int(_atoms(np.concatenate(signs)).max()) >= _DENSE_ATOMS:
            return None
        one = block(self.items, range(len(self.items)), weights, self.sizes)
        return self._strategy({}, [(one, self._answering(one, weights)[0], 1.0)])

    def one_by_one(self) -> Strategy:
        """Every query a question of its own, with an equal share; answers then made to agree.

        All ranges of a column get their questions' shares for its histogram. A range adds up no more cells than there
        are ranges, so its variance is no larger than by a question of its own, for either noise.
        """
        total = sum(item.questions for item in self.items)
        shares = self._base({place: 1 / total for place, item in enumerate(self.items) if isinstance(item, Marginal)})
        blocks = []
        for clique in dict.fromkeys(item.columns for item in self.items if not isinstance(item, Marginal)):
            for kind in (True, False):
                members = [
                    place
                    for place, item in enumerate(self.items)
                    if item.columns == clique and not isinstance(item, Marginal) and isinstance(item, Intervals) == kind
                ]
                if members:
                    one = block(self.items, members, [1.0] * len(self.items), self.sizes)
                    rows = np.eye(len(one.gram), dtype=np.int64) if kind else one.queries
                    blocks.append((one, rows, sum(self.items[place].questions for place in members) / total))
        return self._strategy(shares, blocks)

    def _base(self, own: Mapping[int, float]) -> Shares:
        """Marginals one by one, with these shares: their histograms, or residuals that tell the same."""
        cliques: dict[Clique, float] = {}
        for place, share in own.items():
            cliques[self.items[place].columns] = cliques.get(self.items[place].columns, 0.0) + share
        if self.noise.kind == LAPLACE:
            return cliques
        return residuals.of_histograms(cliques, self.sizes)

    def _split(
        self, base: Sequence[int], groups: Sequence[Sequence[int]], weights: Sequence[float]
    ) -> tuple[float, Shares, list[tuple[Block, Integers, float]]]:
        """The least error for a base and blocks, and what each takes of the price."""
        make = residuals if self.noise.kind == GAUSSIAN else histograms
        total, shares = make.least([(self.items[place], weights[place]) for place in base], self.sizes)
        blocks = [block(self.items, members, weights, self.sizes) for members in groups]
        rows = [self._answering(one, weights) for one in blocks]
        power = 1 / (1 + self.noise.power)
        parts = [total**power, *(error**power for _, error in rows)]
        whole_price = sum(parts) or 1.0
        shares = {kept: share * parts[0] / whole_price for kept, share in shares.items()}
        chosen = [
            (one, matrix, part / whole_price) for one, (matrix, _), part in zip(blocks, rows, parts[1:], strict=True)
        ]
        return whole_price ** (1 + self.noise.power), shares, chosen

    def _answering(self, one: Block, weights: Sequence[float]) -> tuple[Integers, float]:
        """The rows that answer a block with the least error at the whole price, and that error."""
        heaviest = max(weights[place] for place in one.members)
        key = one.members, tuple(weights[place] / heaviest for place in one.members)
        if key not in self._rows:
            tries = [one.queries]
            ranges = any(isinstance(self.items[place], Intervals) for place in one.members)
            atoms = np.eye(len(one.gram), dtype=np.int64)
            if len(one.gram) <= MOST_ROWS:
                tries.append(atoms)
            if self.noise.kind == GAUSSIAN:
                tries.append(whole(optimum(one.gram / heaviest).rows, independent(one.queries)))
            elif ranges and len(one.columns) == 1:
                tries += [tree(len(one.gram), branches) for branches in _BRANCHES if branches < len(one.gram)]
            errors = [self._error(rows, one.gram / heaviest) for rows in tries]
            best = int(np.argmin(errors))
            self._rows[key] = tries[best], errors[best]
        rows, error = self._rows[key]
        return rows, error * heaviest

    def _error(self, rows: Integers, gram: Floats) -> float:
        """Σ of the queries' variances at the whole price."""
        if self.noise.kind == GAUSSIAN:
            noise = float((rows.astype(float) ** 2).sum(axis=0).max())
        else:
            noise = 2 * float(np.abs(rows).sum(axis=0).max()) ** 2
        scale = float(np.abs(rows).max()) or 1.0
        answers = inverse(rows / scale)
        return float((gram * (answers @ answers.T)).sum()) * noise / scale**2

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

    def _strategy(self, shares: Shares, blocks: Sequence[tuple[Block, Integers, float]]) -> Strategy:
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
            squared = noise.kind == GAUSSIAN
            if squared and int(np.abs(rows).max()) < _LATTICE:  # so fine that rounding the noise adds nothing
                rows = rows * _LATTICE
            norm = max(sum(entry**2 if squared else abs(entry) for entry in column) for column in rows.T.tolist())
            shape = tuple(self.sizes[column] for column in one.columns)
            for place in one.members:
                where[place] = len(measurements)
            mechanism = noise.mechanism(Fraction(part) / total, norm)
            measurements.append(Linear(one.columns, shape, mechanism, rows=rows, atoms=one.atoms))
        found = Reconstruction(self.sizes, measurements)
        variances = tuple(found.variances(item, place) for item, place in zip(self.items, where, strict=True))
        return Strategy(noise, tuple(measurements), tuple(where), found, variances)


def _largest(strategy: Strategy) -> float:
    return max(float(own.max()) for own in strategy.variances)


def strategy(items: Sequence[Item], sizes: Sequence[int], noises: Sequence[Noise]) -> tuple[Strategy, float]:
    """The best strategy, with whichever of these kinds of noise; and the variance of a count, asked one by one."""
    questions = sum(item.questions for item in items)
    allowed = min(noise.alone(questions) for noise in noises)
    found = [Planner(items, sizes, noise).best(allowed) for noise in noises]
    good = [one for one in found if _largest(one) <= allowed * _SLACK] or found

    def error(one: Strategy) -> float:
        return one.mean_error(items) * one.noise.alone(1)

    return min(good, key=error), allowed
