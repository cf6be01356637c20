"""Groups by whole numbers that stand for numbers with fractions: what one person changes, in the real engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinds import examples
from relation_tools import FULL, ME, WHOLE, WORD, Bench, Database, apart, shop, without

KEYS = (
    "FLOOR(total / 2.0) * 2.0",
    "total - total % 3",
    "ROUND(total, 1)",
    "CASE WHEN total > 5 THEN 0.5 WHEN f > 1 THEN 1.25 END",
    "ABS(k) * 0.5",
    "FLOOR(k / 2) * 2 + 1",
    "ROUND(f, 2)",
    "ROUND(f, -1)",
    "f - f % 100",
    "FLOOR(f / 10) * 10.5",
    "CAST(ABS(big) AS DOUBLE) / 4",
)
NUMBERS = [-math.inf, -1e308, -2.5, -0.0, 0.1, 3.75, 9.95, 1e308, math.inf, math.nan, None]
ORDER = st.fixed_dictionaries(
    {
        "oid": st.sampled_from(["o1", "o2", "o3", None]),
        "cust": st.sampled_from([ME, ME, 2, 3, None]),
        "total": st.sampled_from(NUMBERS),
        "k": st.sampled_from([-(2**63), -2, -1, 0, 1, 3, 9, 2**63 - 1, None]),
        "big": st.sampled_from([-(2**63), -(2**53) - 1, 0, 3, 2**53 + 1, 2**63 - 1, None]),
        "f": st.sampled_from(NUMBERS),
    }
)
WANTED = ("COUNT(*)", "COUNT(DISTINCT cust)", "SUM(k)", "AVG(total)", "SUM(k, contribution_bounds_per_group => (0, 4))")


KNOWN: Any = shop(WHOLE, WORD)


def loaded(bench: Bench, database: Database) -> list[str]:
    """Everybody, the others, and one person."""
    return [bench.load(KNOWN, one) for one in (database, *without(database, ME))]


@pytest.fixture(scope="module")
def full() -> Iterator[tuple[Bench, list[str]]]:
    bench = Bench()
    yield bench, loaded(bench, FULL)
    bench.close()


@settings(max_examples=examples(60) // 5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(orders=st.lists(ORDER, min_size=1, max_size=10), salt=st.sampled_from("0123"), data=st.data())
def test_one_person_adds_a_fixed_vector(
    full: tuple[Bench, list[str]], orders: Any, salt: str, data: st.DataObject
) -> None:
    bench, everywhere = full
    suffixes = loaded(bench, {"customers": [], "lines": [], "solo": [], "rates": [], "orders": orders})
    for _ in range(4):
        keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True))
        wanted = data.draw(st.lists(st.sampled_from(WANTED), min_size=1, max_size=2, unique=True))
        limited = data.draw(st.booleans()) and not any(one.startswith("AVG") for one in wanted)
        clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) " if limited else ""
        text = f"SELECT {clause}{', '.join(wanted)} FROM orders GROUP BY {', '.join(keys)}"
        for databases in (suffixes, everywhere):
            apart(bench, bench.read(text, KNOWN, databases[0]), databases, salt)


@pytest.mark.parametrize("key", KEYS)
def test_a_person_in_every_group_counts_in_some(full: tuple[Bench, list[str]], key: str) -> None:
    bench, everywhere = full
    question = bench.read(f"SELECT COUNT(*) FROM orders GROUP BY {key}", KNOWN, everywhere[0])
    assert apart(bench, question, everywhere, "1")
