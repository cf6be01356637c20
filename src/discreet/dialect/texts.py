"""The table's rows for texts, dates and timestamps."""

from __future__ import annotations

from discreet.dialect.functions import (
    LONGEST_PAD,
    LONGEST_PATTERN,
    MOMENT,
    TEXT,
    WHOLE,
    Argument,
    ArgumentKind,
    SqlFunction,
    named,
    text_constant,
    whole_constant,
)
from discreet.trusted.ring_a.table import Type

_INTEGER, _BOOLEAN, _TEXT = Type.INTEGER, Type.BOOLEAN, Type.TEXT
_NEEDLE = text_constant(1, LONGEST_PATTERN)
_LINEAR = "a constant is searched for: the time is linear in the text"
_PLACES = "places beyond 2^31 are NULL"
_CHARACTERS = text_constant(1, 100, " ", "'characters'")
_PAD = (TEXT, whole_constant(0, LONGEST_PAD), text_constant(1, 100, " "))
_LIKE = (TEXT, text_constant(0, 100_000, name="'pattern'"))
_EXPRESSION = (TEXT, text_constant(0, LONGEST_PATTERN, name="'expression'"))
_LINEAR_EXPRESSION = "a constant of plain syntax, without reference or look-around: linear time"
_FIRST = "the first 10,000 characters are looked at"

TEXTS = (
    SqlFunction("upper", ("UPPER", "UCASE"), (TEXT,), _TEXT, "UPPER('aü')", "AÜ"),
    SqlFunction("lower", ("LOWER", "LCASE"), (TEXT,), _TEXT, "LOWER('AÜ')", "aü"),
    SqlFunction(
        "initcap", ("INITCAP",), (TEXT,), _TEXT, "INITCAP('new york')", "New York", "a word begins after a space"
    ),
    SqlFunction(
        "length",
        ("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN"),
        (TEXT,),
        _INTEGER,
        "LENGTH('aü')",
        "2",
        "characters",
        whole=True,
    ),
    SqlFunction(
        "byte_length", ("BYTE_LENGTH", "OCTET_LENGTH"), (TEXT,), _INTEGER, "BYTE_LENGTH('aü')", "3", whole=True
    ),
    SqlFunction(
        "substring",
        ("SUBSTR", "SUBSTRING", "MID"),
        (TEXT, named(WHOLE, "from"), Argument(ArgumentKind.WHOLE, default=2**31 - 1, name="length")),
        _TEXT,
        "SUBSTR('abcd', 2, 2)",
        "bc",
        f"a negative place counts from the end, 0 is the one before the first; {_PLACES}",
        "TRY_CAST to 32 bits",
        "SUBSTR(text, from [, length]), SUBSTRING(text FROM 2 FOR 3)",
    ),
    SqlFunction(
        "left",
        ("LEFT",),
        (TEXT, WHOLE),
        _TEXT,
        "LEFT('abcd', 2)",
        "ab",
        f"a negative number leaves so many out; {_PLACES}",
        "TRY_CAST to 32 bits",
    ),
    SqlFunction(
        "right",
        ("RIGHT",),
        (TEXT, WHOLE),
        _TEXT,
        "RIGHT('abcd', 2)",
        "cd",
        f"a negative number leaves so many out; {_PLACES}",
        "TRY_CAST to 32 bits",
    ),
    SqlFunction(
        "trim",
        ("TRIM", "BTRIM"),
        (TEXT, _CHARACTERS),
        _TEXT,
        "TRIM('  a ')",
        "a",
        "",
        "",
        "TRIM(text [, 'characters']), TRIM(BOTH 'x' FROM text)",
    ),
    SqlFunction("trim_left", ("LTRIM",), (TEXT, _CHARACTERS), _TEXT, "LTRIM('xxa', 'x')", "a"),
    SqlFunction("trim_right", ("RTRIM",), (TEXT, _CHARACTERS), _TEXT, "RTRIM('axx', 'x')", "a"),
    SqlFunction("pad_left", ("LPAD",), _PAD, _TEXT, "LPAD('7', 3, '0')", "007", "", f"n is at most {LONGEST_PAD}"),
    SqlFunction("pad_right", ("RPAD",), _PAD, _TEXT, "RPAD('7', 3, '0')", "700", "", f"n is at most {LONGEST_PAD}"),
    SqlFunction(
        "concatenate",
        ("CONCAT",),
        (TEXT,),
        _TEXT,
        "CONCAT('a', 'b')",
        "ab",
        "NULL where any is NULL",
        "at most 20 texts of columns in one",
        "x || y, CONCAT(x, y, …)",
        most=40,
    ),
    SqlFunction(
        "concatenate_with",
        ("CONCAT_WS",),
        (text_constant(0, 100, name="'between'"), TEXT),
        _TEXT,
        "CONCAT_WS('-', 'a', NULL, 'b')",
        "a-b",
        "NULLs are left out",
        "at most 20 texts of columns in one",
        most=41,
    ),
    SqlFunction(
        "replace",
        ("REPLACE",),
        (TEXT, text_constant(1, LONGEST_PATTERN, name="'old'"), text_constant(0, LONGEST_PATTERN, name="'new'")),
        _TEXT,
        "REPLACE('a-b', '-', '+')",
        "a+b",
        "",
        "'new' is not longer than 'old'",
        form="replace",
    ),
    SqlFunction(
        "translate",
        ("TRANSLATE",),
        (TEXT, text_constant(1, LONGEST_PATTERN, name="'old'"), text_constant(0, LONGEST_PATTERN, name="'new'")),
        _TEXT,
        "TRANSLATE('abc', 'ab', 'xy')",
        "xyc",
        "characters without a partner are left out",
        "'new' is not longer than 'old'",
        form="replace",
    ),
    SqlFunction("reverse", ("REVERSE",), (TEXT,), _TEXT, "REVERSE('abc')", "cba"),
    SqlFunction("strip_accents", ("STRIP_ACCENTS", "UNACCENT"), (TEXT,), _TEXT, "STRIP_ACCENTS('é')", "e"),
    SqlFunction(
        "split_part",
        ("SPLIT_PART",),
        (TEXT, text_constant(1, 100), whole_constant(1, 1_000)),
        _TEXT,
        "SPLIT_PART('a-b-c', '-', 2)",
        "b",
        "empty where there is no such part",
        _LINEAR,
    ),
    SqlFunction(
        "character_code", ("ASCII", "UNICODE"), (TEXT,), _INTEGER, "ASCII('a')", "97", "0 if empty", whole=True
    ),
    SqlFunction(
        "starts_with", ("STARTS_WITH", "STARTSWITH"), (TEXT, TEXT), _BOOLEAN, "STARTS_WITH('abc', 'a')", "true"
    ),
    SqlFunction("ends_with", ("ENDS_WITH", "ENDSWITH"), (TEXT, TEXT), _BOOLEAN, "ENDS_WITH('abc', 'bc')", "true"),
    SqlFunction(
        "contains",
        ("CONTAINS", "CONTAINS_SUBSTR"),
        (TEXT, _NEEDLE),
        _BOOLEAN,
        "CONTAINS('abc', 'b')",
        "true",
        "",
        _LINEAR,
    ),
    SqlFunction(
        "position",
        ("STRPOS", "INSTR"),
        (TEXT, _NEEDLE),
        _INTEGER,
        "STRPOS('abc', 'c')",
        "3",
        "0 where it is not there",
        _LINEAR,
        "STRPOS(text, 'c'), INSTR(text, 'c'), POSITION('c' IN text)",
        whole=True,
    ),
    SqlFunction(
        "like", (), _LIKE, _BOOLEAN, "'abc' LIKE 'a%'", "true", "", "linear in the row's text", "x [NOT] LIKE 'a%'"
    ),
    SqlFunction(
        "like_escape",
        (),
        (*_LIKE, text_constant(1, 1, name="'!'")),
        _BOOLEAN,
        "'a%' LIKE 'a!%' ESCAPE '!'",
        "true",
        "",
        "the pattern does not end with the escape",
        "x [NOT] LIKE 'a!%' ESCAPE '!'",
        form="like",
    ),
    SqlFunction("ilike", (), _LIKE, _BOOLEAN, "'ABC' ILIKE 'a%'", "true", "", "as for LIKE", "x [NOT] ILIKE 'a%'"),
    SqlFunction(
        "matches",
        ("REGEXP_CONTAINS", "REGEXP_LIKE", "REGEXP_MATCHES"),
        _EXPRESSION,
        _BOOLEAN,
        "REGEXP_CONTAINS('abc', '^a.c$')",
        "true",
        _FIRST,
        _LINEAR_EXPRESSION,
        "REGEXP_CONTAINS(x, 'a+'), REGEXP_LIKE, x ~ 'a+'",
        form="regular",
    ),
    SqlFunction(
        "matches_all",
        ("REGEXP_FULL_MATCH",),
        _EXPRESSION,
        _BOOLEAN,
        "REGEXP_FULL_MATCH('abc', 'b')",
        "false",
        _FIRST,
        _LINEAR_EXPRESSION,
        form="regular",
    ),
    SqlFunction(
        "extract_match",
        ("REGEXP_EXTRACT", "REGEXP_SUBSTR"),
        _EXPRESSION,
        _TEXT,
        "REGEXP_EXTRACT('a12b', '[0-9]+')",
        "12",
        f"the group, where there is one; empty where nothing matches; {_FIRST}",
        _LINEAR_EXPRESSION,
        form="regular",
    ),
)


def _part(operator: str, names: tuple[str, ...], parts: str, result: str, edges: str = "") -> SqlFunction:
    """A part of a date or timestamp."""
    example = f"EXTRACT({parts.split(', ')[0]} FROM TIMESTAMP '2020-02-29 12:30:45')"
    usage = f"EXTRACT({parts.split(', ')[0]} FROM date)" + "".join(f", {name}(date)" for name in names)
    return SqlFunction(operator, names, (MOMENT,), _INTEGER, example, result, edges, "", usage, whole=True)


PARTS = {
    "YEAR": "year",
    "ISOYEAR": "iso_year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "ISOWEEK": "week",
    "DAY": "day",
    "DOY": "day_of_year",
    "DAYOFYEAR": "day_of_year",
    "DOW": "day_of_week_0",
    "DAYOFWEEK": "day_of_week",
    "ISODOW": "day_of_week_iso",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "EPOCH": "unix_seconds",
}
"""The parts of EXTRACT and DATE_PART."""

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
"""The units of DATE_TRUNC, DATE_DIFF and intervals."""

_UNIT = text_constant(1, 10, name="unit")

DATES = (
    _part("year", ("YEAR",), "YEAR", "2020"),
    _part("iso_year", ("ISOYEAR",), "ISOYEAR", "2020", "the year of the ISO week"),
    _part("quarter", ("QUARTER",), "QUARTER", "1"),
    _part("month", ("MONTH",), "MONTH", "2"),
    _part("week", ("WEEK", "WEEKOFYEAR", "ISOWEEK"), "WEEK", "9", "ISO 8601: 1 to 53, from Monday on"),
    _part("day", ("DAY", "DAYOFMONTH"), "DAY", "29"),
    _part("day_of_year", ("DAYOFYEAR",), "DAYOFYEAR", "60"),
    _part("day_of_week", ("DAYOFWEEK",), "DAYOFWEEK", "7", "Sunday is 1, Saturday 7, as in GoogleSQL"),
    _part("day_of_week_0", ("DOW",), "DOW", "6", "Sunday is 0, Saturday 6, as in PostgreSQL"),
    _part("day_of_week_iso", ("ISODOW",), "ISODOW", "6", "Monday is 1, Sunday 7"),
    _part("hour", ("HOUR",), "HOUR", "12", "0 for a date"),
    _part("minute", ("MINUTE",), "MINUTE", "30", "0 for a date"),
    _part("second", ("SECOND",), "SECOND", "45", "whole seconds; 0 for a date"),
    _part("unix_seconds", ("UNIX_SECONDS", "EPOCH"), "EPOCH", "1582979445", "whole seconds since 1970"),
    SqlFunction(
        "unix_date",
        ("UNIX_DATE",),
        (MOMENT,),
        _INTEGER,
        "UNIX_DATE(DATE '1970-01-03')",
        "2",
        "days since 1970",
        whole=True,
    ),
    SqlFunction("day_name", ("DAYNAME",), (MOMENT,), _TEXT, "DAYNAME(DATE '2020-02-29')", "Saturday"),
    SqlFunction("month_name", ("MONTHNAME",), (MOMENT,), _TEXT, "MONTHNAME(DATE '2020-02-29')", "February"),
    SqlFunction("last_day", ("LAST_DAY",), (MOMENT,), Type.DATE, "LAST_DAY(DATE '2020-02-03')", "2020-02-29"),
    SqlFunction(
        "date_trunc",
        ("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"),
        (_UNIT, MOMENT),
        "moment",
        "DATE_TRUNC('month', DATE '2020-02-29')",
        "2020-02-01",
        "a date stays a date; a week begins on Monday",
        "no moment before the year 1 can come of it",
        "DATE_TRUNC('month', date), DATE_TRUNC(date, MONTH)",
        form="truncate",
    ),
    SqlFunction(
        "date_diff",
        ("DATE_DIFF", "DATEDIFF", "DATETIME_DIFF"),
        (_UNIT, MOMENT, MOMENT),
        _INTEGER,
        "DATE_DIFF(DATE '2020-02-01', DATE '2020-01-31', MONTH)",
        "1",
        "how many units begin between the two; weeks begin on Monday",
        "moments lie within the years 1 to 9999",
        "DATE_DIFF(end, start, DAY), DATE_DIFF('day', start, end), end - start",
        whole=True,
        form="difference",
    ),
    SqlFunction(
        "date_add",
        ("DATE_ADD", "TIMESTAMP_ADD", "DATETIME_ADD"),
        (_UNIT, MOMENT, whole_constant(-(10**12), 10**12)),
        "moment",
        "DATE '2020-01-31' + INTERVAL 1 MONTH",
        "2020-02-29",
        "NULL outside the years 1 to 9999; a date stays one unless hours or less are added",
        "at most 9999 years, then the calendar's ends",
        "DATE_ADD(date, INTERVAL 1 DAY), DATE_SUB, date + INTERVAL 1 DAY, date - INTERVAL 1 DAY",
        form="addition",
    ),
    SqlFunction(
        "format_moment",
        ("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME", "STRFTIME"),
        (MOMENT, text_constant(1, 50, name="'%Y-%m'")),
        _TEXT,
        "FORMAT_DATE('%Y-%m', DATE '2020-02-29')",
        "2020-02",
        "",
        "a constant of %Y %y %m %d %j %H %M %S %A %a %B %b and plain characters",
        "FORMAT_DATE('%Y-%m', date), STRFTIME(date, '%Y-%m')",
        form="format",
    ),
)
