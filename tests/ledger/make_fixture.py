"""Makes `fixtures/version-2.ledger`. It was run once: a fixture is never made again, a new version gets a new
one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from discreet.accounting import Approximate, Batch, DiscreteLaplace, Gaussian, Pure
from discreet.ledger import TOTAL, Caps, Ledger, schema

FOLDER = Path(__file__).parent / "fixtures"


def make(path: Path) -> None:
    """A ledger with every kind of entry and of loss."""
    ledger = Ledger(path)
    whole = Caps(Fraction(3), Fraction("1e-6"), Fraction("1e-7"))
    ledger.register({TOTAL: whole, "ana": Caps(Fraction("0.5"), Fraction("1e-7"), Fraction("1e-8"))}, "[budget]\n")
    ledger.register_snapshots({"patients": "first"}, anew=True)
    tenth = Fraction(1, 10)
    losses = [
        Pure(tenth),
        DiscreteLaplace(tenth, 4),
        Approximate(tenth, Fraction("1e-8")),
        Batch((DiscreteLaplace(tenth, 1), Pure(tenth))),
    ]
    for turn, loss in enumerate(losses):
        account = "ana" if turn < 2 else ""
        given = ledger.reserve(loss, question=f"question {turn}", key=f"{turn}", account=account, request=f"{turn}")
        if turn != 1:
            ledger.commit(given.reserve_id, f'{{"rows":[{turn}]}}'.encode())
    ledger.reserve(losses[2], question="question 2", key="2", account="ana", request="again")
    failing = ledger.reserve(losses[0], question="question 5", key="5", tables=["patients"], limit=2)
    ledger.fail(failing.reserve_id)
    ledger.register_snapshots({"patients": "second"}, anew=True)
    ledger.register({"ana": Caps(Fraction("0.4"), Fraction("1e-7"), Fraction("1e-8"))}, "[budget]\n")
    ledger.reserve(Gaussian(Fraction("0.05")), question="question 4", key="4")
    bob = Caps(Fraction(1), Fraction("1e-6"), Fraction("1e-7"))
    ledger.register({"bob": bob, "eve": bob}, "[budget]\n")
    ledger.register({TOTAL: replace(whole, epsilon=Fraction(5))}, "[budget]\n")
    ledger.reserve(Pure(Fraction("0.4")), question="question 5", key="5", account="bob")
    print(ledger.head)
    ledger.close()


if __name__ == "__main__":
    target = FOLDER / f"version-{schema.VERSION}.ledger"
    if target.exists():
        sys.exit(f"{target} is there already")
    make(target)
