"""From randomised reports to estimates: unbiased with intervals, and consistent beside them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import QuestionError
from discreet.local.answers import NumberLattice
from discreet.local.channels import Counts, Floats, Hashed, Projective, Response, composed, passed
from discreet.local.hybrid import Hybrid
from discreet.texts import visible

if TYPE_CHECKING:
    import pandas

IMPLAUSIBLE = 1e-6
COLUMNS = ("value", "estimate", "low", "high", "consistent")
MOST_LINES, LONGEST = 20, 40
"""Of a text for people: values, and letters of each."""


@dataclass(frozen=True)
class Oracle:
    """How supports become shares: a channel, perhaps randomised again, by n reports.

    `sampled` says that who reports through this channel was drawn by lot among the respondents, `most` how many of the
    reports may be of one respondent, through one remembered report.
    """

    channel: Response | Projective | Hashed
    again: Response | None
    reports: int
    sampled: bool
    most: int = 1

    def shares(self, supports: Counts) -> Floats:
        """Unbiased: (C/n − q)/(p − q). Without a report nothing is known, and the variance is boundless."""
        p, q = map(float, composed(self.channel, self.again))
        found: Floats = (supports / self._known - q) / (p - q) if self.reports else np.zeros(len(supports))
        return found

    @property
    def _known(self) -> float:
        return self.reports or 1e-9

    def variances(self, shares: Floats) -> Floats:
        """Of the estimates, where these are the true shares f, each within [0, 1].

        One report supports the value with chance p if it is the truth and q otherwise, so a fixed population has
        (f·p(1 − p) + (1 − f)·q(1 − q))/(n(p − q)²); where the lot decides who reports, s(1 − s)/(n(p − q)²) with s =
        q + f(p − q). Two reports of one respondent share the remembered one: their supports have a covariance of
        (kept − gained)² times the remembered support's variance, which is the largest when the answer does not change.
        """
        p, q = map(float, composed(self.channel, self.again))
        first, other = float(self.channel.truth), float(self.channel.other)
        kept, gained = map(float, passed(self.channel, self.again))
        together = (self.most - 1) * (kept - gained) ** 2
        total = self._spread(p, q, shares) + together * self._spread(first, other, shares)
        found: Floats = total / (self._known * (p - q) ** 2)
        return found

    def combined(self, weights: Floats, shares: Floats) -> float:
        """The variance of Σ weight·estimate, where the lot decides who reports and these are the true shares.

        A report of randomised response supports one value alone: Σ w²s − (Σ ws)². Through a geometry the supports of
        two values are as good as uncorrelated: Σ w²s(1 − s).
        """
        p, q = map(float, composed(self.channel, self.again))
        first, other = float(self.channel.truth), float(self.channel.other)
        kept, gained = map(float, passed(self.channel, self.again))
        squares, one_alone = weights**2, isinstance(self.channel, Response)

        def spread(likely: float, unlikely: float) -> float:
            supported = unlikely + shares * (likely - unlikely)
            if one_alone:
                return float(squares @ supported - (weights @ supported) ** 2)
            return float(squares @ (supported * (1 - supported)))

        total = spread(p, q) + (self.most - 1) * (kept - gained) ** 2 * spread(first, other)
        return total / (self._known * (p - q) ** 2)

    def _spread(self, p: float, q: float, shares: Floats) -> Floats:
        if self.sampled:
            supported = q + shares * (p - q)
            return supported * (1 - supported)
        return shares * p * (1 - p) + (1 - shares) * q * (1 - q)

    @property
    def weight(self) -> float:
        """As how many respondents one made-up report can count: (1 − q)/(p − q)."""
        p, q = map(float, composed(self.channel, self.again))
        return (1 - q) / (p - q)


@dataclass(frozen=True, repr=False)
class Estimate:
    """Estimates of one attribute in one window: `rows` with value, estimate, low, high and consistent.

    `estimate` is unbiased and may lie below 0; low and high enclose the truth among those who reported with
    `confidence`, each for itself. `consistent` adds up to 1 and is never below 0 (Norm-Sub; Wang, Lopuhaä-Zwakenberg,
    Li, Skoric & Li 2020), for which it is *biased*: small values are pulled to 0. For a mean it is the estimate within
    the range, and for texts cut off at 0 and 1. `weight` is as how many respondents one made-up report can count,
    `reach` how far apart two answers move an estimate of one respondent; `warnings` says what cannot be chance.
    """

    rows: Sequence[Mapping[str, Any]]
    reports: int
    epsilon: float
    confidence: float
    window: str
    weight: float
    warnings: tuple[str, ...] = ()
    reach: float = 1.0

    def to_pandas(self) -> pandas.DataFrame:
        """Gives the rows as a frame.

        Its `attrs` say how many reports there are, and which column is biased. Raises QuestionError where pandas is
        missing (extra `pandas`).
        """
        try:
            module = importlib.import_module("pandas")
        except ImportError:
            fix = 'run pip install "discreet[pandas]"'
            raise QuestionError("extra", "this needs pandas", where="to_pandas", fix=fix) from None
        frame: pandas.DataFrame = module.DataFrame(list(self.rows), columns=list(COLUMNS))
        frame.attrs.update(
            reports=self.reports,
            epsilon=self.epsilon,
            confidence=self.confidence,
            window=self.window,
            biased=["consistent"],
        )
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values; of `rows`, `consistent` is biased."""
        facts = ("window", "reports", "epsilon", "confidence", "weight")
        rows = [{**row, "value": str(row["value"])} for row in self.rows]
        return {**{name: getattr(self, name) for name in facts}, "rows": rows, "warnings": list(self.warnings)}

    def __repr__(self) -> str:
        lines = [f"{self.window}: {self.reports:,} reports, ε {self.epsilon:g}; `consistent` is biased"]
        lines += listed([(str(row["value"]), row) for row in self.rows[:MOST_LINES]])
        lines += [f"  … and {len(self.rows) - MOST_LINES:,} more"] if len(self.rows) > MOST_LINES else []
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])

    def shift(self, fakes: int) -> float:
        """Says by how much so many made-up reports among these can raise one estimate, in its own unit, at most."""
        return fakes / max(1, self.reports) * self.weight * self.reach


def listed(named: Sequence[tuple[str, Mapping[str, float]]]) -> list[str]:
    """Lines of estimates with their intervals, below each other whatever letters the names have."""
    from rich.cells import cell_len, set_cell_size

    if not named:
        return []
    names = [visible(name) for name, _ in named]
    names = [one if cell_len(one) <= LONGEST else set_cell_size(one, LONGEST - 1).rstrip() + "…" for one in names]
    wide = max(map(cell_len, names))
    shown = ("estimate", "low", "high", "consistent")
    numbers = [[f"{row[name]:.4f}" for name in shown if name in row] for _, row in named]
    sides = [max(map(len, column)) for column in zip(*numbers, strict=True)]
    lines = []
    for name, row in zip(names, numbers, strict=True):
        point, low, high, *settled = (number.rjust(side) for number, side in zip(row, sides, strict=True))
        line = f"  {set_cell_size(name, wide)}  {point}  [{low}, {high}]"
        lines.append("  consistent ".join([line, *settled]))
    return lines


def quantile_of(confidence: float) -> float:
    """How many standard deviations enclose a normal variable with this confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def shares_of(
    values: Sequence[Any], oracle: Oracle, supports: Counts, confidence: float
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Rows and warnings for all values of one attribute."""
    shares = oracle.shares(supports)
    return rows_of(values, shares, oracle.variances(np.clip(shares, 0, 1)), confidence)


def rows_of(
    values: Sequence[Any], shares: Floats, variances: Floats, confidence: float
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The same from estimates and their variances."""
    inside, deviations = np.clip(shares, 0, 1), np.sqrt(variances)
    wide = quantile_of(confidence) * deviations
    settled = norm_sub(shares)
    columns = (shares, shares - wide, shares + wide, settled)
    rows = [
        dict(zip(COLUMNS, (value, *numbers), strict=True))
        for value, *numbers in zip(values, *(column.tolist() for column in columns), strict=True)
    ]
    far = quantile_of(1 - IMPLAUSIBLE / len(shares))
    if bool(np.any(np.abs(shares - inside) > far * deviations)):
        return rows, ("some shares lie further outside 0 to 1 than chance allows: reports may be made up",)
    return rows, ()


def mean_of(
    lattice: NumberLattice, channel: Hybrid, counts: Counts, confidence: float, sampled: bool
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The row of a mean, and warnings. Where all report, the randomisation alone makes it vary: its variance is at most
    the channel's largest, which is nearly the same for all answers. Where the lot decides who reports (`sampled`), so
    does the choice of them: it is that of the reports' own numbers, which has the population's in it, if that is
    larger."""
    reports = int(counts.sum())
    step = float(lattice.step)
    mean = channel.mean(counts)
    variance = float(channel.worst)
    if sampled:
        variance = max(variance, float(counts @ (channel.numbers - mean) ** 2) / max(1, reports - 1))
    deviation = step * math.sqrt(variance / reports)
    wide = quantile_of(confidence) * deviation
    value = lattice.value(mean)
    settled = min(max(value, float(lattice.low)), float(lattice.high))
    rows = [dict(zip(COLUMNS, ("mean", value, value - wide, value + wide, settled), strict=True))]
    if abs(value - settled) > quantile_of(1 - IMPLAUSIBLE) * deviation:
        return rows, ("the mean lies further outside the range than chance allows: reports may be made up",)
    return rows, ()


def norm_sub(shares: Floats) -> Floats:
    """max(f − t, 0) with the t for which they add up to 1."""
    falling = np.sort(shares)[::-1]
    surplus = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    last = int(np.flatnonzero(falling > surplus)[-1])
    found: Floats = np.maximum(shares - surplus[last], 0)
    return found
