"""A released model predicts like any other of scikit-learn's kind, and cannot be trained again."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

from discreet import QuestionError
from discreet.learning.predictor import Predictor, encoded
from discreet.trusted.ring_c.features import UNIT, Features, OneHot, Scaled, feature
from learning_tools import curator

ROWS = [
    {
        "p": str(i),
        "v": i % 9 - 2.0,
        "k": 2 * (i % 9 - 2) if i % 9 > 1 else 0,
        "g": "xy"[i % 2],
        "b": i % 3 == 0,
        "d": datetime.date(2020, 1 + i % 12, 1),
        "y": "yes" if i % 9 > 4 else "no",
    }
    for i in range(600)
]
FRAME = pandas.DataFrame(ROWS)


@pytest.fixture(scope="module")
def models() -> Iterator[tuple[Predictor, Predictor]]:
    """Trained with next to no noise."""
    with curator(ROWS, delta="0.1", keys_delta="0.05") as one:
        call: dict[str, Any] = {"epsilon": 200, "delta": "0.05", "steps": 100}
        yield (
            one.fit("t", target="y", features=["v", "g", "b", "d"], **call),
            one.fit("t", target="k", features=["v", "g"], model="linear", learning_rate="0.2", **call),
        )


def test_it_learned(models: tuple[Predictor, Predictor]) -> None:
    logistic, linear = models
    assert logistic.score(FRAME, FRAME.y) > 0.95
    assert linear.score(FRAME, FRAME.k) > 0.9
    assert linear.predict([{"v": 3.0, "g": "x"}])[0] == pytest.approx(6, abs=1.5)
    assert list(logistic.classes_) == ["no", "yes"]


def test_its_attributes_say_how_it_predicts(models: tuple[Predictor, Predictor]) -> None:
    logistic, linear = models
    assert list(logistic.feature_names_in_) == ["v", "g", "b", "d"]
    assert list(logistic.encoded_names_) == ["v", "g=x", "g=y", "g=Zürich's", "b=False", "b=True", "d"]
    assert logistic.coef_.shape == (1, 7)
    assert logistic.intercept_.shape == (1,)
    row = numpy.array([(5 + 2) / 4 - 1, 0, 1, 0, 0, 1, -1])  # v = 5 of [−2, 6], and so on
    given = [{"v": 5, "g": "y", "b": True, "d": datetime.date(2020, 1, 1)}]
    odds = float(logistic.coef_[0] @ row + logistic.intercept_[0])
    assert logistic.decision_function(given)[0] == pytest.approx(odds, abs=1e-3)
    assert logistic.predict_proba(given)[0].tolist() == pytest.approx(
        [1 / (1 + math.exp(odds)), 1 / (1 + math.exp(-odds))], abs=1e-3
    )
    assert linear.n_features_in_ == 2
    at = [{"v": 4, "g": None}]
    assert linear.predict(at)[0] == pytest.approx(linear.coef_[0] * 0.5 + linear.intercept_, abs=1e-2)


def test_every_kind_of_table_gives_the_same(models: tuple[Predictor, Predictor]) -> None:
    logistic, _ = models
    expected = logistic.decision_function(FRAME)
    kinds: list[Any] = [
        polars.from_pandas(FRAME[["v", "g", "b", "d"]]),
        pyarrow.Table.from_pandas(FRAME),
        ROWS,
        {name: list(FRAME[name]) for name in FRAME},
        FRAME[["v", "g", "b", "d"]].to_numpy(),
        FRAME.rename(columns=str.upper),
        FRAME.assign(d=pandas.to_datetime(FRAME.d)),
        FRAME.assign(d=FRAME.d.map(str), b=FRAME.b.astype(int)),
        FRAME.convert_dtypes(),
    ]
    for kind in kinds:
        assert numpy.array_equal(logistic.decision_function(kind), expected)
    with pytest.raises(QuestionError, match="missing: d"):
        logistic.predict(FRAME.drop(columns="d"))
    with pytest.raises(QuestionError, match="missing"):
        logistic.predict([[1, 2]])
    assert logistic.predict([]).shape == (0,)


def test_what_is_missing_or_odd_counts_as_nothing(models: tuple[Predictor, Predictor]) -> None:
    logistic, _ = models
    odd: list[Any] = [None, math.nan, pandas.NA, pandas.NaT, "text", [1], 10**400]
    nothing = logistic.decision_function([{"v": None}])[0]
    assert nothing == pytest.approx(float(logistic.intercept_[0]))
    for value in odd[:-2]:
        assert logistic.decision_function([dict.fromkeys(["v", "g", "b", "d"], value)])[0] == nothing
    for value in (*odd[-2:], numpy.float64("nan")):
        assert logistic.decision_function([{"v": value}])[0] == nothing
    clamped = logistic.decision_function([{"v": value} for value in (6, 1e300, math.inf, -2, -math.inf)])
    assert clamped[0] == clamped[1] == clamped[2] > clamped[3] == clamped[4]


def test_python_and_the_engine_encode_alike() -> None:
    """The same values, through the engine and through Python, are the same features to the last unit."""
    values: list[dict[str, Any]] = [
        {"p": f"{i:03}", "v": v, "k": k, "g": g, "b": b, "d": d}
        for i, (v, k, g, b, d) in enumerate(
            (v, k, g, b, d)
            for v in (None, -2.0, 0.1, 6.0, math.inf, 1e300)
            for k, g in ((0, "x"), (7, "Zürich's"), (None, None), (10**9, "no such"))
            for b, d in ((True, datetime.date(2020, 2, 29)), (False, datetime.date(2031, 1, 1)), (None, None))
        )
    ]
    with curator(values) as one:
        table = one.declaration.tables["t"]
        names = ("v", "k", "g", "b", "d")
        parts = tuple(part for name in names if (part := feature(table.column(name))) is not None)  # type: ignore[arg-type]
        from discreet.trusted.ring_c.vectors import VectorColumn

        wanted = [VectorColumn(part.column, part.values if isinstance(part, OneHot) else None) for part in parts]
        found = one._engine.vectors(table, wanted)
    features = Features(parts)
    exact = features.units(found.values, found.known, len(values))
    pairs = {part.column.name: encoded(part, [row[part.column.name] for row in values]) for part in parts}
    again = features.units(
        {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}, len(values)
    )
    assert numpy.array_equal(exact, again)
    assert numpy.array_equal(exact, numpy.rint(exact))
    assert numpy.abs(exact).max() == UNIT
    assert sum(isinstance(part, Scaled) for part in parts) == 3


def test_it_is_one_of_scikit_learns(models: tuple[Predictor, Predictor]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    from sklearn.base import is_classifier, is_regressor
    from sklearn.inspection import permutation_importance
    from sklearn.utils.validation import check_is_fitted

    logistic, linear = models
    check_is_fitted(logistic)
    assert (is_classifier(logistic), is_regressor(linear)) == (True, True)
    assert metrics.get_scorer("roc_auc")(logistic, FRAME, FRAME.y) > 0.95
    assert metrics.get_scorer("accuracy")(logistic, FRAME, FRAME.y) == logistic.score(FRAME, FRAME.y)
    assert metrics.get_scorer("r2")(linear, FRAME, FRAME.k) == pytest.approx(linear.score(FRAME, FRAME.k))
    display = metrics.RocCurveDisplay.from_estimator(logistic, FRAME, FRAME.y)
    assert display.roc_auc > 0.95
    importance = permutation_importance(linear, FRAME[["v", "g"]], FRAME.k, n_repeats=2, random_state=0)
    assert importance.importances_mean[0] > importance.importances_mean[1]


def test_it_is_not_trained_again(models: tuple[Predictor, Predictor]) -> None:
    logistic, linear = models
    with pytest.raises(QuestionError, match=r"curator\.fit"):
        logistic.fit(FRAME, FRAME.y)
    with pytest.raises(QuestionError, match="cannot be changed"):
        logistic.set_params(model="linear")
    assert logistic.set_params(**logistic.get_params()) is logistic
    for name in ("classes_", "decision_function", "predict_proba"):
        with pytest.raises(AttributeError):
            getattr(linear, name)(FRAME)
    with pytest.raises(AttributeError):
        logistic.model = "linear"  # type: ignore[misc]
    assert "price ε 200" in repr(logistic)
