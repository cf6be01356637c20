"""Shapes of several nodes that tools write, for which others stand that mean the same: series in FROM, PIVOT, widths of
time, the rounds of a choice of bounds, medians as windows.

Only where both mean the same of every row. What is left is read by the allow-list as any question is.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.errors import QuestionError
from discreet.sql.nodes import Context, Rule, call, converted, number, text, whole
from discreet.sql.refusals import place
from discreet.trusted.ring_a.table import Type


def shaped(tree: exp.Expression, declaration: Declaration, context: Context) -> None:
    """Puts plainer shapes into a tree."""
    for node in reversed(list(tree.walk(bfs=True))):
        for rule in _RULES.get(type(node), ()):
            new = rule(cast(exp.Expression, node), context)
            if new is not None and new is not node:
                node.replace(new)
                break
    for node in list(tree.find_all(exp.Extract, exp.Anonymous)):
        if (age := _age(cast(exp.Expression, node), declaration, context)) is not None:
            node.replace(age)
    for select in list(tree.find_all(exp.Select)):
        _named_windows(select)
        _all_in_order(select)
        _windows_as_groups(select)
    for item in list(tree.find_all(exp.Table, exp.Subquery)):
        _pivoted(item, declaration)
    for node in list(tree.find_all(exp.Intersect, exp.Except)):
        _persons_of_both(node, declaration)


# time


_WITHIN = {"MINUTE": ("HOUR", 60), "SECOND": ("MINUTE", 60), "HOUR": ("DAY", 24)}
"""Of each unit that has a longer one: this, and how many of it make one."""
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400}


def _grain(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """Superset's DATE_TRUNC('hour', t) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM t) / 15), and
    DATE_TRUNC('minute', t) - (EXTRACT(MINUTE FROM t) % 15) * INTERVAL '1 minute'."""
    begin = _truncated(node.this)
    times = node.expression.this if isinstance(node.expression, exp.Paren) else node.expression
    if begin is None or not isinstance(times, exp.Mul):
        return None
    above, moment = begin
    for interval, factor in ((times.this, times.expression), (times.expression, times.this)):
        width = _width(interval)
        if width is None or width[1] not in _WITHIN:
            continue
        many, below = width
        longer, most = _WITHIN[below]
        part = _bare(factor)
        if isinstance(node, exp.Add) and above == longer and isinstance(part, exp.Floor | exp.Anonymous):
            inner = _bare(part.this if isinstance(part, exp.Floor) else next(iter(part.expressions), None))
            named = isinstance(part, exp.Floor) or part.name.upper() == "FLOOR"
            same = (
                isinstance(inner, exp.Div) and whole(inner.expression) == many and _part_of(inner.this, below, moment)
            )
            if named and same and many > 0 and most % many == 0:
                return _in_buckets(many, below, moment)
        if isinstance(node, exp.Sub) and above == below and many == 1 and isinstance(part, exp.Mod):
            bucket = whole(part.expression)
            if bucket and bucket > 0 and most % bucket == 0 and _part_of(part.this, below, moment):
                return _in_buckets(bucket, below, moment)
    return None


def _truncated(node: exp.Expr | None) -> tuple[str, exp.Expr] | None:
    """The unit and the moment of DATE_TRUNC('hour', moment)."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == "DATE_TRUNC" and len(node.expressions) == 2:
        word, moment = node.expressions
        return ((text(word) or "").upper(), moment) if text(word) else None
    return None


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _part_of(node: exp.Expr | None, part: str, moment: exp.Expr) -> bool:
    """Whether a node is that part of the moment, also as a whole number."""
    node = _bare(node)
    if isinstance(node, exp.Cast | exp.TryCast):
        node = _bare(node.this)
    return isinstance(node, exp.Extract) and node.name.upper() == part and node.expression == moment


def _width(node: exp.Expr | None) -> tuple[int, str] | None:
    """How many of which unit a constant interval has, where it has one unit alone."""
    node = _bare(node)
    if isinstance(node, exp.Cast) and node.args["to"].this is exp.DType.INTERVAL:
        node = node.this
    if isinstance(node, exp.Interval) and node.args.get("unit") is not None:
        many, name = whole(node.this), node.args["unit"].name.upper().removesuffix("S")
    else:
        words = node.this if isinstance(node, exp.Interval) else node
        found = re.fullmatch(r"\s*(\d{1,9})\s*([A-Za-z]+?)s?\s*", text(cast(exp.Expression, words)) or "")
        many, name = (int(found[1]), found[2].upper()) if found else (None, "")
    return (many, name) if many is not None and name else None


def _in_buckets(many: int, name: str, moment: exp.Expr) -> exp.Expression:
    interval = exp.Interval(this=exp.Literal.string(str(many)), unit=exp.var(name))
    return call("TIME_BUCKET", interval, cast(exp.Expression, moment))


def _binned(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """DATE_BIN(width, t, origin), TIME_BUCKET(width, t, origin) and TIME_SLICE(t, 6, 'HOUR'): from some midnight on, a
    width that divides a day begins where it does from any."""
    name, given = node.name.upper(), list(node.expressions)
    if name == "TIME_SLICE" and len(given) == 3:
        many, word = whole(given[1]), (given[2].name or "").upper()
        width = (many, word) if many else None
        moment, origin = given[0], None
    elif name in ("DATE_BIN", "TIME_BUCKET") and len(given) == 3:
        width, moment, origin = _width(given[0]), given[1], given[2]
    else:
        return None
    seconds = width[0] * _SECONDS.get(width[1], 0) if width is not None else 0
    if width is None or seconds <= 0 or _SECONDS["DAY"] % seconds or not (origin is None or _midnight(origin)):
        return None
    return _in_buckets(*width, moment)


def _midnight(node: exp.Expr | None) -> bool:
    """Whether a node is a constant day, or its midnight."""
    node = node.this if isinstance(node, exp.Cast | exp.TryCast) else node
    return re.fullmatch(r"\d{4}-\d\d-\d\d([ T]00:00(:00(\.0+)?)?)?", text(node) or "") is not None  # type: ignore[arg-type]


def _age(node: exp.Expression, declaration: Declaration, context: Context) -> exp.Expression | None:
    """EXTRACT(YEAR FROM AGE(end, start)) and DATE_PART('year', AGE(start)), of dates: complete years."""
    if isinstance(node, exp.Extract):
        word, of = node.name.upper(), _bare(node.expression)
    elif node.name.upper() in ("DATE_PART", "DATEPART") and len(node.expressions) == 2:
        word, of = (text(node.expressions[0]) or node.expressions[0].name).upper(), _bare(node.expressions[1])
    else:
        return None
    if word not in ("YEAR", "YEARS") or not isinstance(of, exp.Anonymous) or of.name.upper() != "AGE":
        return None
    given = list(of.expressions)
    if len(given) == 1:
        given = [exp.Literal.string(str(context.day)), *given]
    dates = _dates(declaration)
    ends = [
        _day(one) or (one if isinstance(one, exp.Column) and one.name.casefold() in dates else None) for one in given
    ]
    if len(ends) != 2 or None in ends:
        fix = "write it of two columns or constants that are dates: CAST(x AS DATE), and declare the column as date"
        raise QuestionError("not-allowed", "AGE cannot be used here", where=place(node), fix=fix)
    end, start = ends
    latest = dates.get(start.name.casefold()) if isinstance(start, exp.Column) else start
    if isinstance(end, datetime.date) and isinstance(latest, datetime.date) and latest <= end:
        return _years(start, end, context)
    later = exp.GTE(
        this=converted(given[0].copy(), exp.DType.DATE), expression=converted(given[1].copy(), exp.DType.DATE)
    )
    before = exp.Paren(this=exp.Neg(this=_years(end, start, context)))
    return exp.Case(ifs=[exp.If(this=later, true=_years(start, end, context))], default=before)


def _dates(declaration: Declaration) -> dict[str, datetime.date]:
    """Of each column's name, where all that are called so are dates: the last that is declared."""
    found: dict[str, datetime.date | None] = {}
    for table in declaration.tables.values():
        for column in table.columns:
            name, last = column.name.casefold(), column.maximum
            day = last if isinstance(last, datetime.date) else datetime.date.max
            known = found.get(name, datetime.date.min)
            found[name] = None if column.type is not Type.DATE or known is None else max(day, known)
    return {name: last for name, last in found.items() if last is not None}


def _day(node: exp.Expr) -> datetime.date | None:
    """A constant day."""
    node = node.this if isinstance(node, exp.Cast | exp.TryCast) else node
    words = str(node.this) if isinstance(node, exp.Literal) and node.is_string else ""
    try:
        return datetime.date.fromisoformat(words.removesuffix(" 00:00:00")) if len(words) >= 10 else None
    except ValueError:
        return None


def _years(start: Any, end: Any, context: Context) -> exp.Expression:
    """How many years are complete between two dates, of which the first is the earlier."""

    def part(name: str, moment: Any) -> exp.Expression:
        if isinstance(moment, datetime.date):
            return number({"YEAR": moment.year, "MONTH": moment.month, "DAY": moment.day}[name])
        return exp.Extract(this=exp.var(name), expression=context.again(moment, 2)[1])

    def place_in_year(moment: Any) -> exp.Expression:
        if isinstance(moment, datetime.date):
            return number(moment.month * 100 + moment.day)
        hundreds = exp.Mul(this=part("MONTH", moment), expression=number(100))
        return exp.Add(this=hundreds, expression=part("DAY", moment))

    not_yet = exp.GT(this=place_in_year(start), expression=place_in_year(end))
    missing = exp.Case(ifs=[exp.If(this=not_yet, true=number(1))], default=number(0))
    years = exp.Sub(this=part("YEAR", end), expression=part("YEAR", start))
    return exp.Paren(this=exp.Sub(this=years, expression=missing))


# numbers


def _between_bounds(node: exp.Expression, context: Context) -> exp.Expression | None:
    """RANGE_BUCKET(x, [0, 10, 20]) and WIDTH_BUCKET(x, ARRAY[0, 10, 20]): how many of these are at most x."""
    given = list(node.expressions)
    bounds = given[1] if node.name.upper() in ("RANGE_BUCKET", "WIDTH_BUCKET") and len(given) == 2 else None
    if not isinstance(bounds, exp.Array) or not bounds.expressions:
        return None
    values = [_number(one) for one in bounds.expressions]
    known = [one for one in values if one is not None]
    if len(known) < len(values) or known != sorted(known):
        fix = f"write {node.name.upper()} with constant numbers, the least first"
        raise QuestionError("not-allowed", "these bounds cannot be used", where=place(node), fix=fix)
    again = iter(context.again(given[0], len(values) + 1))
    branches = [
        exp.If(
            this=exp.GTE(this=next(again), expression=cast(exp.Expression, bounds.expressions[at]).copy()),
            true=number(at + 1),
        )
        for at in reversed(range(len(values)))
    ]
    first = exp.If(this=exp.LT(this=next(again), expression=bounds.expressions[0].copy()), true=number(0))
    return exp.Case(ifs=[*branches, first])


def _number(node: exp.Expr) -> float | None:
    sign = -1 if isinstance(node, exp.Neg) else 1
    node = node.this if isinstance(node, exp.Neg) else node
    return sign * float(node.name) if isinstance(node, exp.Literal) and not node.is_string else None


def _share(node: exp.Expression, context: Context) -> exp.Expression | None:
    """RATIO_TO_REPORT(x) OVER (…): x of the sum of x."""
    inner = node.this
    if not (
        isinstance(inner, exp.Anonymous) and inner.name.upper() == "RATIO_TO_REPORT" and len(inner.expressions) == 1
    ):
        return None
    one, other = context.again(inner.expressions[0], 2)
    total = exp.Window(**{**node.args, "this": exp.Sum(this=other)})
    top = exp.Paren(this=converted(one, exp.DType.DOUBLE))
    return exp.Paren(this=exp.Div(this=top, expression=total, typed=False, safe=False))


def _first_group(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """REGEXP_EXTRACT(x, 'a(b+)', 1), of an expression with one group: what the group matches is what is given here."""
    if node.name.upper() != "REGEXP_EXTRACT" or len(node.expressions) != 3 or whole(node.expressions[2]) != 1:
        return None
    pattern = re.sub(r"\\.", "", text(node.expressions[1]) or "")
    if "[" in pattern or len(re.findall(r"\((?!\?)", pattern)) != 1:
        return None
    return call(node.name, *node.expressions[:2])


# series


def _series(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """FROM GENERATE_SERIES(1, 10) AS n: as FROM UNNEST(…) AS n(n)."""
    made = node.this
    if not isinstance(made, exp.GenerateSeries) and not (
        isinstance(made, exp.Anonymous) and made.name.upper() in ("RANGE", "GENERATE_SERIES")
    ):
        return None
    alias = node.args.get("alias")
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("generate_series")
    columns = (alias.args.get("columns") if alias is not None else None) or [name.copy()]
    return exp.Unnest(expressions=[made], alias=exp.TableAlias(this=name, columns=columns))


def _steps(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """GENERATE_SERIES(…, '1 month'), whose step is an interval."""
    step = node.args.get("step")
    found = _width(step) if isinstance(step, exp.Expr) and whole(step) is None else None
    if isinstance(step, exp.Expr) and found is not None and not isinstance(step, exp.Interval):
        step.replace(exp.Interval(this=exp.Literal.string(str(found[0])), unit=exp.var(found[1])))
    return None


# queries


def _all_in_order(select: exp.Select) -> None:
    """ORDER BY ALL: by each column, from the first on."""
    order = select.args.get("order")
    only = order.expressions[0] if order is not None and len(order.expressions) == 1 else None
    if only is None or not isinstance(only.this, exp.Column | exp.Var) or only.this.name.upper() != "ALL":
        return
    if isinstance(only.this, exp.Column) and (only.this.table or only.this.this.args.get("quoted")):
        return
    if any(one.find(exp.Star) and not one.find(exp.Count) for one in select.expressions):
        return
    places = [exp.Ordered(**{**only.args, "this": number(at + 1)}) for at in range(len(select.expressions))]
    order.set("expressions", places)  # type: ignore[union-attr]


def _named_windows(select: exp.Select) -> None:
    """WINDOW w AS (ORDER BY x): what it says, where OVER w stands."""
    known = {one.this.name.casefold(): one for one in select.args.get("windows") or []}
    if not known or any(one.args.get("alias") for one in known.values()):
        return  # one that is made of another
    for node in list(select.find_all(exp.Window)):
        named = known.get(node.alias.casefold()) if node.alias else None
        if named is None or node.find_ancestor(exp.Select) is not select:
            continue
        parts = {name: node.args.get(name) or named.args.get(name) for name in ("partition_by", "order", "spec")}
        for name, value in parts.items():
            node.set(name, [one.copy() for one in value] if isinstance(value, list) else value and value.copy())
        node.set("alias", None)
    select.set("windows", None)


def _windows_as_groups(select: exp.Select) -> None:
    """SELECT DISTINCT k, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) OVER (PARTITION BY k), as SQL Server has a
    median: the same as GROUP BY k."""
    if not select.args.get("distinct") or select.args.get("group") or select.args["distinct"].args.get("on"):
        return
    windows, keys = list[exp.Window](), list[exp.Expr]()
    for item in select.expressions:
        inner = item.unalias()
        if not isinstance(inner, exp.Window):
            keys.append(inner)
            continue
        function = inner.this.this if isinstance(inner.this, exp.WithinGroup) else inner.this
        whole_groups = inner.args.get("order") is None and inner.args.get("spec") is None
        if not whole_groups or not isinstance(function, exp.AggFunc) or isinstance(function, _OF_ROWS):
            return
        windows.append(inner)
    partitions = [set(one.args.get("partition_by") or ()) for one in windows]
    if not windows or not keys or any(one != set(keys) for one in partitions):
        return
    for one in windows:
        one.replace(one.this)
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=[one.copy() for one in keys]))


_OF_ROWS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead,
            exp.FirstValue, exp.LastValue, exp.NthValue)  # fmt: skip


def _pivoted(item: exp.Expr, declaration: Declaration) -> None:
    """FROM (SELECT k, c, x …) PIVOT (SUM(x) FOR c IN ('a')): as SUM(x) FILTER (WHERE c = 'a') AS a, … GROUP BY k."""
    pivots = item.args.get("pivots") or []
    if len(pivots) != 1 or not isinstance(item.parent, exp.From):
        return
    pivot = pivots[0]
    fields, values = pivot.args.get("fields") or [], list[exp.Expr]()
    if pivot.args.get("unpivot") or len(fields) != 1 or not isinstance(fields[0], exp.In):
        return
    column = fields[0].this
    for one in fields[0].expressions:
        one = one.this if isinstance(one, exp.PivotAlias) else one
        values.append(exp.Literal.string(one.name) if isinstance(one, exp.Column | exp.Identifier) else one)
    names = [one.name.strip("'") for one in pivot.args.get("columns") or []]
    shown = list(_columns(item, declaration))
    aggregates = [one.unalias() for one in pivot.expressions]
    if not isinstance(column, exp.Column) or len(names) != len(values) * len(aggregates) or not shown:
        return
    if not all(isinstance(one, exp.AggFunc) and not isinstance(one, exp.Distinct) for one in aggregates):
        return
    used = {one.name.casefold() for node in aggregates for one in node.find_all(exp.Column)} | {column.name.casefold()}
    keys = [exp.column(exp.to_identifier(one, quoted=True)) for one in shown if one.casefold() not in used]
    cells = [
        exp.alias_(_where_it_is(aggregate.copy(), column, value), name, quoted=True)
        for (value, aggregate), name in zip(
            ((value, aggregate) for value in values for aggregate in aggregates), names, strict=True
        )
    ]
    source = item.copy()
    source.set("pivots", None)
    if isinstance(source, exp.Subquery) and source.args.get("alias") is None:
        source.set("alias", exp.TableAlias(this=exp.to_identifier("pivoted")))
    made = exp.Select(expressions=[*keys, *cells], from_=exp.From(this=source))
    if keys:
        made.set("group", exp.Group(expressions=[one.copy() for one in keys]))
    alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivoted"))
    item.replace(exp.Subquery(this=made, alias=alias.copy()))


def _columns(item: exp.Expr, declaration: Declaration) -> Iterator[str]:
    """The names of what a table or subquery gives; none where it does not say them."""
    if isinstance(item, exp.Table):
        table = declaration.table(item.name)
        yield from (one.name for one in table.columns) if table is not None else ()
    elif isinstance(item.this, exp.Select) and not any(one.find(exp.Star) for one in item.this.expressions):
        yield from (one.alias_or_name for one in item.this.expressions)


def _where_it_is(aggregate: exp.Expr, column: exp.Column, value: exp.Expr) -> exp.Expr:
    """An aggregate of the rows whose column has this value."""
    condition = exp.EQ(this=column.copy(), expression=value.copy())
    return exp.Filter(this=aggregate, expression=exp.Where(this=condition))


def _persons_of_both(node: exp.SetOperation, declaration: Declaration) -> None:
    """(SELECT person FROM a INTERSECT SELECT person FROM b) as (SELECT DISTINCT person FROM a WHERE person IN (SELECT
    person FROM b)), EXCEPT with NOT IN: where rows are of persons, and both queries give their person alone."""
    one, other = node.this, node.expression
    if not node.args.get("distinct") or not all(_plain_column(side) for side in (one, other)):
        return
    if not all(_only_person(side, declaration) for side in (one, other)):
        return
    found: exp.Expr = exp.In(this=one.expressions[0].unalias().copy(), query=exp.Subquery(this=other.copy()))
    made = one.copy().where(exp.Not(this=found) if isinstance(node, exp.Except) else found, copy=False)
    made.set("distinct", exp.Distinct())
    if node.args.get("with_") is not None:
        made.set("with_", node.args["with_"].copy())
    node.replace(made)


def _plain_column(side: exp.Expr) -> bool:
    known = ("expressions", "from_", "where", "distinct", "joins")
    return (
        isinstance(side, exp.Select)
        and len(side.expressions) == 1
        and isinstance(side.expressions[0].unalias(), exp.Column)
        and not any(value for name, value in side.args.items() if name not in known)
    )


def _only_person(side: exp.Select, declaration: Declaration) -> bool:
    """Whether the one column of a SELECT over one table about people is the person."""
    source = side.args["from_"].this if side.args.get("from_") is not None else None
    table = declaration.table(source.name) if isinstance(source, exp.Table) and not side.args.get("joins") else None
    if source is None or table is None or table.public or table.person is None:
        return False
    shadowed = any(one.alias.casefold() == source.name.casefold() for one in side.root().find_all(exp.CTE))
    return not shadowed and bool(side.expressions[0].unalias().name.casefold() == table.person.casefold())


_RULES: Mapping[type[exp.Expr], Sequence[Rule]] = {
    exp.Add: (_grain,),
    exp.Sub: (_grain,),
    exp.Anonymous: (_binned, _between_bounds, _first_group),
    exp.Window: (_share,),
    exp.Table: (_series,),
    exp.GenerateSeries: (_steps,),
}
