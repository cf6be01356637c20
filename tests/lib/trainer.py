"""One owner in a process of its own, for tests of crashes and races: `python trainer.py LEDGER SEED`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import discreet
from learning_tools import curator

ROWS = [{"p": f"p{i}", "v": i % 9 - 2, "y": "yes" if i % 9 > 4 else "no"} for i in range(300)]


def train(ledger: str, clip: str) -> None:
    with curator(ROWS, ledger=Path(ledger), epsilon=1) as one:
        try:
            model = one.fit("t", target="y", features=["v"], epsilon="0.5", steps=5, clip=clip)
        except discreet.BudgetError:
            return
        os.write(1, f"{model.release.rows[0]['weight']!r} {bool(model.release.charged)}\n".encode())


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2])
