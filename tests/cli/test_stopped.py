"""Ctrl-C, at whatever moment: one line, no traceback, no process that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kinds import some
from waiting import until

PRESSED = """
import os, signal, sys, threading
from discreet.__main__ import run
pressed = threading.Timer(float(sys.argv.pop(1)), os.kill, (os.getpid(), signal.SIGINT))
pressed.daemon = True
pressed.start()
run()
"""

ASKED = ("ask", "clinic.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")
MOMENTS = [(ASKED, tenths / 10) for tenths in (1, 5, 8, 2, 3, 4, 6, 7, 9, 10, 12, 14)]
MOMENTS += [(("demo",), tenths / 10) for tenths in range(2, 40, 3)]
NOTES = ("is a new ledger", "once this is charged, tables can be published")
"""What ASKED says when nobody stops it."""


def servers(curator: int) -> list[str]:
    """The processes that were started to fork the children of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode()
        except OSError:  # it has just ended
            continue
        if f"main({curator}, " in words:
            found.append(words)
    return found


@pytest.mark.parametrize(("words", "seconds"), some(MOMENTS, pytest.mark.storm, quick=3))
def test_ctrl_c_says_one_line_and_leaves_no_process(words: tuple[str, ...], seconds: float, clinic: Path) -> None:
    """So many seconds after the command can hear it: while modules are loaded, tables, the engine, or while it asks."""
    with subprocess.Popen(
        [sys.executable, "-c", PRESSED, str(seconds), *words],
        cwd=clinic.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        _, said = command.communicate()
    lines = [line for line in said.splitlines() if line and not any(note in line for note in NOTES)]
    if command.returncode == 0:  # it was done before
        assert lines == []
    else:
        assert command.returncode in (130, -signal.SIGINT)  # a shell says 130 of both
        assert lines == ["stopped; what was reserved stays charged"]
    until(lambda: servers(command.pid) == [])  # a process ends after the one it waits for


PRESSED_AT = """
import os, signal, sys
from discreet.__main__ import run
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)
at = sys.argv.pop(1)
sys.meta_path.insert(0, Pressed())
run()
"""


@pytest.mark.parametrize("module", ["discreet.cli.screen", "discreet.curator.core"])
def test_ctrl_c_ends_also_what_nobody_reads_any_more(module: str, clinic: Path) -> None:
    """As in `discreet ask … 2>&1 | tee log`, where Ctrl-C ends tee first: while modules are loaded, and later."""
    read, write = os.pipe()
    os.close(read)
    command = subprocess.run(
        [sys.executable, "-c", PRESSED_AT, module, *ASKED], cwd=clinic.parent, stdout=write, stderr=write
    )
    os.close(write)
    assert command.returncode in (130, -signal.SIGINT)
    assert not list(clinic.parent.glob("*.ledger"))
