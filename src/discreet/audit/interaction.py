"""An analyst against a filter: what all answers together give away, computed by going through every course of events.

A filter says which release may still be made. Each loss is played by the mechanism that gives away most of what the
loss allows, with finitely many outcomes. The analyst sees each outcome and then chooses the next release; the δ of the
whole interaction at the budget's ε is a sum over all courses, and must not be above the budget's δ. Nothing is drawn.

Two analysts. `best` looks for the worst order itself: of a few releases it asks, at each point, for the one from which
most can still be made (dynamic programming backwards), so no adaptive analyst with that menu does better. `script`
follows a fixed order for hundreds of rounds, where courses with the same loss so far are counted together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

from discreet.accounting import Approximate, Batch, DiscreteLaplace, Filter, Gaussian, Loss, Pure
from discreet.audit.claims import TINY, Claim, Result
from discreet.audit.targets import ComputedAttack, Target
from discreet.catalog import Budget

NEVER = math.inf
"""The loss of an outcome that the other neighbour cannot have."""

BINS = 12  # outcomes that a normal variable is cut into


class Guard(Protocol):
    """What decides on releases: a filter, or one that is wrong."""

    def admits(self, loss: Any, /) -> bool:
        """Whether one more release may be made."""

    def charge(self, loss: Any, /) -> Guard:
        """The state afterwards; this one stays as it is."""


Outcomes = Mapping[float, float]
"""P₁ of the outcomes with each loss ln(P₁/P₀). What only P₀ can give does not count: it gives the attack nothing."""


def worst_case(loss: Loss) -> Outcomes:
    """A mechanism that this loss allows, and that gives away as much as it can; for a normal variable, a part of it."""
    if isinstance(loss, Batch):
        whole: Outcomes = {0.0: 1.0}
        for part in loss.parts:
            whole = _both(whole, worst_case(part))
        return whole
    if isinstance(loss, Gaussian):
        return _normal(float(loss.mu))
    if isinstance(loss, Approximate):
        plain = worst_case(Pure(loss.epsilon))
        delta = float(loss.delta)
        return {**{bit: (1 - delta) * mass for bit, mass in plain.items()}, NEVER: delta}
    if isinstance(loss, DiscreteLaplace):
        return _laplace(float(loss.epsilon), loss.sensitivity)
    if loss.pure is None:
        raise ValueError("no mechanism is known that has this loss")
    epsilon = float(loss.pure)
    if epsilon == 0:
        return {0.0: 1.0}
    truth = 1 / (1 + math.exp(-epsilon))
    return {epsilon: truth, -epsilon: 1 - truth}


def _both(one: Outcomes, two: Outcomes) -> Outcomes:
    found: dict[float, float] = defaultdict(float)
    for first, mass in one.items():
        for second, other in two.items():
            found[first + second] += mass * other
    return found


def _laplace(epsilon: float, sensitivity: int) -> Outcomes:
    """Discrete Laplace noise on `sensitivity` (P₁) and on 0 (P₀), by how far the outcome lies between them."""
    rate = epsilon / sensitivity
    q = math.exp(-rate)
    found: dict[float, float] = defaultdict(float)
    found[epsilon] = 1 / (1 + q)
    for below in range(1, sensitivity):
        found[epsilon - 2 * rate * below] += (1 - q) / (1 + q) * q**below
    found[-epsilon] += q**sensitivity / (1 + q)
    return found


def _normal(mu: float) -> Outcomes:
    """N(μ, 1) against N(0, 1), seen through bins: less is given away than by the number itself."""
    if mu == 0:
        return {0.0: 1.0}
    edges = [-NEVER, *(mu / 2 + 10 * (place / (BINS - 2) - 0.5) for place in range(BINS - 1)), NEVER]

    def mass(low: float, high: float, mean: float) -> float:
        if low - mean > 0:
            low, high, mean = -high, -low, -mean  # on the side where no digits are lost
        return (math.erfc(-(high - mean) / math.sqrt(2)) - math.erfc(-(low - mean) / math.sqrt(2))) / 2

    found: dict[float, float] = defaultdict(float)
    for low, high in pairwise(edges):
        one, zero = mass(low, high, mu), mass(low, high, 0)
        if one > 0:
            found[math.log(one / zero) if zero > 0 else NEVER] += one
    return found


def gain(loss: float, epsilon: float) -> float:
    """What a course of this loss adds to δ(ε), as a part of its probability: (1 − e^(ε − loss))⁺."""
    return 1.0 if loss == NEVER else max(0.0, -math.expm1(epsilon - loss))


def best(guard: Guard, menu: Sequence[Loss], rounds: int, epsilon: float) -> float:
    """The δ at `epsilon` that the best analyst reaches with this menu in so many rounds."""
    played = [(loss, worst_case(loss)) for loss in menu]
    places: dict[tuple[Guard, int], int] = {}
    steps: list[list[tuple[int, Outcomes]]] = []  # of each state: where each release that it admits leads
    known: dict[tuple[int, float], float] = {}

    def place(state: Guard, left: int) -> int:
        if (state, left) not in places:
            places[state, left] = here = len(steps)
            steps.append([])
            if left:
                admitted = [(loss, outcomes) for loss, outcomes in played if state.admits(loss)]
                steps[here] = [(place(state.charge(loss), left - 1), outcomes) for loss, outcomes in admitted]
        return places[state, left]

    def value(here: int, lost: float, left: int) -> float:
        stop = gain(lost, epsilon)
        if left == 0 or lost == NEVER:
            return stop
        key = (here, round(lost, 12))
        if key not in known:
            rows = [
                math.fsum(mass * value(after, lost + bit, left - 1) for bit, mass in outcomes.items())
                for after, outcomes in steps[here]
            ]
            known[key] = max(stop, *rows) if rows else stop
        return known[key]

    return value(place(guard, rounds), 0.0, rounds)


def script(guard: Guard, order: Sequence[tuple[Loss, int]], epsilon: float) -> tuple[float, int]:
    """The δ at `epsilon` after asking for each loss so often, as far as it is admitted; and how many were."""
    masses: dict[float, tuple[float, float]] = {0.0: (0.0, 1.0)}  # by rounded loss: the loss, and P₁ of its courses
    admitted = 0
    for loss, times in order:
        outcomes = worst_case(loss)
        for _ in range(times):
            if not guard.admits(loss):
                break
            guard = guard.charge(loss)
            admitted += 1
            longer: dict[float, tuple[float, float]] = {}
            for lost, mass in masses.values():
                for bit, chance in outcomes.items():
                    total = lost + bit
                    first, before = longer.get(round(total, 9), (total, 0.0))
                    longer[round(total, 9)] = first, before + mass * chance
            masses = longer
    return math.fsum(mass * gain(lost, epsilon) for lost, mass in masses.values()), admitted


@dataclass(frozen=True)
class Course:
    """One analyst against one filter."""

    name: str
    guard: Guard
    claim: Claim
    menu: tuple[Loss, ...] = ()
    rounds: int = 0
    order: tuple[tuple[Loss, int], ...] = ()

    def play(self) -> Result:
        """Plays the `menu` in the best way for the analyst, in `rounds`, or without one the `order` as it stands; what
        is found is the δ at the claim's ε."""
        if self.menu:
            found = best(self.guard, self.menu, self.rounds, self.claim.epsilon)
            event = f"the best of all orders of {len(self.menu)} releases, {self.rounds} rounds"
        else:
            found, admitted = script(self.guard, self.order, self.claim.epsilon)
            event = f"{admitted} releases admitted of {sum(times for _, times in self.order)}"
        found = found if found > TINY / 1000 else 0.0  # what rounding leaves of a sum of losses that is ε exactly
        return Result(self.name, "interaction", self.claim, found, self.claim.exceeded(found), event)


def courses(name: str, guard: Guard, budget: Budget, *, rounds: int = 4) -> list[Course]:
    """What is tried on any filter: sizes follow from its budget."""
    epsilon, delta, keys = budget.epsilon, budget.delta, budget.keys_delta
    claim = Claim(float(epsilon), float(delta), of_delta=True)
    small: list[Loss] = [Pure(epsilon / 5), Pure(epsilon * Fraction(826493603072298, 10**15))]
    catastrophe = [Approximate(Fraction(0), keys if keys else delta)] if delta else []
    mixed: list[Loss] = [Pure(epsilon / 5), DiscreteLaplace(epsilon / 4, 3), Gaussian(epsilon / 3)]
    ends = Approximate(epsilon / 4, (keys or delta) / 2)
    return [
        Course(f"{name}: one answer decides the next", guard, claim, (*small, *catastrophe), 3),
        Course(f"{name}: what fits last", guard, claim, (*mixed, *([ends] if delta else [])), rounds),
        Course(f"{name}: one large, many small", guard, claim, order=(
            (Pure(epsilon * Fraction(99, 100)), 1), (Pure(epsilon / 100), 558))),
        Course(f"{name}: many small, one large", guard, claim, order=(
            (Pure(epsilon / 40), 400), (Pure(epsilon / 2), 1), (Pure(epsilon), 1))),
        Course(f"{name}: many counts", guard, claim, order=(
            (DiscreteLaplace(epsilon / 25, 1), 500), (DiscreteLaplace(epsilon / 5, 2), 5))),
    ]  # fmt: skip


BUDGETS = (
    Budget(Fraction(1), Fraction(1, 100), Fraction(0)),
    Budget(Fraction(1), Fraction(1, 100), Fraction(1, 100)),
    Budget(Fraction(1), Fraction(1, 10**6), Fraction(0)),
    Budget(Fraction(1), Fraction(0), Fraction(0)),
)


def everything(budgets: Sequence[Budget], rounds: int) -> list[Target]:
    """The project's own filter, at some budgets."""
    found: list[Target] = []
    for budget in budgets:
        words = f"filter ε {float(budget.epsilon):g}, δ {float(budget.delta):g}"
        words += f", keys {float(budget.keys_delta):g}" if budget.keys_delta else ""
        guard = Filter(budget.epsilon, budget.delta, budget.keys_delta)
        found += [ComputedAttack(one.name, one.play) for one in courses(words, guard, budget, rounds=rounds)]
    return found
