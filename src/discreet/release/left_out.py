"""How much the limits of a question may have left out: a bound from the noisy numbers of the release itself.

Nothing private is read: what is said before a question is asked follows from declarations, the bounds that are said
after it are made of numbers that were released, so they cost nothing.

The bound. With X a count of the answer, added up over all its groups, and Y the same count at the declared limits,
`plan.left_out` proves E[X] ≥ s·E[Y] over the salt, or X ≥ s·Y for certain; so does it for sums of values ≥ 0. The noisy
groups give U ≥ X, the sum of the upper ends of their intervals, each of which fails with a probability of at most
miss/2 over the number of groups, so that all hold with 1 − miss/2.

* Certain: Y − X ≤ (1/s − 1)·X ≤ (1/s − 1)·U. Where limits are clamps of counts that is so. And it is so where each
  person above the limit L adds exactly L to X: then at most U/L persons are above, each of whom lacks at most D − L, so
  Y − X ≤ (U/L)·(D − L), the same number with s = L/D. Windows that look past WHERE, rows without a key that is shown,
  rows without a value, and a second limit all break "exactly L"; then it holds on average alone, as follows.
* On average: X is a sum of persons' terms in [0, r], each with a draw of its own from a fresh salt, so with M = E[X]
  P(X ≤ M − √(2rtM)) ≤ e^(−t) (Chernoff; Mitzenmacher & Upfal 2005, Theorem 4.5). With t = log(2/miss) and X ≤ U, M lies
  below U + rt + √(r²t² + 2rtU) with 1 − miss/2, and E[Y] below that over s; as the excess grows in X, what is missing
  is at most that less U. Together with the noise it holds with 1 − miss. Draws of different persons are hashes of
  different words, taken as independent and uniform. Where nobody has more than D rows or G groups, Y is one number,
  else its mean over what the declared limits would draw.

Several parts, limits of rows and of groups. Each number has the share of the limits and clamps that act on it alone:
the shares multiply. Nothing is claimed of the numbers together; each bound fails with a probability of at most miss.

Private keys. Persons whose groups were not shown are missing from any sum over the groups shown, and nothing released
bounds them; the threshold tells how large a group is shown almost surely. So there no total is claimed, but the share
of each group that is shown; only clamps, which hold for certain, bound what is missing in the groups shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from discreet.catalog.model import Table
from discreet.exact import show
from discreet.mechanisms import GaussianThreshold, LaplaceThreshold
from discreet.plan.jointly import axis_of, count_of
from discreet.plan.left_out import Kept, Limit, Telling, clamps, kept, lattice_of, limits, row_clamps, without_group
from discreet.plan.measurement import Measured, Measurement, Noisy
from discreet.plan.nodes import Output, Part
from discreet.release.intervals import CONFIDENCE

Estimated = Callable[[Output, float], tuple[list[Any], list[tuple[float, float]] | None]]
"""A column's values and intervals, by the probability with which one of them fails."""


@dataclass(frozen=True)
class LeftOut:
    """One thing that may be missing from an answer. `words` say it whole.

    `what` is rows, groups or values (a limit on how many of each person count), clamped (totals or values outside their
    bounds), keys (rows whose key has no group), small groups, or number: what all limits together leave of a `column`.
    `limit` is how many count, `declared` how many the declaration lets count at most, None where it does not say.
    `share` is the least part of the number that is there, on average over what is drawn; `at_most` how much more it
    would be at the declared limits, added up over all groups, also those that HAVING or LIMIT leave out, with the
    release's confidence, and `persons` how many at most are above the limit. None means: not known. `question` tells
    more, at a price of its own.
    """

    what: str
    words: str
    column: str | None = None
    limit: int | None = None
    declared: int | None = None
    share: float | None = None
    at_most: float | None = None
    persons: int | None = None
    question: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


def may_be_left_out(measurement: Measurement, table: Table) -> tuple[LeftOut, ...]:
    """What the limits may leave out, before anything is paid: from declarations and the price alone."""
    plan = measurement.plan
    telling = Telling(plan, table)
    own = limits(plan, table)
    found = [_of_limit(one, telling) for one in own]
    found += [_number(output, one, None) for output, one in _numbers(measurement, table) if _less(one)]
    for kind, step, total in clamps(plan):
        both = telling.totals_outside(plan, total, step)
        low, high = (show(step * bound) for bound in total.bounds or ())
        words = f"each person's {kind} in a group is clamped to [{low}, {high}]: by how much is not known"
        if kind != "count":
            found.append(LeftOut("clamped", words, question=both[0] if both else None))
    for name, least, most in row_clamps(plan, table):
        words = f"{name} is clamped to [{show(least)}, {show(most)}]: by how much is not known"
        found.append(LeftOut("clamped", words, name, question=telling.values_outside(name, least, most)))
    if (missing := without_group(plan.keys, table)) is not None:
        question = telling.rows_without_key(plan.keys)
        found.append(LeftOut("keys", f"{missing}: how many is not known", question=question))
    if plan.private:
        found.append(_small_groups(measurement, telling))
    return tuple(found)


def left_out(
    priced: Measurement, measurement: Measurement, noisy: Noisy, table: Table, estimated: Estimated
) -> tuple[LeftOut, ...]:
    """The same once the answer is there, with bounds from its noisy numbers, and the bounds that were found for what
    has no declared ones. `priced` is the question as it was asked, `measurement` as it was measured in the end."""
    found = list(may_be_left_out(measurement, table))
    for output, one in _numbers(measurement, table):
        if _less(one):
            bound = _bound(measurement, noisy, output, one, estimated)
            place = found.index(_number(output, one, None))
            found[place] = _number(output, one, bound, shown=measurement.plan.private)
    telling = Telling(measurement.plan, table)
    for unknown, (low, high) in zip(priced.plan.ranges, noisy.found, strict=True):
        name = getattr(unknown.expression, "name", None)
        words = (
            f"{name or 'an expression'} is clamped to [{show(low)}, {show(high)}], as found: by how much is not known"
        )
        question = telling.values_outside(name, low, high) if name else None
        found.append(LeftOut("clamped", words, name, question=question))
    return tuple(found)


def _of_limit(one: Limit, telling: Telling) -> LeftOut:
    question = telling.persons_above(one)
    if one.what == "values":
        words = f"at most {one.limit:,} different values of each person count: how many more there are is not known"
    elif one.declared is None:
        words = f"at most {one.limit:,} {one.what} of each person count: how many more there are is not known"
    elif one.limit < one.declared:
        words = f"{one.limit:,} {one.what} of each person count, of {one.declared:,} that the declaration lets count"
    else:
        words = f"at most {one.declared:,} {one.what} of each person count, as declared: how many more is not known"
    return LeftOut(one.what, words, limit=one.limit, declared=one.declared, question=question)


def _numbers(measurement: Measurement, table: Table) -> list[tuple[Output, Kept]]:
    """The counts and sums of an answer; for means and what is made of them, the number of their values."""
    plan = measurement.plan
    if measurement.ranges:
        return []
    found: list[tuple[Output, Kept]] = []
    for output in plan.outputs:
        mean = plan.outputs[output.of[0]] if output.of else output
        if output.hidden or output.kind in ("key", "special", "formula"):
            continue
        if mean.kind == "mean":
            part = plan.parts[mean.index]
            mean = Output(f"number of values of {output.name}", "count", mean.index, _count(part, mean))
        found.append((mean, kept(plan, table, mean)))
    return found


def _count(part: Part, mean: Output) -> tuple[Fraction, ...]:
    """The weights that make the number of its values of the vectors of a mean: A + B = w·n, or the joint count."""
    if part.axes:
        return count_of(part, axis_of(part, mean.weights))
    return tuple(Fraction(int(place < 2), part.row_bound) for place in range(len(part.vectors)))


def _less(one: Kept) -> bool:
    return one.share is None or one.share < 1


def _number(output: Output, one: Kept, bound: tuple[float, int | None] | None, *, shown: bool = False) -> LeftOut:
    """What the limits leave of a number, in words. `bound` is how much may be missing, and of how many persons; with
    `shown` in the groups that are shown."""
    if not one.share:
        return LeftOut("number", f"{output.name}: how much is missing is not known", output.name)
    words = f"{output.name}: at least {_percent(one.share)} of it is there{'' if one.certain else ', on average'}"
    if bound is None:
        return LeftOut("number", words, output.name, share=float(one.share))
    at_most, persons = bound
    where = " in the groups shown" if shown else ""
    words += f"; at most {at_most:,.9g} is missing{where}, with {_percent(CONFIDENCE)}"
    if persons is not None:
        words += f", of at most {persons:,} persons"
    return LeftOut("number", words, output.name, share=float(one.share), at_most=at_most, persons=persons)


def _percent(part: float | Fraction) -> str:
    """A part in percent, rounded down to three digits."""
    digits = max(0, 2 - math.floor(math.log10(float(part) * 100)))
    return f"{math.floor(float(part) * 100 * 10**digits + 1e-6) / 10**digits:g} %"


def _bound(
    measurement: Measurement, noisy: Noisy, output: Output, one: Kept, estimated: Estimated
) -> tuple[float, int | None] | None:
    """How much more a number would be at the declared limits, added up over all groups of the answer, and how many
    persons can be above the limit where each adds as many as the limit says; None where that is not known."""
    if not one.share or (measurement.plan.private and not one.certain):
        return None
    miss = 1 - CONFIDENCE
    _, intervals = estimated(output, miss / max(1, len(noisy.keys)))
    if intervals is None:
        return None
    try:
        upper = sum(max(0.0, float(high)) for _, high in intervals)
        if one.certain:
            most = upper * float(1 / one.share - 1)
        else:
            draw = _reach(measurement.parts[output.index], output, one) * math.log(2 / miss)
            most = (upper + draw + math.sqrt(draw) * math.sqrt(draw + 2 * upper)) / float(one.share) - upper
        persons = None if one.one is None else math.floor(upper / one.one + 1e-9)
        return math.floor(most + 1e-6) if output.kind == "count" or not math.isfinite(most) else most, persons
    except OverflowError:  # larger than any number: nothing that would be worth saying
        return None


def _reach(measured: Measured, output: Output, one: Kept) -> float:
    """The most that one person adds to a number over all groups."""
    part, bound = measured.part, measured.sensitivity
    if one.clamp is not None:
        return float(bound.cells * one.clamp)
    grid = lattice_of(part, output) if output.kind == "sum" else None
    each = float(grid.step * grid.high) if grid is not None else 1.0
    return bound.l1 / max(1, part.row_bound) * each


def _small_groups(measurement: Measurement, telling: Telling) -> LeftOut:
    """From how many persons on a group is shown almost surely."""
    sure = 0
    for measured in measurement.parts:
        if isinstance(measured.mechanism, LaplaceThreshold | GaussianThreshold):
            sure = measured.mechanism.threshold + measured.mechanism.noise.half_width(2 * CONFIDENCE - 1)
    shown = f"a group of {sure:,} persons that count, or more, is shown with {_percent(CONFIDENCE)}"
    if measurement.ranges:  # what is left for the keys is known with the bounds
        shown = "groups of few persons are not shown"
    words = f"{shown}; how many groups are smaller, and what is in them, is not known"
    return LeftOut("small groups", words, question=telling.groups())


def summary(found: Sequence[LeftOut]) -> list[str]:
    """What a reader is told beside the answer."""
    words = [one.words for one in found if one.what in ("number", "values", "small groups")]
    if any(one.what == "number" for one in found):
        return words
    return [*(one.words for one in found if one.what in ("rows", "groups")), *words]
