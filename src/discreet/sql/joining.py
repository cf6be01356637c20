"""Which joins keep every row with its person, and in which order tables that a comma or JOIN separates are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.expressions import ExpressionReader
from discreet.sql.refusals import written_name
from discreet.sql.scope import Scope
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_b.belonging import leads, same_keys
from discreet.trusted.ring_b.relations import Joined, JoinKind, columns_of, conjuncts, shape


@dataclass(frozen=True)
class JoinCondition:
    """A condition that stands in ON, or in WHERE; `met` is the condition of WHERE that is met where this one is."""

    expression: Expression
    met: exp.Expression | None = None


def parts(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that a WHERE or an ON joins by AND."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*parts(node.this), *parts(node.expression)]
    return [node]


def in_every_branch(node: exp.Expression) -> list[exp.Expression]:
    """The equalities of two columns that stand in each branch of an OR: they hold wherever it does."""
    branches = [parts(one) for one in _branches(node)]
    each = [{_sides(one): one for one in branch if _of_columns(one)} for branch in branches]
    first, *others = each
    return [one for sides, one in first.items() if others and all(sides in other for other in others)]


def _branches(node: exp.Expression) -> list[exp.Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    return [*_branches(node.this), *_branches(node.expression)] if isinstance(node, exp.Or) else [node]


def _of_columns(node: exp.Expression) -> bool:
    return isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column)


def _sides(node: exp.Expression) -> frozenset[str]:
    return frozenset(one.sql().casefold() for one in (node.this, node.expression))


def conditions_of(reader: ExpressionReader, where: Sequence[exp.Expression]) -> list[JoinCondition]:
    """The equalities of WHERE, and those in every branch of an OR. A lookup of values is none of them."""
    found: list[JoinCondition] = []
    for part in where:
        if part.find(exp.Select) is not None:
            continue
        if isinstance(part, exp.EQ):
            found.append(JoinCondition(reader.boolean(part), part))
        elif isinstance(part, exp.Or):
            found += [JoinCondition(reader.boolean(one)) for one in in_every_branch(part)]
    return found


def together(
    units: Sequence[Scope], asked: Sequence[JoinCondition], *, place: str
) -> tuple[Scope, list[JoinCondition]]:
    """Joins all units, each as soon as a condition connects it, and says which conditions the joins meet.

    A table about people is connected by the person, a public one by any equality; one that nothing connects comes
    last, and meets every row. All joins are inner ones, so their order changes no row.
    """
    waiting = list(asked)
    met: list[JoinCondition] = []
    rest = list(range(len(units)))
    start = next((place for place in rest if units[place].shape.private), rest[0])
    rest.remove(start)
    joined = units[start]
    while rest:
        number = _next(joined, units, rest, waiting)
        unit = units[number]
        rest.remove(number)
        pair = Scope(Joined(JoinKind.INNER, joined.relation, unit.relation, None), (*joined.sources, *unit.sources))
        known = set(pair.shape.by_name)
        own = [set(one.shape.by_name) for one in (joined, unit)]
        now = [one for one in waiting if _belongs(one, known, own)]
        condition = reduce(_and, [one.expression for one in now]) if now else None
        relation = Joined(JoinKind.INNER, joined.relation, unit.relation, condition)
        sound(relation, joined, unit, place=place)
        waiting = [one for one in waiting if one not in now]
        met += now
        joined = Scope(relation, pair.sources, {**joined.merged, **unit.merged})
    sources = tuple(source for unit in units for source in unit.sources)
    missing = frozenset().union(*(unit.missing for unit in units))
    kept = tuple(one for unit in units for one in unit.kept)
    return Scope(joined.relation, sources, joined.merged, missing=missing, kept=kept), met


def _belongs(condition: JoinCondition, known: set[str], own: Sequence[set[str]]) -> bool:
    """Whether a join meets a condition: all that ON says of what is joined so far, and of WHERE what compares both
    sides; the rest of WHERE stays there."""
    names = columns_of(condition.expression)
    if not names <= known:
        return False
    return _on(condition) or not any(names <= side for side in own)


def _on(condition: JoinCondition) -> bool:
    return condition.met is None


def _next(joined: Scope, units: Sequence[Scope], rest: Sequence[int], waiting: Sequence[JoinCondition]) -> int:
    private = [number for number in rest if units[number].shape.private]
    for number in private:
        if joined.shape.private and connected(joined, units[number], [one.expression for one in waiting]):
            return number
    own = set(joined.shape.by_name)
    for number in rest:
        other = set(units[number].shape.by_name)
        if number not in private and any(_connects(one.expression, own, other) for one in waiting):
            return number
    return private[0] if private else rest[0]


def _connects(expression: Expression, one: set[str], other: set[str]) -> bool:
    """Whether a condition compares something of one side with something of the other."""
    names = columns_of(expression)
    return bool(names & one) and bool(names & other) and names <= one | other


def connected(one: Scope, other: Scope, conditions: Sequence[Expression]) -> bool:
    """Whether some condition says that rows of both are of one person."""
    return any(_equal(part, same_persons(one, other)) for part in conditions)


def same_persons(one: Scope, other: Scope) -> list[tuple[str, str]]:
    """The pairs of columns that are equal in rows of one person alone."""
    pairs = [(a, b) for a in one.shape.persons for b in other.shape.persons]
    return pairs + same_keys(leads(one.relation), leads(other.relation))


def _and(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), Type.BOOLEAN)


def _equal(part: Expression, pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether a condition says that the columns of one of these pairs are equal."""
    if not isinstance(part, Call) or part.operator != "equal":
        return False
    names = tuple(side.name for side in part.arguments if isinstance(side, ColumnOf))
    return names in pairs or names[::-1] in pairs


def sound(relation: Joined, left: Scope, right: Scope, *, place: str = "JOIN") -> None:
    """Refuses joins whose rows would depend on several persons. `place` is where the question joins them."""
    one, two = left.shape, right.shape
    if one.private and two.private:
        _same_person(relation, left, right, place)
        return
    for side, keeps, other in (("left", one, "LEFT"), ("right", two, "RIGHT")):
        if relation.kind == side and not keeps.private and (one.private or two.private):
            raise kept_public(left if side == "left" else right, side, other)
    if relation.kind is JoinKind.FULL and one.private != two.private:
        message = "Both tables in a FULL OUTER join must contain user data"
        raise QuestionError("join", message, where="JOIN", fix="write LEFT JOIN, the table about people first")
    whole = shape(relation)
    if whole.private and whole.person_type is None and not whole.single:
        about = left.sources[0].alias if one.private else right.sources[0].alias
        fix = "join with (SELECT DISTINCT key, … ) of the public table"
        message = f"the rows of {about} have no person column, and a join may repeat them"
        raise QuestionError("join", message, where=place, fix=fix)


def kept_public(public: Scope, side: str = "left", other: str = "LEFT") -> QuestionError:
    """The error for an outer join that keeps a public table where its rows would be rows of nobody."""
    message = f"The {side} table in a {other} OUTER join must contain user data"
    fix = f"exchange the tables, or write JOIN; {public.sources[0].alias} is public"
    return QuestionError("join", message, where="JOIN", fix=fix)


def _same_person(relation: Joined, left: Scope, right: Scope, place: str) -> None:
    one, two = left.shape, right.shape
    names = [scope.sources[-1].alias for scope in (left, right)]
    if one.person_type is None or two.person_type is None:
        which = names[0] if one.person_type is None else names[1]
        message = f"the rows of {which} have no person column"
        fix = f"ask about one table: whoever declares {which} can name its person column"
        raise QuestionError("join", message, where=place, fix=fix)
    if one.person_type is not two.person_type:
        message = f"the persons of {names[0]} and {names[1]} are of different types"
        raise QuestionError("join", message, where=place, fix="declare the person columns with one type")
    if connected(left, right, conjuncts(relation.condition) if relation.condition is not None else ()):
        return
    message = "Joins between tables containing private data must also explicitly join on the user id column"
    raise QuestionError("join", message, where=place, fix=_by_person(relation, left, right, place))


def _by_person(relation: Joined, left: Scope, right: Scope, place: str) -> str:
    """What to write so that two tables are joined by the person."""
    pairs = [(a, b) for a, b in same_persons(left, right) if left.names(a) and right.names(b)]
    if pairs:
        (a, b) = pairs[0]
        equal = f"{left.written(a)} = {right.written(b)}"
        if place == "WHERE":
            return f"add {equal} to WHERE, with AND"
        return f"add AND {equal} to the ON expression" if relation.condition else f"write JOIN … ON {equal}"
    for side in (right, left):
        for name, known in leads(side.relation).items():
            for table, column, foreign in sorted(known):
                if foreign and side.names(name):
                    alias = side.sources[-1].alias
                    key = f"{side.written(name)} = {written_name(table)}.{written_name(column)}"
                    return f"rows of {alias} lead to the person by {table}: join {table} too, by {key}"
    hidden = next((one.sources[-1].alias for one in (left, right) if not one.shape.persons), names_of(left, right))
    return f"add the person's column to the list of {hidden}, and join by it"


def names_of(left: Scope, right: Scope) -> str:
    return " and ".join(one.sources[-1].alias for one in (left, right))


def is_true(expression: Expression) -> bool:
    """Whether it is the literal TRUE."""
    return isinstance(expression, Literal) and expression.value is True
