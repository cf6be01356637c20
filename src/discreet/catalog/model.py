"""The declaration as values. Everything a question's price may depend on is here, and nothing comes from the rows."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from discreet.catalog.issuer import Issuer
from discreet.trusted.ledger.periods import NEW_PERSONS as _NEW_PERSONS
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Table, Value

USUAL_GROUPS = 10
"""How many groups of a person count where nothing is declared, and no more than rows: a group of few persons is shown
only where this is small."""

USUAL_SCHEMAS = ("public", "main", "dbo")
"""What databases call the schema of tables for which nobody named one."""

MOST_WORK = 10_000_000
"""The largest number of joined rows a person that can be declared."""

ENCODINGS = ("utf-8", "latin-1", "utf-16")
"""Those that the engine reads of a CSV file."""


def writable(name: str) -> bool:
    """Whether a table or column may have this name: control characters are kept for internal names (`own_name`)."""
    return bool(name) and not any(ord(letter) < 32 for letter in name)


YEARLY: Mapping[str, int] = {"day": 366, "week": 53, "month": 12, "year": 1}
"""The lengths of a period, each with how many there are in a year at most."""


class Renews(StrEnum):
    """For whom a budget renews with each period."""

    EVERYBODY = "everybody"
    NEW_PERSONS = _NEW_PERSONS


@dataclass(frozen=True)
class Renewal:
    """A budget that renews with each period of the calendar, a day, week, month or year, and for whom. Where that is
    for new persons, `who` names the table that holds each of them."""

    length: str
    persons: Renews
    who: str | None = None

    def in_words(self, epsilon: Fraction, delta: Fraction) -> str:
        """What is promised, over a year too."""
        if self.persons is Renews.NEW_PERSONS:
            one = f"each person is in the budget of one {self.length} alone, in which they are first seen"
            return f"the promise is per person, for ever: {_in_words(epsilon, delta)}; {one}"
        times, budget, year = YEARLY[self.length], _in_words(epsilon, delta), _in_words(*self.in_a_year(epsilon, delta))
        most = f"; a person who is there all year: up to {times} × {budget} = {year}" if times > 1 else ""
        return f"the promise is per person and {self.length}: {budget}{most}"

    def in_a_year(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """What a person who is there all year may lose, at most."""
        times = 1 if self.persons is Renews.NEW_PERSONS else YEARLY[self.length]
        return times * epsilon, min(Fraction(1), times * delta)


def _in_words(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε {show(epsilon)}" + (f" δ {show(delta)}" if delta else "")


MOST_PARTS = 100
"""How many parts may have a budget each: a question about all of them is charged to each."""


@dataclass(frozen=True)
class Parts:
    """A budget for each part, as a region: the `column` of a `table` about people says, by these declared `values`, in
    which one a person is. `who` names the table that holds each of them."""

    table: str
    column: str
    values: tuple[str, ...] = ()
    who: str | None = None

    @property
    def in_words(self) -> str:
        """What is promised."""
        return f"each part by {self.table}.{self.column} has this budget, and each person is in one part"


@dataclass(frozen=True)
class Budget:
    """How much privacy may be spent, for ever: (epsilon, delta), of which keys_delta pays for private group keys.

    `publish` is the price of a table for which room is kept: nothing else is admitted that would leave less; 0 keeps
    nothing. With a `renewal` the budget is for one period. `day` and `month` are the most ε of an analyst's that may be
    spent in one of these, in UTC, and `question` the price of a question of theirs that names none.
    With `parts` each of them has this budget."""

    epsilon: Fraction
    delta: Fraction
    keys_delta: Fraction
    publish: Fraction = Fraction(0)
    day: Fraction | None = None
    month: Fraction | None = None
    renewal: Renewal | None = None
    question: Fraction | None = None
    parts: Parts | None = None


class EngineKind(StrEnum):
    """Where questions run: in a process of the curator's own, or on the server that has the tables."""

    HERE = "duckdb"
    POSTGRESQL = "postgresql"
    SPARK = "spark"


class Store(StrEnum):
    """Where tables are kept."""

    MEMORY = "memory"
    FILE = "file"


@dataclass(frozen=True)
class EngineLimits:
    """Where questions run, and what one may take: memory in GiB, wall time in seconds. With `answer_seconds`, whatever
    comes of a question comes so long after its turn came; 0: at once, the owner has said so; None: at once, but not in
    a service. `work` is the most rows that joins may make of one person's; None for the usual (`plan.work`). After so
    many `failures` of measurements in a snapshot a table is frozen. Public, never from data.

    `store` says whether tables are kept in "memory" or in files of the `folder`; None: as large as the source is. Each
    table gets a new snapshot when its last one is `every` seconds old; None: when the owner says so.
    `remote` is the address of a Spark server."""

    memory_gib: int = 8
    seconds: int = 300
    answer_seconds: int | None = None
    work: int | None = None
    failures: int = 3
    store: Store | None = None
    folder: Path | None = None
    every: int | None = None
    kind: EngineKind = EngineKind.HERE
    remote: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeclaredStream:
    """Counts of a table's rows by period and public `keys`, from the day `start` on, for a `horizon` of periods of
    so many `days`, at one price. The day to which a row belongs stands in the column `date`. Of a person at most `rows`
    count in one period, in at most so many `periods`. `key` is the file with the key of its secret state."""

    name: str
    table: str
    date: str
    keys: tuple[str, ...]
    start: datetime.date
    days: int
    horizon: int
    rows: int
    periods: int
    epsilon: Fraction
    delta: Fraction
    key: Path

    def until(self, number: int) -> datetime.date:
        """The last day of a period. Raises OverflowError where there is no such day."""
        return self.start + datetime.timedelta(days=(number + 1) * self.days - 1)

    def over(self, today: datetime.date) -> int:
        """How many of its periods are over on a day."""
        return max(0, min(self.horizon, (today - self.start).days // self.days))


@dataclass(frozen=True, kw_only=True)
class DeclaredState:
    """A synthetic state of one table, over its `columns`, whose values are public: it answers counts, and is corrected
    at most so many times (`updates`). `epsilon` is the price of all its answers together, `key` the file with the key
    of its secret."""

    table: str
    columns: tuple[str, ...]
    updates: int
    epsilon: Fraction
    key: Path


def comparable(one: Value, other: Value) -> bool:
    """Whether one of them may be larger: not of a number and a text, or a date and a time."""
    times = [isinstance(value, datetime.datetime) for value in (one, other)]
    return of_one_kind(one, other) and times[0] == times[1]


def of_one_kind(one: Value, other: Value) -> bool:
    """Whether both are numbers, texts, truth values, or dates and times: a column's own type may make more of them
    comparable."""
    kinds: list[type | tuple[type, ...]] = [bool, (int, Fraction), str, datetime.date]  # True is an int too
    places = [next(place for place, kind in enumerate(kinds) if isinstance(value, kind)) for value in (one, other)]
    return places[0] == places[1]


@dataclass(frozen=True)
class Condition:
    """What a row's value in a column may be: one of these values, of which None is NULL, or one from `minimum` to
    `maximum`."""

    column: str
    values: tuple[Value | None, ...] | None = None
    minimum: Value | None = None
    maximum: Value | None = None


Rules = tuple[tuple[Condition, ...], ...]
"""Which rows of a table cannot be, each by conditions that no row meets all: no synthetic row will."""


Orders = tuple[tuple[str, str], ...]
"""Pairs of columns of a table, of which no row has a larger value in the first than in the second."""


Sums = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns of a table, each with those whose sum it is."""


@dataclass(frozen=True)
class PublicTotal:
    """Public counts of a table's rows by one or two `columns`: for each combination of their cells, which are the
    declared values of a column and, where it may have none, NULL; the last column's change first."""

    columns: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Declaration:
    """Everything the owner declared, validated. `question_date` is what NOW() and CURRENT_DATE mean; None: the day on
    which a question is asked."""

    tables: Mapping[str, Table]
    budget: Budget
    question_epsilon: Fraction | None = None
    least_epsilon: Fraction | None = None
    analysts: Mapping[str, Budget] = field(default_factory=dict)
    ledger: Path | Place | None = None
    limits: EngineLimits = EngineLimits()
    file: Path | None = None
    schema: str | None = None
    question_date: datetime.date | None = None
    issuer: Issuer | None = None
    streams: Mapping[str, DeclaredStream] = field(default_factory=dict)
    share_answers: bool = False
    """Whether analysts without accounts of their own are answered from what was measured for others."""
    state: DeclaredState | None = None
    impossible: Mapping[str, Rules] = field(default_factory=dict)
    """The rules of tables that have some, by their names."""
    totals: Mapping[str, tuple[PublicTotal, ...]] = field(default_factory=dict)
    """The public totals of tables that have some, by their names."""
    orders: Mapping[str, Orders] = field(default_factory=dict)
    """The columns of tables that are in order, by the tables' names."""
    sums: Mapping[str, Sums] = field(default_factory=dict)
    """The columns of tables that are sums of others, by the tables' names."""
    times: Mapping[str, str] = field(default_factory=dict)
    """The column by which a person's rows stand in time, of tables that have one, by their names."""

    @property
    def beside(self) -> Path | None:
        """What is kept on this machine beside the ledger is named after this file; it is the ledger's own, where that
        is not on a server."""
        return self.ledger.beside if isinstance(self.ledger, Place) else self.ledger

    @property
    def schemas(self) -> tuple[str, ...]:
        """The names of the one schema that the tables are in: the declared one, or those that databases give it."""
        return USUAL_SCHEMAS if self.schema is None else (self.schema,)

    def table(self, name: str) -> Table | None:
        """The table of that name, whatever its case."""
        folded = name.casefold()
        return next((table for key, table in self.tables.items() if key.casefold() == folded), None)

    def usual_price(self, analyst: str = "", *, for_all: bool = True) -> Fraction | None:
        """The price of a question that names none: what is declared for whoever asks, else, with `for_all`, for all."""
        own = self.analysts.get(analyst)
        return (self.question_epsilon if for_all else None) if own is None or own.question is None else own.question

    def __repr__(self) -> str:
        budget = f"ε {show(self.budget.epsilon)}, δ {show(self.budget.delta)}"
        return f"Declaration of {', '.join(self.tables)}; budget {budget}"
