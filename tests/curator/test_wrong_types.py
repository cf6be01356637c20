"""Whatever is handed over, what is wrong with it is said by an error of the closed list, never from deep inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet import Curator, Error, QuestionError, Table, Workload

WRONG: tuple[Any, ...] = (3, 2.5, b"x", [], [1], {1: 2}, {"a": object()}, object(), "wrong", -1, float("nan"))
FRAME = pd.DataFrame({"id": range(40), "sex": ["f", "m"] * 20, "age": [place % 90 for place in range(40)]})
PEOPLE: dict[str, Any] = {"columns": {"id": int, "sex": ["f", "m"], "age": (0, 99)}, "one_row_per_person": True}
GROUPS, ONE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "SELECT COUNT(*) AS n FROM people"
MADE_HERE = {"Explanation", "Release", "RemoteCurator"}
"""Nobody makes them but the curator, and `connect`."""


def made(**given: Any) -> None:
    Curator({"people": Table(**given)}, epsilon=1).close()


def opened(**given: Any) -> None:
    Curator(**given).close()


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with Curator({"people": Table(FRAME, **PEOPLE, person="id")}, epsilon=1e9, delta="1e-6") as one:
        yield one


def calls(curator: Curator) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], Mapping[str, Any]]]:
    """What is called, whose parameters are meant, and arguments that are right."""
    ask, work = {"question": GROUPS, "epsilon": 1}, Workload("people")
    release = curator.ask(**ask)
    whole: dict[str, Mapping[str, Any]] = {
        "ask": ask,
        "explain": ask,
        "left": ask,
        "columns_of": ask,
        "engine_sql": {"question": GROUPS},
        "check_question": {"question": GROUPS},
        "lift": {},
        "freeze": {"analyst": "ana", "reason": "a visitor", "tables": ["visits"]},
        "refresh": {},
        "request_more": {"epsilon": 1, "reason": "more"},
        "requests": {},
        "approve": {"number": 1, "reason": "yes"},
        "deny": {"number": 1, "reason": "no"},
        "balance": {},
        "budget_of": {"analyst": "ana"},
        "select": ask,
        "stream": {"name": "daily"},
        "profile": {"table": "visits", "epsilon": 1, "keys": [["city"]], "columns": ["age"]},
        "explain_profile": {"table": "visits", "epsilon": 1, "keys": [["city"]], "columns": ["age"]},
        "above_threshold": {"threshold": 3, "epsilon": 1},
        "multiplicative_weights": {"table": "people", "columns": ["sex"], "epsilon": 100},
        "fit": {"table": "people", "target": "sex", "features": ["age"], "epsilon": 1, "steps": 2, "sample_rate": 1},
        "answer": {"workload": work.marginals("sex"), "epsilon": 1},
        "publish": {"table": "people", "columns": ["sex"], "epsilon": 1, "rows": 10},
        "sample_and_aggregate": {
            "function": len,
            "table": "people",
            "low": 0,
            "high": 1,
            "epsilon": 1,
            "blocks": 2,
            "columns": ["wrong"],  # right but for this: no function is run
        },
        "terms": {"question": GROUPS},
        "contribution": {"session": None},
    }
    found = {name: (getattr(curator, name), getattr(curator, name), given) for name, given in whole.items()}
    for name, given in {"save": {"path": "x.csv"}, "plot": {"path": "x.svg"}}.items():
        found[name] = (getattr(release, name), getattr(release, name), given)
    for name in ("marginals", "all_marginals", "ranges", "prefixes", "counts"):
        method = getattr(work, name)
        asked = {"ways": 1} if name == "all_marginals" else {}
        found[f"workload.{name}"] = (_answered(curator, method), method, asked)
    found["Workload"] = (lambda **given: curator.answer(Workload(**given), epsilon=1), Workload, {"table": "people"})
    found["Curator"] = (opened, Curator, {"tables": {"people": Table(FRAME, **PEOPLE)}, "epsilon": 1})
    found["Table"] = (made, Table, {"source": FRAME, **PEOPLE})
    far = {"url": "http://127.0.0.1:1", "token": "a token"}
    found["connect"] = (discreet.connect, discreet.connect, far)
    with discreet.connect(**far) as remote:  # nobody is there: what is right is not reached
        for name in ("ask", "explain", "check_question"):
            method = getattr(remote, name)
            found[f"remote.{name}"] = (method, method, whole[name])
    found["open"] = (discreet.open, discreet.open, {"path": "x.toml"})
    made_up = curator.publish("people", columns=["sex"], epsilon=100, method="independent", rows=10)
    found["simulate"] = (
        discreet.simulate,
        discreet.simulate,
        {"release": made_up, "epsilon": [1], "method": "independent"},
    )
    found["published"] = (discreet.published, discreet.published, {"path": "x.json"})
    return found


def _answered(curator: Curator, method: Callable[..., Workload]) -> Callable[..., Any]:
    return lambda *given, **named: curator.answer(method(*given, **named), epsilon=1)


def test_no_argument_is_met_by_a_bare_error(curator: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare: list[str] = []
    for name, (call, meant, right) in calls(curator).items():
        for parameter in inspect.signature(meant).parameters.values():
            if parameter.annotation == "bool":
                continue  # anything is true or false
            for wrong in WRONG[:: 2 if name in ("Curator", "Table") else 1]:  # each of these starts an engine
                several = parameter.kind is parameter.VAR_POSITIONAL
                try:
                    call(
                        *([wrong] if several else ()), **(dict(right) if several else {**right, parameter.name: wrong})
                    )
                except Error as error:
                    if error.code == "engine":  # it was paid for, and failed
                        bare.append(f"{name}({parameter.name}={wrong!r}): {error!r}")
                except Exception as error:
                    bare.append(f"{name}({parameter.name}={wrong!r}): {error!r}")
    assert bare == []


def test_everything_public_is_walked(curator: Curator) -> None:
    errors = {name for name in discreet.__all__ if name.endswith("Error")}
    assert set(discreet.__all__) <= errors | MADE_HERE | set(calls(curator))
    methods = {name for name, _ in inspect.getmembers(Curator, inspect.isfunction) if not name.startswith("_")}
    assert methods <= {*calls(curator), "check", "close", "ibis"}
    named = {name for name, _ in inspect.getmembers(Workload, inspect.isfunction) if not name.startswith("_")}
    assert {f"workload.{name}" for name in named} <= set(calls(curator))


@pytest.mark.parametrize(
    "workload", [Workload("people").marginals([]), Workload("people").counts({}), Workload("people").all_marginals(0)]
)
def test_a_workload_about_no_column_is_refused_before_its_price(curator: Curator, workload: Workload) -> None:
    with pytest.raises(QuestionError, match="names no column") as wrong:
        curator.answer(workload, epsilon=1)
    assert wrong.value.fix == 'ask "SELECT COUNT(*) FROM people"'


def test_a_ledger_that_is_no_path() -> None:
    with pytest.raises(discreet.DeclarationError) as wrong:
        Curator({"people": Table(FRAME, **PEOPLE)}, epsilon=1, ledger=3)  # type: ignore[arg-type]
    assert str(wrong.value) == 'ledger: it must be the path of a file → write ledger="clinic.ledger"'
    with pytest.raises(discreet.DeclarationError, match=r'write discreet\.open\("clinic\.toml"\)'):
        discreet.open(3)  # type: ignore[arg-type]


def test_a_picture_and_a_table_without_a_path(curator: Curator) -> None:
    release = curator.ask(ONE, epsilon=1)
    for call in (release.save, release.plot):
        with pytest.raises(QuestionError, match="not a valid file path"):
            call(3)  # type: ignore[arg-type]
