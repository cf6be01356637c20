"""A small shop of customers, orders and items, for what is published of several tables together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import discreet
from discreet.catalog import declare
from discreet.catalog.model import Declaration

Rows = Sequence[tuple[Any, ...]]
NAMES = ["customers", "orders", "items"]
COLUMNS: dict[str, dict[str, dict[str, Any]]] = {
    "customers": {
        "id": {"type": "text"},
        "sex": {"type": "text", "values": ["F", "M"]},
        "age": {"type": "integer", "min": 0, "max": 9},
    },
    "orders": {
        "number": {"type": "integer"},
        "customer": {"type": "text"},
        "channel": {"type": "text", "values": ["web", "Laden ü"]},
    },
    "items": {
        "order": {"type": "integer"},
        "kind": {"type": "text", "values": ["book", "toy", "food"]},
    },
}
CUSTOMERS = """
[tables.customers]
source = "customers.csv"
person = "id"
one_row_per_person = true
[tables.customers.columns]
id = { type = "text" }
sex = { type = "text", values = ["F", "M"] }
"""
ORDERS = """
[tables.orders]
source = "orders.csv"
person = "customer"
rows_per_person = 6
[tables.orders.columns]
number = { type = "integer" }
customer = { type = "text" }
channel = { type = "text", values = ["web", "Laden ü"] }
"""
"""The same as a file declares them: without the age, which may follow."""

TYPES = {"text": "string", "integer": "Int64"}


def frames(customers: Rows, orders: Rows, items: Rows) -> dict[str, pd.DataFrame]:
    """The rows as frames, of which every column may hold None."""
    given = {"customers": customers, "orders": orders, "items": items}
    return {
        name: pd.DataFrame(
            {
                column: pd.array([row[place] for row in rows], TYPES[COLUMNS[name][column]["type"]])
                for place, column in enumerate(COLUMNS[name])
            }
        )
        for name, rows in given.items()
    }


def said(orders: int, items: int) -> dict[str, dict[str, Any]]:
    """What is declared of each table, with so many orders and items a customer."""
    return {
        "customers": {"person": "id", "one_row_per_person": True, "columns": COLUMNS["customers"]},
        "orders": {"person": "customer", "rows_per_person": orders, "columns": COLUMNS["orders"]},
        "items": {"person": "order -> orders.number", "rows_per_person": items, "columns": COLUMNS["items"]},
    }


def declaration(known: Mapping[str, pd.DataFrame], orders: int = 3, items: int = 4) -> Declaration:
    """The tables as declared, with frames as their sources."""
    declared = said(orders, items)
    tables = {name: {"source": frame, **declared[name]} for name, frame in known.items()}
    return declare({"budget": {"epsilon": 1, "delta": 1e-6}, "tables": tables})


def curator(
    known: Mapping[str, pd.DataFrame], orders: int = 6, items: int = 20, epsilon: float = 50
) -> discreet.Curator:
    """A curator of the tables."""
    declared = said(orders, items)
    tables = {name: discreet.Table(frame, **declared[name]) for name, frame in known.items()}
    return discreet.Curator(tables, epsilon=epsilon, delta=1e-5, engine={"memory_gib": 4})


def shop(customers: int, seed: int = 1) -> dict[str, pd.DataFrame]:
    """Customers of whom women order on the web, and the old not at all; what is bought follows from the channel."""
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["F", "M"], customers), rng.integers(0, 10, customers)
    many = np.where(age > 6, 0, rng.integers(1, 6, customers))
    whose = np.repeat(np.arange(customers), many)
    channel = np.where(rng.random(len(whose)) < np.where(sex[whose] == "F", 0.9, 0.2), "web", "Laden ü")
    each = rng.integers(1, 4, len(whose))
    order = np.repeat(np.arange(len(whose)), each)
    kind = np.where(rng.random(len(order)) < 0.8, np.where(channel[order] == "web", "book", "toy"), "food")
    return frames(
        [(f"c{one}", sex[one], int(age[one])) for one in range(customers)],
        [(one, f"c{whose[one]}", channel[one]) for one in range(len(whose))],
        [(int(order[one]), kind[one]) for one in range(len(order))],
    )
