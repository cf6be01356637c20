"""Publications and workloads over HTTP: jobs that go on when connections close, are an account's own, and bounded."""

from __future__ import annotations

import csv
import datetime
import http.client
import io
import json
import math
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.catalog import declare, read
from discreet.curator import Curator
from discreet.errors import BudgetError, EngineError, QuestionError
from discreet.ledger import Ledger
from discreet.release import Release
from discreet.service import requests
from discreet.service.accounts import Account, Accounts
from discreet.service.jobs import _COLUMNS, About, Job, JobCall, Jobs, left
from discreet.service.planning import Planning
from discreet.service.roles import Role
from discreet.synthesis.synthetic import Synthetic
from discreet.workload import told as told_workload
from discreet.workload.answers import checked
from discreet.workload.coded import coded
from face_tools import Data, visits
from service_tools import CLINIC, Reply, Served, running, served
from waiting import until

PUBLISH = {"table": "visits", "columns": ["city"], "method": "independent"}
WORKLOAD = discreet.Workload("visits").marginals(["city"], "smoker").prefixes("age").counts({"age": (3, 9)})


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder) as found:
        yield found


def charges(ledger: Path | Curator) -> list[object]:
    """What was charged, and to whom."""
    opened = ledger.ledger if isinstance(ledger, Curator) else Ledger(ledger)
    found: list[object] = [(one.loss, one.charged) for one in opened.entries() if one.loss is not None]
    if opened.verify().head and not isinstance(ledger, Curator):
        opened.close()
    return found


def published(service: Served, who: str, price: str, key: str | None = None, **said: Any) -> Reply:
    """What begins a small publication gets."""
    headers = {} if key is None else {"Idempotency_Key": key}
    return service.call("POST", "/publish", who, {**PUBLISH, "epsilon": price, **said}, **headers)


def waited(service: Served, who: str, begun: Reply) -> Mapping[str, Any]:
    """The job once it has ended: its last event."""
    assert begun.status == 202, begun.content
    events = service.call("GET", f"/jobs/{begun.json['job']}/events", who).content.decode()
    last = events.strip().split("\n\n")[-1]
    assert last.startswith("event: end\ndata: ")
    return dict(json.loads(last.partition("data: ")[2]))


def answer(service: Served, who: str, job: str, query: str = "", **headers: str) -> Reply:
    return service.call("GET", f"/jobs/{job}/answer{query}", who, **headers)


@pytest.mark.parametrize("matters", [{"workload": [["city", "age"]]}, {"target": "city"}])
def test_a_publication_is_the_same_here_and_there(service: Served, matters: dict[str, Any]) -> None:
    said: dict[str, Any] = {"columns": ["city", "age"], "bins": {"age": 4}, "rows": 50, **matters}
    with service.connect("ana") as there:
        first = there.publish("visits", epsilon="0.3", request=next(iter(matters)), **said)
        again = there.publish("visits", epsilon=0.3, request=next(iter(matters)), **said)
    local = service.curator.publish("visits", epsilon="0.3", analyst="ana", **said)
    assert first.charged.epsilon == 0.3
    assert first.to_dict() == again.to_dict()
    assert not local.charged
    assert first.rows == local.rows
    assert len(first) == 50
    assert first.holds == local.holds
    assert first.target == matters.get("target")
    assert first.ask("SELECT COUNT(*) AS n FROM visits").rows == local.ask("SELECT COUNT(*) AS n FROM visits").rows


def test_a_workload_is_the_same_here_and_there(service: Served) -> None:
    with service.connect("ana") as there:
        first = there.answer(WORKLOAD, epsilon="0.2")
    local = service.curator.answer(WORKLOAD, epsilon="0.2", analyst="ana")
    assert (first.charged.epsilon, local.charged.epsilon) == (0.2, 0)
    assert first.to_columns() == local.to_columns()
    assert first.holds == local.holds


def test_a_large_workload_is_planned_in_another_process(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this one its linear algebra would hold everybody up."""
    large = WORKLOAD.ranges("age").marginals(["city", "age"])

    def here(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as elsewhere, service.connect("ana") as there:
        elsewhere.setattr("discreet.workload.answers.strategy", here)
        first = there.answer(large, epsilon="0.2")
    assert first.holds == service.curator.answer(large, epsilon="0.2", analyst="ana").holds
    planning = Planning()
    call = checked(service.curator.declaration, large.prefixes("age").counts({"age": 3}), "0.2", None)
    with ThreadPoolExecutor(1) as other:
        planned = other.submit(planning.plan, call)
        until(lambda: planning._children)
        planning.stop()
    with pytest.raises(EngineError, match="nothing was spent"):
        planned.result()
    with pytest.raises(EngineError, match="nothing was spent"):
        planning.plan(call)


def test_a_workload_is_told_as_it_was_written(data: Data) -> None:
    moment = datetime.datetime(2024, 1, 2, 3)
    conditions: list[dict[str, Any]] = [
        {"day": datetime.date(2024, 1, 4), "smoker": None, "city": ["north", "south"]},
        {"age": (None, 9), "cost": (Fraction(1, 4), 2.5), "smoker": True},
        {"moment": (moment, None), "city": "north"},
    ]
    written = discreet.Workload("visits", {"cost": (Fraction(1, 4), 2.5), "moment": [moment]})
    written = written.marginals((), ("city", "smoker"), "day").all_marginals(2, ["city", "day"]).all_marginals(1)
    written = written.ranges("age").prefixes("age").counts(*conditions)
    raw = {"budget": {"epsilon": 1, "delta": 0}, "tables": {"visits": visits(data.csv).declaration}}
    table = declare(raw, python=True).table("visits")
    plain = requests.called(json.dumps(told_workload.told(written)).encode(), requests.WORKLOAD)
    assert table is not None
    assert coded(told_workload.heard(plain, table), table) == coded(written, table)


def test_forms_of_what_a_job_released(service: Served) -> None:
    job = waited(service, "ana", published(service, "ana", "0.1"))["job"]
    plain = answer(service, "ana", job)
    rows = plain.json["rows"]
    assert rows
    table = answer(service, "ana", job, Accept="text/csv")
    assert list(csv.DictReader(io.StringIO(table.content.decode()))) == rows
    arrow = answer(service, "ana", job, Accept="application/vnd.apache.arrow.stream")
    assert pyarrow.ipc.open_stream(arrow.content).read_all().to_pylist() == rows
    assert answer(service, "ana", job, "?rows=packed").json["table"]
    for query in ("?rows=all", "?rows=packed&rows=packed", "?other=1"):
        assert answer(service, "ana", job, query).status == 400


def test_large_workloads_are_refused(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.jobs.MOST_ANSWERS", 3)
    with pytest.raises(QuestionError, match="at most 3"), service.connect("bob") as there:
        there.answer(WORKLOAD, epsilon="0.1")


def test_large_tables_are_not_written_out(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    job = waited(service, "ana", published(service, "ana", "0.1", rows=50))["job"]
    monkeypatch.setattr("discreet.service.api.MOST_CELLS", 3)
    reply = answer(service, "ana", job)
    assert (reply.status, reply.json["code"]) == (422, "size")
    assert answer(service, "ana", job, "?rows=packed").status == 200


def test_nobody_sees_another_s_job(service: Served) -> None:
    """As if it were not there, also for the owner, and for another account of the same analyst."""
    job = waited(service, "ana", published(service, "ana", "0.1"))["job"]
    service.accounts.add(Account("ana.too", Role.ANALYST, "ana"), service.curator.ledger.enter)
    too, _ = service.accounts.new_token("ana.too", None, service.curator.ledger.enter)
    none = service.call("GET", "/jobs/none", "bob").content
    for who in ("owner", "bob", too):
        for path in ("", "/events", "/answer"):
            reply = service.call("GET", f"/jobs/{job}{path}", who)
            assert (reply.status, reply.content) == (404, none)
        assert job not in [one["job"] for one in service.call("GET", "/jobs", who).json["jobs"]]
    assert service.call("GET", "/jobs", "eve").status == 403
    assert job in [one["job"] for one in service.call("GET", "/jobs", "ana").json["jobs"]]


def test_whoever_gets_an_ended_account_s_name_sees_nothing_of_it(service: Served) -> None:
    enter = service.curator.ledger.enter
    seen: list[list[Any]] = []
    for _ in range(2):
        service.accounts.add(Account("again", Role.ANALYST, "ana"), enter)
        token, _ = service.accounts.new_token("again", None, enter)
        seen.append(service.call("GET", "/jobs", token).json["jobs"])
        job = waited(service, token, published(service, token, "0.1", "mine"))["job"]
        assert answer(service, token, job).status == 200
        service.accounts.end("again", enter)
    assert seen == [[], []]


def test_one_request_is_one_job_and_one_charge(service: Served) -> None:
    """Sent twelve times at once, and again later; with another body it is refused."""
    before: list[object] = charges(service.curator)
    found: list[Reply] = []

    def begin() -> None:
        found.append(published(service, "ana", "0.15", "twelve"))

    threads = [threading.Thread(target=begin) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    begun = [one for one in found if one.status == 202]
    assert {one.json["code"] for one in found if one.status != 202} <= {"busy"}
    (job,) = {one.json["job"] for one in begun}
    waited(service, "ana", begun[0])
    assert published(service, "ana", "0.15", "twelve").json["job"] == job
    assert answer(service, "ana", job).json["charged"]["epsilon"] == 0.15
    assert len(charges(service.curator)) == len(before) + 1
    for other in (published(service, "ana", "0.16", "twelve"), published(service, "ana", "0.15", "twelve", rows=3)):
        assert (other.status, other.json["code"]) == (422, "request")
    asked = {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
    assert service.call("POST", "/ask", "ana", asked, Idempotency_Key="twelve").json["code"] == "request"
    assert service.call("POST", "/ask", "ana", asked, Idempotency_Key="asked").status == 200
    assert published(service, "ana", "0.15", "asked").json["code"] == "request"
    with pytest.raises(QuestionError, match="another question"), service.connect("ana") as there:
        there.publish("visits", epsilon="0.2", request="twelve")


def test_a_job_goes_on_when_the_connection_closes(service: Served) -> None:
    said = json.dumps({**PUBLISH, "epsilon": "0.17"}).encode()
    head = ["POST /publish HTTP/1.1", "Host: localhost", f"Authorization: Bearer {service.tokens['ana']}"]
    head += ["Content-Type: application/json", f"Content-Length: {len(said)}", "Idempotency-Key: closed"]
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + said)
        connection.recv(1)  # it is begun
    begun = published(service, "ana", "0.17", "closed")
    listening = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
    number = begun.json["job"]
    listening.request("GET", f"/jobs/{number}/events", headers={"Authorization": f"Bearer {service.tokens['ana']}"})
    listening.getresponse().read(1)
    listening.close()
    assert waited(service, "ana", begun)["state"] == "done"
    assert answer(service, "ana", number).json["charged"]["epsilon"] == 0.17


REFUSED: list[tuple[int, str, str, Any]] = [
    (422, "table", "/publish", {"table": "nothing"}),
    (422, "columns", "/publish", {"table": "visits", "columns": ["nothing"]}),
    (422, "columns", "/publish", {"table": "visits", "columns": [["city"]]}),
    (422, "method", "/publish", {"table": "visits", "method": "magic"}),
    (422, "number", "/publish", {"table": "visits", "rows": 1.5}),
    (422, "number", "/publish", {"table": "visits", "rows": -1}),
    (422, "rows", "/publish", {"table": "visits", "rows": 1_000_001}),
    (422, "bins", "/publish", {"table": "visits", "bins": {"age": "many"}}),
    (422, "workload", "/publish", {"table": "visits", "workload": [[1]]}),
    (422, "price", "/publish", {"table": "visits", "epsilon": "-1"}),
    (400, "body", "/publish", {"table": "visits", "tell": "me"}),
    (400, "body", "/publish", {"table": "visits", "analyst": "bob"}),
    (400, "body", "/publish", {"table": "visits", "rows": "3"}),
    (400, "body", "/publish", {"table": "visits", "bins": {"age": [[[[[[[[[1]]]]]]]]]}}),
    (400, "body", "/publish", {}),
    (422, "workload", "/workload", {"table": "visits"}),
    (422, "workload", "/workload", {"table": "visits", "questions": [{"secret": "city"}]}),
    (422, "workload", "/workload", {"table": "visits", "questions": [{"marginal": ["city"], "count": {}}]}),
    (422, "workload", "/workload", {"table": "visits", "questions": ["city"]}),
    (422, "workload", "/workload", {"table": "visits", "questions": [{"count": {"age": {"low": 1}}}]}),
    (422, "workload", "/workload", {"table": "visits", "questions": [{"count": {"age": "no age"}}]}),
    (422, "workload", "/workload", {"table": "visits", "questions": [{"all": "two"}]}),
    (422, "columns", "/workload", {"table": "visits", "questions": [{"marginal": [None]}]}),
    (400, "body", "/workload", {"questions": [{"marginal": ["city"]}]}),
]


@pytest.mark.parametrize(("status", "code", "path", "said"), REFUSED)
def test_a_call_that_is_none_is_refused_at_once(
    service: Served, status: int, code: str, path: str, said: dict[str, Any]
) -> None:
    before, jobs = service.curator.ledger.head, service.call("GET", "/jobs", "bob").json
    reply = service.call("POST", path, "bob", said)
    assert (reply.status, reply.json["code"]) == (status, code), reply.content
    assert service.curator.ledger.head == before
    assert service.call("GET", "/jobs", "bob").json == jobs


def test_numbers_that_are_too_long_are_refused(service: Served) -> None:
    for body in (b'{"table": "visits", "rows": 1e999999999}', b'{"table": "visits", "epsilon": 1e999999999}'):
        assert service.call("POST", "/publish", "bob", body=body).status == 422


def test_what_a_budget_refuses_may_be_mended_under_its_name(service: Served) -> None:
    before = charges(service.curator)
    begun = published(service, "bob", "3", "mended")
    job = waited(service, "bob", begun)
    assert (job["state"], job["problem"]["status"], job["problem"]["code"]) == ("failed", 402, "budget")
    refused = answer(service, "bob", job["job"])
    assert (refused.status, refused.json) == (402, job["problem"])
    with pytest.raises(BudgetError) as there, service.connect("bob") as remote:
        remote.publish("visits", epsilon="3", columns=["city"], method="independent")
    with pytest.raises(BudgetError) as local:
        service.curator.publish("visits", epsilon="3", analyst="bob", columns=["city"], method="independent")
    assert there.value.to_dict() == local.value.to_dict()
    assert charges(service.curator) == before
    again = published(service, "bob", "0.1", "mended")
    assert again.json["job"] == job["job"]
    assert waited(service, "bob", again)["state"] == "done"


def test_jobs_and_listeners_are_bounded(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One job of an analyst, so many in all; so many listeners; and a question of whoever has a job is answered."""
    goes, publish = threading.Event(), service.curator.publish

    def slowly(*arguments: Any, **said: Any) -> Synthetic:
        assert goes.wait(300)
        return publish(*arguments, **said)

    monkeypatch.setattr(service.curator, "publish", slowly)
    listeners = []
    try:
        begun = published(service, "ana", "0.11")
        assert service.call("GET", f"/jobs/{begun.json['job']}/answer", "ana").status == 409
        busy = published(service, "ana", "0.12")
        assert (busy.status, busy.json["code"], busy.headers["retry-after"]) == (429, "busy", "1")
        asked = {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
        assert service.call("POST", "/ask", "ana", asked).status == 200
        monkeypatch.setattr("discreet.service.jobs.MOST_RUNNING", 1)
        assert published(service, "owner", "0.12").json["detail"].startswith("too many jobs run")
        for _ in range(12):
            one = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
            one.request(
                "GET",
                f"/jobs/{begun.json['job']}/events",
                headers={"Authorization": f"Bearer {service.tokens['ana']}"},
            )
            listeners.append((one, one.getresponse().status))
        assert [status for _, status in listeners] == [200] * 4 + [429] * 8
        assert service.call("GET", "/balance", "ana").status == 200
        for one, _ in listeners:
            one.close()
        while service.call("GET", f"/jobs/{begun.json['job']}/answer", "ana").status == 409:
            goes.set()
    finally:
        goes.set()
    assert waited(service, "ana", begun)["state"] == "done"


def test_what_is_kept_is_bounded(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.jobs.MOST_KEPT", 2)
    numbers = [waited(service, "ana", published(service, "ana", "0.1", f"kept{place}"))["job"] for place in range(3)]
    assert [one["job"] for one in service.call("GET", "/jobs", "ana").json["jobs"]] == numbers[:0:-1]
    assert answer(service, "ana", numbers[0]).status == 404
    again = waited(service, "ana", published(service, "ana", "0.1", "kept0"))  # from the ledger
    assert answer(service, "ana", again["job"]).json["charged"]["epsilon"] == 0
    assert published(service, "ana", "0.2", "kept1").json["code"] == "request"
    monkeypatch.setattr("discreet.service.jobs.MOST_BYTES", 10)
    last = waited(service, "ana", published(service, "ana", "0.1", "kept4"))["job"]
    assert [one["job"] for one in service.call("GET", "/jobs", "ana").json["jobs"]] == [last]


def test_a_revoked_token_hears_no_more(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.jobs.BEAT", 0)
    goes, publish = threading.Event(), service.curator.publish

    def slowly(*arguments: Any, **said: Any) -> Synthetic:
        assert goes.wait(300)
        return publish(*arguments, **said)

    monkeypatch.setattr(service.curator, "publish", slowly)
    enter = service.curator.ledger.enter
    token, known = service.accounts.new_token("ana", None, enter)
    try:
        begun = published(service, "ana", "0.1")
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
        path = f"/jobs/{begun.json['job']}/events"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        assert reply.readline() == b"event: progress\n"
        service.accounts.revoke("ana", known.number, enter)
        assert b"event: end" not in reply.read()  # it ends, and the job has not
        connection.close()
    finally:
        goes.set()
    waited(service, "ana", begun)


def test_an_account_that_ends_under_its_job_leaves_nothing(
    service: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    goes, publish = threading.Event(), service.curator.publish

    def slowly(*arguments: Any, **said: Any) -> Synthetic:
        assert goes.wait(300)
        return publish(*arguments, **said)

    monkeypatch.setattr(service.curator, "publish", slowly)
    enter = service.curator.ledger.enter
    service.accounts.add(Account("short", Role.ANALYST, "ana"), enter)
    token, _ = service.accounts.new_token("short", None, enter)
    try:
        begun = published(service, token, "0.1", "mine")
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
        path = f"/jobs/{begun.json['job']}/events"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        assert reply.readline() == b"event: progress\n"
        service.accounts.end("short", enter)
    finally:
        goes.set()
    assert b"event: end" not in reply.read()  # a whole reply
    connection.close()
    assert not caplog.records
    assert service.accounts.body_of("short", "mine") is None


def test_steps_are_told_by_the_clock_alone() -> None:
    about = About(("visits",))
    job = Job("a", "ana", "ana", None, b"", "publish", about, 10, "", 0.0, ended=False, problem=None, lost=False)
    assert job.done(1e12) == 0
    assert job.done(1e-12) == 9  # the last is told at the end
    assert {one.to_dict(1)["state"] for one in (job,)} == {"running"}


@pytest.mark.parametrize(
    "about",
    [
        About(("visits",)),
        About(("visits", "patients")),
        About(("[visits",)),
        About(("{",)),
        About(('["visits", "patients"]',)),
        About(("visits",), "north"),
        About(("[visits", "patients"), "[south"),
    ],
)
def test_what_a_job_is_about_is_read_as_it_was_written(about: About) -> None:
    assert About.read(about.written) == about


@pytest.mark.parametrize("name", ["visits", "[visits", "[visits]", "[1]", "[]", "{visits}", "{}", "[" * 10_000])
def test_a_row_of_an_older_version_has_the_name_of_its_table(name: str) -> None:
    assert About.read(name) == About((name,))


# without a socket: how jobs end


@pytest.fixture
def curator(data: Data, tmp_path: Path) -> Iterator[Curator]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    (tmp_path / "clinic.toml").write_text(CLINIC, "utf-8")
    with Curator.of(read(tmp_path / "clinic.toml"), owner=True) as found:
        yield found


ANA = Account("ana", Role.ANALYST, "ana")


def jobs_of(curator: Curator) -> Jobs:
    accounts = Accounts.of(curator.declaration)
    if not accounts.known():
        accounts.add(ANA, curator.ledger.enter)
    return Jobs(curator, accounts, lambda error, _: {"code": getattr(error, "code", type(error).__name__)})


def ended(jobs: Jobs, number: str) -> Job:
    until(lambda: jobs.of(ANA, number).state != "running")
    return jobs.of(ANA, number)


def lost(jobs: Jobs) -> None:
    """A row of a process that has ended."""
    with jobs._accounts.transaction(write=True) as file:
        row = ("gone", "ana", "ana", None, b"0", "publish", "visits", 9, "0 1 1", 0.0, 0, None)
        file.execute(f"INSERT INTO jobs ({_COLUMNS}) VALUES (?{', ?' * 11})", row)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("look", ["one", "all"])
def test_a_job_that_ends_while_it_is_looked_up_is_not_lost(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, look: str, beside: bool
) -> None:
    """Its row says that it runs, and then nothing runs any more; also beside one that is lost."""
    jobs, goes, seen = jobs_of(curator), threading.Event(), Jobs._gone
    if beside:
        lost(jobs)

    def run(request: str | None, _: Any) -> Release:
        assert goes.wait(300)
        return curator.publish("visits", epsilon="0.1", columns=["city"], analyst="ana", request=request)

    def late(self: Jobs, row: Any) -> bool:
        goes.set()
        until(lambda: not self._running)
        return seen(self, row)

    begun = jobs.start(ANA, JobCall("publish", ("visits",), 9, run, waits=False), "k", b"1")
    monkeypatch.setattr(Jobs, "_gone", late)
    found = jobs.of(ANA, begun.job) if look == "one" else jobs.all(ANA)[0]
    assert found.state == "done"
    if beside:
        assert jobs.of(ANA, "gone").state == "lost"


class Slow(dict[Any, Any]):
    """What runs, of which a job that ends takes itself out only once others have `begun`."""

    def __init__(self, begun: threading.Event) -> None:
        super().__init__()
        self._begun, self.popped = begun, 0

    def pop(self, *of: Any) -> Any:
        assert self._begun.wait(300)
        found = super().pop(*of)
        self.popped += 1
        return found


def test_a_job_that_is_tried_again_at_once_runs_once(curator: Curator) -> None:
    """The end of the attempt that failed takes nothing of the one that runs."""
    jobs, goes, begun = jobs_of(curator), threading.Event(), threading.Event()
    tries = [0]
    jobs._running = running_jobs = Slow(begun)

    def run(request: str | None, _: Any) -> Release:
        tries[0] += 1
        if tries[0] == 1:
            raise QuestionError("x", "x")
        assert goes.wait(300)
        return curator.publish("visits", epsilon="0.1", columns=["city"], analyst="ana", request=request)

    call = JobCall("publish", ("visits",), 9, run, waits=True)
    first = jobs.start(ANA, call, "k", b"1")
    until(lambda: jobs.of(ANA, first.job).state == "failed")
    again = jobs.start(ANA, call, "k", b"1")
    begun.set()
    until(lambda: running_jobs.popped == 1)
    assert again.job == first.job
    assert jobs.of(ANA, again.job).state == jobs.start(ANA, call, "k", b"1").state == "running"
    goes.set()
    assert ended(jobs, again.job).state == "done"
    assert tries == [2]


def test_the_end_of_the_service_makes_what_there_is_into_a_table(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publication that is running then measures no more, and is stored."""
    monkeypatch.setattr("discreet.service.jobs.STOP_SECONDS", 0.01)
    jobs, first, goes = jobs_of(curator), threading.Event(), threading.Event()

    def run(request: str | None, hear: Any) -> Release:
        def tell(step: object) -> None:
            first.set()
            assert goes.wait(300)
            hear(step)

        return curator.publish(
            "visits", epsilon="1", columns=["city", "age"], tell=tell, analyst="ana", request=request
        )

    begun = jobs.start(ANA, JobCall("publish", ("visits",), 9, run, waits=False), "k", b"1")
    assert first.wait(300)
    jobs.stop()
    goes.set()
    assert ended(jobs, begun.job).state == "done"
    assert json.loads(jobs.answer(ANA, begun.job)[1])["ended_early"] is True
    assert curator.ledger.verify().unanswered == 0
    with pytest.raises(Exception, match="busy"):
        jobs.start(ANA, JobCall("publish", ("visits",), 9, run, waits=False), "l", b"1")


def test_what_was_charged_and_not_told_is_found_for_nothing(curator: Curator) -> None:
    """A job that failed after its price was reserved has its name for good; asked again, it gives what was stored."""
    jobs, fails = jobs_of(curator), [EngineError()]

    def run(request: str | None, hear: Any) -> Release:
        made = curator.publish("visits", epsilon="1", columns=["city"], tell=hear, analyst="ana", request=request)
        if fails:
            raise fails.pop()
        return made

    call = JobCall("publish", ("visits",), 9, run, waits=False)
    begun = jobs.start(ANA, call, "k", b"1")
    failed = ended(jobs, begun.job)
    assert (failed.state, failed.problem) == ("failed", {"code": "engine"})
    assert jobs.answer(ANA, begun.job)[1] == b""
    before = charges(curator)
    assert len(before) == 1
    with pytest.raises(QuestionError):
        jobs.start(ANA, call, "k", b"2")
    assert jobs.start(ANA, call, "k", b"1").job == begun.job
    assert ended(jobs, begun.job).state == "done"
    assert json.loads(jobs.answer(ANA, begun.job)[1])["charged"]["epsilon"] == 0
    assert charges(curator) == before


@given(st.floats(0.5, 1e5), st.floats(0, 1e6))
def test_an_end_is_told_at_few_moments(slot: float, passed: float) -> None:
    """At the slot's end, or at one, two, four … times as long: what passed before decides nothing else."""
    moment = passed + left(slot, passed)
    assert moment >= passed
    doubled = math.log2(moment / slot)
    assert doubled == pytest.approx(round(doubled), abs=1e-6)
    assert round(doubled) == 0 or passed > slot * 2 ** (round(doubled) - 1)


def test_on_a_schedule_a_job_ends_when_its_slot_does(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = jobs_of(curator)
    jobs._seconds = 3
    waited: list[float] = []
    monkeypatch.setattr(jobs._stopping, "wait", waited.append)
    for waits in (False, True):

        def refused(*_: object) -> Release:
            raise QuestionError("x", "x")

        ended(jobs, jobs.start(ANA, JobCall("publish", ("visits",), 9, refused, waits=waits), None, b"1").job)
    assert len(waited) == 1  # a workload has waited by itself
    assert 0 < waited[0] <= 27


def test_what_was_stored_when_a_process_ended_is_found_for_nothing(curator: Curator) -> None:
    """Killed between the ledger's answer and the job's end."""
    jobs = jobs_of(curator)

    def run(request: str | None, hear: Any) -> Release:
        return curator.publish("visits", epsilon="1", columns=["city"], tell=hear, analyst="ana", request=request)

    call = JobCall("publish", ("visits",), 9, run, waits=False)
    begun = jobs.start(ANA, call, "k", b"1")
    assert ended(jobs, begun.job).state == "done"
    with jobs._accounts.transaction(write=True) as file:
        file.execute("UPDATE jobs SET process = 'elsewhere 1 2', ended = 0, answer = NULL")
        file.execute("DELETE FROM requests")
    assert jobs.of(ANA, begun.job).state == "lost"
    assert jobs.start(ANA, call, "k", b"1").job == begun.job
    assert ended(jobs, begun.job).state == "done"
    assert json.loads(jobs.answer(ANA, begun.job)[1])["charged"]["epsilon"] == 0
    assert len(charges(curator)) == 1


def test_a_fault_of_a_job_is_told_and_another_attempt_may_be_made(curator: Curator) -> None:
    jobs = jobs_of(curator)

    def fails(request: str | None, _: object) -> Release:
        raise EngineError(frozen="visits") if request else ZeroDivisionError

    call = JobCall("workload", ("visits",), 1, fails, waits=True)
    assert ended(jobs, jobs.start(ANA, call, None, b"1").job).problem == {"code": "ZeroDivisionError"}
    first = jobs.start(ANA, call, "k", b"1")
    assert ended(jobs, first.job).problem == {"code": "frozen"}
    assert jobs.start(ANA, call, "k", b"2").job == first.job


def test_what_another_process_ran_is_lost_with_it(curator: Curator) -> None:
    jobs, goes = jobs_of(curator), threading.Event()

    def waits(*_: object) -> Release:
        assert goes.wait(300)
        raise QuestionError("x", "x")

    begun = jobs.start(ANA, JobCall("workload", ("visits",), 1, waits, waits=True), "k", b"1")
    with jobs._accounts.transaction(write=True) as file:
        file.execute("UPDATE jobs SET process = 'elsewhere 1 2'")
    assert jobs.of(ANA, begun.job).state == "lost"
    assert jobs.of(ANA, begun.job).to_dict(1)["problem"]["code"] == "lost"
    with pytest.raises(QuestionError):  # nobody knows whether it was charged
        jobs.start(ANA, JobCall("workload", ("visits",), 1, waits, waits=True), "k", b"2")
    goes.set()


@pytest.mark.parametrize("killed", [True, False])
def test_a_service_that_ends_under_a_job_charges_once(clinic: Path, killed: bool) -> None:
    """kill -9 loses the answer, and no more; SIGTERM waits for it."""
    text = clinic.read_text("utf-8").replace("epsilon = 1.0", "epsilon = 10")
    clinic.write_text(text.replace("[question]", '[engine]\nanswer_seconds = "off"\n[question]'), "utf-8")
    ledger = clinic.with_name("clinic.ledger")
    said = {"table": "visits", "epsilon": "1"}
    with running(clinic) as (process, url, _):
        assert process.stdout is not None
        token = process.stdout.readline().strip()
        with discreet.connect(url, token=token) as there:
            begun = there._call("POST", "/publish", said, "k")
        until(lambda: charges(ledger), every=0.05)
        charged = charges(ledger)
        if killed:
            process.kill()
        else:
            process.terminate()
        process.wait()
    with running(clinic) as (process, url, _), discreet.connect(url, token=token) as there:
        found = there._call("GET", f"/jobs/{begun['job']}")
        assert found["state"] == ("lost" if killed else "done")
        again = there._call("POST", "/publish", said, "k")
        assert again["job"] == begun["job"]
        if killed:  # a failure in the ledger, as of a question
            with pytest.raises(EngineError, match="suspended"):
                there.publish("visits", epsilon="1", request="k")
        else:
            assert there.publish("visits", epsilon="1", request="k").charged.epsilon == 1
        assert charges(ledger) == charged


def test_pages_of_the_ledger(service: Served) -> None:
    whole = service.call("GET", "/ledger", "eve").json
    entries, after = [], 0
    while after is not None:
        page = service.call("GET", f"/ledger?after={after}&limit=7", "eve").json
        entries += page["entries"]
        assert page["head"] == whole["head"]
        after = page["next"]
    assert entries == whole["entries"]
    assert service.call("GET", "/ledger?limit=1", "eve").json["entries"] == entries[:1]
    assert service.call("GET", f"/ledger?after={len(entries)}", "eve").json["entries"] == []
    assert service.call("GET", "/ledger/3", "owner").json == entries[2]
    for wrong in ("0", "-1", "x", "9999999", "9" * 400, "%D9%A3", "1.0"):
        assert service.call("GET", f"/ledger/{wrong}", "eve").status == 404
    for wrong in ("after=-1", "limit=0", "limit=1001", "limit=x", "before=1", "after=1&after=2", "after=" + "9" * 99):
        assert service.call("GET", f"/ledger?{wrong}", "eve").status == 400
    assert service.call("GET", "/ledger/3", "ana").status == 403
