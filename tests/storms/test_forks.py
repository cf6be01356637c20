"""A fork while another thread is in the middle of a question: the child goes on by itself."""

from __future__ import annotations

import os
import signal
import threading
from fractions import Fraction
from pathlib import Path

import discreet
from face_tools import spent

QUESTION = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"


def test_a_child_answers_while_a_thread_of_its_parent_measures_and_loads(clinic: Path) -> None:
    with discreet.open(clinic) as curator:
        curator.ask(QUESTION.format(1))
        run = curator.above_threshold(5, epsilon="0.1")
        held, done = threading.Event(), threading.Event()

        (turn,) = curator._door._turns.values()  # of whoever asked

        def measure() -> None:
            with curator._engine._running, curator._holdings._loading, run._lock, turn, curator._twin._starting:
                held.set()
                done.wait(300)

        thread = threading.Thread(target=measure)
        thread.start()
        held.wait(300)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)  # the end of a child that waits for a thread which it does not have
            try:
                curator.ask(QUESTION.format(2))
                curator.close()
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        done.set()
        thread.join()
        assert os.waitstatus_to_exitcode(status) == 0
        curator.ask(QUESTION.format(3))
        assert spent(curator) == 4 * Fraction(1, 10)
        entries = [entry.status for entry in curator.ledger.entries() if entry.kind == "reserve"]
        assert entries.count("committed") == 3
