"""The synthetic state as it is declared: what is read, and every fault at once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.catalog import read
from discreet.errors import DeclarationError
from state_tools import declaration

KIND = "exact"


def declared(folder: Path, text: str) -> Any:
    (folder / "clinic.toml").write_text(text)
    return read(folder / "clinic.toml").state


def test_what_is_declared_is_read(tmp_path: Path) -> None:
    state = declared(tmp_path, declaration(table="People", columns=["SEX", "level"]))
    assert (state.table, state.columns, state.updates, state.epsilon) == ("people", ("sex", "level"), 5, Fraction(2))
    assert state.key == tmp_path / "keys" / "state.key"


def test_without_interactive_there_is_none(tmp_path: Path) -> None:
    assert declared(tmp_path, declaration(interactive=False)) is None
    assert declared(tmp_path, declaration(interactive=None, table="nobody")) is None
    assert declared(tmp_path, declaration().partition("[synthesis]")[0]) is None


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"interactive": "yes"}, "interactive"),
        ({"interactive": 1}, "interactive"),
        ({"table": "nobody"}, "table"),
        ({"table": None}, "table"),
        ({"columns": None}, "columns"),
        ({"columns": []}, "columns"),
        ({"columns": "sex"}, "columns"),
        ({"columns": ["id"]}, "columns"),
        ({"columns": ["sex", "sex"]}, "columns"),
        ({"columns": ["sex", 3]}, "columns"),
        ({"regions": [f"r{one}" for one in range(9_000)]}, "columns"),
        ({"updates": 0}, "updates"),
        ({"updates": 201}, "updates"),
        ({"updates": 1.5}, "updates"),
        ({"updates": None}, "updates"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 6.0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"key": None}, "key"),
        ({"key": ""}, "key"),
        ({"key": "state.key"}, "key"),
        ({"update": 5}, "update"),
    ],
    ids=repr,
)
def test_each_fault_is_named(tmp_path: Path, said: dict[str, Any], where: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, declaration(**said))
    assert [fault.where for fault in caught.value.faults] == [f"synthesis.{where}"]


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, declaration(updates=0, epsilon=-1, key=None, columns=["id"]))
    assert len(caught.value.faults) == 4


def test_a_state_has_a_ledger_that_lasts_and_a_budget_that_does_not_renew(tmp_path: Path) -> None:
    text = declaration().replace("[budget]\n", '[budget]\nperiod = "1 month"\nrenews = "everybody"\n')
    with pytest.raises(DeclarationError, match="this budget renews"):
        declared(tmp_path, text)
    with pytest.raises(DeclarationError, match="not limited"):
        declared(tmp_path, declaration(most=3).replace("rows_per_person = 3\n", ""))
