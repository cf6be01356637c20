"""Types and values of PostgreSQL: of answers, as text and in binary; of parameters, as literals of a question."""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
from decimal import Decimal
from typing import Any

from discreet.wire.messages import BINARY, utf8
from discreet.wire.refusals import Trouble

BOOL, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 18, 19, 20, 21, 23, 25, 26
JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 114, 700, 701, 705, 1042, 1043
DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, VOID = 1082, 1114, 1184, 1700, 2278

INTEGERS = {INT8: "!q", INT2: "!h", INT4: "!i", OID: "!I"}
FLOATS = {FLOAT4: "!f", FLOAT8: "!d"}
TEXTS = {TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN, JSON, 0}
ARRAYS = {1016: INT8, 1022: FLOAT8, 1009: TEXT, 1000: BOOL, 1182: DATE, 1115: TIMESTAMP, 1007: INT4, 1005: INT2}
ARRAYS |= {1015: VARCHAR, 1003: NAME, 1028: OID, 1021: FLOAT4, 1231: NUMERIC, 1002: CHAR}
ARRAY_OF = {one: array for array, one in ARRAYS.items()}

SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8, NAME: 64, CHAR: 1}
SIZES |= {TIMESTAMPTZ: 8, VOID: 4}

OF_DECLARED = {
    "integer": INT8,
    "number": FLOAT8,
    "text": TEXT,
    "boolean": BOOL,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "value": TEXT,
    "list": ARRAY_OF[TEXT],
}
"""PostgreSQL's type of each of ours."""

OF_NAMES = {
    **dict.fromkeys(("int", "integer", "int4", "smallint", "int2", "bigint", "int8"), INT8),
    **dict.fromkeys(("float", "float8", "double", "real", "float4"), FLOAT8),
    **dict.fromkeys(("numeric", "decimal"), NUMERIC),
    **dict.fromkeys(("text", "varchar", "char", "bpchar", "character"), TEXT),
    **dict.fromkeys(("bool", "boolean"), BOOL),
    **dict.fromkeys(("timestamp", "timestamptz"), TIMESTAMP),
    "date": DATE,
}
"""The type that a cast's name means for a parameter."""

_EPOCH = datetime.datetime(2000, 1, 1)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_LONGEST_NUMBER = 400


def oid_of(kind: str) -> int:
    """PostgreSQL's type of one of ours, by its name."""
    if kind.startswith("list of "):
        return ARRAY_OF[OF_DECLARED.get(kind.removeprefix("list of "), TEXT)]
    return OF_DECLARED.get(kind, TEXT)


def oid_of_values(values: list[Any]) -> int:
    """The type that some values have: the widest, where they have several."""
    known = [one for one in values if one is not None]
    if known and all(type(one) is bool for one in known):
        return BOOL
    if known and all(type(one) is int for one in known):
        return INT8 if all(_LEAST <= one <= _MOST for one in known) else NUMERIC
    if all(type(one) in (int, float) for one in known):
        return FLOAT8
    if all(isinstance(one, list) for one in known):
        return ARRAY_OF[oid_of_values([part for one in known for part in one])]
    if all(type(one) is datetime.date for one in known):
        return DATE
    return TIMESTAMP if all(isinstance(one, datetime.datetime) for one in known) else TEXT


# out


def encoded(oid: int, value: Any, form: int) -> bytes | None:
    """A value as a client wants it. Raises Trouble where it does not fit its type."""
    if value is None:
        return None
    value = _fitting(oid, value)
    return _binary(oid, value) if form == BINARY else _text(oid, value).encode("utf-8", "replace")


def _fitting(oid: int, value: Any) -> Any:
    """The value in its column's type, which may have been told before it was known."""
    if oid in FLOATS and isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            return math.copysign(math.inf, value)
    if (oid == INT8 and (type(value) is not int or not _LEAST <= value <= _MOST)) or (
        oid in ARRAYS and not isinstance(value, list)
    ):
        words = "the answer's type is another one than was described"
        raise Trouble("22003", words, hint="ask once more: the answer is stored, and free")
    return value


def _text(oid: int, value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, list):
        return "{" + ",".join(_element(ARRAYS.get(oid, TEXT), one) for one in value) + "}"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def _element(oid: int, value: Any) -> str:
    if value is None:
        return "NULL"
    text = _text(oid, _fitting(oid, value))
    if not text or text.upper() == "NULL" or re.search(r'[{},"\\\s]', text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _binary(oid: int, value: Any) -> bytes:
    try:
        if oid in INTEGERS:
            return struct.pack(INTEGERS[oid], int(value))
        if oid in FLOATS:
            return struct.pack(FLOATS[oid], float(value))
        if oid == BOOL:
            return b"\1" if value in (True, "t") else b"\0"
        if oid == DATE:
            return struct.pack("!i", (value - _EPOCH.date()).days)
        if oid in (TIMESTAMP, TIMESTAMPTZ):
            return struct.pack("!q", (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1))
        if oid == NUMERIC:
            return _numeric(Decimal(value))
    except (struct.error, TypeError, ValueError, AttributeError, ArithmeticError):
        raise Trouble("22003", "a value does not fit the type that was described") from None
    if oid in ARRAYS:
        return _array(ARRAYS[oid], value)
    return _text(oid, value).encode("utf-8", "replace")


def _array(oid: int, values: list[Any]) -> bytes:
    parts = [struct.pack("!iiI", 1 if values else 0, int(None in values), oid)]
    parts += [struct.pack("!ii", len(values), 1)] if values else []
    for one in values:
        content = None if one is None else _binary(oid, _fitting(oid, one))
        parts.append(b"\xff\xff\xff\xff" if content is None else struct.pack("!i", len(content)) + content)
    return b"".join(parts)


def _numeric(value: Decimal) -> bytes:
    """Digits to the base of 10,000, as PostgreSQL has them."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = int("".join(map(str, digits)) or "0") * 10 ** max(0, exponent)
    whole *= 10 ** (-scale % 4)
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.insert(0, group)
    weight = len(groups) - 1 - (scale + 3) // 4
    while groups and not groups[-1]:
        groups.pop()
    head = struct.pack("!hhHh", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def copied(oid: int, value: Any) -> str | None:
    """A value as a line of COPY has it, before what would end it is marked."""
    return None if value is None else _text(oid, _fitting(oid, value))


# in


def literal(oid: int, content: bytes | None, form: int) -> str:
    """A parameter's value as one literal of a question. Raises Trouble where it is none of its type."""
    if content is None:
        return "NULL"
    try:
        value = _from_binary(oid, content) if form == BINARY else _from_text(oid, utf8(content))
    except (struct.error, ValueError, ArithmeticError, OverflowError):
        raise Trouble("22P02", "the value of a parameter is none of its type") from None
    return _literal(value)


def plain(oid: int, content: bytes | None, form: int) -> str | None:
    """The same as text, for what is no question."""
    if content is None:
        return None
    try:
        if oid in ARRAYS:
            return _listed(oid, content) if form == BINARY else utf8(content)
        value = _from_binary(oid, content) if form == BINARY else _from_text(oid, utf8(content))
    except (struct.error, ValueError, ArithmeticError, OverflowError):
        raise Trouble("22P02", "the value of a parameter is none of its type") from None
    return _text(oid, value)


def _listed(oid: int, content: bytes) -> str:
    """An array of one dimension as text."""
    dimensions, _, _ = struct.unpack_from("!iiI", content)
    if dimensions == 0:
        return "{}"
    count, place = struct.unpack_from("!i", content, 12)[0], 20
    if dimensions != 1 or not 0 <= count <= len(content):
        raise ValueError
    parts = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", content, place)
        place += 4 + max(0, length)
        if place > len(content):
            raise ValueError
        one = content[place - length : place] if length >= 0 else None
        parts.append("NULL" if one is None else _element(ARRAYS[oid], _from_binary(ARRAYS[oid], one)))
    return "{" + ",".join(parts) + "}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | Decimal):
        written = f"{value:f}" if isinstance(value, Decimal) else str(value)
        return f"({written})" if written.startswith("-") else written
    if isinstance(value, datetime.datetime):
        return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP)"
    if isinstance(value, datetime.date):
        return f"CAST('{value.isoformat()}' AS DATE)"
    return quoted(str(value))


def quoted(text: str) -> str:
    """A text between single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _from_text(oid: int, text: str) -> Any:
    if oid in INTEGERS:
        return int(_number(text))
    if oid in FLOATS or oid == NUMERIC:
        return Decimal(_number(text))
    if oid == BOOL:
        return _boolean(text.strip().lower())
    if oid == DATE:
        return datetime.date.fromisoformat(text.strip())
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        return _utc(datetime.datetime.fromisoformat(text.strip()))
    return _of_text(oid, text)


def _of_text(oid: int, text: str) -> str:
    if oid not in TEXTS:
        raise Trouble("0A000", "a parameter of this type is not known here", hint="send a text, and cast it")
    return text


def _number(text: str) -> str:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _boolean(text: str) -> bool:
    if text not in ("t", "true", "1", "on", "yes", "f", "false", "0", "off", "no"):
        raise ValueError
    return text in ("t", "true", "1", "on", "yes")


def _from_binary(oid: int, content: bytes) -> Any:
    if oid in INTEGERS:
        return struct.unpack(INTEGERS[oid], content)[0]
    if oid in FLOATS:
        value = struct.unpack(FLOATS[oid], content)[0]
        if not math.isfinite(value):
            raise ValueError
        return Decimal(repr(value))
    if oid == BOOL:
        return bool(struct.unpack("!?", content)[0])
    if oid == DATE:
        return _EPOCH.date() + datetime.timedelta(days=struct.unpack("!i", content)[0])
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        return _EPOCH + datetime.timedelta(microseconds=struct.unpack("!q", content)[0])
    if oid == NUMERIC:
        return _from_numeric(content)
    return _of_text(oid, utf8(content))


def _from_numeric(content: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!hhHh", content)
    if sign not in (0, 0x4000) or not (0 <= scale <= 400 and abs(weight) <= 100 and 0 <= count <= 201):
        raise ValueError
    groups = struct.unpack(f"!{count}h", content[8:])
    if not set(groups) <= set(range(10_000)):
        raise ValueError
    digits = tuple(int(digit) for one in groups for digit in f"{one:04}")  # sums would be rounded to 28 digits
    return Decimal((int(bool(sign)), digits, 4 * (weight - count + 1))) if digits else Decimal(0)


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
