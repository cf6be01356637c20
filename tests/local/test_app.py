"""The collector over HTTP, called as a server calls it."""

from __future__ import annotations

import asyncio
import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.collect import command
from discreet.errors import QuestionError
from discreet.local import Client, Collection, Collector, Number, Ordered, Report, Text
from discreet.local.collection import today
from local_tools import collected

OS = Collection("os", "Which system?", ["linux", "mac", "windows"], epsilon=1)
JSON = [(b"content-type", b"application/json")]


def call(
    app: Any, method: str, path: str, body: Sequence[bytes] = (b"",), headers: Sequence[tuple[bytes, bytes]] = JSON
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the reply to one request, whose body comes in pieces."""
    pieces = [{"type": "http.request", "body": one, "more_body": True} for one in body]
    pieces[-1]["more_body"] = False
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    asyncio.run(app(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent[1:])


def now(value: str) -> Report:
    with Client(OS) as client:
        return client.report(value)


@pytest.fixture
def collector(tmp_path: Path) -> Any:
    with Collector(OS, tmp_path / "reports.duckdb") as found:
        yield found


def test_a_body_that_never_ends_is_given_up(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.local.app.BODY_SECONDS", 0.05)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/reports", "headers": JSON}
    asyncio.run(collector.app()(scope, receive, send))
    assert sent[0]["status"] == 408


def test_the_reply_is_the_same_whatever_the_report_says_and_however_often(collector: Collector) -> None:
    app, replies = collector.app(), []
    reports = [replace(now("mac"), report=value) for value in (0, 1, 2)]
    for report in [*reports, *reports]:
        replies.append(call(app, "POST", "/reports", [report.to_json().encode()]))
    assert all(reply == replies[0] for reply in replies)
    assert replies[0][0] == 202
    assert json.loads(replies[0][2]) == {"status": "received"}
    assert collector.estimate().reports == 3


def test_a_body_in_pieces_is_one_report(collector: Collector) -> None:
    text = now("linux").to_json().encode()
    assert call(collector.app(), "POST", "/reports", [text[:10], b"", text[10:]])[0] == 202
    assert collector.estimate().reports == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 8000, b'{"report":1}', b'"' + b"a" * 8000]
)
def test_what_is_no_report_gets_an_error_in_json(collector: Collector, body: bytes) -> None:
    status, headers, reply = call(collector.app(), "POST", "/reports", [body])
    assert status == 400
    assert headers["content-type"].startswith("application/json")
    assert {"code", "message", "where", "fix"} <= set(json.loads(reply))
    assert collector.windows == []


def test_what_is_too_large_is_dropped(collector: Collector) -> None:
    for pieces in ([b"a" * 9_000], [b"a" * 5_000] * 3, [b"a" * 60_000] * 200):
        assert call(collector.app(), "POST", "/reports", pieces)[0] == 413
    assert call(collector.app(), "POST", "/reports", [now("mac").to_json().encode()])[0] == 202


def test_windows_that_are_over_or_yet_to_come_and_other_collections_are_refused(collector: Collector) -> None:
    app, other = collector.app(), Collection("os", "Which system?", ["linux", "mac"], epsilon=1)
    wrong = [replace(now("mac"), window="2020-01"), replace(now("mac"), window="2999-01")]
    wrong += [replace(now("mac"), collection=other.hash), collected(other, ["mac"])[0]]
    for report in wrong:
        assert call(app, "POST", "/reports", [report.to_json().encode()])[0] == 400
    for days in (-1, 0, 1):
        near = replace(now("mac"), window=OS.window_of(today() + datetime.timedelta(days=days)))
        assert call(app, "POST", "/reports", [near.to_json().encode()])[0] == 202


def test_a_report_is_json_and_other_methods_and_paths_are_refused(collector: Collector) -> None:
    app, report = collector.app(), [now("mac").to_json().encode()]
    for kind in ([], [(b"content-type", b"text/plain")], [(b"content-type", b"application/x-www-form-urlencoded")]):
        assert call(app, "POST", "/reports", report, kind)[0] == 415
    assert call(app, "POST", "/reports", report, [(b"Content-Type", b"application/json; charset=utf-8")])[0] == 202
    status, headers, _ = call(app, "GET", "/reports")
    assert (status, headers["allow"]) == (405, "POST")
    assert call(app, "DELETE", "/")[0] == 405
    for path in ("/etc/passwd", "/../collection.py", "/app.py", "//", ""):
        assert call(app, "GET", path)[0] == 404


def test_a_store_that_fails_says_no_more_than_that(collector: Collector) -> None:
    collector.close()
    status, _, reply = call(collector.app(), "POST", "/reports", [now("mac").to_json().encode()])
    assert (status, json.loads(reply)["code"]) == (503, "store")


def test_the_page_says_what_is_done_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    asked = {
        '<b>"os"': ["<script>alert(1)</script>", "mac & co", "ü"],
        "age": Number(0, 99),
        "bin": Ordered("0.5", 3, "0.5"),
        "word": Text(4),
    }
    record = Collection("<i>name</i>", "<img src=x onerror=alert(1)>?", asked, epsilon=1, public=["country"])
    with Collector(record, tmp_path / "reports.duckdb") as found:
        app = found.app()
        status, headers, body = call(app, "GET", "/")
        text = body.decode()
        assert status == 200
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "<i>" not in text
        assert "http" not in text
        for words in ("by chance", "country", "ε = 1", record.hash, "From 0.5 to 3. A number outside"):
            assert words in text
        assert text.count('<input type="number" step="any" class="answer"') == 2
        assert not any(refuses in text for refuses in ("min=", "max=", "pattern="))
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert call(app, "HEAD", "/")[2] == b""
        assert call(app, "GET", "/collection.json")[2].decode() == record.to_json()
        for path in ("/client.mjs", "/page.mjs", "/page.css"):
            assert call(app, "GET", path)[0] == 200


def test_the_command_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert command.callback is not None
    with pytest.raises(QuestionError) as caught:
        command.callback("collection.json", "reports.duckdb", "127.0.0.1", 8000)
    assert "discreet[server]" in caught.value.fix


def test_a_server_may_start_and_stop_it(collector: Collector) -> None:
    messages, sent = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

    async def receive() -> dict[str, str]:
        return messages.pop(0)

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    asyncio.run(collector.app()({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
