"""Publishing after questions, what is kept for it, and what is said before it ends."""

from __future__ import annotations

import logging
import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import Curator, Table
from discreet.errors import BudgetError, DeclarationError
from face_tools import Command
from kinds import DATA

COUNT = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def curator(tmp_path: Path, **said: object) -> Curator:
    path = tmp_path / "t.csv"
    path.write_text("g,v\n" + "a,1\nb,0\n" * 50)
    table = Table(path, one_row_per_person=True, columns={"g": ["a", "b"], "v": (0, 1)})
    return Curator({"t": table}, epsilon=3, delta="1e-6", **said)  # type: ignore[arg-type]


def price(refused: BudgetError) -> tuple[Fraction, Fraction]:
    epsilon, delta = refused.fits.removeprefix("a price of at most ε ").split(" and δ ")
    return Fraction(epsilon), Fraction(delta)


def test_a_table_is_published_after_large_questions_and_a_refusal_says_at_which_price(tmp_path: Path) -> None:
    with curator(tmp_path) as one:
        one.ask(COUNT, epsilon="0.5")
        one.ask(COUNT, epsilon="0.56")
        assert "or ε 1.6 in published tables" in one.budget.left
        for call in (one.publish, lambda *a, **s: one.fit(*a, target="v", steps=5, **s)):
            with pytest.raises(BudgetError) as refused:
                call("t", epsilon=2)
            epsilon, delta = price(refused.value)
            assert epsilon == Fraction("1.6")
        with pytest.raises(BudgetError) as refused:
            one.ask(COUNT, epsilon="2.99")
        assert refused.value.fits.startswith("a price of at most ε 1.94")
        release = one.publish("t", epsilon=float(epsilon), delta=float(delta), method="independent")
        assert release.left == "left: either ε 0.065 in questions or ε 0.53 in published tables"


def test_what_is_kept_for_publishing(tmp_path: Path) -> None:
    with curator(tmp_path, reserve={"publish": 1}) as one:
        assert one.left(COUNT, epsilon="0.1") == 34
        with pytest.raises(BudgetError, match="kept for publishing") as refused:
            one.ask(COUNT, epsilon=2)
        fits = Fraction(refused.value.fits.removeprefix("a price of at most ε "))
        assert fits == Fraction("1.875")
        with pytest.raises(BudgetError, match="kept for publishing"):
            one.fit("t", target="v", epsilon="2.8", steps=5)
        release = one.ask(COUNT, epsilon=str(float(fits)))
        assert "of it ε 1 is kept for publishing" in repr(release)
        with pytest.raises(BudgetError):
            one.ask(COUNT.replace("GROUP", "WHERE v > 0 GROUP"), epsilon="0.01")
        one.publish("t", epsilon=1, method="independent")


@pytest.mark.parametrize("kept", [{"publish": 4}, {"publish": 0}, {"tables": 1}, {}, 1])
def test_what_cannot_be_kept(tmp_path: Path, kept: object) -> None:
    with pytest.raises(DeclarationError) as wrong:
        curator(tmp_path, reserve=kept)
    assert wrong.value.where.startswith("reserve")


def test_a_charge_that_ends_publishing_is_told_before_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with curator(tmp_path) as one, caplog.at_level(logging.WARNING, "discreet"):
        assert one.explain(COUNT, epsilon="0.5").after == "left: either ε 2.5 in questions or ε 2 in published tables"
        said = "tables can be published with at most ε 0.69, not 3"
        assert one.explain(COUNT, epsilon=2).after.endswith(said)
        one.ask(COUNT, epsilon="0.5")
        assert caplog.messages == []
        one.ask(COUNT, epsilon="1.6")
        assert caplog.messages == ["once this is charged, tables can be published with at most ε 0.69, not 2"]


def test_an_older_ledger_says_so_and_is_renewed_with_the_promise_said(clinic: Path, cli: Command) -> None:
    old = DATA / "version-2.ledger"
    shutil.copy(old, clinic.with_suffix(".ledger"))
    clinic.write_text(re.sub(r"(?m)^epsilon = .*$", "epsilon = 5.0", clinic.read_text("utf-8"), count=1), "utf-8")
    before = cli("ledger", clinic, "--verify")
    assert before.code == 0
    assert "`discreet ledger --renew-filters`" in before.out
    said = cli("ledger", clinic, "--renew-filters", "--verify")
    assert said.code == 0
    assert said.out.startswith("the budget: new filters; everything together is now ε 5 δ 1.9e-6\n")
    assert "of ε 5, δ 1.9e-6 used" in said.out
    assert "`discreet ledger --renew-filters`" not in said.out
    assert cli("ledger", clinic, "--renew-filters").out.startswith("no filters to renew")
