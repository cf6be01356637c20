"""Numbers with fractions as group keys: each is a whole number of steps, and the groups are those of the whole number.

Engines compare and group whole numbers alike, to the last bit; doubles they need not. So a key such as
FLOOR(x / 20.0) * 20.0, ROUND(x, 1), x - x % 10 or a column with a declared step is written as start + step·k, with k a
whole number of the row: the engine groups by k, and the answer shows start + step·k as the double nearest to it.

Two rows have the same k where they have the same key, and nowhere else. So the groups are those of the key, and what
one person can change in them is what follows from a key of whole numbers (`ring_a.sensitivity`). Step and start follow
from question and declaration alone. Where k has declared bounds its values are public, if they are few (`Column.keys`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from discreet.dialect.cases import case_results
from discreet.dialect.nulls import EXACT
from discreet.dialect.quantization import common
from discreet.dialect.ranges import interval
from discreet.dialect.steps import step_of
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import LARGEST, Column, Type, Value

Columns = Mapping[str, Column]


@dataclass(frozen=True)
class Scale:
    """What a whole number k stands for: start + step·k, of this type."""

    type: Type
    step: Fraction = Fraction(1)
    start: Fraction = Fraction(0)

    def of(self, key: Value | None) -> Value | None:
        """The key of a group that is counted so. NULL stays NULL."""
        if not isinstance(key, int):
            return key
        value = self.start + self.step * key
        return int(value) if self.type is Type.INTEGER else value


@dataclass(frozen=True)
class _Progression:
    """start + step·count, where `count` is a whole number in each row, whatever its type."""

    count: Expression
    step: Fraction = Fraction(1)
    start: Fraction = Fraction(0)


def counted(expression: Expression, columns: Columns) -> tuple[Expression, Scale] | None:
    """The whole number that a numeric key counts, and what it stands for. None where the key is grouped by as it is, or
    is a number of which no step is known. The expression is in the form that `exactly` gives."""
    if expression.type is Type.INTEGER and not _bounded(expression, columns):
        return None  # beyond 64 bits it would be NULL, and its count is not
    if not expression.type.numeric:
        return None
    found = _found(expression, columns)
    if found is None or not found.step or not (_fits(found.step) and _fits(found.start)):
        return None
    count, step = found.count, found.step
    if step < 0:  # groups are listed as their keys rise
        count, step = Call("negate", (count,), count.type), -step
    if count.type is Type.NUMBER:
        count = Call("floor", (count,), Type.INTEGER)  # it is whole already: nothing is cut off
    return count, Scale(expression.type, step, found.start)


def _bounded(expression: Expression, columns: Columns) -> bool:
    known = interval(expression, columns)
    return known is not None and max(-known[0], known[1]) <= EXACT


def _fits(value: Fraction) -> bool:
    return abs(value.numerator) <= LARGEST and value.denominator <= LARGEST


def _found(expression: Expression, columns: Columns) -> _Progression | None:
    if isinstance(expression, Call):
        found = _of_call(expression, columns)
        if found is not None:
            return found
    if isinstance(expression, ColumnOf) and columns[expression.name].values is not None:
        return _Progression(expression) if expression.type is Type.INTEGER else None
    if expression.type is Type.INTEGER:
        return _Progression(expression)
    step = step_of(expression, columns)
    if step is None or isinstance(expression, Literal):
        return None
    unit = Call("in_steps", (expression, _whole(step.numerator), _whole(step.denominator)), Type.NUMBER)
    return _Progression(unit, step)


def _of_call(call: Call, columns: Columns) -> _Progression | None:
    operator, arguments = call.operator, call.arguments
    if operator == "to_number" and arguments[0].type is Type.INTEGER:
        return _found(arguments[0], columns)
    if operator == "from_steps":
        numerator, denominator = (_constant(one) for one in arguments[1:])
        assert numerator is not None
        assert denominator is not None
        return _scaled(_whole_number(arguments[0], columns), numerator / denominator)
    if operator == "in_steps":
        return _Progression(call)
    if operator == "negate":
        return _scaled(_found(arguments[0], columns), Fraction(-1))
    if operator == "case":
        return _case(call)
    if operator in ("round", "truncate"):
        return _digits(call)
    if operator in ("add", "subtract", "multiply", "divide"):
        return _arithmetic(call, columns)
    return None


def _whole_number(expression: Expression, columns: Columns) -> _Progression:
    """What `from_steps` counts: a whole number, even where its type is that of numbers with fractions."""
    found = _of_call(expression, columns) if isinstance(expression, Call) else None
    return found or _Progression(expression)


def _scaled(found: _Progression | None, by: Fraction) -> _Progression | None:
    return None if found is None else replace(found, step=found.step * by, start=found.start * by)


def _arithmetic(call: Call, columns: Columns) -> _Progression | None:
    """A key and a constant; and x - x % c, which is c times the whole number of times that c is in x."""
    operator, (left, right) = call.operator, call.arguments
    if operator == "subtract" and isinstance(right, Call) and right.operator == "modulo" and right.arguments[0] == left:
        return _multiples(left, _constant(right.arguments[1]), columns)
    other, constant = (left, _constant(right)) if _constant(right) is not None else (right, _constant(left))
    if constant is None or isinstance(other, Literal):
        return None
    if operator == "divide":
        return _scaled(_found(left, columns), 1 / constant) if other is left and constant else None
    found = _found(other, columns)
    if operator == "multiply" or found is None:
        return _scaled(found, constant)
    if operator == "add":
        return replace(found, start=found.start + constant)
    moved = found if other is left else _scaled(found, Fraction(-1))
    assert moved is not None
    return replace(moved, start=moved.start + (-constant if other is left else constant))


def _multiples(value: Expression, of: Fraction | None, columns: Columns) -> _Progression | None:
    """How often a whole number c > 0 is in x, cut towards 0, as x - x % c means it. The quotient of doubles is never
    rounded up to a whole number n that x/c does not reach: x is at least one of its last digits below n·c, which in the
    quotient is more than half of one."""
    if of is None or of.denominator != 1 or not 0 < of <= LARGEST:
        return None
    known = interval(value, columns)
    quotient = Call("divide", (value, _whole(of.numerator)), Type.NUMBER)
    plain = isinstance(value, ColumnOf) or value.type is Type.INTEGER or getattr(value, "operator", "") == "in_steps"
    if plain and known is not None and known[0] >= 0:  # its bounds are closer; others may be below 0 by a last digit
        return _Progression(Call("floor", (quotient,), Type.INTEGER), of)
    return _Progression(Call("truncate", (quotient, _whole(0)), Type.INTEGER), of)


def _digits(call: Call) -> _Progression | None:
    """ROUND and TRUNC to digits behind or before the point, of a number without a step: as the engine does it in
    doubles."""
    value, digits = call.arguments
    places = _constant(digits)
    if places is None or not 0 < abs(places) <= 15 or (places > 0) != (call.type is Type.NUMBER):
        return None
    power = _whole(10 ** abs(int(places)))
    units = Call("multiply" if places > 0 else "divide", (value, power), Type.NUMBER)
    return _Progression(Call(call.operator, (units, _whole(0)), Type.INTEGER), Fraction(10) ** -int(places))


def _case(call: Call) -> _Progression | None:
    """A choice among constants: the same choice among whole numbers."""
    results = case_results(call)
    if call.type is not Type.NUMBER or not all(isinstance(one, Literal) for one in results):
        return None
    known = [value for one in results if (value := _constant(one)) is not None]
    step = reduce(common, known, Fraction(0))
    if not step:
        return None

    def whole(place: int, argument: Expression) -> Expression:
        result = place == len(call.arguments) - 1 or place % 2 == 1
        if not result or not isinstance(argument, Literal) or argument.value is None:
            return argument
        assert isinstance(argument.value, int | Fraction)
        return _whole(int(Fraction(argument.value) / step))

    return _Progression(Call("case", tuple(whole(*one) for one in enumerate(call.arguments)), Type.INTEGER), step)


def _constant(expression: Expression) -> Fraction | None:
    value = expression.value if isinstance(expression, Literal) else None
    return Fraction(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


def _whole(value: int) -> Literal:
    return Literal(value, Type.INTEGER)
