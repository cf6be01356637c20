"""A respondent in a real browser: opens the page, answers, and only a randomised report leaves."""

from __future__ import annotations

import importlib.util
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import CHROMIUM, Browser
from discreet.local import Client, Collection, Collector, Number, Report, Text

needs_server = pytest.mark.skipif(
    importlib.util.find_spec("uvicorn") is None, reason="uvicorn is missing; nothing serves"
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing (Debian: chromium); no page is opened")


@contextmanager
def served(collection: Collection, folder: Path) -> Iterator[str]:
    """`discreet collect` on a free port of this machine, until it is interrupted."""
    (folder / "collection.json").write_text(collection.to_json(), "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from discreet.cli import run; run()",
        "collect",
        "collection.json",
        "reports.duckdb",
    ]
    with subprocess.Popen([*command, "--port", str(port)], cwd=folder, stderr=subprocess.PIPE) as server:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, server.stderr.read().decode()  # type: ignore[union-attr]
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=300)


@pytest.mark.outside
@needs_server
def test_the_command_serves_and_leaves_the_file_whole(tmp_path: Path) -> None:
    from urllib.request import Request, urlopen

    coin = Collection("coin", "Heads?", ["no", "yes"], epsilon="ln 3", window="ever")
    with served(coin, tmp_path) as address:
        with urlopen(address + "collection.json") as reply:
            same = Collection.from_json(reply.read().decode())
        with Client(same) as client:
            report = client.report("yes")
        request = Request(address + "reports", report.to_json().encode(), {"content-type": "application/json"})
        with urlopen(request) as reply:
            assert (reply.status, json.loads(reply.read())) == (202, {"status": "received"})
    with Collector(coin, tmp_path / "reports.duckdb") as found:
        assert found.estimate().reports == 1


@pytest.mark.outside
@needs_server
@needs_browser
def test_a_respondent_answers_in_a_browser(tmp_path: Path) -> None:
    asked = {"drink": [f"<b>{place}</b> ☕" for place in range(60)], "age": Number(0, 99), "word": Text(4)}
    poll = Collection("poll", "What, and how old?", asked, epsilon=1, window="ever", public=["country"])
    fill = """(async ({ drink, age, word }) => {
        const at = (id) => document.getElementById(id);
        [at("answer0").value, at("answer1").value, at("answer2").value] = [drink, age, word];
        document.querySelector(".public").value = "DE";
        at("said").textContent = "";
        document.querySelector("button").click();
    })"""
    with served(poll, tmp_path) as address, Browser(tmp_path / "profile") as browser:
        browser.go(address)
        browser.until("document.body?.dataset.ready")
        assert "by chance" in browser.run('document.getElementById("explained").textContent')
        said: list[str] = []
        sent: list[dict[str, object]] = []
        for drink, age, word in (("3", 41.5, "köln"), ("3", 41.5, "köln"), ("59", 120, "bonn")):
            browser.run(f"{fill}({json.dumps({'drink': drink, 'age': age, 'word': word})})")
            browser.until('document.getElementById("said").textContent')
            said.append(browser.run('document.getElementById("said").textContent'))
            sent.append(json.loads(browser.run('document.getElementById("sent").textContent')))
        assert said == ["Your report was sent. What you chose stays on this device."] * 3
        assert sent[0] == sent[1] == sent[2]  # even if the answer has changed
        report = Report.of(sent[0])
        assert (report.collection, report.window, report.public) == (poll.hash, "ever", {"country": "DE"})
        loaded = browser.run("performance.getEntriesByType('resource').map(({ name }) => name)")
        own = {"style.css", "page.css", "page.mjs", "client.mjs", "collection.json", "reports"}
        assert {name.removeprefix(address) for name in loaded} <= own
        # what is written into the page cannot run
        inject = (
            "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))"
        )
        assert browser.run(f"{inject}; window.ran") is None
    with Collector(poll, tmp_path / "reports.duckdb") as found:
        assert found.query("SELECT COUNT(*) AS reports FROM reports") == [{"reports": 1}]
        # what the browser remembered decides the same report in Python
        assert found.add(report) == 0


@pytest.mark.outside
@needs_server
@needs_axe
def test_everybody_can_use_the_page_with_the_keyboard_alone(tmp_path: Path) -> None:
    asked = {"drink": ["tea", "coffee"], "age": Number(0, 99), "word": Text(4)}
    questions = {"drink": "What do you drink in the morning?", "age": "How old are you?"}
    more = {"each": "0.5", "cap": 2, "public": ["country"]}
    polls = {
        "record": Collection("poll", "Three things", asked, epsilon=1, questions=questions, public=["country"]),
        "often": Collection("often", "Heads?", ["no", "yes"], epsilon=1, window="day", **more),  # type: ignore[arg-type]
    }
    for name, poll in polls.items():
        (tmp_path / name).mkdir()
        with served(poll, tmp_path / name) as address, Browser(tmp_path / name / "profile") as browser:
            browser.go(address)
            browser.until("document.body?.dataset.ready")
            assert faults_in_all_windows(browser, tmp_path, name) == []
            typed = ["ArrowDown", "Tab", "41", "Tab", "tea", "Tab", "DE", "Tab"]
            for key in ["Tab", *(typed if name == "record" else ["ArrowDown", "Tab", "DE", "Tab"])]:
                browser.press(key)
            assert browser.run("document.activeElement.id") == "send"
            browser.press("Enter")
            browser.until('document.getElementById("said").textContent')
            assert browser.run('document.getElementById("said").className') == "note good"
            assert faults_in_all_windows(browser, tmp_path, f"{name}-sent") == []
            labels = browser.run("[...document.querySelectorAll('form label')].map((one) => one.textContent)")
            if name == "record":
                assert labels[:3] == [*questions.values(), "word"]
            else:
                assert "With all 4 reports that you may give a day, at most 88.1 %." in browser.run(
                    "document.getElementById('guess').textContent"
                )
