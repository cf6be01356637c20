"""Values as an answer holds them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.trusted.ring_a.table import Value


def plain(value: Value | None) -> Any:
    """A key as JSON can hold it."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        return float(value)
    return value if isinstance(value, bool | int | str) else value.isoformat()
