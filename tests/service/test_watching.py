"""What the owner sees of a running service: numbers, a line for each request, whether it is ready; never a word."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from discreet.accounting import Pure
from discreet.ledger import Ledger, Reserved
from discreet.service.api import PATHS
from discreet.service.watching import FORMS, OTHER, LogFormatter
from face_tools import Data, end_engine
from service_tools import CLINIC, Served, served
from wire_tools import psql

COUNT = "SELECT city, COUNT(*) AS n FROM visits WHERE note = 'note 31415' GROUP BY city"


@pytest.fixture
def service(data: Data, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, CLINIC) as found:
        yield found


def numbers(service: Served, who: str = "max") -> dict[tuple[str, ...], float]:
    """Every number of /metrics by its name and labels."""
    reply = service.call("GET", "/metrics", who)
    assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/plain")
    families = text_string_to_metric_families(reply.content.decode())
    samples = [sample for family in families for sample in family.samples]
    assert {name for sample in samples for name in sample.labels} <= {"path", "status", "le"}
    return {(sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value for sample in samples}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What the log has of requests so far, as JSON and as text."""
    caplog.set_level(logging.INFO, "discreet.requests")

    def said() -> list[str]:
        return [LogFormatter(form).format(record) for record in caplog.records for form in FORMS]

    return said


def attacked(service: Served) -> list[str]:
    """Requests of every kind, and what of them must stand nowhere."""
    secrets = ["31415", "nosuchcolumn", "discreet_guessed", "Pumpernickel", *service.tokens.values()]
    ask = {"question": COUNT, "epsilon": "0.1"}
    service.call("POST", "/ask", "ana", ask, Idempotency_Key="Pumpernickel")
    service.call("POST", "/ask", "ana", {"question": COUNT.replace("city", "nosuchcolumn"), "epsilon": "0.1"})
    service.call("POST", "/ask", "bob", {**ask, "epsilon": "9"})
    service.call("POST", "/ask", "discreet_guessed", ask)
    service.call("POST", "/ask", "ana", body=b'{"question": "Pumpernickel')
    service.call("GET", "/tables?token=Pumpernickel&31415", "ana")
    service.call("GET", "/Pumpernickel/../31415", "ana")
    service.call("GET", "/jobs/Pumpernickel", None)
    service.call("GET", "/nothing/Pumpernickel", None)
    service.call("PUMPERNICKEL", "/ask", "ana", Authorization="Pumpernickel")
    service.call("DELETE", "/tables", "ana", User_Agent="Pumpernickel", Referer="http://Pumpernickel/31415")
    service.raw(b"GET / HTTP/1.1\r\nHost: Pumpernickel\r\nX: 31415\r\nConnection: close\r\n\r\n")
    return secrets


def test_nothing_of_a_request_is_counted_or_logged_but_what_is_on_closed_lists(service: Served, lines: Any) -> None:
    secrets = attacked(service)
    after = numbers(service)
    text = service.call("GET", "/metrics", "owner").content.decode()
    logged = "\n".join(lines())
    for secret in (*secrets, "visits", '"ana"', "bob", "127.0.0.1"):
        assert secret.lower() not in (text + logged).lower()
    assert after["discreet_requests_total", "/ask", "200"] == 1
    assert after["discreet_requests_total", "/ask", "402"] == 1
    assert after["discreet_requests_total", "/ask", "422"] == 1
    assert after["discreet_requests_total", "/ask", "401"] == 1
    assert after["discreet_requests_total", OTHER, "404"] >= 3
    assert {key[1] for key in after if key[0] == "discreet_requests_total"} <= {one.path for one in PATHS} | {OTHER}
    facts = [json.loads(line) for line in lines() if line.startswith("{")]
    known = [one for one in facts if "request" in one]
    assert [one["request"] for one in known] == list(range(1, len(known) + 1))
    for one in known:
        assert set(one) == {"moment", "request", "method", "path", "status", "code", "seconds"}
        assert one["path"] in {path.path for path in PATHS} | {OTHER}
        assert (one["code"] is None) is (one["status"] == 200)
    assert {one["code"] for one in known} >= {"budget", "token", "path", "method", None}


def test_what_the_ledger_and_the_engine_are_at(service: Served) -> None:
    ask = {"question": COUNT, "epsilon": "0.5"}
    before = numbers(service)
    assert before["discreet_ready",] == 1
    assert before["discreet_engine_starts_total",] == 1
    assert service.call("POST", "/ask", "ana", ask).status == 200
    after = numbers(service)
    assert after["discreet_budget_used_ratio",] == service.curator.budget.used / 100
    assert before["discreet_budget_used_ratio",] < after["discreet_budget_used_ratio",] < 0.1
    assert after["discreet_ledger_entries_total",] == before["discreet_ledger_entries_total",] + 2
    assert after["discreet_request_seconds_count", "/ask"] == 1
    assert (
        after["discreet_questions_running",] == after["discreet_questions_waiting",] == after["discreet_failures",] == 0
    )
    end_engine(service.curator)
    service.curator.ask(COUNT.replace("31415", "2"), epsilon="0.5", analyst="ana")
    assert numbers(service)["discreet_engine_starts_total",] == 2
    ledger = service.curator.ledger
    loss = Pure(Fraction(1, 10))
    reserved = ledger.reserve(loss, question="q", key="k", account="ana", tables=["visits"], limit=1)
    assert isinstance(reserved, Reserved)
    ledger.fail(reserved.reserve_id)
    after = numbers(service)
    assert after["discreet_failures",] == after["discreet_analysts_suspended",] == after["discreet_tables_frozen",] == 1


def test_what_comes_over_the_protocol_of_postgresql(service: Served, lines: Any) -> None:
    before = numbers(service)
    assert before["discreet_psql_connections_total",] == before["discreet_psql_logins_refused_total",] == 0
    asked = "SELECT COUNT(*) AS n FROM visits"
    psql(service, "ana", "SET discreet.epsilon = 0.01", asked, "SELECT nosuchcolumn FROM visits")
    for who in ("ana", "nobody"):
        psql(service, who, asked, password="discreet_guessed")
    psql(service, "eve", asked)  # no role that asks
    after = numbers(service)
    assert after["discreet_psql_connections_total",] >= 4
    assert after["discreet_psql_connections_open",] == 0
    assert after["discreet_psql_logins_refused_total",] == 3
    assert after["discreet_psql_questions_total", "answered"] == 1
    assert after["discreet_psql_questions_total", "refused"] == 1
    said = [one for line in lines() if line.startswith("{") and "request" in (one := json.loads(line))]
    ours = [(one["path"], one["status"]) for one in said if one["method"] == "psql"]
    assert ours.count(("question", "answered")) == ours.count(("question", "refused")) == 1
    assert ours.count(("login", "refused")) == 3
    assert ours.count(("connection", "ended")) == after["discreet_psql_connections_total",]
    assert len({one["request"] for one in said}) == len(said)
    written = "\n".join(line for line in lines() if "psql" in line)
    assert written.count("\n") == 2 * len(ours) - 1
    assert not [word for word in ("ana", "eve", "nosuchcolumn", "visits", "discreet_guessed") if word in written]
    assert "nosuchcolumn" not in str(after)


def test_numbers_are_for_owner_and_monitor_who_may_do_nothing_else(service: Served) -> None:
    for who in ("ana", "eve", None, "discreet_guessed"):
        assert service.call("GET", "/metrics", who).status in (401, 403), who
    for path in PATHS:
        reply = service.call(path.method, path.path, "max", {} if path.method == "POST" else None)
        assert reply.status == (200 if path.path == "/metrics" or not path.roles else 403), path


def test_it_is_not_ready_where_nothing_can_be_charged(
    service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert service.call("GET", "/ready", None).status == 200
    service.curator.ledger._file._busy_milliseconds = 10
    monkeypatch.setattr("discreet.service.watching._READY_SECONDS", 0)
    real = os.statvfs(tmp_path)
    for name, value in (("f_bavail", 0), ("f_flag", real.f_flag | os.ST_RDONLY)):
        found = type(
            "Found", (), {one: getattr(real, one) for one in dir(real) if one.startswith("f_")} | {name: value}
        )
        with monkeypatch.context() as patch:
            patch.setattr("os.statvfs", lambda _, found=found: found)
            assert service.call("GET", "/ready", None).status == 503
            assert numbers(service)["discreet_ready",] == 0
    note = tmp_path / "clinic.ledger.head"
    note.rename(tmp_path / "elsewhere")
    reply = service.call("GET", "/ready", None)
    assert (reply.status, reply.json["code"]) == (503, "unavailable")
    assert "clinic" not in reply.content.decode()
    assert service.call("GET", "/health", None).status == 200
    assert numbers(service)["discreet_ready",] == 0
    (tmp_path / "elsewhere").rename(note)
    assert service.call("GET", "/ready", None).status == 200


def test_lines_of_others_quote_nothing() -> None:
    """What a library logs may hold anything, and what it raises too."""
    try:
        raise ValueError("Pumpernickel")
    except ValueError as error:
        record = logging.LogRecord(
            "uvicorn.error", logging.ERROR, "", 1, "%s", ("Pumpernickel",), (type(error), error, None)
        )
    ours = logging.LogRecord("discreet", logging.WARNING, "", 1, "reserve %s\nfailed", (3,), None)
    for form in FORMS:
        assert "Pumpernickel" not in LogFormatter(form).format(record)
        assert "reserve 3 failed" in LogFormatter(form).format(ours)


def test_a_probe_changes_nothing_in_the_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    before = ledger.head, (tmp_path / "a.ledger").read_bytes()
    ledger.hold_writable()
    assert (ledger.head, (tmp_path / "a.ledger").read_bytes()) == before
    ledger.close()
