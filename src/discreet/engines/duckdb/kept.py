"""In the engine's child: database files of tables, made and opened (`store`)."""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path

import duckdb

_SIDE = "side"


class Kept:
    """The files that a child has open: those of tables, to be read only, and one of its own for what questions need
    beside them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._run = connection.execute
        self._paths: dict[str, str] = {}
        self._building: tuple[int, Path] | None = None

    def opened(self, path: str, digest: str, fingerprint: str) -> bool:
        """Whether the file is there and holds what is wanted; then its table can be read."""
        if path in self._paths:
            return True
        if not os.path.exists(path):
            return False
        name = f"kept_{len(self._paths)}"
        try:
            self._run(f"ATTACH '{_quoted(path)}' AS {name} (READ_ONLY)")
            found = self._run(f"SELECT digest, fingerprint FROM {name}.main.snapshot").fetchall()
        except duckdb.Error:
            found = []
        if found != [(digest, fingerprint)]:
            self._run(f"DETACH DATABASE IF EXISTS {name}")
            return False
        self._paths[path] = name
        self._search(Path(path).parent)
        return True

    def _search(self, folder: Path) -> None:
        """Tables are found in the child's own file first: what is built there of a kept table stands before it."""
        if _SIDE not in self._paths:
            os.umask(0o077)
            self._clear(folder)
            path = folder / f"{_SIDE}-{os.getpid()}-{secrets.token_hex(8)}.duckdb"
            self._run(f"ATTACH '{_quoted(str(path))}' AS {_SIDE}")
            self._paths[_SIDE] = _SIDE
        names = [_SIDE, *(name for name in self._paths.values() if name != _SIDE), "memory"]
        self._run(f"SET search_path = '{','.join(f'{name}.main' for name in names)}'")

    def _clear(self, folder: Path) -> None:
        """Removes what children left beside tables that ended without removing it: nobody has it locked."""
        for path in folder.glob(f"{_SIDE}-*.duckdb"):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR)
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                    Path(f"{path}.wal").unlink(missing_ok=True)
                finally:
                    os.close(file)

    def begin(self, folder: str) -> None:
        """Begins to make a file. One child at a time makes files in a folder: the others wait for it."""
        os.umask(0o077)
        os.makedirs(folder, exist_ok=True)
        lock = os.open(os.path.join(folder, "building.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        for left in Path(folder).glob("building-*"):
            left.unlink()
        path = Path(folder) / f"building-{secrets.token_hex(8)}.duckdb"
        self._building = lock, path
        self._run(f"ATTACH '{_quoted(str(path))}' AS building")
        self._run(f"ATTACH '{_quoted(str(path))}.typed' AS staging")
        self._run("SET search_path = 'building.main,memory.main'")

    def end(self, path: str | None, digest: str = "", fingerprint: str = "") -> None:
        """Gives what was made its name, or lets go of it."""
        if self._building is None:
            return
        lock, made = self._building
        self._building = None
        try:
            if path is not None:
                self._run("CREATE TABLE snapshot AS SELECT ? AS digest, ? AS fingerprint", [digest, fingerprint])
                self._run("CHECKPOINT building")
            self._run("SET search_path = 'memory.main'")
            for name in ("building", "staging"):
                self._run(f"DETACH DATABASE IF EXISTS {name}")
            if path is not None:
                _written(made)
                os.rename(made, path)
                _written(made.parent)
        finally:
            for left in made.parent.glob(f"{made.name}*"):
                left.unlink(missing_ok=True)
            os.close(lock)


def _written(path: Path) -> None:
    """What stands in a file, or in a folder, is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
