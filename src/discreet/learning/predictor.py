"""A trained model: predictions from released weights, with the interface of scikit-learn."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionError
from discreet.release.table import Release
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_c.features import UNIT, Features, OneHot, Scaled, as_number

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model that was trained with differential privacy; whatever is done with it costs nothing more.

    `predict`, `predict_proba`, `decision_function` and `score` take a pandas or polars frame, an Arrow table, a list of
    mappings, a mapping of lists, or an array with the columns of `feature_names_in_` in that order. Rows are encoded as
    in training: clamped to the declared bounds; what is missing or not declared counts as 0. `coef_` belongs to the
    encoded features, `encoded_names_`; of a linear model it is in the target's own unit.
    `release` has the price, the mechanisms, the bounds and the weights as they are in the ledger.
    """

    release: Release
    model: str
    features: Features
    target: OneHot | Scaled

    @property
    def classes_(self) -> NDArray[Any]:
        """The negative and the positive value of the target, of shape (2,).

        Raises AttributeError for a linear model.
        """
        if not isinstance(self.target, OneHot):
            raise AttributeError("a linear model has no classes")
        values = [float(value) if isinstance(value, Fraction) else value for value in self.target.values]
        return np.array(values)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns that rows need, of shape (columns,)."""
        return np.array([part.column.name for part in self.features.parts], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns rows need."""
        return len(self.features.parts)

    @property
    def encoded_names_(self) -> NDArray[Any]:
        """The names of the encoded features, of shape (n,)."""
        return np.array(self.features.names, dtype=object)

    @property
    def coef_(self) -> Floats:
        """One weight for each encoded feature: of shape (1, n) for a logistic model, (n,) for a linear one."""
        weights = self._weights[:-1]
        return weights[None, :].copy() if isinstance(self.target, OneHot) else weights * self._half

    @property
    def intercept_(self) -> Any:
        """The constant: of shape (1,) for a logistic model, a number in the target's unit for a linear one."""
        if isinstance(self.target, OneHot):
            return self._weights[-1:].copy()
        return float(self._weights[-1]) * self._half + self._middle

    def decision_function(self, X: Any) -> Floats:
        """Gives the logarithm of the odds of the positive class, of shape (rows,).

        Raises QuestionError where a column is missing, AttributeError for a linear model.
        """
        self._logistic("decision_function")
        return self._linear(X)

    def predict_proba(self, X: Any) -> Floats:
        """Gives the probabilities of the negative and the positive class, of shape (rows, 2).

        Raises QuestionError where a column is missing, AttributeError for a linear model.
        """
        self._logistic("predict_proba")
        odds = np.clip(self._linear(X), -700, 700)
        positive = 1 / (1 + np.exp(-odds))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> NDArray[Any]:
        """Gives the likelier class of each row, of shape (rows,).

        Of a linear model it is the expected value, in the target's unit and inside the declared bounds. Raises
        QuestionError where a column is missing.
        """
        found = self._linear(X)
        if isinstance(self.target, OneHot):
            classes: NDArray[Any] = self.classes_[(found > 0).astype(int)]
            return classes
        low, high = self.target.bounds
        return np.clip(found * self._half + self._middle, low, high)

    def score(self, X: Any, y: Any) -> float:
        """Gives the part of rows that are predicted right; of a linear model R².

        `y` has the true values, one for each row. Raises QuestionError where a column is missing.
        """
        predicted = self.predict(X)
        truth = np.asarray(list(y))
        if isinstance(self.target, OneHot):
            return float(np.mean(predicted == truth))
        truth = truth.astype(np.float64)
        return 1 - float(((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())

    def fit(self, *_: object, **__: object) -> Predictor:
        """Refuses: training needs a curator and a price. Raises QuestionError."""
        fix = "train with curator.fit(table, target=…, epsilon=…)"
        raise QuestionError("fit", "a released model cannot be trained again", where="fit", fix=fix)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Gives the model's parameters, in the form that scikit-learn expects."""
        return {"release": self.release, "model": self.model, "features": self.features, "target": self.target}

    def set_params(self, **parameters: Any) -> Predictor:
        """Refuses whatever would change the model. Raises QuestionError."""
        if any(parameters[name] is not self.get_params().get(name) for name in parameters):
            fix = "train another one with curator.fit(…)"
            raise QuestionError("fit", "a released model cannot be changed", where="set_params", fix=fix)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def _estimator_type(self) -> str:
        return "classifier" if isinstance(self.target, OneHot) else "regressor"

    def __sklearn_tags__(self) -> Any:
        tags = import_module("sklearn.utils")  # who calls this has it
        classifier = isinstance(self.target, OneHot)
        return tags.Tags(
            estimator_type=self._estimator_type,
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags(multi_class=False) if classifier else None,
            regressor_tags=None if classifier else tags.RegressorTags(),
            input_tags=tags.InputTags(categorical=True, string=True, allow_nan=True),
        )

    def __repr__(self) -> str:
        price = f"{self.release.cost}"
        return f"{self.model} model of {self.target.column.name}: {len(self._weights)} weights, price {price}"

    @cached_property
    def _weights(self) -> Floats:
        return np.array([row["weight"] for row in self.release.holds.rows], np.float64)

    @property
    def _half(self) -> float:
        assert isinstance(self.target, Scaled)
        low, high = self.target.bounds
        return (high - low) / 2

    @property
    def _middle(self) -> float:
        assert isinstance(self.target, Scaled)
        low, high = self.target.bounds
        return (high + low) / 2

    def _logistic(self, name: str) -> None:
        if not isinstance(self.target, OneHot):
            raise AttributeError(f"a linear model has no {name}")

    def _linear(self, X: Any) -> Floats:
        columns = _columns(X, [part.column.name for part in self.features.parts])
        rows = len(next(iter(columns.values())))
        values, known = {}, {}
        for part in self.features.parts:
            name = part.column.name
            values[name], known[name] = encoded(part, columns[name])
        found: Floats = self.features.units(values, known, rows) / UNIT @ self._weights
        return found


def encoded(part: Scaled | OneHot, values: list[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values that Python holds as the engine would give them, and whether they are known."""
    if isinstance(part, OneHot):
        truth = part.column.type is Type.BOOLEAN
        places = {_folded(value, truth): place for place, value in enumerate(part.values)}
        found = np.array([places.get(_folded(value, truth), -1) for value in values], np.int64)
        return found, found >= 0
    moment = part.column.type in (Type.DATE, Type.TIMESTAMP)
    numbers = np.array([_moment(value, part) if moment else _number(value) for value in values], np.float64)
    return numbers, ~np.isnan(numbers)


def _folded(value: Any, truth: bool) -> tuple[str, Any] | None:
    """A value such that equal ones are equal, whatever library made them."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool) or (truth and isinstance(value, Real) and value in (0, 1)):
        return "boolean", bool(value)
    if isinstance(value, Real):
        return "number", float(value)
    return (type(value).__name__, value.isoformat()) if isinstance(value, datetime.date) and value == value else None


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _moment(value: Any, part: Scaled) -> float:
    """A date in days, a timestamp in microseconds, as the declared bounds are."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    try:
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if part.column.type is Type.DATE and isinstance(value, datetime.datetime):
            value = value.date()
        elif part.column.type is Type.TIMESTAMP and not isinstance(value, datetime.datetime):
            value = datetime.datetime.combine(value, datetime.time())
        return as_number(value)
    except (TypeError, ValueError, AssertionError):
        return math.nan


def _columns(X: Any, names: list[str]) -> dict[str, list[Any]]:
    """The named columns of whatever holds rows. Raises QuestionError where one is missing."""
    held = getattr(X, "column_names", None)
    if held is None:
        held = getattr(X, "columns", None)
    if held is None and isinstance(X, Mapping):
        held = list(X)
    if held is not None:
        folded = {str(name).casefold(): name for name in held}
        missing = [name for name in names if name.casefold() not in folded]
        if not missing:
            return {name: _listed(X[folded[name.casefold()]]) for name in names}
    else:
        rows = list(X)
        if rows and isinstance(rows[0], Mapping):
            return {name: [row.get(name) for row in rows] for name in names}
        if all(len(row) == len(names) for row in rows):
            return {name: [row[place] for row in rows] for place, name in enumerate(names)}
        missing = names
    fix = f"give the columns {', '.join(names)}"
    raise QuestionError("columns", f"these columns are missing: {', '.join(missing)}", where="X", fix=fix)


def _listed(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)
