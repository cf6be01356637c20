"""The closed list of errors. Every failure a user can meet is one of these, and none ever quotes a private value.

An error says what was wrong (`args[0]`), `where`, and how to write it instead (`fix`). `code` is stable: programs may
compare it. Texts are built from declarations, questions and file names only, so a refusal says nothing about anybody.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self


class Error(Exception):
    """The base of all errors of this package: says what was wrong, where, and what to do instead.

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

    @classmethod
    def told(cls, code: str, message: str, *, where: str = "", fix: str = "") -> Self:
        """Makes an error of this kind in the words of where it is met, or of another program."""
        error = cls.__new__(cls)
        Error.__init__(error, code, message, where=where, fix=fix)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied, also into another process: made with its words, whatever its kind is made of."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        fix = f" → {self.fix}" if self.fix else ""
        return f"{where}{self.message}{fix}"

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the error alone. Where it was found in here helps nobody who asks a question."""
        return [f"{type(self).__name__}: {self}"]

    def to_dict(self) -> dict[str, object]:
        """Gives the same for a machine, as plain values."""
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
    """The error for a question that is refused; nothing was spent. A module whose errors share a code names it once:
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
        """Gives the same for a machine, with every fault."""
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
        """Gives the same for a machine, with what was asked, what is left and what would fit."""
        return super().to_dict() | {"asked": self.asked, "left": self.left, "fits": self.fits}


class LedgerError(Error):
    """The ledger cannot be opened, trusted or written. No private question is answered until it can.

    `facts` are what a longer text may be made of.
    """

    exit_code = 4
    facts: Mapping[str, object] = {}

    @classmethod
    def of(cls, reason: str, *, where: str = "", **facts: object) -> Self:
        """Makes the error for a reason of `LEDGER_REASONS`, with its facts put in."""
        code, message, fix = LEDGER_REASONS[reason]
        error = cls(code, message.format(**facts), where=where, fix=fix.format(**facts))
        error.facts = facts
        return error

    @classmethod
    def unless(cls, holds: object, reason: str, *, where: str = "", **facts: object) -> None:
        """Raises LedgerError for the reason unless the condition holds."""
        if not holds:
            raise cls.of(reason, where=where, **facts)

    @classmethod
    def of_storage(cls, error: Exception, *, where: str) -> Self:
        """Makes the error for one of the database's, of the operating system's, or for stored text that is none.

        It goes by the kind alone, since the error's own words may quote what is stored.
        """
        if isinstance(error, OSError | UnicodeError):
            return cls.of("unwritable" if isinstance(error, OSError) else "corrupt", where=where)
        kind = type(error).__name__.removesuffix("Error")
        kinds = (reason for reason, its in _STORAGE.items() if kind in its.split())
        return cls.of(next(kinds, "storage"), where=where)


_SPENT_SINCE = (
    "lower the budget by what was spent since: `discreet ledger DECLARATION --spend-unknown AMOUNT` (0, if nothing was)"
)
_RESTORE = f"restore the ledger from its latest backup, and {_SPENT_SINCE}"
_UPGRADE = "upgrade discreet"
_STORAGE = {  # kinds of the database's errors
    "busy": "Busy Locked Protocol",
    "full": "Full",
    "unwritable": "Auth CantOpen IO Permissions ReadOnly",
    "corrupt": "Constraint Corrupt Format Mismatch NotADB Range SQL SchemaChange",
}
LEDGER_REASONS: dict[str, tuple[str, str, str]] = {
    "account": (
        "account",
        "the ledger has no such account",
        "register the declaration's budget and analysts first",
    ),
    "apart": (
        "apart",
        "the budget would be larger in one part and smaller in another",
        "declare what holds for both",
    ),
    "balances": ("corrupt", "the ledger's balances do not fit its last entry", _RESTORE),
    "busy": ("busy", "another process holds the ledger", "try again, or end that process"),
    "closed": ("closed", "the ledger was closed", "open it again"),
    "committed": ("committed", "this reservation already has an answer", "reserve again"),
    "corrupt": ("corrupt", "the file is damaged, or is not a ledger", _RESTORE),
    "damaged": ("corrupt", "the ledger file is damaged", _RESTORE),
    "empty": ("corrupt", "the ledger file is empty", _RESTORE),
    "entry": ("corrupt", "{entry} is not as it was written", _RESTORE),
    "foreign": ("foreign", "the file is a database of another program", "name another file for the ledger"),
    "forked": (
        "forked",
        "the ledger belongs to the process that opened it",
        "keep the ledger in a file, and fork with os.fork or multiprocessing",
    ),
    "full": ("full", "the disk is full: the ledger cannot grow", "free some space"),
    "linked": (
        "linked",
        "the ledger file has several names",
        "remove the other hard links, or make the ledger's name a file of its own: copy it, and rename the copy",
    ),
    "missing": (
        "missing",
        "the ledger is gone: its last entry is noted in {note}",
        f"put it back; else {_RESTORE}; for other persons, begin anew: remove {{note}}",
    ),
    "moved": (
        "moved",
        "the ledger file was moved, replaced or deleted while it was open",
        "put it back, and start again",
    ),
    "nested": ("busy", "this thread is already inside another charge", "try again after it"),
    "newer": ("newer", "a newer version of this program wrote the ledger", _UPGRADE),
    "newer filters": ("newer", "the ledger began with filters that this version does not know", _UPGRADE),
    "newer loss": ("newer", "the ledger holds a kind of loss that this version does not know", _UPGRADE),
    "parts": ("newer", "the ledger keeps states that no part of this program knows", "import discreet.ledger first"),
    "no entries": ("corrupt", "the ledger has no entries", _RESTORE),
    "note busy": (
        "busy",
        "another process holds the note of the ledger's head",
        "try again, or end that process",
    ),
    "note damaged": (
        "corrupt",
        "the note of the ledger's last entry, {note}, is damaged",
        f"put an intact copy back; else {_SPENT_SINCE}",
    ),
    "note moved": (
        "moved",
        "the note of the ledger's last entry, {note}, was moved or deleted while it was open",
        "put it back, and start again",
    ),
    "overcharged": (
        "corrupt",
        "entry {entry} charges more than its account allows",
        f"answer nothing more from it, and {_RESTORE}",
    ),
    "pending": (
        "pending",
        "this request was already charged but has no stored answer (still running, or lost in a crash)",
        "ask again with a new request id",
    ),
    "period": (
        "period",
        "a new period has begun: this process still has the rows of the last one, and nothing was spent",
        "ask again",
    ),
    "renewal": (
        "raised",
        "the declaration's budget renews otherwise than the ledger's, in which something was charged",
        "declare it as before; to change it for good, the owner runs `discreet ledger DECLARATION --raise-budget`",
    ),
    "renewal of persons": (
        "unit",
        "something was charged or listed: a budget that renews for new persons neither begins, changes nor ends",
        "declare it as before, or name a new ledger",
    ),
    "parts of others": (
        "unit",
        "persons are assigned to parts in the ledger, and the declaration means others or reads their ids otherwise",
        "declare the person and the source as before, or name a new ledger",
    ),
    "lost persons": (
        "unit",
        "who was first seen in which period stood in the lost entries, and the budget renews for new persons",
        "find the newest copy; else begin a new ledger, for other persons",
    ),
    "raised": (
        "raised",
        "the declaration allows more than the ledger does",
        "the owner runs `discreet ledger DECLARATION --raise-budget`",
    ),
    "rewritten": (
        "rewritten",
        "noted history is missing: the ledger was cut, restored from an older copy or rewritten",
        f"find the newest copy; else {_RESTORE}",
    ),
    "server ended": (
        "server",
        "the connection to the ledger's server ended: nothing was charged, or the charge stands",
        "ask again",
    ),
    "server encoding": ("server", "the ledger's database is not in UTF8", "make one: CREATE DATABASE … ENCODING UTF8"),
    "server file": ("server", "this ledger is on a server, and is no file to copy", "copy its schema there: pg_dump"),
    "server gone": (
        "server",
        "the ledger's server does not answer, or is a replica that takes no writes",
        "check host and port, and that it runs and can be reached from here",
    ),
    "server library": (
        "server",
        "what reaches a ledger on PostgreSQL is not installed",
        "pip install 'discreet[postgresql]'",
    ),
    "server login": (
        "server",
        "the ledger's server does not let this user in, or has no such database",
        "put the password into PGPASSWORD, ~/.pgpass or a service, and check the names of user and database",
    ),
    "server many": (
        "server",
        "the ledger's server has no connection or no memory left",
        "try again, or raise max_connections there",
    ),
    "server none": ("missing", "the schema has no ledger", f"put it back; else {_RESTORE}"),
    "server old": ("server", "the ledger's server is older than PostgreSQL 15", "use PostgreSQL 15 or later"),
    "server other": (
        "rewritten",
        "the ledger is not where it was: another server took over, or an older copy was restored, and it may lack what"
        " was charged last",
        f"find the newest copy; else {_SPENT_SINCE}",
    ),
    "server pooled": (
        "server",
        "something between here and the ledger's server hands on its connections",
        "connect to the server itself, without a pooler",
    ),
    "server power": (
        "server",
        "the ledger's user is a superuser of the server",
        "connect as a user of its own: docs/service.md says which rights it needs",
    ),
    "server replica": (
        "server",
        "the ledger's server did not wait until a replica had the charge: it stands, and nothing is answered for it",
        "ask again",
    ),
    "server rights": (
        "server",
        "the ledger's user may not make the schema, or use what is in it",
        "run GRANT CREATE ON DATABASE … TO the user, or CREATE SCHEMA … AUTHORIZATION the user",
    ),
    "server taken": ("foreign", "the schema belongs to another user", "name another schema for the ledger"),
    "server text": (
        "server",
        "the ledger's server cannot keep a text: it is too long for a name, or has a character 0 in it",
        "give requests and analysts short and plain names",
    ),
    "server unnoted": (
        "unnoted",
        "this machine has no note of the ledger's last entry, {note}: nothing shows that the ledger is whole",
        "copy {note} from a machine that has asked before, the newest one; else " + _SPENT_SINCE,
    ),
    "state key": (
        "state",
        "the key file {file} of the synthetic state cannot be read, holds no key, or is not its owner's alone",
        "put the key back, in a file of mode 0600; or ask afresh, at a price",
    ),
    "state restored": (
        "state",
        "the file {file} of the synthetic state is not the one that goes with the ledger: one of them was restored",
        "put the newest ones back; or ask afresh, at a price",
    ),
    "state unwritable": (
        "state",
        "the file {file} of the synthetic state cannot be written, so nothing was released",
        "free some space on the disk, or check the permissions of its folder",
    ),
    "storage": ("storage", "the ledger's storage failed", "try again"),
    "stream key": (
        "stream",
        "the stream's key file {file} cannot be read, holds no key, or is not its owner's alone",
        "put the key back, in a file of mode 0600; without it the stream has ended: declare another, at its own price",
    ),
    "stream missing": (
        "stream",
        "the stream has begun, and its state file {file} is gone",
        "put the newest one back; else the stream has ended: declare one of another name, at its own price",
    ),
    "stream other": (
        "stream",
        "the ledger has a stream of this name that is declared otherwise",
        "declare it as before, or give the new one another name",
    ),
    "stream restored": (
        "stream",
        "the stream's state file {file} is not the one that goes with the ledger: one of them was restored or replaced",
        "put the newest ones back; else the stream has ended: declare one of another name, at its own price",
    ),
    "stream unwritable": (
        "stream",
        "the stream's state file {file} cannot be written, so nothing was released",
        "free some space on the disk, or check the permissions of its folder; then run `discreet lift`",
    ),
    "superseded": (
        "committed",
        "another process has reserved the same release since, and it alone answers",
        "ask again",
    ),
    "tables": ("corrupt", "the ledger's database schema is not valid", _RESTORE),
    "unit": ("unit", "the ledger holds charges for another definition of a person", "declare the person as before"),
    "unknown": ("unknown", "there is no such reservation", "commit a reservation that `reserve` returned"),
    "unnoted": (
        "unnoted",
        "{note} is missing, where the ledger's last entry was noted: nothing shows that this copy is whole",
        f"put it back beside the ledger; else {_SPENT_SINCE}",
    ),
    "unwritable": (
        "unwritable",
        "the ledger file cannot be read or written",
        "check the disk, and the permissions of the file and of its folder",
    ),
    "version": ("corrupt", "the ledger's version is unknown", _RESTORE),
}
"""Why the trusted ledger refuses: the code, what was wrong and what to do, with facts in braces."""


class SessionError(Error):
    """What several parties do together ended without a result for this one.

    The message says whether others may have it. Whoever was charged stays charged.
    """

    exit_code = 4


class EngineError(Error):
    """A measurement failed after its price was reserved: "engine", one fixed text: what failed is itself an answer.

    Or nothing is measured because of earlier failures: "suspended" for the analyst, "frozen" for everybody; or because
    the owner has said so, "stopped", where it is said of one `table` with its name.
    """

    exit_code = 4

    TEXT = "the engine could not answer; the price stays charged"

    def __init__(
        self,
        *,
        frozen: str = "",
        suspended: str = "",
        busy: bool = False,
        stopped: str | None = None,
        table: str = "",
    ) -> None:
        if stopped is not None:
            whose = "this analyst's questions" if stopped else "all questions"
            about = " about this table" if table else ""
            super().__init__("stopped", f"the owner has frozen {whose}{about}", where=table, fix="ask the owner")
        elif busy:
            message = "the engine is busy with other questions; nothing was spent"
            super().__init__("busy", message, fix="ask again")
        elif frozen:
            message, fix = "the table is frozen after several failures", "the owner runs `discreet refresh`"
            super().__init__("frozen", message, where=frozen, fix=fix)
        elif suspended:
            message, fix = (
                "this analyst is suspended on this table after a failed question",
                "the owner runs `discreet lift`",
            )
            super().__init__("suspended", message, where=suspended, fix=fix)
        else:
            super().__init__("engine", self.TEXT, fix="ask the owner to look at `discreet ledger`")
