"""WHERE: conditions of one row, and lookups of values in other relations (EXISTS, IN, a total of other rows).

A lookup about people finds rows of the same person alone. It is asked along the person, or along a key by which rows
find their person: then the rows that SQL means are rows of that person too. What is looked up becomes a relation with
at most one row for each value of the keys, so a join with it repeats no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import exp

from discreet.dialect.normal import TURNED, normal
from discreet.errors import QuestionError
from discreet.sql.expressions import ExpressionReader
from discreet.sql.from_clause import Queries, RelationReader, named_queries
from discreet.sql.joining import connected, parts, sound
from discreet.sql.refusals import STRANGERS, only, place, refused, written_name
from discreet.sql.scope import Scope
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column, Relation, Type
from discreet.trusted.ring_b.relations import (
    Computed,
    Joined,
    JoinKind,
    Matched,
    PerPerson,
    PersonTotal,
    PersonTotalKind,
    Where,
    bases,
    derived,
    found_by,
    own_name,
    shape,
)

_ORDERS: dict[type[exp.Expression], str] = {
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NEQ: "not_equal",
}
_OF_EXISTS = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order", "limit")
_OF_TOTAL = ("expressions", "from_", "joins", "where", "with_", "order")


def conditions(
    sources: RelationReader, tree: exp.Select, scope: Scope, queries: Queries
) -> tuple[Scope, Expression | None]:
    """WHERE: lookups of values in other relations become relations, the rest stays a predicate of one row."""
    where = tree.args.get("where")
    asked = [*(parts(where.this) if where is not None else []), *scope.further]
    asked = [part for part in asked if not any(part is one for one in scope.met)]
    looking = _Lookups(sources, scope, queries)
    plain = [part for part in asked if not looking.kept(part)]
    if not plain:
        return looking.scope, None
    reader = looking.reader()
    read = [reader.boolean(part) for part in plain]
    return looking.scope, sources.spelled(normal(reduce(_and, read)), looking.scope.shape.by_name)


@dataclass
class _Correlated:
    """The conditions of a subquery, told apart by whether they read rows of the SELECT around it.

    `keys` are equalities, and `ordered` is one other comparison, of something inside with something outside. `person`
    is the subquery's person, as it is written there.
    """

    own: list[exp.Expression] = field(default_factory=list)
    outside: list[exp.Expression] = field(default_factory=list)
    keys: list[tuple[exp.Expression, exp.Expression]] = field(default_factory=list)
    person: str = ""
    ordered: tuple[str, exp.Expression, exp.Expression] | None = None

    @property
    def reads_outside(self) -> bool:
        return bool(self.outside or self.keys or self.ordered)


@dataclass(frozen=True)
class _LookedUp:
    """What is looked up: one row for each value of the keys, the condition by which a row finds its own, and a column
    of it that always has a value."""

    relation: Relation
    condition: Expression | None
    there: Expression
    persons: Relation | None = None
    """The persons alone, where nothing but the person is compared."""


class _Lookups:
    """The lookups of one WHERE. `scope` grows by what they read; no name of a question means it."""

    def __init__(self, sources: RelationReader, scope: Scope, queries: Queries) -> None:
        self.sources = sources
        self.scope = scope
        self.queries = queries
        self.known: dict[int, Expression] = {}

    def reader(self) -> ExpressionReader:
        """Reads conditions, in which lookups stand for what they find."""
        return ExpressionReader(self.scope.read, self.scope.shape.by_name, lambda node: self.known.get(id(node)))

    def kept(self, part: exp.Expression) -> bool:
        """Whether a condition is a lookup by itself: then rows are kept by it. Other lookups in it become columns."""
        negated, node = _positive(part)
        if isinstance(node, exp.Exists):
            only(node, "this", fix="write EXISTS (SELECT 1 FROM …)")
            self._keep(self._exists(node.this), negated)
            return True
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            self._keep_in(node, negated)
            return True
        for one in _subqueries(part):
            self.known[id(one)] = self._column(one, part)
        return False

    def _keep(self, found: _LookedUp, negated: bool) -> None:
        below = self.scope.relation
        if found.persons is not None:
            made: Relation = Matched(below, None, found.persons, negated)
        elif negated:
            joined = Joined(JoinKind.LEFT, below, found.relation, found.condition)
            made = Where(joined, Call("is_null", (found.there,), Type.BOOLEAN))
        else:
            made = Joined(JoinKind.INNER, below, found.relation, found.condition)
        self.scope = replace(self.scope, relation=made)

    def _beside(self, found: _LookedUp) -> None:
        """Puts what is found beside each row."""
        self.scope = replace(
            self.scope, relation=Joined(JoinKind.LEFT, self.scope.relation, found.relation, found.condition)
        )

    def _column(self, node: exp.Expression, part: exp.Expression) -> Expression:
        """What a lookup inside a condition stands for."""
        if isinstance(node, exp.Exists):
            only(node, "this", fix="write EXISTS (SELECT 1 FROM …)")
            found = self._exists(node.this)
            self._beside(found)
            return _not(Call("is_null", (found.there,), Type.BOOLEAN))
        if isinstance(node, exp.In):
            found, values = self._in(node, *self._of_in(node), strict=_denied(node, part))
            self._beside(found)
            there = _not(Call("is_null", (found.there,), Type.BOOLEAN))
            unknown = _any([Call("is_null", (one,), Type.BOOLEAN) for one in values])
            nothing, false = Literal(None, Type.BOOLEAN), Literal(False, Type.BOOLEAN)
            return Call("case", (there, Literal(True, Type.BOOLEAN), unknown, nothing, false), Type.BOOLEAN)
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self._total(node.this, part)
        fix = "write x IN (SELECT …) for x = ANY (SELECT …), and compare with (SELECT MIN(y) …) or (SELECT MAX(y) …)"
        raise QuestionError("subquery", "ANY and ALL cannot be used here", where=node.key.upper(), fix=fix)

    # EXISTS

    def _exists(self, query: exp.Expression) -> _LookedUp:
        query = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(query, exp.Select):
            raise refused(query, "write EXISTS (SELECT 1 FROM … WHERE …)")
        only(query, *_OF_EXISTS, fix="write EXISTS (SELECT 1 FROM … WHERE …)")
        inner = query.copy()
        if inner.args.get("group") is None and (
            inner.args.get("having") is not None or any(one.find(exp.AggFunc) for one in inner.expressions)
        ):
            fix = "compare a total: WHERE 3 < (SELECT COUNT(*) FROM … WHERE …)"
            raise QuestionError("subquery", "EXISTS of a total is not about its rows", where="EXISTS", fix=fix)
        split = self._split(inner)
        return self._found(self._rows(inner, split), split, "EXISTS")

    def _rows(self, inner: exp.Select, split: _Correlated) -> Relation:
        """What a subquery compares with the SELECT around it: its keys, and what else is compared."""
        compared = [one for one, _ in split.keys] + ([split.ordered[1]] if split.ordered else [])
        if not compared:
            compared = [exp.Literal.number(1)]
        listed = [
            exp.Alias(this=one, alias=exp.to_identifier(own_name("compared", place)))
            for place, one in enumerate(compared)
        ]
        args = {name: inner.args.get(name) for name in ("from_", "joins", "having", "with_")}
        group = inner.args.get("group")
        if group is not None:
            only(group, "expressions", fix="group by columns, one after another")
            if any(isinstance(one, exp.Literal) for one in group.expressions):
                raise refused(group.expressions[0], "name the column in GROUP BY")
            args["group"] = exp.Group(expressions=[*group.expressions, *(one.copy() for one in compared)])
        if split.own:
            args["where"] = exp.Where(this=reduce(lambda a, b: exp.And(this=a, expression=b), split.own))
        return self.sources.query(exp.Select(expressions=listed, **args), self.queries)

    def _split(self, inner: exp.Select) -> _Correlated:
        """Tells a subquery's conditions apart. A name means a column of the subquery where it has one."""
        queries = named_queries(inner, self.queries)
        own: set[str] = set()
        aliases: set[str] = set()
        split = _Correlated()
        for node in _items(inner):
            found = self.sources.ahead(node, queries)
            if found.shape.private and not split.person:
                split.person = self._person_of(found)
            for table in found.sources:
                aliases.add(table.alias.casefold())
                own |= {visible.casefold() for visible, _ in table.names}
        around = {visible.casefold() for one in self.scope.sources for visible, _ in one.names} | set(self.scope.merged)
        tables = {one.alias.casefold() for one in self.scope.sources}

        def outside(node: exp.Expression) -> bool | None:
            """Whether an expression reads what is around the subquery alone; None where it reads both."""
            beyond = set()
            for column in node.find_all(exp.Column):
                name, table = column.name.casefold(), column.table.casefold()
                there = table not in aliases and table in tables if table else name not in own and name in around
                beyond.add(there)
            return None if len(beyond) > 1 else bool(beyond and beyond.pop())

        where = inner.args.get("where")
        for part in _single(where.this) if where is not None else []:
            place = False if part.find(exp.Select) is not None else outside(part)
            if place is not None:
                (split.outside if place else split.own).append(part)
                continue
            left, right = (part.this, part.expression) if type(part) in (exp.EQ, *_ORDERS) else (None, None)
            sides = [None if one is None else outside(one) for one in (left, right)]
            if left is None or right is None or None in sides or sides[0] is sides[1]:
                raise _too_close(part)
            inside, beyond = (right, left) if sides[0] else (left, right)
            if isinstance(part, exp.EQ):
                split.keys.append((inside, beyond))
                continue
            if split.ordered is not None:
                raise _too_close(part)
            operator = _ORDERS[type(part)]
            split.ordered = (TURNED.get(operator, operator) if sides[0] else operator, inside, beyond)
        return split

    def _found(self, rows: Relation, split: _Correlated, where: str, values: Sequence[Expression] = ()) -> _LookedUp:
        """One row for each value of the keys among these rows, and the condition by which it is found. `values` are
        compared with the columns behind those of the keys and what is ordered."""
        self._about(rows, where)
        self.sources.lookups += 1
        number = self.sources.lookups
        reader = ExpressionReader(self.scope.read, self.scope.shape.by_name)
        columns = shape(rows).columns
        beyond: list[tuple[Column, Expression, exp.Expression]] = [
            (columns[place], reader.read(node), node) for place, (_, node) in enumerate(split.keys)
        ]
        after = len(split.keys) + (split.ordered is not None)
        beyond += [(columns[after + place], value, exp.Literal.string(where)) for place, value in enumerate(values)]
        keys: list[tuple[str, Expression]] = []
        asked: list[Expression] = [reader.boolean(one) for one in split.outside]
        for at, (column, value, node) in enumerate(beyond):
            assert column.type is not None
            name = own_name(f"key {at} of lookup", number)
            keys.append((name, ColumnOf(column.name, column.type)))
            mine = ColumnOf(name, column.type)
            asked.append(Call("equal", tuple(reader.alike([mine, value], node)), Type.BOOLEAN))
        count = Column(own_name("rows of lookup", number), Type.INTEGER, 0, nulls=False)
        totals: list[tuple[str, PersonTotal, Column]] = [(count.name, PersonTotal(PersonTotalKind.ROWS), count)]
        if split.ordered is not None:
            operator, _, node = split.ordered
            column = columns[len(split.keys)]
            assert column.type is not None
            value = reader.read(node)
            either = ((PersonTotalKind.MINIMUM, "grea"), (PersonTotalKind.MAXIMUM, "less"))
            ends = [kind for kind, unless in either if not operator.startswith(unless)]
            compared: list[Expression] = []
            for kind in ends:
                expression = ColumnOf(column.name, column.type)
                name = own_name(f"{kind} of lookup", number)
                totals.append((name, PersonTotal(kind, expression), replace(column, name=name, nulls=True)))
                sides = reader.alike([ColumnOf(name, column.type), value], node)
                compared.append(Call(operator, tuple(sides), Type.BOOLEAN))
            asked.append(reduce(_or, compared))
        there = ColumnOf(count.name, Type.INTEGER)
        if not keys:  # a row of no keys is always there
            asked.append(Call("greater", (there, Literal(0, Type.INTEGER)), Type.BOOLEAN))
        relation = PerPerson(rows, tuple(keys), tuple(totals))
        condition = reduce(_and, asked) if asked else None
        self._sound(relation, condition, where, split)
        persons = None
        if shape(rows).private and len(asked) == 1 and len(keys) == 1:
            (name, held), (_, value, _) = keys[0], beyond[0]
            if isinstance(held, ColumnOf) and held.name in shape(rows).persons and self._is_person(value):
                persons = Computed(rows, ((name, held),))
        return _LookedUp(relation, condition, there, persons)

    def _is_person(self, value: Expression) -> bool:
        return isinstance(value, ColumnOf) and value.name in self.scope.shape.persons

    def _about(self, rows: Relation, where: str) -> None:
        """Refuses to look up people for rows of nobody: which of them are kept would depend on everybody."""
        if shape(rows).private and not self.scope.shape.private:
            name = next(table.name for table in bases(rows) if not table.public)
            message = f"which rows of {self.scope.sources[0].alias} are kept would depend on the people of {name}"
            fix = f"ask about {name}: join the public table, and GROUP BY its columns"
            raise QuestionError("subquery", message, where=where, fix=fix)

    def _sound(self, relation: Relation, condition: Expression | None, where: str, split: _Correlated) -> None:
        """Refuses lookups of strangers' rows, and those of which a row could find several."""
        inside = Scope(relation, ())
        joined = Joined(JoinKind.INNER, self.scope.relation, relation, condition)
        if shape(relation).private:
            asked = [] if condition is None else _conjuncts(condition)
            known, other = self.scope.shape.person_type, shape(relation).person_type
            if known is None or other is None:
                name = next(table.name for table in bases(relation if other is None else self.scope.relation))
                message = f"the rows of {name} have no person column"
                fix = f"ask about one table: whoever declares {name} can name its person column"
                raise QuestionError("subquery", message, where=where, fix=fix)
            if known is not other:
                message = "the persons are of different types"
                raise QuestionError("type", message, where=where, fix="declare the person columns with one type")
            if not connected(self.scope, inside, asked):
                raise self._strangers(relation, where, split)
        else:
            sound(joined, self.scope, inside, place=where)
        if found_by(joined, True) is None:
            fix = "compare columns of one type, without computing: a.x = b.x"
            raise QuestionError("subquery", "a row could find several", where=where, fix=fix)

    def _strangers(self, relation: Relation, where: str, split: _Correlated) -> QuestionError:
        name = next(table.name for table in bases(relation) if not table.public)
        message = f"Reading the table {name} containing user data in expression subqueries is not allowed"
        mine = self._person()
        table = self.sources.declaration.tables[name]
        own = f"{name}.{table.person}" if table.person is not None else "its person"
        theirs = split.person or own
        fix = f"join {name} in FROM, or look up the same person's rows: WHERE {theirs} = {mine} in the subquery"
        if where == "IN":
            fix = f"join {name} in FROM, or compare persons: {mine} IN (SELECT {own} FROM {name} …)"
        elif by := _compared(split):
            fix = (
                f"look up the same person's rows: WHERE {theirs} = {mine} in the subquery; or count by what it compares"
            )
            fix += f": SELECT {by}, COUNT(*) … GROUP BY {by}"
        return QuestionError("subquery", message + ", unless they are the same person's", where=where, fix=fix)

    def _person(self) -> str:
        """The person of the rows around a subquery, as it is written there."""
        persons = [column for column in self.scope.shape.persons if self.scope.names(column)]
        return self.scope.written(persons[0]) if persons else self._person_of(self.scope) or "the person"

    def _person_of(self, scope: Scope) -> str:
        """The column that leads to the person, with its table; empty where there is none."""
        return ".".join(map(written_name, self.sources.person_column(scope) or ()))

    def _of_many(self, inner: exp.Select, split: _Correlated) -> QuestionError:
        """The error for a total of the rows of many persons beside each row of one."""
        by, item = _compared(split), inner.expressions[0].unalias().copy()
        for column in item.find_all(exp.Column):
            column.set("table", None)
        total = place(item)
        message = f"this total is of the rows of all persons with the same {by}"
        fix = (
            f"ask for it by itself: SELECT {by}, {total} … GROUP BY {by}; or compare with a total of the same person's "
        )
        fix += f"rows: WHERE {split.person or 'its person'} = {self._person()} in the subquery"
        return QuestionError("subquery", message, where=place(split.keys[0][0]), fix=fix)

    # IN

    def _keep_in(self, node: exp.In, negated: bool) -> None:
        query, split = self._of_in(node)
        if isinstance(node.this, exp.Tuple) or split.reads_outside:
            self._keep_found(*self._in(node, query, split, strict=negated), negated)
            return
        among = self.sources.query(query, self.queries)
        columns, value = shape(among).columns, self.reader().read(node.this)
        if len(columns) != 1:
            raise _columns_of_in(1)
        self._comparable(value, columns[0])
        if not shape(among).private:
            made = Matched(self.scope.relation, value, among, negated)
        elif self._is_person(value) and columns[0].name in shape(among).persons and self.scope.shape.private:
            self._sound_persons(among)
            made = Matched(self.scope.relation, None, among, negated)
        else:
            self._keep_found(self._among(among, [value], negated), [value], negated)
            return
        self.scope = replace(self.scope, relation=made)

    def _of_in(self, node: exp.In) -> tuple[exp.Expression, _Correlated]:
        """The query of an IN, and its conditions told apart."""
        query = _plain_query(node).copy()
        return query, self._split(query) if isinstance(query, exp.Select) else _Correlated()

    def _keep_found(self, found: _LookedUp, values: Sequence[Expression], negated: bool) -> None:
        """Keeps rows by whether something is found; x NOT IN (…) is not true of a row without x."""
        self._keep(found, negated)
        known = self.scope.shape.by_name
        for one in values if negated else ():
            if derived("", one, known).nulls:
                there = _not(Call("is_null", (one,), Type.BOOLEAN))
                self.scope = replace(self.scope, relation=Where(self.scope.relation, there))

    def _sound_persons(self, among: Relation) -> None:
        if shape(among).person_type is not self.scope.shape.person_type:
            message = "the persons are of different types"
            raise QuestionError("type", message, where="IN", fix="declare the person columns with one type")

    def _in(
        self, node: exp.In, query: exp.Expression, split: _Correlated, *, strict: bool
    ) -> tuple[_LookedUp, list[Expression]]:
        """What an IN finds, and the values that it looks up. `strict` says that NULL among those that are looked up in
        would change the answer."""
        items = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        reader = self.reader()
        values = [reader.read(one) for one in items]
        if not split.reads_outside:
            among = self.sources.query(query, self.queries)
            if len(shape(among).columns) != len(values):
                raise _columns_of_in(len(values))
            for value, column in zip(values, shape(among).columns, strict=True):
                self._comparable(value, column)
            return self._among(among, values, strict), values
        assert isinstance(query, exp.Select)
        only(query, *_OF_EXISTS[:-1], fix="write x IN (SELECT y FROM … WHERE …)")
        if len(query.expressions) != len(values):
            raise _columns_of_in(len(values))
        if any(one.find(exp.AggFunc, exp.Star) for one in query.expressions):
            raise refused(query.expressions[0], "write x IN (SELECT y FROM … WHERE …), or x = (SELECT MAX(y) …)")
        split.keys += [(one.unalias(), item) for one, item in zip(query.expressions, items, strict=True)]
        rows = self._rows(query, split)
        if strict:
            _without_null(shape(rows).columns[: len(split.keys)][-len(items) :])
        return self._found(rows, split, "IN"), values

    def _among(self, among: Relation, values: Sequence[Expression], strict: bool) -> _LookedUp:
        if strict:
            _without_null(shape(among).columns)
        return self._found(among, _Correlated(), "IN", values)

    def _comparable(self, value: Expression, column: Column) -> None:
        assert column.type is not None
        if column.type is not value.type and not (column.type.numeric and value.type.numeric):
            message = f"{value.type} and {column.type} cannot be compared"
            raise QuestionError("type", message, where="IN", fix="compare values of one type")

    # totals

    def _total(self, query: exp.Expression, part: exp.Expression) -> Expression:
        """A total of other rows: (SELECT COUNT(*) FROM orders o WHERE o.person = c.person)."""
        if not isinstance(query, exp.Select):
            raise refused(query, "write (SELECT COUNT(*) FROM … WHERE …)")
        only(query, *_OF_TOTAL, fix="write (SELECT COUNT(*) FROM … WHERE …)")
        inner = query.copy()
        items = [one.unalias() for one in inner.expressions]
        aggregates = list(_aggregates(items[0])) if len(items) == 1 else []
        if not aggregates:
            fix = "write one aggregate: (SELECT MAX(x) FROM … WHERE …)"
            message = "a subquery in an expression gives one total"
            raise QuestionError("subquery", message, where=part.key.upper()[:60], fix=fix)
        split = self._split(inner)
        if split.ordered is not None or split.outside:
            raise _too_close(part)
        found, columns = self._totals(inner, split, aggregates)
        self._beside(found)
        known: dict[int, Expression] = {}
        for node, column in zip(aggregates, columns, strict=True):
            value: Expression = ColumnOf(column.name, column.type or Type.NUMBER)
            if isinstance(node, exp.Count):
                value = Call("coalesce", (value, Literal(0, Type.INTEGER)), value.type)
            known[id(node)] = value

        def resolve(column: exp.Column) -> Expression:
            message = f"{column.name} is neither grouped nor aggregated"
            raise QuestionError("ungrouped", message, where=column.sql()[:60], fix="aggregate it: MAX(x)")

        return ExpressionReader(resolve, self.scope.shape.by_name, lambda one: known.get(id(one))).read(items[0])

    def _totals(
        self, inner: exp.Select, split: _Correlated, aggregates: Sequence[exp.Expression]
    ) -> tuple[_LookedUp, list[Column]]:
        self.sources.lookups += 1
        number = self.sources.lookups
        keys = [one for one, _ in split.keys]
        names = [own_name(f"key {place} of lookup", number) for place in range(len(keys))]
        names += [own_name(f"total {place} of lookup", number) for place in range(len(aggregates))]
        listed = [
            exp.Alias(this=one.copy(), alias=exp.to_identifier(name))
            for one, name in zip([*keys, *aggregates], names, strict=True)
        ]
        args = {name: inner.args.get(name) for name in ("from_", "joins", "with_")}
        if keys:
            args["group"] = exp.Group(expressions=[one.copy() for one in keys])
        if split.own:
            args["where"] = exp.Where(this=reduce(lambda a, b: exp.And(this=a, expression=b), split.own))
        if not keys:
            self._of_everybody(inner)
        try:
            relation = self.sources.query(exp.Select(expressions=listed, **args), self.queries)
        except QuestionError as error:
            raise self._of_many(inner, split) if keys and error.message == STRANGERS else error from None
        self._about(relation, "SELECT")
        reader = ExpressionReader(self.scope.read, self.scope.shape.by_name)
        columns = shape(relation).columns
        asked: list[Expression] = []
        for column, (_, node) in zip(columns, split.keys, strict=False):
            assert column.type is not None
            sides = reader.alike([ColumnOf(column.name, column.type), reader.read(node)], node)
            asked.append(Call("equal", tuple(sides), Type.BOOLEAN))
        condition = reduce(_and, asked) if asked else None
        self._sound(relation, condition, "SELECT", split)
        totals = list(columns[len(keys) :])
        there = ColumnOf(totals[0].name, totals[0].type or Type.NUMBER)
        return _LookedUp(relation, condition, there), totals

    def _of_everybody(self, inner: exp.Select) -> None:
        """Refuses a total of many persons inside a condition on one row: it would have to be measured first."""
        for node in _items(inner):
            found = self.sources.ahead(node, named_queries(inner, self.queries))
            if found.shape.private:
                alias = found.sources[0].alias
                message = f"this total of {alias} is of all its people, and would have to be measured first"
                person = self.sources.person(found)
                fix = "ask for it by itself, and write the number here; or compare with a total of the same person's "
                fix += f"rows: add WHERE {alias}.{person} = … to the subquery"
                raise QuestionError("subquery", message, where="SELECT", fix=fix)


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.operator == "and":
        return [part for one in condition.arguments for part in _conjuncts(one)]
    return [condition]


def _and(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), Type.BOOLEAN)


def _or(left: Expression, right: Expression) -> Expression:
    return Call("or", (left, right), Type.BOOLEAN)


def _any(conditions: Sequence[Expression]) -> Expression:
    return reduce(_or, conditions)


def _not(expression: Expression) -> Expression:
    return Call("not", (expression,), Type.BOOLEAN)


def _positive(node: exp.Expression) -> tuple[bool, exp.Expression]:
    """A condition without its NOTs, and whether they negate it; x = ANY (…) is x IN (…), x <> ALL (…) is its NOT."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return negated, _listed(node)
    if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All):
        return not negated, _listed(node)
    return negated, node


def _listed(node: exp.Expression) -> exp.Expression:
    query = node.expression.this
    if not isinstance(query, exp.Subquery | exp.Select | exp.Union):
        return node
    query = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    return exp.In(this=node.this, query=query)


def _single(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that are joined by AND; BETWEEN is two of them."""
    found: list[exp.Expression] = []
    for part in parts(node):
        if isinstance(part, exp.Between) and not part.args.get("symmetric"):
            found.append(exp.GTE(this=part.this.copy(), expression=part.args["low"]))
            found.append(exp.LTE(this=part.this.copy(), expression=part.args["high"]))
        else:
            found.append(part)
    return found


def _items(query: exp.Select) -> list[exp.Expression]:
    """What stands in a FROM and its joins."""
    source = query.args.get("from_")
    first = [source.this] if source is not None else []
    return first + [join.this for join in query.args.get("joins") or []]


def _denied(node: exp.Expression, part: exp.Expression) -> bool:
    """Whether a NOT stands around something in a condition."""
    one: exp.Expr | None = node
    while one is not None and one is not part:
        one = one.parent
        if isinstance(one, exp.Not):
            return True
    return False


def _subqueries(node: exp.Expression) -> Iterator[exp.Expression]:
    """The lookups in a condition, without those inside others."""
    listed = isinstance(node, exp.In) and node.args.get("query") is not None
    quantified = isinstance(node, exp.Exists | exp.Any | exp.All) and node.find(exp.Select) is not None
    if listed or quantified or isinstance(node, exp.Subquery):
        yield node
    else:
        for one in node.iter_expressions():
            yield from _subqueries(one)


def _aggregates(node: exp.Expression) -> Iterator[exp.Expression]:
    """The aggregates of an expression, from the outside."""
    if isinstance(node, exp.AggFunc):
        yield node
    else:
        for one in node.iter_expressions():
            yield from _aggregates(one)


def _plain_query(node: exp.In) -> exp.Expression:
    only(node, "this", "query", fix="write x IN (SELECT y FROM …)")
    query: exp.Expression = node.args["query"]
    while isinstance(query, exp.Subquery):
        only(query, "this", fix="write x IN (SELECT y FROM …)")
        query = query.this
    return query


def _columns_of_in(count: int) -> QuestionError:
    word = "one column" if count == 1 else f"{count} columns"
    fix = "write x IN (SELECT y FROM …)" if count == 1 else "write (a, b) IN (SELECT c, d FROM …)"
    return QuestionError("subquery", f"the subquery of IN must have {word}", where="IN", fix=fix)


def _without_null(columns: Sequence[Column]) -> None:
    """Refuses NOT IN among values that may be NULL: one NULL of anybody would make it true of nothing."""
    for column in columns:
        if column.nulls:
            message = "NOT IN is true of nothing where one of the values is NULL"
            fix = "add WHERE … IS NOT NULL to the subquery, or write NOT EXISTS (SELECT 1 FROM … WHERE …)"
            raise QuestionError("subquery", message, where="NOT IN", fix=fix)


def _compared(split: _Correlated) -> str:
    """The columns of a subquery that are compared with the question around it, without their table."""
    return ", ".join(dict.fromkeys(one.name if isinstance(one, exp.Column) else place(one) for one, _ in split.keys))


def _too_close(node: exp.Expression) -> QuestionError:
    message = "this compares the subquery with the question around it in a way that cannot be used"
    fix = "compare columns: equalities, and at most one of < <= > >= <>, with one side of each from the subquery"
    return QuestionError("subquery", message, where=node.sql()[:60], fix=fix)
