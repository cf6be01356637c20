"""What a question costs: named by the call, by its own clause, by the declaration, or found from the wanted error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from discreet.catalog import Declaration
from discreet.catalog.declare import MAXIMUM_EPSILON, MINIMUM_EPSILON
from discreet.errors import QuestionError
from discreet.exact import Number, ceiling, floor, fraction
from discreet.plan.measurement import Plan, Price, measurement
from discreet.release.estimate import expected_errors
from discreet.sql import Question


def priced_at(
    question: Question,
    declaration: Declaration,
    epsilon: Number | None,
    delta: Number | None,
    within: Mapping[str, Number] | None,
) -> Price:
    """The price that the call or the question's own clause names, else the declared one. Two prices are refused.

    Depends on texts and declarations only. Raises QuestionError.
    """
    named_delta = _one("delta", _amount("delta", delta), question.delta)
    if named_delta is not None and not 0 <= named_delta < 1:
        raise _wrong("delta must be at least 0 and below 1", "delta", "write delta = 1e-9")
    if within:
        if epsilon is not None or question.epsilon is not None:
            raise _wrong("within and epsilon name two prices", "within", "name one of them")
        return _within(question.plan, declaration, named_delta, within)
    named = _one("epsilon", _amount("epsilon", epsilon), question.epsilon)
    named = declaration.question_epsilon if named is None else named
    if named is None:
        raise _wrong("the question has no price", "epsilon", "name epsilon, or declare [question] epsilon = 0.1")
    if not MINIMUM_EPSILON <= named <= MAXIMUM_EPSILON:
        raise _wrong("epsilon must lie between 1e-9 and 1e30", "epsilon", "write epsilon = 0.1")
    return _complete(question.plan, declaration, named, named_delta)


def _complete(plan: Plan, declaration: Declaration, epsilon: Fraction, delta: Fraction | None) -> Price:
    """A question with private keys that names no delta takes the same share of keys_delta as of epsilon."""
    budget = declaration.budget
    if not plan.private:
        gaussian = budget.delta > budget.keys_delta
        return Price(epsilon, delta if delta is not None and gaussian else Fraction(0))
    if delta is None:
        delta = floor(min(budget.keys_delta, budget.keys_delta * epsilon / budget.epsilon), 3)
    if delta == 0:
        fix = "declare values for the grouped columns, or a budget with delta and keys_delta above 0"
        raise _wrong("private keys cannot be found without a delta", "GROUP BY", fix)
    return Price(epsilon, delta)


def _within(plan: Plan, declaration: Declaration, delta: Fraction | None, within: Mapping[str, Number]) -> Price:
    """The smallest price, to three digits and rounded up, at which every named column's 95 % half width fits."""
    kinds = {output.name: output.kind for output in plan.outputs}
    wanted = {}
    for name, width in within.items():
        amount = _amount("within", width)
        if kinds.get(name) not in ("count", "sum"):
            mean = ": a mean's error depends on its group" if kinds.get(name) == "mean" else ""
            fix = "name a count or a sum of the answer" + mean
            raise QuestionError("within", f"there is no error to fix for {name!r}", where="within", fix=fix)
        if amount is None or amount <= 0:
            raise QuestionError("within", "the wanted error must be above 0", where="within", fix=f"write {name}=100")
        wanted[name] = float(amount)

    def fits(epsilon: Fraction) -> bool:
        errors = expected_errors(measurement(plan, _complete(plan, declaration, epsilon, delta)))
        return all(errors[name] <= width for name, width in wanted.items())

    low, high = MINIMUM_EPSILON, Fraction(1)
    while not fits(high):
        if high > 10**6:
            fix = "ask for a larger one"
            raise QuestionError("within", "no price gives such a small error", where="within", fix=fix)
        low, high = high, high * 4
    for _ in range(24):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if fits(middle) else (middle, high)
    return _complete(plan, declaration, ceiling(high, 3), delta)


def _amount(name: str, value: Number | None) -> Fraction | None:
    if value is None:
        return None
    try:
        text = str(value)
        if len(text) > 400 or abs(int(text.lower().partition("e")[2] or 0)) > 350:
            raise ValueError
        return fraction(value)
    except (ValueError, TypeError, OverflowError):
        raise _wrong(f"{name} must be a finite number", name, f"write {name} = 0.1") from None


def _one(name: str, called: Fraction | None, written: Fraction | None) -> Fraction | None:
    if called is not None and written is not None and called != written:
        raise _wrong(f"the call and the question name two values of {name}", name, f"name {name} once")
    return called if called is not None else written


def _wrong(message: str, where: str, fix: str) -> QuestionError:
    return QuestionError("price", message, where=where, fix=fix)
