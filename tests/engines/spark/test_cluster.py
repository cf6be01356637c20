"""A cluster of two workers, one of which is killed in the middle of a question: the same vector, or the question has
failed for whoever asked; never another answer. Which of them came stands in the report, as the property `outcome`, and
in a line that `pytest -rP` shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from discreet.engines.protocol import Lost, Stopped
from discreet.errors import EngineError
from engine_tools import Bench, declaration, planned
from spark_tools import Spark, limits, running

pytestmark = [pytest.mark.storm, pytest.mark.filterwarnings("ignore")]

QUESTIONS = [
    "SELECT h, COUNT(*), SUM(w) FROM t WHERE v > 0 GROUP BY h",
    "SELECT g, COUNT(*), AVG(w) FROM t GROUP BY g",
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spark]:
    with running(workers=2) as server:
        yield server


def test_a_worker_killed_in_the_middle_changes_no_answer(
    cluster: Spark, record_property: Callable[[str, object], None]
) -> None:
    known = declaration({"person": "p", "rows_per_person": 5, "groups_per_person": 2})
    rows = [
        {"p": f"p{i % 997}", "g": "xyz"[i % 3], "h": str(i % 50), "v": i % 7 - 2, "w": (i % 131) / 10}
        for i in range(60_000)
    ]
    here, there = Bench(), Bench(limits(cluster, seconds=200))
    try:
        tables = [bench.load(known.tables["t"], rows) for bench in (here, there)]
        outcome = "the same vector"
        for number, text in enumerate(QUESTIONS):
            plan = planned(text, known)
            wanted = here.totals(plan, tables[0], "a salt")
            killer = threading.Timer(0.5, cluster.workers[0].end)
            if number == 0:
                killer.start()
            try:
                found = there.totals(plan, tables[1], "a salt")
            except (EngineError, Stopped, Lost) as error:
                assert not there.engine.has(tables[1].name)
                outcome = f"a failure, {type(error).__name__}, of question {number + 1}"
                break
            finally:
                in_time = not killer.is_alive()
                killer.cancel()
            assert found == wanted
            assert in_time or number > 0, "the worker was still there when the answer came"
        record_property("outcome", outcome)
        print(f"a worker was killed in the middle of a question: {outcome}")
    finally:
        here.close()
        there.close()
