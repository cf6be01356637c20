"""Each field of a plan, changed by itself: the loss follows, or there is none.

A plan is what a question measures, so whoever changes it must not get more for the same price. Its classes are walked,
so a field that comes to them is changed here too, or this file fails. What has a loss runs on neighbouring tables: what
one person changes there is within the sensitivity that the loss is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import EngineError
from discreet.plan.measurement import Measurement, Plan
from discreet.trusted.ring_a import nodes
from discreet.trusted.ring_a.expressions import ColumnOf, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.measurement import ExactPlan
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Axis,
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
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_b.questions import Groups
from discreet.trusted.ring_b.relations import Base
from engine_tools import Bench, declaration, planned, priced
from neighbour_tools import BOUNDS, changes, hold

UNIT = {"person": "p", "rows_per_person": 3, "groups_per_person": 2}
KNOWN = declaration(UNIT)
TABLE = KNOWN.tables["t"]
QUESTIONS = {
    "one number": "SELECT SUM(v), AVG(w), COUNT(*) FROM t WHERE v > -5",
    "public groups": "SELECT g, b, SUM(v), COUNT(w), COUNT(DISTINCT p) FROM t GROUP BY g, b",
    "private groups": "SELECT h, k, COUNT(*), SUM(s) FROM t GROUP BY h, k",
    "clamped": f"SELECT g, COUNT(*, {BOUNDS} => (0, 2)), SUM(v, {BOUNDS} => (-2, 3)) FROM t WHERE b GROUP BY g",
    "means": "SELECT WITH DIFFERENTIAL_PRIVACY g, AVG(v, contribution_bounds_per_group => (0, 5)) FROM t GROUP BY g",
}
MINE = [
    {"p": "a", "g": "x", "h": "ü", "k": 3, "b": True, "v": 7, "w": 10.0, "s": 3.0},
    {"p": "a", "g": "y", "h": "x", "k": 0, "b": True, "v": 7, "w": -2.5, "s": 3.0},
    {"p": "a", "g": "x", "h": "ü", "k": 3, "b": True, "v": 7, "w": 10.0, "s": None},
    {"p": "a", "g": "z", "h": None, "k": None, "b": None, "v": -5, "w": None, "s": 0.0},
]
OTHERS = [
    {"p": "b", "g": "x", "h": "ü", "k": 3, "b": True, "v": 1, "w": 1.0, "s": 1.0},
    {"p": None, "g": "other", "h": "y", "k": 9, "b": False, "v": 0},
]

WIDE = Lattice(Fraction(1, 4), -100, 100)
TEXT = ColumnOf("h", Type.TEXT)


def _several(known: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """None of them, in the other order, all but the last, and one twice."""
    yield from ((), known[::-1], known[:-1], (*known, *known[:1]))


def _child(child: Any) -> Iterator[Any]:
    """What lies one node lower, and another node above the same."""
    yield from ([child.child] if hasattr(child, "child") else [])
    yield from (LimitRows(child, 4), Filter(child, Literal(True, Type.BOOLEAN)))


def _kinds(*values: Any) -> Callable[[Any], Iterator[Any]]:
    return lambda _: iter(values)


def _number(value: int) -> Iterator[Any]:
    yield from (value - 1, value + 1, 5 * value, -value, 0, float(value))


CHANGES: Mapping[tuple[type, str], Callable[[Any], Iterator[Any]]] = {
    (ExactPlan, "table"): _kinds("u"),
    (ExactPlan, "root"): lambda root: iter([replace(root, child=root.child.child), root.child]),
    (ExactPlan, "keys"): _several,
    (ExactPlan, "parts"): _several,
    (Scan, "table"): _kinds("u"),
    (Scan, "person"): _kinds(None, "g", "h"),
    (Scan, "one_row_per_person"): _kinds(True),
    (Scan, "relation"): _kinds(Base.of(TABLE)),
    (Filter, "child"): _child,
    (Filter, "predicate"): _kinds(Literal(True, Type.BOOLEAN), ColumnOf("b", Type.BOOLEAN), TEXT),
    (Key, "name"): _kinds("p", "d", "u", "nowhere"),
    (Key, "type"): _kinds(Type.INTEGER, Type.TEXT, Type.NUMBER),
    (Key, "values"): _kinds(None, ("x",), ("x", "x"), ("other", "x", "y", "z"), (True, False), (3, 9, -1)),
    (Key, "null"): _kinds(True, False),
    (Quantity, "expression"): _kinds(
        ColumnOf("u", Type.INTEGER), ColumnOf("f", Type.NUMBER), TEXT, Literal(7, Type.INTEGER)
    ),
    (Quantity, "lattice"): _kinds(WIDE, None),
    (Quantity, "powers"): _kinds(True),
    (Project, "child"): _child,
    (Project, "keys"): _several,
    (Project, "quantities"): _several,
    (LimitRows, "child"): _child,
    (LimitRows, "rows"): _number,
    (PersonGroup, "child"): _child,
    (LimitGroups, "child"): _child,
    (LimitGroups, "groups"): _number,
    (Clip, "child"): _child,
    (Aggregate, "child"): _child,
    (Aggregate, "totals"): _several,
    (Total, "kind"): _kinds(*TotalKind, "rows"),
    (Total, "quantity"): _kinds(None, 0, 1, 9),
    (Total, "bounds"): _kinds(None, (0, 9), (-9, 1), (4, 4), (2, -2), (0, 1.5)),
    (Vector, "weights"): _kinds((), ((0, 1),), ((0, 7),), ((1, -2),), ((0, 1), (1, 1)), ((0, 1), (0, 1)), ((0, 0.5),)),
    (Axis, "lattice"): _kinds(WIDE),
    (Axis, "place"): _kinds(0, 1, 2, 3),
    (Axis, "multiple"): _kinds(0, 1, 100),
    (Axis, "absent"): _kinds(True, False),
    (Part, "kind"): _kinds(*PartKind, "count"),
    (Part, "vectors"): _several,
    (Part, "lattice"): _kinds(WIDE, None),
    (Part, "axes"): _several,
    (Part, "epsilon"): _kinds(Fraction(1, 10**6), Fraction(100)),
    (Lattice, "step"): _kinds(Fraction(1, 8), Fraction(3), Fraction(0)),
    (Lattice, "low"): _number,
    (Lattice, "high"): _number,
}
"""Of each class and field, other values for it."""


def _kind(value: Any) -> type:
    return ExactPlan if isinstance(value, ExactPlan) else type(value)


def _walked(value: Any) -> Iterator[Any]:
    """All that a plan is made of."""
    if isinstance(value, tuple):
        for one in value:
            yield from _walked(one)
    elif _kind(value) in {kind for kind, _ in CHANGES}:
        yield value
        for field in fields(_kind(value)):
            yield from _walked(getattr(value, field.name))


@dataclass
class Change:
    """One field of one class changed, in one place of a plan or (place −1) in all of them."""

    kind: type
    name: str
    which: int
    place: int
    seen: int = 0

    def made(self, value: Any) -> Any:
        """The value changed. Raises IndexError where this one has fewer other values, and what the changed class
        raises."""
        if isinstance(value, tuple):
            return tuple(self.made(one) for one in value)
        if _kind(value) not in {kind for kind, _ in CHANGES}:
            return value
        inner = {field.name: self.made(getattr(value, field.name)) for field in fields(_kind(value))}
        if _kind(value) is self.kind:
            place, self.seen = self.seen, self.seen + 1
            if self.place in (-1, place):
                others = list(CHANGES[self.kind, self.name](inner[self.name]))
                inner[self.name] = others[self.which]
        return replace(value, **inner)


def _changed(plan: Plan, kind: type, name: str, places: Iterable[int]) -> Iterator[Plan | None]:
    """The plans in which that field is another; None for each that cannot be made."""
    known = [one for one in _walked(plan) if _kind(one) is kind]
    many = max((len(list(CHANGES[kind, name](getattr(one, name)))) for one in known), default=0)
    for place in places:
        for which in range(many if place < len(known) else 0):
            try:
                yield Change(kind, name, which, place).made(plan)
            except (ValueError, IndexError):
                yield None


def test_all_that_a_plan_is_made_of_is_changed() -> None:
    kinds = {kind for kind in vars(nodes).values() if isinstance(kind, type) and is_dataclass(kind)}
    kinds |= {Lattice, ExactPlan}
    assert set(CHANGES) == {(kind, field.name) for kind in kinds for field in fields(kind)}
    plans = [planned(question, KNOWN) for question in QUESTIONS.values()]
    assert {_kind(one) for plan in plans for one in _walked(plan)} == kinds


ALL = (-1,)
EACH = range(12)


@pytest.mark.parametrize("places", [ALL, pytest.param(EACH, marks=pytest.mark.power)], ids=["all places", "each place"])
@pytest.mark.parametrize(("kind", "name"), CHANGES, ids=[f"{kind.__name__}.{name}" for kind, name in CHANGES])
def test_a_changed_plan_costs_what_it_tells(bench: Bench, kind: type, name: str, places: Iterable[int]) -> None:
    seen: Counter[str] = Counter()
    for question in QUESTIONS.values():
        plan = planned(question, KNOWN)
        honest = priced(plan)
        for other in {repr(one): one for one in _changed(plan, kind, name, places)}.values():
            seen[_outcome(bench, honest, other)] += 1
    assert seen.total() > seen["the same"]


def _outcome(bench: Bench, honest: Measurement, other: Plan | None) -> str:
    if other is None:
        return "not made"
    if other == honest.plan:
        return "the same"
    try:
        loss = Groups(replace(honest, plan=other), TABLE).loss
    except (ValueError, TypeError, IndexError, AttributeError):  # before anything is reserved
        return "no loss"
    assert loss.pure is not None
    try:
        moved = changes(bench, other, TABLE, [*MINE, *OTHERS], MINE, "salt")
    except (EngineError, RuntimeError, ValueError, AttributeError):  # nothing leaves the gate
        return "no answer"
    hold(other, moved)
    return "held"
