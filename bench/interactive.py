"""The synthetic state beside plain prices and stored answers: streams of counts on Adult.

`python -m bench.interactive [QUESTIONS]`: of each way the median and largest error, how far off it says it may be, what
of the budget it takes (as the ledger counts it, of ε 3 and δ 1e-6), and the time of a question. The domain is sex,
race, education_num, marital_status and income: 2,240 combinations. The streams: filters drawn by chance; a drill-down;
and one that knows the table and asks what the state's distribution answers worst of 30 such filters, a third as often.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas

import discreet

MARITAL = "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
VALUES: dict[str, list[Any]] = {
    "sex": ["Female", "Male"],
    "race": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"],
    "education_num": list(range(1, 17)),
    "marital_status": MARITAL.split(),
    "income": ["<=50K", ">50K"],
}
PRICE, CHEAP = "0.05", "0.0123"
"""Of a question that is bought, ±60 rows; and at that of a count that a state of 20 updates makes at ε 1, ±243."""

Filter = dict[str, list[Any]]


def drawn(chosen: random.Random) -> Filter:
    """Some values of some columns."""
    names = chosen.sample(list(VALUES), chosen.randint(1, 3))
    return {name: chosen.sample(VALUES[name], chosen.randint(1, len(VALUES[name]) - 1)) for name in names}


def drilled(chosen: random.Random, count: int) -> Iterator[Filter]:
    """From one column to two, three and four, cell after cell."""
    order = ["income", "marital_status", "sex", "education_num"]
    for number in range(count):
        names = order[: 1 + min(3, 4 * number // count)]
        yield {name: [chosen.choice(VALUES[name])] for name in names}


def text(one: Filter) -> str:
    parts = [f"{name} IN ({', '.join(map(_literal, values))})" for name, values in one.items()]
    return f"SELECT COUNT(*) AS n FROM adult WHERE {' AND '.join(parts)}"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def count_of(frame: pandas.DataFrame, one: Filter) -> int:
    here = pandas.Series(data=True, index=frame.index)
    for name, values in one.items():
        here &= frame[name].isin(values)
    return int(here.sum())


def declaration(updates: int) -> str:
    columns = "\n".join(
        f"{name} = {{ min = 1, max = 16, nulls = false }}"
        if name == "education_num"
        else f"{name} = {{ values = [{', '.join(f'{chr(34)}{value}{chr(34)}' for value in values)}], nulls = false }}"
        for name, values in VALUES.items()
    )
    columns = columns.replace("{ min", '{ type = "integer", min').replace("{ values", '{ type = "text", values')
    listed = ", ".join(f'"{name}"' for name in VALUES)
    state = f'table = "adult"\ncolumns = [{listed}]\nupdates = {max(1, updates)}\nepsilon = 1.0\n'
    state += f"interactive = {str(updates > 0).lower()}\n"
    return f"""ledger = "adult.ledger"
[budget]
epsilon = 3.0
delta = 1e-6
[tables.adult]
source = "adult.csv"
one_row_per_person = true
[tables.adult.columns]
{columns}
[synthesis]
{state}key = "keys/state.key"
"""


class Asked:
    """One way to answer a stream, in a folder of its own."""

    def __init__(self, folder: Path, frame: pandas.DataFrame, way: str, updates: int = 0) -> None:
        (folder / "keys").mkdir(parents=True)
        frame.to_csv(folder / "adult.csv", index=False)
        (folder / "adult.toml").write_text(declaration(updates))
        self.curator, self.frame, self.way = discreet.open(folder / "adult.toml"), frame, way
        self.errors: list[float] = []
        self.widths: list[float] = []
        self.inside = self.hard = self.bought = 0
        self.seconds = 0.0

    def ask(self, one: Filter) -> None:
        question, begun = text(one), time.perf_counter()
        try:
            if self.way.startswith("plain"):
                release = self.curator.ask(question, epsilon=CHEAP if "243" in self.way else PRICE, reuse=False)
            elif self.way == "state":
                release = self.curator.ask(question)
            else:
                release = self.curator.ask(question, epsilon=PRICE)
        except discreet.BudgetError:
            return
        except discreet.QuestionError:  # the state answers no more, and no price is named
            release = self.curator.ask(question, epsilon=PRICE)
            self.bought += 1
        self.seconds += time.perf_counter() - begun
        (row,), (ends,), true = release.rows, release.intervals, count_of(self.frame, one)
        low, high = ends["n"]
        self.hard += "counted for the synthetic state" in str(release)
        self.errors.append(abs(row["n"] - true))
        self.widths.append((high - low) / 2)
        self.inside += low <= true <= high

    def worst(self, tried: list[Filter]) -> Filter:
        """What the distribution answers worst, to somebody who knows the table."""
        state = self.curator._answering.by_state.state
        assert state is not None
        from discreet.synthesis.state import state_question

        shares = state._taken_in(state._answering.transcript())
        best, off = tried[0], -1
        for one in tried:
            plan = self.curator._planner.one_table(text(one))
            question = state_question(plan.plan, plan.table, state.whole)
            assert question is not None
            if not shares.shares.size:
                return one
            (said,) = shares.counts(question.labels(state.whole.domain, self.curator._engine.cells), 1)
            if abs(said - count_of(self.frame, one)) > off:
                best, off = one, abs(said - count_of(self.frame, one))
        return best

    def figures(self, name: str) -> list[tuple[str, float]]:
        found = [
            (f"{name}: questions answered", len(self.errors)),
            (f"{name}: median error", statistics.median(self.errors)),
            (f"{name}: largest error", max(self.errors)),
            (f"{name}: median ±", statistics.median(self.widths)),
            (f"{name}: within its ±, %", 100 * self.inside / len(self.errors)),
            (f"{name}: budget used, %", self.curator.budget.used),
            (f"{name}: milliseconds a question", 1000 * self.seconds / len(self.errors)),
        ]
        if self.way == "state":
            found.insert(1, (f"{name}: of these hard", self.hard))
            found.insert(2, (f"{name}: of these bought, as its updates were used up", self.bought))
        self.curator.close()
        return found


def figures(folder: Path, count: int = 150) -> Iterator[tuple[str, float]]:
    frame = pandas.read_csv(Path(discreet.__file__).parent / "data" / "adult.csv.gz")[list(VALUES)]
    chosen = random.Random(1)

    def answered(stream: str, questions: list[Filter], *ways: tuple[str, int]) -> Iterator[tuple[str, float]]:
        for way, updates in ways:
            one = Asked(folder / f"{stream} {way} {updates}", frame, way, updates)
            for question in questions:
                one.ask(question)
            yield from one.figures(f"{stream}, {way}{f' of {updates} updates' if updates else ''}")

    bought = [("plain", 0), ("plain, ±243", 0), ("stored answers", 0)]
    for name, questions in (
        ("random filters", [drawn(chosen) for _ in range(count)]),
        ("drill-down", list(drilled(chosen, count))),
    ):
        yield from answered(name, questions, ("state", 20), *bought, ("state", 5))
    adversary, aimed = Asked(folder / "aimed", frame, "state", 20), list[Filter]()
    for _ in range(count // 3):
        aimed.append(adversary.worst([drawn(chosen) for _ in range(30)]))
        adversary.ask(aimed[-1])
    yield from adversary.figures("aimed at the state, state of 20 updates")
    yield from answered("aimed at the state", aimed, *bought)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    with tempfile.TemporaryDirectory() as folder:
        for name, value in figures(Path(folder), count):
            print(f"{name:<90} {value:>10,.4g}", flush=True)


if __name__ == "__main__":
    main()
