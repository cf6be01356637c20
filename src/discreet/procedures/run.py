"""One procedure through the door: reserve, measure, store, or the stored answer to the same call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from discreet.finishing import finishing
from discreet.ledger import Stored
from discreet.trusted.ring_a.gate import Door, Measurable
from discreet.trusted.ring_a.table import Source, Table

Released = TypeVar("Released")


def digest(*parts: str) -> str:
    """SHA-256 of the parts, a line each."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def declared(*tables: Table) -> list[str]:
    """Tables as they are declared, but for where their files lie: the snapshot says what was read."""
    return [repr(replace(table, source=Source(table.source.kind))) for table in tables]


def request_key(table: Table, snapshot: str, engine: str, *parts: str) -> str:
    """What makes two calls the same: the declaration, the snapshot, the engine and all that decides the answer."""
    return digest(*declared(table), snapshot, engine, *parts)


def released(
    door: Door,
    measurement: Measurable[Released],
    written: Callable[[Released], bytes],
    *,
    analyst: str,
    question: str,
    key: str,
    request: str | None,
    rows: object,
    due: Callable[[], None],
) -> tuple[bytes, bool]:
    """What was released, as `written` says it and the ledger stores it, and whether this call was charged. It is stored
    once `due` has returned; a signal waits until then.

    Raises BudgetError (nothing was spent), EngineError (the price stays charged), LedgerError.
    """
    with finishing():
        reserved = door.open(
            measurement,
            analyst=analyst,
            question=question,
            key=key,
            request=request,
            rows=rows,
        )
        if isinstance(reserved, Stored):
            return reserved.answer, bool(reserved.charged)
        with reserved:
            stored = written(reserved.measure())
            due()
            reserved.commit(stored)
        return stored, True  # what a repeat will read
