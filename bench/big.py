"""Ten million rows of a million people: a whole question against SQL written by hand and against a plain GROUP BY."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import discreet

ROWS, PEOPLE, GROUPS, KEPT = 10_000_000, 1_000_000, 100, 10

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

QUESTION = f"""
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = {KEPT}) group_key,
       SUM(value, contribution_bounds_per_group => (0, 500)) AS s,
       COUNT(*, contribution_bounds_per_group => (0, 20)) AS c
FROM events GROUP BY group_key
"""


def ratios(folder: Path, repetitions: int = 5) -> list[tuple[str, float]]:
    """Whole questions over hand-written SQL and over a plain GROUP BY, by the median of interleaved runs."""
    path = folder / "events.parquet"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(MAKE.format(path=path))
    connection.execute(f"CREATE TABLE events AS SELECT * FROM '{path}'")
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    columns = {"user_id": int, "group_key": (0, GROUPS - 1), "value": {"type": "number", "step": 0.001}}
    table = discreet.Table(str(path), person="user_id", rows_per_person=5_000, groups_per_person=KEPT, columns=columns)
    begun = time.perf_counter()
    with discreet.Curator({"events": table}, epsilon=10**6, delta=1e-6, ledger=folder / "big.ledger") as curator:
        loaded = time.perf_counter() - begun
        prices = iter(range(1, 1000))

        def ask() -> None:
            curator.ask(QUESTION, epsilon=1 + next(prices) / 1000)

        runs: dict[str, list[float]] = {"ask": [], "hand": [], "plain": []}
        work: dict[str, Callable[[], object]] = {
            "ask": ask,
            "hand": lambda: connection.execute(HAND_WRITTEN).fetchall(),
            "plain": lambda: connection.execute(PLAIN).fetchall(),
        }
        for _ in range(repetitions + 1):
            for name, run in work.items():
                start = time.perf_counter()
                run()
                runs[name].append(time.perf_counter() - start)
        process = curator._engine._process
        assert process is not None
        peak = _peak(process.pid)
    median = {name: statistics.median(times[1:]) for name, times in runs.items()}
    return [
        ("whole question / hand-written SQL", median["ask"] / median["hand"]),
        ("whole question / plain GROUP BY", median["ask"] / median["plain"]),
        ("hand-written SQL / plain GROUP BY", median["hand"] / median["plain"]),
        ("seconds of a whole question (for scale)", median["ask"]),
        ("seconds to open (read, number, fingerprint; for scale)", loaded),
        ("peak memory of the engine, MB", peak),
        ("peak memory of this process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    ]


def _peak(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0
