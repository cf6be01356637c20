"""The budget schedule of a synthesis: all noise levels are fixed before anything is measured, as one batch with one
loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from discreet.accounting import BoundedRange, Declared
from discreet.errors import QuestionError
from discreet.markov import Clique, Domain
from discreet.mechanisms import Gaussian
from discreet.trusted.ring_a.exact import ceiling, floor, sqrt_ceiling
from discreet.trusted.ring_a.loss import Single

METHODS = ("adaptive", "mst", "independent", "workload")
MOST_TRIPLES, MOST_ROUNDS, HEARD = 1000, 120, 100_000
MOST_HELD, MOST_TOGETHER = 1_000_000, 1 << 25
"""Marginals of more cells, each and all together, are not looked at."""
MOST_TARGETED = MOST_TOGETHER // 4
"""So many cells have the marginals of three columns that hold a target at most, together."""

# Shares of the whole μ², and rounds for each column: chosen on two public tables (see bench/synthesis.py).
SINGLES, SELECTION, DISTANCES, ROUNDS = 0.15, 0.06, 0.04, 2.0
_DIGITS, _TRIES, _CLOSE = 6, 12, 2e-3


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
    k marginals are measured as one vector, which moves by at most √k·rows_per_person in ℓ2. Where a person's rows share
    one weight, `moved` stands for rows_per_person in marginals and scores, but not in distances. All parts are fixed
    here, so together they cost what the batch `loss` does, whatever is chosen adaptively and wherever it stops (see
    `ring_c.batch`).
    """

    method: str
    workload: tuple[Clique, ...]
    singles: tuple[str, ...]
    single_sigma: Fraction
    rounds: tuple[Round, ...]
    distance_sigma: Fraction
    compared: int
    rows_per_person: int
    extra_events: tuple[Single, ...]
    moved: int
    target: str | None = None
    """Marginals that are chosen hold this column. It is named beforehand, so no choice costs more for it."""

    @staticmethod
    def of(
        method: str,
        domain: Domain,
        mu: Fraction,
        event_delta: Fraction,
        rows_per_person: int = 1,
        extra_events: Sequence[Single] = (),
        workload: Sequence[Clique] | None = None,
        singles: Sequence[str] | None = None,
        target: str | None = None,
        known: Sequence[Clique] = (),
    ) -> Schedule:
        """The schedule of a method that together with `extra_events` is charged at most as one μ-GDP release and an
        event of probability `event_delta`.

        `workload`: the marginals that matter; all of three columns where they are at most a thousand, else all of two.
        `target`: the column that is to be predicted from the others: then those of `marginals_for` matter.
        `singles`: the columns to be measured alone at first, all unless said; leave out those handed over as `initial`.
        `known`: columns whose counts together are known; neither these nor their parts are measured.
        Raises QuestionError where the method is unknown, the budget no budget, or the extra events leave nothing.
        """
        wanted = workload if target is None else marginals_for(domain, target)
        scaled = Schedule.scaling(method, domain, rows_per_person, extra_events, wanted, singles, known=known)
        return replace(largest(scaled, mu, event_delta), target=target)

    @staticmethod
    def scaling(
        method: str,
        domain: Domain,
        rows_per_person: int = 1,
        extra_events: Sequence[Single] = (),
        workload: Sequence[Clique] | None = None,
        singles: Sequence[str] | None = None,
        moved: int | None = None,
        rounds: int | None = None,
        alone: float = SINGLES,
        known: Sequence[Clique] = (),
    ) -> Callable[[float], Schedule]:
        """The schedules of a method at every price: from the μ that its measurements share, about, to the schedule.

        `moved` is what a person weighs in marginals where it is not the number of rows, `rounds` how many there are at
        most, `alone` the share of single columns. Raises QuestionError as `of` does of the method and the rows."""
        if method not in METHODS:
            raise QuestionError("method", "unknown method", where="method", fix=f"one of {', '.join(METHODS)}")
        if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, int) or rows_per_person < 1:
            raise QuestionError("rows", "a person has at least one row", where="rows_per_person", fix="write 1 or more")
        wanted = tuple(domain.clique(one) for one in workload) if workload is not None else all_marginals(domain)
        first = domain.names if singles is None else domain.clique(singles)
        first = tuple(name for name in first if not inside((name,), known))
        compared = len(closure(domain, wanted))
        shares = _shares(method, domain, wanted, len(first), rounds or MOST_ROUNDS, alone, known)
        unit = moved or rows_per_person

        def scaled(factor: float) -> Schedule:
            return Schedule(
                method,
                wanted,
                first,
                _sigma(shares.single * factor, unit),
                tuple(
                    Round(floor(Fraction(selection * factor), _DIGITS), _sigma(mu * factor, unit))
                    for selection, mu in shares.rounds
                ),
                _sigma(math.sqrt(DISTANCES / max(1, compared)) * factor, rows_per_person),
                compared,
                rows_per_person,
                tuple(extra_events),
                unit,
            )

        return scaled

    @property
    def parts(self) -> tuple[Single, ...]:
        """Everything that may be released, with the extra events."""
        square = self.moved**2
        found = [*self.extra_events, *(Gaussian(self.single_sigma).loss(square) for _ in self.singles)]
        for one in self.rounds:
            if one.selection:
                found.append(BoundedRange(one.selection))
            if one.sigma:
                found.append(Gaussian(one.sigma).loss(square))
        if self.compared:
            found.append(Gaussian(self.distance_sigma).loss(self.rows_per_person**2 * self.compared))
        return tuple(found)

    def among(self, domain: Domain) -> Schedule:
        """The schedule where only these columns are there after all, with so many cells: what was declared for others
        is not used. Of marginals that nobody could hold, smaller ones are looked at, unless they are what the method
        measures."""
        kept = [place for place, clique in enumerate(self.workload) if set(clique) <= set(domain.names)]
        workload = tuple(self.workload[place] for place in kept)
        fixed = self.method == "workload"
        return replace(
            self,
            workload=workload if fixed else held(domain, workload),
            target=self.target if self.target in domain.names else None,
            singles=tuple(name for name in self.singles if name in domain.names),
            rounds=tuple(self.rounds[place] for place in kept) if fixed else self.rounds,
        )


@dataclass(frozen=True)
class Schedules:
    """The schedules of several tables, made in one batch: its parts are all of theirs."""

    each: tuple[Schedule, ...]

    @property
    def parts(self) -> tuple[Single, ...]:
        """The losses of all schedules, one after another."""
        return tuple(part for one in self.each for part in one.parts)

    @property
    def extra_events(self) -> tuple[Single, ...]:
        return tuple(part for one in self.each for part in one.extra_events)


Events = TypeVar("Events", Schedule, Schedules)


@dataclass(frozen=True)
class _UnscaledSchedule:
    """μ of each single column, and ε and μ of each round, before scaling."""

    single: float
    rounds: tuple[tuple[float, float], ...]


def all_marginals(domain: Domain) -> tuple[Clique, ...]:
    """All of three columns if there are at most a thousand of them, else all of two; fewer where there are no three.

    In place of one with more than a hundred thousand cells, which noise would hide, its parts.
    """
    return _all_of(domain, 3 if math.comb(len(domain.names), 3) <= MOST_TRIPLES else 2)


def marginals_for(domain: Domain, target: str) -> tuple[Clique, ...]:
    """What matters to whoever predicts the column `target` from the others: all of two columns, and those of three that
    hold it.

    Of these at most a thousand, those with the fewest cells first, as many as have `MOST_TARGETED` together; none with
    more than a hundred thousand cells. All follows from names of columns and from how many cells are declared.
    """
    others = [name for name in domain.names if name != target]
    triples = (domain.clique((target, *two)) for two in itertools.combinations(others, 2))
    heard = sorted((one for one in triples if domain.cells(one) <= HEARD), key=domain.cells)[:MOST_TRIPLES]
    together = itertools.accumulate(map(domain.cells, heard))
    chosen = (one for one, cells in zip(heard, together, strict=True) if cells <= MOST_TARGETED)
    return (*chosen, *_all_of(domain, 2))


def _all_of(domain: Domain, most: int) -> tuple[Clique, ...]:
    """All marginals of so many columns, or of fewer where there are no more, or cells are too many."""
    columns = len(domain.names)
    found: list[Clique] = []
    inside: set[Clique] = set()
    for size in range(min(columns, most), 0, -1):
        for clique in itertools.combinations(domain.names, size):
            if clique not in inside and domain.cells(clique) <= HEARD:
                found.append(clique)
                inside.update(part for less in range(1, size) for part in itertools.combinations(clique, less))
    return tuple(found) or tuple((name,) for name in domain.names)


def held(domain: Domain, workload: Sequence[Clique]) -> tuple[Clique, ...]:
    """The marginals of a workload, or parts of them, that have at most `MOST_HELD` cells each, and with all their
    parts at most `MOST_TOGETHER`."""
    for size in range(max(map(len, workload), default=0), 0, -1):
        found = _parts(domain, workload, size)
        if size == 1 or sum(map(domain.cells, closure(domain, found))) <= MOST_TOGETHER:
            return found
    return ()


def _parts(domain: Domain, workload: Sequence[Clique], size: int) -> tuple[Clique, ...]:
    """Each marginal, or in its place those of one column less, and so on until each has at most so many columns, and
    few enough cells."""
    found: dict[Clique, None] = {}
    waiting = dict.fromkeys(workload)
    while waiting:
        smaller: dict[Clique, None] = {}
        for clique in waiting:
            if len(clique) == 1 or (len(clique) <= size and domain.cells(clique) <= MOST_HELD):
                found[clique] = None
            else:
                smaller |= dict.fromkeys(itertools.combinations(clique, len(clique) - 1))
        waiting = smaller
    return tuple(found)


def closure(domain: Domain, workload: Sequence[Clique]) -> tuple[Clique, ...]:
    """All parts of the workload's marginals, each once, small ones first."""
    found = {
        part
        for clique in workload
        for size in range(1, len(clique) + 1)
        for part in itertools.combinations(clique, size)
    }
    return tuple(sorted(found, key=lambda clique: (len(clique), [domain.place[name] for name in clique])))


def inside(clique: Clique, known: Sequence[Clique]) -> bool:
    """Whether all of these columns are among those of one of the others."""
    return any(set(clique) <= set(other) for other in known)


def _shares(
    method: str,
    domain: Domain,
    workload: Sequence[Clique],
    singles: int,
    most: int,
    alone: float,
    known: Sequence[Clique],
) -> _UnscaledSchedule:
    """How the whole μ² = 1 is divided; the distances have their share.

    A selection of bounded range ε is counted as μ² = ε²/3 here, the variance of the loss that is composed for it.

    For a fixed workload, marginals with more cells get more: minimising Σ cells_i/μ_i for a given Σ μ_i² gives
    μ_i ∝ cells_i^(1/3).
    """
    columns, whole = len(domain.names), 1 - DISTANCES
    unknown = [clique for clique in closure(domain, workload) if not inside(clique, known)]
    alike = columns == 1 or (known and not singles and not unknown)
    if method == "independent" or not workload or (alike and method != "workload"):
        return _UnscaledSchedule(math.sqrt(whole / max(1, singles)), ())
    first = alone if singles else 0.0
    if method == "workload":
        wanted = [0.0 if inside(clique, known) else domain.cells(clique) ** (1 / 3) for clique in workload]
        scale = math.sqrt((whole - first) / (sum(weight**2 for weight in wanted) or 1.0))
        return _UnscaledSchedule(math.sqrt(first / max(1, singles)), tuple((0.0, weight * scale) for weight in wanted))
    joined = columns - len(_apart(domain, known))
    count = columns - 1 - joined if method == "mst" else min(MOST_ROUNDS, max(4, math.ceil(ROUNDS * columns)), most)
    if not count:
        return _UnscaledSchedule(math.sqrt(whole / max(1, singles)), ())
    each = (math.sqrt(3 * SELECTION / count), math.sqrt((whole - first - SELECTION) / count))
    return _UnscaledSchedule(math.sqrt(first / max(1, singles)), (each,) * count)


def _apart(domain: Domain, known: Sequence[Clique]) -> set[frozenset[str]]:
    """The columns in groups: those that are known together stand in one."""
    group = {name: frozenset([name]) for name in domain.names}
    for clique in known:
        whole = frozenset[str]().union(*(group[name] for name in clique))
        group |= dict.fromkeys(whole, whole)
    return set(group.values())


def _sigma(mu: float, rows_per_person: int) -> Fraction:
    """The deviation in rows; 0 where nothing is measured."""
    return ceiling(rows_per_person / Fraction(mu), _DIGITS) if mu else Fraction(0)


def largest(scaled: Callable[[float], Events], mu: Fraction, event_delta: Fraction) -> Events:
    """The schedule, or schedules of one batch, with nearly the largest factor whose batch is charged at most μ.

    The loss of a selection has a variance of about ε²/3, that of a measurement μ²: with many of them, both count by
    that. It guesses; what the batch is charged decides, and a wrong guess is corrected by how wrong it was."""
    unit = scaled(1.0)
    before = _variance(unit.extra_events)
    room = float(mu) ** 2 - before
    factor = math.sqrt(max(room, 0.0) / max(1e-300, _variance(unit.parts) - before)) * (1 - _CLOSE / 4)
    best: Events | None = None
    for _ in range(_TRIES):
        if factor <= 0 or math.isinf(factor):
            break
        tried = scaled(factor)
        needed = _charged(tried, event_delta)
        if needed <= mu:
            best = tried
            if needed >= mu * (1 - _CLOSE):
                return best
        spent, whole = float(needed) ** 2 - before, float(mu) ** 2 - before
        factor *= math.sqrt(whole / spent) * (1 - _CLOSE / 4) if spent > 0 else 0.5
    message = (
        "the first steps use the whole price: nothing is left to measure with"
        if best is None
        else "this price is too small to measure anything"
    )
    raise QuestionError("budget", message, where="epsilon", fix="name another epsilon")


def _charged(schedule: Schedule | Schedules, event_delta: Fraction) -> Fraction:
    """The μ that stands for the batch, rounded up."""
    return sqrt_ceiling(Declared(schedule.parts, event_delta).loss.mu_squared or Fraction(0))


def _variance(parts: Sequence[Single]) -> float:
    return sum(
        float(part.epsilon) ** 2 / 3 if isinstance(part, BoundedRange) else float(part.mu_squared or 0)
        for part in parts
    )
