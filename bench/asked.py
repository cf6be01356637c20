"""Processor time of torn questions: what it takes to refuse them, and to read those that are answered.

`python -m bench.asked [COUNT]` tears so many of the questions of tests/asked that are about the shop.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "lib"))

data: Any = importlib.import_module("asked_data")  # these lie with the tests
tools: Any = importlib.import_module("asked_tools")
torn: Any = importlib.import_module("torn_questions")

ALLOWED = 0.05
"""Seconds of processor time that a question may take beyond its answer."""


def figures(folder: Path, torn_questions: int = 10_000) -> list[tuple[str, float]]:
    questions = [one for every in tools.suites().values() for one in every if one.data == "shop"]
    asked = data.opened("shop", folder)
    refused: list[float] = []
    read: list[float] = []
    planned: list[float] = []
    found: Counter[str] = Counter()
    slowest = (0.0, "")
    for seed in range(torn_questions):
        question = torn.torn(seed, questions)
        with _used(asked.curator) as used:
            came = torn.came(asked, question)
        found["faults" if came.fault else "answered" if came.answered else "refused"] += 1
        if came.answered:
            with _used(asked.curator) as used:
                asked.curator._reading.tree(question.text)
            read.append(used[0])
            with _used(asked.curator) as further:
                asked.curator._planner.one_table(question.text)
            planned.append(further[0])
        else:
            refused.append(used[0])
        slowest = max(slowest, (used[0], question.text))
    asked.close()
    print(f"the slowest: {slowest[1]!r}", file=sys.stderr)
    return [
        *((f"torn questions: {name}", number) for name, number in sorted(found.items())),
        *_spread("to refuse one", refused),
        *_spread("to read one that is answered, before it is planned", read),
        *_spread("to read it and to plan it, its statements tried", planned),
        (f"of all, those that took more than {1000 * ALLOWED:.0f} ms", sum(one > ALLOWED for one in (*refused, *read))),
    ]


def _spread(name: str, seconds: list[float]) -> list[tuple[str, float]]:
    ordered = sorted(seconds)
    places = {"median": 0.5, "99 of 100": 0.99, "999 of 1,000": 0.999, "the most": 1.0}
    return [
        (f"{name}, processor ms, {word}", 1000 * ordered[min(len(ordered) - 1, int(place * len(ordered)))])
        for word, place in places.items()
    ]


@contextmanager
def _used(curator: Any) -> Iterator[list[float]]:
    """Processor seconds of this process, of the one that reads texts and of the one with the empty tables."""
    found: list[float] = []
    before, others = time.process_time(), _others(curator)
    yield found
    after = _others(curator)
    found.append(time.process_time() - before + sum(after[pid] - others.get(pid, 0) for pid in after))


def _others(curator: Any) -> dict[int, float]:
    reading, twin = curator._reading._child, curator._twin._process
    return {one.pid: _seconds(one.pid) for one in (reading, twin) if one is not None}


def _seconds(pid: int) -> float:
    """What all threads of a process have used, to the microsecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 10**9


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name, value in figures(Path(place), int(sys.argv[1]) if sys.argv[1:] else 10_000):
            print(f"{name:<72} {value:>12,.4g}")
