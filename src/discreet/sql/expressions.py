"""Trees of one row's expression to our own, by allow-list: what is not named here is refused, with a way to say it."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from discreet.catalog.model import Type
from discreet.errors import QuestionError
from discreet.plan.expressions import Call, Expression, Literal

Resolve = Callable[[exp.Column], Expression]
"""What a name means where it stands."""

Aggregates = Callable[[exp.Expression], Expression | None]
"""What an aggregate means where it stands; None where the node is no aggregate."""

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
}
DEEPEST = 100
"""How deeply expressions may be nested; a chain of n ORs is nested n times."""

LARGEST = 20_000
"""How many operators, columns and constants may be read; BETWEEN and CASE x WHEN read their first operand anew."""

ALLOWED = "+ - * /, comparisons, AND, OR, NOT, IS NULL, IN (list), BETWEEN, LIKE, CASE, COALESCE, ABS"


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
        else type(node).sql_name()
        if isinstance(node, exp.Func)
        else node.key
    )
    where = str(name)[:60] or "question"
    return QuestionError("not-allowed", f"{where} cannot be used here", where=where, fix=fix or f"use {ALLOWED}")


class Reader:
    """Reads expressions. `resolve` gives names their meaning; `aggregate` knows aggregates where they are allowed."""

    def __init__(self, resolve: Resolve, aggregate: Aggregates | None = None) -> None:
        self._resolve = resolve
        self._aggregate = aggregate
        self._depth = self._count = 0

    def boolean(self, node: exp.Expression) -> Expression:
        """A condition."""
        expression = self.read(node)
        if expression.type is not Type.BOOLEAN:
            raise QuestionError(
                "type", "this must be a condition", where=_place(node), fix="write a comparison such as x > 1"
            )
        return expression

    def number(self, node: exp.Expression) -> Expression:
        """A numeric expression."""
        expression = self.read(node)
        if not expression.type.numeric:
            raise QuestionError(
                "type",
                f"this must be a number, not {expression.type}",
                where=_place(node),
                fix="use a column of numbers",
            )
        return expression

    def read(self, node: exp.Expression) -> Expression:
        """Any expression. Raises QuestionError on everything that is not in the allow-list, and on what is nested so
        deeply that the engine might not take it: by then the question would be paid for."""
        if self._depth == DEEPEST or self._count == LARGEST:
            fix = "ask something simpler: IN (…) instead of many ORs"
            raise QuestionError("syntax", "this is nested too deeply", where="question", fix=fix)
        if not isinstance(node, exp.Expression):  # as in COUNT( , )
            raise QuestionError("syntax", "an expression is missing", where="question", fix="write it, or no comma")
        self._depth += 1
        self._count += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: exp.Expression) -> Expression:
        if self._aggregate is not None and (found := self._aggregate(node)) is not None:
            return found
        kind = type(node)
        if kind in _COMPARISONS:
            only(node, "this", "expression")
            return self._compared(_COMPARISONS[kind], node.this, node.expression, node)
        if kind in _ARITHMETIC:
            only(node, "this", "expression", "typed", "safe")
            return self._arithmetic(_ARITHMETIC[kind], node)
        reader = _READERS.get(kind)
        if reader is None:
            raise refused(node)
        return reader(self, node)

    def _arithmetic(self, operator: str, node: exp.Expression) -> Expression:
        left, right = self.number(node.this), self.number(node.expression)
        whole = left.type is Type.INTEGER and right.type is Type.INTEGER and operator != "divide"
        return Call(operator, (left, right), Type.INTEGER if whole else Type.NUMBER)

    def _compared(
        self, operator: str, left: exp.Expression, right: exp.Expression, where: exp.Expression
    ) -> Expression:
        sides = self.alike([self.read(left), self.read(right)], where)
        return Call(operator, tuple(sides), Type.BOOLEAN)

    def alike(self, sides: Sequence[Expression], where: exp.Expression) -> list[Expression]:
        """Expressions that meet: of one type, or numbers of both kinds; text literals beside dates are dates."""
        kinds = {side.type for side in sides if not _is_null(side)}
        if kinds & {Type.DATE, Type.TIMESTAMP}:
            target = Type.TIMESTAMP if Type.TIMESTAMP in kinds else Type.DATE
            sides = [_dated(side, target, where) for side in sides]
            kinds = {side.type for side in sides if not _is_null(side)}
        if len(kinds) > 1 and not all(kind.numeric for kind in kinds):
            words = " and ".join(sorted(kinds))
            fix = "compare values of one type; text stands in single quotes"
            raise QuestionError("type", f"{words} cannot be compared", where=_place(where), fix=fix)
        return list(sides)

    def _literal(self, node: exp.Expression) -> Expression:
        if node.args.get("is_string"):
            return Literal(_text(str(node.this), node), Type.TEXT)
        return _number(str(node.this), node)

    def _negate(self, node: exp.Expression) -> Expression:
        only(node, "this")
        inner = self.number(node.this)
        if isinstance(inner, Literal) and isinstance(inner.value, int | Fraction):
            return Literal(-inner.value, inner.type)
        return Call("negate", (inner,), inner.type)

    def _column(self, node: exp.Expression) -> Expression:
        assert isinstance(node, exp.Column)
        only(node, "this", "table")
        return self._resolve(node)

    def _logic(self, node: exp.Expression) -> Expression:
        only(node, "this", "expression")
        operator = "and" if isinstance(node, exp.And) else "or"
        return Call(operator, (self.boolean(node.this), self.boolean(node.expression)), Type.BOOLEAN)

    def _not(self, node: exp.Expression) -> Expression:
        only(node, "this")
        return Call("not", (self.boolean(node.this),), Type.BOOLEAN)

    def _paren(self, node: exp.Expression) -> Expression:
        only(node, "this")
        return self.read(node.this)

    def _is(self, node: exp.Expression) -> Expression:
        only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise refused(node, "write IS NULL or IS NOT NULL")
        return Call("is_null", (self.read(node.this),), Type.BOOLEAN)

    def _in(self, node: exp.Expression) -> Expression:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise refused(node, "write IN with a list of values")
        only(node, "this", "expressions")
        sides = self.alike([self.read(side) for side in (node.this, *node.expressions)], node)
        if not all(isinstance(side, Literal) for side in sides[1:]):
            raise refused(node, "write IN with a list of constants")
        return Call("in", tuple(sides), Type.BOOLEAN)

    def _between(self, node: exp.Expression) -> Expression:
        only(node, "this", "low", "high")
        low = self._compared("greater_equal", node.this, node.args["low"], node)
        high = self._compared("less_equal", node.this, node.args["high"], node)
        return Call("and", (low, high), Type.BOOLEAN)

    def _like(self, node: exp.Expression) -> Expression:
        only(node, "this", "expression", "negate", fix="write column LIKE 'pattern'")
        value, pattern = self.read(node.this), self.read(node.expression)
        if value.type is not Type.TEXT or not isinstance(pattern, Literal) or pattern.type is not Type.TEXT:
            raise refused(node, "write column LIKE 'pattern'")
        like = Call("like", (value, pattern), Type.BOOLEAN)
        return Call("not", (like,), Type.BOOLEAN) if node.args.get("negate") else like

    def _case(self, node: exp.Expression) -> Expression:
        only(node, "this", "ifs", "default")
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            if node.this is not None:
                arguments.append(self._compared("equal", node.this, branch.this, node))
            else:
                arguments.append(self.boolean(branch.this))
            arguments.append(self.read(branch.args["true"]))
        default = node.args.get("default")
        arguments.append(self.read(default) if default is not None else Literal(None, Type.TEXT))
        return self._choice("case", arguments, slice(1, -1, 2), node)

    def _if(self, node: exp.Expression) -> Expression:
        only(node, "this", "true", "false")
        otherwise = node.args.get("false")
        arguments = [self.boolean(node.this), self.read(node.args["true"])]
        arguments.append(self.read(otherwise) if otherwise is not None else Literal(None, Type.TEXT))
        return self._choice("case", arguments, slice(1, -1, 2), node)

    def _choice(self, operator: str, arguments: list[Expression], results: slice, node: exp.Expression) -> Expression:
        chosen = [*arguments[results], arguments[-1]]
        alike = self.alike(chosen, node)
        arguments[results], arguments[-1] = alike[:-1], alike[-1]
        return Call(operator, tuple(arguments), _common(alike, node))

    def _coalesce(self, node: exp.Expression) -> Expression:
        only(node, "this", "expressions", "is_nvl")
        sides = self.alike([self.read(side) for side in (node.this, *node.expressions)], node)
        return Call("coalesce", tuple(sides), _common(sides, node))

    def _absolute(self, node: exp.Expression) -> Expression:
        only(node, "this")
        inner = self.number(node.this)
        return Call("absolute", (inner,), inner.type)

    def _cast(self, node: exp.Expression) -> Expression:
        """DATE '2020-01-31' and TIMESTAMP '…', the only casts: of constants."""
        target = {"DATE": Type.DATE, "TIMESTAMP": Type.TIMESTAMP}.get(node.args["to"].sql().upper())
        inner = node.this
        if target is None or not isinstance(inner, exp.Literal) or not inner.is_string:
            raise refused(node, "only constants can be cast: DATE '2020-01-31', TIMESTAMP '2020-01-31 12:00:00'")
        return _dated(Literal(str(inner.this), Type.TEXT), target, node)


_READERS: dict[type[exp.Expression], Callable[[Reader, exp.Expression], Expression]] = {
    exp.Literal: Reader._literal,
    exp.Boolean: lambda reader, node: Literal(bool(node.this), Type.BOOLEAN),  # noqa: ARG005
    exp.Null: lambda reader, node: Literal(None, Type.TEXT),  # noqa: ARG005
    exp.Neg: Reader._negate,
    exp.Column: Reader._column,
    exp.And: Reader._logic,
    exp.Or: Reader._logic,
    exp.Not: Reader._not,
    exp.Paren: Reader._paren,
    exp.Is: Reader._is,
    exp.In: Reader._in,
    exp.Between: Reader._between,
    exp.Like: Reader._like,
    exp.Case: Reader._case,
    exp.If: Reader._if,
    exp.Coalesce: Reader._coalesce,
    exp.Abs: Reader._absolute,
    exp.Cast: Reader._cast,
}


def unknown_name(name: str, known: Sequence[str], *, kind: str, where: str, quoted: bool = False) -> QuestionError:
    """The error for a name that nobody declared."""
    near = difflib.get_close_matches(name, known, 1) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    fix = f"write {near[0]}" if near else f"write one of {', '.join(known[:20])}"
    if quoted and not near:
        fix += f"; a text is written in single quotes: '{name[:60]}'"
    return QuestionError(f"unknown-{kind}", f"there is no {kind} {name[:60]!r}", where=where, fix=fix)


def _common(sides: Sequence[Expression], node: exp.Expression) -> Type:
    kinds = {side.type for side in sides if not _is_null(side)}
    if not kinds:
        raise refused(node, "let some branch be other than NULL")
    if kinds == {Type.INTEGER, Type.NUMBER}:
        return Type.NUMBER
    return kinds.pop()


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _place(node: exp.Expression) -> str:
    return node.sql()[:60]


def _text(value: str, node: exp.Expression) -> str:
    if "\x00" in value:
        raise QuestionError("type", "a text cannot hold a zero character", where=node.key, fix="leave it out")
    return value


def _number(text: str, node: exp.Expression) -> Literal:
    try:
        value = Decimal(text)
        if not value.is_finite() or (value and not -300 < value.adjusted() < 300):
            raise InvalidOperation
    except InvalidOperation:
        raise QuestionError(
            "number", "this number is out of range", where=_place(node), fix="write a number below 1e300"
        ) from None
    if text.isdigit():
        return Literal(int(value), Type.INTEGER)
    return Literal(Fraction(value), Type.NUMBER)


def _dated(side: Expression, target: Type, where: exp.Expression) -> Expression:
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
        raise QuestionError("date", "this is no date", where=_place(where), fix=fix) from None
    return side
