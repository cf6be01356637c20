"""The owner's pages: what they show, what an act asks for, and who sees them."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from console_tools import Visitor, logged_in
from discreet.console.owner import PLACES
from discreet.service.roles import Role
from face_tools import Data
from service_tools import HOLDERS, Served, served

NASTY = "=1+1 <script>alert(1)</script> \u202e'\"&"
COUNT = {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}


@pytest.fixture
def service(data: Data, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as found:
        for epsilon in ("0.1", "0.2"):
            found.call("POST", "/ask", "ana", {**COUNT, "epsilon": epsilon})
        found.call("POST", "/ask", "bob", {**COUNT, "epsilon": "0.1"})
        yield found


@pytest.fixture
def owner(service: Served) -> Visitor:
    return logged_in(service, "owner")


def data_of(service: Served, path: str, who: str = "owner") -> Any:
    reply = service.call("GET", path, who, Accept="application/json")
    assert reply.status == 200, reply.content
    return reply.json


def test_the_bars_say_where_a_budget_went(service: Served, owner: Visitor) -> None:
    found = data_of(service, "/console/overview")
    assert [one["name"] for one in found["budgets"]] == ["", "ana", "bob"]
    for one in found["budgets"]:
        assert sum(one[part] for part in ("spent", "reserved", "apart", "left")) == pytest.approx(100)
        assert one["spent"] > 0
        assert one["pace"]["words"].startswith("as in the last 7 days")
    assert 0.5 < found["odds"]["now"] < found["odds"]["whole"] <= 1
    page = owner.get("/console/overview").content.decode()
    assert page.count("<svg role=") == 4
    assert "right at most" in page


def test_an_analyst_is_frozen_after_a_reason_and_lifted(service: Served, owner: Visitor) -> None:
    assert "/console/freeze?analyst=ana" in owner.get("/console/analysts").content.decode()
    owner.get("/console/freeze?analyst=ana")
    refused = owner.post("/console/freeze", {"analyst": "ana", "reason": " "})
    assert (refused.status, "1 to 1,000 letters" in refused.content.decode()) == (422, True)
    done = owner.post("/console/freeze", {"analyst": "ana", "reason": NASTY})
    assert (done.status, done.headers["location"]) == (303, "/console/analysts")
    assert service.call("POST", "/ask", "ana", COUNT).json["code"] == "stopped"
    row = rows_of(owner)["ana"]
    assert row[0].startswith("may not: frozen; lift")
    assert "may not: frozen for all tables; freeze" in row[1]
    owner.get("/console/lift?analyst=ana")
    assert owner.post("/console/lift", {"analyst": "ana", "reason": "over"}).status == 303
    assert service.call("POST", "/ask", "ana", COUNT).status == 200
    log = owner.get("/console/log?kind=acts").content.decode()
    assert "<script>alert" not in log
    assert "ana frozen, by owner" in log
    lines = list(csv.reader(io.StringIO(owner.get("/console/log.csv?kind=acts").content.decode())))
    assert any("alert(1)" in line[-1] for line in lines)
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)


def rows_of(owner: Visitor) -> dict[str, list[str]]:
    """Who may ask about which table, in the page's words: all tables first."""
    page = owner.get("/console/analysts").content.decode()
    table = page.partition("Who may ask about which table</h2>")[2].partition("</table>")[0]
    rows = [
        [" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in table.split("<tr>")[1:]
    ]
    return {row[0]: row[1:] for row in rows}


def test_a_single_table_is_closed_to_one_analyst_and_to_all(service: Served, owner: Visitor) -> None:
    assert rows_of(owner)["ana"] == ["may ask; freeze", "2 questions may ask; freeze"]
    page = owner.get("/console/analysts").content.decode()
    assert 'href="/console/freeze?analyst=ana&amp;table=visits" aria-label="Freeze ana for visits"' in page
    asking = owner.get("/console/freeze?analyst=ana&table=visits").content.decode()
    assert "Nothing that reads this table, alone or joined to others, is measured for this analyst" in asking
    said = {"analyst": "ana", "table": "visits"}
    assert owner.post("/console/freeze", {**said, "reason": " "}).status == 422
    assert owner.post("/console/freeze", {**said, "table": "no", "reason": "x"}).status == 422
    done = owner.post("/console/freeze", {**said, "reason": "not in her plan"})
    assert (done.status, done.headers["location"]) == (303, "/console/analysts")
    assert service.call("POST", "/ask", "ana", COUNT).json["code"] == "stopped"
    assert rows_of(owner) == {
        "Analyst": ["All tables", "visits"],
        "everybody": ["may ask; freeze", "may ask; freeze"],
        "ana": ["may ask; freeze", "2 questions may not: frozen for this table; lift"],
        "bob": ["may ask; freeze", "1 question may ask; freeze"],
    }
    owner.get("/console/lift?analyst=ana&table=visits")
    assert owner.post("/console/lift", {**said, "reason": "over"}).status == 303
    owner.get("/console/freeze?table=visits")
    assert owner.post("/console/freeze", {"analyst": "", "table": "visits", "reason": "audit"}).status == 303
    assert rows_of(owner)["everybody"] == ["may ask; freeze", "may not: frozen; lift"]
    assert rows_of(owner)["bob"] == [
        "may ask; freeze",
        "1 question may not: everybody is frozen for this table; freeze",
    ]
    found = data_of(service, "/console/analysts")["asked"][1]["may"]["visits"]
    assert found == {"may": False, "why": "everybody is frozen for this table", "lift": False}
    assert "[analysts.bob]\nepsilon = 0.2" in owner.get("/console/analysts").content.decode()


def test_an_owner_who_asks_stands_among_those_who_asked(service: Served, owner: Visitor) -> None:
    assert service.call("POST", "/ask", "owner", {**COUNT, "epsilon": "0.7"}).status == 200
    rows = rows_of(owner)
    assert rows["the owner"] == ["", "1 question may ask"]
    assert rows["bob"] == ["may ask; freeze", "1 question may ask; freeze"]


def test_the_log_is_found_by_who_what_and_when(service: Served, owner: Visitor) -> None:
    def numbers(query: str) -> list[int]:
        return [one["entry"] for one in data_of(service, f"/console/log?{query}")["entries"]]

    asked = numbers("kind=questions")
    assert asked == sorted(asked, reverse=True)
    assert len(numbers("kind=questions&who=ana")) == 2
    assert len(numbers("table=visits&who=bob")) == 1  # what he was given of ana's is about the same table
    assert numbers("from=2999-01-01") == []
    assert numbers("until=2000-01-01") == []
    assert numbers("text=count(") == asked
    assert data_of(service, "/console/log?kind=questions")["entries"][-1]["status"] == "committed"
    assert owner.get("/console/log?from=yesterday").status == 400
    assert owner.get("/console/log?who=ana&text=%3Cscript%3E").status == 200
    entry = data_of(service, f"/console/log/{asked[-1]}")
    assert (entry["analyst"], entry["price"], entry["tables"]) == ("ana", "ε 0.1", ["visits"])
    assert entry["explained"]["mechanisms"]
    page = owner.get(f"/console/log/{asked[-1]}").content.decode()
    assert "<dd>question</dd>" in page
    assert "<dd>answered</dd>" in page
    assert "95 of 100 answers are at least this near" in page
    assert "discrete Laplace noise" in page
    assert "{&#39;" not in page  # in words, not as a program has it
    assert owner.get("/console/log/999999").status == 404
    counted = data_of(service, "/console/analysts")["asked"]
    assert {one["analyst"]: one["tables"]["visits"] for one in counted} == {"ana": 2, "bob": 1}


def test_the_log_finds_what_the_owner_did_by_whom_and_about_what(service: Served, owner: Visitor) -> None:
    def notes(query: str) -> list[str]:
        return [one["note"] for one in data_of(service, f"/console/log?kind=acts&{query}")["entries"]]

    owner.get("/console/freeze?analyst=ana&table=visits")
    for act, reason in (("freeze", "audit"), ("lift", "over")):
        said = {"analyst": "ana", "table": "visits", "reason": reason}
        assert owner.post(f"/console/{act}", said).status == 303
    service.call("POST", "/refresh", "owner", {"tables": {"visits": 1}, "reason": "new rows"})
    while data_of(service, "/console/refresh")["state"] == "running":
        time.sleep(0.05)
    froze = ["ana no longer frozen for visits, by owner: over", "ana frozen for visits, by owner: audit"]
    asked = "new snapshots asked for: visits, by owner: new rows"
    assert notes("table=visits") == [asked, *froze]
    assert notes("who=owner")[:3] == [asked, *froze]
    about = notes("who=ana")
    assert about[:2] == froze
    assert "account ana made: analyst of ana" in about
    assert not [note for note in about if "bob" in note and "ana" not in note]
    assert notes("who=ana&table=visits") == froze
    snapshots = data_of(service, "/console/log?kind=snapshots&table=visits")["entries"]
    assert [one["note"] for one in snapshots] == ["visits: snapshot 2", "visits: snapshot 1"]
    assert {"ana", "bob", "eve", "max", "owner"} <= set(data_of(service, "/console/log")["names"])
    assert {one["by"] for one in data_of(service, "/console/log?kind=acts&table=visits")["entries"]} == {"owner"}


def test_a_saved_log_steers_no_terminal(service: Served, owner: Visitor) -> None:
    asked = "SELECT COUNT(*) AS n\nFROM visits WHERE note = '\x1b[2J\u202e'"
    assert service.call("POST", "/ask", "ana", {"question": asked, "epsilon": "0.1"}).status == 200
    saved = owner.get("/console/log.csv").content.decode()
    assert "AS n\nFROM visits WHERE note = '\\x1b[2J\\u202e'" in saved
    assert "\x1b" not in saved
    assert "\u202e" not in saved


def test_an_accounts_token_is_shown_once(service: Served, owner: Visitor) -> None:
    owner.get("/console/accounts")
    said = {"account": "zoe", "role": "analyst", "analyst": "ana", "days": "7", "reason": NASTY}
    made = owner.post("/console/accounts", said)
    secret = re.findall(r"discreet_[\w-]{20,}", made.content.decode())[0]
    assert service.call("GET", "/balance", secret).status == 200
    again = owner.post("/console/accounts", said)
    assert again.status == 422
    assert 'value="zoe"' in again.content.decode()
    assert "make a new token of <bdi>zoe</bdi>" in again.content.decode()
    assert secret not in owner.get("/console/accounts").content.decode()
    assert owner.post("/console/accounts", {**said, "account": "o", "role": "owner"}).status == 422
    assert owner.post("/console/accounts", {**said, "account": "o", "days": "x"}).status == 422
    assert owner.post("/console/accounts", {**said, "account": "o", "reason": ""}).status == 422
    for other in ({"reason": " "}, {"days": "x"}, {"account": "owner"}, {"account": "nobody"}):
        assert owner.post("/console/accounts/token", {"account": "zoe", "reason": "lost", **other}).status == 422
    assert "A new token of <bdi>zoe</bdi>" in owner.get("/console/accounts/token?account=zoe").content.decode()
    page = owner.post("/console/accounts/token", {"account": "zoe", "days": "", "reason": "lost"})
    second = re.findall(r"discreet_[\w-]{20,}", page.content.decode())[0]
    named = {"account": "zoe", "days": "", "reason": "lost", "request": "form-1"}
    third = re.findall(r"discreet_[\w-]{20,}", owner.post("/console/accounts/token", named).content.decode())
    again = owner.post("/console/accounts/token", named)  # the same form
    assert (len(third), again.status, "discreet_" in again.content.decode()) == (1, 422, False)
    assert "has made token" in again.content.decode()
    for token in (secret, second):
        assert service.call("GET", "/balance", token).json["analyst"] == "ana"
    tokens = data_of(service, "/console/accounts")["accounts"][-1]["tokens"]
    number = str(tokens[0]["token"])
    assert f"account=zoe&amp;token={number}" in owner.get("/console/accounts").content.decode()
    assert "Revoke token" in owner.get(f"/console/accounts/revoke?account=zoe&token={number}").content.decode()
    for other in ({"reason": " "}, {"token": "999"}, {"token": "x"}, {"account": "nobody"}):
        said = {"account": "zoe", "token": number, "reason": "lost", **other}
        assert owner.post("/console/accounts/revoke", said).status == 422
    for _ in range(2):  # a form that is sent twice
        assert (
            owner.post("/console/accounts/revoke", {"account": "zoe", "token": number, "reason": "lost"}).status == 303
        )
    assert [service.call("GET", "/balance", token).status for token in (secret, second)] == [401, 200]
    owner.get("/console/accounts/end?account=zoe")
    assert owner.post("/console/accounts/end", {"account": "zoe", "reason": "gone"}).status == 303
    assert {service.call("GET", "/balance", token).status for token in (secret, second)} == {401}


def test_a_refresh_is_confirmed_and_said(service: Served, owner: Visitor) -> None:
    owner.get("/console/refresh")
    said = {"table": "", "numbers": json.dumps({"visits": 1}), "reason": "May"}
    assert owner.post("/console/refresh", said).status == 422
    assert owner.post("/console/refresh", {**said, "numbers": "[1"}).status in (400, 422)
    assert owner.post("/console/refresh", {**said, "sure": "yes"}).status == 303
    while data_of(service, "/console/refresh")["state"] == "running":
        time.sleep(0.05)
    assert "nothing has changed" in owner.get("/console/refresh").content.decode()
    assert owner.post("/console/refresh", {**said, "sure": "yes"}).status == 422  # the same form again
    assert data_of(service, "/console/refresh")["snapshots"] == {"visits": 2}


def test_health_verifies_the_whole_ledger(service: Served) -> None:
    assert data_of(service, "/console/health")["verified"] is None
    found = data_of(service, "/console/health?verify=1")
    assert found["verified"]["head"] == found["head"] == service.curator.ledger.head
    assert found["open"] == []


def test_each_page_is_for_its_roles(service: Served) -> None:
    for place in PLACES:
        for who, role in HOLDERS.items():
            path = place.path.replace("{number}", "1")
            reply = service.call("GET", path, who, Accept="application/json")
            assert reply.status == (200 if role in place.roles else 403), (path, who, reply.content)
    assert Role.ANALYST not in {role for place in PLACES for role in place.roles}


@needs_axe
def test_the_pages_are_fit_to_be_used(service: Served, tmp_path: Path) -> None:
    service.call("POST", "/freeze", "owner", {"analyst": "bob", "reason": NASTY})
    service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["visits"], "reason": NASTY})
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    found = []
    with Browser(tmp_path / "profile") as browser:
        browser.go(f"{service.url}/console/login")
        browser.until("document.querySelector('[name=token]')")
        browser.run("document.querySelector('[name=token]').focus(); 1")
        browser.press(service.tokens["owner"])
        browser.press("Enter")
        for _ in range(20):
            with suppress(AssertionError):  # the page is left for the next one while it is asked
                browser.until("location.pathname === '/console/overview' && document.readyState === 'complete'")
                break
        entry = data_of(service, "/console/log?kind=questions")["entries"][-1]["entry"]
        names = [
            "overview",
            "analysts",
            "freeze?analyst=ana&table=visits",
            "lift?analyst=bob",
            "log",
            f"log/{entry}",
            "refresh",
        ]
        for name in (*names, "accounts", "accounts/end?account=eve", "health?verify=1"):
            browser.go(f"{service.url}/console/{name}")
            for _ in range(20):
                with suppress(AssertionError):
                    browser.until(f"location.href.endsWith('/console/{name}') && document.readyState === 'complete'")
                    break
            found += faults_in_all_windows(browser, pictures, re.sub(r"\W", "-", name))
    assert found == []
