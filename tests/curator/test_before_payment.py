"""What can be known before a row is read is said before anything is paid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas
import pytest

import discreet
from discreet.ledger import TOTAL
from shop_tools import curator

WHOLE = {"type": "integer"}


def below(frames: int, make: Callable[[], Any]) -> Any:
    """What `make` gives, called from that many frames further down."""
    return make() if frames == 0 else below(frames - 1, make)


def nested(levels: int, condition: str) -> str:
    text = f"SELECT cust, total FROM orders WHERE {condition}"
    for level in range(levels):
        text = f"SELECT cust, SUM(total) AS total FROM ({text}) WHERE total > {level} GROUP BY cust HAVING COUNT(*) > 0"
    return f"SELECT COUNT(*) FROM ({text})"


def test_what_is_nested_too_deeply_is_refused_before_it_is_paid() -> None:
    """SELECTs in SELECTs, around conditions of many ORs, asked from deep inside a program: an answer or a refusal."""
    outcomes = set()
    with curator({}) as one:
        for frames in (120,):
            for levels in (2, 8, 40):
                for condition in ("total > 0", " OR ".join(["total = 1"] * 95)):
                    text = f"{nested(levels, condition)} LIMIT {levels + frames + 1}"
                    before = one.ledger.filter(TOTAL).spent
                    try:
                        below(frames, lambda text=text: one.ask(text, epsilon=1))  # type: ignore[misc]
                    except discreet.QuestionError as refusal:
                        outcomes.add(refusal.code)
                        assert one.ledger.filter(TOTAL).spent == before
                    else:
                        outcomes.add("answered")
    assert outcomes == {"answered", "syntax", "too-long"}


def test_what_is_planned_anew_while_it_is_measured_had_room_before_it_was_paid() -> None:
    """A question whose bounds are found is planned again further down than it was tried. Asked from ever deeper inside
    a program: answers, then refusals for nothing."""
    table = discreet.Table(
        pandas.DataFrame({"p": range(50), "x": [float(x) for x in range(50)]}),
        person="p",
        one_row_per_person=True,
        columns={"p": int, "x": float},
    )
    outcomes = []
    with discreet.Curator({"t": table}, epsilon=10**6) as one:
        for frames in range(30, 960, 60):
            before = one.ledger.filter(TOTAL).spent
            text = f"SELECT AVG(ABS(ABS(x))) FROM t LIMIT {frames}"
            try:
                below(frames, lambda text=text: one.ask(text, epsilon=1))  # type: ignore[misc]
            except discreet.QuestionError:
                assert one.ledger.filter(TOTAL).spent == before
                outcomes.append("refused")
            else:
                outcomes.append("answered")
    assert sorted(set(outcomes)) == ["answered", "refused"]
    assert outcomes == sorted(outcomes)


def test_a_key_that_leads_to_a_person_is_not_taken_for_the_person() -> None:
    """A model or a block of a table along a foreign key would count each order as a person of its own."""
    with curator({}) as one:
        with pytest.raises(discreet.QuestionError, match="foreign key"):
            one.fit("lines", target="qty", features=["qty"], model="linear", epsilon=1)
        with pytest.raises(discreet.QuestionError, match="foreign key"):
            one.sample_and_aggregate(len, "lines", low=0, high=1, epsilon=1)


def test_a_foreign_key_of_another_type_is_refused_when_the_source_states_it() -> None:
    """A text that is no number would fail beside a number, in some rows and not in others."""
    tables = {
        "orders": discreet.Table(
            pandas.DataFrame({"oid": ["1", "x"], "cust": [1, 2]}).astype({"oid": "string"}),
            person="cust",
            rows_per_person=3,
            columns={"oid": None, "cust": WHOLE},
        ),
        "lines": discreet.Table(
            pandas.DataFrame({"oid": [1, 2]}),
            person="oid -> orders.oid",
            rows_per_person=3,
            columns={"oid": WHOLE},
        ),
    }
    with pytest.raises(discreet.DeclarationError, match="declare both with one type"):
        discreet.Curator(tables, epsilon=1)
