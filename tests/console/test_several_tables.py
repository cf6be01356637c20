"""Several tables published together from the console: chosen, looked at, begun once, shown with their bounds, taken."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas
import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from console_tools import Visitor, logged_in
from discreet.accounting.room import part_used
from discreet.catalog import read
from discreet.errors import QuestionError
from discreet.service.jobs import Jobs
from discreet.synthesis.related import connected
from related_tables import CUSTOMERS, ORDERS, shop
from service_tools import Reply, Served, served

NAMES = ["customers", "orders", "items"]
DECLARATION = """
[budget]
epsilon = 50
delta = 1e-5
[engine]
answer_seconds = "off"
[analysts.ana]
epsilon = 20
[analysts.bob]
epsilon = 0.2
"""
DECLARATION += CUSTOMERS + 'age = { type = "integer", min = 0, max = 9 }\n' + ORDERS
DECLARATION += """
[tables.items]
source = "items.csv"
person = "order -> orders.number"
rows_per_person = 20
[tables.items.columns]
order = { type = "integer" }
kind = { type = "text", values = ["book", "toy", "food"] }
[tables.calls]
source = "calls.csv"
person = "caller"
rows_per_person = 2
columns = { caller = { type = "integer" }, long = { type = "boolean" } }
"""

PARTS = DECLARATION.partition("[tables.items]")[0].replace("delta =", 'parts = "customers.sex"\ndelta =')
"""Each part with a budget: every table refers to the one that says who is in which."""


def declared(folder: Path, text: str = DECLARATION) -> str:
    for name, frame in shop(300).items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "calls.csv").write_text("caller,long\n1,true\n2,false\n", "utf-8")
    return text


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("several")
    with served(folder, declared(folder)) as found:
        yield found


def at(names: list[str], **more: str) -> str:
    return f"/console/publish?{urlencode([*(('table', one) for one in names), *more.items()])}"


def ticked(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'name="table" value="([^"]*)" checked', page)]


def pressed(visitor: Visitor, page: str) -> Reply:
    """What comes of pressing Publish on a page."""
    form = page.partition('<form method="post" action="/console/publish"')[2].partition("</form>")[0]
    sent = [(name, unescape(value)) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)]
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    headers = {"Origin": visitor.service.url, "Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(sent).encode()
    return visitor.service.call(
        "POST", "/console/publish", None, body=body, Accept="text/html", Cookie=cookie, **headers
    )


def waited(visitor: Visitor, place: str) -> Any:
    """What the page says once the job has ended."""
    while True:
        found = visitor.get(place, Accept="application/json").json
        if found["job"]["state"] != "running":
            return found
        time.sleep(0.05)


def reserved(service: Served) -> int:
    return sum(one.kind == "reserve" for one in service.curator.ledger.entries())


def published(visitor: Visitor, **said: str) -> tuple[str, Any]:
    reply = visitor.post("/console/publish", {"table": "\n".join(NAMES), "epsilon": "2", **said})
    assert reply.status == 303, reply.content
    return reply.headers["location"], waited(visitor, reply.headers["location"])


def test_several_tables_are_chosen_looked_at_published_seen_and_taken(service: Served) -> None:
    ana, head = logged_in(service, "ana"), service.curator.ledger.head
    first = ana.get("/console/publish").content.decode()
    assert ticked(first) == ["customers"]
    assert 'its rows refer to <bdi class="code">orders</bdi>' in first
    chosen = ana.get(at(NAMES)).content.decode()
    assert ticked(chosen) == NAMES
    assert 'name="columns"' not in chosen
    seen = ana.get(at(NAMES, epsilon="4")).content.decode()
    assert service.curator.ledger.head == head
    assert "Publish them for ε 4" in seen
    plain = ana.get(at(NAMES, epsilon="4"), Accept="application/json").json["foreseen"]
    assert {one["table"]: one["columns"] for one in plain["tables"]} == {
        "customers": ["sex", "age"],
        "orders": ["channel"],
        "items": ["kind"],
    }
    before = service.curator.balance("ana").own
    places = {pressed(ana, seen).headers["location"] for _ in range(2)}
    (place,) = places  # a form sent twice is one job
    released = waited(ana, place)["released"]
    after = service.curator.balance("ana").own
    assert before is not None
    assert after is not None
    assert 100 * float(part_used(after) - part_used(before)) == pytest.approx(plain["analyst"]["percent"])
    assert [one["table"] for one in released["tables"]] == NAMES
    page = ana.get(place).content.decode()
    rows = {one["table"]: one["rows"] for one in released["tables"]}
    assert [one["rows"] for one in released["together"]] == list(rows.values())
    assert {name for name in rows if f"{rows[name]:,} made-up rows in" in page} == set(NAMES)
    kinds = {one["table"]: {bound["about"] for bound in one["marginals"]} for one in released["tables"]}
    assert kinds["orders"] == {"inside", "across", "above", "rows"}
    assert "Row before" not in page
    for words in ("Inside: ", "Across: a column beside one of a row above", "Rows: how many rows below refer to a row"):
        assert f'<th scope="rowgroup" colspan="4">{words}' in page
    taken = {}
    for name, path in zip(NAMES, re.findall(r'href="(/console/publish/[^"]*/csv[^"]*)"', page), strict=True):
        reply = ana.get(unescape(path))
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}-synthetic.csv"'
        taken[name] = list(csv.DictReader(io.StringIO(reply.content.decode())))
    assert {name: len(lines) for name, lines in taken.items()} == rows
    assert {one["customer"] for one in taken["orders"]} <= {one["id"] for one in taken["customers"]}
    assert {one["order"] for one in taken["items"]} <= {one["number"] for one in taken["orders"]}
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(ana.get(f"{place}/parquet?table=orders").content))
    assert (table.column_names, table.num_rows) == (["number", "customer", "channel"], rows["orders"])
    for path in (f"{place}/csv", f"{place}/csv?table=calls", f"{place}/exe?table=orders"):
        assert ana.get(path).status == 404
    assert place in ana.get("/console/publish").content.decode()
    again = re.search(r'href="(/console/publish[?][^"]*)">Publish them again', page)
    assert again is not None
    assert ticked(ana.get(unescape(again[1])).content.decode()) == NAMES


def test_of_rows_in_time_what_is_known_of_the_row_before_is_said(tmp_path: Path) -> None:
    in_time = PARTS.replace('parts = "customers.sex"\n', "").partition("[tables.calls]")[0]
    in_time += 'day = { type = "integer", min = 0, max = 99 }\n'
    text = declared(tmp_path, in_time.replace("rows_per_person = 6", 'rows_per_person = 6\ntime = "day"'))
    orders = pandas.read_csv(tmp_path / "orders.csv")
    orders["day"] = orders.groupby("customer").cumcount() * 9
    orders.to_csv(tmp_path / "orders.csv", index=False)
    with served(tmp_path, text) as service:
        ana = logged_in(service, "ana")
        place, found = published(ana, table="customers\norders")
        kinds = {bound["about"] for bound in found["released"]["tables"][1]["marginals"]}
        assert kinds == {"inside", "across", "above", "before"}
        page = ana.get(place).content.decode()
        assert '<th scope="col" class="number">Row before</th>' in page
        assert '<th scope="rowgroup" colspan="4">Before: a column beside the same of the row before' in page
        lines = list(csv.DictReader(io.StringIO(ana.get(f"{place}/csv?table=orders").content.decode())))
        days: dict[str, list[int]] = {}
        for line in lines:
            days.setdefault(line["customer"], []).append(int(line["day"]))
        assert all(one == sorted(one) for one in days.values())


def test_a_running_publication_says_how_far_all_tables_are(tmp_path: Path) -> None:
    slow = declared(tmp_path).replace('answer_seconds = "off"', "answer_seconds = 1")
    with served(tmp_path, slow) as service:
        ana = logged_in(service, "ana")
        steps = ana.get(at(NAMES, epsilon="2"), Accept="application/json").json["foreseen"]["steps"]
        alone = ana.get(at(NAMES[:1], epsilon="2"), Accept="application/json").json["foreseen"]["steps"]
        assert steps > alone
        place = ana.post("/console/publish", {"table": "\n".join(NAMES), "epsilon": "2"}).headers["location"]
        page = ana.get(place).content.decode()
        assert f"of {steps} steps of all tables, by the clock" in page
        assert '<bdi class="code">customers, orders, items</bdi>' in page
        assert re.search(rf'<progress value="\d+" max="{steps}"', page)


def test_of_what_ended_early_the_tables_that_were_begun_are_shown(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, heard = logged_in(service, "ana"), list[object]()
    ana.get("/console/publish")

    def ends(_: object, step: object) -> None:
        heard.append(step)
        if len(heard) == 8:  # of the second table
            raise InterruptedError

    with monkeypatch.context() as ended:
        ended.setattr(Jobs, "_hear", ends)
        place, found = published(ana, epsilon="1")
    page = ana.get(place).content.decode()
    assert [one["table"] for one in found["released"]["tables"]] == NAMES[:2]
    assert "2 of 3 tables at ε 1" in page
    assert 'Not made: <bdi class="code">items</bdi>' in page
    assert "It ended early" in page
    bounds = page.partition('aria-label="How far it may be off of orders"')[2].partition("</table>")[0]
    assert '<td class="number">any rows</td><td class="number">any</td>' in bounds  # nothing is known
    assert "inf" not in re.findall("[a-z]+", bounds)
    assert ana.get(f"{place}/csv?table=orders").status == 200
    assert ana.get(f"{place}/csv?table=items").status == 404


def test_of_a_part_alone_its_own_budget_pays(tmp_path: Path) -> None:
    parts, names = PARTS.replace('"customer"', '"customer -> customers.id"'), NAMES[:2]
    with served(tmp_path, declared(tmp_path, parts)) as service:
        ana = logged_in(service, "ana")
        ana.get("/console/publish")
        refused = ana.get(at(names, epsilon="3", part="X"))
        assert (refused.status, "no such part" in refused.content.decode().lower()) == (422, True)
        assert '<option value="F"' in ana.get(at(names)).content.decode()
        seen = ana.get(at(names, epsilon="3", part="F")).content.decode()
        assert "the part <bdi>F</bdi> alone: its own budget pays" in seen
        place = pressed(ana, seen).headers["location"]
        found = waited(ana, place)
        assert found["job"]["part"] == "F"
        assert {name for name, one in service.curator.budget.parts.items() if one.used > 0} == {"F"}
        page = ana.get(place).content.decode()
        assert "Of the part <bdi>F</bdi> alone" in page
        sexes = found["released"]["tables"][0]["counts"]["sex"]
        assert sexes["F"] > sexes["M"]
        again = re.search(r'href="(/console/publish[?][^"]*)">Publish them again', page)
        assert again is not None
        assert '<option value="F" selected>' in ana.get(unescape(again[1])).content.decode()


@pytest.mark.parametrize(
    ("names", "more", "words"),
    [
        (["orders", "items"], {}, "none of these tables has one row a person"),
        (["customers", "items"], {}, "items refers to orders, which is not among these tables"),
        (["customers", "calls"], {}, "persons are told by another type in calls than in customers"),
        (["customers", "nothing"], {}, "nothing is not declared"),
        (["customers", "customers"], {}, "customers is named twice"),
        (NAMES, {"epsilon": "much"}, "epsilon must be a finite number"),
        (NAMES, {"epsilon": "-1"}, "epsilon"),
        (NAMES, {"epsilon": "2", "columns": "sex"}, "columns is said of a single table"),
        (NAMES, {"epsilon": "2", "part": "X"}, "no such part"),
    ],
)
def test_what_does_not_go_together_is_said_and_nothing_begins(
    service: Served, names: list[str], more: dict[str, str], words: str
) -> None:
    ana = logged_in(service, "ana")
    ana.get("/console/publish")
    head, jobs = service.curator.ledger.head, service.call("GET", "/jobs", "ana").json
    looked = ana.get(at(names, **more))
    sent = ana.post("/console/publish", {"table": "\n".join(names), "epsilon": "2", **more})
    for reply in (looked, sent):
        page = unescape(reply.content.decode())
        assert (reply.status, words in page.lower()) == (422, True)
        assert "Publish them for" not in page
    assert ana.get(at(names, **more), Accept="application/json").status == 422
    assert service.curator.ledger.head == head
    assert service.call("GET", "/jobs", "ana").json == jobs


@pytest.mark.parametrize("more", [{"rows": "5"}, {"target": "sex"}])
def test_what_the_form_does_not_have_is_refused(service: Served, more: dict[str, str]) -> None:
    ana, head = logged_in(service, "ana"), service.curator.ledger.head
    ana.get("/console/publish")
    said = {"table": "\n".join(NAMES), "epsilon": "2", **more}
    assert ana.post("/console/publish", said).status == 400
    assert service.curator.ledger.head == head


def test_what_does_not_fit_has_no_button(service: Served) -> None:
    bob, before = logged_in(service, "bob"), reserved(service)
    bob.get("/console/publish")
    page = bob.get(at(NAMES, epsilon="3")).content.decode()
    assert "it does not fit any more" in page
    assert "Publish them for" not in page
    place, found = published(bob, epsilon="3")
    assert found["job"]["problem"]["status"] == 402
    page = bob.get(place).content.decode()
    assert "The budget does not allow it" in page
    back = re.search(r'href="(/console/publish[?][^"]*)">Back to the form', page)
    assert back is not None
    assert ticked(bob.get(unescape(back[1])).content.decode()) == NAMES
    assert reserved(service) == before


def test_tables_are_their_accounts_alone_and_frozen_with_each_of_them(service: Served) -> None:
    ana = logged_in(service, "ana")
    place, _ = published(ana)
    paths = [place, f"{place}/csv?table=customers", f"{place}/parquet?table=items"]
    owner = logged_in(service, "owner")
    assert {owner.get(path).status for path in paths} == {404}
    service.curator.freeze(tables=["orders"], reason="a test")
    try:
        assert {ana.get(path).status for path in paths} == {403}
    finally:
        service.curator.lift(tables=["orders"], reason="a test")
    assert ana.get(place).status == 200


def test_too_much_work_for_the_engine_is_said_before_anything_begins(tmp_path: Path) -> None:
    """What a job would be refused for is what looking at its price says, and over HTTP no job begins."""
    hard = declared(tmp_path, DECLARATION).replace('answer_seconds = "off"', 'answer_seconds = "off"\nwork = 10')
    with served(tmp_path, hard) as service:
        ana = logged_in(service, "ana")
        ana.get("/console/publish")
        with pytest.raises(QuestionError, match="joined rows") as refused:
            service.curator.publish(NAMES, epsilon=2, analyst="ana")
        for reply in (
            ana.get(at(NAMES)),
            ana.get(at(NAMES, epsilon="2")),
            ana.post("/console/publish", {"table": "\n".join(NAMES), "epsilon": "2"}),
        ):
            page = unescape(reply.content.decode())
            assert (reply.status, refused.value.message in page.replace("One person", "one person")) == (422, True)
            assert "Publish them for" not in page
        begun = service.call("POST", "/publish", "ana", {"table": NAMES, "epsilon": 2})
        assert (begun.status, begun.json["code"], begun.json["detail"]) == (422, "work", refused.value.message)
        assert service.call("GET", "/jobs", "ana").json["jobs"] == []
        assert "joined rows" not in ana.get(at(NAMES[:1], epsilon="2")).content.decode()  # one of them alone is not


def test_which_tables_can_be_published_together(tmp_path: Path) -> None:
    def of(text: str) -> dict[str, tuple[str, ...]]:
        path = tmp_path / "clinic.toml"
        path.write_text(declared(tmp_path, text), "utf-8")
        return connected(read(path))

    assert of(DECLARATION) == {"customers": (), "orders": ("customers",), "items": ("orders",)}
    assert of(DECLARATION.replace("one_row_per_person = true", "rows_per_person = 2")) == {}
    assert of(DECLARATION.replace('customer = { type = "text" }', 'customer = { type = "integer" }')) == {}
    twice = DECLARATION.replace(
        'person = "caller"\nrows_per_person = 2', 'person = "caller"\none_row_per_person = true'
    )
    assert of(twice)["calls"] == ()
    assert of(twice.replace('caller = { type = "integer"', 'caller = { type = "text"'))["orders"] == (
        "customers",
        "calls",
    )


def test_where_no_tables_go_together_one_is_chosen(tmp_path: Path) -> None:
    with served(
        tmp_path, declared(tmp_path, DECLARATION.replace("one_row_per_person = true", "rows_per_person = 2"))
    ) as found:
        page = logged_in(found, "ana").get("/console/publish").content.decode()
    assert '<select id="table"' in page
    assert 'type="checkbox" name="table"' not in page


@pytest.mark.outside
@needs_axe
def test_several_tables_by_keyboard_and_the_pages_are_fit_to_be_used(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    with served(tmp_path, declared(tmp_path)) as service, Browser(tmp_path / "profile") as browser:

        def there(what: str) -> None:
            browser.arrives(f"!!document.querySelector({what!r}) && document.readyState === 'complete'")

        browser.go(f"{service.url}/console/login")
        there("[name=token]")
        browser.run("document.querySelector('[name=token]').focus(); 1")
        browser.press(service.tokens["ana"])
        browser.press("Enter")
        browser.arrives("location.pathname === '/console/ask' && document.readyState === 'complete'")
        browser.go(f"{service.url}/console/publish")
        there("[name=table][value=orders]")
        for name in ("orders", "items"):
            browser.run(f"document.querySelector('[name=table][value={name}]').focus(); 1")
            browser.press("Space")
        browser.press("Enter")
        there("main dl.facts")
        found = faults_in_all_windows(browser, pictures, "publish-several")
        browser.window(1280, 900)
        browser.run("document.getElementById('epsilon').focus(); 1")
        browser.press("4")
        browser.press("Enter")
        there("form[data-once]")
        found += faults_in_all_windows(browser, pictures, "publish-several-seen")
        browser.window(1280, 900)
        browser.run("document.querySelector('form[data-once] button').focus(); 1")
        browser.press("Enter")
        there("main a[href*='/csv?table=items']")
        assert "Rows below" in browser.run("document.querySelector('main').innerText")
        found += faults_in_all_windows(browser, pictures, "published-several")
        browser.go(f"{service.url}/console/publish?table=customers&table=items")
        there("main .note")
        found += faults_in_all_windows(browser, pictures, "publish-several-refused")
    assert found == []
