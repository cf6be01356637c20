"""Files as every engine finds them: the first lines of a CSV file, and what is said where a source cannot be read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import DATABASE, Source, Table

SNIFFED_ROWS = 1_000
"""So many rows of a CSV file are looked at for how it is written."""


def csv_header(source: Source) -> list[str]:
    """The names in a CSV file's first line. No other line is read."""
    return next(iter(csv_head(source, 1)), [])


def csv_head(source: Source, lines: int) -> list[list[str]]:
    """The first lines of a CSV file, of which those after the header are for its owner."""
    import csv
    import gzip
    import itertools
    import zlib

    assert source.path is not None
    opener = gzip.open if source.path.suffix == ".gz" else open
    try:
        encoding = "utf-8-sig" if source.encoding == "utf-8" else source.encoding
        with opener(source.path, "rt", encoding=encoding, newline="") as file:
            return list(itertools.islice(csv.reader(file, delimiter=source.delimiter), lines))
    except (OSError, EOFError, zlib.error, UnicodeError, csv.Error):
        raise unreadable(source) from None


def check_gzip(source: Source) -> None:
    """Raises DeclarationError unless a packed file is whole: the engine does not look at its checksum."""
    import gzip
    import zlib

    assert source.path is not None
    if source.path.suffix != ".gz":
        return
    try:
        with gzip.open(source.path, "rb") as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        raise unreadable(source) from None


def check_columns(table: Table, names: Sequence[str]) -> None:
    faults = []
    for column in table.columns:
        where = f"tables.{table.name}.columns.{column.name}"
        found = [name for name in names if name.casefold() == column.name.casefold()]
        if not found:
            fix = "leave it out, or name one of: " + ", ".join(names[:20])
            faults.append(Fault(where, "the source has no such column", fix))
        elif len(found) > 1:
            faults.append(Fault(where, "the source has this name more than once", "rename one of the source's columns"))
    if faults:
        raise DeclarationError(faults, code="columns")


_READABLE = {
    "csv": 'check that it is text in UTF-8 with commas, or write csv = { delimiter = ";", encoding = "latin-1" }',
    "parquet": "check that it is a Parquet file",
    DATABASE: "check that it is a DuckDB file, not open elsewhere, and the name of the table in it",
    "frame": "give a pandas or polars DataFrame, or an Arrow table",
}


def unreadable(source: Source) -> DeclarationError:
    message = f"{source.text} cannot be read as {'a table' if source.kind == 'frame' else source.kind}"
    return DeclarationError([Fault("source", message, _READABLE[source.kind])], code="unreadable")


def told_apart(names: Sequence[str]) -> list[str]:
    """The names, where those that are empty, or repeat another but for its case, get a new one that nobody uses."""
    spare = (f"column_{number}" for number in itertools.count())
    taken = {name.casefold() for name in names}
    met = {""}
    found: list[str] = []
    for name in names:
        found.append(next(other for other in spare if other not in taken) if name.casefold() in met else name)
        met.add(name.casefold())
    return found
