"""Budgets by part, at a terminal and of a service: over HTTP, in Python, and by several workers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import discreet
from discreet.errors import Error
from face_tools import Command
from part_tools import ALL, COUNT, NO_PART, SIZES, declared
from service_tools import Served, served

TEXT = """
[budget]
epsilon = 100
parts = "t.clinic"
[analysts.ana]
epsilon = 50
[analysts.bob]
epsilon = 1
[tables.t]
source = "t.csv"
person = "id"
rows_per_person = 2
[tables.t.columns]
id = { type = "text" }
clinic = { type = "text", values = ["north", "south"] }
"""


def fits(value: Any, name: str) -> None:
    """Holds a value against a schema of the document."""
    document = json.loads((files("discreet.service") / "openapi.json").read_text("utf-8"))
    jsonschema.validate(value, {**document, "$ref": f"#/components/schemas/{name}"})


def rows(folder: Path) -> None:
    (folder / "t.csv").write_text("id,clinic\nann,north\nbob,north\ncid,south\ndan,\n", "utf-8")


def test_at_a_terminal_one_part_pays(cli: Command, tmp_path: Path) -> None:
    rows(tmp_path)
    path = tmp_path / "ward.toml"
    path.write_text(TEXT, "utf-8")
    said = cli("explain", path, COUNT, "--part", "north", "--epsilon", "80", "--owner")
    assert said.code == 0
    assert "80 % of the budget" in said.out
    said = cli("ask", path, COUNT, "--part", "north", "--epsilon", "80", "--owner", "--json")
    assert round(said.json["rows"][0]["n"]) == 2
    assert cli("ask", path, COUNT, "--part", "south", "--epsilon", "30", "--analyst", "ana").code == 0
    assert cli("ask", path, COUNT, "--epsilon", "20", "--analyst", "ana").code == 0
    for wrong in ("west", ""):  # a variable of a shell that is empty does not ask about all
        assert NO_PART in cli("ask", path, COUNT, "--part", wrong, "--epsilon", "1", "--owner", "--json").out
    refused = cli("ask", path, f"{COUNT} WHERE clinic = 'south'", "--epsilon", "1", "--owner", "--json")
    assert "the budget of the part north does not allow this question" in refused.out
    found = cli("budget", path, "--json").json
    assert {name: one["used"] for name, one in found["parts"].items()} == {"north": 100, "south": 50}
    assert (found["used"], found["analysts"]["ana"]["used"]) == (100, 100)
    ledger = cli("ledger", path, "--verify")
    assert ledger.code == 0
    assert "part south: 50 % of ε 100 used" in ledger.out
    entries = cli("ledger", path, "--json").json["entries"]
    charged = [entry["charged"] for entry in entries if entry["kind"] == "reserve"]
    both = ["the part north", "the part south"]
    assert charged == [["the part north"], ["the part south", "ana"], ["the budget", *both, "ana"]]
    assert "\x1d" not in ledger.out + cli("ledger", path).out
    notes = [entry["note"] for entry in entries if entry["kind"] == "assigned"]
    assert notes == ["persons who are in a part for the first time are listed"]
    checked = cli("check", path)
    assert "each person is in one part: north, south; others are in none" in checked.out


def many(folder: Path) -> None:
    """Enough persons in north and in south that noise makes few of the other part."""
    lines = [f"{clinic}{number},{clinic}" for clinic, size in (("north", 90), ("south", 45)) for number in range(size)]
    (folder / "t.csv").write_text("\n".join(["id,clinic", *lines, ""]), "utf-8")


def test_at_a_terminal_a_table_is_published_of_one_part(cli: Command, tmp_path: Path) -> None:
    many(tmp_path)
    path = tmp_path / "ward.toml"
    path.write_text(TEXT.replace("[analysts.ana]", "delta = 1e-6\n[analysts.ana]"), "utf-8")
    said = cli("publish", path, "t", "--epsilon", "40", "--owner", "--part", "north", "-o", tmp_path / "made.csv")
    assert said.code == 0, said.out
    assert "of the part north alone" in said.out
    text = (tmp_path / "made.csv").read_text("utf-8")
    assert abs(text.count("north") - 90) <= 10
    assert text.count("south") <= 10
    found = cli("budget", path, "--json").json["parts"]
    assert [found[name]["used"] > 0 for name in ("north", "south")] == [True, False]
    for wrong in ("west", ""):
        refused = cli("publish", path, "t", "--epsilon", "1", "--owner", "--part", wrong, "--json")
        assert NO_PART in refused.out


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("parts")
    with served(folder, declared(folder, len(SIZES))) as found:
        yield found


def about(part: str | None) -> dict[str, str]:
    return {} if part is None else {"part": part}


def ask(service: Served, part: str | None, who: str = "ana", name: str | None = None, **said: Any) -> Any:
    """What comes of a count at ε 5, or of another question. With two rows a person its noise is more than 5 with a
    probability below 10^-6, and the part with the next more rows has 6 more."""
    headers = {} if name is None else {"Idempotency_Key": name}
    return service.call("POST", "/ask", who, {"question": COUNT, "epsilon": 5, **about(part), **said}, **headers)


def counted(reply: Any) -> int:
    assert reply.status == 200, reply.content
    return round(reply.json["rows"][0]["n"])


EACH = [*SIZES, None]


def test_each_part_is_answered_by_its_name_to_the_letter(service: Served) -> None:
    before = service.curator.ledger.head
    for wrong in ("west", "", "North", "north ", "north\0", "\ud800", "\u00fc", "n" * 9_000):
        for path in ("/ask", "/explain"):
            refused = service.call("POST", path, "ana", {"question": COUNT, "epsilon": 5, "part": wrong})
            assert (refused.status, refused.json["code"], refused.json["where"]) == (422, "part", "part")
            assert refused.json["detail"] == NO_PART
    for none in (3, True, ["north"], {"north": 1}):
        assert service.call("POST", "/ask", "ana", {"question": COUNT, "epsilon": 5, "part": none}).status == 400
    said = {"question": COUNT, "part": "north"}
    assert service.call("POST", "/check", "ana", said).status == 400  # which tables it reads is the same of each
    for path, more in (("/publish", {}), ("/workload", {"questions": [{"marginal": ["clinic"]}]})):
        begun = service.call("POST", path, "ana", {"table": "t", "epsilon": "1", "part": "west", **more})
        assert (begun.status, begun.json["code"], begun.json["detail"]) == (422, "part", NO_PART)
    for path in ("/ask", "/explain"):  # a part where nobody reads it: the answer would be about all
        refused = service.call("POST", f"{path}?part=north", "ana", {"question": COUNT, "epsilon": 5})
        assert (refused.status, refused.json["code"]) == (400, "query")
    assert service.curator.ledger.head == before
    for part in EACH:
        reply = ask(service, part, name=f"first of {part!r}".encode().hex())
        assert abs(counted(reply) - SIZES.get(part or "", ALL)) <= 5
        words = f"of the part {part} alone" if part is not None else "of all rows: the budgets of all 7 parts pay"
        assert any(words in note for note in reply.json["notes"])
        assert reply.json["charged"]["epsilon"] == 5
    none = service.call("POST", "/ask", "ana", {"question": COUNT, "epsilon": 5, "part": None})
    assert none.json["charged"]["epsilon"] == 0  # null is the same as nothing


def test_a_balance_has_each_part(service: Served, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in EACH:
        ask(service, part)
    for who in ("owner", "eve", "ana"):
        balance = service.call("GET", "/balance", who).json
        fits(balance, "Balance")
        assert list(balance["parts"]) == list(SIZES)
    own, bob = (service.call("GET", "/balance", who).json for who in ("ana", "bob"))
    for part in SIZES:
        assert own["parts"][part]["whole"]["used"] == service.curator.budget.parts[part].used
        assert own["parts"][part]["room"] == own["room"]  # her account leaves less than any part
        assert bob["parts"][part]["prices"]["questions"] == "50"
    fits(service.call("GET", "/ledger", "owner").json, "Ledger")
    with service.connect("ana") as there:
        assert there.budget.to_dict() == service.curator.budget_of("ana").to_dict()
        assert "part -3: " in repr(there.budget)
        assert f"{own['whole']['used']:.2g} % of ε 1000 used; left for ana" in repr(there.budget)
    monkeypatch.setenv("DISCREET_TOKEN", service.tokens["ana"])
    assert "part north: " in cli("budget", "--server", service.url).out
    said = cli("ask", "--server", service.url, COUNT, "--part", "-3", "--epsilon", "5", "--json")
    assert abs(said.json["rows"][0]["n"] - SIZES["-3"]) <= 5
    assert (
        "of the part -3 alone" in cli("explain", "--server", service.url, COUNT, "--part", "-3", "--epsilon", "9").out
    )


def test_a_workload_is_answered_about_the_part_that_it_names(service: Served) -> None:
    workload = discreet.Workload("t").marginals(["clinic"])
    spent = {name: one.used for name, one in service.curator.budget.parts.items()}
    with service.connect("ana") as there:
        for part in ("north", "south", None):
            release = there.answer(workload, epsilon=5, delta=0, part=part)
            found = {row["clinic"]: round(row["count"]) for row in release.rows}
            north, south = (SIZES[name] if part in (None, name) else 0 for name in ("north", "south"))
            assert abs(found["north"] - north) <= 5
            assert abs(found["south"] - south) <= 5
            words = f"of the part {part} alone" if part is not None else "of all rows: the budgets of all 7 parts pay"
            assert any(words in note for note in release.notes)
            assert release.charged["epsilon"] == 5
            told = service.curator.explain(workload, epsilon=5, delta=0, part=part, analyst="ana")
            assert any(words in line for line in told.bounds)
            here = service.curator.answer(workload, epsilon=5, delta=0, part=part, analyst="ana")
            assert here.rows == release.rows  # the very same, and free
            assert not here.charged
        with pytest.raises(Error, match=NO_PART):
            there.answer(workload, epsilon=5, part="west")
        there.answer(workload, epsilon=6, part="north", request="workload")
        with pytest.raises(Error, match="another"):
            there.answer(workload, epsilon=6, part="south", request="workload")
    now = {name: one.used for name, one in service.curator.budget.parts.items()}
    paid = {name: round(10 * (now[name] - spent[name])) for name in now}  # percent of 1000, in ε
    assert paid == {name: {"north": 16, "south": 10}.get(name, 5) for name in SIZES}


def test_a_table_is_published_of_the_part_that_is_named(tmp_path: Path) -> None:
    many(tmp_path)
    with served(tmp_path, TEXT.replace("[analysts.ana]", "delta = 1e-6\n[analysts.ana]")) as service:
        with service.connect("ana") as there:
            made = there.publish("t", epsilon=20, part="north", request="published")
            found = [row["clinic"] for row in made.rows]
            assert abs(found.count("north") - 90) <= 10
            assert found.count("south") <= 10
            assert "of the part north alone" in made.bounds
            assert made.to_dict()["part"] == "north"
            again = there.publish("t", epsilon=20, part="north", request="published")
            assert again.rows == made.rows
            with pytest.raises(Error, match="another"):
                there.publish("t", epsilon=20, part="south", request="published")
            with pytest.raises(Error, match=NO_PART):
                there.publish("t", epsilon=20, part="west")
        assert [service.curator.budget.parts[name].used > 0 for name in ("north", "south")] == [True, False]


@pytest.mark.parametrize("part", EACH)
def test_what_is_said_of_a_part_is_the_same_here_and_there(service: Served, part: str | None) -> None:
    by = "SELECT clinic, COUNT(*) AS n FROM t GROUP BY clinic"
    with service.connect("ana") as there:
        there.ask(by, epsilon=3, part=part)
        again, here = (one(by, epsilon=3, part=part) for one in (there.ask, mine(service, "ask")))
        assert again.to_json() == here.to_json()
        assert repr(again) == repr(here)
        told, known = (one(by, epsilon=2, part=part) for one in (there.explain, mine(service, "explain")))
        assert told.to_dict() == known.to_dict()
        for call, question in (("ask", by), ("explain", by)):
            for wrong in ({"epsilon": "600"}, {"part": "west"}, {"part": ""}, {"part": 3}, {"epsilon": "x"}):
                given = {"epsilon": 1, "part": part, **wrong}
                found = [said_of(one, question, given) for one in (getattr(there, call), mine(service, call))]
                if wrong == {"part": 3}:  # there, nobody knows which there are
                    found = [one[:3] for one in found]
                assert found[0] == found[1]


def mine(service: Served, call: str) -> Callable[..., Any]:
    def asked(*said: Any, **more: Any) -> Any:
        return getattr(service.curator, call)(*said, **more, analyst="ana")

    return asked


def said_of(call: Callable[..., Any], question: str, given: dict[str, Any]) -> tuple[object, ...]:
    """What an error says; nothing where there is none."""
    try:
        call(question, **given)
    except Error as error:
        return type(error), error.code, error.message, error.where, error.fix
    return ()


def test_a_request_belongs_to_one_part(service: Served) -> None:
    question = f"{COUNT} WHERE id <> 'a request'"
    first = ask(service, "north", name="once", question=question)
    assert abs(counted(first) - SIZES["north"]) <= 5
    before = service.curator.ledger.head
    for other in ("south", "NORTH", " north", None):
        refused = ask(service, other, name="once", question=question)
        assert (refused.status, refused.json["code"]) == (422, "request")
    with service.connect("ana") as there, pytest.raises(Error, match="belongs to another question"):
        there.ask(question, 5, part="south", request="once")
    assert service.curator.ledger.head == before
    # the service ended before it had written down to what the name belongs: the ledger knows
    lost = service.curator.ask(question, 5, part="south", analyst="ana", request="ana:lost")
    head = service.curator.ledger.head
    for other in ("north", None):
        for epsilon, code in ((5, "request"), (2, "request"), (None, "price")):
            refused = ask(service, other, name="lost", question=question, epsilon=epsilon)
            assert (refused.status, refused.json["code"]) == (422, code)
    assert service.curator.ledger.head == head
    retried = ask(service, "south", name="lost", question=question)
    assert retried.json["rows"] == lost.rows
    assert retried.json["charged"]["epsilon"] == 0


def test_a_job_s_name_is_no_question_s_about_a_part(service: Served) -> None:
    said = {"table": "t", "epsilon": "1", "questions": [{"marginal": ["clinic"]}]}
    job = service.call("POST", "/workload", "ana", said, Idempotency_Key="a job").json
    assert ask(service, "north", name="a job").status == 400  # no name has a blank
    job = service.call("POST", "/workload", "ana", said, Idempotency_Key="job").json["job"]
    service.call("GET", f"/jobs/{job}/events", "ana")
    released = service.call("GET", f"/jobs/{job}/answer", "ana").json
    assert any("of all rows" in note for note in released["notes"])
    assert ask(service, "north", name="job").status == 422
    assert abs(counted(ask(service, "north", name="a-question")) - SIZES["north"]) <= 5
    assert service.call("POST", "/workload", "ana", said, Idempotency_Key="a-question").status == 422


def test_nothing_is_asked_about_a_part_where_none_is_declared(tmp_path: Path) -> None:
    with served(tmp_path, declared(tmp_path, 0)) as service:
        before = service.curator.ledger.head
        for path in ("/ask", "/explain"):
            said = {"question": COUNT, "epsilon": 1, "part": "north"}
            refused = service.call("POST", path, "ana", said, Idempotency_Key="x")
            assert (refused.json["code"], refused.json["detail"], refused.json["fix"]) == (
                "part",
                NO_PART,
                "leave it out",
            )
        with service.connect("ana") as there, pytest.raises(Error, match=NO_PART):
            there.ask(COUNT, 1, part="north")
        assert service.curator.ledger.head == before
        assert "parts" not in service.call("GET", "/balance", "ana").json
        assert service.call("POST", "/ask", "ana", {"question": COUNT, "epsilon": 1}, Idempotency_Key="x").status == 200


def test_caps_prices_and_freezes_hold_for_each_part(tmp_path: Path) -> None:
    text = declared(tmp_path).replace(
        "[analysts.bob]\nepsilon = 50", "[analysts.bob]\nepsilon = 50\nquestion = 2\nday = 20"
    )
    with served(tmp_path, text) as service:
        charged: Callable[..., float] = lambda *given, **said: ask(service, *given, **said).json["charged"]["epsilon"]  # noqa: E731
        assert charged("south", "bob", epsilon=9) == 9
        assert charged("south", "bob", epsilon=None) == 0  # what is stored
        assert charged("north", "bob", epsilon=None) == 2  # of the other part, nothing is
        assert charged(None, "bob", epsilon=None) == 2
        refused = ask(service, "north", "bob", epsilon=8)
        assert (refused.status, refused.json["code"]) == (402, "budget")
        assert "analyst bob's budget of this day" in refused.json["detail"]
        unpriced = ask(service, "north", "ana", epsilon=None)
        assert (unpriced.status, unpriced.json["code"]) == (422, "price")
        for who in ({"analyst": "ana", "tables": ["t"]}, {"analyst": "ana"}, {}):
            kept = {part: ask(service, part, name=f"kept-{part}") for part in ("north", "south", None)}
            service.call("POST", "/freeze", "owner", {**who, "reason": "audit"})
            before = service.curator.ledger.last.seq
            for part in ("north", "south", None):
                for said in ({}, {"name": f"kept-{part}"}, {"epsilon": 6}):
                    refused = ask(service, part, **said)
                    assert (refused.status, refused.json["code"]) == (403, "stopped")
                assert (
                    service.call("POST", "/explain", "ana", {"question": COUNT, "epsilon": 1, **about(part)}).status
                    == 200
                )
            assert service.curator.ledger.last.seq == before
            service.call("POST", "/lift", "owner", {**who, "reason": "audit"})
            for part, reply in kept.items():
                assert ask(service, part, name=f"kept-{part}").json["rows"] == reply.json["rows"]


def test_workers_answer_about_parts(tmp_path: Path) -> None:
    """Two processes with an engine for each part: of each snapshot each answers of the persons of the part."""
    with served(tmp_path, declared(tmp_path), workers=2) as service:
        assert service.workers is not None
        while len(service.workers.processes) < 2:
            time.sleep(0.05)
        for number, more in ((1, 0), (2, 30)):  # what is there at first, and what the owner takes meanwhile
            if more:
                with (tmp_path / "t.csv").open("a", encoding="utf-8") as file:
                    file.writelines(f"new-{one},south\n" for one in range(more))
                service.call("POST", "/refresh", "owner", {"tables": {"t": 1}, "reason": "more"})
                while service.call("GET", "/refresh", "owner").json["state"] == "running":
                    time.sleep(0.05)
            found: list[tuple[str | None, int]] = []
            threads = [threading.Thread(target=_asking, args=(service, who, number, found)) for who in ("ana", "bob")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            sizes = {"north": SIZES["north"], "south": SIZES["south"] + more, None: ALL + more}
            assert len(found) == 12
            assert all(abs(count - sizes[part]) <= 4 for part, count in found)
        for who, epsilon in (("ana", 48), ("bob", 48)):
            assert service.curator.ledger.filter(who).spent.pure == epsilon
        service.curator.ledger.verify()


def _asking(service: Served, who: str, number: int, found: list[tuple[str | None, int]]) -> None:
    """Asks what was not asked before about each part, twice."""
    for place in range(2):
        for part in ("north", "south", None):
            question = f"{COUNT} WHERE id <> '{who} {number} {place}'"
            found.append((part, counted(ask(service, part, who, question=question, epsilon=4))))
