"""What a terminal shows: bold heads, lines broken at words, columns below each other; a pipe gets plain text."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

NAMES = ["emergency 急診", "e\u0301cole", "😀", "x" * 80, "plain"]
QUESTION = "SELECT unit, COUNT(*) AS n FROM visits GROUP BY unit"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("screen")
    (found / "visits.csv").write_text("\n".join(["unit", *NAMES * 50]), "utf-8")
    listed = ", ".join(f'"{name}"' for name in NAMES)
    (found / "clinic.toml").write_text(
        "[budget]\nepsilon = 50.0\ndelta = 1e-6\n[tables.visits]\nsource = 'visits.csv'\none_row_per_person = true\n"
        f"[tables.visits.columns]\nunit = {{ type = 'text', values = [{listed}], nulls = false }}\n",
        "utf-8",
    )
    return found


ASKED = ("ask", "clinic.toml", QUESTION, "--epsilon", "1")


@cache
def seen(folder: Path, columns: int, words: Sequence[str] = ASKED, **more: str) -> list[str]:
    """The lines that a command writes to a terminal of this width; of `discreet ask`, what is no error. It is run
    once."""
    main, child = pty.openpty()
    command = [sys.executable, "-c", "from discreet.cli import run; run()", *words]
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm", **more}
    errors = subprocess.DEVNULL if words is ASKED else child
    with subprocess.Popen(command, cwd=folder, stdout=child, stderr=errors, env=environment):
        os.close(child)
        said = b""
        while True:
            try:
                piece = os.read(main, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            said += piece
    os.close(main)
    return said.decode().replace("\r\n", "\n").splitlines()


def test_a_terminal_gets_emphasis_and_lines_broken_at_words(folder: Path) -> None:
    wide, narrow = seen(folder, 200), seen(folder, 80)
    assert wide[0] == narrow[0]
    assert narrow[0].startswith("\x1b[1munit ")
    rows = narrow[1 : 1 + len(NAMES)]
    assert len({cell_len(row) for row in rows}) == 1  # however wide the letters are
    assert any(row.startswith("x" * 59 + "… ") for row in rows)
    below = narrow[1 + len(NAMES) :]
    assert below[0].startswith("\x1b[2mprice ε 1")
    assert below[-1].endswith("\x1b[0m")
    plain = [line.replace("\x1b[2m", "").replace("\x1b[0m", "") for line in below]
    plain = [line for line in plain if NAMES[3] not in line]  # a word that is longer than a line stays whole
    assert max(map(cell_len, plain)) <= 80 < max(map(len, wide[1 + len(NAMES) :]))
    assert any(line.startswith("  ") for line in plain)


def test_the_ledger_and_errors_keep_to_the_width(folder: Path) -> None:
    seen(folder, 80)
    narrow, wide = (seen(folder, columns, ("ledger", "clinic.toml")) for columns in (80, 200))
    assert max(map(cell_len, narrow[:-1])) <= 80  # the last is a hash
    assert narrow[-2].endswith("…")
    assert wide[-2].endswith(QUESTION)
    said = seen(folder, 60, ("estimate", "none.duckdb"))
    assert len(said) == 2
    assert max(map(len, said)) <= 60
    assert said[1].startswith("  ")


def test_no_colour_and_a_pipe_get_plain_text(folder: Path) -> None:
    assert not any(
        "\x1b" in line for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}) for line in seen(folder, 80, **more)
    )
    command = [sys.executable, "-c", "from discreet.cli import run; run()", "ask", "clinic.toml", QUESTION]
    said = subprocess.run([*command, "--epsilon", "1"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in said
    assert len(next(line for line in said.splitlines() if line.startswith("price "))) > 80
