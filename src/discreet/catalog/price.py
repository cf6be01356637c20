"""The price that a call takes: the one that it names, else the declared one; and whose budget may pay it."""

from __future__ import annotations

from fractions import Fraction

from discreet.catalog.declare import MAXIMUM_EPSILON, MINIMUM_EPSILON
from discreet.catalog.model import Declaration
from discreet.errors import refused


def price_of(declaration: Declaration, named: Fraction | None, example: str, analyst: str = "") -> Fraction:
    """ε of a call. Raises QuestionError where there is none, or none that can be charged; `example` shows one."""
    price = declaration.usual_price(analyst) if named is None else named
    if price is None:
        fix = "name epsilon, or declare [question] epsilon = 0.1"
        raise refused("price", "the question has no price", "epsilon", fix)
    if not MINIMUM_EPSILON <= price <= MAXIMUM_EPSILON:
        raise refused("price", "epsilon must lie between 1e-9 and 1e30", "epsilon", f"write {example}")
    return price


def hold_part(declaration: Declaration, part: object) -> None:
    """Raises QuestionError where no such part is declared with a budget of its own, which alone would pay."""
    parts = declaration.budget.parts
    if parts is None or part not in parts.values:
        fix = "leave it out" if parts is None else f"name one of {', '.join(parts.values)}"
        raise refused("part", "no such part is declared with a budget of its own", "part", fix)
