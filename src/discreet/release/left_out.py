"""What changes how an answer may be read, in one list; and how much limits may have left out, bounded from the noisy
numbers of the release itself.

Text, JSON, pandas, pictures and explanations all show this list. Nothing private is read: what is said before a
question is asked follows from plan, declaration and price alone, and is said whether it is true of the rows or not; the
bounds that are said after it are made of numbers that were released, so they cost nothing.

The bound. With X a count of the answer, added up over all its groups, and Y the same count at the declared limits,
`plan.left_out` proves E[X] ≥ s·E[Y] over the salt, or X ≥ s·Y for certain; so does it for sums of values ≥ 0. The noisy
groups give U ≥ X, the sum of the upper ends of their intervals, each of which fails with a probability of at most
miss/2 over the number of groups, so that all hold with 1 − miss/2.

* Certain: Y − X ≤ (1/s − 1)·X ≤ (1/s − 1)·U. Where limits are clamps of counts that is so. And it is so where each
  person above the limit L adds exactly L to X: then at most U/L persons are above, each of whom lacks at most D − L, so
  Y − X ≤ (U/L)·(D − L), the same number with s = L/D. Windows that look past WHERE, rows without a key that is shown,
  rows without a value, and a second limit all break "exactly L", and along foreign keys the rows of a person are drawn
  themselves, where tables on the way have limits; then it holds on average alone, as follows.
* On average: X is a sum of persons' terms in [0, r], each with a draw of its own from a fresh salt, so with M = E[X]
  P(X ≤ M − √(2rtM)) ≤ e^(−t) (Chernoff; Mitzenmacher & Upfal 2005, Theorem 4.5). With t = log(2/miss) and X ≤ U, M lies
  below U + rt + √(r²t² + 2rtU) with 1 − miss/2, and E[Y] below that over s; as the excess grows in X, what is missing
  is at most that less U. Together with the noise it holds with 1 − miss. Draws of different persons are hashes of
  different words, taken as independent and uniform. Where nobody has more than D rows or G groups, nor more than the
  tables on the way let through, Y is one number, else its mean over what the declared limits would draw.

Several parts, limits of rows and of groups. Each number has the share of the limits and clamps that act on it alone:
the shares multiply. Nothing is claimed of the numbers together; each bound fails with a probability of at most miss.

Private keys. Persons whose groups were not shown are missing from any sum over the groups shown, and nothing released
bounds them; the threshold tells how large a group is shown almost surely. So there no total is claimed, but the share
of each group that is shown; only clamps, which hold for certain, bound what is missing in the groups shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from discreet.intervals.expected import size_of
from discreet.intervals.noise import CONFIDENCE, half_width
from discreet.mechanisms import Laplace, Threshold
from discreet.plan.left_out import (
    Kept,
    Limit,
    Telling,
    at_limit,
    clamps,
    kept,
    lattice_of,
    limits,
    row_clamps,
    without_group,
)
from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.plan.profile import ChosenLimits
from discreet.plan.read import columns_read
from discreet.plan.split import measurement as repriced
from discreet.release.order_statistic_columns import special_words, to_be_found
from discreet.release.values import plain
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.table import Table, Type, Value
from discreet.trusted.ring_b.questions import Noisy

Estimated = Callable[[Output, float], tuple[list[Any], list[tuple[float, float]] | None]]
"""A column's values and intervals, by the probability with which one of them fails."""


@dataclass(frozen=True)
class LeftOut:
    """One thing that changes how an answer may be read, or may be missing from it. `words` say it whole.

    `what` is rows, groups or values (a limit on how many of each person count), read (rows that are left out, or count
    several times, where a table is loaded or read), picked (rows, by HAVING or LIMIT), clamped (totals or values
    outside their bounds), keys (rows whose key has no group), small groups, ranks (how far a quantile is off), choice
    (how far a winner is), or number: what all limits together leave of a `column`. `limit` is how many count,
    `declared` how many the declaration lets count at most, None where it does not say. `share` is the least part of
    the number that is there, on average over what is drawn; `at_most` how much more it would be at the declared limits,
    added up over all groups, also those that HAVING or LIMIT leave out, with the release's confidence, and `persons`
    how many at most are above the limit; where a profile tells, `at_least` how much more it would be at least. None
    means: not known. `question` tells more, at a price of its own.
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
    at_least: float | None = None

    @property
    def line(self) -> str:
        """The words, with the question that tells more."""
        return self.words if self.question is None else f"{self.words}; how much: {self.question}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON. `at_least` is left out where it is not known, as older releases have it."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.at_least is None:  # what was stored before there were profiles has no such word
            del known["at_least"]
        return known


def of_plan(plan: Plan, table: Table) -> tuple[LeftOut, ...]:
    """What follows from plan and declaration: which rows are read, what of each person counts, what is clamped."""
    telling, own = Telling(plan, table), limits(plan, table)
    found = [LeftOut("read", words) for words in rows_read(table, own)]
    found += [_of_limit(one, telling, table, plan.chosen) for one in own]
    for name, least, most in plan.chosen.columns if plan.chosen is not None else ():
        words = f"{name} is clamped to [{show(least)}, {show(most)}], {_BY_PROFILE}"
        found.append(LeftOut("clamped", words, name, question=telling.values_outside(name, least, most)))
    for kind, step, total in clamps(plan):
        both = telling.totals_outside(plan, total, step)
        low, high = (show(step * bound) for bound in total.bounds or ())
        words = f"each person's {kind} in a group is clamped to [{low}, {high}]"
        found.append(LeftOut("clamped", words, question=both[0] if both else None))
    for name, least, most in row_clamps(plan, table):
        words = f"{name} is clamped to [{show(least)}, {show(most)}]"
        found.append(LeftOut("clamped", words, name, question=telling.values_outside(name, least, most)))
    if plan.having is not None or plan.limit is not None:
        found.append(
            LeftOut("picked", "rows are selected by noisy values: the ± hold for all cells at once, so they are wider")
        )
    clamped = {one.column for one in found if one.what == "clamped"}
    found += [one for one in _columns(plan, table) if plan.chosen is None or one.column not in clamped]
    if (missing := without_group(plan.keys, table)) is not None:
        found.append(LeftOut("keys", missing, question=telling.rows_without_key(plan.keys)))
    return tuple(dict.fromkeys(found))


def rows_read(table: Table, own: Sequence[Limit] = ()) -> Iterator[str]:
    """Which rows of the declared tables are there to be counted, and how often; `own` are the question's limits."""
    for base in table.bases:
        if base.public:
            continue
        if base.person is None:
            yield f"of {base.name}, each row counts as one person"
        elif base.one_row_per_person:
            yield f"of {base.name}, rows of a person beyond the first are left out"
        elif table.relation is not None and base.rows_per_person is not None:
            whose = f"with one value of {base.person}" if base.path else "of a person"
            yield f"of {base.name}, rows {whose} beyond {base.rows_per_person:,} are left out where it is read"
        elif not any(one.what == "rows" and one.limit <= base.stored for one in own):
            yield f"of {base.name}, rows of a person beyond {base.stored:,} are left out when it is loaded"
        if base.shared:
            yield f"of {base.name}, a row of several persons counts once for each"
    if any(base.person is not None for base in table.bases):
        yield "rows without a person are left out"


def _columns(plan: Plan, table: Table) -> Iterator[LeftOut]:
    """How the values that a question reads differ from those of the source."""
    several = len(table.bases) > 1
    for base, column in columns_read(plan, table):
        name = f"{base.name}.{column.name}" if several else column.name
        if base.public:
            continue
        if column.minimum is not None or column.maximum is not None:
            words = f"{name} is clamped to [{_end(column.minimum)}, {_end(column.maximum)}], as declared"
            yield LeftOut("clamped", words, column.name)
        elif column.type is Type.TEXT and column.values is None and not column.identifies:
            yield LeftOut("clamped", f"{name} is cut to {column.longest:,} characters", column.name)


def _end(bound: Value | None) -> str:
    if bound is None:
        return "any"
    return show(Fraction(bound)) if isinstance(bound, int | Fraction) else str(plain(bound))


def may_be_left_out(measurement: Measurement, table: Table, asked: Plan | None = None) -> tuple[LeftOut, ...]:
    """The list before anything is paid: from plan, declarations and the price alone."""
    found = [LeftOut("clamped", words) for words in to_be_found(measurement)]
    found += of_plan(asked or measurement.plan, table)
    if measurement.plan.private:
        found.append(_small_groups(measurement, table))
    found += [LeftOut(what, words, name) for what, name, words in special_words(measurement)]
    found += [_number(output, one, None) for output, one in _numbers(measurement, table) if _less(one)]
    return tuple(found)


def left_out(
    priced: Measurement,
    measurement: Measurement,
    noisy: Noisy,
    table: Table,
    estimated: Estimated,
    asked: Plan | None = None,
) -> tuple[LeftOut, ...]:
    """The same once the answer is there, with bounds from its noisy numbers, and the bounds that were found for what
    has no declared ones. `priced` is the question as it was asked, `measurement` as it was measured in the end; where
    that was for another question, `asked` is the plan of this one."""
    found = list(may_be_left_out(measurement, table, asked))
    for output, one in _numbers(measurement, table):
        if _less(one):
            place = found.index(_number(output, one, None))
            between = _between(measurement, output, one)
            if between is not None:
                found[place] = _by_profile(output, one, *between)
                continue
            bound = _bound(measurement, noisy, output, one, estimated)
            found[place] = _number(output, one, bound, shown=measurement.plan.private)
    telling = Telling(measurement.plan, table)
    for unknown, (low, high) in zip(priced.plan.ranges, noisy.found, strict=True):
        name = getattr(unknown.expression, "name", None)
        words = (
            f"{name or 'an expression'} is clamped to [{show(low)}, {show(high)}], bounds found at a fifth of the price"
        )
        question = telling.values_outside(name, low, high) if name else None
        found.append(LeftOut("clamped", words, name, question=question))
    return tuple(found)


_BY_PROFILE = "which the profile makes best at this price"


def _of_limit(one: Limit, telling: Telling, table: Table, chosen: ChosenLimits | None) -> LeftOut:
    question = telling.persons_above(one)
    if one.what == "values":
        words = f"at most {one.limit:,} different values of each person count; further ones are left out, at random"
        return LeftOut(one.what, words, limit=one.limit, question=question)
    least = one.limit
    if one.what == "rows" and one.declared is not None and table.relation is not None:
        least = min(one.limit, one.declared)  # so many are read
    words = f"at most {least:,} {one.what} of each person count"
    if one.declared is not None and least < one.declared:
        words += f", of the declared {one.declared:,}"
        words += f", {_BY_PROFILE}" if chosen is not None and least in (chosen.rows, chosen.groups) else ""
    elif one.declared is not None:
        as_it_is = ", as the declaration allows" if one.what == "groups" else ", as declared"
        words += as_it_is if least == one.declared else f", above the declared {one.declared:,}"
    words += f"; further {one.what} are left out, at random"
    return LeftOut(one.what, words, limit=one.limit, declared=one.declared, question=question)


def _numbers(measurement: Measurement, table: Table) -> list[tuple[Output, Kept]]:
    """The counts and sums of an answer; for means and what is made of them, the number of their values."""
    plan = measurement.plan
    if measurement.ranges:
        return []
    found: list[tuple[Output, Kept]] = []
    for output in plan.outputs:
        mean = plan.outputs[output.of[0]] if output.of else output
        if output.hidden or output.kind in (OutputKind.KEY, OutputKind.SPECIAL, OutputKind.FORMULA):
            continue
        if mean.kind is OutputKind.MEAN:
            part = plan.parts[mean.index]
            mean = Output(f"number of values of {output.name}", OutputKind.COUNT, mean.index, size_of(part, mean))
        found.append((mean, kept(plan, table, mean)))
    return found


def _less(one: Kept) -> bool:
    return one.share is None or one.share < 1


def _number(output: Output, one: Kept, bound: tuple[float, int | None] | None, *, shown: bool = False) -> LeftOut:
    """What the limits leave of a number, in words. `bound` is how much may be missing, and of how many persons; with
    `shown` in the groups that are shown."""
    if not one.share:
        return LeftOut("number", f"{output.name}: how much is missing is not known", output.name)
    words = f"{output.name}: the limits keep at least {_percent(one.share)} of what the declared limits count"
    words += "" if one.certain else ", on average"
    if bound is None:
        return LeftOut("number", words, output.name, share=float(one.share))
    at_most, persons = bound
    where = " in the groups shown" if shown else ""
    words += f"; at most {at_most:,.9g} is missing{where}, at {_percent(CONFIDENCE)} confidence"
    if persons is not None:
        words += f", from at most {persons:,} persons"
    return LeftOut("number", words, output.name, share=float(one.share), at_most=at_most, persons=persons)


def _between(measurement: Measurement, output: Output, one: Kept) -> tuple[int, int] | None:
    """How much a limit leaves out of a count over all groups, at least and at most, by the histogram of what persons
    contribute; None where that does not tell.

    It does where each person above the limit adds exactly the limit to the count (`Kept.one`), and everybody else all
    that the profile counted of them: of a declared table, without WHERE. A person of a bucket then lacks between the
    lower end less the limit and the upper one less it, so with the buckets' true numbers c the sum lies in
    [Σ c·low, Σ c·high]; each end is moved by the noise on these sums, and fails with half the probability."""
    chosen, miss = measurement.plan.chosen, 1 - CONFIDENCE
    if chosen is None or one.one is None or not one.untouched or output.kind is not OutputKind.COUNT:
        return None
    keys = measurement.plan.keys
    counted = chosen.profile.groups([key.name for key in keys]) if keys else chosen.profile.rows
    if counted is None or one.one != (chosen.groups if keys else chosen.rows):
        return None
    noise, ends = Laplace(counted.scale), []
    for weights, side in zip(counted.weights(one.one), (-1, 1), strict=True):
        whole = sum(weight * count for weight, count in zip(weights, counted.counts, strict=True))
        ends.append(whole + side * half_width(noise, weights, miss))
    least, most = ends
    return max(0, math.ceil(least)), max(0, math.floor(most))


def _by_profile(output: Output, one: Kept, least: int, most: int) -> LeftOut:
    """What the limits leave of a number, by a profile."""
    words = f"{output.name}: {least:,} to {most:,} more at the declared limits, at {_percent(CONFIDENCE)} confidence"
    share = None if one.share is None else float(one.share)
    return LeftOut("number", f"{words}, by the profile", output.name, share=share, at_most=most, at_least=least)


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
        return math.floor(most + 1e-6) if output.kind is OutputKind.COUNT or not math.isfinite(most) else most, persons
    except OverflowError:  # larger than any number: nothing that would be worth saying
        return None


def _reach(measured: Measured, output: Output, one: Kept) -> float:
    """The most that one person adds to a number over all groups."""
    part, bound = measured.part, measured.sensitivity
    if one.clamp is not None:
        return float(bound.cells * one.clamp)
    grid = lattice_of(part, output) if output.kind is OutputKind.SUM else None
    each = float(grid.step * grid.high) if grid is not None else 1.0
    return bound.l1 / max(1, bound.row) * each


def shown_from(measurement: Measurement) -> int | None:
    """The least number of persons of which a group with a private key is shown with probability 95 %.

    None where its keys are public, or where bounds have to be found first.
    """
    if not measurement.plan.private or measurement.ranges:
        return None
    sure = 0
    for measured in measurement.parts:
        if isinstance(measured.mechanism, Threshold):
            sure = measured.mechanism.threshold + measured.mechanism.noise.half_width(2 * CONFIDENCE - 1)
    return sure


def _small_groups(measurement: Measurement, table: Table) -> LeftOut:
    """From how many persons on a group is shown almost surely, and what would show smaller ones."""
    plan, sure = measurement.plan, shown_from(measurement)
    words = "groups of too few persons are left out"
    if sure is None:
        words += "; the smallest size that is shown is known once the bounds are found"
    else:
        words += f": a group of {sure:,} or more counted persons is shown with probability {_percent(CONFIDENCE)}"
        if any(one.what == "groups" and one.limit > 1 for one in limits(plan, table)):
            fewer = shown_from(repriced(at_limit(plan, "groups", 1), measurement.price))
            words += f"; with max_groups_contributed = 1, a group of {fewer:,}"
    return LeftOut("small groups", words, question=Telling(plan, table).groups())
