"""Asking for an error instead of a price: absolute, relative, of a mean, for one cell or for all at once."""

from __future__ import annotations

import math
from typing import Any

import pandas
import pytest

import discreet
from discreet.accounting import Approximate, Gaussian, Pure
from discreet.odds import best_guess, best_guess_of_budget


def made() -> discreet.Curator:
    frame = pandas.DataFrame({"age": [20, 30, 40] * 40, "sex": ["f", "m"] * 60, "town": ["x"] * 120})
    columns = {"age": (0, 100), "sex": {"values": ["f", "m"], "nulls": False}, "town": str}
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    return discreet.Curator({"t": table}, epsilon=10**7, delta="1e-6")


@pytest.fixture(scope="module")
def curator() -> Any:
    with made() as curator:
        yield curator


QUESTION = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY sex"


def price(curator: Any, **wanted: Any) -> float:
    explained = curator.explain(QUESTION, **wanted)
    asked = curator.ask(QUESTION, **wanted)
    assert asked.cost == explained.price or not asked.charged  # what was measured before may be more precise
    return float(explained.price.epsilon)


def test_relative_errors_are_absolute_ones_at_a_size(curator: Any) -> None:
    assert price(curator, within={"n": "5 % of 2000"}) == price(curator, within={"n": 100})
    assert price(curator, within={"n": "5% of 2000"}) == price(curator, within={"n": "100"})


@pytest.mark.power
def test_a_mean_is_as_exact_as_its_group_is_large(curator: Any) -> None:
    default = price(curator, within={"a": 1})
    assert price(curator, within={"a": "1 of 1000"}) == default
    assert price(curator, within={"a": "1 of 250"}) == pytest.approx(4 * default, rel=0.01)
    explained = curator.explain(QUESTION, within={"a": 1})
    assert 0.9 <= explained.expected_error["a"] <= 1


def test_the_size_of_group_that_is_assumed_is_said_beforehand(curator: Any, caplog: Any) -> None:
    words = "a is priced for groups of at least 1,000 values, because no size is given"
    for question in (QUESTION, "SELECT VARIANCE(age) AS a FROM t"):
        explained = curator.explain(question, within={"a": 3})
        assert explained.advice[0].startswith(words)
        assert '"a=3 of 5000"' in repr(explained)
        asked = explained.advice[0].partition("as in ")[2].strip('"').partition("=")[2]
        assert curator.explain(question, within={"a": asked}).price.epsilon < explained.price.epsilon
        for named in ({"a": "3 of 200"}, {"a": "3 of 1000"}):
            assert words not in repr(curator.explain(question, within=named))
    assert words not in repr(curator.explain(QUESTION, within={"n": 5}))
    assert words not in repr(curator.explain(QUESTION, epsilon=1))
    caplog.clear()
    curator.ask(QUESTION, within={"a": 3})
    assert words in caplog.text
    caplog.clear()
    curator.ask(QUESTION, within={"a": "3 of 2000"})
    assert words not in caplog.text


def test_confidence_and_all_cells_at_once_cost_more(curator: Any) -> None:
    one = price(curator, within={"n": 100})
    together = price(curator, within={"n": 100}, together=True)
    sure = price(curator, within={"n": 100}, confidence=0.99)
    assert one < together < sure  # 4 cells: 1.25 % each, between 5 % and 1 %
    with made() as fresh:  # in which nothing was measured before that an answer could be made of
        bits = {name: fresh.ask(QUESTION, within={"n": 100}, **more) for name, more in
                {"single": {}, "joint": {"together": True}}.items()}  # fmt: skip
    low, high = bits["joint"].simultaneous()[0]["n"]
    assert high - low <= 201
    low, high = bits["single"].intervals[0]["n"]
    assert 195 <= high - low <= 201


def test_how_many_like_it_fit(curator: Any) -> None:
    assert curator.left(QUESTION, within={"n": 100}) == curator.left(
        QUESTION, epsilon=curator.explain(QUESTION, within={"n": 100}).price.epsilon
    )


def test_wishes_that_are_none(curator: Any) -> None:
    for wrong in ({"confidence": 1}, {"confidence": 0}, {"confidence": "sure"}):
        with pytest.raises(discreet.QuestionError):
            curator.explain(QUESTION, within={"n": 5}, **wrong)
    with pytest.raises(discreet.QuestionError) as refused:
        curator.explain("SELECT town, COUNT(*) AS n FROM t GROUP BY town", within={"n": 50}, together=True)
    assert refused.value.where == "together"


def test_odds() -> None:
    """Enumerated for randomised response; the normal distributions' from their definition."""
    assert best_guess(Pure(math.log(3))) == pytest.approx(0.75, rel=1e-9)
    assert best_guess(Gaussian(2)) == pytest.approx(0.8413447460685429, rel=1e-9)
    assert best_guess(Approximate(0, "0.2")) == pytest.approx(0.6)
    assert best_guess(Pure(0)) == pytest.approx(0.5)
    assert best_guess(Pure(10**6)) == best_guess(Gaussian(10**6)) == 1
    chances = [best_guess(Pure(e)) for e in (0.01, 0.1, 1, 5)]
    assert chances == sorted(chances)
    assert best_guess_of_budget(Pure(1).epsilon, Approximate(0, "0.5").delta) == pytest.approx(
        (math.e + 0.5) / (math.e + 1)
    )


def test_explain_says_the_odds(curator: Any) -> None:
    explained = curator.explain(QUESTION, epsilon=1)
    assert explained.odds == pytest.approx(1 / (1 + math.exp(-1)), abs=0.003)
    assert "73.2 % of the time after this" in repr(explained) or "73.1 % of the time after this" in repr(explained)
    assert explained.to_dict()["odds_of_budget"] == 1
