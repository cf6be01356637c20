"""Public keys that follow from a range of dates, declared or written in WHERE: all months of it, empty ones too.

A range that the owner declared, or that the question itself names, is public, and so is what can be computed of each of
its days. Nothing private is read. No bound rests on this: rows with other keys than those of the plan are left out by
the engine (`Project`), and the sensitivity follows from the keys of the plan. A mistake here would leave rows out, and
hide nobody less.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from discreet.plan.narrowed import MOST_STEPS, Held, Other, conditions, may_be_true, reading, size
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Key
from discreet.trusted.ring_a.table import KEYS_SHOWN, Column, Relation, Type, Value
from discreet.trusted.ring_b.relations import Computed, ListedKeys, Matched, Renamed, Where, columns_of, shape

MOST_CELLS = 40_000
"""The longest range whose days are looked at one by one: a hundred years."""

_NULL: frozenset[Held] = frozenset([None])
_LARGEST = 2_000
_TICK = datetime.timedelta(microseconds=1)
_DAY = datetime.timedelta(days=1)
_STEPS = {"day": _DAY, "hour": datetime.timedelta(hours=1), "minute": datetime.timedelta(minutes=1)}
_OF_A_DAY = frozenset(
    [
        *("year", "iso_year", "quarter", "month", "week", "day", "day_of_year", "day_of_week", "day_of_week_0"),
        *("day_of_week_iso", "unix_date", "to_date"),
    ]
)
"""What depends on the day of a moment alone."""

Ends = tuple[datetime.datetime, datetime.datetime]
_ALWAYS: Ends = (datetime.datetime.min, datetime.datetime.max)


def ranged(key: Key, expression: Expression, predicates: Sequence[Expression], columns: Mapping[str, Column]) -> Key:
    """The key with the values that `expression` can have over a range of dates, where the range has two ends and gives
    few enough; else as it is."""
    names = columns_of(expression)
    if len(names) != 1:
        return key
    (name,) = names
    column = columns[name]
    if column.type not in (Type.DATE, Type.TIMESTAMP) or column.values is not None:
        return key
    source = ColumnOf(name, column.type)
    low, high = _ends(source, column, predicates)
    plain, shifts = _unshifted(expression, source)
    step = _DAY if column.type is Type.DATE else _step(plain, source, low)
    if step is not None and column.type is Type.TIMESTAMP and (plain == source or any(one % step for one in shifts)):
        step = None
    if step is None or low == _ALWAYS[0] or high == _ALWAYS[1] or low > high:
        return key
    where: Expression = Literal(True, Type.BOOLEAN)
    for one in predicates:
        where = Call("and", (where, one), Type.BOOLEAN)
    count = (high - low) // step + 2
    if count > MOST_CELLS or count * (size(where) + size(expression)) > MOST_STEPS:
        return key
    made, possible = reading(expression, source), reading(where, source)
    found: dict[Value | None, None] = {}
    for moment in _cells(low, high, step, dates=column.type is Type.DATE):
        if column.type is Type.DATE and not may_be_true(possible(frozenset([moment]))):
            continue
        values = made(frozenset([moment]))
        if values is None or not all(value is None or isinstance(value, _KINDS[key.type]) for value in values):
            return key
        found |= dict.fromkeys(map(_value, values))
        if len(found) > KEYS_SHOWN:
            return key
    if column.nulls and may_be_true(possible(_NULL)):
        nothing = made(_NULL)
        found |= dict.fromkeys([None]) if nothing is None or None in nothing else {}
    known = tuple(sorted((value for value in found if value is not None), key=_order))
    if key.values is not None:
        known = tuple(value for value in key.values if value in found)
    return replace(key, values=known, null=key.null and None in found) if known else key


_KINDS: Mapping[Type, type | tuple[type, ...]] = {
    Type.INTEGER: float,
    Type.NUMBER: (),
    Type.TEXT: str,
    Type.BOOLEAN: bool,
    Type.DATE: datetime.date,
    Type.TIMESTAMP: datetime.datetime,
}


def _value(held: Held) -> Value | None:
    """A value of a key, whose numbers are whole."""
    assert not isinstance(held, Other)
    return int(held) if isinstance(held, float) else held


def _order(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value


def below(
    relation: Relation, expression: Expression, predicate: Expression | None
) -> tuple[Expression, tuple[Expression, ...], Mapping[str, Column]]:
    """An expression of a relation's rows, and all that is true of them, in the columns of what subqueries read."""
    predicates = [] if predicate is None else [predicate]
    while isinstance(relation, Where | Computed | Renamed | Matched | ListedKeys):
        if isinstance(relation, Where):
            predicates.append(relation.predicate)
        elif isinstance(relation, Computed | Renamed):
            made = _made(relation)
            deeper = _replaced(expression, made)
            if size(deeper) > _LARGEST:
                break
            expression = deeper
            predicates = [one for one in (_replaced(known, made) for known in predicates) if size(one) <= _LARGEST]
        relation = relation.child
    return expression, (*predicates, *conditions(relation)), shape(relation).by_name


def _made(relation: Computed | Renamed) -> Mapping[str, Expression]:
    if isinstance(relation, Computed):
        return dict(relation.columns)
    columns = shape(relation.child).columns
    return {
        name: ColumnOf(column.name, column.type or Type.TEXT)
        for name, column in zip(relation.names, columns, strict=True)
    }


def _replaced(expression: Expression, made: Mapping[str, Expression]) -> Expression:
    if isinstance(expression, ColumnOf):
        return made.get(expression.name, expression)
    if isinstance(expression, Literal):
        return expression
    return replace(expression, arguments=tuple(_replaced(one, made) for one in expression.arguments))


def _cells(
    low: datetime.datetime, high: datetime.datetime, step: datetime.timedelta, *, dates: bool
) -> Iterator[datetime.date]:
    """The moments that stand for a range: its days, or the beginnings of its days, hours or minutes."""
    start = datetime.datetime.min + (low - datetime.datetime.min) // step * step
    for place in range((high - start) // step + 1):
        moment = start + place * step
        if not dates:
            yield moment
        elif moment >= low:
            yield moment.date()


def _step(expression: Expression, source: ColumnOf, low: datetime.datetime) -> datetime.timedelta | None:
    """The length of the pieces of time, counted from midnight, on each of which the expression of a timestamp has one
    value; None where it has none that long."""
    if not isinstance(expression, Call):
        return None if expression == source else datetime.timedelta.max
    if (counted := _counted(expression, source, low)) is not None:
        return next((step for step in _STEPS.values() if not any(one % step for one in counted)), None)
    if source in expression.arguments:
        if expression.operator in _OF_A_DAY:
            return _DAY
        if expression.operator in ("hour", "minute"):
            return _STEPS[expression.operator]
        constants = [one.value for one in expression.arguments if isinstance(one, Literal)]
        if expression.operator == "date_diff" and len(constants) == 2:
            return _DAY if constants[0] in ("year", "quarter", "month", "week") else None
        if expression.operator == "date_trunc" and len(constants) == 1:
            return _STEPS.get(str(constants[0]), None if constants[0] == "second" else _DAY)
        if expression.operator == "format_moment" and len(constants) == 1:
            signs = {piece[:1] for piece in str(constants[0]).replace("%%", "").split("%")[1:]}
            return None if "S" in signs else _STEPS["minute" if "M" in signs else "hour" if "H" in signs else "day"]
        return None
    steps = [_step(one, source, low) for one in expression.arguments]
    return None if None in steps else min((one for one in steps if one is not None), default=datetime.timedelta.max)


def _counted(
    expression: Call, source: ColumnOf, low: datetime.datetime
) -> tuple[datetime.timedelta, datetime.timedelta] | None:
    """Of units of a timestamp that are counted from a constant on, also in pieces of so many: how long a piece is, and
    how long after some midnight pieces begin. None where the expression is something else, or cuts towards a constant
    that moments lie on both sides of."""
    count, many = expression, 1
    if expression.operator == "floor" and isinstance(expression.arguments[0], Call):
        count, many = _quotient(expression.arguments[0], "divide")
    elif expression.operator == "quotient":
        count, many = _quotient(expression, "quotient")
    elif expression.operator == "to_integer" and isinstance(expression.arguments[0], Call):
        count, many = _quotient(expression.arguments[0], "divide")
        many = 0 if many % 2 else many // 2  # a piece begins in the middle of what is rounded
    if many < 1 or count.arguments[-1] != source or len(count.arguments) not in (1, 3):
        return None
    if count.operator == "unix_seconds":
        unit, start = "second", _moment(_ZERO)
    elif count.operator == "date_diff" and isinstance(count.arguments[1], Literal):
        unit, since = str(getattr(count.arguments[0], "value", "")), count.arguments[1].value
        if unit not in _SECONDS or not isinstance(since, datetime.date):
            return None
        start = _moment(since)
    else:
        return None
    if expression.operator in ("quotient", "to_integer") and low < start:
        return None
    length = datetime.timedelta(seconds=_SECONDS[unit])
    return many * length, (start - datetime.datetime.min) // length * length


def _quotient(call: Call, operator: str) -> tuple[Call, int]:
    """What is divided, and by which whole constant; 0 where it is none."""
    if call.operator != operator:
        return call, 1
    count, divisor = call.arguments
    many = divisor.value if isinstance(divisor, Literal) else None
    known = isinstance(count, Call) and isinstance(many, int) and not isinstance(many, bool)
    return (count, many) if known else (call, 0)  # type: ignore[return-value]


def _unshifted(expression: Expression, source: ColumnOf) -> tuple[Expression, list[datetime.timedelta]]:
    """An expression with the column in the place of the column and a constant time, and these times."""
    if not isinstance(expression, Call):
        return expression, []
    if expression.operator == "date_add" and expression.arguments[1] == source:
        unit, many = (getattr(expression.arguments[place], "value", None) for place in (0, 2))
        if isinstance(many, int) and (unit in _SECONDS or unit == "week"):
            seconds = 7 * _SECONDS["day"] if unit == "week" else _SECONDS[str(unit)]
            try:
                return source, [datetime.timedelta(seconds=many * seconds)]
            except OverflowError:
                return expression, []
    found = [_unshifted(one, source) for one in expression.arguments]
    shifts = [one for _, many in found for one in many]
    return replace(expression, arguments=tuple(one for one, _ in found)), shifts


_ZERO = datetime.date(1970, 1, 1)
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def _ends(source: ColumnOf, column: Column, predicates: Sequence[Expression]) -> Ends:
    """Between which moments a column lies, both included, where the predicates are true."""
    low, high = _ALWAYS
    if isinstance(column.minimum, datetime.date):
        low = _moment(column.minimum)
    if isinstance(column.maximum, datetime.date):
        high = _moment(column.maximum)
    for one in predicates:
        for least, most in _named(one, source):
            low, high = max(low, least), min(high, most)
    return low, high


def _moment(value: datetime.date) -> datetime.datetime:
    return value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())


_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _named(predicate: Expression, source: ColumnOf) -> Iterator[Ends]:
    """The ends that a condition names: of comparisons of the column with constants, joined by AND."""
    if not isinstance(predicate, Call):
        return
    if predicate.operator == "and":
        for one in predicate.arguments:
            yield from _named(one, source)
        return
    value, *others = predicate.arguments
    if isinstance(value, Literal) and len(others) == 1:
        value, others, name = others[0], [value], _TURNED.get(predicate.operator, predicate.operator)
    else:
        name = predicate.operator
    pieces = [_piece(value, one.value, source) for one in others if isinstance(one, Literal)]
    known = [piece for piece in pieces if piece is not None]
    if not known or len(known) < len(others):
        return
    first, last = min(piece[0] for piece in known), max(piece[1] for piece in known)
    try:
        if name in ("equal", "in"):
            yield first, last
        elif name in ("greater", "greater_equal"):
            yield (first if name == "greater_equal" else last + _TICK), _ALWAYS[1]
        elif name in ("less", "less_equal"):
            yield _ALWAYS[0], (last if name == "less_equal" else first - _TICK)
    except OverflowError:
        return


def _piece(value: Expression, constant: Value | None, source: ColumnOf) -> Ends | None:
    """The first and the last moment of the column for which the value, it or a part of it, is the constant."""
    if isinstance(value, Call) and value.operator == "year" and value.arguments == (source,):
        if not isinstance(constant, int) or not 1 <= constant <= 9998:
            return None
        return datetime.datetime(constant, 1, 1), datetime.datetime(constant + 1, 1, 1) - _TICK
    if isinstance(value, Call) and value.operator == "unix_seconds" and value.arguments == (source,):
        try:
            second = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(constant))  # type: ignore[arg-type]
            return second, second + (datetime.timedelta(seconds=1) - _TICK)
        except (OverflowError, TypeError, ValueError):
            return None
    if not isinstance(constant, datetime.date):
        return None
    moment = _moment(constant)
    if isinstance(value, Call) and value.operator == "to_date" and value.arguments == (source,):
        return (moment, moment + (_DAY - _TICK)) if moment.date() < datetime.date.max else None
    if value == source or (
        isinstance(value, Call) and value.operator == "to_timestamp" and value.arguments == (source,)
    ):
        return moment, moment
    return None
