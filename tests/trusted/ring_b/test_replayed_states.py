"""The states that filters reach on recorded sequences of releases: what ledgers hold already, so it never changes."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting import Family, Filter, Spent, loss_from_json
from discreet.accounting.room import part_used, times_left
from kinds import DATA

KIND = "exact"

RECORDED: list[dict[str, Any]] = json.loads((DATA / "recorded_states.json").read_text("utf-8"))
"""Budgets, families, and releases of all kinds in mixed order, each with the decision, the state and the count of
further ones. A sequence may be added, never changed."""


@pytest.mark.parametrize("sequence", RECORDED, ids=range(len(RECORDED)))
def test_every_recorded_decision_and_state_comes_again(sequence: dict[str, Any]) -> None:
    family = sequence["family"]
    state = Filter(*sequence["budget"], spent=Spent(Family(**family) if family else None))
    for step in sequence["steps"]:
        loss = loss_from_json(step["loss"])
        assert dict(loss.to_json()) == step["loss"]
        assert state.admits(loss) == step["admits"]
        assert times_left(state, loss) == step["left"]
        if step["charged"]:
            state = state.after(loss)
        assert state.spent.to_json() == step["state"]
        assert part_used(state) == Fraction(step["used"])
