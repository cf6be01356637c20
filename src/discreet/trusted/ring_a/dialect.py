"""What engines write differently, as a table: a statement is made as one tree for all of them, and written by one.

The tree is of sqlglot's nodes, where these mean the same for every engine (sqlglot then knows how each writes it), and
of functions by names of our own: `function`. Of these, `COMMON` are called so by every engine, and do there what they
say. `DIFFERENT` are not: an engine's `Dialect` says of each how it is written. So what an engine must bring along is
this list, what each entry must do stands beside it, and nothing that makes a tree names an engine.

Every one of them is total: no value of the types that it takes makes it fail (`ring_b.functions` says why).
An engine whose own form of a name in `COMMON` is not, or means something else, writes that name its own way as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.generator import Generator

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
    "hash": "of any values: a whole number from 0 to 2^64 − 1 that depends on them and their order alone",
    "hash_of_rows": "of a table's columns: one value that depends on the rows and not on their order; an aggregate",
    "sum_of_hashes": "of a table's columns: as `hash_of_rows`, and another value",
    "row_in_source": "of nothing: what tells a table's rows apart, in the order in which they were loaded",
    # totals
    "whole_sum": "of whole numbers of 64 bits: their exact sum, however many; NULL of none; an aggregate",
    "whole_quotient": "of whole numbers, the second above 0: their quotient, cut off towards 0",
    # forms that no row makes fail
    "let": "of a value and a lambda of one name: the lambda's body, with the value computed once",
    "try_cast": "of a value and a type: the value as that type, NULL where it has none",
    "null_if_equal": "of two values: the first, NULL where they are equal, each computed once",
    "largest": "of values: the largest, NULL where one is NULL, each computed once",
    "smallest": "of values: the smallest, NULL where one is NULL, each computed once",
    "place_among": "of a text and different constant texts: its place among them from 0 on, NULL where it is none",
    # numbers
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


class Function(exp.Anonymous):
    """A call of a function by its name in `COMMON` or `DIFFERENT`."""


def function(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A call of one of the functions that every engine has. Raises ValueError for another."""
    if name not in COMMON and name not in DIFFERENT:
        raise ValueError(f"{name} is not a function that every engine has")
    return Function(this=name, expressions=list(arguments))


@dataclass(frozen=True)
class Dialect:
    """How one engine writes a tree: its grammar, by the name that sqlglot has for it, and the table of functions.

    Each is written as a text with places for the arguments, as of `str.format`: {0}, {1}, …, {all} of them, the {rest}
    after the first, and their {count}. Raises ValueError where the table misses one of `DIFFERENT`, or names what is no
    function of ours."""

    grammar: str
    functions: Mapping[str, str]

    def __post_init__(self) -> None:
        names = self.functions.keys()
        if not DIFFERENT.keys() <= names or not names <= COMMON | DIFFERENT.keys():
            raise ValueError(f"the table of {self.grammar} does not have exactly the functions that are needed")

    def text(self, tree: exp.Expr, *, pretty: bool = False) -> str:
        """The tree as the engine reads it."""
        grammar = Grammar.get_or_raise(self.grammar)
        return self._writer(dialect=grammar, pretty=pretty).generate(tree)

    @cached_property
    def _writer(self) -> type[Generator]:
        """The grammar's own writer, which knows our functions beside the nodes of trees."""
        base = Grammar.get_or_raise(self.grammar).generator_class
        written: dict[str, Any] = {"TRANSFORMS": {**base.TRANSFORMS, Function: self._call}}
        return type("Writer", (base,), written)

    def _call(self, writer: Generator, call: Function) -> str:
        if call.name not in self.functions:
            return writer.func(call.name, *call.expressions)
        texts = [writer.sql(one) for one in call.expressions]
        some = {"all": ", ".join(texts), "rest": ", ".join(texts[1:]), "count": len(texts)}
        return self.functions[call.name].format(*texts, **some)
