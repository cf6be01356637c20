"""What is known not to be NULL where a condition is true, and what may be NULL."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from discreet.dialect.nulls import known_where, may_be_null, without_nulls
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

KIND = "exact"

X, Y, Z, B = (ColumnOf(name, Type.NUMBER) for name in "xyzb")
ONE = Literal(1, Type.INTEGER)
COLUMNS: Mapping[str, Column] = {name: Column(name, Type.NUMBER, nulls=name != "z") for name in "xyz"}
BOUNDED = {"b": Column("b", Type.NUMBER, minimum=Fraction(0), maximum=Fraction(9), nulls=False)}


def call(operator: str, *arguments: Expression, kind: Type = Type.BOOLEAN) -> Call:
    return Call(operator, arguments, kind)


def more(one: Expression) -> Call:
    return call("greater", one, ONE)


KNOWN = {
    "a comparison": (more(X), "x"),
    "of both": (call("less", X, Y), "xy"),
    "and": (call("and", more(X), more(Y)), "xy"),
    "or of the same": (call("or", more(X), call("less", X, Y)), "x"),
    "or of others": (call("or", more(X), more(Y)), ""),
    "not null": (call("not", call("is_null", X)), "x"),
    "null": (call("is_null", X), ""),
    "not more": (call("not", more(X)), "x"),
    "not both": (call("not", call("and", more(X), more(Y))), ""),
    "coalesce": (more(call("coalesce", X, Y, kind=Type.NUMBER)), ""),
    "case": (more(call("case", more(X), Y, Z, kind=Type.NUMBER)), ""),
    "nullif": (more(call("nullif", X, Y, kind=Type.NUMBER)), ""),
    "the same": (call("same", X, Y), ""),
    "a sum": (more(call("add", X, Y, kind=Type.NUMBER)), "xy"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_true_condition_knows_what_it_must_have_read(name: str) -> None:
    predicate, names = KNOWN[name]
    assert {one.name for one in known_where(predicate) if isinstance(one, ColumnOf)} == set(names)
    found = without_nulls(tuple(COLUMNS.values()), predicate)
    assert {one.name for one in found if not one.nulls} == {"z", *names}


def test_what_may_be_null() -> None:
    number = Type.NUMBER
    for expression, expected in (
        (X, True),
        (Z, False),
        (call("coalesce", X, Z, kind=number), False),
        (call("coalesce", X, Y, kind=number), True),
        (call("case", more(X), Z, Z, kind=number), False),
        (call("case", more(Z), X, Z, kind=number), True),
        (call("add", Z, Z, kind=number), True),  # infinite ones make NaN, which counts as no value
        (call("coalesce", call("add", Z, Z, kind=number), Z, kind=number), True),
        (call("add", B, B, kind=number), False),
        (call("divide", Z, Z, kind=number), True),
        (call("is_null", X), False),
        (Literal(None, number), True),
    ):
        assert may_be_null(expression, {**COLUMNS, **BOUNDED}) is expected, expression
