"""Periods by the calendar, in UTC, and what is promised where a budget renews with each.

An entry `period` begins one: every account has its caps anew. It says when the period starts, and a period starts after
the one before it, so none begins twice, and a clock that goes back begins none. Whoever reserves says for which period
the rows were loaded that are measured; `BudgetLedger.reserve` refuses all but the present one, in the transaction that
charges, and the door measures nothing for which the engine has loaded rows of another. So what is charged in a period
was drawn from the rows that were loaded for it, whatever other processes still hold, and each period's account is a
filter for all that was drawn from its rows, however adaptively it was asked for.

*For everybody* the same persons stay. The promise is that of one period's budget to each person in each period. Over n
periods a person has lost at most n times its ε and its δ (composition: Dwork & Roth 2014, Theorem 3.16). Every answer
says so.

*For new persons* each person is in one period alone, and the promise is that of one period's budget for ever:
`trusted.renewal.first_seen` has the proof.

What `unknown` charged (the owner's word for entries that are lost) may have been asked in the next period already: it
is charged once more when that begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

NEW_PERSONS = "new persons"
"""For whom a budget renews where each person is in one period alone."""


@dataclass(frozen=True)
class Period:
    """A day, an ISO week, a month or a year, by its first day."""

    length: str
    start: str

    @staticmethod
    def of(length: str, day: str) -> Period:
        """The period of this length in which a day lies. Raises ValueError where there is no such length or day."""
        at = date.fromisoformat(day)
        starts = {
            "day": at,
            "week": at - timedelta(days=at.weekday()),
            "month": at.replace(day=1),
            "year": at.replace(month=1, day=1),
        }
        if length not in starts:
            raise ValueError("no length of a period")
        return Period(length, starts[length].isoformat())

    @property
    def name(self) -> str:
        """Its name, as 2026, 2026-11, 2026-W48 or 2026-11-23."""
        if self.length == "week":
            year, week, _ = date.fromisoformat(self.start).isocalendar()
            return f"{year}-W{week:02}"
        return self.start[: {"year": 4, "month": 7}.get(self.length, 10)]
