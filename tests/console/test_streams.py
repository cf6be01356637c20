"""The pages of streams: what the ledger has of them and nothing else, for the owner alone, and for nothing."""

from __future__ import annotations

import csv
import datetime
import io
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path

import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from console_tools import logged_in
from discreet.catalog import read
from discreet.console import streams
from discreet.console.app import PLACES
from discreet.look.headers import HEADERS
from face_tools import Data
from service_tools import CLINIC, HOLDERS, Served, served
from stream_tools import World, advance, declaration

ROWS = [(f"p{i % 500}", i % 8, "abc"[i % 3]) for i in range(1_000)]
HOSTILE = "<script>alert(1)</script>\u202e & 'x'"
WARDS = [HOSTILE, "b", "c"]
ANALYSTS = "\n[analysts.ana]\nepsilon = 2\n\n[analysts.bob]\nepsilon = 1\n"
LIST, DAILY = "/console/streams", "/console/streams/daily"
EVERYTHING = (LIST, DAILY, f"{DAILY}/csv", f"{DAILY}/json")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A stream with two released periods, of a group that somebody named."""
    world = World(tmp_path, [(who, day, HOSTILE if ward == "a" else ward) for who, day, ward in ROWS], wards=WARDS)
    world.advance(2)
    return world


@pytest.fixture
def service(world: World) -> Iterator[Served]:
    with served(world.folder, declaration(wards=WARDS) + ANALYSTS) as found:
        yield found


def test_the_list_says_what_is_declared_and_how_far_it_is(service: Served) -> None:
    owner = logged_in(service, "owner")
    found = service.call("GET", LIST, "owner", Accept="application/json").json["streams"]["daily"]
    assert (found["table"], found["keys"], found["horizon"], found["released"]) == ("visits", ["ward"], 8, 2)
    assert (found["start"], found["end"], found["days"]) == ("2026-01-01", "2026-01-08", 1)
    assert found["price"] == {"epsilon": "1", "delta": 1e-7}
    assert (found["due"], found["next"], found["problem"]) == (6, "2026-01-04", None)
    page = unescape(owner.get(LIST).content.decode())
    for words in ("each day from 2026-01-01 to 2026-01-08", "ε 1, δ 1e-07", "6 periods are due since 2026-01-04"):
        assert words in page
    assert f'href="{DAILY}"' in page
    assert f'<a href="{LIST}" aria-current="page">Streams</a>' in page


def test_when_the_next_period_is_due(world: World) -> None:
    one = read(world.file).streams["daily"]
    day = datetime.date(2026, 1, 3)
    found = streams.facts(one, 2, day)
    assert (found["due"], found["next"]) == (0, "2026-01-04")
    assert one.over(datetime.date.fromisoformat(found["next"])) == 3
    assert one.over(datetime.date.fromisoformat(found["next"]) - datetime.timedelta(1)) == 2
    found = streams.facts(one, 8, datetime.date(2026, 5, 1))
    assert (found["due"], found["next"]) == (0, None)
    assert streams.facts(one, None, day)["due"] is None


def test_the_page_has_the_periods_that_were_released_and_a_picture_of_each_group(service: Served) -> None:
    released = service.curator.stream("daily").releases
    found = service.call("GET", DAILY, "owner", Accept="application/json").json
    latest = found["latest"]
    assert (found["name"], found["stream"]["released"], len(latest["rows"])) == ("daily", 2, 6)
    assert [row["until"] for row in latest["rows"]] == ["2026-01-01"] * 3 + ["2026-01-02"] * 3
    assert [row["ward"] for row in latest["rows"]] == WARDS * 2
    assert [row["total"] for row in latest["rows"]] == [row["total"] for row in released]
    assert [tuple(one["total"]) for one in latest["intervals"]] == [one["total"] for one in released.intervals]
    page = logged_in(service, "owner").get(DAILY).content.decode()
    assert page.count('<svg role="img" aria-label="A line of total, ') == 3
    assert page.count('class="band"') == page.count('class="curve"') == 3
    for one in released.intervals:
        for low, high in one.values():
            assert f"{low:,.0f} to {high:,.0f}" in page
    rows = page.partition("<tbody>")[2]
    assert rows.index("2026-01-02") < rows.index("2026-01-01")  # the latest first
    for column in ("until", "ward", "count", "last_7_days", "total"):
        assert f"<bdi>{column}</bdi></th>" in page


def test_it_is_taken_as_a_file(service: Served) -> None:
    owner, released = logged_in(service, "owner"), service.curator.stream("daily").releases
    saved = owner.get(f"{DAILY}/csv")
    assert saved.headers["content-disposition"] == 'attachment; filename="daily.csv"'
    lines = list(csv.DictReader(io.StringIO(saved.content.decode())))
    assert [int(line["total"]) for line in lines] == [row["total"] for row in released]
    saved = owner.get(f"{DAILY}/json")
    assert saved.headers["content-disposition"] == 'attachment; filename="daily.json"'
    assert [row["total"] for row in json.loads(saved.content)["rows"]] == [row["total"] for row in released]
    for path in (f"{DAILY}/html", f"{DAILY}/exe", f"{LIST}/weekly", f"{LIST}/weekly/csv"):
        assert owner.get(path).status == 404


def test_opening_it_changes_nothing_and_needs_neither_state_nor_key(service: Served, world: World) -> None:
    owner = logged_in(service, "owner")
    before = world.state.read_bytes(), service.curator.ledger.head, service.curator.budget.used
    for path in EVERYTHING:
        for _ in range(2):
            assert owner.get(path).status == 200
            assert service.call("GET", path, "owner", Accept="application/json").status == 200
    assert (world.state.read_bytes(), service.curator.ledger.head, service.curator.budget.used) == before
    content = owner.get(DAILY).content
    world.state.unlink()
    shutil.rmtree(world.folder / "keys")
    for path in EVERYTHING:
        assert owner.get(path).status == 200
    assert owner.get(DAILY).content == content
    assert not world.state.exists()
    assert not (world.folder / "keys").exists()
    assert service.curator.ledger.head == before[1]


@pytest.mark.parametrize("frozen", [False, True])
def test_nobody_but_the_owner_sees_one(service: Served, frozen: bool) -> None:
    """Neither an analyst for whom the table is open, nor one for whom it is closed."""
    if frozen:
        said = {"analyst": "ana", "tables": ["visits"], "reason": "audit"}
        assert service.call("POST", "/freeze", "owner", said).status < 300
    for who in ("ana", "eve"):
        visitor = logged_in(service, who)
        assert LIST not in visitor.get("/console/tables").content.decode()
        for path in EVERYTHING:
            reply, plain = visitor.get(path), service.call("GET", path, who, Accept="application/json")
            assert (reply.status, plain.status) == (403, 403)
            assert b"2026-01" not in reply.content + plain.content
            assert {name: reply.headers.get(name) for name in HEADERS} == HEADERS
    for path in EVERYTHING:
        assert service.call("GET", path, "max", Accept="application/json").status == 403
        assert service.call("GET", path, None, Accept="application/json").status == 401
        assert service.call("GET", path, None, Accept="text/html").status == 303
    assert logged_in(service, "owner").get(DAILY).status == 200
    assert set(HOLDERS) == {"owner", "ana", "bob", "eve", "max"}


def test_what_is_frozen_for_everybody_is_not_given_again(service: Served) -> None:
    owner = logged_in(service, "owner")
    assert service.call("POST", "/freeze", "owner", {"tables": ["visits"], "reason": "audit"}).status < 300
    for path in EVERYTHING[1:]:
        reply = owner.get(path)
        assert (reply.status, "frozen" in reply.content.decode()) == (403, True)
    assert owner.get(LIST).status == 200
    assert service.call("POST", "/lift", "owner", {"tables": ["visits"], "reason": "over"}).status < 300
    assert owner.get(DAILY).status == 200


def test_a_groups_name_is_escaped(service: Served) -> None:
    content = logged_in(service, "owner").get(DAILY).content.decode()
    assert "<script>alert" not in content
    assert "\u202e" not in content
    assert content.count("&lt;script&gt;alert(1)&lt;/script&gt;\\u202e &amp;") >= 2 + 2  # cells, and its picture


@pytest.mark.outside
@needs_axe
def test_the_pages_are_fit_to_be_used(service: Served, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    found = []
    with Browser(tmp_path / "profile") as browser:
        browser.go(f"{service.url}/console/login")
        browser.until("document.querySelector('[name=token]')")
        browser.run("document.querySelector('[name=token]').focus(); 1")
        browser.press(service.tokens["owner"])
        browser.press("Enter")
        for path in ("/console/overview", LIST, DAILY):
            if path != "/console/overview":
                browser.go(f"{service.url}{path}")
            for _ in range(20):
                with suppress(AssertionError):  # the page is left for the next one while it is asked
                    browser.until(f"location.pathname === '{path}' && document.readyState === 'complete'")
                    break
            found += faults_in_all_windows(browser, pictures, path.rpartition("/")[2])
    assert found == []


def test_without_a_stream_there_is_no_page_and_no_way_to_one(data: Data, tmp_path: Path) -> None:
    assert not {one.path for one in streams.PLACES} & {one.path for one in PLACES}
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, CLINIC) as service:
        owner = logged_in(service, "owner")
        assert "/console/streams" not in owner.get("/console/tables").content.decode()
        for path in EVERYTHING:
            assert owner.get(path).status == 404
            assert service.call("GET", path, "owner", Accept="application/json").status == 404


def test_a_long_one_is_shown_by_its_latest_periods_and_fewer_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path, ROWS).advance(8)
    monkeypatch.setattr(streams, "PERIODS", 2)
    monkeypatch.setattr(streams, "MOST_POINTS", 3)
    monkeypatch.setattr(streams, "MOST_PICTURES", 2)
    with served(tmp_path, declaration()) as service:
        found = service.call("GET", DAILY, "owner", Accept="application/json").json
        assert [row["until"] for row in found["latest"]["rows"]] == ["2026-01-07"] * 3 + ["2026-01-08"] * 3
        assert found["stream"]["next"] is None
        owner = logged_in(service, "owner")
        page = owner.get(DAILY).content.decode()
        assert (page.count("<svg role"), "The first 2 of 3 groups" in page) == (2, True)
        assert page.count("<title>2026-01-08") == page.count("<title>2026-01-02") == 2
        assert page.count('<circle class="mark"') == 2 * 3
        assert "none: it is over" in page
        assert len(owner.get(f"{DAILY}/csv").content.decode().splitlines()) == 1 + 8 * 3
        monkeypatch.setattr(streams, "MOST_SAVED", 23)
        assert owner.get(f"{DAILY}/csv").status == 422


def test_before_its_first_period_nothing_is_shown_and_nothing_begins(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with served(world.folder, declaration()) as service:
        head, owner = service.curator.ledger.head, logged_in(service, "owner")
        page = owner.get(DAILY).content.decode()
        assert "Nothing of it is released yet" in page
        assert "charged with the first period" in page
        found = service.call("GET", DAILY, "owner", Accept="application/json").json
        assert (found["stream"]["released"], found["latest"]) == (0, None)
        assert owner.get(f"{DAILY}/csv").status == 422
        assert service.curator.ledger.head == head
        assert not world.state.exists()
        advance(service.curator, service.curator.stream("daily"), 1)
        page = owner.get(DAILY).content.decode()
        assert "From the second period on there is a picture" in page
        assert "<svg role" not in page


def test_one_that_was_declared_otherwise_is_not_misread(world: World) -> None:
    """With another price its intervals would have the wrong width."""
    with served(world.folder, declaration(wards=WARDS, epsilon=1.5) + ANALYSTS) as service:
        owner = logged_in(service, "owner")
        page = owner.get(LIST)
        assert (page.status, "declared otherwise" in page.content.decode()) == (200, True)
        for path in EVERYTHING[1:]:
            reply = owner.get(path)
            assert reply.status >= 400
            assert b"2026-01-02" not in reply.content
