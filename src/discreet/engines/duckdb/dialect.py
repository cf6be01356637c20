"""How DuckDB writes what engines write differently: its grammar, and its forms of the functions in `DIFFERENT`."""

from __future__ import annotations

from discreet.trusted.ring_b.engine_functions import dialect

_ONE, _TWO = "CAST('1' AS BIGINT)", "CAST('2' AS BIGINT)"


def _with(value: str, body: str) -> str:
    """The body with the value named v: a list of one value, of which each becomes the body. There is no other way."""
    return f"LIST_EXTRACT(LIST_TRANSFORM([{value}], LAMBDA v : {body}), {_ONE})"


def _extreme(name: str) -> str:
    return _with("[{all}]", f"CASE WHEN LIST_COUNT(v) = CAST('{{count}}' AS BIGINT) THEN {name}(v) END")


FUNCTIONS = {
    # the bytes of MD5_NUMBER_UPPER stand from the last to the first: the first four of them, without their first bit
    "text_number": _with(
        "MD5_NUMBER_UPPER({0})",
        "CAST(((v & 127) << 24) | (((v >> 8) & 255) << 16) | (((v >> 16) & 255) << 8) | ((v >> 24) & 255) AS BIGINT)",
    ),
    "hash_of_rows": "BIT_XOR(HASH({all}))",
    "sum_of_hashes": "SUM(HASH({all}))",
    "row_in_source": "rowid",
    "whole_sum": "SUM({0})",  # of 64 bits in 128
    "whole_quotient": "{0} // {1}",
    "let": f"LIST_EXTRACT(LIST_TRANSFORM([{{0}}], {{1}}), {_ONE})",
    "try_cast": "TRY_CAST({0} AS {1})",
    "column_as": "TRY_CAST({0} AS {1})",
    "whole_number": "TRY_CAST({0} AS BIGINT)",
    "null_if_equal": _with(
        "[{0}, {1}]",
        f"CASE WHEN LIST_EXTRACT(v, {_ONE}) = LIST_EXTRACT(v, {_TWO}) THEN NULL ELSE LIST_EXTRACT(v, {_ONE}) END",
    ),
    "largest": _extreme("LIST_MAX"),
    "smallest": _extreme("LIST_MIN"),
    # it takes as long for a text that is none of them: a cast to ENUM that fails takes a hundred times longer
    "place_among": "NULLIF(LIST_POSITION([{rest}], {0}), 0) - 1",
    "number_sum": "({0} + {1})",
    "number_difference": "({0} - {1})",
    "number_product": "({0} * {1})",
    "number_quotient": "({0} / {1})",
    "rounded_product": "({0} * {1})",
    "rounded_quotient": "({0} / {1})",
    "number_text": "CAST({0} AS TEXT)",
    "is_nan": "ISNAN({0})",
    "is_infinite": "ISINF({0})",
    "is_finite": "ISFINITE({0})",
    "log2": "LOG2({0})",
    "bit_xor": "XOR({0}, {1})",
    "bit_count": "BIT_COUNT({0})",
    "byte_length": "STRLEN({0})",
    # not array_to_string and split_part, macros that have an argument twice
    "initcap": f"LIST_AGGREGATE(LIST_TRANSFORM(STRING_SPLIT(LOWER({{0}}), ' '), LAMBDA w : UPPER(LEFT(w, {_ONE})) || "
    f"SUBSTRING(w, {_TWO})), 'string_agg', ' ')",
    "split_part": _with(
        "STRING_SPLIT({0}, {1})", "CASE WHEN NOT v IS NULL THEN COALESCE(LIST_EXTRACT(v, {2}), '') END"
    ),
    "strip_accents": "STRIP_ACCENTS({0})",
    "starts_with": "STARTS_WITH({0}, {1})",
    "ends_with": "ENDS_WITH({0}, {1})",
    "contains": "CONTAINS({0}, {1})",
    "position": "STRPOS({0}, {1})",
    "matches": "REGEXP_MATCHES({0}, {1})",
    "matches_all": "REGEXP_FULL_MATCH({0}, {1})",
    "extract_match": "REGEXP_EXTRACT({0}, {1}, {2})",
    "replace_match": "REGEXP_REPLACE({0}, {1}, {2})",
    "date_part": "DATE_PART({0}, {1})",
    "date_trunc": "DATE_TRUNC({0}, {1})",
    "date_diff": "DATE_DIFF({0}, {1}, {2})",
    "microseconds": "EPOCH_US({0})",
    "day_name": "DAYNAME({0})",
    "month_name": "MONTHNAME({0})",
    "last_day": "LAST_DAY({0})",
    "format_moment": "STRFTIME({0}, {1})",
}

DUCKDB = dialect("duckdb", FUNCTIONS)
