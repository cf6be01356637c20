"""The page of requests for more: who sees which, who decides, and that a form which is sent twice does it once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from console_tools import Visitor, logged_in
from discreet.console.requests import MOST_SENT
from discreet.ledger.requests import MOST_OPEN
from face_tools import Data
from service_tools import CLINIC, HOLDERS, Served, served

PAGE = "/console/requests"
NASTY = "=1+1 <script>alert(1)</script> \u202e'\"&"
PICTURES = os.environ.get("DISCREET_PICTURES")
"""A folder for pictures of each page, for whoever wants to look at them."""


@pytest.fixture
def service(data: Data, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as found:
        yield found


def data_of(service: Served, who: str, path: str = PAGE) -> Any:
    reply = service.call("GET", path, who, Accept="application/json")
    assert reply.status == 200, reply.content
    return reply.json


def shown(visitor: Visitor, path: str = PAGE) -> str:
    return visitor.get(path).content.decode()


def asked(service: Served, epsilon: str = "0.3", reason: str = "the second wave", who: str = "ana") -> str:
    said = {"epsilon": epsilon, "reason": reason}
    return str(service.call("POST", "/requests", who, said).json["number"])


def test_an_analyst_asks_once_whatever_is_sent_twice(service: Served) -> None:
    ana = logged_in(service, "ana")
    assert "Ask for more" in shown(ana, "/console/balance")
    assert "You have not asked for more yet" in shown(ana)
    said = {"request": "a", "epsilon": " 0,3 ", "reason": f"{NASTY}\r\nand more"}
    for _ in range(2):
        done = ana.post(PAGE, said)
        assert (done.status, done.headers["location"]) == (303, PAGE)
    found = data_of(service, "ana")
    assert [(one["epsilon"], one["by"]) for one in found["open"]] == [("0.3", "ana")]
    assert found["account"] == {"epsilon": "4", "approved": "0", "used": 0, "windows": []}
    page = shown(ana)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "1 request for more is open" in shown(ana, "/console/balance")
    service.curator.deny(found["open"][0]["number"], "not now")
    assert ana.post(PAGE, said).status == 303  # the same form, once it was decided
    assert data_of(service, "ana")["open"] == []
    for count in range(MOST_SENT + 1):
        ana.post(PAGE, {**said, "request": f"b{count}"})
    assert len(data_of(service, "ana")["open"]) == 1


def test_what_is_refused_stays_in_the_form(service: Served) -> None:
    ana, head = logged_in(service, "ana"), service.curator.ledger.head
    for epsilon, reason in (("x", NASTY), ("99", NASTY), ("0.1", " "), ("0", NASTY), ("0.1", "y" * 1_001)):
        refused = ana.post(PAGE, {"epsilon": epsilon, "reason": reason})
        assert (refused.status, 'role="alert"' in refused.content.decode()) == (422, True)
        assert f'value="{epsilon}"' in refused.content.decode()
    assert service.call("POST", PAGE, "ana", {"epsilon": "99"}, Accept="application/json").json["code"] == "reason"
    assert ana.post(PAGE, {"epsilon": "0.1", "reason": "x", "who": "bob"}).status == 400
    assert service.curator.ledger.head == head
    for number in range(MOST_OPEN):
        asked(service, reason=f"wave {number}")
    assert f"{MOST_OPEN} of your requests are open" in shown(ana)
    assert ana.post(PAGE, {"epsilon": "0.1", "reason": "more"}).status == 422


def test_the_owner_sees_what_it_means_and_decides(service: Served) -> None:
    first, second = asked(service, reason=NASTY), asked(service, "0.2", who="bob")
    owner, ana = logged_in(service, "owner"), logged_in(service, "ana")
    assert "2 requests for more are open" in shown(owner, "/console/overview")
    found = data_of(service, "owner")
    assert [str(one["number"]) for one in found["open"]] == [first, second]
    account = found["open"][0]["account"]
    assert (account["epsilon"], account["approved"], account["most"]) == ("4", "0", "0.3")
    assert 0.5 < account["odds"]["now"] < account["odds"]["then"] < account["odds"]["whole"] <= 1
    page = shown(owner)
    assert "is right at most 98.3 % of the time once ana has spent all of ε 4, at most 98.7 % with ε 0.3 more" in page
    assert "<script>alert" not in page
    said = {"number": first, "decision": "approve", "epsilon": "0,1", "reason": "a third will do"}
    head = service.curator.ledger.head
    bad = (
        {"decision": ""},
        {"decision": "no"},
        {"reason": ""},
        {"epsilon": "0.4"},
        {"epsilon": ""},
        {"number": "0"},
        {"number": "x"},
    )
    for other in bad:
        refused = owner.post(PAGE, {**said, **other})
        assert (refused.status, 'role="alert"' in refused.content.decode()) == (422, True), other
    assert service.curator.ledger.head == head
    for _ in range(2):
        assert owner.post(PAGE, said).status == 303
    assert owner.post(PAGE, {**said, "decision": "deny"}).status == 422
    denied = {"number": second, "decision": "deny", "reason": NASTY, "epsilon": "0.2"}
    done = service.call("POST", PAGE, "owner", denied, Accept="application/json")
    assert (done.json["state"], done.json["approved"], done.json["decided_by"]) == ("denied", None, "owner")
    found = data_of(service, "owner")
    assert [(one["analyst"], one["state"]) for one in found["decided"]] == [("bob", "denied"), ("ana", "approved")]
    assert "No request is open" in shown(owner)
    assert "open" not in shown(owner, "/console/overview").partition("<main")[2].partition("<section")[0]
    assert "ε 4.1, of which ε 0.1 was approved" in shown(ana)
    assert "ε 0.1 of it, above the declared budget" in shown(ana, "/console/balance")
    assert "0.1 of it approved" in shown(owner, "/console/analysts")
    notes = [entry.note for entry in service.curator.ledger.entries()]
    assert f"request {first} of ana approved with ε 0.1 more, by owner: a third will do" in notes


def test_nobody_sees_or_decides_what_is_not_theirs(service: Served) -> None:
    number, head = asked(service, reason="a secret plan"), service.curator.ledger.head
    assert "a secret plan" in shown(logged_in(service, "ana"))
    bob, eve = logged_in(service, "bob"), logged_in(service, "eve")
    assert "a secret plan" not in shown(bob)
    assert data_of(service, "bob")["open"] == []
    assert "a secret plan" in shown(eve)
    assert "<form method" not in shown(eve).partition("<main")[2]
    said = {"number": number, "decision": "approve", "reason": "mine", "epsilon": "0.3"}
    for who in (*HOLDERS, None):
        if who not in ("owner", "ana", "bob"):
            assert service.call("POST", PAGE, who, said, Accept="application/json").status == (403 if who else 401)
    assert eve.post(PAGE, said).status == 403
    assert logged_in(service, "owner").post(PAGE, {**said, "form": "another page's"}).status == 403
    assert service.curator.ledger.head == head
    bob.post(PAGE, said)  # of an analyst this is one more request
    found = {one["analyst"]: (str(one["number"]), one["state"]) for one in data_of(service, "eve")["open"]}
    assert found.keys() == {"ana", "bob"}
    assert found["ana"] == (number, "open") != found["bob"]


def test_without_budgets_of_their_own_there_is_nothing_to_ask_for(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, CLINIC.partition("[analysts")[0]) as service:
        ana = logged_in(service, "ana")
        assert "You have no budget of your own here" in shown(ana)
        assert "Ask for more" not in shown(ana, "/console/balance")
        assert ana.post(PAGE, {"epsilon": "0.1", "reason": "x"}).status == 422
        assert "No request is open" in shown(logged_in(service, "owner"))


def test_where_the_budget_renews_it_says_for_how_long(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, CLINIC.replace("[budget]", '[budget]\nperiod = "1 year"\nrenews = "everybody"')) as service:
        number, owner, ana = asked(service), logged_in(service, "owner"), logged_in(service, "ana")
        assert service.curator.budget.period is not None
        period = service.curator.budget.period["name"]
        for visitor in (owner, ana):
            assert f"counts in the period {period} alone" in shown(visitor)
        assert "spent all of ε 4 in one year" in shown(owner)
        assert "after the whole budget of one year" in shown(owner, "/console/overview")
        owner.post(PAGE, {"number": number, "decision": "approve", "epsilon": "0.3", "reason": "yes"})
        for visitor in (owner, ana):
            assert f"approved: ε&nbsp;0.3 in {period}" in shown(visitor)


@needs_axe
def test_the_page_is_used_by_keyboard_and_shuts_nobody_out(service: Served, tmp_path: Path) -> None:
    folder = Path(PICTURES) if PICTURES else None
    asked(service, "0.1", NASTY * 4, "bob")
    found = []
    with Browser(tmp_path / "profile") as browser:

        def at(who: str, name: str) -> None:
            browser.go(f"{service.url}/console/login")
            browser.arrives("document.activeElement && document.activeElement.id === 'token'")
            browser.press(service.tokens[who])
            browser.press("Enter")
            browser.arrives("location.pathname !== '/console/login' && document.readyState === 'complete'")
            browser.go(f"{service.url}/console/{name}")
            there(name)

        def there(name: str) -> None:
            browser.arrives(f"location.pathname === '/console/{name}' && document.readyState === 'complete'")

        def tab_to(selector: str) -> None:
            for _ in range(60):
                if browser.run(f"document.activeElement.matches({selector!r})"):
                    return
                browser.press("Tab")
            raise AssertionError(f"{selector} is not reached by Tab")

        def look(name: str) -> None:
            nonlocal found
            found += faults_in_all_windows(browser, folder, name)
            browser.window(1280, 900)

        at("ana", "requests")
        tab_to("#epsilon")
        browser.press("0.3")
        tab_to("#reason")
        browser.press("the second wave")
        look("requests-asking")
        tab_to("main button.first")
        browser.press("Enter")
        browser.arrives("!!document.querySelector('main td') && document.readyState === 'complete'")
        look("requests-asked")
        browser.go(f"{service.url}/console/balance")
        there("balance")
        look("balance")
        at("owner", "overview")
        look("overview")
        browser.go(f"{service.url}/console/requests")
        there("requests")
        look("requests-open")
        tab_to("section:last-of-type input[type=radio]")
        for _ in range(2):
            browser.press("ArrowRight")  # to deny, and back
        assert browser.run("document.activeElement.value") == "approve"
        tab_to("section:last-of-type textarea")
        browser.press("as agreed")
        tab_to("section:last-of-type button")
        browser.press("Enter")
        browser.arrives("!!document.querySelector('main td') && document.readyState === 'complete'")
        look("requests-decided")
        browser.go(f"{service.url}/console/accounts/token?account=ana")
        there("accounts/token")
        look("accounts-token")
    assert found == []
    assert service.curator.ledger.approved() == {"ana": service.curator.requests("ana")[0].epsilon}
