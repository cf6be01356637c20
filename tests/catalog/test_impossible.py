"""Rows that cannot be, as declared."""

from __future__ import annotations

import datetime
from typing import Any

import pandas
import pytest

from discreet.catalog import Declaration, declare
from discreet.catalog.model import Condition
from discreet.errors import DeclarationError

COLUMNS = {
    "sex": {"type": "text", "values": ["F", "M"]},
    "age": {"type": "integer", "min": 0, "max": 120},
    "well": {"type": "boolean"},
    "weight": {"type": "number", "min": 0, "max": 300},
    "kind": {"type": "text", "values": ["a", "b"], "nulls": False},
    "odd": {"type": "text", "values": ["(none)", "b"]},
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


def test_null_is_named_as_in_totals() -> None:
    """None in Python, a word where there is no None; in a column that has the word as a value it is that."""
    rules = declared([{"sex": "F", "age": None}, {"well": "(none)", "sex": ["M", None]}, {"odd": ["(none)", None]}])
    assert rules == (
        (Condition("sex", ("F",)), Condition("age", (None,))),
        (Condition("well", (None,)), Condition("sex", ("M", None))),
        (Condition("odd", ("(none)", None)),),
    )


def test_an_example_is_in_the_language_of_the_declaration() -> None:
    """Also where one mapping stands in another."""
    table = {"source": "t.csv", "one_row_per_person": True, "columns": COLUMNS}
    for raw, toml, python in (
        ({"impossible": "sex"}, "{ age = { max = 15 }, married = [", '{"age": {"max": 15}, "married": ['),
        (
            {"totals": "sex"},
            'totals = [{ by = ["sex"], counts = { Female',
            'totals=[{"by": ["sex"], "counts": {"Female',
        ),
    ):
        for words, in_python in ((toml, False), (python, True)):
            with pytest.raises(DeclarationError) as error:
                declare({"budget": {"epsilon": 1}, "tables": {"t": table | raw}}, python=in_python)
            assert words in error.value.fix
            assert ("true" in error.value.fix.replace("True", "")) is (not in_python and "impossible" in raw)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("sex", "not a valid list of rules"),
        ([{}], "not a valid list of rules"),
        ([{"colour": "red"}], "colour is not declared"),
        ([{"sex": "X"}], "it names a value that is not declared: X → name some of F, M"),
        ([{"sex": []}], "not declared"),
        ([{"sex": "F", "SEX": "M"}], "it names a column twice → name it once"),
        ([{"sex": {"min": 1}}], "a range has min, max or both"),
        ([{"age": {"least": 1}}], "a range has min, max or both"),
        ([{"age": {}}], "a range has min, max or both"),
        ([{"age": {"min": 30, "max": 10}}], "no value of age lies from 30 to 10 → write the smaller one as min"),
        ([{"age": {"min": 130}}], "no value of age lies from 130 to 120 → write one that lies within its bounds"),
        ([{"weight": {"min": 9.5, "max": 0.5}}], "no value of weight lies from 9.5 to 0.5"),
        ([{"age": 130}], "130 lies outside the bounds of age: no row has it → write one within its bounds"),
        ([{"weight": [1.5, -0.5]}], "-0.5 lies outside the bounds of weight"),
        ([{"kind": None}], "kind is declared to have no NULL → leave NULL out"),
        ([{"sex": "F", "kind": ["a", "(none)"]}], "impossible[0].kind: kind is declared to have no NULL"),
        ([{"odd": [None, "(other)"]}], "it names a value that is not declared"),
        ([{"age": "old"}], "not a valid integer"),
        ([{"free": "x"}], "neither values nor bounds"),
        ([{3: "x"}], "3 is not declared"),
    ],
)
def test_faults_are_named(rules: Any, words: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declared(rules)
    assert words in str(error.value)


def typeless(low: object, high: object, said: object) -> Declaration:
    """A column whose source states the type."""
    columns = {"x": {"min": low, "max": high}}
    table = {"source": "t.parquet", "one_row_per_person": True, "columns": columns, "impossible": [{"x": said}]}
    return declare({"budget": {"epsilon": 1}, "tables": {"t": table}})


def test_where_the_source_states_the_type_values_are_not_held_against_bounds() -> None:
    day, moment = datetime.date(2000, 1, 1), datetime.datetime(2001, 1, 1)
    for low, high, said in ((0, 50, 90), (0, 50, [0.5, 90]), (day, day, moment), (moment, moment, day)):
        assert typeless(low, high, said).impossible["t"]


def test_kinds_of_other_libraries_are_those_that_they_are_made_of() -> None:
    early, late = pandas.Timestamp("2000-01-01"), datetime.datetime(2001, 1, 1)
    assert typeless(early, late, {"min": pandas.Timestamp("2000-06-01")}).impossible["t"]
    assert typeless(early, late, [late, early]).impossible["t"]


@pytest.mark.parametrize("said", ["a", [3, "a"], datetime.date(2000, 1, 1), True])
def test_a_value_is_of_the_kind_of_the_bounds_where_the_source_states_the_type(said: object) -> None:
    with pytest.raises(DeclarationError, match="a value is of another kind than the bounds of x"):
        typeless(0, 50, said)


@pytest.mark.parametrize("said", [{"min": "a"}, {"max": datetime.date(2000, 1, 1)}, {"min": 1, "max": "z"}])
def test_a_range_is_of_the_kind_of_the_bounds_where_the_source_states_the_type(said: object) -> None:
    with pytest.raises(DeclarationError, match="the range is of another kind than the bounds of x"):
        typeless(0, 50, said)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, "z"), ("a", 3), (datetime.date(2000, 1, 1), datetime.datetime(2001, 1, 1)), (0.5, datetime.date(2000, 1, 1))],
)
def test_bounds_are_of_one_kind(low: object, high: object) -> None:
    table = {"source": "t.parquet", "one_row_per_person": True, "columns": {"x": {"min": low, "max": high}}}
    with pytest.raises(DeclarationError, match="min and max are of two kinds → write both as numbers"):
        declare({"budget": {"epsilon": 1}, "tables": {"t": table}})
