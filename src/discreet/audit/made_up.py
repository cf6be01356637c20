"""Tables about nobody that fit a declaration: the same columns, types and bounds, rows from here.

A neighbour is a crowd; its neighbour is the crowd and one person more, who is as extreme as the source can be: every
number at a bound or beyond it, more rows and more groups than are allowed. So whatever keeps a person within the bounds
is at work, and what it lets through is what the audit looks at. No row of the owner's is read for any of this.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from discreet.catalog import Column, EngineLimits, Source, SourceKind, Table, Type
from discreet.engines import chosen
from discreet.engines.protocol import Owned, Row
from discreet.trusted.ring_a.nodes import Aggregate, Scan
from discreet.trusted.ring_a.table import Relation, as_table
from discreet.trusted.ring_b.relations import Attributed, Base

MOST = 400
"""A made-up person has at most about so many rows and groups. Larger bounds are not reached."""

OVER = 3
"""By how many rows and groups the person is above what is allowed."""

Record = dict[str, str]


@dataclass(frozen=True)
class ExtremePerson:
    """How the one person is extreme: numbers at the upper bound, the lower, or missing; in how many groups."""

    numbers: str = "high"
    groups: str = "one"

    def count(self, table: Table) -> int:
        """How many groups the person's rows name."""
        allowed = min(table.groups_per_person or 1, MOST)
        return {"one": 1, "as many as allowed": allowed, "more than allowed": allowed + OVER}[self.groups]

    @property
    def text(self) -> str:
        return f"numbers {self.numbers}, groups {self.groups}"


GROUPS = ("one", "as many as allowed", "more than allowed")
PERSONS = (
    *(ExtremePerson(numbers, groups) for groups in GROUPS for numbers in ("high", "low")),
    ExtremePerson("missing"),
)


class Stage:
    """An engine of the audit's own, and a folder for its tables. It loads nothing but what it has written itself."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits, self._others = limits, list[Owned]()
        self._engine = chosen.engine(limits)
        self._folder = TemporaryDirectory(prefix="discreet-audit-")
        self._count = 0
        self._known: dict[tuple[str, tuple[str, ...], int, ExtremePerson | None], Table] = {}

    def write(self, table: Table, rows: Sequence[Record]) -> Table:
        """The same declaration with made-up rows as its source."""
        self._count += 1
        path = Path(self._folder.name) / f"{self._count}.csv"
        names = [column.name for column in table.columns]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([row.get(name, "") for name in names] for row in rows)
        return replace(table, source=Source(SourceKind.CSV, path))

    def made_up(self, table: Table, keys: tuple[str, ...], persons: int, person: ExtremePerson | None) -> Table:
        """The crowd, with one extreme person or without, in the engine: each such table once. Where the persons of a
        table are found along a path, so are the tables there."""
        wanted = table.name, keys, persons, person
        if wanted not in self._known:
            bases = {one.name: one for one in table.bases}
            first = table if table.relation is None else _first(table.relation)
            rows = rows_along(bases, first, keys, persons, person)
            loaded = {name: self.load(self.write(bases[name], rows[name])) for name in bases}
            self._known[wanted] = (
                loaded[table.name] if table.relation is None else as_table(_over(table.relation, loaded))
            )
        return self._known[wanted]

    def load(self, table: Table) -> Table:
        """The table in the engine, under a name of its own."""
        loaded = replace(table, name=f"{table.name} {self._written(table).stem}")
        self._engine.load(loaded, b"made up")
        return loaded

    def beside(self, tables: Sequence[Table]) -> Owned:
        """Another engine, with made-up tables under their own names."""
        engine = chosen.engine(self._limits)
        self._others.append(engine)
        for table in tables:
            self._written(table)
            engine.load(table, b"made up")
        return engine

    def _written(self, table: Table) -> Path:
        """Where the table was written. Raises ValueError where it is not one that the audit has made up."""
        path = table.source.path
        if path is None or path.parent != Path(self._folder.name):
            raise ValueError("the audit reads only tables that it has made up")
        return path

    def run(self, plan: Aggregate, table: Table) -> list[Row]:
        """The exact totals of made-up rows, with a fresh salt."""
        return self._engine.run(_on(plan, table), table)

    def close(self) -> None:
        for engine in (self._engine, *self._others):
            engine.close()
        self._folder.cleanup()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _first(relation: Relation) -> Table:
    """The table that a path begins at."""
    if isinstance(relation, Attributed):
        return relation.child.table
    if isinstance(relation, Base):
        return relation.table
    raise TypeError("a path leads through declared tables")


def _over(relation: Relation, loaded: Mapping[str, Table]) -> Relation:
    """The same path over other tables."""
    table = loaded[_first(relation).name]
    if not isinstance(relation, Attributed):
        return Base.of(table)
    owner = _over(relation.owner, loaded)
    return replace(relation, child=Base.of(replace(table, path=(_first(owner).name, relation.target))), owner=owner)


def _on(node: Any, table: Table) -> Any:
    """The same plan over a table of another name."""
    if isinstance(node, Scan):
        return replace(node, table=table.name, relation=table.relation)
    return replace(node, child=_on(node.child, table))


def rows_along(
    tables: Mapping[str, Table], table: Table, keys: Sequence[str], persons: int, person: ExtremePerson | None
) -> dict[str, list[Record]]:
    """The rows of the crowd and of the one person, if any; and where whose rows these are is told along a path, those
    of the tables that it leads through: a row for each person, with the key that the person's rows refer to."""
    found = {table.name: crowd(table, keys, persons) + ([] if person is None else rows_of(table, keys, person))}
    names = [*range(1, persons + 1), 0]
    while table.path is not None:
        name, key = table.path
        table = tables[name]
        kind = next(column for column in table.columns if column.name == key)
        rows = crowd(table, (), persons) + ([] if person is None else rows_of(table, (), person)[:1])
        found[name] = [{**row, key: _name(kind, who)} for row, who in zip(rows, names, strict=False)]
    return found


def crowd(table: Table, keys: Sequence[str], persons: int) -> list[Record]:
    """So many persons, one row each, well within every bound; of private groups they fill one."""
    return [
        {column.name: _of_crowd(table, column, column.name in keys, index) for column in table.columns}
        for index in range(persons)
    ]


def rows_of(table: Table, keys: Sequence[str], person: ExtremePerson) -> list[Record]:
    """The rows of the one person: more than are allowed, in more groups than are allowed."""
    if table.person is None:
        count = 1
    else:
        count = max(min(table.rows_per_person or 1, MOST), min(table.groups_per_person or 1, MOST)) + OVER
    return [
        {column.name: _of_person(table, column, column.name in keys, person, index) for column in table.columns}
        for index in range(count)
    ]


def _of_crowd(table: Table, column: Column, key: bool, index: int) -> str:
    if column.name == table.person:
        return _name(column, index + 1)
    if key:
        public = column.keys()
        return _text(public[index % len(public)]) if public else _group(column, 0)
    return _number(column, "low" if index % 2 else "high") if _counts(column) else _group(column, 0)


def _of_person(table: Table, column: Column, key: bool, person: ExtremePerson, index: int) -> str:
    if column.name == table.person:
        return _name(column, 0)
    if key:
        public, place = column.keys(), index % person.count(table)
        return _text(public[place % len(public)]) if public else _group(column, place)
    if not _counts(column):
        return _group(column, 0)
    if person.numbers == "missing":
        return ""
    return _beyond(column, person.numbers) if index % 3 == 2 else _number(column, person.numbers)


def _counts(column: Column) -> bool:
    return column.type is not None and column.type.numeric


_DAY = datetime.date(2000, 1, 1)


def _name(column: Column, index: int) -> str:
    """Who somebody is: a value of the column that holds persons."""
    return _free(column.type, index)


def _free(kind: Type | None, index: int) -> str:
    """One of many different values of a type."""
    if kind in (Type.INTEGER, Type.NUMBER):
        return str(index)
    if kind is Type.BOOLEAN:
        return "true" if index % 2 else "false"
    if kind in (Type.DATE, Type.TIMESTAMP):
        return str(_DAY + datetime.timedelta(days=index))
    return f"nobody {index}"


def _group(column: Column, index: int) -> str:
    """A private key: 0 is the group that the crowd fills, the others are the one person's own."""
    low = column.minimum
    if isinstance(low, datetime.date):
        return (low + datetime.timedelta(days=index)).isoformat()
    if isinstance(low, int | Fraction):
        return str(float(low + index)) if column.type is Type.NUMBER else str(low + index)
    return _free(column.type, index)


def _number(column: Column, side: str) -> str:
    """The bound on that side; where none is declared, a large number."""
    bound = column.maximum if side == "high" else column.minimum
    if column.values and bound is None:
        known = [value for value in column.values if isinstance(value, int | Fraction)]
        bound = max(known) if side == "high" else min(known)
    if isinstance(bound, int | Fraction):
        return str(bound) if column.type is Type.INTEGER else repr(float(bound))
    return "1000000" if side == "high" else "-1000000"


def _beyond(column: Column, side: str) -> str:
    """What no declaration asks for and a file may hold all the same."""
    if column.type is Type.INTEGER:
        return str(2**63 - 1 if side == "high" else 1 - 2**63)
    return "inf" if side == "high" else "-inf"


def _text(value: Any) -> str:
    """A public key as a file holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return repr(float(value))
    return str(value)


def extremes(keys: Sequence[str], *, numbers: bool) -> Iterator[ExtremePerson]:
    """The extreme persons that differ for a question: by groups if it has keys, by numbers if it reads any."""
    for person in PERSONS:
        if (keys or person.groups == GROUPS[0]) and (numbers or person.numbers == "high"):
            yield person
