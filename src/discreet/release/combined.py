"""One number from several measurements of it: a weighted mean, with weights that are fixed before anything is drawn.

Two measurements of one quantity, with the rows, limits and clamps the same, are its true value and independent noises.
So is their weighted mean, with the weighted sum of the noises. The weights are those of the precisions, one over the
squared widths of the intervals: they follow from plans and scales, in thousandths, which the ledger keeps. Nothing that
was measured takes part in them, so the mean is unbiased, and its interval is a quantile of the noises' convolution
(`intervals.combined`).

Only counts and sums of cells are put together so. A mean is a quotient, and asked for again it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.intervals.combined import MOST_CELLS, Combined
from discreet.intervals.expected import grid_of
from discreet.intervals.sums import Summed
from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.release.reused import ReusableMeasurement
from discreet.trusted.ring_a.nodes import Part, PartKind
from discreet.trusted.ring_b.questions import Noisy

WHOLE = 1_000
"""Weights are so many parts of one."""


@dataclass(frozen=True)
class CombinedMeasurement:
    """What an answer is made of where it is made of several measurements: of each what it holds of the question, the
    one that was bought for it first, and its weight."""

    asked_measurement: Measurement
    held: tuple[ReusableMeasurement, ...]
    weights: tuple[int, ...]

    @property
    def measured(self) -> Measurement:
        """What was bought for it."""
        return self.held[0].measured

    @property
    def asked(self) -> Plan:
        """The question's own plan."""
        return self.asked_measurement.plan

    @property
    def made(self) -> Measurement:
        """The question, with the noise of the weighted means, at the price of what was bought."""
        own = self.asked_measurement
        parts: list[Part] = []
        mechanisms: list[Combined] = []
        outputs: list[Output] = []
        for place, output in enumerate(own.plan.outputs):
            if not number(output):
                outputs.append(output)
                continue
            measured = own.parts[output.index]
            grid = None if output.kind is OutputKind.COUNT else grid_of(output, measured)
            terms = tuple(
                (held.made.parts[held.made.plan.outputs[place].index].mechanism, self._of(which, place))
                for which, held in enumerate(self.held)
            )
            outputs.append(replace(output, index=len(parts), weights=(Fraction(1),)))
            kind = PartKind.COUNT if output.kind is OutputKind.COUNT else PartKind.SUM
            parts.append(Part(kind, measured.part.vectors[:1], grid))
            mechanisms.append(Combined(terms))  # type: ignore[arg-type]
        plan = replace(own.plan, parts=tuple(parts), outputs=tuple(outputs))
        return replace(
            own,
            plan=plan,
            mechanisms=tuple(mechanisms),  # type: ignore[arg-type]
            price=self.measured.price,
        )

    def _of(self, which: int, place: int) -> tuple[Fraction, ...]:
        """The weights of a measurement's vectors in an output."""
        weight = Fraction(self.weights[which], WHOLE)
        return tuple(weight * one for one in self.held[which].made.plan.outputs[place].weights)

    def of(self, noisy: Noisy, *others: Noisy) -> Noisy:
        """The numbers that the answer is made of, from what was bought and from the others in order."""
        each = [held.of(one) for held, one in zip(self.held, (noisy, *others), strict=True)]
        parts = []
        for place, output in enumerate(self.asked.outputs):
            if number(output):
                vectors = [
                    (weight, vector)
                    for which, (held, one) in enumerate(zip(self.held, each, strict=True))
                    for weight, vector in zip(
                        self._of(which, place), one.parts[held.made.plan.outputs[place].index], strict=True
                    )
                ]
                cells = range(len(each[0].keys))
                parts.append((tuple(sum(weight * vector[cell] for weight, vector in vectors) for cell in cells),))
        return Noisy(each[0].keys, tuple(parts))  # type: ignore[arg-type]

    def share(self, groups: int) -> float:
        """Nothing of it was seen before it was chosen."""
        del groups
        return 1.0


def number(output: Output) -> bool:
    """Whether a column is a count or a sum."""
    return output.kind in (OutputKind.COUNT, OutputKind.SUM) and not output.of


def combinable(plan: Plan) -> bool:
    """Whether all columns of a question are counts, sums, keys, and formulas of such."""
    kinds = (OutputKind.COUNT, OutputKind.SUM, OutputKind.KEY, OutputKind.FORMULA)
    return any(map(number, plan.outputs)) and all(output.kind in kinds for output in plan.outputs)


def usable(held: ReusableMeasurement) -> bool:
    """Whether a stored measurement's noise is one that can be added to others'."""
    return all(not isinstance(one, Summed) or one.cells <= MOST_CELLS for one in held.made.mechanisms)


def precision_weights(precisions: Sequence[float]) -> tuple[int, ...]:
    """Weights in proportion to these precisions, the first one what is left of the whole."""
    total = sum(precisions)
    others = [round(WHOLE * one / total) for one in precisions[1:]]
    return (WHOLE - sum(others), *others)
