"""Questions that were read and priced lately, so that a repeat is not planned again.

A plan follows from the text, its day, the price, the declaration and the public tables, never from a row about a person
or from what was asked before. That it is quick again tells who asked it that he did, and nobody else: each account has
plans of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, TypeVar

from discreet.locks import Lock
from discreet.pricing import Within
from discreet.sql.limits import room

MOST = 64
"""How many are kept, of all accounts together: those that were used last."""

_AMOUNTS = (int, float, str, Decimal, Fraction, bool, type(None))

_Kept = TypeVar("_Kept")


class Plans(Generic[_Kept]):
    """The last ones, by what they follow from. It may be used from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Hashable, tuple[int, _Kept]] = OrderedDict()

    def get(self, key: Hashable) -> _Kept | None:
        """What was kept; None where it is not, or was made with more room for calls in each other than there is here:
        what was not refused there may have to be refused here."""
        with self._lock:
            found = self._known.get(key)
            if key is None or found is None or found[0] > room():
                return None
            self._known.move_to_end(key)
            return found[1]

    def keep(self, key: Hashable, made: _Kept) -> None:
        """Keeps one, in the place of the one that was not used for longest. None is no key."""
        if key is not None:
            with self._lock:
                self._known[key] = room(), made
                self._known.move_to_end(key)
                if len(self._known) > MOST:
                    self._known.popitem(last=False)


def price_of(epsilon: Any, delta: Any, within: Within | None) -> Hashable:
    """The price that is asked for, as a part of a key: amounts that are equal and of one type. None where something in
    it is no amount."""
    errors = () if within is None else (*within.errors.items(), ("", within.confidence), ("", within.together))
    amounts = (("", epsilon), ("", delta), *errors)
    if not all(type(amount) in _AMOUNTS for _, amount in amounts):
        return None
    return tuple((name, type(amount), amount) for name, amount in amounts)
