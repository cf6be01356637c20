"""A small beginning: what importing loads, and that the bare package needs none of the extras."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from face_tools import CLINIC, Data
from page_tools import ROOT

HEAVY = ["duckdb", "numpy", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "sqlglot", "apsw", "rich", "click"]


def extras() -> list[str]:
    """The modules of whatever an extra of the package installs and the package alone does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    def named(lines: Iterable[str]) -> set[str]:
        return {plain(re.split(r"[^A-Za-z0-9_.-]", line)[0]) for line in lines}

    wanted = named(line for lines in project["optional-dependencies"].values() for line in lines)
    wanted -= named(project["dependencies"])
    found = importlib.metadata.packages_distributions().items()
    return sorted(module for module, distributions in found if wanted & set(map(plain, distributions)))


EXTRAS = [*extras(), "scipy"]

BLOCK = f"""
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Blocker())
"""
"""A sitecustomize: in every Python process that finds it, the extras are not installed."""

RELEASE = """
import sys

import discreet

with discreet.open("clinic.toml") as curator:
    release = curator.ask("SELECT city, note, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city, note")
    assert release.rows is not None and release.intervals is not None and release.simultaneous() is not None
    repr(release), release._repr_html_(), release.to_json()
    for form in (release.to_pandas, release.to_polars, release.to_arrow, release.plot):
        try:
            form()
        except discreet.QuestionError as error:
            print(error.code, error.fix)
assert not {extras} & set(sys.modules)
"""


def python(code: str, folder: Path, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    said = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_importing_loads_little(tmp_path: Path) -> None:
    """The name alone brings nothing heavy; the errors can be named at once."""
    code = "import sys, discreet; discreet.BudgetError, discreet.__version__; print(*sys.modules)"
    loaded = set(python(code, tmp_path).split())
    assert "discreet.errors" in loaded
    assert not loaded & set(HEAVY)
    code = "import sys, discreet; discreet.open, discreet.Curator, discreet.Table; print(*sys.modules)"
    late = {"duckdb", "pandas", "polars", "pyarrow", "matplotlib", "scipy", "rich", "uvicorn", "mpyc"}
    late |= {"discreet.learning.model", "discreet.synthesis.run", "discreet.workload.answers"}
    late |= {"discreet.trusted.ring_c.batch", "discreet.trusted.ring_c.training"}
    assert not set(python(code, tmp_path).split()) & late


@pytest.fixture
def bare(data: Data, tmp_path: Path) -> Path:
    """A folder in which Python finds no extra."""
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    (tmp_path / "clinic.toml").write_text(CLINIC, "utf-8")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(BLOCK, "utf-8")
    return tmp_path


def without(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(folder / "without")}


def test_the_extras_are_gone(bare: Path) -> None:
    for extra in EXTRAS:
        with pytest.raises(AssertionError, match="No module named"):
            python(f"import {extra}", bare, **without(bare))


def test_a_release_needs_no_extra(bare: Path) -> None:
    said = python(RELEASE.format(extras=set(EXTRAS)), bare, **without(bare))
    assert said.splitlines() == [
        f'extra run pip install "discreet[{name}]"' for name in ("pandas", "polars", "arrow", "plot")
    ]


@pytest.mark.power
def test_commands_need_no_extra(bare: Path) -> None:
    discreet = Path(sys.executable).with_name("discreet")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | without(bare)
        return subprocess.run(
            [discreet, *arguments], cwd=bare, capture_output=True, text=True, env=environment, check=False
        )

    question = "SELECT COUNT(*) AS n FROM visits"
    assert run("ask", "clinic.toml", question).returncode == 0
    said = run("ask", "clinic.toml", "SELECT SUM(age) AS s FROM visits", "--plot", "x.png")
    assert said.returncode == 2
    assert 'run pip install "discreet[plot]"' in said.stderr
    assert run("ledger", "clinic.toml", "--verify").stdout.count(" committed ") == 1  # the picture was refused unpaid
    said = run("demo")
    assert said.returncode == 0
    assert "No picture" in said.stdout
