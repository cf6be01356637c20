"""Expressions of one row made up at random: every function of the dialect's table, on every type that it takes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from discreet.audit.hostile import CONSTANTS, EDGES, PATTERNS, TEXTS
from discreet.catalog import Type
from discreet.dialect.functions import Argument, ArgumentKind, SqlFunction
from discreet.dialect.table import TABLE
from discreet.dialect.texts import UNITS

MOMENTS = (Type.DATE, Type.TIMESTAMP)
CASTS = {"INTEGER": Type.INTEGER, "DOUBLE": Type.NUMBER, "TEXT": Type.TEXT, "BOOLEAN": Type.BOOLEAN}
ALIKE = ("coalesce", "nullif", "greatest", "least")


@dataclass(frozen=True)
class Name:
    """A column as a question writes it. `person` says whose it is: the person's own, or a key that leads to one."""

    text: str
    type: Type
    person: str = ""


Names = Sequence[Name]

WRITTEN: Mapping[str, tuple[str, ...]] = {
    "equal": ("{0} = {1}",),
    "not_equal": ("{0} <> {1}", "{0} != {1}"),
    "less": ("{0} < {1}",),
    "less_equal": ("{0} <= {1}",),
    "greater": ("{0} > {1}",),
    "greater_equal": ("{0} >= {1}", "{0} BETWEEN {1} AND {1}", "{0} NOT BETWEEN {1} AND {0}"),
    "same": ("{0} IS DISTINCT FROM {1}", "{0} IS NOT DISTINCT FROM {1}", "{0} <=> {1}"),
    "and": ("({0} AND {1})",),
    "or": ("({0} OR {1})",),
    "not": ("NOT ({0})",),
    "is_null": ("{0} IS NULL", "{0} IS NOT NULL"),
    "is_true": ("({0}) IS TRUE", "({0}) IS NOT TRUE"),
    "is_false": ("({0}) IS FALSE", "({0}) IS NOT FALSE"),
    "case": (
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        "CASE WHEN {0} THEN {1} END",
        "CASE {1} WHEN {2} THEN {1} ELSE {2} END",
        "IF({0}, {1}, {2})",
        "IFF({0}, {1})",
        "NVL2({0}, {1}, {2})",
    ),
    "to_integer": ("CAST({0} AS INTEGER)", "({0})::BIGINT"),
    "to_number": ("CAST({0} AS DOUBLE)", "SAFE_CAST({0} AS NUMERIC)"),
    "to_text": ("CAST({0} AS TEXT)",),
    "to_boolean": ("CAST({0} AS BOOLEAN)",),
    "to_date": ("CAST({0} AS DATE)", "DATE({0})", "TRY_CAST({0} AS DATE)"),
    "to_timestamp": ("CAST({0} AS TIMESTAMP)", "TIMESTAMP({0})"),
    "add": ("({0} + {1})", "SAFE_ADD({0}, {1})"),
    "subtract": ("({0} - {1})",),
    "multiply": ("({0} * {1})",),
    "divide": ("({0} / {1})", "SAFE_DIVIDE({0}, {1})"),
    "negate": ("-({0})", "SAFE_NEGATE({0})"),
    "modulo": ("({0} % {1})", "MOD({0}, {1})"),
    "quotient": ("({0} DIV {1})", "DIV({0}, {1})"),
    "logarithm_base": ("LOG({0}, {1})",),
    "bit_and": ("({0} & {1})",),
    "bit_or": ("({0} | {1})",),
    "bit_xor": ("({0} ^ {1})",),
    "bit_not": ("(~{0})",),
    "shift_right": ("({0} >> {1})",),
    "concatenate": ("({0} || {0})", "CONCAT({0}, {0}, 'x')"),
    "concatenate_with": ("CONCAT_WS({0}, {1}, {1})",),
    "like": ("{0} LIKE {1}", "{0} NOT LIKE {1}"),
    "like_escape": ("{0} LIKE '%!_' ESCAPE '!'", "{0} LIKE '%\\_b' ESCAPE '\\'"),
    "ilike": ("{0} ILIKE {1}",),
    "matches": ("REGEXP_CONTAINS({0}, {1})", "{0} ~ {1}"),
    "date_trunc": ("DATE_TRUNC({0}, {1})",),
    "date_diff": ("DATE_DIFF({0}, {1}, {2})",),
}
"""How operators are written that are no plain calls, or in several ways."""


class Expressions:
    """Random expressions over some columns. `slips` is the share of arguments of a wrong type."""

    def __init__(self, dice: Random, *, slips: float = 0.0) -> None:
        self.dice = dice
        self.slips = slips

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.dice.choice(choices)

    def chance(self, share: float) -> bool:
        return self.dice.uniform(0, 1) < share

    def value(self, kind: Type, names: Names, depth: int = 2) -> str:
        """An expression of a type."""
        if self.chance(self.slips):
            kind = self.pick(list(Type))
        if depth <= 0 or self.chance(0.4):
            return self.leaf(kind, names)
        rows = [row for row in TABLE if gives(row, kind)]
        return self.call(self.pick(rows), kind, names, depth - 1)

    def condition(self, names: Names, depth: int = 2) -> str:
        """Something that is true or not, of a column where there is one."""
        if self.chance(0.15) and names:
            return f"{self.pick(names).text} IS {self.pick(['', 'NOT '])}NULL"
        return self.value(Type.BOOLEAN, names, max(1, depth))

    def leaf(self, kind: Type, names: Names) -> str:
        """A column or a constant."""
        fitting = [name.text for name in names if name.type is kind]
        if fitting and not self.chance(0.1):
            return str(self.pick(fitting))
        if names and not fitting and self.chance(0.75):
            return self.across(kind, names)
        return self.constant(kind)

    def across(self, kind: Type, names: Names) -> str:
        """A column of another type, made one of this."""
        name = self.pick(names)
        if kind in MOMENTS and name.type not in (*MOMENTS, Type.TEXT):
            return f"CAST(CAST({name.text} AS TEXT) AS {kind})"
        if kind not in (*MOMENTS, Type.TEXT) and name.type in MOMENTS:
            return f"UNIX_DATE({name.text})" if kind.numeric else f"{name.text} IS NULL"
        word = {Type.NUMBER: "DOUBLE"}.get(kind, str(kind).upper())
        return f"CAST({name.text} AS {word})"

    def constant(self, kind: Type) -> str:
        """A constant of a type as SQL: mostly an edge value, now and then NULL, but for dates and timestamps. A text or
        a number that no question may hold is replaced by one that it may."""
        if kind is Type.BOOLEAN:
            return str(self.pick(["(1 > 0)", "(NULL = 1)", "TRUE", "TRUE", "FALSE"]))
        if self.chance(0.05) and kind not in MOMENTS:
            return "NULL"
        edge = self.pick([one for one in EDGES[kind] if one is not None and one == one])
        if kind is Type.TEXT:
            return literal(edge if len(edge) < 400 else "long")
        if kind in MOMENTS:
            return f"{kind.upper()} '{edge}'" if self.chance(0.5) else f"CAST('{edge}' AS {kind})"
        if isinstance(edge, float) and edge and not 1e-299 < abs(edge) < 1e299:
            return "1e299"
        return f"({edge!r})" if edge < 0 else f"{edge!r}"

    def call(self, row: SqlFunction, kind: Type, names: Names, depth: int) -> str:
        """A function of the table, giving a value of this type."""
        dice, name = self.dice, row.names[0] if row.names else ""
        if row.form == "replace":
            old = self.pick(["a", "ab", "🙂", "a-b", " "])
            return f"{name}({self.value(Type.TEXT, names, depth)}, '{old}', '{self.pick(['', 'x', old])}')"
        if row.form == "bucket":
            low, high, n = self.pick([("-1", "2.5", "10"), ("0", "1e299", "3"), ("0", "1e-299", "10000")])
            return f"{name}({self.value(Type.NUMBER, names, depth)}, {low}, {high}, {n})"
        if row.form == "addition":
            return self._shifted(kind, names, depth)
        if row.form == "format":
            word = literal(self.pick(TEXTS["'%Y-%m'"]))
            return f"STRFTIME({self.value(self.pick(MOMENTS), names, depth)}, {word})"
        if row.form == "round":
            digits = dice.randint(1, 15) if kind is Type.NUMBER else dice.randint(-15, 0)
            return f"{name}({self.value(Type.NUMBER, names, depth)}, {digits})"
        if row.usage.startswith("EXTRACT("):
            part = row.usage.removeprefix("EXTRACT(").split(" ")[0]
            ways = [f"EXTRACT({part} FROM {{0}})", *(f"{one}({{0}})" for one in row.names)]
            return str(self.pick(ways)).format(self.value(self.pick(MOMENTS), names, depth))
        if row.operator == "in":
            among = self.pick(list(Type))
            listed = ", ".join(self._listed(among) for _ in range(3))
            return f"{self.value(among, names, depth)} {self.pick(['', 'NOT '])}IN ({listed})"
        given = self._arguments(row, kind, names, depth)
        if row.operator in WRITTEN:
            made = str(self.pick(WRITTEN[row.operator])).format(*given)
            return f"({made})" if kind is Type.BOOLEAN else made
        if row.operator in ALIKE and row.most and self.chance(0.3):
            given.append(given[0])
        return f"{self.pick(row.names)}({', '.join(given)})"

    def _listed(self, kind: Type) -> str:
        """A constant as IN takes it."""
        return "NULL" if kind in MOMENTS else "TRUE" if kind is Type.BOOLEAN else self.constant(kind)

    def _shifted(self, kind: Type, names: Names, depth: int) -> str:
        unit = self.pick(UNITS[:5] if kind is Type.DATE else UNITS)
        below = kind if kind is Type.DATE or unit in UNITS[:5] else self.pick(MOMENTS)
        moment = self.value(below, names, depth)
        number = self.pick(["1", "'-7'", "9999" if unit in ("YEAR", "MONTH", "DAY") else "300"])
        return str(self.pick(["({0} + INTERVAL {1} {2})", "({0} - INTERVAL {1} {2})"])).format(moment, number, unit)

    def _arguments(self, row: SqlFunction, kind: Type, names: Names, depth: int) -> list[str]:
        """What stands in the brackets of a call. Values of any type are of one."""
        alike = kind if row.gives == "common" else self.pick(list(Type))
        given = []
        for argument in row.takes:
            if argument.default is not None and self.chance(0.3):
                break
            given.append(self._argument(argument, row, kind, alike, names, depth))
        return given

    def _argument(self, argument: Argument, row: SqlFunction, kind: Type, alike: Type, names: Names, depth: int) -> str:
        if argument.constant:
            return self._constant(argument, row)
        match argument.kind:
            case ArgumentKind.NUMBER:
                exact = row.gives in ("same", "common") and kind.numeric
                wanted = kind if exact else self.pick([Type.INTEGER, Type.NUMBER])
            case ArgumentKind.WHOLE:
                wanted = Type.INTEGER
            case ArgumentKind.MOMENT:
                wanted = kind if row.gives == "moment" else self.pick(MOMENTS)
            case ArgumentKind.ANY:
                wanted = self._source(row) if row.form == "cast" else alike
            case other:
                wanted = Type(str({ArgumentKind.TEXT: Type.TEXT, ArgumentKind.BOOLEAN: Type.BOOLEAN}[other]))
        return self.value(wanted, names, depth)

    def _source(self, row: SqlFunction) -> Type:
        """A type that a cast takes."""
        moment = row.gives in MOMENTS
        kinds = (*MOMENTS, Type.TEXT) if moment else (Type.INTEGER, Type.NUMBER, Type.TEXT, Type.BOOLEAN)
        return Type(self.pick(list(Type) if row.gives is Type.TEXT else kinds))

    def _constant(self, argument: Argument, row: SqlFunction) -> str:
        if argument.kind is ArgumentKind.WHOLE:
            low, high = argument.low, argument.high
            return str(self.pick([low, high, min(low + 2, high), self.dice.randint(low, high)]))
        if row.operator == "extract_match":
            return literal(self.pick([one for one in PATTERNS if one.count("(") < 2]))
        return literal(self.pick(TEXTS.get(argument.name, CONSTANTS)))


def gives(row: SqlFunction, kind: Type) -> bool:
    """Whether a function can give a value of this type."""
    if isinstance(row.gives, Type):
        return row.gives is kind
    if row.gives == "moment":
        return kind in MOMENTS
    if row.gives == "common" and any(argument.kind is ArgumentKind.ANY for argument in row.takes):
        return True
    return kind.numeric


def literal(value: Any) -> str:
    """A constant as a question writes it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if value >= 0 else f"({value})"
