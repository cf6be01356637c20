"""Public tables that an outer join keeps: `FROM city c LEFT JOIN visits v ON … GROUP BY c.name`.

SQL adds a row for each city without visits. No row of nobody is measured: the join is read as an inner one, and the
cities are the groups, all of them and no others. That is the same answer for aggregates to which a row of NULLs adds
nothing, and only those can be asked for.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from discreet.dialect.cases import case_results
from discreet.errors import QuestionError
from discreet.plan.outputs import AggregateKind
from discreet.plan.planner import WantedAggregate
from discreet.sql.expressions import ExpressionReader
from discreet.sql.from_clause import RelationReader
from discreet.sql.joining import parts
from discreet.sql.scope import Scope
from discreet.sql.totals import group_item
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Relation, Type
from discreet.trusted.ring_b.relations import Computed, ListedKeys, Where, columns_of, shape

_LENIENT = {"and", "or", "case", "coalesce", "nullif", "concatenate_with", "same", "is_null", "is_true", "is_false"}
_LENIENT |= {"zero_if_null"}


def listed(sources: RelationReader, tree: exp.Select, scope: Scope) -> Scope:
    """The same rows; where an outer join keeps a public table, its values are the groups."""
    group = tree.args.get("group")
    if not scope.kept or group is None:
        return scope
    reader = ExpressionReader(scope.read, scope.shape.by_name)
    keys: list[ColumnOf] = []
    for written in group.expressions:
        expression = reader.read(group_item(tree, written, scope))
        if not isinstance(expression, ColumnOf) or not any(_holds(one, expression) for one in scope.kept):
            alias = next(one.alias for one in scope.sources if any(_has(kept, one.names) for kept in scope.kept))
            message = f"an outer join that keeps {alias} has rows of nobody, whose groups are those of its own columns"
            fix = f"group by columns of {alias} alone, or write JOIN"
            raise QuestionError("join", message, where="GROUP BY", fix=fix)
        keys.append(expression)
    relation = scope.relation
    for kept in scope.kept:
        held = [key for key in dict.fromkeys(keys) if _holds(kept, key)]
        if held:
            rows = sources.listed_rows(Computed(_asked(reader, tree, kept), tuple((one.name, one) for one in held)))
            relation = ListedKeys(relation, tuple((one.name,) for one in held), rows)
    return Scope(relation, scope.sources, scope.merged, scope.met, scope.further, scope.missing, scope.kept)


def _holds(kept: Relation, column: ColumnOf) -> bool:
    return column.name in shape(kept).by_name


def _has(kept: Relation, names: tuple[tuple[str, str], ...]) -> bool:
    return any(inside in shape(kept).by_name for _, inside in names)


def _asked(reader: ExpressionReader, tree: exp.Select, kept: Relation) -> Relation:
    """The rows of a public table that meet what WHERE says of it alone."""
    where = tree.args.get("where")
    found: list[Expression] = []
    for part in parts(where.this) if where is not None else []:
        if part.find(exp.Select) is None:
            condition = reader.boolean(part)
            if columns_of(condition) and columns_of(condition) <= shape(kept).by_name.keys():
                found.append(condition)
    if not found:
        return kept
    return Where(kept, reduce(lambda a, b: Call("and", (a, b), Type.BOOLEAN), found))


def adds_nothing(wanted: WantedAggregate, missing: frozenset[str]) -> None:
    """Refuses an aggregate to which a row without these columns would add something: SQL has such rows."""
    if wanted.kind is AggregateKind.PERSONS:
        return
    expression = wanted.expression
    if expression is not None:
        nothing = _null(expression, missing)
        if wanted.kind is AggregateKind.SUM:
            nothing = nothing or _null(expression, missing, zero=True)
        if nothing:
            return
    message = "SQL counts a row of NULLs where the public table has no partner, and no such row is measured"
    column = next((name.rpartition(".")[2] for name in sorted(missing)), "x")
    fix = f"write COUNT(column) with a column of the table about people, such as COUNT({column}), or JOIN"
    raise QuestionError("join", message, where=wanted.text[:60] or "SELECT", fix=fix)


def _null(expression: Expression, missing: frozenset[str], *, zero: bool = False) -> bool:
    """Whether an expression has no value, or 0 where that is as good, in each row where these columns are NULL."""
    if isinstance(expression, ColumnOf):
        return expression.name in missing
    if isinstance(expression, Literal):
        return expression.value is None or (zero and not isinstance(expression.value, str) and expression.value == 0)
    arguments = expression.arguments
    if expression.operator == "case":
        tests, results = arguments[:-1:2], case_results(expression)
        return all(
            _null(result, missing, zero=zero) or (place < len(tests) and _false(tests[place], missing))
            for place, result in enumerate(results)
        )
    if expression.operator == "coalesce":
        return all(_null(one, missing, zero=zero) for one in arguments)
    if expression.operator == "nullif":
        return _null(arguments[0], missing)
    return expression.operator not in _LENIENT and any(_null(one, missing) for one in arguments)


def _false(condition: Expression, missing: frozenset[str]) -> bool:
    """Whether a condition is true of no row where these columns are NULL."""
    if isinstance(condition, Call) and condition.operator in ("and", "or"):
        each = [_false(one, missing) for one in condition.arguments]
        return any(each) if condition.operator == "and" else all(each)
    return condition == Literal(False, Type.BOOLEAN) or _null(condition, missing)
