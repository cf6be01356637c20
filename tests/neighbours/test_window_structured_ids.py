"""Persons choose apart whatever their ids are: sums over persons have the variance of independent choices."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from scipy import stats

from discreet.trusted.ring_a.windows import P
from windows_tools import KINDS, Bench, Row, known, planned

OF, SALTS, LEVEL = 4, 60, 1e-6
DAYS = [datetime.date(1970, 1, 1) + datetime.timedelta(days=day) for day in range(-200, 201) if day]
IDS: dict[str, tuple[str, Sequence[Any]]] = {
    "one after another": ("integer", range(400)),
    "of both signs": ("integer", [one for one in range(-200, 201) if one]),
    "counted down from the largest": ("integer", [*range(1, 201), *(P - one for one in range(1, 201))]),
    "a shard in the upper half": ("integer", [(shard << 32) | one for shard in range(8) for one in range(50)]),
    "apart by the prime": ("integer", [one % 20 + P * (one // 20) for one in range(400)]),
    "multiples of the prime": ("integer", [P * one for one in range(400)]),
    "days before and after 1970": ("date", DAYS),
}


@pytest.mark.parametrize("ids", sorted(IDS))
def test_what_is_kept_varies_as_if_persons_chose_apart(small: Bench, ids: str) -> None:
    """400 persons with four groups each, of which one is kept. The χ² of how many keep each, summed over 60 salts, has
    180 degrees of freedom if persons choose apart; pairs that always choose alike double it."""
    kind, persons = IDS[ids]
    rows = [Row(person, f"g{bit}", bit) for person in persons for bit in range(OF)]
    declaration = known(1, 1, kind)
    plan = planned("SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r", declaration)
    with patch.dict(KINDS, {kind: (KINDS[kind][0], persons)}):  # so `q` numbers these ids
        loaded = small.load(declaration.tables["t"], rows, kind=kind)
    usual, found = len(persons) / OF, 0.0
    for salt in range(SALTS):
        kept = [total[0] for total in small.totals(plan, loaded, f"{salt:032x}").values()]
        assert sum(kept) == len(persons)
        found += sum((one - usual) ** 2 for one in [*kept, *[0] * (OF - len(kept))]) / usual
    assert stats.chi2.sf(found, SALTS * (OF - 1)) > LEVEL, found / (SALTS * (OF - 1))
