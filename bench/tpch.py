"""Questions in the shapes of TPC-H over 600,000 generated lines, with a customer as the person, beside plain DuckDB.

`python -m bench.tpch [SCALE]` asks those of tests/asked/tpch.sql that run.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import discreet

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "lib"))

data: Any = importlib.import_module("asked_data")  # these lie with the tests
tools: Any = importlib.import_module("asked_tools")
made: Any = importlib.import_module("tpch_tools")


@dataclass(frozen=True)
class Took:
    """Of one question: what came of it, and seconds, of plain DuckDB (the median) and of each time that we answered."""

    name: str
    state: str
    plain: float = 0.0
    ours: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / self.plain

    @property
    def worst(self) -> float:
        return max(self.ours) / self.plain


def took(folder: Path, scale: float = 0.1, repetitions: int = 5) -> list[Took]:
    """Each question is asked once to see what comes of it, then in turn with plain DuckDB."""
    folder.mkdir(exist_ok=True)
    made.tpch(folder, scale)
    tables = made.declared(folder)
    engine = {"work": data.WORK}
    with discreet.Curator(tables, epsilon=data.BUDGET, delta="0.5", keys_delta="0.4", engine=engine) as curator:
        asked = data.Asked(curator, data.plain(folder, list(tables)))
        prices = (f"1{number:03}e17" for number in count())  # each a new one, and dearer than those before
        found = []
        for question in tools.suites()["tpch"]:
            outcome = tools.judged(asked, question)
            if outcome.state not in (tools.EQUAL, tools.DIFFERENT):
                found.append(Took(question.name, outcome.state))
                continue
            theirs, ours = [], []
            for _ in range(repetitions):
                theirs.append(_seconds(partial(tools.truth, asked.plain, question)))
                ours.append(_seconds(partial(tools.asks, asked, question, question.text, next(prices))))
            found.append(Took(question.name, outcome.state, statistics.median(theirs), tuple(ours)))
        asked.plain.close()
    return found


def figures(folder: Path, scale: float = 0.1) -> list[tuple[str, float]]:
    every = took(folder, scale)
    ran = [one for one in every if one.ours]
    return [
        ("questions that run, of 13", len(ran)),
        ("equal to plain DuckDB at a price that hides nothing", sum(one.state == tools.EQUAL for one in ran)),
        *((f"{one.name}: seconds over plain DuckDB's, median", one.ratio) for one in ran),
        ("the median of these", statistics.median(one.ratio for one in ran)),
        ("the worst of all times", max(one.worst for one in ran)),
    ]


def main(scale: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':>4}  {'':<16}{'plain, ms':>12}{'ours, ms':>12}{'median ×':>12}{'worst ×':>12}")
        for one in took(Path(folder), scale):
            if not one.ours:
                print(f"{one.name:>4}  {one.state:<16}")
                continue
            milliseconds = [1000 * one.plain, 1000 * statistics.median(one.ours)]
            numbers = "".join(f"{number:>12.1f}" for number in (*milliseconds, one.ratio, one.worst))
            print(f"{one.name:>4}  {one.state:<16}{numbers}", flush=True)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 0.1)
