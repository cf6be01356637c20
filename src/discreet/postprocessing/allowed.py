"""What a query on released tables may hold: nodes of a closed list, and functions that the engine's list names."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from discreet.catalog.model import writable
from discreet.errors import QuestionError
from discreet.sql.grammar import Statistic
from discreet.sql.refusals import known_clauses, only, refused

_NODES: tuple[type[exp.Expr], ...] = (
    *(exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.TableAlias, exp.From),
    *(exp.Join, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Offset),
    *(exp.Distinct, exp.Table, exp.Identifier, exp.Column, exp.Star, exp.Alias, exp.Literal, exp.Boolean, exp.Null),
    *(exp.Values, exp.Tuple, exp.Array, exp.Bracket, exp.Unnest, exp.Paren, exp.Neg, exp.Not, exp.And, exp.Or, exp.Xor),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ, exp.RegexpLike),
    *(exp.Exists, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Case, exp.If),
    *(exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Extract),
    *(exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls),
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead),
    *(exp.FirstValue, exp.LastValue, exp.NthValue),
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, Statistic, exp.Anonymous, exp.GroupConcat),
    *(exp.Trim, exp.PropertyEQ, exp.Dot),
    *(exp.Rollup, exp.Cube, exp.GroupingSets, exp.Grouping, exp.GroupingId),
)


def allowed(tree: exp.Expr, known: Callable[[str], bool]) -> None:
    """Raises QuestionError on a node or a function that is not in the list. `known` says of a function's name whether
    the engine has it."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous | Statistic):
            if not known(str(node.this).upper()):
                raise refused(node)
        elif isinstance(node, exp.Func) and not isinstance(node, _NODES):
            if not known(type(node).sql_name().upper()):
                raise refused(node)
        elif not isinstance(node, _NODES):
            if isinstance(node, exp.Placeholder | exp.Parameter):
                raise refused(node)
            raise refused(node, _OTHERWISE.get(type(node), "write it without this, on the columns of the answers"))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            raise QuestionError("source", "this cannot be read", where="FROM", fix="write FROM (SELECT …) or a table")
        if isinstance(node, exp.Join) and (node.args.get("method") or "").upper() not in ("", "NATURAL"):
            raise QuestionError("join", "this join cannot be used", where="JOIN", fix="write JOIN … ON …")
        if isinstance(node, exp.Select):
            _clauses(node)
        if isinstance(node, exp.Limit | exp.Offset):
            _rows(node)
        if isinstance(node, exp.Ntile | exp.WindowSpec | exp.Escape):
            _constants(node)
        if isinstance(node, exp.Distinct) and node.args.get("on") is not None:
            raise QuestionError(
                "clause", "DISTINCT ON cannot be used", where="DISTINCT", fix="write ROW_NUMBER() and QUALIFY"
            )
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query | exp.Values):
            raise QuestionError(
                "join", "joins cannot stand in brackets here", where="FROM", fix="leave the brackets out"
            )
        if isinstance(node, exp.Identifier) and not writable(node.name):
            message = "a name cannot hold control characters"
            raise QuestionError("names", message, where=repr(node.name)[:60], fix="leave them out")
        if isinstance(node, exp.Subquery | exp.Exists | exp.In) and _nesting(node) > _DEEPEST:
            message = f"subqueries stand in each other more than {_DEEPEST} deep"
            raise QuestionError("syntax", message, where="subquery", fix="name them with WITH, or write them in FROM")
        if isinstance(node, exp.DataType) and not re.fullmatch(_TYPES, node.this.name if node.this else ""):
            raise refused(node, "cast as INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")


_OTHERWISE: dict[type[exp.Expr], str] = {
    exp.All: "compare with (SELECT MAX(x) FROM …), or with (SELECT MIN(x) FROM …)",
    exp.Any: "write IN (SELECT x FROM …), or compare with (SELECT MAX(x) FROM …)",
}
_TYPES = (
    r"(TINY|SMALL|MEDIUM|BIG)?INT(128)?|U(TINY|SMALL|BIG)?INT|DECIMAL|DOUBLE|FLOAT|N?VARCHAR|N?CHAR|TEXT|BOOLEAN|DATE|"
    r"DATETIME|TIMESTAMP(TZ|NTZ|LTZ|_S|_MS|_NS)?|TIME|INTERVAL"
)
_KNOWN = (
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "offset",
    "distinct",
    "with_",
)
_CLAUSES = {
    "windows": "write OVER (…) where the window is used",
    "hint": "write WITH DIFFERENTIAL_PRIVACY where rows are aggregated",
    "laterals": "join in FROM",
}


def _constants(node: exp.Ntile | exp.WindowSpec | exp.Escape) -> None:
    """Refuses what the engine would fail on for some values, after the answers are paid: these are constants."""
    if isinstance(node, exp.Ntile):
        if not _counts(node.this, least=1):
            message = "NTILE takes a whole number from 1 on"
            raise QuestionError("type", message, where="NTILE", fix="write a constant, as in NTILE(4)")
    elif isinstance(node, exp.Escape):
        if not (
            isinstance(node.expression, exp.Literal) and node.expression.is_string and len(node.expression.name) == 1
        ):
            raise QuestionError("type", "ESCAPE takes one character", where="ESCAPE", fix="write ESCAPE '!'")
    else:
        for end in (node.args.get("start"), node.args.get("end")):
            amount = end.this if isinstance(end, exp.Interval) else end
            if not (end is None or isinstance(end, str) or _counts(amount, least=0)):
                message = "how many rows a window reaches is a constant, and not negative"
                raise QuestionError("type", message, where="OVER", fix="write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW")


def _counts(node: exp.Expr | None, *, least: int) -> bool:
    """Whether a node is a constant number, from the least on."""
    text = node.name if isinstance(node, exp.Literal) else ""
    return re.fullmatch(r"\d{1,9}", text) is not None and int(text) >= least


_DEEPEST = 3


def _nesting(node: exp.Expr) -> int:
    """In how many subqueries of expressions this one stands, itself counted; those of FROM and WITH are none."""
    count = 0
    at: exp.Expr | None = node
    while at is not None:
        inside = isinstance(at, exp.Exists) or (isinstance(at, exp.In) and at.args.get("query") is not None)
        inside |= isinstance(at, exp.Subquery) and not isinstance(at.parent, exp.From | exp.Join | exp.In | exp.CTE)
        count, at = count + inside, at.parent
    return count


def _rows(node: exp.Limit | exp.Offset) -> None:
    number, word = node.expression, type(node).__name__.upper()
    if not isinstance(number, exp.Literal) or not number.name.isdecimal():
        raise QuestionError("limit", f"{word} needs a whole number", where=word, fix=f"write {word} 10")
    only(node, "expression", fix=f"write {word} 10")


def _clauses(node: exp.Select) -> None:
    qualify = node.args.get("qualify")
    if (
        qualify is not None
        and qualify.find(exp.Window) is None
        and not any(one.find(exp.Window) for one in node.expressions)
    ):
        raise QuestionError("clause", "QUALIFY needs a window function", where="QUALIFY", fix="write HAVING, or WHERE")
    known_clauses(node, _KNOWN, _CLAUSES, " on an answer")
