"""The whole table of the dialect, and how to find a row."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.dialect import numbers as dialect_numbers
from discreet.dialect import texts as dialect_texts
from discreet.dialect.functions import SqlFunction

CHAPTERS: Mapping[str, tuple[SqlFunction, ...]] = {
    "Conditions and choices": dialect_numbers.CONDITIONS,
    "Casts": dialect_numbers.CASTS,
    "Arithmetic": dialect_numbers.ARITHMETIC,
    "Powers, logarithms and angles": dialect_numbers.CURVES,
    "Bits": dialect_numbers.BITS,
    "Texts": dialect_texts.TEXTS,
    "Dates and timestamps": dialect_texts.DATES,
}
TABLE: tuple[SqlFunction, ...] = tuple(row for rows in CHAPTERS.values() for row in rows)
BY_OPERATOR: Mapping[str, SqlFunction] = {row.operator: row for row in (*TABLE, *dialect_numbers.STEPS)}
BY_NAME: Mapping[str, SqlFunction] = {name: row for row in TABLE for name in row.names}

ON_ANSWERS = frozenset(
    [
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "and",
        "or",
        "not",
        "is_null",
        "in",
        "case",
        "coalesce",
        "add",
        "subtract",
        "multiply",
        "divide",
        "negate",
        "absolute",
        "round",
        "like",
    ]
)
"""The operators that HAVING can compute on a released answer."""

_CALENDAR = "write CURRENT_DATE, or the date: DATE '2020-01-31'"
_CHANCE = "a question must mean the same each time it is asked: leave it out"
_OWN = "only declared columns can be read"
_LONG = "a row could make it long: put texts together with CONCAT"
_BOUNDED = "only constants within bounds can be put in: use REPLACE, SUBSTR or REGEXP_EXTRACT"
_SUM = "write + - * / with constants instead"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ["CURRENT_TIME", "LOCALTIME", "CURTIME"],
        _CALENDAR,
    ),
    **dict.fromkeys(
        ["RAND", "RANDOM", "UUID", "GEN_RANDOM_UUID", "GENERATE_UUID", "SETSEED", "NEXTVAL", "CURRVAL"], _CHANCE
    ),
    **dict.fromkeys(
        [
            "GETENV",
            "CURRENT_SETTING",
            "CURRENT_USER",
            "SESSION_USER",
            "USER",
            "CURRENT_DATABASE",
            "CURRENT_SCHEMA",
            "VERSION",
            "READ_CSV",
            "READ_TEXT",
            "READ_BLOB",
            "READ_PARQUET",
            "READ_JSON",
            "GLOB",
            "QUERY",
            "QUERY_TABLE",
            "PRAGMA_VERSION",
            "DUCKDB_TABLES",
            "TXID_CURRENT",
            "ERROR",
            "HASH",
            "GETVARIABLE",
            "UNNEST",
            "GENERATE_SERIES",
            "RANGE",
        ],
        _OWN,
    ),
    **dict.fromkeys(["REPEAT", "SPACE", "FORMAT", "PRINTF", "STRING_SPLIT", "SPLIT", "STR_SPLIT", "BAR"], _LONG),
    **dict.fromkeys(["REGEXP_REPLACE", "REGEXP_EXTRACT_ALL", "REGEXP_SPLIT_TO_ARRAY", "OVERLAY", "INSERT"], _BOUNDED),
    **dict.fromkeys(["FACTORIAL", "GCD", "LCM"], _SUM),
    "AGE": "write EXTRACT(YEAR FROM AGE(end, start)) of two dates for complete years, or DATE_DIFF('day', start, end)",
    **dict.fromkeys(
        ["DATE_BIN", "TIME_SLICE"], "write TIME_BUCKET(INTERVAL '15 minutes', x), which begins at midnight"
    ),
    "TIMESTAMPDIFF": "write DATE_DIFF('day', start, end)",
    **dict.fromkeys(["MD5", "SHA1", "SHA256", "SHA2"], "group by its argument: it can be computed of the answer"),
    "WEEKDAY": "write EXTRACT(DOW FROM date), Sunday is 0, or EXTRACT(ISODOW FROM date), Monday is 1",
    "YEARWEEK": "write FORMAT_DATE('%G-%V', date)",
    **dict.fromkeys(["CONVERT", "TRY_CONVERT"], "write CAST(x AS INTEGER)"),
    "LEVENSHTEIN": "its time grows with the square of a row's text: use LIKE or CONTAINS",
    "EDIT_DISTANCE": "its time grows with the square of a row's text: use LIKE or CONTAINS",
    "CHR": "write the character between single quotes",
    "CHAR": "write the character between single quotes",
}
"""What is known and refused, with what to write instead."""
