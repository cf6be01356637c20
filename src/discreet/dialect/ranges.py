"""Interval arithmetic: the range of an expression's values from declared bounds, with a rule for each function.

Each rule encloses what the engine's doubles give for arguments within their intervals: ends are taken as the doubles
that the engine holds, and where a library's function may be off by a last digit, the ends are moved outwards.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.dialect.cases import Interval, case_results
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

Range = tuple[Fraction, Fraction]
Rule = Callable[[Call, Sequence[Interval], Mapping[str, Column]], Interval]

_DIGITS = 8
"""By how many last digits an end is moved outwards: the engine's functions are off by less."""

_SMALLEST = 5e-324
_HALF_TURN = Fraction(math.nextafter(math.pi, 4))


def _known(rule: Callable[..., Interval]) -> Rule:
    """A rule of the arguments' intervals, where all of them are known."""

    def apply(_call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
        if any(side is None for side in sides):
            return None
        try:
            return rule(*sides)
        except (OverflowError, ValueError, ZeroDivisionError):
            return None

    return apply


def _fixed(low: int | Fraction, high: int | Fraction) -> Rule:
    return lambda call, sides, columns: (Fraction(low), Fraction(high))  # noqa: ARG005


def _outward(value: float, direction: float) -> Fraction:
    for _ in range(_DIGITS):
        value = math.nextafter(value, direction)
    return Fraction(value)


def _between(one: float, other: float) -> Range:
    """What lies between two results, whichever is the larger, with room for last digits."""
    return _outward(min(one, other), -math.inf), _outward(max(one, other), math.inf)


def _rising(function: Callable[[float], float], least: float = -math.inf, most: float = math.inf) -> Rule:
    """A function that rises, where it is a number: from `least` to `most`."""

    def rule(side: Range) -> Interval:
        low, high = max(float(side[0]), least), min(float(side[1]), most)
        return _between(function(low), function(max(low, high)))

    return _known(rule)


def _exactly(function: Callable[[Fraction], int | Fraction]) -> Rule:
    """A function that rises and is computed without error."""

    def rule(side: Range) -> Interval:
        low, high = (Fraction(function(Fraction(float(end)))) for end in side)
        return low, high

    return _known(rule)


def _root(side: Range) -> Interval:
    low, high = (Fraction(math.sqrt(max(float(end), 0.0))) for end in side)
    return low, high


def _rounded(call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    """To multiples of a power of ten: between the multiples around the ends."""
    if sides[0] is None or sides[1] is None:
        return None
    unit = Fraction(10) ** -int(sides[1][0])
    try:
        low, high = (Fraction(float(end)) / unit for end in sides[0])
    except OverflowError:
        return None
    return _with_room(math.floor(low) * unit, call), _with_room(math.ceil(high) * unit, call, upwards=True)


def _with_room(value: Fraction, call: Call, *, upwards: bool = False) -> Fraction:
    """A multiple of a power of ten as a double: decimals are none exactly."""
    if call.type is Type.INTEGER or value.denominator == 1:
        return value
    return _outward(float(value), math.inf if upwards else -math.inf)


def _in_steps(value: Range, numerator: Range, denominator: Range) -> Interval:
    low, high = (Fraction(math.floor(end * denominator[0] / numerator[0] + Fraction(1, 2))) for end in value)
    return low, high


def _from_steps(count: Range, numerator: Range, denominator: Range) -> Interval:
    return count[0] * numerator[0] / denominator[0], count[1] * numerator[0] / denominator[0]


def _hyperbolic_cosine(side: Range) -> Interval:
    largest = max(abs(float(end)) for end in side)
    return Fraction(1), _outward(math.cosh(largest), math.inf)


def _power(base: Range, exponent: Range) -> Interval:
    low, high = float(base[0]), float(base[1])
    if low > 0 or (low == 0 and exponent[0] >= 0):
        corners = [one ** float(other) for one in (low, high) for other in exponent]
        return _between(min(corners), max(corners))
    times = exponent[0]
    if exponent[0] != exponent[1] or times.denominator != 1 or times < 0:
        return None
    ends = [low ** int(times), high ** int(times)]
    if times % 2 == 0 and low <= 0 <= high:
        ends.append(0.0 if times else 1.0)
    return _between(min(ends), max(ends))


def _logarithm_base(side: Range, base: Range) -> Interval:
    if base[0] != base[1] or not base[0] > 1:
        return None
    scale = math.log(float(base[0]))
    low, high = (math.log(max(float(end), _SMALLEST)) / scale for end in side)
    return _between(low, high)


def _modulo(call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    """The remainder has the sign of the first and is smaller than both."""
    value, divisor = sides
    if divisor is None:
        return None
    most = max(abs(divisor[0]), abs(divisor[1]))
    if call.type is Type.INTEGER:
        most = max(most - 1, Fraction(0))
    if value is None:
        return -most, most
    low, high = value
    return max(min(low, Fraction(0)), -most), min(max(high, Fraction(0)), most)


def _quotient(call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    value, divisor = sides
    if value is None:
        return None
    if divisor is not None and not divisor[0] <= 0 <= divisor[1]:
        ends = [math.trunc(one / other) for one in value for other in divisor]
        return Fraction(min(ends) - 1), Fraction(max(ends) + 1)
    if any(argument.type is not Type.INTEGER for argument in call.arguments):
        return None
    most = max(abs(value[0]), abs(value[1]))
    return -most, most


def _ieee_divide(value: Range, divisor: Range) -> Interval:
    if divisor[0] <= 0 <= divisor[1]:
        return None
    ends = [one / other for one in value for other in divisor]
    return min(ends), max(ends)


def _extreme(choose: Callable[[list[Fraction]], Fraction]) -> Rule:
    return _known(lambda *sides: (choose([low for low, _ in sides]), choose([high for _, high in sides])))


def _greatest(call: Call, sides: Sequence[Interval], columns: Mapping[str, Column]) -> Interval:
    """The largest; and GREATEST(LEAST(x, high), low), which lies between the two wherever x does."""
    if len(sides) == 2 and sides[0] is None and sides[1] is not None and sides[1][0] == sides[1][1]:
        inner = call.arguments[0]
        if getattr(inner, "operator", "") == "least":
            highest = [getattr(one, "value", None) for one in getattr(inner, "arguments", ())]
            numbers = [Fraction(one) for one in highest if isinstance(one, int | Fraction)]
            if numbers:
                return sides[1][0], max(min(numbers), sides[1][0])
    return _extreme(max)(call, sides, columns)


def _bit_and(_call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    """What is not negative bounds the result."""
    highest = [side[1] for side in sides if side is not None and side[0] >= 0]
    return (Fraction(0), min(highest)) if highest else None


def _bits(one: Range, other: Range) -> Interval:
    if one[0] < 0 or other[0] < 0:
        return None
    return Fraction(0), Fraction((1 << int(max(one[1], other[1])).bit_length()) - 1)


def _shifted(value: Range, places: Range) -> Interval:
    return Fraction(math.floor(value[0]) >> int(places[0])), Fraction(math.floor(value[1]) >> int(places[0]))


def _bucket(_call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    return (Fraction(0), sides[3][1] + 1) if sides[3] is not None else None


def _cast(call: Call, sides: Sequence[Interval], _columns: Mapping[str, Column]) -> Interval:
    if call.arguments[0].type is Type.BOOLEAN:
        return Fraction(0), Fraction(1)
    side = sides[0]
    if side is None or call.operator == "to_number":
        return side
    return Fraction(math.floor(side[0])), Fraction(math.ceil(side[1]))


def _with_zero(side: Range) -> Interval:
    return min(side[0], Fraction(0)), max(side[1], Fraction(0))


_Moments = tuple[datetime.datetime, datetime.datetime]
_ALWAYS: _Moments = (datetime.datetime.min, datetime.datetime.max)


def _moments(expression: Expression, columns: Mapping[str, Column]) -> _Moments:
    """Between which moments a date or timestamp lies: the declared ones of a column, else all."""
    value, name = getattr(expression, "value", None), getattr(expression, "name", None)
    if value is not None:
        ends = (value, value)
    elif name is not None and columns[name].values is None:
        ends = (columns[name].minimum, columns[name].maximum)
    elif getattr(expression, "operator", "") == "case":  # condition, result, condition, result, …, otherwise
        results = [*expression.arguments[1:-1:2], expression.arguments[-1]]  # type: ignore[union-attr]
        sides = [_moments(one, columns) for one in results if getattr(one, "value", one) is not None]
        return (min(low for low, _ in sides), max(high for _, high in sides)) if sides else _ALWAYS
    elif (moved := _MOVED.get(getattr(expression, "operator", ""))) is not None:
        return moved(expression, columns)  # type: ignore[arg-type]
    else:
        return _ALWAYS
    low, high = (_at(end, other) for end, other in zip(ends, _ALWAYS, strict=True))
    return low, high


def _at(end: object, otherwise: datetime.datetime) -> datetime.datetime:
    if isinstance(end, datetime.datetime):
        return end
    return datetime.datetime.combine(end, datetime.time()) if isinstance(end, datetime.date) else otherwise


def _midnights(call: Call, columns: Mapping[str, Column]) -> _Moments:
    """CAST(x AS DATE): the first moment of the day. Of a text nothing is known."""
    if call.arguments[0].type is Type.TEXT:
        return _ALWAYS
    low, high = _moments(call.arguments[0], columns)
    return datetime.datetime.combine(low, datetime.time()), high


def _as_they_are(call: Call, columns: Mapping[str, Column]) -> _Moments:
    return _ALWAYS if call.arguments[0].type is Type.TEXT else _moments(call.arguments[0], columns)


_LONGEST = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1, "hour": 1, "minute": 1, "second": 1}
"""At most so many days a unit has."""


def _begun(call: Call, columns: Mapping[str, Column]) -> _Moments:
    """DATE_TRUNC: the beginning of the unit."""
    unit = str(getattr(call.arguments[0], "value", ""))
    low, high = _moments(call.arguments[1], columns)
    day = low.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit in ("year", "quarter", "month"):
        month = {"year": 1, "quarter": (low.month - 1) // 3 * 3 + 1, "month": low.month}[unit]
        return day.replace(month=month, day=1), high
    if unit == "week":
        return _shifted_by(day, -datetime.timedelta(days=low.weekday())), high
    return day, high


def _last_days(call: Call, columns: Mapping[str, Column]) -> _Moments:
    low, high = _moments(call.arguments[0], columns)
    return low, _shifted_by(high, datetime.timedelta(days=31))


def _added(call: Call, columns: Mapping[str, Column]) -> _Moments:
    """A constant interval later, or earlier: of months and years, with room for the days that they differ by."""
    unit, number = (getattr(call.arguments[place], "value", None) for place in (0, 2))
    if not isinstance(number, int) or unit not in _LONGEST:
        return _ALWAYS
    low, high = _moments(call.arguments[1], columns)
    if unit in ("hour", "minute", "second"):
        ends = [datetime.timedelta(seconds=number * {"hour": 3_600, "minute": 60, "second": 1}[unit])] * 2
    else:
        least = {"year": 365, "quarter": 84, "month": 28}.get(unit, _LONGEST[unit])
        ends = sorted(datetime.timedelta(days=number * days) for days in (least, _LONGEST[unit]))
    return _shifted_by(low, ends[0]), _shifted_by(high, ends[1])


def _shifted_by(moment: datetime.datetime, by: datetime.timedelta) -> datetime.datetime:
    """So much later, within the calendar. The calendar's own ends say that nothing is known, and stay."""
    try:
        if moment in _ALWAYS:
            return moment
        return moment + by
    except OverflowError:
        return _ALWAYS[0] if by < datetime.timedelta() else _ALWAYS[1]


_MOVED: Mapping[str, Callable[[Call, Mapping[str, Column]], _Moments]] = {
    "to_date": _midnights,
    "to_timestamp": _as_they_are,
    "date_trunc": _begun,
    "last_day": _last_days,
    "date_add": _added,
}
"""For each function that makes a moment of another, between which moments it lies."""


def _year(call: Call, _sides: Sequence[Interval], columns: Mapping[str, Column]) -> Interval:
    low, high = _moments(call.arguments[0], columns)
    slack = 1 if call.operator == "iso_year" else 0
    return Fraction(max(low.year - slack, 0)), Fraction(high.year + slack)


def units_begun(unit: str, moment: datetime.datetime) -> int:
    """How many units have begun up to a moment."""
    months = moment.year * 12 + moment.month - 1
    seconds = moment.toordinal() * 86_400 + moment.hour * 3_600 + moment.minute * 60 + moment.second
    return {
        "year": moment.year,
        "quarter": months // 3,
        "month": months,
        "week": (moment.toordinal() - 1) // 7,
        "day": moment.toordinal(),
        "hour": seconds // 3_600,
        "minute": seconds // 60,
        "second": seconds,
    }[unit]


def _difference(unit: str, starts: _Moments, ends: _Moments) -> Range:
    low = units_begun(unit, ends[0]) - units_begun(unit, starts[1])
    return Fraction(low), Fraction(units_begun(unit, ends[1]) - units_begun(unit, starts[0]))


def _date_diff(call: Call, _sides: Sequence[Interval], columns: Mapping[str, Column]) -> Interval:
    unit = str(getattr(call.arguments[0], "value", ""))
    return _difference(unit, _moments(call.arguments[1], columns), _moments(call.arguments[2], columns))


def _since_1970(unit: str) -> Rule:
    origin = datetime.datetime(1970, 1, 1)
    return lambda call, sides, columns: _difference(  # noqa: ARG005
        unit, (origin, origin), _moments(call.arguments[0], columns)
    )


EVER = {
    Type.DATE: _difference("day", (datetime.datetime(1970, 1, 1),) * 2, _ALWAYS),
    Type.TIMESTAMP: _difference("second", (datetime.datetime(1970, 1, 1),) * 2, _ALWAYS),
}
"""Between which days or seconds since 1970 all dates and timestamps lie."""

RULES: dict[str, Rule] = {
    "in_steps": _known(_in_steps),
    "from_steps": _known(_from_steps),
    "floor": _exactly(math.floor),
    "ceiling": _exactly(math.ceil),
    "round": _rounded,
    "truncate": _rounded,
    "sign": _exactly(lambda end: (end > 0) - (end < 0)),
    "square_root": _known(_root),
    "cube_root": _rising(math.cbrt),
    "exponential": _rising(math.exp),
    "logarithm": _rising(math.log, _SMALLEST),
    "logarithm_10": _rising(math.log10, _SMALLEST),
    "logarithm_2": _rising(math.log2, _SMALLEST),
    "logarithm_base": _known(_logarithm_base),
    "power": _known(_power),
    "sine": _fixed(-1, 1),
    "cosine": _fixed(-1, 1),
    "arc_sine": _fixed(-_HALF_TURN / 2, _HALF_TURN / 2),
    "arc_cosine": _fixed(0, _HALF_TURN),
    "arc_tangent": _fixed(-_HALF_TURN / 2, _HALF_TURN / 2),
    "arc_tangent_2": _fixed(-_HALF_TURN, _HALF_TURN),
    "hyperbolic_sine": _rising(math.sinh),
    "hyperbolic_cosine": _known(_hyperbolic_cosine),
    "hyperbolic_tangent": _fixed(-1, 1),
    "area_sine": _rising(math.asinh),
    "area_cosine": _rising(math.acosh, 1.0),
    "degrees": _rising(math.degrees),
    "radians": _rising(math.radians),
    "pi": _fixed(Fraction(math.pi), Fraction(math.pi)),
    "modulo": _modulo,
    "quotient": _quotient,
    "ieee_divide": _known(_ieee_divide),
    "greatest": _greatest,
    "least": _extreme(min),
    "nullif": lambda call, sides, columns: sides[0],  # noqa: ARG005
    "null_if_zero": _known(lambda side: side),
    "zero_if_null": _known(_with_zero),
    "width_bucket": _bucket,
    "to_integer": _cast,
    "to_number": _cast,
    "bit_and": _bit_and,
    "bit_or": _known(_bits),
    "bit_xor": _known(_bits),
    "bit_not": _known(lambda side: (-side[1] - 1, -side[0] - 1)),
    "shift_right": _known(_shifted),
    "bit_count": _fixed(0, 64),
    "character_code": _fixed(0, 0x10FFFF),
    "year": _year,
    "iso_year": _year,
    "quarter": _fixed(1, 4),
    "month": _fixed(1, 12),
    "week": _fixed(1, 53),
    "day": _fixed(1, 31),
    "day_of_year": _fixed(1, 366),
    "day_of_week": _fixed(1, 7),
    "day_of_week_0": _fixed(0, 6),
    "day_of_week_iso": _fixed(1, 7),
    "hour": _fixed(0, 23),
    "minute": _fixed(0, 59),
    "second": _fixed(0, 59),
    "unix_seconds": _since_1970("second"),
    "unix_date": _since_1970("day"),
    "date_diff": _date_diff,
}
"""For each function that has one, its rule. Texts' lengths and places are not bounded by any declaration."""


def interval(expression: Expression, columns: Mapping[str, Column]) -> Interval:
    """The interval that a numeric expression's non-NULL values lie in, from the declared bounds alone.

    Interval arithmetic (Moore 1966): each operator's result encloses all results of values from its arguments'
    intervals. The engine computes in doubles, so a value may leave the interval by rounding; the lattice clamps every
    row to it, so sensitivity does not rest on this.
    """
    if isinstance(expression, Literal):
        value = expression.value
        return (Fraction(value), Fraction(value)) if isinstance(value, int | Fraction) else None
    if isinstance(expression, ColumnOf):
        column = columns[expression.name]
        if column.values is not None and expression.type.numeric:
            return None  # other values than the declared keys may stand in the column
        low, high = column.minimum, column.maximum
        if isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
            return Fraction(low), Fraction(high)
        return None
    return _call_interval(expression, columns)


def _call_interval(call: Call, columns: Mapping[str, Column]) -> Interval:
    if (rule := RULES.get(call.operator)) is not None:
        return rule(call, [interval(argument, columns) for argument in call.arguments], columns)
    if call.operator == "case":
        branches = [interval(result, columns) for result in case_results(call)]
        return _union(
            [branch for branch, result in zip(branches, case_results(call), strict=True) if not _is_null(result)]
        )
    sides = [interval(argument, columns) for argument in call.arguments if not _is_null(argument)]
    if call.operator == "coalesce":
        return _union(sides)
    if any(side is None for side in sides) or len(sides) < len(call.arguments):
        return None
    known = [side for side in sides if side is not None]
    if call.operator == "negate":
        (low, high) = known[0]
        return -high, -low
    if call.operator == "absolute":
        (low, high) = known[0]
        return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if len(known) != 2:
        return None
    (a, b), (c, d) = known
    if call.operator == "add":
        return a + c, b + d
    if call.operator == "subtract":
        return a - d, b - c
    if call.operator == "divide":
        if c <= 0 <= d:
            return None
        c, d = 1 / d, 1 / c
    if call.operator in ("multiply", "divide"):
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    return None


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _union(sides: list[Interval]) -> Interval:
    known = [side for side in sides if side is not None]
    if not sides or len(known) < len(sides):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
