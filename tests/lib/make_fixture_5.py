"""Makes `tests/data/version-5.ledger` and its note. It was run once, with the program before budgets by part."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

from discreet.accounting import Gaussian, Pure
from discreet.ledger import TOTAL, Caps, Ledger, Unit
from discreet.trusted.ledger import chain, schema
from kinds import DATA

RENEWAL = {"length": "month", "persons": "new persons", "who": "visits.id (text)"}


def make(path: Path) -> None:
    """A ledger whose budget renews for new persons, who are listed twice, with an analyst whose cap was raised in one
    period alone, a repeat, a failure and a suspension."""
    ledger = Ledger(path)
    caps = {
        TOTAL: Caps(Fraction(3), Fraction("1e-6"), Fraction("1e-7")),
        "ana": Caps(Fraction(1), Fraction(0), Fraction(0)),
    }

    def ask(key: str, period: str, **said: str) -> int:
        loss = Gaussian(Fraction("0.05")) if key.startswith("noisy") else Pure(Fraction(1, 10))
        given = ledger.reserve(loss, question=key, key=key, period=period, tables=["visits"], **said)
        return given.reserve_id

    def refresh(persons: bytes) -> None:
        turn = ledger.turn()
        turn = turn.__class__(**{**vars(turn), "lists": len(ledger.seen()), "persons": persons})
        ledger.register_snapshots({"visits": turn.name}, anew=True, turning=turn)

    with patch.object(chain, "now", lambda: "2026-10-10T12:00:00Z"):
        ledger.register(caps, "first", units={"visits": Unit("id", 2, "text")}, renewal=RENEWAL)
        refresh(bytes(32))
        asked = ledger.request_more("ana", Fraction("0.25"), "a further wave", "desk")
        ledger.decide(asked.number, approve=True, reason="as agreed", by="boss")
        ledger.commit(ask("one", "2026-10", account="ana"), b"one")
        ledger.commit(ask("noisy", "2026-10"), b"noisy")
        ledger.reserve(Pure(Fraction(1, 10)), question="one", key="one", request="again", period="2026-10")
    with patch.object(chain, "now", lambda: "2026-11-10T12:00:00Z"):
        refresh(b"\1" * 16)
        ledger.commit(ask("two", "2026-11", account="ana"), b"two")
        ledger.fail(ask("three", "2026-11", account="ana"))
        ledger.end(ask("four", "2026-11"))
    ledger.verify()
    print(ledger.head)
    ledger.close()


if __name__ == "__main__":
    target = DATA / f"version-{schema.VERSION}.ledger"
    if target.exists():
        sys.exit(f"{target} is there already")
    make(target)
