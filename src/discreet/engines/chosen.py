"""Which engine the house runs on: the one place beside an engine's own package that names it."""

from __future__ import annotations

from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.duckdb.sources import DuckDBSources
from discreet.engines.protocol import Owned, Sources
from discreet.trusted.ring_a.dialect import Dialect

DIALECT: Dialect = DUCKDB
"""How statements are written."""


def engine(limits: EngineLimits) -> Owned:
    """An engine that holds no table yet."""
    return DuckDB(limits)


def sources() -> Sources:
    """Where sources are looked at before there is a declaration."""
    return DuckDBSources(EngineLimits())
