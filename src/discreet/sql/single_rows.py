"""How many rows a query on answers may give, as far as its text and the declaration say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.sensitivity import cell_count

Plans = Mapping[str, Plan]
"""The measured tables that a query may read."""
Named = Callable[[str], exp.Query | None]
"""The queries that WITH names."""
Gathers = Callable[[exp.Select], bool]
"""Whether a SELECT without groups has aggregates, and so one row."""


def one_row(query: exp.Expr, plans: Plans, named: Named, gathers: Gathers) -> bool:
    """Whether a query gives one row at most, whatever was released."""

    def source(item: exp.Expr) -> bool:
        if isinstance(item, exp.Subquery):
            return one(item.this)
        if not isinstance(item, exp.Table):
            return False
        if item.name in plans:
            plan = plans[item.name]
            groups = cell_count(plan.keys)
            return groups is not None and groups <= 1
        inner = named(item.name)
        return inner is not None and one(inner)

    def one(node: exp.Expr) -> bool:
        if isinstance(node, exp.Subquery):
            return one(node.this)
        limit = node.args.get("limit")
        number = limit.args.get("expression") if limit is not None else None
        if isinstance(number, exp.Literal) and number.name in ("0", "1"):
            return True
        if isinstance(node, exp.SetOperation):
            return not isinstance(node, exp.Union) and one(node.this)
        if not isinstance(node, exp.Select) or any(item.find(exp.Unnest) for item in node.expressions):
            return False
        group = node.args.get("group")
        if group is None and gathers(node):
            return True
        first = node.args.get("from_")
        items = [first.this] if first is not None else []
        items += [join.this for join in node.args.get("joins") or []]
        return all(map(source, items))

    return one(query)


def picks(query: exp.Expr, wheres: Callable[[str], bool], named: Named) -> bool:
    """Whether a condition somewhere in a query says which rows there are: then they may be one. `wheres` says that of a
    measured table."""
    if query.find(exp.Where, exp.Having, exp.Qualify) is not None:
        return True
    for table in query.find_all(exp.Table):
        inner = named(table.name)
        if wheres(table.name) or (inner is not None and picks(inner, wheres, named)):
            return True
    return False
