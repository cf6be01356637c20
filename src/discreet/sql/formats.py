"""Patterns of dates and numbers as databases write them: each in the pieces that the dialect can put together.

A pattern with anything else in it is refused: what is guessed here would be paid for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

PLAIN = "YymdjHMSAaBb"
"""The letters that FORMAT_DATE knows behind a %."""

_Special = tuple[str, int]
"""A part of a date, and the digits that it is filled up to with zeros; 0 for none."""

_QUARTER, _WEEK, _ISO_YEAR, _FROM_MONDAY = ("QUARTER", 0), ("WEEK", 2), ("ISOYEAR", 4), ("ISODOW", 0)
_FROM_SUNDAY, _DAY, _MONTH, _HOUR = ("DAYOFWEEK", 0), ("DAY", 0), ("MONTH", 0), ("HOUR", 0)
_DATE, _TIME = "%Y-%m-%d", "%H:%M:%S"

_STRFTIME: Mapping[str, str | _Special] = {
    **{f"%{letter}": f"%{letter}" for letter in PLAIN},
    "%%": "%%",
    "%F": _DATE,
    "%T": _TIME,
    "%R": "%H:%M",
    "%h": "%b",
    "%-d": _DAY,
    "%-m": _MONTH,
    "%-H": _HOUR,
    "%V": _WEEK,
    "%G": _ISO_YEAR,
    "%u": _FROM_MONDAY,
}
_BIGQUERY: Mapping[str, str | _Special] = {**_STRFTIME, "%Q": _QUARTER}
_MYSQL: Mapping[str, str | _Special] = {
    **{f"%{letter}": f"%{letter}" for letter in "YymdjHSab"},
    "%i": "%M",
    "%s": "%S",
    "%M": "%B",
    "%W": "%A",
    "%T": _TIME,
    "%%": "%%",
    "%k": _HOUR,
    "%e": _DAY,
    "%c": _MONTH,
    "%v": _WEEK,
    "%x": _ISO_YEAR,
}
_TO_CHAR: Mapping[str, str | _Special] = {
    "YYYY": "%Y",
    "YY": "%y",
    "MM": "%m",
    "DDD": "%j",
    "DD": "%d",
    "HH24": "%H",
    "MI": "%M",
    "SS": "%S",
    "Mon": "%b",
    "Dy": "%a",
    "FMMonth": "%B",
    "FMDay": "%A",
    "FMMM": _MONTH,
    "FMDD": _DAY,
    "FMHH24": _HOUR,
    "IYYY": _ISO_YEAR,
    "IW": _WEEK,
    "ID": _FROM_MONDAY,
    "D": _FROM_SUNDAY,
    "Q": _QUARTER,
}
_TO_CHAR = {  # numbers may stand in small letters too
    **{name.lower(): meaning for name, meaning in _TO_CHAR.items() if name.upper() == name and "FM" not in name},
    **_TO_CHAR,
}
_SNOWFLAKE: Mapping[str, str | _Special] = {
    "YYYY": "%Y",
    "YY": "%y",
    "MMMM": "%B",
    "MM": "%m",
    "MON": "%b",
    "DD": "%d",
    "DY": "%a",
    "HH24": "%H",
    "MI": "%M",
    "SS": "%S",
}
_JAVA: Mapping[str, str | _Special] = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "M": _MONTH,
    "dddd": "%A",
    "ddd": "%a",
    "dd": "%d",
    "d": _DAY,
    "HH": "%H",
    "H": _HOUR,
    "mm": "%M",
    "ss": "%S",
}
_SPARK: Mapping[str, str | _Special] = {
    name: meaning for name, meaning in _JAVA.items() if name not in ("dddd", "ddd", "MMMM")
} | {"EEEE": "%A", "E": "%a", "MMMM": "%B", "D": ("DAYOFYEAR", 0), "DDD": "%j", "q": _QUARTER, "Q": _QUARTER}

FAMILIES: Mapping[str, tuple[Mapping[str, str | _Special], bool]] = {
    "strftime": (_STRFTIME, False),
    "bigquery": (_BIGQUERY, False),
    "mysql": (_MYSQL, False),
    "to_char": (_TO_CHAR, False),
    "snowflake": (_SNOWFLAKE, True),
    "java": (_JAVA, False),
    "spark": (_SPARK, False),
}
"""How patterns are written: what their words mean, and whether small letters mean the same."""


def pieces(family: str, pattern: str) -> list[str | _Special] | None:
    """A pattern as formats of FORMAT_DATE and parts between them; None where it holds what has no meaning here."""
    known, any_case = FAMILIES[family]
    signs = family in ("strftime", "bigquery", "mysql")
    found: list[str | _Special] = []
    words = sorted(known, key=len, reverse=True)
    quoted = '"' if family in ("to_char", "snowflake") else "'"
    place = 0
    while place < len(pattern):
        rest = pattern[place:]
        word = next((one for one in words if (rest.upper() if any_case else rest).startswith(one)), None)
        if word is not None:
            after = rest[len(word) : len(word) + 1]
            if not signs and after and after == word[-1] and after.isalpha():
                return None  # yyyyy
            meaning, step = known[word], len(word)
        elif not signs and rest[0] == quoted and quoted in rest[1:]:
            text, _, _ = rest[1:].partition(quoted)
            meaning, step = text.replace("%", "%%"), len(text) + 2
        elif rest[0] == "%" or (not signs and (rest[0].isalnum() or rest[0] in "\"'\\")):
            return None
        else:
            meaning, step = rest[0], 1
        if isinstance(meaning, str) and found and isinstance(found[-1], str):
            found[-1] += meaning
        else:
            found.append(meaning)
        place += step
    return found


def plain(piece: str | _Special) -> bool:
    """Whether a piece is the same for every date."""
    return isinstance(piece, str) and "%" not in piece.replace("%%", "")


def written(moments: Sequence[exp.Expression | None], found: Sequence[str | _Special]) -> exp.Expression:
    """What puts the pieces together; each has the moment that it is of."""
    parts = [_piece(moment, one) for moment, one in zip(moments, found, strict=True)]
    return parts[0] if len(parts) == 1 else exp.Anonymous(this="CONCAT", expressions=parts)


def _piece(moment: exp.Expression | None, one: str | _Special) -> exp.Expression:
    if isinstance(one, str):
        if moment is None:
            return exp.Literal.string(one.replace("%%", "%"))
        return exp.Anonymous(this="FORMAT_DATE", expressions=[exp.Literal.string(one), moment])
    part, digits = one
    number = exp.Cast(this=exp.Extract(this=exp.var(part), expression=moment), to=exp.DataType(this=exp.DType.TEXT))
    if not digits:
        return number
    return exp.Anonymous(this="LPAD", expressions=[number, exp.Literal.number(digits), exp.Literal.string("0")])


_ISO = {"%Y-%m-%d": "DATE", "%Y-%m-%d %H:%M:%S": "TIMESTAMP", "%Y-%m-%d %H:%M": "TIMESTAMP"}
_FRACTION = re.compile(r"(\.US|\.MS|\.FF\d?|\.%f|\.SSS+|\.%E\*S)$")


def iso(family: str, pattern: str) -> str:
    """DATE or TIMESTAMP where the pattern is that of a cast, else an empty text."""
    plain = _FRACTION.sub("", pattern).replace("'T'", " ").replace('"T"', " ")
    found = pieces(family, plain)
    return _ISO.get(found[0], "") if found is not None and len(found) == 1 and isinstance(found[0], str) else ""
