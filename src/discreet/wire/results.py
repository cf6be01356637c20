"""Columns and rows as clients get them, made from answers and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.release import Release
from discreet.wire import messages
from discreet.wire.values import FLOAT8, SIZES, TEXT, encoded, oid_of, oid_of_values

_FAR = 1e300
"""Beyond this an interval's end says that nothing is known."""


@dataclass(frozen=True)
class ResultColumn:
    """A column: its name, and PostgreSQL's number of its type."""

    name: str
    oid: int = TEXT


@dataclass(frozen=True)
class StatementResult:
    """What comes of a statement: columns and rows, where it has some; what was done, in PostgreSQL's words; and what a
    client is told beside it. `copied` is what COPY sends instead of rows, in this format."""

    tag: str
    columns: Sequence[ResultColumn] | None = None
    rows: Sequence[Sequence[Any]] = ()
    notices: Sequence[str] = ()
    parameters: Sequence[tuple[str, str]] = ()
    copied: Sequence[bytes] | None = None
    copy_format: int = messages.TEXT
    empty: bool = field(default=False)


def described(columns: Sequence[ResultColumn] | None, formats: Sequence[int] = ()) -> bytes:
    """The message that says which columns come, or that none do."""
    if columns is None:
        return messages.NO_DATA
    return messages.row_description([(one.name, one.oid, SIZES.get(one.oid, -1)) for one in columns], formats)


def rows_of(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]], formats: Sequence[int]) -> Iterator[bytes]:
    """A message for each row."""
    kinds = [(one.oid, messages.format_of(formats, place)) for place, one in enumerate(columns)]
    for row in rows:
        yield messages.data_row(
            [encoded(oid, value, form) for (oid, form), value in zip(kinds, row, strict=True)],
        )


def of_release(release: Release, *, intervals: bool) -> tuple[list[ResultColumn], list[list[Any]]]:
    """An answer's columns and rows; with `intervals`, `n_low` and `n_high` stand beside each estimate `n`."""
    columns: list[ResultColumn] = []
    values: list[list[Any]] = []
    types, rows = release.holds.types, release.rows
    taken = set(release.columns)

    def add(name: str, kind: str | None, column: list[Any]) -> None:
        known = kind is not None and kind not in ("value", "list")
        columns.append(ResultColumn(name, oid_of(kind or "") if known else oid_of_values(column)))
        values.append(column)

    for name in release.columns:
        add(name, types.get(name), [row[name] for row in rows])
        if intervals and name not in types:
            for place, end in enumerate(("low", "high")):
                add(_beside(name, end, taken), None, [_end(one.get(name), place) for one in release.intervals])
    return columns, [list(row) for row in zip(*values, strict=True)] if rows else []


def _beside(name: str, end: str, taken: set[str]) -> str:
    """The name of an interval's end, which no other column has."""
    beside = f"{name}_{end}"
    while beside in taken:
        beside += "_"
    taken.add(beside)
    return beside


def _end(interval: tuple[float, float] | None, place: int) -> float | None:
    return None if interval is None or abs(interval[place]) > _FAR else interval[place]


def of_no_type(release: Release) -> bool:
    """Whether the values of an answer leave a column's type open: where it has none, as an answer without rows."""
    known = {name for name, kind in release.holds.types.items() if kind not in ("value", "list")}
    return any(all(row[name] is None for row in release.rows) for name in release.columns if name not in known)


def of_plan(types: Mapping[str, str], *, intervals: bool) -> list[ResultColumn]:
    """The columns that a question's answer has, before it is asked, from `Explanation.columns`."""
    columns = []
    taken = set(types)
    for name, kind in types.items():
        noisy = kind.startswith("estimate of ")
        oid = oid_of(kind.removeprefix("estimate of "))
        columns.append(ResultColumn(name, oid))
        if intervals and noisy:
            columns += [
                ResultColumn(_beside(name, end, taken), FLOAT8 if oid == FLOAT8 else oid) for end in ("low", "high")
            ]
    return columns
