"""Aggregates of a question: what each means, its named arguments, and what it is made of."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.plan.outputs import AggregateKind
from discreet.plan.planner import WantedAggregate
from discreet.sql.expressions import ExpressionReader
from discreet.sql.grammar import STATISTICS, Statistic
from discreet.sql.put_together import one_text
from discreet.sql.refusals import dated, only, place, refused
from discreet.sql.single_persons import refusal
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

GROUP_BOUNDS = "contribution_bounds_per_group"
ROW_BOUNDS = "contribution_bounds_per_row"
_MOMENTS = {
    "VAR_POP": (AggregateKind.VARIANCE, False),
    "VAR_SAMP": (AggregateKind.VARIANCE, True),
    "VARIANCE": (AggregateKind.VARIANCE, True),
    "STDDEV_POP": (AggregateKind.DEVIATION, False),
    "STDDEV_SAMP": (AggregateKind.DEVIATION, True),
    "STDDEV": (AggregateKind.DEVIATION, True),
}
_MOST_QUANTILES = 1_000
_SINCE_1970 = {Type.DATE: "unix_date", Type.TIMESTAMP: "unix_seconds"}


class NamedArguments:
    """The named arguments of one aggregate. What nobody has taken at the end is refused."""

    def __init__(self, nodes: Sequence[exp.Expression], where: str, reader: ExpressionReader) -> None:
        self.where = where
        self._reader = reader
        self._given: dict[str, exp.Expression] = {}
        for node in nodes:
            name = node.this.name.lower() if isinstance(node, exp.Kwarg) else ""
            if name not in (GROUP_BOUNDS, ROW_BOUNDS, "epsilon", "report_format"):
                fix = f"write {GROUP_BOUNDS} => (0, 10)"
                raise QuestionError("option", f"only {GROUP_BOUNDS} is allowed here", where=node.sql()[:60], fix=fix)
            if name in self._given:
                raise QuestionError("option", f"{name} stands there twice", where=where, fix="write it once")
            self._given[name] = node.expression

    def bounds(self, name: str, moment: Type | None = None) -> tuple[Fraction, Fraction] | None:
        """Two constants in order; None where they are not given. Of dates and timestamps: as `since_1970` counts."""
        node = self._given.pop(name, None)
        if node is None or isinstance(node, exp.Null):
            return None
        ends = node.expressions if isinstance(node, exp.Tuple) else []
        found = [self._reader.number(end) if moment is None else self._moment(end, moment) for end in ends]
        values = [
            Fraction(end.value) for end in found if isinstance(end, Literal) and isinstance(end.value, int | Fraction)
        ]
        if len(values) != 2 or len(ends) != 2:
            example = "(0, 10)" if moment is None else "(DATE '2000-01-01', DATE '2029-12-31')"
            raise QuestionError("option", "two constants are needed", where=name, fix=f"write {name} => {example}")
        low, high = values
        if low > high:
            message = "Lower bound cannot be greater than upper bound"
            raise QuestionError("option", message, where=name, fix="exchange them")
        if low == high == 0 and moment is None:
            fix = f"write {name} => (0, 10)"
            raise QuestionError("option", "bounds of 0 make every value 0", where=name, fix=fix)
        return low, high

    def _moment(self, node: exp.Expression, moment: Type) -> Expression:
        """A constant date or timestamp, as `since_1970` counts."""
        found = dated(self._reader.read(node), moment, node)
        value = found.value if isinstance(found, Literal) else None
        if not isinstance(value, datetime.date) or found.type is not moment:
            return Literal(None, moment)
        if isinstance(value, datetime.datetime):
            return Literal((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1), Type.INTEGER)
        return Literal((value - datetime.date(1970, 1, 1)).days, Type.INTEGER)

    def counts(self) -> tuple[Fraction, Fraction] | None:
        """Bounds of a count."""
        bounds = self.bounds(GROUP_BOUNDS)
        if bounds is None:
            return None
        low, high = bounds
        if low < 0 or high < 1 or high > 2**40 or any(value.denominator != 1 for value in bounds):
            message = "a count lies between 0 and a whole number of at least 1"
            raise QuestionError("option", message, where=GROUP_BOUNDS, fix=f"write {GROUP_BOUNDS} => (0, 10)")
        return bounds

    def epsilon(self) -> Fraction | None:
        """The part of the question's price that this aggregate gets."""
        node = self._given.pop("epsilon", None)
        if node is None:
            return None
        value = self._reader.number(node)
        if not isinstance(value, Literal) or not isinstance(value.value, int | Fraction) or value.value <= 0:
            message = "Epsilon must be finite and positive"
            raise QuestionError("option", message, where=self.where, fix="write epsilon => 0.1")
        return Fraction(value.value)

    def report(self) -> str:
        """JSON, or nothing."""
        node = self._given.pop("report_format", None)
        if node is None:
            return ""
        word = node.name.upper() if isinstance(node, exp.Literal | exp.Column) else ""
        if word != "JSON":
            raise QuestionError(
                "option", "report_format can be JSON", where=self.where, fix='write "JSON", or leave it out'
            )
        return word

    def end(self) -> None:
        """Raises QuestionError where a named argument was not used."""
        for name in self._given:
            fix = "leave it out, or name bounds in the declaration"
            raise QuestionError("option", f"{self.where} does not take {name}", where=name, fix=fix)


class Aggregates:
    """Reads aggregates. `persons` says whether a column holds the person; `clause`, whether the question stands in
    GoogleSQL's clause, where AVG is another mean."""

    def __init__(
        self,
        reader: ExpressionReader,
        declared: Callable[[exp.Column], Column | None],
        persons: Sequence[str],
        *,
        single: bool,
    ) -> None:
        self.reader = reader
        self.declared = declared
        self.persons = persons
        self.single = single
        self.clause = False

    def read(self, node: exp.Expression) -> WantedAggregate | None:
        """An aggregate, or None where the node is none."""
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if isinstance(node, exp.WithinGroup):
            return self._within(node)
        if isinstance(node, exp.Count):
            only(node, "this", "expressions", "big_int")
            return self._count(node.this, NamedArguments(node.expressions, "COUNT", self.reader), node.sql())
        if isinstance(node, exp.Sum | exp.Avg):
            only(node, "this")
            name = type(node).__name__.upper()
            return self._total(name, node.this, NamedArguments([], name, self.reader), node.sql())
        if isinstance(node, exp.Min | exp.Max):
            only(node, "this")
            name = type(node).__name__.upper()
            return self._extreme(name, node.this, NamedArguments([], name, self.reader), node.sql())
        if isinstance(node, Statistic):
            return self._statistic(node)
        if isinstance(node, exp.ApproxDistinct):
            only(node, "this")
            return self._count(
                exp.Distinct(expressions=[node.this]), NamedArguments([], "COUNT", self.reader), node.sql()
            )
        if (error := refusal(node)) is not None:
            raise error
        if isinstance(node, exp.AggFunc):
            raise refused(node, "ask for COUNT, SUM or AVG")
        return None

    def _filtered(self, node: exp.Filter) -> WantedAggregate | None:
        """FILTER (WHERE …): the rows for which it is not true count as rows without a value."""
        inner, condition = node.this, node.expression.this
        if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
            inner = inner.copy()
            inner.set("this", _if(condition, exp.Literal.number(1)))
        elif isinstance(inner, exp.ApproxDistinct):
            inner = exp.Count(this=exp.Distinct(expressions=[_if(condition, inner.this)]))
        elif isinstance(inner, exp.Count) and _several(inner.this):
            wanted = self.read(inner)
            assert wanted is not None
            assert wanted.expression is not None
            counted = (self.reader.boolean(condition), wanted.expression, Literal(None, Type.TEXT))
            return replace(wanted, expression=Call("case", counted, Type.TEXT))
        elif isinstance(inner, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
            inner = inner.copy()
            distinct = isinstance(inner.this, exp.Distinct)
            place = inner.this if distinct else inner
            if distinct:
                place.set("expressions", [_if(condition, one) for one in place.expressions])
            else:
                place.set("this", _if(condition, inner.this))
        elif isinstance(inner, Statistic) and inner.expressions:
            inner = inner.copy()
            inner.set("expressions", [_if(condition, inner.expressions[0]), *inner.expressions[1:]])
        else:
            raise refused(node, "write FILTER behind an aggregate")
        return self.read(inner)

    def _count(self, counted: exp.Expression, named: NamedArguments, text: str) -> WantedAggregate:
        epsilon, report, bounds = named.epsilon(), named.report(), named.counts()
        named.end()
        wanted = WantedAggregate(AggregateKind.COUNT, None, bounds, text=text, epsilon=epsilon, report=report)
        if isinstance(counted, exp.Star):
            only(counted)
            return wanted
        if isinstance(counted, exp.Distinct):
            only(counted, "expressions")
            inner = (
                counted.expressions[0] if len(counted.expressions) == 1 else exp.Tuple(expressions=counted.expressions)
            )
            if inner.find(exp.Star) is not None:
                fix = "write COUNT(*) for rows, COUNT(DISTINCT person) for persons, or name columns"
                raise refused(inner, fix)
            if isinstance(inner, exp.Tuple):
                whole = len(counted.expressions) == 1  # COUNT(DISTINCT (a, b)) counts what has no value in one of them
                return replace(
                    wanted, kind=AggregateKind.DISTINCT, expression=one_text(self.reader, inner, nulls=whole)
                )
            column = self.declared(inner) if isinstance(inner, exp.Column) else None
            if column is not None and column.name in self.persons:
                if bounds is not None and bounds[1] != 1:
                    fix = f"leave out {GROUP_BOUNDS}"
                    raise QuestionError("option", "a person counts once in a group", where="COUNT", fix=fix)
                return replace(wanted, kind=AggregateKind.PERSONS, bounds=None)
            return replace(wanted, kind=AggregateKind.DISTINCT, expression=self.reader.read(inner))
        return replace(wanted, kind=AggregateKind.NON_NULL, expression=self.reader.read(counted))

    def _total(self, function: str, inner: exp.Expression, named: NamedArguments, text: str) -> WantedAggregate:
        if isinstance(inner, exp.Distinct):
            what = ", ".join(one.sql() for one in inner.expressions)[:60]
            message = f"{function}(DISTINCT …) would tell which values one person alone has"
            fix = f"write {function}({what}), COUNT(DISTINCT {what}), or GROUP BY {what}"
            raise QuestionError("not-allowed", message, where=f"{function}(DISTINCT {what})"[:60], fix=fix)
        expression = self._number(function, inner)
        epsilon, report = named.epsilon(), named.report()
        bounds, rows = named.bounds(GROUP_BOUNDS), named.bounds(ROW_BOUNDS)
        named.end()
        if rows is not None:
            expression = clamped(expression, rows)
        if function == "SUM":
            return WantedAggregate(AggregateKind.SUM, expression, bounds, text=text, epsilon=epsilon, report=report)
        if self.clause and not self.single:  # GoogleSQL: the mean over persons of each person's mean
            return WantedAggregate(
                AggregateKind.PERSON_MEAN, expression, bounds, text=text, epsilon=epsilon, report=report
            )
        if bounds is not None and not self.single:
            fix = f"declare min and max for its columns, or write {ROW_BOUNDS} => (0, 10)"
            message = f"AVG over rows takes no {GROUP_BOUNDS}"
            raise QuestionError("option", message, where="AVG", fix=fix)
        if bounds is not None:
            expression = clamped(expression, bounds)
        return WantedAggregate(AggregateKind.MEAN, expression, None, text=text, epsilon=epsilon, report=report)

    def _number(self, function: str, node: exp.Expression) -> Expression:
        """The numeric expression that is summed."""
        expression = self.reader.read(node)
        if expression.type in (Type.DATE, Type.TIMESTAMP):
            what = node.sql()[:60]
            fix = f"write MEDIAN({what}), or {function}(DATE_DIFF({what}, DATE '2000-01-01', DAY)) for days since then"
            raise QuestionError("type", f"there is no {function} of a {expression.type}", where=what, fix=fix)
        return self.reader.numeric(counting(expression), node)

    def _statistic(self, node: Statistic) -> WantedAggregate:
        name = str(node.this)
        plain = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
        named = NamedArguments(
            [argument for argument in node.expressions if isinstance(argument, exp.Kwarg)], name, self.reader
        )
        text = f"{name}({', '.join(argument.sql() for argument in node.expressions)})"
        least, most = STATISTICS[name]
        if not least <= len(plain) <= most:
            what = (
                "one argument"
                if least == most == 1
                else f"{least} to {most} arguments"
                if least < most
                else "two arguments"
            )
            raise QuestionError("arguments", f"{name} takes {what}", where=name, fix=f"write {name}({_example(name)})")
        if name in ("COUNTIF", "COUNT_IF"):
            condition = self.reader.boolean(plain[0])
            counted = Call("case", (condition, Literal(1, Type.INTEGER), Literal(None, Type.TEXT)), Type.INTEGER)
            epsilon, report, bounds = named.epsilon(), named.report(), named.counts()
            named.end()
            return WantedAggregate(AggregateKind.NON_NULL, counted, bounds, text=text, epsilon=epsilon, report=report)
        if name in ("SUM", "AVG"):
            return self._total(name, plain[0], named, text)
        if name in ("MIN", "MAX"):
            return self._extreme(name, plain[0], named, text)
        if name in _MOMENTS:
            kind, sample = _MOMENTS[name]
            return self._moments(kind, [plain[0]], named, text, sample=sample)
        if name in ("COVAR_POP", "COVAR_SAMP", "CORR"):
            kind = AggregateKind.CORRELATION if name == "CORR" else AggregateKind.COVARIANCE
            return self._moments(kind, plain, named, text, sample=name == "COVAR_SAMP")
        if name in ("APPROX_TOP_COUNT", "MODE"):
            return self._winners(name, plain, named, text)
        return self._quantiles(name, plain, named, text)

    def _moments(
        self, kind: AggregateKind, nodes: Sequence[exp.Expression], named: NamedArguments, text: str, *, sample: bool
    ) -> WantedAggregate:
        expressions = [self._number(named.where, node) for node in nodes]
        bounds, epsilon, report = named.bounds(ROW_BOUNDS), named.epsilon(), named.report()
        bounds = bounds or named.bounds(GROUP_BOUNDS)
        named.end()
        if bounds is not None:
            expressions = [clamped(one, bounds) for one in expressions]
        second = expressions[1] if len(expressions) > 1 else None
        return WantedAggregate(
            kind, expressions[0], None, text=text, epsilon=epsilon, report=report, second=second, sample=sample
        )

    def _extreme(self, name: str, inner: exp.Expression, named: NamedArguments, text: str) -> WantedAggregate:
        if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
            (inner,) = inner.expressions  # the largest of different values is the largest
        end = Fraction(0) if name == "MIN" else Fraction(1)
        return self._ranked(inner, (end,), named, text, many=False)

    def _quantiles(
        self, name: str, plain: Sequence[exp.Expression], named: NamedArguments, text: str
    ) -> WantedAggregate:
        if name == "MEDIAN":
            return self._ranked(plain[0], (Fraction(1, 2),), named, text, many=False)
        if len(plain) > 1 and isinstance(plain[1], exp.Array):
            return self._ranked(plain[0], self._shares(name, plain[1]), named, text, many=True)
        value = self.reader.number(plain[1]) if len(plain) > 1 else None
        if not isinstance(value, Literal) or not isinstance(value.value, int | Fraction):
            fix = f"write {name}({_example(name)})"
            raise QuestionError("arguments", f"{name} takes a constant after the column", where=name, fix=fix)
        number = Fraction(value.value)
        if name == "APPROX_QUANTILES":
            if number.denominator != 1 or not 1 <= number <= _MOST_QUANTILES:
                message = f"the number of quantiles is a whole number from 1 to {_MOST_QUANTILES:,}"
                raise QuestionError("arguments", message, where=name, fix="write APPROX_QUANTILES(x, 4)")
            fractions = tuple(Fraction(place, int(number)) for place in range(int(number) + 1))
            return self._ranked(plain[0], fractions, named, text, many=True)
        if not 0 <= number <= 1:
            message = "the second argument of a percentile lies in [0, 1]"
            raise QuestionError("arguments", message, where=name, fix=f"write {name}(x, 0.5)")
        return self._ranked(plain[0], (number,), named, text, many=False)

    def _shares(self, name: str, node: exp.Expression) -> tuple[Fraction, ...]:
        """The shares of a list, as in QUANTILE_CONT(x, [0.25, 0.5]): constants that rise."""
        read = [self.reader.number(one) for one in node.expressions]
        values = [
            Fraction(one.value) for one in read if isinstance(one, Literal) and isinstance(one.value, int | Fraction)
        ]
        rising = all(one < other for one, other in itertools.pairwise(values))
        if len(values) < len(read) or not values or not rising or not 0 <= values[0] <= values[-1] <= 1:
            message = f"{name} takes constants from 0 to 1, the smallest first"
            raise QuestionError("arguments", message, where=name, fix=f"write {name}(x, [0.25, 0.5, 0.75])")
        if len(values) > _MOST_QUANTILES:
            fix = "ask for fewer"
            raise QuestionError("arguments", f"at most {_MOST_QUANTILES:,} quantiles", where=name, fix=fix)
        return tuple(values)

    def _within(self, node: exp.WithinGroup) -> WantedAggregate:
        """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x), as standard SQL has it; ORDER BY x DESC counts from above."""
        inner, order = node.this, node.expression
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if (error := refusal(inner)) is not None:
            raise error
        mode = isinstance(inner, Statistic) and str(inner.this) == "MODE"
        if not isinstance(inner, Statistic) or len(inner.expressions) != (0 if mode else 1) or len(ordered) != 1:
            raise refused(node, "write PERCENTILE_CONT(x, 0.5)")
        only(ordered[0], "this", "nulls_first", "desc", fix="write PERCENTILE_CONT(x, 0.5)")
        if ordered[0].args.get("desc") and not mode:
            share = self.reader.number(inner.expressions[0])
            if not isinstance(share, Literal) or not isinstance(share.value, int | Fraction):
                raise refused(node, "write PERCENTILE_CONT(x, 0.5)")
            inner = Statistic(this=inner.this, expressions=[exp.Literal.number(show(1 - Fraction(share.value)))])
        call = Statistic(this=inner.this, expressions=[ordered[0].this, *inner.expressions])
        return self._statistic(call)

    def _ranked(
        self, inner: exp.Expression, fractions: tuple[Fraction, ...], named: NamedArguments, text: str, *, many: bool
    ) -> WantedAggregate:
        expression, moment = self.reader.read(inner), None
        if expression.type in _SINCE_1970:
            moment = expression.type
            expression = Call(_SINCE_1970[moment], (expression,), Type.INTEGER)
        else:
            self._rankable(named.where, expression, inner)
        epsilon, report = named.epsilon(), named.report()
        bounds = named.bounds(ROW_BOUNDS, moment) or named.bounds(GROUP_BOUNDS, moment)
        named.end()
        if bounds is not None:
            expression = clamped(expression, bounds)
        return WantedAggregate(
            AggregateKind.QUANTILES,
            expression,
            text=text,
            epsilon=epsilon,
            report=report,
            fractions=fractions,
            many=many,
            moment=moment,
        )

    def _rankable(self, name: str, expression: Expression, node: exp.Expression) -> None:
        """Raises QuestionError unless values have ranks: numbers, dates and timestamps."""
        what = place(node)
        if expression.type is Type.BOOLEAN:
            message = (
                f"{name} of a condition would tell of one person"
                if name in ("MIN", "MAX")
                else "a condition has no ranks"
            )
            raise QuestionError("type", message, where=what, fix=f"write COUNTIF({what}), or AVG({what}) for the share")
        if expression.type is Type.TEXT and not isinstance(expression, Literal):
            message = f"{name} of a text would be the text of one person"
            fix = (
                f"write SELECT {what}, COUNT(*) … GROUP BY {what}, or {name}(CAST({what} AS INTEGER)) for numbers in it"
            )
            raise QuestionError("type", message, where=what, fix=fix)
        self.reader.numeric(expression, node)

    def _winners(self, name: str, plain: Sequence[exp.Expression], named: NamedArguments, text: str) -> WantedAggregate:
        epsilon, report = named.epsilon(), named.report()
        named.end()
        k = 1
        if len(plain) > 1:
            number = self.reader.number(plain[1])
            value = number.value if isinstance(number, Literal) else None
            if not isinstance(value, int) or not 1 <= value <= _MOST_QUANTILES:
                message = f"how many is a whole number from 1 to {_MOST_QUANTILES:,}"
                raise QuestionError("arguments", message, where=name, fix=f"write {name}(x, 3)")
            k = value
        expression = self.reader.read(plain[0])
        many = name == "APPROX_TOP_COUNT"
        return WantedAggregate(
            AggregateKind.WINNERS, expression, None, text=text, epsilon=epsilon, report=report, k=k, many=many
        )


def called_after(node: exp.Expression) -> tuple[str, exp.Expression | None]:
    """What an aggregate without a name is called: after its function, as written, and its column, where it has one."""
    if isinstance(node, exp.Filter):
        return called_after(node.this)
    if isinstance(node, exp.WithinGroup):
        return called_after(node.this)[0], node.expression.expressions[0].this
    if isinstance(node, Statistic):
        plain = [one for one in node.expressions if not isinstance(one, exp.Kwarg)]
        return str(node.this).lower(), next(iter(plain), None)
    if isinstance(node.this, exp.Distinct):
        return f"{node.key}_distinct", node.this.expressions[0]
    return node.key, node.this


def counting(expression: Expression) -> Expression:
    """A condition as 1 where it is true and 0 where it is false: its sum is COUNTIF, its mean the share."""
    return Call("to_integer", (expression,), Type.INTEGER) if expression.type is Type.BOOLEAN else expression


def clamped(expression: Expression, bounds: tuple[Fraction, Fraction]) -> Expression:
    """The expression, clamped to the bounds row by row."""
    low, high = (_constant(bound, expression.type) for bound in bounds)
    whole = expression.type is Type.INTEGER and low.type is high.type is Type.INTEGER
    kind = Type.INTEGER if whole else Type.NUMBER
    return Call("greatest", (Call("least", (expression, high), kind), low), kind)


def _constant(value: Fraction, kind: Type) -> Literal:
    if kind is Type.INTEGER and value.denominator == 1:
        return Literal(int(value), Type.INTEGER)
    return Literal(value, Type.NUMBER)


def _several(node: exp.Expression) -> bool:
    """Whether several values are counted together."""
    return isinstance(node, exp.Distinct) and (
        len(node.expressions) > 1 or any(isinstance(one, exp.Tuple) for one in node.expressions)
    )


def _if(condition: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _example(name: str) -> str:
    examples = {
        "APPROX_QUANTILES": "x, 4",
        "CORR": "x, y",
        "COVAR_POP": "x, y",
        "COVAR_SAMP": "x, y",
        "COUNTIF": "x > 1",
    }
    return examples.get(name, "x, 3" if name == "APPROX_TOP_COUNT" else "x, 0.5" if STATISTICS[name][0] == 2 else "x")
