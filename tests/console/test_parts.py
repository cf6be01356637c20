"""The console where each part has a budget: what a question is about goes with it, wherever it is shown again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

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


def test_without_parts_there_is_no_choice(tmp_path: Path) -> None:
    with served(tmp_path, declared(tmp_path, 0)) as service:
        ana = logged_in(service, "ana")
        assert '<select id="part"' not in ana.get("/console/ask").content.decode()
        assert "<h2>Parts</h2>" not in ana.get("/console/balance").content.decode()
        assert asked(ana, "")
        assert ana.post("/console/ask", form("north")).status == 422
