"""Where on a server a ledger is: what is named in the ledger's own place where it is no file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import LedgerError

if TYPE_CHECKING:
    from discreet.trusted.ledger_server.server import LedgerServer


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

    def storage(self, *, lost: bool) -> LedgerServer:
        """The ledger that is kept there. Raises LedgerError without the server's library, which is an extra."""
        try:
            from discreet.trusted.ledger_server.server import LedgerServer
        except ImportError:
            raise LedgerError.of("server library", where=self.name) from None
        return LedgerServer(self.server, self.schema, self.beside, self.name, lost=lost)
