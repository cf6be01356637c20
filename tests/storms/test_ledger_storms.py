"""Many processes, many threads, and processes that die."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

import storms
from discreet.errors import BudgetError
from discreet.ledger import TOTAL, Ledger, Reserved, Stored
from discreet.trusted.ledger import note
from kinds import some
from storms import PRICE, STEPS, WRITES, At, aftermath, duplicates, finish, kill_storm, make, race, send, start

DURABLE = ("after-commit-transaction", "after-note")
"""The steps after which what was written is there, whoever dies."""


@pytest.mark.storm
def test_eight_processes_race_for_ten_units(at: At) -> None:
    assert race(3, at=at) == [10] * 3


@pytest.mark.storm
def test_twins_are_charged_once(at: At) -> None:
    for heard in duplicates(6, at=at):
        assert heard.count("charged") == 1
        answers = set(heard) - {"charged", "pending"}
        assert len(answers) <= 1
        assert all(answer.startswith("answer ") for answer in answers)


def test_threads_share_one_ledger(at: At) -> None:
    make(at, units=10, ana=4)
    ledger = Ledger(at)
    heard: list[str] = []
    barrier = threading.Barrier(8)

    def work(name: int) -> None:
        barrier.wait()
        heard.append(send(ledger, "one for all"))
        for turn in range(4):
            try:
                ledger.reserve(PRICE, question="q", key=f"{name}-{turn}", account="ana" if name % 2 else "")
                heard.append("granted")
            except BudgetError:
                heard.append("refused")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count = Counter(heard)
    assert count["charged"] == 1
    assert count["granted"] == 9
    assert count["refused"] == 32 - 9
    accounts = ledger.verify().accounts
    assert accounts[TOTAL].spent.pure == 10 * PRICE.epsilon
    assert (accounts["ana"].spent.pure or 0) <= 4 * PRICE.epsilon


@pytest.mark.storm
def test_makers_agree_on_one_ledger(at: At, tmp_path: Path) -> None:
    for process in [start("creator", at) for _ in range(4)]:
        assert finish(process) == []
        assert process.returncode == 0
    assert [entry.kind for entry in Ledger(at).entries()] == ["open", "register"]
    assert not list(tmp_path.glob(".discreet*"))


@pytest.mark.parametrize(
    ("write", "step"),
    some(
        sorted(itertools.product(WRITES, STEPS), key=("reserve", "after-commit-transaction").__ne__), pytest.mark.storm
    ),
)
def test_a_death_at_each_step_beside_another_writer(at: At, write: str, step: str) -> None:
    path = at
    make(path, units=8)
    dying = start("writer", path, "dying", 9, die_at=f"{write}-{step}")
    living = start("writer", path, "living", 9)
    released = finish(dying) + finish(living)
    assert dying.returncode == -9
    assert living.returncode == 0
    storm = aftermath(path, released)
    assert storm.unknown == 0
    reserves = 8  # the one who lives takes all that is left
    durable = write == "commit" or step in ("after-commit-transaction", "after-note")
    assert storm.released == reserves - (durable and write == "reserve")
    assert storm.unanswered == (
        durable and (write == "reserve" or step not in ("after-commit-transaction", "after-note"))
    )
    with pytest.raises(BudgetError):
        Ledger(path).reserve(PRICE, question="q", key="another")


@pytest.mark.storm
@pytest.mark.parametrize("step", ["create-before-link", "create-after-link", "note-before-link", "note-after-link"])
def test_a_death_while_the_ledger_is_made(tmp_path: Path, step: str) -> None:
    path = tmp_path / "a.ledger"
    dying = start("creator", path, die_at=step)
    finish(dying)
    assert dying.returncode == -9
    assert path.exists() == (step != "create-before-link")
    assert note.place(path).exists() == (step == "note-after-link")
    make(path, units=3)
    ledger = Ledger(path)
    ledger.reserve(PRICE, question="q", key="k")
    assert ledger.verify().entries == 3
    assert path.stat().st_nlink == 1


def beside(path: At, role: str, step: str) -> dict[str, list[str]]:
    """What two in one role said, of whom the first died at a step."""
    dying, living = start(role, path, "dying", die_at=step), start(role, path, "living")
    said = {"dying": finish(dying), "living": finish(living)}
    assert (dying.returncode, living.returncode) == (-9, 0)
    return said


@pytest.mark.storm
@pytest.mark.parametrize("step", STEPS)
def test_a_death_while_a_declaration_is_registered(at: At, step: str) -> None:
    path = at
    Ledger(path).close()
    beside(path, "registrar", f"register-{step}")
    ledger = Ledger(path)
    assert [entry.kind for entry in ledger.entries()] == ["open", *["register"] * (1 + (step in DURABLE))]
    assert ledger.verify().accounts[TOTAL].epsilon == storms.caps(8).epsilon
    make(path, units=8)
    assert isinstance(ledger.reserve(PRICE, question="q", key="k"), Reserved)


@pytest.mark.storm
@pytest.mark.parametrize("step", STEPS)
def test_a_death_while_a_snapshot_is_taken(at: At, step: str) -> None:
    path = at
    make(path, units=8)
    beside(path, "refresher", f"snapshot-{step}")
    ledger = Ledger(path)
    taken = 1 + (step in DURABLE)
    assert [entry.kind for entry in ledger.entries()] == ["open", "register", *["snapshot"] * taken]
    snapshot = ledger.snapshot("visits")
    assert snapshot is not None
    assert snapshot.number == taken
    assert snapshot.fingerprint == "living" or (snapshot.fingerprint == "dying" and taken == 2)
    assert ledger.register_snapshots({"visits": "another"}) == {"visits": snapshot}
    assert ledger.verify().entries == 2 + taken


@pytest.mark.storm
@pytest.mark.parametrize(
    "step",
    ["repeat-before-insert", "repeat-after-insert", *(f"reserve-{step}" for step in STEPS if "insert" not in step)],
)
def test_a_death_while_a_stored_answer_is_given_again(at: At, step: str) -> None:
    """Nothing is measured, so nothing is left unanswered; who was told was debited, and nobody twice."""
    path = at
    make(path, units=8, dying=4, living=4)
    ledger = Ledger(path)
    first = ledger.reserve(PRICE, question="what is stored", key="stored")
    assert isinstance(first, Reserved)
    ledger.commit(first.reserve_id, b"42")
    assert beside(path, "repeater", step) == {"dying": [], "living": ["1 42"]}
    verified = ledger.verify()
    debited = {name: account.spent.pure for name, account in verified.accounts.items()}
    durable = step.removeprefix("reserve-") in DURABLE
    assert debited == {TOTAL: PRICE.epsilon, "living": PRICE.epsilon, "dying": durable * PRICE.epsilon}
    assert verified.unanswered == 0
    again = ledger.reserve(PRICE, question="what is stored", key="stored", account="dying")
    assert isinstance(again, Stored)
    assert (again.answer, len(again.charged)) == (b"42", 1 - durable)
    assert ledger.filter("dying").spent.pure == PRICE.epsilon


@pytest.mark.storm
def test_a_death_while_the_ledger_is_read(at: At) -> None:
    path = at
    make(path, units=8)
    dying, living = (
        start("writer", path, "dying", 9, die_at="read-after-begin"),
        start("writer", path, "living", 9),
    )
    assert finish(dying) == []
    assert aftermath(path, finish(living)) == storms.Storm(released=8, unknown=0, unanswered=0, entries=18)
    assert (dying.returncode, living.returncode) == (-9, 0)


@pytest.mark.storm
def test_a_storm_of_deaths(at: At) -> None:
    storm = kill_storm(25, at=at)
    assert storm.released > 100
    assert storm.unknown == 0


def test_other_threads_go_on_after_a_fork(at: At) -> None:
    """In the parent and in the child: the thread that forks holds the ledger until then, and no longer."""
    make(at, units=10)
    ledger = Ledger(at)
    charged: list[str] = []

    def charge(key: str) -> None:
        ledger.reserve(PRICE, question="q", key=key)
        charged.append(key)

    def elsewhere(key: str) -> None:
        thread = threading.Thread(target=charge, args=(key,), daemon=True)
        thread.start()
        thread.join(60)

    elsewhere("before")
    child = os.fork()
    if child == 0:
        try:
            elsewhere("child")
            os._exit(charged != ["before", "child"])
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    elsewhere("parent")
    assert charged == ["before", "parent"]
    assert ledger.verify().accounts[TOTAL].spent.pure == 3 * PRICE.epsilon


def test_parent_and_child_go_on_after_a_fork(at: At) -> None:
    path = at
    make(path, units=10)
    said = finish(start("forker", path))
    assert said.count("True") == 5
    assert said.count("forked") == 1  # a ledger in memory stays with its process
    ledger = Ledger(path)
    assert ledger.verify().accounts[TOTAL].spent.pure == 4 * PRICE.epsilon
    keys = [ledger.reserve(PRICE, question="q", key=f"{turn}") for turn in range(6)]
    assert all(isinstance(given, Reserved) for given in keys)
    with pytest.raises(BudgetError):
        ledger.reserve(PRICE, question="q", key="more")
