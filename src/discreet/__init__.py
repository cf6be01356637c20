"""Ask questions about tables of people in SQL, and get answers that may be published.

import discreet

curator = discreet.open("clinic.toml")
curator.ask("SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex", epsilon=0.5)
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # of type checkers alone is it true; `typing` takes longer to load than all that is here
if TYPE_CHECKING:
    from typing import Any

    from discreet.curator import Curator, open
    from discreet.errors import (
        BudgetError,
        DeclarationError,
        EngineError,
        Error,
        LedgerError,
        QuestionError,
        SessionError,
    )
    from discreet.explanation import Explanation
    from discreet.release import Release
    from discreet.remote import RemoteCurator, connect
    from discreet.simulation import simulate
    from discreet.synthesis.saved import published
    from discreet.tables import Table
    from discreet.workload import Workload

__version__ = "0.3.0.dev0"

__all__ = [
    "BudgetError",
    "Curator",
    "DeclarationError",
    "EngineError",
    "Error",
    "Explanation",
    "LedgerError",
    "QuestionError",
    "Release",
    "RemoteCurator",
    "SessionError",
    "Table",
    "Workload",
    "connect",
    "open",
    "published",
    "simulate",
]

_LAZY = {
    "BudgetError": "discreet.errors",
    "Curator": "discreet.curator",
    "DeclarationError": "discreet.errors",
    "EngineError": "discreet.errors",
    "Error": "discreet.errors",
    "Explanation": "discreet.explanation",
    "LedgerError": "discreet.errors",
    "QuestionError": "discreet.errors",
    "Release": "discreet.release",
    "RemoteCurator": "discreet.remote",
    "SessionError": "discreet.errors",
    "Table": "discreet.tables",
    "Workload": "discreet.workload",
    "connect": "discreet.remote",
    "open": "discreet.curator",
    "published": "discreet.synthesis.saved",
    "simulate": "discreet.simulation",
}


def __getattr__(name: str) -> Any:
    """Loads what is first used: importing the package alone is quick, and the command hears Ctrl-C at once."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "errors":  # `except discreet.errors.Error` needs no import of its own
        return import_module("discreet.errors")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Gives a notebook `%discreet` and `%%discreet`: what `%load_ext discreet` calls."""
    import_module("discreet.notebook").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Takes them away again, and closes the curator that they opened: what `%unload_ext discreet` calls."""
    import_module("discreet.notebook").unload(shell)


def __dir__() -> list[str]:
    """What there is to use: what completion offers, before it is loaded."""
    return [*__all__, "__version__"]
