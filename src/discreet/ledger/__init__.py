"""The ledger as its owner and the curator use it: the owner's acts, the history for people and the texts of refusals.

What privacy rests on stands in `discreet.trusted.ledger`.
"""

from discreet.ledger.history import Entry, Verification
from discreet.ledger.store import Assigning, Ledger, Snapshot, Turn, Unit
from discreet.trusted.ledger.accounts import TOTAL, Caps, TableState
from discreet.trusted.ledger.ledger import Reserved, Stored

__all__ = [
    "TOTAL",
    "Assigning",
    "Caps",
    "Entry",
    "Ledger",
    "Reserved",
    "Snapshot",
    "Stored",
    "TableState",
    "Turn",
    "Unit",
    "Verification",
]
