"""Public totals, as declared: what is read, and what is refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from discreet.catalog import declare
from discreet.catalog.model import PublicTotal
from discreet.errors import DeclarationError

COLUMNS: dict[str, Any] = {
    "id": {"type": "text", "values": ["one", "two"]},
    "sex": {"type": "text", "values": ["F", "M"]},
    "job": {"type": "integer", "values": [1, 2], "nulls": False},
    "rate": {"type": "number", "values": [0, 0.5], "nulls": False},
    "day": {"type": "date", "values": [datetime.date(2020, 1, 31)], "nulls": False},
    "well": {"type": "boolean"},
    "pregnant": {"type": "boolean", "nulls": False},
    "age": {"type": "integer", "min": 0, "max": 120, "nulls": False},
    "born": {"type": "date", "min": datetime.date(1900, 1, 1), "max": datetime.date(2020, 1, 1), "nulls": False},
    "weight": {"type": "number", "min": 0, "max": 200, "nulls": False},
    "free": {"type": "text"},
    "odd": {"type": "text", "values": ["(none)", "NULL", "ß\U0001f600"]},
}


def declared(totals: Any, impossible: Any = (), **more: Any) -> Any:
    table = {"source": "t.csv", "person": "id", "one_row_per_person": True, "columns": COLUMNS, **more}
    table |= {"impossible": list(impossible), "totals": totals}
    return declare({"budget": {"epsilon": 1}, "tables": {"t": table}}).totals.get("t", ())


def fault(totals: Any, impossible: Any = (), **more: Any) -> str:
    with pytest.raises(DeclarationError) as error:
        declared(totals, impossible, **more)
    return str(error.value)


def by(column: str, **counts: Any) -> dict[str, Any]:
    return {"by": [column], "counts": counts}


SEX = by("sex", F=3, M=4)
PREGNANT = {"by": ["pregnant"], "counts": {"true": 4, "false": 3}}


def test_totals_are_read() -> None:
    """Keys are words, as in TOML, or values, as in Python; NULL may be left out; columns stand as they are declared."""
    both = {"by": ["JOB", "sex"], "counts": {"1": {"F": 1, "M": 2}, 2: {"F": 1, "M": 1, "(none)": 2}}}
    assert declared([SEX, {"by": ["well"], "counts": {True: 5, "false": 2}}]) == (
        PublicTotal(("sex",), (3, 4, 0)),
        PublicTotal(("well",), (2, 5, 0)),
    )
    assert declared([both]) == (PublicTotal(("sex", "job"), (1, 1, 2, 1, 0, 2)),)
    assert declared([{"by": ["rate"], "counts": {0: np.int64(1), 0.5: 2}}]) == (PublicTotal(("rate",), (1, 2)),)
    assert declared([{"by": ["rate"], "counts": {"0": 1, 0.5: 2}}]) == (PublicTotal(("rate",), (1, 2)),)
    day = {"by": ["day"], "counts": {"2020-01-31": 5}}
    assert declared([day]) == (PublicTotal(("day",), (5,)),)
    assert declared([{**day, "counts": {datetime.date(2020, 1, 31): 5}}]) == (PublicTotal(("day",), (5,)),)


def test_null_and_the_words_for_it() -> None:
    """Where "(none)" is a value, that is what it means, and None is NULL."""
    counts = {"(none)": 1, "NULL": 2, "ß\U0001f600": 3, None: 4}
    assert declared([{"by": ["odd"], "counts": counts}]) == (PublicTotal(("odd",), (1, 2, 3, 4)),)
    assert declared([{"by": ["sex"], "counts": {"F": 1, "M": 0, "(none)": 6}}]) == (PublicTotal(("sex",), (1, 0, 6)),)


FAULTS: list[tuple[Any, str]] = [
    ("sex", "not a valid list of totals"),
    ([{"by": ["sex"]}], "not a valid list of totals"),
    ([{**SEX, "more": 1}], "not a valid list of totals"),
    ([by("colour", red=1)], "colour is not declared"),
    ([by("id", one=1, two=1)], "id names the person"),
    ([by("free", x=1)], "the values of free are not declared"),
    ([by("age", x=1)], "the values of age are not declared"),
    ([{"by": "sex", "counts": {}}], "one column or two"),
    ([{"by": ["sex", "job", "well"], "counts": {}}], "one column or two"),
    ([{"by": [], "counts": {}}], "one column or two"),
    ([{"by": ["sex", "SEX"], "counts": {}}], "names a column twice"),
    ([by("sex", F=3)], 'no count for M → write "M" = 0'),
    ([by("sex", F=3, M=4, X=1)], "X is no declared value of sex"),
    ([{"by": ["job"], "counts": {1: 3, 2: 4, "(none)": 1}}], "(none) is no declared value of job"),
    ([{"by": ["job"], "counts": {1: 3, "1": 4, 2: 4}}], "1 is there twice"),
    ([by("sex", F=3, M=-1)], "not a whole number of rows"),
    ([by("sex", F=3, M=1.5)], "not a whole number of rows"),
    ([by("sex", F=3, M=True)], "not a whole number of rows"),
    ([by("sex", F=3, M={"1": 2})], "not a whole number of rows"),
    ([{"by": ["sex", "job"], "counts": {"F": 3, "M": 4}}], "a count for each value of job"),
    ([{"by": ["sex", "job"], "counts": {"F": {"1": 3}, "M": {"1": 1, "2": 0}}}], "no count for 2"),
    ([by("sex", F=0, M=0)], "they are of 0 rows"),
    ([by("sex", F=10**7, M=1)], "they are of 10,000,001 rows"),
    ([SEX, by("job", **{"1": 3, "2": 5})], "by sex there are 7 rows, by job 8"),
    ([SEX, SEX], "two totals are by sex"),
    ([SEX, {"by": ["job", "sex"], "counts": {1: {"F": 2, "M": 2}, 2: {"F": 2, "M": 1}}}], "of F there are 4 rows by"),
]


@pytest.mark.parametrize(("totals", "words"), FAULTS)
def test_faults_are_named(totals: Any, words: str) -> None:
    assert words in fault(totals)


def test_totals_of_a_public_table_are_refused() -> None:
    assert "about people" in fault([SEX], person=None, one_row_per_person=False, public=True)


CONTRADICTIONS: list[tuple[Any, Any, str]] = [
    ([SEX], [{"sex": "M"}], "4 rows are M, which is impossible"),
    (
        [{"by": ["sex", "job"], "counts": {"F": {1: 2, 2: 1}, "M": {1: 4, 2: 0}}}],
        [{"job": 1, "sex": "M"}],
        "4 rows are M, 1",
    ),
    ([SEX, PREGNANT], [{"sex": "M", "pregnant": True}], "no table can be found"),
    ([SEX], [{"sex": "M", "age": {"max": 50}}, {"sex": ["M"], "age": {"min": 51}}], "no table can be found"),
    (
        [SEX],
        [
            {"sex": "M", "born": {"max": datetime.date(1950, 5, 5)}},
            {"sex": "M", "born": {"min": datetime.date(1950, 5, 6)}},
        ],
        "no table can be found",
    ),
    ([SEX], [{"sex": "M", "weight": {"max": 80}}, {"sex": "M", "weight": {"min": 80}}], "no table can be found"),
    ([SEX], [{"sex": "M", "job": [1, 2]}], "no table can be found"),
    ([{**SEX, "counts": {"F": 1, "M": 2, "(none)": 3}}], [{"sex": None}], "3 rows are (none), which is impossible"),
    ([SEX], [{"sex": "M", "well": [True, False]}, {"sex": "M", "well": None}], "no table can be found"),
    # of three pairs, each two agree: what they say of the third follows
    (
        [
            {"by": ["sex", "job"], "counts": {"F": {1: 1, 2: 0}, "M": {1: 0, 2: 1}}},
            {"by": ["job", "pregnant"], "counts": {1: {True: 1, False: 0}, 2: {True: 0, False: 1}}},
            {"by": ["sex", "pregnant"], "counts": {"F": {True: 0, False: 1}, "M": {True: 1, False: 0}}},
        ],
        [],
        "no table can be found that has all of these totals →",
    ),
]


@pytest.mark.parametrize(("totals", "impossible", "words"), CONTRADICTIONS)
def test_totals_that_nothing_possible_has_are_refused(totals: Any, impossible: Any, words: str) -> None:
    assert words in fault(totals, impossible)


def test_null_of_a_column_with_bounds_is_the_last_way_out() -> None:
    columns = {**COLUMNS, "weight": {"type": "number", "min": 0, "max": 200}}
    rules = [{"sex": "M", "weight": {"max": 80}}, {"sex": "M", "weight": {"min": 80}}]
    assert declared([SEX], rules, columns=columns)
    assert "no table can be found" in fault([SEX], [*rules, {"sex": "M", "weight": None}], columns=columns)
    assert declared([SEX], [{"sex": "M", "weight": [None, 7]}], columns=columns)


POSSIBLE: list[tuple[Any, Any]] = [
    ([SEX], [{"sex": "M", "well": [True, False]}]),
    ([SEX, {**PREGNANT, "counts": {True: 3, False: 4}}], [{"sex": "M", "pregnant": True}]),
    ([SEX], [{"sex": "M", "age": {"max": 50}}, {"sex": "M", "age": {"min": 52}}]),
    (
        [SEX],
        [
            {"sex": "M", "born": {"max": datetime.date(1950, 5, 5)}},
            {"sex": "M", "born": {"min": datetime.date(1950, 5, 7)}},
        ],
    ),
    ([SEX], [{"sex": "M", "weight": {"max": 80}}, {"sex": "M", "weight": {"min": 80.5}}]),
    ([SEX], [{"sex": "M", "well": [True, False]}]),  # it may be NULL
    ([SEX], [{"free": "x"}][:0]),
]


@pytest.mark.parametrize(("totals", "impossible"), POSSIBLE)
def test_totals_that_something_possible_has_are_taken(totals: Any, impossible: Any) -> None:
    assert declared(totals, impossible)


def test_what_cannot_be_solved_is_said_to_be_too_large() -> None:
    values = [f"v{place}" for place in range(250)]
    columns = {**COLUMNS, **{name: {"type": "text", "values": values, "nulls": False} for name in "xy"}}
    large = [by(name, **dict.fromkeys(values, 1)) for name in "xy"]
    rules = [{"x": f"v{place}", "y": f"v{place}"} for place in range(250)]
    assert "62,500 cells, above 50,000" in fault(large, rules, columns=columns)
    pairs = {"by": ["x", "y"], "counts": {}}
    assert "62,500 counts, above 20,000" in fault([pairs], columns=columns)


def test_in_python_the_remedy_is_in_its_words() -> None:
    table = {"source": "t.csv", "one_row_per_person": True, "columns": COLUMNS, "totals": "sex"}
    with pytest.raises(DeclarationError, match=r'totals=\[\{"by": \["sex"\], "counts": \{"Female": 10771') as error:
        declare({"budget": {"epsilon": 1}, "tables": {"t": table}}, python=True)
    assert "counts =" not in str(error.value)
