"""The synthetic state as it is declared: which counts it answers, how often it is corrected, and its price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.catalog.charged_once import PartReader
from discreet.catalog.model import Budget, DeclaredState
from discreet.errors import Fault
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.ring_a.table import Table

MOST_UPDATES, MOST_CELLS = 200, 1 << 16
"""How often a state is corrected at most, and how many combinations of values its columns have."""

_KNOWN = {"interactive", "table", "columns", "updates", "epsilon", "key"}


class _SyntheticStateReader(PartReader):
    """What is declared of the state, and what is wrong with it."""

    def table(self, tables: Mapping[str, Table]) -> Table | None:
        table = self.named(tables)
        if table is None or table.public or table.path is not None:
            own = [one.name for one in tables.values() if not one.public and one.path is None]
            message = "it must be a declared table about people, whose own rows say whose they are"
            self.fault("table", message, f'write table = "{(own or ["adult"])[0]}"')
            return None
        if not table.one_row_per_person and table.rows_per_person is None:
            self.fault("table", "the rows of a person are not limited there", "declare rows_per_person there")
            return None
        return table

    def columns(self, table: Table) -> tuple[str, ...]:
        raw = self.raw.get("columns")
        names = raw if isinstance(raw, list) and raw else [None]
        found = self.public("columns", names, table, (), "declare values of columns")
        cells = math.prod(len(column.keys() or ()) + 1 for column in table.columns if column.name in found)
        if cells > MOST_CELLS:
            message = f"these columns have {cells:,} combinations of values, and a state at most {MOST_CELLS:,}"
            self.fault("columns", message, "name fewer columns")
        return found


def read_state(
    raw: Mapping[str, Any], tables: Mapping[str, Table], budget: Budget, ledger: Path | Place | None, base: Path
) -> tuple[DeclaredState | None, Sequence[Fault]]:
    """The declared state, None where none is asked for, and what is wrong with it."""
    reader = _SyntheticStateReader("synthesis", raw, [])
    for key in raw.keys() - _KNOWN:
        reader.fault(key, "this key is not known", f"write one of {', '.join(sorted(_KNOWN))}")
    if not isinstance(raw.get("interactive", False), bool):
        reader.fault("interactive", "it must be true or false", "write interactive = true")
    if raw.get("interactive") is not True:
        return None, reader.faults
    beside = ledger.beside if isinstance(ledger, Place) else ledger
    if beside is None:
        reader.fault("interactive", "a state needs a ledger that lasts", 'write ledger = "clinic.ledger" at the top')
    if budget.renewal is not None:
        message = "a state is charged once for all its answers, and this budget renews"
        reader.fault("interactive", message, "leave the state out, or period and renews under [budget]")
    table = reader.table(tables)
    state = DeclaredState(
        table="" if table is None else table.name,
        columns=() if table is None else reader.columns(table),
        updates=reader.count("updates", MOST_UPDATES, 20),
        epsilon=reader.epsilon(budget, "all answers of the state", "1.0"),
        key=reader.key(base, beside, "the state's secret", "secret", "state"),
    )
    return state, reader.faults
