"""Splits a question into measured tables and the query around them.

    SELECT city, n, RANK() OVER (ORDER BY n DESC) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)
    └──────────── outer query: runs on what was released ────────┘ └── measured table: priced, noisy ──┘

Which is which follows from what is read, not from how it is written:

* *rows*: a SELECT that reads a table about people and does not put persons together. Only a measured table reads it;
* *measured*: a SELECT that puts rows of several persons together. Of it only the grouped keys and the aggregates are
  measured, by `lower`: all else in it (formulas, windows, HAVING, ORDER BY, LIMIT) becomes a part of the outer query;
* *released*: what reads measured tables; *public*: what reads public tables or constants alone. Both are the outer
  query, which never meets a row about a person.

The argument: what leaves a measured table is what `lower` would release for it, asked alone. The outer query is a
function of that and of public tables: post-processing (Dwork & Roth 2014, Proposition 2.1). A measured table is closed:
it reads tables and constants, and, where a subquery gives a value to compare with, a value that was released before it,
which adaptive composition allows. All of them are measured, whatever the outer query would need, and equal ones once,
so what is charged follows from the text.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar, cast

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.dialect.normal import normal
from discreet.errors import QuestionError
from discreet.plan.outputs import OutputKind
from discreet.sql.aggregates import called_after
from discreet.sql.expressions import ExpressionReader
from discreet.sql.from_clause import PublicValues, RelationReader, named_queries
from discreet.sql.grammar import DifferentialPrivacy, Statistic, text_of
from discreet.sql.grouping_sets import grouping_sets, in_front
from discreet.sql.histograms import histograms_of, with_bins
from discreet.sql.limits import few, too_deep
from discreet.sql.lower import CLAUSES, INSTEAD, Question, amount, lower_tree, options_of
from discreet.sql.names import told_apart
from discreet.sql.nodes import call
from discreet.sql.refusals import known_clauses, only, place, refused, several_rows, unknown_name
from discreet.sql.scope import Scope, numbered
from discreet.sql.single_rows import one_row, picks
from discreet.sql.spelling import spelled
from discreet.sql.subquery import about_persons, select
from discreet.sql.totals import group_item
from discreet.trusted.ring_a.exact import floor
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.public_groups import public_groups
from discreet.trusted.ring_a.table import Type, Value

MOST_MEASURED = 16
"""How many measured tables one question may have."""


@dataclass(frozen=True)
class MeasuredTable:
    """One SELECT of grouped keys and aggregates, which is measured. `tree` has a placeholder for each value of `waits`,
    `question` the stand-in for it."""

    name: str
    tree: exp.Select
    question: Question
    waits: Mapping[str, Value]

    @property
    def text(self) -> str:
        """It as a question by itself."""
        return text_of(self.tree)

    def text_with(self, known: Mapping[str, Sequence[Value | None]]) -> str:
        """The same with released values in the places of its placeholders."""
        return text_of(_filled(self.tree, known, self.waits))


@dataclass(frozen=True)
class ReleasedValue:
    """What a subquery gives to a measured table: one value, or with `many` those of IN."""

    query: exp.Query
    many: bool


@dataclass(frozen=True)
class DeclaredGroups:
    """Groups that follow from the declaration: names and types of their columns, and the rows."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Value | None, ...], ...]


@dataclass(frozen=True)
class LayeredQuestion:
    """A question: measured tables in the order in which they are measured, and what is computed from them.

    Without `outer`, the one measured table is the question itself. `groups` are tables of declared groups, for which no
    row is read.
    """

    measured: tuple[MeasuredTable, ...]
    outer: exp.Query | None = None
    names: tuple[str, ...] = ()
    """What the columns of the outer query are called, where it names them."""
    values: Mapping[str, ReleasedValue] = field(default_factory=dict)
    groups: Mapping[str, DeclaredGroups] = field(default_factory=dict)
    epsilon: Fraction | None = None
    """The price that the clause of the outer query names for all measured tables that name none."""
    delta: Fraction | None = None


def layers(
    tree: exp.Expression,
    declaration: Declaration,
    values: PublicValues | None = None,
    today: datetime.date | None = None,
) -> LayeredQuestion:
    """The layers of a question that was parsed. Reads trees and declarations only, and public tables by `values`.
    `today` is what NOW() means. The tree is changed.

    Raises QuestionError where some part of it is not in the allow-list, with what to write instead."""
    whole = tree.copy()
    try:
        question = lower_tree(whole, declaration, values, today)
        return LayeredQuestion((MeasuredTable("answer", cast(exp.Select, whole), question, {}),))
    except QuestionError as direct:
        try:
            found = _Splitter(declaration, values).split(spelled(tree, declaration, today))
        except RecursionError:
            raise too_deep() from None
        if found is None:
            raise direct
        return found


def filled(
    table: MeasuredTable,
    known: Mapping[str, Sequence[Value | None]],
    declaration: Declaration,
    values: PublicValues | None = None,
) -> Question:
    """The question of a measured table, with released values in the places of its placeholders. Raises QuestionError,
    as where no group can meet a condition on such a value."""
    return lower_tree(_filled(table.tree, known, table.waits), declaration, values, released=True)


class _QueryKind(Enum):
    """What a query reads."""

    PUBLIC = auto()
    ROWS = auto()
    RELEASED = auto()


@dataclass(frozen=True)
class _NamedQuery:
    """A query that WITH names: what it reads, and itself with what it may read."""

    kind: _QueryKind
    tree: exp.Query
    before: Mapping[str, _NamedQuery]
    alias: exp.TableAlias


Names = Mapping[str, _NamedQuery]
_Read = TypeVar("_Read")


class _Splitter:
    """Takes measured tables out of a tree, which it changes."""

    def __init__(self, declaration: Declaration, values: PublicValues | None) -> None:
        self.declaration = declaration
        self.public_values = values
        self.measured: dict[str, MeasuredTable] = {}
        self.values: dict[str, ReleasedValue] = {}
        self.groups: dict[str, DeclaredGroups] = {}
        self.clause: DifferentialPrivacy | None = None
        self.taken: set[str] = set()

    def split(self, tree: exp.Expr) -> LayeredQuestion | None:
        """The layers; None where the whole is rows of people, which `lower` refuses by its own words."""
        if not isinstance(tree, exp.Query):
            return None
        if (hole := tree.find(exp.Placeholder, exp.Parameter)) is not None:
            raise refused(hole)
        self.taken = {one.name.casefold() for one in tree.find_all(exp.Identifier)}
        self.taken |= {name.casefold() for name in self.declaration.tables}
        for group in tree.find_all(exp.Group):
            in_front(group)
        told_apart(tree, {name.casefold() for name in self.declaration.tables}, lambda: self.own("named"))
        names = tuple(_visible(tree))
        _named_once(tree)
        hint = tree.args.get("hint") if isinstance(tree, exp.Select) else None
        if isinstance(hint, DifferentialPrivacy):
            self.clause = hint
            tree.set("hint", None)
        kind, outer = self._query(tree, {})
        if kind is _QueryKind.ROWS:
            return None
        epsilon, delta = (self._amount(name) for name in ("epsilon", "delta"))
        if len(self.measured) > MOST_MEASURED:
            message = f"there are more than {MOST_MEASURED} measured tables"
            raise QuestionError("too-long", message, where="question", fix="ask for fewer, or in several questions")
        few(sum(len(one.question.plan.outputs) for one in self.measured.values()))
        return LayeredQuestion(tuple(self.measured.values()), outer, names, self.values, self.groups, epsilon, delta)

    # queries

    def _query(self, node: exp.Expr, names: Names) -> tuple[_QueryKind, exp.Query]:
        """What a query reads, and the query that stands in its place."""
        if isinstance(node, exp.Subquery):
            kind, inner = self._query(node.this, names)
            node.set("this", inner)
            return kind, node
        if isinstance(node, exp.SetOperation):
            return self._together(node, self._with(node, names))
        if isinstance(node, exp.Select):
            return self._select(node, self._with(node, names))
        if isinstance(node, exp.Values):
            return _QueryKind.PUBLIC, node  # type: ignore[return-value]
        raise QuestionError("source", "this is no query", where=node.key.upper()[:60], fix="write (SELECT … FROM …)")

    def _with(self, node: exp.Expr, names: Names) -> Names:
        """The names that a query may use. What reads rows leaves its WITH: measured tables have a copy."""
        clause = node.args.get("with_")
        if clause is None:
            return names
        named_queries(cast(exp.Expression, node), {})  # refuses what no WITH of ours can be
        kept = []
        for query in clause.expressions:
            kind, inner = self._query(query.this, names)
            query.set("this", inner)
            names = {**names, query.alias.casefold(): _NamedQuery(kind, inner, names, query.args["alias"])}
            if kind is not _QueryKind.ROWS:
                kept.append(query)
        if kept:
            clause.set("expressions", kept)
        else:
            node.set("with_", None)
        return names

    def _together(self, node: exp.SetOperation, names: Names) -> tuple[_QueryKind, exp.Query]:
        kinds = []
        for side in ("this", "expression"):
            kind, inner = self._query(node.args[side], names)
            node.set(side, inner)
            kinds.append(kind)
        if _QueryKind.ROWS in kinds:
            if set(kinds) == {_QueryKind.ROWS}:
                return _QueryKind.ROWS, node
            message = f"one query of {node.key.upper()} gives rows of people, another does not"
            raise QuestionError("union", message, where=node.key.upper(), fix="aggregate in both, or in neither")
        return max(kinds, key=lambda kind: kind is _QueryKind.RELEASED), node

    def _select(self, node: exp.Select, names: Names) -> tuple[_QueryKind, exp.Query]:
        _places(node)
        kinds = [self._source(item, names) for item in _sources(node)]
        if _QueryKind.ROWS not in kinds:
            kinds += [self._beside(holder, names) for holder in _nested(node)]
            return (_QueryKind.RELEASED if _QueryKind.RELEASED in kinds else _QueryKind.PUBLIC), node
        if _QueryKind.RELEASED in kinds:
            self._looked_up(node)
            self._as_values(node, names)
            kinds = [self._source(item, names) for item in _sources(node)]
        if _QueryKind.RELEASED in kinds:
            message = "rows of people are joined with an answer"
            fix = "compare with it in WHERE: x > (SELECT AVG(x) FROM …); or join the answers, each grouped"
            raise QuestionError("join", message, where="FROM", fix=fix)
        if histograms_of(node):
            with_bins(node, self.scope(node, names))
        if not _puts_together(node) or self._by_person(node, names):
            for holder in _nested(node):
                self._within_rows(holder, names)
            return _QueryKind.ROWS, node
        return _QueryKind.RELEASED, _MeasuredSelect(self, node, names).wrapped()

    def _as_values(self, node: exp.Select, names: Names) -> None:
        """Writes answers of one row, which rows are joined with on no condition, as the values in it: of FROM rows,
        (SELECT AVG(x) AS mean FROM rows) AS m stays (SELECT m.mean FROM (…) AS m) where m.mean stands."""
        source = node.args["from_"]
        joins = list(node.args.get("joins") or [])
        for item in [source.this, *(join.this for join in joins)]:
            join = next((one for one in joins if one.this is item), None)
            first = next((one for one in joins if one.args.get("on") is None and not one.args.get("using")), None)
            if not self._has_one_row(item, names) or (join is None and (first is None or first is not joins[0])):
                continue
            if join is not None and (join.args.get("using") or join.args.get("method") or not _always(join)):
                continue
            alias = (item.alias or item.name).casefold()
            given = {one.casefold() for one in _visible(self._read_from(item, names))}
            columns = [one for one in _columns_of(node) if one.table.casefold() == alias]
            if "*" in given or any(one.name.casefold() not in given for one in columns):
                continue
            others = self._given_by([one for one in _sources(node) if one is not item], names)
            alone = [one for one in _columns_of(node) if not one.table and one.name.casefold() in given]
            if others is None or any(one.name.casefold() in others for one in alone):
                continue
            columns += alone
            group = node.args.get("group")
            if group is not None:  # a value that is one and the same tells no groups apart
                rest = [one for one in group.expressions if not any(one is column for column in columns)]
                if not rest and group.expressions:
                    continue
                columns = [one for one in columns if one.parent is not group]
                group.set("expressions", rest)
            if join is None:
                assert first is not None
                source.set("this", first.this)
                join = first
            joins = [one for one in joins if one is not join]
            node.set("joins", joins)
            for one in columns:
                value = exp.Select(expressions=[one.copy()], from_=exp.From(this=item.copy()))
                one.replace(exp.Subquery(this=value))

    def _given_by(self, items: Sequence[exp.Expr], names: Names) -> set[str] | None:
        """The names of the columns of several items of FROM; None where one does not say them."""
        found = set[str]()
        for item in items:
            query = self._read_from(item, names)
            table = self.declaration.table(query.name) if isinstance(query, exp.Table) else None
            own = [one.name for one in table.columns] if table is not None else list(_visible(query))
            if not own or "*" in own:
                return None
            found |= {one.casefold() for one in own}
        return found

    def _read_from(self, item: exp.Expr, names: Names) -> exp.Expr:
        """The query that an item of FROM gives rows of, itself where it is none."""
        if isinstance(item, exp.Subquery):
            return cast(exp.Expr, item.this)
        named = names.get(item.name.casefold()) if isinstance(item, exp.Table) else None
        return item if named is None or named.alias.args.get("columns") else named.tree

    def _has_one_row(self, item: exp.Expr, names: Names) -> bool:
        """Whether an answer in FROM has exactly one row: its measured table has no key, and nothing leaves rows out."""
        query = self._read_from(item, names)
        alias = item.args.get("alias")
        if not isinstance(query, exp.Select) or (alias is not None and alias.args.get("columns")):
            return False
        if any(value for name, value in query.args.items() if name not in ("expressions", "from_")):
            return False
        table = query.args["from_"].this if query.args.get("from_") is not None else None
        measured = self.measured.get(table.name) if isinstance(table, exp.Table) else None
        outputs = measured.question.plan.outputs if measured is not None else ()
        plain = not any(one.find(exp.Unnest, exp.AggFunc, exp.Window) for one in query.expressions)
        return plain and bool(outputs) and not any(one.kind is OutputKind.KEY for one in outputs)

    def _looked_up(self, node: exp.Select) -> None:
        """Writes joins of rows with an answer as lookups, where they only keep the rows with some of its keys: JOIN (…)
        AS top ON x = top.x becomes x IN (SELECT x FROM (…) AS top). The answer has one row for each key."""
        for join in list(node.args.get("joins") or []):
            item, on = join.this, join.args.get("on")
            while isinstance(on, exp.Paren):
                on = on.this
            if not isinstance(item, exp.Subquery) or not item.alias or not isinstance(on, exp.EQ):
                continue
            key = self._only_key(item.this)
            if key is None or str(join.args.get("kind") or "").upper() not in ("", "INNER") or join.args.get("method"):
                continue
            given = {one.casefold() for one in _visible(item)}
            named = [
                one
                for one in _columns_of(node)
                if (one.table or item.alias).casefold() == item.alias.casefold() and one.name.casefold() in given
            ]
            sides = [side for side in (on.this, on.expression) if side in named and side.name.casefold() == key]
            if join.args.get("side") or join.args.get("using") or len(named) != 1 or len(sides) != 1:
                continue
            other = on.expression if sides[0] is on.this else on.this
            shown = exp.column(sides[0].name, table=item.alias, quoted=True)
            keys = exp.Select(expressions=[shown], from_=exp.From(this=item.copy()))
            node.set("joins", [one for one in node.args["joins"] if one is not join])
            node.where(exp.In(this=other.copy(), query=exp.Subquery(this=keys)), copy=False)

    def _only_key(self, node: exp.Expr) -> str | None:
        """What a query over one measured table calls the only key of that: it has one row for each value."""
        source = node.args.get("from_") if isinstance(node, exp.Select) and not node.args.get("joins") else None
        name = source.this.name if source is not None and isinstance(source.this, exp.Table) else ""
        if name not in self.measured or any(one.find(exp.Unnest, exp.Query) for one in node.expressions):
            return None
        keys = [one for one in self.measured[name].question.plan.outputs if one.kind is OutputKind.KEY]
        shown = [one.alias for one in node.expressions if len(keys) == 1 and one.unalias().name == keys[0].name]
        plain = [one for one in node.expressions if isinstance(one.unalias(), exp.Column)]
        found = [one.alias.casefold() for one in plain if one.alias in shown]
        return found[0] if len(keys) == len(found) == 1 else None

    def _source(self, item: exp.Expr, names: Names) -> _QueryKind:
        if isinstance(item, exp.Lateral):
            fix = "write the subquery in FROM by itself, and join what it gives"
            raise QuestionError("join", "LATERAL cannot be used", where="LATERAL", fix=fix)
        if isinstance(item, exp.Subquery):
            inner = item.this
            if isinstance(inner, exp.Table):
                kinds = [self._source(one, names) for one in (inner, *[join.this for join in _joins(inner)])]
                return next(
                    (kind for kind in (_QueryKind.ROWS, _QueryKind.RELEASED) if kind in kinds), _QueryKind.PUBLIC
                )
            kind, inner = self._query(inner, names)
            item.set("this", inner)
            return kind
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            if item.name in self.measured or item.name in self.groups:
                return _QueryKind.RELEASED
            named = names.get(item.name.casefold())
            if named is not None:
                return named.kind
            table = self.declaration.table(item.name)
            if table is None:
                raise unknown_name(item.name, list(self.declaration.tables), kind="table", where="FROM")
            return _QueryKind.PUBLIC if table.public else _QueryKind.ROWS
        if isinstance(item, exp.Table):
            fix = "write FROM " + " or ".join(list(self.declaration.tables)[:10])
            raise QuestionError("source", "this table is not declared", where="FROM", fix=fix)
        return _QueryKind.PUBLIC  # a list of constants, as UNNEST makes one: the outer query's allow-list reads it

    def _beside(self, holder: exp.Expr, names: Names) -> _QueryKind:
        """A subquery in an expression of the outer query."""
        place = "query" if isinstance(holder, exp.In) else "this"
        inner = holder.args[place]
        leans = self._leans_out(inner, names)
        try:
            kind, inner = self._query(inner, names)
        except QuestionError:
            if leans:
                raise _leaning() from None
            raise
        if kind is _QueryKind.ROWS:
            message = "a subquery reads rows of people beside an answer"
            raise QuestionError("subquery", message, where="subquery", fix="aggregate in it: (SELECT COUNT(*) FROM …)")
        if kind is _QueryKind.RELEASED and isinstance(holder, exp.Subquery) and not leans:
            self._one_row(inner, names)
        holder.set(place, inner)
        return kind

    def _within_rows(self, holder: exp.Expr, names: Names) -> None:
        """A subquery in an expression on rows of people: what it releases becomes a constant; what reads rows stays."""
        place = "query" if isinstance(holder, exp.In) else "this"
        inner = holder.args[place]
        if self._leans_out(inner, names):
            return
        kind, inner = self._query(inner, names)
        if kind is _QueryKind.ROWS or (isinstance(holder, exp.In) and kind is _QueryKind.PUBLIC):
            holder.set(place, inner)
            return
        if isinstance(holder, exp.Exists):
            fix = "write (SELECT COUNT(*) FROM …) > 0"
            raise QuestionError("subquery", "EXISTS cannot be used with an answer", where="EXISTS", fix=fix)
        name, many = self.own("value"), isinstance(holder, exp.In)
        inner = inner.unnest() if isinstance(inner, exp.Subquery) else inner
        if kind is _QueryKind.RELEASED and not many:
            self._one_row(inner, names)
        _attach(inner, names, released=True)
        self.values[name] = ReleasedValue(cast(exp.Query, inner), many)
        if many:
            holder.set("query", None)
            holder.set("expressions", [exp.Placeholder(this=name)])
        else:
            holder.replace(exp.Placeholder(this=name))

    def _one_row(self, query: exp.Expr, names: Names) -> None:
        """Refuses a query that is compared with and gives several rows, as far as that is known beforehand."""
        own = {one.alias.casefold(): cast(exp.Query, one.this) for one in query.find_all(exp.CTE)}
        own = {**{name: one.tree for name, one in names.items()}, **own}

        def named(name: str) -> exp.Query | None:
            return own.get(name.casefold())

        def wheres(name: str) -> bool:
            return name in self.measured and self.measured[name].tree.args.get("where") is not None

        plans = {name: one.question.plan for name, one in self.measured.items()}
        if not one_row(query, plans, named, _of_all_rows) and not picks(query, wheres, named):
            raise several_rows()

    def _leans_out(self, node: exp.Expr, names: Names) -> bool:
        """Whether a subquery reads columns of the query around it."""
        for query in node.find_all(exp.Select):
            aliases, columns, known = set[str](), set[str](), True
            at: exp.Expr | None = query
            while at is not None:
                if isinstance(at, exp.Select):
                    for item in _sources(at):
                        aliases.add((item.alias or item.name).casefold())
                        table = self.declaration.table(item.name) if isinstance(item, exp.Table) else None
                        if table is None or item.name.casefold() in names:
                            known = False
                        else:
                            columns |= {column.name.casefold() for column in table.columns}
                if at is node:
                    break
                at = at.parent
            own = {one.alias.casefold() for one in query.expressions if isinstance(one, exp.Alias)}
            for column in query.find_all(exp.Column):
                if column.find_ancestor(exp.Select) is not query:
                    continue
                if column.table and column.table.casefold() not in aliases:
                    return True
                if known and not column.table and column.name.casefold() not in columns | own:
                    return True
        return False

    def _by_person(self, node: exp.Select, names: Names) -> bool:
        """Whether the person is among what a SELECT groups by: then each of its rows is of one person."""
        return about_persons(
            RelationReader(self.declaration, self.public_values, select), node, self.scope(node, names)
        )

    # names and prices

    def scope(self, node: exp.Select, names: Names) -> Scope:
        """What the names of a SELECT about people mean."""
        bare = exp.Select(
            **{name: node.args[name] for name in ("from_", "joins", "where") if node.args.get(name)}
        ).copy()
        _attach(bare, names)

        def read(tree: exp.Select) -> Scope:
            reader = RelationReader(self.declaration, self.public_values, select)
            return reader.scope(tree, named_queries(tree, {}))

        return self._tried(bare, read)[0]

    def own(self, word: str) -> str:
        """A name that stands nowhere in the question or the declaration."""
        names = (f"{word}_{number}" for number in itertools.count(1))
        name = next(one for one in names if one.casefold() not in self.taken)
        self.taken.add(name.casefold())
        return name

    def _amount(self, name: str) -> Fraction | None:
        """The price that the outer query's clause names, where it is no measured table's own."""
        if self.clause is None:
            return None
        values = options_of(self.clause)
        return amount(values[name], name) if name in values else None

    def options(self, own: exp.Expr | None) -> DifferentialPrivacy | None:
        """The clause of a measured table: its own, else the outer query's limits of contributions."""
        if own is not None or self.clause is None:
            return own  # type: ignore[return-value]
        rest = [
            option.copy()
            for option in self.clause.expressions
            if not (isinstance(option, exp.EQ) and option.this.name.lower() in ("epsilon", "delta"))
        ]
        return DifferentialPrivacy(expressions=rest)

    def add(self, tree: exp.Select) -> str:
        """Measures a table, once for all that are equal. Gives its name."""
        text = text_of(tree)
        for one in self.measured.values():
            if one.text == text:
                return one.name
        name = self.own("measured")
        question, stand_ins = self._lowered(tree)
        self.measured[name] = MeasuredTable(name, tree, question, stand_ins)
        return name

    def declared_groups(self, tree: exp.Select) -> DeclaredGroups | None:
        """The groups of a SELECT without aggregates, where all are declared, or come of public tables: no row is read
        for them. None where some are private."""
        counted = tree.copy().select(exp.alias_(exp.Count(this=exp.Star(), big_int=True), self.own("rows")))
        plan = self._lowered(counted)[0].plan
        if any(key.values is None for key in plan.keys):
            return None
        keys = [output for output in plan.outputs if output.kind is OutputKind.KEY]
        rows = [tuple(key.shown(group[key.index]) for key in keys) for group in public_groups(plan.keys, plan.root)]
        return DeclaredGroups(tuple((key.name, key.type_of(plan.keys[key.index])) for key in keys), tuple(rows))

    def _lowered(self, tree: exp.Select) -> tuple[Question, Mapping[str, Value]]:
        return self._tried(
            tree, lambda one: lower_tree(one, self.declaration, self.public_values, released=one is not tree)
        )

    def _tried(self, tree: exp.Select, read: Callable[[exp.Select], _Read]) -> tuple[_Read, Mapping[str, Value]]:
        """A tree, read with stand-ins for values that are not released yet: the first that it can be read with."""
        holes = list(dict.fromkeys(one.name for one in tree.find_all(exp.Placeholder)))
        if not holes:
            return read(tree), {}
        first: QuestionError | None = None
        stand_ins = list({(type(one), one): one for one in _stand_ins(tree, self.declaration)}.values())
        for tried in itertools.islice(itertools.product(stand_ins, repeat=len(holes)), _MOST_TRIED):
            found = dict(zip(holes, tried, strict=True))
            try:
                return read(_filled(tree, {name: (one,) for name, one in found.items()}, found)), found
            except QuestionError as error:
                first = first or error
        assert first is not None
        raise first


class _MeasuredSelect:
    """One SELECT that puts rows of several persons together."""

    def __init__(self, splitter: _Splitter, node: exp.Select, names: Names) -> None:
        known_clauses(node, (*CLAUSES, "distinct", "qualify", "offset"), INSTEAD)
        if (distinct := node.args.get("distinct")) is not None:
            only(distinct, fix="write SELECT DISTINCT a, b")
        self.splitter = splitter
        self.node = node
        self.names = names
        for holder in _nested(node, rows=True):
            splitter._within_rows(holder, names)
        self.scope = splitter.scope(node, names)
        self.reader = ExpressionReader(self.scope.read, self.scope.shape.by_name)
        self.keys: dict[Expression, str] = {}
        self.grouped: dict[str, exp.Expr] = {}
        self.types: dict[str, Type | None] = {}
        self.absent: dict[str, str] = {}
        self.columns: list[exp.Expr] = []
        self.taken: set[str] = set()
        self.aggregates: dict[str, str] = {}
        self.several = False
        self.levels = 1
        self.source = exp.to_identifier("measured", quoted=True)
        self.aliases = {one.alias.casefold(): one.this for one in node.expressions if isinstance(one, exp.Alias)}

    def wrapped(self) -> exp.Select:
        """The outer query in the place of this SELECT, which reads the measured table."""
        node = self.node
        groups = self._groups()
        self.several = len(groups) > 1
        self.levels = len({tuple(names) for names in groups})
        expressions = [self._item(one) for one in node.expressions]
        outer = exp.Select(expressions=expressions)
        for clause in ("having", "qualify"):
            if (condition := node.args.get(clause)) is not None:
                lifted = self._lifted(condition.this, clause)
                outer.set(
                    *(
                        ("where", exp.Where(this=lifted))
                        if clause == "having"
                        else ("qualify", exp.Qualify(this=lifted))
                    )
                )
        if (order := node.args.get("order")) is not None:
            outer.set("order", self._lifted(order, "order"))
        for clause in ("limit", "offset", "distinct", "with_"):
            if (value := node.args.get(clause)) is not None:
                outer.set(clause, value.copy())
        for holder in _nested(outer):
            self.splitter._beside(holder, self.names)
        alias = exp.TableAlias(this=self.source.copy())
        if len(groups) == 1:
            outer.set("from_", exp.From(this=exp.Table(this=self._measured(groups[0]), alias=alias)))
        else:
            outer.set("from_", exp.From(this=exp.Subquery(this=self._levels(groups), alias=alias)))
        return outer

    def _levels(self, groups: Sequence[Sequence[str]]) -> exp.Expr:
        """One measured table below the other, one for each list of GROUP BY: NULL stands for a key that a list has
        not, and beside it 1, where GROUPING asks for that."""
        levels: list[exp.Expr] = []
        for names in groups:
            items: list[exp.Expr] = [
                exp.column(name, quoted=True)
                if name in names
                else exp.cast(exp.null(), _COLUMN_TYPES[self.types[name]])
                for name in self.grouped
            ]
            items = [exp.alias_(item, name, quoted=True) for item, name in zip(items, self.grouped, strict=True)]
            items += [
                exp.alias_(exp.Literal.number(int(key not in names)), flag, quoted=True)
                for key, flag in self.absent.items()
            ]
            items += [exp.column(name, quoted=True) for name in self.aggregates.values()]
            level = exp.Select(expressions=items)
            if names or self.aggregates:
                level.set("from_", exp.From(this=exp.Table(this=self._measured(names))))
            levels.append(level)
        return reduce(lambda one, other: exp.Union(this=one, expression=other, distinct=False), levels)

    def _groups(self) -> list[list[str]]:
        """What is grouped by, each under a name of its own: the names of each list of GROUP BY."""
        node = self.node
        group = node.args.get("group")
        lists: list[list[exp.Expression]] = [[]]
        if group is not None:
            if group.args.get("totals"):
                fix = "write GROUP BY ROLLUP (a, b), or GROUPING SETS ((a, b), ())"
                raise QuestionError("clause", "WITH TOTALS cannot be used", where="GROUP BY", fix=fix)
            lists = [[group_item(node, one, self.scope) for one in items] for items in grouping_sets(group)]
        if (group is not None and group.args.get("all")) or (
            group is None
            and not any(
                _aggregated(one) for one in (*node.expressions, node.args.get("having"), node.args.get("order"))
            )
        ):
            lists = [[*items, *(one.unalias() for one in node.expressions if not _aggregated(one))] for items in lists]
        named = [set(map(self._key, filter(_no_constant, items))) for items in lists]
        return [[name for name in self.grouped if name in names] for names in named]  # (a, b) and (b, a) are one table

    def _key(self, item: exp.Expression) -> str:
        """The name under which an item of GROUP BY is measured."""
        read = normal(self.reader.read(item))
        if read not in self.keys:
            name = self._called(self._given(item) or (item.name if isinstance(item, exp.Column) else "key"))
            self.keys[read] = name
            self.grouped[name] = item.copy()
            self.types[name] = read.type
        return self.keys[read]

    def _given(self, item: exp.Expr) -> str:
        """What the list calls an expression, where it names it."""
        return next((one.alias for one in self.node.expressions if isinstance(one, exp.Alias) and one.this == item), "")

    def _called(self, wanted: str) -> str:
        name = next(one for one in numbered(wanted) if one.casefold() not in self.taken)
        self.taken.add(name.casefold())
        return name

    def _item(self, node: exp.Expr) -> exp.Expr:
        """One item of the list, on the measured table."""
        inner = node.unalias()
        if isinstance(inner, exp.Star | exp.Column) and inner.is_star:
            fix = "name the grouped columns and the aggregates"
            raise QuestionError(
                "star", "all columns at once cannot be asked for beside groups", where="SELECT", fix=fix
            )
        lifted = self._lifted(inner, "select", alias=node.alias if isinstance(node, exp.Alias) else "")
        name = node.alias or (lifted.name if isinstance(lifted, exp.Column) else _plain_name(inner))
        return exp.alias_(lifted, name, quoted=True)

    def _ref(self, name: str) -> exp.Column:
        return exp.Column(this=exp.to_identifier(name, quoted=True), table=self.source.copy())

    def _lifted(self, node: exp.Expr, clause: str, *, alias: str = "", inside: bool = False) -> exp.Expr:
        """An expression with the measured table's columns in the place of keys and aggregates."""
        if isinstance(node, exp.Query):
            return node.copy()
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        if _is_aggregate(node) and not inside:
            return self._ref(self._aggregate(node, alias))
        if not _aggregated(node) and not isinstance(node, exp.Order | exp.Ordered | exp.Literal):
            try:
                key = self.keys.get(normal(self.reader.read(cast(exp.Expression, node))))
            except QuestionError:
                key = None
            if key is not None:
                return self._ref(key)
        if isinstance(node, exp.Column):
            if not node.table and node.name.casefold() in self.aliases and clause != "select":
                named = self.aliases[node.name.casefold()]
                if clause == "order":
                    return node.copy()
                return exp.paren(self._lifted(named, "select"))
            self.scope.read(node)
            if clause == "select":
                fix = (
                    f"add {node.name} to GROUP BY and count with COUNT(*), or aggregate it; single rows are never shown"
                )
                message = f"{node.name} is neither grouped nor aggregated"
                raise QuestionError("ungrouped", message, where="SELECT", fix=fix)
            fix = f"put {node.name} into GROUP BY, or conditions on it into WHERE"
            message = f"{node.name} is a column of single rows, not of the answer"
            raise QuestionError("unknown-column", message, where="the answer", fix=fix)
        made = node.copy()
        for name, value in list(node.args.items()):
            window = isinstance(node, exp.Window) and name == "this"
            if isinstance(value, exp.Expr):
                made.set(
                    name,
                    self._lifted(
                        value,
                        clause,
                        inside=window
                        or (
                            inside
                            and isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls)
                            and name == "this"
                        ),
                    ),
                )
            elif isinstance(value, list):
                made.set(name, [self._lifted(one, clause) if isinstance(one, exp.Expr) else one for one in value])
        return made

    def _grouping(self, node: exp.Expr) -> exp.Expr:
        """GROUPING(a, b): 1 for each that the row is not grouped by, as the digits of a binary number."""
        made: exp.Expr | None = None
        for one in node.expressions:
            try:
                key = self.keys.get(
                    normal(self.reader.read(group_item(self.node, cast(exp.Expression, one), self.scope)))
                )
            except QuestionError:
                key = None
            if key is None:
                fix = "write GROUPING(a) with an item of GROUP BY"
                raise QuestionError("grouping", f"{place(one)} is not in GROUP BY", where="GROUPING", fix=fix)
            if key not in self.absent:
                self.absent[key] = self._called(f"grouping_{key}")
            digit: exp.Expr = self._ref(self.absent[key]) if self.several else exp.Literal.number(0)
            made = (
                digit
                if made is None
                else exp.paren(exp.Add(this=exp.Mul(this=exp.Literal.number(2), expression=made), expression=digit))
            )
        if made is None:
            raise QuestionError("grouping", "GROUPING needs a column", where="GROUPING", fix="write GROUPING(a)")
        return made

    def _aggregate(self, node: exp.Expr, alias: str) -> str:
        text = text_of(node)
        if text not in self.aggregates:
            name = self._called(alias or _plain_name(node))
            self.aggregates[text] = name
            self.columns.append(exp.alias_(node.copy(), name, quoted=True))
        return self.aggregates[text]

    def _measured(self, names: Sequence[str]) -> exp.Identifier:
        """The table that is measured for groups of these names."""
        node = self.node
        groups = [self.grouped[name] for name in names]
        keys = [exp.alias_(one.copy(), name, quoted=True) for one, name in zip(groups, names, strict=True)]
        tree = exp.Select(expressions=[*keys, *(one.copy() for one in self.columns)])
        for clause in ("from_", "joins", "where"):
            if (value := node.args.get(clause)) is not None:
                tree.set(clause, [one.copy() for one in value] if isinstance(value, list) else value.copy())
        if groups:
            tree.set("group", exp.Group(expressions=[one.copy() for one in groups]))
        if (hint := self.splitter.options(node.args.get("hint"))) is not None:
            tree.set("hint", _part(hint, self.levels))
        _attach(tree, self.names)
        if not self.aggregates:
            found = self.splitter.declared_groups(tree)
            if found is not None:
                name = self.splitter.own("groups")
                self.splitter.groups[name] = found
                return exp.to_identifier(name, quoted=True)
        return exp.to_identifier(self.splitter.add(tree), quoted=True)


_COLUMN_TYPES: Mapping[Type | None, str] = {
    Type.TEXT: "text",
    Type.INTEGER: "bigint",
    Type.NUMBER: "double",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
"""What a key's NULL is cast to, where a level has not the key."""


def _part(clause: DifferentialPrivacy, count: int) -> DifferentialPrivacy:
    """The clause for one of several measured tables, which share the price that it names in equal parts."""
    made = clause.copy()
    for option in made.expressions if count > 1 else ():
        name = option.this.name.lower() if isinstance(option, exp.EQ) else ""
        if name in ("epsilon", "delta"):
            whole = amount(option.expression, name)
            if whole > 0:  # any other is refused where it is read
                part = floor(whole / count, 6)
                option.set("expression", exp.Literal.number(str(Decimal(part.numerator) / part.denominator)))
    return made


def _no_constant(item: exp.Expression) -> bool:
    return not isinstance(item, exp.Literal)


def _leaning() -> QuestionError:
    """The error for a measured table that is not closed."""
    message = "a subquery about people reads a column of the query around it"
    fix = "group the subquery by that column, and join it in FROM"
    return QuestionError("correlated", message, where="subquery", fix=fix)


def _sources(node: exp.Expr) -> list[exp.Expr]:
    """What a SELECT reads, each item of FROM."""
    source = node.args.get("from_")
    if source is None:
        return []
    return [source.this, *(join.this for join in [*_joins(node), *_joins(source.this)])]


def _always(join: exp.Join) -> bool:
    """Whether a join has no condition that could fail."""
    on = join.args.get("on")
    side = str(join.args.get("side") or "").upper()
    true = isinstance(on, exp.Boolean) and on.this is True
    return side in ("", "LEFT") and (on is None or true)


def _columns_of(node: exp.Select) -> list[exp.Column]:
    """The columns that a SELECT itself names, not those of its subqueries."""
    inside = {id(one) for query in node.find_all(exp.Select) if query is not node for one in query.find_all(exp.Column)}
    return [one for one in node.find_all(exp.Column) if id(one) not in inside]


def _joins(node: exp.Expr) -> list[exp.Expr]:
    return list(node.args.get("joins") or []) + [exp.Join(this=one) for one in node.args.get("laterals") or []]


def _nested(node: exp.Select, *, rows: bool = False) -> list[exp.Expr]:
    """What holds a subquery in the expressions of a SELECT itself: IN, EXISTS, or the subquery's own brackets. With
    `rows` only where rows are read: in WHERE, in conditions of joins, and inside aggregates."""
    found: list[exp.Expr] = []

    def walk(one: Any, *, wanted: bool) -> None:
        if isinstance(one, exp.In) and one.args.get("query") is not None:
            if wanted:
                found.append(one)
            walk(one.this, wanted=wanted)
            return
        if isinstance(one, exp.Exists | exp.Subquery) and isinstance(one.this, exp.Query):
            if wanted:
                found.append(one)
            return
        if isinstance(one, exp.Query) and one is not node:
            return
        if isinstance(one, exp.Expr):
            for value in one.args.values():
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, exp.Expr):
                        walk(item, wanted=wanted or _is_aggregate(one))

    for name, value in node.args.items():
        if name in ("from_", "with_"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                walk(item.args.get("on"), wanted=True)
            elif isinstance(item, exp.Expr):
                walk(item, wanted=not rows or name in ("where", "group"))
    return found


def _is_aggregate(node: Any) -> bool:
    """Whether a node is an aggregate as a whole, with what stands behind it."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return _is_aggregate(node.this)
    return isinstance(node, exp.AggFunc)


def _aggregated(node: exp.Expr | None) -> bool:
    """Whether an expression has an aggregate of the SELECT that it stands in."""
    if node is None or isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        inside = list(function.iter_expressions())
        rest = [one for one in node.iter_expressions() if one is not node.this]
        return any(_aggregated(one) for one in (*inside, *rest))
    if _is_aggregate(node):
        return True
    return any(_aggregated(one) for one in node.iter_expressions())


def _of_all_rows(node: exp.Select) -> bool:
    """Whether a SELECT without groups is of one row, since it has aggregates."""
    parts = [*node.expressions, node.args.get("having"), node.args.get("order")]
    return any(_aggregated(one) for one in parts)


def _puts_together(node: exp.Select) -> bool:
    """Whether a SELECT puts rows together."""
    parts = [*node.expressions, node.args.get("having"), node.args.get("order"), node.args.get("qualify")]
    return bool(node.args.get("group") or node.args.get("distinct") or any(_aggregated(one) for one in parts))


def _attach(tree: exp.Expr, names: Names, *, released: bool = False) -> None:
    """Gives a query the named queries that it reads, in their order: of a measured table those that are not released,
    of a query on answers those that are no rows."""
    other = _QueryKind.ROWS if released else _QueryKind.RELEASED
    wanted = set[str]()

    def reach(node: exp.Expr, known: Names) -> None:
        for one in node.find_all(exp.Table):
            name = one.name.casefold()
            if name in known and name not in wanted and known[name].kind is not other:
                wanted.add(name)
                reach(known[name].tree, known[name].before)

    reach(tree, names)
    kept = [exp.CTE(this=one.tree.copy(), alias=one.alias.copy()) for name, one in names.items() if name in wanted]
    if kept:
        own = tree.args.get("with_")
        tree.set("with_", exp.With(expressions=[*kept, *(own.expressions if own is not None else [])]))


def _filled(
    tree: exp.Select, known: Mapping[str, Sequence[Value | None]], stand_ins: Mapping[str, Value]
) -> exp.Select:
    """A tree with values in the places of its placeholders. Where there is no value, NULL of its stand-in's type: a
    comparison with it is true of no row, as in SQL."""
    tree = tree.copy()
    for hole in list(tree.find_all(exp.Placeholder)):
        found = known.get(hole.name)
        if found is None:
            continue
        literals = [exp.null() if one is None else _literal(one) for one in found]
        if not isinstance(hole.parent, exp.In):
            missing = call("NULLIF", *(cast(exp.Expression, _literal(stand_ins[hole.name])) for _ in range(2)))
            hole.replace(missing if not found or found[0] is None else literals[0])
        elif literals:
            hole.parent.set("expressions", literals)
        else:  # it is in no list without values, NULL neither
            hole.parent.replace(exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0)))
    return tree


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, Fraction | float):
        near = min(max(float(value), -_FAR), _FAR)
        text = repr(near if abs(near) > 1 / _FAR else 0.0)
        negative = text.startswith("-")
        number = exp.Literal.number(text.lstrip("-"))
        return exp.Neg(this=number) if negative else number
    if isinstance(value, datetime.date):
        kind = "timestamp" if isinstance(value, datetime.datetime) else "date"
        return exp.cast(exp.Literal.string(str(value)), kind)
    return exp.convert(value)


_FAR = 1e299
"""A number further from 0 is compared as if it were this: constants are no larger."""
_MOST_TRIED = 200
"""How many combinations of stand-ins are tried."""


def _stand_ins(tree: exp.Select, declaration: Declaration) -> Iterator[Value]:
    """Values that a released one may be like, of each type."""
    yield 1
    tables = [declaration.table(one.name) for one in tree.find_all(exp.Table)]
    for table in tables:
        for column in table.columns if table is not None else ():
            low, high = column.minimum, column.maximum
            if isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
                yield (Fraction(low) + Fraction(high)) / 2
    yield datetime.date(2000, 1, 1)
    yield datetime.datetime(2000, 1, 1)
    for table in tables:
        for column in table.columns if table is not None else ():
            yield from (column.values or ())[:1]
    yield ""
    yield True


def _named_once(tree: exp.Expr) -> None:
    """Refuses two columns of the answer that the question gives one name."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    items = tree.expressions if isinstance(tree, exp.Select) else []
    given = [one.alias_or_name.casefold() for one in items if isinstance(one, exp.Alias | exp.Column)]
    given = [name for name in given if name != "*"]
    if len(set(given)) < len(given):
        raise QuestionError("names", "two columns of the answer have one name", where="SELECT", fix="name them with AS")


def _places(node: exp.Select) -> None:
    """Refuses ORDER BY 3 where there are two columns."""
    star = any(one.find(exp.Star) for one in node.expressions if not _aggregated(one))
    order = node.args.get("order")
    for one in order.expressions if order is not None and not star else ():
        place = one.this
        number = isinstance(place, exp.Literal) and not place.is_string and place.name.isdecimal()
        if number and not 1 <= int(place.name) <= len(node.expressions):
            message = f"there is no column {int(place.name)}"
            raise QuestionError("position", message, where="ORDER BY", fix="name the column")


def stand_in(kind: str, number: int = 0) -> Value:
    """A value of a type, as the engine of outer queries names it; one of two."""
    known: dict[str, tuple[Value, Value]] = {
        "integer": (1, 12345),
        "number": (Fraction(3, 2), Fraction(24691, 2)),
        "boolean": (True, False),
        "date": (datetime.date(2000, 1, 1), datetime.date(2020, 1, 1)),
        "timestamp": (datetime.datetime(2000, 1, 1), datetime.datetime(2020, 1, 1)),
    }
    return known.get(kind, ("", "x"))[number]


def _visible(tree: exp.Expr) -> Iterator[str]:
    """What the columns of a query are called, as they are written; empty where its tables name them."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    for node in tree.expressions if isinstance(tree, exp.Select) else ():
        inner = node.unalias()
        star = isinstance(inner, exp.Star | exp.Column) and inner.is_star
        yield "*" if star else node.alias if isinstance(node, exp.Alias) else _plain_name(inner)


def _plain_name(node: exp.Expr) -> str:
    """What a column without a name is called."""
    if isinstance(node, exp.Column):
        return node.name
    if _is_aggregate(node):
        function, of = called_after(cast(exp.Expression, node))
        return f"{function}_{of.name}" if isinstance(of, exp.Column) and not of.is_star else function
    if isinstance(node, exp.Window):
        return _plain_name(node.this) if not _is_aggregate(node.this) else type(node.this).__name__.lower()
    if isinstance(node, exp.Cast | exp.Paren):
        return _plain_name(node.this)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous | Statistic | exp.Case):
        return node.sql_name().lower()
    return "value"
