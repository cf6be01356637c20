"""One server for all tests of this folder that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

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
