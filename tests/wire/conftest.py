from __future__ import annotations

from collections.abc import Iterator

import pytest

from face_tools import Data
from service_tools import Served, served
from wire_tools import AT_ONCE


@pytest.fixture(scope="package")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("wire")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, AT_ONCE) as found:
        yield found
