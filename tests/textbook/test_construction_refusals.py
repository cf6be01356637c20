"""Bad input, what is shown of private data, and runs that cannot be copied."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from construction_tools import boosted, prefixes, queries, universe
from discreet.errors import QuestionError
from discreet.reference.draws import ExponentialDraws, PublicDraws
from discreet.textbook import (
    ArbitraryQueries,
    BaseGenerator,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    LinearQueries,
    MultiplicativeWeightsExponential,
    OnlineMultiplicativeWeights,
    SmallDatabase,
    Universe,
)

KIND = "exact"

TWO = prefixes(2)
PRICE = {"epsilon": 1, "beta": "0.1"}
SIZES = ArbitraryQueries(universe(2), [sum], rho=1)

REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("elements", lambda: Universe([]), "at least one"),
    ("elements", lambda: Universe("aba"), "twice"),
    ("elements", lambda: Universe([[1]]), "hashable"),  # type: ignore[list-item]
    ("counts", lambda: Database(universe(2), [1]), "one count for each"),
    ("counts", lambda: Database(universe(2), [1, -1]), "negative"),
    ("counts", lambda: Database(universe(2), [1, 1.5]), "whole"),
    ("counts", lambda: Database(universe(2), [1, math.nan]), "whole"),
    ("counts", lambda: Database(universe(2), [True, 1]), "whole"),
    ("counts", lambda: Database(universe(2), [2**63, 1]), "2^50"),
    ("rows", lambda: Database.of(Universe("ab"), "abc"), "not in the universe"),
    ("rows", lambda: Database.of(Universe("ab"), [["a"]]), "not in the universe"),  # type: ignore[list-item]
    ("matrix", lambda: LinearQueries(universe(2), []), "at least one"),
    ("matrix", lambda: LinearQueries(universe(2), [[1, 0, 1]]), "one cell for each"),
    ("matrix", lambda: LinearQueries(universe(2), [[1, 2]]), "only zeros and ones"),
    ("matrix", lambda: LinearQueries(universe(2), [3]), "at least one"),  # type: ignore[list-item]
    ("matrix", lambda: LinearQueries(universe(5_001), [range(5_001)] * 2), "only zeros and ones"),
    ("matrix", lambda: LinearQueries(universe(5_000), [[1] * 5_000] * 1_001), "5,005,000 cells"),
    ("functions", lambda: ArbitraryQueries(universe(2), [], rho=1), "at least one"),
    ("functions", lambda: ArbitraryQueries(universe(2), [lambda _: 0.5], rho=1).answers([1, 2]), "whole number"),  # type: ignore[list-item,return-value]
    ("rho", lambda: ArbitraryQueries(universe(2), [sum], rho=0), "above 0"),
    ("rho", lambda: ArbitraryQueries(universe(2), [sum], rho=math.inf), "above 0"),
    ("step", lambda: ArbitraryQueries(universe(2), [sum], rho=1, step="x"), "above 0"),
    ("epsilon", lambda: LinearProgram(queries=TWO, delta=0, epsilon=0, beta="0.1"), "above 0"),
    ("epsilon", lambda: LinearProgram(queries=TWO, delta=0, epsilon=math.nan, beta="0.1"), "above 0"),
    ("epsilon", lambda: LinearProgram(queries=TWO, delta=0, epsilon="1e-30", beta="0.1"), "10^-9"),
    ("epsilon", lambda: LinearProgram(queries=TWO, delta=0, epsilon=10**9, beta="0.1"), "10^6"),
    ("delta", lambda: LinearProgram(queries=TWO, delta=1, **PRICE), "from 0 and below 1"),
    ("delta", lambda: LinearProgram(queries=TWO, delta=-1, **PRICE), "from 0 and below 1"),
    ("beta", lambda: LinearProgram(queries=TWO, delta=0, epsilon=1, beta=1), "below 1"),
    ("beta", lambda: LinearProgram(queries=TWO, delta=0, epsilon=1, beta="1e-20"), "10^-12"),
    ("queries", lambda: LinearProgram(queries=SIZES, delta=0, **PRICE), "counting"),
    ("queries", lambda: FractionalGenerator(queries=SIZES, delta=0, alpha="0.1", **PRICE), "counting"),
    ("queries", lambda: SmallDatabase(queries=SIZES, alpha="0.1", **PRICE), "counting"),
    ("queries", lambda: MultiplicativeWeightsExponential(queries=SIZES, rounds=2, **PRICE), "counting"),
    ("alpha", lambda: FractionalGenerator(queries=TWO, delta=0, alpha="0.0001", **PRICE), "rows"),
    ("alpha", lambda: FractionalGenerator(queries=TWO, delta=0, alpha=1, **PRICE), "below 1"),
    ("runs", lambda: FractionalGenerator(queries=TWO, delta=0, alpha="0.1", runs=0, **PRICE), "from 1"),
    ("most_rows", lambda: BaseGenerator(queries=prefixes(4), delta=0, most_rows=1000, **PRICE), "databases would have"),
    ("most_rows", lambda: BaseGenerator(queries=queries(300, 2), delta=0, most_rows=10**6, **PRICE), "about 10^"),
    ("most_rows", lambda: BaseGenerator(queries=TWO, delta=0, most_rows=0, **PRICE), "from 1"),
    ("most_rows", lambda: BaseGenerator(queries=TWO, delta=0, most_rows=2.0, **PRICE), "whole"),
    ("alpha", lambda: SmallDatabase(queries=prefixes(9), alpha="0.01", **PRICE), "databases would have"),
    ("rounds", lambda: MultiplicativeWeightsExponential(queries=TWO, rounds=0, **PRICE), "from 1"),
    ("alpha", lambda: OnlineMultiplicativeWeights(universe=universe(3), questions=9, alpha="1e-4", **PRICE), "updates"),
    ("questions", lambda: OnlineMultiplicativeWeights(universe=universe(3), questions=0, alpha="0.1", **PRICE), "from"),
    (
        "generator",
        lambda: Boosting(FractionalGenerator(queries=TWO, delta=0, alpha="0.3", **PRICE), 1),
        "need 3 rounds",
    ),
    (
        "database",
        lambda: LinearProgram(queries=TWO, delta=0, **PRICE).release(Database(universe(3), [0, 0, 1])),
        "different universes",
    ),
    ("rows", lambda: LinearProgram(queries=TWO, delta=0, **PRICE).bound(-1), "from 0"),
    (
        "distribution",
        lambda: FractionalGenerator(queries=TWO, delta=0, alpha="0.3", **PRICE).release(
            Database(universe(2), [1, 1]), [0, 0]
        ),
        "one weight for each",
    ),
]


@pytest.mark.parametrize(("where", "call", "words"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_with_its_place_and_a_remedy(where: str, call: Callable[[], object], words: str) -> None:
    with pytest.raises(QuestionError) as refusal:
        call()
    assert refusal.value.where == where
    assert words in refusal.value.message
    assert refusal.value.fix


def test_a_search_that_cannot_finish_says_how_many_databases_it_would_look_at() -> None:
    with pytest.raises(QuestionError, match=r"42,084,793,751 databases would have to be looked at"):
        BaseGenerator(queries=prefixes(4), delta=0, most_rows=1000, **PRICE)


def test_no_representation_shows_a_count() -> None:
    database = Database(universe(2), [4321, 8765])
    run = OnlineMultiplicativeWeights(universe=universe(2), questions=3, alpha="0.5", **PRICE).open(database)
    for thing in (database, run, TWO, SIZES, universe(2), LinearProgram(queries=TWO, delta=0, **PRICE)):
        assert not {"4321", "8765", "13086"} & set(repr(thing).replace(",", "").split())


def test_a_run_is_used_once_by_one_process() -> None:
    construction = OnlineMultiplicativeWeights(universe=universe(2), questions=2, alpha="0.5", epsilon=1, beta="0.1")
    run = construction.open(Database(universe(2), [5, 5]))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(run)
    with pytest.raises(QuestionError, match="another universe"):
        construction.open(Database(universe(3), [1, 1, 1]))
    for bad in ([1], [1, 2], 7, None, [0.5, 1]):
        with pytest.raises(QuestionError):
            run.ask(bad)  # type: ignore[arg-type]
    assert run.asked == 0
    while not run.ended:
        run.ask([1, 0])
    with pytest.raises(QuestionError, match="has ended"):
        run.ask([1, 0])
    other = construction.open(Database(universe(2), [5, 5]))
    other._process = -1
    with pytest.raises(QuestionError, match="another process"):
        other.ask([1, 0])


def test_numbers_are_taken_as_written() -> None:
    construction = LinearProgram(queries=TWO, epsilon=0.1, delta="1e-6", beta=0.05)
    assert construction.epsilon == Fraction(1, 10)
    assert construction.beta == Fraction(1, 20)
    assert hash(construction.epsilon)


def test_unicode_names_numpy_counts_and_predicates() -> None:
    names = Universe(["да", "нет", "🙂"])
    database = Database.of(names, ["🙂", "да", "🙂"])
    assert database == Database(names, np.array([1, 0, 2]))
    of = LinearQueries.where(names, [lambda name: name == "🙂", lambda name: name != "🙂"])
    assert of.answers(database.counts) == [2, 1]


def test_explanations_name_theorem_price_and_verdict() -> None:
    text = LinearProgram(queries=TWO, epsilon=1, delta=0, beta="0.1").explain(10)
    assert "Theorem 6.7" in text
    assert "epsilon 1" in text
    assert "says nothing at this size" in text
    assert "says nothing" not in LinearProgram(queries=TWO, epsilon=1, delta=0, beta="0.1").explain(10**6)
    assert "Theorem 6.1" in boosted(FractionalGenerator, TWO, 1, "1e-6", alpha="0.3").explain(10)


def test_draws_refuse_what_are_no_weights() -> None:
    for weights in ([], [-1, 2], [0.5, 1], [True, 1]):
        with pytest.raises(ValueError, match="integers"):
            PublicDraws(1).release(weights)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="above 0"):
        PublicDraws(1).release([0, 0])
    for make in (lambda: PublicDraws(-1), lambda: ExponentialDraws(Fraction(1), draws=-1)):
        with pytest.raises(ValueError, match="negative"):
            make()
    assert PublicDraws(0).release([1]) == []
