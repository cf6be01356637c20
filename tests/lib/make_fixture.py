"""Makes `tests/data/version-3.ledger` and its note. It was run once, with the program before its ledger was divided
into what is trusted and the rest: a fixture is never made again, a new version gets a new one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from discreet.accounting import Approximate, Batch, DiscreteLaplace, Gaussian, Pure
from discreet.ledger import TOTAL, Caps, Ledger, Unit
from discreet.trusted.ledger import schema
from kinds import DATA

FOLDER = DATA


def make(path: Path) -> None:
    """A ledger with every kind of entry and of loss that this version writes."""
    ledger = Ledger(path)
    whole = Caps(Fraction(3), Fraction("1e-6"), Fraction("1e-7"))
    units = {"patients": Unit("id", 3, "text")}
    caps = {TOTAL: whole, "ana": Caps(Fraction("0.5"), Fraction("1e-7"), Fraction("1e-8"))}
    ledger.register(caps, "[budget]\n", units=units)
    ledger.register_snapshots({"patients": "first"}, anew=True)
    tenth = Fraction(1, 10)
    losses = [
        Pure(tenth),
        DiscreteLaplace(tenth, 4),
        Approximate(tenth, Fraction("1e-8")),
        Batch((DiscreteLaplace(tenth, 1), Pure(tenth))),
        Gaussian(Fraction("0.05")),
    ]
    for turn, loss in enumerate(losses):
        account = "ana" if turn < 2 else ""
        given = ledger.reserve(loss, question=f"question {turn}", key=f"{turn}", account=account, request=f"{turn}")
        if turn != 1:
            ledger.commit(given.reserve_id, f'{{"rows":[{turn}]}}'.encode())
    ledger.reserve(losses[2], question="question 2", key="2", account="ana", request="again")
    failing = ledger.reserve(losses[0], question="question 5", key="5", account="ana", tables=["patients"], limit=2)
    ledger.fail(failing.reserve_id)
    ledger.lift("ana")
    ending = ledger.reserve(losses[0], question="question 6", key="6", tables=["patients"], limit=2)
    ledger.end(ending.reserve_id)
    ledger.register({"ana": Caps(Fraction("0.4"), Fraction("1e-7"), Fraction("1e-8"))}, "[budget]\n")
    ledger.register({TOTAL: replace(whole, epsilon=Fraction(5))}, "[budget]\n", raising=True)
    ledger.close()
    Ledger.spend_unknown(path, Pure(tenth)).close()
    ledger = Ledger(path)
    lost = ledger.reserve(losses[0], question="question 7", key="7", tables=["patients"], limit=1)
    ledger.fail(lost.reserve_id)
    ledger.register_snapshots({"patients": "second"}, anew=True)
    ledger.verify()
    print(ledger.head)
    ledger.close()


if __name__ == "__main__":
    target = FOLDER / f"version-{schema.VERSION}.ledger"
    if target.exists():
        sys.exit(f"{target} is there already")
    make(target)
