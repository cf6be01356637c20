"""What was spent, durable: accounts, a hash chain of entries, and the stored answers."""

from discreet.ledger.history import Entry, Verification
from discreet.ledger.states import TOTAL, Caps, Snapshot, Unit
from discreet.ledger.store import Ledger, Reserved, Stored

__all__ = ["TOTAL", "Caps", "Entry", "Ledger", "Reserved", "Snapshot", "Stored", "Unit", "Verification"]
