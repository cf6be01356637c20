"""Children that are forked from a process that has loaded their program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.engines.child import Child
from waiting import gone, until

ASKED = """
import os
import resource
import pandas
import discreet
resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
frame = pandas.DataFrame({"sex": ["a", "b"] * 50})
table = discreet.Table(frame, one_row_per_person=True, columns={"sex": ["a", "b"]})
question = "SELECT sex, n + 1 AS more FROM (SELECT sex, COUNT(*) AS n FROM t GROUP BY sex)"
curators = [discreet.Curator({"t": table}, epsilon=1) for _ in range(2)]
for curator in curators:
    print(len(curator.ask(question, epsilon=0.5).rows))
    if os.path.isdir(folder := os.environ["FOLDER"]):
        os.rmdir(folder)
"""


def test_the_folder_that_it_was_started_in_may_be_removed_and_open_files_are_no_matter(tmp_path: Path) -> None:
    """More of them than `select` takes, from before the first child to after the last."""
    folder = tmp_path / "begun"
    folder.mkdir()
    said = subprocess.run(
        [sys.executable, "-c", ASKED],
        cwd=folder,
        env={"FOLDER": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "3\n3\n"
    assert not folder.exists()


def test_the_engines_program_loads_no_trees_and_has_arrays_before_any_row() -> None:
    """Each command starts it, and each engine is forked from it: what it loads takes their time and memory."""
    said = "import sys, discreet.engines.duckdb.worker as one; one.prepare(); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.split()
    assert {"duckdb", "numpy"} <= set(found)  # a question loads nothing within the limit of its memory
    assert not {"sqlglot", "pandas", "pyarrow", "discreet.catalog", "discreet.trusted"} & set(found)


def test_who_is_interrupted_while_a_child_starts_can_still_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known yet which process that is; its server loads the program for a second before it forks."""
    (tmp_path / "slow_program.py").write_text("import time\ntime.sleep(1)\ndef main():\n    time.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    try:
        child = Child("slow_program")
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            child.lives  # noqa: B018 (it waits)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert child.lives
    number = child.pid
    child.end()
    assert not child.lives
    assert gone(number)


CURATOR = """
import signal, sys
from discreet.engines.forkserver import _server
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
print(_server("slow_to_load")._process.pid, flush=True)
sys.stdin.read()
"""

SLOW = """
import pathlib, time
pathlib.Path(__file__).with_name("loading").touch()
time.sleep(1_000_000)
"""


def test_a_server_that_still_loads_its_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    (tmp_path / "slow_to_load.py").write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", CURATOR]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as curator:
        assert curator.stdout is not None
        server = int(curator.stdout.readline())
        until((tmp_path / "loading").exists)
        curator.kill()
    until(lambda: gone(server))


def test_a_forked_process_leaves_its_parent_s_child_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what is told of the child, which comes once, nor what it is asked next is the forked process's."""
    said = "import os\nfrom discreet.engines.child import serve\n"
    said += "def main():\n    requests, answers = serve()\n    answers.write(requests.read(4))\n    answers.flush()\n"
    (tmp_path / "echoing_program.py").write_text(said)
    monkeypatch.syspath_prepend(tmp_path)
    child = Child("echoing_program")
    child.requests.write(b"ab")
    forked = os.fork()
    if forked == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            assert not child.own
            assert not child.lives
            child.end()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert child.lives
    child.requests.write(b"cd")
    assert child.read(4, time.monotonic() + 60) == b"abcd"
    number = child.pid
    child.end()
    assert gone(number)


def test_a_server_that_cannot_fork_once_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told of a child that there is not; those that there are live on."""
    said = "import os, time\nforks = iter([os.fork, None])\nfork = os.fork\n"
    said += "def full():\n    if next(forks, fork) is None:\n        raise OSError\n    return fork()\n"
    said += "os.fork = full\ndef main():\n    time.sleep(600)\n"
    (tmp_path / "full_program.py").write_text(said)
    monkeypatch.syspath_prepend(tmp_path)
    first, none, last = (Child("full_program") for _ in range(3))
    assert [one.lives for one in (first, none, last)] == [True, False, True]
    for one in (first, none, last):
        one.end()
