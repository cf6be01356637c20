"""Ten million rows of a million people on a PostgreSQL server: whole questions that run there, beside a plain GROUP BY
and SQL written by hand, both of them on the source's own table.

`python -m bench.postgresql 10` measures at so many million rows.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import discreet
from bench.big import GROUPS, KEPT, MOST, PLAIN, QUESTIONS

MAKE = """
CREATE TABLE events AS
SELECT CAST(floor({persons} * CASE WHEN random() < 0.5 THEN random() ELSE pow(random(), 2) END) AS int8) AS user_id,
       CAST(floor({groups} * pow(random(), 1.5)) AS int8) AS group_key,
       CAST(round(CAST(random() * 400 AS numeric), 3) AS float8) AS value
FROM generate_series(1, {rows})
"""

BY_GROUPS = f"""
WITH ug AS (
    SELECT user_id AS u, group_key AS g, SUM(CAST(floor(value * 1024) AS int8)) AS s, COUNT(*) AS c
    FROM events GROUP BY user_id, group_key),
r AS (SELECT ug.*, row_number() OVER (PARTITION BY u ORDER BY hashint8extended(g, hashint8extended(u, 7)), g) AS n
      FROM ug)
SELECT g, SUM(LEAST(GREATEST(s, 0), 512000)), COUNT(*), SUM(LEAST(c, 20)) FROM r WHERE n <= {KEPT} GROUP BY g
"""

BY_ROWS = f"""
WITH r AS (SELECT events.*, row_number() OVER (PARTITION BY user_id ORDER BY hashint8extended(
               CAST(value * 1000 AS int8), hashint8extended(user_id, 7)), group_key) AS n FROM events)
SELECT group_key, SUM(CAST(floor(value * 1024) AS int8)), COUNT(*) FROM r WHERE n <= {MOST} AND value < 300
GROUP BY group_key
"""

server_tools: Any = importlib.import_module("postgres_tools")  # it lies with the tests

SETTINGS = {"shared_buffers": "1GB", "log_statement": "none", "work_mem": "256MB", "max_wal_size": "8GB"}


def figures(millions: int = 10, repetitions: int = 5) -> list[tuple[str, float]]:
    """Ratios of medians of interleaved runs."""
    rows, persons = 10**6 * millions, 10**5 * millions
    os.environ["PGPASSWORD"] = server_tools.PASSWORD
    with server_tools.running(18, SETTINGS) as server, tempfile.TemporaryDirectory() as folder:
        server.run(MAKE.format(rows=rows, persons=persons, groups=GROUPS), "ANALYZE events")
        server.run(f"CREATE ROLE curator LOGIN PASSWORD '{server_tools.PASSWORD}'")
        server.run("GRANT CREATE, TEMPORARY ON DATABASE postgres TO curator", "GRANT SELECT ON events TO curator")
        copied = _seconds(lambda: server.run("CREATE TABLE copied AS SELECT * FROM events", "DROP TABLE copied"))
        return _measured(server, Path(folder), copied, repetitions)


def _measured(server: Any, folder: Path, copied: float, repetitions: int) -> list[tuple[str, float]]:
    columns = {
        "user_id": int,
        "group_key": (0, GROUPS - 1),
        "value": {"type": "number", "min": 0, "max": 400, "step": 0.001},
    }
    source = server.source("public.events", "curator")
    table = discreet.Table(source, person="user_id", rows_per_person=MOST, groups_per_person=KEPT, columns=columns)
    price, ledger = count(1), folder / "there.ledger"

    def curator() -> discreet.Curator:
        limits: dict[str, int | str] = {"kind": "postgresql", "seconds": 600}
        return discreet.Curator({"events": table}, epsilon=10**6, delta=1e-6, ledger=ledger, engine=limits)

    def first() -> None:
        with curator() as there:
            there.ask(QUESTIONS["rows bounded, WHERE"], epsilon=1 + next(price) / 1000)

    facts = [("making the snapshot / copying the table, with a first question", _seconds(first) / copied)]
    facts += [("starting again to the first answer, seconds", _seconds(first))]
    with curator() as there:

        def asked(question: str) -> Callable[[], object]:
            return lambda: there.ask(question, epsilon=1 + next(price) / 1000)

        work: dict[str, Callable[[], object]] = {name: asked(question) for name, question in QUESTIONS.items()}
        facts += [(f"{name}: the first time, seconds", _seconds(one)) for name, one in work.items()]
        by_hand = {"groups bounded, by hand": BY_GROUPS, "rows bounded, by hand": BY_ROWS, "plain GROUP BY": PLAIN}
        work |= {name: lambda sql=sql: server.rows(sql) for name, sql in by_hand.items()}  # type: ignore[misc]
        runs: dict[str, list[float]] = {name: [] for name in work}
        for turn in range(repetitions + 1):
            for name, run in work.items():
                if turn < 3 or not name.endswith("by hand"):  # these take the longest by far
                    runs[name].append(_seconds(run))
    median = {name: statistics.median(times[1:]) for name, times in runs.items()}
    plain = median["plain GROUP BY"]
    return [
        *((f"{name} / plain GROUP BY", seconds / plain) for name, seconds in median.items()),
        *((f"{name}: seconds (for scale)", seconds) for name, seconds in median.items()),
        *facts,
    ]


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


if __name__ == "__main__":
    for name, value in figures(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        print(f"{name:<72} {value:>12,.4g}")
