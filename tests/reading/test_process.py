"""The process that reads texts: what crosses, what its limits stop, and that another takes its place."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Iterator

import pytest

from discreet.errors import QuestionError
from discreet.reading import Reading
from discreet.sql.grammar import parse
from discreet.sql.trees import read, written
from reading_tools import HOSTILE, declaration

QUESTION = "SELECT g, COUNT(*) AS n FROM t WHERE v > 1 GROUP BY g"


class Misbehaving(Reading):
    """With a child that does what a text in the wrong hands might have it do."""

    _program = "misbehaving"


@pytest.fixture(scope="module")
def reading() -> Iterator[Reading]:
    one = Misbehaving(declaration())
    yield one
    one.close()


def test_the_tree_is_the_one_that_the_parser_makes(reading: Reading) -> None:
    assert repr(reading.tree(QUESTION)) == repr(parse(QUESTION))


def test_a_refusal_is_the_same_as_without_the_process(reading: Reading) -> None:
    for name in ("types in types", "45,000 brackets", "500 aggregates", "joins that double"):
        with pytest.raises(QuestionError) as refused:
            reading.tree(HOSTILE[name])
        assert refused.value.fix


@pytest.mark.parametrize("text", ["endless", "memory", "die"])
def test_limits_stop_it_and_another_takes_its_place(reading: Reading, text: str) -> None:
    with pytest.raises(QuestionError, match="too long, or too much memory"):
        reading.tree(text)
    assert reading.tree(QUESTION).sql()


@pytest.mark.parametrize(
    "answer",
    [
        "None",
        "[]",
        "[['Select', 'expressions']]",
        "[['Nothing']]",
        "[['__class__']]",
        "[['Star'], ['Star']]",
        "[['Count', 'this', {'node': 0}]]",
        "[['Star'], ['And', 'this', {'node': 0}, 'expression', {'node': 0}]]",
        "[['Star'], ['And', 'this', {'node': -1}]]",
        "[['Star', 'this', {'type': '__class__'}]]",
        "[['Star', 'this', {'call': 'print'}]]",
        "[['Star', 'this', [[1]]]]",
        "[['Star', 1, 2]]",
        "[['Star', 'this', 1.5]]",
    ],
)
def test_an_answer_that_is_no_tree_is_refused(reading: Reading, answer: str) -> None:
    with pytest.raises(QuestionError, match="cannot be read"):
        reading.tree(f"nonsense:{answer}")


def test_an_answer_that_stands_for_too_much_is_refused_again(reading: Reading) -> None:
    rows = "[['Star'] for _ in range(30000)] + [['Tuple', 'expressions', [{'node': i} for i in range(30000)]]]"
    with pytest.raises(QuestionError, match="more than"):
        reading.tree(f"nonsense:{rows}")


def test_nothing_but_declarations_and_texts_goes_there() -> None:
    one = Reading(declaration())
    sent = one._declaration
    assert sent.ledger is sent.file is None
    assert all(table.source.path is table.source.frame is None for table in sent.tables.values())
    assert b"t.csv" not in pickle.dumps(sent)


def test_a_forked_process_starts_its_own(reading: Reading) -> None:
    """Also where another thread was waiting for an answer when it was forked."""
    assert reading.tree(QUESTION).sql()
    with reading._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if reading.tree(QUESTION).sql() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert reading.tree(QUESTION).sql()


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "SELECT CAST(n AS DOUBLE), d + INTERVAL 1 DAY, EXTRACT(YEAR FROM d) FROM t JOIN u USING (p) WHERE NOT v IN (1)",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = .1) SUM(v, contribution_bounds_per_row => (0, 1)) FROM t",
        "WITH a AS (SELECT p FROM t UNION ALL SELECT p FROM t) SELECT COUNT(DISTINCT p) FILTER (WHERE TRUE) FROM a",
    ],
)
def test_trees_come_back_as_they_were(text: str) -> None:
    tree = parse(text)
    assert repr(read(json.loads(json.dumps(written(tree))))) == repr(tree)
