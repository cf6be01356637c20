"""Makes `tests/data/version-4.ledger` and its note. It was run once, with the program before the ledger kept what an
account has again from the next period on.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

from discreet.accounting import Pure
from discreet.ledger import TOTAL, Caps, Ledger
from discreet.trusted.ledger import chain, schema
from kinds import DATA

RENEWAL = {"length": "month", "persons": "everybody"}


def caps(epsilon: str) -> Caps:
    return Caps(Fraction(epsilon), Fraction(0), Fraction(0))


def make(path: Path) -> None:
    """A ledger whose budget renews, with caps by day, and requests of three analysts: one is in no later declaration,
    and of another less is declared after the approval."""
    ledger = Ledger(path)
    tenth = Pure(Fraction(1, 10))

    def register(declaration: str, allowances: dict[str, dict[str, Caps]], **analysts: str) -> None:
        whole = {TOTAL: caps("3"), **{name: caps(epsilon) for name, epsilon in analysts.items()}}
        ledger.register(whole, declaration, renewal=RENEWAL, allowances=allowances)

    def approve(analyst: str, amount: str) -> None:
        asked = ledger.request_more(analyst, Fraction(amount), "a further wave", "desk")
        ledger.decide(asked.number, approve=True, reason="as agreed", by="boss")

    def ask(analyst: str, key: str, period: str) -> None:
        given = ledger.reserve(tenth, question=key, key=key, account=analyst, period=period)
        ledger.commit(given.reserve_id, key.encode())

    def at(day: str) -> object:
        return patch.object(chain, "now", lambda: f"{day}T12:00:00Z")

    with at("2026-09-10"):
        register("first", {"ana": {"day": caps("0.2")}}, ana="1", ben="2", eve="0.5")
        approve("ben", "0.1")  # before the first period: it counts in that
        ledger.register_snapshots({"visits": "September"}, anew=True, turning=ledger.turn())
        approve("ana", "0.25")
        ask("ana", "September", "2026-09")
    with at("2026-10-10"):
        declared = {name: Fraction(epsilon) for name, epsilon in {"ana": "1", "ben": "2", "eve": "0.5"}.items()}
        turn = ledger.turn()
        ledger.register_snapshots(
            {"visits": "October"}, anew=True, turning=turn.__class__(**{**vars(turn), "declared": declared})
        )
        approve("ana", "0.5")
        approve("eve", "0.75")
        approve("ana", "0.125")
        denied = ledger.request_more("ben", Fraction("0.1"), "why not")
        ledger.decide(denied.number, approve=False, reason="no")
        ask("ana", "October", "2026-10")
        ask("eve", "October too", "2026-10")
        register("without eve, and less of ana", {"ana": {"day": caps("0.2")}}, ana="0.4", ben="2")
    ledger.verify()
    print(ledger.head)
    ledger.close()


if __name__ == "__main__":
    target = DATA / f"version-{schema.VERSION}.ledger"
    if target.exists():
        sys.exit(f"{target} is there already")
    make(target)
