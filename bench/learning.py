"""Models and functions on the census that comes with the package: how good, how long, beside those without noise."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

import discreet
from discreet.learning.predictor import Predictor, encoded
from discreet.trusted.ring_c.features import UNIT

BOUNDS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 20_000),
    "capital_loss": (0, 3_000),
    "hours_per_week": (1, 99),
}
PRICES = ("0.1", "1", "3")


def figures(folder: Path, runs: int = 5) -> list[tuple[str, float]]:
    """Medians over runs; training and test rows are the same, since noise, not fitting too well, is what is asked."""
    frame = _census(folder)
    columns: dict[str, Any] = {**BOUNDS}
    columns |= {name: sorted(frame[name].dropna().unique()) for name in frame.columns if frame[name].dtype != "int64"}
    table = discreet.Table(folder / "census.csv", one_row_per_person=True, columns=columns)
    found: list[tuple[str, float]] = []
    with discreet.Curator({"census": table}, epsilon=10**6, delta="0.1", keys_delta="0.05") as curator:
        rich = frame.income == ">50K"
        model = None
        for price in PRICES:
            right, area, explained, seconds = [], [], [], []
            for run in range(runs):
                rate = 1 + run / 10**9  # another call, the same training
                start = time.perf_counter()
                model = curator.fit("census", target="income", epsilon=price, delta="1e-6", learning_rate=rate)
                seconds.append(time.perf_counter() - start)
                right.append(model.score(frame, frame.income))
                area.append(float(roc_auc_score(rich, model.predict_proba(frame)[:, 1])))
                linear = curator.fit(
                    "census", target="age", model="linear", epsilon=price, delta="1e-6", learning_rate=rate / 20
                )
                explained.append(linear.score(frame, frame.age))
            found += [
                (f"income at ε {price}: accuracy", statistics.median(right)),
                (f"income at ε {price}: the worst of {runs} accuracies", min(right)),
                (f"income at ε {price}: area under the curve", statistics.median(area)),
                (f"income at ε {price}: seconds", statistics.median(seconds)),
                (f"age at ε {price}: R²", statistics.median(explained)),
                (f"age at ε {price}: the worst of {runs} R²", min(explained)),
            ]
        assert model is not None
        return [*found, *_plain(model, linear, frame), *_blocks(curator, frame)]


def _census(folder: Path) -> pandas.DataFrame:
    path = folder / "census.csv"
    path.write_bytes(gzip.decompress((files("discreet") / "data" / "adult.csv.gz").read_bytes()))
    return pandas.read_csv(path)


def _encoded(model: Predictor, frame: pandas.DataFrame) -> Any:
    """The features of a model without the intercept."""
    pairs = {part.column.name: encoded(part, list(frame[part.column.name])) for part in model.features.parts}
    values = {name: pair[0] for name, pair in pairs.items()}
    known = {name: pair[1] for name, pair in pairs.items()}
    return model.features.units(values, known, len(frame))[:, :-1] / UNIT


def _plain(logistic: Predictor, linear: Predictor, frame: pandas.DataFrame) -> list[tuple[str, float]]:
    """The same features without privacy."""
    features, rich = _encoded(logistic, frame), frame.income == ">50K"
    start = time.perf_counter()
    model = LogisticRegression(max_iter=2_000).fit(features, rich)
    seconds = time.perf_counter() - start
    others = _encoded(linear, frame)
    return [
        ("income without a model: accuracy", float(np.mean(~rich))),
        ("income without privacy: accuracy", float(model.score(features, rich))),
        (
            "income without privacy: area under the curve",
            float(roc_auc_score(rich, model.predict_proba(features)[:, 1])),
        ),
        ("income without privacy: seconds", seconds),
        ("age without privacy: R²", float(LinearRegression().fit(others, frame.age).score(others, frame.age))),
    ]


def _blocks(curator: discreet.Curator, frame: pandas.DataFrame) -> list[tuple[str, float]]:
    def work(block: pandas.DataFrame) -> float:
        return float(block.age.astype(float).corr(block.hours_per_week.astype(float)))

    plain = _seconds(lambda: work(frame))
    arguments: dict[str, Any] = {"low": -1, "high": 1, "blocks": 50, "epsilon": 1}
    private = _seconds(lambda: curator.sample_and_aggregate(work, "census", **arguments))
    values = {
        name: curator.sample_and_aggregate(work, "census", aggregate=name, request=name, **arguments).rows[0]["value"]
        for name in ("median", "mean")
    }
    return [
        ("a correlation, plain call: seconds", plain),
        ("the same over 50 blocks: seconds", private),
        ("the same, plain call", work(frame)),
        ("the same, private median at ε 1", values["median"]),
        ("the same, private mean at ε 1", values["mean"]),
    ]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
