"""What somebody finds who has just begun: names to complete, tables to ask about, errors without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from face_tools import Command, Data, visits


def test_completion_offers_what_is_there_to_use() -> None:
    offered = dir(discreet)
    assert set(offered) == {*discreet.__all__, "__version__"}
    assert {"Curator", "Table", "Workload", "open", "QuestionError", "BudgetError"} <= set(offered)
    assert all(getattr(discreet, name) is not None for name in offered)


def test_errors_are_there_by_the_name_of_their_module_too() -> None:
    text = "import discreet; assert issubclass(discreet.errors.QuestionError, discreet.errors.Error)"
    subprocess.run([sys.executable, "-W", "error", "-c", text], check=True)


def test_tables_are_listed(cli: Command, clinic: Path) -> None:
    lines = cli("tables", clinic).out.splitlines()
    assert lines == [
        "visits · the person is in column person; at most 20 rows and 4 groups per person count",
        "  person  text",
        "  city    text     north, south, nowhere, Zürich; never NULL",
        "  smoker  boolean",
        "  age     integer  0 to 20",
        "  cost    number   0 to 150",
        "  note    text",
    ]
    found = cli("tables", clinic, "--json").json["visits"]
    assert (found["person"], found["rows_per_person"], found["public"]) == ("person", 20, False)
    assert found["columns"]["cost"] == {"type": "number", "min": 0, "max": 150.0, "values": None, "nulls": True}
    with discreet.open(clinic) as curator:
        assert repr(curator.tables).splitlines() == lines
        assert json.loads(json.dumps(curator.tables))["visits"]["columns"] == found["columns"]
        assert str(clinic.parent) not in repr(curator.tables)


def test_a_declaration_prints_in_a_line(data: Data) -> None:
    with discreet.Curator({"visits": visits(data.csv)}, epsilon=3, delta="1e-6") as curator:
        assert repr(curator.declaration) == "Declaration of visits; budget ε 3, δ 1e-6"


def test_a_notebook_shows_an_error_without_its_traceback(exact: discreet.Curator) -> None:
    with pytest.raises(discreet.QuestionError) as refused:
        exact.ask("SELECT COUNT(*) FROM visit", epsilon=1)
    assert refused.value._render_traceback_() == [f"QuestionError: {refused.value}"]
    assert "\n" not in str(refused.value)
