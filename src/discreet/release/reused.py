"""Answers made of what was measured for another question.

Whatever follows from numbers that were released costs nothing more (post-processing; Dwork & Roth 2014, Proposition
2.1). So a question is answered from a stored measurement where that measured the same rows in the same groups, holds
every number that the question needs, and tells each at least as precisely as the question's own price would.

Which numbers a measurement holds follows from its plan: each vector is a combination of exact totals with known
weights, and so is a number; it is held where it is a combination of the vectors of one part.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.dialect.nulls import may_be_null
from discreet.intervals import chosen
from discreet.intervals.expected import GROUP_FOR_MEANS, error_of
from discreet.intervals.noise import CONFIDENCE
from discreet.intervals.sums import Summed
from discreet.mechanisms import Ball, Gaussian, Laplace, Threshold, expected_error
from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.release import cells
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Filter,
    LimitGroups,
    LimitRows,
    Node,
    Part,
    PartKind,
    Project,
    Quantity,
    Scan,
    TotalKind,
    project_of,
)
from discreet.trusted.ring_a.table import Column, Table
from discreet.trusted.ring_b.jointly import axis_of, ends_of, mean_of
from discreet.trusted.ring_b.order_statistics import MeasuredSpecial
from discreet.trusted.ring_b.questions import Noisy

MOST_READ, MOST_TRIED = 256, 16
"""How many stored measurements of the same rows and groups are listed for a question, the oldest first; and in how many
of these, the dearest first, what it needs is looked for."""

Meaning = tuple[TotalKind, Quantity | None, tuple[int, int] | None]
"""What a total adds up: its kind, of what, and the bounds of a person's own total."""

Combination = Mapping[Meaning, Fraction]
"""An exact number, as weights of totals."""


def frame(plan: Plan) -> str:
    """Which rows are measured, and in which groups: in the same words wherever one measurement may hold what another
    asks."""
    return f"{project_of(plan.roots[0]).child!r} {plan.keys!r} {plan.least}"


@dataclass(frozen=True)
class ReusableMeasurement:
    """A measurement, whose noisy numbers are stored or will be; and what an answer is made of: all of it, or those of
    its `parts` and `specials` that are named, with columns of another question."""

    measured: Measurement
    made: Measurement
    parts: tuple[int, ...]
    specials: tuple[int, ...]
    asked: Plan | None = None
    """The other question's own plan: what it reads and limits."""
    union: cells.Union | None = None
    """What the question adds up of the stored cells, where its groups are not those that are stored."""

    @classmethod
    def whole(cls, priced: Measurement) -> ReusableMeasurement:
        """All of a question's own measurement."""
        return cls(priced, priced, tuple(range(len(priced.parts))), tuple(range(len(priced.specials))))

    def of(self, noisy: Noisy) -> Noisy:
        """The numbers that the answer is made of."""
        parts = tuple(noisy.parts[place] for place in self.parts) if noisy.parts else ()
        kept = replace(noisy, parts=parts, specials=tuple(noisy.specials[place] for place in self.specials))
        if self.union is None:
            return kept
        assert self.asked is not None
        return cells.summed(self.union, self.asked, kept)

    def share(self, groups: int) -> float:
        """The share of the failures that one number of an answer has which was asked for after it was drawn, apart from
        that of the release: of a union of cells, or of one of the `groups` that are stored."""
        vectors = sum(len(one.part.vectors) for one in self.measured.parts)
        share = 1 / max(1, groups) if self.union is None else self.union.share
        return share * chosen.numbers(
            max(1, vectors + sum(len(one.special.fractions) + 1 for one in self.measured.specials))
        )


def reused(asked: Measurement, known: Measurement, table: Table) -> ReusableMeasurement | None:
    """What `known` measured, with the columns that `asked` makes of it; None where `known` lacks one, or tells one less
    precisely than `asked` would. For a larger price than was paid, everything is measured anew."""
    one, other = asked.plan, known.plan
    if known.price.epsilon < asked.price.epsilon:
        return None
    if frame(one) != frame(other) or one.ranges or other.ranges or not _shown(asked, known):
        return None
    alike = bool(one.parts and other.parts) and _limits(one.root) == _limits(other.root)
    columns = {column.name: column for column in table.columns}
    meant, held = (_meanings(measurement, columns) if alike else [] for measurement in (asked, known))
    outputs: list[Output] = []
    for output in one.outputs:
        found: Output | None = None
        if output.kind is OutputKind.KEY or output.of:
            found = output  # what it is made of stands beside it
        elif output.kind is OutputKind.SPECIAL:
            found = _special(output, asked.specials[output.index], known.specials)
        elif alike:
            found = _number(output, asked.parts[output.index], meant, known.parts, held)
        if found is None:
            return None
        outputs.append(found)
    parts = {
        output.index for output in outputs if output.kind not in (OutputKind.KEY, OutputKind.SPECIAL) and not output.of
    }
    parts |= {place for place, measured in enumerate(known.parts) if isinstance(measured.mechanism, Threshold)}
    specials = {output.index for output in outputs if output.kind is OutputKind.SPECIAL}
    return _picked(asked, known, outputs, sorted(parts), sorted(specials))


def added_up(
    asked: Measurement, known: Measurement, union: cells.Union, table: Table, free: Collection[str] = ()
) -> ReusableMeasurement | None:
    """What `asked` makes of sums over the cells that `known` measured; None where it lacks a number, or its sums tell
    one less precisely than `asked` would. Errors of columns that are `free` are for the caller to judge."""
    one = asked.plan
    if one.specials or one.ranges or not one.parts or not cells.few_enough(union, one):
        return None
    columns = {column.name: column for column in table.columns}
    meant, held = (_meanings(measurement, columns) for measurement in (asked, known))
    parts = known.parts
    if union.cells > 1:
        parts = tuple(_over(part, union.cells) for part in known.parts)
    judged = {place for output in one.outputs if output.name in free for place in output.of}
    outputs: list[Output] = []
    for place, output in enumerate(one.outputs):
        found: Output | None = output
        if output.kind is not OutputKind.KEY and not output.of:
            unjudged = output.name in free or place in judged
            found = _number(output, asked.parts[output.index], meant, parts, held, any_error=unjudged)
        if found is None:
            return None
        outputs.append(found)
    used = sorted({output.index for output in outputs if output.kind is not OutputKind.KEY and not output.of})
    made = _picked(asked, replace(known, mechanisms=tuple(part.mechanism for part in parts)), outputs, used, [])
    return replace(made, measured=known, union=union)


def _over(part: Measured, count: int) -> Measured:
    """A part of sums over so many cells."""
    assert isinstance(part.mechanism, Laplace | Gaussian | Ball)
    return Measured(part.part, part.sensitivity, Summed(part.mechanism, count))  # type: ignore[arg-type]


def _picked(
    asked: Measurement, known: Measurement, outputs: Sequence[Output], parts: Sequence[int], specials: Sequence[int]
) -> ReusableMeasurement:
    """The parts and specials that the outputs are made of, numbered anew."""
    numbered = [
        replace(output, index=specials.index(output.index))
        if output.kind is OutputKind.SPECIAL
        else output
        if output.kind is OutputKind.KEY or output.of
        else replace(output, index=parts.index(output.index))
        for output in outputs
    ]
    made = replace(
        asked.plan,
        root=known.plan.root,
        parts=tuple(known.plan.parts[place] for place in parts),
        specials=tuple(known.plan.specials[place] for place in specials),
        outputs=tuple(numbered),
    )
    measurement = replace(
        known,
        plan=made,
        mechanisms=tuple(known.mechanisms[place] for place in parts),
        special_mechanisms=tuple(known.special_mechanisms[place] for place in specials),
    )
    return ReusableMeasurement(known, measurement, tuple(parts), tuple(specials), asked.plan)


def _limits(root: Aggregate) -> list[tuple[str, int]]:
    """How the rows and groups of a person are limited, whatever is added up."""
    limits: list[tuple[str, int]] = []
    node: Node = root.child
    while not isinstance(node, Project | Scan | Filter):
        most = node.rows if isinstance(node, LimitRows) else node.groups if isinstance(node, LimitGroups) else 0
        limits.append((type(node).__name__, most))
        node = node.child
    return limits


def _shown(asked: Measurement, known: Measurement) -> bool:
    """Whether groups are found as `asked` would find them: where keys are private, from as few persons on."""
    one, other = (
        [measured.mechanism for measured in measurement.parts if isinstance(measured.mechanism, Threshold)]
        for measurement in (asked, known)
    )
    return len(one) == len(other) and all(
        theirs.threshold <= own.threshold and expected_error(theirs.noise) <= expected_error(own.noise)
        for own, theirs in zip(one, other, strict=True)
    )


def _special(output: Output, wanted: MeasuredSpecial, known: Sequence[MeasuredSpecial]) -> Output | None:
    """What is measured by itself, from the same measured at no smaller a price."""
    for place, one in enumerate(known):
        if replace(one.special, epsilon=None) == replace(wanted.special, epsilon=None):
            mine, theirs = wanted.mechanism, one.mechanism
            if isinstance(mine, Laplace) or isinstance(theirs, Laplace):
                enough = isinstance(mine, Laplace) and isinstance(theirs, Laplace) and theirs.scale <= mine.scale
            else:
                enough = theirs.epsilon >= mine.epsilon
            if enough:
                return replace(output, index=place)
    return None


def _number(
    output: Output,
    own: Measured,
    meant: Sequence[Meaning],
    known: Sequence[Measured],
    held: Sequence[Meaning],
    *,
    any_error: bool = False,
) -> Output | None:
    """A count, a sum or a mean, from the part that tells it most precisely; None where none tells it as precisely as
    its own, unless it may have any error. `meant` and `held` are what the totals of either measurement mean."""
    wanted = _meant(output, own.part, meant)
    best, least = None, math.inf if any_error else error_of(output, own, 1 - CONFIDENCE, GROUP_FOR_MEANS)
    for place, measured in enumerate(known):
        if isinstance(own.mechanism, Threshold) == isinstance(measured.mechanism, Threshold):
            for weights in _made(output, wanted, measured.part, held):
                made = replace(output, index=place, weights=weights)
                error = error_of(made, measured, 1 - CONFIDENCE, GROUP_FOR_MEANS)
                if error <= least:
                    best, least = made, error
    return best


def _meanings(measurement: Measurement, columns: Mapping[str, Column]) -> list[Meaning]:
    """What each total adds up. The rows with a value are all rows, where there is no row without."""
    root = measurement.plan.root
    quantities, found = project_of(root).quantities, []
    for total in root.totals:
        kind, of = total.kind, None if total.quantity is None else quantities[total.quantity]
        if kind is TotalKind.NON_NULL and of is not None:
            of = replace(of, lattice=None)
            if not may_be_null(of.expression, columns):
                kind, of = TotalKind.ROWS, None
        found.append((kind, of, total.bounds))
    return found


def _meant(output: Output, part: Part, meanings: Sequence[Meaning]) -> tuple[Any, ...]:
    """What a number is, whatever it is made of: as a combination of totals, or as those of the two ends of a mean."""
    vectors = _vectors(part, meanings)
    if output.kind is not OutputKind.MEAN:
        return (_added(vectors, output.weights),)
    marks = [mark for mark, *_ in _ends(part)]
    mark = mean_of(part, axis_of(part, output.weights)) if part.axes else ()
    _, above, below, grid = _ends(part)[marks.index(mark)]
    return _added(vectors, above), _added(vectors, below), grid


def _made(
    output: Output, wanted: tuple[Any, ...], part: Part, meanings: Sequence[Meaning]
) -> Iterator[tuple[Fraction, ...]]:
    """The weights by which a part's vectors make the wanted number."""
    vectors = _vectors(part, meanings)
    if output.kind is not OutputKind.MEAN:
        weights = _solved(vectors, wanted[0])
        if weights is not None:
            yield weights
        return
    for mark, above, below, grid in _ends(part):
        if (_added(vectors, above), _added(vectors, below), grid) == wanted:
            yield mark


def _ends(part: Part) -> list[tuple[tuple[Fraction, ...], Sequence[Fraction], Sequence[Fraction], Lattice]]:
    """Each mean that a part holds: what marks its output, the weights of its two ends, and its lattice."""
    if part.axes:
        return [(mean_of(part, axis), *ends_of(part, axis), axis.lattice) for axis in part.axes]
    if part.kind is not PartKind.MEAN or part.lattice is None:
        return []
    above, below = ([Fraction(int(place == end)) for place in range(len(part.vectors))] for end in (0, 1))
    return [((), above, below, part.lattice)]


def _vectors(part: Part, meanings: Sequence[Meaning]) -> list[Combination]:
    """The vectors of a part, as combinations of what the totals mean."""
    vectors = []
    for vector in part.vectors:
        one: dict[Meaning, Fraction] = {}
        for place, weight in vector.weights:
            one[meanings[place]] = one.get(meanings[place], Fraction(0)) + weight
        vectors.append(_without_zeros(one))
    return vectors


def _added(vectors: Sequence[Combination], weights: Sequence[Fraction]) -> Combination:
    whole: dict[Meaning, Fraction] = {}
    for vector, weight in zip(vectors, weights, strict=True):
        for meaning, amount in vector.items():
            whole[meaning] = whole.get(meaning, Fraction(0)) + weight * amount
    return _without_zeros(whole)


def _without_zeros(combination: Combination) -> Combination:
    return {meaning: amount for meaning, amount in combination.items() if amount}


def _solved(vectors: Sequence[Combination], wanted: Combination) -> tuple[Fraction, ...] | None:
    """Weights with which the vectors add up to what is wanted, by elimination; None where there are none."""
    rows = [
        [vector.get(meaning, Fraction(0)) for vector in vectors] + [wanted.get(meaning, Fraction(0))]
        for meaning in dict.fromkeys([meaning for one in (*vectors, wanted) for meaning in one])
    ]
    leading: list[int] = []
    for column in range(len(vectors)):
        below = len(leading)
        chosen = next((row for row in range(below, len(rows)) if rows[row][column]), None)
        if chosen is None:
            continue
        rows[below], rows[chosen] = rows[chosen], rows[below]
        rows[below] = [value / rows[below][column] for value in rows[below]]
        for row in range(len(rows)):
            if row != below and rows[row][column]:
                rows[row] = [a - rows[row][column] * b for a, b in zip(rows[row], rows[below], strict=True)]
        leading.append(column)
    if any(row[-1] for row in rows[len(leading) :]):
        return None
    weights = [Fraction(0)] * len(vectors)
    for row, column in enumerate(leading):
        weights[column] = rows[row][-1]
    return tuple(weights)
