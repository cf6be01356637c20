"""HISTOGRAM(x, n): a question with groups, of which each is a bin between the declared bounds of x."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from sqlglot import exp

from discreet.dialect.normal import normal
from discreet.dialect.ranges import interval
from discreet.dialect.steps import step_of
from discreet.errors import QuestionError
from discreet.sql.expressions import ExpressionReader
from discreet.sql.nodes import call
from discreet.sql.refusals import place
from discreet.sql.scope import Scope
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import KEYS_SHOWN, Type

BINS = 10
"""So many bins where the question names no number."""


def histograms_of(node: exp.Select) -> list[exp.Expression]:
    """The calls of HISTOGRAM that stand in a SELECT itself, wherever they stand there."""
    walked = node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node)
    return [one for one in walked if isinstance(one, exp.Anonymous) and str(one.this).upper() == "HISTOGRAM"]


def with_bins(node: exp.Select, scope: Scope) -> None:
    """Writes SELECT key, HISTOGRAM(x, n) … GROUP BY key as one with a row for each bin, in place: its columns are the
    keys, `bin`, where each bin begins, and how many rows have a value in it. Raises QuestionError on any other."""
    items, (written, *others) = node.expressions, histograms_of(node)
    found = [at for at, item in enumerate(items) if item.unalias() is written]
    if not found or others or any(one.find(exp.AggFunc) for one in items):
        fix = f"write SELECT {place(written)} … by itself, or beside what is grouped by"
        raise QuestionError("not-allowed", "HISTOGRAM gives one row for each bin", where="HISTOGRAM", fix=fix)
    at = found[0]
    x, key, begins = _bins(written, scope)
    count = items[at].alias or "count"
    shown = [exp.alias_(begins, "bin"), exp.alias_(exp.Count(this=exp.Star(), big_int=True), count, quoted=True)]
    group, order = node.args.get("group"), node.args.get("order")
    for clause in (group, order):  # the list has one column more
        for number in list(clause.find_all(exp.Literal)) if clause is not None else ():
            if _is_place(number) and int(number.name) > at + 1:
                number.replace(exp.Literal.number(int(number.name) + 1))
    named = list(group.expressions) if group is not None else []
    if group is not None and group.args.get("all"):
        named = [one.unalias().copy() for one in items if one.unalias() is not written]
    node.set("group", exp.Group(expressions=[*named, key]))
    node.set("expressions", [*items[:at], *shown, *items[at + 1 :]])
    node.where(exp.Not(this=exp.Is(this=x.copy(), expression=exp.null())), copy=False)


def _is_place(node: exp.Literal) -> bool:
    """Whether a number of GROUP BY or ORDER BY means a column by its place."""
    return (
        not node.is_string
        and node.name.isdecimal()
        and isinstance(node.parent, exp.Ordered | exp.Group | exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets)
    )


def _bins(written: exp.Expression, scope: Scope) -> tuple[exp.Expression, exp.Expression, exp.Expression]:
    """What is counted, what its rows are grouped by, and where a group's bin begins."""
    given = cast(Sequence[exp.Expression], written.expressions)
    if not 1 <= len(given) <= 2:
        raise QuestionError("arguments", "HISTOGRAM takes a column and a number of bins", where="HISTOGRAM", fix=_USE)
    x, wanted = given[0], _wanted(given[1:])
    expression = normal(ExpressionReader(scope.read, scope.shape.by_name).read(x))
    if not expression.type.numeric or _declared(expression, scope):
        if expression.type in (Type.DATE, Type.TIMESTAMP):
            fix = f"write SELECT DATE_TRUNC('month', {place(x)}) AS bin, COUNT(*) … GROUP BY bin"
            raise QuestionError("type", "a histogram of dates has bins by the calendar", where=place(x), fix=fix)
        if wanted is not None:
            fix = f"write HISTOGRAM({place(x)}): one row for each value"
            raise QuestionError("type", "these values have no bins between them", where=place(x), fix=fix)
        return x, x.copy(), x.copy()
    bounds = interval(expression, scope.shape.by_name)
    if bounds is None or bounds[0] >= bounds[1]:
        fix = f"write SELECT WIDTH_BUCKET({place(x)}, 0, 100, 10) AS bin, COUNT(*) … GROUP BY bin, with its own ends"
        fix += ", or have the owner declare min and max"
        raise QuestionError("bounds", "no bounds are known to lay bins between", where=place(x), fix=fix)
    low, high = bounds
    step = step_of(expression, scope.shape.by_name)
    values = None if step is None else (high - low) / step + 1
    bins = wanted or (BINS if values is None or values > BINS else max(1, int(values)))
    end = high if step is None else high + step  # the last bin holds the highest value
    first, last = _number(Fraction(1)), _number(Fraction(bins))
    key = call("WIDTH_BUCKET", x.copy(), _number(low), _number(end), last.copy())
    key = call("LEAST", call("GREATEST", key, first.copy()), last.copy())  # what lies outside counts as if at the end
    width = (end - low) / bins
    before = exp.paren(exp.Sub(this=key.copy(), expression=first))
    if low.denominator == width.denominator == 1:
        step_up: exp.Expression = exp.Mul(this=_number(width), expression=before)
    else:
        step_up = exp.Div(this=exp.Mul(this=_number(end - low), expression=before), expression=last)
    return x, key, exp.Add(this=_number(low), expression=step_up)


_USE = "write HISTOGRAM(x, 10)"


def _wanted(given: Sequence[exp.Expression]) -> int | None:
    if not given:
        return None
    written = given[0].name if isinstance(given[0], exp.Literal) and not given[0].is_string else ""
    if not written.isdecimal() or not 1 <= int(written) <= KEYS_SHOWN:
        message = f"how many bins is a whole number from 1 to {KEYS_SHOWN:,}"
        raise QuestionError("arguments", message, where="HISTOGRAM", fix=_USE)
    return int(written)


def _declared(expression: Expression, scope: Scope) -> bool:
    """Whether the values of a column are declared one by one."""
    return isinstance(expression, ColumnOf) and scope.shape.by_name[expression.name].values is not None


def _number(value: Fraction) -> exp.Expression:
    text = str(value.numerator) if value.denominator == 1 else repr(float(value))
    number = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=number) if text.startswith("-") else number
