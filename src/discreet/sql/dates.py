"""Functions of dates and timestamps: their units, intervals and formats, in both ways of writing them."""

from __future__ import annotations

import calendar
import datetime
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
    if isinstance(value, Literal) and isinstance(value.value, datetime.date):
        return Literal(_begins(str(unit.value), value.value), value.type)
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


def shifted(value: Expression, interval: exp.Interval, *, backwards: bool) -> Expression:
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
    if isinstance(value, Literal) and isinstance(value.value, datetime.date):
        later = _later(value.value, unit, sign * int(digits), kind)
        if later is not None:
            return Literal(later, kind)
    return Call("date_add", (Literal(unit.lower(), Type.TEXT), value, number), kind)


_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}


def _later(start: datetime.date, unit: str, many: int, kind: Type) -> datetime.date | None:
    """A constant moved by so many units, as the engine does it; None outside the calendar."""
    if kind is Type.TIMESTAMP and not isinstance(start, datetime.datetime):
        start = datetime.datetime.combine(start, datetime.time())
    try:
        if unit not in _MONTHS:
            return start + datetime.timedelta(seconds=many * _SECONDS[unit])
        month = start.year * 12 + start.month - 1 + many * _MONTHS[unit]
        year, month = month // 12, month % 12 + 1
        return start.replace(year=year, month=month, day=min(start.day, calendar.monthrange(year, month)[1]))
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        return None


def _begins(unit: str, inside: datetime.date) -> datetime.date:
    """When the unit began that a constant lies in."""
    day = inside
    if isinstance(inside, datetime.datetime):
        if unit in ("hour", "minute", "second"):
            return inside - (inside - datetime.datetime.min) % datetime.timedelta(seconds=_SECONDS[unit.upper()])
        day = datetime.datetime.combine(inside.date(), datetime.time())
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())  # the calendar begins on a Monday
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    return day if unit in ("day", "hour", "minute", "second") else day.replace(month=month, day=1)


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
