"""Edge-case values and constants for tables and questions, and made-up persons who have only such values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from discreet.catalog import Column, Declaration, Table, Type
from discreet.dialect.texts import UNITS

EDGES: Mapping[Type, Sequence[Any]] = {
    Type.INTEGER: [None, 0, 1, -1, 2, 7, 100, -2, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)],
    Type.NUMBER: [
        *(None, 0.0, -0.0, 0.5, -1.5, 2.5, 1e-308, 5e-324, 2**53 + 2.0, 9.3e18, 1.7976931348623157e308, -1e308),
        *(math.inf, -math.inf, 1.0, -1.0, 709.5, math.nan),
    ],
    Type.TEXT: [
        *(None, "", " ", "\\", "a\\", "%", "_", "a%b_c", "'", '"; --', "ü", "🙂", "ǰ", "ŉİ", "e\u0301", "[a-z]*", "("),
        *("a" * 300, "a b-c-d" * 3_000, "\t\r\n", "ＡＢ", "12", "-12.5", "1e400", "nan", "inf", "-inf", "0x1f", "1_0"),
        *("true", "2020-02-30", "2020-02-29", "0000-12-31", "10000-01-01", "infinity", "-infinity", "epoch", "today"),
        *("290000-01-01 (BC)", "2020-01-01 10:00:00+25", "9223372036854775808", "1" * 400, "\U0010ffff", "\x7f"),
    ],
    Type.BOOLEAN: [None, True, False],
    Type.DATE: [
        *(None, datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2020, 2, 29)),
        *(datetime.date(9999, 12, 31), datetime.date(1, 1, 2), datetime.date(2021, 1, 3)),
    ],
    Type.TIMESTAMP: [
        *(None, datetime.datetime(1, 1, 1), datetime.datetime(2020, 2, 29, 12, 0, 0, 1)),
        *(datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ],
}
"""What a loaded table can hold."""

BEYOND: Mapping[Type, Sequence[str]] = {
    Type.INTEGER: ["99999999999999999999", "-9223372036854775809", "1e400", "nan", "1.5", "maybe"],
    Type.NUMBER: ["1e999", "-1e999", "nan", "-nan", "0x10", "1_000", "½"],
    Type.BOOLEAN: ["maybe", "2", "nan"],
    Type.DATE: ["infinity", "-infinity", "10000-01-01", "0044-03-15 (BC)", "5881580-07-10", "2020-13-45"],
    Type.TIMESTAMP: ["infinity", "-infinity", "20000-01-01 00:00:00", "0001-01-01 00:00:00 (BC)", "294247-01-10 04:00"],
}
"""What a file can hold beside it, as text."""

LONG_TEXT = 200_000

PATTERNS = [
    "",
    "a",
    "^a+$",
    "(a|b)*c",
    "[^a-c\\d]{2,100}",
    "(?i)Ü",
    "\\bb\\b",
    ".",
    "(?:a?){50}",
    "\\w+?-",
    "x|",
    "[[:alpha:]]+",
]
TEXTS = {
    "'pattern'": ["", "%", "_", "%%", "\\", "%_%_b", "%a%a%a%a%b", "(", "[a", "🙂%", "''"],
    "'expression'": PATTERNS,
    "unit": list(UNITS),
    "'%Y-%m'": ["%Y-%m-%d", "%A %B %j %H:%M:%S %%", "ü"],
    "'!'": ["!", "\\", "ü"],
    "'between'": ["", "-", "🙂"],
}
"""Constants of a question, by what the dialect's table calls them."""

CONSTANTS = ["a", "-", " ", "🙂", "a%b", "''"]

Rows = Sequence[Mapping[str, Any]]
World = Mapping[str, Rows]
"""The rows of each declared table."""

CROWD = 5
"""Persons that are in both of two neighbours, with values as declared."""


@dataclass(frozen=True)
class Hostile:
    """One person who is as awkward as a source allows, and how: which values, how many rows, whose keys."""

    name: str
    rows: int = 4
    values: str = "edges"
    """edges, beyond (as text only), nothing, long, usual."""
    shared: bool = False
    """Whether the person's keys are also those of others."""


HOSTILE = (
    Hostile("edges", 30),
    Hostile("beyond", 12, "beyond"),
    Hostile("nothing", 3, "nothing"),
    Hostile("long texts", 3, "long"),
    Hostile("everything", 400, "edges", shared=True),
    Hostile("usual", 40, "usual", shared=True),
)


def crowd(known: Declaration, seed: int = 1, count: int = CROWD) -> World:
    """Everybody else: a few persons with the values that the declaration names. Public tables hold edges as well."""
    dice = Random(seed)
    return {
        table.name: [_row(dice, known, table, place, "public" if table.public else "usual") for place in range(count)]
        for table in known.tables.values()
    }


def with_persons(known: Declaration, others: World, persons: Sequence[Hostile] = HOSTILE, seed: int = 1) -> World:
    """The same and the hostile persons: what must not be told from the others by anything but noise."""
    dice = Random(seed)
    whole: dict[str, Rows] = {}
    for table in known.tables.values():
        rows = list(others[table.name])
        for number, person in enumerate(persons if not table.public else ()):
            first = CROWD + 1000 * (number + 1)
            count = 1 if table.person is None or table.one_row_per_person else person.rows
            rows += [_row(dice, known, table, first + place, person.values, person, first) for place in range(count)]
        whole[table.name] = rows
    return whole


def _row(
    dice: Random,
    known: Declaration,
    table: Table,
    place: int,
    values: str,
    person: Hostile | None = None,
    who: int = 0,
) -> dict[str, Any]:
    """A row about somebody. `who` is the number of a hostile person, whose rows are numbered from there on."""
    row = {}
    for column in table.columns:
        if table.person == column.name:
            row[column.name] = named(column.type, who if person is not None and table.path is None else place)
        elif below := [other for other in known.tables.values() if other.path == (table.name, column.name)]:
            may = all(other.shared for other in below)  # else a key that leads to two persons is refused
            shared = may and person is not None and person.shared and place % 2
            row[column.name] = named(column.type, place % CROWD if shared else place)
        else:
            row[column.name] = _value(dice, column, place, values)
    return row


def named(kind: Type | None, place: int) -> Any:
    """One of many different values that rows can be told by."""
    if kind in (Type.DATE, Type.TIMESTAMP):
        day = datetime.date(2000, 1, 1) + datetime.timedelta(days=place)
        return day if kind is Type.DATE else datetime.datetime.combine(day, datetime.time())
    if kind is Type.BOOLEAN:
        return bool(place % 2)
    return place if kind in (Type.INTEGER, Type.NUMBER) else f"nobody {place}"


def _value(dice: Random, column: Column, place: int, values: str) -> Any:
    assert column.type is not None
    if values == "nothing":
        return None
    if values == "long" and column.type is Type.TEXT:
        return dice.choice(["a", "%_\\", "🙂", "'"]) * (LONG_TEXT // 4)
    if values == "beyond" and column.type in BEYOND and dice.uniform(0, 1) < 0.7:
        return dice.choice(BEYOND[column.type])
    if values in ("usual", "public") and dice.uniform(0, 1) < (0.5 if values == "public" else 0.9):
        return usual(dice, column, place)
    return dice.choice(EDGES[column.type])


def usual(dice: Random, column: Column, place: int) -> Any:
    """A value as declared; where nothing is declared, one that several rows have."""
    if known := column.keys():
        return plain(dice.choice(known))
    low, high = column.minimum, column.maximum
    if isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
        between = low + (high - low) * Fraction(dice.randrange(5), 4)
        return int(between) if column.type is Type.INTEGER else float(between)
    return named(column.type, place % 3)


def plain(value: Any) -> Any:
    """A declared value as a row holds it."""
    return float(value) if isinstance(value, Fraction) else value


def written(value: Any) -> str:
    """A value as a file holds it; NULL is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
