"""One run that publishes a table: values and bins are found, marginals chosen and measured, rows drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import EngineError, QuestionError
from discreet.ledger import Stored
from discreet.markov import Clique, Domain
from discreet.markov.tree import junction_tree
from discreet.mechanisms import Gaussian, Threshold
from discreet.release.content import ReleaseContent
from discreet.synthesis.adaptive import LIMIT, Beforehand, Progress, SeenCounts, SynthesisResult, synthesise
from discreet.synthesis.cells import NoisyHistogram, gathered, refined
from discreet.synthesis.columns import BINS, MOST_VALUES, PublishedColumn
from discreet.synthesis.content import content
from discreet.synthesis.earlier import start
from discreet.synthesis.prefixes import FoundPrefixes
from discreet.synthesis.publication import Publication, coded, rules_about, zeros
from discreet.synthesis.tails import widths_of
from discreet.synthesis.totals import Zeros
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.table import Table, Value
from discreet.trusted.ring_b.questions import Noisy, QuestionMeasurement
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.marginals import Marginals, Opened

TIMES = 10
"""Bins of the time by which rows follow one another. By trial on two tables (docs/publishing.md)."""

Tell = Callable[[Progress], None]
Turn = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class FoundCells:
    """What the first steps released: cells for every column, fine looks at some, columns that none was found for, and
    of found values how often they are there."""

    coding: Coding
    looks: Mapping[str, NoisyHistogram]
    left_out: Mapping[str, str]
    counted: Mapping[str, Sequence[SeenCounts]]


def carried_out(
    door: Door,
    opened: Opened,
    make: Callable[[Marginals], ReleaseContent],
    *,
    analyst: str,
    question: str,
    key: str,
    request: str | None,
    rows: object,
) -> tuple[ReleaseContent, bool]:
    """The content of the release that a run `make`s, and whether this call was charged.

    Raises BudgetError (nothing was spent), EngineError (the price stays charged), LedgerError.
    """
    grant = door.open(opened, analyst=analyst, question=question, key=key, request=request, rows=rows, publishing=True)
    if isinstance(grant, Stored):
        return ReleaseContent.from_json(grant.answer), bool(grant.charged)
    run = Marginals(grant)
    with grant:
        try:
            stored = make(run).to_json()
            run.commit(stored)
        finally:
            run.close()
    return ReleaseContent.from_json(stored), True  # what a repeat will read


def published(call: Publication, marginals: Marginals, turn: Turn, tell: Tell) -> ReleaseContent:
    """A table, in a run that was opened for it. The engine is asked in a `turn` for each step. Where it is interrupted
    after the first marginals were measured, the table is made of these; KeyboardInterrupt where there are none."""
    run = InTurns(marginals, turn)
    found = found_cells(call, run)
    run.code(found.coding)
    result = synthesised(call, found.coding, run, rows=call.rows, counted=found.counted, tell=tell)
    said = {name for clique in (() if call.totals is None else call.totals.counts) for name in clique}
    if not result.measurements and not result.complete and said < set(found.coding.names):
        raise KeyboardInterrupt  # interrupted before there was anything to keep
    whole = content(call, found.coding, found.looks, {**call.left_out, **found.left_out}, result)
    lines = {one.column.name: one.line for one in call.columns if one.line is not None}
    handed = start(found.coding, lines, found.looks, result.carried)
    return replace(whole, more={**whole.more, "start": handed})


def synthesised(
    call: Publication,
    coding: Coding,
    run: InTurns,
    numbers: Collection[str] = (),
    *,
    empty: Zeros | None = None,
    expected: Beforehand | None = None,
    **said: Any,
) -> SynthesisResult:
    """Marginals of the coded rows, chosen and measured, and rows that follow them; what more is said goes to
    `synthesise`. Where NULLs are no more than noise, none are made; in columns of `numbers`, of rows, high ones
    fall (`tails`). No row is in cells that are `empty`, and `expected` is what is known beforehand, but for an earlier
    release.
    Raises EngineError where there are too many cells after all."""
    lines = {one.column.name: one.line for one in call.columns if one.line is not None}
    forbidden = {**zeros(call.impossible, coding, lines, call.orders), **(empty or {})}
    ruled = {name for clique in zeros(call.impossible, coding, lines) for name in clique}
    ruled |= {name for clique in (() if call.totals is None else call.totals.counts) for name in clique}
    while more := {name for pair in call.orders if ruled & set(pair) for name in pair} - ruled:
        ruled |= more  # without NULL there might be no value left that is in order
    own = {one.column.name for one in call.columns}
    free = [one for one in coding.columns if one.column.name in own - ruled]
    rare = {one.column.name: one.size - 1 for one in free if one.null and one.size > 1}
    tails = {one.column.name: widths_of(one) for one in free if isinstance(one, Binned) and one.column.name in numbers}
    domain = Domain(coding.names, coding.sizes)
    measurer = GateMeasurer(run, call.schedule.compared)
    prior = expected if call.earlier is None else call.earlier.prior(domain, certain(call, coding))
    totals = call.totals
    if totals is not None and run.evenly:  # what is measured is no count of rows, but empty cells are empty
        for clique, cells in totals.zeros.items():
            forbidden[clique] = forbidden[clique] | cells if clique in forbidden else cells
        totals = None
    try:
        return synthesise(
            call.schedule.among(domain),
            domain,
            measurer,
            zeros=forbidden,
            rare=rare,
            tails=tails,
            totals=totals,
            prior=prior,
            most_rows=call.most_rows,
            least_rows=call.least_rows,
            **said,
        )
    except QuestionError:  # the private cells are too many after all
        raise EngineError from None


@dataclass(frozen=True)
class InTurns:
    """A run over marginals whose steps each wait for their turn: questions of others come between them."""

    run: Marginals
    turn: Turn
    table: Table | None = None
    """Whose rows are put into cells, of a run over several tables."""
    evenly: bool = False
    """Whether marginals are of weights, by which persons weigh alike."""

    def find(self, question: QuestionMeasurement) -> Noisy:
        """`Marginals.find`, in its turn."""
        with self.turn():
            return self.run.find(question)

    def code(self, coding: Coding) -> None:
        """`Marginals.code` for this table, in its turn."""
        with self.turn():
            self.run.code(coding, self.table, evenly=self.evenly)

    def measure(self, clique: Clique, sigma: Fraction) -> NDArray[np.int64]:
        """`Marginals.measure`, in its turn."""
        with self.turn():
            return self.run.measure(clique, sigma)

    def select(
        self,
        epsilon: Fraction,
        candidates: Sequence[Clique],
        predictions: Sequence[NDArray[np.int64]],
        weights: Sequence[int],
        penalties: Sequence[int],
    ) -> int:
        """`Marginals.select`, in its turn."""
        with self.turn():
            return self.run.select(epsilon, candidates, predictions, weights, penalties)

    def distances(self, cliques: Sequence[Clique], answers: Sequence[NDArray[np.int64]], sigma: Fraction) -> list[int]:
        """`Marginals.distances`, in its turn."""
        with self.turn():
            return self.run.distances(cliques, answers, sigma)


@dataclass(frozen=True)
class GateMeasurer:
    """Adapts the gate's run over marginals to the `Measurer` protocol."""

    run: InTurns
    compared: int

    def select(
        self,
        epsilon: Fraction,
        candidates: Sequence[Clique],
        predictions: Sequence[NDArray[np.int64]],
        weights: Sequence[int],
        penalties: Sequence[int],
    ) -> int:
        return self.run.select(epsilon, candidates, predictions, weights, penalties)

    def measure(self, clique: Clique, sigma: Fraction) -> NDArray[np.int64]:
        return self.run.measure(clique, sigma)

    def distances(self, cliques: Sequence[Clique], answers: Sequence[NDArray[np.int64]], sigma: Fraction) -> list[int]:
        """Measures as many distances as were declared. Those of absent columns are replaced by the total number of
        rows."""
        more = self.compared - len(cliques)
        padded = [*answers, *[np.zeros((), np.int64)] * more]
        return self.run.distances([*cliques, *[()] * more], padded, sigma)[: len(cliques)]


def found_cells(call: Publication, run: InTurns, time: str | None = None) -> FoundCells:
    """Finds values and prefixes for columns that declare none, and bins for columns that need them: few for the `time`
    by which rows follow one another, as it is measured beside itself, and each step on the way may go astray."""
    values = {one.column.name: _values(call, run, one.column.name) for one in call.columns if one.found}
    begun = {
        one.column.name: FoundPrefixes(one.column, tuple(values[one.column.name]), float(call.look_sigma))
        for one in call.columns
        if one.found
    }
    looks = _looks(call, run, begun)
    known: dict[str, ListedCells | Binned] = {
        one.column.name: one.coded if one.coded is not None else begun[one.column.name].cells for one in call.columns
    }
    empty = [name for name, one in begun.items() if not one.cells.listed]
    left_out = dict.fromkeys(empty, "no value of it is shared by enough persons")
    if len(left_out) == len(known):  # then at least how many rows have a value
        left_out = {}
    known = {name: one for name, one in known.items() if name not in left_out}
    kept, crowded = {name: one for name, one in begun.items() if name not in left_out}, set[str]()
    for parts in (BINS, BINS // 2, BINS // 4, BINS // 8, 1):
        for name in kept.keys() & crowded:
            kept[name] = _fewer(begun[name], values[name], MOST_VALUES * parts // BINS if parts > 1 else 1)
            known[name] = kept[name].cells
        for one in call.columns:
            if one.line is not None:
                most = min(parts, TIMES) if one.column.name == time else parts
                cuts = gathered(looks[one.column.name], most) if one.looks else one.cuts
                known[one.column.name] = coded(one, cuts, rules_about(call.impossible, one.column.name))
        coding = Coding(tuple(known[one.column.name] for one in call.columns if one.column.name in known))
        if _holds(call, coding):
            break
        crowded = {name for clique in certain(call, coding) for name in clique}
    counted = {
        name: _seen(call, one, {value: values[name][value] for value in one.values}) for name, one in kept.items()
    }
    return FoundCells(coding, looks, left_out, counted)


def _fewer(found: FoundPrefixes, numbers: Mapping[Value, int], most: int) -> FoundPrefixes:
    """The most frequent values alone, where a model could not hold the others."""
    ranked = sorted(found.values, key=lambda value: -numbers[value])[:most]
    return replace(found, values=tuple(sorted(ranked)), counts={}, whole=())


def _looks(call: Publication, run: InTurns, begun: dict[str, FoundPrefixes]) -> dict[str, NoisyHistogram]:
    """Looks at columns until bins and prefixes stand, one column after another in each turn: gives the last look at
    each that is cut, and puts what was told of prefixes into `begun`."""
    looks: dict[str, NoisyHistogram] = dict(call.looks)
    for turn in range(max((one.looks for one in call.columns), default=0)):
        now = [one for one in call.columns if one.looks > turn]
        cells = [begun[one.column.name].looked_at(turn) if one.found else _looked_at(one, looks) for one in now]
        run.code(Coding(tuple(cells)))
        for one, looked in zip(now, cells, strict=True):
            name = one.column.name
            if isinstance(looked, Binned):
                looks[name] = _look(one, run, looked, call.look_sigma)
            else:
                begun[name] = begun[name].after(turn, run.measure((name,), call.look_sigma).tolist())
    return looks


def _holds(call: Publication, coding: Coding) -> bool:
    """Whether a model can hold what is certain to be in it: how finely columns are cut follows from their rows, and no
    row may make a publication fail that is paid."""
    return junction_tree(Domain(coding.names, coding.sizes), certain(call, coding)).cells <= LIMIT


def certain(call: Publication, coding: Coding) -> list[Clique]:
    """The columns that stand in the model together whatever is measured."""
    lines = {one.column.name: one.line for one in call.columns if one.line is not None}
    named = call.schedule.workload if call.schedule.method == "workload" else ()
    fixed = [one for one in named if set(one) <= set(coding.names)]
    sure = () if call.totals is None else call.totals.counts
    return [*fixed, *sure, *zeros(call.impossible, coding, lines, call.orders)]


def _values(call: Publication, run: InTurns, name: str) -> dict[Value, int]:
    """The values that enough persons share, the most frequent ones, in the order of the values; and of each the noisy
    number of persons."""
    noisy = run.find(call.finders[name])
    counts = noisy.parts[0][0] if noisy.keys else ()
    ranked = sorted(zip(counts, (keys[0] for keys in noisy.keys), strict=True), key=lambda pair: -pair[0])
    return dict(sorted([(value, count) for count, value in ranked if value is not None][:MOST_VALUES]))


def _seen(call: Publication, found: FoundPrefixes, numbers: Mapping[Value, int]) -> list[SeenCounts]:
    """What the first steps told of a column's cells. Numbers of persons are those of rows where a person has one."""
    cells = found.cells
    seen = [SeenCounts(np.array(one), np.ones(cells.size, bool), call.look_sigma) for one in found.whole]
    if call.schedule.moved > 1:
        return seen
    mechanism = call.finders[cells.column.name].parts[0].mechanism
    assert isinstance(mechanism, Threshold)
    assert isinstance(mechanism.noise, Gaussian)
    counts = np.zeros(cells.size, np.int64)
    counts[: len(numbers)] = [numbers[value] for value in cells.values]
    some = np.arange(cells.size) < len(numbers)
    return [*seen, SeenCounts(counts, some, mechanism.noise.sigma)] if numbers else seen


def _looked_at(one: PublishedColumn, looks: Mapping[str, NoisyHistogram]) -> Binned:
    """The cells of the next look at a column."""
    assert isinstance(one.coded, Binned)
    assert one.line is not None
    before = looks.get(one.column.name)
    return one.coded if before is None else one.line.binned(refined(before, BINS))


def _look(one: PublishedColumn, run: InTurns, cells: Binned, sigma: Fraction) -> NoisyHistogram:
    assert one.line is not None
    counts = run.measure((one.column.name,), sigma)
    inside = counts[: len(cells.cuts) + 1]
    cuts = tuple(one.line.place(cut) for cut in cells.cuts)
    return NoisyHistogram(one.line, cuts, tuple(inside.tolist()), float(sigma))
