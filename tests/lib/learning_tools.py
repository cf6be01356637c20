"""Small tables of persons, curators of them, and an attacker who counts."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow

from discreet import Curator, Table
from discreet.learning.model import Fit, FitOptions, fit

if TYPE_CHECKING:
    import pandas

LEVEL = 1e-6

COLUMNS: dict[str, Any] = {
    "p": {"type": "text"},
    "v": {"type": "number", "min": -2, "max": 6},
    "k": {"type": "integer", "min": 0, "max": 10},
    "g": {"type": "text", "values": ["x", "y", "Zürich's"]},
    "b": {"type": "boolean"},
    "d": {"type": "date", "min": date(2020, 1, 1), "max": date(2020, 12, 31)},
    "y": {"type": "text", "values": ["no", "yes"]},
    "note": {"type": "text"},
}
ARROW = {
    "p": pyarrow.string(),
    "v": pyarrow.float64(),
    "k": pyarrow.int64(),
    "g": pyarrow.string(),
    "b": pyarrow.bool_(),
    "d": pyarrow.date32(),
    "y": pyarrow.string(),
    "note": pyarrow.string(),
}


def frame(rows: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    """Rows as an Arrow table; what a row does not name is NULL."""
    return pyarrow.table({name: pyarrow.array([row.get(name) for row in rows], kind) for name, kind in ARROW.items()})


def curator(
    rows: Sequence[Mapping[str, Any]], *, persons: bool = True, ledger: Path | None = None, **budget: Any
) -> Curator:
    """A curator of one table `t`: persons with many rows, or each row a person."""
    unit: dict[str, Any] = {"person": "p", "rows_per_person": 2} if persons else {"one_row_per_person": True}
    table = Table(frame(rows), columns=COLUMNS, **unit)
    known = {"epsilon": 10**9, "delta": "0.01", "keys_delta": "0.001"} | budget
    return Curator({"t": table}, ledger=ledger, **known)


def planned(curator: Curator, **call: Any) -> Fit:
    """A checked call of `fit` on the table `t`."""
    known: dict[str, Any] = {"target": "y", "features": None, "model": "logistic", "epsilon": 1, "delta": None}
    known |= {"sample_rate": "0.5", "steps": 3, "clip": 1, "learning_rate": None, "positive": None}
    return fit(curator.declaration, FitOptions(table="t", **(known | call)))


def surely_above(first: Sequence[float], second: Sequence[float], mu: float, at: float) -> bool:
    """Whether samples are further apart than a μ-GDP release allows: with the threshold `at`, the rate of alarms on the
    first is above Φ(Φ⁻¹(rate on the second) + μ), but for an error of probability 1e-6."""
    from scipy import stats

    hits, false = sum(one > at for one in first), sum(one > at for one in second)
    low = stats.beta.ppf(LEVEL / 2, hits, len(first) - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - LEVEL / 2, false + 1, len(second) - false) if false < len(second) else 1.0
    return bool(low > stats.norm.cdf(stats.norm.ppf(high) + mu))


def surely_more(first: Sequence[Any], second: Sequence[Any], event: Callable[[Any], bool], factor: float) -> bool:
    """Whether the event is more than `factor` times as likely in the first, but for an error of probability 1e-6."""
    from scipy import stats

    hits, rare = sum(map(event, first)), sum(map(event, second))
    low = stats.beta.ppf(LEVEL / 2, hits, len(first) - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - LEVEL / 2, rare + 1, len(second) - rare) if rare < len(second) else 1.0
    return bool(low > factor * high)


def adult_file(folder: Path) -> Path:
    """The census that comes with the package, unpacked."""
    path = folder / "adult.csv"
    path.write_bytes(gzip.decompress((files("discreet") / "data" / "adult.csv.gz").read_bytes()))
    return path


CATEGORIES = [
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
    "income",
]


def adult_columns(frame: pandas.DataFrame) -> dict[str, Any]:
    """A declaration of the census: what values its columns have is public there."""
    bounds: dict[str, Any] = {
        "age": (17, 90),
        "education_num": (1, 16),
        "capital_gain": (0, 20_000),
        "capital_loss": (0, 3_000),
        "hours_per_week": (1, 99),
    }
    return bounds | {name: sorted(frame[name].dropna().unique().tolist()) for name in CATEGORIES}
