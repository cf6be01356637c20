"""A trade of customers, orders and lines beside public tables, and answers of plain SQL over the same rows.

Its tables and columns are called as those of a well-known benchmark, whose questions have these shapes. Limits bind
nowhere, and at the price of `NOTHING` noise is 0: whatever is asked has to be what plain SQL says.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas

import discreet

NOTHING = 10**20
"""A price at which noise is 0."""

SEGMENTS = ["BUILDING", "AUTOMOBILE", "MACHINERY"]
MODES = ["AIR", "MAIL", "SHIP", "RAIL"]
BRANDS = ["Brand#12", "Brand#23", "Brand#34"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM"]
FIRST = datetime.date(1993, 1, 1)


def rows(seed: int = 7, customers: int = 40) -> dict[str, pandas.DataFrame]:
    """The same rows for a seed; some customers have no order, some orders no line, one nation no customer."""
    draw = random.Random(seed)
    persons = [
        {
            "c_custkey": key,
            "c_name": f"customer {key}",
            "c_nationkey": draw.randrange(5),
            "c_mktsegment": draw.choice(SEGMENTS),
            "c_acctbal": draw.randrange(-100, 900),
            "c_phone": f"{10 + draw.randrange(5)}-555",
        }
        for key in range(1, customers + 1)
    ]
    orders = [
        {
            "o_orderkey": 100 + number,
            "o_custkey": draw.randrange(1, customers * 3 // 4),
            "o_orderdate": FIRST + datetime.timedelta(days=draw.randrange(1000)),
            "o_orderpriority": draw.choice(PRIORITIES),
            "o_shippriority": draw.randrange(3),
            "o_totalprice": draw.randrange(10, 500),
            "o_comment": draw.choice(["special requests", "nothing", "urgent"]),
        }
        for number in range(customers * 3)
    ]
    lines = []
    for number in range(customers * 8):
        order = draw.choice(orders[: len(orders) * 4 // 5])
        shipped = order["o_orderdate"] + datetime.timedelta(days=draw.randrange(1, 100))
        lines.append(
            {
                "l_orderkey": order["o_orderkey"],
                "l_linenumber": number,
                "l_partkey": draw.randrange(1, 16),
                "l_suppkey": draw.randrange(1, 9),
                "l_quantity": draw.randrange(1, 51),
                "l_extendedprice": draw.randrange(1, 100),
                "l_discount": draw.randrange(0, 11),
                "l_returnflag": draw.choice(["R", "A", "N"]),
                "l_linestatus": draw.choice(["O", "F"]),
                "l_shipdate": shipped,
                "l_commitdate": shipped + datetime.timedelta(days=draw.randrange(-20, 20)),
                "l_receiptdate": shipped + datetime.timedelta(days=draw.randrange(1, 30)),
                "l_shipmode": draw.choice(MODES),
                "l_shipinstruct": draw.choice(["DELIVER IN PERSON", "NONE"]),
            }
        )
    public = {
        "nation": [
            {"n_nationkey": key, "n_name": name, "n_regionkey": key % 2}
            for key, name in enumerate(["FRANCE", "GERMANY", "BRAZIL", "JAPAN", "INDIA", "NOWHERE"])
        ],
        "region": [{"r_regionkey": 0, "r_name": "EUROPE"}, {"r_regionkey": 1, "r_name": "ASIA"}],
        "supplier": [{"s_suppkey": key, "s_nationkey": draw.randrange(5)} for key in range(1, 9)],
        "part": [
            {
                "p_partkey": key,
                "p_type": draw.choice(["PROMO STEEL", "ECONOMY TIN"]),
                "p_brand": draw.choice(BRANDS),
                "p_container": draw.choice(["SM CASE", "MED BAG", "LG BOX"]),
                "p_size": draw.randrange(1, 16),
            }
            for key in range(1, 16)
        ],
    }
    whole = {"customer": persons, "orders": orders, "lineitem": lines, **public}
    return {name: pandas.DataFrame(one) for name, one in whole.items()}


_FACTS: Mapping[str, Any] = {
    "c_mktsegment": SEGMENTS,
    "o_orderpriority": PRIORITIES,
    "l_shipmode": MODES,
    "l_returnflag": ["R", "A", "N"],
    "l_linestatus": ["O", "F"],
    "n_name": ["FRANCE", "GERMANY", "BRAZIL", "JAPAN", "INDIA", "NOWHERE"],
    "c_acctbal": {"type": "integer", "min": -1000, "max": 1000},
    "c_nationkey": {"type": "integer", "min": 0, "max": 9},
    "o_totalprice": {"type": "integer", "min": 0, "max": 1000},
    "o_shippriority": {"type": "integer", "min": 0, "max": 3},
    "l_quantity": {"type": "integer", "min": 0, "max": 100},
    "l_extendedprice": {"type": "integer", "min": 0, "max": 200},
    "l_discount": {"type": "integer", "min": 0, "max": 20},
    **{name: {"type": "date"} for name in ("o_orderdate", "l_shipdate", "l_commitdate", "l_receiptdate")},
}
_KINDS = {"i": "integer", "u": "integer", "f": "number"}
_PERSONS: Mapping[str, Mapping[str, Any]] = {
    "customer": {"person": "c_custkey", "one_row_per_person": True},
    "orders": {"person": "o_custkey", "rows_per_person": 12, "groups_per_person": 12},
    "lineitem": {"person": "l_orderkey -> orders.o_orderkey", "rows_per_person": 60, "groups_per_person": 60},
}


def declared(name: str, frame: pandas.DataFrame, **said: Any) -> discreet.Table:
    columns = {}
    for column in frame.columns:
        columns[column] = _FACTS.get(column) or {"type": _KINDS.get(frame[column].dtype.kind, "text")}
    return discreet.Table(frame, columns=columns, **{**_PERSONS.get(name, {"public": True}), **said})


def curator(tables: Mapping[str, pandas.DataFrame], **said: Any) -> discreet.Curator:
    found = {name: declared(name, frame) for name, frame in tables.items()}
    return discreet.Curator(found, epsilon=10**25, delta="0.1", keys_delta="0.09", engine={"work": 200_000}, **said)


def plain(tables: Mapping[str, pandas.DataFrame]) -> duckdb.DuckDBPyConnection:
    """The same rows in a DuckDB of their own."""
    connection = duckdb.connect()
    for name, frame in tables.items():
        connection.register(f"{name}_rows", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
    return connection


def ours(one: discreet.Curator, text: str) -> list[tuple[Any, ...]]:
    """What we say, without the groups that have nothing: SQL shows none of them."""
    rows = [tuple(row.values()) for row in one.ask(text, epsilon=NOTHING).rows]
    return sorted((tuple(map(rounded, row)) for row in rows), key=repr)


def theirs(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(rounded, row)) for row in connection.execute(text).fetchall()), key=repr)


def rounded(value: Any) -> Any:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return round(float(value), 6)
    return value


def without_nothing(found: Sequence[tuple[Any, ...]], keys: int) -> list[tuple[Any, ...]]:
    """The groups in which something was counted."""
    return [row for row in found if keys == 0 or any(value not in (0.0, None) for value in row[keys:])]
