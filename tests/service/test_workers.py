"""Several workers over one ledger: whoever's question hangs, whichever is killed, whatever the owner does meanwhile."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest

import discreet
from discreet.catalog import read
from discreet.curator import Curator
from discreet.errors import EngineError
from discreet.ledger import Ledger
from discreet.service.workers import Workers
from face_tools import EXACT, Command, Data, spent
from service_tools import CLINIC, Reply, Served, served
from waiting import gone, until

STORED = CLINIC + '[engine]\nstore = "file"\nanswer_seconds = "off"\n'
RICH = (
    STORED.replace("epsilon = 10\n", "epsilon = 1e25\n")
    .replace("epsilon = 4\n", "epsilon = 1e24\n")
    .replace("= 0.2\n", "= 1e24\n")
)
_numbers = count()


def fresh(epsilon: str = "0.01") -> dict[str, str]:
    """A question that nobody asked before, about all rows."""
    return {"question": f"SELECT COUNT(*) AS n FROM visits WHERE note <> 'x{next(_numbers)}'", "epsilon": epsilon}


@pytest.fixture
def folder(data: Data, tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    return tmp_path


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workers")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, STORED, workers=2) as found:
        yield found
    assert found.workers is not None
    assert found.workers.processes == []


def engine(worker: int) -> int:
    """The engine of a worker: the one of its processes that has the tables' files open."""
    for process in family(worker):
        try:
            files = [os.readlink(one) for one in Path(f"/proc/{process}/fd").iterdir()]
        except OSError:
            continue
        if any("/side-" in one for one in files):
            return process
    raise AssertionError


def family(process: int) -> list[int]:
    """A process and those that it started, however far down."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


@contextmanager
def both(service: Served) -> Iterator[Workers]:
    """Its workers, when all of them run."""
    assert service.workers is not None
    until(lambda: len(service.workers.processes) == 2)  # type: ignore[union-attr]
    yield service.workers


def test_a_question_that_hangs_and_a_worker_that_is_killed(service: Served) -> None:
    with both(service) as workers, ThreadPoolExecutor(1) as other:
        before = spent(service.curator, "ana")
        engines = {engine(worker): worker for worker in workers.processes}
        for one in engines:
            os.kill(one, signal.SIGSTOP)
        hangs = other.submit(service.call, "POST", "/ask", "ana", fresh(), Idempotency_Key="one")
        until(lambda: spent(service.curator, "ana") > before)
        busy = next(one.pid for one in workers._workers if one.running)
        for one, worker in engines.items():
            if worker != busy:
                os.kill(one, signal.SIGCONT)

        # others are answered, the same analyst is told to wait, whichever worker would take it
        for _ in range(3):
            assert service.call("POST", "/ask", "bob", fresh()).status == 200
            assert service.call("POST", "/explain", "owner", fresh()).status == 200
            again = service.call("POST", "/ask", "ana", fresh())
            assert (again.status, again.json["code"]) == (429, "busy")
        assert not hangs.done()

        # its worker dies: it stays charged, she is suspended, others go on, another worker begins
        os.kill(busy, signal.SIGKILL)
        reply = hangs.result()
        assert (reply.status, reply.json["code"]) == (503, "engine")
        left = next(one for one, worker in engines.items() if worker == busy)
        os.kill(left, signal.SIGCONT)
        until(lambda: gone(left))
        assert service.call("POST", "/ask", "bob", fresh()).status == 200
        until(lambda: len(workers.processes) == 2)
        assert busy not in workers.processes
        for _ in range(2):
            reply = service.call("POST", "/ask", "ana", fresh())
            assert (reply.status, reply.json["code"]) == (403, "suspended")
        assert service.curator.lift("ana") == ("visits",)
        assert service.call("POST", "/ask", "ana", fresh(), Idempotency_Key="one").status == 422
        for _ in range(2):
            assert service.call("POST", "/ask", "ana", fresh()).status == 200
        assert spent(service.curator, "ana") - before == Fraction(3, 100)


def test_workers_that_are_killed_while_nothing_runs(service: Served) -> None:
    with both(service) as workers:
        for worker in workers.processes:
            os.kill(worker, signal.SIGKILL)
        assert service.call("POST", "/ask", "ana", fresh()).status == 200
        assert service.call("GET", "/ready", None).status == 200


def test_a_request_is_charged_once_whichever_worker_has_it(service: Served) -> None:
    with both(service):
        asked = fresh()
        first = [service.call("POST", "/ask", "ana", asked, Idempotency_Key="a").json for _ in range(3)]
        assert [one["charged"]["epsilon"] for one in first] == [0.01, 0, 0]
        assert len({str(one["rows"]) for one in first}) == 1
        for _ in range(2):
            assert service.call("POST", "/ask", "ana", fresh(), Idempotency_Key="a").status == 422
        assert service.call("POST", "/check", "ana", {"question": asked["question"]}).json == {"tables": ["visits"]}
        assert service.call("POST", "/check", "ana", {"question": "SELECT note FROM visits"}).status == 422
        assert service.call("POST", "/ask", "bob", fresh("1")).status == 402


def test_a_new_snapshot_is_taken_by_all(folder: Path, cli: Command) -> None:
    """What is answered is of the old rows or of the new ones, and of the new ones from then on."""
    source = folder / "visits.csv"
    head, *rows = source.read_text("utf-8").splitlines(keepends=True)
    with served(folder, RICH, workers=2) as service, both(service), ThreadPoolExecutor(2) as others:

        def counted(who: str) -> int:
            reply = service.call("POST", "/ask", who, fresh(EXACT))
            assert reply.status == 200, reply.json
            return round(reply.json["rows"][0]["n"])

        def many(who: str) -> list[int]:
            return [counted(who) for _ in range(12)]

        assert [counted("ana") for _ in range(3)] == [600] * 3
        source.write_text(head + "".join(rows[:500]), "utf-8")
        assert [counted("ana") for _ in range(2)] == [600] * 2  # the snapshot's rows, whatever the source has by now
        running = [others.submit(many, who) for who in ("ana", "owner")]
        assert cli("refresh", folder / "clinic.toml").code == 0
        after = [counted("bob") for _ in range(3)]
        for one in running:
            found = one.result()
            assert sorted(found, reverse=True) == found
            assert {600, 500} >= {*found}
        assert after == [500] * 3


def test_tables_in_memory_are_for_one_process(folder: Path, cli: Command) -> None:
    (folder / "clinic.toml").write_text(CLINIC, "utf-8")
    said = cli("serve", folder / "clinic.toml", "--port", "0", "--workers", "2")
    assert said.code == 2
    assert 'store = "file"' in said.err
    assert "visits" in said.err


def started(folder: Path, cli: Command) -> tuple[subprocess.Popen[str], str, str]:
    """`discreet serve` with two workers that both run, its address, and a token of ana's."""
    declaration = folder / "clinic.toml"
    declaration.write_text(STORED.replace('"off"', "4"), "utf-8")  # time to end it while it answers
    assert cli("account", "add", declaration, "ana", "--analyst", "ana").code == 0
    token = cli("token", "new", declaration, "ana").out.strip()
    command = [sys.executable, "-m", "discreet", "serve", "clinic.toml", "--port", "0", "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stderr is not None
    url = next(found[0] for line in process.stderr if (found := re.findall(r"http://\S+", line)))
    until(lambda: len([one for one in family(process.pid) if opened(one)]) == 2, every=0.2)  # it reads all of /proc
    return process, url, token


def opened(process: int) -> bool:
    try:
        return any("/side-" in os.readlink(one) for one in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_service_after_what_they_have(folder: Path, cli: Command, end: signal.Signals) -> None:
    process, url, token = started(folder, cli)
    everything = family(process.pid)
    try:
        with discreet.connect(url, token=token) as there, ThreadPoolExecutor(1) as other:
            answer = other.submit(lambda: there.ask(**fresh()))  # type: ignore[arg-type]
            until(lambda: spent(folder / "clinic.ledger", "ana"), every=0.05)
            process.send_signal(end)
            if end is signal.SIGTERM:
                assert answer.result().charged.epsilon == 0.01
            else:
                with pytest.raises(EngineError):
                    answer.result()
        process.wait(300)
        until(lambda: all(map(gone, everything)))
    finally:
        process.kill()
        process.communicate()
    with closing(Ledger(folder / "clinic.ledger")) as ledger:  # it was answered and stored, whoever heard it
        assert [entry.kind for entry in ledger.entries()].count("commit") == 1
        assert not ledger.tables()["visits"].suspended


@pytest.mark.storm
@pytest.mark.parametrize("seed", range(2))
def test_kills_under_load_lose_nothing_and_overspend_nothing(folder: Path, seed: int) -> None:
    chance, ending = random.Random(seed), threading.Event()
    got: list[tuple[str, dict[str, str], str, Reply]] = []
    seen: set[str] = set()
    with (
        served(folder, STORED.replace("[engine]\n", "[engine]\nfailures = 1000\n"), workers=2) as service,
        both(service) as workers,
    ):

        def asks(who: str) -> None:
            for number in count():
                asked = fresh("0.02")
                name = f"{who}-{number}"
                reply = service.call("POST", "/ask", who, asked, Idempotency_Key=name)
                if reply.status == 200:
                    got.append((who, asked, name, reply))
                if ending.is_set():
                    return
                if reply.status == 200:
                    continue
                seen.add(reply.json["code"])
                if reply.json["code"] == "suspended":
                    service.curator.lift(who if who != "owner" else None)

        def kills() -> None:
            for _ in range(8):
                time.sleep(chance.uniform(0.05, 1.5))
                for worker in workers.processes[: chance.randint(1, 2)]:
                    with suppress(ProcessLookupError):  # one of its processes may have ended by itself
                        os.kill(chance.choice([worker, *family(worker)]), signal.SIGKILL)
            ending.set()

        threads = [threading.Thread(target=asks, args=(who,)) for who in ("owner", "ana", "bob")]
        killer = threading.Thread(target=kills)
        for one in (*threads, killer):
            one.start()
        killer.join()
        for one in threads:
            one.join()
        until(lambda: len(workers.processes) == 2)
        for who in ("owner", "ana", "bob"):
            service.curator.lift(who if who != "owner" else None)
        for who, asked, name, reply in got:  # each acknowledged answer is stored, and is given again for nothing
            again = service.call("POST", "/ask", who, asked, Idempotency_Key=name)
            assert again.status == 200, again.json
            assert again.json["rows"] == reply.json["rows"]
            assert again.json["charged"]["epsilon"] == 0
    assert seen <= {"budget", "busy", "engine", "suspended", "too-long"}  # the last where what reads texts is killed
    ledger = Ledger(folder / "clinic.ledger")
    found = ledger.verify()
    for name, account in found.accounts.items():
        assert account.spent.pure <= account.epsilon, name
    committed = sum(entry.kind == "commit" for entry in ledger.entries())
    assert committed >= len(got) > 0
    ledger.close()
    with Curator.of(read(str(folder / "clinic.toml")), owner=True) as curator:
        assert curator.kept["visits"].snapshot == 1
