"""How Spark writes what engines write differently: its grammar, its forms of the functions in `DIFFERENT`, and of some
in `COMMON` that it has under another meaning.

Sessions run in ANSI mode, where Spark fails on what it cannot compute: each form here has a value for every row, the
one that DuckDB gives, to the bit. What cannot be held so is in `LACKS`: Java computes logarithms, powers and the
functions of angles with other last digits than C does, and its regular expressions take more than linear time.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase, ascii_uppercase

from discreet.engines.letters import LARGE, SMALL
from discreet.engines.spark.rewriting import rewritten
from discreet.trusted.ring_b.engine_functions import dialect

INFINITY = "CAST('Infinity' AS DOUBLE)"

LACKS = frozenset(
    {
        *("cbrt", "exp", "pow", "ln", "log10", "log2"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("reverse", "strip_accents"),
        *("matches", "matches_all", "extract_match", "replace_match"),
        "number_text",  # Java's shortest text of a number is not always the shortest
        "row_in_source",  # a row has no place that stays when the others change
    }
)
"""Functions that give other values on Spark, or may take too long."""


def _with(value: str, body: str, name: str = "w") -> str:
    """The body with the value under a name, in a list of one value, so that it is computed once."""
    return f"ELEMENT_AT(TRANSFORM(ARRAY({value}), {name} -> {body}), 1)"


def _extreme(sign: str) -> str:
    """The last of those that none exceeds: 0.0 and -0.0 are equal."""
    best = f"AGGREGATE(w, ELEMENT_AT(w, 1), (best, one) -> CASE WHEN one {sign} best THEN one ELSE best END)"
    return _with("ARRAY({all})", f"CASE WHEN NOT EXISTS(w, one -> one IS NULL) THEN {best} END")


_PAIR = "NAMED_STRUCT('a', {0}, 'b', {1})"
_HALF = "CAST('0.5' AS DOUBLE)"
_AWAY = f"CASE WHEN ABS({{x}} - RINT({{x}})) = {_HALF} THEN {{x}} + SIGNUM({{x}}) * {_HALF} ELSE RINT({{x}}) END"
_DOWN = "CASE WHEN RINT({x}) > {x} THEN RINT({x}) - CAST('1' AS DOUBLE) ELSE RINT({x}) END"
_UP = "CASE WHEN RINT({x}) < {x} THEN -(-RINT({x}) - CAST('1' AS DOUBLE)) ELSE RINT({x}) END"  # -0.0 above -0.5
_CUT = f"CASE WHEN {{x}} >= CAST('0' AS DOUBLE) THEN {_DOWN} ELSE {_UP} END"


def _turned(letters: Mapping[str, str]) -> str:
    """A text with some letters in place of others."""
    return f"TRANSLATE({{0}}, '{''.join(letters)}', '{''.join(letters.values())}')"


_UPPER = _turned(dict(zip(ascii_lowercase, ascii_uppercase, strict=True)) | dict(LARGE))
_LOWER = _turned(dict(zip(ascii_uppercase, ascii_lowercase, strict=True)) | dict(SMALL))


def _of(form: str) -> str:
    return _with("{0}", form.replace("{x}", "w"))


_SUBSTRING = _with(
    "NAMED_STRUCT('a', {0}, 'b', CAST({1} AS BIGINT), 'c', {2})",
    _with(
        "NAMED_STRUCT('a', w.a, 's', CASE WHEN w.b < 0 THEN LENGTH(w.a) + w.b ELSE w.b - 1 END, 'n', w.c)",
        "CASE WHEN NOT (x.a IS NULL OR x.s IS NULL OR x.n IS NULL) THEN "
        "SUBSTR(x.a, CAST({low} AS INT) + 1, CAST({high} - {low} AS INT)) END".format(
            low="LEAST(GREATEST(LEAST(x.s, x.s + x.n), 0), LENGTH(x.a))",
            high="LEAST(GREATEST(x.s, x.s + x.n, 0), LENGTH(x.a))",
        ),
        "x",
    ),
)
"""The characters from one place to another, whichever is first; a place below 0 counts from the end."""


_WHOLE_SUM = (
    "(CAST(SUM(CAST({0} AS BIGINT) >> 42) AS DECIMAL(19, 0)) * CAST('4398046511104' AS DECIMAL(13, 0)) "
    "+ CAST(SUM((CAST({0} AS BIGINT) >> 21) & 2097151) AS DECIMAL(19, 0)) * CAST('2097152' AS DECIMAL(7, 0)) "
    "+ CAST(SUM(CAST({0} AS BIGINT) & 2097151) AS DECIMAL(19, 0)))"
)
"""In three pieces of 21 bits, whose sums stay within 64 for 2^41 rows: a sum of decimals takes three times as long, and
a sum of 64 bits fails where it needs more."""

FUNCTIONS = {
    # numbers
    "floor": _of(_DOWN),
    "ceil": _of(_UP),
    "round": _of(_AWAY),
    "trunc": _of(_CUT),
    "mod": "({0} % {1})",  # of a divisor that is not 0
    "sign": "SIGNUM({0})",
    "degrees": "({0} * CAST('57.29577951308232' AS DOUBLE))",
    "radians": "({0} * CAST('0.017453292519943295' AS DOUBLE))",
    "pi": "CAST('3.141592653589793' AS DOUBLE)",
    # texts
    "upper": _UPPER,
    "lower": _LOWER,
    "initcap": "ARRAY_JOIN(TRANSFORM(SPLIT({lower}, ' '), w -> CONCAT({first}, SUBSTR(w, 2))), ' ')".format(
        lower=_LOWER, first=_UPPER.format("LEFT(w, 1)")
    ),
    "left": _with(_PAIR, "LEFT(w.a, CASE WHEN w.b < 0 THEN LENGTH(w.a) + w.b ELSE w.b END)"),
    "right": _with(_PAIR, "RIGHT(w.a, CASE WHEN w.b < 0 THEN LENGTH(w.a) + w.b ELSE w.b END)"),
    "substring": _SUBSTRING,
    "length": "CAST(LENGTH({0}) AS BIGINT)",
    "trim": "TRIM(BOTH {1} FROM {0})",
    "ltrim": "TRIM(LEADING {1} FROM {0})",
    "rtrim": "TRIM(TRAILING {1} FROM {0})",
    # what windows and loading rest on
    "text_number": "(CAST(CONV(SUBSTR(MD5(CAST({0} AS BINARY)), 1, 8), 16, 10) AS BIGINT) & 2147483647)",
    "hash_of_rows": "BIT_XOR(XXHASH64({all}))",
    "sum_of_hashes": "SUM(CAST(XXHASH64({all}) AS DECIMAL(20, 0)))",
    "whole_sum": _WHOLE_SUM,
    "whole_quotient": "({0} DIV {1})",
    # forms that no row makes fail
    "let": "ELEMENT_AT(TRANSFORM(ARRAY({0}), {1}), 1)",
    "try_cast": "TRY_CAST({0} AS {1})",
    "column_as": "TRY_CAST({0} AS {1})",
    "whole_number": _with(
        "RINT({0})", "CASE WHEN w < CAST('9223372036854775808' AS DOUBLE) THEN TRY_CAST(w AS BIGINT) END"
    ),
    "null_if_equal": _with(_PAIR, "CASE WHEN w.a = w.b THEN NULL ELSE w.a END"),
    "largest": _extreme(">="),
    "smallest": _extreme("<="),
    "place_among": "CAST(NULLIF(ARRAY_POSITION(ARRAY({rest}), {0}), 0) - 1 AS BIGINT)",
    "number_sum": "({0} + {1})",
    "number_difference": "({0} - {1})",
    "number_product": "({0} * {1})",
    # a number over 0 is infinite, with the sign of both: 0 to the power of -1 is, and Spark's quotient fails
    "number_quotient": _with(_PAIR, "CASE WHEN w.b = CAST('0' AS DOUBLE) THEN w.a * POWER(w.b, -1) ELSE w.a / w.b END"),
    "rounded_product": "({0} * {1})",
    "rounded_quotient": "({0} / {1})",
    "is_nan": "({0} = CAST('NaN' AS DOUBLE))",  # which it is; ISNAN(NULL) is false
    "is_infinite": f"(ABS({{0}}) = {INFINITY})",
    "is_finite": f"(ABS({{0}}) < {INFINITY})",
    "bit_xor": "({0} ^ {1})",
    "bit_count": "BIT_COUNT({0})",
    "byte_length": "CAST(OCTET_LENGTH({0}) AS BIGINT)",
    "split_part": "SPLIT_PART({0}, {1}, CAST({2} AS INT))",
    "starts_with": "STARTSWITH({0}, {1})",
    "ends_with": "ENDSWITH({0}, {1})",
    "contains": "CONTAINS({0}, {1})",
    "position": "CAST(INSTR({0}, {1}) AS BIGINT)",
    # dates and timestamps; `rewriting` has those that depend on a part or unit
    "date_part": "CAST({0} AS BIGINT)",
    "date_trunc": "CAST(DATE_TRUNC({0}, {1}) AS TIMESTAMP_NTZ)",
    "date_diff": "{0}",
    "microseconds": "UNIX_MICROS(CAST({0} AS TIMESTAMP_LTZ))",
    "day_name": "DATE_FORMAT({0}, 'EEEE')",
    "month_name": "DATE_FORMAT({0}, 'MMMM')",
    "last_day": "LAST_DAY({0})",
    "format_moment": "CONCAT({all})",
}

SPARK = dialect("spark", FUNCTIONS, LACKS, rewritten)
