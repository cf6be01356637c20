"""Random databases of the small shop, with every awkward value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from relation_tools import WHOLE, WORD, Database, Rows

LARGE = 2**63 - 1
TEXTS = ["x", "ü", "it's", "", "\\", "E", None]
NUMBERS = [-math.inf, -1e308, -2.5, -0.0, 0.1, 3.75, 1e308, math.inf, math.nan, None]
WHOLES = [-LARGE - 1, -(2**53) - 1, -1, 0, 1, 3, 2**53 + 1, LARGE, None]
RATES: Rows = [
    {"cur": "x", "rate": 1.0, "a.b": 1, "word": "E"},
    {"cur": "x", "rate": -2.5, "a.b": 2**53, "word": "x"},
    {"cur": "ü", "rate": 1e308, "a.b": 2**53 + 1, "word": "E"},
    {"cur": None, "rate": None, "a.b": None, "word": None},
]
KINDS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "whole": (WHOLE, [1, 2, 2**53, 2**53 + 1, None]),
    "word": (WORD, ["a", "ß", "ss", "", "1", None]),
}


def shops(persons: Sequence[Any], orders: Sequence[Any]) -> st.SearchStrategy[Database]:
    """Up to a dozen rows with every awkward value: no person, no key, one order key of two persons, empty tables."""

    def rows(columns: Mapping[str, Sequence[Any]], most: int) -> st.SearchStrategy[Any]:
        row = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in columns.items()})
        full = st.lists(row, min_size=most // 2, max_size=most)
        return st.one_of(full, full, full, st.just([]))

    ages = [-1, 0, 1, 5, 9, 99, None]
    mostly = [persons[0], persons[0], *persons]
    return st.fixed_dictionaries(
        {
            "customers": rows({"id": persons, "city": TEXTS, "age": ages, "h": TEXTS}, 6),
            "orders": rows(
                {
                    "oid": orders,
                    "cust": mostly,
                    "st": TEXTS,
                    "total": NUMBERS,
                    "k": WHOLES,
                    "big": WHOLES,
                    "f": NUMBERS,
                },
                10,
            ),
            "lines": rows({"oid": orders, "qty": [-1, 0, 2, 5, 77, None], "cur": TEXTS}, 10),
            "solo": rows({"cur": TEXTS, "age": ages, "w": NUMBERS}, 3),
            "rates": st.sampled_from([RATES, RATES, RATES[:1], []]),
        }
    )
