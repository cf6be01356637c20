"""The plan of a question: frozen nodes from the table's rows to a small vector of exact integers.

Each node reads what the one below it gives. A question has one of three shapes, chosen from declarations alone:

    Scan → Filter → Project → Aggregate                                    one row a person
    Scan → Filter → Project → LimitRows → Aggregate                        rows bounded, nothing bounded by group
    Scan → Filter → Project → [LimitRows →] PersonGroup → [LimitGroups →] Clip → Aggregate

What one person can do to the result is computed by `sensitivity` from these nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.table import Relation, Type, Value


def whole(*numbers: object) -> None:
    """Raises ValueError unless these are integers: what is added up, and by what it is bounded, is counted exactly."""
    if not all(type(number) is int for number in numbers):
        raise ValueError("totals, their weights and their bounds are integers")


@dataclass(frozen=True)
class Scan:
    """The rows of a table. `person` is the column that holds whose row it is; None where each row is a person.

    With a `relation`, the rows of that: of several tables, or of what is made of them.
    """

    table: str
    person: str | None
    one_row_per_person: bool
    relation: Relation | None = None


@dataclass(frozen=True)
class Filter:
    """The rows for which the predicate is true."""

    child: Scan
    predicate: Expression


@dataclass(frozen=True)
class Key:
    """A column that groups. `values` are its public keys; None where keys are private. With `null`, NULL is one more,
    public where the others are."""

    name: str
    type: Type
    values: tuple[Value, ...] | None
    null: bool = False

    @property
    def groups(self) -> tuple[Value | None, ...] | None:
        """All public keys, NULL as the last; None where keys are private."""
        return self.values if self.values is None or not self.null else (*self.values, None)


@dataclass(frozen=True)
class Quantity:
    """An expression of one row as an integer on the lattice; without a lattice, only whether it is NULL matters."""

    expression: Expression
    lattice: Lattice | None
    powers: bool = False
    """Instead of the value, the number of its power of two (see `mechanisms.LogarithmicRange`)."""


@dataclass(frozen=True)
class Project:
    """Keeps the person, keys and quantities of each row. Rows outside the public keys go, and those with a key that is
    NULL where NULL is no key."""

    child: Scan | Filter
    keys: tuple[Key, ...]
    quantities: tuple[Quantity, ...]


@dataclass(frozen=True)
class LimitRows:
    """At most `rows` rows of each person, chosen by a salt and the person's own rows."""

    child: Project
    rows: int

    def __post_init__(self) -> None:
        whole(self.rows)


class TotalKind(StrEnum):
    """What a total counts or adds up in each group."""

    ROWS = "rows"
    """The number of rows."""
    NON_NULL = "present"
    """The number of rows whose quantity is not NULL."""
    SUM = "sum"
    """The sum of the quantity over rows, in steps of its lattice."""
    PERSONS = "persons"
    """The number of persons."""
    MEAN_PER_PERSON = "average"
    """The sum, over persons, of the mean of each person's values in steps, rounded down."""
    PERSONS_WITH_VALUE = "holders"
    """The number of persons with a value that is not NULL."""


@dataclass(frozen=True)
class Total:
    """An integer of each group. Raises ValueError where `kind` is not a `TotalKind` or a number is not an integer.

    `quantity` is the index of what is summed or counted. With `bounds`, each person's total in a group is clamped to
    them before persons are added up.
    """

    kind: TotalKind
    quantity: int | None = None
    bounds: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, TotalKind):
            raise ValueError("the kind of a total is one of TotalKind")
        whole(*(self.bounds or ()), *(() if self.quantity is None else (self.quantity,)))


@dataclass(frozen=True)
class PersonGroup:
    """One row for each person and group with that person's totals."""

    child: Project | LimitRows


@dataclass(frozen=True)
class LimitGroups:
    """At most `groups` groups of each person, chosen by a salt and the person's own rows."""

    child: PersonGroup
    groups: int

    def __post_init__(self) -> None:
        whole(self.groups)


@dataclass(frozen=True)
class Clip:
    """Clamps each person's totals in a group to the bounds that the totals name."""

    child: PersonGroup | LimitGroups


class Root:
    """What the engine computes of the nodes below it, by one statement. Ring B has others than `Aggregate`."""

    child: Node


@dataclass(frozen=True)
class Aggregate(Root):
    """The totals of each group, over everybody."""

    child: Project | LimitRows | Clip
    totals: tuple[Total, ...]


Node = Scan | Filter | Project | LimitRows | PersonGroup | LimitGroups | Clip | Root


def project_of(node: Node) -> Project:
    """The projection inside a plan."""
    while not isinstance(node, Project):
        if isinstance(node, Scan | Filter):
            raise TypeError("no projection in this plan")
        node = node.child
    return node


def scan_of(node: Node) -> Scan:
    """The rows that a plan starts from."""
    below = project_of(node).child
    return below.child if isinstance(below, Filter) else below


@dataclass(frozen=True)
class Vector:
    """One released integer of each group: a combination of totals with integer weights."""

    weights: tuple[tuple[int, int], ...]
    """Pairs (index of the total, weight)."""

    def __post_init__(self) -> None:
        whole(*(number for pair in self.weights for number in pair))


@dataclass(frozen=True)
class Axis:
    """A column in a joint part: the vector at `place` holds Σ multiple·(2x − low − high), over rows or over persons.

    With `absent`, the vector before it counts the rows without a value, which add 0 to the sum; without, such rows
    count as 0, or where the column is declared to have none, as the middle.
    """

    lattice: Lattice
    place: int
    multiple: int
    absent: bool = False


class PartKind(StrEnum):
    """What the vectors of a part are. Only KEYS and JOINT change how a part is measured."""

    COUNT = "count"
    """One vector: the number of rows or of values."""
    SUM = "sum"
    """One vector: a sum in steps of the part's lattice."""
    MEAN = "mean"
    """Two or three vectors: the distances of the values from both ends of the lattice, and rows without a value."""
    PERSONS = "persons"
    """One vector: the number of persons."""
    KEYS = "keys"
    """One vector: the number of persons, which decides by a threshold which groups are released."""
    JOINT = "joint"
    """Vectors that get joint noise: `ring_b.jointly`."""


@dataclass(frozen=True)
class Part:
    """What is measured with one price: vectors that are released together. Raises ValueError unless `kind` is a
    `PartKind`.

    `lattice` gives the vectors' unit. A joint part has `axes`, one for each column, and its first vector counts rows or
    persons; its norm is not ℓ1 but the one of `ring_b.jointly`. What a row and a person can add to the vectors follows
    from the totals: `sensitivity.added`.
    """

    kind: PartKind
    vectors: tuple[Vector, ...]
    lattice: Lattice | None = None
    axes: tuple[Axis, ...] = ()
    epsilon: Fraction | None = None
    """The part of the question's price that it was given; None where it takes its share."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, PartKind):
            raise ValueError("the kind of a part is one of PartKind")

    @property
    def blocks(self) -> tuple[int, ...]:
        """How the vectors of a joint part stand together: the count, then one or two for each column."""
        return (1, *(2 if axis.absent else 1 for axis in self.axes))
