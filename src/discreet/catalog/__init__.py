"""What the owner declares: whose rows the tables hold, what the columns may hold, how much privacy may be spent."""

from discreet.catalog.declare import declare, read
from discreet.catalog.model import Budget, Declaration, EngineLimits
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type

__all__ = [
    "Budget",
    "Column",
    "Declaration",
    "EngineLimits",
    "Source",
    "SourceKind",
    "Table",
    "Type",
    "declare",
    "read",
]
