"""Errors of whole questions at (epsilon 1, delta 1e-6), beside other libraries': `python -m bench.accuracy`."""

from __future__ import annotations

import csv
import gzip
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet
from discreet.engines.protocol import Row
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.release.content import ReleaseContent
from discreet.release.estimate import answer
from discreet.sql import lower
from discreet.trusted.ring_b.questions import noisy_answer

ROOT = Path(__file__).parent.parent
ADULT = ROOT / "src" / "discreet" / "data" / "adult.csv.gz"
CONDITIONS = ROOT / "src" / "discreet" / "data" / "conditions.csv.gz"
PURE = Price(Fraction(1))
GAUSSIAN = Price(Fraction(1), Fraction(1, 10**6), gaussian=True)
NO_NOISE = Price(Fraction(10**15))
BOUNDS = "contribution_bounds_per_group"

Column = tuple[float | None, ...]
LIBRARIES = ("OpenDP", "Tumult", "SmartNoise", "PipelineDP", "diffprivlib")
"""Measured with OpenDP 0.16.0, Tumult 0.21.0, SmartNoise SQL 1.0.10, PipelineDP 0.3.1, diffprivlib 0.6.6."""


@dataclass(frozen=True)
class Asked:
    """A question, the column looked at, and the mean errors of the other libraries in the order of LIBRARIES."""

    name: str
    table: str
    question: str
    column: str
    others: Column
    price: Price = PURE
    cut: bool = False
    """Whether whoever reads the answer takes negative numbers for 0."""


EIGHT = "SELECT sex, COUNT(*) AS n, AVG(age) AS age, AVG(hours_per_week) AS hours FROM adult GROUP BY sex"
QUESTIONS = (
    Asked(
        "A1 count by education",
        "adult",
        "SELECT education, COUNT(*) AS n FROM adult GROUP BY education",
        "n",
        (0.88, 0.78, 1.08, 1.03, 0.83),
    ),
    Asked("A2 count", "adult", "SELECT COUNT(*) AS n FROM adult", "n", (0.86, 0.86, 1.21, 0.98, None)),
    Asked(
        "A3 mean age by sex",
        "adult",
        "SELECT sex, AVG(age) AS m FROM adult GROUP BY sex",
        "m",
        (0.0139, 0.0059, 0.0133, 0.0057, 0.0295),
    ),
    Asked(
        "A4 mean hours by education",
        "adult",
        "SELECT education, AVG(hours_per_week) AS m FROM adult GROUP BY education",
        "m",
        (0.588, 0.274, 0.585, 0.286, 7.4),
    ),
    Asked(
        "A5 sum of capital gain by sex",
        "adult",
        "SELECT sex, SUM(capital_gain) AS s FROM adult GROUP BY sex",
        "s",
        (104_200, 92_500, 95_500, 92_000, 213_800),
    ),
    Asked(
        "A7 count by education and occupation",
        "adult",
        "SELECT education, occupation, COUNT(*) AS n FROM adult GROUP BY education, occupation",
        "n",
        (0.849, 0.874, 1.055, 1.005, None),
    ),
    Asked(
        "A7 the same, cut at zero",
        "adult",
        "SELECT education, occupation, COUNT(*) AS n FROM adult GROUP BY education, occupation",
        "n",
        (None, None, None, None, 0.791),
        cut=True,
    ),
    Asked("A8 count, with two means, by sex", "adult", EIGHT, "n", (5.02, 3.14, 5.30, 4.25, 6.03)),
    Asked("A8 mean age", "adult", EIGHT, "age", (0.0328, 0.0160, 0.0359, 0.0116, 0.0300)),
    Asked("A8 mean hours", "adult", EIGHT, "hours", (0.0372, 0.0248, 0.0401, 0.0132, 0.0410)),
    Asked(
        "B1 distinct patients",
        "conditions",
        "SELECT COUNT(DISTINCT PATIENT) AS n FROM conditions",
        "n",
        (0.835, None, 1.22, 1.02, None),
    ),
)
PRIVATE = Asked(
    "B2 patients by description, 187 private keys",
    "conditions",
    "SELECT DESCRIPTION, COUNT(DISTINCT PATIENT) AS n FROM conditions GROUP BY DESCRIPTION",
    "n",
    (85.0, 96.0, 97.0, 84.0, None),
    GAUSSIAN,
)
ROWS = Asked(
    "B3 mean rows a patient",
    "conditions",
    f"SELECT COUNT(*, {BOUNDS} => (0, 100)) AS n, COUNT(DISTINCT PATIENT) AS p FROM conditions",
    "n",
    (0.37, 0.202, None, 0.214, None),
)


@dataclass(frozen=True)
class Known:
    """Exact totals that the engine gave once, to be given again: the noise alone is drawn afresh."""

    rows: list[Row]
    period: str = ""

    def run(self, *_: object) -> list[Row]:
        return list(self.rows)


@dataclass(frozen=True)
class Figure:
    """What was measured: mean |error| over cells and runs, the part of intervals that hold the truth, groups shown."""

    name: str
    error: float
    covered: float | None
    others: Column
    groups: float | None = None

    @property
    def best(self) -> float:
        """The smallest error of the other libraries."""
        return min(other for other in self.others if other is not None)


def read(path: Path, name: str) -> list[str]:
    """The values of one column of a file, in its order."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def curator() -> discreet.Curator:
    """Both tables; every row of adult has a value in the columns that are averaged, and the declaration says so."""
    whole = {"type": "integer", "nulls": False}
    columns: dict[str, Any] = {
        "age": {**whole, "min": 17, "max": 90},
        "hours_per_week": {**whole, "min": 1, "max": 99},
        "capital_gain": {**whole, "min": 0, "max": 99_999},
        **{name: sorted(set(read(ADULT, name))) for name in ("sex", "education", "occupation")},
    }
    adult = discreet.Table(str(ADULT), one_row_per_person=True, columns=columns)
    conditions = discreet.Table(
        str(CONDITIONS),
        person="PATIENT",
        rows_per_person=100,
        groups_per_person=10,
        columns={"PATIENT": str, "DESCRIPTION": str},
    )
    return discreet.Curator({"adult": adult, "conditions": conditions}, epsilon=1, delta="1e-6")


def answers(known: discreet.Curator, asked: Asked, price: Price, runs: int) -> list[ReleaseContent]:
    """That many releases of one question with fresh noise, through the door's own code, as an analyst gets them."""
    plan = lower(asked.question, known.declaration).plan
    priced = measurement(plan, price)
    table = known.declaration.tables[plan.table]
    exact = Known(known._engine.run(plan.root, table))
    return [answer(priced, noisy_answer(exact, priced, table), table) for _ in range(runs)]


def figure(known: discreet.Curator, asked: Asked, runs: int) -> Figure:
    """A question whose groups are public: the truth is what the same question gives without noise."""
    truth = [row[asked.column] for row in answers(known, asked, NO_NOISE, 1)[0].rows]
    errors, covered = [], []
    for content in answers(known, asked, asked.price, runs):
        for true, row, interval in zip(truth, content.rows, content.intervals, strict=True):
            low, high = interval[asked.column]
            value = max(0, row[asked.column]) if asked.cut else row[asked.column]
            errors.append(abs(value - true))
            covered.append(low - 1e-9 <= true <= high + 1e-9)
    return Figure(asked.name, statistics.fmean(errors), statistics.fmean(covered), asked.others)


def private(known: discreet.Curator, runs: int) -> Figure:
    """Over all 187 groups, one that is not shown counting as 0, against the number of rows without any limit: as the
    others were measured."""
    truth = Counter(read(CONDITIONS, "DESCRIPTION"))
    errors, groups = [], []
    for content in answers(known, PRIVATE, PRIVATE.price, runs):
        shown: Mapping[str, int] = {row["DESCRIPTION"]: row["n"] for row in content.rows}
        errors.append(statistics.fmean(abs(shown.get(name, 0) - count) for name, count in truth.items()))
        groups.append(len(shown))
    return Figure(PRIVATE.name, statistics.fmean(errors), None, PRIVATE.others, statistics.fmean(groups))


def per_patient(known: discreet.Curator, runs: int) -> Figure:
    """The quotient of two columns of one answer."""
    (truth,) = answers(known, ROWS, NO_NOISE, 1)[0].rows
    exact = truth["n"] / truth["p"]
    found = [content.rows[0] for content in answers(known, ROWS, ROWS.price, runs)]
    return Figure(ROWS.name, statistics.fmean(abs(row["n"] / row["p"] - exact) for row in found), None, ROWS.others)


def table(runs: int = 200) -> list[Figure]:
    """All questions."""
    with curator() as known:
        figures = [figure(known, asked, runs) for asked in QUESTIONS]
        return [*figures, private(known, runs), per_patient(known, runs)]


def figures(runs: int = 200) -> list[tuple[str, float]]:
    """For `make bench`: each error over the smallest of the other libraries', and the coverage of the intervals."""
    found = table(runs)
    ratios = [(f"{one.name}: error over the best other library's", one.error / one.best) for one in found]
    covered = [(f"{one.name}: coverage", one.covered) for one in found if one.covered is not None]
    return ratios + covered


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| question | discreet | coverage |", " | ".join(LIBRARIES), "|")
    for one in table(runs):
        others = " | ".join("–" if other is None else f"{other:,.4g}" for other in one.others)
        covered = "–" if one.covered is None else f"{one.covered:.3f}"
        shown = "" if one.groups is None else f" ({one.groups:.1f} shown)"
        print(f"| {one.name} | {one.error:,.4g}{shown} | {covered} | {others} |", flush=True)


if __name__ == "__main__":
    main()
