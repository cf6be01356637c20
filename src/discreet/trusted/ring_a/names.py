"""Names of tables and columns in the engine, and of a source's columns that the engine would rename."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from discreet.trusted.ring_a.table import Table

ROW_NUMBER = "row_of_person"
"""The engine's column that numbers the rows of one person, in a table where a person may have several."""

NOBODY = str(-(2**63))
"""The integer that tells no person: rows that have it are left out when a table is loaded."""


def column_name(index: int) -> str:
    """The engine's name of the declared column at this position."""
    return f"c{index}"


def table_name(table: Table) -> str:
    """The engine's name of a declared table, whatever letters the owner used."""
    return f"t_{table.name.encode().hex()}"


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
