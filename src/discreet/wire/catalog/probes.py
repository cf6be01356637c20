"""Statements that give no row, whatever the tables hold: programs send them to see which columns there are.

Which those are follows from the text alone. Where it is not sure here, the statement is an ordinary one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp


def gives_no_row(query: exp.Expr) -> bool:
    """Whether a query gives no row, whatever the tables hold."""
    limit = query.args.get("limit")
    if limit is not None:
        most = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.args.get("expression")
        while isinstance(most, exp.Paren | exp.Cast):  # ('0'::int4)
            most = most.this
        if isinstance(most, exp.Literal) and re.fullmatch(r"0+", most.name):
            return True
    if isinstance(query, exp.Subquery | exp.Paren):
        return gives_no_row(query.this) and _keeps_none(query.args.get("joins"))
    if isinstance(query, exp.SetOperation):
        left, right = gives_no_row(query.this), gives_no_row(query.expression)
        return left and right if isinstance(query, exp.Union) else left or (right and isinstance(query, exp.Intersect))
    if not isinstance(query, exp.Select):
        return False
    if _never(query.args.get("having")):
        return True
    return (_never(query.args.get("where")) or _of_no_row(query)) and not _has_one_row_of_none(query)


def _of_no_row(select: exp.Select) -> bool:
    """Whether what it reads has no row."""
    start = select.args.get("from_")
    if start is None or not isinstance(start.this, exp.Subquery) or not gives_no_row(start.this):
        return False
    return _keeps_none(select.args.get("joins"))


def _keeps_none(joins: Sequence[exp.Join] | None) -> bool:
    """Whether what has no row has none after these joins either."""
    return all(join.side in ("", "LEFT") for join in joins or ())


def _has_one_row_of_none(select: exp.Select) -> bool:
    """Whether it gives a row where it reads none: aggregates of all rows do, and so do sets of groups."""
    group = select.args.get("group")
    if group is not None:
        plain = all(isinstance(one, exp.Column | exp.Literal | exp.Func) for one in group.expressions)
        others = ("grouping_sets", "rollup", "cube", "totals", "all")
        return not group.expressions or not plain or any(group.args.get(name) for name in others)
    if select.args.get("having") is not None:  # of one group, which is all rows, or none
        return True
    parts = [*select.expressions, select.args.get("order"), select.args.get("distinct")]
    parts += select.args.get("windows") or ()
    return any(
        isinstance(node, exp.AggFunc | exp.Anonymous | exp.Filter | exp.WithinGroup)
        for part in parts
        if part is not None
        for node in part.walk()
    )


def _never(node: exp.Expr | None) -> bool:
    """Whether a condition holds of no row."""
    match node:
        case exp.Where() | exp.Having() | exp.Paren():
            return _never(node.this)
        case exp.And():
            return _never(node.this) or _never(node.expression)
        case exp.Or():
            return _never(node.this) and _never(node.expression)
        case exp.Not():
            return _always(node.this)
    return _known(node) is False


def _always(node: exp.Expr | None) -> bool:
    """Whether a condition holds of every row."""
    match node:
        case exp.Paren():
            return _always(node.this)
        case exp.And():
            return _always(node.this) and _always(node.expression)
        case exp.Or():
            return _always(node.this) or _always(node.expression)
        case exp.Not():
            return _known(node.this) is False
    return _known(node) is True


def _known(node: exp.Expr | None) -> bool | None:
    """What a condition says that holds constants alone; None where it is another, or NULL."""
    if isinstance(node, exp.Paren):
        return _known(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    left, right = node.this, node.expression
    if not (isinstance(left, exp.Literal) and isinstance(right, exp.Literal) and left.is_string == right.is_string):
        return None
    if left.is_string:
        same = left.name == right.name
        return same if isinstance(node, exp.EQ) else not same if isinstance(node, exp.NEQ) else None
    first, second = Decimal(left.name), Decimal(right.name)
    match node:
        case exp.EQ():
            return first == second
        case exp.NEQ():
            return first != second
        case exp.LT():
            return first < second
        case exp.LTE():
            return first <= second
        case exp.GT():
            return first > second
    return first >= second
