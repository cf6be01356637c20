"""Several values of a row as one text, so that different combinations are counted as different texts are."""

from __future__ import annotations

import itertools
from typing import Protocol

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.calls import bounded
from discreet.sql.refusals import place
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Type

MOST = 10
"""So many values at most."""


class ValueReader(Protocol):
    """What reads the values."""

    def read(self, node: exp.Expression) -> Expression: ...


def one_text(reader: ValueReader, node: exp.Expression, *, nulls: bool) -> Expression:
    """The values of a tuple as one text: of each its length, a colon and its characters. Two rows have the same text
    where all their values are the same, and nowhere else: the length says where each ends.

    A row without one of the values has none, as in COUNT(DISTINCT a, b); with `nulls`, that it has none is one more
    value, as in COUNT(DISTINCT (a, b))."""
    if not 1 < len(node.expressions) <= MOST:
        fix = f"count 2 to {MOST} columns together"
        raise QuestionError("not-allowed", "so many columns are not counted together", where=place(node), fix=fix)
    values = [_text(reader.read(one)) for one in node.expressions]
    bounded(values, node)
    pieces = tuple(itertools.chain.from_iterable(_or_missing(one) if nulls else _measured(one) for one in values))
    if nulls:  # what has no value is left out
        return Call("concatenate_with", (Literal("", Type.TEXT), *pieces), Type.TEXT)
    return Call("concatenate", pieces, Type.TEXT)


def _text(value: Expression) -> Expression:
    return value if value.type is Type.TEXT else Call("to_text", (value,), Type.TEXT)


def _measured(value: Expression) -> tuple[Expression, ...]:
    length = Call("to_text", (Call("length", (value,), Type.INTEGER),), Type.TEXT)
    return length, Literal(":", Type.TEXT), value


def _or_missing(value: Expression) -> tuple[Expression, ...]:
    """The same; where there is no value, what stands for its length is no number."""
    length, *rest = _measured(value)
    return Call("coalesce", (length, Literal("-", Type.TEXT)), Type.TEXT), *rest
