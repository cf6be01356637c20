"""Row expressions: columns, literals and total operators.

An expression reads one row only. Every operator is total: no row makes it fail. NULL stands for "unknown" as in SQL,
and a result that is no number (0/0) is NULL. How an operator is written for the engine is ring B's (`statement`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.trusted.ring_a.table import Type, Value


@dataclass(frozen=True)
class ColumnOf:
    """The value of a declared column."""

    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant that the question wrote; `value` is None for NULL."""

    value: Value | None
    type: Type


@dataclass(frozen=True)
class Call:
    """An operator of the allow-list, applied."""

    operator: str
    arguments: tuple[Expression, ...]
    type: Type


Expression = ColumnOf | Literal | Call


def typed(expression: Expression, types: Mapping[str, Type | None]) -> bool:
    """Whether the expression reads its columns as what they are: no column under another type, none that is unknown."""
    if isinstance(expression, ColumnOf):
        return types.get(expression.name) is expression.type
    return isinstance(expression, Literal) or all(typed(argument, types) for argument in expression.arguments)
