"""Values as an answer holds them."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

from discreet.trusted.ring_a.table import Type, Value


def plain(value: Value | None) -> Any:
    """A key as JSON can hold it."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        return float(value)
    return value if isinstance(value, bool | int | str) else value.isoformat()


def typed(value: Any, kind: str) -> Any:
    """A value as Python has it: dates and timestamps, which JSON holds as texts."""
    if value is None:
        return None
    if kind.startswith("list of "):
        return [typed(one, kind.removeprefix("list of ")) for one in value]
    if kind == Type.DATE:
        return datetime.date.fromisoformat(value)
    return datetime.datetime.fromisoformat(value) if kind == Type.TIMESTAMP else value
