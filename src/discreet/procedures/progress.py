"""A bar on the terminal while a procedure runs: how many of its steps are done, which are public numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how many steps are done. Shows nothing where errors do not go to a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)

        def tell(done: int) -> None:
            bar.update(task, completed=done)

        yield tell
