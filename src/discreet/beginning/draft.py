"""From the fields of the form to the text of a declaration, and what is wrong or not said yet, beside its field.

Nothing here reads a source: the form knows names of columns, types that a source states, and how the first rows of a
CSV file look. Ranges, values and numbers are what the owner writes.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from discreet.catalog import Declaration, Type, declare
from discreet.catalog.suggest import Allowed, Suggested, identifies, written
from discreet.errors import DeclarationError, Fault

MOST_ANALYSTS = 50
_FIRST_ANALYSTS = 2
_LONGEST = 40
"""Characters of a number or a date."""

USUAL_DATES = "%Y-%m-%d"
DATES = (USUAL_DATES, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y")
LENGTHS = ("day", "week", "month", "year")
RANGED = (Type.INTEGER, Type.NUMBER, Type.DATE, Type.TIMESTAMP)

ONE, MANY, NOBODY = "one", "many", "nobody"
"""Whose rows a table holds."""

_TABLE = ("about", "person", "refers", "rows", "groups", "dates")
_COLUMN = ("keep", "type", "min", "max", "values", "full")
_ANALYST = ("name", "epsilon", "day", "month")
_BUDGET = ("epsilon", "delta", "renews", "period", "analysts")


@dataclass(frozen=True)
class Lack:
    """What is wrong at a field, or with `unsaid` only not said yet. `where` names the field in words."""

    field: str
    where: str
    message: str
    fix: str
    unsaid: bool = False


@dataclass(frozen=True)
class Draft:
    """What the fields come to: the text, and the declaration that it is where nothing is lacking."""

    text: str
    lacks: tuple[Lack, ...]
    declaration: Declaration | None


def fields(tables: Sequence[Suggested]) -> tuple[str, ...]:
    """Gives the names of all fields that the form of these tables may have. No name of a column is in them."""
    found = [*_BUDGET, *(f"a{place}.{name}" for place in range(MOST_ANALYSTS) for name in _ANALYST)]
    for number, table in enumerate(tables):
        found += [f"t{number}.{name}" for name in _TABLE]
        found += [f"t{number}.c{place}.{name}" for place in range(len(table.types)) for name in _COLUMN]
    return tuple(found)


def first(tables: Sequence[Suggested], epsilon: str, delta: str) -> dict[str, str]:
    """Gives what the fields hold before anything is said. A column is kept unless its own name seems to point to
    persons; a type stands there where the source states one, or a CSV file's first rows look like texts."""
    said = {"epsilon": epsilon, "delta": delta, "analysts": str(_FIRST_ANALYSTS)}
    for number, table in enumerate(tables):
        if not table.dates:
            said[f"t{number}.dates"] = table.dialect.dates
        for place, (name, kind) in enumerate(table.types.items()):
            if not identifies(name):
                said[f"t{number}.c{place}.keep"] = "on"
            if kind is not None and name not in table.looks:
                said[f"t{number}.c{place}.type"] = kind
    return said


def analysts(said: Mapping[str, str]) -> int:
    """Gives how many analysts the form has room for."""
    number = said.get("analysts", "")
    return min(MOST_ANALYSTS, max(1, int(number))) if number.isascii() and number.isdigit() and len(number) < 3 else 1


def drafted(tables: Sequence[Suggested], said: Mapping[str, str], base: Path) -> Draft:
    """Makes the text that the fields come to, and holds it against the rules of a declaration in the folder `base`."""
    return _Drafting(tables, said).draft(base)


class _Drafting:
    """Reads the fields, and collects what they lack."""

    def __init__(self, tables: Sequence[Suggested], said: Mapping[str, str]) -> None:
        self.tables = tables
        self.said = said
        self.lacks: list[Lack] = []
        self.places: dict[str, tuple[str, str]] = {}
        """For each key of a declaration that a rule may name: the field, and what it is called."""

    def word(self, field: str) -> str:
        return self.said.get(field, "").strip()

    def lack(self, field: str, where: str, message: str, fix: str, *, unsaid: bool = False) -> None:
        self.lacks.append(Lack(field, where, message, fix, unsaid))

    def draft(self, base: Path) -> Draft:
        epsilon = self.number("epsilon", "the budget's ε", needed=True) or "1"
        delta = self.number("delta", "the budget's δ", needed=True) or "0"
        renewal = self.renewal()
        tables = [self.table(number, table) for number, table in enumerate(self.tables)]
        who = list(self.allowed())
        question = "0.1" if Decimal(epsilon) >= Decimal("0.1") or Decimal(epsilon) <= 0 else f"{Decimal(epsilon) / 10}"
        text = written(tables, epsilon, delta, question=question, renewal=renewal, analysts=who, said=True)
        declaration = None
        try:
            declaration = declare(tomllib.loads(text, parse_float=Decimal), file=base / "declaration.toml")
        except DeclarationError as error:
            lacking = {_group(one.field) for one in self.lacks}
            self.lacks += [one for one in map(self.placed, error.faults) if _group(one.field) not in lacking]
        order = {name: place for place, name in enumerate(fields(self.tables))}
        lacks = sorted(self.lacks, key=lambda one: (one.field[:1] not in "t", order.get(one.field, 0)))
        return Draft(text, tuple(lacks), None if lacks else declaration)

    def placed(self, fault: Fault) -> Lack:
        """A fault of the declaration, beside the field that its key comes from."""
        where = fault.where
        while where and where not in self.places:
            where = where.rpartition(".")[0]
        field, words = self.places.get(where, ("epsilon", fault.where))
        last = fault.where.rpartition(".")[2]
        if last in ("min", "max", "values", "type", "day", "month") and not field.endswith(last):
            field = f"{field.rpartition('.')[0]}.{last}"
        return Lack(field, words, fault.message, fault.fix)

    # the budget

    def renewal(self) -> tuple[str, str] | None:
        for key in ("budget", "budget.epsilon", "question.epsilon"):
            self.places[key] = ("epsilon", "the budget's ε")
        for key in ("budget.delta", "budget.keys_delta"):
            self.places[key] = ("delta", "the budget's δ")
        for key in ("budget.period", "budget.renews"):
            self.places[key] = ("period", "how the budget renews")
        renews, period = self.word("renews"), self.word("period")
        if not renews:
            return None
        if period not in LENGTHS:
            self.lack("period", "how the budget renews", "no period is chosen", "choose one", unsaid=True)
            return None
        return f"1 {period}", renews

    def allowed(self) -> Iterator[Allowed]:
        known = set()
        self.places["analysts"] = ("a0.name", "the analysts")
        for place in range(analysts(self.said)):
            at, name = f"a{place}", self.word(f"a{place}.name")
            whose = name or f"analyst {place + 1}"
            numbers = {key: self.number(f"{at}.{key}", f"{whose}, {key}") for key in _ANALYST[1:]}
            if not name:
                if any(numbers.values()):
                    self.lack(f"{at}.name", whose, "the name is missing", "write a name, as ana", unsaid=True)
                continue
            if name.casefold() in known or not name.isprintable():
                fix = "write another name" if name.isprintable() else "write letters and numbers"
                self.lack(f"{at}.name", whose, "this name stands there twice, or cannot be one", fix)
                continue
            known.add(name.casefold())
            self.places[f"analysts.{name}"] = (f"{at}.epsilon", whose)
            if numbers["epsilon"] is None:
                if not any(one.field == f"{at}.epsilon" for one in self.lacks):
                    fix = "write how much of the budget this analyst may use, as 1"
                    self.lack(f"{at}.epsilon", f"{whose}, ε", "it is missing", fix, unsaid=True)
                continue
            yield Allowed(name, numbers["epsilon"], numbers["day"], numbers["month"])

    # tables

    def table(self, number: int, table: Suggested) -> Suggested:
        at, key = f"t{number}", f"tables.{table.name}"
        self.places |= {
            key: (f"{at}.about", f"{table.name}: whose rows these are"),
            f"{key}.person": (f"{at}.person", f"{table.name}: the column that says whose row it is"),
            f"{key}.rows_per_person": (f"{at}.rows", f"{table.name}: rows of one person"),
            f"{key}.groups_per_person": (f"{at}.groups", f"{table.name}: groups of one person"),
            f"{key}.columns": (f"{at}.c0.keep", f"{table.name}: columns"),
            f"{key}.csv": (f"{at}.dates", f"{table.name}: how dates are written"),
        }
        found = self.columns(at, key, self.whose(at, table))
        dated = any(kind in (Type.DATE, Type.TIMESTAMP) for kind in found.types.values())
        if table.dialect.kind != "csv" or not dated:
            return found
        form = self.word(f"{at}.dates")
        if form not in {*DATES, *table.dates}:
            where, fix = f"{table.name}: how dates are written", "choose how; rows with other dates have none"
            self.lack(f"{at}.dates", where, "it is not said", fix, unsaid=True)
            return found
        return replace(found, dialect=replace(found.dialect, dates=form))

    def whose(self, at: str, table: Suggested) -> Suggested:
        """The table, with the persons whose rows it holds."""
        known = replace(table, looks={}, dates=(), dated=())
        about, name = self.word(f"{at}.about"), table.name
        if about == NOBODY:
            return replace(known, public=True)
        if about not in (ONE, MANY):
            fix = "choose one of the three"
            self.lack(f"{at}.about", f"{name}: whose rows these are", "it is not said", fix, unsaid=True)
            return known
        person = self.person(at, table)
        if about == ONE:
            return replace(known, person=person, one_row_per_person=True)
        rows = self.count(f"{at}.rows", f"{name}: rows of one person", needed=True)
        groups = self.count(f"{at}.groups", f"{name}: groups of one person")
        if person is None:
            where = f"{name}: the column that says whose row it is"
            self.lack(f"{at}.person", where, "it is not said", "choose the column", unsaid=True)
        return replace(known, person=person, rows_per_person=rows, groups_per_person=groups)

    def person(self, at: str, table: Suggested) -> str | None:
        names = list(table.types)
        column = _place(self.word(f"{at}.person"), len(names))
        if column is None:
            return None
        if not self.word(f"{at}.c{column}.keep"):
            fix = "keep that column, below"
            where = f"{table.name}: the column that says whose row it is"
            self.lack(f"{at}.person", where, "this column is left out", fix)
        other, _, place = self.word(f"{at}.refers").partition(".")
        known = _place(other, len(self.tables))
        if known is None or self.tables[known] is table:
            return names[column]
        there = self.tables[known]
        target = _place(place, len(there.types))
        return names[column] if target is None else f"{names[column]} -> {there.name}.{list(there.types)[target]}"

    def columns(self, at: str, key: str, table: Suggested) -> Suggested:
        kinds: dict[str, Type | None] = {}
        ranges, values, full = {}, {}, []
        for place, name in enumerate(table.types):
            field = f"{at}.c{place}"
            where = f"{table.name}, {name}"
            self.places[f"{key}.columns.{name}"] = (f"{field}.type", where)
            if not self.word(f"{field}.keep"):
                continue
            kind = self.word(f"{field}.type")
            kinds[name] = Type(kind) if kind in set(Type) else Type.TEXT
            if kind not in set(Type):
                self.lack(f"{field}.type", where, "its type is not chosen", "choose one", unsaid=True)
                continue
            if kind in RANGED:
                ranges[name] = self.range(field, where, Type(kind))
            if kind == Type.TEXT:
                listed = [line.strip() for line in self.said.get(f"{field}.values", "").split("\n")]
                if known := [line for line in listed if line]:
                    values[name] = [*known, None]
            if self.word(f"{field}.full"):
                full.append(name)
        if not kinds:
            self.lack(f"{at}.c0.keep", f"{table.name}: columns", "none is kept", "keep at least one column")
        return replace(table, types=kinds, ranges=ranges, values=values, full=full)

    def range(self, field: str, where: str, kind: Type) -> tuple[str | None, str | None]:
        """The ends that are said."""
        read = self.number if kind.numeric else self.date
        return read(f"{field}.min", f"{where}, lowest"), read(f"{field}.max", f"{where}, highest")

    # what is written in a field

    def number(self, field: str, where: str, *, needed: bool = False) -> str | None:
        """A number as TOML writes it."""
        text = self.word(field)
        if not text:
            if needed:
                self.lack(field, where, "it is missing", "write a number, as 1.0", unsaid=True)
            return None
        try:
            number = Decimal(text.replace(" ", "")) if len(text) <= _LONGEST else Decimal("NaN")
            if not number.is_finite():
                raise InvalidOperation
        except InvalidOperation:
            self.lack(
                field,
                where,
                "not a valid number",
                f"write digits and a point, as 2000000 or 0.5, at most {_LONGEST} characters",
            )
            return None
        return str(number)

    def date(self, field: str, where: str) -> str | None:
        text = self.word(field)
        if not text:
            return None
        try:
            if len(text) != len("2020-01-31"):
                raise ValueError
            return datetime.date.fromisoformat(text).isoformat()
        except ValueError:
            self.lack(field, where, "not a valid date", "write year, month and day, as 1900-01-31")
            return None

    def count(self, field: str, where: str, *, needed: bool = False) -> int | None:
        text = self.word(field)
        if not text:
            if needed:
                self.lack(field, where, "it is missing", "write a whole number, as 20", unsaid=True)
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) == 0:
            self.lack(field, where, "not a whole number above 0", "write for example 20")
            return None
        return int(text)


def _place(text: str, most: int) -> int | None:
    """The number of something that was chosen of so many."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and int(text) < most else None


def _group(field: str) -> str:
    """Fields of which one lack is enough at a time: those of a column, and those that say whose rows a table holds."""
    head, _, last = field.rpartition(".")
    return head if last in (*_TABLE, *_COLUMN) else field
