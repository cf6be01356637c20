"""Which cells a stored measurement has a number of, and which of them a question adds up.

A measurement with public keys has one cell for each combination of their values: the rows with these values for which
its conditions are true. A row lies in one cell at most; in none where one of its keys has a value that is not listed,
or is NULL where NULL is no key. Another question's rows, in each of its groups, are a union of such cells where

* it groups by some of these keys, and each of its groups is listed there too;
* of each other key it says by conditions on that column alone which values its rows have, and all of these are listed:
  a row with any other value, or none, meets them never. A column without a condition does that where the declaration
  leaves no other value, as of whole numbers with bounds;
* what else it asks of a row is word for word what the measurement asked.

Each set of cells is then a product of sets of values, one for each key.

Same limited quantity. The numbers of the cells add up to the question's own only where both count the same rows of each
person and clamp them alike. Here each person has one row by declaration, enforced when tables are loaded, so no limit
chooses rows; and totals are compared by what they mean, expression, lattice and clamps included (`release.reused`).
Questions whose limits could choose other rows have no cells here.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from discreet.intervals import chosen
from discreet.plan.measurement import Plan
from discreet.plan.narrowed import decided, says, selected
from discreet.plan.whole import conjuncts
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.nodes import Filter, Key, Project, scan_of
from discreet.trusted.ring_a.public_groups import public_groups
from discreet.trusted.ring_a.table import Column, Value
from discreet.trusted.ring_b.listed_groups import group_count
from discreet.trusted.ring_b.questions import Noisy

MOST_SUMS = 2_000_000
"""The most numbers that are added up for one answer."""


@dataclass(frozen=True)
class Rows:
    """The rows that a question measures: its keys, and its conditions, each once. `said` names the column of those that
    say of one column, with public values, which of these a row has."""

    keys: tuple[Key, ...]
    conditions: tuple[Expression, ...]
    said: Mapping[Expression, str]
    groups: tuple[tuple[Value | None, ...], ...]
    """Of each key, the values with which the conditions on it are true."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its keys."""
        return tuple(key.name for key in self.keys)

    def rest(self, columns: Collection[str]) -> tuple[str, ...]:
        """The conditions that no values of these columns say, in words."""
        return tuple(sorted(repr(one) for one in self.conditions if self.said.get(one) not in columns))


@dataclass(frozen=True)
class Union:
    """What a question adds up of stored cells: of each key the places of its values, or None where the question groups
    by it."""

    places: tuple[tuple[int, ...] | None, ...]
    known: Rows
    grouped: tuple[tuple[Value | None, ...], ...]
    """Of each key, the values that the question's groups have; none where it does not group by it."""

    @property
    def cells(self) -> int:
        """How many cells each of its groups has."""
        return prod(len(one) for one in self.places if one is not None)

    @property
    def touched(self) -> tuple[frozenset[int], ...]:
        """Of each key, the places of all values whose cells the question's groups are made of."""
        sizes = zip(self.places, self.known.groups, strict=True)
        return tuple(self._grouped(key) if one is None else frozenset(one) for key, (one, _) in enumerate(sizes))

    def _grouped(self, key: int) -> frozenset[int]:
        wanted = set(self.grouped[key])
        return frozenset(place for place, value in enumerate(self.known.groups[key]) if value in wanted)

    @property
    def share(self) -> float:
        """The share of the failures of one such set of cells (`intervals.chosen`)."""
        sizes = zip(self.places, self.known.groups, strict=True)
        return prod(chosen.values((0,) if one is None else one, len(groups)) for one, groups in sizes)


def rows(plan: Plan, columns: Mapping[str, Column]) -> Rows | None:
    """The rows that a plan measures; None where it has no cells that could be added up."""
    project = plan.root.child
    scan = scan_of(plan.root)
    if not (isinstance(project, Project) and plan.parts and scan.one_row_per_person):
        return None
    if plan.private or plan.ranges or plan.least != 1:
        return None
    if group_count(plan.keys, scan.relation) != prod(len(key.groups or ()) for key in plan.keys):
        return None  # a public table lists keys together: not all combinations are cells
    conditions = conjuncts(project.child.predicate) if isinstance(project.child, Filter) else []
    said = {one: name for one in conditions if (name := says(one, columns)) is not None}
    groups = []
    for key in plan.keys:
        own, source = [one for one in conditions if said.get(one) == key.name], ColumnOf(key.name, key.type)
        groups.append(tuple(value for value in key.groups or () if decided(own, source, value)))
    return Rows(plan.keys, tuple(conditions), said, tuple(groups))


def union(asked: Rows, known: Rows, columns: Mapping[str, Column]) -> Union | None:
    """The stored cells that each group of a question is; None where it is no union of them."""
    mine = {key.name: key for key in asked.keys}
    if not set(mine) <= set(known.columns) or asked.rest(known.columns) != known.rest(known.columns):
        return None
    places: list[tuple[int, ...] | None] = []
    for key, groups in zip(known.keys, known.groups, strict=True):
        own = [one for one in asked.conditions if asked.said.get(one) == key.name]
        if key.name not in mine:
            column = columns.get(key.name)
            found = None if column is None or column.type is not key.type else selected(own, column, groups)
            if found is None:
                return None
            places.append(found)
            continue
        listed, source = set(groups), ColumnOf(key.name, key.type)
        wanted = mine[key.name].groups or ()
        if mine[key.name].type is not key.type or not all(value in listed for value in wanted):
            return None
        if not all(decided(own, source, value) for value in wanted):
            return None
        places.append(None)
    grouped = tuple((mine[key.name].groups or ()) if key.name in mine else () for key in known.keys)
    return Union(tuple(places), known, grouped)


def summed(union: Union, asked: Plan, noisy: Noisy) -> Noisy:
    """The stored numbers of the cells of each group of a question, added up."""
    groups = public_groups(asked.keys, asked.root)
    place = {key: index for index, key in enumerate(noisy.keys)}
    mine = {key.name: index for index, key in enumerate(asked.keys)}
    gathered = [[place[cell] for cell in _cells(union, mine, group)] for group in groups]
    parts = tuple(
        tuple(tuple(sum(vector[index] for index in cells) for cells in gathered) for vector in part)
        for part in noisy.parts
    )
    return Noisy(tuple(groups), parts)


def _cells(union: Union, mine: Mapping[str, int], group: Sequence[Value | None]) -> Iterator[tuple[Value | None, ...]]:
    sets = []
    for key, values, places in zip(union.known.keys, union.known.groups, union.places, strict=True):
        sets.append([group[mine[key.name]]] if places is None else [values[one] for one in places])
    return itertools.product(*sets)


def few_enough(union: Union, asked: Plan) -> bool:
    """Whether adding the cells up takes little time."""
    return union.cells * prod(len(key.groups or ()) for key in asked.keys) <= MOST_SUMS
