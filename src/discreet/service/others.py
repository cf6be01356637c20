"""What others than the owner are told."""

from __future__ import annotations

from discreet.errors import DeclarationError, Error, Fault


def for_others(error: Error) -> Error:
    """What others than the owner hear of it: why a source is not as it was declared may follow from its rows."""
    if not isinstance(error, DeclarationError):
        return error
    fault = Fault("tables", "a table is not as it was declared; nothing was spent", "tell the owner")
    return DeclarationError([fault], code="tables")
