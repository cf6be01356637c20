"""What tests of answers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from discreet import Curator
from face_tools import Data, visits


@pytest.fixture(scope="module")
def curator(data: Data) -> Iterator[Curator]:
    """A curator of the visits."""
    with Curator({"visits": visits(data.csv)}, epsilon="1e9", delta="0.01") as curator:
        yield curator
