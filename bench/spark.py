"""Ten million rows of a million people on a Spark server with two processors: whole questions that run there, beside a
plain GROUP BY over the source, and beside Tumult Analytics, where it is installed.

`python -m bench.spark 10` measures at so many million rows; `python -m bench.spark 10 ENVIRONMENT/bin/python` measures
Tumult Analytics too, with the Python of an environment in which it is: it needs another version of Spark. Each engine
is measured while the others do not run; Tumult gives one aggregate a query, so its query has the sum alone, where ours
has the sum and the count.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import discreet
from bench.big import GROUPS, KEPT, MAKE, MOST, PEOPLE, PLAIN, QUESTIONS, ROWS

TUMULT = """
import json, os, sys, time, warnings
warnings.filterwarnings("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, MaxRowsPerID
from tmlt.analytics import PureDPBudget, QueryBuilder, Session
path, groups, kept, most, turns = sys.argv[1], *map(int, sys.argv[2:])
settings = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4", "spark.ui.showConsoleProgress": "false"}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = spark.read.parquet(path)
session = Session.from_dataframe(PureDPBudget(10**6), "events", rows, protected_change=AddRowsWithID("user_id"))
keys = KeySet.from_dict({"group_key": list(range(groups))})
events = QueryBuilder("events")
grouped = (MaxGroupsPerID("group_key", kept), MaxRowsPerGroupPerID("group_key", most))
queries = {
    "groups bounded, stored totals": (events, grouped),
    "groups bounded, WHERE and clip": (events.filter("value < 300"), grouped),
    "rows bounded, WHERE": (events.filter("value < 300"), (MaxRowsPerID(most),)),
}
times = {}
for name, (query, limits) in queries.items():
    for limit in limits:
        query = query.enforce(limit)
    query, times[name] = query.groupby(keys).sum("value", 0, 400), []
    for turn in range(turns):
        begun = time.perf_counter()
        found = session.evaluate(query, PureDPBudget(1)).collect()
        times[name].append(time.perf_counter() - begun)
        assert len(found) == groups
print(json.dumps(times))
"""

spark_tools: Any = importlib.import_module("spark_tools")  # it lies with the tests


def figures(millions: int = 10, tumult: str | None = None, repetitions: int = 2) -> list[tuple[str, float]]:
    """Ratios of medians of interleaved runs, the first of which does not count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, rows = folder / "events.parquet", str(10**6 * millions)
        make = (
            MAKE.format(path=path)
            .replace(str(PEOPLE), str(10**5 * millions))
            .replace(f"range({ROWS})", f"range({rows})")
        )
        duckdb.sql(make)
        with spark_tools.running() as server:
            facts, median = _measured(server, path, repetitions)
        plain = median["plain GROUP BY"]
        found = [(f"{name} / plain GROUP BY", seconds / plain) for name, seconds in median.items()]
        if tumult is not None:
            words = [tumult, "-c", TUMULT, str(path), *map(str, (GROUPS, KEPT, MOST, 1 + repetitions))]
            said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
            times = {name: statistics.median(one[1:]) for name, one in json.loads(said).items()}
            found += [(f"{name}: Tumult / ours", seconds / median[name]) for name, seconds in times.items()]
            facts += [(f"{name}: Tumult, seconds", seconds) for name, seconds in times.items()]
        return [*found, *((f"{name}: seconds (for scale)", seconds) for name, seconds in median.items()), *facts]


def _measured(server: Any, path: Path, repetitions: int) -> tuple[list[tuple[str, float]], dict[str, float]]:
    from pyspark.sql.connect.session import SparkSession

    columns = {
        "user_id": int,
        "group_key": (0, GROUPS - 1),
        "value": {"type": "number", "min": 0, "max": 400, "step": 0.001},
    }
    table = discreet.Table(str(path), person="user_id", rows_per_person=MOST, groups_per_person=KEPT, columns=columns)
    limits: dict[str, int | str] = {"kind": "spark", "remote": server.remote, "seconds": 600}
    session = SparkSession.builder.remote(server.remote).create()
    session.read.parquet(f"file://{path}").createOrReplaceTempView("events")
    price, ledger = count(1), path.with_suffix(".ledger")
    begun = time.perf_counter()
    try:
        with discreet.Curator({"events": table}, epsilon=10**6, delta=1e-6, ledger=ledger, engine=limits) as there:

            def asked(question: str) -> Callable[[], object]:
                return lambda: there.ask(question, epsilon=1 + next(price) / 1000)

            work: dict[str, Callable[[], object]] = {name: asked(question) for name, question in QUESTIONS.items()}
            facts = []
            for name, one in work.items():
                facts.append((f"{name}: the first time, seconds", _seconds(one)))
                if len(facts) == 1:
                    facts.append(("  with making the snapshot before it, seconds", time.perf_counter() - begun))
            work["plain GROUP BY"] = lambda: session.sql(PLAIN).toArrow()
            runs: dict[str, list[float]] = {name: [] for name in work}
            for _ in range(repetitions + 1):
                for name, run in work.items():
                    runs[name].append(_seconds(run))
    finally:
        session.stop()
    return facts, {name: statistics.median(times[1:]) for name, times in runs.items()}


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


if __name__ == "__main__":
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for name, value in figures(millions, sys.argv[2] if len(sys.argv) > 2 else None):
        print(f"{name:<72} {value:>12,.4g}")
