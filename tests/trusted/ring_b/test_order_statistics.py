"""What is measured by itself is written into the keys of stored answers, which never change."""

from __future__ import annotations

import pytest

from discreet.trusted.ring_a.nodes import Project, Scan
from discreet.trusted.ring_b.order_statistics import GroupHistograms, Special, SpecialKind

KIND = "exact"

ROOT = GroupHistograms(Project(Scan("t", None, True), (), ()))


@pytest.mark.parametrize("word", ["quantiles", "winners", "distinct"])
def test_keys_say_the_kind_of_a_special_as_a_text(word: str) -> None:
    """As ledgers of every version hold them."""
    assert repr(Special(SpecialKind(word), ROOT)).startswith(f"Special(kind='{word}', root=")
