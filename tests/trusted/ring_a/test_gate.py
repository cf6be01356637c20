"""What fails after the price is on disk: charged all the same, one fixed text, and nothing is said twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet import Curator, DeclarationError, EngineError, Table
from discreet import open as open_declaration
from face_tools import Command, Data, end_engine, spent, visits

FIRST = "SELECT COUNT(*) AS n FROM visits"
SECOND = "SELECT COUNT(*) AS n FROM visits WHERE age > 3"
PRICE = Fraction(1, 10)


@pytest.fixture
def curator(data: Data, tmp_path: Path) -> Iterator[Curator]:
    table = visits(data.csv)
    with Curator({"visits": table}, epsilon=1, ledger=tmp_path / "a.ledger", engine={"seconds": 60}) as curator:
        yield curator


def engine(curator: Curator) -> int:
    process = curator._engine._process
    assert process is not None
    return process.pid


@contextmanager
def once_reserved(curator: Curator, act: Callable[[int], object]) -> Iterator[None]:
    """Halts the engine, and does something to it as soon as the next question is paid for."""
    pid, before = engine(curator), curator.ledger.head
    os.kill(pid, signal.SIGSTOP)

    def wait() -> None:
        while curator.ledger.head == before:
            pass
        act(pid)

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def last(curator: Curator) -> Any:
    return [entry for entry in curator.ledger.entries() if entry.kind == "reserve"][-1]


def test_an_engine_that_ends_between_questions_is_started_again(curator: Curator) -> None:
    first = curator.ask(FIRST, epsilon=PRICE)
    end_engine(curator)
    assert curator.ask(SECOND, epsilon=PRICE).charged
    assert curator.ask(FIRST, epsilon=PRICE).content == first.content
    assert spent(curator) == 2 * PRICE
    assert not curator.ledger.tables()["visits"].failures


def test_an_engine_that_is_killed_while_a_question_runs(curator: Curator) -> None:
    first = curator.ask(FIRST, epsilon=PRICE)
    with once_reserved(curator, lambda pid: os.kill(pid, signal.SIGKILL)), pytest.raises(EngineError) as failed:
        curator.ask(SECOND, epsilon=PRICE)
    assert str(failed.value) == f"{EngineError.TEXT} → ask the owner to look at `discreet ledger`"
    assert (failed.value.code, failed.value.exit_code) == ("engine", 4)
    assert failed.value.__cause__ is None
    assert spent(curator) == 2 * PRICE
    assert (last(curator).question, last(curator).status) == (SECOND, "no answer")
    for question in (FIRST, SECOND):  # whoever killed it by a question must not learn by more of them
        with pytest.raises(EngineError) as suspended:
            curator.ask(question, epsilon=PRICE)
        assert (suspended.value.code, suspended.value.exit_code) == ("suspended", 4)
        assert suspended.value.fix == "the owner runs `discreet lift`"
    assert spent(curator) == 2 * PRICE
    assert curator.explain(SECOND, epsilon=PRICE).price["epsilon"] == 0.1
    curator.refresh()
    assert curator.ask(SECOND, epsilon=PRICE).charged  # no second draw on the first charge
    assert spent(curator) == 3 * PRICE
    assert first.charged
    assert curator.ask(FIRST, epsilon=PRICE).charged  # the snapshot is another, and so is the draw


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_time_limit(data: Data) -> None:
    """The child is stopped by hand, and killed for being late."""
    with Curator({"visits": visits(data.csv)}, epsilon=1, engine={"seconds": 1}) as curator:
        pid = engine(curator)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(EngineError, match="the price stays charged"):
            curator.ask(FIRST, epsilon=PRICE)
        assert "State:\tT" not in _status(pid)
        assert spent(curator) == PRICE
        assert curator.ledger.tables()["visits"].suspended == ("",)


def test_an_interrupt_waits_until_the_answer_is_stored(curator: Curator) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(pid: int) -> None:
        signal.pthread_kill(main, signal.SIGINT)
        os.kill(pid, signal.SIGCONT)

    with once_reserved(curator, interrupt), pytest.raises(KeyboardInterrupt):
        curator.ask(FIRST, epsilon=PRICE)
    assert spent(curator) == PRICE
    assert last(curator).status == "committed"
    assert not curator.ask(FIRST, epsilon=PRICE).charged
    assert not curator.ledger.tables()["visits"].failures
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_wait_and_is_a_failure(curator: Curator) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(_: int) -> None:
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.3)  # one signal at a time is kept
        signal.pthread_kill(main, signal.SIGINT)

    with once_reserved(curator, interrupt), pytest.raises(KeyboardInterrupt):
        curator.ask(FIRST, epsilon=PRICE)
    assert spent(curator) == PRICE
    assert last(curator).status == "no answer"
    with pytest.raises(EngineError) as suspended:
        curator.ask(FIRST, epsilon=PRICE)
    assert suspended.value.code == "suspended"
    assert curator.lift() == ("visits",)
    assert curator.ask(FIRST, epsilon=PRICE).charged
    assert spent(curator) == 2 * PRICE


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight million persons, each with a key of his own."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.parquet"
    duckdb.execute(f"COPY (SELECT i AS p, 'key number ' || i AS k FROM range(8000000) AS a(i)) TO '{path}'")
    return path


DECLARATION = """
engine.memory_gib = 1
budget = {{ epsilon = 1, delta = 1e-6 }}
question.epsilon = 0.1
[tables.crowd]
source = "{source}"
one_row_per_person = true
columns = {{ p = {{ type = "integer" }}, k = {{ type = "text" }} }}
"""


@pytest.mark.power
def test_a_memory_limit(crowd: Path, cli: Command, tmp_path: Path) -> None:
    """The tables fit, the question does not: charged, one text, and the machine's memory is left alone."""
    path = tmp_path / "crowd.toml"
    path.write_text(DECLARATION.format(source=crowd), "utf-8")
    assert cli("ask", path, "SELECT COUNT(*) AS n FROM crowd WHERE p < 5").code == 0
    said = cli("ask", path, "SELECT k, COUNT(*) AS n FROM crowd GROUP BY k")
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith(EngineError.TEXT)
    assert spent(path.with_suffix(".ledger")) == 2 * PRICE


@pytest.mark.power
def test_a_table_larger_than_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    duckdb.execute(f"COPY (SELECT repeat('x', 500) || (i % 9) AS a FROM range(4000000) AS a(i)) TO '{path}'")
    columns = {"a": None}
    with pytest.raises(DeclarationError) as refused:
        Curator({"t": Table(path, columns=columns, one_row_per_person=True)}, epsilon=1, engine={"memory_gib": 1})
    (fault,) = refused.value.faults
    assert (refused.value.code, fault.where, fault.fix) == ("memory", "tables.t.source", "raise engine.memory_gib")


def test_a_load_that_failed_is_tried_again(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n", "utf-8")
    tables = {name: Table(tmp_path / f"{name}.csv", columns={"x": int}, one_row_per_person=True) for name in "ab"}
    with Curator(tables, epsilon=1) as curator:
        end_engine(curator)
        (tmp_path / "b.csv").unlink()
        for _ in range(2):
            with pytest.raises(DeclarationError, match="there is no file"):
                curator.ask("SELECT COUNT(*) FROM a", epsilon=PRICE)
        (tmp_path / "b.csv").write_text("x\n1\n", "utf-8")
        assert curator.ask("SELECT COUNT(*) FROM a", epsilon=PRICE).charged
        assert spent(curator) == PRICE


def test_a_question_that_fails_in_the_frame_of_the_engine_leaks_nothing(curator: Curator) -> None:
    """The error that is raised holds no frame in which exact numbers lived."""
    with once_reserved(curator, lambda pid: os.kill(pid, signal.SIGKILL)), pytest.raises(EngineError) as failed:
        curator.ask(FIRST, epsilon=PRICE)
    trace, names = failed.value.__traceback__, set()
    while trace is not None:
        names.add(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "measure" in names
    assert not names & {"noisy_answer", "noisy_groups", "exact_groups", "dense", "run", "call"}
    assert failed.value.__context__ is None or failed.value.__suppress_context__


def test_declared_tables_are_all_the_engine_knows(clinic: Path) -> None:
    """A locked engine: no file, no setting; the second door is shut too."""
    with open_declaration(clinic) as curator:
        curator.ask(FIRST)
        process = curator._engine._process
        assert process is not None
        for statement in (
            "SELECT * FROM read_csv('visits.csv')",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM 'visits.csv'",
            "SET memory_limit = '1GB'",
            "SELECT 1; SELECT 2",
            "COPY (SELECT 1) TO 'x.csv'",
            "ATTACH 'x.duckdb'",
            "INSTALL httpfs",
            "CREATE TABLE x AS SELECT 1",
        ):
            with pytest.raises(Exception, match=r"^$") as failed:
                process.call("run", statement, seconds=300)
            assert type(failed.value).__name__ == "Failed", statement
        assert process.call("run", "SELECT 1", seconds=300) == {"rows": [[1]]}


def test_the_ledger_says_that_whoever_named_nobody_is_suspended(clinic: Path, cli: Command) -> None:
    with (
        open_declaration(clinic) as curator,
        once_reserved(curator, lambda pid: os.kill(pid, signal.SIGKILL)),
        pytest.raises(EngineError),
    ):
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=PRICE)
    said = cli("ledger", clinic)
    assert (said.code, "whoever names no analyst suspended until `discreet lift`" in said.out) == (0, True)
