"""Lowers one SELECT to a checked plan: clauses, aggregates, the select list and the order of rows."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.catalog.model import Declaration, writable
from discreet.dialect.counted import Scale, counted
from discreet.dialect.normal import normal
from discreet.dialect.nulls import known_where, may_be_null, without_nulls
from discreet.dialect.ranges import interval
from discreet.errors import QuestionError
from discreet.plan.measurement import Plan
from discreet.plan.narrowed import conditions, narrowed
from discreet.plan.outputs import AggregateKind
from discreet.plan.planner import Request, WantedAggregate, part_name, plan
from discreet.plan.ranged import below, ranged
from discreet.sql import lookups
from discreet.sql.aggregates import Aggregates, called_after
from discreet.sql.expressions import WINDOWS, ExpressionReader
from discreet.sql.from_clause import PublicValues, RelationReader, named_queries
from discreet.sql.grammar import DifferentialPrivacy
from discreet.sql.hints import ONLY_SELECT
from discreet.sql.limits import few, short, too_deep
from discreet.sql.public_rows import adds_nothing, listed
from discreet.sql.refusals import STAR, known_clauses, only, refused, several_groupings, unknown_name
from discreet.sql.scope import Scope, numbered
from discreet.sql.spelling import spelled
from discreet.sql.subquery import select
from discreet.sql.totals import group_item
from discreet.trusted.ring_a.exact import fraction, show
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Key
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_b.listed_groups import group_count
from discreet.trusted.ring_b.relations import Base, Computed, derived, own_name, view

_OPTIONS = (
    "epsilon",
    "delta",
    "max_groups_contributed",
    "max_rows_contributed",
    "privacy_unit_column",
    "group_selection_strategy",
    "min_privacy_units_per_group",
)
CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "hint", "with_")
"""The clauses of a SELECT that is measured as it stands."""
INSTEAD = {
    "laterals": "join tables with JOIN … ON",
    "distinct": "write SELECT column, COUNT(*) … GROUP BY column, or COUNT(DISTINCT person)",
    "windows": WINDOWS,
    "qualify": WINDOWS,
    "offset": "write LIMIT 10, without OFFSET or a second number",
    "sample": "ask about all rows",
    "pivots": "write GROUP BY",
    "kind": "write plain columns",
    "into": "an answer is returned, not stored",
    "locks": "leave it out",
}
"""What to write instead of the others."""


@dataclass(frozen=True)
class Question:
    """A checked question and the price that it names itself, if it does."""

    plan: Plan
    epsilon: Fraction | None
    delta: Fraction | None
    table: Table
    """What is read: a declared table, or what the question makes of several; its `bases` are the declared ones."""
    request: Request | None = field(default=None, compare=False, repr=False)
    """What was planned. None where the question names its own limits: those stay."""


def lower(text: str, declaration: Declaration, values: PublicValues | None = None, dialect: str = "") -> Question:
    """The plan of a question. Reads text and declarations only; `values` reads public tables, where groups come of one.

    Raises QuestionError where the question is not in the allow-list, with what to write instead.
    """
    from discreet.sql.dialects import read  # it loads the grammars of all databases, which few need

    return lower_tree(read(text, dialect), declaration, values)


def lower_tree(
    tree: exp.Expression,
    declaration: Declaration,
    values: PublicValues | None = None,
    today: datetime.date | None = None,
    *,
    released: bool = False,
) -> Question:
    """The plan of a question that was parsed already, on a day. Nothing is taken from the tree, which is changed, but
    what the allow-list names. `released` says that some of its constants are released values."""
    try:
        tree = spelled(tree, declaration, today)
        question = _SelectReader(tree, declaration, values, released=released).question()
        short(question.plan.roots)
        return question
    except RecursionError:
        raise too_deep() from None


@dataclass(frozen=True)
class _Options:
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups: int | None = None
    rows: int | None = None
    unit: str | None = None
    strategy: str = ""
    least: int | None = None
    given: bool = False


class _SelectReader:
    def __init__(
        self, statement: exp.Expression, declaration: Declaration, values: PublicValues | None, *, released: bool
    ) -> None:
        if isinstance(statement, exp.Union):
            fix = "write SELECT … FROM (SELECT … UNION ALL SELECT …)"
            raise QuestionError("union", "UNION ALL is supported in FROM only", where="UNION ALL", fix=fix)
        if not isinstance(statement, exp.Select):
            kind = statement.key.upper()
            kind = str(statement.this).upper() if isinstance(statement, exp.Command) else kind
            fix = ONLY_SELECT.get(kind, "write SELECT … FROM table")
            raise QuestionError(
                "statement", f"only SELECT statements are supported, not {kind[:60]}", where=kind[:60], fix=fix
            )
        for written in statement.find_all(exp.Identifier):
            if written.name and not writable(written.name):
                message = "a name cannot hold control characters"
                raise QuestionError("names", message, where=repr(written.name)[:60], fix="leave them out")
        self.tree = statement
        self.declaration = declaration
        known_clauses(statement, CLAUSES, INSTEAD)
        sources = self.sources = RelationReader(declaration, values, select, released=released)
        queries = named_queries(statement, {})
        scope = sources.scope(statement, queries)
        self._where(scope)
        scope, self.predicate = lookups.conditions(sources, statement, scope, queries)
        self.scope = listed(sources, statement, scope)
        self.shape = self.scope.shape
        if not self.shape.private:
            name = self.scope.sources[0].alias
            message = f"{name} is public: nothing in it needs protection"
            raise QuestionError("public", message, where="FROM", fix="ask the owner where to read it directly")
        self.reader = ExpressionReader(self.scope.read, self.shape.by_name)
        persons = self.shape.persons
        self.aggregates = Aggregates(self.reader, self._declared, persons, single=self.shape.single)
        self.options = self._options()
        self.aggregates.clause = self.options.given
        self.keys: list[Key] = []
        self.groups: list[Expression] = []
        self.scales: list[Scale | None] = []
        self.labels: list[str] = []
        self.computed: list[tuple[str, Expression]] = []
        self.wanted: list[WantedAggregate] = []
        self._places: dict[WantedAggregate, int] = {}
        self.formulas: list[Expression] = []

    def _where(self, scope: Scope) -> None:
        """Refuses a condition of WHERE on what the answer calls so: it has to be measured first."""
        where = self.tree.args.get("where")
        aliases = {
            one.alias.casefold()
            for one in self.tree.expressions
            if isinstance(one, exp.Alias) and one.find(exp.AggFunc)
        }
        known = {visible.casefold() for source in scope.sources for visible, _ in source.names}
        for column in where.find_all(exp.Column) if where is not None else ():
            if column.name.casefold() in aliases - known and not column.table:
                fix = f"write HAVING {column.name} …, behind GROUP BY"
                message = f"WHERE filters rows, and {column.name} is an aggregate"
                raise QuestionError("where", message, where="WHERE", fix=fix)

    def _view(self) -> Table:
        """What is read: the declared table itself, or what the question makes of it and others."""
        relation = self.scope.relation
        if isinstance(relation, Base) and not self.computed:
            return self.declaration.tables[relation.table.name]
        if self.computed:
            kept = [(column.name, ColumnOf(column.name, column.type or Type.TEXT)) for column in self.shape.columns]
            relation = Computed(relation, (*kept, *sorted(self.computed, key=lambda one: one[0])))
        return view(relation)

    def _declared(self, node: exp.Column) -> Column | None:
        """The column that a name means, or None where USING made it of two."""
        expression = self.scope.read(node)
        return self.scope.column(expression.name) if isinstance(expression, ColumnOf) else None

    def _persons(self) -> str:
        """The person's column as an analyst would write it."""
        return self.shape.persons[0] if self.shape.persons else ""

    def _options(self) -> _Options:
        clause = self.tree.args.get("hint")
        if clause is None:
            return _Options()
        if not isinstance(clause, DifferentialPrivacy):
            raise QuestionError("clause", "hints cannot be used", where="SELECT", fix="leave it out")
        values = options_of(clause)
        groups = self._whole(values, "max_groups_contributed")
        rows = self._whole(values, "max_rows_contributed")
        if groups is not None and rows is not None:
            message = "At most one of the options max_groups_contributed or max_rows_contributed may be specified"
            raise QuestionError("option", message, where="OPTIONS", fix="leave out one of them")
        strategy = self._strategy(values)
        least = self._whole(values, "min_privacy_units_per_group")
        if least is not None and strategy == "PUBLIC_GROUPS":
            message = "min_privacy_units_per_group cannot be used with PUBLIC_GROUPS: public groups are always shown"
            raise QuestionError("option", message, where="OPTIONS", fix="leave out one of them")
        amounts = (self._amount(values, "epsilon"), self._amount(values, "delta"))
        return _Options(*amounts, groups, rows, self._unit(values), strategy, least, given=True)

    def _strategy(self, values: dict[str, exp.Expression]) -> str:
        node = values.get("group_selection_strategy")
        if node is None or isinstance(node, exp.Null):
            return ""
        word = node.name.upper() if isinstance(node, exp.Column | exp.Literal) else ""
        if word not in ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS"):
            message = "group_selection_strategy is LAPLACE_THRESHOLD or PUBLIC_GROUPS"
            fix = "write group_selection_strategy = PUBLIC_GROUPS"
            raise QuestionError("option", message, where="OPTIONS", fix=fix)
        return word

    def _amount(self, values: dict[str, exp.Expression], name: str) -> Fraction | None:
        return amount(values[name], name) if name in values else None

    def _whole(self, values: dict[str, exp.Expression], name: str) -> int | None:
        node = values.get(name)
        if node is None or isinstance(node, exp.Null):
            return None
        written = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
        if written.isdecimal() and 1 <= int(written) < 2**31:
            return int(written)
        message = f"{name} must be a whole number from 1 to 2147483647"
        raise QuestionError("option", message, where="OPTIONS", fix=f"write {name} = 1")

    def _unit(self, values: dict[str, exp.Expression]) -> str | None:
        node = values.get("privacy_unit_column")
        if node is None:
            return None
        column = self._declared(node) if isinstance(node, exp.Column) else None
        if column is None or column.name not in self.shape.persons:
            message = "privacy_unit_column option cannot override the privacy unit column set in the declaration"
            fix = (
                f"write privacy_unit_column = {self._persons()}"
                if self.shape.persons
                else "leave it out: each row is a person"
            )
            raise QuestionError("option", message, where="OPTIONS", fix=fix)
        return column.name

    def question(self) -> Question:
        """The whole question. What is measured follows from what is asked, not from how it is written: aggregates and
        keys come in an order of their own, and what stands in the answer refers to them."""
        self._group()
        columns = self._columns()
        self._range()
        self._public_groups()
        self._narrow()
        options = self.options
        wanted = [self._columns_of(one) for one in self.wanted]
        aggregates = sorted(range(len(wanted)), key=lambda place: repr(replace(wanted[place], text="", report="")))
        groups = sorted(range(len(self.keys)), key=lambda place: self.keys[place].name)
        places = {"aggregate": _places(aggregates), "key": _places(groups)}
        table = self._view()
        request = Request(
            table,
            self.predicate,
            tuple(self.keys[place] for place in groups),
            tuple(wanted[place] for place in aggregates),
            tuple((name, kind, places[kind][index] if kind in places else index) for name, kind, index in columns),
            options.groups,
            options.rows,
            options.least,
            formulas=tuple(_moved(formula, places["aggregate"]) for formula in self.formulas),
            scales=tuple(self.scales[place] for place in groups),
        )
        if not self.wanted and not any(key.values is None for key in self.keys):
            fix = "add an aggregate such as COUNT(*)"
            raise QuestionError(
                "no-aggregate",
                "You must use GROUP BY with private keys or an aggregate function",
                where="SELECT",
                fix=fix,
            )
        having, order, limit = self._having(columns), self._order(columns), self._limit()
        whole = replace(plan(request), having=having, order=order, limit=limit, written=tuple(places["key"]))
        own = options.rows is not None or options.groups is not None
        return Question(whole, options.epsilon, options.delta, table, None if own else request)

    def _public_groups(self) -> None:
        """PUBLIC_GROUPS promises that no key is private; a least number of persons makes every key one."""
        private = [label for key, label in zip(self.keys, self.labels, strict=True) if key.values is None]
        if self.options.strategy == "PUBLIC_GROUPS" and private:
            message = (
                "Differential privacy option group_selection_strategy PUBLIC_GROUPS expects an outer join with a "
                "SELECT DISTINCT subquery over a public table for all columns in the GROUP BY, but did not find such a "
                f"join for the following columns: {', '.join(private)}"
            )
            fix = "write FROM table RIGHT JOIN (SELECT DISTINCT key FROM public_table) USING (key), or declare values"
            raise QuestionError("option", message, where="OPTIONS", fix=fix)
        if self.options.least is not None:
            self.keys = [replace(key, values=None) for key in self.keys]

    def _range(self) -> None:
        """Keys that follow from a range of dates are public, and those of a subquery what it can give; unless the
        clause asks for a threshold."""
        if self.options.strategy == "LAPLACE_THRESHOLD":
            return
        for place, (key, expression) in enumerate(zip(self.keys, self.groups, strict=True)):
            deep, where, columns = below(self.scope.relation, expression, self.predicate)
            where = tuple(map(normal, where))
            found = narrowed(ranged(key, normal(deep), where, columns), normal(deep), where, columns)
            if found.groups != ():  # else it is said below that there is none
                self.keys[place] = found

    def _narrow(self) -> None:
        """Public keys with which no row meets WHERE, here or in a subquery, are no groups: that follows from the
        declaration."""
        relation, columns, before = self.scope.relation, self.shape.by_name, tuple(self.keys)
        where = [normal(one) for one in conditions(relation)] + ([self.predicate] if self.predicate is not None else [])
        self.keys = [
            narrowed(key, expression, where, columns) for key, expression in zip(before, self.groups, strict=True)
        ]
        if (
            before == tuple(self.keys)
            or group_count(tuple(self.keys), relation) != 0
            or not group_count(before, relation)
        ):
            return
        place = next((place for place, key in enumerate(self.keys) if key.groups == ()), 0)
        scale, groups = self.scales[place], list(before[place].values or ())
        shown = [one if scale is None else scale.of(one) for one in groups]
        words = [show(one) if isinstance(one, Fraction) else str(one) for one in shown]
        fix = f"compare with what {self.labels[place]} can be: {', '.join(words[:5])}{', …' if len(words) > 5 else ''}"
        raise QuestionError("no-group", "no group can meet WHERE: there is nothing to measure", where="WHERE", fix=fix)

    def _columns_of(self, wanted: WantedAggregate) -> WantedAggregate:
        """Different values are counted, and the commonest found, as groups are: by a column of their own."""
        if wanted.kind not in (AggregateKind.DISTINCT, AggregateKind.WINNERS) or isinstance(
            wanted.expression, ColumnOf
        ):
            return wanted
        assert wanted.expression is not None
        for name, expression in self.computed:
            if expression == wanted.expression:
                return replace(wanted, expression=ColumnOf(name, expression.type))
        name = _computed_name(wanted.expression)
        self.computed.append((name, wanted.expression))
        return replace(wanted, expression=ColumnOf(name, wanted.expression.type))

    def _group(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        only(group, "expressions", "all", fix="group by columns or expressions, one after another")
        every = group.args.get("all") and not group.expressions  # GROUP BY ALL: by what is no aggregate
        shown = [node.unalias() for node in self.tree.expressions if node.find(exp.AggFunc) is None]
        for written in shown if every else group.expressions:
            if isinstance(written, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise several_groupings(written)
            node = group_item(self.tree, written, self.scope)
            if node.find(exp.AggFunc) or isinstance(node, exp.Literal):
                raise refused(node, "group by columns or expressions of one row")
            label = node.name if isinstance(node, exp.Column) else ""
            expression, scale = self._counted(self._normal(self.reader.read(node)))
            self._within_64_bits(expression, node)
            if isinstance(expression, ColumnOf):
                column = self.scope.column(expression.name)
            else:
                column = derived(_computed_name(expression), expression, self.shape.by_name)
            self._key(column, label or node.sql()[:60], expression, scale)
            if not isinstance(expression, ColumnOf):
                self.computed.append((column.name, expression))

    def _within_64_bits(self, expression: Expression, node: exp.Expression) -> None:
        """Refuses a key that the declared bounds let be too large for a whole number: it would be NULL."""
        bounds = interval(expression, self.shape.by_name) if expression.type is Type.INTEGER else None
        if bounds is not None and max(-bounds[0], bounds[1]) >= 2**63:
            column = node.find(exp.Column)
            fix = (
                f"take larger steps, as FLOOR({column.sql() if column is not None else 'x'} / 1e9) * 1e9, or have the "
            )
            fix += "owner declare closer bounds"
            message = "this key has more steps than 64 bits count: those beyond would be in the group of NULL"
            raise QuestionError("number-key", message, where=node.sql()[:60], fix=fix)

    def _counted(self, expression: Expression) -> tuple[Expression, Scale | None]:
        """What a key is grouped by: itself, or the whole number that it counts, and what that stands for."""
        known = self.shape.by_name
        column = known[expression.name] if isinstance(expression, ColumnOf) else derived("", expression, known)
        found = counted(expression, known) if column.values is None else None
        return (expression, None) if found is None or found[0] == expression else found

    def _key(self, column: Column, label: str, expression: Expression, scale: Scale | None) -> None:
        if expression in self.groups:
            raise QuestionError("twice", f"{label} stands there twice", where="GROUP BY", fix="group by it once")
        assert column.type is not None
        values = column.keys()
        if self.sources.of_one_person([expression], self.scope.relation):
            fix = f"group by something that many persons share, without {label}"
            raise QuestionError("person-key", "groups of one person cannot be shown", where="GROUP BY", fix=fix)
        if values is None and column.type is Type.NUMBER:
            fix = f"group by FLOOR({label} / 10) * 10 or ROUND({label}, 1)"
            fix += f"; or declare a step, as step = 0.01, for {label}" if isinstance(expression, ColumnOf) else ""
            message = f"{label} is a number without a declared step: it cannot be grouped by as it is"
            raise QuestionError("number-key", message, where="GROUP BY", fix=fix)
        self.keys.append(Key(column.name, column.type, values, self._may_be_null(column, expression)))
        self.groups.append(expression)
        self.scales.append(scale)
        self.labels.append(label)

    def _may_be_null(self, column: Column, expression: Expression) -> bool:
        """Whether NULL is one more key: unless a declaration, a join or WHERE leaves no row without a value."""
        if self.predicate is None:
            return column.nulls
        if expression in known_where(self.predicate):
            return False
        known = without_nulls(self.shape.columns, self.predicate)
        return may_be_null(expression, {one.name: one for one in known})

    def _columns(self) -> list[tuple[str, str, int]]:
        """The select list: names, and which key or aggregate stands there. What has no name is called after what it is,
        with a number where something else is called so."""
        columns: list[tuple[str, str, int]] = []
        given: list[bool] = []
        for node in self.tree.expressions:
            if (window := node.find(exp.Window)) is not None:
                alone = window is node.unalias()
                raise refused(window, WINDOWS if alone else "ask for the aggregates alone, and divide in the answer")
        for node in self.tree.expressions:
            inner, alias = node.unalias(), node.alias if isinstance(node, exp.Alias) else ""
            wanted = self._aggregate(inner)
            if wanted is not None:
                columns.append((alias or self._called(inner), "aggregate", self._measured(wanted)))
            elif inner.find(exp.AggFunc) is not None and inner.find(exp.Window, exp.Select) is None:
                columns.append((alias or "value", "formula", self._formula(inner)))
            else:
                index = self._grouped(inner)
                plain = self._declared(inner) if isinstance(inner, exp.Column) else None
                name = self.scope.visible(plain.name) if plain is not None else f"key_{index + 1}"
                columns.append((alias or name, "key", index))
            given.append(bool(alias) or columns[-1][1] == "key")
        names = [name.casefold() for (name, _, _), known in zip(columns, given, strict=True) if known]
        if len(set(names)) < len(names):
            raise QuestionError(
                "names", "two columns of the answer have one name", where="SELECT", fix="name them with AS"
            )
        taken = set(names)
        for place, ((name, kind, index), known) in enumerate(zip(columns, given, strict=True)):
            if not known:
                own = next(one for one in numbered(name) if one.casefold() not in taken)
                taken.add(own.casefold())
                columns[place] = (own, kind, index)
        return columns

    def _called(self, node: exp.Expression) -> str:
        """An aggregate without a name: max_age, count_distinct_city; count where it is of no one column."""
        function, of = called_after(node)
        column = self._declared(of) if isinstance(of, exp.Column) else None
        return function if column is None else f"{function}_{self.scope.visible(column.name)}"

    def _measured(self, wanted: WantedAggregate) -> int:
        """The place of an aggregate among those that are measured, each once."""
        place = self._places.setdefault(wanted, len(self.wanted))
        if place == len(self.wanted):
            self.wanted.append(wanted)
            few(len(self.wanted))
        return place

    def _formula(self, node: exp.Expression) -> int:
        """Arithmetic on aggregates: computed on their noisy values."""

        def resolve(column: exp.Column) -> Expression:
            fix = "compute with the key in the answer"
            raise QuestionError(
                "not-allowed", "a formula cannot mix grouped columns and aggregates", where=column.sql()[:60], fix=fix
            )

        def aggregate(part: exp.Expression) -> Expression | None:
            wanted = self._aggregate(part)
            if wanted is None:
                return None
            if wanted.kind is AggregateKind.WINNERS or wanted.many or wanted.report or wanted.moment:
                raise refused(part, "ask for it by itself" + (", and compute with the answer" * bool(wanted.moment)))
            return ColumnOf(part_name(self._measured(wanted)), Type.NUMBER)

        self.formulas.append(ExpressionReader(resolve, {}, aggregate, answers=True).number(node))
        return len(self.formulas) - 1

    def _grouped(self, node: exp.Expression) -> int:
        """Which group key stands here."""
        if not isinstance(node, exp.Column) and node.find(exp.AggFunc):
            raise self._not_selectable(node)
        try:
            found = self._place_of(node)
        except QuestionError:
            if isinstance(node, exp.Column) or self._computes():
                raise
            raise self._not_selectable(node) from None
        if found is None:
            if not isinstance(node, exp.Column):
                raise self._not_selectable(node)
            fix = f"add {node.name} to GROUP BY and count with COUNT(*), or aggregate it; single rows are never shown"
            message = f"{node.name} is neither grouped nor aggregated"
            raise QuestionError("ungrouped", message, where="SELECT", fix=fix)
        return found

    def _computes(self) -> bool:
        """Whether some key is more than a column."""
        return bool(self.computed) or any(self.scales)

    def _place_of(self, node: exp.Expression) -> int | None:
        """Which key an expression of one row is; None where it is none."""
        wanted = self._counted(normal(self.reader.read(node)))
        known = list(zip(self.groups, self.scales, strict=True))
        return known.index(wanted) if wanted in known else None

    def _not_selectable(self, node: exp.Expression) -> QuestionError:
        if isinstance(node, exp.Star):
            return QuestionError(
                "star",
                "all columns at once cannot be asked for",
                where="SELECT",
                fix=STAR,
            )
        if node.find(exp.AggFunc):
            return refused(node, "ask for the aggregates by themselves, and compute with the answer")
        return refused(node, "ask for COUNT, SUM or AVG, or a column of GROUP BY")

    def _aggregate(self, node: exp.Expression) -> WantedAggregate | None:
        """An aggregate, or None where the node is none."""
        wanted = self.aggregates.read(node)
        if wanted is None:
            return None
        if (
            wanted.kind is AggregateKind.NON_NULL
            and isinstance(wanted.expression, Literal)
            and wanted.expression.value is not None
        ):
            wanted = replace(wanted, kind=AggregateKind.COUNT, expression=None)  # COUNT(1) counts rows
        first, second = (None if one is None else self._normal(one) for one in (wanted.expression, wanted.second))
        wanted = replace(wanted, expression=first, second=second)
        if self.scope.kept:
            adds_nothing(wanted, self.scope.missing)
        return wanted

    def _normal(self, expression: Expression) -> Expression:
        return self.sources.spelled(normal(expression), self.shape.by_name)

    def _output(self, columns: Sequence[tuple[str, str, int]], *, grouped: bool = False) -> ExpressionReader:
        """Reads HAVING and ORDER BY: names of the answer, grouped columns, and aggregates that the answer holds. Where
        one name means both, HAVING means the `grouped` column and ORDER BY the answer's."""

        def place(index: int) -> Expression:
            name, kind, which = columns[index]
            if kind == "key":
                scale = self.scales[which]
                return ColumnOf(name, self.keys[which].type if scale is None else scale.type)
            if kind == "aggregate" and (self.wanted[which].many or self.wanted[which].report):
                fix = "take it from the answer: it is a list or a text"
                raise QuestionError("not-allowed", f"{name[:60]} cannot be compared", where=name[:60], fix=fix)
            if kind == "aggregate" and self.wanted[which].kind is AggregateKind.WINNERS:
                expression = self.wanted[which].expression
                return ColumnOf(name, expression.type if expression is not None else Type.NUMBER)
            moment = self.wanted[which].moment if kind == "aggregate" else None
            return ColumnOf(name, moment or Type.NUMBER)

        def resolve(node: exp.Column) -> Expression:
            wanted = node.name.casefold()
            named = [at for at, (name, _, _) in enumerate(columns) if not node.table and name.casefold() == wanted]
            labels = [self.labels[which].casefold() if kind == "key" else "" for _, kind, which in columns]
            keys = [at for at, label in enumerate(labels) if label == wanted]
            for index in (*keys, *named) if grouped else (*named, *keys):
                return place(index)
            self._of_rows(node)
            raise unknown_name(node.name, [name for name, _, _ in columns], kind="column", where="the answer")

        def aggregate(node: exp.Expression) -> Expression | None:
            wanted = self._aggregate(node)
            if wanted is None:
                return self._computed_key(node, columns, place)
            for index, (_, kind, which) in enumerate(columns):
                if kind == "aggregate" and self.wanted[which] == wanted:
                    return place(index)
            raise refused(node, "put it into the SELECT list: it has to be measured")

        return ExpressionReader(resolve, {}, aggregate, answers=True)

    def _of_rows(self, node: exp.Column) -> None:
        """Refuses a column of the table where the answer's are meant."""
        try:
            self._declared(node)
        except QuestionError:
            return
        fix = f"put {node.name} into GROUP BY, or conditions on it into WHERE"
        message = f"{node.name} is a column of single rows, not of the answer"
        raise QuestionError("unknown-column", message, where="the answer", fix=fix)

    def _computed_key(
        self, node: exp.Expression, columns: Sequence[tuple[str, str, int]], place: Callable[[int], Expression]
    ) -> Expression | None:
        """A group's expression, written again in HAVING or ORDER BY."""
        if not self._computes() or isinstance(node, exp.Column | exp.Literal) or node.find(exp.AggFunc):
            return None
        try:
            key = self._place_of(node)
        except QuestionError:
            return None
        found = [i for i, (_, kind, which) in enumerate(columns) if kind == "key" and which == key]
        return place(found[0]) if found else None

    def _having(self, columns: Sequence[tuple[str, str, int]]) -> Expression | None:
        having = self.tree.args.get("having")
        return self._output(columns, grouped=True).boolean(having.this) if having is not None else None

    def _order(self, columns: Sequence[tuple[str, str, int]]) -> tuple[tuple[int, bool], ...]:
        order = self.tree.args.get("order")
        if order is None:
            return ()
        only(order, "expressions", fix="write ORDER BY column [DESC]")
        names = [name for name, _, _ in columns]
        places = []
        for ordered in order.expressions:
            only(ordered, "this", "desc", "nulls_first", fix="write ORDER BY column [DESC]")
            node = ordered.this
            if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
                place = int(node.this) - 1
                if not 0 <= place < len(names):
                    raise QuestionError(
                        "position", f"there is no column {place + 1}", where="ORDER BY", fix="name the column"
                    )
            else:
                expression = self._output(columns).read(node)
                if not isinstance(expression, ColumnOf):
                    raise refused(node, "order by columns of the answer")
                place = names.index(expression.name)
            places.append((place, bool(ordered.args.get("desc"))))
        return tuple(places)

    def _limit(self) -> int | None:
        limit = self.tree.args.get("limit")
        if limit is None:
            return None
        number = limit.args.get("expression")
        if not isinstance(limit, exp.Limit) or not isinstance(number, exp.Literal) or not str(number.this).isdecimal():
            raise QuestionError("limit", "LIMIT needs a whole number", where="LIMIT", fix="write LIMIT 10")
        only(limit, "expression", fix="write LIMIT 10")
        return min(int(number.this), 10**9)


def options_of(clause: DifferentialPrivacy) -> dict[str, exp.Expression]:
    """The options of the clause by name, each once."""
    values: dict[str, exp.Expression] = {}
    for option in clause.expressions:
        name = option.this.name.lower() if isinstance(option, exp.EQ) else ""
        if name not in _OPTIONS:
            fix = "write one of " + ", ".join(_OPTIONS)
            raise QuestionError(
                "option",
                f"Unknown differential privacy option: {name or option.sql()[:40]}",
                where="OPTIONS",
                fix=fix,
            )
        if name in values:
            raise QuestionError(
                "option",
                f"Duplicate differential privacy option: {name}",
                where="OPTIONS",
                fix="write it once",
            )
        values[name] = option.expression
    return values


def amount(node: exp.Expression, name: str) -> Fraction:
    """An option's number as written. Out of range is the price's business."""
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1
    if not isinstance(node, exp.Literal) or node.is_string:
        message = f"Differential privacy option {name} must be a number"
        raise QuestionError("option", message, where="OPTIONS", fix=f"write {name} = 0.1")
    try:
        if abs(int(str(node.this).lower().partition("e")[2] or 0)) > 400:
            raise ValueError
        return sign * fraction(str(node.this))
    except ValueError:
        message = f"Differential privacy option {name} is out of range"
        raise QuestionError("price", message, where="OPTIONS", fix=f"write {name} = 0.1") from None


def _computed_name(expression: Expression) -> str:
    """What a column that the question computes is called, wherever it stands there."""
    return own_name("computed", int.from_bytes(hashlib.sha256(repr(expression).encode()).digest()[:8]))


def _places(order: Sequence[int]) -> list[int]:
    """Where each one stands in an order."""
    return sorted(range(len(order)), key=lambda place: order[place])


def _moved(formula: Expression, places: Sequence[int]) -> Expression:
    """A formula of aggregates that have got other places."""
    if isinstance(formula, Call):
        return replace(formula, arguments=tuple(_moved(one, places) for one in formula.arguments))
    names = {part_name(old): part_name(new) for old, new in enumerate(places)}
    return replace(formula, name=names[formula.name]) if isinstance(formula, ColumnOf) else formula
