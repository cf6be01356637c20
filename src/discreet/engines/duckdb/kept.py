"""In the engine's child: database files of tables, made and opened (`store`)."""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path

import duckdb

from discreet.engines.duckdb.names import BEFORE, LOCK, SIDE

_HEADERS = 3 * 4096
"""The bytes of a database's file before its blocks."""


class Kept:
    """The files that a child has open: those of tables, to be read only, and one of its own for what questions need
    beside them. While it makes files it has the folder locked."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._run = connection.execute
        self._paths: dict[str, str] = {}
        self._weights: dict[str, int] = {}
        self._folder: tuple[int, Path] | None = None
        self._building: Path | None = None

    def opened(self, path: str, digest: str, fingerprint: str) -> int | None:
        """How heavy the rows of a file are, where it is there and holds what is wanted; then its table can be read."""
        if path in self._weights:
            return self._weights[path]
        if not os.path.exists(path):
            return None
        name = f"kept_{len(self._paths)}"
        known = self._attached(path, name, digest, fingerprint)
        if known is None:
            return None
        self._paths[path] = name
        self._weights[path] = known[0]
        self._side(Path(path).parent)
        self._search()
        return self._weights[path]

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
        """Tables are found in the child's own file first: what is built there of a kept table stands before it."""
        names = [*([SIDE] if SIDE in self._paths else []), *self._paths.values(), "memory"]
        self._run(f"SET search_path = '{','.join(f'{name}.main' for name in dict.fromkeys(names))}'")

    def _side(self, folder: Path) -> None:
        """Makes the child's own file, where it has none. Nobody else removes it before it is locked."""
        if SIDE in self._paths:
            return
        os.umask(0o077)
        path = folder / f"{SIDE}-{os.getpid()}-{secrets.token_hex(8)}.duckdb"
        lock = _locked(folder / "side.lock")
        try:
            self._clear(folder)
            self._run(f"ATTACH '{_quoted(str(path))}' AS {SIDE}")
        finally:
            os.close(lock)
        self._paths[SIDE] = SIDE

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
