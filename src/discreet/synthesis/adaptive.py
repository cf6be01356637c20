"""Adaptive selection and measurement of marginals, and a Markov random field fitted to them (select, measure,
generate).

The method is that of AIM (McKenna, Mullins, Sheldon & Miklau 2022) with a schedule fixed beforehand in place of their
data-dependent one, so that it is one declared batch: what follows from what was released is what each round is of, a
column again or columns together (`gains`). `mst` measures the edges of a tree of pairs (McKenna, Miklau &
Sheldon 2021), `independent` the columns alone, `workload` each marginal of the workload. Nothing here sees private
data but through a `Measurer`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from discreet.errors import QuestionError
from discreet.markov import Clique, Domain, MarginalMeasurement, MarkovRandomField, fit
from discreet.markov.measurement import Average, averages, total_rows
from discreet.markov.tree import Graph, junction_tree
from discreet.synthesis.bounds import Bound, Distance, Evidence
from discreet.synthesis.candidates import (
    PENALTY,
    Room,
    expected_noise,
    predictions,
    scaled_counts,
    weights,
)
from discreet.synthesis.gains import SILENT, Heard, heard, partners, single_gains
from discreet.synthesis.schedule import Round, Schedule, closure, inside
from discreet.synthesis.tails import falling, unseen
from discreet.synthesis.totals import FixedTotals, Zeros

MOST_OFFERED, OFFERED, MOST_ROWS = 1500, 400, 10_000_000

LIMIT = 2_000_000
MOST_COMPARED = 1 << 26
BETWEEN, LAST = 12, 100


class Measurer(Protocol):
    """The operations on private rows. Each result has noise; the loss of the schedule covers all of them."""

    def select(
        self,
        epsilon: Fraction,
        candidates: Sequence[Clique],
        predictions: Sequence[NDArray[np.int64]],
        weights: Sequence[int],
        penalties: Sequence[int],
    ) -> int:
        """Returns an index, drawn by the exponential mechanism of bounded range ε on scores weight·‖exact −
        prediction‖₁ − penalty.

        One person moves a score by at most weight·rows_per_person, either way: not monotone, so the probabilities are
        ∝ e^(ε·score/(2·rows_per_person·max weight)).
        """
        ...

    def measure(self, clique: Clique, sigma: Fraction) -> NDArray[np.int64]:
        """Returns the marginal as int64 of the clique's shape (in C order), with rounded Gaussian noise of deviation
        `sigma` in rows."""
        ...

    def distances(
        self, cliques: Sequence[Clique], answers: Sequence[NDArray[np.int64]], sigma: Fraction
    ) -> Sequence[int]:
        """Returns ‖exact − answer‖₁ in rows for each clique, each with rounded Gaussian noise of deviation `sigma`.

        One person moves each by at most rows_per_person, so the vector by √len(cliques) times that in ℓ2.
        """
        ...


class Beforehand(Protocol):
    """What is known of marginals beside what is measured of them: an earlier release, or how rows follow."""

    def today(
        self, measured: Sequence[MarginalMeasurement], rows: int | None = None, /
    ) -> tuple[MarginalMeasurement, ...]:
        """What is expected, given what was measured until now; `rows` is how many there are, if that is known."""
        ...


@dataclass(frozen=True, eq=False)
class SeenCounts:
    """Noisy counts of some cells of a column, or of all, those that are `seen`, each with noise of deviation `sigma` in
    what is measured: what finding the column's cells released of them."""

    values: NDArray[np.int64]
    seen: NDArray[np.bool_]
    sigma: Fraction

    def beside(self, name: str, counts: NDArray[np.int64]) -> MarginalMeasurement:
        """The column's counts, those of cells that are not seen as they were measured otherwise."""
        return MarginalMeasurement((name,), np.where(self.seen, self.values, counts), self.sigma)


@dataclass(frozen=True)
class Progress:
    """One step done: `clique` was measured; `spent` is the part of the batch used; `error` estimates how wrong the
    model was there before, as a part of the rows: later steps find less and less."""

    step: int
    steps: int
    clique: Clique
    spent: float
    error: float


@dataclass(frozen=True, eq=False)
class SynthesisResult:
    """What was measured, the model of it, and rows that follow it, coded as the domain says.

    `carried` is what an earlier release says of it, as it was weighted. `complete` is False where it was stopped early;
    all is charged then too. `log` has an entry for each step;
    `evidence` is what bounds on the error of any answers follow from.
    """

    model: MarkovRandomField
    rows: NDArray[np.int64]
    measurements: tuple[MarginalMeasurement, ...]
    workload: tuple[Clique, ...]
    log: tuple[Progress, ...]
    complete: bool
    evidence: Evidence
    carried: tuple[MarginalMeasurement, ...] = ()

    @cached_property
    def bounds(self) -> Mapping[Clique, Bound]:
        """Error bounds in rows for the counts of the workload's marginals and their sub-marginals, each at 95 %
        confidence.

        Where the number of rows differs from the model's total, counts are scaled to that total.
        """
        cliques = closure(self.model.domain, self.workload)
        counts = scaled_counts(self.rows, self.model.domain, cliques, self.model.total)
        return {clique: self.evidence.bound(clique, one) for clique, one in zip(cliques, counts, strict=True)}


def synthesise(
    schedule: Schedule,
    domain: Domain,
    measurer: Measurer,
    *,
    zeros: Zeros | None = None,
    rare: Mapping[str, int] | None = None,
    tails: Mapping[str, NDArray[np.int64]] | None = None,
    initial: Sequence[MarginalMeasurement] = (),
    assumed: Sequence[MarginalMeasurement] = (),
    counted: Mapping[str, Sequence[SeenCounts]] | None = None,
    totals: FixedTotals | None = None,
    prior: Beforehand | None = None,
    rows: int | None = None,
    most_rows: int = MOST_ROWS,
    least_rows: int = 1,
    draw: Callable[[MarkovRandomField, Sequence[Clique]], NDArray[np.int64]] | None = None,
    amend: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None,
    tell: Callable[[Progress], None] | None = None,
    limit: int = LIMIT,
) -> SynthesisResult:
    """Measures what the schedule says, and gives a model of it and rows.

    `zeros`: for cliques, which of their cells no row can have. `rare`: for columns, a cell that is taken for empty
    where its column alone shows no more of it than noise; `tails`: for columns whose first cells are in order, how many
    values each of these holds: the lowest may be empty too, and the highest fall (`falling`). `initial`: what is known
    of the same rows already; `assumed`: what the model shall hold though it was not measured of them, so no bound
    follows from it.
    `counted`: for columns, counts that earlier steps released of their cells; as cells may have been chosen for being
    large, the model is fitted to them beside what is measured, but no bound follows from them.
    `totals`: counts that the rows have exactly; what they say is not measured, and no bound follows from it. `prior`:
    what an earlier release says; it is weighted by how far it is off, and no bound follows from it. `rows`: how many
    are made; as many as there seem to be, from `least_rows` up to `most_rows`, or as the totals say, unless said.
    `draw` makes them, of a model and the marginals that were measured, in place of the model, and it meets the totals;
    then bounds are about as many rows as are made, as they are where there seem to be fewer than `least_rows`. `amend`
    changes what was made, before it is held against the real rows. `limit`: the largest number of cells of the model.
    `tell` is called after each step; where it raises, or the user interrupts, no more is measured and the result is
    made of what there is.
    Raises QuestionError, before anything is measured, where the zeros contradict each other or the domain is too large.
    """
    given = frozenset(name for one in assumed for name in one.clique)
    forbidden = dict(zeros or {})
    for clique, cells in ({} if totals is None else totals.zeros).items():
        forbidden[clique] = forbidden[clique] | cells if clique in forbidden else cells
    sure = [*([] if totals is None else totals.measured), *assumed]
    run = _Run(
        schedule,
        domain,
        measurer,
        schedule.workload,
        forbidden,
        dict(rare or {}),
        dict(tails or {}),
        tell,
        limit,
        given,
        totals,
        dict(counted or {}),
        prior,
    )
    with threadpool_limits(limits=1, user_api="blas"):  # small arrays: more threads only wait for each other
        run.prepare([*sure, *initial])
        complete = True
        try:
            run.fixed()
            if schedule.method != "workload":
                run.adapt()
        except EndedEarly:
            complete = False
        model = run.fitted(LAST)
        measured = tuple(run.known[len(sure) :])

        def made() -> NDArray[np.int64]:
            if draw is not None:
                found = draw(model, [one.clique for one in measured])
            elif totals is not None:
                found = totals.met(model, model.sample(totals.rows), zeros or {})
            else:
                found = model.sample(min(most_rows, max(least_rows, round(model.total))) if rows is None else rows)
            return found if amend is None else amend(found)

        table = made()
        if draw is not None or least_rows > max(1.0, model.total):
            model = replace(model, total=float(len(table)))
        complete = complete and run.compared(model, table)
        evidence = run.evidence(measured, len(initial))
        log = tuple(run.log)
        return SynthesisResult(model, table, measured, run.workload, log, complete, evidence, run.expected)


class EndedEarly(Exception):
    """No more is to be measured: raised by a `Measurer` in place of its next step, and where `tell` raises."""


@dataclass
class _Run:
    schedule: Schedule
    domain: Domain
    measurer: Measurer
    workload: tuple[Clique, ...]
    zeros: dict[Clique, NDArray[np.bool_]]
    rare: dict[str, int]
    tails: dict[str, NDArray[np.int64]]
    tell: Callable[[Progress], None] | None
    limit: int
    given: frozenset[str] = frozenset()
    totals: FixedTotals | None = None
    counted: Mapping[str, Sequence[SeenCounts]] = field(default_factory=dict)
    prior: Beforehand | None = None
    known: list[MarginalMeasurement] = field(default_factory=list)
    beside: list[MarginalMeasurement] = field(default_factory=list)
    log: list[Progress] = field(default_factory=list)
    distances: dict[Clique, Distance] = field(default_factory=dict)
    expected: tuple[MarginalMeasurement, ...] = ()
    used: float = 0.0

    @property
    def rows(self) -> int | None:
        """How many rows there are, where totals say it."""
        return None if self.totals is None else self.totals.rows

    def prepare(self, initial: Sequence[MarginalMeasurement]) -> None:
        """Checks by a first fit that a model is possible, before anything is measured."""
        self.workload = tuple(self.domain.clique(clique) for clique in self.workload)
        cells = sum(self.domain.cells(clique) for clique in self.workload)
        if cells > MOST_COMPARED:
            largest = max(self.workload, key=lambda clique: self.domain.cells(clique))
            raise QuestionError(
                "workload",
                f"the workload's marginals have {cells:,} cells, above {MOST_COMPARED:,}",
                where=", ".join(largest),
                fix="take fewer columns together, or give them fewer and coarser cells",
            )
        fixed = self.workload if self.schedule.method == "workload" else ()
        self.known = list(initial)
        self.expect()
        for one in (*self.known, *self.expected):
            one.check(self.domain)
        held = (one.clique for one in (*self.known, *self.expected))
        tree = junction_tree(self.domain, [*fixed, *self.zeros, *held])
        if tree.cells > self.limit:
            raise QuestionError(
                "domain",
                f"a model of these columns would have {tree.cells:,} cells, above the limit of {self.limit:,}",
                where=", ".join(tree.largest),
                fix="take fewer columns together, or give them fewer and coarser cells",
            )
        known = [*self.known, *self.expected]
        self.model = fit(self.domain, known, zeros=self.zeros, iterations=BETWEEN, limit=self.limit, rows=self.rows)
        self.room = Room(self.domain, Graph.of(self.domain, self.model.tree.cliques))
        self.least = self.model.tree.cells

    def expect(self) -> None:
        """Weighs what the earlier release says by what was measured until now."""
        if self.prior is not None:
            self.expected = self.prior.today(self.known, self.rows)

    def alone(self, name: str) -> Average:
        """What is known of a column alone that was measured."""
        (counts,) = averages([one for one in (*self.known, *self.expected) if one.clique == (name,)])
        return counts

    def fallen(self) -> list[MarginalMeasurement]:
        """What is said of the highest cells of columns in order."""
        measured = {one.clique for one in self.known}
        found = (
            falling(self.alone(name), widths, total_rows(self.known))
            for name, widths in self.tails.items()
            if (name,) in measured
        )
        return [one for one in found if one is not None]

    def fitted(self, iterations: int) -> MarkovRandomField:
        potentials, limit, fallen = self.model.potentials, 4 * self.limit, self.fallen()
        self.model = fit(
            self.domain,
            [*self.known, *self.beside, *self.expected, *fallen],
            potentials=potentials,
            zeros=self.zeros,
            iterations=iterations,
            limit=limit,
            rows=self._counted_rows,
        )
        return self.model

    @property
    def _counted_rows(self) -> int | None:
        """How many rows the model has: as many as was measured in this run, where counts stand beside that of which
        some were chosen for being large, are of other rows, or follow from these. None where every known count says it.
        """
        if self.rows is not None or not (self.beside or self.expected or self.tails) or not self.known:
            return self.rows
        return round(total_rows(self.known))

    def measured(self, clique: Clique, sigma: Fraction) -> NDArray[np.int64]:
        values = np.asarray(self.measurer.measure(clique, sigma), np.int64).reshape(self.domain.shape(clique))
        self.known.append(MarginalMeasurement(clique, values, sigma))
        self.used += 1 / float(sigma) ** 2
        self.room.add(clique)
        self.expect()
        return values

    def said(self, clique: Clique, error: float) -> None:
        schedule = self.schedule
        whole = [schedule.single_sigma] * len(schedule.singles) + [one.sigma for one in schedule.rounds]
        spent = min(1.0, self.used / sum(1 / float(sigma) ** 2 for sigma in whole if sigma))
        self.log.append(Progress(len(self.log) + 1, len(whole), clique, spent, error))
        if self.tell is not None:
            try:
                self.tell(self.log[-1])
            except (Exception, KeyboardInterrupt) as raised:
                raise EndedEarly from raised

    def fixed(self) -> None:
        """Makes the measurements that do not depend on results: single columns, and the workload for the method
        `workload`."""
        for name in self.schedule.singles:
            measured = self.measured((name,), self.schedule.single_sigma)
            counts = self.alone(name)
            empty = unseen(counts, self.rare.get(name), len(self.tails.get(name, ())))
            if empty.any() and not empty.all():
                self.zeros[(name,)] = empty
            self.beside += [one.beside(name, measured) for one in self.counted.get(name, ())]
            self.said((name,), 0.0)
        if self.schedule.method == "workload":
            for clique, one in zip(self.workload, self.schedule.rounds, strict=True):
                if not one.sigma:  # it is known
                    continue
                self.measured(clique, one.sigma)
                self.said(clique, 0.0)

    def adapt(self) -> None:
        """Runs the rounds: fit, select, measure. The limit on the model's size grows with the budget used."""
        tree = self.schedule.method == "mst"
        names = () if tree else self.schedule.singles
        alone = averages([one for one in (*self.known, *self.beside, *self.expected) if len(one.clique) == 1])
        known = {one.like.clique[0]: one.sigma**-2 for one in alone}
        precisions = {name: known[name] for name in names}
        often = partners(self.workload, names)
        offered = [
            (clique, weight)
            for clique, weight in zip(*self._candidates(), strict=True)
            if len(clique) > 1 or clique[0] not in precisions
        ]
        hope, silent, model = math.inf, 0, self.fitted(BETWEEN)
        for done, one in enumerate(self.schedule.rounds, 1):
            more = 1 / float(one.sigma) ** 2
            gains = single_gains(model, precisions, more, often)
            ended = bool(gains) and silent >= SILENT
            if not ended and hope >= max(gains.values(), default=0.0):
                model = self.fitted(BETWEEN)
                places = self._allowed(
                    [clique for clique, _ in offered], float(one.sigma), done / len(self.schedule.rounds)
                )
                if places:
                    found = self._step(model, one, [offered[place] for place in places], precisions)
                    if not tree:
                        hope, silent = (found.gain, 0) if found.clear else (math.inf, silent + 1)
                    continue
                silent = SILENT
            if not gains:
                return
            wanted = [name for name in gains if often[name]] or list(gains)
            name = max(
                wanted,
                key=lambda name: (
                    self.domain.size(name) * (precisions[name] ** -0.5 - (precisions[name] + more) ** -0.5)
                ),
            )
            precisions[name] += more
            self._again(model, name, one)

    def _again(self, model: MarkovRandomField, name: str, one: Round) -> None:
        """Measures a column alone once more."""
        missed = float(np.abs(self.measured((name,), one.sigma) - model.marginal((name,))).sum())
        noise = expected_noise(self.domain.size(name), float(one.sigma))
        self.said((name,), max(0.0, missed - noise) / max(1.0, model.total))

    def _candidates(self) -> tuple[Sequence[Clique], Sequence[int]]:
        if self.schedule.method == "mst":
            pairs = list(itertools.combinations(self.domain.names, 2))
            return pairs, [1] * len(pairs)
        to, known = self.schedule.target, () if self.totals is None else tuple(self.totals.counts)
        wanted = [
            one
            for one in closure(self.domain, self.workload)
            if not set(one) <= self.given
            and not inside(one, known)
            and (to is None or to in one or len(one) == 1)  # a column may come again
        ]
        return wanted, weights(self.domain, wanted, self.workload)

    def _allowed(self, candidates: Sequence[Clique], sigma: float, done: float) -> list[int]:
        """Indices of candidates that keep the model within its limit and whose noise is smaller than the table; for
        `mst`, of pairs between unconnected parts. Of very many candidates a data-independent sample is considered each
        time."""
        tree = self.schedule.method == "mst"
        places = list(range(len(candidates)))
        if tree:  # what is impossible joins columns in the model, and is no measurement of them
            measured = Graph.of(self.domain, [one.clique for one in self.known])
            places = Room(self.domain, measured).apart(candidates)
        if len(places) > MOST_OFFERED:
            places = sorted(np.random.default_rng().choice(places, OFFERED, replace=False).tolist())
        limit = self.limit if tree else self.least + (self.limit - self.least) * done
        admitted = [places[p] for p in self.room.admitted([candidates[p] for p in places], limit)]
        if tree:
            return admitted
        most = 2 * max(1.0, self.model.total)
        heard = [p for p in admitted if PENALTY * expected_noise(self.domain.cells(candidates[p]), sigma) < most]
        return heard or admitted

    def _step(
        self,
        model: MarkovRandomField,
        one: Round,
        offered: Sequence[tuple[Clique, int]],
        precisions: Mapping[str, float],
    ) -> Heard:
        """Selects a clique by the model's error less a part of the expected noise, and measures it."""
        candidates, importance = [clique for clique, _ in offered], [weight for _, weight in offered]
        part = 0.0 if self.schedule.method == "mst" else PENALTY
        noise = [expected_noise(self.domain.cells(clique), float(one.sigma)) for clique in candidates]
        penalties = [round(part * weight * each) for weight, each in zip(importance, noise, strict=True)]
        expected = predictions(model, candidates)
        place = self.measurer.select(one.selection, candidates, expected, importance, penalties)
        values = self.measured(candidates[place], one.sigma)
        missed = float(np.abs(values - expected[place]).sum())
        self.said(candidates[place], max(0.0, missed - noise[place]) / max(1.0, model.total))
        alone = [precisions[name] ** -0.5 if name in precisions else 0.0 for name in candidates[place]]
        return heard(values, expected[place], float(one.sigma), model.total, alone)

    def compared(self, model: MarkovRandomField, table: NDArray[np.int64]) -> bool:
        """Measures the distance of the synthetic rows from the table. False if the user interrupts."""
        cliques = closure(self.domain, self.workload)
        if not cliques:
            return True
        counts = [np.rint(one).astype(np.int64) for one in scaled_counts(table, self.domain, cliques, model.total)]
        sigma = self.schedule.distance_sigma
        try:
            found = self.measurer.distances(cliques, counts, sigma)
        except EndedEarly:
            return False
        for clique, answer, distance in zip(cliques, counts, found, strict=True):
            self.distances[clique] = Distance(answer, int(distance), sigma)
        return True

    def evidence(self, measured: tuple[MarginalMeasurement, ...], initial: int) -> Evidence:
        schedule = self.schedule
        fixed = [one for one in schedule.rounds if one.sigma] if schedule.method == "workload" else []
        certain = initial + len(schedule.singles) + len(fixed)
        return Evidence(
            self.domain,
            measured,
            certain,
            len(schedule.rounds),
            tuple(self._candidates()[0]),
            self.distances,
        )
