"""One server for all tests of this folder that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine_tools import Bench
from spark_tools import Spark, limits, running


@pytest.fixture(scope="session")
def spark() -> Iterator[Spark]:
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def there(spark: Spark) -> Iterator[Bench]:
    """An engine on the server for tests that bring their own tables."""
    made = Bench(limits(spark))
    yield made
    made.close()


@pytest.fixture
def one(spark: Spark) -> Iterator[Any]:
    """A session of the test's own, which ends with the test: pytest would wait for it."""
    from pyspark.sql.connect.session import SparkSession

    made = SparkSession.builder.remote(spark.remote).create()
    try:
        made.sql("CREATE SCHEMA IF NOT EXISTS discreet").collect()
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement is tried however slow the machine is."""
    monkeypatch.setattr("discreet.engines.twin._SECONDS", 300)
