"""Files as every engine finds them: which they are, the first lines of a CSV file, and what is said where a source
cannot be read."""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from discreet.catalog.formats import words_of
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Source, SourceKind, Table

SNIFFED_ROWS = 1_000
"""So many rows of a CSV file are looked at for how it is written."""


def files(source: Source) -> list[Path]:
    """The files of a source, sorted: those that it names, those that fit its pattern (`*`, `?` and `**` stand for what
    they usually do), or all Parquet files in its folder and below, but for hidden ones and those that begin with _.

    Raises DeclarationError where there is none, and where the folder is more than its files."""
    found: set[Path] = set()
    for path in (source.path, *source.further):
        some = _files(path) if path is not None else []
        if not some:
            fault = Fault("source", f"there is no file {path}", "check the path in the declaration")
            raise DeclarationError([fault], code="missing")
        found.update(some)
    return sorted(found)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            fix = "write delta = { version = N }: not every file in the folder is in the table"
            raise DeclarationError([Fault("source", f"{path} is a Delta table", fix)], code="unreadable")
        if any(path.glob("metadata/*.metadata.json*")):
            fix = "write iceberg = { version = N }: not every file in the folder is in the table"
            raise DeclarationError([Fault("source", f"{path} is an Iceberg table", fix)], code="unreadable")
        return [one for one in path.glob("**/*.parquet") if one.is_file() and not _hidden(one.relative_to(path))]
    if not re.search("[*?]", str(path)):
        return []
    pattern = str(path).replace("[", "[[]")
    return [Path(one) for one in glob.glob(pattern, recursive=True) if Path(one).is_file()]


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def keys_of_folders(source: Source, found: Sequence[Path]) -> tuple[str, ...]:
    """The keys that the folders of a source's files name, as in `year=2020/month=1/x.parquet`: columns, of which each
    file has one value. None for one file that is named itself. Raises DeclarationError where files differ in them."""
    if source.further or source.path is None or source.path in found:
        return ()
    fixed = itertools.takewhile(lambda part: not re.search("[*?]", part), source.path.parts)
    root = Path(*fixed)
    named = {
        tuple(part.partition("=")[0] for part in path.relative_to(root).parts[:-1] if "=" in part) for path in found
    }
    if len(named) > 1:
        fix = "put all files under folders with the same keys"
        raise DeclarationError([Fault("source", f"the folders of {words_of(source)} differ in their keys", fix)])
    return named.pop()


def csv_header(source: Source) -> list[str]:
    """The names in a CSV file's first line, which all of several files must share. No other line is read.

    Raises DeclarationError where they differ: their columns are told by their places."""
    headers = [_csv_head(source, path, 1)[:1] for path in files(source)]
    if any(header != headers[0] for header in headers):
        message = f"not all files of {words_of(source)} begin with the same line of names"
        raise DeclarationError([Fault("source", message, "write the same columns into each, in the same order")])
    return next(iter(headers[0]), [])


def csv_head(source: Source, lines: int) -> list[list[str]]:
    """The first lines of a CSV file, of which those after the header are for its owner; of several, of the first."""
    return _csv_head(source, files(source)[0], lines)


def _csv_head(source: Source, path: Path, lines: int) -> list[list[str]]:
    import csv
    import gzip
    import zlib

    opener = gzip.open if path.suffix == ".gz" else open
    try:
        encoding = "utf-8-sig" if source.encoding == "utf-8" else source.encoding
        with opener(path, "rt", encoding=encoding, newline="") as file:
            return list(itertools.islice(csv.reader(file, delimiter=source.delimiter), lines))
    except (OSError, EOFError, zlib.error, UnicodeError, csv.Error):
        raise unreadable(source) from None


def check_gzip(source: Source) -> None:
    """Raises DeclarationError unless packed files are whole: the engine does not look at their checksums."""
    import gzip
    import zlib

    for path in files(source):
        if path.suffix != ".gz":
            continue
        try:
            with gzip.open(path, "rb") as file:
                while file.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error):
            raise unreadable(source) from None


def check_columns(table: Table, names: Sequence[str]) -> None:
    """Raises DeclarationError "columns" where a declared column is missing among these names, or is there more than
    once. Upper and lower case are the same."""
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
    SourceKind.CSV: "check that it is text in UTF-8 with commas, or "
    'write csv = { delimiter = ";", encoding = "latin-1" }',
    SourceKind.PARQUET: "check that it is a Parquet file, or several whose columns of one name have one type",
    SourceKind.DELTA: "check that this version is in its log and that its files are there",
    SourceKind.ICEBERG: "check that its metadata and the files of this snapshot are there, and whole",
    SourceKind.DATABASE: "check that it is a DuckDB file, not open elsewhere, and the name of the table in it",
    SourceKind.POSTGRESQL: "run SELECT over the declared columns on the server, and see what it says",
    SourceKind.FRAME: "give a pandas or polars DataFrame, or an Arrow table",
}


def unreadable(source: Source) -> DeclarationError:
    """The error for a source that cannot be read; it quotes nothing that stands there."""
    message = f"{words_of(source)} cannot be read as {'a table' if source.kind is SourceKind.FRAME else source.kind}"
    return DeclarationError([Fault("source", message, _READABLE[source.kind])], code="unreadable")
