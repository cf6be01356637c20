"""Fixed-point arithmetic: decimals as whole numbers of steps, without the rounding of doubles.

A number column with a `step` holds multiples of it: it is rounded when the table is loaded (`Column.steps`). The engine
keeps each as the double nearest to it. A *stepped* expression is one whose value, on every row, is the double nearest
to k·p/q, with k a whole number and p/q its step: columns with a step, whole numbers and constants are stepped. Where
arithmetic has stepped arguments it is written anew (`exactly`): `in_steps` finds k of each, the whole number nearest to
x·q/p; + − * work on these; and `from_steps` makes k·p/q of the result, which is stepped again. So `d * 100` of the
double nearest to .29 is 29, and not 28.999999999999996.

Why this is exact wherever k·p, q and all that is computed between stay within `LARGEST` = 2^50:

* x = k·p/q·(1 + e) with |e| ≤ 2^−53, and x·q/p is rounded twice more: within .4 of k, which rounding finds;
* sums, differences and products of whole numbers below 2^53 are whole numbers, and doubles hold them all;
* k·p and q are doubles, so (k·p)/q, rounded once, is the double nearest to the exact value;
* two multiples of one step below 2^50 of them are at least two neighbouring doubles apart, so comparisons of stepped
  expressions that are multiples of one such step are those of the exact values; a constant that is no multiple, but so
  near to one that doubles do not tell them apart, is replaced by the middle between two multiples (`_told_apart`);
* FLOOR, CEIL, ROUND, TRUNC and a cast to integer of a/q as a double are those of a/q: whole numbers, and halves, are at
  least 1/(2q) away from any other a/q, which is more than rounding moves it while a and q are below 2^50.

Which form an expression has follows from question and declaration alone. Nothing rests on a row's size: all of it is
computed in doubles, which have no overflow and never fail, so a value beyond 2^50 steps is off by its last digits, as
all doubles are. Steps that are no quotient of whole numbers up to 2^50 are not followed: what has them is computed in
doubles as it stands. No sensitivity rests on any of this: each row is clamped to its lattice in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

from discreet.dialect.cases import case_results
from discreet.dialect.quantization import common
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import LARGEST, Column, Type

Columns = Mapping[str, Column]


def step_of(expression: Expression, columns: Columns) -> Fraction | None:
    """The step of an expression in the form that `exactly` gives; None where it is not stepped."""
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            return None
        return _followed(Fraction(1, Fraction(value).denominator))
    if expression.type is Type.INTEGER:
        return Fraction(1)
    if isinstance(expression, ColumnOf):
        column = columns[expression.name]
        return column.step if column.type is Type.NUMBER and column.steps is not None else None
    return _call_step(expression, columns)


def _call_step(call: Call, columns: Columns) -> Fraction | None:
    operator, arguments = call.operator, call.arguments
    if operator == "from_steps":
        return Fraction(_whole(arguments[1]), _whole(arguments[2]))
    if operator == "in_steps":
        return Fraction(1)
    if operator == "divide" and _of_whole(call):
        return _followed(Fraction(1, abs(_whole(arguments[1]))))
    if operator in ("negate", "absolute", "to_number", "nullif", "zero_if_null", "null_if_zero"):
        return step_of(arguments[0], columns)
    if operator == "case":
        return _shared(case_results(call), columns)
    return _shared(arguments, columns) if operator in ("coalesce", "greatest", "least") else None


def exactly(expression: Expression, columns: Columns) -> Expression:
    """The expression with all arithmetic on stepped values in steps. Its value is the same but for rounding."""
    if not isinstance(expression, Call) or expression.operator == "from_steps":
        return expression
    arguments = tuple(exactly(one, columns) for one in expression.arguments)
    if any(new is not old for new, old in zip(arguments, expression.arguments, strict=True)):
        expression = replace(expression, arguments=arguments)
    build = _BUILDERS.get(expression.operator)
    made = build(expression, columns) if build is not None else None
    return expression if made is None else made


def _followed(step: Fraction) -> Fraction | None:
    """The step, if its parts are such that doubles compute with them exactly."""
    return step if step.numerator <= LARGEST and step.denominator <= LARGEST else None


def _shared(expressions: Sequence[Expression], columns: Columns) -> Fraction | None:
    """The largest step of which all values are multiples; None where some have none."""
    steps = [step_of(one, columns) for one in expressions if not _null(one)]
    known = [step for step in steps if step is not None]
    if not known or len(known) < len(steps):
        return None
    step = _followed(reduce(common, known))
    return step if step is not None and max(known) / step <= LARGEST else None


def _null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _whole(expression: Expression) -> int:
    assert isinstance(expression, Literal)
    assert isinstance(expression.value, int)
    return expression.value


def _constant(expression: Expression) -> Fraction | None:
    """The value of a constant that is a number other than 0."""
    value = expression.value if isinstance(expression, Literal) else None
    return Fraction(value) if isinstance(value, int | Fraction) and value else None


def _of_whole(call: Call) -> bool:
    """Whether it is a whole number through a constant one: the engine's quotient is the nearest double as it stands."""
    first, second = call.arguments
    return first.type is second.type is Type.INTEGER and _constant(second) is not None


def _number(operator: str, *arguments: Expression) -> Call:
    return Call(operator, arguments, Type.NUMBER)


def _literal(value: int) -> Literal:
    return Literal(value, Type.INTEGER)


def _from(count: Expression, step: Fraction) -> Call | None:
    """The value of so many steps; None where the step is not followed."""
    if _followed(step) is None:
        return None
    return _number("from_steps", count, _literal(step.numerator), _literal(step.denominator))


def _count(expression: Expression, step: Fraction) -> Expression:
    """How many steps a stepped expression is. Its own step is a multiple of this one."""
    if isinstance(expression, Literal):
        assert isinstance(expression.value, int | Fraction)
        return _literal(int(expression.value / step))
    if isinstance(expression, Call) and expression.operator == "from_steps":
        count, *own = expression.arguments
        return _times(count, int(Fraction(_whole(own[0]), _whole(own[1])) / step))
    if isinstance(expression, Call) and expression.operator == "divide" and _of_whole(expression):
        count, divisor = expression.arguments
        return _times(count, int(1 / (step * _whole(divisor))))
    if expression.type is Type.INTEGER:
        return _times(expression, int(1 / step))
    if step == 1:
        return expression
    return _number("in_steps", expression, _literal(step.numerator), _literal(step.denominator))


def _times(count: Expression, factor: int) -> Expression:
    return count if factor == 1 else _number("multiply", count, _literal(factor))


def _scaled(expression: Expression, by: Fraction, columns: Columns) -> Call | None:
    """The value times a constant: so many steps of another size."""
    step = step_of(expression, columns)
    if step is None:
        return None
    count = _count(expression, step)
    return _from(count if by > 0 else _number("negate", count), step * abs(by))


def _added(call: Call, columns: Columns) -> Call | None:
    step = _shared(call.arguments, columns)
    if step is None or call.type is not Type.NUMBER:
        return None
    return _from(_number(call.operator, *(_count(one, step) for one in call.arguments)), step)


def _multiplied(call: Call, columns: Columns) -> Call | None:
    if call.type is not Type.NUMBER:
        return None
    for one, other in (call.arguments, call.arguments[::-1]):
        if (constant := _constant(other)) is not None:
            return _scaled(one, constant, columns)
    steps = [step_of(one, columns) for one in call.arguments]
    if any(step is None for step in steps):
        return None
    known = [step for step in steps if step is not None]
    counts = (_count(one, step) for one, step in zip(call.arguments, known, strict=True))
    return _from(_number("multiply", *counts), known[0] * known[1])


def _divided(call: Call, columns: Columns) -> Call | None:
    first, second = call.arguments
    if first.type is second.type is Type.INTEGER:  # doubles divide whole numbers as well as they can
        return None
    if (constant := _constant(second)) is not None:
        return _scaled(first, 1 / constant, columns)
    return _on_whole(call, columns)


def _on_whole(call: Call, columns: Columns) -> Call | None:
    """The same of both in one step: a quotient, cut or not, is the same."""
    step = _shared(call.arguments, columns)
    if step is None or all(one.type is Type.INTEGER for one in call.arguments):
        return None
    return replace(call, arguments=tuple(_count(one, step) for one in call.arguments))


def _remainder(call: Call, columns: Columns) -> Call | None:
    step = _shared(call.arguments, columns)
    if step is None or call.type is not Type.NUMBER:
        return None
    return _from(_number("modulo", *(_count(one, step) for one in call.arguments)), step)


def _rounded(call: Call, columns: Columns) -> Expression | None:
    """To digits behind the point; without such, the engine rounds a stepped value as it stands."""
    value, digits = call.arguments
    unit = Fraction(1, 10 ** _whole(digits)) if _whole(digits) > 0 else None
    step = step_of(value, columns)
    if unit is None or step is None or value.type is not Type.NUMBER:
        return None
    if (step / unit).denominator == 1:
        return value
    units = _scaled(value, 1 / unit, columns)
    return None if units is None else _from(Call(call.operator, (units, _literal(0)), Type.INTEGER), unit)


def _bucket(call: Call, columns: Columns) -> Call | None:
    """The same bucket of 0 to n, each 1 wide: x lies in it as (x − low)·n/(high − low) does."""
    value, *ends, number = call.arguments
    if value.type is Type.INTEGER:  # buckets of buckets would nest too deeply
        return None
    low, high = (Fraction(str(getattr(end, "value", None))) for end in ends)
    count = _whole(number)
    moved = exactly(_number("subtract", value, Literal(low, Type.NUMBER)), columns) if low else value
    place = _scaled(moved, count / (high - low), columns)
    return None if place is None else replace(call, arguments=(place, _literal(0), number, number))


_CONSTANT: Mapping[str, Callable[[Any, list[Any]], bool]] = {
    "equal": lambda one, others: one == others[0],
    "not_equal": lambda one, others: one != others[0],
    "less": lambda one, others: one < others[0],
    "less_equal": lambda one, others: one <= others[0],
    "greater": lambda one, others: one > others[0],
    "greater_equal": lambda one, others: one >= others[0],
    "same": lambda one, others: one == others[0],
    "in": lambda one, others: one in others,
}


def _told_apart(call: Call, columns: Columns) -> Expression | None:
    """A comparison with constants, each of which doubles tell apart from all multiples that it is not; one of constants
    alone is what it says, where doubles would say otherwise."""
    known = [one.value for one in call.arguments if isinstance(one, Literal)]
    if len(known) == len(call.arguments) and all(type(value) in (int, Fraction) for value in known):
        (exact, near) = (
            _CONSTANT[call.operator](one, others) for one, *others in (known, [_double(value) for value in known])
        )
        return None if exact == near else Literal(exact, Type.BOOLEAN)
    values = [one for one in call.arguments if not isinstance(one, Literal)]
    step = step_of(values[0], columns) if len(values) == 1 and values[0].type.numeric else None
    if step is None:
        return None
    arguments = tuple(_apart(one, step) if isinstance(one, Literal) else one for one in call.arguments)
    return None if arguments == call.arguments else replace(call, arguments=arguments)


def _double(value: Any) -> float:
    """The double that the engine makes of a constant."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _apart(constant: Literal, step: Fraction) -> Literal:
    if isinstance(constant.value, bool) or not isinstance(constant.value, int | Fraction):
        return constant
    count = constant.value / step
    nearest = round(count)
    if count == nearest or abs(count) > LARGEST or float(constant.value) != float(nearest * step):
        return constant
    return Literal((count // 1 + Fraction(1, 2)) * step, Type.NUMBER)


_BUILDERS: Mapping[str, Callable[[Call, Columns], Expression | None]] = {
    "add": _added,
    "subtract": _added,
    "multiply": _multiplied,
    "divide": _divided,
    "quotient": _on_whole,
    "modulo": _remainder,
    "round": _rounded,
    "truncate": _rounded,
    "width_bucket": _bucket,
    **dict.fromkeys(_CONSTANT, _told_apart),
}
