"""A process that reads texts, and does what a text in the wrong hands might have it do."""

from __future__ import annotations

from typing import Any

import discreet.reading.worker as worker
from discreet.catalog.model import Declaration
from discreet.sql.asked import Asked

_usual = worker.rehearsed


def main() -> None:
    worker.SECONDS, worker.MEMORY, worker.rehearsed = 1, 1 << 26, _rehearsed
    worker.main()


def _rehearsed(asked: Asked, declaration: Declaration) -> Any:
    text = asked.text
    while "endless" in text:
        pass
    if "memory" in text:
        bytearray(1 << 27)
    if "die" in text:
        worker.os._exit(0)
    if "nonsense" in text:
        return eval(text.partition(":")[2])
    return _usual(asked, declaration)
