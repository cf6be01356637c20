"""Prefixes of short texts: which are told from noise, what follows for the cells, and whole runs over odd rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.catalog import declare
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.synthesis.prefixes import _LETTERS, DEEPEST, MOST_EXTENDED, MOST_PREFIXES, FoundPrefixes, looks_of
from discreet.synthesis.publication import PublishOptions, publication
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_c.coded import _code
from discreet.trusted.ring_c.coding import ListedCells
from kinds import some

CODE = Column("code", Type.TEXT, length=5)
NOTHING = FoundPrefixes(CODE, (), 10.0)


@pytest.mark.parametrize(("length", "looks"), [(None, 0), (13, 0), (12, 3), (4, 3), (3, 2), (1, 0)])
def test_the_declared_length_says_how_often_a_column_is_looked_at(length: int | None, looks: int) -> None:
    assert looks_of(Column("code", Type.TEXT, length=length)) == looks
    assert looks_of(Column("code", Type.INTEGER)) == 0


def counted(found: FoundPrefixes, turn: int, rows: dict[str, int]) -> FoundPrefixes:
    """After a look of these counts, without noise."""
    cells = found.looked_at(turn)
    counts = [0] * cells.size
    for prefix, count in rows.items():
        counts[len(cells.values) + cells.prefixes.index(prefix)] = count
    return found.after(turn, counts)


def test_prefixes_grow_where_they_are_told_from_noise() -> None:
    first = counted(NOTHING, 0, {"C": 500, "9": 900, "A": 25})
    assert first.counts == {"C": 500, "9": 900}  # 25 is less than 3 deviations
    assert {one[0] for one in first.looked_at(1).prefixes} == {"C", "9"}
    second = counted(first, 1, {"C3": 480, "91": 400})
    assert second.cells.prefixes == ("9", "91", "C3")  # of C nothing but noise is left beside C3
    third = counted(second, 2, {"C34": 300})
    assert third.cells.names == ("9*", "91*", "C3*", "C34*", "(other)", "(none)")


def test_values_that_were_found_have_cells_of_their_own() -> None:
    found = FoundPrefixes(CODE, ("C34",), 10.0)
    assert found.looked_at(0).values == ("C34",)
    cells = found.after(0, [999, *[0] * 95, 0, 0]).cells
    assert (cells.values, cells.prefixes, cells.other) == (("C34",), (), True)


def test_a_look_with_nothing_to_go_on_from_counts_the_cells_as_they_stay() -> None:
    """Two letters are told, and no third: the last look is of the cells that the column has in the end."""
    first = counted(FoundPrefixes(CODE, ("C34",), 10.0), 0, {"9": 900})
    second = counted(first, 1, {})
    assert second.looked_at(2) == second.cells
    third = second.after(2, [1000, 880, 5, 3])
    assert third.whole == ((1000, 880, 5, 3),)
    assert third.cells == second.cells


@given(
    st.integers(0, DEEPEST - 1), st.lists(st.text(st.characters(codec="ascii"), min_size=1, max_size=3), max_size=400)
)
def test_no_look_and_no_column_has_more_cells_than_is_said(turn: int, told: list[str]) -> None:
    found = FoundPrefixes(CODE, (), 1.0, dict.fromkeys(told, 100))
    assert len(found.looked_at(turn).prefixes) <= 95 * MOST_EXTENDED
    assert len(found.cells.prefixes) <= MOST_PREFIXES


def declaration(**more: Any) -> Any:
    columns = {"code": {"type": "text", "length": 5}, "name": {"type": "text"}, "well": {"type": "boolean"}}
    table = {"source": "t.csv", "columns": columns, **more}
    return declare({"budget": {"epsilon": 10, "delta": Fraction(1, 10**6)}, "tables": {"t": table}})


@pytest.mark.parametrize("most", [1, 4])
def test_the_batch_has_a_look_for_each_letter_at_the_noise_of_all_rows_of_a_person(most: int) -> None:
    """The unit: a person with so many rows. One look less, or with less noise, would be another batch."""
    more = {"one_row_per_person": True} if most == 1 else {"person": "name", "rows_per_person": most}
    call = publication(declaration(**more), PublishOptions(table="t", epsilon=1, columns=["code", "well"]))
    looks = [part for part in call.schedule.extra_events if not part.keys_delta]
    assert len(looks) == 3
    assert all(part.mu >= most / call.look_sigma for part in looks)
    assert call.steps == len(call.finders) + 3 + len(call.schedule.singles) + len(call.schedule.rounds) + 1


def published(frame: pd.DataFrame, *, epsilon: float = 2, **more: Any) -> Any:
    columns = {"code": {"type": "text", "length": 5}, "well": {"type": "boolean", "nulls": False}}
    said = {"one_row_per_person": True, **more}
    table = discreet.Table(frame, columns=columns | said.pop("columns", {}), **said)
    with discreet.Curator({"t": table}, epsilon=10, delta=1e-5, engine={"memory_gib": 4}) as holder:
        return holder.publish("t", epsilon=epsilon, columns=["code", "well"])


def codes(count: int, seed: int = 1) -> pd.DataFrame:
    """Codes of which each is rare, whose first letters are not and decide the other column."""
    rng = np.random.default_rng(seed)
    first = rng.choice(["10", "11", "C3", "Z9"], count, p=[0.4, 0.3, 0.2, 0.1])
    code = [f"{one}{rest:03d}" for one, rest in zip(first, rng.integers(0, 1000, count), strict=True)]
    return pd.DataFrame({"code": code, "well": (first == "10") ^ (rng.random(count) < 0.05)})


def test_first_letters_of_rare_codes_are_kept_alone_and_beside_another_column() -> None:
    """Before, nothing but (other) was there. Noise of a cell is below 30 rows of 6,000, and a twentieth is mixed up."""
    frame = codes(6000)
    release = published(frame)
    made = release.to_pandas()
    assert set(made.code) <= {*release.domain["code"]}
    known, real = (one.code.str[:2].value_counts(normalize=True) for one in (made, frame))
    assert known.sub(real, fill_value=0).abs().sum() < 0.15
    assert made.well[made.code.str.startswith("10")].mean() > 0.85
    assert made.well[made.code.str.startswith("C3")].mean() < 0.2
    assert any("stand as their first letters and *, as " in one for one in release.bounds)
    assert release.declaration.count("10*") or release.declaration.count("10")


ODD: list[tuple[str, list[Any]]] = [
    ("long", ["x" * 100_000] * 20 + ["y" * 3] * 10),
    ("letters", ["é\u2028", "\x00", "", "𝒳𝒳", "ﷺﷺﷺﷺﷺﷺ", "it's", "%", "*", "(other)"] * 20),
    ("nothing", [None] * 40),
    ("one row", ["C34.1"]),
    ("all different", [f"{place:05d}" for place in range(20_000)]),
    ("one code", ["C34.1"] * 300),
]


@pytest.mark.parametrize(
    "rows", some([rows for _, rows in ODD], pytest.mark.power, quick=2), ids=[name for name, _ in ODD]
)
def test_no_row_makes_it_fail(rows: list[Any]) -> None:
    frame = pd.DataFrame({"code": pd.array(rows, "string"), "well": [True] * len(rows)})
    release = published(frame)
    assert "well" in release.columns
    assert release.to_pandas().well.notna().all()


def test_a_person_with_many_rows_is_told_as_one_with_those_that_count() -> None:
    """600 rows of one person begin with Q. Two of them count, and noise is far above two rows."""
    frame = codes(600).assign(who=[f"p{one}" for one in range(600)])
    greedy = pd.DataFrame({"code": [f"Q{one:04d}" for one in range(600)], "well": True, "who": "greedy"})
    said: dict[str, Any] = {"one_row_per_person": False, "person": "who", "rows_per_person": 2}
    release = published(pd.concat([frame, greedy]), columns={"who": {"type": "text"}}, **said)
    assert not [one for one in release.domain.get("code", []) if one.startswith("Q")]


@pytest.mark.parametrize("heads", [["C", "D", "*", " "], ["C3", "D4", "~ "]])
def test_a_looks_cells_are_found_by_two_short_lists(heads: list[str]) -> None:
    """On the engine, against Python: also of texts that are too short, and of letters that no prefix has. One list of
    thousands would take its time for each row, and another time for rows that are in none."""
    cells = ListedCells(
        CODE, ("C", "C3"), other=True, prefixes=tuple(head + letter for head in heads for letter in _LETTERS)
    )
    values = [
        "",
        "C",
        "C3",
        "C34",
        "D4",
        "D4~x",
        "~ ",
        "~ !",
        "*é",
        "C3\t",
        "\x00",
        "Cé4",
        "C ",
        "  ",
        "* *",
        "c3",
        "D",
    ]
    code = _code(cells, "x", DUCKDB)
    rows = ", ".join(f"({place}, CAST(${place + 1} AS VARCHAR))" for place in range(len(values)))
    with duckdb.connect() as engine:
        found = engine.execute(f"SELECT {code} FROM (VALUES {rows}) AS t(p, x) ORDER BY p", values).fetchall()
    length = len(heads[0]) + 1
    for value, (cell,) in zip(values, found, strict=True):
        places = {one: place for place, one in enumerate(cells.prefixes, len(cells.values))}
        known = {one: place for place, one in enumerate(cells.values)}
        expected = known.get(value, places.get(value[:length], len(known) + len(places)))
        assert cell == expected, value
    assert code.count("'") < 2 * (len(_LETTERS) + 4 * len(heads) + 8)


def test_a_value_that_reads_as_a_prefix_stays_apart() -> None:
    cells = ListedCells(CODE, ("C34*", "D*"), other=True, prefixes=("C34", "D"))
    assert cells.listed == ("C34*", "D*", "C34**", "D**")
    with pytest.raises(ValueError, match="tuple"):
        ListedCells(CODE, (), other=True, prefixes=["C"])  # type: ignore[arg-type]
