"""The random limits against every outcome they may have: all of them are legal, all equally likely."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scipy import stats

from discreet.plan.measurement import Plan
from engine_tools import Bench, declaration, planned

COLUMNS = {
    "p": {"type": "integer"},
    "q": {"type": "integer"},
    "r": {"type": "text"},
    "v": {"type": "integer", "min": 0, "max": 15},
}
"""`q` repeats the person, so that a test can see what was kept of each one."""

LEVEL = 1e-6
PERSONS, SALTS = 400, 12
BITS = (1, 2, 4, 8)


def rows(values: tuple[int, ...] = BITS) -> list[dict[str, Any]]:
    """Each person has one row for each value, in a group of its own: the sum of `v` tells which rows were kept."""
    persons = range(PERSONS)
    return [{"p": person, "q": person, "r": str(value), "v": value} for value in values for person in persons]


def kept_rows(bench: Bench, plan: Plan, table: Any, salt: str) -> list[Any]:
    """Of each person, which rows were kept."""
    return [totals[0] for totals in bench.totals(plan, table, salt).values()]


def kept_groups(bench: Bench, plan: Plan, table: Any, salt: str) -> list[Any]:
    """Of each person, which groups were kept."""
    found: Counter[Any] = Counter()
    for person, group in bench.totals(plan, table, salt):
        found[person] += int(group)
    return [found[person] for person in range(PERSONS)]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    ("question", "unit", "kept"),
    [
        ("SELECT q, SUM(v) FROM t GROUP BY q", {"rows_per_person": 0}, kept_rows),
        (
            "SELECT q, r, COUNT(DISTINCT p) FROM t GROUP BY q, r",
            {"rows_per_person": 9, "groups_per_person": 0},
            kept_groups,
        ),
    ],
)
def test_every_choice_is_legal_and_equally_likely(
    bench: Bench, most: int, question: str, unit: dict[str, int], kept: Callable[..., list[Any]]
) -> None:
    """4,800 choices of `most` of 4, over 12 salts. Chi-square against the uniform one on all subsets, p < 1e-6.

    Power: a subset with 1.35 times its probability is found with more than 99 %.
    """
    known = declaration({"person": "p", **{name: value or most for name, value in unit.items()}}, COLUMNS)
    plan, table = planned(question, known), bench.load(known.tables["t"], rows())
    legal = {sum(chosen) for chosen in itertools.combinations(BITS, most)}
    seen: Counter[Any] = Counter()
    for salt in range(SALTS):
        seen.update(kept(bench, plan, table, f"{salt:032x}"))
    assert seen.keys() == legal
    assert stats.chisquare(list(seen.values())).pvalue > LEVEL


def test_salts_choose_independently(bench: Bench) -> None:
    """Two salts keep the same one of four rows for a quarter of 2,400 pairs of choices, p < 1e-6.

    Power: choices that agree in a third of the cases are found with more than 99.9 %.
    """
    known = declaration({"person": "p", "rows_per_person": 1}, COLUMNS)
    plan, table = planned("SELECT q, SUM(v) FROM t GROUP BY q", known), bench.load(known.tables["t"], rows())
    chosen = [kept_rows(bench, plan, table, f"{salt:032x}") for salt in range(7)]
    agreed = sum(
        one == two for first, second in itertools.pairwise(chosen) for one, two in zip(first, second, strict=True)
    )
    assert stats.binomtest(agreed, 6 * PERSONS, 1 / 4).pvalue > LEVEL


@pytest.mark.power
def test_the_limits_together_keep_legal_rows_only(bench: Bench) -> None:
    """Rows and groups limited at once, for one person with five rows in three groups: every outcome that the two
    limits allow is met, and no other. The 300 salts and 30 loads are fixed; the rarest outcome has probability 1/30."""
    mine = [("a", 1), ("a", 2), ("a", 4), ("b", 8), ("c", 16)]
    clause = "contribution_bounds_per_group => (0, 99)"
    question = f"SELECT SUM(w, {clause}), SUM(v) FROM t GROUP BY r"
    columns = COLUMNS | {"w": {"type": "integer"}}
    known = declaration({"person": "p", "rows_per_person": 3, "groups_per_person": 2}, columns)
    plan = planned(question, known)
    rows = [{"p": 1, "q": 1, "r": h, "v": 1, "w": w} for h, w in mine]
    legal = set()
    for chosen in itertools.combinations(mine, 3):
        groups = sorted({h for h, _ in chosen})
        for some in itertools.combinations(groups, min(2, len(groups))):
            legal.add(tuple((h, sum(w for g, w in chosen if g == h)) for h in some))
    seen: Counter[Any] = Counter()
    for salt in range(300):
        if salt % 10 == 0:
            table = bench.load(known.tables["t"], rows, key=f"{salt:032x}")
        totals = bench.totals(plan, table, f"{salt:032x}")
        seen[tuple((key[0], value[1]) for key, value in totals.items())] += 1
    assert seen.keys() == legal


def test_what_is_kept_of_one_person_does_not_depend_on_the_others(bench: Bench) -> None:
    """Each person's choice is the same whether the table holds everybody or half of them."""
    known = declaration({"person": "p", "rows_per_person": 2}, COLUMNS)
    plan = planned("SELECT q, SUM(v) FROM t GROUP BY q", known)
    everybody = bench.load(known.tables["t"], rows())
    half = bench.load(known.tables["t"], [row for row in rows() if row["p"] % 2])
    for salt in ("1", "2", "3"):
        whole, part = bench.totals(plan, everybody, salt), bench.totals(plan, half, salt)
        assert part == {key: value for key, value in whole.items() if key[0] % 2}
