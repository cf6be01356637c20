"""The command `discreet` and `python -m discreet`. Ctrl-C at any moment ends it with one line and exit code 130."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

STOPPED = "stopped; what was reserved stays charged"
CODE = 128 + signal.SIGINT


def run() -> None:
    """The entry point. Where Ctrl-C is ignored, as in what a shell runs in the background, it stays ignored."""
    hears = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if hears:
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGINT, _at_once)
    from discreet.cli import run as command

    if hears:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):  # whoever read it may have ended with the same Ctrl-C
            os.write(2, f"{STOPPED}\n".encode())
        sys.exit(CODE)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is open is closed, and the children end, in peace


def _at_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Ends while modules are loaded, when nothing is open: libraries may take KeyboardInterrupt for what they lack."""
    try:
        os.write(2, f"\n{STOPPED}\n".encode())
    finally:  # also where nobody reads it
        os._exit(CODE)


def _unraisable(seen: sys.UnraisableHookArgs) -> None:
    """A Ctrl-C that came while an object was let go of, where no exception leads out, comes again a moment later."""
    if seen.exc_type is KeyboardInterrupt:
        import threading

        threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(seen)


if __name__ == "__main__":
    run()
