"""A failure is an answer: it is charged, recorded before anybody hears of it, and has consequences."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest

import deaths
import discreet
from discreet import Curator, EngineError, QuestionError
from discreet import open as open_declaration
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Stopped
from kinds import some
from waiting import until

ROWS = pandas.DataFrame({"p": range(60), "age": [20 + i % 40 for i in range(60)], "sex": ["a", "b"] * 30})
COLUMNS = {"p": int, "age": {"type": "integer", "min": 0, "max": 99}, "sex": ["a", "b"]}
QUESTION = "SELECT COUNT(*) AS n FROM t"


def curator(**said: Any) -> Curator:
    tables = {name: discreet.Table(ROWS, columns=COLUMNS, one_row_per_person=True) for name in ("t", "u")}
    tables["pub"] = discreet.Table(
        pandas.DataFrame({"sex": ["a"], "k": [1]}), public=True, columns={"sex": str, "k": int}
    )
    return Curator(tables, **{"epsilon": 100, "delta": 1e-4, **said})


@pytest.fixture(scope="module")
def shared() -> Iterator[Curator]:
    with curator(engine={"failures": 1_000}) as made:
        yield made


@pytest.fixture
def holder() -> Iterator[Curator]:
    with curator() as made:
        yield made


class Break:
    """Lets the engine's next requests of these kinds fail, in the parent, as the child would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, holder: Any, *kinds: str, error: type[BaseException] = Failed):
        process = holder._engine._process
        assert process is not None
        self.armed, call = True, process.call

        def broken(kind: str, *rest: Any, seconds: float) -> Any:
            if self.armed and kind in kinds:
                raise error
            return call(kind, *rest, seconds=seconds)

        monkeypatch.setattr(process, "call", broken)


def above(one: Curator) -> None:
    with one.above_threshold(5, epsilon=1) as run:
        run.ask(QUESTION)


def weights(one: Curator) -> None:
    with one.multiplicative_weights("t", ["sex"], epsilon=1, alpha="0.3", questions=3) as run:
        run.ask(QUESTION)


DRAWS: dict[str, Callable[[Curator], object]] = {
    "ask": lambda one: one.ask(QUESTION, epsilon=1),
    "stopped": lambda one: one.ask("SELECT COUNT(*) AS n FROM t WHERE age > 97", epsilon=1),
    "wrong": lambda one: one.ask("SELECT COUNT(*) AS n FROM t WHERE age > 98", epsilon=1),
    "median": lambda one: one.ask("SELECT MEDIAN(age) AS m FROM t", epsilon=1),
    "join": lambda one: one.ask(
        "SELECT COUNT(*) AS n FROM t JOIN (SELECT DISTINCT sex FROM pub) USING (sex)", epsilon=1
    ),
    "select": lambda one: one.select("SELECT sex, COUNT(*) FROM t GROUP BY sex", epsilon=1),
    "above": above,
    "weights": weights,
    "blocks": lambda one: one.sample_and_aggregate(len, "t", low=0, high=9, blocks=3, epsilon=1),
    "fit": lambda one: one.fit("t", target="sex", features=["age"], epsilon=1, delta=1e-5, steps=1, sample_rate=1),
    "answer": lambda one: one.answer(discreet.Workload("t").all_marginals(1), epsilon=1),
    "publish": lambda one: one.publish("t", columns=["sex", "age"], epsilon=1, delta=1e-5, method="independent"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_kind_of_measurement_that_fails(name: str, shared: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text, charged, one failure for the asker on this table and no other, until the owner lifts it."""
    error = {"stopped": Stopped, "wrong": ValueError}.get(name, Failed)
    holder, before = shared, shared.ledger.tables()["t"].failures
    broken = Break(monkeypatch, holder, "run", "vectors", "counts", error=error)
    with pytest.raises(EngineError) as failed:
        DRAWS[name](holder)
    assert str(failed.value) == str(EngineError())
    broken.armed = False
    state = holder.ledger.tables()
    assert (state["t"].failures, state["t"].suspended) == (before + 1, ("",))
    assert (state["u"].failures, state["pub"].failures, state["pub"].suspended) == (0, 0, ())
    head = holder.ledger.head
    with pytest.raises(EngineError) as suspended:
        DRAWS["ask"](holder)
    assert (suspended.value.code, suspended.value.where) == ("suspended", "t")
    assert holder.ledger.head == head  # nothing was spent
    assert holder.ask("SELECT COUNT(*) AS n FROM u", epsilon=1).columns == ["n"]
    assert holder.ask(QUESTION, epsilon=1, analyst="ana").columns == ["n"]
    assert holder.lift("ana") == ()
    assert holder.lift() == ("t",)
    assert holder.ask(f"SELECT COUNT(*) AS n FROM t WHERE age > {before}", epsilon=1).charged
    holder.ledger.verify()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_measurement_has_failed(
    error: type[BaseException], shared: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was interrupted there is an answer too; and the interruption takes nothing of the numbers along."""
    before = shared.ledger.tables()["t"].failures
    broken = Break(monkeypatch, shared, "run", error=error)
    with pytest.raises(error) as interrupted:
        shared.ask(f"{QUESTION} WHERE age > {50 + before}", epsilon=1)
    broken.armed = False
    assert interrupted.value.__context__ is None
    assert "draw" not in {entry.name for entry in interrupted.traceback}
    state = shared.ledger.tables()["t"]
    assert (state.failures, state.suspended) == (before + 1, ("",))
    assert shared.lift() == ("t",)


def test_the_third_failure_freezes_for_everybody_until_the_next_snapshot(
    holder: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Break(monkeypatch, holder, "run")
    for analyst in ("ana", "bob", None):
        with pytest.raises(EngineError, match="could not answer"):
            holder.ask(QUESTION, epsilon=1, analyst=analyst)
    broken.armed = False
    for analyst in ("ana", "eve", None):
        with pytest.raises(EngineError) as frozen:
            holder.ask(QUESTION, epsilon=1, analyst=analyst)
        assert (frozen.value.code, frozen.value.fix) == ("frozen", "the owner runs `discreet refresh`")
    holder.lift("ana")
    with pytest.raises(EngineError, match="frozen"):
        holder.ask(QUESTION, epsilon=1, analyst="ana")
    holder.refresh()
    assert holder.ask(QUESTION, epsilon=1, analyst="ana").charged


def test_how_many_failures_freeze_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(engine={"failures": 1}) as one:
        Break(monkeypatch, one, "run")
        with pytest.raises(EngineError, match="could not answer"):
            one.ask(QUESTION, epsilon=1)
        with pytest.raises(EngineError, match="frozen"):
            one.ask(QUESTION, epsilon=1, analyst="ana")
    for wrong in (0, -1, 1001, True, "3"):
        with pytest.raises(discreet.DeclarationError, match=r"engine\.failures"):
            curator(engine={"failures": wrong})


def reserved(holder: Curator) -> int:
    """How many questions were paid for."""
    return sum(entry.kind == "reserve" for entry in holder.ledger.entries())


def test_of_those_who_wait_when_one_fails_none_is_measured(holder: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten questions of one analyst at once: one failure is seen, and another analyst's question is answered."""
    began = threading.Barrier(11)
    real = DuckDB.run
    tried: list[int] = []

    def slow(*_: Any) -> Any:
        tried.append(1)
        until(lambda: reserved(holder) == 10)  # the others wait by then
        raise Failed

    monkeypatch.setattr(DuckDB, "run", slow)
    said: list[str] = []

    def ask(number: int) -> None:
        began.wait()
        try:
            holder.ask(f"SELECT COUNT(*) AS n FROM t WHERE age > {number}", epsilon=1, analyst="ana")
        except EngineError as error:
            said.append(error.code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    began.wait()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["engine"] + ["suspended"] * 9
    assert len(tried) == 1
    monkeypatch.setattr(DuckDB, "run", real)
    assert holder.ask(QUESTION, epsilon=1, analyst="bob").charged
    assert holder.ledger.tables()["t"].failures == 1


def test_an_engine_that_ends_under_anothers_request_is_nobody_elses_failure(
    holder: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bob's question waits while ana's kills the engine: his price is gone, he is not suspended."""
    process = holder._engine._process
    assert process is not None
    asking: list[EngineProcess] = []
    true = EngineProcess.call

    def call(self: EngineProcess, *request: Any, seconds: float) -> Any:
        asking.append(self)
        return true(self, *request, seconds=seconds)

    monkeypatch.setattr(EngineProcess, "call", call)
    os.kill(process.pid, signal.SIGSTOP)
    said: dict[str, str] = {}

    def ask(analyst: str) -> None:
        try:
            holder.ask(QUESTION, epsilon=1, analyst=analyst)
        except EngineError as error:
            said[analyst] = error.code

    threads = []
    for analyst in ("ana", "bob"):
        threads.append(threading.Thread(target=ask, args=(analyst,)))
        threads[-1].start()
        until(lambda: reserved(holder) == len(threads) and process in asking)
    time.sleep(1)  # from there to where he waits it is a moment
    os.kill(process.pid, signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert said == {"ana": "engine", "bob": "engine"}
    assert holder.ledger.tables()["t"].suspended == ("ana",)
    assert holder.ledger.tables()["t"].failures == 1
    assert holder.ask("SELECT COUNT(*) AS n FROM t WHERE age > 1", epsilon=1, analyst="bob").charged


def test_what_runs_on_public_tables_suspends_nobody(holder: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    question = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1, max_groups_contributed=1, group_selection_strategy="
        "PUBLIC_GROUPS) o.sex, COUNT(*) AS n FROM t RIGHT JOIN (SELECT DISTINCT sex FROM pub) o ON t.sex = o.sex"
        " GROUP BY o.sex"
    )
    holder.explain(question)  # an engine of its own holds the public tables
    head, public = holder.ledger.head, SimpleNamespace(_engine=holder._holdings._public)
    for least, error in enumerate((Failed, Stopped)):
        Break(monkeypatch, public, "listed", error=error)
        for act in (holder.explain, holder.ask):
            with pytest.raises(QuestionError) as refused:
                act(f"{question} HAVING n > {least}")  # what was planned before is not planned again
            assert refused.value.code == "public-table"
            assert "charged" not in str(refused.value)
    assert holder.ledger.head == head


def test_what_fails_after_the_noise_is_no_failure(holder: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr("discreet.curator.lookup.answer", broken)
    with pytest.raises(ZeroDivisionError):
        holder.ask(QUESTION, epsilon=1)
    assert holder.ledger.tables()["t"].failures == 0
    assert [entry.kind for entry in holder.ledger.entries()][-2:] == ["reserve", "commit"]
    monkeypatch.undo()
    assert not holder.ask(QUESTION, epsilon=1).charged


def test_a_failure_that_cannot_be_written_is_written_before_the_next_question(
    holder: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Break(monkeypatch, holder, "run")
    with monkeypatch.context() as full:

        def fail(*_: object) -> None:
            raise discreet.LedgerError("full", "the disk is full")

        full.setattr(holder.ledger, "fail", fail)
        with pytest.raises(EngineError, match="could not answer"):
            holder.ask(QUESTION, epsilon=1)
        with pytest.raises(discreet.LedgerError):
            holder.ask("SELECT COUNT(*) AS n FROM t WHERE age > 1", epsilon=1)
    broken.armed = False
    with pytest.raises(EngineError, match="suspended"):
        holder.ask("SELECT COUNT(*) AS n FROM t WHERE age > 1", epsilon=1)
    assert holder.ledger.tables()["t"].failures == 1


DECLARATION = """
budget = { epsilon = 10, delta = 1e-6 }
question.epsilon = 1
[tables.t]
source = "t.csv"
one_row_per_person = true
columns = { p = { type = "integer" }, sex = { values = ["a", "b"], type = "text" } }
"""
ASK = "import discreet, sys; discreet.open(sys.argv[1]).ask('SELECT COUNT(*) AS n FROM t', analyst='ana')"
OPEN = (
    "import discreet, sys; one = discreet.open(sys.argv[1]);"
    "run = one.above_threshold(10**6, epsilon=1, analyst='ana');"
    "run.ask('SELECT COUNT(*) AS n FROM t')"
)


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("p,sex\n1,a\n2,b\n", "utf-8")
    (tmp_path / "t.toml").write_text(DECLARATION, "utf-8")
    return tmp_path / "t.toml"


def process(code: str, declared: Path, kill_at: str = "") -> int:
    return subprocess.run(deaths.command(kill_at, "-c", code, declared), check=False).returncode


@pytest.mark.parametrize("moment", some(["after-measure", "before-measure"], pytest.mark.storm))
def test_a_process_that_dies_in_a_measurement_has_failed(declared: Path, moment: str) -> None:
    """As a kill between a failure and its record would be: it counts from the next opening on."""
    assert process(ASK, declared, moment) == -signal.SIGKILL
    with open_declaration(declared) as one:
        assert one.ledger.tables()["t"].suspended == ("ana",)
        with pytest.raises(EngineError, match="suspended"):
            one.ask(QUESTION, analyst="ana")
        assert one.ask(QUESTION).charged


def test_a_run_that_is_left_open_is_no_failure(declared: Path) -> None:
    assert process(OPEN, declared) == 0
    with open_declaration(declared) as one:
        assert one.ledger.tables()["t"].suspended == ()
        assert [entry.kind for entry in one.ledger.entries()][-1] == "end"


def test_the_owner_sees_who_is_suspended_and_lifts_it(declared: Path) -> None:
    from click.testing import CliRunner

    from discreet.cli import main

    process(ASK, declared, "before-measure")

    def say(*words: str) -> str:
        result = CliRunner().invoke(main, [words[0], str(declared), *words[1:]])
        assert result.exit_code == 0, result.output
        return result.output

    assert "t: 1 of 3 failures in snapshot 1; ana suspended until `discreet lift`" in say("ledger")
    assert '"suspended": ["ana"]' in say("ledger", "--json")
    assert say("lift") == "those who name no analyst: not suspended\n"
    assert say("lift", "--analyst", "ana") == "ana: no longer suspended on t\n"
    assert say("lift", "--analyst", "ana", "--json") == '{"analyst": "ana", "tables": [], "frozen": false}\n'
    assert "t: 1 of 3 failures in snapshot 1\n" in say("ledger", "--verify")


@pytest.mark.storm
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_is_gone_does_not_lose_the_answer(declared: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this signal is ignored where the tests were started, and so in their children")
    code = (
        "import discreet, os, sys; from discreet.trusted.ring_b.questions import Groups; real = Groups.draw;"
        f"Groups.draw = lambda *a: (os.kill(os.getpid(), {int(number)}), real(*a))[1];" + ASK
    )
    assert process(code, declared) == -number
    with open_declaration(declared) as one:
        assert not one.ask(QUESTION, analyst="ana").charged
        assert one.ledger.tables()["t"].failures == 0
