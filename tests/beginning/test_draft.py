"""From fields to a declaration: each fault beside its field, and where nothing lacks the text of `discreet init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from beginning_tools import PATIENTS, VISITS
from discreet.beginning.draft import Draft, drafted, fields, first
from discreet.catalog.model import Renewal, Renews
from discreet.catalog.suggest import Suggested
from discreet.cli.start import found
from face_tools import Command

SAID = {
    "t0.about": "one",
    "t0.person": "0",
    "t0.dates": "%d.%m.%Y",
    "t0.c0.type": "integer",
    "t0.c2.type": "date",
    "t0.c4.type": "number",
    "t1.about": "many",
    "t1.person": "0",
    "t1.rows": "20",
    "t1.c0.type": "integer",
    "t1.c1.type": "date",
    "t1.c3.type": "text",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draft")
    (folder / "patients.csv").write_text(PATIENTS, "utf-8")
    (folder / "visits.csv").write_text(VISITS, "utf-8")
    return folder


@pytest.fixture(scope="module")
def tables(folder: Path) -> list[Suggested]:
    return found([str(folder / "patients.csv"), str(folder / "visits.csv")], folder)


def made(tables: list[Suggested], folder: Path, **said: str) -> Draft:
    whole = {**first(tables, "1", "1e-6"), **SAID, **{name.replace("__", "."): text for name, text in said.items()}}
    assert whole.keys() <= set(fields(tables))
    return drafted(tables, whole, folder)


@pytest.mark.parametrize(
    ("said", "field", "message"),
    [
        ({"epsilon": ""}, "epsilon", "it is missing"),
        ({"epsilon": "0"}, "epsilon", "epsilon must lie between"),
        ({"epsilon": "1e99999999"}, "epsilon", "it must be a finite number"),
        ({"epsilon": "Infinity"}, "epsilon", "not a valid number"),
        ({"epsilon": "1" * 50}, "epsilon", "not a valid number"),
        ({"delta": "1"}, "delta", "delta must be at least 0"),
        ({"renews": "everybody"}, "period", "no period is chosen"),
        ({"renews": "x", "period": "day"}, "period", "it must say for whom"),
        ({"renews": "new persons", "period": "day"}, "t1.person", "needs one table that holds every person"),
        ({"a0__name": "ana"}, "a0.epsilon", "it is missing"),
        ({"a0__epsilon": "1"}, "a0.name", "the name is missing"),
        ({"a0__name": "ana", "a0__epsilon": "2"}, "a0.epsilon", "larger than the whole budget"),
        ({"a0__name": "ana", "a0__epsilon": ".5", "a0__day": ".6"}, "a0.day", "larger than epsilon"),
        ({"a0__name": "a", "a0__epsilon": "1", "a1__name": "A", "a1__epsilon": "1"}, "a1.name", "stands there twice"),
        ({"t0__about": ""}, "t0.about", "it is not said"),
        ({"t0__dates": ""}, "t0.dates", "it is not said"),
        ({"t0__person": "3"}, "t0.person", "this column is left out"),
        ({"t0__c0__type": "number"}, "t0.c0.type", "a number with fractions cannot"),
        ({"t0__c0__min": "1"}, "t0.c0.type", "clamping would make several persons one"),
        ({"t0__c1__values": "F\nF"}, "t0.c1.values", "a value is repeated"),
        ({"t0__c2__min": "31.01.2020"}, "t0.c2.min", "not a valid date"),
        ({"t0__c2__min": "2020-01-31", "t0__c2__max": "2019-01-31"}, "t0.c2.min", "min is larger than max"),
        ({"t0__c4__min": "1,5"}, "t0.c4.min", "not a valid number"),
        ({"t0__c4__type": "integer", "t0__c4__max": "1.5"}, "t0.c4.max", "not a valid integer"),
        ({"t0__c4__type": "money"}, "t0.c4.type", "its type is not chosen"),
        ({"t1__person": ""}, "t1.person", "it is not said"),
        ({"t1__person": "9"}, "t1.person", "it is not said"),
        ({"t1__rows": "0"}, "t1.rows", "not a whole number above 0"),
        ({"t1__rows": "²"}, "t1.rows", "not a whole number above 0"),
        ({"t1__rows": "999999999999"}, "t1.rows", "it must be a whole number from 1 to"),
        ({"t1__refers": "0.3"}, "t1.person", "there is no declared column"),
        ({"t1__about": "one", "t1__refers": "0.1"}, "t1.person", "one_row_per_person cannot"),
    ],
)
def test_a_fault_stands_at_its_field(
    said: dict[str, str], field: str, message: str, tables: list[Suggested], folder: Path
) -> None:
    draft = made(tables, folder, **said)
    assert draft.declaration is None
    lacks = {one.field: one for one in draft.lacks}
    assert message in lacks[field].message, draft.lacks
    assert lacks.keys() <= set(fields(tables))


def test_what_is_said_is_declared(tables: list[Suggested], folder: Path) -> None:
    said = {"renews": "everybody", "period": "month", "a0__name": "ana", "a0__epsilon": "0.5", "a0__month": "0.1"}
    draft = made(tables, folder, **said, t1__refers="0.0", t0__c1__values="F\n\n M ", t0__c1__full="on", t1__groups="3")
    assert draft.lacks == ()
    declared = draft.declaration
    assert declared is not None
    assert declared.budget.renewal == Renewal("month", Renews.EVERYBODY)
    assert declared.analysts["ana"].month == declared.budget.epsilon / 10
    patients, visits = declared.tables["patients"], declared.tables["visits"]
    gender = patients.column("GENDER")
    assert gender is not None
    assert (gender.values, gender.nulls) == (("F", "M"), False)
    assert (visits.rows_per_person, visits.groups_per_person) == (20, 3)
    assert made(tables, folder, t1__about="nobody").text.count("public = true") == 1
    small = made(tables, folder, epsilon="0.05").declaration
    assert small is not None
    assert small.question_epsilon == small.budget.epsilon / 10


def test_the_same_is_written_as_by_the_command(
    tables: list[Suggested], folder: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    options = ["--one-row-per-person", "--person", "Id", "--person", "PATIENT", "--rows-per-person", "visits=20"]
    options += ["--type", "id=integer", "--type", "patient=integer", "--type", "start=date", "--epsilon", "1"]
    options += ["--range", "expenses=0:10.5", "--range", "birthdate=1900-01-01:2026-12-31", "-o", "by.toml"]
    assert cli("init", "patients.csv", "visits.csv", *options).code == 0
    ends = {"t0__c2__min": "1900-01-01", "t0__c2__max": "2026-12-31", "t0__c4__min": "0", "t0__c4__max": "10.5"}
    text = made(tables, folder, **ends, t0__c3__keep="on", t0__c3__type="text").text
    plain = [
        [line.partition("#")[0].rstrip() for line in one.splitlines() if not line.startswith("#")]
        for one in (text, Path("by.toml").read_text("utf-8"))
    ]
    assert plain[0] == plain[1]
