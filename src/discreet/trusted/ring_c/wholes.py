"""What is charged once, before its first release, and released step by step over days and processes.

The whole is charged when it begins, through the one door, with the loss computed from all that will be released. What
is stored then depends on no row, so charge and beginning are one transaction of the ledger: who dies has charged
nothing, or what it has charged for has begun. A step is reserved at no further loss, and only where the ledger holds
that beginning, charged with this very loss. So that
steps cost nothing is a claim about one thing: the loss of a whole covers all its numbered releases, one of each, which
its own docstring proves. Of each number one release is ever stored: that of the last reserve (`BudgetLedger.commit`
with `alone`), whoever asks and however often, in however many processes.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from discreet.errors import LedgerError
from discreet.trusted.ledger.accounts import TOTAL, stored_loss
from discreet.trusted.ledger.ledger import Stored
from discreet.trusted.ring_a.gate import WHOLE, Costly, Door, Grant
from discreet.trusted.ring_a.loss import Batch, Loss


class Whole(Costly, Protocol):
    """Releases that are charged together before the first of them, and follow over days: what began is known by its
    `key`."""

    @property
    def key(self) -> str: ...


class Step(Protocol):
    """The release number `number` of what was charged as a `whole`, `begun` with what the ledger stored then."""

    @property
    def whole(self) -> Whole: ...
    @property
    def begun(self) -> bytes: ...
    @property
    def number(self) -> int: ...


Next = TypeVar("Next", bound=Step)


def begin(door: Door, whole: Whole, words: bytes, *, question: str) -> None:
    """Charges the loss of all releases of a whole, to the owner, and stores the `words` that its steps are held
    against. Raises as `Door.open` does; LedgerError "superseded" where it has begun meanwhile, and ValueError where the
    budget renews: later releases would be charged in none of its periods."""
    _hold_lasting(door)
    loss, key = door._priced(whole), WHOLE + whole.key
    made = door._reserved(whole, loss, whole.table, TOTAL, question, key, None, None, door._keep, answer=words)
    LedgerError.unless(isinstance(made, Stored) and made.charged, "superseded")


def begun(door: Door, whole: Whole) -> bytes | None:
    """What was stored when a whole of this key began; None before. Raises ValueError where it was charged another loss:
    it is another whole."""
    found = stored(door, whole.key)
    if found is not None and found[1] != whole.loss:
        raise ValueError("what began under this key is another whole")
    return None if found is None else found[0]


def step(
    door: Door, one: Next, *, question: str, rows: object, analyst: str = TOTAL, request: str | None = None
) -> Grant[Any] | Stored:
    """The right to one release of a whole, once, at no further loss; or that release. `analyst` is who asks for it, by
    a `request`: an account of one's own is not charged, so whoever hands the release on to one sees to that.

    What was drawn for a number and not stored must never have been shown to anybody: where two reserves are open for
    one number, only the later one's answer is stored, and what is not stored is not released. Raises ValueError where
    the whole did not begin so, its table is not declared so, or the number is no whole number.
    """
    _hold_lasting(door)
    if one.whole.table is not None:
        door.hold_declared(one.whole.table)
    if begun(door, one.whole) != one.begun:
        raise ValueError("this whole has not begun so")
    key = key_of(one.whole, one.number)
    return door._reserved(one, Batch(()), one.whole.table, analyst, question, key, request, rows, None, alone=True)


def key_of(whole: Whole, number: int) -> str:
    """The key under which a release of a whole is stored."""
    return f"{WHOLE}{whole.key} {number:d}"  # True is 1, and 1.0 is none


def released(door: Door, whole: Whole, number: int) -> bytes | None:
    """What was stored as a release of a whole; None where it was not made."""
    found = stored(door, f"{whole.key} {number}")
    return None if found is None else found[0]


def lost(door: Door, whole: Whole) -> bool:
    """Whether releases of a whole that has begun may be among entries that the owner has said to be lost."""
    with door._ledger.read() as transaction:
        found = transaction.find("e.kind = 'commit' AND e.key = $1", key=WHOLE + whole.key)
        return found is not None and transaction.find(f"e.seq > {found.seq:d} AND e.kind = 'unknown'") is not None


def stored(door: Door, key: str) -> tuple[bytes, Loss] | None:
    """What was stored under the key of a whole or of one of its releases, and what it was charged."""
    with door._ledger.read() as transaction:
        found = transaction.answer(WHOLE + key, None)
        return None if found is None else (found[0], stored_loss(found[1].body))


def _hold_lasting(door: Door) -> None:
    LedgerError.unless(door._engine.period is not None, "period")  # rows are being loaded: nothing is charged
    if door._engine.period:
        raise ValueError("releases that follow over days need a budget that does not renew")
