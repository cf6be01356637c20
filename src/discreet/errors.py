"""The closed list of errors. Every failure a user can meet is one of these, and none ever quotes a private value.

An error says what was wrong (`args[0]`), `where`, and how to write it instead (`fix`). `code` is stable: programs may
compare it. Texts are built from declarations, questions and file names only, so a refusal says nothing about anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Error(Exception):
    """What every error of this package is.

    `code` is a stable word for programs, `where` the place (a key of a declaration, a part of a question, a file),
    `fix` what to write or do instead.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        fix = f" → {self.fix}" if self.fix else ""
        return f"{where}{self.message}{fix}"

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the error alone. Where it was found in here helps nobody who asks a question."""
        return [f"{type(self).__name__}: {self}"]

    def to_dict(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "error": type(self).__name__,
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "fix": self.fix,
        }


class QuestionError(Error):
    """The question is not one that can be answered privately, or not written as it must be. Nothing was spent."""

    exit_code = 2


def refused(code: str, message: str, where: str, fix: str) -> QuestionError:
    """A refusal of what was asked, that spends nothing. A module whose refusals share a code names it once:
    `_refused = partial(refused, "select")`."""
    return QuestionError(code, message, where=where, fix=fix)


@dataclass(frozen=True)
class Fault:
    """One fault of a declaration: the key it stands at, what is wrong, and what to write."""

    where: str
    message: str
    fix: str


class DeclarationError(Error):
    """The declaration, or the data it names, is not what it must be. `faults` holds every fault at once."""

    exit_code = 2

    def __init__(self, faults: Sequence[Fault], *, code: str = "declaration", file: str = "") -> None:
        self.faults = tuple(faults)
        self.file = file
        first = self.faults[0]
        count = f"{len(self.faults)} faults" if len(self.faults) > 1 else "1 fault"
        super().__init__(code, first.message if len(self.faults) == 1 else count, where=first.where, fix=first.fix)

    def __str__(self) -> str:
        prefix = f"{self.file}: " if self.file else ""
        return "\n".join(f"{prefix}{fault.where}: {fault.message} → {fault.fix}" for fault in self.faults)

    def to_dict(self) -> dict[str, object]:
        faults = [{"where": fault.where, "message": fault.message, "fix": fault.fix} for fault in self.faults]
        return super().to_dict() | {"file": self.file, "faults": faults}


class BudgetError(Error):
    """The budget does not allow it. Nothing was spent, and the refusal depends on prices only."""

    exit_code = 3

    def __init__(self, message: str, *, asked: str, left: str, fits: str, where: str = "") -> None:
        self.asked = asked
        self.left = left
        self.fits = fits
        super().__init__("budget", f"{message}: asked {asked}, left {left}", where=where, fix=fits)

    def to_dict(self) -> dict[str, object]:
        return super().to_dict() | {"asked": self.asked, "left": self.left, "fits": self.fits}


class LedgerError(Error):
    """The ledger cannot be opened, trusted or written. No private question is answered until it can."""

    exit_code = 4


class SessionError(Error):
    """What several parties do together ended without a result for this one. The message says whether others may have
    it. Whoever was charged stays charged."""

    exit_code = 4


class EngineError(Error):
    """A measurement failed after its price was reserved: "engine", one fixed text: what failed is itself an answer.
    Or nothing is measured because of earlier failures: "suspended" for the analyst, "frozen" for everybody."""

    exit_code = 4

    TEXT = "the engine could not answer; the price stays charged"

    def __init__(self, *, frozen: str = "", suspended: str = "", busy: bool = False) -> None:
        if busy:
            message = "the engine is at work on other questions; nothing was spent"
            super().__init__("busy", message, fix="ask again")
        elif frozen:
            message, fix = "the table is frozen after several failures", "the owner runs `discreet refresh`"
            super().__init__("frozen", message, where=frozen, fix=fix)
        elif suspended:
            message, fix = "whoever asks is suspended here after a failure", "the owner runs `discreet lift`"
            super().__init__("suspended", message, where=suspended, fix=fix)
        else:
            super().__init__("engine", self.TEXT, fix="ask the owner to look at `discreet ledger`")
