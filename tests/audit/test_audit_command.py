"""`discreet audit`: exit codes, table, JSON, picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import mutants
from discreet.cli.demo import unpacked
from discreet.trusted.ring_a import additive

CLINIC = """
[budget]
epsilon = 3.0
delta = 1e-6
[tables.patients]
source = "patients.csv"
one_row_per_person = true
[tables.patients.columns]
Id = { type = "text" }
GENDER = { type = "text", values = ["F", "M"] }
HEALTHCARE_EXPENSES = { type = "number", min = 0, max = 2_000_000, step = 0.01 }
[tables.conditions]
source = "conditions.csv"
person = "PATIENT -> patients.Id"
rows_per_person = 200
groups_per_person = 10
[tables.conditions.columns]
PATIENT = { type = "text" }
DESCRIPTION = { type = "text" }
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    unpacked(tmp_path)
    path = tmp_path / "clinic.toml"
    path.write_text(CLINIC, "utf-8")
    return path


@pytest.mark.power
def test_a_quick_audit_of_a_real_declaration(audited: Callable[..., Any], clinic: Path) -> None:
    """The command as it is, with its own draws: right code passes, the picture is there, and no ledger."""
    said = audited(str(clinic), "--hunt", "8", "--plot", str(clinic.with_name("found.png")))
    assert (said.code, said.err) == (0, "")
    assert "nothing found" in said.out.splitlines()[-1]
    for subject in (
        "8 whole questions",
        "report noisy max, gap",
        "filter ε 3, δ 1e-06",
        "patients: AVG(HEALTHCARE_EXPENSES) by GENDER",
    ):
        assert subject in said.out
    assert clinic.with_name("found.png").stat().st_size > 20_000
    assert not clinic.with_name("clinic.ledger").exists()


@pytest.mark.usefixtures("small")
def test_a_finding_is_exit_code_5(audited: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(additive, "discrete_laplace", mutants.smaller(Fraction(1, 2)))
    said = audited("--hunt", "0", "--plot", str(tmp_path / "found.svg"))
    assert said.code == 5
    assert "FOUND  discrete Laplace (fit)" in said.out
    assert "findings" in said.out.splitlines()[-1]
    assert (tmp_path / "found.svg").stat().st_size > 20_000
    said = audited("--json", "--hunt", "0")
    assert said.code == 5
    found = json.loads(said.out)
    assert {one["subject"] for one in found["findings"]} >= {"discrete Laplace"}
    assert found["false_alarm"] == 1e-6


@pytest.mark.power
@pytest.mark.usefixtures("small")
def test_a_machine_reads_the_same(audited: Callable[..., Any]) -> None:
    said = audited("--json", "--hunt", "4", "--seed", "9")
    assert said.code == 0
    found = json.loads(said.out)
    assert found["findings"] == []
    assert {"exact", "sampled", "fit", "interaction", "hunted"} == {one["how"] for one in found["results"]}
    assert all(one["claimed"].keys() <= {"epsilon", "mu", "delta"} for one in found["results"])


def test_what_is_wrong_is_said_before_the_work(audited: Callable[..., Any], tmp_path: Path) -> None:
    assert audited("--plot", str(tmp_path / "found.txt")).code == 2
    said = audited(str(tmp_path / "gone.toml"))
    assert said.code == 2
    assert "there is no such file" in said.err
