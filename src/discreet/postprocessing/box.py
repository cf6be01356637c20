"""How noise reaches the columns of a query on released tables: intervals carried through it.

Each noisy column x of a released table comes with two more, x low and x high: the ends of intervals that hold for all
its cells at once, and all tables' at once. They span a box in which the truth lies. A query is rewritten so that it
computes, beside each of its columns, the least and the largest that the column can be anywhere in the box, by interval
arithmetic (Moore 1966): where a formula holds a number twice that is wider than it need be, never narrower. So the new
intervals hold all at once, as often as the given ones.

What is computed over several rows (SUM, a window) is followed where which rows these are depends on no noise: else the
truth may be made of other rows, and nothing is said. Neither is it where a text, a rank or a number of rows depends on
noise. Which of the rows are shown may depend on it: all intervals hold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from sqlglot import exp

from discreet.engines.chosen import OUTER

LOW, HIGH = "\x1flow", "\x1fhigh"
"""What a column's name ends with where its interval stands, for all cells at once."""
ONE_LOW, ONE_HIGH = "\x1flow of one", "\x1fhigh of one"
"""The same, of an interval that holds by itself."""
LARGEST = 600
"""Nodes of one interval's end: a longer one is not followed."""
INFINITE = "\x1finfinite"
"""A function without arguments: an infinite number."""
LOWER_END, UPPER_END = "\x1flower end", "\x1fupper end"
LEAST, GREATEST = "\x1fleast", "\x1fgreatest"
"""Functions of an end and a size: infinite where the end is of that size, since a whole number of it would be NULL,
which aggregates leave out."""
_WHOLE = {"int": 2**31 - 1, "bigint": 9_200_000_000_000_000_000}
"""No whole number of a type is NULL that is smaller than this."""


class Followed(Enum):
    """What is known of a column's error."""

    EXACT = auto()
    """It depends on no noise."""
    BOXED = auto()
    """Its interval stands beside it."""
    PASSED = auto()
    """The same, and its own interval as well, which holds by itself."""
    UNKNOWN = auto()

    @property
    def boxed(self) -> bool:
        """Whether an interval stands beside the column."""
        return self in (Followed.BOXED, Followed.PASSED)


Columns = Mapping[str, Followed]


@dataclass(frozen=True)
class Box:
    """A rewritten query: what is known of each of its columns, in their order, and whether noise decides which rows
    there are."""

    columns: tuple[tuple[str, Followed], ...]
    picked: bool
    ordered: bool = False
    """Whether noise orders the rows, and so decides what a LIMIT around it leaves."""

    @property
    def by_name(self) -> Columns:
        return dict(self.columns)


def boxed(query: exp.Expr, tables: Mapping[str, Box]) -> Box:
    """Adds the intervals' columns to a query, in which every column names its table and has a name."""
    with_ = query.args.get("with_")
    for named in with_.expressions if with_ is not None else ():
        tables = {**tables, named.alias: _renamed(boxed(named.this, tables), named)}
    if isinstance(query, exp.Subquery):
        return boxed(query.this, tables)
    if isinstance(query, exp.SetOperation):
        return _together(query, tables)
    assert isinstance(query, exp.Select)
    return _SelectBox(query, tables).box()


def extra(name: str, followed: Followed) -> tuple[str, ...]:
    """The names of the columns that stand beside a column."""
    if followed is Followed.PASSED:
        return (name + LOW, name + HIGH, name + ONE_LOW, name + ONE_HIGH)
    return (name + LOW, name + HIGH) if followed is Followed.BOXED else ()


def _together(query: exp.SetOperation, tables: Mapping[str, Box]) -> Box:
    sides = [boxed(query.args[side], tables) for side in ("this", "expression")]
    first, second = (side.columns for side in sides)
    all_rows = isinstance(query, exp.Union) and query.args.get("distinct") is False
    noisy = any(one is not Followed.EXACT for side in (first, second) for _, one in side)
    known: list[Followed] = []
    for (_, one), (_, two) in zip(first, second, strict=False):
        if one is two is Followed.EXACT:
            known.append(Followed.EXACT)
        elif all_rows and Followed.UNKNOWN not in (one, two):
            known.append(Followed.PASSED if Followed.BOXED not in (one, two) else Followed.BOXED)
        else:
            known.append(Followed.UNKNOWN)
    for side in ("this", "expression"):
        _conform(query.args[side], known)
    names = [name for name, _ in first]
    picked = any(side.picked for side in sides) or (noisy and not all_rows)
    return Box(tuple(zip(names, known, strict=False)), picked or _limited(query, dict(zip(names, known, strict=False))))


def _conform(query: exp.Expr, known: Sequence[Followed]) -> None:
    """Gives a side of UNION the intervals' columns that the whole has: what is exact is its own interval."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.SetOperation):
        for side in ("this", "expression"):
            _conform(query.args[side], known)
        return
    own = {one.alias_or_name: one for one in query.expressions}
    items = query.expressions[: len(known)]
    made = list(items)
    for item, wanted in zip(items, known, strict=True):
        name = item.alias_or_name
        for ending in extra("", wanted):
            there = own.get(name + ending)
            made.append(there if there is not None else exp.alias_(item.unalias().copy(), name + ending, quoted=True))
    query.set("expressions", made)


def _limited(query: exp.Expr, columns: Columns) -> bool:
    """Whether noise decides which rows LIMIT leaves."""
    if query.args.get("limit") is None and query.args.get("offset") is None:
        return False
    order = query.args.get("order")
    return order is not None and any(
        columns.get(one.name, Followed.EXACT) is not Followed.EXACT for one in order.find_all(exp.Column)
    )


def _renamed(box: Box, item: exp.Expr) -> Box:
    """What a table is under an alias that names its columns anew: their intervals' columns are not found there."""
    alias = item.args.get("alias")
    names = [one.name for one in alias.args.get("columns") or ()] if alias is not None else []
    if not names:
        return box
    known = [Followed.UNKNOWN if one is not Followed.EXACT else one for _, one in box.columns]
    kept = [name for name, _ in box.columns][len(names) :]
    return Box(tuple(zip([*names, *kept], known, strict=False)), box.picked, box.ordered)


Ends = tuple[exp.Expr, exp.Expr]


class _SelectBox:
    """One SELECT."""

    def __init__(self, query: exp.Select, tables: Mapping[str, Box]) -> None:
        self.query = query
        self.tables = tables
        self.sources: dict[str, Columns] = {}
        self.others: dict[str, Followed] = {}
        self.picked = self.mixed = self.chosen = False
        self.known: dict[int, tuple[exp.Expr, bool]] = {}
        self.narrow = any(one.to.is_type("int") for one in query.root().find_all(exp.Cast))  # here or in what is read
        source = query.args.get("from_")
        joins = query.args.get("joins") or []
        for item in [source.this] if source is not None else []:
            self._source(item)
        for join in joins:
            side = str(join.args.get("side") or "").upper()
            before = list(self.sources)
            missing = self._source(join.this)
            on = join.args.get("on")
            matched = on is not None and not self.exact(on)  # noise decides which rows find others
            self.known.clear()
            if side in ("LEFT", "FULL") and (missing or matched):
                self._unsure([join.this.alias_or_name])
            if side in ("RIGHT", "FULL") and (self.picked or matched):
                self._unsure(before)
        conditions = [join.args.get("on") for join in joins]
        conditions += [query.args[name].this for name in ("where",) if query.args.get(name)]
        conditions += self._unnested()
        self.picked |= any(one is not None and not self.exact(one) for one in conditions)
        group = query.args.get("group")
        self.known.clear()
        every = group is not None and bool(group.args.get("all"))
        keys = [*(group.expressions if group is not None else ()), *(self._ungathered() if every else ())]
        self.mixed = not all(self.exact(one) for one in keys)
        self.known.clear()
        conditions = [query.args[name].this for name in ("having", "qualify") if query.args.get(name)]
        # whether noise decides which groups there are: windows look at all of them
        self.chosen = not all(self.exact(one) for one in conditions)
        self.known.clear()

    def _ungathered(self) -> list[exp.Expr]:
        return [one.unalias() for one in self.query.expressions if not self._gathers(one)]

    def _unnested(self) -> list[exp.Expr]:
        """The lists of which each value becomes a row."""
        return [one for item in self.query.expressions for one in _own(item) if isinstance(one, exp.Unnest)]

    def _source(self, item: exp.Expr) -> bool:
        """Takes in a table. Gives whether noise decides which of its rows there are."""
        if isinstance(item, exp.Table):
            found = self.tables.get(item.name)
        elif isinstance(item, exp.Subquery):
            found = boxed(item.this, self.tables)
        else:
            found = None
        name = item.alias_or_name
        if found is None:  # constants, where they are such
            exact = not any(True for _ in item.find_all(exp.Column))
            self.others[name] = Followed.EXACT if exact else Followed.UNKNOWN
            self.picked |= not exact
            return not exact
        found = _renamed(found, item)
        self.sources[name] = found.by_name
        self.picked |= found.picked or found.ordered
        return found.picked

    def _unsure(self, names: Sequence[str]) -> None:
        """What an outer join fills in where noise left a row out is not known."""
        for name in names:
            self.sources[name] = dict.fromkeys(self.sources.get(name, {}), Followed.UNKNOWN)

    def box(self) -> Box:
        query = self.query
        columns: list[tuple[str, Followed]] = []
        more: list[exp.Expr] = []
        distinct = query.args.get("distinct") is not None
        for item in query.expressions:
            inner, name = item.unalias(), item.alias_or_name
            followed = self._followed(inner)
            if self.mixed and followed.boxed:  # a noisy key: its intervals' columns are not grouped by
                followed = Followed.UNKNOWN
            ends = self.ends(inner) if followed.boxed and not distinct else None
            if followed.boxed and ends is None:
                followed = Followed.UNKNOWN
            columns.append((name, followed))
            if ends is not None:
                more += [
                    exp.alias_(end.copy(), name + ending, quoted=True)
                    for end, ending in zip(ends, (LOW, HIGH), strict=True)
                ]
                if followed is Followed.PASSED:
                    assert isinstance(inner, exp.Column)
                    more += [
                        exp.alias_(_beside(inner, ending), name + ending, quoted=True) for ending in (ONE_LOW, ONE_HIGH)
                    ]
        picked = self.picked or self.mixed or self.chosen
        by_name = dict(columns)
        order, ordered = query.args.get("order"), False
        if order is not None:
            for one in order.expressions:
                named = one.this if isinstance(one.this, exp.Column) and not one.this.table else None
                known = by_name.get(named.name, Followed.UNKNOWN) if named is not None else None
                ordered |= known is not Followed.EXACT if known is not None else not self.exact(one.this)
        if query.args.get("limit") is not None or query.args.get("offset") is not None:
            picked |= ordered
        if distinct and any(one is not Followed.EXACT for _, one in columns):
            picked = True
        query.set("expressions", [*query.expressions, *more])
        return Box(tuple(columns), picked, ordered)

    # columns

    def _known(self, node: exp.Column) -> Followed:
        if node.table:
            if node.table in self.others:
                return self.others[node.table]
            return self.sources.get(node.table, {}).get(node.name, Followed.UNKNOWN)
        found = [columns[node.name] for columns in self.sources.values() if node.name in columns]
        found += self.others.values()
        return next((one for one in found if one is not Followed.EXACT), Followed.EXACT if found else Followed.UNKNOWN)

    def exact(self, node: exp.Expr) -> bool:
        """Whether an expression depends on no noise."""
        if id(node) not in self.known:
            self.known[id(node)] = (node, self._exact(node))  # the node is kept, so that no other has its id
        return self.known[id(node)][1]

    def _exact(self, node: exp.Expr) -> bool:
        for one in _own(node):
            if isinstance(one, exp.Query):
                box = boxed(one.copy(), self.tables)
                outside = _outside(one)
                if box.picked or any(known is not Followed.EXACT for _, known in box.columns):
                    return False
                if any(self._known(c) is not Followed.EXACT for c in outside):
                    return False
            elif isinstance(one, exp.Column) and self._known(one) is not Followed.EXACT:
                return False
        if self.chosen and node.find(exp.Window) is not None:
            return False
        return not (self._gathers(node) and (self.picked or self.mixed))

    def _gathers(self, node: exp.Expr) -> bool:
        """Whether an expression reads several rows of this SELECT."""
        return any(OUTER.gathers(one) for one in _own(node))

    def _followed(self, node: exp.Expr) -> Followed:
        if isinstance(node, exp.Column):
            return self._known(node)
        if self.exact(node):
            return Followed.EXACT
        return Followed.BOXED if self.ends(node) is not None else Followed.UNKNOWN

    # intervals

    def ends(self, node: exp.Expr) -> Ends | None:
        """The least and the largest value in the box, as expressions; None where they are not followed, or too long."""
        found = self._ends(node)
        return None if found is None or any(_size(end) > LARGEST for end in found) else found

    def _ends(self, node: exp.Expr) -> Ends | None:
        if isinstance(node, exp.Column) and self._known(node).boxed:
            return _beside(node, LOW), _beside(node, HIGH)
        if self.exact(node):
            return node.copy(), node.copy()
        if isinstance(node, exp.Column):
            return None
        if isinstance(node, exp.Paren):
            return self.ends(node.this)
        if isinstance(node, exp.Neg):
            inner = self.ends(node.this)
            return None if inner is None else (_minus(inner[1]), _minus(inner[0]))
        if isinstance(node, exp.Cast | exp.TryCast):
            inner = self.ends(node.this)
            if inner is None or node.to.expressions:
                return None
            if node.to.is_type("double"):
                return _with_this(node, inner[0]), _with_this(node, inner[1])
            if node.to.is_type("int", "bigint"):  # to the nearest: no further than the next ones
                size = _WHOLE["int" if node.to.is_type("int") else "bigint"]
                return _within_size(_call("FLOOR", _real(inner[0])), _call("CEIL", _real(inner[1])), size)
            return None
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._arithmetic(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter):
            inner = self.ends(node.this) if self.exact(node.expression.this) else None
            return None if inner is None else (_with_this(node, inner[0]), _with_this(node, inner[1]))
        if isinstance(node, exp.Sum | exp.Avg | exp.Min | exp.Max):
            if self.picked or self.mixed or isinstance(node.this, exp.Distinct):
                return None
            inner = self.ends(node.this)
            return None if inner is None else (_with_this(node, inner[0]), _with_this(node, inner[1]))
        return self._function(node)

    def _arithmetic(self, node: exp.Binary) -> Ends | None:
        if node.find(exp.Interval) is not None or any(
            one.is_type(*exp.DataType.TEMPORAL_TYPES, "interval") for one in (node.this, node.expression)
        ):
            return None
        divisor = node.expression
        size = _WHOLE["int" if self.narrow else "bigint"]
        name, arguments = called(divisor)
        if isinstance(node, exp.Div) and name in ("NULLIF", "NULLIFZERO") and _is_zero(arguments[1:]):
            divisor = arguments[0]  # where it may be 0 nothing is said
        one, two = self.ends(node.this), self.ends(divisor)
        if one is None or two is None:
            return None
        if isinstance(node, exp.Add):
            return _within_size(_sum(one[0], two[0]), _sum(one[1], two[1]), size)
        if isinstance(node, exp.Sub):
            return _within_size(_sum(one[0], _minus(two[1])), _sum(one[1], _minus(two[0])), size)
        kind = type(node)
        if self.exact(node.this) and self.exact(node.expression):
            return node.copy(), node.copy()
        pairs = [_binary(kind, _real(a), b) for a in one for b in two]
        low, high = _call(LEAST, *pairs), _call(GREATEST, *pairs)
        if isinstance(node, exp.Mul):
            return _within_size(low, high, size)
        if self.exact(node.expression):
            return low, high
        away = exp.or_(exp.GT(this=two[0].copy(), expression=exp.Literal.number(0)),
                       exp.LT(this=two[1].copy(), expression=exp.Literal.number(0)))  # fmt: skip
        return _where(away, low, high)

    def _case(self, node: exp.Case) -> Ends | None:
        conditions = [one.this for one in node.args["ifs"]] + ([node.this] if node.this is not None else [])
        if not all(self.exact(one) for one in conditions):
            return None
        results = [self.ends(one.args["true"]) for one in node.args["ifs"]]
        default = node.args.get("default")
        last = self.ends(default) if default is not None else (exp.null(), exp.null())
        if last is None or any(one is None for one in results):
            return None
        made = []
        for end in (0, 1):
            case = node.copy()
            for place, one in enumerate(results):
                assert one is not None
                case.args["ifs"][place].set("true", one[end].copy())
            if default is not None:
                case.set("default", last[end].copy())
            made.append(case)
        return made[0], made[1]

    def _subquery(self, node: exp.Subquery) -> Ends | None:
        inner = node.this.copy()
        if _outside(inner):
            return None
        box = boxed(inner, self.tables)
        if box.picked or len(box.columns) != 1 or not box.columns[0][1].boxed or not isinstance(inner, exp.Select):
            return None
        ((name, _),) = box.columns
        made = []
        for ending in (LOW, HIGH):
            one = inner.copy()
            one.set("expressions", [item for item in one.expressions if item.alias == name + ending])
            made.append(exp.Subquery(this=one))
        return made[0], made[1]

    def _window(self, node: exp.Window) -> Ends | None:
        """A total, or a value of another row, over rows that no noise chooses or orders."""
        around = [one for name, one in node.args.items() if name != "this" and isinstance(one, exp.Expr)]
        around += list(node.args.get("partition_by") or [])
        if self.picked or self.mixed or self.chosen or not all(self.exact(one) for one in around):
            return None
        function = node.this
        inner = function.this if isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) else function
        if not isinstance(
            inner, exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Lag | exp.Lead | exp.FirstValue | exp.LastValue
        ):
            return None
        others = [one for name, one in inner.args.items() if name != "this" and one is not None]
        if inner is not function or isinstance(inner.this, exp.Distinct):
            return None
        if any(isinstance(one, exp.Expr) and not isinstance(one, exp.Literal) for one in others):
            return None
        if inner.args.get("default") is not None:
            return None
        ends = self.ends(inner.this)
        if ends is None:
            return None
        return _with_this(node, _with_this(inner, ends[0])), _with_this(node, _with_this(inner, ends[1]))

    def _function(self, node: exp.Expr) -> Ends | None:
        name, arguments = called(node)
        if not arguments:
            return None
        first, *rest = arguments
        if name in ("GREATEST", "LEAST"):
            all_ = [self.ends(one) for one in arguments]
            if any(one is None for one in all_):
                return None
            return tuple(_call(name, *(one[end] for one in all_ if one is not None)) for end in (0, 1))  # type: ignore[return-value]
        ends = self.ends(first)
        if ends is None or not all(self.exact(one) for one in rest):
            return None
        low, high = ends
        if name in (
            "ROUND",
            "FLOOR",
            "CEIL",
            "CEILING",
            "TRUNC",
            "EXP",
        ):
            return _call(name, low, *rest), _call(name, high, *rest)
        if name == "SQRT":
            below = exp.GTE(this=low.copy(), expression=exp.Literal.number(0))
            return _where(below, _call(name, low), _call(name, high))
        if name in ("COALESCE", "IFNULL") and isinstance(first, exp.Column):
            return _call("COALESCE", low, *rest), _call("COALESCE", high, *rest)
        if name == "ABS":
            return _folded(low, high, lambda one: _call("ABS", one))
        if name in ("POWER", "POW") and isinstance(rest[0], exp.Literal) and rest[0].name.isdecimal():
            if int(rest[0].name) % 2:
                return _call(name, low, *rest), _call(name, high, *rest)
            return _folded(low, high, lambda one: _call(name, one, *rest))
        return None


def called(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """A function's name and arguments; none where the node is no plain call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper(), list(node.expressions)
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return type(node).sql_name().upper(), [node.this, *node.expressions]
    if isinstance(node, exp.Func) and not isinstance(node, exp.AggFunc) and not node.is_var_len_args:
        return type(node).sql_name().upper(), [one for one in node.args.values() if isinstance(one, exp.Expr)]
    return "", []


def _is_zero(nodes: Sequence[exp.Expr]) -> bool:
    return not nodes or (isinstance(nodes[0], exp.Literal) and nodes[0].name in ("0", "0.0"))


def _where(sure: exp.Expr, low: exp.Expr, high: exp.Expr) -> Ends:
    """Ends where a condition on them holds; else everything."""
    infinite = exp.Anonymous(this=INFINITE, expressions=[])
    return (
        exp.Case(ifs=[exp.If(this=sure.copy(), true=low)], default=_minus(infinite)),
        exp.Case(ifs=[exp.If(this=sure.copy(), true=high)], default=infinite.copy()),
    )


def _within_size(low: exp.Expr, high: exp.Expr, size: int) -> Ends:
    """Ends of what may be whole numbers, of which those of this size are NULL."""
    most = exp.Literal.number(size)
    return _call(LOWER_END, low, most), _call(UPPER_END, high, most)


def _sum(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    """In doubles, which are never too large."""
    return _binary(exp.Add, _real(one), _real(two))


def _folded(low: exp.Expr, high: exp.Expr, of: Callable[[exp.Expr], exp.Expr]) -> Ends:
    """The ends of a function that falls below 0 and rises above it."""
    zero = exp.Literal.number(0)
    across = exp.And(
        this=exp.LTE(this=low.copy(), expression=zero), expression=exp.GTE(this=high.copy(), expression=zero.copy())
    )
    least = _call(LEAST, of(low), of(high))
    return exp.Case(ifs=[exp.If(this=across, true=zero.copy())], default=least), _call(GREATEST, of(low), of(high))


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression without what stands in its subqueries."""
    return node.walk(prune=lambda inner: isinstance(inner, exp.Query))


def _outside(query: exp.Expr) -> list[exp.Column]:
    """The columns of a subquery that are of the query around it."""
    return [column for column in query.find_all(exp.Column) if column.table and not _within(column, query)]


def _within(column: exp.Column, query: exp.Expr) -> bool:
    """Whether a column is of a table that a SELECT around it reads, inside of a query."""
    at: exp.Expr | None = column
    while at is not None:
        if isinstance(at, exp.Select):
            source = at.args.get("from_")
            items = [source.this] if source is not None else []
            items += [join.this for join in at.args.get("joins") or []]
            if column.table in {one.alias_or_name for one in items}:
                return True
        if at is query:
            return False
        at = at.parent
    return False


def _beside(node: exp.Column, ending: str) -> exp.Column:
    made = node.copy()
    made.set("this", exp.to_identifier(node.name + ending, quoted=True))
    return made


def _with_this(node: exp.Expr, this: exp.Expr) -> exp.Expr:
    made = node.copy()
    made.set("this", this.copy())
    return made


def _binary(kind: type[exp.Expr], one: exp.Expr, two: exp.Expr) -> exp.Expr:
    return exp.Paren(this=kind(this=one.copy(), expression=two.copy()))


def _minus(one: exp.Expr) -> exp.Expr:
    return exp.Neg(this=exp.Paren(this=one.copy()))


def _real(one: exp.Expr) -> exp.Expr:
    return exp.Cast(this=one.copy(), to=exp.DataType.build(exp.DType.DOUBLE))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def _size(node: exp.Expr) -> int:
    return sum(1 for _ in node.walk())
