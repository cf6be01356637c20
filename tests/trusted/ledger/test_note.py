"""The ledger is one file, its last head stands in a second one, and no misfortune of either takes a charge back
unseen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import misfortunes
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Ledger
from discreet.trusted.ledger import note
from discreet.trusted.ledger.file import LedgerFile
from discreet.trusted.ledger.transaction import Transaction
from storms import PRICE, caps, finish, forge, make, start


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def charge(ledger: Ledger, *keys: str) -> None:
    for key in keys:
        ledger.reserve(PRICE, question="q", key=key)


def code(path: Path) -> str:
    with pytest.raises(LedgerError) as refused:
        Ledger(path)
    assert refused.value.fix
    return refused.value.code


def restored(path: Path, folder: Path, *files: Path) -> None:
    for file in files:
        shutil.copy(folder / file.name, path.parent)


# one file


def test_between_two_charges_the_ledger_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=5)
    with closing(Ledger(path)) as ledger:
        for turn in range(3):
            charge(ledger, f"{turn}")
            assert names(tmp_path) == {"a.ledger", "a.ledger.head"}
            assert note.read(path) == note.Noted(3 + turn, bytes.fromhex(ledger.head))
            alone = tmp_path / f"copy{turn}"
            alone.mkdir()
            for file in (path, note.place(path)):
                shutil.copy(file, alone)
            with closing(Ledger(alone / "a.ledger")) as copy:
                assert copy.filter(TOTAL).spent.pure == (turn + 1) * PRICE.epsilon
            shutil.rmtree(alone)


def test_a_program_that_ends_finishes_the_charge_that_a_thread_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    program = """
import sys, threading, time
from pathlib import Path
from discreet.ledger.store import Ledger
ledger, begun = Ledger(Path(sys.argv[1])), threading.Event()
def work():
    with ledger._file.write() as transaction:
        transaction.append("freeze", {"table": "u"})
        begun.set()
        time.sleep(0.3)
threading.Thread(target=work, daemon=True).start()
begun.wait()
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert names(tmp_path) == {"a.ledger", "a.ledger.head"}
    with closing(Ledger(path)) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["open", "register", "freeze"]


# the second place


def test_an_older_ledger_beside_the_note_is_refused_until_the_owner_says_what_is_lost(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.ledger", tmp_path / "kept"
    make(path, units=10, ana=5)
    kept.mkdir()
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a")
        shutil.copy(path, kept)
        charge(ledger, "b", "c")
    restored(path, kept, path)
    assert code(path) == "rewritten"
    with pytest.raises(LedgerError, match="noted history is missing") as refused:
        Ledger(path)
    assert "--spend-unknown" in refused.value.fix
    Ledger.spend_unknown(path, PRICE).close()
    with closing(Ledger(path)) as ledger:
        assert ledger.verify().accounts[TOTAL].spent.pure == 2 * PRICE.epsilon
        charge(ledger, "d")
    with closing(Ledger(path)) as ledger:
        assert ledger.filter(TOTAL).spent.pure == 3 * PRICE.epsilon
    restored(path, kept, path)
    assert code(path) == "rewritten"


def test_a_ledger_that_was_charged_for_what_is_lost_goes_on_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    with closing(Ledger.spend_unknown(path, PRICE)) as ledger:
        ledger.check(["t"], "")
        given = ledger.reserve(PRICE, question="q", key="k", tables=["t"])
        ledger.commit(given.reserve_id, b"answer")
        assert ledger.verify().accounts[TOTAL].spent.pure == 2 * PRICE.epsilon


def test_an_entry_says_what_happened_and_never_what_follows(tmp_path: Path) -> None:
    """Whoever has a transaction writes no balance by it: a charge beyond the caps is refused, states are derived."""
    path = tmp_path / "a.ledger"
    make(path, units=1)
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a")
        head = ledger.head
        fields = {"reserve": 4, "account": None, "loss": PRICE.to_json(), "states": [], "balances": ""}
        with pytest.raises(BudgetError), ledger._file.write() as transaction:
            transaction.append("reserve", fields)
        wrong = {"changes": [("", None, caps(9).to_json())], "declaration": ""}  # as if it were a new account
        with pytest.raises(ValueError, match="other caps"), ledger._file.write() as transaction:
            transaction.append("register", wrong)
        assert ledger.head == head
        assert ledger.verify().accounts[TOTAL].spent.pure == PRICE.epsilon


def test_a_ledger_without_its_note_is_refused_and_a_note_without_its_ledger(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.ledger", tmp_path / "kept"
    make(path, units=10)
    kept.mkdir()
    for file in (path, note.place(path)):
        shutil.copy(file, kept)
    note.place(path).unlink()
    assert code(path) == "unnoted"
    restored(path, kept, note.place(path))
    Ledger(path).close()
    path.unlink()
    assert code(path) == "missing"
    assert not path.exists()
    restored(path, kept, path)
    note.place(path).write_bytes(b"")
    assert code(path) == "corrupt"
    Ledger.spend_unknown(path, None).close()
    Ledger(path).close()


def test_a_note_that_is_lost_while_the_ledger_is_open(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    with closing(Ledger(path)) as ledger:
        note.place(path).rename(tmp_path / "elsewhere")
        with pytest.raises(LedgerError) as refused:
            charge(ledger, "a")
        assert refused.value.code == "moved"  # it is charged, and nobody was told that it is
        (tmp_path / "elsewhere").rename(note.place(path))
        charge(ledger, "b")
    with closing(Ledger(path)) as ledger:
        assert ledger.filter(TOTAL).spent.pure == 2 * PRICE.epsilon


def test_a_line_that_a_crash_tore_leaves_the_line_before(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path, units=10)
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a")
        earlier = note.read(path)
        assert earlier is not None
        before = note.place(path).read_bytes()
        charge(ledger, "b")
    after = note.place(path).read_bytes()
    written = [position for position, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert written[-1] - written[0] < 512
    for end in range(written[0] + 1, written[-1]):
        note.place(path).write_bytes(after[:end] + before[end:])
        assert note.read(path) == earlier
    with closing(Ledger(path)) as ledger:  # the ledger is ahead, and what it knows is noted
        assert note.read(path) == note.Noted(4, bytes.fromhex(ledger.head))


def test_of_heads_that_come_in_another_order_the_last_one_stays(tmp_path: Path) -> None:
    """Two processes commit one after the other, and note the other way round."""
    path = tmp_path / "a.ledger"
    make(path, units=10)
    head = note.read(path)
    assert head is not None
    for seq in (9, 12):
        note.advance(path, note.Noted(seq, bytes(32)), 0)
    written = note.place(path).read_bytes()
    for seq in (7, 8, 11):
        note.advance(path, note.Noted(seq, bytes(32)), 0)
    assert note.place(path).read_bytes() == written
    assert note.read(path) == note.Noted(12, bytes(32))


def test_a_note_that_another_process_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(LedgerFile, "_busy_milliseconds", 20)
    path = tmp_path / "a.ledger"
    make(path, units=10)
    with closing(Ledger(path)) as ledger, open(note.place(path)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LedgerError) as busy:
            charge(ledger, "a")
        assert busy.value.code == "busy"
        fcntl.flock(held, fcntl.LOCK_UN)
        charge(ledger, "b")
        assert ledger.filter(TOTAL).spent.pure == 2 * PRICE.epsilon


def test_an_entry_between_the_note_and_the_head_is_followed(tmp_path: Path) -> None:
    """The head fits the entry before it, but that does not follow from the noted one."""
    path = tmp_path / "a.ledger"
    make(path, units=10)
    noted = note.place(path).read_bytes()
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a", "b", "c", "d")
    connection = apsw.Connection(str(path))
    ((trigger,),) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'no_update'")
    connection.execute("DROP TRIGGER no_update; UPDATE entries SET nonce = zeroblob(32) WHERE seq = 4")
    connection.execute(trigger)
    connection.close()
    Ledger(path).close()  # the note stands behind the damaged entry: `verify` finds it
    note.place(path).write_bytes(noted)
    assert code(path) == "corrupt"


# earlier versions


def in_wal_mode(path: Path, units: int) -> None:
    """As an earlier version left a ledger: in WAL mode, without a note."""
    make(path, units)
    connection = apsw.Connection(str(path))
    assert connection.pragma("journal_mode", "wal") == "wal"
    connection.close()
    note.place(path).unlink()


def test_a_ledger_in_wal_mode_becomes_one_file_with_what_its_log_holds(tmp_path: Path) -> None:
    path, killed = tmp_path / "old" / "a.ledger", tmp_path / "killed"
    path.parent.mkdir()
    in_wal_mode(path, units=10)
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a")
    # the same as a killed process would leave it: what was charged last stands in the log alone
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    note.place(path).unlink()
    connection.execute("BEGIN IMMEDIATE")
    forge(Transaction(connection), {"kind": "freeze", "table": "u"})
    connection.execute("COMMIT")
    killed.mkdir()
    for file in path.parent.iterdir():
        shutil.copy(file, killed)
    connection.close()
    assert names(killed) == {"a.ledger", "a.ledger-wal", "a.ledger-shm"}
    with closing(Ledger(killed / "a.ledger")) as ledger:
        assert names(killed) == {"a.ledger", "a.ledger.head"}
        assert list(ledger.entries())[-1].kind == "freeze"
        assert ledger.filter(TOTAL).spent.pure == PRICE.epsilon


def test_several_processes_open_a_ledger_in_wal_mode_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    in_wal_mode(path, units=10**6)
    writers = [start("writer", path, f"{name}", 10) for name in range(4)]
    released = [line for writer in writers for line in finish(writer)]
    assert (len(released), [writer.returncode for writer in writers]) == (40, [0] * 4)
    with closing(Ledger(path)) as ledger:
        assert ledger.verify().accounts[TOTAL].spent.pure == 40 * PRICE.epsilon
    assert names(tmp_path) == {"a.ledger", "a.ledger.head"}


def test_a_ledger_in_wal_mode_that_somebody_holds_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerFile, "_busy_milliseconds", 20)
    path = tmp_path / "a.ledger"
    in_wal_mode(path, units=10)
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM entries").fetchall()
    assert code(path) == "busy"
    connection.close()
    Ledger(path).close()


# other names


def test_a_ledger_with_two_names_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "a.ledger", tmp_path / "b.ledger"
    make(path, units=10)
    with closing(Ledger(path)) as ledger:
        os.link(path, other)
        assert (code(path), code(other)) == ("linked", "linked")
        with pytest.raises(LedgerError, match="several names"):
            charge(ledger, "a")
        other.unlink()
        charge(ledger, "a")
    os.link(path, tmp_path / ".discreet-left-by-a-crash")
    Ledger(path).close()
    assert names(tmp_path) == {"a.ledger", "a.ledger.head"}


# misfortunes


def test_no_misfortune_after_a_kill_takes_a_charge_back_unseen() -> None:
    found = misfortunes.storm(rounds=10, each=6)
    total: Counter[str] = Counter()
    for (_, how), count in found.items():
        total[how] += count
    assert total["unseen"] == 0
    assert found["kill", "refused"] == 0  # a kill alone stops nobody
    assert found["older copy", "refused"] > 0
    assert found["loss of .head", "refused"] == 10 * 6
    assert total["refused"] > 100


def test_no_mixture_of_pages_takes_a_charge_back_unseen() -> None:
    found = misfortunes.mixtures(charges=20, most=10)
    assert found["unseen"] == 0
    assert min(found["whole"], found["refused"]) > 20


def test_a_storm_that_would_find_what_is_unseen(tmp_path: Path) -> None:
    """The instrument itself: with both files set back, nothing here can tell."""
    path, kept = tmp_path / "a.ledger", tmp_path / "kept"
    make(path, units=10)
    kept.mkdir()
    for file in (path, note.place(path)):
        shutil.copy(file, kept)
    with closing(Ledger(path)) as ledger:
        charge(ledger, "a")
    restored(path, kept, path, note.place(path))
    assert misfortunes.outcome(path, 1) == "unseen"


def test_a_copy_put_back_under_an_open_ledger_is_seen_before_the_next_charge(tmp_path: Path) -> None:
    """In the same place, so that the file is the same: who has it open last saw an entry that the copy holds, and what
    another process was charged since is in the note alone."""
    path = tmp_path / "a.ledger"
    make(path, units=5)
    with closing(Ledger(path)) as open_:
        charge(open_, "before")
        copy = path.read_bytes()
        with closing(Ledger(path)) as other:
            charge(other, "acknowledged")
        path.write_bytes(copy)
        head = (tmp_path / "a.ledger.head").read_bytes()
        with pytest.raises(LedgerError) as refused:
            charge(open_, "after")
        assert refused.value.code == "rewritten"
        assert (tmp_path / "a.ledger.head").read_bytes() == head
    with pytest.raises(LedgerError):
        Ledger(path)
