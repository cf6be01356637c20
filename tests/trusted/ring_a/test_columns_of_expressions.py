"""Which columns an expression reads, and whether it reads them as what they are."""

from __future__ import annotations

from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal, typed
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_b.relations import columns_of

V, W, ONE = ColumnOf("v", Type.NUMBER), ColumnOf("w", Type.TEXT), Literal(1, Type.INTEGER)


def call(*arguments: Expression) -> Call:
    return Call("f", arguments, Type.NUMBER)


def test_columns_that_are_read() -> None:
    assert columns_of(V) == {"v"}
    assert columns_of(ONE) == columns_of(call()) == frozenset()
    assert columns_of(call(V, ONE, call(W, V))) == {"v", "w"}


def test_columns_are_read_as_what_they_are() -> None:
    types = {"v": Type.NUMBER, "w": Type.TEXT, "unknown": None}
    for right in (V, W, ONE, call(), call(V, ONE, call(W))):
        assert typed(right, types)
    for wrong in (ColumnOf("v", Type.TEXT), ColumnOf("u", Type.TEXT), ColumnOf("unknown", Type.TEXT)):
        for inside in (wrong, call(wrong), call(V, ONE, call(W, wrong)), call(wrong, V)):
            assert not typed(inside, types)
