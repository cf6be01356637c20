"""What items of GROUP BY mean, and exact totals within a person."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from discreet.dialect.quantization import lattice, sized
from discreet.dialect.ranges import interval
from discreet.dialect.steps import step_of
from discreet.errors import QuestionError
from discreet.sql.aggregates import counting
from discreet.sql.expressions import ExpressionReader
from discreet.sql.refusals import only, refused
from discreet.sql.scope import Scope
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.table import Column, Relation, Type
from discreet.trusted.ring_b.relations import PersonTotal, PersonTotalKind, RelationShape, derived, shape

_SCALE = Fraction(2**10)
"""Sums in a subquery of values without bounds are counted in steps of 2^−20."""


def group_item(tree: exp.Select, written: exp.Expression, scope: Scope) -> exp.Expression:
    """What an item of GROUP BY means: a position, an alias of the list that no column has, or an expression."""
    if isinstance(written, exp.Literal) and not written.is_string and str(written.this).isdecimal():
        position = int(written.this)
        if not 1 <= position <= len(tree.expressions):
            message = f"there is no column {position}"
            raise QuestionError("position", message, where="GROUP BY", fix="name the column")
        named: exp.Expression = tree.expressions[position - 1].unalias()
        return named
    if isinstance(written, exp.Column) and not written.table:
        names = {visible.casefold() for one in scope.sources for visible, _ in one.names} | set(scope.merged)
        aliases: Mapping[str, exp.Expression] = {
            node.alias.casefold(): node.this for node in tree.expressions if isinstance(node, exp.Alias)
        }
        if written.name.casefold() not in names and written.name.casefold() in aliases:
            return aliases[written.name.casefold()]
    return written


def exact(node: exp.Expression, scope: Scope, below: Relation) -> tuple[PersonTotal, Column] | None:
    """A total within a person, and what is known of it; None where the node is no aggregate."""
    reader = ExpressionReader(scope.read, scope.shape.by_name)
    rows = shape(below).rows if shape(below).private else None
    if isinstance(node, exp.Count):
        only(node, "this", "big_int")
        counted = node.this
        column = Column("", Type.INTEGER, 0 if rows else None, rows)
        if isinstance(counted, exp.Star):
            return PersonTotal(PersonTotalKind.ROWS), column
        if isinstance(counted, exp.Distinct):
            only(counted, "expressions")
            if len(counted.expressions) != 1:
                raise refused(node, "count one expression")
            return PersonTotal(PersonTotalKind.DISTINCT, reader.read(counted.expressions[0])), column
        return PersonTotal(PersonTotalKind.PRESENT, reader.read(counted)), column
    if isinstance(node, exp.Min | exp.Max):
        only(node, "this")
        expression = reader.read(node.this)
        known = derived("", expression, shape(below).by_name)
        kind = PersonTotalKind.MINIMUM if isinstance(node, exp.Min) else PersonTotalKind.MAXIMUM
        return PersonTotal(kind, expression), known
    if isinstance(node, exp.Sum | exp.Avg):
        only(node, "this")
        expression = reader.numeric(counting(reader.read(node.this)), node.this)
        return _summed(node, expression, shape(below), rows)
    if isinstance(node, exp.AggFunc):
        raise refused(node, "use COUNT, SUM, AVG, MIN or MAX in a subquery")
    return None


def _summed(
    node: exp.Expression, expression: Expression, below: RelationShape, rows: int | None
) -> tuple[PersonTotal, Column]:
    bounds = interval(expression, below.by_name)
    step = step_of(expression, below.by_name)
    if bounds is not None:
        bounds = sized(bounds, node.key.upper())
    grid = lattice(bounds, step, scale=_SCALE)
    step = step if grid.step == step else None
    if isinstance(node, exp.Avg):
        low, high = bounds if bounds else (None, None)
        return PersonTotal(PersonTotalKind.MEAN, expression, grid), Column("", Type.NUMBER, low, high)
    kind = Type.INTEGER if expression.type is Type.INTEGER else Type.NUMBER
    if bounds is None or rows is None:
        return PersonTotal(PersonTotalKind.SUM, expression, grid), Column("", kind, step=step)
    low, high = min(bounds[0], bounds[0] * rows), max(bounds[1], bounds[1] * rows)
    if kind is Type.INTEGER:
        return PersonTotal(PersonTotalKind.SUM, expression, grid), Column("", kind, int(low // 1), int(-(-high // 1)))
    return PersonTotal(PersonTotalKind.SUM, expression, grid), Column("", kind, low, high, step)
