"""One engine for the windows' small tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from windows_tools import Bench


@pytest.fixture(scope="session")
def small() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()
