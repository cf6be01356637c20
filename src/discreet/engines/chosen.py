"""Which engine the house runs on: the one place beside the engines' own packages that names them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from discreet.catalog.model import EngineKind, EngineLimits
from discreet.engines.duckdb import outer_dialect
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.duckdb.sources import DuckDBSources
from discreet.engines.postgresql.driver import PostgreSQL
from discreet.engines.postgresql.driver import example as on_postgresql
from discreet.engines.protocol import Owned, Sources
from discreet.engines.spark.driver import Spark
from discreet.engines.spark.driver import example as on_spark
from discreet.trusted.ring_b.dialect import Dialect

DIALECT: Dialect = DUCKDB
"""How statements are written where a text is read, before an engine is asked."""

OUTER = outer_dialect
"""How queries on released tables are written, and which functions they may have."""
OUTER_WORKER = "discreet.engines.duckdb.outer_worker"


def engine(limits: EngineLimits) -> Owned:
    """An engine that holds no table yet."""
    kinds = {EngineKind.HERE: DuckDB, EngineKind.POSTGRESQL: PostgreSQL, EngineKind.SPARK: Spark}
    return kinds[limits.kind](limits)


def example(kind: EngineKind, server: str, file: Path) -> AbstractContextManager[str]:
    """The source of a table with what a CSV file holds, where an engine of this kind runs; it is gone afterwards. For a
    demonstration."""
    if kind is EngineKind.HERE:
        return nullcontext(str(file))
    return on_postgresql(server, file) if kind is EngineKind.POSTGRESQL else on_spark(server, file)


def sources() -> Sources:
    """Where sources are looked at before there is a declaration."""
    return DuckDBSources(EngineLimits())
