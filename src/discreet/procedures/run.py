"""One procedure through the door: reserve, measure, store, or the stored answer to the same call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from discreet.door import Door
from discreet.ledger import Stored
from discreet.trusted.ring_a.finishing import finishing
from discreet.trusted.ring_a.gate import Measurable
from discreet.trusted.ring_a.table import Source, Table

Released = TypeVar("Released")


def key_of(table: Table, snapshot: str, engine: str, *parts: str) -> str:
    """What makes two calls the same: the declaration, the snapshot, the engine and all that decides the answer.

    Where the source's file lies is no part of it: the snapshot says what was read.
    """
    known = [repr(replace(table, source=Source(table.source.kind))), snapshot, engine, *parts]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


def released(
    door: Door,
    measurement: Measurable[Released],
    content: Callable[[Released], Mapping[str, Any]],
    *,
    analyst: str,
    question: str,
    key: str,
    request: str | None,
    rows: object,
) -> tuple[dict[str, Any], bool]:
    """The content of the release, and whether this call was charged. A signal waits until the answer is stored.

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
            return json.loads(reserved.answer), bool(reserved.charged)
        with reserved:
            stored = json.dumps(content(reserved.measure()), ensure_ascii=False).encode()
            reserved.commit(stored)
        return json.loads(stored), True  # what a repeat will read
