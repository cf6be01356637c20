"""DuckDB as the engine: one child process holds the declared tables in memory."""

from __future__ import annotations

from discreet.catalog.model import EngineLimits
from discreet.engines.driver import Driver
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.sources import WORKER, DuckDBSources


class DuckDB(Driver):
    """DuckDB in a child process of its own."""

    def __init__(self, limits: EngineLimits) -> None:
        super().__init__("duckdb", DUCKDB, DuckDBSources(limits), WORKER, limits)
