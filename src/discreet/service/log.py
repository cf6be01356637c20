"""The ledger as one looks things up in it: entries in memory, read as they come, found by who, what and when."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from discreet.ledger import Entry, Ledger

ASKED = ("reserve", "repeat", "unknown")
"""Kinds of entries that say what somebody asked."""

KINDS = {"questions": ASKED, "failures": ("failure", "end"), "snapshots": ("snapshot", "period", "persons", "assigned")}
"""What one looks for, and the kinds of entries that it is; all others are the owner's acts."""


@dataclass(frozen=True)
class EntryFilter:
    """What an entry must be; empty where anything does. `who` asked it, did it, or is whom it is about; days are as
    2026-11-23."""

    who: str = ""
    table: str = ""
    kind: str = ""
    first: str = ""
    last: str = ""
    text: str = ""

    def fits(self, entry: Entry, tables: tuple[str, ...]) -> bool:
        """Whether an entry that reads these tables is one of them."""
        known = [kind for kinds in KINDS.values() for kind in kinds]
        kinds = KINDS.get(self.kind, ())
        return (
            (not self.who or self.who in (entry.analyst, entry.by, *entry.names))
            and (not self.table or self.table in tables)
            and (not self.kind or (entry.kind in kinds if kinds else entry.kind not in known))
            and (not self.first or entry.time[:10] >= self.first)
            and (not self.last or entry.time[:10] <= self.last)
            and (not self.text or self.text.casefold() in f"{entry.question}\n{entry.note}".casefold())
        )


class Log:
    """The entries of a ledger. What was read is kept, so that only what is new is read again."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, threading.Lock()
        self._entries: list[Entry] = []
        self._tables: dict[int, tuple[str, ...]] = {}
        self._ends: dict[int, str] = {}
        self._last = 0

    def _read(self) -> int:
        """Reads what is new, and gives how many entries there are."""
        with self._lock:
            for entry in self._ledger.entries(self._last):
                self._last = entry.seq
                if entry.kind in ("commit", "failure", "end") and entry.reserve_id is not None:
                    self._ends[entry.reserve_id] = {"commit": "committed", "failure": "failed"}.get(entry.kind, "ended")
                if entry.tables:
                    self._tables[entry.seq] = entry.tables
                elif entry.kind == "repeat" and entry.reserve_id in self._tables:
                    self._tables[entry.seq] = self._tables[entry.reserve_id]
                if entry.kind != "commit":
                    self._entries.append(entry)
            return len(self._entries)

    def tables(self, entry: Entry) -> tuple[str, ...]:
        """The tables that an entry is about."""
        return self._tables.get(entry.seq, ())

    def status(self, entry: Entry) -> str:
        """What came of a question."""
        if entry.kind != "reserve":
            return entry.status
        return self._ends.get(entry.seq, entry.status)

    def found(self, sought: EntryFilter, before: int | None = None) -> Iterator[Entry]:
        """The entries that fit, the latest first; with `before`, those with smaller numbers."""
        for place in range(self._read() - 1, -1, -1):
            entry = self._entries[place]
            if (before is None or entry.seq < before) and sought.fits(entry, self.tables(entry)):
                yield entry

    def one(self, number: int) -> Entry | None:
        """The entry of this number; None where there is none, or it only stores an answer."""
        return next((one for one in self.found(EntryFilter(), number + 1) if one.seq == number), None)

    def counted(self, of: Callable[[Entry], bool] = lambda entry: entry.kind in ASKED) -> Counter[tuple[str, str]]:
        """How many of these entries each analyst has of each table."""
        count = self._read()
        found = ((one.analyst, table) for one in self._entries[:count] if of(one) for table in self.tables(one))
        return Counter(found)

    def names(self) -> list[str]:
        """Everybody who asked, did something, or was the object of it, by name."""
        count = self._read()
        found = {name for one in self._entries[:count] for name in (one.analyst, one.by, *one.names)}
        return sorted(found - {""})
