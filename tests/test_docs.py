"""Every snippet of README and docs runs, in order, in a folder that holds nothing but what the page says it needs; what
they print is what the pages show (tests/page_tools.py says how that is compared)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from page_tools import CHANGING, PAGES, ROOT, blocks, compared, demonstrated, folder_for, followed


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is there after README's install."""
    return demonstrated(tmp_path_factory.mktemp("install"))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_a_page_shows_what_is_printed(page: Path, demo: Path, tmp_path: Path) -> None:
    for shown in followed(page, folder_for(page, tmp_path, demo)):
        assert not shown.faults, "\n".join([shown.where, *shown.faults])


def test_what_differs_is_found() -> None:
    table = "sex           n\nMale  21,790 ±10\nprice ε 0.5 · about 5 more like this"
    noisy = ("Male {21790} ±10",)
    assert not compared(table, table.replace("21,790", "21,830"), noisy)
    assert compared(table, table.replace("21,790", "21,850"), noisy)  # a run beyond five intervals
    assert compared(table.replace("21,790", "21,815"), table, noisy)  # a page beyond two
    assert compared(table, table.replace("about 5", "about 6"), noisy)
    assert compared(table, table.replace("±10", "±11"), noisy)
    assert compared(table, table.replace("0.5", "0.50"), noisy)
    assert compared(table.replace("sex  ", "sex"), table, noisy)
    assert compared(table, table)  # nothing says what the truth is
    assert not compared("off by 7 of 100 rows", "off by 9 of 100 rows", ("off by {8±3} of 100 rows",))
    assert compared("off by 7 of 100 rows", "off by 9 of 101 rows", ("off by {8±3} of 100 rows",))
    assert compared("off by 7 of 100 rows", "off by 12 of 100 rows", ("off by {8±3} of 100 rows",))


def test_what_changes_from_run_to_run_is_a_short_list() -> None:
    assert len(CHANGING) < 6
    for page in PAGES:
        assert "```sample" not in page.read_text("utf-8")


def test_pages_link_to_what_exists() -> None:
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_page_needs_what_only_the_source_tree_has() -> None:
    """Whoever installed the package has these pages, with the data beside them, and what `discreet demo` leaves."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind in ("python", "console"):
                assert not re.search(r"\b(src|tests|docs)/", block.body), page.name
