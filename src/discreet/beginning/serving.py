"""The form, served at an address of this machine alone until the declaration is written or the owner ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.catalog.suggest import Suggested
from discreet.service.loopback import Loopback
from discreet.service.serving import needed

if TYPE_CHECKING:
    from discreet.beginning.app import Beginning

LAST_SECONDS = 1.0
"""How long the last page has to fetch what it is drawn with."""


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
    with Loopback() as page:
        tell(page.address)
        run(beginning, page)
    return beginning.written is True


def run(beginning: Beginning, page: Loopback) -> None:
    """Serves the form until it is interrupted, or a moment after its last page."""

    def ended() -> None:
        asyncio.get_running_loop().call_later(LAST_SECONDS, page.stop)

    beginning.ended = ended
    page.run(beginning.app())
