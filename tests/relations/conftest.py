"""One engine for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from relation_tools import Bench


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()
