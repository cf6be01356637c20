"""Streams as they are declared: which rows of a table are counted, in which periods, of whom at most how many."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.catalog.charged_once import PartReader
from discreet.catalog.model import Budget, DeclaredStream
from discreet.errors import Fault
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.ring_a.table import Table, Type

MOST_PERIODS, MOST_ROWS = 10_000, 1_000_000
_KNOWN = {
    *("table", "date", "keys", "start", "every", "horizon"),
    *("rows_per_period", "periods_per_person", "epsilon", "delta", "key"),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_EVERY = re.compile(r"([1-9][0-9]{0,2}) (day|week)s?")


class _StreamReader(PartReader):
    """What is declared of one stream, and what is wrong with it."""

    def table(self, tables: Mapping[str, Table]) -> Table | None:
        table = self.named(tables)
        if table is None or table.public:
            people = [one.name for one in tables.values() if not one.public]
            self.fault(
                "table", "it must be a declared table about people", f'write table = "{(people or ["visits"])[0]}"'
            )
            return None
        if table.person is None or table.path is not None:
            message = f"a stream knows each person again, and {table.name} has no column that says who it is"
            self.fault("table", message, 'declare person = "COLUMN" there, a column that holds the person')
            return None
        person = table.column(table.person)
        if person is not None and person.type not in (None, Type.TEXT, Type.INTEGER):
            self.fault(
                "table", f"{person.name} is a {person.type}, and persons are texts or whole numbers", "declare it so"
            )
            return None
        return table

    def date(self, table: Table) -> str:
        name = self.raw.get("date")
        column = table.column(name) if isinstance(name, str) else None
        if column is None or column.type not in (None, Type.DATE, Type.TIMESTAMP) or column.name == table.person:
            dates = [one.name for one in table.columns if one.type in (Type.DATE, Type.TIMESTAMP)]
            message = f"it must be a column of {table.name} with dates: the day to which a row belongs"
            self.fault("date", message, f'write date = "{dates[0]}"' if dates else "declare such a column")
            return ""
        return column.name

    def keys(self, table: Table, date: str) -> tuple[str, ...]:
        raw = self.raw.get("keys", [])
        names = raw if isinstance(raw, list) else [None]
        return self.public("keys", names, table, (date,), "leave keys out, or declare values")

    def start(self) -> datetime.date:
        day = self.raw.get("start")
        if isinstance(day, datetime.date) and not isinstance(day, datetime.datetime):
            return day
        self.fault("start", "it must be the first day on which rows are counted", "write start = 2026-01-01")
        return datetime.date(2000, 1, 1)

    def every(self) -> int:
        found = _EVERY.fullmatch(str(self.raw.get("every", "1 day")))
        if found is None:
            self.fault("every", "it must be a number of days or weeks", 'write every = "1 day"')
            return 1
        return int(found[1]) * {"day": 1, "week": 7}[found[2]]

    def delta(self, budget: Budget) -> Fraction:
        what = "the δ of the whole horizon, above 0 and at most what the budget has beside keys_delta"
        return self.price("delta", budget.delta - budget.keys_delta, what, "1e-7")


def read_streams(
    raw: Mapping[str, Any], tables: Mapping[str, Table], budget: Budget, ledger: Path | Place | None, base: Path
) -> tuple[dict[str, DeclaredStream], Sequence[Fault]]:
    """The declared streams, and what is wrong with them."""
    found, faults = dict[str, DeclaredStream](), list[Fault]()
    beside = ledger.beside if isinstance(ledger, Place) else ledger
    for name, said in raw.items():
        where = f"streams.{name}"
        if not isinstance(said, Mapping):
            faults.append(Fault(where, "it must be a table", f"write [{where}]"))
            continue
        if not _NAME.fullmatch(name) or name.casefold() in map(str.casefold, found):
            message = "a stream's name has letters, digits, _ and -, at most 40, and is no other stream's"
            faults.append(Fault(where, message, "write [streams.daily]"))
            continue
        reader = _StreamReader(where, said, faults)
        for key in said.keys() - _KNOWN:
            reader.fault(key, "this key is not known", f"write one of {', '.join(sorted(_KNOWN))}")
        if beside is None:
            reader.fault("", "a stream needs a ledger that lasts", 'write ledger = "clinic.ledger" at the top')
        if budget.renewal is not None:
            message = "a stream is charged once for its whole horizon, and this budget renews"
            reader.fault("", message, "leave the stream out, or period and renews under [budget]")
        table = reader.table(tables)
        date = "" if table is None else reader.date(table)
        horizon = reader.count("horizon", MOST_PERIODS, 365)
        periods = reader.count("periods_per_person", MOST_PERIODS, 30)
        if periods > horizon:
            reader.fault("periods_per_person", "it is more than there are periods", f"write at most {horizon}")
        stream = DeclaredStream(
            name=name,
            table="" if table is None else table.name,
            date=date,
            keys=() if table is None else reader.keys(table, date),
            start=reader.start(),
            days=reader.every(),
            horizon=horizon,
            rows=reader.count("rows_per_period", MOST_ROWS, 3),
            periods=periods,
            epsilon=reader.epsilon(budget, "the whole horizon", "0.5"),
            delta=reader.delta(budget),
            key=reader.key(base, beside, "the stream's secret state", "state", "daily"),
        )
        try:
            stream.until(horizon - 1)
        except OverflowError:
            reader.fault("horizon", "it ends after the year 9999", "write a smaller horizon")
        found[name] = stream
    return found, faults
