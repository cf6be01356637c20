"""The price of a question: from the call, its own clause, the declaration, or the wanted error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from discreet.catalog import Declaration
from discreet.catalog.declare import MINIMUM_EPSILON
from discreet.catalog.price import price_of
from discreet.errors import QuestionError, refused
from discreet.intervals.expected import GROUP_FOR_MEANS, expected_errors
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.sql import Question
from discreet.sql.layers import LayeredQuestion
from discreet.trusted.ring_a.exact import Number, ceiling, floor, fraction
from discreet.trusted.ring_a.sensitivity import cell_count

_refused = partial(refused, "price")


def priced_at(
    question: Question,
    declaration: Declaration,
    epsilon: Number | None,
    delta: Number | None,
    within: Within | None,
    enough: Callable[[Measurement], bool],
    analyst: str = "",
) -> Price:
    """The price that the call or the question's own clause names, else the one that is declared for `analyst`. Two
    prices are refused.

    `enough` says whether a price is not below the least. Depends on texts and declarations only. Raises QuestionError.
    """
    named_delta = _one("delta", _amount("delta", delta), question.delta)
    if named_delta is not None and not 0 <= named_delta < 1:
        raise _refused("delta must be at least 0 and below 1", "delta", "write delta = 1e-9")
    if within is not None and within.errors:
        if epsilon is not None or question.epsilon is not None:
            raise _refused("within and epsilon name two prices", "within", "name one of them")
        return _within(question.plan, declaration, named_delta, within, enough)
    named = named_epsilon(declaration, _one("epsilon", _amount("epsilon", epsilon), question.epsilon), analyst)
    return complete(question.plan, declaration, named, named_delta)


def names_price(layers: LayeredQuestion) -> bool:
    """Whether a question names a price itself, or a part of one, in any clause."""
    clauses = [(layers.epsilon, layers.delta), *((one.question.epsilon, one.question.delta) for one in layers.measured)]
    return any(price is not None for clause in clauses for price in clause)


def shared(
    layers: LayeredQuestion,
    declaration: Declaration,
    epsilon: Number | None,
    delta: Number | None,
    within: Within | None,
    analyst: str = "",
) -> list[tuple[Number | None, Number | None]]:
    """What the call names for each measured table of a question: those that name no price of their own share it, in
    equal parts rounded down. Raises QuestionError."""
    if layers.outer is None or len(layers.measured) + len(layers.groups) == 0:
        return [(epsilon, delta)] * len(layers.measured)
    if within is not None and len(layers.measured) != 1:
        fix = "name epsilon, or ask for each measured table by itself"
        raise QuestionError("within", "several measured tables have no one wanted error", where="within", fix=fix)
    whole = _one("epsilon", _amount("epsilon", epsilon), layers.epsilon)
    whole_delta = _one("delta", _amount("delta", delta), layers.delta)
    sharing = [one for one in layers.measured if one.question.epsilon is None]
    if not sharing and whole is not None and layers.measured:
        raise _refused("the call and all measured tables name prices", "epsilon", "name it in one place")
    if whole is None and sharing and within is None:
        whole = named_epsilon(declaration, None, analyst)
    part = None if whole is None else whole if len(sharing) == 1 else floor(whole / max(1, len(sharing)), 6)
    part_delta = None if whole_delta is None else whole_delta / max(1, len(sharing))
    return [(part, part_delta) if one.question.epsilon is None else (None, None) for one in layers.measured]


def named_epsilon(declaration: Declaration, epsilon: Number | None, analyst: str = "") -> Fraction:
    """The epsilon that was named, else the declared one. Raises QuestionError where there is none, or a bad one."""
    return price_of(declaration, _amount("epsilon", epsilon), "epsilon = 0.1", analyst)


def complete(plan: Plan, declaration: Declaration, epsilon: Fraction, delta: Fraction | None) -> Price:
    """A question with private keys that names no delta takes the same share of keys_delta as of epsilon; one that names
    it may have Gaussian noise where the budget has a delta for that."""
    budget = declaration.budget
    if not plan.private:
        gaussian = budget.delta > budget.keys_delta
        return Price(epsilon, delta if delta is not None and gaussian else Fraction(0))
    named = delta is not None
    if delta is None:
        delta = floor(min(budget.keys_delta, budget.keys_delta * epsilon / budget.epsilon), 3)
    if delta == 0:
        fix = "declare values for the grouped columns, or a budget with delta and keys_delta above 0"
        raise _refused("private keys cannot be found without a delta", "GROUP BY", fix)
    return Price(epsilon, delta, gaussian=named and budget.delta > budget.keys_delta)


@dataclass(frozen=True)
class Within:
    """The errors that an answer may have: by column, with which confidence, for one cell or for all at once.

    An error is a number, the half width of the interval; or "5 % of 2000": five percent wherever the truth is at least
    2,000, which is the same as 100. A mean's error depends on how many rows its group has: "0.5 of 300" is ±0.5 in
    every group of at least 300 rows with a value; without it, of at least 1,000.
    """

    errors: Mapping[str, Number]
    confidence: Number = Fraction(95, 100)
    together: bool = False


def _within(
    plan: Plan,
    declaration: Declaration,
    delta: Fraction | None,
    within: Within,
    enough: Callable[[Measurement], bool],
) -> Price:
    """The smallest price, to three digits and rounded up, at which every named column's half width fits; never below
    the least of a measurement."""
    confidence = _amount("confidence", within.confidence)
    if confidence is None or not 0 < confidence < 1:
        raise _refused("confidence must lie between 0 and 1", "confidence", "write confidence = 0.95")
    miss = float(1 - confidence)
    estimates = [output for output in plan.outputs if output.kind is not OutputKind.KEY and not output.hidden]
    if within.together:
        groups = cell_count(plan.keys)
        if groups is None:
            fix = "declare the values of the group keys, or ask for one cell"
            raise _refused("private groups cannot be counted before they are found", "together", fix)
        miss /= max(1, groups * len(estimates))
    kinds = {output.name: "mean" if output.of else output.kind for output in estimates}
    promised = expected_errors(measurement(plan, complete(plan, declaration, Fraction(1), delta)))
    wanted: dict[str, tuple[float, float]] = {}
    for name, written in within.errors.items():
        if name not in kinds:
            fix = f"write {' or '.join(list(kinds)[:5])}" if kinds else "ask for a count, a sum or a mean"
            raise QuestionError("within", f"there is no error to fix for {name!r}", where="within", fix=fix)
        if name not in promised:
            fix = "name a count, or a sum or mean whose bounds are declared"
            message = f"no error can be promised for {name!r} before it is measured"
            raise QuestionError("within", message, where="within", fix=fix)
        wanted[name] = _width(name, kinds[name], written)

    def fits(epsilon: Fraction) -> bool:
        priced = measurement(plan, complete(plan, declaration, epsilon, delta))
        return enough(priced) and all(
            expected_errors(priced, miss, group)[name] <= width for name, (width, group) in wanted.items()
        )

    low, high = MINIMUM_EPSILON, Fraction(1)
    while not fits(high):
        if high > 10**6:
            fix = "ask for a larger one"
            raise QuestionError("within", "no price gives such a small error", where="within", fix=fix)
        low, high = high, high * 4
    for _ in range(24):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if fits(middle) else (middle, high)
    return complete(plan, declaration, ceiling(high, 3), delta)


def widths(plan: Plan, within: Within) -> dict[str, tuple[float, float]]:
    """The half width that is wanted of each named column, and of a mean the size of the group that it is wanted in.
    Raises QuestionError on an amount that is none."""
    kinds = {output.name: "mean" if output.of else str(output.kind) for output in plan.outputs if not output.hidden}
    return {name: _width(name, kinds[name], written) for name, written in within.errors.items() if name in kinds}


def assumed(plan: Plan, within: Within | None) -> tuple[str, ...]:
    """Of each mean, and what is made of means, whose wanted error names no size of group: for which it is priced, and
    how to name another. It follows from the texts alone: what was released before, of which some may be others'
    answers, decides no price."""
    if within is None:
        return ()
    means = [
        output.name for output in plan.outputs if (output.kind is OutputKind.MEAN or output.of) and not output.hidden
    ]
    return tuple(
        f"{name} is priced for groups of at least {GROUP_FOR_MEANS:,} values, because no size is given: larger"
        f" groups need a smaller price, smaller ones a larger one; give the size, as in"
        f' "{name}={written} of {5 * GROUP_FOR_MEANS}"'
        for name, written in within.errors.items()
        if name in means and not (isinstance(written, str) and (match := _WRITTEN.fullmatch(written)) and match[3])
    )


_WRITTEN = re.compile(r"\s*([^\s%]+?)\s*(%?)\s*(?:of\s+(\S+)\s*)?", re.ASCII)


def _width(name: str, kind: str, written: Number) -> tuple[float, float]:
    """The half width that is wanted, and of a mean the size of the group that it is wanted in."""
    match = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    number, percent, of = match.groups() if match else (written, "", None)
    amount = _amount("within", number)
    base = None if of is None else _amount("within", of)
    if amount is None or amount <= 0 or (base is not None and base <= 0):
        raise QuestionError("within", "the wanted error must be above 0", where="within", fix=f"write {name}=100")
    if kind == "mean":
        if percent:
            fix = f'write {name}=0.5, or {name}="0.5 of 300" for groups of at least 300'
            raise QuestionError("within", "a mean's error is a number", where="within", fix=fix)
        return float(amount), float(GROUP_FOR_MEANS if base is None else base)
    if bool(percent) != (base is not None):
        fix = f'write {name}=100, or {name}="5 % of 2000" for values of at least 2000'
        raise QuestionError("within", "a relative error needs the size that it is relative to", where="within", fix=fix)
    return float(amount * base / 100 if base is not None else amount), float(GROUP_FOR_MEANS)


def _amount(name: str, value: Number | None) -> Fraction | None:
    if value is None:
        return None
    try:
        text = str(value)
        if len(text) > 400 or abs(int(text.lower().partition("e")[2] or 0)) > 350:
            raise ValueError
        return fraction(value)
    except (ValueError, TypeError, OverflowError):
        example = "0.95" if name == "confidence" else "0.1"
        raise _refused(f"{name} must be a finite number", name, f"write {name} = {example}") from None


def _one(name: str, called: Fraction | None, written: Fraction | None) -> Fraction | None:
    if called is not None and written is not None and called != written:
        raise _refused(f"the call and the question name two values of {name}", name, f"name {name} once")
    return called if called is not None else written
