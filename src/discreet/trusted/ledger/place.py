"""Where on a server a ledger is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """A schema of a PostgreSQL server, which holds one ledger; the server's URL has no password. On this machine its
    head is noted beside `beside`."""

    server: str
    schema: str
    beside: Path

    @property
    def name(self) -> str:
        """The place in words, without what stands behind `?` in the URL."""
        return f"{self.server.partition('?')[0]}::{self.schema}"
