"""What a terminal gets and a pipe does not: emphasis, and lines broken at words."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any


def emphasised() -> bool:
    """Whether what is written may be bold or coloured: at a terminal alone, and not where NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """The columns of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def answer(release: Any) -> str:
    """A release, of questions or made-up rows."""
    from discreet.release.render import text, wrapped

    if release.intervals:
        return text(release, width(), emphasised=emphasised())
    return wrapped(repr(release), width())  # made-up rows print themselves


def prose(words: str) -> str:
    """Lines of words."""
    from discreet.release.render import wrapped

    return wrapped(words, width())


def complaint(words: str) -> str:
    """Lines for standard error."""
    from discreet.release.render import wrapped

    return wrapped(words, shutil.get_terminal_size().columns if sys.stderr.isatty() else None)
