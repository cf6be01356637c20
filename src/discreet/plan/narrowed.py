"""Which public keys a row can have for which WHERE is true. The others are not groups of the question.

It follows from the question and the declaration alone. An expression is read on the set of values that a column, or the
key itself, may have, and gives the set of values that may come of it: always a superset of what the engine computes, so
a key that some row could have is never dropped. What is not known here may give anything.

No bound rests on this: rows with other keys than those of the plan are left out by the engine (`Project`), and the
sensitivity follows from the keys of the plan. A mistake here would leave rows out, and hide nobody less.
"""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TypeAlias

from discreet.dialect.nulls import EXACT
from discreet.dialect.ranges import units_begun
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Key
from discreet.trusted.ring_a.table import Column, Relation, Type, Value
from discreet.trusted.ring_b.relations import (
    Computed,
    Joined,
    JoinKind,
    ListedKeys,
    Matched,
    PerPerson,
    Renamed,
    Where,
    columns_of,
    shape,
)


@dataclass(frozen=True)
class Other:
    """A value of a column that is none of these."""

    values: frozenset[Held]


Held: TypeAlias = float | str | bool | datetime.date | Other | None
"""A value as it is compared here: numbers as doubles, NULL as None."""

Values: TypeAlias = frozenset[Held] | None
"""The values that an expression may have; None where it may be any."""

_Reading: TypeAlias = Callable[[Values], Values]
"""What an expression may be, by what its subject may be."""

ANY: Values = None
_TRUTH: frozenset[Held] = frozenset([True, False, None])
_FALSE: frozenset[Held] = frozenset([False])
_NULL: frozenset[Held] = frozenset([None])

MOST_STEPS = 200_000
"""Where reading the question on all keys would take more than this, none is dropped."""

MOST_VALUES = 64
"""More values than these, or more pairs of them, are any."""


def conditions(relation: Relation) -> tuple[Expression, ...]:
    """What is true of each row of a relation, in the names of its columns. A row of PerPerson is made of at least one
    row below it, with the same keys."""
    if isinstance(relation, Where):
        return (*conditions(relation.child), relation.predicate)
    if isinstance(relation, Matched | ListedKeys):
        return conditions(relation.child)
    if isinstance(relation, Joined):
        both = relation.kind is JoinKind.INNER
        found = conditions(relation.left) if both or relation.kind is JoinKind.LEFT else ()
        found += conditions(relation.right) if both or relation.kind is JoinKind.RIGHT else ()
        return (*found, relation.condition) if both and relation.condition is not None else found
    if isinstance(relation, Renamed):
        below = (column.name for column in shape(relation.child).columns)
        names = dict(zip(below, relation.names, strict=True))
    elif isinstance(relation, Computed | PerPerson):
        made = relation.columns if isinstance(relation, Computed) else relation.keys
        names = {one.name: name for name, one in made if isinstance(one, ColumnOf)}
    else:
        return ()
    return tuple(_renamed(one, names) for one in conditions(relation.child))


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """An expression in other names. A column without one keeps none: nothing is known of it."""
    if isinstance(expression, ColumnOf):
        return replace(expression, name=names.get(expression.name, ""))
    if isinstance(expression, Literal):
        return expression
    return replace(expression, arguments=tuple(_renamed(one, names) for one in expression.arguments))


def narrowed(key: Key, expression: Expression, predicates: Sequence[Expression], columns: Mapping[str, Column]) -> Key:
    """The key, which is `expression` of a row, with those of its public values that it can have where the predicates
    are true. A private key stays as it is."""
    where: Expression = Literal(True, Type.BOOLEAN)
    for one in predicates:
        where = Call("and", (where, one), Type.BOOLEAN)
    if key.values is None:
        return key
    names = columns_of(expression)
    if len(names) == 1:
        (name,) = names
        column = columns[name]
        assert column.type is not None
        candidates = _candidates(column)
        if candidates and len(candidates) * (size(where) + size(expression)) <= MOST_STEPS:
            source = ColumnOf(name, column.type)
            possible, made = reading(where, source), reading(expression, source)
            key = _restricted(key, [made(one) for one in candidates if may_be_true(possible(one))])
    if not isinstance(expression, ColumnOf) and len(key.groups or ()) * size(where) <= MOST_STEPS:
        possible = reading(where, expression)
        held = [_held(one) for one in key.groups or ()]
        key = _restricted(key, [one for one in held if may_be_true(possible(one))])
    return key


def may_be_true(values: Values) -> bool:
    """Whether TRUE is among the values that a condition may have."""
    return values is None or True in values


def says(predicate: Expression, columns: Mapping[str, Column]) -> str | None:
    """The one column of which a predicate says which of its public values a row has, where that is known of each of
    them and of NULL; None where there is none."""
    names = columns_of(predicate)
    column = columns.get(next(iter(names))) if len(names) == 1 else None
    candidates = [] if column is None or column.type is None else _candidates(column)
    if not candidates or len(candidates) * size(predicate) > MOST_STEPS:
        return None
    assert column is not None
    assert column.type is not None
    read = reading(predicate, ColumnOf(column.name, column.type))
    single = [one for one in candidates if one is not None and not any(isinstance(held, Other) for held in one)]
    return column.name if all(_decided([read], one) is not None for one in (*single, _NULL)) else None


def decided(predicates: Sequence[Expression], source: ColumnOf, value: Value | None) -> bool | None:
    """Whether all of these predicates, which read this column alone, are true of a value of it; None where that is not
    known here."""
    return _decided([reading(one, source) for one in predicates], _held(value))


def _decided(readings: Sequence[_Reading], held: Values) -> bool | None:
    found = [one(held) for one in readings]
    if any(not may_be_true(one) for one in found):
        return False
    return True if all(one == frozenset([True]) for one in found) else None


def selected(
    predicates: Sequence[Expression], column: Column, groups: Sequence[Value | None]
) -> tuple[int, ...] | None:
    """The places of those `groups` with which these predicates, which read this column alone, are true; None where that
    is not known, or where a row that is in none of these groups may meet them."""
    assert column.type is not None
    source = ColumnOf(column.name, column.type)
    readings = [reading(one, source) for one in predicates]
    candidates = _candidates(column)
    if not candidates or len(candidates) * sum(map(size, predicates)) > MOST_STEPS:
        return None
    held_at = ((_held(value), place) for place, value in enumerate(groups))
    known: dict[Held, int] = {next(iter(held)): place for held, place in held_at if held is not None}
    places: list[int] = []
    for candidate in candidates:
        meets = _decided(readings, candidate)
        if meets is False:
            continue
        place = known.get(next(iter(candidate))) if candidate is not None and len(candidate) == 1 else None
        if not meets or place is None:
            return None
        places.append(place)
    return tuple(sorted(places)) or None


def _restricted(key: Key, found: Sequence[Values]) -> Key:
    """The key with only those values that are found."""
    if ANY in found:
        return key
    known: frozenset[Held] = frozenset().union(*(one for one in found if one is not None))
    kept = tuple(value for value in key.values or () if (held := _held(value)) is None or held <= known)
    return replace(key, values=kept, null=key.null and None in known)


def _candidates(column: Column) -> list[Values]:
    """All that a column may hold, piece by piece; nothing where that is not known, or too much."""
    keys = column.keys()
    if keys is None:
        return []
    known = [_held(one) for one in keys]
    if column.values is not None:  # in the column may stand what is no key
        complete = all(one is not None for one in known)
        listed: frozenset[Held] = frozenset().union(*(one for one in known if one is not None))
        known.append(frozenset([Other(listed)]) if complete else ANY)
    return [*known, _NULL] if column.nulls else known


def _held(value: Value | None) -> Values:
    """A value alone. Whole numbers beyond 2^53 may be compared exactly or as doubles: they are any."""
    if value is None or isinstance(value, bool | str | datetime.date):
        return frozenset([value])
    if isinstance(value, int) and abs(value) > EXACT:
        return ANY
    try:
        return frozenset([float(value)])
    except OverflowError:
        return ANY


def size(expression: Expression) -> int:
    """How many steps it takes to read an expression; the constants of a list are looked up in one."""
    if not isinstance(expression, Call):
        return 1
    if expression.operator == "in":
        return 1 + size(expression.arguments[0])
    return 1 + sum(map(size, expression.arguments))


def reading(expression: Expression, subject: Expression) -> _Reading:
    """What the expression may be, once it is known what the subject, a part of it or another expression of the same
    row, may be."""
    if expression == subject:
        return lambda known: known
    if isinstance(expression, Literal):
        constant = _held(expression.value)
        return lambda known: constant  # noqa: ARG005
    if not isinstance(expression, Call):
        return lambda known: ANY  # noqa: ARG005
    if (through := _through(expression, subject)) is not None:
        return through
    arguments = [reading(one, subject) for one in expression.arguments]
    name = expression.operator
    if name in ("and", "or"):
        return lambda known: _joined(name == "and", *(_truth(one(known)) for one in arguments))
    if name == "case":
        return lambda known: _case(arguments, known)
    if name == "coalesce":
        return lambda known: _coalesce(arguments, known)
    if name == "in":
        return _in(arguments)
    if (function := _function(expression)) is not None:
        return lambda known: _each(function, [one(known) for one in arguments])
    return lambda known: ANY  # noqa: ARG005


def _truth(values: Values) -> frozenset[Held]:
    return _TRUTH if values is None else values


@cache
def _joined(both: bool, left: frozenset[Held], right: frozenset[Held]) -> frozenset[Held]:
    """AND, or else OR, of all pairs."""
    decisive = not both
    return frozenset(decisive if decisive in pair else None if None in pair else both for pair in product(left, right))


def _case(arguments: Sequence[_Reading], known: Values) -> Values:
    found: frozenset[Held] = frozenset()
    for condition, result in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        holds = _truth(condition(known))
        if True not in holds:
            continue
        if (values := result(known)) is None:
            return ANY
        found |= values
        if len(holds) == 1:
            return found
    values = arguments[-1](known)
    return ANY if values is None else found | values


def _coalesce(arguments: Sequence[_Reading], known: Values) -> Values:
    found: frozenset[Held] = _NULL
    for argument in arguments:
        if (values := argument(known)) is None:
            return ANY
        found = (found - _NULL) | values
        if None not in values:
            break
    return found


def _in(arguments: Sequence[_Reading]) -> _Reading:
    """Whether a value stands in a list of constants."""
    value, *others = arguments
    constants = [one(ANY) for one in others]
    if any(one is None for one in constants):
        return lambda known: ANY  # noqa: ARG005
    listed: frozenset[Held] = frozenset().union(*(one for one in constants if one is not None))
    missing = None if None in listed else False
    listed -= _NULL

    def one(held: Held) -> frozenset[Held]:
        if held is None:
            return _NULL
        if isinstance(held, Other):
            return frozenset([missing]) if listed <= held.values else _TRUTH
        return frozenset([True if held in listed else missing])

    def read(known: Values) -> Values:
        values = value(known)
        return ANY if values is None else frozenset().union(*map(one, values))

    return read


_Function: TypeAlias = Callable[..., Values]
"""Of one value for each argument, what may come of them."""


def _each(function: _Function, arguments: Sequence[Values]) -> Values:
    """A function of all combinations of what its arguments may be."""
    given = [one for one in arguments if one is not None]
    if len(given) < len(arguments) or math.prod(len(one) for one in given) > MOST_VALUES:
        return ANY
    found: frozenset[Held] = frozenset()
    for combination in product(*given):
        if (values := function(*combination)) is None:
            return ANY
        found |= values
    return found


_COMPARED: Mapping[str, Callable[..., bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
"""Texts are ordered by code points here and by the bytes of UTF-8 in the engine, which is the same order."""


def _comparison(name: str) -> _Function:
    compare = _COMPARED[name]

    def function(left: Held, right: Held) -> Values:
        if left is None or right is None:
            return _NULL
        if name in ("equal", "not_equal") and (_apart(left, right) or _apart(right, left)):
            return frozenset([name == "not_equal"])
        if type(left) is not type(right) or isinstance(left, Other):
            return _TRUTH
        return frozenset([compare(left, right)])

    return function


def _apart(left: Held, right: Held) -> bool:
    return isinstance(left, Other) and right in left.values


def _same(left: Held, right: Held) -> Values:
    if left is None or right is None:
        return frozenset([left is right])
    return _comparison("equal")(left, right)


def _negation(value: Held) -> Values:
    return _NULL if value is None else frozenset([not value])


def _number(compute: Callable[..., float | None]) -> _Function:
    """A function of doubles that is NULL where an argument is. Values that are not finite are treated as unknown."""

    def function(*values: Held) -> Values:
        if None in values:
            return _NULL
        if not all(isinstance(value, float) for value in values):
            return ANY
        try:
            result = compute(*values)
        except (ArithmeticError, ValueError):
            return ANY
        return _NULL if result is None else frozenset([float(result)]) if math.isfinite(result) else ANY

    return function


def _nearest(value: float) -> float:
    """The whole number next to a double, halves away from zero. The difference is exact."""
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


def _in_steps(value: float, numerator: float, denominator: float) -> float:
    return _nearest(value * denominator / numerator)


def _rounded(value: float, digits: float) -> float:
    """To tens, hundreds and so on; to digits behind the point the engine rounds in ways of its own."""
    if digits > 0:
        raise ValueError
    unit = 10.0**-digits
    return float(_nearest(value / unit) * unit)


def _truncated(value: float, digits: float) -> float:
    if digits != 0:
        raise ValueError
    return math.trunc(value)


_NUMBERS: Mapping[str, Callable[..., float | None]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda a, b: a / b if b else None,
    "modulo": lambda a, b: math.fmod(a, b) if b else None,
    "quotient": lambda a, b: math.trunc(a / b) if b else None,
    "in_steps": _in_steps,
    "from_steps": lambda count, numerator, denominator: count * numerator / denominator,
    "negate": operator.neg,
    "absolute": abs,
    "floor": math.floor,
    "ceiling": math.ceil,
    "round": _rounded,
    "truncate": _truncated,
    "sign": lambda a: (a > 0) - (a < 0),
    "to_integer": _nearest,
    "to_number": float,
    "greatest": lambda *values: max(values),
    "least": lambda *values: min(values),
}
"""Functions that doubles compute alike here and in the engine."""


def _text(compute: Callable[..., Held], *, plain: bool = False) -> _Function:
    """A function of texts; `plain` ones are known of ASCII alone, where letters have one other case."""

    def function(*values: Held) -> Values:
        if None in values:
            return _NULL
        if not all(isinstance(value, str) and (value.isascii() or not plain) for value in values):
            return ANY
        return frozenset([compute(*values)])

    return function


def _like(value: Held, pattern: Held) -> Values:
    """Patterns with % alone, in which each piece is found as far to the left as it can stand."""
    if value is None or pattern is None:
        return _NULL
    if not isinstance(value, str) or not isinstance(pattern, str) or set(pattern) & {"_", "\\"}:
        return _TRUTH
    first, *pieces = pattern.split("%")
    if not pieces:
        return frozenset([value == pattern])
    *middle, last = pieces
    if not value.startswith(first):
        return _FALSE
    place = len(first)
    for piece in middle:
        if (found := value.find(piece, place)) < 0:
            return _FALSE
        place = found + len(piece)
    return frozenset([len(value) - len(last) >= place and value.endswith(last)])


def _moment(compute: Callable[[datetime.date], Held]) -> _Function:
    def function(value: Held) -> Values:
        if value is None:
            return _NULL
        return frozenset([compute(value)]) if isinstance(value, datetime.date) else ANY

    return function


def _midnight(moment: datetime.date) -> datetime.datetime:
    if isinstance(moment, datetime.datetime):
        return moment
    return datetime.datetime.combine(moment, datetime.time())


_EPOCH = datetime.date(1970, 1, 1).toordinal()
_UNITS = ("year", "quarter", "month", "week", "day")


def _begun(unit: Held, value: Held) -> Values:
    """When the unit began in which a moment lies. A date stays one, and a week begins on Monday."""
    if value is None:
        return _NULL
    if not isinstance(value, datetime.date) or unit not in (*_UNITS, "hour", "minute"):
        return ANY
    if unit in ("hour", "minute"):
        if not isinstance(value, datetime.datetime):
            return frozenset([value])
        return frozenset([value.replace(minute=0 if unit == "hour" else value.minute, second=0, microsecond=0)])
    month = {"year": 1, "quarter": (value.month - 1) // 3 * 3 + 1}.get(str(unit), value.month)
    if unit == "week" and value.toordinal() < 8:
        return ANY
    if unit in ("week", "day"):
        begun = value - datetime.timedelta(days=value.weekday() if unit == "week" else 0)
    else:
        begun = value.replace(month=month, day=1)
    clock = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0} if isinstance(value, datetime.datetime) else {}
    return frozenset([begun.replace(**clock)])


_WRITTEN: Mapping[str, Callable[[datetime.date], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "H": lambda moment: f"{getattr(moment, 'hour', 0):02}",
    "M": lambda moment: f"{getattr(moment, 'minute', 0):02}",
    "%": lambda moment: "%",  # noqa: ARG005
}
"""The signs of a format that are numbers."""


def _formatted(value: Held, form: Held) -> Values:
    if value is None:
        return _NULL
    if not isinstance(value, datetime.date) or not isinstance(form, str) or value.year < 1000:
        return ANY
    signs = re.findall(r"%(.)", form)
    if not set(signs) <= _WRITTEN.keys():
        return ANY
    return frozenset([re.sub(r"%(.)", lambda found: _WRITTEN[found[1]](value), form)])


def _difference(unit: Held, start: Held, end: Held) -> Values:
    """How many units begin between two moments."""
    if start is None or end is None:
        return _NULL
    if not isinstance(start, datetime.date) or not isinstance(end, datetime.date):
        return ANY
    first, last = (units_begun(str(unit), _midnight(one)) for one in (start, end))
    return frozenset([float(last - first)])


_LENGTHS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def _added(unit: Held, value: Held, many: Held) -> Values:
    """A moment, so many units later; months and years have different lengths."""
    if value is None or many is None:
        return _NULL
    if not isinstance(value, datetime.date) or not isinstance(many, float) or unit not in _LENGTHS:
        return ANY
    if not isinstance(value, datetime.datetime) and unit not in ("week", "day"):
        return ANY
    try:
        return frozenset([value + datetime.timedelta(seconds=many * _LENGTHS[str(unit)])])
    except OverflowError:
        return ANY


_FUNCTIONS: Mapping[str, _Function] = {
    **{name: _comparison(name) for name in _COMPARED},
    **{name: _number(compute) for name, compute in _NUMBERS.items()},
    "same": _same,
    "not": _negation,
    "is_null": lambda value: frozenset([value is None]),
    "is_true": lambda value: frozenset([value is True]),
    "is_false": lambda value: frozenset([value is False]),
    "upper": _text(str.upper, plain=True),
    "lower": _text(str.lower, plain=True),
    "starts_with": _text(str.startswith),
    "ends_with": _text(str.endswith),
    "contains": _text(lambda value, piece: piece in value),
    "like": _like,
    "year": _moment(lambda moment: float(moment.year)),
    "quarter": _moment(lambda moment: float((moment.month + 2) // 3)),
    "month": _moment(lambda moment: float(moment.month)),
    "day": _moment(lambda moment: float(moment.day)),
    "iso_year": _moment(lambda moment: float(moment.isocalendar().year)),
    "week": _moment(lambda moment: float(moment.isocalendar().week)),
    "day_of_year": _moment(lambda moment: float(moment.timetuple().tm_yday)),
    "day_of_week": _moment(lambda moment: float(moment.isoweekday() % 7 + 1)),
    "day_of_week_0": _moment(lambda moment: float(moment.isoweekday() % 7)),
    "day_of_week_iso": _moment(lambda moment: float(moment.isoweekday())),
    "hour": _moment(lambda moment: float(getattr(moment, "hour", 0))),
    "minute": _moment(lambda moment: float(getattr(moment, "minute", 0))),
    "unix_date": _moment(lambda moment: float(moment.toordinal() - _EPOCH)),
    "unix_seconds": lambda value: _difference("second", datetime.date(1970, 1, 1), value),
    "date_diff": _difference,
    "date_add": _added,
    "date_trunc": _begun,
    "format_moment": _formatted,
    "to_date": _moment(lambda moment: moment.date() if isinstance(moment, datetime.datetime) else moment),
    "to_timestamp": _moment(_midnight),
}


def _function(call: Call) -> _Function | None:
    if call.operator == "to_integer" and not call.arguments[0].type.numeric:
        return None
    return _FUNCTIONS.get(call.operator)


_THROUGH: Mapping[str, tuple[Callable[..., bool], int]] = {
    "equal": (operator.eq, 0),
    "in": (operator.eq, 0),
    "less": (operator.le, -1),
    "less_equal": (operator.le, 0),
    "greater": (operator.ge, 1),
    "greater_equal": (operator.ge, 0),
}
"""How a comparison stands without strictness, and by how many values its constant moves for that."""


def _through(call: Call, subject: Expression) -> _Reading | None:
    """A comparison of something from which the subject rises: START >= DATE '2010-01-01', where the subject is the year
    of START. Where m never falls, x ≥ c makes m(x) ≥ m(c): of smaller values of the subject the comparison is false.
    None where the call is no such comparison."""
    if call.operator not in _THROUGH:
        return None
    value, *others = call.arguments
    if subject == value or not _rises(subject, value):
        return None
    compare, step = _THROUGH[call.operator]
    made = reading(subject, value)
    ends: list[Held] = []
    for constant in others:
        held = _held(constant.value) if isinstance(constant, Literal) else ANY
        end = made(_moved(held, value.type, step) if step else held)
        if end is None or None in end:
            return None
        ends += end

    def read(known: Values) -> Values:
        if known is None or any(held is None or isinstance(held, Other) for held in known):
            return ANY
        near = any(type(held) is not type(end) or compare(held, end) for held in known for end in ends)
        return ANY if near else _FALSE

    return read


def _rises(expression: Expression, part: Expression) -> bool:
    """Whether the expression never falls where the part rises, and has no value where the part has none. Doubles are
    rounded, which keeps their order."""
    if expression == part:
        return True
    if not isinstance(expression, Call):
        return False
    name, (first, *others) = expression.operator, expression.arguments
    if name in ("multiply", "divide", "in_steps", "from_steps"):
        steady = all(isinstance(one, Literal) and isinstance(one.value, int) and one.value > 0 for one in others)
    elif name in ("add", "subtract", "round", "truncate"):
        steady = all(isinstance(one, Literal) and one.value is not None for one in others)
    else:
        moments = name in ("year", "to_date", "to_timestamp") and first.type in (Type.DATE, Type.TIMESTAMP)
        steady = moments or (name in ("floor", "ceiling", "to_integer", "to_number") and first.type.numeric)
    return steady and _rises(first, part)


def _moved(values: Values, kind: Type, step: int) -> Values:
    """The next value of this type above a constant, or below it; any where there is none."""
    (value,) = values or (None,)
    try:
        if isinstance(value, datetime.datetime):
            return frozenset([value + step * datetime.timedelta(microseconds=1)])
        if isinstance(value, datetime.date):
            return frozenset([value + step * datetime.timedelta(days=1)])
    except OverflowError:
        return ANY
    if not isinstance(value, float):
        return ANY
    if kind is Type.INTEGER and value.is_integer():
        return frozenset([value + step])
    return frozenset([math.nextafter(value, step * math.inf)])
