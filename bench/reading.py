"""Texts that would take over who reads them, and the slowest that are admitted: processor time of both processes."""

from __future__ import annotations

import json
import resource
import time
from fractions import Fraction

from discreet.catalog import Declaration, declare
from discreet.errors import QuestionError
from discreet.reading.worker import rehearsed
from discreet.sql import lower_tree
from discreet.sql.asked import Asked
from discreet.sql.trees import read

WHERE = "SELECT COUNT(*) FROM t WHERE "
REFUSED = {
    "INT[INT[… 40 deep": WHERE + "INT[" * 40 + "1" + "]" * 40 + " = 1",
    "16,000 constants in IN": WHERE + "v IN (" + ",".join(["1"] * 16_000) + ")",
    "5,000 ORs": WHERE + " OR ".join(["v = 1"] * 5_000),
    "2,000 ORs": WHERE + " OR ".join(["v = 1"] * 2_000),
    "45,000 brackets": WHERE + "(" * 45_000 + "v = 1" + ")" * 45_000,
    "500 aggregates": "SELECT " + ", ".join(f"COUNTIF(v > {i})" for i in range(500)) + " FROM t",
    "1,000 CASE in each other": "SELECT " + "CASE WHEN v = 1 THEN " * 1_000 + "1" + " END" * 1_000 + " FROM t",
    "4,900 columns of GROUP BY": "SELECT COUNT(*) FROM t GROUP BY " + ",".join(f"c{i}" for i in range(4_900)),
}
ADMITTED = {
    "4,900 constants in IN": WHERE + "v IN (" + ",".join(map(str, range(4_900))) + ")",
    "150 sums, bounds to be found": "SELECT " + ", ".join(f"SUM(x + {i})" for i in range(150)) + " FROM t",
    "150 COUNTIF": "SELECT " + ", ".join(f"COUNTIF(v > {i})" for i in range(150)) + " FROM t",
    "8 joined tables of 100 columns": "SELECT COUNT(*) FROM "
    + " JOIN ".join(
        "(SELECT p, "
        + ", ".join(f"n + {i} AS c{i}" for i in range(100))
        + f" FROM t) AS a{k}"
        + (f" ON a0.p = a{k}.p" if k else "")
        for k in range(8)
    ),
}


def declaration() -> Declaration:
    columns = {
        "p": {"type": "text"},
        "v": {"type": "integer", "min": 0, "max": 9},
        "n": {"type": "number", "min": 0, "max": 1},
        "x": {"type": "number"},
    }
    table = {"source": "t.csv", "columns": columns, "person": "p", "rows_per_person": 2}
    return declare({"budget": {"epsilon": Fraction(1)}, "tables": {"t": table}})


def seconds(text: str, declared: Declaration) -> tuple[float, bool]:
    """What a text costs where it is tried and where it is lowered, and whether it is a question."""
    best, fine = float("inf"), True
    for _ in range(3):
        start = time.process_time()
        try:
            lower_tree(read(json.loads(json.dumps(rehearsed(Asked(text), declared)))), declared)
        except QuestionError:
            fine = False
        best = min(best, time.process_time() - start)
    return best, fine


def main() -> None:
    declared = declaration()
    for kind, texts, expected in (("refused", REFUSED, False), ("admitted", ADMITTED, True)):
        for name, text in texts.items():
            cost, fine = seconds(text, declared)
            assert fine is expected, name
            print(f"{kind:9} {name:32} {len(text):7,} characters {1000 * cost:8.1f} ms")
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
