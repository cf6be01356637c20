"""Every snippet of README and docs runs, in order, in a directory of its own; sessions print what the pages show.

Noise differs from run to run, so numbers are compared as `#`, and runs of blanks as one. What a Python snippet prints
stands in a block behind it: `text` is compared with every digit, `sample` is one draw, with numbers as `#`.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from discreet.cli.demo import unpacked

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text("utf-8"))]


def masked(text: str) -> str:
    return blanks(re.sub(r"[-−]?\d[\d,.]*(e[-+]?\d+)?", "#", text))


def blanks(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text).strip()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unpacked(tmp_path)  # as `discreet demo` leaves it
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    names: dict[str, object] = {}
    printed = io.StringIO()
    for kind, body in blocks(page):
        if kind == "toml":
            (tmp_path / body.splitlines()[0].removeprefix("# ")).write_text(body, "utf-8")
        elif kind == "python":
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(body, str(page), "exec"), names)
        elif kind == "text":
            assert blanks(printed.getvalue()) == blanks(body)
        elif kind == "sample":
            assert masked(printed.getvalue()) == masked(body)
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


def test_no_page_needs_what_only_the_source_tree_has() -> None:
    """Whoever installed the package has these pages, with the data beside them, and what `discreet demo` leaves."""
    for page in PAGES:
        for kind, body in blocks(page):
            assert kind not in ("python", "console") or not re.search(r"\b(src|tests)/", body), page.name
