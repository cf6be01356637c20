"""What one person's rows can make the engine do, bounded from plan, declarations and public tables alone.

Noise hides what an answer says, not how long it took or whether it came. So before a price is reserved it is bounded
how much work the rows of any one person can cause, present or not, and a question above the bound is refused. The
bound rests on this:

* Rows. The engine holds at most `Table.stored` rows of a person (or of one value of a foreign key), cut when the table
  is loaded. Below joins and subqueries only `rows_per_person` of them count. A join with a public table multiplies them
  by the largest number of rows that share the compared values there: a public fact, counted when it is asked for; where
  nothing is compared for equality, by all its rows. A join of two relations about people meets rows of one person only:
  the product; where a row meets one at most on the other side, no more than there were. Nothing about people is ever
  counted for this.
* Expressions. Each operator's time on one row is bounded by its own constant, by the lengths of its texts, and by the
  size of a regular expression. Nothing repeats, loops or recurses over a row's value.
* Texts. Texts about people are cut to `Column.longest` characters when they are loaded, those of public tables are
  measured, and what an operator makes of texts of known lengths has a known length (LPAD pads to a constant, CONCAT
  adds up, REPLACE never makes longer). So texts grow through subqueries only as far as `LONGEST` allows.
* Laziness. AND, OR and CASE save work for the rows themselves; the bound counts as if nothing was saved. But the engine
  computes vectors of 2,048 rows, and an operator on a vector that holds one and the same constant only once: a row that
  takes another branch of a CASE than its neighbours makes the vector a plain one. So what is computed of a branch alone
  counts for the whole vectors, which are few where the rows of a person stand beside each other, as tables store them.
* Others' rows. Nothing that a person's rows decide starts or saves work on others' rows: which side of a join is read
  first follows from the question, and no side is ever empty (`ring_b.relation_statements`).
* Types and names. What the engine computes is total (`discreet.dialect.functions`), in 64 bits or doubles, and named by
  position: no row makes it raise, and no name of an analyst's reaches it.

Steps are about a nanosecond of a processor of 2025 each, rounded up from measurements of texts chosen to be slow. They
decide no sensitivity and no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from discreet.catalog.model import MOST_WORK, EngineLimits
from discreet.dialect.cases import case_results
from discreet.dialect.patterns import LOOKED_AT, regular
from discreet.errors import QuestionError
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Filter, LimitGroups, LimitRows, PersonGroup, Root, project_of
from discreet.trusted.ring_a.table import Relation, Table, Type
from discreet.trusted.ring_b.order_statistics import GroupHistograms
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    JoinKind,
    ListedKeys,
    Matched,
    PerPerson,
    Renamed,
    RowBefore,
    Stacked,
    Where,
    columns_of,
    conjuncts,
    found_by,
    shape,
)

STEPS = 2_000
"""The steps that a joined row stands for: 10,000 of them are at most 20 ms, and usually far less."""

LONGEST = 100_000
"""The most characters that a text may get to."""

VECTOR = 2_048
"""The rows that the engine computes at a time."""

_ROW = 100
"""Steps of reading, matching or grouping one row."""

_GROUP, _GROUP_LETTER, _TOTAL, _VALUE = 20_000, 300, 2_000, 6_000
"""Steps of handing over one group, a character of its keys, one of its totals, and a value of a quantile."""

_KEY_LETTER = 10
"""Steps of grouping and ranking rows by a character of a key."""


class Public(Protocol):
    """Facts about relations that are about nobody."""

    def most(self, relation: Relation, names: tuple[str, ...]) -> int:
        """The largest number of rows that share their values in these columns; of no columns: all rows."""
        ...

    def longest(self, relation: Relation) -> Mapping[str, int]:
        """The characters of the longest text of each column that holds texts."""
        ...


@dataclass(frozen=True)
class RowCost:
    """Of an expression: its steps for one row, those for each row of a `whole` vector that one row may start, the
    characters of its longest text, and whether the engine may hold it as one constant for a whole vector."""

    steps: int
    whole: int = 0
    length: int = 0
    constant: bool = False

    def of(self, rows: int, blocks: int = 1) -> int:
        """The steps for so many rows of a person, which stand in so many blocks among others'."""
        vectors = min(rows, 2 * blocks + rows // VECTOR)
        return rows * self.steps + vectors * VECTOR * self.whole


@dataclass(frozen=True)
class Side:
    """Of a relation: how many rows it holds of one person, how many an expression just above it may be computed on, the
    steps so far, what each column holds, and in how many blocks a person's rows stand among others': tables are stored
    person by person, or key by key where there is a foreign key, and groups stand anywhere."""

    rows: int
    seen: int
    steps: int
    columns: Mapping[str, RowCost]
    blocks: int = 1

    def of(self, cost: RowCost) -> int:
        """The steps of an expression on the rows."""
        return cost.of(self.seen, self.blocks)


def demand(root: Root, table: Table, public: Public) -> tuple[int, int]:
    """How many rows of one person a plan holds at most, and how many joined rows take as long as its work on them."""
    rows, steps = work(root, table, public)
    return rows, max(rows, -(-steps // STEPS))


def bound(roots: Sequence[Root], table: Table, limits: EngineLimits, declared: Sequence[Table], public: Public) -> None:
    """Refuses a question of which one person's rows can make more work than is allowed. Raises QuestionError.

    Reads plan, declarations and public tables only: the refusal says nothing about anybody.
    """
    most = limits.work or default_work(declared)
    for root in roots:
        rows, needed = demand(root, table, public)
        if needed <= most:
            continue
        owner = f"have the owner write work = {needed} under [engine]"
        if needed > MOST_WORK:
            owner = "have the owner declare fewer rows_per_person, or a smaller length of texts"
        if rows > most:
            message = f"the joins can make {rows:,} rows of one person, more than {most:,}"
            fix = f"compare a column whose values are rarer, join fewer tables, or {owner}"
            raise QuestionError("work", message, where="JOIN", fix=fix)
        message = f"one person's rows can take as long as {needed:,} joined rows, more than {most:,}"
        fix = f"compute less of each row, or {owner}"
        raise QuestionError("work", message, where="question", fix=fix)


def default_work(declared: Sequence[Table]) -> int:
    """The most joined rows of a person where `[engine] work` says nothing: 10,000, or what the rows of one declared
    table make along its own foreign keys, if more; never more than 100,000, which the owner has to say."""
    known = {table.name: table for table in declared}

    def along(table: Table) -> int:
        return _kept(table) * (along(known[table.path[0]]) if table.path is not None else 1)

    return min(100_000, max([10_000, *(along(table) for table in declared if not table.public)]))


def work(root: Root, table: Table, public: Public) -> tuple[int, int]:
    """The most rows that a join or a subquery of a statement holds of one person, and the steps of all of it."""
    measure = _Measure(public)
    project = project_of(root)
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    if scan.relation is None:
        side = Side(table.stored, table.stored, table.stored * _ROW, _declared(table))
    else:
        side = measure.side(scan.relation)
    steps = side.steps
    if isinstance(project.child, Filter):
        steps += side.of(measure.cost(project.child.predicate, side.columns))
    for key in project.keys:  # hashed, compared, and where keys are public looked for
        steps += side.seen * (_ROW + _KEY_LETTER * side.columns[key.name].length)
    for one in project.quantities:
        found = measure.cost(one.expression, side.columns)
        steps += side.seen * _ROW + side.of(replace(found, whole=found.whole + 50 * found.constant))
    node: Any = root
    while not hasattr(node, "quantities"):  # limits rank, groups are hashed, totals add up
        sorted_ = isinstance(node, LimitRows | LimitGroups | PersonGroup | GroupHistograms)
        steps += side.seen * _ROW * (3 if sorted_ else 1 + len(getattr(node, "totals", ())))
        node = node.child
    return measure.largest, steps + _read(root, side)


def _read(root: Root, side: Side) -> int:
    """The steps of handing over, in text, what the engine found: the groups that one person's rows may make by
    themselves, and for quantiles their values. Groups by public keys are there in any case."""
    keys = [key for key in project_of(root).keys if key.values is None]
    if not keys and not isinstance(root, GroupHistograms):
        return 0
    node: Any = root.child
    rows = side.seen
    while not hasattr(node, "quantities"):
        rows = min(rows, getattr(node, "groups", rows), getattr(node, "rows", rows))
        node = node.child
    letters = sum(side.columns[key.name].length for key in keys)
    group = _GROUP + _GROUP_LETTER * letters if keys else _VALUE
    return rows * (group + _TOTAL * len(getattr(root, "totals", ())))


def _declared(table: Table) -> dict[str, RowCost]:
    return {
        column.name: RowCost(1, length=column.longest if column.type is Type.TEXT else 0) for column in table.columns
    }


def _kept(table: Table) -> int:
    """How many rows of a person, or of a value of its foreign key, count below joins."""
    return 1 if table.one_row_per_person else table.rows_per_person or 1


class _Measure:
    """Walks relations and remembers the largest."""

    def __init__(self, public: Public) -> None:
        self.public = public
        self.largest = 1

    def side(self, relation: Relation) -> Side:
        """A relation about people."""
        found = self._sides[type(relation)](self, relation)
        self.largest = max(self.largest, found.rows)
        return found

    def _base(self, relation: Base) -> Side:
        table = relation.table
        return Side(_kept(table), table.stored, table.stored * _ROW, _declared(table))

    def _attributed(self, relation: Attributed) -> Side:
        child, owner = self._base(relation.child), self.side(relation.owner)
        rows, seen = child.rows * owner.rows, child.seen * owner.rows
        return Side(rows, seen, owner.steps + 2 * seen * _ROW, child.columns, owner.rows)

    def _renamed(self, relation: Renamed) -> Side:
        below = self.side(relation.child)
        names = (column.name for column in shape(relation.child).columns)
        columns = {new: below.columns[old] for old, new in zip(names, relation.names, strict=True)}
        return replace(below, columns=columns)

    def _listed(self, relation: ListedKeys) -> Side:
        return self.side(relation.child)

    def _where(self, relation: Where) -> Side:
        below = self.side(relation.child)
        return replace(below, steps=below.steps + below.of(self.cost(relation.predicate, below.columns)))

    def _computed(self, relation: Computed) -> Side:
        below = self.side(relation.child)
        made = {name: self.cost(one, below.columns) for name, one in relation.columns}
        steps = sum(_ROW * below.seen + below.of(one) for one in made.values())
        written = {name for name, one in relation.columns if isinstance(one, Literal)}
        columns = {
            name: replace(one, steps=1, whole=0, constant=one.constant or name in written) for name, one in made.items()
        }
        return replace(below, steps=below.steps + steps, columns=columns)

    def _joined(self, relation: Joined) -> Side:
        about = [shape(one).private for one in (relation.left, relation.right)]
        if all(about):
            left, right = self.side(relation.left), self.side(relation.right)
            rows = left.rows * right.rows + (left.rows + right.rows if relation.kind is JoinKind.FULL else 0)
            if relation.kind in (JoinKind.INNER, JoinKind.LEFT) and found_by(relation, True) is not None:
                rows = left.rows  # looked up by person and key, of which the other side has one row at most
            steps, seen = left.steps + right.steps, max(left.seen, right.seen)
            columns, blocks = {**left.columns, **right.columns}, left.blocks + right.blocks
        else:
            private, other = (relation.left, relation.right) if about[0] else (relation.right, relation.left)
            side = self.side(private)
            rows = side.rows * max(1, self.public.most(other, _compared(relation, other)))
            steps, seen = side.steps, side.seen
            columns, blocks = {**side.columns, **self._public(other)}, side.blocks
        # where no row of a vector has a partner, the columns of the side that lacks are one constant, NULL
        lacking = {JoinKind.INNER: (), JoinKind.LEFT: (relation.right,), JoinKind.RIGHT: (relation.left,)}
        for other in lacking.get(relation.kind, (relation.left, relation.right)):
            names = [column.name for column in shape(other).columns]
            columns |= {name: replace(columns[name], constant=True) for name in names}
        seen = max(rows, seen)
        if relation.condition is not None:
            steps += self.cost(relation.condition, columns).of(seen, blocks)
        if relation.kind is JoinKind.FULL and all(about):  # rows of the second side without a partner come in any order
            blocks += seen
        return Side(rows, seen, steps + seen * _ROW, columns, blocks)

    def _public(self, relation: Relation) -> dict[str, RowCost]:
        found = self.public.longest(relation)
        return {column.name: RowCost(1, length=found.get(column.name, 0)) for column in shape(relation).columns}

    def _per_person(self, relation: PerPerson) -> Side:
        below = self.side(relation.child)
        keys = {name: self.cost(one, below.columns) for name, one in relation.keys}
        totals = {
            name: RowCost(0) if total.expression is None else self.cost(total.expression, below.columns)
            for name, total, _ in relation.totals
        }
        every = {**keys, **totals}
        steps = sum(below.seen * (_ROW + one.length) + below.of(one) for one in every.values())
        steps += 3 * _ROW * below.seen
        columns = {name: RowCost(1, length=one.length) for name, one in every.items()}
        return Side(below.rows, below.rows, below.steps + steps, columns, below.rows)

    def _row_before(self, relation: RowBefore) -> Side:
        below = self.side(relation.child)
        whose = sum(_ROW + below.columns[name].length for name in (*relation.within, relation.order))
        columns = {**below.columns, **{new: below.columns[old] for new, old in relation.columns}}
        beside = sum(_ROW + below.columns[old].length for _, old in relation.columns)  # whole values stand in windows
        steps = below.seen * (3 * _ROW + whose + beside)
        return replace(below, steps=below.steps + steps, columns=columns)

    def _stacked(self, relation: Stacked) -> Side:
        sides = [self.side(child) for child in relation.children]
        names = [column.name for column in shape(relation).columns]
        columns = {}
        for place, name in enumerate(names):
            same = [
                side.columns[shape(child).columns[place].name]
                for side, child in zip(sides, relation.children, strict=True)
            ]
            length = max(one.length for one in same)
            columns[name] = RowCost(1, length=length, constant=any(one.constant for one in same))
        rows, seen = sum(side.rows for side in sides), sum(side.seen for side in sides)
        return Side(
            rows,
            seen,
            sum(side.steps for side in sides) + rows * _ROW * (1 + len(names)),
            columns,
            sum(side.blocks for side in sides),
        )

    def _matched(self, relation: Matched) -> Side:
        below = self.side(relation.child)
        steps = below.seen * _ROW * 2
        if relation.value is not None:
            found = self.cost(relation.value, below.columns)
            steps += below.seen * found.length + below.of(found)
        if shape(relation.among).private:
            steps += self.side(relation.among).steps
        return replace(below, steps=below.steps + steps)

    _sides: Mapping[type, Callable[[_Measure, Any], Side]] = {
        Base: _base,
        Attributed: _attributed,
        Renamed: _renamed,
        ListedKeys: _listed,
        Where: _where,
        Computed: _computed,
        Joined: _joined,
        PerPerson: _per_person,
        RowBefore: _row_before,
        Stacked: _stacked,
        Matched: _matched,
    }

    def cost(self, expression: Expression, columns: Mapping[str, RowCost]) -> RowCost:
        """What an expression costs on one row, and how long its texts get. Raises QuestionError beyond `LONGEST`."""
        if isinstance(expression, ColumnOf):
            return columns[expression.name]
        if isinstance(expression, Literal):
            return RowCost(0, length=len(expression.value) if isinstance(expression.value, str) else 0)
        arguments = [self.cost(one, columns) for one in expression.arguments]
        length = _length(expression, [one.length for one in arguments])
        if length > LONGEST:
            fix = "put fewer texts together, or have the owner declare a smaller length of the columns"
            raise QuestionError("work", f"a text may get {length:,} characters long, more than {LONGEST:,}", fix=fix)
        pairs = zip(arguments, expression.arguments, strict=True)
        rows = [one for one, written in pairs if not isinstance(written, Literal)]
        alike = bool(rows) and all(one.constant for one in rows)
        own = _steps(expression, [one.length for one in arguments], length)
        steps = own + sum(one.steps for one in arguments)
        whole = own * alike + sum(one.whole for one in arguments)
        return RowCost(steps, whole, length, alike or not rows or _chooses(expression, arguments))


def _chooses(call: Call, arguments: Sequence[RowCost]) -> bool:
    """Whether a call gives one of its arguments, and one of these is the same for many rows."""
    if call.operator not in ("case", "coalesce", "nullif", "zero_if_null", "is_true", "is_false"):
        return False
    results = case_results(call) if call.operator == "case" else call.arguments
    known = dict(zip(call.arguments, arguments, strict=True))
    return call.operator in ("zero_if_null", "is_true", "is_false") or any(
        isinstance(one, Literal) or known[one].constant for one in results
    )


def _compared(relation: Joined, public: Relation) -> tuple[str, ...]:
    """The columns of the public side that the condition compares, without rounding, with what the private row decides:
    the engine looks their values up in a table of hashes, and meets only rows that share them."""
    mine = {column.name: column for column in shape(public).columns}
    found = set()
    for part in conjuncts(relation.condition) if relation.condition is not None else ():
        if not isinstance(part, Call) or part.operator != "equal":
            continue
        for one, other in (part.arguments, part.arguments[::-1]):
            exact = one.type is not Type.INTEGER or (isinstance(other, ColumnOf) and other.type is Type.INTEGER)
            if isinstance(one, ColumnOf) and one.name in mine and exact and not columns_of(other) & mine.keys():
                found.add(one.name)
    return tuple(sorted(found))


_LETTERS: Mapping[str, int] = {
    "upper": 20,
    "lower": 20,
    "length": 3,
    "byte_length": 1,
    "substring": 10,
    "left": 5,
    "right": 10,
    "trim": 15,
    "trim_left": 15,
    "trim_right": 15,
    "pad_left": 15,
    "pad_right": 15,
    "concatenate": 3,
    "concatenate_with": 5,
    "replace": 30,
    "translate": 50,
    "reverse": 30,
    "split_part": 30,
    "starts_with": 1,
    "ends_with": 1,
    "contains": 10,
    "position": 10,
    "like": 10,
    "like_escape": 15,
    "ilike": 10,
    "to_integer": 5,
    "to_number": 5,
    "to_boolean": 5,
    "to_date": 5,
    "to_timestamp": 5,
    "character_code": 1,
    "nullif": 5,
    "greatest": 5,
    "least": 5,
    "to_text": 5,
    "format_moment": 10,
    "day_name": 5,
    "month_name": 5,
}
"""Steps for each character of an operator's texts, as measured on texts of one to four bytes a character."""

_OTHER_LETTERS = 100
"""Those of every operator on texts that is not named."""

_PLAIN = frozenset(
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not", "is_null", "same"]
)
"""Comparisons and logic. Texts are compared in words of eight bytes, up to four bytes a character."""

_MATCHERS = ("matches", "matches_all", "extract_match")


def _steps(call: Call, lengths: Sequence[int], length: int) -> int:
    """The steps of one operator on one row, its arguments known."""
    if call.operator in _MATCHERS:
        pattern = call.arguments[1]
        assert isinstance(pattern, Literal)
        return 500 + regular(str(pattern.value)).letter_steps * min(lengths[0], LOOKED_AT)
    if call.operator == "in":
        return 10 * len(call.arguments) + sum(lengths) // 2
    if call.operator in _PLAIN:
        return 10 + sum(lengths) // 2
    if call.operator in ("case", "coalesce"):
        return 10 * len(call.arguments) + length // 2
    texts = sum(lengths) + length
    return (40 if texts else 150) + texts * _LETTERS.get(call.operator, _OTHER_LETTERS)


_SHORT: Mapping[str, int] = {"to_text": 40, "format_moment": 500, "day_name": 9, "month_name": 9}
"""The characters of texts that are made of other values."""


def _length(call: Call, lengths: Sequence[int]) -> int:
    """The characters of the longest text that an operator makes; 0 where it makes none."""
    if call.type is not Type.TEXT:
        return 0
    if call.operator in _SHORT:
        return max([_SHORT[call.operator], *lengths])
    if call.operator in ("concatenate", "concatenate_with"):
        between = lengths[0] * (len(lengths) - 2) if call.operator == "concatenate_with" else 0
        return sum(lengths) + between
    if call.operator in ("pad_left", "pad_right"):
        size = call.arguments[1]
        return (
            max(lengths[0], int(size.value)) if isinstance(size, Literal) and isinstance(size.value, int) else LONGEST
        )
    if call.operator == "case":
        known = dict(zip(call.arguments, lengths, strict=True))
        return max(known[one] for one in case_results(call))
    if call.operator == "strip_accents":
        return 4 * lengths[0]  # one letter may be taken apart
    return max(lengths, default=0)
