"""Races and crashes on real ledger files, in real processes. The tests run them small, a bench runs them
large.

`python storms.py ROLE …` is what the other processes do; see `ROLES`.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import apsw

import deaths
import discreet
from discreet.accounting import Pure
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Caps, Ledger, Reserved, Stored
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ledger_server.place import Place

SHORE = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where storms are: a kill is no power cut, so what a process has written is there, on a disk or in memory."""
PRICE = Pure(Fraction(1, 10))
WRITES = ("reserve", "commit")
STEPS = (
    "before-begin",
    "after-begin",
    "before-insert",
    "after-insert",
    "before-commit-transaction",
    "after-commit-transaction",
    "after-note",
)


def caps(units: int) -> Caps:
    """A budget of so many releases at PRICE."""
    return Caps(units * PRICE.epsilon, Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Spot(Place):
    """A place on a server, written so that another process can read it."""

    def __str__(self) -> str:
        return f"{self.server}::{self.schema}::{self.beside}"


def spot(text: str) -> Path | Spot:
    """Where a ledger is, as it was written for another process."""
    server, *rest = text.split("::")
    return Spot(server, rest[0], Path(rest[1])) if rest else Path(text)


At = Path | Place


def new_spot(at: At, name: str) -> At:
    """Another place, in the same folder and on the same server."""
    return Spot(at.server, name, at.beside.with_name(name)) if isinstance(at, Place) else at.with_name(name)


def make(at: At, units: int, **analysts: int) -> None:
    """A new ledger with a budget of `units`, and analysts' own."""
    ledger = Ledger(at)
    ledger.register({TOTAL: caps(units), **{name: caps(own) for name, own in analysts.items()}}, "a test")
    ledger.close()


def failed(ledger: Ledger, table: str, analyst: str = "", limit: int = 3) -> int:
    """A measurement that is paid for and fails. Gives its reserve."""
    given = ledger.reserve(PRICE, question="fails", key="fails", account=analyst, tables=[table], limit=limit)
    assert isinstance(given, Reserved)
    ledger.fail(given.reserve_id)
    return given.reserve_id


def frozen(ledger: Ledger, table: str) -> bool:
    states = ledger.tables()
    return table in states and states[table].frozen


def forge(
    transaction: Transaction, fields: Mapping[str, object], changed: Mapping[tuple[str, str], object] = {}
) -> None:
    """Write an entry with a good hash and whatever states, as a faulty program would."""
    head, connection = transaction.head, transaction.connection
    transaction.head = chain.append(connection, head, transaction.texts, fields, changed)


def start(role: str, *arguments: object, die_at: str = "") -> subprocess.Popen[str]:
    """Another process in a role, which says "ready" once it has loaded."""
    paths = [Path(discreet.__file__).parents[1], Path(deaths.__file__).parent]
    process = subprocess.Popen(
        deaths.command(die_at, __file__, role, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> list[str]:
    """The lines that the process has yet to say."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    lines = process.stdout.read().splitlines()
    process.stdout.close()
    process.wait()
    return lines


@contextmanager
def crowd(role: str, size: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Several processes in a role."""
    processes = [start(role) for _ in range(size)]
    try:
        yield processes
    finally:
        for process in processes:
            finish(process)


def ask_all(processes: list[subprocess.Popen[str]], line: str) -> list[str]:
    """Say a line to all at once, and hear one line from each."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    return [process.stdout.readline().strip() for process in processes if process.stdout is not None]


# races


def race(times: int, processes: int = 8, units: int = 10, at: At | None = None) -> list[int]:
    """How many of the units were granted when all processes wanted them, each time anew."""
    grants = []
    with tempfile.TemporaryDirectory(dir=SHORE) as folder, crowd("racer", processes) as racers:
        for turn in range(times):
            path = new_spot(at or Path(folder, "file"), f"race {turn}")
            make(path, units)
            grants.append(sum(map(int, ask_all(racers, str(path)))))
            ledger = Ledger(path)
            charged = ledger.verify().accounts[TOTAL].spent.pure
            assert charged == grants[-1] * PRICE.epsilon
            ledger.close()
    return grants


def _racer() -> None:
    for line in sys.stdin:
        ledger = Ledger(spot(line.strip()))
        granted = sum(_granted(ledger, f"{os.getpid()}-{turn}") for turn in range(4))
        ledger.close()
        print(granted, flush=True)


def _granted(ledger: Ledger, key: str) -> bool:
    try:
        return isinstance(ledger.reserve(PRICE, question="a race", key=key), Reserved)
    except BudgetError:
        return False


def duplicates(times: int, processes: int = 8, at: At | None = None) -> list[list[str]]:
    """What each process heard when all sent one request at once: charged, pending or the answer."""
    with tempfile.TemporaryDirectory(dir=SHORE) as folder, crowd("twin", processes) as twins:
        path = new_spot(at or Path(folder, "file"), "twins")
        make(path, 10**6)
        return [ask_all(twins, f"{turn} {path}") for turn in range(times)]


def _twin() -> None:
    for line in sys.stdin:
        name, path = line.strip().split(" ", 1)
        ledger = Ledger(spot(path))
        print(send(ledger, name), flush=True)
        ledger.close()


def send(ledger: Ledger, name: str) -> str:
    """Ask one question under one request, and answer it if it is charged."""
    try:
        given = ledger.reserve(PRICE, question="which twin?", key=name, request=name)
    except LedgerError as error:
        return error.code
    if isinstance(given, Reserved):
        ledger.commit(given.reserve_id, f"answer {os.getpid()}".encode())
        return "charged"
    return given.answer.decode()


# crashes


@dataclass(frozen=True)
class Storm:
    """What a storm left: releases that were let out, how many of them the ledger does not know, and its
    entries.
    """

    released: int
    unknown: int
    unanswered: int
    entries: int


def kill_storm(rounds: int, seed: int = 1, at: At | None = None) -> Storm:
    """Two writers on one ledger, killed at random moments again and again."""
    chance = random.Random(seed)
    released: list[str] = []
    with tempfile.TemporaryDirectory(dir=SHORE) as folder:
        path = new_spot(at or Path(folder, "file"), "storm")
        make(path, 10**7)
        brood = start("brood", path)
        for turn in range(rounds):
            children = [int(hear(brood, f"{turn}-{name}", "child ", released)) for name in "ab"]
            assert brood.stdout is not None
            released += [brood.stdout.readline().strip() for _ in range(chance.randrange(40))]
            for child in chance.sample(children, 2):
                os.kill(child, signal.SIGKILL)
            hear(brood, "reap", "reaped", released)
        assert finish(brood) == []
        return aftermath(path, released)


def hear(brood: subprocess.Popen[str], line: str, prefix: str, released: list[str]) -> str:
    """Say a line to the brood and hear what it says to it; what its children let out meanwhile is noted."""
    assert brood.stdin is not None
    assert brood.stdout is not None
    brood.stdin.write(f"{line}\n")
    brood.stdin.flush()
    while not (heard := brood.stdout.readline().strip()).startswith(prefix):
        released.append(heard)
    return heard.removeprefix(prefix)


def _brood(path: str) -> None:
    """Forks a writer for each name that it hears, and on "reap" waits for their ends."""
    children: list[int] = []
    for line in sys.stdin:
        if line == "reap\n":
            for child in children:
                os.waitpid(child, 0)
            children.clear()
            os.write(1, b"reaped\n")
            continue
        children.append(os.fork())
        if children[-1] == 0:
            try:
                _writer(path, line.strip(), "1000000")
            except BaseException:
                os.write(1, b"an error that no death explains\n")
            os._exit(0)
        os.write(1, f"child {children[-1]}\n".encode())


def aftermath(path: At, released: list[str]) -> Storm:
    """Verify a ledger after a storm, and look for what was released in it."""
    ledger = Ledger(path)
    verified = ledger.verify()
    reserves = {entry.seq for entry in ledger.entries() if entry.kind == "reserve"}
    assert ledger.filter(TOTAL).spent.pure == len(reserves) * PRICE.epsilon <= ledger.filter(TOTAL).epsilon
    unknown = sum(int(line) not in reserves for line in released)
    ledger.close()
    return Storm(len(released), unknown, verified.unanswered, verified.entries)


def _writer(path: str, name: str, count: str) -> None:
    ledger = Ledger(spot(path))
    for turn in range(int(count)):
        try:
            given = ledger.reserve(PRICE, question="a storm", key=f"{name}-{turn}", request=f"{name}-{turn}")
        except BudgetError:
            return
        os.write(1, f"{given.reserve_id}\n".encode())  # a release: from here on others know
        ledger.commit(given.reserve_id, b"{}" * 50)


def _registrar(path: str, name: str) -> None:
    """Registers the budget under a declaration of its own, so that it writes whatever others did."""
    Ledger(spot(path)).register({TOTAL: caps(8)}, name)


def _refresher(path: str, name: str) -> None:
    """Takes a snapshot of a table anew."""
    Ledger(spot(path)).register_snapshots({"visits": name}, anew=True)


def _repeater(path: str, name: str) -> None:
    """Asks under an account of its own what is stored already, and says what it is charged and told."""
    given = Ledger(spot(path)).reserve(PRICE, question="what is stored", key="stored", account=name)
    assert isinstance(given, Stored)
    os.write(1, f"{len(given.charged)} {given.answer.decode()}\n".encode())


# other misfortunes


def _creator(path: str) -> None:
    make(spot(path), 10)


def _opener(path: str) -> None:
    make(spot(path), 10)
    ledger = Ledger(spot(path))
    ledger.register_snapshots({"t": "fingerprint"}, anew=True)
    ledger.close()


def _holder(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.read()


def _nobody(path: str) -> None:
    """Open as a user without rights."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    _say_code(lambda: Ledger(spot(path)))


def _filler(path: str, room: str) -> None:
    """Write until files cannot grow by more than `room` bytes."""
    ledger = Ledger(spot(path))
    size = sum(file.stat().st_size for file in Path(path).parent.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(room), resource.RLIM_INFINITY))
    turn = 0

    def fill() -> None:
        nonlocal turn
        while turn < 10_000:
            given = ledger.reserve(PRICE, question="q" * 5000, key=f"{turn}")
            print(given.reserve_id, flush=True)
            turn += 1

    _say_code(fill)
    _say_code(fill)


def _forker(path: str) -> None:
    """Charge before and after a fork, in parent and child, and close the parent's file first."""
    ledger, memory = Ledger(spot(path)), Ledger(None)
    _say(_granted(ledger, "before"))
    from_parent, to_child = os.pipe()
    child = os.fork()
    if child == 0:
        _say(_granted(ledger, "child"))
        os.read(from_parent, 1)  # the parent has closed
        _say(_granted(ledger, "child again"))
        _say_code(lambda: memory.head)
        os._exit(0)
    _say(_granted(ledger, "parent"))
    ledger.close()
    os.write(to_child, b".")
    os.waitpid(child, 0)
    _say(bool(memory.head))


def _say_code(act: object) -> None:
    try:
        act()  # type: ignore[operator]
        _say("done")
    except LedgerError as error:
        _say(error.code)


def _say(what: object) -> None:
    """A line in one call, so that no other process's line ends in its midst."""
    os.write(1, f"{what}\n".encode())


ROLES = {
    "racer": _racer,
    "twin": _twin,
    "writer": _writer,
    "brood": _brood,
    "creator": _creator,
    "registrar": _registrar,
    "refresher": _refresher,
    "repeater": _repeater,
    "holder": _holder,
    "nobody": _nobody,
    "filler": _filler,
    "forker": _forker,
}

if __name__ == "__main__":
    print("ready", flush=True)
    ROLES[sys.argv[1]](*sys.argv[2:])
