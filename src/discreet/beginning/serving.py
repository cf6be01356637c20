"""The form, served at an address of this machine alone until the declaration is written or the owner ends it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.catalog.suggest import Suggested
from discreet.service.serving import Address, configured, needed

if TYPE_CHECKING:
    from discreet.beginning.app import Beginning

LAST_SECONDS = 1.0
"""How long the last page has to fetch what it is drawn with."""

HERE = Address(port=0)
"""Where it listens: at a port that nobody has."""


def asked(
    tables: Sequence[Suggested],
    target: Path,
    budget: tuple[str, str],
    warnings: Sequence[str],
    tell: Callable[[str], None],
) -> bool:
    """Serves the form of these tables until its end, and gives whether the file `target` was written. Its address, with
    a secret in it, is told. The fields of the budget hold ε and δ at first, and `warnings` about sources stand above.

    Raises QuestionError where the extra is missing, or there is no port.
    """
    needed()
    from discreet.beginning.app import Beginning

    beginning = Beginning(tables, target, budget, warnings)
    with contextlib.suppress(KeyboardInterrupt), HERE.bound() as listening:
        port = listening.getsockname()[1]
        running = server(beginning, port)
        tell(f"{HERE.url(port)}/{beginning.secret}")
        running.run(sockets=[listening])
    return beginning.written is True


def server(beginning: Beginning, port: int) -> Any:
    """A server of the form that is not started; it ends after the last page."""
    from discreet.service.connections import Connections, Server, Watched

    connections = Connections()
    running = Server(configured(Watched(beginning.app(port), connections), HERE), connections)

    def ended() -> None:
        asyncio.get_running_loop().call_later(LAST_SECONDS, setattr, running, "should_exit", True)

    beginning.ended = ended
    return running
