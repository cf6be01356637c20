"""The table of theorems: it names what exists, its numbers are those that the code gives, none exceeds its bound."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from measure import END, PAGE, START, Row, rows, table
from scipy import stats

from theory_tools import ROOT, SMALLEST

KIND = "exact"

DRAWS = re.compile(r" of ([\d,]+) draws$")
LINK = re.compile(r"\[`(.+?)`\]\((.+?)\)")


def written() -> list[list[str]]:
    """The cells of the page's table, without its head."""
    between = PAGE.read_text("utf-8").split(START)[1].split(END)[0]
    lines = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in between.strip().splitlines()]
    return lines[2:]


def named(cell: str) -> Any:
    """What a cell with a link names in the code."""
    name, path = LINK.fullmatch(cell).groups()  # type: ignore[union-attr]
    file = (PAGE.parent / path).resolve()
    found: Any = import_module(".".join(file.relative_to(ROOT / "src").with_suffix("").parts))
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    return list(rows(quick=True))


def test_every_line_names_a_function_and_a_test_that_exist() -> None:
    assert len(written()) >= 25
    for _, _, function, tests, _, _ in written():
        assert callable(named(function))
        _, path = LINK.fullmatch(tests).groups()  # type: ignore[union-attr]
        assert "def test_" in (PAGE.parent / path).read_text("utf-8")


def test_no_written_measure_exceeds_its_bound() -> None:
    for theorem, *_, bound, found in written():
        assert float(DRAWS.sub("", found)) <= float(bound.rsplit(" = ", 1)[1]), theorem


def test_the_page_shows_what_is_measured(measured: list[Row]) -> None:
    """To the last digit where nothing is drawn or transformed; elsewhere the theorem and its bound."""
    new = [line.strip("| ") for line in table(measured).splitlines()[2:]]
    for row, line, cells in zip(measured, new, written(), strict=True):
        again = re.split(r" (?<!\\)\| ", line)
        if row.draws or row.rough:
            assert (again[0], again[2], again[4]) == (cells[0], cells[2], cells[4])
        else:
            assert again == cells


def test_no_measure_exceeds_its_bound(measured: list[Row]) -> None:
    """Of draws, more than the bound allows may go wrong, but not so many that it happens once in a million runs."""
    for row in measured:
        if row.draws:
            wrong = round(row.measured * row.draws)
            assert stats.binom.sf(wrong - 1, row.draws, row.bound) > SMALLEST, row.theorem
        else:
            assert row.measured <= row.bound * (1 + 1e-12), row.theorem


def test_every_construction_names_a_function_and_the_tests_that_hold_it() -> None:
    between = PAGE.read_text("utf-8").split("<!-- constructions -->")[1].split("<!-- end of the constructions -->")[0]
    lines = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in between.strip().splitlines()][2:]
    assert {"Prop. 4.4", "Thm 4.14", "Thm 4.15", "Thm 6.1", "Thm 6.6", "Thm 6.7", "Thm 6.8"} <= {
        one for one, *_ in lines
    }
    for _, _, function, test in lines:
        assert callable(named(function)) or isinstance(named(function), property)
        name, path = LINK.fullmatch(test).groups()  # type: ignore[union-attr]
        assert f"\ndef {name}(" in (PAGE.parent / path).read_text("utf-8"), name
