"""The bar goes to a terminal, and counts public steps; elsewhere nothing is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from learning_tools import curator

PROGRAM = """
import time
from discreet.procedures.progress import progress
with progress("steps", 3) as tell:
    for step in range(3):
        tell(step + 1)
        time.sleep(0.2)
"""


def test_a_terminal_sees_the_steps(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", PROGRAM], stderr=theirs, stdout=out, check=True, timeout=300)
    os.close(theirs)
    seen = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "steps" in seen
    assert "100%" in seen
    assert (tmp_path / "out").read_bytes() == b""


def test_elsewhere_nothing_is_written() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, timeout=300)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_training_tells_each_step() -> None:
    from learning_tools import planned

    told: list[int] = []
    with curator([{"p": "a", "v": 1.0, "y": "no"}]) as one:
        planned(one, steps=4).measurement(told.append).draw(one._engine)
    assert told == [1, 2, 3, 4]


NOTEBOOK = """
import sys, types
shell = types.SimpleNamespace(kernel=object())
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
from discreet.procedures import progress
progress.SECONDS = 0
with progress.progress("steps", 3) as tell:
    for step in range(3):
        tell(step + 1)
with progress.progress("loading visits"):
    pass
"""


def test_a_notebook_sees_a_line() -> None:
    """A kernel's errors go to the cell, and to no terminal."""
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, check=True, timeout=300, text=False)
    lines = [line.strip() for line in done.stderr.decode().split("\r")]
    assert (
        lines
        == ["", "steps: 1 of 3", "steps: 2 of 3", "steps: 3 of 3", "", "", "loading visits …", "", ""][: len(lines)]
    )
    assert "steps: 3 of 3" in lines
    assert "loading visits …" in lines
    assert done.stdout == b""
