"""A subject of the audit, and the attacks on it: draws on neighbours, guesses, exact distributions, goodness of fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from discreet.audit import exact, fit
from discreet.audit.bound import lower
from discreet.audit.claims import REPORTED, Claim, Result
from discreet.audit.events import Feature, Raised, choose
from discreet.audit.pmf import Distribution, Law

Draw = Callable[[Any], Any]
Progress = Callable[[int, int, str], None]
"""How many attacks are done, of how many, and whose turn it is."""


@dataclass(frozen=True)
class SampledAttack:
    """Draws on two neighbours, an event chosen on half of them, and its two probabilities bounded on the other half.

    `draw` makes one outcome from one of `neighbours`; what it raises is an outcome too. The neighbours take turns, so
    that whatever changes with time changes for both.
    """

    subject: str
    claim: Claim
    neighbours: tuple[Any, Any]
    draw: Draw
    features: Sequence[Feature]
    draws: int
    how: str = "sampled"
    close: Callable[[], str] | None = None
    """Ends what the draws needed, and says what else was noticed."""
    tests: int = 1

    def attack(self, miss: float) -> Result:
        """The largest loss that the draws prove. `miss` is the chance of a false alarm that this attack may take."""
        noticed = ""
        try:
            one, two = self.outcomes()
        finally:
            if self.close is not None:
                noticed = self.close()
        if all(isinstance(outcome, Raised) for outcome in (*one, *two)):
            raise RuntimeError("every draw failed: nothing was tested")
        half = self.draws // 2
        event = choose(self.features, one[:half], two[:half], self.claim)
        if event is None:
            return Result(self.subject, self.how, self.claim, 0.0, False, "nothing", 2 * self.draws)
        likely, rare = (one, two) if event.first else (two, one)
        hits, misses = (sum(map(event.holds, outcomes[half:])) for outcomes in (likely, rare))
        size = self.draws - half
        proved = self.claim.bound(hits, misses, size, miss)
        shown = max(0.0, self.claim.bound(hits, misses, size, REPORTED))
        text = f"{event.text}: {hits:,} against {misses:,} of {size:,}{noticed}"
        return Result(self.subject, self.how, self.claim, shown, proved > self.claim.amount, text, 2 * self.draws)

    def outcomes(self) -> tuple[list[Any], list[Any]]:
        """Draws on either neighbour."""
        one: list[Any] = []
        two: list[Any] = []
        for turn in range(self.draws):
            for first in (turn % 2 == 0, turn % 2 == 1):
                (one if first else two).append(_tried(self.draw, self.neighbours[0 if first else 1]))
        return one, two


def _tried(draw: Draw, neighbour: Any) -> Any:
    try:
        return draw(neighbour)
    except Exception as error:
        return Raised(type(error).__name__)


@dataclass(frozen=True)
class ExactAttack:
    """The distributions of neighbours, compared outcome by outcome. Pairs come with words that say where they lie."""

    subject: str
    claim: Claim
    pairs: Callable[[], Sequence[tuple[Distribution, Distribution, str]]]
    tests: int = 0

    def attack(self, miss: float) -> Result:  # noqa: ARG002 - no chance takes part
        """The largest loss of all pairs; no chance takes part."""
        return exact.held(self.subject, self.claim, self.pairs())


@dataclass(frozen=True)
class Fitted:
    """Draws against the distribution claimed. `law` is for integers around 0; `expected` for other outcomes."""

    subject: str
    claim: Claim
    draw: Callable[[int], Sequence[Any]]
    """So many independent draws."""
    draws: int
    law: Law | None = None
    expected: Callable[[], Distribution] | None = None
    tests: int = 1

    def attack(self, miss: float) -> Result:
        """Whether the draws fit the distribution: the claim is broken where the p-value is below `miss`."""
        drawn = self.draw(self.draws)
        if self.law is not None:
            found = fit.of_numbers(drawn, self.law)
        else:
            assert self.expected is not None
            labels: list[Hashable] = list(drawn)
            found = fit.of_outcomes(labels, self.expected())
        return fit.judged(self.subject, self.claim, found, len(drawn), miss)


@dataclass(frozen=True)
class ComputedAttack:
    """An attack that computes its result by itself: no chance takes part."""

    subject: str
    compute: Callable[[], Result]
    tests: int = 0

    def attack(self, miss: float) -> Result:  # noqa: ARG002
        return self.compute()


Guesses = Sequence[bool]
"""Whether somebody is there: in every draw as many guesses."""

_NORMAL = NormalDist()


@dataclass(frozen=True)
class GuessedAttack:
    """Draws on two neighbours, an even number and half on each, and how often it is guessed which.

    Of a μ-GDP release nobody guesses right with a chance above Φ(μ/2) + δ/2, as the mean over both: so far apart are
    N(0, 1) and N(μ, 1). Of one of bounded range ε (`ranged`), not above e^(ε/2)/(1 + e^(ε/2)): where losses are t or
    t − ε, they tell most at t = ε/2. So right guesses are counted and their chance is bounded from below (Clopper &
    Pearson). No event is chosen: each of the `ways` to guess is fixed beforehand, and tried at its part of the false
    alarm. A draw may hold several guesses, where right code has noise of its own for each: then all are independent,
    and however their chances differ, so many right ones are no likelier than with the mean chance for each (Hoeffding
    1956, Theorem 4). A coin for each draw would not do: it would be one for all guesses that the draw holds.
    """

    subject: str
    claim: Claim
    draw: Callable[[bool], Any]
    ways: Mapping[str, Callable[[Any], Guesses]]
    draws: int
    ranged: bool = False
    close: Callable[[], None] | None = None
    """Ends what the draws needed."""
    tests: int = 1

    def attack(self, miss: float) -> Result:
        try:
            right, made = self._guessed()
        finally:
            if self.close is not None:
                self.close()
        way = max(self.ways, key=lambda name: right[name] / max(1, made[name]))
        shown, proved = (
            max(self.proved(lower(right[name], made[name], one / len(self.ways))) for name in self.ways)
            for one in (REPORTED, miss)
        )
        text = f"{way}: {right[way]:,} of {made[way]:,} guesses are right"
        return Result(self.subject, "guessed", self.claim, shown, proved > self.claim.amount, text, self.draws)

    def _guessed(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many guesses of each way are right, and how many there are."""
        right, made = dict.fromkeys(self.ways, 0), dict.fromkeys(self.ways, 0)
        for there in (False, True) * (self.draws // 2):
            found = self.draw(there)
            for way, guess in self.ways.items():
                guesses = guess(found)
                made[way] += len(guesses)
                right[way] += sum(one == there for one in guesses)
        return right, made

    def proved(self, chance: float) -> float:
        """The least μ or ε with which somebody guesses right with this chance."""
        chance -= self.claim.delta / 2
        if chance <= 1 / 2:
            return 0.0
        return 2 * (math.log(chance / (1 - chance)) if self.ranged else _NORMAL.inv_cdf(chance))


@dataclass(frozen=True)
class Late:
    """An attack that is made ready only when its turn comes."""

    subject: str
    make: Callable[[], SampledAttack | Fitted | GuessedAttack]
    tests: int = 1

    def attack(self, miss: float) -> Result:
        return self.make().attack(miss)


Target = SampledAttack | ExactAttack | Fitted | ComputedAttack | GuessedAttack | Late


def run(targets: Sequence[Target], false_alarm: float, progress: Progress | None = None) -> list[Result]:
    """Every attack, with the chance of a false alarm divided evenly among those that chance takes part in."""
    tests = max(1, sum(target.tests for target in targets))
    results = []
    for done, target in enumerate(targets):
        if progress is not None:
            progress(done, len(targets), target.subject)
        results.append(target.attack(false_alarm / tests))
    return results
