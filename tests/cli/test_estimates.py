"""The owner's page of a collection: it holds the estimates, follows what comes, and is the owner's alone."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from discreet.cli.collect import estimate_command
from discreet.cli.estimates import MOST_ROWS, EstimatePages
from discreet.local import Collection, Collector, Number, Ordered, Report, Text
from discreet.local.beside import answering, asked
from discreet.local.draws import fresh
from discreet.local.report import randomised

needs_server = pytest.mark.skipif(
    importlib.util.find_spec("uvicorn") is None, reason="uvicorn is missing; nothing is served"
)
SAID: dict[str, Any] = {"attribute": None, "window": None, "confidence": 0.95}
HOSTILE = "<script>window.ran = 1</script>"
ASKED = {"meal": ["soup", HOSTILE, "'\"><b>\u202e"], "age": Ordered(16, 99), "minutes": Number(0, 180), "dish": Text(2)}
LUNCH = Collection(
    "lunch", f"What, and when? {HOSTILE}", ASKED, epsilon=4, window="day", questions={"age": "How old are you? <b>"}
)
EVEN = {"meal": "soup", "age": 30, "minutes": 20, "dish": "ri"}


def some(collection: Collection, answers: list[Any], window: str) -> list[Report]:
    """A report of each answer in a window."""
    made = [randomised(collection, os.urandom(32), window, one, fresh()) for one in answers]
    return [Report(collection.hash, window, token, part, report, {}) for token, part, report in made]


@pytest.fixture
def lunch(tmp_path: Path) -> Path:
    path = tmp_path / "lunch.duckdb"
    with Collector(LUNCH, path) as found:
        for window, people in (("2026-11-01", 40), ("2026-11-02", 900)):
            found.add(some(LUNCH, [EVEN] * people, window))
    return path


def look(page: EstimatePages, path: str = "/", accept: str = "text/html", method: str = "GET") -> tuple[int, str]:
    """Status and text of a reply."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    bare, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": f"/place{bare}", "root_path": "/place"}
    scope |= {"query_string": query.encode(), "headers": [(b"accept", accept.encode())]}
    asyncio.run(page(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()


def told(page: EstimatePages, path: str = "/") -> Any:
    status, text = look(page, path, "application/json")
    return json.loads(text) | {"status": status}


def test_the_page_and_its_json_hold_the_estimates(lunch: Path) -> None:
    page = EstimatePages(str(lunch), SAID)
    found, straight = told(page), asked(lunch, SAID)
    for one in straight["estimates"]:
        del one["text"]
    assert found == {**straight, "status": 200}
    assert found["running"] is False
    assert [one["attribute"] for one in found["estimates"]] == list(ASKED)
    assert found["windows"] == [
        {"window": "2026-11-01", "reports": 40},
        {"window": "2026-11-02", "reports": 900},
    ]
    status, text = look(page)
    assert status == 200
    assert "900 reports of 2026-11-02. No collector runs" in text
    assert "This page costs nobody any privacy." in text
    for one in found["estimates"]:
        assert f"About this question: {one['reports']:,} reports." in text
    assert text.count('<svg role="img"') == 4
    assert "How old are you? &lt;b&gt;" in text
    assert "16 to 20" in text
    assert "<th scope=row class=number>50 %</th>" in text
    for written in ("<script>w", "<b>", "\u202e"):
        assert written not in text


def test_each_window_has_its_own_and_what_is_no_window_is_said(lunch: Path) -> None:
    page = EstimatePages(str(lunch), SAID)
    assert {one["window"] for one in told(page, "/?window=2026-11-01")["estimates"]} == {"2026-11-01"}
    assert "40 reports of 2026-11-01" in look(page, "/?window=2026-11-01")[1]
    none = look(page, "/?window=2026-10-31")
    assert none[0] == 200
    assert none[1].count("No report of this window is about this question yet.") == 4
    odd = look(page, "/?window=%3Cscript%3E")
    assert odd[0] == 400
    assert "this is not a valid window" in odd[1]
    assert "<script>" not in odd[1]
    assert told(page, "/?window=odd")["code"] == "window"
    assert look(page, "/none")[0] == 404
    assert look(page, method="POST")[0] == 405
    assert look(page, method="HEAD") == (200, "")


def test_few_reports_many_values_and_none_at_all(tmp_path: Path) -> None:
    few = Collection("few", "Heads?", ["no", "yes"], epsilon=1)
    with Collector(few, tmp_path / "few.duckdb") as found:
        found.add(some(few, ["yes"] * 10, "2026-11"))
    text = look(EstimatePages(str(tmp_path / "few.duckdb"), SAID))[1]
    assert "There are few reports, so intervals are wide" in text
    assert "Fitted shares" in text
    many = Collection("many", "Which?", [f"v{place}" for place in range(MOST_ROWS + 40)], epsilon=4, window="ever")
    with Collector(many, tmp_path / "many.duckdb") as found:
        found.add(some(many, ["v120"] * 200, "ever"))
    text = look(EstimatePages(str(tmp_path / "many.duckdb"), SAID))[1]
    assert "The 100 largest of 140 shares" in text
    assert text.count("<th scope=row>v") == MOST_ROWS
    assert text.index("<th scope=row>v120<") < text.index("</tr>\n<tr><th scope=row>v")
    assert "Reports by" not in text
    Collector(few, tmp_path / "none.duckdb").close()
    text = look(EstimatePages(str(tmp_path / "none.duckdb"), SAID))[1]
    assert "0 reports." in text
    (tmp_path / "odd.duckdb").write_text("odd")
    status, text = look(EstimatePages(str(tmp_path / "odd.duckdb"), SAID))
    assert status == 503
    assert "<title>Estimates</title>" in text


def test_it_follows_a_collector_and_leaves_a_file_that_nobody_writes_alone(lunch: Path) -> None:
    page = EstimatePages(str(lunch), SAID)
    first = told(page, "/sizes")["stamp"]
    assert f'data-stamp="{first}"' in look(page)[1]
    with Collector(LUNCH, lunch) as found:  # this process holds the file, and answers nobody yet
        assert told(page, "/sizes")["stamp"] == first
        with answering(found, lunch):
            second = told(page, "/sizes")["stamp"]
            assert second != first
            assert "A collector takes reports now." in look(page)[1]
            found.add(some(LUNCH, [EVEN], "2026-11-02"))
            third = told(page, "/sizes")["stamp"]
            assert third not in (first, second)
            assert "901 reports of 2026-11-02" in look(page)[1]
    assert "901 reports of 2026-11-02. No collector runs" in look(page)[1]
    lunch.unlink()
    assert look(page)[0] == 400


@contextmanager
def shown(path: Path) -> Iterator[str]:
    """The address that the command writes, while it runs."""
    program = [sys.executable, "-m", "discreet", "estimate", path.name, "--browser"]
    with subprocess.Popen(program, cwd=path.parent, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            match = re.search(r"http://\S+", running.stderr.readline())
            assert match is not None
            yield match[0]
        finally:
            running.send_signal(signal.SIGINT)
            assert running.wait(300) == 0


@needs_server
def test_the_command_lets_its_user_alone_in(lunch: Path) -> None:
    with shown(lunch) as address:
        host, way = address.split("/", 3)[2:]

        def ask(path: str, **headers: str) -> tuple[int, str, str]:
            caller = HTTPConnection(host)
            caller.request("GET", path, headers=headers)
            reply = caller.getresponse()
            found = reply.status, reply.getheader("set-cookie") or "", reply.read().decode()
            caller.close()
            return found

        status, cookie, moves = ask(f"/{way}")
        match = re.search(r"url=(/[^/]+/)", moves)
        assert status == 200
        assert match is not None
        pair = cookie.split(";")[0]
        assert "lunch" in ask(match[1], cookie=pair)[2]
        assert json.loads(ask(match[1], cookie=pair, accept="application/json")[2])["collection"] == "lunch"
        for path in (match[1], f"{match[1]}sizes", f"{match[1]}style.css"):
            assert ask(path)[0] == 403
            assert ask(path, cookie=pair, host="evil.example")[0] == 421


def test_what_is_wrong_is_said_before_there_is_a_page(tmp_path: Path) -> None:
    runner = CliRunner()
    both = runner.invoke(estimate_command, ["r.duckdb", "--browser", "--json"])
    assert (both.exit_code, "do not go together" in both.output) == (2, True)
    none = runner.invoke(estimate_command, [str(tmp_path / "none.duckdb"), "--browser"])
    assert "no reports file" in str(none.exception)


@pytest.mark.outside
@needs_server
@needs_axe
def test_it_follows_in_a_browser_and_everybody_can_use_it(lunch: Path, tmp_path: Path) -> None:
    with (
        Collector(LUNCH, lunch) as collector,
        answering(collector, lunch),
        shown(lunch) as address,
        Browser(tmp_path / "profile") as browser,
    ):
        browser.go(address)
        browser.arrives("!!document.getElementById('follow') && typeof look === 'function'")
        assert faults_in_all_windows(browser, tmp_path, "estimates") == []
        for _ in range(3):
            browser.press("Tab")
        kept = "document.activeElement.getAttribute('aria-label')"
        assert browser.run(kept) == "meal: Shares of the answers"
        collector.add(some(LUNCH, [EVEN] * 100, "2026-11-02"))
        browser.run("look()")
        assert "1,000 reports of 2026-11-02." in browser.run("live.textContent")
        assert browser.run(kept) == "meal: Shares of the answers"
        browser.run("follow.click()")
        collector.add(some(LUNCH, [EVEN], "2026-11-02"))
        browser.run("look()")
        assert "1,000 reports of 2026-11-02." in browser.run("live.textContent")
        assert browser.run("window.ran") is None
