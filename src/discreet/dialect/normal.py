"""Normal form of expressions: equivalent spellings give the same measurement.

Each rule gives an expression with the same value on every row, NULL and NaN included (NaN is above all other numbers,
and equal to itself). So to write an expression in normal form changes no answer and no bound. Where two that are alike
keep different forms, the same question is charged twice: that costs, and harms nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Type

TURNED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""What a comparison becomes when its sides are exchanged."""

_DENIED = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}
"""What is true where a comparison is false, and NULL where it is NULL."""

_STRICT = {"less_equal": ("less", 1), "greater_equal": ("greater", -1)}
"""Of whole numbers: the strict comparison, and what its constant is larger by."""

_EXACT = 2**53


def normal(expression: Expression) -> Expression:
    """The normal form. Its normal form is itself."""
    if not isinstance(expression, Call):
        return expression
    call = Call(expression.operator, tuple(normal(one) for one in expression.arguments), expression.type)
    if call.operator == "not":
        return _denied(call)
    if call.operator in TURNED:
        return _compared(call)
    if call.operator == "in":
        return _listed(call)
    if call.operator in ("and", "or"):
        return _joined(call)
    if call.operator in ("add", "multiply"):
        return Call(call.operator, tuple(sorted(call.arguments, key=_order)), call.type)
    return call


def _order(expression: Expression) -> tuple[bool, str]:
    """Constants last, as one writes them."""
    return isinstance(expression, Literal), repr(expression)


def _denied(call: Call) -> Expression:
    (inner,) = call.arguments
    if isinstance(inner, Call) and inner.operator == "not":
        return inner.arguments[0]
    if isinstance(inner, Call) and inner.operator in _DENIED:
        return _compared(Call(_DENIED[inner.operator], inner.arguments, inner.type))
    return call


def _compared(call: Call) -> Expression:
    """Constants stand on the right, and comparisons of whole numbers with constants are strict."""
    operator, (left, right) = call.operator, call.arguments
    if _order(right) < _order(left):
        operator, left, right = TURNED[operator], right, left
    whole = left.type is right.type is Type.INTEGER and not isinstance(left, Literal)
    if operator in _STRICT and whole and isinstance(right, Literal) and isinstance(right.value, int):
        strict, more = _STRICT[operator]
        if abs(right.value) < _EXACT:
            operator, right = strict, Literal(right.value + more, right.type)
    return Call(operator, (left, right), call.type)


def _listed(call: Call) -> Expression:
    """Each constant once, in order; one alone is compared."""
    value, *constants = call.arguments
    different = sorted(dict.fromkeys(constants), key=repr)
    if len(different) == 1:
        return _compared(Call("equal", (value, different[0]), call.type))
    return Call("in", (value, *different), call.type)


def _joined(call: Call) -> Expression:
    """Conditions that are joined alike, each once, in order; those that say which constants a value may be, as one."""
    parts = _flat(call, call.operator)
    if call.operator == "or":
        parts = _gathered(parts)
    different = sorted(dict.fromkeys(parts), key=repr)
    return reduce(lambda a, b: Call(call.operator, (a, b), call.type), different)


def _flat(expression: Expression, operator: str) -> list[Expression]:
    if isinstance(expression, Call) and expression.operator == operator:
        return [part for argument in expression.arguments for part in _flat(argument, operator)]
    return [expression]


def _gathered(parts: Sequence[Expression]) -> list[Expression]:
    """x = 1 OR x = 2 is x IN (1, 2), where all are of one type."""
    others: list[Expression] = []
    lists: dict[Expression, list[Expression]] = {}
    for part in parts:
        if isinstance(part, Call) and part.operator in ("equal", "in"):
            value, *constants = part.arguments
            if not isinstance(value, Literal) and all(_alike(value, one) for one in constants):
                lists.setdefault(value, []).extend(constants)
                continue
        others.append(part)
    return [*others, *(_listed(Call("in", (value, *found), Type.BOOLEAN)) for value, found in lists.items())]


def _alike(value: Expression, constant: Expression) -> bool:
    """Whether the two are compared in the same way, whatever else stands in a list: whole numbers beside others are
    compared as doubles."""
    same = constant.type is value.type or (value.type is Type.NUMBER and constant.type is Type.INTEGER)
    return isinstance(constant, Literal) and same
