"""One server for all tests of this folder, and its reader's password in the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postgres_tools import PASSWORD, Postgres, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running(18) as server:
        yield server


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    """The reader's, where the client's library looks for it."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return PASSWORD
