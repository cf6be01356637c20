"""The groups of public keys of a relation: all combinations of values, or the listed ones where a public table lists
columns together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import singledispatch
from math import prod
from operator import contains

from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.nodes import Key
from discreet.trusted.ring_a.public_groups import Group, groups_of_relation
from discreet.trusted.ring_a.sensitivity import cell_count
from discreet.trusted.ring_a.table import Relation, Value
from discreet.trusted.ring_b.relations import Computed, Joined, ListedKeys, Matched, Renamed, Where, shape

Factor = tuple[tuple[int, ...], tuple[Group, ...]]
"""Some places among the keys, and the values that stand there together."""


@groups_of_relation.register
def listed_groups(relation: Relation, keys: tuple[Key, ...]) -> list[Group]:
    """All groups of public keys, in an order that follows from the keys and the public tables alone."""
    factors = _factors(keys, relation)
    found = []
    for combination in itertools.product(*(groups for _, groups in factors)):
        values: dict[int, Value | None] = {}
        for (places, _), group in zip(factors, combination, strict=True):
            values.update(zip(places, group, strict=True))
        found.append(tuple(values[place] for place in range(len(keys))))
    return found


def group_count(keys: tuple[Key, ...], relation: Relation | None) -> int | None:
    """How many groups there are: 1 without keys, None with a private one."""
    if relation is None or any(key.values is None for key in keys):
        return cell_count(keys)
    return prod(len(groups) for _, groups in _factors(keys, relation))


def _factors(keys: tuple[Key, ...], relation: Relation) -> list[Factor]:
    """Each key once: with those that are listed beside it, or by itself."""
    factors: list[Factor] = []
    taken: set[int] = set()
    for names, rows in lists(relation):
        places = tuple(place for place, key in enumerate(keys) if key.name in names and place not in taken)
        if len(places) > 1:
            columns = [names[keys[place].name] for place in places]
            groups = dict.fromkeys(tuple(row[column] for column in columns) for row in rows)
            known = [set(keys[place].values or ()) for place in places]  # WHERE may leave fewer than are listed
            groups = {group: None for group in groups if all(map(contains, known, group))}
            if all(keys[place].null for place in places):  # an outer join may leave all of them without a value
                groups[(None,) * len(places)] = None
            factors.append((places, tuple(groups)))
            taken.update(places)
    alone = [((place,), tuple((value,) for value in key.groups or ())) for place, key in enumerate(keys)]
    return sorted([*factors, *(one for one in alone if one[0][0] not in taken)], key=lambda one: one[0])


@singledispatch
def lists(relation: Relation) -> list[tuple[Mapping[str, int], tuple[Group, ...]]]:
    """What public tables list: the names of their columns as the question reads them, and the rows."""
    if isinstance(relation, ListedKeys):
        own = {name: place for place, names in enumerate(relation.names) for name in names}
        return [(own, relation.rows), *lists(relation.child)]
    if isinstance(relation, Joined):
        return [*lists(relation.left), *lists(relation.right)]
    if isinstance(relation, Where | Matched):
        return lists(relation.child)
    if isinstance(relation, Computed):
        pairs = [(name, one.name) for name, one in relation.columns if isinstance(one, ColumnOf)]
    elif isinstance(relation, Renamed):
        pairs = list(zip(relation.names, (column.name for column in shape(relation.child).columns), strict=True))
    else:
        return []
    below = lists(relation.child)
    return [({new: names[old] for new, old in pairs if old in names}, rows) for names, rows in below]
