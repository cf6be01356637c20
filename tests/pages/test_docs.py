"""Every snippet of README and docs runs, in order, in a folder that holds nothing but what the page says it needs; what
they print is what the pages show (tests/lib/page_tools.py says how that is compared)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import discreet
from kinds import some
from page_tools import CHANGING, PAGES, ROOT, blocks, compared, demonstrated, folder_for, followed


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is there after README's install."""
    return demonstrated(tmp_path_factory.mktemp("install"))


@pytest.mark.parametrize(
    "page",
    some(
        sorted((page for page in PAGES if blocks(page)), key=lambda page: page.stem != "workloads"), pytest.mark.outside
    ),
    ids=lambda page: page.stem,
)
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


def links(page: Path) -> list[Path]:
    """What a page links to, beside what is in it."""
    return [(page.parent / to).resolve() for to in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))]


def test_pages_link_to_what_exists() -> None:
    for page in {*PAGES, *ROOT.glob("*.md")}:
        for target in links(page):
            assert target.exists(), f"{page.name}: {target}"


def test_every_page_is_reached_from_the_first() -> None:
    reached, new = set(), {ROOT / "README.md"}
    while new:
        reached |= new
        new = {to for page in new for to in links(page) if to.suffix == ".md"} - reached
        new |= {to / "README.md" for page in reached for to in links(page) if (to / "README.md").is_file()} - reached
    assert {*PAGES, *ROOT.glob("*.md")} <= reached


@pytest.mark.outside
def test_a_wheel_has_the_pages(tmp_path: Path) -> None:
    """Its `--help` names the first of them, and they link to each other; links to code are for a clone. Its demo leaves
    the data."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"discreet-{discreet.__version__}-")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    said, _ = (
        subprocess.run(
            [sys.executable, "-m", "discreet", *command],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for command in (["--help"], ["demo", "--output", "out"])
    )
    assert {"adult.csv", "patients.csv", "conditions.csv", "names.csv", "demo.toml"} <= set(
        os.listdir(tmp_path / "out")
    )
    first = installed / "discreet" / "README.md"
    assert str(first) in said
    for page in [first, *(first.parent / "docs").rglob("*.md")]:
        for target in links(page):
            code = page.name in ("map.md", "theorems.md") and {"src", "tests"} & set(target.parts)
            assert target.exists() or code, f"{page.name}: {target}"


def test_the_version_is_the_newest_of_the_changelog() -> None:
    """One that is not released yet says so in both places."""
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1].replace(" (unreleased)", ".dev0") == discreet.__version__


def test_contributing_names_files_that_exist() -> None:
    named = re.findall(
        r"`((?:src|tests|requirements|docs|build)/[\w./]*)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    )
    assert len(named) > 40
    for name in named:
        assert (ROOT / name).exists() or name.startswith("build/"), name


def test_the_glossary_has_each_term_once() -> None:
    """In the order of the alphabet, and in one or two sentences."""
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)[1:]
    terms = [term.casefold() for term, _ in rows]
    assert terms == sorted(set(terms))
    assert len(terms) > 70
    for term, meaning in rows:
        assert 1 <= len(re.findall(r"[.](?: |$)", meaning)) <= 2, term


@pytest.mark.outside
def test_the_reference_has_what_users_meet(tmp_path: Path) -> None:
    """`make docs` writes it. Inherited methods stand with the class that a user has."""
    script = ROOT / "tests" / "lib" / "reference_pages.py"
    subprocess.run([sys.executable, "-W", "error", str(script), str(tmp_path)], check=True, capture_output=True)
    for module in ("discreet", "discreet.local", "discreet.together", "discreet.mechanisms", "discreet.accounting"):
        text = (tmp_path / f"{module.replace('.', '/')}.html").read_text("utf-8")
        for name in import_module(module).__all__:
            assert f'id="{name}"' in text, f"{module}.{name}"
    text = (tmp_path / "discreet.html").read_text("utf-8")
    for name in ("Curator.ask", "Curator.__init__", "Release.to_pandas", "Table.__init__"):
        assert f'id="{name}"' in text, name
    assert "_balance" not in text


def test_no_page_needs_what_only_the_source_tree_has() -> None:
    """Whoever installed the package has these pages, with the data beside them, and what `discreet demo` leaves."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind in ("python", "console"):
                assert not re.search(r"\b(src|tests|docs)/", block.body), page.name
