"""FROM, JOIN, subqueries and WITH: from trees to relations in which every row about a person keeps its person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.dialect.normal import normal
from discreet.errors import QuestionError
from discreet.plan.planner import MAXIMUM_CELLS
from discreet.sql.expressions import ExpressionReader
from discreet.sql.refusals import only, refused, spelled_as_declared, unknown_name
from discreet.sql.scope import NamedTable, Scope
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, columns_of
from discreet.trusted.ring_a.table import Relation, Table, Type, Value
from discreet.trusted.ring_b.belonging import declared, leads, same_keys
from discreet.trusted.ring_b.relations import (
    Computed,
    Joined,
    ListedKeys,
    Matched,
    PerPerson,
    RelationShape,
    Renamed,
    Stacked,
    bases,
    conjuncts,
    depth,
    shape,
)

PublicValues = Callable[[Relation], Sequence[tuple[Value, ...]]]
"""The values of the only column of a public relation."""


@dataclass(frozen=True)
class Query:
    """A query that WITH names, and those that it may read itself: the ones before it."""

    tree: exp.Expression
    before: Mapping[str, Query]


Queries = Mapping[str, Query]
Select = Callable[["RelationReader", exp.Select, Queries, bool], Relation]
"""Reads an inner SELECT into a relation; whether rows about people have to show the person."""

MOST_TABLES = 16
"""How many tables a question may read, each as often as it is named."""

DEEPEST = 60
"""How deeply SELECTs may stand in each other in the engine."""


class RelationReader:
    """Reads what stands below a question's groups. Counts the tables, so that no question explodes.

    `select` reads a SELECT in FROM, which has a FROM of its own.
    """

    def __init__(self, declaration: Declaration, values: PublicValues | None, select: Select) -> None:
        self.declaration = declaration
        self.select = select
        self.values = values
        self.count = 0

    # FROM

    def scope(self, tree: exp.Select, queries: Queries) -> Scope:
        """What FROM and the JOINs of a SELECT give."""
        source = tree.args.get("from_")
        if source is None:
            raise QuestionError("clause", "a table is missing", where="FROM", fix=self._tables_fix())
        found = self.item(source.this, queries)
        joins = tree.args.get("joins") or []
        if joins:
            found = self._prefixed(found)
        for join in joins:
            found = self._join(found, join, queries)
        if depth(found.relation) > DEEPEST:
            raise QuestionError("syntax", "this is nested too deeply", where="FROM", fix="ask something simpler")
        return found

    def item(self, node: exp.Expression, queries: Queries) -> Scope:
        """One table, subquery or name of WITH."""
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias", fix="write (SELECT …) AS name")
            relation = self.query(node.this, queries)
            return _scope(relation, self._alias(node) or "subquery")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QuestionError("source", "this table is not declared", where="FROM", fix=self._tables_fix())
        only(node, "this", "alias", "joins", fix=self._tables_fix())
        alias = self._alias(node)
        named = queries.get(node.name.casefold())
        if named is not None:
            found = _scope(self.query(named.tree, named.before), alias or node.name)
        else:
            table = self.declaration.table(node.name)
            if table is None:
                raise unknown_name(node.name, list(self.declaration.tables), kind="table", where="FROM")
            found = _scope(self.base(table), alias or table.name)
        return found

    def base(self, table: Table) -> Relation:
        """A declared table; where its person is found along a foreign key, with that."""
        self.count += 1
        if self.count > MOST_TABLES:
            fix = "ask something simpler"
            raise QuestionError("too-long", f"more than {MOST_TABLES} tables are read", where="FROM", fix=fix)
        if table.path is not None:
            self.base(self.declaration.tables[table.path[0]])  # is read too
        return declared(table, self.declaration.tables)

    def _alias(self, node: exp.Expression) -> str:
        alias = node.args.get("alias")
        if alias is None:
            return ""
        only(alias, "this", fix="write FROM table AS name")
        return str(node.alias)

    def _tables_fix(self) -> str:
        return "write FROM " + " or ".join(list(self.declaration.tables)[:10])

    def _prefixed(self, found: Scope) -> Scope:
        """The same with the alias in each column's name, so that names of several tables are told apart."""
        (source,) = found.sources
        alias = source.alias
        if set(alias) & set('."'):  # "a.b"."c" is not "a"."b.c"
            alias = '"' + alias.replace('"', '""') + '"'
        names = tuple(f"{alias}.{visible}" for visible, _ in source.names)
        pairs = tuple((visible, name) for (visible, _), name in zip(source.names, names, strict=True))
        return Scope(Renamed(found.relation, names), (NamedTable(source.alias, pairs),))

    def _join(self, left: Scope, join: exp.Join, queries: Queries) -> Scope:
        only(join, "this", "on", "using", "side", "kind", fix="write JOIN table ON a.x = b.x")
        if join.this.args.get("joins"):
            raise QuestionError("join", "joins cannot be nested", where="JOIN", fix="write a JOIN b ON … JOIN c ON …")
        side, kind = str(join.args.get("side") or "").lower(), str(join.args.get("kind") or "").lower()
        if side not in ("", "left", "right", "full") or kind not in ("", "inner", "outer", "cross"):
            raise QuestionError("join", f"{kind.upper()} joins cannot be used", where="JOIN", fix="write JOIN … ON …")
        right = self._prefixed(self.item(join.this, queries))
        if right.sources[0].alias.casefold() in {one.alias.casefold() for one in left.sources}:
            alias = right.sources[0].alias
            message = f"Duplicate table alias {alias} in the same FROM clause"
            raise QuestionError("names", message, where="JOIN", fix=f"write {alias} AS other")
        both = (*left.sources, *right.sources)
        pair = Scope(Joined("inner", left.relation, right.relation, None), both, left.merged)
        condition, merged = self._condition(join, pair, left, right)
        if (public := self._public_groups(side, left, right, condition, pair)) is not None:
            return replace(public, merged={name: call.arguments[0] for name, call in merged.items()})
        relation = Joined(side or "inner", left.relation, right.relation, condition)
        self._sound(relation, left, right)
        outer = {name: _merged(side, call) for name, call in merged.items()}
        return Scope(relation, both, {**left.merged, **outer})

    def _condition(
        self, join: exp.Join, pair: Scope, left: Scope, right: Scope
    ) -> tuple[Expression | None, dict[str, Call]]:
        merged: dict[str, Call] = {}
        parts: list[Expression] = []
        for node in join.args.get("using") or []:
            name = node.name
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

    def _sound(self, relation: Joined, left: Scope, right: Scope) -> None:
        """Refuses joins whose rows would depend on several persons."""
        one, two = left.shape, right.shape
        if one.private and two.private:
            self._same_person(relation, left, right)
            return
        for side, keeps, other in (("left", one, "LEFT"), ("right", two, "RIGHT")):
            if relation.kind == side and not keeps.private and (one.private or two.private):
                message = f"The {side} table in a {other} OUTER join must contain user data"
                raise QuestionError("join", message, where="JOIN", fix="exchange the tables, or write JOIN")
        if relation.kind == "full" and one.private != two.private:
            message = "Both tables in a FULL OUTER join must contain user data"
            raise QuestionError("join", message, where="JOIN", fix="write LEFT JOIN, the table about people first")
        whole = shape(relation)
        if whole.private and whole.person_type is None and not whole.single:
            about = left.sources[0].alias if one.private else right.sources[0].alias
            fix = "join with (SELECT DISTINCT key, … ) of the public table"
            message = f"the rows of {about} have no person column, and a join may repeat them"
            raise QuestionError("join", message, where="JOIN", fix=fix)

    def _same_person(self, relation: Joined, left: Scope, right: Scope) -> None:
        one, two = left.shape, right.shape
        names = [scope.sources[-1].alias for scope in (left, right)]
        if one.person_type is None or two.person_type is None:
            which = names[0] if one.person_type is None else names[1]
            message = f"the rows of {which} have no person column"
            fix = f"ask about one table: whoever declares {which} can name its person column"
            raise QuestionError("join", message, where="JOIN", fix=fix)
        if one.person_type is not two.person_type:
            message = f"the persons of {names[0]} and {names[1]} are of different types"
            raise QuestionError("join", message, where="JOIN", fix="declare the person columns with one type")
        pairs = [(a, b) for a in one.persons for b in two.persons]
        pairs += same_keys(leads(left.relation), leads(right.relation))
        if any(_equal(part, pairs) for part in _all(relation.condition)):
            return
        message = "Joins between tables containing private data must also explicitly join on the user id column"
        if not pairs:
            fix = f"join the tables by which {names[0]} and {names[1]} lead to the person too, each on its foreign key"
            raise QuestionError("join", message, where="JOIN", fix=fix)
        a, b = (side.written(at) for side, at in zip((left, right), pairs[0], strict=True))
        fix = f"add AND {a} = {b} to the ON expression" if relation.condition else f"write JOIN … ON {a} = {b}"
        raise QuestionError("join", message, where="JOIN", fix=fix)

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
        rows = tuple(self.values(keeps.relation))
        if not rows:
            message = "the public table lists no group"
            raise QuestionError("no-groups", message, where="JOIN", fix="keep some of its rows")
        if len(rows) > MAXIMUM_CELLS:
            message = f"the public table lists more than {MAXIMUM_CELLS:,} groups"
            raise QuestionError("too-many-groups", message, where="JOIN", fix="keep fewer of its rows")
        relation = Joined("inner", left.relation, right.relation, condition)
        self._sound(relation, left, right)
        names = []
        for key in keeps.shape.columns:
            other = compared[key.name]
            same = {other.name} if isinstance(other, ColumnOf) and other.type is key.type else set()
            names.append(tuple(sorted({key.name} | same)))
        return Scope(ListedKeys(relation, tuple(names), rows), pair.sources)

    # queries

    def query(self, node: exp.Expression, queries: Queries, *, shown: bool = True) -> Relation:
        """A subquery: a SELECT, or several with UNION ALL. Where it is `shown`, rows about people show the person."""
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.query(node.this, queries, shown=shown)
        queries = named_queries(node, queries)
        if isinstance(node, exp.Union):
            return self._union(node, queries)
        if not isinstance(node, exp.Select):
            raise refused(node, "write (SELECT … FROM table)")
        return self.select(self, node, queries, shown)

    def _union(self, node: exp.Union, queries: Queries) -> Relation:
        only(node, "this", "expression", "distinct", "with_", fix="write SELECT … UNION ALL SELECT …")
        if type(node) is not exp.Union or node.args.get("distinct") is not False:
            raise QuestionError("union", "only UNION ALL can be used", where=node.key.upper(), fix="write UNION ALL")
        parts: list[Relation] = []
        for side in (node.this, node.expression):
            relation = self.query(side, queries)
            parts += relation.children if isinstance(relation, Stacked) else (relation,)
        shapes = [shape(part) for part in parts]
        for number, other in enumerate(shapes[1:], 2):
            _stackable(shapes[0], other, number)
        return Stacked(tuple(parts))

    # WHERE

    def conditions(self, tree: exp.Select, scope: Scope, queries: Queries) -> tuple[Scope, Expression | None]:
        """WHERE: lookups of values in other relations become relations, the rest stays a predicate of one row."""
        where = tree.args.get("where")
        if where is None:
            return scope, None
        plain: list[Expression] = []
        reader = ExpressionReader(scope.read, scope.shape.by_name)
        for part in _parts(where.this):
            negated, node = _positive(part)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                scope = replace(scope, relation=self._matched(node, negated, scope, queries))
                continue
            _no_subquery(part)
            plain.append(reader.boolean(part))
        if not plain:
            return scope, None
        return scope, spelled_as_declared(
            normal(reduce(lambda a, b: Call("and", (a, b), Type.BOOLEAN), plain)), scope.shape.by_name
        )

    def _matched(self, node: exp.In, negated: bool, scope: Scope, queries: Queries) -> Relation:
        only(node, "this", "query", fix="write x IN (SELECT y FROM …)")
        among = self.query(node.args["query"], queries, shown=False)
        found, value = shape(among), ExpressionReader(scope.read, scope.shape.by_name).read(node.this)
        if len(found.columns) != 1:
            message = "the subquery of IN must have one column"
            raise QuestionError("subquery", message, where="IN", fix="write x IN (SELECT y FROM …)")
        column = found.columns[0]
        assert column.type is not None
        if not found.private:
            if column.type is not value.type and not (column.type.numeric and value.type.numeric):
                message = f"{value.type} and {column.type} cannot be compared"
                raise QuestionError("type", message, where="IN", fix="compare values of one type")
            return Matched(scope.relation, value, among, negated)
        if not (isinstance(value, ColumnOf) and value.name in scope.shape.persons and column.name in found.persons):
            raise _reads_private(among)
        if found.person_type is not scope.shape.person_type:
            message = "the persons are of different types"
            raise QuestionError("type", message, where="IN", fix="declare the person columns with one type")
        return Matched(scope.relation, None, among, negated)


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
        only(query.args["alias"], "this", fix="write WITH name AS (SELECT …)")
        name = query.alias.casefold()
        if name in own:
            raise QuestionError("names", f"{query.alias} is named twice", where="WITH", fix="name it once")
        own.add(name)
        known = {**known, name: Query(query.this, known)}
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


def _scope(relation: Relation, alias: str) -> Scope:
    names = tuple((column.name, column.name) for column in shape(relation).columns)
    return Scope(relation, (NamedTable(alias, names),))


def _merged(side: str, equal: Call) -> Expression:
    """The one column that USING makes of two."""
    left, right = equal.arguments
    if side != "full":
        return right if side == "right" else left
    return Call("coalesce", (left, right), left.type if left.type is right.type else Type.NUMBER)


def _all(condition: Expression | None) -> tuple[Expression, ...]:
    return () if condition is None else conjuncts(condition)


def _equal(part: Expression, pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether a condition says that the columns of one of these pairs are equal."""
    if not isinstance(part, Call) or part.operator != "equal":
        return False
    names = tuple(side.name for side in part.arguments if isinstance(side, ColumnOf))
    return names in pairs or names[::-1] in pairs


def _parts(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that a WHERE joins by AND."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*_parts(node.this), *_parts(node.expression)]
    return [node]


def _positive(node: exp.Expression) -> tuple[bool, exp.Expression]:
    """A condition without its NOTs, and whether they negate it."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return negated, node


def _no_subquery(node: exp.Expression) -> None:
    if node.find(exp.Select) is not None:
        fix = "join it in FROM, or write person IN (SELECT person FROM …) as a condition of its own"
        message = "Reading a table in an expression subquery is not allowed here"
        raise QuestionError("subquery", message, where=node.key.upper()[:60], fix=fix)


def _reads_private(among: Relation) -> QuestionError:
    name = next(table.name for table in bases(among) if not table.public)
    message = f"Reading the table {name} containing user data in expression subqueries is not allowed"
    fix = f"join {name} in FROM, or compare persons: person IN (SELECT person FROM {name} …)"
    return QuestionError("subquery", message, where="IN", fix=fix)


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
    if not first.private or first.person_type is None is other.person_type:
        if first.private:
            fix = "ask about one of them: whoever declares them can name their person columns"
            message = "the same person may be in both queries, and no column shows it"
            raise QuestionError("union", message, where="UNION ALL", fix=fix)
        return
    places = [[i for i, c in enumerate(one.columns, 1) if c.name in one.persons] for one in (first, other)]
    if first.person_type is not other.person_type or not set(places[0]) & set(places[1]):
        words = [
            f"query {n} has it in position {p[0] if p else 'none'}" for n, p in ((1, places[0]), (number, places[1]))
        ]
        message = "Queries in UNION ALL have mismatched userid columns; " + ", ".join(words)
        raise QuestionError("union", message, where="UNION ALL", fix="select the person in the same position of each")
