"""How much budget reuse saves, how wide its intervals are, and whether they hold: traces of 150 questions.

`python -m bench.reuse [QUESTIONS [STORED [ROWS]]]`: each trace with exact repeats free, and with reuse, as parts of the
price of all its questions afresh; on Adult, or on a made table of so many rows.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas

import discreet
from discreet.curator.options import AskOptions

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 17, "max": 90, "nulls": False},
    "sex": {"values": ["Female", "Male"], "nulls": False},
    "race": {"values": ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"], "nulls": False},
    "education": {
        "values": ["HS-grad", "Some-college", "Bachelors", "Masters", "Assoc-voc", "11th", "Assoc-acdm", "10th"],
        "nulls": False,
    },
    "hours_per_week": {"type": "integer", "min": 1, "max": 99, "nulls": False},
}
"""Of the public columns those that traces ask about."""

Trace = Callable[[random.Random, int], Iterator[str]]


def _where(chosen: random.Random, names: list[str]) -> str:
    values = {name: chosen.choice(COLUMNS[name]["values"]) for name in names}
    return " AND ".join(f"{name} = '{value}'" for name, value in values.items())


def drill_down(chosen: random.Random, count: int) -> Iterator[str]:
    """From one column to two and three, cell after cell."""
    for number in range(count):
        names = [["sex"], ["sex", "education"], ["sex", "education", "race"]][min(2, number * 3 // count)]
        yield f"SELECT COUNT(*) AS n FROM persons WHERE {_where(chosen, names)}"


def filters(chosen: random.Random, count: int) -> Iterator[str]:
    """Values and ranges of columns drawn by chance."""
    for _ in range(count):
        names = chosen.sample(["sex", "race", "education"], chosen.randint(1, 2))
        parts = [_where(chosen, names)]
        if chosen.random() < 0.5:
            low = 17 + 10 * chosen.randrange(6)
            parts.append(f"age BETWEEN {low} AND {low + 9}")
        yield f"SELECT COUNT(*) AS n FROM persons WHERE {' AND '.join(parts)}"


def dashboard(chosen: random.Random, count: int) -> Iterator[str]:
    """Ten tiles, refreshed with new aliases, and another value of a filter now and then."""
    tiles = [
        "SELECT sex, COUNT(*) AS {0} FROM persons GROUP BY sex",
        "SELECT education, COUNT(*) AS {0} FROM persons WHERE sex = '{1}' GROUP BY education",
        "SELECT COUNT(*) AS {0} FROM persons WHERE sex = '{1}'",
        "SELECT race, AVG(hours_per_week) AS {0} FROM persons WHERE sex = '{1}' GROUP BY race",
        "SELECT AVG(hours_per_week) AS {0} FROM persons WHERE sex = '{1}' AND race = 'White'",
    ]
    for number in range(count):
        yield chosen.choice(tiles).format(f"n{number}", chosen.choice(["Female", "Male"]))


def groups_and_cells(chosen: random.Random, count: int) -> Iterator[str]:
    """A grouping, a cell of it, that cell grouped by another column, both columns, and a cell of these, over and over:
    most noise was seen before."""
    made = 0
    while made < count:
        one, two = chosen.sample(["sex", "race", "education"], 2)
        where = _where(chosen, [one])
        for text in (
            f"SELECT {one}, COUNT(*) AS n FROM persons GROUP BY {one}",
            f"SELECT COUNT(*) AS n FROM persons WHERE {where}",
            f"SELECT {two}, COUNT(*) AS n FROM persons WHERE {where} GROUP BY {two}",
            f"SELECT {one}, {two}, COUNT(*) AS n FROM persons GROUP BY {one}, {two}",
            f"SELECT COUNT(*) AS n FROM persons WHERE {where} AND {_where(chosen, [two])}",
        )[: count - made]:
            made += 1
            yield text


def adversary(chosen: random.Random, count: int) -> Iterator[str]:
    """Somebody who wants fresh noise on few numbers: the same eight cells in ever other words, their complements, and
    predicates that nearly everybody meets."""
    cells = [_where(chosen, ["sex", "race"]).split(" AND ") for _ in range(8)]
    for number in range(count):
        one, two = chosen.sample(chosen.choice(cells), 2)
        (column, value), other = one.split(" = "), number % 40 + 40
        rest = ", ".join(f"'{each}'" for each in COLUMNS[column]["values"] if f"'{each}'" != value)
        where = chosen.choice(
            [
                f"{one} AND {two}",
                f"NOT (NOT ({one}) OR NOT ({two}))",
                f"{column} IN ({value}, {value}) AND {two} AND age >= 17",
                f"{column} NOT IN ({rest}) AND {two}",
                f"{one} AND {two} AND age <> {other}",
                f"{one} AND {two} AND hours_per_week < {other + 20}",
            ]
        )
        yield f"SELECT COUNT(*) AS n{number} FROM persons AS p{number} WHERE {where}"


TRACES: dict[str, Trace] = {
    "drill-down": drill_down,
    "random filters": filters,
    "dashboard": dashboard,
    "adversary": adversary,
    "groups and cells": groups_and_cells,
}


def _adult() -> discreet.Table:
    frame = pandas.read_csv(Path(discreet.__file__).parent / "data" / "adult.csv.gz")
    return discreet.Table(frame[list(COLUMNS)], one_row_per_person=True, columns=COLUMNS)


def _made(folder: Path, rows: int) -> discreet.Table:
    """So many persons, whose values are drawn alone, the first of each list most often."""
    path = folder / "persons.parquet"
    drawn = {
        name: f"[{', '.join(repr(one) for one in column['values'])}]"
        f"[1 + CAST(floor(pow(random(), 1.6) * {len(column['values'])}) AS INTEGER)] AS {name}"
        if "values" in column
        else f"CAST({column['min']} + floor(random() * {column['max'] + 1 - column['min']}) AS INTEGER) AS {name}"
        for name, column in COLUMNS.items()
    }
    with duckdb.connect() as engine:
        engine.execute("SET threads = 1")  # so that the seed says which values are drawn
        engine.execute("SELECT setseed(0.5)")
        engine.execute(f"COPY (SELECT {', '.join(drawn.values())} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return discreet.Table(str(path), one_row_per_person=True, columns=COLUMNS)


def figures(count: int = 150, epsilon: float = 0.01, rows: int = 0) -> Iterator[tuple[str, float]]:
    """On Adult, or on a made table of so many `rows`."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _figures(_made(Path(folder), rows) if rows else _adult(), count, epsilon)


def _figures(table: discreet.Table, count: int, epsilon: float) -> Iterator[tuple[str, float]]:
    with discreet.Curator({"persons": table}, epsilon=1e16) as truths:
        for name, trace in TRACES.items():
            questions = list(trace(random.Random(1), count))
            exact = [truths.ask(question, epsilon=1e12, reuse=False).rows for question in questions]
            for how, reuse in (("exact repeats free", False), ("reuse", True)):
                with discreet.Curator({"persons": table}, epsilon=1000) as one:
                    paid, errors, widths = 0.0, [], []
                    inside: dict[tuple[float, float, float], bool] = {}  # each noisy number once
                    for question, true in zip(questions, exact, strict=True):
                        release = one.ask(question, epsilon=epsilon, reuse=reuse)
                        paid += release.charged["epsilon"]
                        for row, ends, truth in zip(release.rows, release.intervals, true, strict=True):
                            for column, (low, high) in ends.items():
                                if not isinstance(row[column], float):
                                    errors.append(abs(row[column] - truth[column]))
                                    widths.append((high - low) / 2)
                                inside[truth[column], low, high] = low <= truth[column] <= high
                    yield f"{name}, {how}: budget, of {count} questions afresh", paid / (count * epsilon)
                    yield f"{name}, {how}: mean error of a count", statistics.mean(errors)
                    yield f"{name}, {how}: mean ± of a count", statistics.mean(widths)
                    yield (
                        f"{name}, {how}: coverage of so many different numbers: {len(inside)}",
                        statistics.mean(inside.values()),
                    )


def speed(stored: int = 1_000) -> list[tuple[str, float]]:
    """A question answered from one of so many stored vectors, beside the same question where few are stored."""
    table = _adult()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        taken: dict[int, float] = {}
        with discreet.Curator({"persons": table}, epsilon=1e6, ledger=ledger) as one:
            for number in range(stored):
                if number == 10:
                    taken[10] = _each(one, 0)
                beside = f"hours_per_week > {number % 90} AND age <> {number % 60 + 20}"
                one.ask(f"SELECT sex, education, COUNT(*) AS n FROM persons WHERE {beside} GROUP BY sex, education", 1)
            taken[stored] = _each(one, 30)
    return [
        (f"milliseconds to look up a question, {stored:,} stored", 1000 * taken[stored]),
        (f"looking up with {stored:,} stored over that with 10", taken[stored] / taken[10]),
    ]


def _each(one: discreet.Curator, start: int) -> float:
    """Seconds to find, price by price, whether a question is free: planned before, so that the look-up is what is
    timed."""
    checked = one._planner.one_table("SELECT COUNT(*) AS n FROM persons WHERE sex = 'Male' AND hours_per_week > 3")
    from discreet.plan.measurement import Price
    from discreet.plan.split import measurement
    from discreet.trusted.ring_a.exact import fraction

    prices = [measurement(checked.plan, Price(fraction(f"0.{start + 10 + n}"))) for n in range(30)]
    one._answering.lookup.found(prices[0], checked.table, AskOptions())
    begins = time.perf_counter()
    for priced in prices:
        one._answering.lookup.found(priced, checked.table, AskOptions())
    return (time.perf_counter() - begins) / len(prices)


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]] or [150]
    stored, rows = given[1] if len(given) > 1 else 1_000, given[2] if len(given) > 2 else 0
    for name, value in itertools.chain(figures(given[0], rows=rows), speed(stored) if stored else ()):
        print(f"  {name:<72} {value:>12,.4g}", flush=True)
