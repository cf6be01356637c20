"""The data of the public suite of questions: small databases, always the same, as Parquet files, as a curator declares
them, and as plain DuckDB has them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

import discreet
from tpch_tools import MIX, declared, tpch

BUDGET = "1e25"
EXACT = "1e20"
"""A price at which noise is zero, whatever is drawn."""

WORK = 2_000_000
"""What joins of three tables about people need, where each may have so many rows of one person."""

SHOP = f"""
{MIX};
CREATE TABLE cities AS SELECT * FROM (VALUES
    ('Aachen', 'west', 250), ('Bremen', 'north', 570), ('Cottbus', 'east', 100), ('Dresden', 'east', 560),
    ('Erfurt', 'east', 215), ('Freiburg', 'south', 235), ('Genf', 'south', 205), ('Husum', 'north', 23)
) AS t(name, region, thousands);
CREATE TABLE categories AS SELECT * FROM (VALUES
    (1, 'books'), (2, 'garden'), (3, 'kitchen'), (4, 'music'), (5, 'toys'), (6, 'tools')
) AS t(id, name);
CREATE TABLE products AS
SELECT CAST(i AS INTEGER) AS id, 'product ' || lpad(i::TEXT, 2, '0') AS name, CAST(1 + i % 6 AS INTEGER) AS category_id,
       CAST(2 + mix(i, 3, 9000) / 100.0 AS DECIMAL(9, 2)) AS price, i % 7 <> 0 AS active
FROM range(1, 41) t(i);
CREATE TABLE customers AS
SELECT CAST(i AS INTEGER) AS id,
       'customer ' || i AS name,
       ['Aachen', 'Bremen', 'Cottbus', 'Dresden', 'Erfurt', 'Freiburg', 'Genf', 'Husum'][1 + mix(i, 1, 8)] AS city,
       ['private', 'company', 'school'][1 + mix(i, 2, 3)] AS segment,
       CASE WHEN mix(i, 3, 9) = 0 THEN NULL ELSE DATE '1940-01-01' + CAST(mix(i, 4, 23000) AS INTEGER) END AS birth,
       DATE '2019-01-01' + CAST(mix(i, 5, 1400) AS INTEGER) AS joined,
       mix(i, 6, 3) = 0 AS newsletter,
       CASE WHEN mix(i, 7, 4) = 0 THEN NULL ELSE 'c' || i || '@example.org' END AS email,
       CAST(mix(i, 8, 1000) AS INTEGER) AS points
FROM range(1, 401) t(i);
CREATE TABLE invoices AS
SELECT CAST(i AS INTEGER) AS id,
       CAST(1 + mix(i, 11, 380) AS INTEGER) AS customer_id,
       DATE '2023-01-01' + CAST(mix(i, 12, 730) AS INTEGER) AS day,
       DATE '2023-01-01' + CAST(mix(i, 12, 730) AS INTEGER) + to_minutes(mix(i, 13, 1440)) AS moment,
       ['web', 'store', 'phone'][1 + mix(i, 14, 3)] AS channel,
       ['paid', 'open', 'returned'][1 + greatest(mix(i, 15, 5) - 2, 0)] AS status,
       CAST(mix(i, 16, 50000) / 100.0 AS DECIMAL(9, 2)) AS total,
       CASE WHEN mix(i, 17, 3) = 0 THEN NULL ELSE CAST(mix(i, 18, 30) / 100.0 AS DECIMAL(4, 2)) END AS discount
FROM range(1, 2001) t(i);
CREATE TABLE invoice_lines AS
SELECT CAST(1 + mix(i, 21, 2000) AS INTEGER) AS invoice_id,
       CAST(i AS INTEGER) AS line,
       CAST(1 + mix(i, 22, 40) AS INTEGER) AS product_id,
       CAST(1 + mix(i, 23, 9) AS INTEGER) AS quantity,
       CAST(1 + mix(i, 24, 9900) / 100.0 AS DECIMAL(9, 2)) AS price
FROM range(1, 5001) t(i);
"""

RIDES = f"""
{MIX};
CREATE TABLE stations AS SELECT * FROM (VALUES
    ('Bridge', 'old town', 20), ('Castle', 'old town', 12), ('Harbour', 'docks', 30), ('Market', 'old town', 16),
    ('Park', 'green', 24), ('Station', 'docks', 40)
) AS t(name, district, docks);
CREATE TABLE rides AS
SELECT CAST(i AS INTEGER) AS id,
       'r' || (1 + mix(i, 31, 250)) AS rider,
       TIMESTAMP '2024-01-01 00:00:00' + to_minutes(mix(i, 32, 129600)) AS started,
       ['Bridge', 'Castle', 'Harbour', 'Market', 'Park', 'Station'][1 + mix(i, 33, 6)] AS origin,
       ['Bridge', 'Castle', 'Harbour', 'Market', 'Park', 'Station'][1 + mix(i, 34, 6)] AS target,
       CAST(mix(i, 35, 200) / 10.0 AS DECIMAL(5, 1)) AS km,
       CAST(1 + mix(i, 36, 90) AS INTEGER) AS minutes,
       mix(i, 37, 2) = 0 AS member,
       CASE WHEN mix(i, 38, 5) = 0 THEN NULL ELSE CAST(1 + mix(i, 39, 5) AS INTEGER) END AS rating,
       CAST(1 + mix(i, 40, 1500) / 100.0 AS DECIMAL(6, 2)) AS price
FROM range(1, 3001) t(i);
"""

CITIES = ["Aachen", "Bremen", "Cottbus", "Dresden", "Erfurt", "Freiburg", "Genf", "Husum"]
STATIONS = ["Bridge", "Castle", "Harbour", "Market", "Park", "Station"]
DAYS = {"type": "date", "min": date(2023, 1, 1), "max": date(2024, 12, 31), "nulls": False}


def key(*values: str) -> dict[str, Any]:
    return {"type": "text", "values": list(values), "nulls": False}


def number(low: float, high: float, step: float = 0.01, **more: Any) -> dict[str, Any]:
    return {"type": "number", "min": low, "max": high, "step": step, **more}


def integer(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high, **more}


def _shop(folder: Path) -> dict[str, discreet.Table]:
    _made(SHOP, folder)
    customers = {
        "id": int,
        "name": str,
        "city": str,
        "segment": key("private", "company", "school"),
        "birth": {"type": "date", "min": date(1940, 1, 1), "max": date(2003, 12, 31)},
        "joined": {"type": "date", "min": date(2019, 1, 1), "max": date(2022, 12, 31), "nulls": False},
        "newsletter": {"type": "boolean", "nulls": False},
        "email": str,
        "points": integer(0, 999, nulls=False),
    }
    invoices = {
        "id": int,
        "customer_id": int,
        "day": DAYS,
        "moment": {"type": "timestamp", "min": datetime(2023, 1, 1), "max": datetime(2024, 12, 31, 23, 59, 59)},
        "channel": key("web", "store", "phone"),
        "status": key("paid", "open", "returned"),
        "total": number(0, 499.99, nulls=False),
        "discount": number(0, 0.3),
    }
    lines = {
        "invoice_id": int,
        "line": int,
        "product_id": integer(1, 40, nulls=False),
        "quantity": integer(1, 9, nulls=False),
        "price": number(1, 100, nulls=False),
    }
    products = {"id": int, "name": str, "category_id": int, "price": {"type": "number", "step": 0.01}, "active": bool}
    return {
        "customers": discreet.Table(
            str(folder / "customers.parquet"), person="id", one_row_per_person=True, columns=customers
        ),
        "invoices": discreet.Table(
            str(folder / "invoices.parquet"),
            person="customer_id -> customers.id",
            rows_per_person=20,
            groups_per_person=20,
            columns=invoices,
        ),
        "invoice_lines": discreet.Table(
            str(folder / "invoice_lines.parquet"),
            person="invoice_id -> invoices.id",
            rows_per_person=60,
            groups_per_person=60,
            columns=lines,
        ),
        "products": discreet.Table(str(folder / "products.parquet"), public=True, columns=products),
        "categories": discreet.Table(str(folder / "categories.parquet"), public=True, columns={"id": int, "name": str}),
        "cities": discreet.Table(
            str(folder / "cities.parquet"), public=True, columns={"name": str, "region": str, "thousands": int}
        ),
    }


def _rides(folder: Path) -> dict[str, discreet.Table]:
    _made(RIDES, folder)
    rides = {
        "id": int,
        "rider": str,
        "started": {"type": "timestamp", "min": datetime(2024, 1, 1), "max": datetime(2024, 3, 31), "nulls": False},
        "origin": key(*STATIONS),
        "target": key(*STATIONS),
        "km": number(0, 19.9, 0.1, nulls=False),
        "minutes": integer(1, 90, nulls=False),
        "member": {"type": "boolean", "nulls": False},
        "rating": integer(1, 5),
        "price": number(1, 15.99, nulls=False),
    }
    return {
        "rides": discreet.Table(
            str(folder / "rides.parquet"), person="rider", rows_per_person=50, groups_per_person=50, columns=rides
        ),
        "stations": discreet.Table(
            str(folder / "stations.parquet"), public=True, columns={"name": str, "district": str, "docks": int}
        ),
    }


def _clinic(folder: Path) -> dict[str, discreet.Table]:
    """The patients and conditions that come with the package, who are of one race and cost nothing there."""
    _made(
        f"""
        {MIX};
        CREATE TABLE patients AS SELECT * EXCLUDE (row) REPLACE (
            ['asian', 'black', 'other', 'white'][1 + least(mix(row, 51, 7), 3)] AS RACE,
            CASE WHEN mix(row, 52, 5) = 0 THEN 0 ELSE mix(row, 53, 90000000) / 100.0 END AS HEALTHCARE_EXPENSES
        )
        FROM (SELECT *, row_number() OVER () AS row FROM read_csv('{_unpacked(folder, "patients")}'));
        CREATE TABLE conditions AS SELECT * FROM read_csv('{_unpacked(folder, "conditions")}');
        CREATE TABLE races AS SELECT * FROM (VALUES ('asian', 1), ('black', 2), ('native', 3), ('other', 4),
            ('white', 5)) AS t(name, place);
        """,
        folder,
    )
    patients = {
        "Id": str,
        "BIRTHDATE": {"type": "date", "min": date(1900, 1, 1), "max": date(2026, 12, 31), "nulls": False},
        "GENDER": key("F", "M"),
        "RACE": str,
        "HEALTHCARE_EXPENSES": number(0, 1_000_000),
    }
    conditions = {
        "START": {"type": "date", "min": date(1900, 1, 1), "max": date(2026, 12, 31), "nulls": False},
        "STOP": {"type": "date", "min": date(1900, 1, 1), "max": date(2026, 12, 31)},
        "PATIENT": str,
        "DESCRIPTION": str,
    }
    return {
        "patients": discreet.Table(
            str(folder / "patients.parquet"), person="Id", one_row_per_person=True, columns=patients
        ),
        "conditions": discreet.Table(
            str(folder / "conditions.parquet"),
            person="PATIENT",
            rows_per_person=400,
            groups_per_person=400,
            columns=conditions,
        ),
        "races": discreet.Table(str(folder / "races.parquet"), public=True, columns={"name": str, "place": int}),
    }


def _census(folder: Path) -> dict[str, discreet.Table]:
    """Every fourth person of the census that comes with the package."""
    path = _unpacked(folder, "adult")
    _made(
        f"""
        CREATE TABLE adult AS SELECT * EXCLUDE (row) FROM (
            SELECT *, row_number() OVER () AS row FROM read_csv('{path}')
        ) WHERE row % 4 = 0;
        """,
        folder,
    )
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW adult AS FROM '{folder / 'adult.parquet'}'")

        def values(column: str) -> dict[str, Any]:
            found = connection.execute(f"SELECT DISTINCT {column} FROM adult WHERE {column} IS NOT NULL ORDER BY 1")
            return {"type": "text", "values": [row[0] for row in found.fetchall()], "nulls": False}

        columns = {
            "age": integer(17, 90, nulls=False),
            "education_num": integer(1, 16, nulls=False),
            "capital_gain": integer(0, 99_999, nulls=False),
            "capital_loss": integer(0, 5_000, nulls=False),
            "hours_per_week": integer(1, 99, nulls=False),
            **{name: values(name) for name in ("education", "marital_status", "relationship", "race", "sex", "income")},
            "workclass": str,
            "occupation": str,
            "native_country": str,
        }
    return {"adult": discreet.Table(str(folder / "adult.parquet"), one_row_per_person=True, columns=columns)}


def _tpch(folder: Path) -> dict[str, discreet.Table]:
    tpch(folder, 0.005)
    return declared(folder)


def _unpacked(folder: Path, name: str) -> Path:
    path = folder / f"{name}.csv"
    path.write_bytes(gzip.decompress((files("discreet") / "data" / f"{name}.csv.gz").read_bytes()))
    return path


def _made(statements: str, folder: Path) -> None:
    """Runs statements that make tables, and writes each to a Parquet file."""
    with duckdb.connect() as connection:
        connection.execute(statements)
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {name} TO '{folder / name}.parquet'")


DATA: dict[str, Callable[[Path], dict[str, discreet.Table]]] = {
    "shop": _shop,
    "rides": _rides,
    "clinic": _clinic,
    "census": _census,
    "tpch": _tpch,
}


@dataclass(frozen=True)
class Asked:
    """A curator whose price hides nothing, and plain DuckDB, on the same tables."""

    curator: discreet.Curator
    plain: duckdb.DuckDBPyConnection

    def close(self) -> None:
        self.curator.close()
        self.plain.close()


def opened(data: str, folder: Path) -> Asked:
    folder.mkdir(parents=True, exist_ok=True)
    tables = DATA[data](folder)
    curator = discreet.Curator(tables, epsilon=BUDGET, delta="0.5", keys_delta="0.4", engine={"work": WORK})
    return Asked(curator, plain(folder, list(tables)))


def plain(folder: Path, tables: list[str]) -> duckdb.DuckDBPyConnection:
    """The tables under their names, and in the schemas that tools write; x / 0 is NULL, as in questions."""
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")
    connection.execute("CREATE SCHEMA public; CREATE SCHEMA dbo")
    for name in tables:
        connection.execute(f"CREATE TABLE {name} AS FROM '{folder / name}.parquet'")
        connection.execute(f"CREATE VIEW public.{name} AS FROM main.{name}")
        connection.execute(f"CREATE VIEW dbo.{name} AS FROM main.{name}")
    return connection
