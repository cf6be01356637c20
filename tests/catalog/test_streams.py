"""Streams as they are declared: what is read, and every fault at once."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.catalog import read
from discreet.errors import DeclarationError
from stream_tools import declaration

KIND = "exact"


def declared(folder: Path, text: str) -> Any:
    (folder / "clinic.toml").write_text(text)
    return read(folder / "clinic.toml")


def test_what_is_declared_is_read(tmp_path: Path) -> None:
    stream = declared(tmp_path, declaration(every="2 weeks", keys=["WARD"], table="Visits", date="DAY")).streams[
        "daily"
    ]
    assert (stream.name, stream.table, stream.date, stream.keys) == ("daily", "visits", "day", ("ward",))
    assert (stream.days, stream.horizon, stream.rows, stream.periods) == (14, 8, 2, 3)
    assert (stream.epsilon, stream.delta) == (1, Fraction(1, 10**7))
    assert stream.key == tmp_path / "keys" / "daily.key"
    assert stream.until(0) == datetime.date(2026, 1, 14)
    first = datetime.date(2026, 1, 1)
    over = [stream.over(first + datetime.timedelta(days)) for days in (-9, 0, 13, 14, 15, 28, 9_999)]
    assert over == [0, 0, 0, 1, 1, 2, 8]


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"table": "nobody"}, "table"),
        ({"table": None}, "table"),
        ({"date": "ward"}, "date"),
        ({"date": "patient"}, "date"),
        ({"date": None}, "date"),
        ({"keys": ["note"]}, "keys"),
        ({"keys": ["ward", "ward"]}, "keys"),
        ({"keys": ["day"]}, "keys"),
        ({"keys": "ward"}, "keys"),
        ({"start": "2026-01-01"}, "start"),
        ({"start": None}, "start"),
        ({"every": "1 month"}, "every"),
        ({"every": "0 days"}, "every"),
        ({"every": 1}, "every"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 10_001}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"start": datetime.date(9_999, 12, 30)}, "horizon"),
        ({"rows_per_period": None}, "rows_per_period"),
        ({"periods_per_person": 9}, "periods_per_person"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 6}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1e-6}, "delta"),
        ({"delta": None}, "delta"),
        ({"key": None}, "key"),
        ({"key": "daily.key"}, "key"),
        ({"key": "keys/../daily.key"}, "key"),
        ({"windows": [7]}, "windows"),
        ({"patient": "number"}, "table"),
    ],
    ids=repr,
)
def test_each_fault_is_named_where_it_stands(tmp_path: Path, said: dict[str, Any], where: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, declaration(**said))
    assert f"streams.daily.{where}" in [fault.where for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[streams.daily]", '[streams."no name"]', "name has letters"),
        ("epsilon = 5.0", 'epsilon = 5.0\nperiod = "1 month"\nrenews = "everybody"', "this budget renews"),
        ("delta = 1e-6", "delta = 0", "δ of the whole horizon"),
        ('person = "patient"\nrows_per_person = 50', "one_row_per_person = true", "knows each person again"),
        ("[streams.daily]\n", "streams.daily = 3\n[streams.other]\n", "must be a table"),
    ],
)
def test_what_does_not_go_with_the_rest(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = declaration().replace(old, new, 1)
    if "streams.daily = 3" in text:
        text = "streams.daily = 3\n" + text.replace("streams.daily = 3\n", "").replace(
            "[streams.other]", "[streams.other]"
        )
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, text)
    assert words in str(caught.value)


def test_a_file_without_streams_has_none(tmp_path: Path) -> None:
    assert declared(tmp_path, declaration().partition("[streams")[0]).streams == {}
