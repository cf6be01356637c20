"""Which sessions are in use, as the server's catalog says it: what they built and what they read stays there.

Spark has no locks. Each session has a table without rows beside what it builds, in whose properties stand the snapshots
that it reads, its process, and until when that holds by the server's clock. What ends without a word holds until then,
or until another process on its machine sees that it has ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException

from discreet.engines.protocol import LOAD_SECONDS
from discreet.engines.spark import place

RENEWED = LOAD_SECONDS // 2
"""A lease is renewed where it is as old as this, in seconds."""

_READS, _HIDDEN = "reads.", "hidden"
_BESIDE = re.compile(r"x_([0-9a-f]{32})_[0-9]+")


class Lease:
    """What a session says of itself."""

    def __init__(self, session: Any, mark: str, seconds: int) -> None:
        """Questions take at most so many seconds."""
        self._session, self._seconds = session, seconds
        self._table = place.lease(mark)
        said = f"'discreet.process' = '{_machine()} {os.getpid()} {_begun(os.getpid())}', {self._lasting()}"
        self._run(f"CREATE TABLE {self._table} (nothing INT) USING PARQUET TBLPROPERTIES ({said})")

    def renew(self) -> None:
        """Says that the session is in use. Without a question it need not be, and then it loads its tables anew."""
        if time.monotonic() >= self._renewed + RENEWED:
            self._run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({self._lasting()})")

    def hold(self, relation: str) -> None:
        """From here on nobody drops this snapshot: to be said before it is looked for."""
        said = f"'discreet.{_READS}{relation}' = 'true'"
        self._run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({said}, {self._lasting()})")

    def leave(self, relation: str) -> None:
        """The session does not read this snapshot."""
        self._run(f"ALTER TABLE {self._table} UNSET TBLPROPERTIES IF EXISTS ('discreet.{_READS}{relation}')")

    def _lasting(self) -> str:
        self._renewed = time.monotonic()
        return f"'discreet.until' = '{_now(self._session) + 2 * LOAD_SECONDS + self._seconds}'"

    def _run(self, sql: str) -> None:
        self._session.sql(sql).collect()


def read(session: Any) -> set[str]:
    """The snapshots that some session reads."""
    now = _now(session)
    return {
        key.removeprefix(_READS)
        for mark in {mark for mark, _ in _beside(session)}
        if _lives(said := properties(session, place.lease(mark)) or {}, now)
        for key in said
        if key.startswith(_READS)
    }


def sweep(session: Any) -> None:
    """Drops what sessions built that are not in use any more. A session makes its lease first, and it goes last."""
    with suppress(PySparkException):
        now, found = _now(session), [*_beside(session)]
        leased = {mark for mark, name in found if name == place.lease(mark)}
        for mark in {mark for mark, _ in found}:
            said = properties(session, place.lease(mark)) if mark in leased else {}
            if said is not None and not _lives(said, now):
                drop(session, mark)


def drop(session: Any, mark: str) -> None:
    """Drops what a session built, and its lease."""
    own = [name for other, name in _beside(session) if other == mark and name != place.lease(mark)]
    for name in (*own, place.lease(mark)):
        session.sql(f"DROP TABLE IF EXISTS {name} PURGE").collect()


def properties(session: Any, relation: str) -> dict[str, str] | None:
    """What stands with a table of ours; None where there is no such table."""
    try:
        found = session.sql(f"SHOW TBLPROPERTIES {relation}").collect()
    except AnalysisException:
        return None
    return {row["key"].removeprefix("discreet."): row["value"] for row in found}


def _beside(session: Any) -> Iterator[tuple[str, str]]:
    """The sessions' own tables: the mark in their names, and the names."""
    for row in session.sql(f"SHOW TABLES IN {place.SCHEMA} LIKE 'x_*'").collect():
        if found := _BESIDE.fullmatch(row["tableName"]):
            yield found[1], f"{place.SCHEMA}.{found[0]}"


def _lives(said: dict[str, str], now: int) -> bool:
    """Whether a session with these properties may be in use."""
    if not said.get("until", "").isdecimal() or int(said["until"]) < now:
        return False
    machine, _, process = said.get("process", "").partition(" ")
    if machine != _machine():
        return True
    pid, _, begun = process.partition(" ")
    return _begun(int(pid)) in (begun, _HIDDEN)


def _now(session: Any) -> int:
    """The second that it is on the server."""
    return int(session.sql("SELECT UNIX_SECONDS(CURRENT_TIMESTAMP()) AS now").collect()[0]["now"])


def _machine() -> str:
    """A name for where this process and others see each other, until that is started anew."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256(f"{boot} {os.stat('/proc/self/ns/pid').st_ino}".encode()).hexdigest()[:16]


def _begun(pid: int) -> str:
    """When a process began, in ticks; another word where it has ended, and where we may not see it."""
    try:
        os.kill(pid, 0)
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "ended"
    except PermissionError:
        return _HIDDEN
    return "ended" if state == "Z" else rest[18]
