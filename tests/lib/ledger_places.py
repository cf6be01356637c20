"""Where tests keep ledgers: in files, and on a PostgreSQL server of their own, each in a schema of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from postgres_tools import PASSWORD, Postgres, running
from storms import At, Spot

KEEPER = "keeper"
"""The role that keeps ledgers: it may make schemas, and nothing more."""
_NUMBERS = itertools.count()

Server = tuple[Postgres, Callable[[Path], Spot]]


@contextmanager
def ledger_server(version: int = 18, fsync: str = "on") -> Iterator[Server]:
    """A server, and what gives new places on it, with their notes in a folder."""
    before = os.environ.get("PGPASSWORD")
    with running(version, {"fsync": fsync, "log_statement": "none"}) as server:
        server.run(f"CREATE ROLE {KEEPER} LOGIN PASSWORD '{PASSWORD}'")
        server.run(f"GRANT CREATE ON DATABASE postgres TO {KEEPER}")
        os.environ["PGPASSWORD"] = PASSWORD
        try:
            yield server, lambda folder: Spot(server.url(KEEPER), f"clinic {next(_NUMBERS)}", folder / "a.ledger")
        finally:
            os.environ.pop("PGPASSWORD")
            if before is not None:
                os.environ["PGPASSWORD"] = before


@pytest.fixture(scope="session")
def at_server() -> Iterator[Server]:
    """One server for all tests that keep ledgers on one; none of them takes its power away."""
    with ledger_server(fsync="off") as found:
        yield found


@pytest.fixture(params=["file", "server"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> At:
    """A place for a new ledger: a file, and a schema on a server."""
    if request.param == "file":
        return tmp_path / "a.ledger"
    return request.getfixturevalue("at_server")[1](tmp_path)
