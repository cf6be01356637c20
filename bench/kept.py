"""Tables kept in files, at one, ten and a hundred million rows: what it takes to make a file, to open it, and to answer
from it, beside a plain GROUP BY from a database file of the same rows.

`python -m bench.kept 1 10 100` measures at so many million rows; `make bench` at one and ten, as a hundred need 8 GB of
disk and some minutes.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import discreet
from bench.big import GROUPS, PLAIN, QUESTIONS, resident

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
    """Ratios at each size, and how times grow from the first size to the last."""
    found, seconds = list[tuple[str, float]](), list[dict[str, float]]()
    for number in millions:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            facts, times = _one(Path(place), number * 1_000_000, repetitions)
        found += [(f"{number} million rows: {name}", value) for name, value in facts]
        seconds.append(times)
    if len(millions) > 1:
        grown = math.log(millions[-1] / millions[0])
        found += [
            (f"exponent of time over rows: {name}", math.log(seconds[-1][name] / seconds[0][name]) / grown)
            for name in seconds[0]
        ]
    return found


def _one(folder: Path, rows: int, repetitions: int) -> tuple[list[tuple[str, float]], dict[str, float]]:
    """Ratios and facts at one size, and seconds of what should grow as the rows do."""
    source = folder / "events.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(MAKE.format(rows=rows, persons=rows // 10, groups=GROUPS, path=source))
    scanned = _seconds(lambda: _scan(source))
    copied = _seconds(lambda: _copy(source, folder / "plain.duckdb"))
    (folder / "kept.toml").write_text(DECLARED.format(memory=MEMORY_GIB), "utf-8")
    begun = time.perf_counter()
    with discreet.open(folder / "kept.toml") as curator:
        made = time.perf_counter() - begun
        used = resident(_child(curator), "VmHWM")
    facts = [
        ("seconds to make the file", made),
        ("making it / copying the source into a database file", made / copied),
        ("making it / one scan of the source", made / scanned),
        ("peak memory of the engine meanwhile, MB", used),
        ("size of the source, MB", source.stat().st_size / 1e6),
        ("size of the file, MB", sum(path.stat().st_size for path in folder.glob("kept.snapshots/*-*")) / 1e6),
    ]
    begun = time.perf_counter()
    with discreet.open(folder / "kept.toml") as curator:
        prices = count(1)

        def asked(question: str) -> Callable[[], object]:
            return lambda: curator.ask(question, epsilon=1 + next(prices) / 1000)

        work: dict[str, Callable[[], object]] = {name: asked(question) for name, question in QUESTIONS.items()}
        first, *others = reversed(work)  # what needs no totals
        work[first]()
        facts.append(
            ("seconds from the start to the first answer, when the file is there", time.perf_counter() - begun)
        )
        facts += [(f"seconds of the first question: {name}", _seconds(work[name])) for name in reversed(others)]
        with duckdb.connect(str(folder / "plain.duckdb"), read_only=True) as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
            work["plain GROUP BY"] = lambda: connection.execute(PLAIN).fetchall()
            runs: dict[str, list[float]] = {name: [] for name in work}
            for _ in range(repetitions + 1):
                for name, run in work.items():
                    runs[name].append(_seconds(run))
        facts.append(("peak memory of the engine, MB", resident(_child(curator), "VmHWM")))
    median = {name: statistics.median(times[1:]) for name, times in runs.items()}
    facts += [(f"{name} / plain GROUP BY", median[name] / median["plain GROUP BY"]) for name in QUESTIONS]
    facts += [(f"seconds (for scale): {name}", seconds) for name, seconds in median.items()]
    return facts, {**median, "making the file": made}


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


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sizes = tuple(int(one) for one in sys.argv[1:]) or (1, 10)
    with tempfile.TemporaryDirectory() as place:
        for name, value in figures(Path(place), sizes):
            print(f"{name:<90} {value:>12,.4g}", flush=True)
