"""The least price of a measurement: refused below it, in words that mend; never undercut by a wanted error."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pandas
import pytest

import discreet
from discreet import Curator, DeclarationError, QuestionError
from discreet.accounting import Filter, Gaussian
from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.least import Least

ROWS = pandas.DataFrame({"p": range(30), "age": range(30), "sex": ["a", "b"] * 15})
COLUMNS = {"p": int, "age": {"type": "integer", "min": 0, "max": 99}, "sex": ["a", "b"]}
LEAST = "0.0001"


def curator(**said: Any) -> Curator:
    tables = {"t": discreet.Table(ROWS, columns=COLUMNS, person="p", rows_per_person=3)}
    return Curator(tables, **{"epsilon": 1, "delta": 1e-6, **said})


@pytest.fixture(scope="module")
def holder() -> Iterator[Curator]:
    with curator() as made:
        yield made


@pytest.mark.parametrize(
    "select",
    [
        "COUNT(*)",
        "COUNT(DISTINCT p)",
        "SUM(age)",
        "AVG(age), COUNT(*)",
        "VARIANCE(age)",
        "MEDIAN(age)",
        "SUM(p), MIN(p)",
    ],
)
def test_what_is_named_as_the_least_is_enough(holder: Curator, select: str) -> None:
    for question in (f"SELECT {select} FROM t", f"SELECT sex, {select} FROM t GROUP BY sex"):
        assert holder.explain(question, epsilon=LEAST).price["epsilon"] == 0.0001
        for act in (holder.explain, holder.ask, holder.left):
            with pytest.raises(QuestionError) as refused:
                act(question, epsilon="0.00009")
            assert (refused.value.code, refused.value.fix) == ("price", f"write epsilon = {LEAST}, or more")
    assert holder.budget.used == 0


def test_gaussian_noise_has_a_least_price_too() -> None:
    """The same share of the budget's μ² as of its ε."""
    budget = Filter(1, "1e-6", "1e-7")
    least = Least.of(budget, None)
    share = sqrt_ceiling(budget.mu_squared / 10_000)
    assert least.admits(Gaussian(share))
    with pytest.raises(QuestionError, match="this Gaussian noise costs less"):
        least.check(Gaussian(share * Fraction(98, 100)))


def test_what_no_filter_admits_is_left_to_the_filter() -> None:
    """Gaussian noise of a budget without a δ: nothing is its least price."""
    budget = Filter(1, 0)
    assert budget.mu_squared == 0
    assert Least.of(budget, None).admits(Gaussian(Fraction(1, 100)))
    assert not budget.admits(Gaussian(Fraction(1, 100)))


def test_procedures_have_it(holder: Curator) -> None:
    cheap = {"epsilon": "0.00001"}
    for act in (
        lambda: holder.select("SELECT sex, COUNT(*) FROM t GROUP BY sex", **cheap),
        lambda: holder.above_threshold(5, **cheap),
        lambda: holder.answer(discreet.Workload("t").all_marginals(1), delta=0, **cheap),
        lambda: holder.sample_and_aggregate(len, "t", low=0, high=9, blocks=3, **cheap),
    ):
        with pytest.raises(QuestionError) as refused:
            act()
        assert refused.value.code == "price"
    assert [entry.kind for entry in holder.ledger.entries()][-1] == "snapshot"


def test_a_wanted_error_never_names_less(holder: Curator) -> None:
    question = "SELECT COUNT(*) AS n FROM t"
    explained = holder.explain(question, within={"n": 10**9})
    assert explained.price["epsilon"] == pytest.approx(0.0001, rel=0.011)
    assert "this is the least price: a larger error costs the same" in repr(explained)
    assert "least price" in repr(holder.ask(question, within={"n": 10**9}))
    assert "least price" not in repr(holder.explain(question, within={"n": 1000}))


def test_it_is_declared() -> None:
    with curator(least="0.01") as one, pytest.raises(QuestionError, match=r"write epsilon = 0\.01, or more"):
        one.explain("SELECT COUNT(*) FROM t", epsilon="0.005")
    with pytest.raises(DeclarationError, match="larger than the whole budget"):
        curator(least=2)
