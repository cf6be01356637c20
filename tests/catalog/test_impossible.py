"""Rows that cannot be, as declared."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.catalog import declare
from discreet.catalog.model import Condition
from discreet.errors import DeclarationError

COLUMNS = {
    "sex": {"type": "text", "values": ["F", "M"]},
    "age": {"type": "integer", "min": 0, "max": 120},
    "well": {"type": "boolean"},
    "free": {"type": "text"},
}


def declared(rules: Any) -> Any:
    table = {"source": "t.csv", "one_row_per_person": True, "columns": COLUMNS, "impossible": rules}
    return declare({"budget": {"epsilon": 1}, "tables": {"t": table}}).impossible.get("t", ())


def test_rules_are_read() -> None:
    rules = declared([{"SEX": "M", "well": True}, {"age": {"max": 15}, "sex": ["F", "M"]}, {"age": 3}])
    assert rules == (
        (Condition("sex", ("M",)), Condition("well", (True,))),
        (Condition("age", None, 0, 15), Condition("sex", ("F", "M"))),
        (Condition("age", (3,)),),
    )


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("sex", "not a valid list of rules"),
        ([{}], "not a valid list of rules"),
        ([{"colour": "red"}], "colour is not declared"),
        ([{"sex": "X"}], "not declared"),
        ([{"sex": []}], "not declared"),
        ([{"sex": {"min": 1}}], "a range is"),
        ([{"age": {"least": 1}}], "a range is"),
        ([{"age": {}}], "a range is"),
        ([{"age": "old"}], "not a valid integer"),
        ([{"free": "x"}], "neither values nor bounds"),
        ([{3: "x"}], "3 is not declared"),
    ],
)
def test_faults_are_named(rules: Any, words: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declared(rules)
    assert words in str(error.value)
