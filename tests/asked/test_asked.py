"""Questions as people and tools write them: each is answered as plain SQL does, or refused in a way that mends it.
What is not so yet stands in not_yet.txt, with what comes instead; whatever else comes fails here, the better too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asked_data import Asked, opened
from asked_tools import EQUAL, PAGE, STATES, Question, in_page, judged, not_yet, suites, table, truth

EVERY = suites()
FLAT = [one for questions in EVERY.values() for one in questions]
LATER = not_yet()


class Opened:
    """The data of the suites, each opened when it is first asked."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._open: dict[str, Asked] = {}

    def __getitem__(self, data: str) -> Asked:
        if data not in self._open:
            self._open[data] = opened(data, self._factory.mktemp(data))
        return self._open[data]

    def close(self) -> None:
        for one in self._open.values():
            one.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    made = Opened(tmp_path_factory)
    yield made
    made.close()


@pytest.mark.parametrize("question", FLAT, ids=[one.id for one in FLAT])
def test_a_question(data: Opened, question: Question) -> None:
    outcome = judged(data[question.data], question)
    expected = LATER.get(question.id, question.wanted)
    if outcome.state == question.wanted != expected:
        pytest.fail(
            f"{question.id} is as it should be: run `python -m tests.asked --write`, which takes it off the list"
        )
    assert outcome.state == expected, outcome.told


def test_there_are_at_least_three_hundred() -> None:
    assert len(FLAT) >= 300


def test_what_is_listed_is_a_question_that_should_be_otherwise() -> None:
    wanted = {one.id: one.wanted for one in FLAT}
    assert not set(LATER) - set(wanted)
    assert not [name for name, state in LATER.items() if state not in STATES or state == wanted[name]]


def test_plain_sql_answers_each_with_some_rows(data: Opened) -> None:
    """An empty answer would be equal to many."""
    assert not [one.id for one in FLAT if one.wanted == EQUAL and not truth(data[one.data].plain, one)]


def test_the_page_shows_the_table() -> None:
    """What the runner prints, from what the tests above hold."""
    made = table(EVERY, {one.id: LATER.get(one.id, one.wanted) for one in FLAT})
    assert PAGE.read_text("utf-8") == in_page(made)
