"""A SELECT inside a question: rows made anew, or totals of each person's own rows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.expressions import ExpressionReader
from discreet.sql.from_clause import Queries, RelationReader, named_queries
from discreet.sql.joining import kept_public
from discreet.sql.lookups import conditions
from discreet.sql.refusals import STRANGERS, known_clauses, only, refused, several_groupings
from discreet.sql.scope import Scope
from discreet.sql.totals import exact, group_item
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Column, Relation, Type
from discreet.trusted.ring_b.relations import (
    Computed,
    PerPerson,
    PersonTotal,
    PersonTotalKind,
    Where,
    derived,
    own_name,
    shape,
)

_CLAUSES = {
    "windows": "windows read other rows; group by the person instead",
    "qualify": "windows read other rows; group by the person instead",
    "limit": "the rows of a subquery have no order; group by the person and use MIN or MAX",
    "offset": "the rows of a subquery have no order",
    "hint": "write WITH DIFFERENTIAL_PRIVACY once, in the outer SELECT",
    "laterals": "join tables with JOIN … ON",
}
_KNOWN = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order")


def select(sources: RelationReader, tree: exp.Select, queries: Queries) -> Relation:
    """The relation of a subquery. Rows about people keep their person, whether its column is in the list or not."""
    known_clauses(tree, _KNOWN, _CLAUSES, " in a subquery")
    queries = named_queries(tree, queries)  # ORDER BY changes nothing: rows have no order outside of it
    scope = sources.scope(tree, queries)
    if scope.kept:
        raise kept_public(scope)
    scope, predicate = conditions(sources, tree, scope, queries)
    below = Where(scope.relation, predicate) if predicate is not None else scope.relation
    reader = _InnerSelect(sources, scope, below, tree)
    return reader.grouped() if reader.groups else reader.plain()


def about_persons(sources: RelationReader, tree: exp.Select, scope: Scope) -> bool:
    """Whether the groups of a SELECT over people, of its GROUP BY or its DISTINCT, are groups of one person's rows."""
    reader = ExpressionReader(scope.read, scope.shape.by_name)
    group = tree.args.get("group")
    items = [group_item(tree, one, scope) for one in group.expressions] if group is not None else []
    if group is None and tree.args.get("distinct") is not None:
        items = [one.unalias() for one in tree.expressions]
        if any(isinstance(one, exp.Star) for one in items):
            return scope.shape.private and sources.of_one_person([one for _, one in scope.all()], scope.relation)
    columns = [one for one in items if isinstance(one, exp.Column) and isinstance(one.this, exp.Identifier)]
    return scope.shape.private and sources.of_one_person([reader.read(one) for one in columns], scope.relation)


class _InnerSelect:
    """One inner SELECT. `groups` says whether rows are put together."""

    def __init__(self, sources: RelationReader, scope: Scope, below: Relation, tree: exp.Select) -> None:
        self.sources = sources
        self.scope = scope
        self.below = below
        self.tree = tree
        self.keys: list[tuple[str, Expression]] = []
        self.totals: list[tuple[str, PersonTotal, Column]] = []
        self.grouped_columns: dict[str, Column] = {}
        for node in tree.expressions:
            if (window := node.find(exp.Window)) is not None:
                raise refused(window, _CLAUSES["windows"])
        aggregated = any(node.find(exp.AggFunc) for node in tree.expressions)
        self.distinct = tree.args.get("distinct") is not None
        self.groups = bool(tree.args.get("group")) or bool(tree.args.get("having")) or aggregated or self.distinct
        if self.distinct:
            only(tree.args["distinct"], fix="write SELECT DISTINCT a, b")
            if aggregated or tree.args.get("group"):
                raise QuestionError("clause", "DISTINCT and GROUP BY together", where="DISTINCT", fix="use one of them")
            if tree.args.get("having"):
                raise QuestionError("clause", "DISTINCT and HAVING together", where="HAVING", fix="write WHERE")

    def plain(self) -> Relation:
        """A subquery without groups: row by row."""
        return Computed(
            self.below, tuple(self._items(ExpressionReader(self.scope.read, self.scope.shape.by_name).read))
        )

    def grouped(self) -> Relation:
        """A subquery with groups; about people, within each person."""
        about = shape(self.below)
        if about.private and about.person_type is None:
            message = "each row is a person here: there is nothing to group within a person"
            raise QuestionError("subquery", message, where="GROUP BY", fix="leave out the subquery's GROUP BY")
        if self.distinct:
            reader = ExpressionReader(self.scope.read, self.scope.shape.by_name)
            items = self._items(reader.read)
            if about.private and not self.sources.of_one_person([one for _, one in items], self.below):
                raise self._strangers("DISTINCT", "its list")
            return PerPerson(self.below, tuple(items), ())
        self._group()
        read = ExpressionReader(self._key, self.grouped_columns, self._total).read
        items = self._items(read)
        if about.private and not self.sources.of_one_person([one for _, one in self.keys], self.below):
            raise self._strangers("GROUP BY", "its GROUP BY")
        having = self.tree.args.get("having")
        predicate = (
            ExpressionReader(self._key, self.grouped_columns, self._total).boolean(having.this)
            if having is not None
            else None
        )
        made: Relation = PerPerson(self.below, tuple(self.keys), tuple(self.totals))
        if predicate is not None:
            made = Where(made, predicate)
        return Computed(made, tuple(items))

    def _strangers(self, where: str, place: str) -> QuestionError:
        """The error for groups that put rows of several persons together."""
        return QuestionError(
            "subquery", STRANGERS, where=where, fix=f"add {self.sources.person(self.scope)} to {place}"
        )

    def _items(self, read: Callable[[exp.Expression], Expression]) -> list[tuple[str, Expression]]:
        items: list[tuple[str, Expression]] = []
        for node in self.tree.expressions:
            if (window := node.find(exp.Window)) is not None:
                raise refused(window, _CLAUSES["windows"])
        for node in self.tree.expressions:
            inner = node.unalias()
            star = isinstance(inner, exp.Star | exp.Column) and inner.is_star
            if star and not (self.groups and not self.distinct):
                only(inner if isinstance(inner, exp.Star) else inner.this, fix="name the columns")
                items += self.scope.all(inner.table if isinstance(inner, exp.Column) else "")
                continue
            name = node.alias if isinstance(node, exp.Alias) else ""
            name = name or (inner.name if isinstance(inner, exp.Column) else f"column_{len(items) + 1}")
            items.append((name, read(inner)))
        names = [name.casefold() for name, _ in items]
        if len(set(names)) < len(names):
            fix = "name them with AS"
            raise QuestionError("names", "two columns of a subquery have one name", where="SELECT", fix=fix)
        return items

    def _group(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        only(group, "expressions", fix="group by columns, one after another")
        reader = ExpressionReader(self.scope.read, self.scope.shape.by_name)
        for written in group.expressions:
            if isinstance(written, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise several_groupings(written)
            expression = reader.read(group_item(self.tree, written, self.scope))
            if expression not in [known for _, known in self.keys]:
                name = own_name("key", len(self.keys))
                self.keys.append((name, expression))
                self.grouped_columns[name] = derived(name, expression, shape(self.below).by_name)

    def _key(self, node: exp.Column) -> Expression:
        """A column above the groups: it has to be grouped by."""
        expression = self.scope.read(node)
        found = self._grouped_as(expression)
        if found is None:
            fix = f"add {node.name} to GROUP BY, or aggregate it"
            message = f"{node.name} is neither grouped nor aggregated"
            raise QuestionError("ungrouped", message, where="SELECT", fix=fix)
        return found

    def _grouped_as(self, expression: Expression) -> Expression | None:
        for name, known in self.keys:
            if known == expression:
                return ColumnOf(name, expression.type)
        return None

    def _total(self, node: exp.Expression) -> Expression | None:
        """An aggregate, or an expression that is grouped by; None for anything else."""
        made = exact(node, self.scope, self.below)
        if made is None:
            return self._grouped_expression(node)
        total, column = made
        for name, known, _ in self.totals:
            if known == total:
                return ColumnOf(name, column.type or Type.NUMBER)
        name = own_name("total", len(self.totals))
        counts = (PersonTotalKind.ROWS, PersonTotalKind.PRESENT, PersonTotalKind.DISTINCT)
        nulls = total.kind not in counts  # a count is never without a value
        made_of = Column(name, column.type, column.minimum, column.maximum, column.step, nulls=nulls)
        self.totals.append((name, total, made_of))
        self.grouped_columns[name] = made_of
        return ColumnOf(name, column.type or Type.NUMBER)

    def _grouped_expression(self, node: exp.Expression) -> Expression | None:
        if not self.keys or isinstance(node, exp.Column | exp.Literal) or node.find(exp.AggFunc):
            return None
        try:
            return self._grouped_as(ExpressionReader(self.scope.read, self.scope.shape.by_name).read(node))
        except QuestionError:
            return None
