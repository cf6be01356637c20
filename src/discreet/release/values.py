"""Values as an answer holds them."""

from __future__ import annotations

import datetime
import math
import sys
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


FAR = sys.float_info.max
"""What stands for an end, or an error, of which nothing is known. JSON has no infinity."""


def finite(value: Any) -> Any:
    """Plain values as JSON can hold them: an infinite number is FAR, what is no number is nothing."""
    if isinstance(value, float):
        return None if math.isnan(value) else max(-FAR, min(FAR, value))
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def typed(value: Any, kind: str) -> Any:
    """A value as Python has it: dates and timestamps, which JSON holds as texts."""
    if value is None:
        return None
    if kind.startswith("list of "):
        return [typed(one, kind.removeprefix("list of ")) for one in value]
    if kind == Type.DATE:
        return datetime.date.fromisoformat(value)
    return datetime.datetime.fromisoformat(value) if kind == Type.TIMESTAMP else value


def up(value: float, digits: int = 0) -> float:
    """A bound as it is shown with so many digits behind the point: rounded up, so that what is read holds too."""
    return math.ceil(value * 10**digits - 1e-9) / 10**digits if math.isfinite(value) else value
