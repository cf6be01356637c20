"""What a synthesis will spend, fixed before anything is measured: one batch with one loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import Batch, BoundedRange, Loss, compose
from discreet.accounting.curves import mu_of_budget
from discreet.accounting.loss import Single
from discreet.errors import QuestionError
from discreet.exact import Number, ceiling, floor, fraction
from discreet.markov import Clique, Domain
from discreet.mechanisms import Gaussian

METHODS = ("adaptive", "mst", "independent", "workload")
MOST_TRIPLES, MOST_CELLS = 1000, 100_000

# Shares of the whole μ², and rounds for each column: chosen on two public tables (see bench/synthesis.py).
SINGLES, SELECTION, DISTANCES, ROUNDS = 0.15, 0.06, 0.04, 2.0
_DIGITS, _HALVINGS = 6, 24


@dataclass(frozen=True)
class Round:
    """One marginal to measure: what its selection costs (0 where nothing is selected), and its noise in rows."""

    selection: Fraction
    sigma: Fraction


@dataclass(frozen=True)
class Schedule:
    """The measurements of a synthesis, in the order in which they are made; which marginals they are of is chosen then.

    Unit: a person with at most `rows_per_person` rows. Neighbours: one person added or removed. A marginal of
    counts then moves by at most rows_per_person in ℓ1 and so in ℓ2, and a score w·‖exact − prediction‖₁ − penalty
    by at most w·rows_per_person, up or down. So a measurement is (rows_per_person/σ)-GDP and a selection has
    bounded range ε = 2·rate·rows_per_person·max w. At the end the distances ‖exact − published‖₁ of the workload's
    k marginals are measured as one vector, which moves by at most √k·rows_per_person in ℓ2. All parts are fixed
    here, so together they cost what the batch `loss` does, whatever is chosen adaptively and wherever it stops (see
    `discreet.accounting.batch`).
    """

    method: str
    workload: tuple[Clique, ...]
    singles: tuple[str, ...]
    single_sigma: Fraction
    rounds: tuple[Round, ...]
    distance_sigma: Fraction
    rows_per_person: int
    extra_events: tuple[Loss, ...]

    @staticmethod
    def of(
        method: str,
        domain: Domain,
        epsilon: Number,
        delta: Number,
        rows_per_person: int = 1,
        extra_events: Sequence[Loss] = (),
        workload: Sequence[Clique] | None = None,
        singles: Sequence[str] | None = None,
    ) -> Schedule:
        """The schedule of a method that together with `extra_events` is (ε, δ)-DP.

        `workload`: the marginals that matter; all of three columns where they are at most a thousand, else all of two.
        `singles`: the columns to be measured alone at first, all unless said; leave out those handed over as `initial`.
        Raises QuestionError where the method is unknown, the budget no budget, or the extra events leave nothing.
        """
        if method not in METHODS:
            raise QuestionError("method", "no such method", where="method", fix=f"one of {', '.join(METHODS)}")
        if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, int) or rows_per_person < 1:
            raise QuestionError("rows", "a person has at least one row", where="rows_per_person", fix="write 1 or more")
        total, least = _budget(epsilon, delta)
        wanted = tuple(domain.clique(one) for one in workload) if workload is not None else all_marginals(domain)
        first = domain.names if singles is None else domain.clique(singles)
        shares = _shares(method, domain, wanted, len(first))

        def scaled(factor: float) -> Schedule:
            return Schedule(
                method,
                wanted,
                first,
                _sigma(shares.single * factor, rows_per_person),
                tuple(
                    Round(floor(Fraction(selection * factor), _DIGITS), _sigma(mu * factor, rows_per_person))
                    for selection, mu in shares.rounds
                ),
                _sigma(math.sqrt(DISTANCES / max(1, len(wanted))) * factor, rows_per_person),
                rows_per_person,
                tuple(extra_events),
            )

        return _largest(scaled, total, least)

    @property
    def loss(self) -> Batch:
        """Everything that is spent, with the extra events, as one declared batch."""
        found: list[Single] = []
        for event in self.extra_events:
            found += event.parts if isinstance(event, Batch) else (event,)
        square = self.rows_per_person**2
        found += [Gaussian(self.single_sigma).loss(square) for _ in self.singles]
        for one in self.rounds:
            if one.selection:
                found.append(BoundedRange(one.selection))
            found.append(Gaussian(one.sigma).loss(square))
        if self.workload:
            found.append(Gaussian(self.distance_sigma).loss(square * len(self.workload)))
        return Batch(tuple(found))


@dataclass(frozen=True)
class _Shares:
    """μ of each single column, and ε and μ of each round, before scaling."""

    single: float
    rounds: tuple[tuple[float, float], ...]


def all_marginals(domain: Domain) -> tuple[Clique, ...]:
    """All of three columns if there are at most a thousand of them, else all of two; fewer where there are no three.

    In place of one with more than a hundred thousand cells, which noise would hide, its parts.
    """
    columns = len(domain.names)
    found: list[Clique] = []
    inside: set[Clique] = set()
    for size in range(min(columns, 3 if math.comb(columns, 3) <= MOST_TRIPLES else 2), 0, -1):
        for clique in itertools.combinations(domain.names, size):
            if clique not in inside and domain.cells(clique) <= MOST_CELLS:
                found.append(clique)
                inside.update(part for less in range(1, size) for part in itertools.combinations(clique, less))
    return tuple(found) or tuple((name,) for name in domain.names)


def _shares(method: str, domain: Domain, workload: Sequence[Clique], singles: int) -> _Shares:
    """How the whole μ² = 1 is divided; the distances have their share.

    A selection of bounded range ε is counted as μ² = ε²/3 here, the variance of the loss that is composed for it.

    For a fixed workload, marginals with more cells get more: minimising Σ cells_i/μ_i for a given Σ μ_i² gives
    μ_i ∝ cells_i^(1/3).
    """
    columns, whole = len(domain.names), 1 - DISTANCES
    if method == "independent" or not workload or (columns == 1 and method != "workload"):
        return _Shares(math.sqrt(whole / max(1, singles)), ())
    first = SINGLES if singles else 0.0
    if method == "workload":
        wanted = [domain.cells(clique) ** (1 / 3) for clique in workload]
        scale = math.sqrt((whole - first) / sum(weight**2 for weight in wanted))
        return _Shares(math.sqrt(first / max(1, singles)), tuple((0.0, weight * scale) for weight in wanted))
    count = columns - 1 if method == "mst" else max(4, math.ceil(ROUNDS * columns))
    each = (math.sqrt(3 * SELECTION / count), math.sqrt((whole - first - SELECTION) / count))
    return _Shares(math.sqrt(first / max(1, singles)), (each,) * count)


def _sigma(mu: float, rows_per_person: int) -> Fraction:
    """The deviation in rows; 0 where nothing is measured."""
    return ceiling(rows_per_person / Fraction(mu), _DIGITS) if mu else Fraction(0)


def _budget(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    try:
        total, least = fraction(epsilon), fraction(delta)
    except ValueError as error:
        raise QuestionError("budget", "the budget is no number", where="epsilon", fix="write decimals") from error
    if total <= 0 or not 0 < least < 1:
        raise QuestionError(
            "budget",
            "marginals are measured with Gaussian noise, which needs epsilon above 0 and delta between 0 and 1",
            where="epsilon, delta",
            fix="epsilon=1, delta=1e-9",
        )
    return total, least


def _largest(scaled: Callable[[float], Schedule], epsilon: Fraction, delta: Fraction) -> Schedule:
    """The schedule with the largest factor whose batch is found to be (ε, δ)-DP: bisection on an upper bound.

    With everything Gaussian the factor would be the budget's μ.
    """
    factor = float(mu_of_budget(epsilon, delta))
    low, high, best = 0.0, 1.5 * factor, None
    for _ in range(_HALVINGS):
        tried = scaled(factor)
        if _fits(tried.loss.parts, epsilon, delta):
            low, best = factor, tried
        else:
            high = factor
        if high - low <= 1e-4 * high:
            break
        factor = (low + high) / 2
    if best is None:
        raise QuestionError(
            "budget", "what is spent beforehand leaves nothing to measure with", where="epsilon", fix="raise epsilon"
        )
    return best


def _fits(parts: Iterable[Loss], epsilon: Fraction, delta: Fraction) -> bool:
    found = compose(parts)
    return found.certain < float(delta) and Fraction(found.rough_epsilon(delta)) <= epsilon
