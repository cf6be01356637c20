"""What of an analyst's own budget may be spent in one day, or in one month, in UTC.

No promise rests on these caps: whatever they allow, the account's own cap and the whole budget hold. They let a budget
last. Each is a filter of its own, which begins anew with each window, and is part of the states that follow from an
entry: a charge is held against it in the one transaction that writes it, so that two processes never exceed it
together. The entry names its day, and `renewing` takes no day before the latest that the account has seen: a clock
that goes back opens no window anew.
"""

from __future__ import annotations

from discreet.trusted.ring_a.periods import Period

LENGTHS = ("day", "month")


def renewing(length: str, last: str, day: str) -> bool:
    """Whether a day begins a new window. Raises ValueError where it is before the `last` day that was seen."""
    if day < last:
        raise ValueError("a day before the last that was seen")
    return Period.of(length, day) != Period.of(length, last)
