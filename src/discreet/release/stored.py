"""What was measured for a question, as the ledger keeps it: noisy numbers, from which every answer to it is made.

It is stored under a key of what is measured. How columns are called, in which order they and the rows stand, HAVING,
LIMIT and formulas are no part of it: whoever asks for the same in other words gets an answer from the same numbers, and
pays nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.plan.measurement import Measurement, Price
from discreet.plan.planner import Request
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import scan_of
from discreet.trusted.ring_a.public_groups import public_groups
from discreet.trusted.ring_a.table import Type, Value
from discreet.trusted.ring_a.threshold import Threshold
from discreet.trusted.ring_b.questions import Noisy

VERSION = 2


def measured(priced: Measurement) -> str:
    """What decides the noisy numbers, but for the rows: statements, mechanisms, price. In the same words for every
    question that asks for the same, and in every version: else what was paid for is not found again."""
    plan = priced.plan
    assert plan.request is None or isinstance(plan.request, Request)
    request = plan.request and replace(
        plan.request,
        columns=tuple(("", kind, index) for _, kind, index in plan.request.columns),
        wanted=tuple(replace(one, text="", report="") for one in plan.request.wanted),
    )
    named = tuple(map(_Named, priced.parts))
    parts = (plan.root, named, plan.specials, priced.specials, plan.ranges, priced.ranges, request, plan.least)
    return f"measured {VERSION}: {(*parts, priced.price)!r}"


class _Named:
    """A part in the words that keys have for it: a threshold is called by its noise there."""

    def __init__(self, one: Measured) -> None:
        self.one = one

    def __repr__(self) -> str:
        found, words = self.one.mechanism, repr(self.one)
        if not isinstance(found, Threshold):
            return words
        kind, _, width = repr(found.noise)[:-1].partition("(")
        limits = f"threshold={found.threshold}, cells={found.cells}, delta={found.delta!r}"
        return f"{words.removesuffix(f'{found!r})')}{kind}Threshold({width}, {limits}))"


def written(noisy: Noisy, priced: Measurement) -> dict[str, Any]:
    """Noisy numbers for JSON, and the price that they were measured at. Groups that follow from the plan alone are not
    written down: of many cells they are most of it."""
    price = priced.price
    known = None if _as_planned(priced, noisy.keys) else [[_written(value) for value in key] for key in noisy.keys]
    return {
        "measured": VERSION,
        "price": [str(price.epsilon), str(price.delta), price.gaussian],
        "keys": known,
        "parts": noisy.parts,
        "specials": noisy.specials,
        "found": [[str(low), str(high)] for low, high in noisy.found],
    }


def read(stored: Mapping[str, Any], priced: Measurement) -> Noisy:
    """What `written` wrote for a question that measures the same."""
    plan, keys = priced.plan, stored["keys"]
    kinds = [key.type for key in plan.keys]
    return Noisy(
        tuple(public_groups(plan.keys, plan.root))
        if keys is None
        else tuple(tuple(_read(value, kind) for value, kind in zip(key, kinds, strict=True)) for key in keys),
        _numbers(stored["parts"]),
        _numbers(stored["specials"]),
        tuple((Fraction(low), Fraction(high)) for low, high in stored["found"]),
    )


def _as_planned(priced: Measurement, keys: Sequence[tuple[Value | None, ...]]) -> bool:
    """Whether groups are those of public keys, in their order, which whoever reads them has from the plan."""
    plan = priced.plan
    if plan.private or scan_of(plan.root).relation is not None:
        return False
    return list(keys) == public_groups(plan.keys, plan.root)


def price_of(stored: Mapping[str, Any]) -> Price:
    """The price that the numbers were measured at."""
    epsilon, delta, gaussian = stored["price"]
    return Price(Fraction(epsilon), Fraction(delta), gaussian)


def _numbers(parts: Any) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(tuple(vector) for vector in part) for part in parts)


def _written(value: Value | None) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    return value if value is None or isinstance(value, bool | int | str) else value.isoformat()


def _read(value: Any, kind: Type) -> Value | None:
    if value is None:
        return None
    if kind is Type.NUMBER:
        return Fraction(value)
    if kind is Type.DATE:
        return datetime.date.fromisoformat(value)
    if kind is Type.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    return value  # type: ignore[no-any-return]
