"""Each operator of the allow-list as an expression of the engine that no row can make fail: the operators of SQL itself
here, the functions in `scalars`. `docs/dialect.md` has all of them.

| operator | what could fail in the engine | guard |
|---|---|---|
| add, subtract, multiply, negate, absolute | overflow of 64-bit integers | computed in doubles: infinity instead |
| divide | division by zero | the divisor 0 becomes NULL |
| comparisons | a cast between types | both sides have one type already, or both become doubles |
| in, case, coalesce | the same | the same |
| like | nothing: linear in the row's text | none |

Nothing here casts text, parses, repeats or looks anything up.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.dialect.functions import ArgumentKind
from discreet.dialect.table import BY_OPERATOR
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.terms import Columns, as_double, call_is_whole, call_tree, compiled, held_whole
from discreet.trusted.ring_b.scalars import BUILDERS, not_zero

_COMPARISONS: dict[str, type[exp.Binary]] = {
    "equal": exp.EQ,
    "not_equal": exp.NEQ,
    "less": exp.LT,
    "less_equal": exp.LTE,
    "greater": exp.GT,
    "greater_equal": exp.GTE,
}
_ARITHMETIC = {"add": "number_sum", "subtract": "number_difference", "multiply": "number_product"}


def _as_whole(expression: Expression, columns: Columns) -> exp.Expression:
    """An integer in 64 bits, NULL where it was computed and does not fit."""
    node = compiled(expression, columns)
    if held_whole(expression):
        return node
    return function("whole_number", node)


_CHOICES = ("coalesce", "nullif", "greatest", "least")
"""Operators whose result is one of their arguments."""


@call_is_whole.register
def _whole(call: Call) -> bool:
    """A choice among whole numbers, or a function that the dialect's table says it of."""
    if call.operator in _CHOICES:
        return all(held_whole(argument) for argument in call.arguments)
    if call.operator == "case":
        return all(held_whole(result) for result in (*call.arguments[1:-1:2], call.arguments[-1]))
    return BY_OPERATOR[call.operator].whole


def _same(arguments: tuple[Expression, ...], columns: Columns) -> list[exp.Expression]:
    """Arguments that meet in one place, all of one engine type."""
    if any(argument.type.numeric for argument in arguments) and not all(held_whole(argument) for argument in arguments):
        return [exp.null() if _null(argument) else as_double(argument, columns) for argument in arguments]
    return [compiled(argument, columns) for argument in arguments]


def _null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


@call_tree.register
def _call(call: Call, columns: Columns) -> exp.Expression:
    operator, arguments = call.operator, call.arguments
    if operator in _COMPARISONS:
        left, right = _same(arguments, columns)
        return exp.Paren(this=_COMPARISONS[operator](this=left, expression=right))
    if operator in _ARITHMETIC:
        left, right = (as_double(argument, columns) for argument in arguments)
        return function(_ARITHMETIC[operator], left, right)
    if operator in _BUILDERS:
        return _BUILDERS[operator](call, columns)
    return BUILDERS[operator](_prepared(call, columns), call)


def _prepared(call: Call, columns: Columns) -> list[exp.Expression]:
    """The arguments of a function, as the dialect's table says that it takes them."""
    row = BY_OPERATOR[call.operator]
    if row.operator in (*_CHOICES, "same"):
        return _same(call.arguments, columns)
    nodes = []
    for place, argument in enumerate(call.arguments):
        kind = row.argument(place).kind
        if kind is ArgumentKind.NUMBER:
            nodes.append(as_double(argument, columns))
        elif kind is ArgumentKind.WHOLE:
            nodes.append(_as_whole(argument, columns))
        else:
            nodes.append(compiled(argument, columns))
    return nodes


def _divide(call: Call, columns: Columns) -> exp.Expression:
    left, right = (as_double(argument, columns) for argument in call.arguments)
    return function("number_quotient", left, not_zero(right))


def _logic(kind: type[exp.Connector]) -> Callable[[Call, Columns], exp.Expression]:
    def build(call: Call, columns: Columns) -> exp.Expression:
        left, right = (compiled(argument, columns) for argument in call.arguments)
        return exp.Paren(this=kind(this=left, expression=right))

    return build


def _in(call: Call, columns: Columns) -> exp.Expression:
    value, *choices = _same(call.arguments, columns)
    return exp.Paren(this=exp.In(this=value, expressions=choices))


def _case(call: Call, columns: Columns) -> exp.Expression:
    conditions = call.arguments[0:-1:2]
    results = _same((*call.arguments[1:-1:2], call.arguments[-1]), columns)
    ifs = [
        exp.If(this=compiled(condition, columns), true=result)
        for condition, result in zip(conditions, results[:-1], strict=True)
    ]
    return exp.Case(ifs=ifs, default=results[-1])


def _coalesce(call: Call, columns: Columns) -> exp.Expression:
    first, *others = _same(call.arguments, columns)
    return exp.Coalesce(this=first, expressions=others)


_BUILDERS: dict[str, Callable[[Call, Columns], exp.Expression]] = {
    "divide": _divide,
    "negate": lambda call, columns: exp.Paren(this=exp.Neg(this=as_double(call.arguments[0], columns))),
    "absolute": lambda call, columns: exp.Abs(this=as_double(call.arguments[0], columns)),
    "and": _logic(exp.And),
    "or": _logic(exp.Or),
    "not": lambda call, columns: exp.Paren(this=exp.Not(this=compiled(call.arguments[0], columns))),
    "is_null": lambda call, columns: exp.Paren(
        this=exp.Is(this=compiled(call.arguments[0], columns), expression=exp.null())
    ),
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "like": lambda call, columns: exp.Paren(
        this=exp.Like(this=compiled(call.arguments[0], columns), expression=compiled(call.arguments[1], columns))
    ),
}

OPERATORS = frozenset(_COMPARISONS) | frozenset(_ARITHMETIC) | frozenset(_BUILDERS)
