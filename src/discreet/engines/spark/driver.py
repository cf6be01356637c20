"""Spark as the engine: tables are made on a server that speaks Spark Connect, and questions run there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.catalog.model import EngineKind, EngineLimits
from discreet.catalog.spark import remote as address
from discreet.engines.driver import Driver
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.sources import WORKER, SparkSources
from discreet.errors import DeclarationError


@contextmanager
def example(remote: str, file: Path) -> Iterator[str]:
    """A Parquet file with what a CSV file holds, which a server on this machine reads; the copy made there stays.
    For a demonstration. Raises DeclarationError."""
    found = address("--server", remote)
    if not isinstance(found, str):
        raise DeclarationError([found])
    tables = SparkSources(EngineLimits(kind=EngineKind.SPARK, remote=found))
    try:
        tables.call("whole")  # where nothing answers, this says it
    finally:
        tables.close()
    import pyarrow.csv
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{file.stem}.parquet"
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(file), path)
        yield str(path)


class Spark(Driver):
    """A Spark server, and a child process of our own that speaks to it."""

    def __init__(self, limits: EngineLimits) -> None:
        self._tables = SparkSources(limits)
        super().__init__("spark", SPARK, self._tables, WORKER, limits)

    def has(self, table: str) -> bool:
        """Whether the table is loaded, the session still there and the copy as it was made. It is asked before a
        question has its price, so that a session that ended costs nobody anything."""
        return self._has(table) and self._tables.stand() and self._has(table)
