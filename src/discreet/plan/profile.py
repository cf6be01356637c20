"""What was released of how much persons contribute: which histograms there are, how they are measured, and what they
tell of limits. All of it but `person_histogram` works on released numbers and declarations alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from discreet.dialect.ranges import interval
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Project, Quantity, Scan
from discreet.trusted.ring_a.table import Column, Relation, Table, Type, as_table
from discreet.trusted.ring_b.contributions import PersonHistogram
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.order_statistics import GroupHistograms, Range
from discreet.trusted.ring_b.relations import Base, PerPerson, PersonTotal, PersonTotalKind, Where, derived, own_name

_POWERS = LogarithmicRange(Fraction(1))
_ONE = _POWERS.bucket(1)
_MIDDLE = Fraction(3, 2)
"""What the values of a bucket are taken for, in units of its lower end."""

_BELOW = 4
"""How many buckets below the largest one bounds are looked for: below, most of what is added up is cut."""

PILED = 3
"""By how many scales of the noise the last bucket must pass the one before it to be taken for persons whom the declared
limit has cut."""


@dataclass(frozen=True)
class Wanted:
    """A histogram that is asked for: of each person's number of `rows`, or of `groups` by the columns, or of the
    largest `size` of a value in the column."""

    what: str
    columns: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What of a person is counted, in words."""
        named = ", ".join(self.columns)
        return {"rows": "rows", "groups": f"groups by {named}", "size": f"largest size of {named}"}[self.what]


def most(table: Table, one: Wanted) -> Fraction | None:
    """The most that a person's number can be, by the declaration; None where that does not say."""
    rows = Fraction(table.rows_per_person or 1)
    columns = [_column(table, name) for name in one.columns]
    if one.what == "rows":
        return rows
    if one.what == "groups":
        cells = 1
        for column in columns:
            keys = column.keys()
            if keys is None:
                return rows
            cells *= len(keys) + column.nulls
        return min(rows, Fraction(cells))
    bounds = interval(ColumnOf(columns[0].name, columns[0].type or Type.NUMBER), {columns[0].name: columns[0]})
    return None if bounds is None else max(map(abs, bounds))


def buckets(table: Table, one: Wanted) -> tuple[int, ...]:
    """The buckets that the declaration leaves a person's number."""
    largest = most(table, one)
    last = _POWERS.last if largest is None else max(_POWERS.bucket(largest), 0)
    if one.what != "size":
        return tuple(range(_ONE, last + 1))
    column = _column(table, one.columns[0])
    step = Fraction(1) if column.type is Type.INTEGER else column.step
    first = 1 if step is None else max(_POWERS.bucket(step), 1)
    return (0, *range(first, last + 1))


def person_histogram(table: Table, one: Wanted, epsilon: Fraction) -> PersonHistogram:
    """The measurement of a histogram: a relation with one row a person, and noise for one person in one bucket.

    Rows beyond `rows_per_person` are left out where they are read, as in every subquery, so what is counted is what
    counts at the declared limit."""
    name = own_name("contribution")
    relation = as_table(_relation(table, one, name))
    scan = Scan(relation.name, relation.person, relation.one_row_per_person, relation.relation)
    column = relation.column(name)
    assert column is not None
    assert column.type is not None
    number = ColumnOf(name, column.type)
    root = GroupHistograms(Project(scan, (), (Quantity(number, None, powers=True),)))
    return PersonHistogram(relation, Range(number, root), buckets(table, one), LogarithmicRange(epsilon))


def _relation(table: Table, one: Wanted, name: str) -> Relation:
    """One row for each person, with the person's number."""
    base = Base.of(table) if table.relation is None else table.relation
    columns = [_read(table, column) for column in one.columns]
    total, known = PersonTotal(PersonTotalKind.ROWS), Column(name, Type.INTEGER, 0, table.rows_per_person, nulls=False)
    if one.what == "size":
        size = Call("absolute", (columns[0],), Type.NUMBER)
        total, known = (
            PersonTotal(PersonTotalKind.MAXIMUM, size),
            derived(name, size, {column.name: column for column in table.columns}),
        )
    if one.what == "groups":
        for expression in columns:
            column = _column(table, expression.name)
            if column.values is not None and column.type is not Type.BOOLEAN:
                base = Where(base, _declared(expression, column))
        keys = tuple((own_name("key", place), expression) for place, expression in enumerate(columns))
        base = PerPerson(base, keys, ())
    return PerPerson(base, (), ((name, total, known),))


def _declared(expression: ColumnOf, column: Column) -> Expression:
    """Whether a value is one of the declared keys, or NULL where that is one."""
    listed = [Literal(value, expression.type) for value in column.values or ()]
    among = Call("in", (expression, *listed), Type.BOOLEAN)
    if not column.nulls:
        return among
    return Call("or", (Call("is_null", (expression,), Type.BOOLEAN), among), Type.BOOLEAN)


def _read(table: Table, name: str) -> ColumnOf:
    column = _column(table, name)
    assert column.type is not None
    return ColumnOf(column.name, column.type)


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column


@dataclass(frozen=True)
class Histogram:
    """Noisy numbers of persons, by the power of two of what each of them contributes; `scale` is that of the noise on
    each. `most` is the most that one can contribute by the declaration, None where that does not say."""

    wanted: Wanted
    buckets: tuple[int, ...]
    counts: tuple[int, ...]
    scale: Fraction
    most: Fraction | None

    def ends(self, place: int) -> tuple[Fraction, Fraction]:
        """Between which numbers the persons of a bucket lie, both included: logarithms are rounded, so the next power
        of two may count there too."""
        low, high = (_power(number) for number in (self.buckets[place], self.buckets[place] + 1))
        largest = high if self.most is None else min(self.most, high)
        return min(low, largest), largest

    @cached_property
    def persons(self) -> tuple[int, ...]:
        """Numbers of persons to choose limits by: never negative, and behind the largest never more than in the bucket
        before, since few persons contribute very much, and what noise alone puts far out would weigh most. The last
        bucket is taken as it is where it passes the one before it by more than noise: there lie those whom the
        declared limit cuts."""
        found = [max(0, count) for count in self.counts]
        piled = len(found) > 1 and self.most is not None and found[-1] > found[-2] + PILED * self.scale
        body = found[:-1] if piled else found
        top = body.index(max(body))
        for place in range(top + 1, len(body)):
            body[place] = min(body[place], body[place - 1])
        return (*body, found[-1]) if piled else tuple(body)

    def typical(self, place: int) -> Fraction:
        """What a person of a bucket is taken to contribute."""
        low, high = self.ends(place)
        cut = place == len(self.buckets) - 1 and self.wanted.what != "size" and self.most is not None
        return high if cut else min(high, low * _MIDDLE)

    @cached_property
    def held(self) -> tuple[tuple[int, float], ...]:
        """How many persons contribute how much, where there are any."""
        return tuple((count, float(self.typical(place))) for place, count in enumerate(self.persons) if count)

    def beyond(self, limit: float) -> float:
        """How much all persons together contribute beyond a limit, estimated."""
        return sum(count * max(0.0, each - limit) for count, each in self.held)

    def within(self, limit: float) -> float:
        """How much all persons together contribute up to a limit, estimated."""
        return sum(count * min(each, limit) for count, each in self.held)

    def spread(self, largest: float) -> tuple[float, float]:
        """The mean sizes of all persons' values up to a bound, and beyond it, added up, where each person's values are
        spread evenly between 0 and the largest one m: m/2 in all, of which (m − b)²/2m lie beyond a bound b below m."""
        whole = sum(count * each / 2 for count, each in self.held)
        beyond = sum(count * (each - largest) ** 2 / (2 * each) for count, each in self.held if each > largest)
        return whole - beyond, beyond

    def weights(self, limit: int) -> tuple[list[float], list[float]]:
        """What a person of each bucket contributes beyond a limit, at least and at most."""
        ends = [self.ends(place) for place in range(len(self.buckets))]
        low, high = ([float(max(Fraction(0), end[side] - limit)) for end in ends] for side in (0, 1))
        return low, high

    def limits(self) -> list[int]:
        """The limits that may be best: powers of two, and what lies in the middle of two of them, up to the most."""
        assert self.most is not None
        largest = int(self.most)
        found = {largest}
        for number in self.buckets:
            low = int(_power(number))
            found |= {one for one in (low, low * 3 // 2) if 1 <= one <= largest}
        return sorted(found)

    def sizes(self) -> list[Fraction]:
        """The bounds that may be best: the upper ends of the buckets that hold somebody, from a few below the one that
        holds most."""
        top = self.persons.index(max(self.persons))
        held = [place for place, count in enumerate(self.persons) if count and self.buckets[place]]
        return sorted({self.ends(place)[1] for place in held if place >= top - _BELOW} or {self.ends(top)[1]})

    def seen(self, bar: int) -> Fraction | None:
        """The upper end of the last bucket with at least `bar` persons; None where none has so many."""
        passed = [place for place, count in enumerate(self.counts) if count >= bar]
        return self.ends(passed[-1])[1] if passed else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, for `from_dict`; fractions as texts, exactly."""
        return {
            "what": self.wanted.what,
            "columns": list(self.wanted.columns),
            "buckets": list(self.buckets),
            "counts": list(self.counts),
            "scale": str(self.scale),
            "most": None if self.most is None else str(self.most),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The histogram that `to_dict` wrote."""
        return cls(
            Wanted(plain["what"], tuple(plain["columns"])),
            tuple(plain["buckets"]),
            tuple(plain["counts"]),
            Fraction(plain["scale"]),
            None if plain["most"] is None else Fraction(plain["most"]),
        )


def _power(number: int) -> Fraction:
    """The lower end of a bucket."""
    return Fraction(2) ** (_POWERS.lowest + number - 1) if number > 0 else Fraction(0)


@dataclass(frozen=True)
class Profile:
    """The histograms that were released of a table's persons, for whoever asks; of one measured twice, the later."""

    histograms: tuple[Histogram, ...] = ()

    def and_later(self, histograms: Sequence[Histogram]) -> Profile:
        """With what was released since."""
        known = {one.wanted: one for one in (*self.histograms, *histograms)}
        return Profile(tuple(known.values()))

    @property
    def rows(self) -> Histogram | None:
        """Of the number of rows; None where none was released."""
        return self._of("rows", ())

    def groups(self, columns: Sequence[str]) -> Histogram | None:
        """By these columns, in whatever order."""
        return self._of("groups", columns)

    def size(self, column: str) -> Histogram | None:
        """Of the sizes of a column's values; None where none was released."""
        return self._of("size", (column,))

    def _of(self, what: str, columns: Sequence[str]) -> Histogram | None:
        wanted = sorted(columns)
        found = (one for one in self.histograms if one.wanted.what == what and sorted(one.wanted.columns) == wanted)
        return next(found, None)


@dataclass(frozen=True)
class ChosenLimits:
    """The limits of a plan that follow from a profile and the price: how many `rows` and `groups` of a person count,
    and the bounds of `columns`; None, or not named, is what is declared."""

    profile: Profile
    rows: int | None = None
    groups: int | None = None
    columns: tuple[tuple[str, Fraction, Fraction], ...] = ()
