"""A curator of the shop of several tables, with further rows in it or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import discreet
from relation_tools import WHOLE, WORD, frame, shop

KNOWN = shop(WHOLE, WORD)
PUBLIC = {"rates": [{"cur": cur, "rate": rate, "a.b": 1, "word": "E"} for cur, rate in (("E", 1.0), ("U", 0.0))]}
OTHERS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "customers": [{"id": i, "city": "x", "age": i} for i in range(1, 5)],
    "orders": [{"oid": f"o{i}", "cust": i, "st": "s", "total": 1.0, "k": 1, "big": 1, "f": 0.5} for i in range(1, 5)],
    "lines": [{"oid": f"o{i}", "qty": 1, "cur": "E"} for i in range(1, 5)],
    "solo": [{"cur": "E", "age": 1, "w": 0.5}],
    **PUBLIC,
}


def curator(extra: Mapping[str, Sequence[Mapping[str, Any]]], most: int | None = None) -> discreet.Curator:
    tables: dict[str, Any] = {}
    for name, table in KNOWN.tables.items():
        rows = frame(table, [*OTHERS[name], *extra.get(name, ())])
        columns = {}
        for column in table.columns:
            facts = {"type": column.type, "min": column.minimum, "max": column.maximum, "values": column.values}
            columns[column.name] = {key: value for key, value in facts.items() if value is not None}
        known: dict[str, Any] = {"public": True}
        if not table.public:
            person = f"{table.person} -> {'.'.join(table.path)}" if table.path else table.person
            known = {"person": person, "one_row_per_person": table.one_row_per_person}
            if table.path:  # the target may have an order of somebody else's
                known["shared"] = True
            if not table.one_row_per_person:
                known |= {
                    "rows_per_person": most or table.rows_per_person,
                    "groups_per_person": table.groups_per_person,
                }
        tables[name] = discreet.Table(rows, columns=columns, **known)
    return discreet.Curator(tables, epsilon=10_000, delta=0.01, keys_delta=0.005, engine={"memory_gib": 2})
