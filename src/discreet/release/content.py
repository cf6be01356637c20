"""What a release holds: one shape for every kind of question, as the ledger keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from discreet.errors import LedgerError
from discreet.intervals.noise import CONFIDENCE
from discreet.release.left_out import LeftOut
from discreet.trusted.ring_a.exact import fraction, show

VERSION = 1
"""Of the shape of what is stored. What was stored before it was counted has the same shape."""

ONE_PERSON = "one person, added or removed with all rows"

Row = Mapping[str, Any]
"""From a column's name to its value as JSON holds it: dates and timestamps as text."""

Ends = Mapping[str, Sequence[float]]
"""From a column's name to the low and the high end of an interval."""


class Cost(dict[str, float]):
    """A price as numbers: `cost["epsilon"]` or `cost.epsilon`, the same for delta. False where it is nothing."""

    @property
    def epsilon(self) -> float:
        return self["epsilon"]

    @property
    def delta(self) -> float:
        return self["delta"]

    def __bool__(self) -> bool:
        return any(self.values())

    def __str__(self) -> str:
        delta = f", δ {show(fraction(self.delta))}" if self.delta else ""
        return f"ε {show(fraction(self.epsilon))}{delta}"


FREE = Cost(epsilon=0.0, delta=0.0)


@dataclass(frozen=True, kw_only=True)
class ReleaseContent:
    """All that a release says but for what is left of the budget; everything in it has left the door, or is public.

    `types` names the types of the columns that are no estimates; `rows`, `intervals` (in the unit of the column) and
    `simultaneous` go together. An interval fails with probability 1 − `confidence`, by the noise alone; the
    simultaneous ones fail all at once with that probability. `bounds` says in words what changes how the rows may be
    read, `left_out` the same with numbers, where they are known. `unit` says for whom the price holds.
    `keys` names the columns that say what a row is about, and `drawn` those that a picture shows, where that does not
    follow from the types. `more` is what this kind of release alone holds, by name.
    """

    columns: Sequence[str]
    types: Mapping[str, str]
    rows: Sequence[Row]
    cost: Cost
    mechanisms: Sequence[Mapping[str, str]]
    bounds: Sequence[str]
    unit: str = ONE_PERSON
    intervals: Sequence[Ends] = ()
    simultaneous: Sequence[Ends] = ()
    confidence: float = CONFIDENCE
    left_out: Sequence[LeftOut] | None = None
    keys: Sequence[str] | None = None
    drawn: Sequence[str] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values: what is not known is not there, and no interval is an empty mapping."""
        none: list[Ends] = [{} for _ in self.rows]
        known = {
            "columns": list(self.columns),
            "types": dict(self.types),
            "keys": self.keys,
            "drawn": self.drawn,
            "rows": list(self.rows),
            "intervals": list(self.intervals) or none,
            "simultaneous": list(self.simultaneous) or none,
            "confidence": self.confidence,
            "cost": self.cost,
            "mechanisms": list(self.mechanisms),
            "bounds": list(self.bounds),
            "left_out": None if self.left_out is None else [one.to_dict() for one in self.left_out],
            "unit": self.unit,
            **self.more,
        }
        return {name: value for name, value in known.items() if value is not None}

    def to_json(self) -> bytes:
        """For the ledger."""
        return json.dumps({"release": VERSION, **self.to_dict()}, ensure_ascii=False).encode()

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, of this version or an older one."""
        known = {one.name for one in fields(cls)} - {"more"}
        given = {name: value for name, value in plain.items() if name in known}
        given["cost"] = Cost(given["cost"])
        if "left_out" in given:
            given["left_out"] = [LeftOut(**one) for one in given["left_out"]]
        return cls(**given, more={name: value for name, value in plain.items() if name not in known})

    @classmethod
    def from_json(cls, stored: bytes) -> Self:
        """What `to_json` wrote, or an older version's text without a number. Raises LedgerError on a newer one."""
        plain = json.loads(stored)
        if plain.pop("release", 0) > VERSION:
            raise LedgerError("version", "a newer version of discreet stored this answer", fix="install that version")
        return cls.from_dict(plain)
