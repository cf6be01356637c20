"""What is declared of a part that is charged once for all that it releases, and keeps a secret: streams, the state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.catalog.model import Budget
from discreet.errors import Fault
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.table import Table


@dataclass
class PartReader:
    """What is declared of one such part, and what is wrong with it."""

    where: str
    raw: Mapping[str, Any]
    faults: list[Fault]

    def fault(self, key: str, message: str, fix: str) -> None:
        """Notes what is wrong with a key of the part, or with the whole of it where the key is ""."""
        self.faults.append(Fault(f"{self.where}.{key}" if key else self.where, message, fix))

    def count(self, key: str, most: int, example: int) -> int:
        """A whole number from 1 to `most`; 1, and a fault is noted, where it is none."""
        value = self.raw.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        self.fault(key, f"it must be a whole number from 1 to {most:,}", f"write {key} = {example}")
        return 1

    def named(self, tables: Mapping[str, Table]) -> Table | None:
        """The table that is named, whatever it is."""
        name = self.raw.get("table")
        known = {one.casefold(): table for one, table in tables.items()}
        return known.get(name.casefold()) if isinstance(name, str) else None

    def public(
        self, key: str, names: list[Any], table: Table, taken: Collection[str | None], fix: str
    ) -> tuple[str, ...]:
        """The columns of these names, with public values, each once and none of those that are `taken`."""
        found: list[str] = []
        for name in names:
            column = table.column(name) if isinstance(name, str) else None
            public = column is not None and (column.type is None or column.keys() is not None)
            if column is None or not public or column.name in (*found, *taken, table.person):
                listed = [one.name for one in table.columns if one.keys() is not None and one.name != table.person]
                message = f"these must be columns of {table.name} with declared values, each once"
                self.fault(key, message, f"write some of {listed}" if listed else fix)
                break
            found.append(column.name)
        return tuple(found)

    def price(self, key: str, most: Fraction, what: str, example: str) -> Fraction:
        """A part of the budget, of which at `most` so much is there."""
        try:
            price = fraction(self.raw.get(key, ""))
        except (ValueError, TypeError):
            price = Fraction(0)
        if isinstance(self.raw.get(key), str) or not 0 < price <= most:
            self.fault(key, f"it must be {what}", f"write for example {key} = {example}")
            return most
        return price

    def epsilon(self, budget: Budget, what: str, example: str) -> Fraction:
        """The part's ε, above 0 and at most the budget's; all of that, and a fault is noted, where it is none."""
        return self.price("epsilon", budget.epsilon, f"the price of {what}, above 0 and at most the budget", example)

    def key(self, base: Path, beside: Path | None, whose: str, what: str, example: str) -> Path:
        """The file with the key under which a secret is kept."""
        raw = self.raw.get("key")
        path = (base / raw) if isinstance(raw, str) and raw else None
        if path is None:
            message = f"it must be the path of a file, with the key under which {whose} is kept"
            self.fault("key", message, f'write key = "/etc/discreet/{example}.key"')
            return base
        if beside is not None and path.resolve().parent == beside.resolve().parent:
            message = f"the key would lie beside the {what} that it protects"
            self.fault("key", message, "name a file in another folder, one that no backup takes along with the ledger")
        return path


def secret_file(beside: Path, name: str, kind: str) -> Path:
    """Where the secret of a part of this name lies beside its ledger.

    No two have one file: the name of a part has no + and no dot in it, so what stands before the last + is the whole
    name of the ledger's file. One that an earlier version has made lies at the ledger's stem, where no other is made,
    and goes on there.
    """
    before = beside.with_suffix(f".{name}.{kind}").absolute()
    now = beside.with_name(f"{beside.name}+{name}.{kind}").absolute()
    return before if before.exists() and not now.exists() else now
