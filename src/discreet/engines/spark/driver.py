"""Spark as the engine: tables are made on a server that speaks Spark Connect, and questions run there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.catalog.model import EngineKind, EngineLimits
from discreet.catalog.spark import remote as address
from discreet.engines.driver import ServerDriver
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.sources import WORKER, SparkSources
from discreet.errors import DeclarationError
from discreet.trusted.ring_a.table import Source, SourceKind


@contextmanager
def example(remote: str, file: Path) -> Iterator[str]:
    """A Parquet file with what a CSV file holds, which a server on this machine reads; the copy made there goes with
    it. For a demonstration. Raises DeclarationError."""
    found = address("--server", remote)
    if not isinstance(found, str):
        raise DeclarationError([found])
    tables = SparkSources(EngineLimits(kind=EngineKind.SPARK, remote=found))
    try:
        tables.call("whole")  # where nothing answers, this says it
        import pyarrow.csv
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{file.stem}.parquet"
            pyarrow.parquet.write_table(pyarrow.csv.read_csv(file), path)
            try:
                yield str(path)
            finally:
                with suppress(DeclarationError):
                    tables.forget(Source(SourceKind.PARQUET, path=path))
    finally:
        tables.close()


class Spark(ServerDriver):
    """A Spark server, and a child process of our own that speaks to it."""

    stands = 1.0  # it takes longer to ask

    def __init__(self, limits: EngineLimits) -> None:
        super().__init__("spark", SPARK, SparkSources(limits), WORKER, limits)
