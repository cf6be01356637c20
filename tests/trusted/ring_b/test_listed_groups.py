"""Which groups public keys make, with and without public tables that list some of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from discreet.trusted.ring_a.nodes import Aggregate, Key, Project, Scan, Total, TotalKind
from discreet.trusted.ring_a.public_groups import Group, public_groups
from discreet.trusted.ring_a.table import Relation, Type, Value
from discreet.trusted.ring_b.listed_groups import group_count, lists

Listed = tuple[Mapping[str, int], tuple[tuple[Value | None, ...], ...]]


@dataclass(frozen=True)
class _Listing(Relation):
    """A relation with these public tables."""

    tables: tuple[Listed, ...]


@lists.register
def _(relation: _Listing) -> list[Listed]:
    return list(relation.tables)


def key(name: str, *values: str, null: bool = False) -> Key:
    return Key(name, Type.TEXT, values, null)


A, B, C = key("a", "1", "2"), key("b", "x", "y"), key("c", "p", "q")
PAIRS: Listed = ({"b": 2, "a": 1}, (("-", "1", "x"), ("-", "2", "y"), ("-", "1", "x"), ("-", "3", "x")))
"""(a, b) is (1, x) or (2, y); a 3 is listed too, and no key."""


@pytest.mark.parametrize(
    ("keys", "tables", "expected"),
    [
        ((), (), [()]),
        ((A,), (), [("1",), ("2",)]),
        ((A, B), (), [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]),
        ((A, B), (PAIRS,), [("1", "x"), ("2", "y")]),
        ((B, A), (PAIRS,), [("x", "1"), ("y", "2")]),
        # one key alone is not narrowed: what is not listed may be in the data
        ((A, C), (PAIRS,), [("1", "p"), ("1", "q"), ("2", "p"), ("2", "q")]),
        # the others stand beside each pair, each in its place
        ((C, A, B), (PAIRS,), [("p", "1", "x"), ("p", "2", "y"), ("q", "1", "x"), ("q", "2", "y")]),
        ((A, C, B), (PAIRS,), [("1", "p", "x"), ("1", "q", "x"), ("2", "p", "y"), ("2", "q", "y")]),
        # WHERE has left fewer keys than are listed
        ((key("a", "1"), B), (PAIRS,), [("1", "x")]),
        # an outer join leaves all of them without a value, or none
        (
            (key("a", "1", "2", null=True), key("b", "x", "y", null=True)),
            (PAIRS,),
            [("1", "x"), ("2", "y"), (None, None)],
        ),
        ((key("a", "1", "2", null=True), B), (PAIRS,), [("1", "x"), ("2", "y")]),
        # a key that two tables list belongs to the first
        ((A, B, C), (PAIRS, ({"b": 0, "c": 1}, (("x", "p"),))), [
            ("1", "x", "p"), ("1", "x", "q"), ("2", "y", "p"), ("2", "y", "q"),
        ]),
    ],
)  # fmt: skip
def test_groups_of_public_keys(keys: tuple[Key, ...], tables: tuple[Listed, ...], expected: list[Group]) -> None:
    relation = _Listing(tables) if tables else None
    root = Aggregate(Project(Scan("t", "p", False, relation), keys, ()), (Total(TotalKind("rows")),))
    assert public_groups(keys, root) == expected
    assert group_count(keys, relation) == len(expected)


def test_private_keys_have_no_number_of_groups() -> None:
    private = Key("h", Type.TEXT, None)
    assert group_count((A, private), None) is None
    assert group_count((private,), _Listing((PAIRS,))) is None
