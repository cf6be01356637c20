"""Copies of what a curator's owner must not lose: ledger, accounts and declaration, and how they come back.

A copy is a folder, with a list of what is in it and the hash of each file. It is taken while others ask: the ledger in
one transaction, and the accounts as they are with that ledger. Prepared copies of tables are not in it: they hold rows,
and are made again from the sources.

What was charged after a copy was taken stays charged, and no copy can say what that was. So nothing is put back without
the owner's word: the head with which the ledger ended, and the copy ends with it too; or what the questions that it
lacks cost at most, which is charged first. The note beside a lost ledger is believed more than that word. The ledger in
a copy has no note, and so answers nothing where it lies.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from discreet.catalog import Declaration, declare, read
from discreet.errors import LedgerError, refused
from discreet.ledger import Ledger
from discreet.service.accounts import Accounts
from discreet.trusted.ledger import note
from discreet.trusted.ledger.note import Noted, appearing
from discreet.trusted.ring_a.loss import Loss

LIST = "backup.json"
_MOST_LISTED = 1 << 16
_PIECE = 1 << 20

_refused = partial(refused, "backup")


@dataclass(frozen=True)
class BackupFile:
    """A file of a copy: its name there, and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Copy:
    """What a copy holds: the ledger's last entry, and its files: "declaration", "ledger" and, where there were some,
    "accounts". They have their own names: a declaration that is opened in a copy finds a ledger, which is refused."""

    head: Noted
    files: Mapping[str, BackupFile]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        files = {kind: asdict(file) for kind, file in self.files.items()}
        return {"entries": self.head.seq, "head": self.head.hash.hex(), "files": files}


@dataclass(frozen=True)
class Restored:
    """What was put back: the ledger's last entry, whether accounts came with it, and which of them were ended."""

    head: Noted
    accounts: bool
    ended: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        facts = {"entries": self.head.seq, "head": self.head.hash.hex()}
        return facts | {"accounts": self.accounts, "ended": list(self.ended)}


def back_up(declaration: Path, folder: Path) -> Copy:
    """Copies a declaration, its ledger and its accounts into a new folder, which appears whole or not at all.

    The copied ledger is verified. Raises QuestionError where there is nothing to copy or no place for it, LedgerError.
    """
    found = read(declaration)
    ledger, accounts = _ledger(found), Accounts.of(found)
    if not ledger.exists():
        raise _refused("there is no ledger yet", ledger.name, "ask something first, or name the right declaration")
    if folder.exists():
        raise _refused("this folder exists", folder.name, "name one that is not there yet")
    draft = folder.absolute().with_name(f"{folder.absolute().name}.part")
    if draft.exists():
        fix = "remove it, unless a backup is being made there: it holds what one that was ended left"
        raise _refused("this folder exists", draft.name, fix)
    places = {"declaration": draft / declaration.name, "ledger": draft / ledger.name}
    try:
        draft.mkdir(mode=0o700)
    except OSError:
        raise _unwritten(folder) from None
    try:
        with closing(Ledger(ledger)) as there:
            into = partial(there.copy, _new(places["ledger"]))
            if accounts.path.exists():
                places["accounts"] = draft / accounts.name
                head = accounts.copy(_new(places["accounts"]), into)
            else:
                head = into()
        with closing(Ledger(places["ledger"], lost=True)) as copied:
            copied.verify(head.hash.hex())
        _new(places["declaration"]).write_bytes(declaration.read_bytes())
        done = Copy(head, {kind: BackupFile(place.name, _digest(place)) for kind, place in places.items()})
        _new(draft / LIST).write_text(json.dumps(done.to_dict(), indent=2) + "\n", "utf-8")
        for one in (*draft.iterdir(), draft):
            _sync(one)
        draft.rename(folder)
        _sync(folder.absolute().parent)
    except OSError:
        raise _unwritten(folder) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return done


def restore(declaration: Path, folder: Path, *, expect_head: str | None, loss: Loss | None) -> Restored:
    """Puts a copy back where no ledger is. A declaration and accounts that are there stay as they are.

    `expect_head` is the head with which the ledger ended, and the copy must end with it. Without it, `loss` is what all
    that the copy lacks cost together (None: nothing), and is charged to everybody; then copied accounts are ended, too,
    with their tokens: some of them may have been, after the copy was taken.

    The ledger comes first, its note after it, and the declaration at last: whatever ends this in between leaves what
    answers nothing. Raises QuestionError where it must not be done, LedgerError where the copy is not as it was, or
    lacks entries.
    """
    copy = _listed(folder)
    found = read(declaration) if declaration.exists() else _declared(_content(folder, copy, "declaration"), declaration)
    path, accounts = _ledger(found), Accounts.of(found)
    if path.exists():
        fix = f"where it is damaged, move it elsewhere, and leave {note.place(path).name} where it is"
        raise _refused("there is a ledger, and a copy replaces none", path.name, fix)
    came, ended = False, list[str]()
    try:
        with appearing(path) as draft:
            _copied(folder, copy, "ledger", draft)
            head = _taken(draft, path, copy, expect_head, loss)
            file = draft.stat().st_ino
        if path.stat().st_ino != file:
            raise _refused("somebody else has made a ledger meanwhile", path.name, "find out who")
        note.make(path, head, anew=True)
        with closing(Ledger(path)) as ledger:
            if "accounts" in copy.files and not accounts.path.exists():
                came = True
                with appearing(accounts.path) as draft:
                    _copied(folder, copy, "accounts", draft)
                    if expect_head is None:
                        theirs = Accounts(draft)
                        ended = [one.name for one, _ in theirs.known()]
                        for name in ended:
                            theirs.end(name, ledger.enter)
            head = ledger.last
        if not declaration.exists():
            with appearing(declaration) as draft:
                _copied(folder, copy, "declaration", draft)
    except OSError:
        fix = "check the disk and the permissions, and what is there now, before trying again"
        raise _refused("the copy cannot be put back", path.name, fix) from None
    return Restored(head, came, tuple(ended))


def _taken(draft: Path, path: Path, copy: Copy, expect_head: str | None, loss: Loss | None) -> Noted:
    """The last entry of a copied ledger, verified, once all that it lacks is charged. Raises LedgerError where it must
    not be taken."""
    if expect_head is None:
        noted = note.read(path)
        if loss is None and noted is not None and noted.seq > copy.head.seq:
            message = f"this copy ends with entry {copy.head.seq}, and {note.place(path).name} notes {noted.seq}"
            fix = "find the newest copy; else say what the entries between cost at most: --spend-unknown AMOUNT, not 0"
            raise LedgerError("rewritten", message, where=path.name, fix=fix)
        with closing(Ledger.spend_unknown(draft, loss)) as ledger:
            note.place(draft).unlink()
            return ledger.last
    with closing(Ledger(draft, lost=True)) as ledger:
        ledger.verify(copy.head.hash.hex())
        head, noted = ledger.last, note.read(path)
    cost = "say what it lacks: --spend-unknown AMOUNT (0, if nothing was asked after it)"
    if head.hash.hex() != expect_head.strip().lower():
        message = f"this copy ends with entry {head.seq}, and another head than the expected one"
        raise LedgerError("rewritten", message, where=path.name, fix=f"find the newest copy; else {cost}")
    if noted is not None and (noted.seq, noted.hash) != (head.seq, head.hash):
        message = f"this copy ends with entry {head.seq}, and {note.place(path).name} notes {noted.seq}"
        raise LedgerError("rewritten", message, where=path.name, fix=f"find the newest copy; else {cost}")
    return head


def _unwritten(folder: Path) -> Exception:
    fix = "check the disk, and the permissions of the folder that it is to stand in"
    return _refused("the copy cannot be written", folder.name, fix)


def _ledger(declaration: Declaration) -> Path:
    """Where the ledger lies. Raises QuestionError where it is in no file."""
    if not isinstance(declaration.ledger, Path):
        raise _refused("the ledger is in no file of this machine", "ledger", "copy the database that holds it")
    return declaration.ledger.resolve()


def _declared(content: bytes, path: Path) -> Declaration:
    """The declaration of a copy, as it is meant where it is put back."""
    try:
        return declare(tomllib.loads(content.decode(), parse_float=Decimal), file=path)
    except (ValueError, RecursionError):
        raise _changed("declaration") from None


# the files of a copy


def _listed(folder: Path) -> Copy:
    """What a copy says that it holds. Raises QuestionError where it is none."""
    try:
        with (folder / LIST).open("rb") as file:
            said = json.loads(file.read(_MOST_LISTED))
        files = {kind: BackupFile(str(one["name"]), str(one["sha256"])) for kind, one in said["files"].items()}
        assert {"declaration", "ledger"} <= set(files)
        assert all(Path(file.name).name == file.name for file in files.values())
        return Copy(Noted(int(said["entries"]), bytes.fromhex(said["head"])), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
        fix = "name a folder that `discreet backup` made"
        raise _refused("this is no copy, or its list cannot be read", folder.name, fix) from None


def _content(folder: Path, copy: Copy, kind: str) -> bytes:
    try:
        content = (folder / copy.files[kind].name).read_bytes()
    except OSError:
        raise _changed(copy.files[kind].name) from None
    if hashlib.sha256(content).hexdigest() != copy.files[kind].sha256:
        raise _changed(copy.files[kind].name)
    return content


def _copied(folder: Path, copy: Copy, kind: str, place: Path) -> None:
    """Writes one of the files, held against its hash where it now lies. Raises LedgerError."""
    with (folder / copy.files[kind].name).open("rb") as source, place.open("wb") as target:
        shutil.copyfileobj(source, target, _PIECE)
        target.flush()
        os.fsync(target.fileno())
    if _digest(place) != copy.files[kind].sha256:
        raise _changed(copy.files[kind].name)


def _changed(name: str) -> LedgerError:
    return LedgerError("corrupt", "this file of the copy is not as it was written", where=name, fix="find another copy")


def _new(path: Path) -> Path:
    """An empty file, its owner's alone."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
