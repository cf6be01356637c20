"""How long a charge takes, how many go in a second, and how fast a history is verified.

`python tests/lib/speed.py [ENTRIES]` prints it for a short ledger and for one of so many entries.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import storms
from discreet.ledger import Ledger
from storms import PRICE


@dataclass(frozen=True)
class Latency:
    """Seconds: medians of a reserve and of a commit, and the 95th percentile of both together."""

    reserve: float
    commit: float
    both_95: float


def grow(path: Path, entries: int) -> None:
    """A ledger with so many entries, written without waiting for the disk."""
    storms.make(path, 10**9, ana=10**9)
    ledger = Ledger(path)
    connection = ledger._file._connection
    assert connection is not None
    connection.pragma("synchronous", "OFF")
    for turn in range(entries // 2):
        charge(ledger, f"grown {turn}")
    ledger.close()
    os.sync()  # what is measured next must not wait for this


def charge(ledger: Ledger, name: str) -> tuple[float, float]:
    """Reserve and commit, and the seconds of each."""
    start = time.perf_counter()
    given = ledger.reserve(PRICE, question=f"SELECT COUNT(*) FROM t -- {name}", key=name, account="ana", request=name)
    middle = time.perf_counter()
    ledger.commit(given.reserve_id, b'{"rows":[[1,2,3]]}' * 10)
    return middle - start, time.perf_counter() - middle


def latency(path: Path, times: int = 500) -> Latency:
    """Of charges that wait for the disk."""
    ledger = Ledger(path)
    name = ledger.head
    took = [charge(ledger, f"{name} {turn}") for turn in range(times)]
    ledger.close()
    both = sorted(reserve + commit for reserve, commit in took)
    medians = [statistics.median(column) for column in zip(*took, strict=True)]
    return Latency(medians[0], medians[1], both[times * 95 // 100])


def rate(processes: int, each: int = 300) -> float:
    """Charges with their answers in a second, over all processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rate.ledger")
        storms.make(path, 10**9)
        writers = [storms.start("writer", path, f"{name}", each) for name in range(processes)]
        start = time.perf_counter()
        for writer in writers:
            assert storms.ask_all([writer], "go")
        for writer in writers:
            storms.finish(writer)
        return processes * each / (time.perf_counter() - start)


def verification(path: Path) -> float:
    """Entries verified in a second."""
    ledger = Ledger(path)
    start = time.perf_counter()
    entries = ledger.verify().entries
    took = time.perf_counter() - start
    ledger.close()
    return entries / took


def report(entries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for size in (10, entries):
            path = Path(folder, f"{size}.ledger")
            grow(path, size)
            print(f"{size} entries: {latency(path)}, {verification(path):.0f} verified/s")
    for processes in (1, 2, 8):
        print(f"{processes} processes: {rate(processes):.0f} charges with answers/s")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
