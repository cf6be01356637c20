"""Which rows and groups are kept: each as often as any other. Sizes are fixed, p < 1e-6."""

from __future__ import annotations

from collections import Counter

import pytest
from scipy import stats

from windows_tools import CLIP, Bench, Row, known, planned

LEVEL = 1e-6
PERSONS, OF, SALTS = 600, 7, 20
ROWS = [Row(person, f"g{bit}", bit) for bit in range(OF) for person in range(100, 100 + PERSONS)]
QUESTIONS = {
    "rows": "SELECT q, SUM(v) FROM t GROUP BY q",
    "groups, stored": f"SELECT q, r, SUM(v, {CLIP}) FROM t GROUP BY q, r",
    "groups, rows": f"SELECT q, r, SUM(v, {CLIP}) FROM t WHERE v > 0 GROUP BY q, r",
}


@pytest.mark.parametrize("form", sorted(QUESTIONS))
def test_each_is_kept_as_often_as_any_other(small: Bench, form: str) -> None:
    """12,000 choices of 1 of 7 over 20 salts: which one, and which of 49 pairs in two salts after each other.

    Power: one that is kept 1.25 times as often as it should be is found with more than 99 %."""
    declaration = known(1, 1)
    plan, loaded = planned(QUESTIONS[form], declaration), small.load(declaration.tables["t"], ROWS)
    kept: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    last: dict[int, int] = {}
    for salt in range(SALTS):
        found = {key[0]: total[0] for key, total in small.totals(plan, loaded, f"{salt:032x}").items()}
        assert len(found) == PERSONS
        kept.update(found.values())
        pairs.update((last[person], bit) for person, bit in found.items() if salt % 2)
        last = found
    assert kept.keys() == {1 << bit for bit in range(OF)}
    assert stats.chisquare(list(kept.values())).pvalue > LEVEL
    assert len(pairs) == OF * OF
    assert stats.chisquare(list(pairs.values())).pvalue > LEVEL


@pytest.mark.parametrize("form", sorted(QUESTIONS))
def test_windows_of_three_are_spread_over_the_source(small: Bench, form: str) -> None:
    """Over persons, any two of seven are kept together as often as any others, though a window is one stretch of
    positions: 3 of 7 are kept, so a pair with probability 1/7. One salt, so that persons are independent; for each pair
    a binomial test at p < 1e-6 over 21.

    Power: neighbours in the source that are kept together in 2/7 of the cases, as without a mixed order, are found
    with more than 99 %."""
    declaration = known(3, 3)
    plan, loaded = planned(QUESTIONS[form], declaration), small.load(declaration.tables["t"], ROWS)
    found: Counter[int] = Counter()
    for key, total in small.totals(plan, loaded, "salt").items():
        found[key[0]] += total[0]
    assert all(bits.bit_count() == 3 for bits in found.values())
    for one in range(OF):
        for other in range(one):
            both = (1 << one) | (1 << other)
            together = sum(bits & both == both for bits in found.values())
            assert stats.binomtest(together, PERSONS, 1 / 7).pvalue > LEVEL / 21
