"""`curator.answer`: a workload at a price, from the call to the content of the release."""

from __future__ import annotations

import functools
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.accounting import Filter, Loss
from discreet.accounting.balance import price_delta
from discreet.catalog import Declaration
from discreet.errors import refused
from discreet.intervals.noise import CONFIDENCE
from discreet.locks import Lock
from discreet.mechanisms import Gaussian
from discreet.procedures.arguments import amount, epsilon_of, private_table
from discreet.release.content import Cost, ReleaseContent
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import Number, figure, fraction
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coding import rows_of_person
from discreet.trusted.ring_c.linear_queries import Linear, LinearQueriesMeasurement
from discreet.workload.coded import Coded, coded
from discreet.workload.items import PREFIXES, RANGES, AnyIntegers, Floats, Intervals, Item, Marginal
from discreet.workload.plan import GAUSSIAN, LAPLACE, NoiseBudget, Strategy, strategy
from discreet.workload.question import Workload
from discreet.workload.reconstruct import NO_NOISE

SMALL = 300
"""Answers of a workload that is planned at once."""

Planned = tuple[Strategy, float]
_PLANNED: OrderedDict[object, Planned] = OrderedDict()
_MOST_PLANNED = 8
_LOCK = Lock()


@dataclass(frozen=True, eq=False)
class PlannedWorkload:
    """A checked call: the workload on cells, the measurements that answer it, and their price."""

    table: Table
    coded: Coded
    price: tuple[Fraction, Fraction]
    strategy: Strategy
    alone: float
    """The variance of a count, were every question asked by itself with an equal share of the price."""

    @functools.cached_property
    def measurement(self) -> LinearQueriesMeasurement:
        return LinearQueriesMeasurement(self.table, self.coded.coding, self.strategy.measurements)

    @property
    def loss(self) -> Loss:
        return self.measurement.loss

    @property
    def cost(self) -> Cost:
        epsilon, delta = self.price
        return Cost(epsilon=float(epsilon), delta=float(delta) if self.strategy.noise.kind == GAUSSIAN else 0.0)

    @property
    def question(self) -> str:
        """The call in words, for the ledger."""
        kinds = Counter(type(item).__name__ if not isinstance(item, Intervals) else item.kind for item in self._items)
        names = {
            "Marginal": "marginals",
            RANGES: "columns in ranges",
            PREFIXES: "columns in prefixes",
            "Count": "counts",
        }
        words = ", ".join(f"{kinds[kind]} {name}" for kind, name in names.items() if kinds[kind])
        return f"workload of {self.table.name}: {words}"

    @property
    def parts(self) -> tuple[str, ...]:
        """What decides the answer, beside the table."""
        return ("answer", repr(self.coded), repr(self.price))

    @property
    def expected_error(self) -> dict[str, float]:
        """For each item the half width of the 95 % interval of its least certain answer."""
        found: dict[str, float] = {}
        for label, own in zip(self._labels(), self.strategy.variances, strict=True):
            found[label] = float(self._half_widths(own, 1).max())
        return found

    @property
    def bounds(self) -> tuple[str, ...]:
        rows = rows_of_person(self.table)
        words = ["one row a person"]
        if not self.table.one_row_per_person:
            words = [f"at most {rows} rows a person; further rows are left out, at random"]
        if any(column.null for column in self.coded.coding.columns):
            words.append("(none) stands for NULL and for what is not declared")
        return (*words, self._comparison())

    def content(self, released: Sequence[AnyIntegers]) -> ReleaseContent:
        """The content of the release: one row for each answer."""
        estimates = self.strategy.reconstruction.estimates(released)
        of, count, variance_of = (self._beside(word) for word in ("of", "count", "variance"))
        rows: list[dict[str, Any]] = []
        intervals: list[dict[str, tuple[float, float]]] = []
        simultaneous: list[dict[str, tuple[float, float]]] = []
        for place, item in enumerate(self._items):
            values = self.strategy.reconstruction.values(item, self.strategy.where[place], estimates).round(9)
            variances = self.strategy.variances[place]
            for told, value, variance in zip(self._told(item), values.tolist(), variances.tolist(), strict=True):
                rows.append({of: self.coded.labels[place], **told, count: value, variance_of: float(f"{variance:.6g}")})
            for found, cells in ((intervals, 1), (simultaneous, self.coded.answers)):
                wide = self._half_widths(variances, cells)
                ends = zip((values - wide).tolist(), (values + wide).tolist(), strict=True)
                found += [{count: pair} for pair in ends]
        texts = [of, *self.coded.coding.names]
        return ReleaseContent(
            columns=[*texts, count, variance_of],
            types={**dict.fromkeys(texts, "text"), variance_of: "number"},
            keys=texts,
            drawn=[count],
            rows=rows,
            intervals=intervals,
            simultaneous=simultaneous,
            cost=self.cost,
            mechanisms=self.mechanisms,
            bounds=self.bounds,
        )

    @property
    def mechanisms(self) -> list[dict[str, str]]:
        """How it was made: marginals in one entry, weighted sums of cells in one for each set of columns."""
        names, measurements = self.coded.coding.names, self.strategy.measurements
        of_cells = [one for one in measurements if one.rows is None]
        found = []
        if of_cells:
            what = "residuals" if of_cells[0].residual else "histograms"
            found.append(self._described(f"{what} of {len(of_cells)} sets of columns", of_cells))
        for one in measurements:
            if one.rows is not None:
                columns = ", ".join(names[column] for column in one.columns) or "all rows"
                found.append(self._described(f"{len(one.rows)} weighted sums of {columns}", [one]))
        return found

    def _described(self, columns: str, measurements: Sequence[Linear]) -> dict[str, str]:
        """Measurements of one kind, with their noise over what one row moves."""
        sizes = []
        for one in measurements:
            if isinstance(one.mechanism, Gaussian):
                sizes.append(float(one.mechanism.sigma) / math.sqrt(one.sensitivity))
            else:
                sizes.append(float(one.mechanism.scale) / one.sensitivity)
        low, high = figure(fraction(min(sizes)), 4), figure(fraction(max(sizes)), 4)
        between = low if low == high else f"{low} to {high}"
        norm = "ℓ2" if self.strategy.noise.kind == GAUSSIAN else "ℓ1"
        rows = rows_of_person(self.table)
        return {
            "columns": columns,
            "mechanism": f"{measurements[0].mechanism.name} noise, {between} times what one row moves in {norm}",
            "unit": "1 row",
            "sensitivity": "1 row a person" if rows == 1 else f"{rows} rows a person",
        }

    @property
    def _items(self) -> tuple[Item, ...]:
        return self.coded.items

    def _labels(self) -> Iterator[str]:
        """A name of its own for each item."""
        seen: Counter[str] = Counter()
        for label in self.coded.labels:
            seen[label] += 1
            yield label if seen[label] == 1 and label != "count" else f"{label} {seen[label]}"

    def _beside(self, word: str) -> str:
        """A name for a column of the release that is none of the table's."""
        while word in self.coded.coding.names:
            word += "_"
        return word

    def _told(self, item: Item) -> Iterator[dict[str, str]]:
        """What each answer of an item is about: the cells of each column, in words."""
        known = self.coded
        everything = dict.fromkeys(known.coding.names, "(all)")
        names = [known.coding.names[column] for column in item.columns]
        told: Iterator[tuple[str, ...]]
        if isinstance(item, Marginal):
            told = product(*([known.cell(column, at) for at in range(known.size(column))] for column in item.columns))
        elif isinstance(item, Intervals):
            (column,) = item.columns
            low, high = (ends.tolist() for ends in item.ends)
            told = ((known.span(column, *ends),) for ends in zip(low, high, strict=True))
        else:
            told = iter([tuple(map(self._condition, item.columns, item.masks))])
        for cells in told:
            yield everything | dict(zip(names, cells, strict=True))

    def _condition(self, column: int, mask: Sequence[bool]) -> str:
        """The cells of a condition, in words: neighbours as spans."""
        ordered, words, at = self.coded.ordered(column), [], 0
        values = mask[:ordered]
        while at < ordered:
            stop = at
            while stop < ordered and values[stop]:
                stop += 1
            if stop > at:
                words.append(self.coded.span(column, at, stop - 1))
            at = stop + 1
        if any(mask[ordered:]):
            words.append("(none)")
        return " or ".join(words)

    def _comparison(self) -> str:
        ratio = sum(float(own.sum()) for own in self.strategy.variances) / self.coded.answers / self.alone
        return f"mean variance {ratio:.3g} of what asking one by one would have at this price"

    def _half_widths(self, variances: Floats, cells: int) -> Floats:
        """Of the 95 % intervals of answers, each for itself or so many at once by a union bound.

        With Gaussian noise an answer's error is normal but for rounding on a fine lattice. With Laplace noise it is a
        sum of Laplace values, whose tail at a given variance is the heavier the fewer they are; so the tail of a single
        one is taken, e^(−t√2/deviation), and one step for noise being whole.
        """
        miss = (1 - CONFIDENCE) / cells
        deviations: Floats = np.sqrt(np.maximum(variances, 0.0))
        if self.strategy.noise.kind == GAUSSIAN:
            return -NormalDist().inv_cdf(miss / 2) * deviations
        return -math.log(miss) / math.sqrt(2) * deviations + (deviations > NO_NOISE)


@dataclass(frozen=True)
class Checked:
    """A call that is planned next, which may take minutes: its table, the workload on cells, ε and δ."""

    table: Table
    coded: Coded
    price: tuple[Fraction, Fraction]

    @property
    def small(self) -> bool:
        """Whether planning it takes no time that anybody notices."""
        cells = sum(math.prod(item.shape) for item in self.coded.items)
        return self.coded.answers <= SMALL and cells <= 10 * SMALL

    @property
    def _key(self) -> tuple[tuple[Item, ...], tuple[int, ...], tuple[NoiseBudget, ...]]:
        """What decides the plan."""
        epsilon, delta = self.price
        rows = rows_of_person(self.table)
        noises = [NoiseBudget(LAPLACE, epsilon, rows)]
        mu = mu_of_budget(epsilon, delta)
        if mu > 0:
            noises.append(NoiseBudget(GAUSSIAN, mu, rows))
        return self.coded.items, self.coded.coding.sizes, tuple(noises)

    def planned(self) -> Planned:
        """How it is measured, and what one by one would; kept for the next call like it."""
        with _LOCK:
            found = _PLANNED.get(self._key)
        if found is None:
            found = strategy(*self._key)
            self.keep(found)
        return found

    def keep(self, found: Planned) -> None:
        """Keeps what was planned elsewhere."""
        with _LOCK:
            _PLANNED[self._key] = found
            while len(_PLANNED) > _MOST_PLANNED:
                _PLANNED.popitem(last=False)


def checked(
    declaration: Declaration,
    workload: object,
    epsilon: Number | None,
    delta: Number | None,
    within: object = None,
) -> Checked:
    """The call, held against the declaration. Raises QuestionError."""
    if within is not None:
        raise refused("within", "within is not supported for workloads", "within", "write epsilon=0.5")
    if not isinstance(workload, Workload):
        fix = 'write discreet.Workload("…").marginals("…")'
        raise refused("workload", "this is not a valid workload", "workload", fix)
    table = private_table(declaration, workload.table)
    if not table.one_row_per_person and table.rows_per_person is None:
        raise refused("table", "the rows of a person have no limit", "table", "declare rows_per_person")
    known = coded(workload, table)
    price = epsilon_of(declaration, epsilon)
    return Checked(table, known, (price, _delta(declaration, price, delta)))


def answering(
    declaration: Declaration,
    workload: object,
    epsilon: Number | None,
    delta: Number | None,
    within: object = None,
) -> PlannedWorkload:
    """The checked call. Raises QuestionError; nothing is spent and no row is read."""
    call = checked(declaration, workload, epsilon, delta, within)
    return PlannedWorkload(call.table, call.coded, call.price, *call.planned())


def _delta(declaration: Declaration, epsilon: Fraction, delta: Number | None) -> Fraction:
    """The δ of Gaussian noise. A call that names none takes `price_delta`."""
    budget = declaration.budget
    most = budget.delta - budget.keys_delta
    if delta is None:
        whole = Filter(budget.epsilon, budget.delta, budget.keys_delta)
        return price_delta(whole, epsilon, event=False) if most > 0 else Fraction(0)
    known = amount("delta", delta, "delta=1e-9")
    if not 0 <= known < 1:
        raise refused("price", "delta must be at least 0 and below 1", "delta", "write delta=1e-9")
    return known if most > 0 else Fraction(0)
