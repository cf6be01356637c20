"""Plans of quantiles, most frequent values, distinct counts, variances and correlations.

Variance, standard deviation, covariance and correlation are made of means of computed columns, measured like any other
means (together, with one noise: `ring_b.jointly`). With y = x − m, m the middle of the bounds, and z of a second one:

    VAR(x) = E[y²] − E[y]²,    COVAR(x, z) = E[yz] − E[y]·E[z],    CORR = COVAR/√(VAR·VAR).

Quantiles, the commonest values and the number of different values have counts of their own (`nodes.Special`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from discreet.dialect.quantization import buckets, sized
from discreet.dialect.ranges import EVER
from discreet.errors import QuestionError
from discreet.plan.outputs import AggregateKind
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Key,
    LimitGroups,
    LimitRows,
    PersonGroup,
    Project,
    Quantity,
    Total,
    TotalKind,
)
from discreet.trusted.ring_a.sensitivity import cell_count, touched
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_b.order_statistics import Distinct, GroupHistograms, Special, SpecialKind

MOMENTS = (
    AggregateKind.VARIANCE,
    AggregateKind.DEVIATION,
    AggregateKind.COVARIANCE,
    AggregateKind.CORRELATION,
)
MOST_BUCKETS = 2**16
"""A quantile is one of at most so many values; a coarser lattice where the declared one has more."""
MOST_COUNTS = 2**18
"""So many counts at most leave the engine for the quantiles of all groups together; for private keys as if there were
PRIVATE_GROUPS groups."""
PRIVATE_GROUPS = 2**6

Bounds = tuple[Fraction, Fraction]


def expanded(
    wanted: Sequence[Any], bounds_of: Callable[[Expression], Bounds]
) -> tuple[tuple[Any, ...], dict[int, tuple[int, ...]]]:
    """The aggregates with the means that moments are made of behind them, and for each moment which of them."""
    whole = list(wanted)
    made: dict[int, tuple[int, ...]] = {}
    for place, one in enumerate(wanted):
        if one.kind not in MOMENTS:
            continue
        places = []
        shares = _means(one, bounds_of)
        for expression in shares:
            epsilon = None if one.epsilon is None else one.epsilon / len(shares)
            mean = replace(
                one,
                kind=AggregateKind.MEAN,
                expression=expression,
                second=None,
                sample=False,
                report="",
                epsilon=epsilon,
            )
            found = next((i for i, other in enumerate(whole) if i >= len(wanted) and other == mean), None)
            if found is None:
                whole.append(mean)
                found = len(whole) - 1
            places.append(found)
        made[place] = tuple(places)
    return tuple(whole), made


def _means(one: Any, bounds_of: Callable[[Expression], Bounds]) -> list[Expression]:
    """E[y], E[y²]; of two columns E[y], E[z], E[yz], and for a correlation E[y²], E[z²]."""
    first = _centred(one.expression, bounds_of(one.expression))
    if one.second is None:
        return [first, _square(first)]
    second = _centred(one.second, bounds_of(one.second))
    # a row without a value in one column counts in neither
    first, second = (_beside(a, b) for a, b in ((first, one.second), (second, one.expression)))
    product = Call("multiply", (first, second), Type.NUMBER)
    means = [first, second, product]
    return [*means, _square(first), _square(second)] if one.kind is AggregateKind.CORRELATION else means


def _centred(expression: Expression, bounds: Bounds) -> Expression:
    """The value, clamped to its bounds, from their middle."""
    low, high = bounds
    inside = Call("greatest", (Call("least", (expression, _number(high)), Type.NUMBER), _number(low)), Type.NUMBER)
    return Call("subtract", (inside, _number((low + high) / 2)), Type.NUMBER)


def _number(value: Fraction) -> Literal:
    return Literal(value, Type.NUMBER)


def _square(expression: Expression) -> Expression:
    size = Call("absolute", (expression,), Type.NUMBER)
    return Call("multiply", (size, size), Type.NUMBER)


def _beside(expression: Expression, other: Expression) -> Expression:
    known = Call("not", (Call("is_null", (other,), Type.BOOLEAN),), Type.BOOLEAN)
    return Call("case", (known, expression, Literal(None, Type.TEXT)), Type.NUMBER)


class SpecialBuilder(Protocol):
    """What is known of the question."""

    @property
    def table(self) -> Table: ...
    @property
    def single(self) -> bool: ...
    @property
    def request(self) -> Any: ...
    @property
    def columns(self) -> Mapping[str, Column]: ...
    def bounds_of(self, expression: Expression, /) -> Bounds | None: ...
    def unknown(self, expression: Expression, /) -> Bounds: ...
    def step(self, expression: Expression, /) -> Fraction | None: ...
    def rows(self, keys: tuple[Key, ...], quantities: tuple[Quantity, ...], /) -> Project | LimitRows: ...
    def selected(self, keys: tuple[Key, ...], quantities: tuple[Quantity, ...], /) -> Project: ...


def special(builder: SpecialBuilder, one: Any) -> Special:
    """The measurement of a quantile, the most frequent values, or the number of distinct values."""
    keys = builder.request.keys
    if one.kind is AggregateKind.QUANTILES:
        bounds = builder.bounds_of(one.expression) or builder.unknown(one.expression)
        groups = cell_count(keys) or PRIVATE_GROUPS
        most = min(MOST_BUCKETS, max(2**8, MOST_COUNTS // groups))
        if one.moment is None:
            grid = buckets(sized(bounds, one.text[:60]), builder.step(one.expression), most)
        else:
            grid = _moments(bounds, one, most)
        root = GroupHistograms(builder.rows(keys, (Quantity(one.expression, grid),)))
        return Special(SpecialKind.QUANTILES, root, one.fractions, grid, many=one.many, epsilon=one.epsilon)
    column = builder.columns[one.expression.name]
    assert column.type is not None
    if one.kind is AggregateKind.WINNERS:
        values = column.keys()
        if values is None:
            fix = f"declare values for {column.name}; or GROUP BY it, ORDER BY COUNT(*) DESC and LIMIT"
            message = "the most frequent values are searched among declared ones"
            raise QuestionError("no-values", message, where=one.text[:60], fix=fix)
        key = Key(column.name, column.type, values)
        counted = Aggregate(builder.rows((*keys, key), ()), (Total(TotalKind.ROWS),))
        return Special(SpecialKind.WINNERS, counted, values=values, k=one.k, many=one.many, epsilon=one.epsilon)
    return Special(
        SpecialKind.DISTINCT, _distinct(builder, one, Key(column.name, column.type, None)), epsilon=one.epsilon
    )


def _moments(bounds: Bounds, one: Any, most: int) -> Lattice:
    """The lattice of dates or timestamps: whole days; whole seconds, minutes, hours or days, whichever are few enough;
    or a power of two of days."""
    if EVER[one.moment][0] in bounds or EVER[one.moment][1] in bounds:
        dates = "(DATE '2000-01-01', DATE '2029-12-31')"
        fix = f"declare min and max for the column, or write contribution_bounds_per_row => {dates} behind it"
        raise QuestionError("no-bounds", "no bounds are declared for these dates", where=one.text[:60], fix=fix)
    steps = (1,) if one.moment is Type.DATE else (1, 60, 3_600, 86_400)
    step = next((step for step in steps if (bounds[1] - bounds[0]) / step <= most), steps[-1])
    return buckets(bounds, Fraction(step), most)


def _distinct(builder: SpecialBuilder, one: Any, value: Key) -> Distinct:
    """Each person counts for so many values in a group as the question's bounds say, or so many in all groups as a
    person may touch groups."""
    request, table = builder.request, builder.table
    keys = (*request.keys, value)
    if builder.single:
        return Distinct(Aggregate(builder.rows(keys, ()), (Total(TotalKind.ROWS),)))
    most = request.rows or request.groups or table.groups_per_person or 1
    if one.bounds is not None:
        most = int(one.bounds[1]) * ((request.groups or table.groups_per_person or 1) if request.keys else 1)
    grouped = PersonGroup(builder.selected(keys, ()))
    cells = touched(keys, table.relation)
    limited = grouped if cells is not None and cells <= most else LimitGroups(grouped, most)
    return Distinct(Aggregate(Clip(limited), (Total(TotalKind.PERSONS),)))
