"""Trees for engines without a lambda: a value that `let` names becomes a column of a derived table.

In each SELECT the values stand in derived tables below it, innermost first:

    SELECT *, value AS l1 FROM … OFFSET '0'

OFFSET '0' leaves nothing out. It keeps the planner from writing the value back into each place that has its name, and
so does each value stand once in the text, however deep lets are nested, and is computed once for each row. It is
computed for rows too for which a CASE would not need it: that changes nothing, as every operator is total by itself.
The constant has to be a text: a whole number would be cast to 64 bits, and before constants are computed the planner
takes a cast for an offset that may be any, with which it plans nothing in parallel.

Equal values of one SELECT share a column. Conditions of WHERE that need no such column are asked below all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlglot import exp
from sqlglot.generator import Generator

from discreet.trusted.ring_a.dialect import Function

_Environment = Mapping[str, exp.Expr]
"""What stands for the name of each lambda around a node."""

_CLAUSES = ("expressions", "where", "group", "having", "qualify", "distinct", "order")
"""The parts of a SELECT whose expressions read what FROM gives."""


def layered(tree: exp.Expr, totals: Callable[[exp.Expr], bool]) -> exp.Expr:
    """The tree without lets. `totals` says of which nodes rows are added up in: an aggregate. The tree given is
    used up."""
    if not any(is_let(node) for node in tree.walk()):
        return tree
    names = _Names()
    outside = exp.Select(expressions=[tree]) if not isinstance(tree, exp.Query | exp.DDL) else None
    whole = outside or tree
    selects = [node for node in whole.walk() if isinstance(node, exp.Select)]
    for select in reversed(selects):
        if select is not outside and _has_let(select):
            _LayeredSelect(select, names, totals).build()
    if outside is None:
        return tree
    return _Lowering(names).of(outside.expressions[0])


def is_let(node: object) -> bool:
    return isinstance(node, Function) and node.name == "let"


def let(value: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    """The body, in which a column of this name is the value."""
    return Function(this="let", expressions=[value, exp.Lambda(this=body, expressions=[exp.to_identifier(name)])])


def plain(node: exp.Expr) -> bool:
    """Whether a node can stand in several places as it is: a column, a constant, or a constant's cast."""
    inner = node.this if isinstance(node, exp.Cast | exp.Collate) else node
    return isinstance(inner, exp.Literal | exp.Null | exp.Boolean) or isinstance(node, exp.Column)


def _own(node: exp.Expr) -> list[exp.Expr]:
    """The node and what is below it, subqueries left out."""
    return [one for one in node.walk(prune=lambda one: isinstance(one, exp.Query)) if not isinstance(one, exp.Query)]


def _parts(select: exp.Select) -> list[exp.Expr]:
    """The expressions of a SELECT itself."""
    found: list[exp.Expr] = []
    for key in _CLAUSES:
        value = select.args.get(key)
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return found + [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on") is not None]


def _has_let(select: exp.Select) -> bool:
    return any(is_let(node) for part in _parts(select) for node in _own(part))


class _Names:
    """Columns that no other has: one set of names for a whole tree."""

    def __init__(self) -> None:
        self._next = count(1)

    def new(self) -> str:
        return f"l{next(self._next)}"


_Place = Callable[[exp.Expr], exp.Expr | None]
"""Puts a value without lets below, and gives the column that it is then; None where that cannot be."""


@dataclass(frozen=True)
class _Lowering:
    """How expressions lose their lets: `place` is asked where values go, and lets that add up rows, as `totals` says,
    stay where they are, with all that reads their values."""

    names: _Names
    place: _Place = lambda _: None
    totals: Callable[[exp.Expr], bool] = lambda _: False

    def of(
        self, node: exp.Expr, environment: _Environment | None = None, kept: frozenset[str] = frozenset()
    ) -> exp.Expr:
        """The node, which is used up. The environment has what stands for names, `kept` the names of lets that stay."""
        known = environment or {}
        if isinstance(node, exp.Column) and not node.table and node.name in known:
            return known[node.name].copy()
        if is_let(node):
            return self._let(node, known, kept)
        for key, child in () if isinstance(node, exp.Query) else list(node.args.items()):
            if isinstance(child, exp.Expr):
                node.set(key, self.of(child, known, kept))
            elif isinstance(child, list):
                for place, one in enumerate(child):
                    if isinstance(one, exp.Expr):
                        node.set(key, self.of(one, known, kept), place)
        return node

    def _let(self, node: exp.Expr, known: _Environment, kept: frozenset[str]) -> exp.Expr:
        value, function = node.expressions
        name = function.expressions[0].name
        stays = any(self.totals(one) or _reads(one, kept) for one in _own(node))
        value = self.of(value, known, kept)
        if stays:
            known = {other: one for other, one in known.items() if other != name}
            return let(value, name, self.of(function.this, known, kept | {name}))
        column = value if plain(value) else self.place(value)
        if column is not None:
            return self.of(function.this, {**known, name: column}, kept - {name})
        own = exp.column(self.names.new())
        body = self.of(function.this, {**known, name: own}, kept - {name})
        below = exp.Select(expressions=[exp.alias_(value, own.name, copy=False)])
        below = below.offset(exp.Literal.string("0"), copy=False)
        alone = exp.Select(expressions=[body]).from_(below.subquery("alone", copy=False), copy=False)
        return alone.subquery(copy=False)


def _reads(node: exp.Expr, names: frozenset[str]) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name in names


class Layers(exp.Anonymous):
    """Derived tables in each other, under the name of the innermost: what they are made of, then the columns of each.
    One node, so that it is no deeper where they are many."""

    arg_types = {"this": True, "expressions": True, "where": False}  # noqa: RUF012  (as in all nodes)


def write(writer: Generator, node: exp.Expr) -> str:
    """The text of `Layers`."""
    source, *levels = node.expressions
    text, where = writer.sql(source), writer.sql(node, "where")
    for level in levels:
        columns = ", ".join(writer.sql(one) for one in level.expressions)
        text = f"(SELECT *, {columns} FROM {text}{where} OFFSET '0') AS {node.name}"
        where = ""
    return text


@dataclass
class _Below:
    """The values that stand below one table of FROM, layer by layer: those of a layer read columns of lower ones."""

    names: _Names
    table: str = ""
    columns: dict[exp.Expr, str] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)

    def place(self, value: exp.Expr) -> exp.Expr:
        value = self._unqualified(value)
        if value not in self.columns:
            read = (self.levels.get(node.name, 0) for node in value.walk() if isinstance(node, exp.Column))
            self.columns[value] = self.names.new()
            self.levels[self.columns[value]] = 1 + max(read, default=0)
        return exp.column(self.columns[value], table=self.table or None)

    def _unqualified(self, value: exp.Expr) -> exp.Expr:
        for node in value.walk() if self.table else ():
            if isinstance(node, exp.Column):
                node.set("table", None)
        return value

    def source(self, source: exp.Expr, conditions: Sequence[exp.Expr]) -> exp.Expr:
        """What stands in FROM, with all these columns, and only the rows for which the conditions are true."""
        levels = [
            exp.Tuple(expressions=[exp.alias_(value, name) for value, name in named])
            for level in range(1, max(self.levels.values()) + 1)
            if (named := [(value, name) for value, name in self.columns.items() if self.levels[name] == level])
        ]
        where = exp.Where(this=_all(conditions)) if conditions else None
        return Layers(this=source.alias_or_name, expressions=[source, *levels], where=where)


class _LayeredSelect:
    """One SELECT that has lets, of whose subqueries none has any more."""

    def __init__(self, select: exp.Select, names: _Names, totals: Callable[[exp.Expr], bool]) -> None:
        self._select, self._names, self._totals = select, names, totals

    def build(self) -> None:
        if self._select.args.get("joins"):
            self._join()
        if self._select.args.get("joins"):
            return
        self._below(self._totals)
        if any(is_let(node) for part in self._parts(*_CLAUSES) for node in _own(part)):
            self._split()
            self._below(lambda _: False)

    def _parts(self, *keys: str) -> list[exp.Expr]:
        return [part for key in keys for part in _listed(self._select.args.get(key))]

    # one table

    def _below(self, totals: Callable[[exp.Expr], bool]) -> None:
        """Puts the values below the one table of FROM, but those that are made of totals."""
        select, below = self._select, _Below(self._names)
        lowering = _Lowering(self._names, below.place, totals)
        conditions = _conjuncts(select.args.get("where"))
        early = [one for one in conditions if not any(is_let(node) for node in _own(one))]
        late = [one for one in conditions if all(one is not other for other in early)]
        source = select.args["from_"].this if select.args.get("from_") is not None else None
        for key in _CLAUSES:
            if key == "where":
                late = [lowering.of(one) for one in late]
            elif select.args.get(key) is not None:
                select.set(key, _each(select.args[key], lowering.of))
        if not below.columns:
            select.set("where", exp.Where(this=_all(early + late)) if early or late else None)
            return
        self._name_columns(source)
        select.set("where", exp.Where(this=_all(late)) if late else None)
        select.set("from_", exp.From(this=self._source(below, source, early)))

    def _source(self, below: _Below, source: exp.Expr | None, conditions: Sequence[exp.Expr]) -> exp.Expr:
        if source is not None:
            return below.source(source, conditions)
        nothing = exp.Select(expressions=[exp.alias_(exp.true(), self._names.new())]).subquery("layer", copy=False)
        return below.source(nothing, conditions)

    def _name_columns(self, source: exp.Expr | None) -> None:
        """Spells * out, so that it does not take in the columns of layers, where it is known what it stands for."""
        if any(isinstance(one, exp.Star) for one in self._select.expressions) and source is not None:
            known = _columns_of(source)
            if known is not None:
                named: list[exp.Expr] = []
                for one in self._select.expressions:
                    named += [exp.column(name) for name in known] if isinstance(one, exp.Star) else [one]
                self._select.set("expressions", named)

    # aggregates

    def _split(self) -> None:
        """Puts the totals in a SELECT below, and in this one what is made of them."""
        select = self._select
        group = select.args.get("group")
        keys = list(group.expressions) if group is not None else []
        named: dict[exp.Expr, str] = {key.copy(): f"g{place}" for place, key in enumerate(keys)}

        def outside(node: exp.Expr) -> exp.Expr:
            if node in named or self._totals(node):
                return exp.column(named.setdefault(node.copy(), f"t{len(named)}"))
            if not isinstance(node, exp.Query):
                _children(node, outside)
            return node

        _name(select)
        for key in ("expressions", "having", "order"):
            if select.args.get(key) is not None:
                select.set(key, _each(select.args[key], outside))
        inner = exp.Select(expressions=[exp.alias_(node, name) for node, name in named.items()])
        for key in ("from_", "joins", "where", "group"):
            inner.set(key, select.args.get(key))
            select.set(key, None)
        if (having := select.args.get("having")) is not None:
            select.set("where", exp.Where(this=having.this))
            select.set("having", None)
        select.set("from_", exp.From(this=inner.subquery("totalled", copy=False)))

    # joins

    def _join(self) -> None:
        """Values of one side below that side. What is made of both is moved above the join, or, where the condition of
        an outer join needs it, is a SELECT of its own for each pair."""
        select, joins = self._select, self._select.args["joins"]
        if all((join.side, join.kind) in (("", ""), ("", "INNER")) for join in joins):
            self._conditions_above()
        holders = {holder.this.alias_or_name: holder for holder in (select.args["from_"], *joins)}
        sides = {name: _Below(self._names, name) for name in holders}

        def place(value: exp.Expr) -> exp.Expr | None:
            tables = {node.table for node in value.walk() if isinstance(node, exp.Column)}
            if len(tables) > 1 or not tables <= sides.keys():
                return None
            return sides[tables.pop() if tables else next(iter(sides))].place(value)

        for join in joins:
            if join.args.get("on") is not None:
                join.set("on", _Lowering(self._names, place).of(join.args["on"]))
        for name, below in sides.items():
            if below.columns:
                holders[name].set("this", below.source(holders[name].this, ()))
        if any(is_let(node) for part in self._parts(*_CLAUSES) for node in _own(part)):
            self._raise()

    def _conditions_above(self) -> None:
        """Moves conditions of inner joins with lets of both sides to WHERE."""
        moved: list[exp.Expr] = []
        for join in self._select.args["joins"]:
            stay = list[exp.Expr]()
            for one in _conjuncts(join.args.get("on")):
                lets = [node for node in _own(one) if is_let(node)]
                both = any(
                    len({c.table for c in node.walk() if isinstance(c, exp.Column) and c.table}) > 1 for node in lets
                )
                (moved if both else stay).append(one)
            join.set("on", _all(stay) if stay else exp.true())
        if moved:
            self._select.set("where", exp.Where(this=_all([*_conjuncts(self._select.args.get("where")), *moved])))

    def _raise(self) -> None:
        """The join in a SELECT below, and in this one what is made of its columns."""
        select = self._select
        named: dict[exp.Expr, str] = {}

        def outside(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table:
                return exp.column(named.setdefault(node.copy(), f"j{len(named)}"))
            if not isinstance(node, exp.Query):
                _children(node, outside)
            return node

        above = [one for one in _conjuncts(select.args.get("where")) if any(is_let(node) for node in _own(one))]
        early = [one for one in _conjuncts(select.args.get("where")) if all(one is not other for other in above)]
        select.set("where", exp.Where(this=_all(above)) if above else None)
        _name(select)
        for key in _CLAUSES:
            if select.args.get(key) is not None:
                select.set(key, _each(select.args[key], outside))
        inner = exp.Select(expressions=[exp.alias_(node, name) for node, name in named.items()])
        inner.set("from_", select.args["from_"])
        inner.set("joins", select.args["joins"])
        inner.set("where", exp.Where(this=_all(early)) if early else None)
        select.set("joins", None)
        select.set("from_", exp.From(this=inner.subquery("joined", copy=False)))


def _name(select: exp.Select) -> None:
    """Gives a column that is selected as it is its own name, which it keeps whatever takes its place."""
    named = [
        exp.alias_(one, one.name, copy=False) if isinstance(one, exp.Column) and not one.is_star else one
        for one in select.expressions
    ]
    select.set("expressions", named)


def _listed(value: Any) -> list[exp.Expr]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []


def _each(value: Any, change: Callable[[exp.Expr], exp.Expr]) -> Any:
    return [change(one) for one in value] if isinstance(value, list) else change(value)


def _children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> None:
    """Replaces what a node is made of."""
    for key, child in list(node.args.items()):
        if isinstance(child, exp.Expr):
            node.set(key, change(child))
        elif isinstance(child, list):
            node.set(key, [change(one) if isinstance(one, exp.Expr) else one for one in child])


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """What must all be true, of a WHERE or a condition."""
    found: list[exp.Expr] = []
    waiting = [condition.this if isinstance(condition, exp.Where) else condition] if condition is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
            waiting.append(node.this)
        else:
            found.append(node)
    return found


def _all(conditions: Sequence[exp.Expr]) -> exp.Expr:
    whole: exp.Expr = exp.and_(*conditions, copy=False)
    return whole


def _columns_of(source: exp.Expr) -> list[str] | None:
    """The names of what a source in FROM gives; None where the tree does not say."""
    query = source.this if isinstance(source, exp.Subquery) else None
    while isinstance(query, exp.SetOperation):
        query = query.this
    if not isinstance(query, exp.Select) or query.args.get("joins"):
        return None if not isinstance(query, exp.Select) else _spelled(query, None)
    below = query.args.get("from_")
    return _spelled(query, below.this if below is not None else None)


def _spelled(query: exp.Select, source: exp.Expr | None) -> list[str] | None:
    names: list[str] = []
    for one in query.expressions:
        if isinstance(one, exp.Star):
            below = _columns_of(source) if source is not None else None
            if below is None:
                return None
            names += below
        elif not one.alias_or_name or one.alias_or_name == "*":
            return None
        else:
            names.append(one.alias_or_name)
    return names
