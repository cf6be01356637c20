"""Expressions of Ibis as trees in our dialect. Loaded only where there are some; needs the extra `ibis`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
from ibis.backends.sql.compilers.base import AggGen, SQLGlotCompiler
from ibis.backends.sql.datatypes import SqlglotType
from ibis.common.exceptions import IbisError
from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.compiled import WRITE, Writing
from discreet.sql.limits import too_deep
from discreet.trusted.ring_a.table import Column, Type

_TYPES = {
    Type.INTEGER: "int64",
    Type.NUMBER: "float64",
    Type.TEXT: "string",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


class _Types(SqlglotType):  # type: ignore[misc]
    dialect = Writing


class _Compiler(SQLGlotCompiler):  # type: ignore[misc]
    """Ibis's own compiler for databases of SQL, with the functions that are called differently here."""

    __slots__ = ()

    dialect = Writing
    type_mapper = _Types
    agg = AggGen(supports_filter=True, supports_order_by=True)
    LOWERED_OPS: ClassVar[Mapping[Any, Any]] = {ops.Capitalize: None}
    SIMPLE_OPS: ClassVar[Mapping[Any, str]] = {
        ops.ApproxCountDistinct: "approx_distinct",
        ops.Capitalize: "initcap",
        ops.DayOfWeekName: "dayname",
        ops.EndsWith: "ends_with",
        ops.ExtractEpochSeconds: "unix_seconds",
        ops.Log10: "log10",
        ops.Log2: "log2",
        ops.Mode: "mode",
    }

    def visit_ApproxMedian(self, op: Any, *, arg: Any, where: Any) -> Any:  # noqa: ARG002
        return self.agg.median(arg, where=where)

    def visit_Quantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:  # noqa: ARG002
        return self.agg.percentile_cont(arg, quantile, where=where)

    visit_ApproxQuantile = visit_Quantile

    def visit_Correlation(self, op: Any, *, left: Any, right: Any, how: Any, where: Any) -> Any:  # noqa: ARG002
        return self.agg.corr(left, right, where=where)

    def visit_Covariance(self, op: Any, *, left: Any, right: Any, how: str, where: Any) -> Any:  # noqa: ARG002
        return self.agg[f"covar_{how}"](left, right, where=where)

    def visit_DayOfWeekIndex(self, op: Any, *, arg: Any) -> Any:  # noqa: ARG002
        return exp.paren(self.f.isodow(arg) - 1)

    def visit_Log(self, op: Any, *, arg: Any, base: Any) -> Any:  # noqa: ARG002
        return self.f.ln(arg) if base is None else self.f.anon.log(arg, base)

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
        """Places are counted from 0 there, and from 1 in SQL; a place that is no constant is not known to be one."""
        first = op.start.value if isinstance(op.start, ops.Literal) else start
        place = exp.Literal.number(first + 1) if isinstance(first, int) and first >= 0 else start
        if place is start and not (isinstance(first, int) and first < 0):
            raise IbisError("places in a text have to be constants")
        return self.f.substr(arg, place) if length is None else self.f.substr(arg, place, length)

    def visit_LPad(self, op: Any, *, arg: Any, length: Any, pad: Any) -> Any:
        """A text that is longer stays as it is."""
        name = type(op).__name__.lower()
        return self.if_(self.f.length(arg) >= length, arg, self.f.anon[name](arg, length, pad))

    visit_RPad = visit_LPad

    def visit_RegexExtract(self, op: Any, *, arg: Any, pattern: Any, index: Any) -> Any:  # noqa: ARG002
        """REGEXP_EXTRACT gives the group, where there is one."""
        words = [getattr(one, "value", None) for one in (op.pattern, op.index)]
        if not isinstance(words[0], str) or words[1] != min(words[0].replace("(?:", "").count("("), 1):
            raise IbisError("re_extract takes a constant, with the group 1 where it has one, else 0")
        return self.f.anon.regexp_extract(arg, pattern)

    def visit_Clip(self, op: Any, *, arg: Any, lower: Any, upper: Any) -> Any:  # noqa: ARG002
        """LEAST and GREATEST are NULL where a value is."""
        arg = arg if upper is None else self.f.least(arg, upper)
        return arg if lower is None else self.f.greatest(arg, lower)

    def visit_DateDelta(self, op: Any, *, left: Any, right: Any, part: Any) -> Any:  # noqa: ARG002
        return self.f.anon.date_diff(part, right, left)

    visit_TimestampDelta = visit_DateDelta

    def visit_StringConcat(self, op: Any, *, arg: Any) -> Any:  # noqa: ARG002
        return self.f.anon.concat(*arg)


def table(name: str, columns: Iterable[Column]) -> Any:
    """An unbound table with the declared columns."""
    return ibis.table({one.name: _TYPES[one.type or Type.TEXT] for one in columns}, name=name)


def tree(expression: Any) -> exp.Expr:
    """The tree of an expression. Raises QuestionError where it has none in our dialect."""
    if not isinstance(expression, ir.Expr):
        message = "this is no expression on a table"
        raise QuestionError("expression", message, where="question", fix=WRITE)
    try:
        made: exp.Expr = _Compiler().to_sqlglot(expression.unbind())
    except RecursionError:
        raise too_deep() from None
    except IbisError as error:
        message = f"this expression cannot be written in SQL: {' '.join(str(error).split())[:200]}"
        raise QuestionError("expression", message, where="question", fix=WRITE) from None
    return made
