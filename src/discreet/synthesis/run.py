"""One run that publishes a table: values and bins are found, marginals chosen and measured, rows drawn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.catalog.model import Value
from discreet.door import Door, Marginals
from discreet.errors import EngineError
from discreet.ledger import Stored
from discreet.markov import Clique, Domain
from discreet.plan.coding import MOST_CELLS, Binned, Coding, Listed
from discreet.synthesis.adaptive import Progress, synthesise
from discreet.synthesis.cells import Histogram, gathered, refined
from discreet.synthesis.columns import BINS, Wanted
from discreet.synthesis.content import content
from discreet.synthesis.publication import MOST_ROWS, MOST_VALUES, Publication, coded, rules_about, zeros

Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Found:
    """What the first steps released: cells for every column, fine looks at some, and columns that none was found
    for."""

    coding: Coding
    looks: Mapping[str, Histogram]
    left_out: Mapping[str, str]


def carried_out(
    call: Publication, door: Door, *, analyst: str, key: str, request: str | None, tell: Tell
) -> tuple[dict[str, Any], bool]:
    """The content of the release, and whether this call was charged.

    Raises BudgetError (nothing was spent), EngineError (the price stays charged), LedgerError. Where it is interrupted
    after the first marginals were measured, the table is made of these.
    """
    grant = door.open(call.declared.loss, call.table, analyst=analyst, question=call.question, key=key, request=request)
    if isinstance(grant, Stored):
        return json.loads(grant.answer), bool(grant.charged)
    run = Marginals(grant, call.table, call.declared)
    try:
        made = _made(call, run, tell)
        stored = json.dumps(made, ensure_ascii=False).encode()
        run.commit(stored)
    finally:
        run.close()
    return json.loads(stored), True  # what a repeat will read


def _made(call: Publication, run: Marginals, tell: Tell) -> dict[str, Any]:
    found = _found(call, run)
    if not found.coding.columns:
        raise EngineError
    domain = Domain(found.coding.names, found.coding.sizes)
    lines = {one.column.name: one.line for one in call.columns if one.line is not None}
    forbidden = zeros(call.table, found.coding, lines)
    result = synthesise(call.schedule.among(domain.names), domain, Measurer(run), zeros=forbidden, tell=tell)
    rows = call.rows or max(1, min(round(result.model.total), MOST_ROWS))
    drawn = result.model.sample(rows)
    errors = _errors(call, run, domain, drawn, result.model.total)
    return content(call, found.coding, found.looks, {**call.left_out, **found.left_out}, result, drawn, errors)


def _errors(
    call: Publication, run: Marginals, domain: Domain, drawn: NDArray[np.int64], total: float
) -> dict[Clique, float]:
    """By how many rows the published rows are off in each marginal, added up over its cells, at most, with 95 %.

    The noisy distance and 1.65 deviations of its noise, drawn when the rows stood: whatever was chosen before, and
    however. The rounding of the noise adds a half. Each row stands for total/rows of the real ones. Never more than
    the rows that there are on both sides, of which the former are known with noise alone and so not used.
    """
    known = [clique for clique in call.checked if set(clique) <= set(domain.names)]
    known = [clique for clique in known if domain.cells(clique) <= MOST_CELLS]
    scale = total / len(drawn)
    predicted = [np.rint(counted(domain, drawn, clique) * scale).astype(np.int64) for clique in known]
    padded = [*known, *[()] * (len(call.checked) - len(known))]
    zero = [np.zeros((), np.int64)] * (len(call.checked) - len(known))
    noisy = run.distances(padded, [*predicted, *zero], call.check_sigma)[: len(known)]
    room = NormalDist().inv_cdf(0.95) * float(call.check_sigma) + 0.5
    return {clique: max(0.0, one + room) for clique, one in zip(known, noisy, strict=True)}


def counted(domain: Domain, rows: NDArray[np.int64], clique: Clique) -> NDArray[np.int64]:
    """How many of the coded rows are in each cell."""
    codes = np.zeros(len(rows), np.int64)
    for name in clique:
        codes = codes * domain.size(name) + rows[:, domain.place[name]]
    return np.bincount(codes, minlength=domain.cells(clique)).reshape(domain.shape(clique))


@dataclass(frozen=True)
class Measurer:
    """The door's run as what the adaptive procedure asks."""

    run: Marginals

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


def _found(call: Publication, run: Marginals) -> Found:
    """Values of columns that declare none, and bins of those that are to be cut."""
    left_out: dict[str, str] = {}
    known: dict[str, Listed | Binned] = {}
    for one in call.columns:
        name = one.column.name
        if one.coded is not None:
            known[name] = one.coded
            continue
        values = _values(call, run, name)
        if values:
            known[name] = Listed(one.column, values, other=True, null=one.column.nulls)
        else:
            left_out[name] = "no value of it is shared by enough persons"
    looks: dict[str, Histogram] = {}
    cutting = [one for one in call.columns if one.looks]
    for turn in range(2):
        now = [one for one in cutting if one.looks > turn]
        if not now:
            break
        run.code(Coding(tuple(_looked_at(one, looks) for one in now)))
        for one in now:
            looks[one.column.name] = _look(one, run, _looked_at(one, looks), call.look_sigma)
    for one in call.columns:
        if one.line is not None:
            cuts = [one.line.place(cut) for cut in known_cuts(known[one.column.name])]
            if one.looks:
                cuts = gathered(looks[one.column.name], BINS)
            known[one.column.name] = coded(one, cuts, rules_about(call.table, one.column.name))
    coding = Coding(tuple(known[one.column.name] for one in call.columns if one.column.name in known))
    if coding.columns:
        run.code(coding)
    return Found(coding, looks, left_out)


def known_cuts(one: Listed | Binned) -> tuple[Value, ...]:
    return one.cuts if isinstance(one, Binned) else ()


def _values(call: Publication, run: Marginals, name: str) -> tuple[Value, ...]:
    """The values that enough persons share, the most frequent ones, in the order of the values."""
    finder = call.finders[name]
    noisy = run.find(finder)
    counts = noisy.parts[0][0] if noisy.keys else ()
    ranked = sorted(zip(counts, (keys[0] for keys in noisy.keys), strict=True), key=lambda pair: -pair[0])
    chosen = [value for _, value in ranked if value is not None][:MOST_VALUES]
    return tuple(sorted(chosen))


def _looked_at(one: Wanted, looks: Mapping[str, Histogram]) -> Binned:
    """The cells of the next look at a column."""
    assert isinstance(one.coded, Binned)
    assert one.line is not None
    before = looks.get(one.column.name)
    return one.coded if before is None else one.line.binned(refined(before, BINS))


def _look(one: Wanted, run: Marginals, cells: Binned, sigma: Fraction) -> Histogram:
    assert one.line is not None
    counts = run.measure((one.column.name,), sigma)
    inside = counts[: len(cells.cuts) + 1]
    cuts = tuple(one.line.place(cut) for cut in cells.cuts)
    return Histogram(one.line, cuts, tuple(inside.tolist()), float(sigma))
