"""What a question's limits drop: as far as declarations tell, and the questions that measure the rest.

The yardstick is the same question at the declared limits: D rows a person (`rows_per_person`) and G groups
(`groups_per_person`, or all groups there are, if these are fewer), no count clamped. What a person has beyond those
never counts, whatever is asked; that is the owner's choice, and no question sees it.

The share. Let the question's limits be L rows and K groups. Take any count in any group, under any WHERE, with NULLs
or without. Let X be what one person adds to it, and Y what the person would add at the declared limits. Over the salt,
E[X] ≥ s·E[Y]:

* Rows. Of a person's n rows (of one table all rows, else those that WHERE and keys leave; always n ≥ 1 for a row that
  counts) each is kept with probability min(1, L/n), at the declared limit with min(1, D/n): the quotient is at least
  s = min(1, L/D), for each row by itself, so for any number of them, and for sums of values that are never negative.
* Persons, where rows are limited: a person counts in a group if one of the rows kept lies there. A window of D
  positions is the union of ⌈D/L⌉ windows of L, which all hit the group with one probability, so s = 1/⌈D/L⌉. Rows
  of several tables that are kept are a uniform subset, whose chance of hitting is concave in its size: L/D or more.
* Groups. Of the g groups that a person touches each is kept with probability min(1, K/g), at the declared limit with
  min(1, G/g′) with g′ ≥ g groups, since more rows touch more of them. So s = min(1, K/G), also for what the rows kept
  make of g, and the factor multiplies that of the rows.
* A count clamped to at most c for each person and group: min(m, c) ≥ min(1, c/R)·m for the m ≤ R rows that reach it, R
  the limit on rows, if that is below D; else min(m, c) ≥ min(1, c/D)·min(m, D). For certain, not on average.

Groups with private keys are shown where a noisy number of their persons is high enough. Persons are kept or not
independently of each other, and both what they add to a count and whether their group is shown rise with what is kept,
so a group that is shown has kept no less on average (Harris 1960): the share holds for each group that is shown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.plan.measurement import Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    Node,
    Part,
    Project,
    Scan,
    Total,
    TotalKind,
    project_of,
)
from discreet.trusted.ring_a.sensitivity import touched
from discreet.trusted.ring_a.table import Table, Type, Value
from discreet.trusted.ring_b.order_statistics import Distinct
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    ListedKeys,
    Matched,
    Renamed,
    Where,
    beside,
)

MOST_VALUES = 20
"""Keys with more declared values than these are not spelled out in a question."""


@dataclass(frozen=True)
class Limit:
    """How many rows, groups or different values (`what`) of each person count. `declared` is how many the declaration
    lets count; None where it does not say, as of rows that a join makes."""

    what: str
    limit: int
    declared: int | None

    @property
    def share(self) -> Fraction | None:
        """The least part of a count of rows that stays on average; None where that is not known."""
        return None if self.declared is None else min(Fraction(1), Fraction(self.limit, self.declared))

    @property
    def share_of_persons(self) -> Fraction | None:
        """The same for a count of persons."""
        if self.what != "rows" or self.declared is None:
            return self.share
        return Fraction(1, -(-self.declared // self.limit)) if self.limit < self.declared else Fraction(1)


@dataclass(frozen=True)
class Kept:
    """What the limits leave of a count or a sum: the least `share`, None where it is not known. It is `certain`, or
    holds on average. `one` is the limit that each person above it adds to the sum over all groups, where that is so,
    and with `untouched` the person has all that the table has of the person, as a profile counts it. `clamp` is the
    most that a person may add in a group."""

    share: Fraction | None
    certain: bool = True
    one: int | None = None
    untouched: bool = False
    clamp: int | None = None


def limits(plan: Plan, table: Table) -> tuple[Limit, ...]:
    """The limits on what one person contributes to the parts of a plan, and to what is measured by itself."""
    found = [
        _limit(node, table, plan.keys) for root in plan.roots if not isinstance(root, Distinct) for node in _of(root)
    ]
    found += [
        Limit("values", node.groups, None)
        for root in plan.roots
        if isinstance(root, Distinct)
        for node in _of(root)
        if isinstance(node, LimitGroups)
    ]
    return tuple(dict.fromkeys(found))


def _of(node: Node) -> Iterator[LimitRows | LimitGroups]:
    """The limits of a plan, from the top."""
    while not isinstance(node, Project | Filter | Scan):
        if isinstance(node, LimitRows | LimitGroups):
            yield node
        node = node.child


def _limit(node: LimitRows | LimitGroups, table: Table, keys: tuple[Key, ...]) -> Limit:
    plain = one_table(table)
    if isinstance(node, LimitRows):
        return Limit("rows", node.rows, plain.rows_per_person if plain else None)
    declared = plain.groups_per_person if plain else None
    cells = touched(keys, table.relation)
    return Limit("groups", node.groups, declared if declared is None or cells is None else min(declared, cells))


def one_table(table: Table) -> Table | None:
    """The declared table whose rows a question reads, each at most once; along foreign keys once for each row that it
    leads to. None where the question makes rows of its own."""
    relation = table.relation
    if relation is None:
        return table
    while isinstance(relation, Where | Renamed | Computed | ListedKeys | Matched | Joined | Attributed):
        relation = beside(relation) if isinstance(relation, Joined) else relation.child
    return relation.table if isinstance(relation, Base) else None


def kept(plan: Plan, table: Table, output: Output) -> Kept:
    """What the limits leave of a count, or of a sum of values that are never negative."""
    part = plan.parts[output.index]
    total = _total(plan, part, output)
    people = total.kind in (TotalKind.PERSONS, TotalKind.PERSONS_WITH_VALUE, TotalKind.MEAN_PER_PERSON)
    own = [_limit(node, table, plan.keys) for node in _of(plan.root)]
    whole = Fraction(1)
    for one in own:
        share = one.share_of_persons if people else one.share
        if share is None:
            return Kept(None)
        whole *= share
    if output.kind is OutputKind.SUM and (total.bounds is not None or (whole < 1 and _may_be_negative(part, output))):
        return Kept(None)
    if output.kind is OutputKind.SUM and plan.chosen is not None and plan.chosen.columns:
        return Kept(None)  # values are clamped to narrower bounds than the declared ones
    tight = [one for one in own if one.share != 1]
    if total.bounds is not None and not people:
        plain = one_table(table)
        if plain is None or plain.rows_per_person is None:
            return Kept(None)
        rows = min((one.limit for one in own if one.what == "rows"), default=plain.rows_per_person)
        rows, clamp = min(rows, plain.rows_per_person), total.bounds[1]
        return Kept(whole * min(Fraction(1), Fraction(clamp, rows)), not tight, clamp=clamp)
    fills = len(tight) == 1 and _fills(plan, tight[0], total, output)
    # along foreign keys the rows of a person are drawn themselves, where tables on the way have limits
    fills = fills and not any(base.path is not None for base in table.bases)
    return Kept(whole, not tight or fills, tight[0].limit if fills else None, fills and table.relation is None)


def _fills(plan: Plan, limit: Limit, total: Total, output: Output) -> bool:
    """Whether a person above the limit adds exactly so many to the count over all groups: no row or group that takes a
    place in the window is left out of the count afterwards. Windows look past WHERE, and those of rows past the keys;
    what is not one declared table as it stands has no windows. Groups with private keys may not be shown."""
    every = sum(weight != 0 for weight in output.weights) == 1 and total.kind in (TotalKind.ROWS, TotalKind.PERSONS)
    if plan.private or not every or (total.kind is TotalKind.ROWS) != (limit.what == "rows"):
        return False
    child = project_of(plan.root).child
    if (child.child if isinstance(child, Filter) else child).relation is not None:
        return True
    return not isinstance(child, Filter) and (limit.what == "groups" or not plan.keys)


def _total(plan: Plan, part: Part, output: Output) -> Total:
    """What an output counts or adds up."""
    place = next((axis.place for axis in part.axes if output.weights[axis.place]), 0)
    return plan.root.totals[part.vectors[place].weights[0][0]]


def _may_be_negative(part: Part, output: Output) -> bool:
    grid = lattice_of(part, output)
    return grid is None or grid.low < 0


def lattice_of(part: Part, output: Output) -> Lattice | None:
    """The lattice of a sum."""
    own = [axis.lattice for axis in part.axes if output.weights[axis.place]]
    return own[0] if own else part.lattice


def at_limit(plan: Plan, what: str, limit: int) -> Plan:
    """The plan at another limit on rows or groups, as `max_rows_contributed` or `max_groups_contributed` makes it: the
    one on rows stands by itself."""

    def changed(node: Any) -> Any:
        if isinstance(node, Project | LimitRows) and what == "rows":
            return LimitRows(node.child if isinstance(node, LimitRows) else node, limit)
        if isinstance(node, Project):
            return node
        if isinstance(node, LimitGroups) and what == "rows":
            return changed(node.child)
        below = replace(node, child=changed(node.child))
        return replace(below, groups=limit) if isinstance(node, LimitGroups) else below

    specials = tuple(
        one if isinstance(one.root, Distinct) else replace(one, root=changed(one.root)) for one in plan.specials
    )
    ranges = tuple(replace(one, root=changed(one.root)) for one in plan.ranges)
    return replace(plan, root=changed(plan.root), specials=specials, ranges=ranges)


def unit(table: Table) -> str:
    """What is added or removed, in words."""
    shared = [base.name for base in table.bases if base.shared]
    part = (
        f"; of rows of {' and '.join(shared)}, which may be of several persons, with the part in them" if shared else ""
    )
    return f"one person, added or removed with all rows{part}"


def without_group(keys: tuple[Key, ...], table: Table) -> str | None:
    """Which rows have no group, in words: of a key for which NULL is none, and of one that may have other values than
    the declared ones. A whole number within declared bounds, and what is true or false, has none."""
    whole = {column.name for column in table.columns if column.values is None}
    null = any(not key.null for key in keys)
    other = any(key.values is not None and key.name not in whole for key in keys)
    which = " or ".join(word for word, may in (("NULL", null), ("not declared", other)) if may)
    return f"rows whose key is {which} are left out" if which else None


def clamps(plan: Plan) -> list[tuple[str, Fraction, Total]]:
    """The totals that are clamped for each person and group: what they are, their step, and the total."""
    found = []
    for part in plan.parts:
        lattices: list[tuple[int, Lattice | None]] = [(axis.place, axis.lattice) for axis in part.axes]
        for place, lattice in lattices or [(0, part.lattice)]:
            total = plan.root.totals[part.vectors[place].weights[0][0]]
            if total.bounds is not None:
                kind = part.kind if not part.axes else "sum" if total.kind is TotalKind.SUM else "count"
                found.append((kind, lattice.step if lattice else Fraction(1), total))
    return found


def row_clamps(plan: Plan, table: Table) -> list[tuple[str, Fraction, Fraction]]:
    """The columns whose values a question clamps more tightly than they are declared, and to what."""
    found: list[tuple[str, Fraction, Fraction]] = []
    declared = {column.name: (column.minimum, column.maximum) for column in table.columns}
    rest = list(_expressions(plan))
    while rest:
        one = rest.pop(0)
        if not isinstance(one, Call):
            continue
        rest += one.arguments
        clamp = _clamp(one)
        if clamp is None or clamp in found:
            continue
        name, low, high = clamp
        least, most = declared.get(name, (None, None))
        if not (
            isinstance(least, int | Fraction) and isinstance(most, int | Fraction) and low <= least and most <= high
        ):
            found.append(clamp)
    return found


def _clamp(one: Call) -> tuple[str, Fraction, Fraction] | None:
    """GREATEST(LEAST(column, high), low)."""
    if one.operator != "greatest" or len(one.arguments) != 2:
        return None
    inner, low = one.arguments
    if not (isinstance(inner, Call) and inner.operator == "least" and len(inner.arguments) == 2):
        return None
    column, high = inner.arguments
    ends = [end.value for end in (low, high) if isinstance(end, Literal) and isinstance(end.value, int | Fraction)]
    if not isinstance(column, ColumnOf) or len(ends) != 2:
        return None
    return column.name, Fraction(ends[0]), Fraction(ends[1])


def _expressions(plan: Plan) -> Iterator[Expression]:
    for root in plan.roots:
        yield from (one.expression for one in project_of(root).quantities)


class Telling:
    """The questions that tell, each at a price of its own, what the limits of questions about a table leave out. A
    question is None where the table has no name for what it needs."""

    def __init__(self, plan: Plan, table: Table) -> None:
        plain = one_table(table)
        self.base = plain if plain is not None else table
        self.table = table
        self.known = plain is not None and not plain.path and plain.column(plain.person or "") is not None
        self.columns = _own_columns(table)
        self.person = quoted(self.base.person or "")
        self.name = quoted(self.base.name)
        self.keys = [key.name for key in plan.keys]
        names = {column.name.casefold() for column in self.base.columns}
        self.k = next(
            name
            for name in itertools.chain(["k"], (f"k_{number}" for number in itertools.count()))
            if name not in names
        )

    def persons_above(self, limit: Limit) -> str | None:
        """How many persons have more than the limit; at the declared limit on rows, as many or more, since rows beyond
        it do not count there either."""
        rows = self._counted(limit.what)
        if rows is None or (limit.what == "rows" and limit.limit > (limit.declared or 0)):
            return None  # no subquery reads more rows than are declared
        at_most = limit.what == "rows" and limit.declared is not None and limit.limit >= limit.declared
        condition = f"{self.k} {'>=' if at_most else '>'} {limit.declared if at_most else limit.limit}"
        return f"SELECT COUNT(*) FROM ({rows}) WHERE {condition}"

    def quantile(self, what: str) -> str | None:
        """How many rows or groups 95 % of the persons stay within."""
        rows = self._counted(what)
        return None if rows is None else f"SELECT PERCENTILE_CONT({self.k}, 0.95) AS {self.k} FROM ({rows})"

    def _counted(self, what: str) -> str | None:
        """Each person's number of rows or groups."""
        if not self.known or what not in ("rows", "groups"):
            return None
        rows = self.name
        if what == "groups":
            if not self._has(*self.keys):
                return None
            rows = f"(SELECT DISTINCT {self.person}, {', '.join(map(quoted, self.keys))} FROM {self.name})"
        return f"SELECT {self.person}, COUNT(*) AS {self.k} FROM {rows} GROUP BY {self.person}"

    def totals_outside(self, plan: Plan, total: Total, step: Fraction) -> tuple[str, str] | None:
        """How many totals of a person and group lie outside their bounds, and what 95 % of them stay within."""
        expression = None if total.quantity is None else project_of(plan.root).quantities[total.quantity].expression
        plain = expression is None or (isinstance(expression, ColumnOf) and self._has(expression.name))
        functions = {TotalKind.SUM: "SUM", TotalKind.MEAN_PER_PERSON: "AVG"}
        if not (self.known and plain and total.bounds is not None and self._has(*self.keys)):
            return None
        what = "*" if expression is None else quoted(getattr(expression, "name", ""))
        by = ", ".join([self.person, *map(quoted, self.keys)])
        each = f"(SELECT {by}, {functions.get(total.kind, 'COUNT')}({what}) AS {self.k} FROM {self.name} GROUP BY {by})"
        low, high = (show(step * bound) for bound in total.bounds)
        outside = f"SELECT COUNTIF({self.k} < {low} OR {self.k} > {high}) AS outside FROM {each}"
        return outside, f"SELECT PERCENTILE_CONT({self.k}, 0.95) AS {self.k} FROM {each}"

    def values_outside(self, column: str, low: Fraction, high: Fraction) -> str | None:
        """How many rows have a value outside bounds that nobody declared."""
        if not self._has(column):
            return None
        name = quoted(column)
        return f"SELECT COUNTIF({name} < {show(low)} OR {name} > {show(high)}) AS outside FROM {self.name}"

    def rows_without_key(self, keys: Sequence[Key]) -> str | None:
        """How many rows have no declared key."""
        conditions = []
        for key in keys:
            if key.values is None:
                continue
            if not self._has(key.name):
                return None
            if not key.null:
                conditions.append(f"{quoted(key.name)} IS NULL")
            if key.type is Type.TEXT:
                listed = self._listed(key) or ()
                if len(listed) > MOST_VALUES:
                    return None
                values = ", ".join("'" + str(value).replace("'", "''") + "'" for value in listed)
                conditions.append(f"{quoted(key.name)} NOT IN ({values})")
            elif key.type is not Type.BOOLEAN and not self._all_values(key):
                return None
        return f"SELECT COUNT(*) AS outside FROM {self.name} WHERE {' OR '.join(conditions)}" if conditions else None

    def groups(self) -> str | None:
        """How many groups there are, where one column with private keys makes them."""
        if len(self.keys) != 1 or not self._has(*self.keys):
            return None
        return f"SELECT COUNT(DISTINCT {quoted(self.keys[0])}) AS groups FROM {self.name}"

    def _all_values(self, key: Key) -> bool:
        """Whether an integer's keys are all that its declared bounds let it have."""
        column = self.base.column(key.name)
        return column is not None and column.values is None and column.keys() == self._listed(key)

    def _listed(self, key: Key) -> tuple[Value, ...] | None:
        """A key's public values, those too that WHERE leaves out."""
        column = self.table.column(key.name)
        return column.keys() if column is not None else key.values

    def _has(self, *names: str) -> bool:
        """Whether these are columns of the declared table, under their own names."""
        return self.columns.issuperset(names)


def _own_columns(table: Table) -> frozenset[str]:
    """The columns that stand in a declared table under the same names."""
    relation = table.relation
    while isinstance(relation, Where | Matched):
        relation = relation.child
    if isinstance(relation, Computed) and isinstance(relation.child, Base):
        return frozenset(name for name, one in relation.columns if isinstance(one, ColumnOf) and one.name == name)
    return frozenset(column.name for column in table.columns if relation is None or isinstance(relation, Base))


_RESERVED = re.compile(
    "all|and|any|as|asc|between|by|case|cast|cross|default|desc|distinct|else|end|escape|except|exists|extract|false|"
    "filter|for|from|full|group|having|if|in|inner|intersect|interval|into|is|join|left|like|limit|not|null|offset|on|"
    "or|order|outer|over|partition|pivot|qualify|right|rows?|select|set|some|table|then|to|true|union|unique|unnest|"
    "using|values|when|where|window|with|current_(date|time|timestamp)",
    re.IGNORECASE,
)


def quoted(name: str) -> str:
    """A name as a question writes it."""
    plain = name.isidentifier() and name.isascii() and not _RESERVED.fullmatch(name)
    return name if plain else '"' + name.replace('"', '""') + '"'


def advice(plan: Plan, table: Table) -> tuple[str, ...]:
    """Questions that tell, at a price of their own, which limits to choose, each after a colon."""
    telling = Telling(plan, table)
    words: list[str] = []
    for one in limits(plan, table):
        if (question := telling.quantile(one.what)) is not None:
            option = f"max_{one.what}_contributed"
            words.append(f"the {option} that drops nothing of 95 % of the persons (or of another fraction): {question}")
    for _, step, total in clamps(plan):
        if (both := telling.totals_outside(plan, total, step)) is not None:
            option = "contribution_bounds_per_group"
            words.append(f"the {option} that 95 % of the totals of a person in a group stay below: {both[1]}")
    return tuple(dict.fromkeys(words))
