"""Ledgers in a file and on a PostgreSQL server (fsync on, the socket of this machine): durable reserves a second by one
writer and by eight, a plain durable INSERT beside them, and races of eight for ten units.

`python -m bench.ledgers` measures them.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import discreet

storms: Any = importlib.import_module("storms")  # they lie with the tests
places: Any = importlib.import_module("ledger_places")

WRITER = """
import os, sys
from discreet.ledger import Ledger
from storms import PRICE, spot
ledger = Ledger(spot(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for turn in range(int(sys.argv[2])):
    ledger.reserve(PRICE, question="a question", key=f"{os.getpid()}-{turn}", tables=["t"])
"""


def figures(reserves: int = 1600, races: int = 10) -> list[tuple[str, float]]:
    """Reserves a second: each is one transaction, noted, and on the disk."""
    found = []
    with tempfile.TemporaryDirectory() as folder, places.ledger_server() as (server, place):
        Path(folder, "notes").mkdir()
        kinds = {"in a file": Path(folder, "file"), "on PostgreSQL": place(Path(folder, "notes"))}
        for writers in (1, 8):
            for name, at in kinds.items():
                one = storms.new_spot(at, f"{writers} writers")
                storms.make(one, 10**7)
                rate = _rate(one, writers, reserves // writers)
                found.append((f"durable reserves a second {name}, {writers} writers", rate))
        found.append(("durable INSERTs of one row a second on the same server", _inserts(server, reserves)))
        for name, at in kinds.items():
            grants = storms.race(races, at=at)
            found.append((f"races of 8 for 10 units {name} that granted other than 10", sum(n != 10 for n in grants)))
    return found


def _rate(at: Any, writers: int, each: int) -> float:
    paths = os.pathsep.join((str(Path(discreet.__file__).parents[1]), str(Path(storms.__file__).parent)))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(at), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for _ in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    begin = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait() == 0
    return writers * each / (time.perf_counter() - begin)


def _inserts(server: Any, rows: int) -> float:
    server.run("CREATE TABLE plain (x int8)")
    begin = time.perf_counter()
    for row in range(rows):
        server.run(f"INSERT INTO plain VALUES ({row})")
    return rows / (time.perf_counter() - begin)


if __name__ == "__main__":
    for name, value in figures():
        print(f"{name:<72} {value:>12,.4g}", flush=True)
