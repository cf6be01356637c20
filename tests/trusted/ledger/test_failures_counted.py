"""Failures as the ledger counts them: by analyst, by table, and by the death of a process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import discreet
import storms
from discreet.errors import EngineError, LedgerError
from discreet.ledger import TOTAL, Ledger, TableState
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.ledger import _fail
from discreet.trusted.ledger.processes import lives, this_process
from discreet.trusted.ledger_server.server import LedgerServer
from storms import PRICE, At, Spot, caps, failed, forge, frozen, make


@pytest.fixture
def ledger(at: At) -> Ledger:
    made = Ledger(at)
    made.register({TOTAL: caps(30)}, "declared")
    return made


def open_to(ledger: Ledger, analyst: str, *tables: str) -> str:
    """ "open", or the code of the refusal."""
    try:
        ledger.check(tables, analyst)
    except EngineError as error:
        return error.code
    return "open"


def test_a_failure_suspends_its_analyst_and_the_third_freezes(ledger: Ledger) -> None:
    ledger.register_snapshots({"t": "first"}, anew=True)
    failed(ledger, "t", "ana")
    assert [open_to(ledger, who, "t") for who in ("ana", "bob", "")] == ["suspended", "open", "open"]
    assert open_to(ledger, "ana", "u", "t") == "suspended"
    assert open_to(ledger, "ana", "u") == "open"
    failed(ledger, "t", "")
    assert [open_to(ledger, who, "t") for who in ("ana", "bob", "")] == ["suspended", "open", "suspended"]
    assert not frozen(ledger, "t")
    failed(ledger, "t", "bob")
    assert frozen(ledger, "t")
    assert [open_to(ledger, who, "t") for who in ("ana", "eve", "")] == ["frozen"] * 3
    ledger.verify()
    again = Ledger(where(ledger))
    assert again.tables() == ledger.tables()
    ledger.register_snapshots({"t": "second"}, anew=True)
    assert [open_to(ledger, who, "t") for who in ("ana", "bob", "")] == ["open"] * 3
    assert ledger.tables()["t"].failures == 0


def test_lifting_lets_one_ask_again_and_forgets_no_failure(ledger: Ledger) -> None:
    failed(ledger, "t", "ana")
    failed(ledger, "t", "bob")
    assert ledger.lift("eve") == ()
    assert ledger.lift("ana") == ("t",)
    assert [open_to(ledger, who, "t") for who in ("ana", "bob")] == ["open", "suspended"]
    assert ledger.tables()["t"].failures == 2
    failed(ledger, "t", "ana")
    assert frozen(ledger, "t")
    ledger.lift("ana")
    assert open_to(ledger, "ana", "t") == "frozen"
    ledger.verify()


def test_a_reserve_fails_once_and_one_that_ended_never(ledger: Ledger) -> None:
    reserve = failed(ledger, "t")
    head = ledger.head
    ledger.fail(reserve)
    ledger.end(reserve)
    assert ledger.head == head
    given = ledger.reserve(PRICE, question="q", key="q", account="ana", tables=["t"], limit=3)
    ledger.end(given.reserve_id)
    ledger.fail(given.reserve_id)
    answered = ledger.reserve(PRICE, question="q", key="r", account="ana", tables=["t"], limit=3)
    ledger.commit(answered.reserve_id, b"1")
    ledger.fail(answered.reserve_id)
    assert open_to(ledger, "ana", "t") == "open"
    assert ledger.tables()["t"].failures == 1


def test_what_failed_is_counted_where_it_was_read(ledger: Ledger) -> None:
    """A run that may ask about every table says in the end which one it asked about."""
    given = ledger.reserve(PRICE, question="q", key="q", account="ana", tables=["t", "u"], limit=3)
    ledger.fail(given.reserve_id, ["u"])
    assert [open_to(ledger, "ana", name) for name in ("t", "u")] == ["open", "suspended"]
    ledger.verify()


KILLED = """
import sys
from pathlib import Path
from fractions import Fraction
from discreet.accounting import Pure
from discreet.ledger import Ledger
from storms import spot
ledger = Ledger(spot(sys.argv[1]))
for analyst in sys.argv[3:]:
    names = sys.argv[2].split()
    ledger.reserve(Pure(Fraction(1, 10)), question="q", key=analyst, account=analyst, tables=names, limit=3)
print("ready", flush=True)
sys.stdin.read()
"""


def where(ledger: Ledger) -> At:
    kept = ledger._file
    assert kept._path is not None
    return Spot(kept._server, kept._schema, kept._path) if isinstance(kept, LedgerServer) else kept._path


def left(path: At, *analysts: str, tables: str = "t") -> subprocess.Popen[str]:
    """A process that has reserved, and waits."""
    import sys

    arguments = [sys.executable, "-c", KILLED, str(path), tables, *analysts]
    paths = os.pathsep.join((str(Path(discreet.__file__).parents[1]), str(Path(storms.__file__).parent)))
    environment = {**os.environ, "PYTHONPATH": paths}
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_process_that_ends_without_an_answer_has_failed(ledger: Ledger, end: signal.Signals | None) -> None:
    """Once for the table, whoever had asked there; for each of them, a suspension."""
    path = where(ledger)
    process = left(path, "ana", "bob")
    assert open_to(ledger, "ana", "t") == "open"  # it still runs
    if end is not None:
        process.send_signal(end)
    assert process.stdin is not None
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but not collected
    assert [open_to(ledger, who, "t") for who in ("ana", "bob", "eve")] == ["suspended", "suspended", "open"]
    process.wait()
    assert ledger.tables()["t"].failures == 1
    assert ledger.verify().unanswered == 2
    assert Ledger(path).tables() == ledger.tables()
    assert process.stdout is not None
    process.stdout.close()


def test_a_death_is_seen_by_whoever_opens_the_ledger_later(ledger: Ledger) -> None:
    """Though others have reserved, and got answers, after what the dead process left."""
    path = where(ledger)
    process = left(path, "ana")
    for key in "xyz":
        ledger.check(["t"], "bob")
        given = ledger.reserve(PRICE, question="q", key=key, account="bob", tables=["t"], limit=3)
        ledger.commit(given.reserve_id, b"1")
    ledger.close()
    process.kill()
    process.communicate()
    later = Ledger(path)
    assert [open_to(later, who, "t") for who in ("ana", "bob")] == ["suspended", "open"]
    assert later.tables()["t"].failures == 1


def test_a_death_counts_in_every_table_that_was_being_read(ledger: Ledger) -> None:
    path = where(ledger)
    process = left(path, "ana", "bob", tables="t u")
    process.kill()
    process.communicate()
    assert [open_to(ledger, who, name) for who in ("ana", "bob") for name in "tu"] == ["suspended"] * 4
    assert [ledger.tables()[name].failures for name in "tu"] == [1, 1]
    ledger.verify()


def test_two_that_see_a_death_count_it_once(ledger: Ledger) -> None:
    path = where(ledger)
    process = left(path, "ana")
    process.kill()
    process.communicate()
    other = Ledger(path)
    dead = [seq for seq in range(1, 9) if (record := entry(other, seq)) and "process" in record]
    assert len(dead) == 1
    ledger.settle()
    with other._file.write() as transaction:
        _fail(transaction, dead)
    assert ledger.tables()["t"].failures == 1


def entry(ledger: Ledger, seq: int) -> dict[str, object] | None:
    with ledger._file.read() as transaction:
        record = transaction.find("e.seq = $1", seq=seq)
    return None if record is None else dict(record.body)


def test_which_process_lives() -> None:
    place, number, began = this_process().split()
    assert lives(f"{place} {number} {began}")
    assert not lives(f"{'0' * 16} {number} {began}")
    assert not lives(f"{place} {number} {int(began) - 1}")
    assert not lives(f"{place} {2**22 + 1} {began}")
    child = os.fork()
    if not child:
        os._exit(0 if this_process().split()[1] == str(os.getpid()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_reserves_of_older_versions_do_not_count(ledger: Ledger) -> None:
    ledger.reserve(PRICE, question="q", key="q", account="ana")
    head = ledger.head
    ledger.settle()
    assert ledger.head == head


@pytest.mark.parametrize(
    ("kind", "fields", "state"),
    [
        ("failure", {"reserve": 3, "limit": 3}, {"failures": 0, "suspended": []}),
        ("failure", {"reserve": 3, "limit": 3}, {"failures": 1, "suspended": []}),
        ("failure", {"reserve": 3, "limit": 3}, {"failures": 0, "suspended": ["ana"]}),
        ("failure", {"reserve": 3, "limit": 1}, {"failures": 1, "suspended": ["ana"]}),  # and frozen
        ("failure", {"reserve": 1, "limit": 3}, {"failures": 1, "suspended": ["ana"]}),  # no reserve
        ("end", {"reserve": 1}, None),
        ("lift", {}, {"failures": 0, "suspended": []}),
    ],
)
def test_a_count_that_does_not_add_up(
    tmp_path: Path, kind: str, fields: dict[str, object], state: dict[str, object] | None
) -> None:
    make(tmp_path / "a.ledger", units=5)
    ledger = Ledger(tmp_path / "a.ledger")
    given = ledger.reserve(PRICE, question="q", key="q", account="ana", tables=["t"], limit=3)
    assert given.reserve_id == 3
    if kind == "lift":
        ledger.fail(3)
    body = {"analyst": "ana", "tables": ["t"], "counted": ["t"]} if state is not None else {}
    plain = {"number": 0, "fingerprint": "", "frozen": False}
    kept = {name: value for name, value in (state or {}).items() if value}
    with ledger._file.write() as transaction:
        forge(transaction, {"kind": kind, **body, **fields}, {} if state is None else {("table", "t"): plain | kept})
    with pytest.raises(LedgerError) as wrong:
        ledger.verify()
    assert wrong.value.code == "corrupt"


def test_states_without_failures_read_as_before(ledger: Ledger) -> None:
    ledger.register_snapshots({"t": "f"}, anew=True)
    with ledger._file.read() as transaction:
        (since,) = [entry.body["since"] for entry in transaction.entries() if entry.body["kind"] == "snapshot"]
        written = {"fingerprint": "f", "frozen": False, "number": 1, "since": since}
        assert transaction.texts["table", "t"] == chain.canonical(written)
    older = TableState.from_json({"fingerprint": "f", "frozen": False, "number": 1})
    assert older.to_json() == {"fingerprint": "f", "frozen": False, "number": 1}
