"""The respondent's side: from an answer to a report, within a cap."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType

from discreet.errors import BudgetError
from discreet.local.answers import amount
from discreet.local.collection import Collection, today
from discreet.local.draws import fresh
from discreet.local.explain import explained
from discreet.local.purse import Purse
from discreet.local.report import Report, public_of, randomised
from discreet.trusted.ring_a.exact import Number as Amount
from discreet.trusted.ring_a.exact import show


class Client:
    """One respondent. `report(answer)` is all that may leave the device.

    `ledger` is a file with the secret of this device and what was reported; without one it lives and dies with the
    object, and so does the memory: a new secret is a new respondent, who is charged again. `cap` is the respondent's
    own limit on everything that this ledger ever gives away, in epsilon, over all collections and windows.

    Asked again in the same window, it gives the same report again, for nothing, whatever the answer is by then: two
    reports that differ, or one that is not sent again, would show that the answer changed. A new answer counts in the
    next window. Collections with `each` take several reports a window: see Collection for what they cost.

    Raises DeclarationError on a cap that is no number, LedgerError where the file cannot be used.
    """

    def __init__(self, collection: Collection, ledger: str | Path | None = None, *, cap: Amount | None = None) -> None:
        self.collection = collection
        self.cap = None if cap is None else amount("cap", cap)
        self._purse = Purse(ledger)

    def report(self, value: object, public: Mapping[str, str] | None = None) -> Report:
        """Makes the report of this answer for today's window, or the one that was given; `public` is sent as it is.

        Raises QuestionError where it is no answer of the collection, and BudgetError where the cap does not allow it:
        nothing is spent then. What is spent is on the disk before the report is returned; LedgerError is raised where
        it cannot be written.
        """
        collection, purse, window = self.collection, self._purse, self.collection.window_of(today())
        known = public_of(collection, public or {})
        secret = purse.secret
        with purse.changing():
            before = purse.given(collection.hash, window)
            again = collection.each is not None
            turn = len(before) if again else 0
            token, part, report = randomised(collection, secret, window, value, fresh(), turn)
            if again or not before:
                self._afford(window, len(before))
                # what is re-randomised is never sent a second time, and not written down
                purse.give(collection.hash, window, turn, part, 0 if again else report, collection.cost)
            else:
                part, report = before[0]
        return Report(collection.hash, window, token, part, report, known)

    def _afford(self, window: str, before: int) -> None:
        collection = self.collection
        if before >= collection.reports:
            left, fits = "0", "the next window takes more reports"
            where = f"{collection.name}, {window}"
            raise BudgetError("the window's cap", asked=show(collection.cost), left=left, fits=fits, where=where)
        spent = self._purse.spent()
        if self.cap is not None and spent + collection.cost > self.cap:
            left = show(max(Fraction(0), self.cap - spent))
            fits = "raise the cap of this device, or do not answer"
            raise BudgetError("the respondent's own cap", asked=show(collection.cost), left=left, fits=fits)

    @property
    def spent(self) -> float:
        """What this ledger gave away so far, in epsilon. Raises LedgerError."""
        return float(self._purse.spent())

    def explain(self) -> str:
        """Says in plain words what is done to the answer, and what was given away so far. Raises LedgerError."""
        spent = self._purse.spent()
        cap = "" if self.cap is None else f" of at most {show(self.cap)}"
        return f"{explained(self.collection)}\nThis device has given away ε {show(spent)}{cap} so far.\n"

    def close(self) -> None:
        """Closes the ledger's file."""
        self._purse.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
