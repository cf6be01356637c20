"""Casts in the engine's language. The parser's own way reads the type's name and copies what is cast, each time: of
thousands of constants that takes seconds, and of casts in casts it grows with the square of their depth.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from discreet.trusted.ring_a.table import Type

TYPES = {
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.TEXT: "TEXT",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
"""The type that holds each of ours."""


@cache
def _named(name: str) -> exp.DType:
    kind: exp.DType = exp.DataType.build(name).this
    return kind


def kind(name: str) -> exp.DataType:
    """One of the engine's types."""
    return exp.DataType(this=_named(name), nested=False)


def cast(node: exp.Expression, name: str) -> exp.Expression:
    """The node cast to a type; the node itself where it is a cast to that type already."""
    if isinstance(node, exp.Cast) and node.to.this is _named(name):
        return node
    return exp.Cast(this=node, to=kind(name))
