"""Files that are damaged, locked, full, foreign, old or gone. The rule: refuse, or know everything that was
spent.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from discreet.errors import BudgetError, LedgerError, QuestionError
from discreet.ledger import TOTAL, Ledger, Reserved, TableState
from discreet.trusted.ledger import note, schema
from discreet.trusted.ledger.file import LedgerFile
from kinds import some
from storms import PRICE, caps, finish, forge, frozen, make, start

SPENT = 6


def fill(path: Path) -> None:
    """A ledger with every kind of entry, ten units for everybody and five for ana, of which six and three are
    spent.
    """
    make(path, units=10, ana=5)
    ledger = Ledger(path)
    ledger.register_snapshots({"t": "fingerprint"}, anew=True)
    first = 0
    for turn in range(SPENT):
        account = "ana" if turn % 2 else ""
        asked = {"question": f"question {turn}", "key": f"{turn}", "account": account, "request": f"{turn}"}
        given = ledger.reserve(PRICE, **asked, tables=["t"])
        first = first or given.reserve_id
        if turn:
            ledger.commit(given.reserve_id, f"answer {turn}".encode())
    ledger.reserve(PRICE, question="a repeat", key="1", request="again")
    ledger.fail(first)
    ledger.close()


@dataclass(frozen=True)
class Original:
    """The bytes of a ledger and of its note."""

    ledger: bytes
    note: bytes

    def put(self, path: Path, ledger: bytes | None = None) -> Path:
        """A copy of both at a path, or a note with another ledger."""
        path.write_bytes(self.ledger if ledger is None else ledger)
        note.place(path).write_bytes(self.note)
        return path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    path = tmp_path_factory.mktemp("original") / "a.ledger"
    fill(path)
    assert {file.name for file in path.parent.iterdir()} == {"a.ledger", "a.ledger.head"}
    return Original(path.read_bytes(), note.place(path).read_bytes())


def code(path: Path) -> str:
    with pytest.raises(LedgerError) as refused:
        Ledger(path).verify()
    assert refused.value.where == path.name
    assert refused.value.fix
    return refused.value.code


def test_the_file_is_its_owners(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "a.ledger")
        ledger.register({TOTAL: caps(1)}, "declared")
    finally:
        os.umask(before)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"a.ledger", "a.ledger.head"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}


def test_entries_can_only_be_added(tmp_path: Path) -> None:
    fill(tmp_path / "a.ledger")
    connection = apsw.Connection(str(tmp_path / "a.ledger"))
    for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries WHERE seq = 3"):
        with pytest.raises(apsw.ConstraintError, match="entries stay"):
            connection.execute(statement)
    with pytest.raises(apsw.ConstraintError):
        connection.execute("INSERT INTO entries SELECT * FROM entries WHERE seq = 3")


# damaged


def flips(size: int, sampled: int) -> Iterator[tuple[int, int]]:
    """Positions and the bits that change there: all of the header's, and a sample of the rest."""
    chance = random.Random(7)
    for position in [*range(100), *chance.sample(range(100, size), sampled)]:
        yield position, chance.choice((0xFF, 1 << chance.randrange(8)))


@pytest.mark.parametrize("sampled", some([200, 500], pytest.mark.power))
def test_a_flipped_byte_never_gives_anything_back(original: Original, tmp_path: Path, sampled: int) -> None:
    path = tmp_path / "a.ledger"
    seen = {"refused": 0, "harmless": 0}
    codes = set()
    for position, bits in flips(len(original.ledger), sampled):
        for file in tmp_path.iterdir():
            file.unlink()
        changed = bytearray(original.ledger)
        changed[position] ^= bits
        original.put(path, bytes(changed))
        try:
            ledger = Ledger(path)
            spent = [ledger.filter(name).spent.pure for name in (TOTAL, "ana")]
            assert spent == [SPENT * PRICE.epsilon, 3 * PRICE.epsilon], position
            verified = ledger.verify()
            assert [verified.accounts[name].spent.pure for name in (TOTAL, "ana")] == spent, position
            assert verified.entries == len(list(ledger.entries()))
            seen["harmless"] += 1
        except LedgerError as refused:
            codes.add(refused.code)
            seen["refused"] += 1
    assert min(seen.values()) > 100
    assert codes <= {"corrupt", "foreign", "newer", "unwritable"}


def test_a_flipped_byte_never_gives_a_unit_too_many(original: Original, tmp_path: Path) -> None:
    """The same without `verify`, charging until something refuses."""
    path = tmp_path / "a.ledger"
    for position, bits in random.Random(3).sample(list(flips(len(original.ledger), 500)), 100):
        for file in tmp_path.iterdir():
            file.unlink()
        changed = bytearray(original.ledger)
        changed[position] ^= bits
        original.put(path, bytes(changed))
        granted = 0
        try:
            ledger = Ledger(path)
            for turn in range(20):
                granted += isinstance(ledger.reserve(PRICE, question="q", key=f"new {turn}"), Reserved)
        except (BudgetError, LedgerError):
            assert granted <= 10 - SPENT
        else:
            raise AssertionError("never refused")


def test_a_damaged_index_is_found(original: Original, tmp_path: Path) -> None:
    """A request that the index has lost would be charged twice, which is safe; `verify` tells all the same."""
    messages = set()
    content = original.ledger
    position = content.find(b"again")
    while position >= 0:
        path = original.put(tmp_path / f"{position}.ledger", content[:position] + b"Again" + content[position + 5 :])
        with pytest.raises(LedgerError) as refused:
            Ledger(path).verify()
        messages.add(refused.value.message)
        position = content.find(b"again", position + 1)
    assert "the ledger file is damaged" in messages


def test_a_truncated_file_is_refused(original: Original, tmp_path: Path) -> None:
    whole = len(original.ledger)
    for size in [0, 1, 15, 99, 100, 511, *range(512, whole - 1, 1024), whole - 1]:
        path = original.put(tmp_path / f"{size}.ledger", original.ledger[:size])
        assert code(path) == "corrupt"


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE states SET state = replace(state, \'"finite":"3/5"\', \'"finite":"1/5"\') WHERE name = \'\'',
        "UPDATE states SET name = 'eve' WHERE name = 'ana'",
        "DELETE FROM states WHERE name = 'ana'",
        "DELETE FROM states",
        "INSERT INTO states VALUES ('account', 'eve', '{}')",
        "UPDATE states SET state = replace(state, 'true', 'false') WHERE kind = 'table'",
        "DROP TRIGGER no_update",
        "DROP INDEX one_commit",
        "CREATE TRIGGER other AFTER INSERT ON entries BEGIN DELETE FROM states; END",
        "DROP TRIGGER no_delete; DELETE FROM entries WHERE seq = 5; {restore}",
        "DROP TRIGGER no_delete; DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries); {restore}",
        "DROP TRIGGER no_delete; DELETE FROM entries; {restore}",
        "DROP TRIGGER no_update; UPDATE entries SET answer = x'00' WHERE kind = 'commit'; {restore}",
        "DROP TRIGGER no_update; UPDATE entries SET answer = x'00' WHERE kind = 'reserve'; {restore}",
        "DROP TRIGGER no_update; UPDATE entries SET key = 'k' WHERE seq = 7; {restore}",
        "DROP TRIGGER no_update; UPDATE entries SET body = replace(body, 'tion 2', 'tion 3'); {restore}",
        "DROP TRIGGER no_update; UPDATE entries SET nonce = zeroblob(32) WHERE seq = 4; {restore}",
    ],
)
def test_a_careless_edit_is_refused(original: Original, tmp_path: Path, change: str) -> None:
    path = original.put(tmp_path / "a.ledger")
    connection = apsw.Connection(str(path))
    triggers = {name: next(sql for sql in schema.TABLES if name in sql) for name in ("no_update", "no_delete")}
    connection.execute(change.replace("{restore}", triggers.get(change[13:22], "")))
    connection.close()
    assert code(path) in ("corrupt", "rewritten")


def test_a_state_that_was_set_back_is_refused_before_it_is_used(original: Original, tmp_path: Path) -> None:
    path = original.put(tmp_path / "a.ledger")
    ledger = Ledger(path)
    connection = apsw.Connection(str(path))
    connection.execute('UPDATE states SET state = replace(state, \'"finite":"3/5"\', \'"finite":"0"\')')
    with pytest.raises(LedgerError, match="balances do not fit"):
        ledger.reserve(PRICE, question="q", key="k")
    with pytest.raises(LedgerError, match="balances do not fit"):
        Ledger(path)


def test_a_stored_answer_is_verified_before_it_is_given(original: Original, tmp_path: Path) -> None:
    path = original.put(tmp_path / "a.ledger")
    ledger = Ledger(path)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER no_update; UPDATE entries SET answer = x'00' WHERE kind = 'commit'")
    with pytest.raises(LedgerError, match="not as it was written"):
        ledger.reserve(PRICE, question="q", key="1")


def test_an_older_copy_is_known_by_its_note_or_by_its_head(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    fill(path)
    shutil.copy(path, tmp_path / "backup")
    shutil.copy(note.place(path), tmp_path / "backup of the note")
    ledger = Ledger(path)
    early = ledger.head
    ledger.reserve(PRICE, question="q", key="later")
    late = ledger.head
    ledger.close()
    shutil.copy(tmp_path / "backup", path)
    assert code(path) == "rewritten"
    shutil.copy(tmp_path / "backup of the note", note.place(path))  # now nothing here knows of what is lost
    restored = Ledger(path)
    restored.verify(early)
    with pytest.raises(LedgerError) as missing:
        restored.verify(late)
    assert missing.value.code == "rewritten"
    restored.reserve(PRICE, question="q", key="later")  # the same again is another history
    with pytest.raises(LedgerError):
        restored.verify(late)


def test_a_file_that_changes_under_an_open_ledger(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    fill(path)
    shutil.copy(path, tmp_path / "backup")
    ledger = Ledger(path)
    ledger.reserve(PRICE, question="q", key="k")
    os.replace(tmp_path / "backup", path)
    with pytest.raises(LedgerError) as replaced:
        ledger.head  # noqa: B018
    assert replaced.value.code == "moved"
    path.unlink()
    with pytest.raises(LedgerError) as gone:
        ledger.reserve(PRICE, question="q", key="k2")
    assert gone.value.code == "moved"
    ledger._file._release()
    with pytest.raises(LedgerError) as still_gone:
        ledger.reserve(PRICE, question="q", key="k2")
    assert still_gone.value.code == "unwritable"
    assert not path.exists()


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    shutil.copy(path, tmp_path / "backup")

    class Slow(LedgerFile):
        def _connect(self) -> apsw.Connection:
            connection = super()._connect()
            os.replace(tmp_path / "backup", path)
            return connection

    with pytest.raises(LedgerError) as replaced:
        Slow(path)
    assert replaced.value.code == "moved"


def test_history_that_goes_back_under_an_open_ledger(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    shutil.copy(path, tmp_path / "backup")
    shutil.copy(note.place(path), tmp_path / "backup of the note")
    ledger = Ledger(path)
    ledger.reserve(PRICE, question="q", key="k")
    ledger._file._release()
    shutil.copy(tmp_path / "backup of the note", note.place(path))
    with open(path, "r+b") as file:
        file.write((tmp_path / "backup").read_bytes())
        file.truncate()
    with pytest.raises(LedgerError) as back:
        ledger.reserve(PRICE, question="q", key="k2")
    assert back.value.code == "rewritten"


# not ours


def test_what_is_no_ledger(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("patients;costs\n" * 500)
    assert code(text) == "corrupt"
    other = tmp_path / "other"
    apsw.Connection(str(other)).execute("CREATE TABLE t (x)")
    assert code(other) == "foreign"
    assert code(tmp_path) == "unwritable"
    assert code(tmp_path / "missing" / "a.ledger") == "unwritable"
    assert code(text / "a.ledger") == "unwritable"


# no room, no rights, no turn


def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10**6)
    *reserved, first, second = finish(start("filler", path, 200_000))
    assert first in {"full", "unwritable"}
    assert second in {"full", "unwritable"}
    assert len(reserved) > 5
    ledger = Ledger(path)
    assert {int(line) for line in reserved} <= {entry.seq for entry in ledger.entries() if entry.kind == "reserve"}
    ledger.verify()
    ledger.reserve(PRICE, question="q", key="there is room again")


def test_a_full_database(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    fill(path)
    ledger = Ledger(path)
    connection = ledger._file._connection
    assert connection is not None
    connection.pragma("max_page_count", connection.pragma("page_count"))
    with pytest.raises(LedgerError) as full:
        ledger.reserve(PRICE, question="q" * 50_000, key="k")
    assert full.value.code == "full"
    assert ledger.filter(TOTAL).spent.pure == SPENT * PRICE.epsilon
    connection.pragma("max_page_count", 10**6)
    ledger.reserve(PRICE, question="q" * 50_000, key="k")
    for long in ({"question": "q" * 50_001}, {"request": "r" * 50_001}):
        with pytest.raises(QuestionError, match="more than 50,000 characters"):
            ledger.reserve(PRICE, **{"question": "q", "key": "long", **long})
    ledger.verify()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555), (0o600, 0o777)])
def test_nobody_without_rights(file_mode: int, folder_mode: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "a.ledger")
        fill(path)
        path.chmod(file_mode)
        Path(name).chmod(folder_mode)
        assert finish(start("nobody", path)) == ["unwritable"]
        Path(name).chmod(0o777)
        assert Ledger(path).filter(TOTAL).spent.pure == SPENT * PRICE.epsilon


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everything")
def test_a_read_only_file(tmp_path: Path) -> None:
    fill(tmp_path / "a.ledger")
    (tmp_path / "a.ledger").chmod(0o400)
    assert code(tmp_path / "a.ledger") == "unwritable"


def test_a_lock_that_another_process_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerFile, "_busy_milliseconds", 50)
    path = tmp_path / "a.ledger"
    fill(path)
    holder = start("holder", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    ledger = Ledger(path)
    assert ledger.filter(TOTAL).spent.pure == SPENT * PRICE.epsilon  # reading goes on
    with pytest.raises(LedgerError) as busy:
        ledger.reserve(PRICE, question="q", key="k")
    assert busy.value.code == "busy"
    finish(holder)
    ledger.reserve(PRICE, question="q", key="k")
    assert ledger.filter(TOTAL).spent.pure == (SPENT + 1) * PRICE.epsilon


def test_a_thread_that_is_in_the_middle_of_a_charge(tmp_path: Path) -> None:
    """As a signal handler could find it: the charge goes on as if nothing had happened."""
    fill(tmp_path / "a.ledger")
    ledger = Ledger(tmp_path / "a.ledger")
    with ledger._file.write() as transaction:
        with pytest.raises(LedgerError, match="inside another charge"):
            ledger.reserve(PRICE, question="q", key="k")
        state = TableState(frozen=True).to_json()
        forge(transaction, {"kind": "freeze", "table": "u"}, {("table", "u"): state})
    assert frozen(ledger, "u")
    ledger.verify()
