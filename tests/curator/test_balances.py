"""What is left is told to whoever asks: the whole budget, and the analyst's own account."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import BudgetError, QuestionError
from face_tools import Command

COUNT = "SELECT COUNT(*) AS n FROM t"
ANALYSTS = {"ana": "0.5", "bob": "0.2"}


def curator(tmp_path: Path, **said: Any) -> discreet.Curator:
    path = tmp_path / "t.csv"
    path.write_text("g,v\n" + "a,1\nb,0\n" * 50)
    table = discreet.Table(path, one_row_per_person=True, columns={"g": ["a", "b"], "v": (0, 1)})
    return discreet.Curator({"t": table}, epsilon=3, delta="1e-6", **said)


CALLS: list[Any] = [
    lambda one: one.ask(COUNT, epsilon="0.1"),
    lambda one: one.explain(COUNT, epsilon="0.1"),
    lambda one: one.left(COUNT, epsilon="0.1"),
    lambda one: one.select("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon="0.1"),
    lambda one: one.above_threshold(10, epsilon="0.1"),
    lambda one: one.multiplicative_weights("t", ["g"], epsilon="0.1", questions=5),
    lambda one: one.sample_and_aggregate(len, "t", low=0, high=1, epsilon="0.1"),
    lambda one: one.fit("t", target="v", epsilon="0.1", steps=5),
    lambda one: one.publish("t", epsilon="0.1"),
    lambda one: one.answer(discreet.Workload("t").marginals("g"), epsilon="0.1"),
]


@pytest.mark.parametrize("call", CALLS)
def test_without_a_name_nothing_is_bought(tmp_path: Path, call: Any) -> None:
    """It used to be charged to the whole budget alone, past every analyst's own."""
    with curator(tmp_path, analysts=ANALYSTS) as one:
        with pytest.raises(QuestionError, match="say who asks") as refused:
            call(one)
        assert refused.value.fix == "name one of ana, bob; the owner opens it with owner=True, or says --owner"
        assert one.budget.used == 0
        assert all(entry.loss is None for entry in one.ledger.entries())


def test_the_owner_asks_without_a_name(tmp_path: Path) -> None:
    with curator(tmp_path, analysts=ANALYSTS, owner=True) as one:
        release = one.ask(COUNT, epsilon=1)
        assert release.to_dict()["analyst"] is None
        assert [state.used for state in one.budget.analysts.values()] == [0, 0]


def test_an_analyst_is_told_what_her_account_and_the_whole_allow(tmp_path: Path) -> None:
    with curator(tmp_path, analysts=ANALYSTS) as one:
        before = one.explain(COUNT, epsilon="0.25", analyst="ana")
        assert (before.more, one.left(COUNT, epsilon="0.25", analyst="ana")) == (2, 2)
        assert before.analyst == {"name": "ana", "epsilon": "0.5", "delta": "1e-6", "used": 0.0, "percent": 50.0}
        assert "9 % of the budget · 50 % of ana's ε 0.5, 0 % of it used before · 2 like this fit" in repr(before)
        assert before.after.startswith("left for ana: either ε 0.25 in questions")
        assert before.to_dict()["analyst"] == before.analyst
        release = one.ask(COUNT, epsilon="0.25", analyst="ana")
        assert release.more == 1
        release = one.ask(COUNT + " WHERE v > 0", epsilon="0.25", analyst="ana")
        said = release.to_dict()
        assert (said["more"], said["left"], said["analyst"]["used"]) == (0, "nothing is left for ana", 100.0)
        assert json.loads(release.to_json())["analyst"] == said["analyst"]
        assert "100 % of ana's ε 0.5 used · no more like this · nothing is left for ana" in repr(release)
        assert "100 % of ana&#x27;s ε 0.5 used" in release._repr_html_()
        assert one.left(COUNT, epsilon="0.01", analyst="ana") == 0
        assert one.explain(COUNT, epsilon="0.01", analyst="ana").more == 0
        with pytest.raises(BudgetError):
            one.ask("SELECT SUM(v) AS s FROM t", epsilon="0.01", analyst="ana")
        ana, bob = one.budget.analysts.values()
        assert (ana.used, ana.room) == (100.0, "nothing is left for ana")
        assert bob.room.startswith("left for bob: either ε 0.2 in questions")
        assert "ana: 100 % of ε 0.5 used; nothing is left for ana" in repr(one.budget)


def test_what_the_whole_budget_lacks_is_not_promised_to_an_analyst(tmp_path: Path) -> None:
    with curator(tmp_path, analysts={"ana": 3, "bob": 3}) as one:
        one.ask(COUNT, epsilon="2.5", analyst="bob")
        assert one.left(COUNT, epsilon="0.25", analyst="ana") == 2
        assert one.budget.analysts["ana"].room.startswith("left for ana: either ε 0.5 in questions or ")
        release = one.ask(COUNT, epsilon="2.5", analyst="ana")  # a repeat, which her own account pays
        assert release.to_dict()["analyst"]["used"] == pytest.approx(250 / 3)


def test_what_is_kept_for_publishing_is_no_room_for_questions(tmp_path: Path) -> None:
    """The footer used to say that ε 2.99 more fits, and `explain` that it does not."""
    with curator(tmp_path, reserve={"publish": 1}) as one:
        release = one.ask(COUNT, epsilon="0.01")
        assert release.more == one.left(COUNT, epsilon="0.01") == one.explain(COUNT, epsilon="0.01").more
        fits = release.left.removeprefix("left: either ε ").partition(" in questions")[0]
        with pytest.raises(BudgetError):
            one.ask(COUNT, epsilon=str(float(fits) + 0.02))
        one.ask(COUNT, epsilon=fits)


def test_on_the_command_line(cli: Command, clinic: Path) -> None:
    clinic.write_text(clinic.read_text("utf-8") + "[analysts.ana]\nepsilon = 0.5\n", "utf-8")
    question = "SELECT COUNT(*) AS n FROM visits"
    for command in (("ask", clinic, question), ("explain", clinic, question), ("publish", clinic, "visits")):
        said = cli(*command, "--epsilon", "0.1")
        assert (said.code, "say who asks" in said.err) == (2, True)
    said = cli("explain", clinic, question, "--epsilon", "0.1", "--analyst", "ana", "--json")
    assert (json.loads(said.out)["more"], json.loads(said.out)["analyst"]["percent"]) == (5, 20.0)
    assert "left for ana: either ε 0.4" in cli("ask", clinic, question, "--epsilon", "0.1", "--analyst", "ana").out
    assert cli("explain", clinic, question, "--epsilon", "0.1", "--owner").code == 0
    assert "for ana" not in cli("ask", clinic, question, "--epsilon", "0.1", "--owner").out
    found = json.loads(cli("ledger", clinic, "--json").out)["analysts"]["ana"]
    assert (found["epsilon"], found["used"], found["more"]) == ("0.5", 20.0, 4)
    assert found["left"].startswith("left for ana: either ε 0.4 in questions")


def test_a_new_ledger_says_that_a_whole_budget_begins(clinic: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copied declaration, or a lost ledger, used to open a second full budget in silence."""
    with discreet.open(clinic):
        assert caplog.messages == ["clinic.ledger is a new ledger: nothing is spent yet of the budget of ε 1 δ 1e-6"]
    caplog.clear()
    with discreet.open(clinic):
        pass
    copied = clinic.parent / "copy.toml"
    copied.write_text(clinic.read_text("utf-8"), "utf-8")
    assert caplog.messages == []
    with discreet.open(copied):
        assert caplog.messages[0].startswith("copy.ledger is a new ledger: ")


def test_check_says_how_well_an_attacker_guesses(cli: Command, clinic: Path) -> None:
    said = cli("check", clinic).out
    assert "an attacker who knows everyone else is right at most 73.2 % of the time after the whole budget" in said
    assert "almost nothing" not in said
    text = clinic.read_text("utf-8")
    large = clinic.parent / "large.toml"
    large.write_text(re.sub(r"(?m)^epsilon = .*$", "epsilon = 1000", text, count=1), "utf-8")
    assert "ε 1000 hides almost nothing about a person: at ε 1 it is 73.2 %" in cli("check", large).out
    assert json.loads(cli("check", large, "--json").out)["odds_of_budget"] == 1


def test_caps_by_day_and_month_are_told_and_held(cli: Command, clinic: Path) -> None:
    clinic.write_text(clinic.read_text("utf-8") + "[analysts.ana]\nepsilon = 0.5\nmonth = 0.3\nday = 0.2\n", "utf-8")
    ask = ("ask", clinic, "--analyst", "ana", "--epsilon")
    assert "left for ana: either ε 0.05 in questions" in cli(*ask, "0.15", "SELECT COUNT(*) AS n FROM visits").out
    refused = cli(*ask, "0.1", "SELECT COUNT(*) AS m FROM visits WHERE 1 = 1 AND cost > 3")
    assert (refused.code, "analyst ana's budget of this day does not allow this question" in refused.err) == (3, True)
    assert re.search(r"a price of at most ε 0.05; or ask again from \d{4}-\d\d-\d\d on, in UTC", refused.err)
    with discreet.open(clinic) as one:
        assert one.left("SELECT COUNT(*) AS m FROM visits", epsilon="0.05", analyst="ana") == 1
        own = one.budget.analysts["ana"]
        assert {name: (window["epsilon"], window["used"]) for name, window in own.windows.items()} == {
            "day": ("0.2", 75.0),
            "month": ("0.3", 50.0),
        }
        assert "ana: 30 % of ε 0.5 used, 75 % of ε 0.2 a day (the next begins" in repr(one.budget)
        assert discreet.explanation.BudgetState.from_dict(one.budget.to_dict()) == one.budget
    assert "50 % of ε 0.3 a month" in cli("ledger", clinic).out
    assert json.loads(cli("ledger", clinic, "--json").out)["analysts"]["ana"]["windows"]["day"]["used"] == 75.0


def test_the_prices_that_are_left_are_admitted_and_larger_ones_are_not(tmp_path: Path) -> None:
    with curator(tmp_path, analysts=ANALYSTS) as one:
        one.ask(COUNT, epsilon="0.2", analyst="ana")
        state = one.budget.analysts["ana"]
        assert state.prices["questions"] == "0.3"
        assert 0 < Fraction(state.prices["publishing"]) < Fraction(1, 2)
        assert state.whole == {"epsilon": "3", "delta": "1e-6", "used": one.budget.used}
        assert one.budget.whole is None
        larger = Fraction(state.prices["questions"]) + Fraction(1, 10**6)
        with pytest.raises(BudgetError):
            one.ask("SELECT SUM(v) AS s FROM t", epsilon=larger, analyst="ana")
        one.ask("SELECT SUM(v) AS s FROM t", epsilon=state.prices["questions"], analyst="ana")
        assert one.budget.analysts["ana"].prices == {"questions": "0", "publishing": "0"}
