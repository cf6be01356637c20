"""What long work shows while it runs: how many of its steps are done, which are public numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 0.5
"""A notebook's line changes so often."""


@contextmanager
def progress(words: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Gives a function that is told how many steps are done, and of how many, if that was not known before.

    A bar on the terminal, a line in a notebook, both gone at the end; where errors go elsewhere, nothing."""
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar(words, total) as tell:
            yield tell
    elif sys.stderr is not None and in_notebook():
        with _line(words, total) as tell:
            yield tell
    else:
        yield lambda done, of=None: None  # noqa: ARG005


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: what it writes to stderr is shown below the cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def _bar(words: str, total: int | None) -> Iterator[Callable[..., None]]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(words), total=total)

        def tell(done: int, of: int | None = total) -> None:
            bar.update(task, completed=done, total=of)

        yield tell


@contextmanager
def _line(words: str, total: int | None) -> Iterator[Callable[..., None]]:
    """The same line again and again: a carriage return begins it anew."""
    longest, last = 0, time.monotonic()

    def write(text: str) -> None:
        nonlocal longest, last
        longest, last = max(longest, len(text)), time.monotonic()
        sys.stderr.write(f"\r{text:<{longest}}")
        sys.stderr.flush()

    def tell(done: int, of: int | None = total) -> None:
        if time.monotonic() - last >= SECONDS:
            write(f"{words}: {done:,} of {of:,}" if of else f"{words}: {done:,}")

    if total is None:
        write(f"{words} …")
    try:
        yield tell
    finally:
        if longest:
            write("")
            sys.stderr.write("\r")
