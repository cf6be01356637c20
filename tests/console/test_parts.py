"""The console where each part has a budget: what a question is about goes with it, wherever it is shown again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from markupsafe import escape

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from console_tools import Visitor, logged_in
from part_tools import ALL, COUNT, NO_PART, SIZES, declared
from service_tools import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("parts")
    with served(folder, declared(folder, len(SIZES))) as found:
        yield found


def form(part: str, **said: str) -> dict[str, str]:
    return {"question": COUNT, "by": "epsilon", "epsilon": "5", "part": part, "request": "once", **said}


def asked(visitor: Visitor, part: str, **said: str) -> str:
    """Where the answer is that comes of the form."""
    reply = visitor.post("/console/ask", form(part, **said))
    assert reply.status == 303, reply.content
    return reply.headers["location"]


def chosen(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<option value="([^"]*)"[^>]* selected>', page)]


def test_a_form_that_is_sent_about_another_part_is_another_question(service: Served) -> None:
    ana = logged_in(service, "ana")
    places = {part: asked(ana, part) for part in ("", *SIZES)}
    assert len({*places.values()}) == len(places)
    for part, place in places.items():
        assert asked(ana, part) == place  # the same form sent twice is one question
        page = ana.get(place).content.decode()
        count = re.search(r'<td class="number"><bdi>([0-9,]+) ', page)
        assert count is not None
        assert abs(int(count[1]) - SIZES.get(part, ALL)) <= 5
        again = re.search(r'href="(/console/ask[?][^"]*)">Change the question', page)
        assert again is not None
        assert chosen(ana.get(unescape(again[1])).content.decode()) == ([part] if part else [])
        plain = ana.get(place, Accept="application/json").json
        assert plain["part"] == part
        assert ana.get(f"{place}/csv").status == 200
    history = ana.get("/console/history", Accept="application/json").json
    assert [one["part"] for one in history["answers"]][::-1] == list(places)
    assert [one["part"] for one in history["entries"]][::-1] == list(places)
    asked(ana, "north", request="again")
    latest = ana.get("/console/history", Accept="application/json").json["entries"][0]
    assert (latest["kind"], latest["part"], latest["epsilon"]) == ("repeat", "north", "5")
    links = re.findall(r'href="(/console/ask[?][^"]*)" >Open', ana.get("/console/history").content.decode())
    assert chosen(ana.get(unescape(links[0])).content.decode()) == ["north"]


def test_the_check_is_of_the_part_that_is_chosen(service: Served) -> None:
    ana = logged_in(service, "ana")
    for part, more in (("north", {}), (" north", {"afresh": "yes"}), ("", {})):
        said = {name: value for name, value in form(part, **more).items() if name != "request"}
        page = unescape(ana.post("/console/check", said).content.decode())
        assert (f"of the part {part} alone" if part else "of all rows: the budgets of all 7 parts pay") in page
    page = ana.get("/console/ask").content.decode()
    assert [unescape(one) for one in re.findall(r'<option value="([^"]*)" data-most', page)] == ["", *SIZES]
    balance = ana.get("/console/balance").content.decode()
    assert balance.count('<th scope="row"><bdi>') == len(SIZES)


def test_a_part_behind_the_path_of_a_form_is_refused(service: Served) -> None:
    before = service.curator.ledger.head
    ana, said = logged_in(service, "ana"), {"question": COUNT, "by": "epsilon", "epsilon": "5", "request": "behind"}
    for path in ("/console/ask?part=north", "/console/check?part=north"):
        refused = ana.post(path, said)
        assert refused.status == 400
        assert "query is not known here" in refused.content.decode()
    assert service.curator.ledger.head == before


@pytest.mark.parametrize(
    "path",
    [
        "/console/ask?part=north&part=south",
        "/console/ask?question=x&part=north&part=north",
        "/console/publish?table=t&epsilon=1&part=north&part=",
        "/console/publish?table=t&epsilon=1&epsilon=2",
    ],
)
def test_what_an_address_says_twice_is_refused(service: Served, path: str) -> None:
    """As a form that has a field twice: neither of the two is taken for what is meant."""
    ana, head = logged_in(service, "ana"), service.curator.ledger.head
    reply = ana.get(path)
    page = reply.content.decode()
    name = "epsilon" if path.endswith("epsilon=2") else "part"
    assert (reply.status, f"{name} stands twice behind the question mark" in page.lower()) == (400, True)
    assert "<option" not in page
    assert ana.get(path, Accept="application/json").status == 400
    assert ana.get("/console/publish?table=t&columns=clinic&columns=clinic").status == 200  # these may be several
    assert service.curator.ledger.head == head


def test_a_part_that_is_no_more_is_not_left_out(service: Served) -> None:
    """A question from a link or a page of before would else be about all."""
    ana = logged_in(service, "ana")
    assert chosen(ana.get("/console/ask?part=west").content.decode()) == ["west"]
    head = service.curator.ledger.head
    for part in ("west", "North", "north "):
        reply = ana.post("/console/ask", form(part))
        assert reply.status == 422
        assert NO_PART[1:] in reply.content.decode()
        assert chosen(reply.content.decode()) == [part]
        assert NO_PART[1:] in ana.post("/console/check", {"question": COUNT, "part": part}).content.decode()
    assert service.curator.ledger.head == head


def test_what_was_answered_of_a_part_is_not_shown_while_it_is_frozen(service: Served) -> None:
    ana = logged_in(service, "ana")
    places = [asked(ana, part) for part in ("north", "south", "")]
    service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["t"], "reason": "audit"})
    for place in places:
        assert [ana.get(one).status for one in (place, f"{place}/csv")] == [403, 403]
    for part in ("north", "south", ""):
        assert ana.post("/console/ask", form(part)).status == 403
        assert ana.post("/console/ask", form(part, request="another")).status == 403
    service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["t"], "reason": "audit"})
    assert [ana.get(place).status for place in places] == [200] * 3


def publishing(folder: Path) -> str:
    return declared(folder, len(SIZES)).replace("[budget]", "[budget]\ndelta = 1e-6")


def published(visitor: Visitor, part: str, request: str = "once") -> str:
    """Where the job is that comes of the form, once it has ended."""
    sent = {"table": "t", "columns": "clinic", "epsilon": "60", "part": part, "request": request}
    reply = visitor.post("/console/publish", sent)
    assert reply.status == 303, reply.content
    place = reply.headers["location"]
    while visitor.get(place, Accept="application/json").json["job"]["state"] == "running":
        time.sleep(0.05)
    return place


def test_a_table_is_published_of_the_part_that_is_chosen(tmp_path: Path) -> None:
    with served(tmp_path, publishing(tmp_path)) as service:
        ana = logged_in(service, "ana")
        spent: set[str] = set()
        page = ana.get("/console/publish").content.decode()
        assert [unescape(one) for one in re.findall(r'<option value="([^"]*)"', page)] == ["", *SIZES]
        for part in ("north", " north", "o'\"<b>&"):
            before, spent = service.curator.ledger.head, spent | {part}
            said = {"table": "t", "columns": "clinic", "epsilon": "60", "part": part}
            seen = ana.get(f"/console/publish?{urlencode(said)}").content.decode()
            assert service.curator.ledger.head == before
            assert f"the part <bdi>{escape(part)}</bdi> alone: its own budget pays" in seen
            assert chosen(seen) == [part]
            form = seen.partition('<form method="post" action="/console/publish"')[2].partition("</form>")[0]
            sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
            assert unescape(sent["part"]) == part
            found = ana.get(f"/console/publish?{urlencode(said)}", Accept="application/json").json["foreseen"]
            assert (found["part"], found["fits"]) == (part, True)
            place = published(ana, part)
            assert published(ana, part) == place  # the same form sent twice is one table
            used = {name for name, one in service.curator.budget.parts.items() if one.used > 0}
            assert used == spent
            page, plain = ana.get(place).content.decode(), ana.get(place, Accept="application/json").json
            assert f"Of the part <bdi>{escape(part)}</bdi> alone" in page
            assert plain["job"]["part"] == part
            assert abs(plain["released"]["tables"][0]["counts"]["clinic"][part] - SIZES[part]) <= 5
            again = re.search(r'href="(/console/publish[?][^"]*)">Publish it again', page)
            assert again is not None
            assert chosen(ana.get(unescape(again[1])).content.decode()) == [part]
            assert f"of the part <bdi>{escape(part)}</bdi>" in ana.get("/console/publish").content.decode()
            assert ana.get(f"{place}/csv").status == 200
        whole = ana.get(published(ana, ""), Accept="application/json").json["job"]
        assert whole["part"] is None
        assert all(one.used > 0 for one in service.curator.budget.parts.values())


def test_a_table_of_a_part_that_is_no_more_is_refused(service: Served) -> None:
    ana, head = logged_in(service, "ana"), service.curator.ledger.head
    for part in ("west", "north "):
        seen = ana.get(f"/console/publish?{urlencode({'table': 't', 'epsilon': '3', 'part': part})}")
        sent = ana.post("/console/publish", {"table": "t", "epsilon": "3", "part": part, "request": "x"})
        for reply in (seen, sent):
            assert (reply.status, chosen(reply.content.decode())) == (422, [part])
            assert NO_PART[1:] in reply.content.decode()
    assert service.curator.ledger.head == head


def test_what_does_not_fit_the_part_has_no_button(tmp_path: Path) -> None:
    with served(tmp_path, publishing(tmp_path)) as service:
        ana = logged_in(service, "ana")
        most = {}
        for spent in (False, True):
            page = ana.get("/console/publish").content.decode()
            most[spent] = re.findall(r"(?:persons|north|south): at most about ε ([0-9.]+) is left for a table", page)
            assert len(most[spent]) == 4  # all, north, south and " north"
            for part in ("north", "south", ""):
                said = {"table": "t", "columns": "clinic", "epsilon": "20", "part": part}
                seen = ana.get(f"/console/publish?{urlencode(said)}").content.decode()
                assert ("Publish it for" in seen) is not (spent and part != "south")
            if not spent:
                service.curator.ask(COUNT, epsilon=985, part="north")
        assert [a == b for a, b in zip(most[False], most[True], strict=True)] == [False, False, True, True]


@pytest.mark.outside
@needs_axe
def test_a_part_is_published_by_keyboard_and_the_pages_are_fit_to_be_used(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    with served(tmp_path, publishing(tmp_path)) as service, Browser(tmp_path / "profile") as browser:
        browser.go(f"{service.url}/console/login")
        browser.until("document.querySelector('[name=token]')")
        browser.run("document.querySelector('[name=token]').focus(); 1")
        browser.press(service.tokens["ana"])
        browser.press("Enter")
        browser.arrives("location.pathname === '/console/ask' && document.readyState === 'complete'")
        browser.go(f"{service.url}/console/publish")
        browser.arrives("location.pathname === '/console/publish' && document.readyState === 'complete'")
        found = faults_in_all_windows(browser, pictures, "publish-parts")
        browser.window(1280, 900)
        browser.run("document.getElementById('part').focus(); 1")
        browser.press("ArrowDown")
        assert browser.run("document.getElementById('part').value") == "north"
        browser.press("Tab")
        browser.press("60")
        browser.press("Enter")
        browser.arrives("!!document.querySelector('form[data-once]') && document.readyState === 'complete'")
        assert "the part north alone" in browser.run("document.querySelector('main').innerText")
        found += faults_in_all_windows(browser, pictures, "publish-part-seen")
        browser.window(1280, 900)
        browser.run("document.querySelector('form[data-once] button').focus(); 1")
        browser.press("Enter")
        browser.arrives("!!document.querySelector('main a[href$=\"/csv\"]') && document.readyState === 'complete'")
        assert "Of the part north alone" in browser.run("document.querySelector('main').innerText")
        found += faults_in_all_windows(browser, pictures, "published-part")
    assert found == []


def test_without_parts_there_is_no_choice(tmp_path: Path) -> None:
    with served(tmp_path, declared(tmp_path, 0)) as service:
        ana = logged_in(service, "ana")
        for path in ("ask", "publish"):
            assert '<select id="part"' not in ana.get(f"/console/{path}").content.decode()
        assert "<h2>Parts</h2>" not in ana.get("/console/balance").content.decode()
        assert asked(ana, "")
        assert ana.post("/console/ask", form("north")).status == 422
