"""A curator for as long as a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.curator import Curator


@contextmanager
def opened(declaration: str, *, load: bool, raise_budget: bool = False, owner: bool = False) -> Iterator[Curator]:
    """The curator of a declaration file, closed at the end."""
    from discreet.catalog import read
    from discreet.curator import Curator

    curator = Curator.of(read(declaration), load=load, raise_budget=raise_budget, owner=owner)
    try:
        yield curator
    finally:
        curator.close()
