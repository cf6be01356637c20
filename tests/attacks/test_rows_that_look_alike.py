"""Rows whose keys look alike make no question fail: groups that the gate would hold for one never reach it apart."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest

from discreet import Curator, Table

N = 60


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ({"type": "number", "values": [0, 1]}, [0.0, -0.0], {0.0: 2 * N, 1.0: 0, None: 0}),
        ({"type": "number", "values": [0.1, 0.2]}, [0.1, 0.10000000000000002], {0.1: N, 0.2: 0, None: 0}),
        ({"type": "text"}, ["é", "e\u0301"], {"é": N, "e\u0301": N}),
        ({"type": "text"}, ["a", "a "], {"a": N, "a ": N}),
        ({"type": "text"}, ["a", "A"], {"a": N, "A": N}),
        ({"type": "integer"}, [2**53, 2**53 + 1], {2**53: N, 2**53 + 1: N}),
    ],
)
def test_alike_keys_are_answered(column: dict[str, Any], values: list[Any], expected: dict[Any, int]) -> None:
    rows = pyarrow.table({"p": list(range(2 * N)), "k": [value for value in values for _ in range(N)]})
    table = Table(rows, columns={"p": {"type": "integer"}, "k": column}, person="p", rows_per_person=1)
    with Curator({"t": table}, epsilon=10**4, delta=0.01) as curator:
        answer = curator.ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1000)
        assert {row["k"]: row["n"] for row in answer.rows} == expected
        assert curator.ledger.tables()["t"].failures == 0
