"""Ten million rows of a million people: a whole question against SQL written by hand and against a plain GROUP BY."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import discreet

ROWS, PEOPLE, GROUPS, KEPT, MOST = 10_000_000, 1_000_000, 100, 10, 20

MAKE = f"""
COPY (
    SELECT CAST(floor({PEOPLE} * CASE WHEN random() < 0.5 THEN random() ELSE pow(random(), 2) END) AS BIGINT)
               AS user_id,
           CAST(floor({GROUPS} * pow(random(), 1.5)) AS BIGINT) AS group_key,
           round(random() * 400, 3) AS value
    FROM range({ROWS})
) TO '{{path}}' (FORMAT parquet)
"""

PLAIN = "SELECT group_key, SUM(value), COUNT(*) FROM events GROUP BY group_key"

HAND_WRITTEN = """
WITH ug AS (
    SELECT user_id AS u, group_key AS g,
           SUM(CASE WHEN value IS NULL THEN NULL
               ELSE CAST(FLOOR(GREATEST(LEAST(value, CAST(1e6 AS DOUBLE)), CAST(-1e6 AS DOUBLE)) * 1024)
               AS BIGINT) END) AS s,
           COUNT(*) AS c
    FROM events GROUP BY user_id, group_key),
r AS (SELECT ug.*, ROW_NUMBER() OVER (PARTITION BY u ORDER BY hash(hash('0123456789abcdef', u, g)), g) AS rn FROM ug)
SELECT g, SUM(CAST(GREATEST(LEAST(COALESCE(s, 0), 512000), 0) AS BIGINT)) AS s,
       COUNT(*) AS users, SUM(CAST(LEAST(c, 20) AS BIGINT)) AS c
FROM r WHERE rn BETWEEN 1 AND 10 GROUP BY g
"""

GROUPED = f"""
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = {KEPT}) group_key,
       SUM(value, contribution_bounds_per_group => (0, 500)) AS s,
       COUNT(*, contribution_bounds_per_group => (0, 20)) AS c
FROM events {{where}} GROUP BY group_key
"""

QUESTIONS = {
    "groups bounded, stored totals": GROUPED.format(where=""),
    "groups bounded, WHERE and clip": GROUPED.format(where="WHERE value < 300"),
    "rows bounded, WHERE": "SELECT group_key, SUM(value) AS s, COUNT(*) AS c FROM events WHERE value < 300"
    " GROUP BY group_key",
}
"""Of one person: at most KEPT groups, or at most MOST rows."""


def ratios(folder: Path, repetitions: int = 5) -> list[tuple[str, float]]:
    """Whole questions over hand-written SQL and over a plain GROUP BY, by the median of interleaved runs: in wall time,
    and in processor time of the engine's process, which a busy machine disturbs less."""
    path = folder / "events.parquet"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(MAKE.format(path=path))
    connection.execute(f"CREATE TABLE events AS SELECT * FROM '{path}'")
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    columns = {
        "user_id": int,
        "group_key": (0, GROUPS - 1),
        "value": {"type": "number", "min": 0, "max": 400, "step": 0.001},
    }
    table = discreet.Table(str(path), person="user_id", rows_per_person=MOST, groups_per_person=KEPT, columns=columns)
    begun = time.perf_counter()
    with discreet.Curator({"events": table}, epsilon=10**6, delta=1e-6, ledger=folder / "big.ledger") as curator:
        engine: Any = curator._engine  # its process is no part of what an engine is
        process = engine._process
        assert process is not None
        facts = [
            ("seconds to open (read, number, place, fingerprint)", time.perf_counter() - begun),
            ("memory of the engine then, MB", resident(process.pid, "VmRSS")),
        ]
        prices = iter(range(1, 1000))

        def asked(question: str) -> Callable[[], object]:
            return lambda: curator.ask(question, epsilon=1 + next(prices) / 1000)

        work: dict[str, Callable[[], object]] = {name: asked(question) for name, question in QUESTIONS.items()}
        for name, first in work.items():
            start = time.perf_counter()
            first()
            facts.append((f"{name}: seconds of the first question", time.perf_counter() - start))
            facts.append(("memory of the engine then, MB", resident(process.pid, "VmRSS")))
        work["hand-written SQL"] = lambda: connection.execute(HAND_WRITTEN).fetchall()
        work["plain GROUP BY"] = lambda: connection.execute(PLAIN).fetchall()
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
        for _ in range(repetitions + 1):
            for name, run in work.items():
                pid = process.pid if name in QUESTIONS else os.getpid()
                start, used = time.perf_counter(), processor_seconds(pid)
                run()
                runs[name].append((time.perf_counter() - start, processor_seconds(pid) - used))
        facts.append(("peak memory of the engine, MB", resident(process.pid, "VmHWM")))
    median, processor = (
        {name: statistics.median(one[which] for one in times[1:]) for name, times in runs.items()} for which in (0, 1)
    )
    plain, hand = median["plain GROUP BY"], median["hand-written SQL"]
    return [
        *((f"{name} / plain GROUP BY", seconds / plain) for name, seconds in median.items()),
        *((f"{name} / hand-written SQL", median[name] / hand) for name in QUESTIONS),
        *((f"{name}: processor / plain", used / processor["plain GROUP BY"]) for name, used in processor.items()),
        *((f"{name}: seconds (for scale)", seconds) for name, seconds in median.items()),
        *facts,
        ("peak memory of this process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    ]


def processor_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int, which: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    return 0.0
