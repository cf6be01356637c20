"""Budgets by part, at a terminal and over HTTP."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema

import discreet
from face_tools import Command
from service_tools import served

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
COUNT = "SELECT COUNT(*) AS n FROM t"


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
    assert cli("ask", path, COUNT, "--part", "west", "--epsilon", "1", "--owner").code != 0
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


def test_a_service_answers_about_all_alone(cli: Command, tmp_path: Path) -> None:
    rows(tmp_path)
    with served(tmp_path, TEXT) as service:
        asked = {"question": COUNT, "epsilon": 10}
        refused = service.call("POST", "/ask", "ana", {**asked, "part": "north"})
        assert (refused.status, refused.json["where"]) == (400, "part")
        assert "this field is not known" in refused.json["detail"]
        assert service.call("POST", "/ask", "ana", asked).status == 200
        service.curator.ask(COUNT, epsilon=60, part="north")
        for who in ("owner", "eve", "ana"):
            balance = service.call("GET", "/balance", who)
            fits(balance.json, "Balance")
            assert ("parts" in balance.json) == (who != "ana")
        assert service.call("GET", "/balance", "owner").json["parts"]["north"]["used"] == 70
        found = service.call("GET", "/ledger", "owner")
        fits(found.json, "Ledger")
        with service.connect("eve") as there:
            assert there.budget.parts["south"].used == 10
        said = cli("ask", "--server", service.url, COUNT, "--part", "north")
        assert "a service does not take --part" in said.err + said.out
    assert discreet.catalog.read(tmp_path / "clinic.toml").budget.parts is not None
