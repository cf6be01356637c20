"""Publishing from the console: looked at first, begun once, followed, kept, taken as a file, frozen with the rest."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from statistics import NormalDist
from typing import Any
from urllib.parse import urlencode

import pytest

from console_tools import Visitor, logged_in
from discreet.accounting.room import part_used
from discreet.catalog import read
from discreet.console.pages import number, percent, risen
from discreet.release.values import up
from discreet.synthesis.publication import PublishOptions, publication
from face_tools import Data
from service_tools import CLINIC, Served, served

NAMED = {"table": "visits", "columns": "city\nsmoker", "epsilon": "0.3"}
FAST = CLINIC.replace("[budget]", '[engine]\nanswer_seconds = "off"\n\n[budget]')


@pytest.fixture
def service(data: Data, tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, FAST) as found:
        yield found


@pytest.fixture
def ana(service: Served) -> Visitor:
    visitor = logged_in(service, "ana")
    visitor.get("/console/publish")
    return visitor


def looked(epsilon: str = "0.3", *columns: str, table: str = "visits") -> str:
    said = [("table", table), *(("columns", one) for one in columns or ("city", "smoker")), ("epsilon", epsilon)]
    return f"/console/publish?{urlencode(said)}"


def waited(service: Served, path: str, who: str = "ana") -> Any:
    """What the page says once the job has ended."""
    while True:
        reply = service.call("GET", path, who, Accept="application/json")
        assert reply.status == 200, reply.content
        if reply.json["job"]["state"] != "running":
            return reply.json
        time.sleep(0.05)


def test_looking_costs_nothing_and_says_what_is_charged(service: Served, ana: Visitor) -> None:
    head = service.curator.ledger.head
    page = ana.get(looked()).content.decode()
    assert "Publish it for ε 0.3" in page
    assert "Nothing was spent so far" in page
    assert service.curator.ledger.head == head
    found = service.call("GET", looked(), "ana", Accept="application/json").json["foreseen"]
    assert service.curator.ledger.head == head
    (table,) = found["tables"]
    assert (table["columns"], found["fits"], found["price"]["epsilon"]) == (["city", "smoker"], True, 0.3)
    call = publication(
        read(service.curator.declaration.file or Path()),
        PublishOptions(table="visits", epsilon="0.3", columns=["city", "smoker"]),
    )
    deviation = table["expected_error"]["value"] / NormalDist().inv_cdf(0.975)
    assert deviation == pytest.approx(float(call.schedule.single_sigma))
    assert table["rows_per_person"] == 20
    before = service.curator.balance("ana").own
    made = waited(service, ana.post("/console/publish", NAMED).headers["location"])
    assert made["released"], made["job"]
    after = service.curator.balance("ana").own
    assert before is not None
    assert after is not None
    assert 100 * float(part_used(after) - part_used(before)) == pytest.approx(found["analyst"]["percent"])
    assert made["released"]["left"] == found["after"].partition(";")[0]


def test_a_form_sent_twice_is_one_table(service: Served, ana: Visitor) -> None:
    page = ana.get(looked()).content.decode()
    form = page.partition('<form method="post" action="/console/publish"')[2].partition("</form>")[0]
    sent = [(name, unescape(value)) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)]
    assert [value for name, value in sent if name == "columns"] == ["city", "smoker"]
    whole = urlencode(sent).encode()
    headers = {"Origin": service.url, "Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    cookie = "; ".join(f"{name}={value}" for name, value in ana.cookies.items())
    places = set()
    for _ in range(3):
        reply = service.call("POST", "/console/publish", None, body=whole, Cookie=cookie, **headers)
        assert reply.status == 303, reply.content
        places.add(reply.headers["location"])
    (place,) = places
    assert waited(service, place)["job"]["state"] == "done"
    charged = [one for one in service.curator.ledger.entries() if one.kind == "reserve"]
    assert len(charged) == 1
    assert place in ana.get("/console/publish").content.decode()
    assert place not in logged_in(service, "owner").get("/console/publish").content.decode()


def test_the_same_table_from_another_form_is_free(service: Served, ana: Visitor) -> None:
    first, again = (
        waited(service, ana.post("/console/publish", {**NAMED, "request": name}).headers["location"])
        for name in ("one", "two")
    )
    assert (first["released"]["charged"], again["released"]["charged"]) == (True, False)
    assert first["released"]["tables"][0]["first"] == again["released"]["tables"][0]["first"]
    assert "published before, so it was free" in ana.get(f"/console/publish/{again['job']['job']}").content.decode()


def test_the_table_is_shown_and_taken_as_a_file(service: Served, ana: Visitor) -> None:
    place = ana.post("/console/publish", NAMED).headers["location"]
    (released,) = waited(service, place)["released"]["tables"]
    assert (released["columns"], len(released["first"])) == (["city", "smoker"], min(20, released["rows"]))
    page = ana.get(place).content.decode()
    assert "How far it may be off" in page
    assert page.count("<svg role=") == 2
    for one in released["marginals"]:
        assert f"{up(one['rows']):,.0f} rows" in page or one["rows"] < 100
    saved = ana.get(f"{place}/csv")
    assert saved.headers["content-disposition"] == 'attachment; filename="visits-synthetic.csv"'
    lines = saved.content.decode().splitlines()
    assert (lines[0], len(lines)) == ("city,smoker", released["rows"] + 1)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(ana.get(f"{place}/parquet").content))
    assert (table.column_names, table.num_rows) == (["city", "smoker"], released["rows"])
    assert ana.get(f"{place}/exe").status == 404


def test_a_table_is_its_accounts_alone_and_frozen_with_the_rest(service: Served, ana: Visitor) -> None:
    place = ana.post("/console/publish", NAMED).headers["location"]
    waited(service, place)
    for who in ("bob", "owner"):
        other = logged_in(service, who)
        assert {other.get(path).status for path in (place, f"{place}/csv", "/console/publish/none")} == {404}
    assert logged_in(service, "eve").get("/console/publish").status == 403
    service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["visits"], "reason": "audit"})
    for path in (place, f"{place}/csv", f"{place}/parquet"):
        reply = ana.get(path)
        assert (reply.status, "frozen" in reply.content.decode()) == (403, True)
    assert ana.get(looked()).status == 200  # what it would cost is still said
    service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["visits"], "reason": "over"})
    assert ana.get(place).status == 200


@pytest.fixture(scope="module")
def unchanged(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all that changes nothing."""
    folder = tmp_path_factory.mktemp("unchanged")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, FAST) as found:
        yield found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"epsilon": ""}, "no price is named"),
        ({"epsilon": "much"}, "epsilon must be a finite number"),
        ({"epsilon": "-1"}, "price"),
        ({"table": "nothing"}, "this table is not declared"),
        ({"columns": "person"}, "it names the person"),
        ({"columns": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be_published_is_said_and_nothing_begins(
    unchanged: Served, said: dict[str, str], words: str
) -> None:
    ana = logged_in(unchanged, "ana")
    ana.get("/console/publish")
    head = unchanged.curator.ledger.head
    sent = {**NAMED, **said}
    refused = ana.post("/console/publish", sent)
    assert (refused.status, words in refused.content.decode().lower()) == (422, True)
    if sent["epsilon"]:
        again = ana.get(looked(sent["epsilon"], sent["columns"].split("\n")[0], table=sent["table"]))
        assert (again.status, words in again.content.decode().lower()) == (422, True)
    assert unchanged.curator.ledger.head == head
    assert unchanged.call("GET", "/jobs", "ana").json["jobs"] == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.00123, "0.00123"),
        (1.231, "1.24"),
        (99.91, "100"),
        (100.2, "101"),
        (12345.6, "12,346"),
        (1e301, "any"),
    ],
)
def test_a_bound_on_a_page_is_rounded_up(value: float, shown: str) -> None:
    assert number(risen(value)) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0 %"), (0.421, "0.43 %"), (9.91, "10 %"), (10.2, "11 %")])
def test_a_part_on_a_page_is_rounded_up(value: float, shown: str) -> None:
    assert percent(risen(value, 2)) == shown


def test_what_does_not_fit_has_no_button(service: Served) -> None:
    bob = logged_in(service, "bob")
    page = bob.get(looked("3")).content.decode()
    assert "it does not fit any more" in page
    assert "Publish it for" not in page
    bob.get("/console/publish")
    place = bob.post("/console/publish", {**NAMED, "epsilon": "3"}).headers["location"]
    assert waited(service, place, "bob")["job"]["problem"]["status"] == 402
    assert "The budget does not allow it" in bob.get(place).content.decode()
    assert not [one for one in service.curator.ledger.entries() if one.kind == "reserve"]


def test_a_page_of_another_place_publishes_nothing(service: Served, ana: Visitor) -> None:
    head = service.curator.ledger.head
    for headers, word in (({"Origin": "http://evil.example"}, ana.word), ({}, "wrong")):
        assert ana.post("/console/publish", {**NAMED, "form": word}, **headers).status == 403
    assert service.curator.ledger.head == head


def test_a_job_that_is_no_table_has_no_page(service: Served, ana: Visitor) -> None:
    said = {"table": "visits", "questions": [{"marginal": ["city"]}], "epsilon": "0.1"}
    begun = service.call("POST", "/workload", "ana", said)
    assert begun.status == 202
    assert ana.get(f"/console/publish/{begun.json['job']}").status == 404
    assert begun.json["job"] not in ana.get("/console/publish").content.decode()


def test_columns_of_any_name_are_ticked_looked_at_and_published(tmp_path: Path) -> None:
    """Line breaks beyond ASCII, and what steers the reader, are spelled out where they are read alone. (A control
    character of ASCII no column's name has.)"""
    names = ["line\u2028break", "next\x85line", "back\\nslash", "hidden\u202e", 'mark"<&']
    (tmp_path / "t.csv").write_text(
        ",".join(f'"{name.replace(chr(34), 2 * chr(34))}"' for name in names) + "\n" + "a,a,a,a,a\n" * 50, "utf-8"
    )
    listed = "".join(f"{json.dumps(name)} = {{ type = 'text', values = ['a', 'b'] }}\n" for name in names)
    text = "[budget]\nepsilon = 50\ndelta = 1e-6\n[engine]\nanswer_seconds = 'off'\n"
    text += "[analysts.ana]\nepsilon = 50\n[analysts.bob]\nepsilon = 1\n"
    text += f"[tables.t]\nsource = 't.csv'\none_row_per_person = true\n[tables.t.columns]\n{listed}"

    def fields(page: str, start: str) -> list[tuple[str, str]]:
        form = page.partition(start)[2].partition("</form>")[0]
        sent = re.findall(r'name="(\w+)" value="([^"]*)"', form)
        return [(name, unescape(value)) for name, value in sent]

    with served(tmp_path, text) as service:
        ana = logged_in(service, "ana")
        sent = fields(ana.get("/console/publish").content.decode(), 'aria-label="What to publish"')
        boxes = [one for one in sent if one[0] == "columns"]
        assert len(boxes) == len(names)
        for some in (boxes[:1], boxes[1:3], boxes):
            wanted = names[boxes.index(some[0]) :][: len(some)]
            seen = ana.get(f"/console/publish?{urlencode([('table', 't'), *some, ('epsilon', '2')])}").content.decode()
            assert seen.count(" checked") == len(some)
            posted = fields(seen, '<form method="post" action="/console/publish"')
            cookie = "; ".join(f"{name}={value}" for name, value in ana.cookies.items())
            headers = {"Origin": service.url, "Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
            body = urlencode(posted).encode()
            reply = service.call("POST", "/console/publish", None, body=body, Accept="text/html", **headers)
            assert reply.status == 303, reply.content
            found = waited(service, reply.headers["location"])
            assert found["released"]["tables"][0]["columns"] == wanted
        page = ana.get(reply.headers["location"]).content.decode()
        again = re.search(r'href="(/console/publish[?][^"]*)">Publish it again', page)
        assert again is not None
        assert ana.get(unescape(again[1])).content.decode().count(" checked") == len(names)
