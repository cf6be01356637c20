"""What a release holds: written and read, answers that ledgers hold from before it had a version, and newer ones."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

import discreet
from discreet import LedgerError
from discreet.accounting import Filter, Pure
from discreet.accounting.balance import Balance
from discreet.ledger import TOTAL
from discreet.release.content import FREE, VERSION, Cost, ReleaseContent
from discreet.release.table import Release
from discreet.release.values import FAR
from discreet.synthesis.synthetic import Synthetic
from face_tools import strict
from kinds import DATA

BEFORE: dict[str, dict[str, Any]] = json.loads((DATA / "stored_before.json").read_text("utf-8"))
"""By the kind of procedure: the text that the ledger holds, and what was shown of it, as the last version without a
number wrote both."""


@pytest.mark.parametrize("kind", BEFORE)
def test_what_was_stored_before_is_read_to_the_letter(kind: str) -> None:
    stored, shown = BEFORE[kind]["stored"], BEFORE[kind]["shown"]
    content = ReleaseContent.from_json(json.dumps(stored).encode())
    assert content.to_dict() == stored
    budget = Filter(Fraction(10**6), Fraction(0))
    made = Synthetic if kind == "publish" else Release
    release = made(content, Cost(stored["cost"]), Balance(budget, TOTAL, None, None), Pure(Fraction(1)))
    again = json.loads(release.to_json())
    common = [name for name in shown if name in stored or name == "rows"]
    assert {name: again[name] for name in common} == {name: shown[name] for name in common}
    table, old = repr(release), BEFORE[kind]["repr"]
    assert table.split("price")[0] == old.split("price")[0]
    assert release.content == stored


@pytest.mark.parametrize("kind", BEFORE)
def test_what_is_written_is_read_again(kind: str) -> None:
    content = ReleaseContent.from_dict(BEFORE[kind]["stored"])
    written = content.to_json()
    assert json.loads(written)["release"] == VERSION
    assert ReleaseContent.from_json(written) == content
    assert "release" not in content.to_dict()


def test_what_is_not_known_is_written_as_json_has_it() -> None:
    """Also where an older ledger holds the words that Python alone reads as numbers."""
    stored = {**BEFORE["mean"]["stored"], "intervals": [{"a": [-math.inf, math.inf]}], "rows": [{"a": math.nan}]}
    content = ReleaseContent.from_json(json.dumps(stored).encode())
    budget = Filter(Fraction(10**6), Fraction(0))
    release = Release(content, FREE, Balance(budget, TOTAL, None, None), Pure(Fraction(1)))
    again = strict(release.to_json())
    assert again["intervals"] == [{"a": [-FAR, FAR]}]
    assert again["rows"] == [{"a": None}]
    assert release.intervals == [{"a": (-math.inf, math.inf)}]


def test_a_newer_version_is_refused() -> None:
    stored = {"release": VERSION + 1, **BEFORE["mean"]["stored"]}
    with pytest.raises(LedgerError, match="a newer version of discreet stored this answer") as refused:
        ReleaseContent.from_json(json.dumps(stored).encode())
    assert (refused.value.code, refused.value.fix) == ("version", "install that version")


def test_a_ledger_of_before_answers_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call after the change finds the text that was stored before it, under the same key."""
    rows = pandas.DataFrame({"p": [f"p{i}" for i in range(90)], "c": ["a", "b", "c"] * 30})
    table = discreet.Table(rows, columns={"p": "text", "c": ["a", "b", "c"]}, person="p", rows_per_person=1)
    question = "SELECT c, COUNT(DISTINCT p) AS n FROM t GROUP BY c"
    with monkeypatch.context() as before:
        before.setattr(ReleaseContent, "to_json", lambda self: json.dumps(self.to_dict()).encode())
        with discreet.Curator({"t": table}, epsilon=9, ledger=tmp_path / "ledger") as curator:
            first = curator.select(question, epsilon=1)
    with discreet.Curator({"t": table}, epsilon=9, ledger=tmp_path / "ledger") as curator:
        again = curator.select(question, epsilon=1)
    assert again.content == first.content
    assert (again.charged, again.left_out) == (FREE, first.left_out)
