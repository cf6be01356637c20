"""Where tables of ours lie on a Spark server: in a schema of the session's catalog.

A snapshot's table is named by the ledger's key and the hash of its rows, and stays for later starts. What is built for
questions beside it is named by the session that built it, and goes with that (`leases`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

SCHEMA = "discreet"
"""The schema."""

FORM = "2"
"""How tables are made: those of another form are made anew."""


def stem(key: str) -> str:
    """What the names of all snapshots of a table begin with."""
    return hashlib.sha256(b"place" + key.encode()).hexdigest()[:16]


def lasting(stem: str, fingerprint: str, digest: str) -> str:
    """The table of a snapshot: another one where the same rows were made otherwise, with other positions or steps."""
    return f"{SCHEMA}.t_{stem}_{hashlib.sha256(f'{digest} {fingerprint}'.encode()).hexdigest()[:16]}"


def all_of(stem: str) -> str:
    """The pattern that fits the names of a table's snapshots."""
    return f"t_{stem}_*"


def beside(mark: str, number: int) -> str:
    """One of a session's own tables."""
    return f"{SCHEMA}.x_{mark}_{number}"


def lease(mark: str) -> str:
    """The table that says that a session is in use."""
    return beside(mark, 0)


def source(kind: str, what: object) -> str:
    """What a snapshot's table says of where its rows are from; nothing where they came from Python."""
    return "" if kind == "frame" else hashlib.sha256(repr((kind, what)).encode()).hexdigest()


def digest(statements: Sequence[str]) -> str:
    """What a table's content follows from, beside the source's rows. From it nobody learns the load's key, which has
    128 secret bits."""
    return hashlib.sha256("\n".join([FORM, *statements]).encode()).hexdigest()
