"""A question that was planned is not planned again, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet.curator.plans import MOST, Plans, price_of
from discreet.errors import QuestionError
from discreet.pricing import Within

GROUPS = "SELECT area, COUNT(*) AS n FROM people JOIN areas ON people.zip = areas.zip GROUP BY area"


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[discreet.Curator]:
    pd.DataFrame({"id": range(40), "zip": [place % 3 for place in range(40)]}).to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"zip": [0, 1, 2], "area": ["a", "b", "b"]}).to_csv(tmp_path / "areas.csv", index=False)
    people = discreet.Table(
        str(tmp_path / "p.csv"), rows_per_person=1, groups_per_person=1, columns={"id": int, "zip": (0, 5)}, person="id"
    )
    areas = discreet.Table(str(tmp_path / "areas.csv"), columns={"zip": int, "area": str}, public=True)
    with discreet.Curator({"people": people, "areas": areas}, epsilon=1e9, delta="1e-6") as one:
        yield one


def read(curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are read from now on."""
    texts: list[str] = []
    tree = curator._reading.tree

    def noted(asked: Any) -> Any:
        texts.append(asked.text)
        return tree(asked)

    monkeypatch.setattr(curator._reading, "tree", noted)
    return texts


def test_a_repeat_is_not_read_again(curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = read(curator, monkeypatch)
    question = f"{GROUPS} ORDER BY n LIMIT 1"
    first = curator.ask(question, epsilon=1)
    assert len(texts) == 1
    again = curator.ask(question, epsilon=1)
    assert len(texts) == 1
    assert (again.rows, again.columns) == (first.rows, first.columns)
    assert not again.charged
    assert curator.explain(question, epsilon=1) == curator.explain(question, epsilon=1)
    assert len(texts) == 1
    wanted = {"within": {"n": 3}}
    assert curator.explain(GROUPS, **wanted) == curator.explain(GROUPS, **wanted)  # type: ignore[arg-type]
    assert len(texts) == 2


def test_who_asks_and_what_is_paid_are_part_of_it(curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = read(curator, monkeypatch)
    curator.explain(GROUPS, epsilon=1)
    for said in ({"epsilon": 1.0}, {"epsilon": 2}, {"epsilon": 1, "analyst": "ana"}, {"epsilon": 1, "delta": "1e-9"}):
        curator.explain(GROUPS, **said)  # type: ignore[arg-type]
    assert len(texts) == 5
    with pytest.raises(QuestionError):
        curator.explain(GROUPS, epsilon=True)  # equal to 1, and no price
    with pytest.raises(QuestionError):
        curator.explain(GROUPS, epsilon=1, within={"n": 3})


def test_groups_are_those_of_the_public_table_as_it_is_now(curator: discreet.Curator, tmp_path: Path) -> None:
    question = "SELECT area, COUNT(people.id) AS n FROM areas LEFT JOIN people ON people.zip = areas.zip GROUP BY area"

    def groups() -> set[Any]:
        return {row["area"] for row in curator.ask(question, epsilon=1).rows}

    assert groups() == {"a", "b"}
    pd.DataFrame({"zip": [0, 1, 2], "area": ["a", "b", "c"]}).to_csv(tmp_path / "areas.csv", index=False)
    curator.refresh("areas")
    assert groups() == {"a", "b", "c"}


def test_the_last_ones_are_kept_for_as_much_room_as_there_was() -> None:
    plans = Plans[int]()
    for number in range(MOST + 1):
        plans.keep(number, number)
    assert plans.get(0) is None
    assert plans.get(1) == 1
    plans.keep("another", 7)
    assert (plans.get(1), plans.get(2)) == (1, None)

    def deeper(calls: int) -> int | None:
        return deeper(calls - 1) if calls else plans.get(1)

    assert deeper(20) is None
    assert plans.get(1) == 1
    plans.keep(None, 8)
    assert plans.get(None) is None


def test_amounts_of_one_type_are_alike() -> None:
    assert price_of(1, None, None) == price_of(1, None, None) != price_of(True, None, None)
    assert price_of(Fraction(1), None, None) != price_of(1, None, None)
    assert price_of([1], None, None) is None
    assert price_of(None, None, Within({"n": []})) is None  # type: ignore[dict-item]
