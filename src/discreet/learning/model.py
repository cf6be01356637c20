"""Training a model, from the call to the content of the release: everything from declarations, nothing from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import Filter
from discreet.accounting.balance import event_delta, price_delta
from discreet.catalog import Declaration
from discreet.errors import refused
from discreet.learning.training_noise import TrainingNoise, noise_for
from discreet.procedures.arguments import columns_of, epsilon_of, private_table, whole, within
from discreet.release.content import Cost, ReleaseContent
from discreet.trusted.ring_a.exact import Number, show
from discreet.trusted.ring_a.table import Column, Table, Type, Value
from discreet.trusted.ring_c.features import MOST_FEATURES, Features, OneHot, Scaled, feature
from discreet.trusted.ring_c.training import STEPS_OF_CLIP, Trained, Training

_LOGISTIC, _LINEAR = "logistic", "linear"


@dataclass(frozen=True)
class Fit:
    """A checked call: the model's features and target, the run, its noise and its price."""

    table: Table
    model: str
    features: Features
    target: OneHot | Scaled
    epsilon: Fraction
    delta: Fraction
    noise: TrainingNoise
    sample_rate: Fraction
    steps: int
    clip: Fraction
    learning_rate: Fraction

    @property
    def cost(self) -> Cost:
        """ε and δ of the whole run, with that of the noisy number of persons."""
        return Cost(epsilon=float(self.epsilon), delta=float(self.delta))

    @property
    def question(self) -> str:
        """The call in words, for the ledger."""
        names = ", ".join(part.column.name for part in self.features.parts)
        return f"{self.model} model of {self.target.column.name} in {self.table.name} by {names}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The arguments that determine the answer, besides the table."""
        return ("fit", repr(self))

    def measurement(self, tell: Callable[[int], None]) -> Training:
        """The measurement that the gate carries out."""
        return Training(
            self.table,
            self.features,
            self.target,
            self.noise.sigma,
            self.sample_rate,
            self.steps,
            self.clip,
            float(self.learning_rate),
            self.noise.count_epsilon,
            self.noise.event_delta,
            tell,
        )

    def content(self, trained: Trained) -> ReleaseContent:
        """The content of the release: one row for each weight."""
        names = [*self.features.names, "(intercept)"]
        return ReleaseContent(
            columns=["feature", "weight"],
            types={"feature": "text", "weight": "number"},
            rows=[{"feature": n, "weight": w} for n, w in zip(names, trained.weights, strict=True)],
            cost=self.cost,
            mechanisms=self._mechanisms(),
            bounds=self._bounds(),
            more={"persons": trained.persons},
        )

    def _mechanisms(self) -> list[dict[str, str]]:
        sigma, rate = show(self.noise.sigma, 4), show(self.sample_rate)
        return [
            {
                "columns": "weight",
                "mechanism": f"rounded Gaussian noise, sigma {sigma} times the clip, in {self.steps} steps over random "
                f"samples of persons at rate {rate}",
                "unit": f"{show(self.clip / STEPS_OF_CLIP)} a step",
                "sensitivity": f"{STEPS_OF_CLIP} steps in ℓ2: one person's clipped gradient",
            },
            {
                "columns": "number of persons",
                "mechanism": f"discrete Laplace noise, scale {show(1 / self.noise.count_epsilon)}",
                "unit": "1 a step",
                "sensitivity": "1 step",
            },
        ]

    def _bounds(self) -> list[str]:
        words = [f"each person's gradient, summed over all rows, is clipped to a length of {show(self.clip)}"]
        for part in (*self.features.parts, self.target):
            if isinstance(part, Scaled):
                column = part.column
                words.append(f"{column.name} is clamped to [{_word(column.minimum)}, {_word(column.maximum)}]")
        unit = "not declared" if isinstance(self.target, OneHot) else "not known"
        return [
            *words,
            "a feature that is NULL counts as 0, the middle of its bounds",
            f"rows whose {self.target.column.name} is NULL or {unit} are left out",
        ]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What a call of `Curator.fit` names, as it was written: that method says what each means."""

    table: str
    target: str
    features: Sequence[str] | None = None
    model: str = _LOGISTIC
    epsilon: Number | None = None
    delta: Number | None = None
    sample_rate: Number = "0.1"
    steps: int = 200
    clip: Number = 1
    learning_rate: Number | None = None
    positive: Value | None = None


def fit(declaration: Declaration, options: FitOptions) -> Fit:
    """The checked call. Raises QuestionError; nothing is spent and no row is read."""
    known = private_table(declaration, options.table)
    model = options.model
    if model not in (_LOGISTIC, _LINEAR):
        raise refused("model", "model must be logistic or linear", "model", 'write model="logistic"')
    (wanted,) = columns_of(known, [options.target], "target")
    aim = _two_values(wanted, options.positive) if model == _LOGISTIC else _bounded(wanted, options.positive)
    used = _features(known, wanted, options.features)
    price = epsilon_of(declaration, options.epsilon)
    rate = within("sample_rate", options.sample_rate, 0, 1, "sample_rate=0.1")
    count = whole("steps", options.steps, 1, 100_000, "steps=200")
    length = within("clip", options.clip, 0, 1_000, "clip=1")
    named = _SPEED[model] if options.learning_rate is None else options.learning_rate
    speed = within("learning_rate", named, 0, 1_000, "0.5")
    whole_delta, event = _deltas(declaration, price, options.delta, rate)
    noise = noise_for(price, whole_delta, event, rate, count)
    if noise is None:
        raise refused(
            "price", "epsilon is too small for this training run", "epsilon", "write a larger epsilon or delta"
        )
    return Fit(known, model, used, aim, price, whole_delta, noise, rate, count, length, speed)


_SPEED = {_LOGISTIC: Fraction(1), _LINEAR: Fraction(1, 20)}


def _deltas(
    declaration: Declaration, epsilon: Fraction, delta: Number | None, rate: Fraction
) -> tuple[Fraction, Fraction]:
    """δ in all, and the part of it that the event takes: the same part as keys_delta is of the budget's δ.

    A call that names no δ takes `price_delta`.
    """
    budget = declaration.budget
    if budget.delta <= budget.keys_delta:
        fix = "declare a budget with delta = 1e-6 and keys_delta = 1e-7"
        raise refused("delta", "training a model needs a delta", "delta", fix)
    if budget.keys_delta == 0 and rate < 1:
        fix = f"declare keys_delta = {show(budget.delta / 10)}, or write sample_rate=1"
        raise refused("delta", "training on samples needs a keys_delta", "delta", fix)
    whole = Filter(budget.epsilon, budget.delta, budget.keys_delta)
    if delta is None:
        known = price_delta(whole, epsilon, event=rate < 1)
    else:
        known = within("delta", delta, 0, budget.delta, f"delta={show(budget.delta / 10)}")
    return known, Fraction(0) if rate == 1 else event_delta(whole, known)


def _two_values(column: Column, positive: Value | None) -> OneHot:
    """The target of a logistic model: the negative value, then the positive one, by default the second declared."""
    values = column.keys()
    if values is None or len(values) != 2:
        fix = f'declare {column.name} as boolean, or with two values, or write model="linear"'
        raise refused("target", f"{column.name} must have exactly two declared values", "target", fix)
    if positive is None:
        return OneHot(column, values)
    if not isinstance(positive, type(values[0])) or positive not in values:
        fix = f"write positive={values[1]!r}" if column.type is not Type.NUMBER else "name one of its values"
        raise refused("target", f"positive is not a declared value of {column.name}", "positive", fix)
    return OneHot(column, tuple(sorted(values, key=lambda value: value == positive)))


def _bounded(column: Column, positive: Value | None) -> Scaled:
    """The target of a linear model: bounds make it [−1, 1]."""
    if positive is not None:
        raise refused("target", "a linear model has no positive class", "positive", "leave positive out")
    known = feature(column)
    if not isinstance(known, Scaled) or column.type is None or not column.type.numeric:
        fix = f"declare {column.name} as a number with min and max"
        raise refused("target", f"{column.name} has no declared bounds", "target", fix)
    return known


def _features(table: Table, target: Column, names: Sequence[str] | None) -> Features:
    """The named features; without names, every column that can be one but the target and the person."""
    parts = []
    for column in columns_of(table, names, "features"):
        if column is target or column.name == table.person:
            if names is not None:
                what = "the target" if column is target else "the person"
                raise refused("columns", f"{column.name} is {what}", "features", "leave it out")
            continue
        part = feature(column)
        if part is not None:
            parts.append(part)
        elif names is not None:
            fix = f"declare values or bounds for {column.name}, or leave it out"
            raise refused("columns", f"{column.name} has neither declared values nor bounds", "features", fix)
    if not parts:
        raise refused(
            "columns", "no column can be used as a feature", "features", "declare values or bounds for some columns"
        )
    chosen = Features(tuple(parts))
    if len(chosen.names) > MOST_FEATURES:
        message = f"{len(chosen.names):,} features are too many"
        raise refused("columns", message, "features", f"name columns with at most {MOST_FEATURES:,} values in all")
    return chosen


def _word(value: Value | None) -> str:
    return show(Fraction(value)) if isinstance(value, int | Fraction) else str(value)
