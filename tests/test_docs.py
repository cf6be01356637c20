"""Every snippet of README and docs runs, in order, in a directory of its own; sessions print what the pages show.

Noise differs from run to run, so numbers are compared as `#`, and runs of blanks as one.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text("utf-8"))]


def masked(text: str) -> str:
    text = re.sub(r"[-−]?\d[\d,.]*(e[-+]?\d+)?", "#", text)
    return re.sub(r"[ \t]+", " ", text).strip()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for name in ("patients.csv", "conditions.csv"):
        with gzip.open(ROOT / "tests" / "data" / f"{name}.gz") as packed, (tmp_path / name).open("wb") as file:
            shutil.copyfileobj(packed, file)
    names: dict[str, object] = {}
    for kind, body in blocks(page):
        if kind == "toml":
            (tmp_path / body.splitlines()[0].removeprefix("# ")).write_text(body, "utf-8")
        elif kind == "python":
            exec(compile(body, str(page), "exec"), names)
        elif kind == "console":
            session(body)


def session(body: str) -> None:
    """Runs the lines after `$`, and compares what they print with the lines that follow."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode in (0, 2, 3), done.stderr
        printed = done.stdout + done.stderr
        assert masked(printed) == masked(shown), f"{command}\n{printed}"


def test_pages_link_to_what_exists() -> None:
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
