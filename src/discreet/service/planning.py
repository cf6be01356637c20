"""Plans workloads in processes of their own: linear algebra keeps an interpreter for seconds, and all would wait.

The process gets a workload and the declaration of its table, and no row, and gives the plan back.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from discreet.errors import EngineError

if TYPE_CHECKING:  # it loads much that a service seldom needs
    from discreet.workload.answers import Checked


_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""On one processor: the others are the engine's."""


class Planning:
    """The processes that plan now. `stop` ends them: nothing is charged for a plan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def plan(self, call: Checked) -> None:
        """Plans a call, so that the curator finds the plan. Raises EngineError "busy" where the process was ended."""
        if call.small:
            return
        with self._lock:
            if self._stopped:
                raise EngineError(busy=True)
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ALONE, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,
            )
            self._children.add(child)
        try:
            found, _ = child.communicate(pickle.dumps(call, protocol=5))
        finally:
            with self._lock:
                self._children.discard(child)
        if child.returncode != 0:
            raise EngineError(busy=True)
        call.keep(pickle.loads(found))

    def stop(self) -> None:
        """Ends them, and begins no more."""
        with self._lock:
            self._stopped = True
            for child in self._children:
                child.kill()


def main() -> None:
    """Plans one call, behind all else that the machine does: from standard input, to standard output."""
    os.nice(10)
    call: Checked = pickle.load(sys.stdin.buffer)
    pickle.dump(call.planned(), sys.stdout.buffer, protocol=5)
