"""The limits and bounds that are best for one question at one price, by released histograms of what persons contribute.

All of it is post-processing: it follows from released numbers, declarations, the question and its price, so two
neighbours of which the same was released get the same limits, and nothing is charged. The histograms may be wrong, as
noise is: that makes a worse choice, never a larger loss, which follows from the plan that is made with the limits.

What is minimised is the mean absolute error of each number, as the product over the numbers of the answer (as
`plan.split` does, whatever their units). With B what the limits leave out and b the mean size of the noise it is
E|B + noise| = B + b·e^(−B/b), exactly so for Laplace noise. B is estimated from the histograms (`plan.profile`):

* a count of rows: the rows beyond the limit, by one table for all groups alike;
* a count of persons: the groups beyond the limit, where groups by just these columns were counted;
* a sum: the rows beyond the limit, each of the mean size that the histogram of sizes tells, or of half the largest one;
  and what lies beyond the bounds in the rows that count, as if the values of a person were spread evenly between 0 and
  the largest;
* a mean: as the sum of its values; where no sizes were counted as the number of its values times its width, since to
  leave out a part of the rows moves a mean by at most that part of the width.

It is estimated as if all rows met WHERE, and were spread evenly over public groups; private ones as if all were in one.
Declared limits are the most that can be chosen. A question that names its own limits keeps these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from discreet.intervals.expected import error_of, grid_of, half_width_of, size_output
from discreet.plan.left_out import limits, one_table
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import AggregateKind, Output, OutputKind
from discreet.plan.planner import Request
from discreet.plan.planner import plan as planned
from discreet.plan.profile import ChosenLimits, Histogram, Profile
from discreet.plan.split import measurement
from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.nodes import TotalKind, project_of
from discreet.trusted.ring_a.sensitivity import cell_count
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_b.jointly import axis_of
from discreet.trusted.ring_b.order_statistics import Distinct, rows_reached
from discreet.trusted.ring_b.relations import Attributed, columns_of

MEAN_SIZE = math.exp(-1)
"""How often Laplace noise is larger than its mean size: half widths that fail so often are mean sizes."""


def at_best_limits(asked: Plan, request: Request | None, profiles: Sequence[Profile], price: Price) -> Plan:
    """The plan of a question at the limits that are best by the last of these profiles, each of which holds those
    before it. The plan itself where nothing can be chosen."""
    plain = None if request is None else one_table(request.table)
    if request is None or not profiles or plain is None or plain.person is None or plain.one_row_per_person:
        return asked
    known = tuple(profiles[-MOST_EARLIER:])
    made = _made(asked, request, known[-1], price)
    return replace(made, at=partial(_all, asked, request, known))


def _all(asked: Plan, request: Request, profiles: tuple[Profile, ...], price: Price) -> tuple[Plan, ...]:
    """The plans by all of these profiles, and by none, the latest first, each once."""
    made = [_made(asked, request, one, price) for one in reversed(profiles)]
    return tuple(dict.fromkeys([*made, asked]))


@lru_cache(maxsize=256)
def _made(asked: Plan, request: Request, profile: Profile, price: Price) -> Plan:
    """The plan by one profile: what was chosen lately is not looked for again."""
    return _LimitChoice(asked, request, profile, price).plan()


MOST_EARLIER = 3
"""By how many of the profiles of one snapshot an answer is looked for."""


class _LimitChoice:
    """One question at one price, by one profile."""

    def __init__(self, asked: Plan, request: Request, profile: Profile, price: Price) -> None:
        self.asked, self.request, self.profile, self.price = asked, request, profile, price
        self.chosen = ChosenLimits(profile)
        self.groups = profile.groups([key.name for key in request.keys]) if request.keys else None
        cells = cell_count(request.keys)
        self.cells = cells or 1

    def plan(self) -> Plan:
        """Rows and the bounds of each column together, then groups."""
        self._rows()
        for column in self._columns():
            self._bounds(column)
        if self.groups is not None and self.request.table.groups_per_person is not None:
            most = self.request.table.groups_per_person
            self._best([replace(self.chosen, groups=one) for one in _up_to(self.groups.limits(), most)])
        return self._at(self.chosen)

    def _rows(self) -> float:
        rows, most = self.profile.rows, self.request.table.rows_per_person
        if rows is None or most is None:
            return self._best([self.chosen])
        return self._best([replace(self.chosen, rows=one) for one in _up_to(rows.limits(), most)])

    def _bounds(self, column: Column) -> None:
        """The bounds of a column, within the declared ones, each with the rows that are best with it: what lies beyond
        narrow bounds hides what lies beyond few rows, and the other way round."""
        size = self.profile.size(column.name)
        assert size is not None
        others = [one for one in self.chosen.columns if one[0] != column.name]
        least, best = math.inf, self.chosen
        for largest in size.sizes():
            low, high = _inside(column, largest)
            if low >= high:
                continue
            self.chosen = replace(self.chosen, columns=(*others, (column.name, low, high)))
            if (error := self._rows()) <= least:
                least, best = error, self.chosen
        self.chosen = best

    def _columns(self) -> list[Column]:
        """The columns that nothing but sums and means read, as they are, and of which sizes were counted."""
        used: dict[str, bool] = {}
        for one in self.request.wanted:
            summed = one.kind in (AggregateKind.SUM, AggregateKind.MEAN) and one.bounds is None
            for expression in (one.expression, one.second):
                if expression is None:
                    continue
                plain = isinstance(expression, ColumnOf) and summed
                for name in columns_of(expression):
                    used[name] = used.get(name, True) and plain
        columns = [self.request.table.column(name) for name, plain in used.items() if plain and self._own(name)]
        return [one for one in columns if one is not None and self.profile.size(one.name) is not None]

    def _own(self, name: str) -> bool:
        """Whether a column is that of the declared table, under its own name."""
        plain, mine = one_table(self.request.table), self.request.table.column(name)
        theirs = None if plain is None else plain.column(name)
        whole = isinstance(self.request.table.relation, Attributed | None)
        return mine is not None and theirs is not None and whole and mine == theirs

    def _best(self, candidates: Sequence[ChosenLimits]) -> float:
        """The candidate with the least error; of equal ones the last, which leaves out least. They are in order, so
        every third is tried first, and then what lies beside the best."""
        errors = {place: self._error(candidates[place]) for place in range(len(candidates) - 1, -1, -3)}
        near = min(errors, key=lambda place: (errors[place], -place))
        for place in range(max(0, near - 2), min(len(candidates), near + 3)):
            if place not in errors:
                errors[place] = self._error(candidates[place])
        best = min(errors, key=lambda place: (errors[place], -place))
        self.chosen = candidates[best]
        return errors[best]

    def _at(self, chosen: ChosenLimits) -> Plan:
        """The plan of the question over a table with these limits for its declared ones."""
        table = self.request.table
        bounds = {name: (low, high) for name, low, high in chosen.columns}
        narrower = replace(
            table,
            rows_per_person=chosen.rows or table.rows_per_person,
            groups_per_person=chosen.groups or table.groups_per_person,
            columns=tuple(_narrowed(one, bounds.get(one.name)) for one in table.columns),
        )
        made, asked = planned(replace(self.request, table=narrower)), self.asked
        return replace(
            made, having=asked.having, order=asked.order, limit=asked.limit, written=asked.written, chosen=chosen
        )

    def _error(self, chosen: ChosenLimits) -> float:
        """The sum of the logarithms of the errors of all numbers."""
        plan = self._at(chosen)
        priced = measurement(plan, self.price)
        total = 0.0
        for output in plan.outputs:
            if output.kind in (OutputKind.KEY, OutputKind.FORMULA) or output.of:
                continue
            both = self._special(priced, output) if output.kind is OutputKind.SPECIAL else self._both(priced, output)
            if both is not None:
                left, noise = both
                whole = left + noise * math.exp(-min(700.0, left / noise)) if noise > 0 else left
                total += math.log(whole) if whole > 0 else -700.0
        return total

    def _special(self, priced: Measurement, output: Output) -> tuple[float, float] | None:
        """What is left out, and the noise, of what is found by rank or by count: in rows."""
        one = priced.specials[output.index]
        if isinstance(one.special.root, Distinct):
            return None
        epsilon = getattr(one.mechanism, "epsilon", None)
        if epsilon is None:
            return None
        return self._rows_left(priced.plan), float(rows_reached(one.special.root) / epsilon)

    def _both(self, priced: Measurement, output: Output) -> tuple[float, float] | None:
        """What is left out of a number, and the mean size of its noise."""
        measured = priced.parts[output.index]
        if priced.ranges and output.kind in (OutputKind.SUM, OutputKind.MEAN):
            return None  # known only with the bounds
        left = self._left(priced.plan, output)
        if output.kind is OutputKind.MEAN:
            count = size_output(output, measured)
            grid = grid_of(output, measured)
            width = float(grid.step * grid.width)
            noise = half_width_of(count, measured, MEAN_SIZE) * width
            each = width if self._summed(priced.plan, output)[0] is None else self._size(priced.plan, output)
            return left * each + self._clamped(priced.plan, output), noise
        noise = error_of(output, measured, MEAN_SIZE, 1)
        if output.kind is not OutputKind.SUM:
            return left, noise
        return left * self._size(priced.plan, output) + self._clamped(priced.plan, output), noise

    def _left(self, plan: Plan, output: Output) -> float:
        """How many rows, or persons in groups, the limits leave out of a number, in each group."""
        total = plan.root.totals[plan.parts[output.index].vectors[0].weights[0][0]]
        people = total.kind in (TotalKind.PERSONS, TotalKind.PERSONS_WITH_VALUE, TotalKind.MEAN_PER_PERSON)
        left = 0.0 if people else self._rows_left(plan)
        most = next((one.limit for one in limits(plan, self.request.table) if one.what == "groups"), None)
        if most is None or self.groups is None:
            return left
        beyond, within = self.groups.beyond(most) / self.cells, self.groups.within(most) / self.cells
        if people:
            return beyond
        kept = max(0.0, self._all_rows() - left)
        return left + kept * beyond / (beyond + within) if beyond else left

    def _rows_left(self, plan: Plan) -> float:
        rows, most = self.profile.rows, self._row_limit(plan)
        return 0.0 if rows is None or most is None else rows.beyond(most) / self.cells

    def _row_limit(self, plan: Plan) -> int | None:
        return next((one.limit for one in limits(plan, self.request.table) if one.what == "rows"), None)

    def _all_rows(self) -> float:
        rows = self.profile.rows
        return 0.0 if rows is None or rows.most is None else rows.within(float(rows.most)) / self.cells

    def _summed(self, plan: Plan, output: Output) -> tuple[Histogram | None, float]:
        """The sizes of what a sum or a mean adds up, and the largest one by its bounds."""
        part = plan.parts[output.index]
        vector = part.vectors[axis_of(part, output.weights).place if part.axes else 0]
        total = plan.root.totals[vector.weights[0][0]]
        if total.quantity is None:
            return None, 1.0
        quantity = project_of(plan.root).quantities[total.quantity]
        grid = quantity.lattice
        largest = 1.0 if grid is None else float(grid.step) * max(abs(grid.low), abs(grid.high))
        of = quantity.expression
        size = self.profile.size(of.name) if isinstance(of, ColumnOf) and self._own(of.name) else None
        return size, largest

    def _size(self, plan: Plan, output: Output) -> float:
        """The mean size of what a sum adds up."""
        size, largest = self._summed(plan, output)
        persons = 0 if size is None else sum(size.persons)
        return largest / 2 if size is None or not persons else sum(size.spread(largest)) / persons

    def _clamped(self, plan: Plan, output: Output) -> float:
        """How much of a sum lies beyond its bounds, in each group."""
        size, largest = self._summed(plan, output)
        if size is None:
            return 0.0
        rows = self.profile.rows
        persons = 0 if rows is None else sum(rows.persons)
        counted = 0.0 if rows is None else rows.within(float(self._row_limit(plan) or rows.most or 1))
        return (counted / persons if persons else 1.0) * size.spread(largest)[1] / self.cells


def _up_to(found: Sequence[int], most: int) -> list[int]:
    return sorted({min(one, most) for one in (*found, most)})


def _inside(column: Column, largest: Fraction) -> tuple[Fraction, Fraction]:
    """Where the values of a column lie that are no larger than this, within its declared bounds."""
    low, high = column.minimum, column.maximum
    least = Fraction(low) if isinstance(low, int | Fraction) else None
    most = Fraction(high) if isinstance(high, int | Fraction) else None
    return (
        -largest if least is None else max(least, -largest),
        largest if most is None else min(most, largest),
    )


def _narrowed(column: Column, bounds: tuple[Fraction, Fraction] | None) -> Column:
    if bounds is None:
        return column
    low, high = bounds
    if column.type is Type.INTEGER:
        return replace(column, minimum=math.floor(low), maximum=math.ceil(high))
    return replace(column, minimum=low, maximum=high)


def narrower(plan: Plan, table: Table) -> ChosenLimits | None:
    """What was chosen for a plan that is less than what the table declares; None where nothing is."""
    chosen = plan.chosen
    if chosen is None:
        return None
    plain = one_table(table)
    rows = chosen.rows if plain is not None and chosen.rows != plain.rows_per_person else None
    groups = chosen.groups if plain is not None and chosen.groups != plain.groups_per_person else None
    return replace(chosen, rows=rows, groups=groups) if rows or groups or chosen.columns else None
