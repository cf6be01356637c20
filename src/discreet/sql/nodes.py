"""Nodes of a question's tree as the rules that rewrite it make them and read them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.limits import LARGEST
from discreet.sql.refusals import place


@dataclass
class Context:
    """The day that NOW() means, and how many nodes may still be written anew."""

    day: datetime.date
    left: int = LARGEST

    def again(self, node: exp.Expression, times: int) -> list[exp.Expression]:
        """A part that stands so often in what is written for another: itself, and copies."""
        self.left -= (times - 1) * sum(1 for _ in node.walk())
        if self.left < 0:
            fix = "ask for less at once, or name it once in a subquery"
            message = f"there are more than {LARGEST:,} operators, columns and constants, as often as they are read"
            raise QuestionError("too-long", message, where="question", fix=fix)
        return [node, *(node.copy() for _ in range(times - 1))]


Rule = Callable[[exp.Expression, Context], exp.Expression | None]
"""What a node is written for, with its own parts in it; None where it stays."""


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A function of the dialect."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def converted(node: exp.Expression, kind: exp.DType) -> exp.Expression:
    """CAST(node AS kind)."""
    return exp.Cast(this=node, to=exp.DataType(this=kind))


def number(value: int) -> exp.Expression:
    """A whole number."""
    plain = exp.Literal.number(abs(value))
    return exp.Neg(this=plain) if value < 0 else plain


def whole(node: exp.Expr | None) -> int | None:
    """The value of a whole constant, in quotes or not; None where it is none."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign, node = (-sign if isinstance(node, exp.Neg) else sign), node.this
    words = str(node.this) if isinstance(node, exp.Literal) else ""
    return sign * int(words) if re.fullmatch(r"-?[0-9]{1,15}", words) else None


def text(node: exp.Expression | None) -> str | None:
    """The value of a constant text."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def arguments(node: exp.Expression, least: int, most: int | None = None, *, fix: str) -> list[exp.Expression]:
    """The arguments of a function, so many as it takes."""
    given = list(node.expressions)
    if not least <= len(given) <= (least if most is None else most):
        name = node.name.upper()
        raise QuestionError("arguments", f"{name} takes other arguments", where=place(node), fix=f"write {fix}")
    return given
