"""What the readers of expressions share: refusals, and constants as values."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from discreet.catalog.model import Type
from discreet.errors import QuestionError
from discreet.plan.dialect_table import BY_NAME, REFUSED
from discreet.plan.expressions import Expression, Literal

ALLOWED = (
    "+ - * /, comparisons, AND, OR, NOT, IS NULL, IN (list), BETWEEN, LIKE, CASE, COALESCE, ABS, or another "
    "function of docs/dialect.md"
)


def only(node: exp.Expression, *names: str, fix: str = "") -> None:
    """Raises unless the node carries these arguments and no others: a part that nobody read must not vanish."""
    for name, value in node.args.items():
        if value not in (None, False, [], "") and name not in names:
            raise refused(node, fix)


def refused(node: exp.Expression, fix: str = "") -> QuestionError:
    """The error for a construct outside the allow-list."""
    name = (
        node.name.upper()
        if isinstance(node, exp.Anonymous)
        else str(node.this)
        if isinstance(node, exp.AggFunc) and isinstance(node.this, str)
        else type(node).sql_name()
        if isinstance(node, exp.Func)
        else node.key
    )
    where = str(name)[:60] or "question"
    return QuestionError("not-allowed", f"{where} cannot be used here", where=where, fix=fix or _instead(where.upper()))


def _instead(name: str) -> str:
    """What to write instead of a name that is refused or not known."""
    if name in REFUSED:
        return REFUSED[name]
    near = difflib.get_close_matches(name, list(BY_NAME), 1, 0.75)
    return f"write {BY_NAME[near[0]].usage}" if near else f"use {ALLOWED}"


def unknown_name(name: str, known: Sequence[str], *, kind: str, where: str, quoted: bool = False) -> QuestionError:
    """The error for a name that nobody declared."""
    near = difflib.get_close_matches(name, known, 1) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    fix = f"write {near[0]}" if near else f"write one of {', '.join(known[:20])}"
    if quoted and not near:
        fix += f"; a text is written in single quotes: '{name[:60]}'"
    return QuestionError(f"unknown-{kind}", f"there is no {kind} {name[:60]!r}", where=where, fix=fix)


def common_type(sides: Sequence[Expression], node: exp.Expression) -> Type:
    kinds = {side.type for side in sides if not is_null(side)}
    if not kinds:
        raise refused(node, "let some branch be other than NULL")
    if kinds == {Type.INTEGER, Type.NUMBER}:
        return Type.NUMBER
    return kinds.pop()


def is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def place(node: exp.Expression) -> str:
    return node.sql()[:60]


def text_value(value: str, node: exp.Expression) -> str:
    if "\x00" in value:
        raise QuestionError("type", "a text cannot hold a zero character", where=node.key, fix="leave it out")
    return value


def number_value(text: str, node: exp.Expression) -> Literal:
    try:
        value = Decimal(text)
        if not value.is_finite() or (value and not -300 < value.adjusted() < 300):
            raise InvalidOperation
    except InvalidOperation:
        raise QuestionError(
            "number", "this number is out of range", where=place(node), fix="write a number below 1e300"
        ) from None
    if text.isdigit():
        return Literal(int(value), Type.INTEGER)
    return Literal(Fraction(value), Type.NUMBER)


def dated(side: Expression, target: Type, where: exp.Expression) -> Expression:
    """A text literal beside a date, read as a date; a date literal beside a timestamp, at midnight."""
    if not isinstance(side, Literal) or side.value is None:
        return side
    value = side.value
    try:
        if isinstance(value, str):
            value = (datetime.date if target is Type.DATE and len(value) <= 10 else datetime.datetime).fromisoformat(
                value
            )
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                raise ValueError
        if isinstance(value, datetime.datetime):
            return Literal(value, Type.TIMESTAMP)
        if isinstance(value, datetime.date):
            if target is Type.TIMESTAMP:
                return Literal(datetime.datetime.combine(value, datetime.time()), target)
            return Literal(value, Type.DATE)
    except ValueError:
        fix = "write DATE '2020-01-31' or TIMESTAMP '2020-01-31 12:00:00'"
        raise QuestionError("date", "this is no date", where=place(where), fix=fix) from None
    return side
