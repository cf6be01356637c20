"""In the engine's child: database files of tables, made and opened (`store`)."""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from discreet.engines.child import libraries
from discreet.engines.duckdb.names import BEFORE, LOCK, MOST_BUILT, MOST_FILES, SIDE

_HEADERS = 3 * 4096
"""The bytes of a database's file before its blocks."""


@dataclass
class _OpenFile:
    """A table's file that is open, under this name, and what stands beside it: a file of the child's own, and others,
    to be read only, with what was built at earlier starts."""

    name: str
    weight: int
    side: str
    beside: list[str]
    built: list[str]
    file: Path
    """The child's own file."""
    ends: Path
    """What the child's own file is called when it is left for later starts, but for the end of its name."""
    copied: bool = False
    """Whether a file that stands beside has the table's rows again, with positions: no other such copy is read."""
    full: bool = False
    """Whether there was more than is kept: nothing older is."""

    @property
    def answer(self) -> dict[str, object]:
        return {"weight": self.weight, "side": self.side, "built": self.built}


class OpenFiles:
    """The files that a child has open: those of tables, to be read only, and its own for what questions need beside
    them. While it makes files it has the folder locked."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._run = connection.execute
        self._opened: dict[str, _OpenFile] = {}
        self._sides: dict[str, Path] = {}
        self._folder: tuple[int, Path] | None = None
        self._building: Path | None = None

    def opened(self, path: str, digest: str, fingerprint: str, table: str, built: str) -> dict[str, object] | None:
        """What is known of a file, where it is there and holds what is wanted; then its table can be read, and what was
        built beside it."""
        if path in self._opened:
            return self._opened[path].answer
        if not os.path.exists(path):
            return None
        number, folder = len(self._opened), Path(path).parent
        known = self._attached(path, f"kept_{number}", digest, fingerprint)
        if known is None:
            return None
        self._side(SIDE, folder)
        side = f"{SIDE}_{number}"
        one = _OpenFile(f"kept_{number}", known[0], side, [], [], self._side(side, folder), folder / built)
        for file in sorted(folder.glob(f"{built}*.duckdb"), key=_time, reverse=True):
            self._found(one, file, table)
        self._opened[path] = one
        self._search()
        return one.answer

    def _found(self, one: _OpenFile, file: Path, table: str) -> None:
        """Opens a file with what was built beside a table at an earlier start; removes it, where it is not whole, or of
        no use."""
        with libraries():
            from discreet.trusted.ring_a.windows import PLACE

        name = f"{one.name}_{len(one.beside)}"
        try:
            self._run(f"ATTACH '{_quoted(str(file))}' AS {name} (READ_ONLY)")
            tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = ?"
            found = [row[0] for row in self._run(tables, [name]).fetchall()]
            copied = table in found
            if copied and not one.copied:
                columns = "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND table_name = ?"
                found += [row[0] for row in self._run(columns, [name, table]).fetchall() if row[0] != PLACE]
            if os.path.getsize(file) < self._size(name):
                found = []
        except (duckdb.Error, OSError):
            found, copied = [], False
        new = [mark for mark in found if mark.startswith(("totals_", "place_")) and mark not in one.built]
        one.full |= bool(new) and (len(one.beside) == MOST_FILES or len(one.built) + len(new) > MOST_BUILT)
        if new and not one.full:
            one.beside.append(name)
            one.built += new
            one.copied |= copied
            return
        self._run(f"DETACH DATABASE IF EXISTS {name}")
        with suppress(OSError):
            file.unlink()

    def leave(self) -> None:
        """Leaves what was built beside tables for later starts. Nothing more can be asked then."""
        for one in self._opened.values():
            tables = "SELECT count(*) FROM duckdb_tables() WHERE database_name = ?"
            if self._run(tables, [one.side]).fetchall() == [(0,)]:
                continue
            lock = _locked(one.file.parent / "side.lock")
            try:
                self._run(f"DETACH DATABASE {one.side}")
                _written(one.file)
                os.rename(one.file, f"{one.ends}{secrets.token_hex(8)}.duckdb")
            finally:
                os.close(lock)

    def origin(self, path: str, digest: str, fingerprint: str) -> str | None:
        """What the rows of a file were read from, where it is there and holds what is wanted. Until the next file is
        made it can be read as what was before."""
        known = self._attached(path, BEFORE, digest, fingerprint)
        return known[1] if known is not None else None

    def _attached(self, path: str, name: str, digest: str, fingerprint: str) -> tuple[int, str] | None:
        """What a file says of its rows, which can be read under this name, where it holds what is wanted."""
        try:
            self._run(f"ATTACH '{_quoted(path)}' AS {name} (READ_ONLY)")
            found = self._run(f"SELECT digest, fingerprint, weight, origin FROM {name}.main.snapshot").fetchall()
            whole = os.path.getsize(path) >= self._size(name)
        except duckdb.Error:
            found, whole = [], False
        if [row[:2] for row in found] == [(digest, fingerprint)] and whole:
            return int(found[0][2]), str(found[0][3])
        self._run(f"DETACH DATABASE IF EXISTS {name}")
        return None

    def _size(self, name: str) -> int:
        """The bytes of a database whose file nobody has cut."""
        blocks = "SELECT block_size * total_blocks FROM pragma_database_size() WHERE database_name = ?"
        ((size,),) = self._run(blocks, [name]).fetchall()
        return int(size) + _HEADERS

    def _search(self) -> None:
        """Tables are found in the child's own files first: what is built there of a kept table stands before it."""
        opened = self._opened.values()
        names = [*self._sides, *(name for one in opened for name in one.beside), *(one.name for one in opened)]
        self._run(f"SET search_path = '{','.join(f'{name}.main' for name in [*names, 'memory'])}'")

    def _side(self, name: str, folder: Path) -> Path:
        """Makes a file of the child's own, where there is none of this name. Nobody else removes it before it is
        locked."""
        if name in self._sides:
            return self._sides[name]
        os.umask(0o077)
        path = folder / f"{SIDE}-{os.getpid()}-{secrets.token_hex(8)}.duckdb"
        lock = _locked(folder / "side.lock")
        try:
            if not self._sides:
                self._clear(folder)
            self._run(f"ATTACH '{_quoted(str(path))}' AS {name}")
        finally:
            os.close(lock)
        self._sides[name] = path
        return path

    def _clear(self, folder: Path) -> None:
        """Removes what children left beside tables that ended without removing it: nobody has it locked."""
        for path in folder.glob(f"{SIDE}-*.duckdb"):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR)
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                    Path(f"{path}.wal").unlink(missing_ok=True)
                finally:
                    os.close(file)

    def alone(self, folder: str) -> None:
        """From here on no other child makes files in a folder: it waits until those that do are shut."""
        if self._folder is None:
            os.umask(0o077)
            os.makedirs(folder, exist_ok=True)
            self._folder = _locked(Path(folder) / LOCK), Path(folder)

    def shut(self) -> None:
        """It makes no more files."""
        if self._folder is not None:
            os.close(self._folder[0])
            self._folder = None

    def begin(self) -> None:
        """Begins to make a file, in the folder that is locked."""
        if self._folder is None:
            raise ValueError
        _, folder = self._folder
        for left in folder.glob("building-*"):
            left.unlink()
        path = folder / f"building-{os.getpid()}-{secrets.token_hex(8)}.duckdb"
        self._building = path
        self._run(f"ATTACH '{_quoted(str(path))}' AS building")
        self._run(f"ATTACH '{_quoted(str(path))}.typed' AS staging")
        self._run("SET search_path = 'building.main,memory.main'")

    def end(self, path: str | None, digest: str = "", fingerprint: str = "", weight: int = 0, origin: str = "") -> None:
        """Gives what was made its name, or lets go of it."""
        self._run(f"DETACH DATABASE IF EXISTS {BEFORE}")
        if self._building is None:
            return
        made, self._building = self._building, None
        try:
            if path is not None:
                facts = "? AS digest, ? AS fingerprint, CAST(? AS BIGINT) AS weight, ? AS origin"
                self._run(f"CREATE TABLE snapshot AS SELECT {facts}", [digest, fingerprint, weight, origin])
                self._run("CHECKPOINT building")
            self._search()
            for name in ("building", "staging"):
                self._run(f"DETACH DATABASE IF EXISTS {name}")
            if path is not None:
                _written(made)
                os.rename(made, path)
                _written(made.parent)
        finally:
            for left in made.parent.glob(f"{made.name}*"):
                left.unlink(missing_ok=True)


def _time(path: Path) -> int:
    """When a file was written; 0 where somebody removed it."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _locked(path: Path) -> int:
    """A file that this process alone has locked, made where it is not there. It waits for others."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _written(path: Path) -> None:
    """What stands in a file, or in a folder, is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
