"""Where a command writes: never over what a declaration needs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from discreet.catalog import Declaration
from discreet.catalog.charged_once import secret_file
from discreet.errors import refused
from discreet.trusted.ring_a.table import Source, SourceKind

_JOURNALS = ("", "-journal", "-wal", "-shm")
"""What SQLite keeps beside a file."""


def spare(declaration: Declaration, *outputs: str | Path | None) -> None:
    """Refuses files that are to be written where one is a file that the declaration needs, whatever link leads to it:
    the declaration itself, the ledger and what is kept beside it, a file of a table's source. None is no file.

    A file that is not there yet is refused where it would be one of those: in the folder of a source, or where it fits
    the source's pattern. Raises QuestionError; reads no row, and comes before anything is charged.
    """
    for output in (Path(one) for one in outputs if one is not None):
        what = _what(declaration, output)
        if what is not None:
            fix = "write to another file; nothing was spent, and nothing written"
            raise refused("output", f"{output} is {what}", "path", fix)


def _what(declaration: Declaration, output: Path) -> str | None:
    """What a file is to the declaration, in words; None where it is nothing."""
    if declaration.file is not None and _same(output, [declaration.file]):
        return "the declaration"
    if _kept(declaration, output):
        return "the ledger, or a file that belongs to it"
    for table in declaration.tables.values():
        if _of_source(table.source, output):
            return f"a file of the source of {table.name}"
    return None


def _same(output: Path, files: Iterable[Path]) -> bool:
    """Whether a path leads to one of these files, by whatever name."""
    real = os.path.realpath(output)
    there = _identity(output)
    return any(real == os.path.realpath(one) or (there and there == _identity(one)) for one in files)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _inside(output: Path, folder: Path) -> bool:
    return Path(os.path.realpath(output)).is_relative_to(os.path.realpath(folder))


def _kept(declaration: Declaration, output: Path) -> bool:
    beside, folder = declaration.beside, declaration.limits.folder
    once = list(declaration.streams.values())
    keys = [one.key for one in (*once, declaration.state) if one is not None]
    if _same(output, keys) or (folder is not None and _inside(output, folder)):
        return True
    if beside is None:
        return False
    begun = [secret_file(beside, one.name, "stream") for one in once]
    files = [beside, beside.with_suffix(".accounts"), *begun]
    named = (one for one in beside.absolute().parent.glob(f"{glob.escape(beside.name)}*") if one.is_file())
    expected = [one.with_name(f"{one.name}{end}") for one in (*files, beside.with_name(f"{beside.name}.head"))
                for end in _JOURNALS]  # fmt: skip
    return _same(output, [*expected, *named, *beside.absolute().parent.glob(f"{glob.escape(beside.stem)}.*.state")])


def _of_source(source: Source, output: Path) -> bool:
    return any(_of_path(source.kind, path, output) for path in (source.path, *source.further) if path is not None)


def _of_path(kind: SourceKind, path: Path, output: Path) -> bool:
    """Whether a file is, or would be, one of those to which a path of a source leads."""
    if path.is_dir():
        some = "**/*.parquet" if kind is SourceKind.PARQUET else "**/*"
        new = output.suffix.lower() == ".parquet" or kind is not SourceKind.PARQUET
        return (new and _inside(output, path)) or _same(output, path.glob(some))
    if path.is_file() or not re.search("[*?]", str(path)):
        return _same(output, [path, path.with_name(f"{path.name}.wal")])
    return _same(output, _matches(path)) or _fits(output, path)


def _matches(pattern: Path) -> Iterator[Path]:
    yield from map(Path, glob.iglob(str(pattern).replace("[", "[[]"), recursive=True))


def _fits(output: Path, pattern: Path) -> bool:
    """Whether a new file would fit a pattern, or may: a * is taken for any folders, too, and for a link to one."""
    place = next(one for one in pattern.parents if not re.search("[*?]", str(one)))
    rest = str(pattern.relative_to(place)).replace("[", "[[]").replace("**/", "*")
    if fnmatchcase(output.name, pattern.name.replace("[", "[[]")) and _same(output.parent, _matches(pattern.parent)):
        return True
    return fnmatchcase(os.path.realpath(output), f"{glob.escape(os.path.realpath(place))}/{rest}")
