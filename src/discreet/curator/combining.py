"""What is missing of a question's precision, bought and put together with what is stored.

Where noise is stored that nobody has seen, of the very quantity that is asked for, but less precise than the price that
is named, a cheaper measurement is bought, and the answer is the weighted mean of both (`release.combined`). It is the
cheapest one, to three digits, with which every count and sum prints as precisely as the price would buy alone, or
within the wanted error. Where that saves less than a tenth of the price, the price is paid as ever.

Which intervals. Noise that nobody has seen is independent of everything that was shown, so of the choice of the
question, of its price, and of the weights; so is the noise that is bought. The error of the mean has the law of their
weighted sum, whatever was shown before, and its quantile holds with its probability, for each such answer.

Noise that was seen is not put together with other. Whoever chose it may have chosen it for being far out. All that
holds of it is the bound H that holds for all such answers at once (`intervals.chosen`), so a mean with the weight w on
it must count the whole of w·H, and the rest with its own law; and both bounds share the failures. A small weight gains
in the first order, w of the noise that is bought, and loses in the second, (w·H)² of its interval. Wherever H is as
wide as what the price prints or wider (else the answer is free), the best weight and the best share save less than a
tenth of the price: `tests/curator/test_combining.py` goes through them.

What is charged is the loss of the cheaper measurement, computed by that measurement. It was chosen by plans, prices,
scales, and by which cells were shown: by no number that was measured. So the filters see a loss that follows from what
was asked before, as they are made for.

Several stored answers that nobody has seen may together be as precise as is asked. Then nothing is bought.

The answer is remembered by the entry that stores what was bought: for which question, and with which stored answers, by
the numbers of their entries, in which weights; where nothing is bought, by the last entry that marks one of them as
seen. Before anything is bought or shown, all are marked so; where the process ends between, nothing was shown, and what
was marked is taken for seen by every other question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.curator.stored_answers import Component, FoundAnswer, Sought, cells_of, put_together
from discreet.intervals import combined
from discreet.intervals.combined import Combined
from discreet.intervals.expected import GROUP_FOR_MEANS, error_of
from discreet.intervals.noise import CONFIDENCE
from discreet.plan.measurement import Measurement
from discreet.plan.split import measurement
from discreet.release.combined import CombinedMeasurement, combinable, number, precision_weights, usable
from discreet.release.reused import ReusableMeasurement, added_up
from discreet.trusted.ring_a.exact import ceiling

SAVES = Fraction(9, 10)
"""Of the price: what is bought must cost no more."""

MOST_COMBINED = 3
"""So many stored answers, the most precise ones, are put together with what is bought."""

_LEAST_PART = 1 / 20
"""A stored answer with less than this part of the precision that the price buys is left out."""

_CHEAPEST = Fraction(1, 50)
"""Of the price: no cheaper measurement is tried."""

_ROUNDING = 1 + 1e-6

_STEPS = 9
_MISS = 1 - CONFIDENCE


@dataclass(frozen=True)
class WantedPrecision:
    """How precise an answer is to be: the half widths of columns that were asked for, each to fail with `miss`. Others
    are to be as precise as the price would buy alone."""

    widths: Mapping[str, float]
    miss: float

    def met(self, own: Measurement, made: CombinedMeasurement, *, again: bool = False) -> bool:
        """Whether the weighted means are as precise as the question's own measurement, or as was asked for. What is
        asked `again` is met with the least rounding, so that what was free stays free wherever it is computed."""
        for place, part in zip(_places(own), made.made.parts, strict=True):
            assert isinstance(part.mechanism, Combined)
            name = own.plan.outputs[place].name
            width, miss = (self.widths[name], self.miss) if name in self.widths else (_error(own, place), _MISS)
            if combined.half_width(part.mechanism, miss) > width * (_ROUNDING if again else 1):
                return False
        return True


@dataclass(frozen=True)
class Missing:
    """What is bought, and what it is put together with."""

    bought: Measurement
    made: CombinedMeasurement
    others: tuple[Component, ...]

    @property
    def described(self) -> list[object]:
        """What the ledger keeps of it: the price that was named, and the others with their weights."""
        price = self.made.asked_measurement.price
        parts = [[one.reserve, weight] for one, weight in zip(self.others, self.made.weights[1:], strict=True)]
        return [[str(price.epsilon), str(price.delta), price.gaussian], parts]


def enough(asked: Sought, stored: Sequence[Component], wanted: WantedPrecision) -> FoundAnswer | None:
    """Several stored answers put together, where that is as precise as is asked: for nothing."""
    own, used = asked.priced, _used(asked, stored)
    if len(used) < 2:
        return None
    weights = precision_weights([_precision(own, one.held) for one in used])
    made = CombinedMeasurement(own, tuple(one.held for one in used), weights)
    return put_together(asked, used, made) if wanted.met(own, made) else None


def missing(
    asked: Sought, stored: Sequence[Component], wanted: WantedPrecision, admitted: Callable[[Measurement], bool]
) -> Missing | None:
    """What is to be bought for a question beside what is stored; None where that does not save a tenth. What is bought
    must be `admitted`: its price may be below the least."""
    own, used = asked.priced, _used(asked, stored)
    if not used:
        return None
    known = [_precision(own, one.held) for one in used]

    def at(epsilon: Fraction) -> Missing | None:
        bought = measurement(own.plan, replace(own.price, epsilon=epsilon))
        held = _held(asked, bought)
        if held is None or not admitted(bought):
            return None
        weights = precision_weights([_precision(own, held), *known])
        made = CombinedMeasurement(own, (held, *(one.held for one in used)), weights)
        return Missing(bought, made, used) if wanted.met(own, made) else None

    low, high = own.price.epsilon * _CHEAPEST, own.price.epsilon * SAVES
    best = at(high)
    for _ in range(_STEPS if best is not None else 0):
        middle = ceiling(Fraction(math.sqrt(low * high)), 3)
        if not low < middle < high:
            break
        if (found := at(middle)) is None:
            low = middle
        else:
            best, high = found, middle
    return best


def _used(asked: Sought, stored: Sequence[Component]) -> tuple[Component, ...]:
    """The most precise of the stored answers that can be put together for a question."""
    own = asked.priced
    if not stored or not combinable(own.plan) or own.plan.at is not None:
        return ()
    precise = [(_precision(own, one.held), one) for one in stored if usable(one.held)]
    precise.sort(key=lambda pair: (-pair[0], pair[1].reserve))
    return tuple(one for precision, one in precise[:MOST_COMBINED] if precision >= _LEAST_PART)


def of_all_cells(found: Missing, more: Measurement, asked: Sought) -> Missing | None:
    """The same where all cells are bought for the price of one."""
    held = _held(asked, more)
    made = found.made
    one_cell = held is not None and held.union is not None and held.union.cells == 1
    return (
        None
        if held is None or not one_cell
        else Missing(more, replace(made, held=(held, *made.held[1:])), found.others)
    )


def _held(asked: Sought, bought: Measurement) -> ReusableMeasurement | None:
    """What a measurement holds of the question, whatever its precision."""
    cells = cells_of(asked, bought)
    names = [output.name for output in asked.priced.plan.outputs]
    return None if cells is None else added_up(asked.priced, bought, cells, asked.table, names)


def _places(own: Measurement) -> list[int]:
    """Where a question's counts and sums are among its columns."""
    return [place for place, output in enumerate(own.plan.outputs) if number(output)]


def _error(measured: Measurement, place: int) -> float:
    output = measured.plan.outputs[place]
    return error_of(output, measured.parts[output.index], _MISS, GROUP_FOR_MEANS)


def _precision(own: Measurement, held: ReusableMeasurement) -> float:
    """How precise a measurement is beside what the price would buy: the mean of its numbers' quotients."""
    parts = [(_error(own, place) / max(_error(held.made, place), 1e-300)) ** 2 for place in _places(own)]
    return min(1e12, sum(parts) / len(parts))
