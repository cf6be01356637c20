"""The groups of public keys: all combinations of values, or the listed ones where a public table lists columns
together."""

from __future__ import annotations

import itertools
from math import prod
from operator import contains

from discreet.trusted.ring_a.nodes import Aggregate, Key, scan_of
from discreet.trusted.ring_a.table import Relation, Value, listed_together

Group = tuple[Value | None, ...]
Factor = tuple[tuple[int, ...], tuple[Group, ...]]
"""Some places among the keys, and the values that stand there together."""


def public_groups(keys: tuple[Key, ...], root: Aggregate) -> list[Group]:
    """All groups of public keys, in an order that follows from the keys and the public tables alone."""
    factors = _factors(keys, scan_of(root).relation)
    found = []
    for combination in itertools.product(*(groups for _, groups in factors)):
        values: dict[int, Value | None] = {}
        for (places, _), group in zip(factors, combination, strict=True):
            values.update(zip(places, group, strict=True))
        found.append(tuple(values[place] for place in range(len(keys))))
    return found


def group_count(keys: tuple[Key, ...], relation: Relation | None) -> int | None:
    """How many groups there are: 1 without keys, None with a private one."""
    if any(key.values is None for key in keys):
        return None
    return prod(len(groups) for _, groups in _factors(keys, relation))


def _factors(keys: tuple[Key, ...], relation: Relation | None) -> list[Factor]:
    """Each key once: with those that are listed beside it, or by itself."""
    factors: list[Factor] = []
    taken: set[int] = set()
    for names, rows in listed_together(relation) if relation is not None else ():
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
