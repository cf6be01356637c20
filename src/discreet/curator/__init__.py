"""The façade: one object that holds declarations, ledger, engine and gate together."""

from __future__ import annotations

from pathlib import Path

from discreet.catalog import read
from discreet.curator.procedures import Curator

__all__ = ["Curator", "open"]


def open(path: str | Path, *, owner: bool = False) -> Curator:
    """Opens the curator of a declaration file: reads the declaration, opens its ledger, loads its tables.

    Where [analysts] are declared, each question names one of them, unless `owner` says that the owner asks.

    Raises DeclarationError with every fault at once, LedgerError where the ledger cannot be trusted.
    """
    return Curator.of(read(path), owner=owner)
