"""A declaration of the audit's own, with every unit and every kind of column: what the hunt asks about."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

from discreet.catalog import Declaration, declare

_KINDS: dict[str, Any] = {
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "flag": {"type": "boolean"},
    "day": {"type": "date"},
    "moment": {"type": "timestamp"},
    "note": {"type": "text"},
}
"""Columns of which nothing is declared but the type."""

_TABLES: dict[str, Any] = {
    "people": {
        "person": "id",
        "one_row_per_person": True,
        "columns": {
            "id": {"type": "integer"},
            "city": {"type": "text", "values": ["x", "ü", "it's"]},
            "age": {"type": "integer", "min": 0, "max": 9},
            "share": {"type": "number", "step": Fraction(1, 2), "values": [Fraction(0), Fraction(1, 2), Fraction(10)]},
            "since": {"type": "date", "min": date(2000, 1, 1), "max": date(2000, 1, 5)},
            **_KINDS,
        },
    },
    "visits": {
        "person": "who",
        "rows_per_person": 5,
        "groups_per_person": 3,
        "columns": {
            "visit": {"type": "text"},
            "who": {"type": "integer"},
            "cost": {"type": "number", "min": -5, "max": 20, "step": Fraction(1, 2)},
            "level": {"type": "integer", "min": -2, "max": 3, "nulls": False},
            "code": {"type": "integer", "min": 0, "max": 2**40},
            "sort": {"type": "text"},
            **_KINDS,
        },
    },
    "items": {
        "person": "visit -> visits.visit",
        "shared": True,
        "rows_per_person": 4,
        "groups_per_person": 2,
        "columns": {
            "visit": {"type": "text"},
            "item": {"type": "integer"},
            "amount": {"type": "integer", "min": 0, "max": 5},
            "sort": {"type": "text"},
            **_KINDS,
            "number": {"type": "number", "step": Fraction(1, 100)},
        },
    },
    "parts": {
        "person": "item -> items.item",
        "shared": True,
        "rows_per_person": 2,
        "columns": {"item": {"type": "integer"}, "weight": {"type": "number", "min": 0, "max": 1}, **_KINDS},
    },
    "answers": {"one_row_per_person": True, "columns": {"sort": {"type": "text"}, "age": _KINDS["whole"], **_KINDS}},
    "codes": {
        "public": True,
        "columns": {"sort": {"type": "text"}, "a.b": {"type": "integer"}, "rate": {"type": "number"}, **_KINDS},
    },
}


def world() -> Declaration:
    """People with one row, with several, along one and two foreign keys, rows that are persons, and a public table."""
    tables = {name: {"source": "nowhere.csv", **table} for name, table in _TABLES.items()}
    return declare({"budget": {"epsilon": 1, "delta": Fraction(1, 10**6)}, "tables": tables})
