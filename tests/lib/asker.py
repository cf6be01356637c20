"""One analyst in a process of its own, for tests of crashes: `python asker.py DECLARATION ANALYST COUNT`.

Asks what was asked before, then questions of its own, and says each with its answer once it has it.
"""

from __future__ import annotations

import os
import sys

import discreet

ASKED = "SELECT COUNT(*) AS n FROM visits"


def questions(analyst: str, count: int) -> list[str]:
    return [ASKED, *(f"{ASKED} WHERE note <> '{analyst}' AND age <> {number}" for number in range(count))]


def ask(declaration: str, analyst: str, count: int) -> None:
    with discreet.open(declaration) as curator:
        for question in questions(analyst, count):
            try:
                release = curator.ask(question, analyst=analyst)
            except discreet.BudgetError:
                return
            os.write(1, f"{release.rows[0]['n']} {question}\n".encode())


if __name__ == "__main__":
    ask(sys.argv[1], sys.argv[2], int(sys.argv[3]))
