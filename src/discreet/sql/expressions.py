"""Trees of one row's expression to our own, by allow-list: what is not named here is refused, with a way to say it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.dialect.steps import exactly
from discreet.dialect.table import ON_ANSWERS
from discreet.errors import QuestionError
from discreet.sql.calls import called, truth
from discreet.sql.dates import difference, moment, shifted
from discreet.sql.refusals import (
    common_type,
    dated,
    is_null,
    moments,
    number_value,
    only,
    place,
    refused,
    text_value,
    truthful,
)
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

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
_SIGN = {"equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
DEEPEST = 100
"""How deeply expressions may be nested; a chain of n ORs is nested n times, and a function counts as `FUNCTION`."""

FUNCTION = 4
"""What a function counts for: with its guards it is so much deeper in the engine's language than an operator."""

WINDOWS = "windows read other rows: write GROUP BY for PARTITION BY, and ORDER BY n DESC LIMIT 10 for a rank"

LARGEST_EXACT = 2**53
"""Constants below this, over whole numbers below this, are computed exactly."""

LARGEST = 20_000
"""How many operators, columns and constants may be read; BETWEEN and CASE x WHEN read their first operand anew."""


class ExpressionReader:
    """Reads expressions. `resolve` gives names their meaning, `columns` says what is known of what they mean;
    `aggregate` knows aggregates where they are allowed; with `answers` what is read is computed on a released answer.
    What is computed of rows comes in the form that is exact on decimals (`dialect.steps`)."""

    def __init__(
        self,
        resolve: Resolve,
        columns: Mapping[str, Column],
        aggregate: Aggregates | None = None,
        *,
        answers: bool = False,
    ) -> None:
        self._resolve = resolve
        self._columns = columns
        self._aggregate = aggregate
        self._answers = answers
        self._depth = self._count = 0

    def boolean(self, node: exp.Expression) -> Expression:
        """A condition."""
        expression = self.read(node)
        if expression.type is not Type.BOOLEAN:
            raise QuestionError(
                "type", "this must be a condition", where=place(node), fix="write a comparison such as x > 1"
            )
        return expression

    def number(self, node: exp.Expression) -> Expression:
        """A numeric expression."""
        return self.numeric(self.read(node), node)

    def numeric(self, expression: Expression, node: exp.Expression) -> Expression:
        """The expression that was read of the node, if it is a number."""
        if not expression.type.numeric:
            moments = expression.type in (Type.DATE, Type.TIMESTAMP)
            fix = "write date + INTERVAL 1 DAY, or DATE_DIFF(end, start, DAY)" if moments else "use a column of numbers"
            if expression.type is Type.TEXT and not isinstance(expression, Literal):
                fix = f"write CAST({place(node)} AS INTEGER) where it holds numbers"
                fix += f"; GROUP BY {place(node)} counts each, and a || b puts texts together"
            if is_null(expression):
                fix = "write a column, or a number such as 0"
                raise QuestionError("type", "this must be a number, not NULL", where=place(node), fix=fix)
            if expression.type is Type.BOOLEAN:
                fix = f"write COUNTIF({place(node)}), and COUNTIF({place(node)}) / COUNT(*) for the share"
            raise QuestionError("type", f"this must be a number, not {expression.type}", where=place(node), fix=fix)
        return expression

    def read(self, node: exp.Expression) -> Expression:
        """Any expression. Raises QuestionError on everything that is not in the allow-list, and on what is nested so
        deeply that the engine might not take it: by then the question would be paid for."""
        weight = _weight(node) if isinstance(node, exp.Expression) else 1
        if self._depth + weight > DEEPEST or self._count + weight > LARGEST:
            fix = "ask something simpler: IN (…) instead of many ORs"
            raise QuestionError("syntax", "this is nested too deeply", where="question", fix=fix)
        if not isinstance(node, exp.Expression):  # as in COUNT( , )
            raise QuestionError("syntax", "an expression is missing", where="question", fix="write it, or no comma")
        self._depth += weight
        self._count += weight
        try:
            found = self._read(node)
        finally:
            self._depth -= weight
        return found if self._depth or self._answers else exactly(found, self._columns)

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
        if reader is not None:
            return reader(self, node)
        found = called(self, node)
        if found is None:
            raise refused(node, _misplaced(node))
        return self._usable(found, node)

    def _usable(self, expression: Expression, node: exp.Expression) -> Expression:
        """The expression, unless it stands on a released answer: there the operators of SQL itself are known only."""
        if self._answers and not set(_operators(expression)) <= ON_ANSWERS:
            raise refused(
                node, "compute it from the answer: HAVING and ORDER BY know + - * /, comparisons, CASE, COALESCE, ABS"
            )
        return expression

    def _arithmetic(self, operator: str, node: exp.Expression) -> Expression:
        first, second = node.this, node.expression
        if operator in ("add", "subtract"):
            if isinstance(first, exp.Interval) and operator == "add":
                first, second = second, first
            if isinstance(second, exp.Interval):
                return self._usable(shifted(moment(self, first), second, backwards=operator == "subtract"), node)
        left, right = self.read(first), self.read(second)
        if operator == "subtract" and left.type is Type.DATE and right.type is Type.DATE:
            return self._usable(difference(Literal("day", Type.TEXT), right, left), node)
        if operator in ("add", "subtract") and left.type is Type.DATE and _days(right):
            days = exp.Interval(this=second.copy(), unit=exp.var("DAY"))
            return self._usable(shifted(left, days, backwards=operator == "subtract"), node)
        left, right = self.numeric(left, first), self.numeric(right, second)
        both = left.type is Type.INTEGER and right.type is Type.INTEGER
        if operator == "divide" and both and node.args.get("typed"):  # as in PostgreSQL: the fraction is cut off
            return self._usable(Call("quotient", (left, right), Type.INTEGER), node)
        whole = both and operator != "divide"
        call = Call(operator, (left, right), Type.INTEGER if whole else Type.NUMBER)
        return _exact(call) or call

    def _compared(
        self, operator: str, left: exp.Expression, right: exp.Expression, where: exp.Expression
    ) -> Expression:
        read = [self.read(left), self.read(right)]
        if any(map(is_null, read)) and not all(isinstance(side, Literal) for side in read):
            raise self._never(left if is_null(read[1]) else right, where, "IS NULL" if operator == "equal" else "")
        if type(left) in _COMPARISONS and read[0].type is Type.BOOLEAN is not read[1].type:
            fix = f"write {place(left)} AND {place(left.expression)} {_SIGN[operator]} {place(right)}"
            raise QuestionError("type", "two comparisons need AND", where=place(where), fix=fix)
        sides = self.alike(read, where)
        return Call(operator, tuple(sides), Type.BOOLEAN)

    def _never(self, other: exp.Expression, where: exp.Expression, what: str) -> QuestionError:
        """The error for a comparison with NULL, which is true of nothing: its answer would be paid for."""
        fix = f"write {place(other)} {what or 'IS NOT NULL'}"
        return QuestionError("null", "a comparison with NULL is never true", where=place(where), fix=fix)

    def alike(self, sides: Sequence[Expression], where: exp.Expression) -> list[Expression]:
        """Expressions that meet: of one type, or numbers of both kinds; text literals beside dates are dates."""
        kinds = {side.type for side in sides if not is_null(side)}
        if kinds & {Type.DATE, Type.TIMESTAMP}:
            target = Type.TIMESTAMP if Type.TIMESTAMP in kinds else Type.DATE
            sides = moments([dated(side, target, where) for side in sides])
            kinds = {side.type for side in sides if not is_null(side)}
        if Type.BOOLEAN in kinds and len(kinds) > 1:
            sides = [truthful(side) for side in sides]
            kinds = {side.type for side in sides if not is_null(side)}
        if len(kinds) > 1 and not all(kind.numeric for kind in kinds):
            words = " and ".join(sorted(kinds))
            fix = "compare values of one type; text is written in single quotes"
            texts = [side.value for side in sides if isinstance(side, Literal) and isinstance(side.value, str)]
            if any(kind.numeric for kind in kinds) and texts and all(map(_is_number, texts)):
                fix = f"write {texts[0].strip()} without quotes"
            if kinds & {Type.DATE, Type.TIMESTAMP} and any(kind.numeric for kind in kinds):
                fix = "write a date as '2020-01-31', or compare EXTRACT(YEAR FROM date) with 2020"
            elif Type.BOOLEAN in kinds:
                fix = "compare with TRUE or FALSE"
            if where.find(exp.DPipe) is not None:
                fix += "; OR joins conditions, || texts"
            raise QuestionError("type", f"{words} cannot be compared", where=place(where), fix=fix)
        return list(sides)

    def _literal(self, node: exp.Expression) -> Expression:
        if node.args.get("is_string"):
            return Literal(text_value(str(node.this), node), Type.TEXT)
        return number_value(str(node.this), node)

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
        if isinstance(node.expression, exp.Boolean):
            return self._usable(truth(self, node.this, bool(node.expression.this)), node)
        if not isinstance(node.expression, exp.Null):
            fix = f"write {place(node.this)} = {place(node.expression)}; after IS write NULL, TRUE or FALSE"
            raise refused(node, fix)
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
        return self.choice("case", arguments, slice(1, -1, 2), node)

    def _if(self, node: exp.Expression) -> Expression:
        only(node, "this", "true", "false")
        otherwise = node.args.get("false")
        arguments = [self.boolean(node.this), self.read(node.args["true"])]
        arguments.append(self.read(otherwise) if otherwise is not None else Literal(None, Type.TEXT))
        return self.choice("case", arguments, slice(1, -1, 2), node)

    def choice(self, operator: str, arguments: list[Expression], results: slice, node: exp.Expression) -> Expression:
        """A call that gives one of several values: the `results` among the arguments and the last one, made alike.
        Raises QuestionError where they cannot be, or are all NULL."""
        chosen = [*arguments[results], arguments[-1]]
        alike = self.alike(chosen, node)
        arguments[results], arguments[-1] = alike[:-1], alike[-1]
        return Call(operator, tuple(arguments), common_type(alike, node))


def _days(expression: Expression) -> bool:
    """Whether a whole constant stands beside a date."""
    return isinstance(expression, Literal) and expression.type is Type.INTEGER and expression.value is not None


def _exact(call: Call) -> Literal | None:
    """The value of arithmetic on constants, as written: 0.06 + 0.01 is 0.07, which doubles miss. None where it is too
    large, or none."""
    left, right = call.arguments
    if not isinstance(left, Literal) or not isinstance(right, Literal) or left.value is None or right.value is None:
        return None
    first, second = Fraction(left.value), Fraction(right.value)  # type: ignore[arg-type]
    if call.operator == "divide":
        if not second:
            return None
        value = first / second
    else:
        value = {"add": first + second, "subtract": first - second, "multiply": first * second}[call.operator]
    if abs(value) >= LARGEST_EXACT or value.denominator >= LARGEST_EXACT:
        return None
    return Literal(int(value) if call.type is Type.INTEGER else value, call.type)


def _misplaced(node: exp.Expression) -> str:
    """What to write instead of what stands where one row's values are meant."""
    if isinstance(node, exp.AggFunc):
        return f"conditions on {place(node)} are written in HAVING, and an aggregate cannot contain another"
    if isinstance(node, exp.Window):
        return WINDOWS
    return "name a column: SUM(column), or COUNT(*)" if isinstance(node, exp.Star) else ""


def _operators(expression: Expression) -> Iterator[str]:
    """Those of an expression and its arguments: what is written as one may be several, as a cast that rounds."""
    if isinstance(expression, Call):
        yield expression.operator
        for one in expression.arguments:
            yield from _operators(one)


def _is_number(text: str) -> bool:
    try:
        fraction(text.strip())
    except ValueError:
        return False
    return True


def _weight(node: exp.Expression) -> int:
    """How much deeper the engine's expression becomes by a node."""
    kind = type(node)
    if kind in (exp.Add, exp.Sub):
        return FUNCTION if isinstance(node.this, exp.Interval) or isinstance(node.expression, exp.Interval) else 1
    if kind is exp.Div:  # a computed divisor is guarded
        return 1 if isinstance(node.expression, exp.Column | exp.Literal) else FUNCTION
    if kind is exp.Anonymous and node.name.upper() in ("COALESCE", "IFNULL", "NVL", "ABS"):
        return 1  # the engine's own, without guards
    return 1 if kind in _READERS or kind in _COMPARISONS or kind in _ARITHMETIC else FUNCTION


_READERS: dict[type[exp.Expression], Callable[[ExpressionReader, exp.Expression], Expression]] = {
    exp.Literal: ExpressionReader._literal,
    exp.Boolean: lambda reader, node: Literal(bool(node.this), Type.BOOLEAN),  # noqa: ARG005
    exp.Null: lambda reader, node: Literal(None, Type.TEXT),  # noqa: ARG005
    exp.Neg: ExpressionReader._negate,
    exp.Column: ExpressionReader._column,
    exp.And: ExpressionReader._logic,
    exp.Or: ExpressionReader._logic,
    exp.Not: ExpressionReader._not,
    exp.Paren: ExpressionReader._paren,
    exp.Is: ExpressionReader._is,
    exp.In: ExpressionReader._in,
    exp.Between: ExpressionReader._between,
    exp.Like: ExpressionReader._like,
    exp.Case: ExpressionReader._case,
    exp.If: ExpressionReader._if,
}
