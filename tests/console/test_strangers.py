"""What others wrote into pages: table and column names, public values, analysts' names, questions. Nothing of it runs,
hides or leads elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from console_tools import logged_in
from discreet.console.app import PLACES
from service_tools import Served, served

EVIL = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>'{{7*7}}\u202e\u200b"
QUESTIONS = (
    f"SELECT '{EVIL}' FROM visits",
    "</textarea><script>alert(1)</script>",
    "\n\n--><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\x1b[31m\u202eSELECT",
)


class Seen(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("strangers")
    said = json.dumps(EVIL.replace("\u202e", "").replace("\u200b", ""))
    (folder / "t.csv").write_text('"k","b"\n"x","y"\n', "utf-8")
    text = f"""
ledger = "clinic.ledger"
[budget]
epsilon = 10
delta = 1e-6
[analysts.{said}]
epsilon = 4
[analysts.ana]
epsilon = 4
[analysts.bob]
epsilon = 1
[tables.{said}]
source = "t.csv"
one_row_per_person = true
[tables.{said}.columns]
k = {{ type = "text", values = [{json.dumps(EVIL)}, "x"] }}
[tables.plain]
source = "t.csv"
one_row_per_person = true
[tables.plain.columns]
k = {{ type = "text", values = [{json.dumps(EVIL)}, "x"] }}
"""
    with served(folder, text) as found:
        yield found


def harmless(page: bytes) -> None:
    """Only our own script is there, nothing runs by itself, every address is ours, and nothing is hidden."""
    for tag, attributes in Seen(page).elements:
        assert tag not in ("img", "iframe", "object", "base", "style"), tag
        if tag == "script":
            assert str(attributes["src"]).startswith("/console/static/console.js?")
        assert not any(name.startswith("on") or name == "style" for name in attributes), attributes
        for name in ("href", "action", "src", "formaction"):
            assert name not in attributes or str(attributes[name]).startswith(("/console", "#")), attributes
    text = page.decode()
    assert not {"\u202e", "\u200b", "\x1b"} & set(text)


@pytest.mark.parametrize("who", ["ana", "owner"])
def test_every_page_shows_what_others_wrote_and_runs_nothing(service: Served, who: str) -> None:
    visitor = logged_in(service, who)
    asked = visitor.post(
        "/console/ask", {"question": "SELECT k, COUNT(*) AS n FROM plain GROUP BY k", "epsilon": "0.5"}
    )
    assert asked.status == 303
    pages = [visitor.get(one.path) for one in PLACES if one.show and "{" not in one.path]
    pages.append(visitor.get(asked.headers["location"]))
    assert "&lt;script&gt;alert(1)" in pages[-1].content.decode()
    for page in pages:
        if page.headers["content-type"].startswith("text/csv"):  # a file, which no browser shows as a page
            assert page.headers["content-disposition"].startswith("attachment")
            continue
        harmless(page.content)
    for question in QUESTIONS:
        for reply in (
            visitor.post("/console/ask", {"question": question, "epsilon": EVIL}),
            visitor.post("/console/check", {"question": question, "by": "within", "column": EVIL, "error": EVIL}),
            visitor.get(f"/console/ask?question={quote(question)}&epsilon={quote(EVIL)}&column={quote(EVIL)}"),
            visitor.get(f"/console/answers/{quote(question, safe='')}"),
            visitor.get(f"/console/history?before={quote(question)}"),
        ):
            assert reply.status in (200, 404, 422), reply.status
            if reply.headers["content-type"].startswith("text/html"):
                harmless(reply.content)
    assert service.call("GET", "/console/tables", who, Accept="application/json").json["tables"]


def test_a_download_is_a_file_and_no_page(service: Served) -> None:
    ana = logged_in(service, "ana")
    asked = ana.post("/console/ask", {"question": "SELECT k, COUNT(*) AS n FROM plain GROUP BY k", "epsilon": "0.5"})
    reply = ana.get(f"{asked.headers['location']}/html")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert b"<script>" not in reply.content
