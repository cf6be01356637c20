"""FROM, JOIN, subqueries and WITH: from trees to relations in which every row about a person keeps its person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.errors import QuestionError
from discreet.plan.planner import MAXIMUM_CELLS
from discreet.sql.expressions import ExpressionReader
from discreet.sql.joining import JoinCondition, conditions_of, is_true, kept_public, parts, sound, together
from discreet.sql.refusals import only, refused, spelled_as_declared, unknown_name, written_name
from discreet.sql.scope import NamedTable, Scope
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression
from discreet.trusted.ring_a.table import Column, Relation, Table, Type, Value
from discreet.trusted.ring_b.belonging import declared, leads
from discreet.trusted.ring_b.relations import (
    Computed,
    Joined,
    JoinKind,
    ListedKeys,
    PerPerson,
    RelationShape,
    Renamed,
    Stacked,
    columns_of,
    conjuncts,
    depth,
    shape,
)

PublicValues = Callable[[Relation], Sequence[tuple[Value, ...]]]
"""The values of the only column of a public relation."""


@dataclass(frozen=True)
class Query:
    """A query that WITH names, and those that it may read itself: the ones before it. `columns` are the names that WITH
    gives its columns, if it does."""

    tree: exp.Expression
    before: Mapping[str, Query]
    columns: tuple[str, ...] = ()


Queries = Mapping[str, Query]
Select = Callable[["RelationReader", exp.Select, Queries], Relation]
"""Reads an inner SELECT into a relation."""

_BESIDE_TABLES = {"sample": "TABLESAMPLE", "pivots": "PIVOT", "version": "FOR VERSION", "when": "FOR TIME"}
"""What may stand behind a table's name, and is not read."""

MOST_TABLES = 16
"""How many tables a question may read, each as often as it is named."""

DEEPEST = 60
"""How deeply SELECTs may stand in each other in the engine."""


class RelationReader:
    """Reads what stands below a question's groups. Counts the tables, so that no question explodes.

    `select` reads a SELECT in FROM, which has a FROM of its own. With `released`, constants of the question were
    released: whoever asks did not write them.
    """

    def __init__(
        self, declaration: Declaration, values: PublicValues | None, select: Select, *, released: bool = False
    ) -> None:
        self.declaration = declaration
        self.released = released
        self.select = select
        self.values = values
        self.count = self.lookups = 0
        self._read_ahead: dict[int, tuple[exp.Expression, Scope]] = {}

    # FROM

    def scope(self, tree: exp.Select, queries: Queries) -> Scope:
        """What FROM and the JOINs of a SELECT give."""
        source = tree.args.get("from_")
        if source is None:
            raise QuestionError("clause", "a table is missing", where="FROM", fix=self._tables_fix())
        where = tree.args.get("where")
        asked = parts(where.this) if where is not None else []
        found = self._sources(source.this, tree.args.get("joins") or [], asked, queries)
        if depth(found.relation) > DEEPEST:
            raise QuestionError("syntax", "this is nested too deeply", where="FROM", fix="ask something simpler")
        return found

    def _sources(
        self, first: exp.Expression, joins: Sequence[exp.Join], where: Sequence[exp.Expression], queries: Queries
    ) -> Scope:
        """Tables and their joins; `where` are conditions that may join tables too."""
        looked_up = [join for join in joins if _kind(join) in ("semi", "anti")]
        if looked_up:
            joins = [join for join in joins if join not in looked_up]
            if any(_side(join) in ("right", "full") for join in joins):
                fix = "write EXISTS (SELECT 1 FROM … WHERE …) in a subquery"
                raise QuestionError("join", "SEMI and ANTI joins stand with inner and LEFT ones", where="JOIN", fix=fix)
            found = self._sources(first, joins, where, queries)
            return replace(found, further=(*found.further, *(_as_exists(join, found) for join in looked_up)))
        if not joins:
            return self.item(first, queries)
        items = [self._prefixed(self.item(first, queries))]
        for join in joins:
            _known_join(join)
            items.append(self._prefixed(self.item(join.this, queries)))
            _other_alias(items)
        inner = [_inner(join) for join in joins]
        if not any(map(_alone, joins)):
            try:
                return self._chain(items, joins)
            except QuestionError as error:
                if error.code != "join" or not where or not all(inner):
                    raise
                try:
                    return self._pool(items, joins, where, place="JOIN")
                except QuestionError:
                    raise error from None
        if all(inner):
            return self._pool(items, joins, where, place="WHERE")
        units: list[Scope] = []
        for start, stop in _runs(joins):
            units.append(self._chain(items[start:stop], joins[start : stop - 1]))
        return self._pool(units, [], where, place="WHERE")

    def _chain(self, items: Sequence[Scope], joins: Sequence[exp.Join]) -> Scope:
        """Tables joined one after another, as they stand."""
        found, *others = items
        for join, right in zip(joins, others, strict=True):
            found = self._join(found, join, right)
        return found

    def _pool(
        self, units: Sequence[Scope], joins: Sequence[exp.Join], where: Sequence[exp.Expression], *, place: str
    ) -> Scope:
        """Tables in inner joins alone: whatever ON or WHERE compares joins them, in whichever order."""
        if len(units) == 1:
            return units[0]
        every = reduce(lambda left, right: Joined(JoinKind.INNER, left, right, None), [one.relation for one in units])
        merged = {name: one for unit in units for name, one in unit.merged.items()}
        whole = Scope(every, tuple(source for unit in units for source in unit.sources), merged)
        reader = ExpressionReader(whole.read, whole.shape.by_name)
        asked: list[JoinCondition] = []
        for join in joins:
            for part in parts(join.args["on"]) if join.args.get("on") is not None else ():
                _no_subquery(part)
                asked.append(JoinCondition(reader.boolean(part)))
        asked = [one for one in asked if not is_true(one.expression)]
        found, met = together(units, [*asked, *conditions_of(reader, where)], place=place)
        return replace(found, met=tuple(one.met for one in met if one.met is not None))

    def item(self, node: exp.Expression, queries: Queries) -> Scope:
        """One table, subquery or name of WITH; or tables joined in brackets."""
        if (known := self._read_ahead.pop(id(node), None)) is not None:
            return known[1]
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
            return self._bracket(node, queries)
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias", fix="write (SELECT …) AS name")
            return _aliased(self.query(node.this, queries), node, "subquery")
        if isinstance(node, exp.Lateral) or (isinstance(node, exp.Table) and isinstance(node.this, exp.Lateral)):
            fix = "write the condition in ON: JOIN (SELECT … GROUP BY key) AS name ON name.key = other.key"
            raise QuestionError("join", "LATERAL reads one row at a time of another table", where="LATERAL", fix=fix)
        if isinstance(node, exp.Values | exp.Unnest):
            fix = "have the owner declare a public table with these rows, or write CASE and IN (1, 2) for them"
            raise QuestionError("source", "rows cannot be written into FROM", where=node.key.upper(), fix=fix)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QuestionError("source", "this table is not declared", where="FROM", fix=self._tables_fix())
        for name, value in node.args.items():
            if value not in (None, False, [], "") and name in _BESIDE_TABLES:
                word = _BESIDE_TABLES[name]
                raise QuestionError("not-allowed", f"{word} cannot be used here", where=word, fix=self._tables_fix())
        only(node, "this", "alias", fix=self._tables_fix())
        named = queries.get(node.name.casefold())
        if named is not None:
            return _aliased(self.query(named.tree, named.before), node, node.name, named.columns)
        table = self.declaration.table(node.name)
        if table is None:
            raise unknown_name(node.name, list(self.declaration.tables), kind="table", where="FROM")
        return _aliased(self.base(table), node, table.name)

    def ahead(self, node: exp.Expression, queries: Queries) -> Scope:
        """The same, for whoever has to know the names in a FROM before it is read: then it is not read again."""
        found = self.item(node, queries)
        self._read_ahead[id(node)] = (node, found)
        return found

    def _bracket(self, node: exp.Subquery, queries: Queries) -> Scope:
        """Tables joined in brackets."""
        inside = node.this
        if isinstance(inside, exp.Subquery) and not inside.args.get("joins"):
            if not inside.args.get("alias") and not isinstance(inside.this, exp.Table | exp.Subquery):
                return self.item(exp.Subquery(this=inside.this, alias=node.args.get("alias")), queries)
            only(node, "this", fix="write (a JOIN b ON …) without a name behind it")
            return self.item(inside, queries)
        only(node, "this", fix="write (a JOIN b ON …) without a name behind it")
        first = inside.copy()
        first.set("joins", None)
        return self._sources(first, inside.args.get("joins") or [], [], queries)

    def base(self, table: Table) -> Relation:
        """A declared table; where its person is found along a foreign key, with that."""
        self.count += 1
        if self.count > MOST_TABLES:
            fix = "ask something simpler"
            raise QuestionError("too-long", f"more than {MOST_TABLES} tables are read", where="FROM", fix=fix)
        if table.path is not None:
            self.base(self.declaration.tables[table.path[0]])  # is read too
        return declared(table, self.declaration.tables)

    def _tables_fix(self) -> str:
        return "write FROM " + " or ".join(list(self.declaration.tables)[:10])

    def _prefixed(self, found: Scope) -> Scope:
        """The same with the alias in each column's name, so that names of several tables are told apart."""
        if len(found.sources) > 1:
            return found  # joined in brackets: they have theirs
        (source,) = found.sources
        alias = source.alias
        if set(alias) & set('."'):  # "a.b"."c" is not "a"."b.c"
            alias = '"' + alias.replace('"', '""') + '"'
        names = tuple(f"{alias}.{visible}" for visible, _ in source.names)
        pairs = tuple((visible, name) for (visible, _), name in zip(source.names, names, strict=True))
        return Scope(Renamed(found.relation, names), (NamedTable(source.alias, pairs),))

    def _join(self, left: Scope, join: exp.Join, right: Scope) -> Scope:
        side = _side(join)
        both = (*left.sources, *right.sources)
        pair = Scope(Joined(JoinKind.INNER, left.relation, right.relation, None), both, {**left.merged, **right.merged})
        condition, merged = self._condition(join, pair, left, right)
        if (public := self._public_groups(side, left, right, condition, pair)) is not None:
            return replace(public, merged={name: call.arguments[0] for name, call in merged.items()})
        missing, kept = left.missing | right.missing, (*left.kept, *right.kept)
        if kept and side == "left" and right.shape.private:
            missing |= set(right.shape.by_name)
        public = left if side == "left" else right
        if self._keeps_public(side, left, right):
            about = right if side == "left" else left
            missing, kept, side = missing | set(about.shape.by_name), (*kept, public.relation), ""
        if len(kept) > 1 or (kept and side in ("right", "full")):  # rows of nobody, of several tables
            raise kept_public(public)
        relation = Joined(JoinKind(side or "inner"), left.relation, right.relation, condition)
        sound(relation, left, right)
        outer = {name: _merged(side, call) for name, call in merged.items()}
        return Scope(relation, both, {**left.merged, **right.merged, **outer}, missing=missing, kept=kept)

    def _keeps_public(self, side: str, left: Scope, right: Scope) -> bool:
        """Whether an outer join keeps a public table, and its other side is about people."""
        if self.values is None or side not in ("left", "right"):
            return False
        keeps, about = (left, right) if side == "left" else (right, left)
        return about.shape.private and not keeps.shape.private

    def _condition(
        self, join: exp.Join, pair: Scope, left: Scope, right: Scope
    ) -> tuple[Expression | None, dict[str, Call]]:
        merged: dict[str, Call] = {}
        parts: list[Expression] = []
        using = [node.name for node in join.args.get("using") or []]
        if join.args.get("method"):
            using = _in_both(left, right)
        for name in using:
            column = exp.column(exp.to_identifier(name))
            equal = ExpressionReader(pair.read, pair.shape.by_name).alike([left.read(column), right.read(column)], join)
            merged[name.casefold()] = Call("equal", tuple(equal), Type.BOOLEAN)
            parts.append(merged[name.casefold()])
        if (on := join.args.get("on")) is not None:
            _no_subquery(on)
            parts.append(ExpressionReader(pair.read, pair.shape.by_name).boolean(on))
        if not parts:
            return None, merged
        return reduce(lambda a, b: Call("and", (a, b), Type.BOOLEAN), parts), merged

    def _public_groups(
        self, side: str, left: Scope, right: Scope, condition: Expression | None, pair: Scope
    ) -> Scope | None:
        """`private RIGHT JOIN (SELECT DISTINCT key, … FROM public) ON …`: the public keys are the groups, no others."""
        if side not in ("left", "right") or condition is None:
            return None
        keeps, about = (left, right) if side == "left" else (right, left)
        keys = keeps.relation
        while isinstance(keys, Renamed | Computed):
            keys = keys.child
        if keeps.shape.private or not about.shape.private or not isinstance(keys, PerPerson) or keys.totals:
            return None
        compared = _compared(condition, [column.name for column in keeps.shape.columns])
        if compared is None or self.values is None:
            return None
        rows = self.listed_rows(keeps.relation)
        relation = Joined(JoinKind.INNER, left.relation, right.relation, condition)
        sound(relation, left, right)
        names = []
        for key in keeps.shape.columns:
            other = compared[key.name]
            same = {other.name} if isinstance(other, ColumnOf) and other.type is key.type else set()
            names.append(tuple(sorted({key.name} | same)))
        return Scope(ListedKeys(relation, tuple(names), rows), pair.sources)

    def listed_rows(self, keys: Relation) -> tuple[tuple[Value, ...], ...]:
        """The groups that a public relation lists."""
        assert self.values is not None
        rows = tuple(self.values(keys))
        if not rows:
            message = "the public table lists no group"
            raise QuestionError("no-groups", message, where="JOIN", fix="keep some of its rows")
        if len(rows) > MAXIMUM_CELLS:
            message = f"the public table lists more than {MAXIMUM_CELLS:,} groups"
            raise QuestionError("too-many-groups", message, where="JOIN", fix="keep fewer of its rows")
        return rows

    # queries

    def query(self, node: exp.Expression, queries: Queries) -> Relation:
        """A subquery: a SELECT, or several with UNION."""
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.query(node.this, queries)
        queries = named_queries(node, queries)
        if isinstance(node, exp.Union):
            return self._union(node, queries)
        if not isinstance(node, exp.Select):
            raise refused(node, "write (SELECT … FROM table)")
        return self.select(self, node, queries)

    def _union(self, node: exp.Union, queries: Queries) -> Relation:
        only(node, "this", "expression", "distinct", "with_", "order", fix="write SELECT … UNION ALL SELECT …")
        if type(node) is not exp.Union:
            raise QuestionError("union", "only UNION can be used", where=node.key.upper(), fix="write UNION ALL")
        parts: list[Relation] = []
        for side in (node.this, node.expression):
            relation = self.query(side, queries)
            parts += relation.children if isinstance(relation, Stacked) else (relation,)
        shapes = [shape(part) for part in parts]
        for number, other in enumerate(shapes[1:], 2):
            _stackable(shapes[0], other, number)
        stacked = Stacked(tuple(parts))
        if node.args.get("distinct") is False:
            return stacked
        columns = [(column.name, ColumnOf(column.name, column.type or Type.TEXT)) for column in shape(stacked).columns]
        if shape(stacked).private and not self.of_one_person([one for _, one in columns], stacked):
            message = "UNION without ALL compares rows of different persons"
            fix = "write UNION ALL, or add the person's column in the same position of each query"
            raise QuestionError("union", message, where="UNION", fix=fix)
        return PerPerson(stacked, tuple(columns), ())

    def spelled(self, expression: Expression, columns: Mapping[str, Column]) -> Expression:
        """The expression. Raises QuestionError where somebody wrote a text that is not declared for its column."""
        return expression if self.released else spelled_as_declared(expression, columns)

    # persons

    def of_one_person(self, keys: Sequence[Expression], below: Relation) -> bool:
        """Whether rows that have the same values of these keys belong to one person: because one of them is the person,
        or a key by which another table's rows find their person, each value of which leads to one person alone."""
        referred = {one.path for one in self.declaration.tables.values() if one.path is not None and not one.shared}
        persons, by = shape(below).persons, leads(below)
        return any(
            isinstance(one, ColumnOf)
            and (one.name in persons or any((table, column) in referred for table, column, _ in by.get(one.name, ())))
            for one in keys
        )

    def person(self, scope: Scope) -> str:
        """What to add to a list so that it has the person: a column, as it is written there."""
        aliases = " or ".join(one.alias for one in scope.sources[:5])
        found = self.person_column(scope)
        if found is None:
            return f"the person's column to the list of {aliases}, and then"
        return written_name(found[1]) if len(scope.sources) == 1 else ".".join(found)

    def person_column(self, scope: Scope) -> tuple[str, str] | None:
        """A column that leads to the person, with its table's alias; None where there is none."""
        every = [(inside, one.alias, name) for one in scope.sources for name, inside in one.names]
        kinds = {column.name: column.type or Type.TEXT for column in scope.shape.columns}
        persons = [one for one in every if one[0] in scope.shape.persons]
        for inside, alias, name in [*persons, *every]:
            if self.of_one_person([ColumnOf(inside, kinds[inside])], scope.relation):
                return alias, name
        return None


def named_queries(node: exp.Expression, known: Queries) -> Queries:
    """What is named where a query stands: by the WITH around it, and by its own."""
    clause = node.args.get("with_")
    if clause is None:
        return known
    if clause.args.get("recursive"):
        fix = "write WITH name AS (SELECT …)"
        raise QuestionError("clause", "WITH RECURSIVE cannot be used", where="WITH", fix=fix)
    own: set[str] = set()
    for query in clause.expressions:
        only(query, "this", "alias", fix="write WITH name AS (SELECT …)")
        only(query.args["alias"], "this", "columns", fix="write WITH name AS (SELECT …)")
        name = query.alias.casefold()
        if name in own:
            raise QuestionError("names", f"{query.alias} is named twice", where="WITH", fix="name it once")
        own.add(name)
        columns = tuple(one.name for one in query.args["alias"].args.get("columns") or ())
        known = {**known, name: Query(query.this, known, columns)}
    return known


def _compared(condition: Expression, keys: list[str]) -> dict[str, Expression] | None:
    """What each key is said to equal, where the condition says that of each once, and nothing else."""
    found: dict[str, Expression] = {}
    for part in conjuncts(condition):
        if not isinstance(part, Call) or part.operator != "equal":
            return None
        mine = [one.name for one in part.arguments if isinstance(one, ColumnOf) and one.name in keys]
        others = [one for one in part.arguments if not columns_of(one) & set(keys)]
        if len(mine) != 1 or len(others) != 1 or mine[0] in found:
            return None
        found[mine[0]] = others[0]
    return found if len(found) == len(keys) else None


def _aliased(relation: Relation, node: exp.Expression, name: str, columns: Sequence[str] = ()) -> Scope:
    """A relation under the names that the question gives it and its columns."""
    known = [column.name for column in shape(relation).columns]
    names = list(columns)
    if (alias := node.args.get("alias")) is not None:
        only(alias, "this", "columns", fix="write FROM table AS name")
        name = str(node.alias) or name
        names = [one.name for one in alias.args.get("columns") or ()] + names[len(alias.args.get("columns") or ()) :]
    if len(names) > len(known):
        message = f"{name} has {len(known)} columns, and {len(names)} names are given"
        raise QuestionError("names", message, where="FROM", fix="give each column one name")
    visible = names + known[len(names) :]
    if len({one.casefold() for one in visible}) < len(visible):
        message = f"two columns of {name} have one name"
        raise QuestionError("names", message, where="FROM", fix="give each column a name of its own")
    return Scope(relation, (NamedTable(name, tuple(zip(visible, known, strict=True))),))


def _merged(side: str, equal: Call) -> Expression:
    """The one column that USING makes of two."""
    left, right = equal.arguments
    if side != "full":
        return right if side == "right" else left
    return Call("coalesce", (left, right), left.type if left.type is right.type else Type.NUMBER)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").lower()


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").lower()


def _as_exists(join: exp.Join, found: Scope) -> exp.Expression:
    """What a SEMI or ANTI join asks of each row: whether a row of its table exists."""
    only(join, "this", "on", "using", "side", "kind", fix="write a SEMI JOIN b ON a.x = b.x")
    if _side(join) not in ("", "left") or not (join.args.get("on") or join.args.get("using")):
        raise QuestionError("join", "this SEMI or ANTI join is not complete", where="JOIN", fix="write … ON a.x = b.x")
    other = join.this.alias_or_name or "subquery"
    asked = [join.args["on"]] if join.args.get("on") is not None else []
    for one in join.args.get("using") or []:
        holding = [source.alias for source in found.sources if one.name.casefold() in _visible(source)]
        sides = [exp.column(one.copy(), table=exp.to_identifier(name)) for name in (*holding[:1], other)]
        asked.append(exp.EQ(this=sides[0], expression=sides[-1]))
    where = exp.Where(this=reduce(lambda left, right: exp.And(this=left, expression=right), asked))
    rows = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=join.this), where=where)
    exists = exp.Exists(this=rows)
    return exp.Not(this=exists) if _kind(join) == "anti" else exists


def _visible(source: NamedTable) -> set[str]:
    return {visible.casefold() for visible, _ in source.names}


def _known_join(join: exp.Join) -> None:
    """Refuses joins of kinds that are not read."""
    only(join, "this", "on", "using", "side", "kind", "method", fix="write JOIN table ON a.x = b.x")
    side, kind = _side(join), _kind(join)
    method = str(join.args.get("method") or "").lower()
    if side not in ("", "left", "right", "full") or kind not in ("", "inner", "outer", "cross"):
        raise QuestionError("join", f"{kind.upper()} joins cannot be used", where="JOIN", fix="write JOIN … ON …")
    if method not in ("", "natural"):
        raise QuestionError("join", f"{method.upper()} joins cannot be used", where="JOIN", fix="write JOIN … ON …")


def _other_alias(items: Sequence[Scope]) -> None:
    """Refuses a name that two tables have."""
    *before, last = items
    known = {source.alias.casefold() for one in before for source in one.sources}
    for source in last.sources:
        if source.alias.casefold() in known:
            message = f"Duplicate table alias {source.alias} in the same FROM clause"
            raise QuestionError("names", message, where="JOIN", fix=f"write {source.alias} AS other")


def _alone(join: exp.Join) -> bool:
    """Whether nothing is said of how a table is joined: it stands behind a comma, CROSS JOIN or a JOIN without ON."""
    return not any(join.args.get(name) for name in ("on", "using", "side", "method"))


def _inner(join: exp.Join) -> bool:
    """Whether a join keeps pairs alone, and makes no two columns one."""
    return not any(join.args.get(name) for name in ("using", "side", "method"))


def _runs(joins: Sequence[exp.Join]) -> list[tuple[int, int]]:
    """Which tables stand in one chain of joins, from one to before another. A CROSS JOIN stays in its chain, whose
    further joins may read what stands before it; a comma ends one."""
    starts = [0, *(place for place, join in enumerate(joins, 1) if _alone(join) and not join.args.get("kind"))]
    return list(zip(starts, [*starts[1:], len(joins) + 1], strict=True))


def _in_both(left: Scope, right: Scope) -> list[str]:
    """The names that a NATURAL JOIN compares: those that both sides have, once each."""
    other = {visible.casefold() for one in right.sources for visible, _ in one.names}
    names = {visible.casefold(): visible for one in left.sources for visible, _ in one.names}
    return [visible for folded, visible in names.items() if folded in other]


def _no_subquery(node: exp.Expression) -> None:
    if node.find(exp.Select) is not None:
        fix = "join it in FROM, or write person IN (SELECT person FROM …) as a condition of its own"
        message = "Reading a table in an expression subquery is not allowed here"
        raise QuestionError("subquery", message, where=node.key.upper()[:60], fix=fix)


def _stackable(first: RelationShape, other: RelationShape, number: int) -> None:
    """Whether two queries can stand in one UNION ALL."""
    if len(first.columns) != len(other.columns):
        counts = f"query 1 has {len(first.columns)} columns, query {number} has {len(other.columns)} columns"
        message = f"Queries in UNION ALL have mismatched column count; {counts}"
        raise QuestionError("union", message, where="UNION ALL", fix="select the same columns in each")
    for mine, yours in zip(first.columns, other.columns, strict=True):
        assert mine.type is not None
        assert yours.type is not None
        if mine.type is not yours.type and not (mine.type.numeric and yours.type.numeric):
            message = f"column {mine.name} of UNION ALL is {mine.type} and {yours.type}"
            raise QuestionError("union", message, where="UNION ALL", fix="select columns of one type")
    if first.private != other.private:
        message = "Not all queries in UNION ALL are about people"
        raise QuestionError("union", message, where="UNION ALL", fix="leave out the public table, or join it")
    if first.private and (first.person_type is None or other.person_type is None):
        fix = "ask about one of them: whoever declares them can name their person columns"
        message = "the same person may be in both queries, and no column shows it"
        raise QuestionError("union", message, where="UNION ALL", fix=fix)
    if first.person_type is not other.person_type:
        message = "the persons of the queries are of different types"
        raise QuestionError("union", message, where="UNION ALL", fix="declare the person columns with one type")
