"""The functions that an engine must bring: those with one name and meaning everywhere, and those that it writes its own
way. So what a new engine needs is this list, and what each entry must do stands beside it.

Every one of them is total: no value of the types that it takes makes it fail (`functions` says why).
An engine whose own form of a name in `COMMON` is not, or means something else, writes that name its own way as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from discreet.trusted.ring_b.dialect import Dialect

COMMON = frozenset(
    {
        # numbers: doubles, and whole numbers of 64 bits
        *(
            "floor",
            "ceil",
            "round",
            "trunc",
            "mod",
            "sign",
            "sqrt",
            "cbrt",
            "exp",
            "pow",
            "ln",
            "log10",
            "degrees",
            "radians",
            "pi",
        ),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        # texts, in characters of Unicode
        *("upper", "lower", "length", "substring", "left", "right", "trim", "ltrim", "rtrim", "lpad", "rpad"),
        *("concat_ws", "replace", "translate", "reverse", "ascii"),
        # over ordered rows
        "dense_rank",
    }
)
"""Functions that have one name and one meaning everywhere."""

DIFFERENT = {
    # what windows and loading rest on
    "text_number": "of a text: the first 31 bits of the MD5 of its bytes in UTF-8, without the very first",
    "hash_of_rows": "of a table's columns: one value that depends on the rows and not on their order; an aggregate",
    "sum_of_hashes": "of a table's columns: as `hash_of_rows`, and another value",
    "row_in_source": "of nothing: what tells apart the rows of a table in which each row is a person",
    # totals
    "whole_sum": "of whole numbers of 64 bits: their exact sum, however many; NULL of none; an aggregate",
    "whole_quotient": "of whole numbers, the second above 0: their quotient, cut off towards 0",
    # forms that no row makes fail
    "let": "of a value and a lambda of one name: the lambda's body, with the value computed once",
    "try_cast": "of a text and a type, or a whole number and INTEGER: the value as that, NULL where it is none",
    "column_as": "of a source's column and a type: the value as that type, NULL where it has none",
    "whole_number": "of a double: the nearest whole number of 64 bits, an even one of two; NULL where there is none",
    "null_if_equal": "of two values: the first, NULL where they are equal, each computed once",
    "largest": "of values: the largest, NULL where one is NULL, each computed once",
    "smallest": "of values: the smallest, NULL where one is NULL, each computed once",
    "place_among": "of a text and different constant texts: its place among them from 0 on, NULL where it is none",
    # numbers
    "number_sum": "of two doubles: the nearest double, infinite beyond them all; no number of two unlike infinities",
    "number_difference": "of two doubles: as their sum, with the second turned round",
    "number_product": "of two doubles: the nearest double, however small or large; no number of 0 and an infinity",
    "number_quotient": "of two doubles: the nearest double; infinite of a divisor 0, no number of 0 and 0",
    "rounded_product": "of a double and a constant above 0: their product, where it is rounded to whole numbers next",
    "rounded_quotient": "of a double and a constant above 0: their quotient, where it is rounded so next",
    "number_text": "of a double: the shortest text that is read as it",
    "is_nan": "of a double",
    "is_infinite": "of a double",
    "is_finite": "of a double",
    "log2": "of a double above 0",
    "bit_xor": "of two whole numbers of 64 bits",
    "bit_count": "of a whole number of 64 bits: how many bits are 1",
    # texts
    "byte_length": "of a text: its bytes in UTF-8",
    "initcap": "of a text: each word between spaces with its first letter large and the others small",
    "split_part": "of a text, a separator and a place: that piece, counted from 1, from the end where it is negative",
    "strip_accents": "of a text: its letters without accents",
    "starts_with": "of two texts: whether the first begins with the second",
    "ends_with": "of two texts: whether the first ends with the second",
    "contains": "of two texts: whether the first has the second in it",
    "position": "of two texts: where the second begins in the first, counted from 1; 0 where it does not stand there",
    "matches": "of a text and a pattern of `discreet.dialect.patterns`: whether some piece matches, in linear time",
    "matches_all": "of a text and such a pattern: whether all of it matches",
    "extract_match": "of a text, such a pattern and a group's number: that group of the first match, '' where none is",
    "replace_match": "of a text, a pattern and a replacement with \\1 …: the text with its first match replaced",
    # dates and timestamps of the years 1 to 9999
    "date_part": "of a part's name and a moment: that part, as a whole number",
    "date_trunc": "of a unit's name and a moment: the moment at which its unit began",
    "date_diff": "of a unit's name and two moments: how many beginnings of the unit lie between them",
    "microseconds": "of a timestamp: microseconds since 1970",
    "day_name": "of a moment: the English name of its day",
    "month_name": "of a moment: the English name of its month",
    "last_day": "of a moment: the last date of its month",
    "format_moment": "of a moment and a format with the % signs of C's strftime that the dialect admits",
}
"""Functions that engines call or write differently: what each is of, and what it gives."""


def dialect(
    grammar: str,
    functions: Mapping[str, str],
    lacks: Iterable[str] = (),
    rewritten: Callable[[exp.Expr], exp.Expr] = lambda tree: tree,
) -> Dialect:
    """An engine's dialect: what it writes its own way, what it `lacks`, and what becomes of a tree before it is written
    (`Dialect`). Questions that need what it lacks are refused by that name. Raises ValueError where a function of
    `DIFFERENT` stands in neither, or one is none of ours."""
    known, lacking = COMMON | DIFFERENT.keys(), frozenset(lacks)
    if not DIFFERENT.keys() <= functions.keys() | lacking or not functions.keys() | lacking <= known:
        raise ValueError(f"the table of {grammar} has other functions than are asked for")
    return Dialect(grammar, functions, COMMON - lacking, rewritten)
