"""Boosting for queries (Dwork, Rothblum & Vadhan 2010; Dwork & Roth 2014, section 6.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median_low

from discreet.reference.draws import ExponentialDraws, PublicDraws
from discreet.textbook.base import BaseGenerator
from discreet.textbook.composition import each, root_rho, together
from discreet.textbook.linear import FractionalGenerator
from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_c.construction import Synopsis, explained, of_this_universe, shown
from discreet.trusted.ring_c.universe import Database, Queries, number, price, refuse

STEP = Fraction(4, 5)
"""α, the weight of a round: the best one for η = 1/3, ½ ln((1 + 2η)/(1 − 2η)) = 0.8047, rounded to a plain number."""

ETA = Fraction(1, 3)


def rounds_needed(queries: Queries | int) -> int:
    """The least T with |Q|·(cosh α − 2η·sinh α)^T < 1 (see `Boosting`): about 3.4 ln|Q|, where the book has ln|Q|/η² =
    9 ln|Q|."""
    size = queries if isinstance(queries, int) else queries.size
    shrinks = math.cosh(STEP) - 2 * float(ETA) * math.sinh(STEP)
    return math.floor(math.log(size) / -math.log(shrinks) + 1e-9) + 1


@dataclass(frozen=True)
class Boosted:
    """What boosting released: a synopsis of each round that gave one. `error` holds for all queries with probability 1
    − T·beta, in steps of the queries (persons, for counts)."""

    synopses: tuple[Synopsis, ...]
    error: float

    def answers(self, queries: Queries) -> list[int]:
        """For each query the median of the synopses' answers (the lower one of two)."""
        found = [synopsis.answers(queries) for synopsis in self.synopses]
        return [median_low(column) for column in zip(*found, strict=True)]


@dataclass(frozen=True)
class Boosting:
    """A base synopsis generator run again and again, each time on queries drawn with more weight where the synopses so
    far are wrong; each query is answered by the median of all rounds.

    Round t = 1..T draws k queries from D_t, runs the generator on them, and sets for every query q with d = |q(x) −
    A_t(q)|: a_t(q) = 1 where d ≤ λ, −1 where d ≥ λ + μ, and 1 − 2(d − λ)/μ between. D_{t+1}(q) ∝ e^(−α·Σ_{j ≤ t}
    a_j(q)). T is fixed beforehand: `generator.runs`, at least `rounds_needed`. `epsilon` and `delta` are the price of
    the draws; the generator's own price is of all its runs. Unit: steps of the queries (persons, for counts).

    Draws. With g_j(q) = min(μ, max(0, λ + μ − d)), a_j = 2g_j/μ − 1, so that D_{t+1} ∝ e^(−(2α/μ)·Σ g_j(q)):
    exponential mechanisms on the scores −Σ g_j, which are integers, as exact answers, decoded answers, λ and μ are. α =
    4/5 is rational, so weights are those of `ExponentialDraws`: floating point takes no part.

    Privacy of the draws. One person moves d by at most the queries' sensitivity s, g_j by as much (it is 1-Lipschitz in
    d, as λ and μ are the same on both sides, fixed by what was released), and the score after t rounds by at most t·s,
    up or down. A draw from D_{t+1} therefore has bounded range r_t = (2α/μ)·2·t·s = 4α·t·s/μ, and is (r_t²/8)-zCDP
    (Cesar & Rogers 2021) whatever was released before; D_1 is uniform and costs nothing. k draws in each round add up
    to

        ρ = Σ_{t=1}^{T−1} k·r_t²/8 = 2k·(α·s/μ)²·(T − 1)·T·(2T − 1)/6,

    and μ is the least integer for which this ρ implies (ε, δ)-DP (`root_rho`), or, where that is less, for which the
    sum of all k·r_t, 2k·α·s·T·(T − 1)/μ, is at most ε. (The book composes k·T draws at the worst r_T by Corollary
    3.21: μ = 8α·T·s·√(2kT ln(1/δ))/ε.) The price of the draws and that of the generator's answers, which alternate,
    add up (`composition`).

    Utility (Theorem 6.1, with the constants kept). Let u_t(q) = e^(−α·Σ_{j ≤ t} a_j(q)), Z_t = Σ_q u_t(q), Z_0 = |Q|.
    Z_t/Z_{t−1} = E_{q ~ D_t}[e^(−α·a_t(q))]. As −1 ≤ a ≤ 1 and by convexity, e^(−αa) ≤ cosh α − a·sinh α; if the
    generator keeps its promise, a_t = 1 on D_t-weight at least 1/2 + η, so E[a_t] ≥ 2η and the quotient is at most
    cosh α − 2η·sinh α = 0.7454 (η = 1/3, α = 4/5). If the median is wrong by more than λ + μ, at least half of the
    answers are, on the same side; their a_t = −1, so Σ a_t ≤ 0 and u_T(q) ≥ 1. But Z_T ≤ |Q|·0.7454^T < 1. All T rounds
    keep the promise with probability 1 − T·β. A round without a synopsis has broken it; it changes no weight.
    """

    generator: BaseGenerator | FractionalGenerator
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", price(self.epsilon))
        object.__setattr__(self, "delta", number("delta", self.delta, 0, 1, zero=True))
        needed = rounds_needed(self.queries)
        if self.rounds < needed:
            message = (
                f"{self.queries.size:,} queries need {needed} rounds, and the generator's price is for {self.rounds}"
            )
            raise refuse(message, "generator", f"write runs={needed}")

    @property
    def queries(self) -> Queries:
        return self.generator.queries

    @property
    def rounds(self) -> int:
        """T."""
        return self.generator.runs

    @property
    def beta(self) -> Fraction:
        """The bound may fail with this probability: T times the generator's."""
        return min(Fraction(1), self.rounds * self.generator.beta)

    @property
    def mu(self) -> int:
        """μ in steps: over how many steps of error a query's weight rises."""
        rounds, moved = self.rounds, STEP * self.queries.sensitivity * self.generator.k
        basic = math.ceil(2 * moved * rounds * (rounds - 1) / self.epsilon)
        if self.delta:
            squares = Fraction(rounds * (rounds - 1) * (2 * rounds - 1), 6)
            root = root_rho(self.epsilon, self.delta)
            if root > 0:
                spread = sqrt_ceiling(2 * squares / self.generator.k) * moved
                basic = min(basic, math.ceil(spread / root))
        return max(1, basic)

    def draws(self, rounds: int) -> ExponentialDraws:
        """How queries are drawn after so many rounds, at least 1: rate 2α/μ."""
        moved = rounds * self.queries.sensitivity
        return ExponentialDraws(4 * STEP * moved / self.mu, moved, draws=self.generator.k)

    def loss(self) -> Batch:
        """Of everything: the number of rows, all answers, all draws."""
        added = sum((self.draws(done).epsilon for done in range(1, self.rounds)), Fraction(0)) * self.generator.k
        return Batch((*self.generator.loss().parts, together(self.epsilon, self.delta, added)))

    def bound(self, rows: int) -> float:
        """With probability 1 − T·beta all queries are answered within this, in the queries' own unit: λ + μ."""
        return self.generator.bound(rows) + float(self.mu * self.queries.step)

    def theorem(self) -> tuple[int, float]:
        """The book's T = ln|Q|/η², and its μ in steps by Corollary 3.21 for so many rounds of k draws."""
        rounds = max(1, math.ceil(math.log(self.queries.size) / float(ETA) ** 2))
        draws = rounds * self.generator.k
        each_epsilon = float(each(self.epsilon, self.delta, draws))
        return rounds, 4 * float(STEP) * rounds * self.queries.sensitivity / each_epsilon

    def explain(self, rows: int) -> str:
        """The parameters, the book's constants beside ours, our bound, and the price, in words; and whether the bound
        says anything for a database of so many rows."""
        rounds, width = self.theorem()
        generator, step = self.generator, float(self.queries.step)
        lines = [
            f"T = {self.rounds} rounds of k = {generator.k:,} queries, noise of scale {float(generator.b) * step:.6g}",
            f"lambda = {shown(generator.bound(rows))}, mu = {shown(self.mu * step)}",
            f"the book's constants: T = {rounds}, mu = {shown(width * step)}",
            f"price: epsilon {float(generator.epsilon):.6g} for answers and {float(self.epsilon):.6g} for draws, "
            f"delta {float(generator.delta):.6g} and {float(self.delta):.6g}",
        ]
        top = generator.most_rows if isinstance(generator, BaseGenerator) else rows
        widest = float(self.queries.widest(top) * self.queries.step)
        title = "boosting for queries (Dwork, Rothblum & Vadhan 2010; Dwork & Roth 2014, Theorem 6.1)"
        return explained(title, lines, self.bound(rows), widest, rows, self.beta, "all answers are")

    def release(self, database: Database) -> Boosted | None:
        """The synopses of all rounds; None where no round gave one."""
        of_this_universe(database, self.queries)
        generator = self.generator
        rows = generator.noisy_rows(database)
        tolerance, mu = generator.tolerance(rows), self.mu
        exact = self.queries.answers(database.counts)
        kept = [0] * self.queries.size  # Σ g_j
        found: list[Synopsis] = []
        for done in range(self.rounds):
            synopsis = generator.run(database, self._places(done, kept), rows)
            if synopsis is not None:
                found.append(synopsis)
                kept = _kept(kept, exact, synopsis.answers(self.queries), tolerance, mu)
        if not found:
            return None
        return Boosted(tuple(found), float((tolerance + mu) * self.queries.step))

    def _places(self, rounds: int, kept: Sequence[int]) -> list[int]:
        """The queries of a round, after so many before it."""
        if rounds == 0:
            return PublicDraws(self.generator.k).release([1] * self.queries.size)
        return self.draws(rounds).release([-value for value in kept])


def _kept(kept: Sequence[int], exact: Sequence[int], decoded: Sequence[int], tolerance: int, mu: int) -> list[int]:
    """Σ g_j with one round more: g = μ where the answer is within λ, 0 where it is off by λ + μ or more."""
    return [
        before + min(mu, max(0, tolerance + mu - abs(true - answer)))
        for before, true, answer in zip(kept, exact, decoded, strict=True)
    ]
