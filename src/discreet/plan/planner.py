"""The planner: the cheapest plan of a question whose bounds hold, from declarations and the question alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from discreet.dialect.counted import Scale
from discreet.dialect.nulls import may_be_null
from discreet.dialect.quantization import clamping, lattice, sized
from discreet.dialect.ranges import interval
from discreet.dialect.steps import step_of
from discreet.errors import QuestionError
from discreet.plan.combine import KEYS, together
from discreet.plan.measurement import Plan
from discreet.plan.order_statistic_plans import MOMENTS, expanded, special
from discreet.plan.outputs import AggregateKind, Output, OutputKind
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    Part,
    PartKind,
    PersonGroup,
    Project,
    Quantity,
    Scan,
    Total,
    TotalKind,
    Vector,
)
from discreet.trusted.ring_a.sensitivity import clamped_by_person, touched
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_b.listed_groups import group_count
from discreet.trusted.ring_b.order_statistics import GroupHistograms, Range, Special
from discreet.trusted.ring_b.relations import columns_of, own_name

MAXIMUM_CELLS = 100_000
"""The most groups that public keys may make in one answer."""


@dataclass(frozen=True)
class WantedAggregate:
    """An aggregate of the question.

    `bounds` are the question's own contribution bounds: each person's value in a group is clamped to them. `epsilon` is
    the part of the price that the question gives it. The other fields belong to some kinds: the `second` expression,
    whether n − 1 divides (`sample`), the `fractions` of quantiles, whether the answer is a list (`many`), how many.
    A quantile of dates or timestamps is one of whole days or seconds since 1970; `moment` says which of the two.
    """

    kind: AggregateKind
    expression: Expression | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    text: str = field(default="", compare=False)
    epsilon: Fraction | None = None
    report: str = field(default="", compare=False)
    second: Expression | None = None
    sample: bool = False
    fractions: tuple[Fraction, ...] = ()
    many: bool = False
    k: int = 1
    moment: Type | None = field(default=None, repr=False)  # changes nothing that is measured


@dataclass(frozen=True)
class Request:
    """A question after reading: one table, a predicate, keys and aggregates. `columns` is the select list: the name and
    the index of a key, or of an aggregate."""

    table: Table
    predicate: Expression | None
    keys: tuple[Key, ...]
    wanted: tuple[WantedAggregate, ...]
    columns: tuple[tuple[str, str, int], ...]
    groups: int | None = None
    rows: int | None = None
    least: int | None = None
    found: tuple[tuple[Expression, tuple[Fraction, Fraction]], ...] = ()
    """Bounds that were found for expressions without declared ones."""
    formulas: tuple[Expression, ...] = ()
    """Columns that are computed from aggregates, which stand in them as columns named by `part_name`."""
    scales: tuple[Scale | None, ...] = ()
    """What the keys stand for that are counted in steps."""


def plan(request: Request) -> Plan:
    """The plan of a request. Raises QuestionError where no bound is declared for what is asked."""
    cells = group_count(request.keys, request.table.relation)
    if cells is not None and cells > MAXIMUM_CELLS:
        fix = "group by fewer columns, or by columns with fewer declared values"
        raise QuestionError(
            "too-many-groups",
            f"the public keys make {cells:,} groups, more than {MAXIMUM_CELLS:,}",
            where="GROUP BY",
            fix=fix,
        )
    builder = _Builder(request)
    wanted, made = expanded(request.wanted, lambda one: builder.bounds_of(one) or builder.unknown(one))
    builder.request = replace(request, wanted=wanted)
    estimates = builder.estimates()
    if builder.private:
        builder.part(Part(PartKind.KEYS, (builder.vector(builder.persons_total()),)))
    outputs, hidden = [], []
    for place, (one, estimate) in enumerate(zip(wanted, estimates, strict=True)):
        if place >= len(request.wanted):
            hidden.append(_output(builder, own_name("part", place), one, estimate, hidden=True))
    width = len(request.columns)

    def column(name: str, index: int, *, out_of_sight: bool = False) -> Output:
        one = request.wanted[index]
        if index not in made:
            return _output(builder, name, wanted[index], estimates[index], hidden=out_of_sight)
        of = tuple(width + place - len(request.wanted) for place in made[index])
        return Output(name, OutputKind(one.kind), -1, (), one.text, of, out_of_sight, one.sample, one.report)

    for name, kind, index in request.columns:
        if kind == "key":
            scale = request.scales[index] if request.scales else None
            outputs.append(Output(name, OutputKind.KEY, index, text=request.keys[index].name, scale=scale))
        elif kind == "formula":
            formula = request.formulas[index]
            needed = [place for place in range(len(request.wanted)) if part_name(place) in columns_of(formula)]
            of = tuple(width + len(hidden) + number for number in range(len(needed)))
            hidden += [column(part_name(place), place, out_of_sight=True) for place in needed]
            outputs.append(Output(name, OutputKind.FORMULA, -1, of=of, formula=formula))
        else:
            outputs.append(column(name, index))
    parts, specials = tuple(builder.parts), tuple(builder.specials)
    whole = Plan(request.table.name, builder.root(), request.keys, parts, outputs=(*outputs, *hidden))
    ranges = tuple(builder.range(expression) for expression in builder.missing)
    late = request if ranges else None
    return replace(whole, specials=specials, least=request.least or 1, ranges=ranges, request=late)


def part_name(index: int) -> str:
    """How the aggregate of this index is called in a formula."""
    return own_name("aggregate", index)


def _output(builder: _Builder, name: str, one: WantedAggregate, estimate: Estimate, *, hidden: bool = False) -> Output:
    part, shape, weights = estimate
    part = len(builder.parts) - 1 if part == KEYS else part
    return Output(name, shape, part, weights, one.text, hidden=hidden, report=one.report, moment=one.moment)


Estimate = tuple[int, OutputKind, tuple[Fraction, ...]]
"""The part, the kind of output, and the weights of the part's vectors."""


class _Builder:
    """Collects quantities, totals and parts, each once."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.table = request.table
        self.columns: Mapping[str, Column] = {column.name: column for column in request.table.columns}
        self.single = request.table.person is None or request.table.one_row_per_person
        self.private = any(key.values is None for key in request.keys)
        self.quantities: _Once[Quantity] = _Once()
        self.totals: _Once[Total] = _Once()
        self.parts: list[Part] = []
        self.specials: list[Special] = []
        self.missing: list[Expression] = []

    def estimates(self) -> list[Estimate]:
        """How each aggregate is made. What stands twice in a question is measured once: the sum and the count of a
        column come from its mean where that is asked for too, and so does COUNT(*), with NULL rows measured beside;
        several columns of the same rows are measured together (`plan.combine`)."""
        joined = together(self, self.request.wanted)
        for place, one in enumerate(self.request.wanted):
            if one.kind in (AggregateKind.QUANTILES, AggregateKind.WINNERS, AggregateKind.DISTINCT):
                joined[place] = _place(self.specials, special(self, one)), OutputKind.SPECIAL, ()
            elif one.kind in MOMENTS:
                joined[place] = -1, OutputKind(one.kind), ()
        apart = self.apart([one for place, one in enumerate(self.request.wanted) if place not in joined])
        others = iter(apart)
        return [joined[place] if place in joined else next(others) for place in range(len(self.request.wanted))]

    def apart(self, wanted: Sequence[WantedAggregate]) -> list[Estimate]:
        """Aggregates that are not measured together with others: each by itself, but for what comes with a mean."""
        means = [one.expression for one in wanted if one.kind is AggregateKind.MEAN and one.epsilon is None]
        rows_from = means[0] if any(one == WantedAggregate(AggregateKind.COUNT) for one in wanted) and means else None
        nulls = rows_from is not None and may_be_null(rows_from, self.columns)
        made = {one: self.mean(one, absent=nulls and one == rows_from) for one in means if one}
        estimates: list[Estimate] = []
        for one in wanted:
            if one.epsilon is not None:
                estimates.append(self.alone(one))
            elif one.kind is AggregateKind.MEAN and one.expression is not None:
                estimates.append((made[one.expression], OutputKind.MEAN, ()))
            elif (
                one.bounds is None
                and one.kind in (AggregateKind.SUM, AggregateKind.NON_NULL)
                and one.expression in made
            ):
                estimates.append(self.from_mean(made[one.expression], one.kind))
            elif one == WantedAggregate(AggregateKind.COUNT) and rows_from is not None:
                estimates.append(self.from_mean(made[rows_from], AggregateKind.COUNT))
            else:
                estimates.append(self.direct(one))
        return estimates

    def alone(self, one: WantedAggregate) -> Estimate:
        """An aggregate with a price of its own: a part for it alone."""
        known = len(self.parts)
        if one.kind is AggregateKind.MEAN:
            assert one.expression is not None
            estimate: Estimate = self.mean(one.expression, absent=False), OutputKind.MEAN, ()
        else:
            estimate = self.direct(one)
        index, kind, weights = estimate
        part = replace(self.parts[index], epsilon=one.epsilon)
        del self.parts[known:]
        return self.part(part), kind, weights

    def person_mean(self, one: WantedAggregate) -> int:
        """GoogleSQL's mean: over persons, of each one's mean in the group, clamped to the bounds.

        With m a person's mean in steps, clamped to [low, high], A = Σ(m − low) and B = Σ(high − m) over the persons
        with a value: one person in one group adds w = high − low to them together. The lattice is finer than the
        declared step, as means are.
        """
        assert one.expression is not None
        bounds = one.bounds or self.bounds_of(one.expression) or self.unknown(one.expression)
        inside = lattice(sized(bounds, "AVG"), None)
        grid = lattice(None, inside.step, scale=max(abs(bounds[0]), abs(bounds[1])))
        quantity = self.quantity(Quantity(one.expression, grid))
        total = self.total(Total(TotalKind.MEAN_PER_PERSON, quantity, (inside.low, inside.high)))
        holders = self.total(Total(TotalKind.PERSONS_WITH_VALUE, quantity))
        above, below = Vector(((total, 1), (holders, -inside.low))), Vector(((holders, inside.high), (total, -1)))
        return self.part(Part(PartKind.MEAN, (above, below), inside))

    def bounds_of(self, expression: Expression) -> tuple[Fraction, Fraction] | None:
        """Where an expression lies: from declarations, or as it was found."""
        return interval(expression, self.columns) or dict(self.request.found).get(expression)

    def unknown(self, expression: Expression) -> tuple[Fraction, Fraction]:
        """Notes an expression whose bounds have to be found first; returns placeholder bounds."""
        if expression not in self.missing:
            self.missing.append(expression)
        return Fraction(-1), Fraction(1)

    def range(self, expression: Expression) -> Range:
        """Counts of the powers of two that an expression's values have."""
        return Range(expression, GroupHistograms(self.rows((), (Quantity(expression, None, powers=True),))))

    def rows(self, keys: tuple[Key, ...], quantities: tuple[Quantity, ...]) -> Project | LimitRows:
        """The rows, as many as count of each person."""
        project = self.selected(keys, quantities)
        if self.single:
            return project
        return LimitRows(project, self.request.rows or self.table.rows_per_person or 1)

    def selected(self, keys: tuple[Key, ...], quantities: tuple[Quantity, ...]) -> Project:
        """The rows for which the question's predicate is true, all of each person."""
        request, table = self.request, self.table
        scan = Scan(table.name, table.person, table.one_row_per_person, table.relation)
        return Project(Filter(scan, request.predicate) if request.predicate is not None else scan, keys, quantities)

    def mean(self, expression: Expression, *, absent: bool) -> int:
        """A mean from two sums at full price: A = Σ(x − low) and B = Σ(high − x) over the rows with a value.

        With w = high − low a row adds (x − low) + (high − x) = w to them together, so the joint ℓ1 bound of a row is w,
        as large as that of either sum alone. mean = low + w·A/(A + B) and the number of rows is (A + B)/w. Rows
        without a value may add w to a third vector: then all rows are (A + B + C)/w, still with the bound w.
        """
        grid = self.grid(expression, "AVG")
        quantity = self.quantity(Quantity(expression, grid))
        total, count = self.total(Total(TotalKind.SUM, quantity)), self.total(Total(TotalKind.NON_NULL, quantity))
        above = Vector(((total, 1), (count, -grid.low)))
        below = Vector(((count, grid.high), (total, -1)))
        vectors: tuple[Vector, ...] = (above, below)
        if absent:
            rows = self.total(Total(TotalKind.ROWS))
            vectors = (above, below, Vector(((rows, grid.width), (count, -grid.width))))
        return self.part(Part(PartKind.MEAN, vectors, grid))

    def from_mean(self, index: int, kind: AggregateKind) -> Estimate:
        """COUNT or SUM from the vectors of a mean: n = (A + B)/w, Σx = step·(A + low·n)."""
        part = self.parts[index]
        grid = part.lattice
        assert grid is not None
        one = Fraction(1, grid.width)
        if kind is AggregateKind.COUNT:
            return index, OutputKind.COUNT, (one,) * len(part.vectors)
        rest = (Fraction(0),) * (len(part.vectors) - 2)
        if kind is AggregateKind.NON_NULL:
            return index, OutputKind.COUNT, (one, one, *rest)
        return index, OutputKind.SUM, (grid.step * (1 + grid.low * one), grid.step * grid.low * one, *rest)

    def direct(self, one: WantedAggregate) -> Estimate:
        """An aggregate measured by itself."""
        if one.kind is AggregateKind.PERSONS:
            return (
                self.part(Part(PartKind.PERSONS, (self.vector(self.persons_total()),))),
                OutputKind.COUNT,
                (Fraction(1),),
            )
        if one.kind is AggregateKind.SUM:
            return self.sum(one)
        if one.kind is AggregateKind.PERSON_MEAN:
            return self.person_mean(one), OutputKind.MEAN, ()
        quantity = None
        if one.kind is AggregateKind.NON_NULL:
            assert one.expression is not None
            quantity = self.quantity(Quantity(one.expression, None))
        kind = TotalKind.ROWS if quantity is None else TotalKind.NON_NULL
        if one.bounds is None:
            return (
                self.part(Part(PartKind.COUNT, (self.vector(self.total(Total(kind, quantity))),))),
                OutputKind.COUNT,
                (Fraction(1),),
            )
        low, high = int(one.bounds[0]), int(one.bounds[1])
        if self.single:  # a person's count in a group is 1, so the clamped one is a constant
            constant = max(low, min(1, high))
            vector = Vector(((self.total(Total(kind, quantity)), constant),))
            return self.part(Part(PartKind.COUNT, (vector,))), OutputKind.COUNT, (Fraction(1),)
        total = self.total(Total(kind, quantity, (low, high)))
        return self.part(Part(PartKind.COUNT, (self.vector(total),))), OutputKind.COUNT, (Fraction(1),)

    def sum(self, one: WantedAggregate) -> Estimate:
        assert one.expression is not None
        if one.bounds is None:
            grid = self.grid(one.expression, "SUM")
            total = self.total(Total(TotalKind.SUM, self.quantity(Quantity(one.expression, grid))))
            return self.part(Part(PartKind.SUM, (self.vector(total),), grid)), OutputKind.SUM, (grid.step,)
        if self.single:  # a person's total is one row's value: the lattice itself clamps it
            grid = clamping(sized(one.bounds, "SUM"), self.step(one.expression))
            total = self.total(Total(TotalKind.SUM, self.quantity(Quantity(one.expression, grid))))
            return self.part(Part(PartKind.SUM, (self.vector(total),), grid)), OutputKind.SUM, (grid.step,)
        total, inside = self.clamped(one)
        return self.part(Part(PartKind.SUM, (self.vector(total),), inside)), OutputKind.SUM, (inside.step,)

    def clamped(self, one: WantedAggregate) -> tuple[int, Lattice]:
        """A total that is clamped to the question's bounds for each person and group, and where it then lies."""
        assert one.bounds is not None
        if one.kind is not AggregateKind.SUM:
            low, high = int(one.bounds[0]), int(one.bounds[1])
            quantity = None if one.expression is None else self.quantity(Quantity(one.expression, None))
            kind = TotalKind.ROWS if quantity is None else TotalKind.NON_NULL
            return self.total(Total(kind, quantity, (low, high))), Lattice(Fraction(1), low, max(high, low + 1))
        assert one.expression is not None
        inside = clamping(sized(one.bounds, "SUM"), self.step(one.expression))
        grid = lattice(None, inside.step, scale=max(abs(one.bounds[0]), abs(one.bounds[1])))
        quantity = self.quantity(Quantity(one.expression, grid))
        return self.total(Total(TotalKind.SUM, quantity, (inside.low, inside.high))), inside

    def grid(self, expression: Expression, function: str) -> Lattice:
        known = self.bounds_of(expression) or self.unknown(expression)
        return lattice(sized(known, function), self.step(expression))

    def step(self, expression: Expression) -> Fraction | None:
        """The unit of an expression: a declared step, that of arithmetic in steps, 1 for whole numbers."""
        if isinstance(expression, ColumnOf) and self.columns[expression.name].step is not None:
            return self.columns[expression.name].step
        return step_of(expression, self.columns)

    def persons_total(self) -> int:
        return self.total(Total(TotalKind.ROWS if self.single else TotalKind.PERSONS))

    def vector(self, total: int) -> Vector:
        return Vector(((total, 1),))

    def quantity(self, quantity: Quantity) -> int:
        return self.quantities.place(quantity)

    def total(self, total: Total) -> int:
        return self.totals.place(total)

    def part(self, part: Part) -> int:
        return _place(self.parts, part)

    def root(self) -> Aggregate:
        """The nodes: rows are limited where some part has no bound by group, groups where a person could touch more
        than allowed, and persons are grouped only where something is bounded by person and group."""
        request, table = self.request, self.table
        project = self.selected(request.keys, tuple(self.quantities))
        if self.single:
            return Aggregate(project, tuple(self.totals))
        clamped = [clamped_by_person(part, self.totals) for part in self.parts]
        by_row, by_group = not all(clamped), any(clamped)
        rows = request.rows or table.rows_per_person
        assert rows is not None
        bounded: Project | LimitRows = LimitRows(project, rows) if by_row or request.rows else project
        if not by_group and request.groups is None:
            return Aggregate(bounded, tuple(self.totals))
        grouped = PersonGroup(bounded)
        most = request.groups or request.rows or table.groups_per_person
        cells = touched(request.keys, table.relation)
        assert most is not None
        if request.keys and (cells is None or cells > most) and not ((by_row or request.rows) and rows <= most):
            return Aggregate(Clip(LimitGroups(grouped, most)), tuple(self.totals))
        return Aggregate(Clip(grouped), tuple(self.totals))


Item = TypeVar("Item")


class _Once(list[Item]):
    """Items in the order in which they came, each once; found by their hash, so that many cost no square of time."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[Item, int] = {}

    def place(self, item: Item) -> int:
        if self._places.setdefault(item, len(self)) == len(self):
            self.append(item)
        return self._places[item]


def _place(items: list[Item], item: Item) -> int:
    for place, known in enumerate(items):
        if known == item:
            return place
    items.append(item)
    return len(items) - 1
