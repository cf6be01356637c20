"""Tables kept in files, at one, ten and a hundred million rows: what it takes to make a file, to open it, and to answer
from it, beside a plain GROUP BY from a database file of the same rows.

`python -m bench.kept 1 10 100` measures at so many million rows; `make bench` at one and ten, as a hundred need 8 GB of
disk and some minutes.
"""

from __future__ import annotations

import math
import os
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

import duckdb

import discreet
from bench.big import GROUPS, PLAIN, QUESTIONS, processor_seconds, resident
from discreet.catalog import read
from discreet.curator import Curator

MAKE = """
COPY (
    SELECT CAST(floor({persons} * CASE WHEN random() < 0.5 THEN random() ELSE pow(random(), 2) END) AS BIGINT)
               AS user_id,
           CAST(floor({groups} * pow(random(), 1.5)) AS BIGINT) AS group_key,
           round(random() * 400, 3) AS value
    FROM range({rows})
) TO '{path}' (FORMAT parquet)
"""
"""Ten rows a person on the average, skewed: some have several hundred."""

DECLARED = f"""
[budget]
epsilon = 1000000000
delta = 1e-6
[engine]
store = "file"
memory_gib = {{memory}}
[tables.events]
source = "events.parquet"
person = "user_id"
rows_per_person = 20
groups_per_person = 10
[tables.events.columns]
user_id = {{{{ type = "integer" }}}}
group_key = {{{{ type = "integer", min = 0, max = {GROUPS - 1} }}}}
value = {{{{ type = "number", min = 0, max = 400, step = 0.001 }}}}
"""

MEMORY_GIB = 1
"""What the engine may take of the machine's memory: less than the largest table."""


def figures(folder: Path, millions: tuple[int, ...] = (1, 10), repetitions: int = 5) -> list[tuple[str, float]]:
    """Ratios at each size, and how processor seconds grow from the first size to the last."""
    found, seconds = list[tuple[str, float]](), list[dict[str, float]]()
    for number in millions:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            facts, times = _one(Path(place), number * 1_000_000, repetitions)
        found += [(f"{number} million rows: {name}", value) for name, value in facts]
        seconds.append(times)
    if len(millions) > 1:
        grown = math.log(millions[-1] / millions[0])
        found += [
            (f"exponent of processor seconds over rows: {name}", math.log(seconds[-1][name] / seconds[0][name]) / grown)
            for name in seconds[0]
        ]
    return found


@dataclass(frozen=True)
class _Spent:
    """What a run took: seconds of the clock, and of the processors, which a busy machine disturbs less."""

    clock: float
    processors: float

    @classmethod
    def of(cls, run: Callable[[], object], *processes: int) -> _Spent:
        """Of a run in these processes; in this one where none is named."""
        known = processes or (os.getpid(),)
        used, begun = sum(map(processor_seconds, known)), time.perf_counter()
        run()
        return cls(time.perf_counter() - begun, sum(map(processor_seconds, known)) - used)


def _one(folder: Path, rows: int, repetitions: int) -> tuple[list[tuple[str, float]], dict[str, float]]:
    """Ratios and facts at one size, and processor seconds of what should grow as the rows do."""
    source = folder / "events.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(MAKE.format(rows=rows, persons=rows // 10, groups=GROUPS, path=source))
    scanned = _Spent.of(lambda: _scan(source))
    copied = _Spent.of(lambda: _copy(source, folder / "plain.duckdb"))
    (folder / "kept.toml").write_text(DECLARED.format(memory=MEMORY_GIB), "utf-8")
    begun = time.perf_counter()
    with discreet.open(folder / "kept.toml") as curator:
        made = _Spent(time.perf_counter() - begun, processor_seconds(_child(curator)))
        used = resident(_child(curator), "VmHWM")
    facts = [
        ("making the file: seconds", made.clock),
        ("making the file: processor seconds", made.processors),
        (
            "making the file / copying the source into a database: processor seconds",
            made.processors / copied.processors,
        ),
        ("making the file / one scan of the source: processor seconds", made.processors / scanned.processors),
        ("making the file: peak memory of the engine, MB", used),
        ("size of the source, MB", source.stat().st_size / 1e6),
        ("size of the file, MB", sum(path.stat().st_size for path in folder.glob("kept.snapshots/*-*")) / 1e6),
    ]
    begun = time.perf_counter()
    with discreet.open(folder / "kept.toml") as curator:
        opened = time.perf_counter() - begun
        prices = count(1)

        def asked(question: str) -> Callable[[], object]:
            return lambda: curator.ask(question, epsilon=1 + next(prices) / 1000)

        child = _child(curator)
        work: dict[str, Callable[[], object]] = {name: asked(question) for name, question in QUESTIONS.items()}
        for name in reversed(work):  # first what needs nothing beside the table
            spent = _Spent.of(work[name], child)
            facts.append((f"first question, {name}: seconds", spent.clock))
            facts.append((f"first question, {name}: processor seconds", spent.processors))
            if name == next(reversed(work)):
                facts.append(("from the start to the first answer: seconds", time.perf_counter() - begun))
                facts.append(("of these, until the tables are open", opened))
        with duckdb.connect(str(folder / "plain.duckdb"), read_only=True) as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
            work["plain GROUP BY"] = lambda: connection.execute(PLAIN).fetchall()
            runs: dict[str, list[_Spent]] = {name: [] for name in work}
            for _ in range(repetitions + 1):
                for name, run in work.items():
                    runs[name].append(_Spent.of(run, *([child] if name in QUESTIONS else [])))
        facts.append(("questions: peak memory of the engine, MB", resident(child, "VmHWM")))
    with discreet.open(folder / "kept.toml") as curator:
        for number, (name, question) in enumerate(reversed(QUESTIONS.items())):
            spent = _Spent.of(partial(curator.ask, question, epsilon=2 + number / 1000), _child(curator))
            facts.append((f"first question at the next start, {name}: processor seconds", spent.processors))
        facts.append(
            ("size of the folder, MB", sum(one.stat().st_size for one in folder.glob("kept.snapshots/*")) / 1e6)
        )
    begun = time.perf_counter()
    with Curator.of(read(folder / "kept.toml"), load=False) as curator:
        curator.refresh()
        facts.append(("refresh where nobody touched the source: seconds", time.perf_counter() - begun))
    clock = {name: statistics.median(one.clock for one in spent[1:]) for name, spent in runs.items()}
    used_by = {name: statistics.median(one.processors for one in spent[1:]) for name, spent in runs.items()}
    for name in QUESTIONS:
        facts.append((f"{name} / plain GROUP BY: seconds", clock[name] / clock["plain GROUP BY"]))
        facts.append((f"{name} / plain GROUP BY: processor seconds", used_by[name] / used_by["plain GROUP BY"]))
    facts += [(f"{name}: seconds (for scale)", seconds) for name, seconds in clock.items()]
    return facts, {**{name: used_by[name] for name in QUESTIONS}, "making the file": made.processors}


def _child(curator: discreet.Curator) -> int:
    engine: Any = curator._engine  # its process is no part of what an engine is
    return int(engine._process.pid)


def _scan(source: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SELECT sum(user_id), sum(group_key), sum(value) FROM '{source}'").fetchall()


def _copy(source: Path, path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE TABLE events AS SELECT * FROM '{source}'")


if __name__ == "__main__":
    sizes = tuple(int(one) for one in sys.argv[1:]) or (1, 10)
    with tempfile.TemporaryDirectory() as place:
        for name, value in figures(Path(place), sizes):
            print(f"{name:<110} {value:>12,.4g}", flush=True)
