"""Torn questions: an answer, or a refusal that says where and what to write instead; no crash, no words of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asked_data import Asked, opened
from asked_tools import suites
from kinds import some
from torn_questions import came, torn

QUESTIONS = [one for questions in suites().values() for one in questions if one.data == "shop"]
EACH = 250


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    made = opened("shop", tmp_path_factory.mktemp("shop"))
    yield made
    made.close()


@pytest.mark.parametrize("start", some(range(0, 10_000, EACH), pytest.mark.power))
def test_a_torn_question_is_answered_or_refused(shop: Asked, start: int) -> None:
    """A question that fails would freeze the tables for those behind it, so the first ends the test."""
    answered = refused = 0
    for seed in range(start, start + EACH):
        question = torn(seed, QUESTIONS)
        found = came(shop, question)
        assert not found.fault, f"{seed}: {question.text!r}: {found.fault}"
        answered += found.answered
        refused += not found.answered
    assert answered + refused == EACH
    assert answered > 2
    assert refused > 50
