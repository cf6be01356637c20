"""What accounts may do."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What an account may do: the owner everything, an analyst ask, an auditor see the ledger and what was spent, a
    monitor how the service runs."""

    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"
    MONITOR = "monitor"
