"""Whole answers of this library and of others over the plain SQL, from the same rows in one process, by wall time.

`python -m bench.peers events.parquet [PART [ours smartnoise opendp]]`: the file is made where there is none; of PART
persons one is kept. Ours are asked at one price, as people ask, and two of them at new prices each time.
Nothing depends on the others, and no requirement names them: what is not installed is said and left out. For all,
20 rows a person count, values are clamped to [0, 400], an answer costs ε = 1. SmartNoise has no public groups.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb

import discreet
from bench.big import GROUPS, KEPT, MAKE, MOST, ROWS

Work = Callable[[], object]
Works = Iterator[tuple[str, dict[str, Work]]]

PLAIN = "SELECT group_key, {} FROM events GROUP BY group_key"
DISTINCT = "COUNT DISTINCT person"
QUESTIONS = {
    "COUNT, SUM": PLAIN.format("SUM(value) AS s, COUNT(*) AS n"),
    "COUNT": PLAIN.format("COUNT(*) AS n"),
    "SUM": PLAIN.format("SUM(value) AS n"),
    "AVG": PLAIN.format("AVG(value) AS n"),
    "VAR_POP": PLAIN.format("VAR_POP(value) AS n"),
    "MEDIAN": PLAIN.format("MEDIAN(value) AS n"),
    DISTINCT: PLAIN.format("COUNT(DISTINCT user_id) AS n"),
    "COUNT, SUM of three tables": "SELECT region, SUM(amount) AS s, COUNT(*) AS n FROM customers c"
    " JOIN orders o ON o.customer = c.id JOIN lines l ON l.ordered = o.id GROUP BY region",
}
LIMITS: dict[str, Any] = {"rows_per_person": MOST, "groups_per_person": KEPT}
KEYS, VALUE = (0, GROUPS - 1), {"type": "number", "min": 0, "max": 400, "step": 0.001}
DECLARED: dict[str, dict[str, Any]] = {
    "events": {"person": "user_id", "columns": {"user_id": int, "group_key": KEYS, "value": VALUE}, **LIMITS},
    "customers": {"person": "id", "columns": {"id": int, "region": KEYS}, "one_row_per_person": True},
    "orders": {"person": "customer -> customers.id", "columns": {"id": int, "customer": int}, **LIMITS},
    "lines": {"person": "ordered -> orders.id", "columns": {"ordered": int, "amount": VALUE}, **LIMITS},
}
CUSTOMERS, ORDERS, LINES, PATIENCE = 1_000_000, 2_000_000, 5_000_000, 20
MADE = {
    "events": "SELECT * FROM '{source}' WHERE user_id % {part} = 0",
    "customers": f"SELECT range AS id, floor({GROUPS} * random())::BIGINT AS region FROM range({CUSTOMERS})",
    "orders": f"SELECT range AS id, floor({CUSTOMERS} * random())::BIGINT AS customer FROM range({ORDERS})",
    "lines": f"SELECT floor({ORDERS} * random())::BIGINT AS ordered, 400 * random() AS amount FROM range({LINES})",
}


def compare(title: str, works: Mapping[str, Work], plain: Mapping[str, Work], repetitions: int) -> None:
    """Prints seconds: the first answer's, the others' median, their processor time in this process, and plain SQL's."""
    for name, work in works.items():
        ran: list[tuple[float, float]] = []
        alone: list[float] = []
        try:
            while len(ran) <= repetitions and sum(seconds for seconds, _ in ran) < PATIENCE:
                ran.append(timed(work))
                alone.append(timed(plain[name])[0])
        except Exception as error:  # whatever a library raises: it did not answer
            show(f"{title}: {name}", f"no answer: {str(error).strip().splitlines()[0][:60]}")
            continue
        seconds, here, base = map(statistics.median, (*zip(*(ran[1:] or ran), strict=True), alone))
        show(f"{title}: {name}", f"{ran[0][0]:8.3f} {seconds:8.3f} {here:8.3f} {base:8.4f} {seconds / base:8.1f}")


def timed(work: Work) -> tuple[float, float]:
    """Seconds, and seconds of processor time in this process."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def show(title: str, figures: str) -> None:
    print(f"{title:<48} {figures}", flush=True)


def ours(folder: Path, _: duckdb.DuckDBPyConnection) -> Works:
    """Each question under a name of its own, so that none is a repeat; a new price needs new certificates."""
    start, ever = time.perf_counter(), iter(range(10**6))
    tables = {name: discreet.Table(folder / f"{name}.parquet", **one) for name, one in DECLARED.items()}
    with discreet.Curator(tables, epsilon=1000, delta=1e-6, ledger=folder / "peers.ledger") as curator:
        show("discreet: opening", f"{time.perf_counter() - start:8.3f}")

        def ask(question: str, step: float) -> None:
            number = next(ever)
            curator.ask(question.replace("AS n", f"AS n{number}"), epsilon=1 + number * step)

        yield "discreet", {name: partial(ask, question, 0) for name, question in QUESTIONS.items()}
        yield "discreet, new prices", {name: partial(ask, QUESTIONS[name], 0.001) for name in ("COUNT", "AVG")}


class Postgres:
    """A DuckDB connection that SmartNoise takes for one of PostgreSQL, which it knows.

    DuckDB refuses to order a window by random(): the same number becomes a column of the subquery within.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def cursor(self) -> Postgres:
        return self

    def commit(self) -> None: ...

    rollback = commit

    def execute(self, statement: str) -> None:
        drawn = statement.replace("ORDER BY RANDOM ( )", "ORDER BY drawn")
        self.connection.execute(drawn.replace("( SELECT user_id", "( SELECT RANDOM() AS drawn, user_id"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.connection.fetchall())


def smartnoise(folder: Path, connection: duckdb.DuckDBPyConnection) -> Works:
    """With DuckDB beneath, and with its own reader of pandas frames, which copies them to SQLite."""
    snsql, pandas = import_module("snsql"), import_module("pandas")
    person, value = {"type": "int", "private_id": True}, {"type": "float", "lower": 0, "upper": 400}
    columns = {"user_id": person, "group_key": {"type": "int"}, "value": value}
    options = {"max_ids": MOST, "sample_max_ids": True, "censor_dims": False, "rows": ROWS}
    meta = {"": {"main": {"events": {**columns, **options}}}}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    asked = {name: QUESTIONS[name].replace("FROM ", "FROM main.") for name in ("COUNT, SUM", "AVG", DISTINCT)}

    def works(reader: Any) -> dict[str, Work]:
        return {name: partial(reader.execute, statement) for name, statement in asked.items()}

    posing = Postgres(connection)
    yield "SmartNoise, DuckDB", works(snsql.from_connection(posing, engine="postgres", metadata=meta, privacy=privacy))
    start = time.perf_counter()
    reader = snsql.from_df(pandas.read_parquet(folder / "events.parquet"), metadata=meta, privacy=privacy)
    show("SmartNoise, pandas: opening", f"{time.perf_counter() - start:8.3f}")
    yield "SmartNoise, pandas", works(reader)


def opendp(folder: Path, _: duckdb.DuckDBPyConnection) -> Works:
    """A context for each question, over a frame in memory."""
    pl, dp = import_module("polars"), import_module("opendp.prelude")
    dp.enable_features("contrib")
    frame = pl.read_parquet(folder / "events.parquet")
    keys = pl.LazyFrame({"group_key": range(GROUPS)}, schema={"group_key": pl.Int64})
    limits = [dp.polars.Margin(max_length=ROWS), dp.polars.Margin(by=["group_key"], max_length=ROWS, max_groups=GROUPS)]
    value = pl.col("value").fill_null(0.0).fill_nan(0.0)

    def ask(*columns: Any) -> object:
        unit, loss = dp.unit_of(contributions=1, identifier=pl.col("user_id")), dp.loss_of(epsilon=1.0)
        context = dp.Context.compositor(frame.lazy(), unit, loss, split_evenly_over=1, margins=limits)
        grouped = context.query().truncate_per_group(MOST).group_by("group_key").agg(*columns)
        return grouped.with_keys(keys).release().collect()

    columns = {
        "COUNT, SUM": (dp.len(), value.dp.sum((0.0, 400.0))),
        "AVG": (value.dp.mean((0.0, 400.0)),),
        "MEDIAN": (value.dp.median([float(step) for step in range(0, 401, 4)]),),
        DISTINCT: (pl.col("user_id").dp.n_unique(),),
    }
    yield "OpenDP, polars", {name: partial(ask, *parts) for name, parts in columns.items()}


def main(source: Path, part: int, folder: Path, only: Sequence[str]) -> None:
    connection = duckdb.connect()
    if not source.exists():
        connection.execute(MAKE.format(path=source))
    for name, made in MADE.items():
        connection.execute(f"CREATE TABLE {name} AS {made.format(source=source, part=part)}")
        connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")
    rows = connection.execute("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM events").fetchall()[0]
    show(f"{rows[0]:,} rows, {rows[1]:,} people: seconds", "   first   median cpu here    plain  / plain")

    def alone(statement: str) -> object:
        return connection.execute(statement).fetchall()

    plain = {name: partial(alone, statement) for name, statement in QUESTIONS.items()}
    for library in (one for one in (ours, smartnoise, opendp) if not only or one.__name__ in only):
        try:
            for title, works in library(folder, connection):
                compare(title, works, plain, 5 if library is ours else 2)
        except ImportError as error:
            show(library.__name__, f"not installed: {error.name}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        main(Path(sys.argv[1]), int((sys.argv[2:] or ["1"])[0]), Path(place), sys.argv[3:])
