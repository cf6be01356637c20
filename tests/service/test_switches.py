"""Who may ask about which table: an owner's word that holds on every path, in every process, after every start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.agents.tools import TOOLS, Assistant
from discreet.catalog import read
from discreet.catalog.written import analyst_written
from discreet.curator import Curator
from discreet.errors import EngineError, Error, QuestionError
from discreet.ledger import TOTAL, Ledger
from face_tools import Command
from service_tools import Served, served
from storms import At
from wire_tools import psql

WHY = {"reason": "not in the study's plan"}
HOMES = "SELECT COUNT(*) AS n FROM homes"
VISITS = "SELECT COUNT(*) AS n FROM visits"
JOINED = "SELECT COUNT(*) AS n FROM homes JOIN visits ON homes.id = visits.person"
INSIDE = "SELECT COUNT(*) AS n FROM (SELECT person FROM visits WHERE days > 1 GROUP BY person) AS often"
BESIDE = f"SELECT a.n + b.n AS m FROM (SELECT COUNT(*) AS n FROM homes WHERE rooms > 2) AS a, ({VISITS}) AS b"
PUBLIC = "SELECT COUNT(*) AS n FROM months"
MORE = """
[engine]
answer_seconds = "off"

[budget]
epsilon = 10
delta = 1e-6

[question]
epsilon = 0.1

[tables.homes]
source = "homes.csv"
one_row_per_person = true
[tables.homes.columns]
id = { type = "text" }
rooms = { type = "integer", min = 1, max = 5 }

[tables.visits]
source = "visits.csv"
person = "person -> homes.id"
rows_per_person = 5
[tables.visits.columns]
person = { type = "text" }
days = { type = "integer", min = 1, max = 9 }

[tables.months]
source = "months.csv"
public = true
[tables.months.columns]
month = { type = "integer" }

[analysts.ana]
epsilon = 4

[analysts.bob]
epsilon = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people = [f"p{i}" for i in range(40)]
    (tmp_path / "homes.csv").write_text("id,rooms\n" + "".join(f"{one},{len(one)}\n" for one in people), "utf-8")
    (tmp_path / "visits.csv").write_text("person,days\n" + "".join(f"{one},3\n" for one in people * 2), "utf-8")
    (tmp_path / "months.csv").write_text("month\n1\n2\n", "utf-8")
    (tmp_path / "clinic.toml").write_text(MORE, "utf-8")
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[Served]:
    with served(folder, MORE) as found:
        yield found


def asked(service: Served, who: str, question: str, **said: Any) -> Any:
    return service.call("POST", "/ask", who, {"question": question, "epsilon": "0.1", **said})


def curators(folder: Path) -> Curator:
    return Curator.of(read(folder / "clinic.toml"), owner=True)


def test_a_table_is_closed_to_one_analyst_over_every_protocol(service: Served) -> None:
    for question in (VISITS, JOINED):
        assert asked(service, "ana", question).status == 200
    frozen = service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["VISITS"], **WHY})
    assert frozen.json == {"analyst": "ana", "frozen": True, "new": True, "tables": ["VISITS"]}
    again = service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["visits"], **WHY})
    assert again.json["new"] is False
    head = service.curator.ledger.head
    for question in (VISITS, JOINED, INSIDE, BESIDE):  # what is stored for her, too
        for said in ({}, {"epsilon": "0.2"}):
            refused = asked(service, "ana", question, **said)
            assert (refused.status, refused.json["code"], refused.json["where"]) == (403, "stopped", "visits")
        assert service.call("POST", "/explain", "ana", {"question": question, "epsilon": "0.1"}).status == 200
    unpriced = service.call("POST", "/ask", "ana", {"question": VISITS})
    assert unpriced.json["code"] == "stopped"
    marginal = {"questions": [{"marginal": ["days"]}]}
    for path, said in (
        ("/publish", {"columns": ["days"], "method": "independent", "rows": 20}),
        ("/workload", marginal),
    ):
        begun = service.call("POST", path, "ana", {"table": "visits", "epsilon": "0.5", **said})
        assert begun.status in (202, 403), begun.content
        if begun.status == 202:
            events = service.call("GET", f"/jobs/{begun.json['job']}/events", "ana").content.decode()
            begun = json.loads(events.strip().rpartition("data: ")[2])["problem"]
            assert begun["code"] == "stopped"
    said_by_psql = psql(service, "ana", VISITS)
    assert "frozen this analyst's questions about this table" in said_by_psql.stderr
    with service.connect("ana") as there:
        (tool,) = (one for one in TOOLS if one.name == "ask")
        found = Assistant(there, None).call(tool, {"question": VISITS, "epsilon": 0.1})
        assert "frozen this analyst's questions about this table" in str(found)
        with pytest.raises(
            EngineError, match=r"visits: the owner has frozen this analyst's questions about this table"
        ):
            there.ask(VISITS, epsilon=0.1)
    assert service.curator.ledger.head == head
    for who, question in (("ana", HOMES), ("ana", PUBLIC), ("bob", JOINED), ("owner", VISITS)):
        assert asked(service, who, question).status == 200


def test_what_was_given_before_is_not_given_again(service: Served) -> None:
    said = {"table": "visits", "epsilon": "0.5", "questions": [{"marginal": ["days"]}]}
    job = service.call("POST", "/workload", "ana", said, Idempotency_Key="days").json["job"]
    service.call("GET", f"/jobs/{job}/events", "ana")
    form = {"question": BESIDE, "epsilon": "0.1", "request": "once"}
    page = service.call("POST", "/console/ask", "ana", form, Accept="application/json").json["answer"]
    shown = [f"/console/answers/{page}", f"/console/answers/{page}/csv", f"/jobs/{job}/answer"]

    def statuses() -> list[int]:
        again = service.call("POST", "/console/ask", "ana", form, Accept="application/json")
        return [again.status, *(service.call("GET", path, "ana").status for path in shown)]

    assert statuses() == [200] * 4
    last = service.curator.ledger.last.seq
    for whose in ({"analyst": "ana", "tables": ["visits"]}, {"tables": ["visits"]}, {"analyst": "ana"}, {}):
        service.call("POST", "/freeze", "owner", {**whose, **WHY})
        assert statuses() == [403] * 4
        assert service.call("GET", shown[2], "ana").json["code"] == "stopped"
        service.call("POST", "/lift", "owner", {**whose, **WHY})
    service.call("POST", "/freeze", "owner", {"analyst": "bob", **WHY})
    service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["homes"], **WHY})
    assert statuses() == [403, 403, 403, 200]
    service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["homes"], **WHY})
    assert statuses() == [200] * 4
    assert {one.kind for one in service.curator.ledger.entries(last)} == {"service"}


def test_a_switch_and_the_whole_are_apart(service: Served) -> None:
    service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["visits"], **WHY})
    service.call("POST", "/freeze", "owner", {"analyst": "ana", **WHY})
    assert asked(service, "ana", HOMES).json["where"] == ""
    lifted = service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["homes"], **WHY})
    assert lifted.json == {"analyst": "ana", "frozen": True, "tables": []}
    lifted = service.call("POST", "/lift", "owner", {"analyst": "ana", **WHY})
    assert lifted.json == {"analyst": "ana", "frozen": False, "tables": []}
    ana = service.call("GET", "/analysts", "owner").json["analysts"][0]
    assert (ana["frozen"], ana["frozen_tables"]) == (False, ["visits"])
    assert asked(service, "ana", HOMES).status == 200
    assert asked(service, "ana", VISITS).json["code"] == "stopped"
    lifted = service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["visits", "homes"], **WHY})
    assert lifted.json["tables"] == ["visits"]
    assert asked(service, "ana", VISITS).status == 200
    service.call("POST", "/freeze", "owner", {"tables": ["homes"], **WHY})  # for everybody
    assert service.call("GET", "/analysts", "owner").json["frozen_tables"] == ["homes"]
    for who in ("ana", "bob", "owner"):
        assert asked(service, who, JOINED).json["where"] == "homes"
        assert asked(service, who, "SELECT SUM(days) AS s FROM visits").status in (200, 403)
    service.call("POST", "/lift", "owner", {"tables": ["homes"], **WHY})
    assert asked(service, "bob", HOMES).status == 200
    notes = [one.note for one in service.curator.ledger.entries() if "frozen" in one.note]
    assert notes[0] == "ana frozen for visits, by owner: not in the study's plan"
    assert notes[-1] == "everybody no longer frozen for homes, by owner: not in the study's plan"
    service.curator.ledger.verify()


def test_what_is_no_table_about_people_is_not_frozen(service: Served) -> None:
    head = service.curator.ledger.head
    wrong: list[Any] = [["nothing"], ["months"], [""], [1], "visits"]
    for tables in wrong:
        found = service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": tables, **WHY})
        assert found.status in (400, 422), tables
        with pytest.raises(QuestionError):
            service.curator.freeze("ana", tables=tables, reason="x")
        with pytest.raises(QuestionError):
            service.curator.lift("ana", tables=[*tables, "no"], reason="x")
        assert service.curator.ledger.head == head, tables


def test_procedures_are_refused_before_anything_is_paid(folder: Path) -> None:
    with curators(folder) as curator:
        curator.freeze("ana", tables=["visits"], reason="x")
        workload = discreet.Workload("visits").marginals(["days"])
        run = curator.above_threshold(10, epsilon=0.1, limit=2, analyst="ana")
        head = curator.ledger.head
        calls: list[Callable[[], Any]] = [
            lambda: curator.ask(BESIDE, epsilon=0.2, analyst="ana"),
            lambda: curator.answer(workload, epsilon=0.1, analyst="ana"),
            lambda: curator.publish("visits", epsilon=0.5, columns=["days"], method="independent", analyst="ana"),
            lambda: curator.multiplicative_weights("visits", ["days"], epsilon=1, questions=3, analyst="ana"),
        ]
        for call in calls:
            with pytest.raises(EngineError, match="has frozen this analyst"):
                call()
            assert curator.ledger.head == head
        run.ask(HOMES)
        with pytest.raises(EngineError, match="has frozen this analyst"):
            run.ask(VISITS.replace("*", "DISTINCT person"))


def test_what_one_process_freezes_another_knows_at_once_and_after_a_start(folder: Path) -> None:
    with curators(folder) as one, curators(folder) as other:
        one.freeze("ana", tables=["visits"], reason="x")
        with pytest.raises(EngineError):
            other.ask(JOINED, epsilon=0.1, analyst="ana")
        assert other.frozen_tables == {"ana": ("visits",)}
        assert other.frozen == frozenset()
    with curators(folder) as later:
        with pytest.raises(EngineError):
            later.ask(VISITS, epsilon=0.1, analyst="ana")
        assert later.lift("ana", tables=["visits"]) == ("visits",)
        later.ask(VISITS, epsilon=0.1, analyst="ana")
        assert later.frozen_tables == {}


def test_a_switch_of_a_table_that_is_gone_is_lifted(folder: Path) -> None:
    with curators(folder) as curator:
        curator.freeze("ana", tables=["visits"], reason="x")
    text = MORE.replace("tables.visits", "tables.stays")
    (folder / "clinic.toml").write_text(text, "utf-8")
    with curators(folder) as curator:
        assert curator.lift("ana", tables=["visits"]) == ("visits",)


def test_every_kind_of_ledger_keeps_it(at: At) -> None:
    with closing(Ledger(at)) as ledger:
        assert ledger.stop("ana", ["visits", "homes"], reason="x") == ("visits", "homes")
        assert ledger.stop("ana", ["visits"]) == ()
        assert ledger.stop(TOTAL, ["homes"]) == ("homes",)
        ledger.check(["visits"], "bob")
    with closing(Ledger(at)) as ledger:
        for account, table in (("ana", "visits"), ("ana", "homes"), ("bob", "homes"), (TOTAL, "homes")):
            with pytest.raises(EngineError) as refused:
                ledger.check(["other", table], account)
            assert (refused.value.code, refused.value.where) == ("stopped", table)
        assert ledger.go("ana", ["visits", "other"]) == ("visits",)
        ledger.check(["visits", "other"], "ana")
        assert ledger.go("ana") == ()
        ledger.verify()


def test_workers_hear_of_it(folder: Path) -> None:
    text = MORE.replace("[engine]\n", '[engine]\nstore = "file"\n')
    with served(folder, text, workers=2) as service:
        assert asked(service, "ana", VISITS).status == 200
        service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["visits"], **WHY})
        found = asked(service, "ana", JOINED)
        assert (found.json["code"], found.json["where"]) == ("stopped", "visits")
        assert asked(service, "ana", HOMES).status == 200


def test_the_command_line_says_it(folder: Path, cli: Command) -> None:
    clinic = folder / "clinic.toml"

    def said(*words: object) -> str:
        return cli(*words).out

    frozen = ("freeze", clinic, "--analyst", "ana", "--table", "visits", "--table", "homes", "--reason", "x")
    assert said(*frozen) == "ana: frozen for visits, homes\n"
    assert said(*frozen) == "ana: frozen for visits, homes already\n"
    lifted = said("lift", clinic, "--analyst", "ana")
    assert lifted == "ana: not suspended; frozen for homes, visits until `discreet lift --table`\n"
    lifted = said("lift", clinic, "--analyst", "ana", "--table", "homes")
    assert lifted == "ana: no longer frozen for homes; frozen for visits until `discreet lift --table`\n"
    found = json.loads(said("lift", clinic, "--analyst", "ana", "--table", "visits", "--json"))
    assert found == {"analyst": "ana", "tables": ["visits"], "frozen": False}


def test_a_smaller_cap_than_was_spent_opens_and_answers_nothing_that_costs(folder: Path) -> None:
    with curators(folder) as curator:
        first = curator.ask(VISITS, epsilon=1, analyst="ana")
    (folder / "clinic.toml").write_text(MORE.replace("epsilon = 4", "epsilon = 0.5"), "utf-8")
    with curators(folder) as curator:
        with pytest.raises(Error, match="budget does not allow"):
            curator.ask(HOMES, epsilon=0.1, analyst="ana")
        assert list(curator.ask(VISITS, epsilon=1, analyst="ana")) == list(first)


def test_the_lines_of_a_cap_are_read_as_they_are_declared(folder: Path) -> None:
    name = 'ana "b"\x7f\u202e\U000e0001é'
    own = "epsilon = 0.123456789\nday = 0.01\nmonth = 0.02\nquestion = 0.005\ndelta = 1e-7\nkeys_delta = 1e-9\n"
    escaped = '"ana \\"b\\"\\u007f\\u202e\\U000e0001é"'
    (folder / "clinic.toml").write_text(f"{MORE}\n[analysts.{escaped}]\n{own}", "utf-8")
    declared = read(folder / "clinic.toml")
    lines = "".join(analyst_written(*one, declared.budget) for one in declared.analysts.items())
    assert "\x7f" not in lines
    assert "\u202e" not in lines
    assert lines.startswith("[analysts.ana]\nepsilon = 4\n[analysts.bob]\nepsilon = 2\n")
    (folder / "clinic.toml").write_text(MORE.partition("[analysts")[0] + lines, "utf-8")
    again = read(folder / "clinic.toml")
    assert again.analysts == declared.analysts
    assert name in again.analysts
