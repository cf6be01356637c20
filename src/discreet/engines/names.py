"""Names of a source's columns, as an engine can hold them: it would give new ones of its own to those that repeat."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def told_apart(names: Sequence[str]) -> list[str]:
    """The names, where those that are empty, or repeat another but for its case, get a new one that nobody uses."""
    spare = (f"column_{number}" for number in itertools.count())
    taken = {name.casefold() for name in names}
    met = {""}
    found: list[str] = []
    for name in names:
        found.append(next(other for other in spare if other not in taken) if name.casefold() in met else name)
        met.add(name.casefold())
    return found
