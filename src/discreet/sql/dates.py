"""Functions of dates and timestamps: their units, intervals and formats, in both ways of writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

from discreet.dialect.functions import SqlFunction
from discreet.dialect.texts import UNITS
from discreet.errors import QuestionError
from discreet.sql.refusals import dated, place, refused
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Type

Nodes = Sequence[exp.Expression]

_YEAR = {
    "YEAR": 1,
    "QUARTER": 4,
    "MONTH": 12,
    "WEEK": 52,
    "DAY": 365,
    "HOUR": 8_760,
    "MINUTE": 525_600,
    "SECOND": 31_536_000,
}
"""How many of each unit make about a year."""

MOST_YEARS = 9_999
FINE_UNITS = ("HOUR", "MINUTE", "SECOND")
_FORMAT = "YymdjHMSAaBb%"


class MomentReader(Protocol):
    """What reads the arguments."""

    def read(self, node: exp.Expression) -> Expression: ...


def moment(reader: MomentReader, node: exp.Expression) -> Expression:
    """A date or timestamp; a constant text is read as one."""
    expression = dated(reader.read(node), Type.DATE, node)
    if expression.type not in (Type.DATE, Type.TIMESTAMP):
        message = f"this must be a date, not {expression.type}"
        raise QuestionError("type", message, where=place(node), fix="write DATE '2020-01-31' or CAST(x AS DATE)")
    return expression


def unit_of(node: exp.Expression | None) -> str | None:
    """The unit that a word or a text names; None where it names none."""
    if node is None or (isinstance(node, exp.Literal) and not node.is_string):
        return None
    if not isinstance(node, exp.Literal | exp.Column | exp.Var | exp.Identifier):
        return None
    word = node.name.upper()
    for unit in UNITS:
        if word in (unit, f"{unit}S", f"ISO{unit}" if unit == "WEEK" else unit):
            return unit
    return None


def _unit(node: exp.Expression, row: SqlFunction) -> Literal:
    unit = unit_of(node)
    if unit is None:
        fix = f"write {row.usage} with one of {', '.join(UNITS)}"
        raise QuestionError("not-allowed", "not a valid unit of time", where=place(node), fix=fix)
    return Literal(unit.lower(), Type.TEXT)


def _truncate(reader: MomentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """DATE_TRUNC('month', date) and DATE_TRUNC(date, MONTH)."""
    if len(nodes) != 2:
        raise refused(node, f"write {row.usage}")
    text_first = isinstance(nodes[0], exp.Literal) and unit_of(nodes[0]) is not None
    one, other = nodes if text_first else (nodes[1], nodes[0])
    unit, value = _unit(one, row), moment(reader, other)
    return Call(row.operator, (unit, value), value.type)


def _difference(reader: MomentReader, row: SqlFunction, nodes: Nodes, _node: exp.Expression) -> Expression:
    """DATE_DIFF(end, start, DAY) as GoogleSQL has it, DATE_DIFF('day', start, end) and DATEDIFF(day, start, end)."""
    if unit_of(nodes[0]) is not None and (isinstance(nodes[0], exp.Literal) or unit_of(nodes[2]) is None):
        unit, start, end = nodes
    else:
        end, start, unit = nodes
    return difference(_unit(unit, row), moment(reader, start), moment(reader, end))


def difference(unit: Literal, start: Expression, end: Expression) -> Call:
    """How many units begin between two moments."""
    return Call("date_diff", (unit, start, end), Type.INTEGER)


def _addition(reader: MomentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """DATE_ADD(date, INTERVAL 1 DAY), DATE_SUB(…)."""
    if len(nodes) != 2 or not isinstance(nodes[1], exp.Interval):
        raise refused(node, f"write {row.usage}")
    return shifted(moment(reader, nodes[0]), nodes[1], backwards=node.name.upper().endswith("_SUB"))


def shifted(value: Expression, interval: exp.Interval, *, backwards: bool) -> Call:
    """A date or timestamp and a constant interval."""
    unit, words = unit_of(interval.args.get("unit")), interval.this
    sign = -1 if backwards else 1
    if isinstance(words, exp.Neg):
        words, sign = words.this, -sign
    digits = words.name if isinstance(words, exp.Literal) else ""
    if digits.startswith("-"):
        digits, sign = digits[1:], -sign
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 15
    if unit is None or not plain or int(digits) > MOST_YEARS * _YEAR[unit]:
        fix = f"write INTERVAL 1 DAY: a constant, at most {MOST_YEARS} years, of {', '.join(UNITS)}"
        raise QuestionError("not-allowed", "this interval cannot be used", where=place(interval), fix=fix)
    kind = Type.TIMESTAMP if unit in FINE_UNITS else value.type
    number = Literal(sign * int(digits), Type.INTEGER)
    return Call("date_add", (Literal(unit.lower(), Type.TEXT), value, number), kind)


def _formatted(reader: MomentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """FORMAT_DATE('%Y-%m', date) and STRFTIME(date, '%Y-%m'), in either order."""
    first = node.name.upper().startswith("FORMAT") or isinstance(nodes[0], exp.Literal)
    one, other = nodes if first else (nodes[1], nodes[0])
    text, value = reader.read(one), moment(reader, other)
    words = text.value if isinstance(text, Literal) else None
    longest = row.takes[1].high
    if not isinstance(words, str) or not 0 < len(words) <= longest or not _is_format(words):
        raise refused(node, f"write {row.usage} with {row.guard}, at most {longest} of them")
    return Call(row.operator, (value, Literal(words, Type.TEXT)), Type.TEXT)


def _is_format(words: str) -> bool:
    pieces = words.replace("%%", "").split("%")
    return all(piece[:1] and piece[0] in _FORMAT for piece in pieces[1:])


FORMS: dict[str, Callable[[MomentReader, SqlFunction, Nodes, exp.Expression], Expression]] = {
    "truncate": _truncate,
    "difference": _difference,
    "addition": _addition,
    "format": _formatted,
}
