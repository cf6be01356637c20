"""The groups of public keys, which are shown whoever is there: all combinations of the keys' values."""

from __future__ import annotations

import itertools
from functools import singledispatch

from discreet.trusted.ring_a.nodes import Aggregate, Key, scan_of
from discreet.trusted.ring_a.table import Relation, Value

Group = tuple[Value | None, ...]


def public_groups(keys: tuple[Key, ...], root: Aggregate) -> list[Group]:
    """All groups of public keys, in an order that follows from the keys alone; of a relation, also from the public
    tables that are part of it."""
    relation = scan_of(root).relation
    if relation is not None:
        return groups_of_relation(relation, keys)
    return list(itertools.product(*(key.groups or () for key in keys)))


@singledispatch
def groups_of_relation(relation: Relation, keys: tuple[Key, ...]) -> list[Group]:
    """The same over a relation, whose public tables may list columns together: ring B's."""
    raise TypeError(f"no groups are known of {type(relation).__name__} by {len(keys)} keys")
