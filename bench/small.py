"""One question on a small table: its latency, the accuracy of its noise, and the weight of the package."""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import duckdb

import discreet

QUESTION = "SELECT COUNT(*) AS n FROM people WHERE age > 40"


def _curator(folder: Path, ledger: Path | None, rows: int = 10_000) -> discreet.Curator:
    path = folder / f"people{rows}.csv"
    path.write_text("age\n" + "".join(f"{17 + index % 74}\n" for index in range(rows)))
    table = discreet.Table(str(path), one_row_per_person=True, columns={"age": (17, 90)})
    return discreet.Curator({"people": table}, epsilon=10**9, delta=0, ledger=ledger)


def latency(folder: Path, questions: int = 200) -> list[tuple[str, float]]:
    """Milliseconds of one question, with the ledger on disk and in memory, beside the engine's own and an fsync's."""
    figures = []
    prices = iter(range(10**9))
    for name, ledger in (("on disk", folder / "small.ledger"), ("in memory", None)):
        with _curator(folder, ledger) as curator:
            ask = partial(_ask, curator, prices)
            figures.append((f"one question, ledger {name}, ms", _milliseconds(ask, questions)))
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 17 + range % 74 AS age FROM range(10000)")
    statement = "SELECT COUNT(*) FROM people WHERE age > 40"
    figures.append(
        ("the same in the engine alone, ms", _milliseconds(lambda: connection.execute(statement).fetchall(), questions))
    )
    with (folder / "fsync").open("wb") as file:

        def sync() -> None:
            import os

            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())

        figures.append(("one write and fsync (for scale), ms", _milliseconds(sync, 100)))
    return figures


def _ask(curator: discreet.Curator, prices: Iterator[int]) -> None:
    """A question that was not asked before: its price is a new one."""
    curator.ask(QUESTION, epsilon=1 + next(prices) / 10**6)


def _milliseconds(work: Callable[[], object], times: int) -> float:
    for _ in range(10):
        work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def accuracy(folder: Path, releases: int = 10_000) -> list[tuple[str, float]]:
    """Mean absolute error over its theory, and the coverage of the 95 % intervals, of whole questions."""
    truth = sum(1 for index in range(1_000) if 17 + index % 74 > 40)
    errors, covered = [], 0
    rate = 0.1
    with _curator(folder, None, rows=1_000) as curator:
        for index in range(releases):
            # a constant that changes nothing makes each question a new one, at the same price
            release = curator.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > 40 AND {index} = {index}", epsilon=0.1)
            errors.append(abs(release.rows[0]["n"] - truth))
            low, high = release.intervals[0]["n"]
            covered += low <= truth <= high
    theory = 1 / math.sinh(rate)
    half = math.ceil(math.log(2 / ((1 + math.exp(-rate)) * 0.05)) / rate) - 1
    exact = 1 - 2 * math.exp(-rate * (half + 1)) / (1 + math.exp(-rate))
    return [
        (f"mean absolute error of {releases:,} counts / theory", statistics.fmean(errors) / theory),
        ("coverage of their 95 % intervals", covered / releases),
        ("coverage that the lattice makes of 95 % (exact)", exact),
    ]


def weight() -> list[tuple[str, float]]:
    """Seconds to import the package in a fresh process, and the megabytes that it brings along without extras."""
    program = "import time; t = time.perf_counter(); import discreet; print(time.perf_counter() - t)"
    full = "import time; t = time.perf_counter(); import discreet; discreet.Curator; print(time.perf_counter() - t)"
    figures = []
    for name, code in (("import discreet, s", program), ("import discreet and its curator, s", full)):
        runs = [
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
            for _ in range(5)
        ]
        figures.append((name, statistics.median(runs)))
    return [*figures, ("installed without extras, MB", _installed("discreet", set()) / 1e6)]


def _installed(name: str, met: set[str]) -> int:
    """The bytes of a distribution's files and of all that it requires without extras."""
    folded = re.sub(r"[-_.]+", "-", name).lower()
    if folded in met:
        return 0
    met.add(folded)
    found = distribution(name)
    size = sum(path.stat().st_size for file in found.files or () if (path := Path(str(file.locate()))).is_file())
    for requirement in found.requires or ():
        named, _, marker = requirement.partition(";")
        if not marker:
            size += _installed(re.split(r"[\s<>=!~\[(]", named.strip())[0], met)
    return size
