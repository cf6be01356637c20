"""An error says what to write instead, in the words of whoever reads it: SQL, TOML or Python."""

from __future__ import annotations

import concurrent.futures
import copy
import datetime
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet import (
    BudgetError,
    Curator,
    DeclarationError,
    EngineError,
    Error,
    LedgerError,
    QuestionError,
    SessionError,
    Table,
)
from discreet.errors import Fault

FRAME = pd.DataFrame({"age": [1, 2], "smoker": [True, False], "born": pd.to_datetime(["2020-01-01"] * 2)})
COLUMNS: dict[str, Any] = {"age": {"type": "integer", "min": 0, "max": 99}, "smoker": bool, "born": datetime.date}


def whole(**said: Any) -> Table:
    return Table(FRAME, **({"columns": COLUMNS, "one_row_per_person": True} | said))


@pytest.mark.parametrize(
    ("question", "fix"),
    [
        ("PERCENTILE(age, 0.9)", "write PERCENTILE_CONT(age, 0.5), with a share from 0 to 1"),
        ("COUNT(*) AS n, HISTOGRAM(age)", "write SELECT HISTOGRAM(age) … by itself, or beside what is grouped by"),
        ("COUNTIF(born > 2020)", "write a date as '2020-01-31', or compare EXTRACT(YEAR FROM date) with 2020"),
        ("COUNTIF(smoker = 2)", "compare with TRUE or FALSE"),
        ('COUNTIF(born > "2020-01-01")', "a text or date is written in single quotes: '2020-01-01'; for a column, "),
    ],
)
def test_what_is_written_instead(question: str, fix: str) -> None:
    with Curator({"p": whole()}, epsilon=1) as curator:
        with pytest.raises(QuestionError) as refused:
            curator.explain(f"SELECT {question} AS x FROM p", epsilon=1)
        assert refused.value.fix.startswith(fix)
        for remedy in ("COUNTIF(smoker) / COUNT(*)", "STDDEV_SAMP(age)", "SUM(DIV(age, 10))"):
            curator.explain(f"SELECT {remedy} AS x FROM p", epsilon=1)


def test_an_analyst_is_not_told_to_declare() -> None:
    with Curator({"p": whole()}, epsilon=1) as curator:
        for question in (
            "SELECT COUNT(*) FROM p a JOIN p b ON a.age = b.age",
            "SELECT COUNT(*) FROM (SELECT age FROM p UNION ALL SELECT age FROM p)",
        ):
            with pytest.raises(QuestionError) as refused:
                curator.explain(question, epsilon=1)
            assert not refused.value.fix.startswith("declare")


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (
            lambda: Curator({"p": FRAME}, epsilon=1),
            "write discreet.Table(source, columns={…}, one_row_per_person=True)",
        ),
        (lambda: Curator({"p": "a.csv"}, epsilon=1), "write discreet.Table("),
        (lambda: Curator([whole()], epsilon=1), 'write Curator({"people": discreet.Table('),  # type: ignore[arg-type]
        (lambda: Curator({}, epsilon=1), 'write Curator({"people": discreet.Table('),
        (lambda: Curator({"p": whole(columns=["age"])}, epsilon=1), 'write columns={"age": (17, 90), "sex": str}'),
        (lambda: Curator({"p": whole(columns={"age": "string"})}, epsilon=1), "write text"),
        (lambda: Curator({"p": whole(columns={"age": "int64"})}, epsilon=1), "write integer"),
        (
            lambda: Curator({"p": Table(FRAME, columns=COLUMNS)}, epsilon=1),
            'write one_row_per_person=True, or person="COLUMN"',
        ),
        (
            lambda: Curator({"p": Table(FRAME, columns=COLUMNS, person="age")}, epsilon=1),
            "leave out min and max of age",
        ),
        (
            lambda: Curator({"p": Table(FRAME, columns={"age": int}, person="age")}, epsilon=1),
            "write rows_per_person=20, the maximum of rows counted per person; or one_row_per_person=True",
        ),
        (
            lambda: Curator({"p": Table(FRAME, columns={"age": int}, person="id", rows_per_person=2)}, epsilon=1),
            'write columns={"id": {"type": "text"}}',
        ),
        (
            lambda: Curator({"p": whole(columns={"born": {"type": "date", "min": "2020-01-01"}})}, epsilon=1),
            "write it without quotes, datetime.date(2020, 1, 31)",
        ),
        (lambda: Curator({"p": whole()}, epsilon=1, analysts=["ana"]), 'write analysts={"ana": 0.5}'),  # type: ignore[arg-type]
    ],
)
def test_faults_in_python_are_told_in_python(make: Callable[[], Any], fix: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        make()
    assert refused.value.faults[0].fix.startswith(fix)
    assert "[tables" not in str(refused.value)
    assert " = " not in str(refused.value)


def test_a_quoted_date_and_another_word_for_text_in_toml(tmp_path: Path) -> None:
    from discreet import open as opened

    text = '[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nperson = "a"\n[tables.t.columns]\n'
    text += 'a = { type = "string" }\nb = { type = "date", min = "2020-01-01" }\n'
    (tmp_path / "t.toml").write_text(text, "utf-8")
    with pytest.raises(DeclarationError) as refused:
        opened(tmp_path / "t.toml")
    assert {fault.fix for fault in refused.value.faults} == {
        "write text",
        "write it without quotes, 2020-01-31",
        "write rows_per_person = 20, the maximum of rows counted per person; or one_row_per_person = true",
    }


def test_a_question_that_is_no_text() -> None:
    with Curator({"p": whole()}, epsilon=1) as curator, pytest.raises(QuestionError, match="is not a string"):
        curator.ask(3, epsilon=1)  # type: ignore[arg-type]


EVERY_KIND: dict[str, Error] = {
    "question": QuestionError("price", "no price is named", where="epsilon", fix="name one"),
    "declaration": DeclarationError([Fault("a", "b", "c"), Fault("d", "e", "f")], file="t.toml"),
    "budget": BudgetError("too much", asked="1", left="0.5", fits="ask for less"),
    "ledger": LedgerError.of("raised", account="", known=None, wanted=None),
    "session": SessionError.told("session", "somebody has left", fix="begin again"),
    "engine": EngineError.told("engine", "it stopped", fix="ask again"),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy], ids=["pickle", "copy"])
def test_an_error_is_the_same_in_another_process(kind: str, copied: Callable[[Error], Error]) -> None:
    error = EVERY_KIND[kind]
    again = copied(error)
    assert type(again) is type(error)
    assert (str(again), again.args, again.to_dict(), vars(again)) == (
        str(error),
        error.args,
        error.to_dict(),
        vars(error),
    )


def _raises() -> None:
    raise EVERY_KIND["budget"]


def test_a_pool_of_processes_hands_on_an_error() -> None:
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        with pytest.raises(BudgetError, match="too much"):
            pool.submit(_raises).result(60)
        assert pool.submit(int, 1).result(60) == 1
