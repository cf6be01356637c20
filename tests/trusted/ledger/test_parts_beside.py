"""Parts beside the ledger: whatever one does, no account and no table is another for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import TOTAL, Caps, Ledger
from discreet.trusted.ledger.accounts import PARTS, THEIRS, Beside, States
from discreet.trusted.ledger.chain import Key
from discreet.trusted.ledger.ledger import BudgetLedger
from storms import PRICE, caps


class Setting(Beside):
    """Sets a state of each kind that it is given, when something is reserved."""

    kinds = THEIRS

    def __init__(self, states: Mapping[Key, Any]) -> None:
        self.states = states

    def after(self, states: States, body: Mapping[str, Any]) -> Mapping[Key, Any]:  # noqa: ARG002
        return self.states if body["kind"] == "reserve" else {}


@pytest.fixture
def ledger() -> Ledger:
    found = Ledger(None)
    found.register({TOTAL: caps(2), "ana": caps(1)}, "declared")
    return found


def test_ledgers_that_are_opened_have_all_parts() -> None:
    assert sorted(type(part).__name__ for part in PARTS) == ["Allowances", "Assigned", "Lists"]
    assert THEIRS == ("day", "month", "persons", "assigned")
    assert sorted(kind for part in PARTS for kind in part.kinds) == sorted(THEIRS)


_ALONE = """
import pathlib, sys
from fractions import Fraction
from discreet.errors import LedgerError
from discreet.trusted.ledger.file import LedgerFile
from discreet.trusted.ledger.ledger import BudgetLedger
from discreet.trusted.ring_a.loss import Pure

at = pathlib.Path(sys.argv[1])
for act in (
    lambda: BudgetLedger(LedgerFile(at)).reserve(Pure(Fraction(1, 10)), question="q", key="k", account="ana"),
    lambda: BudgetLedger(LedgerFile(at)).replay(),
    lambda: BudgetLedger(LedgerFile(at)).register_accounts({}, "another", persons={}, raising=True),
):
    try:
        act()
    except LedgerError as error:
        assert "import discreet.ledger" in str(error)
    else:
        sys.exit("was done")
"""


def test_a_program_without_a_part_does_not_charge_past_it(tmp_path: Path) -> None:
    """It neither charges nor verifies where an analyst has a cap by day, nor registers anything."""
    path = tmp_path / "l"
    one = Ledger(path)
    one.register({TOTAL: caps(9), "ana": caps(5)}, "declared", allowances={"ana": {"day": caps(1)}})
    one.reserve(PRICE, question="q", key="q", account="ana")
    head = one.head
    done = subprocess.run([sys.executable, "-c", _ALONE, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (one.head, one.verify().head) == (head, head)


def test_a_part_that_registers_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.trusted.ledger.accounts.PARTS", [*PARTS, *PARTS])
    monkeypatch.setattr("discreet.trusted.ledger.ledger.PARTS", [*PARTS, *PARTS])
    one = Ledger(None)
    one.register({TOTAL: caps(9), "ana": caps(5)}, "declared", allowances={"ana": {"day": caps(2)}})
    one.reserve(PRICE, question="q", key="q", account="ana")
    assert one.allowances("ana")["day"].account.spent.pure == PRICE.epsilon
    assert one.verify().entries == 3


@pytest.mark.parametrize("key", [("account", TOTAL), ("account", "bob"), ("table", "t"), ("period", ""), ("other", "")])
def test_a_part_sets_no_account_and_no_table(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, key: Key) -> None:
    """Not one that has not been there, and not as it is: the question is refused, and nothing is written."""
    with ledger._file.read() as transaction:
        before, head = transaction.state(*key), transaction.head
    monkeypatch.setattr("discreet.trusted.ledger.accounts.PARTS", [Setting({key: before})])
    with pytest.raises(ValueError, match="no state but its own"):
        ledger.reserve(PRICE, question="q", key="q", account="ana")
    with ledger._file.read() as transaction:
        assert (transaction.state(*key), transaction.head) == (before, head)


def test_what_is_said_to_a_part_is_said_to_it_alone(ledger: Ledger) -> None:
    """Whoever says it: the caps that an entry registers are those that were held against the ledger's."""
    said = {"changes": [(TOTAL, caps(2).to_json(), caps(9).to_json())], "declaration": "", "allowances": []}
    BudgetLedger.register_accounts(ledger, {}, "again", persons={}, raising=False, besides=lambda _: said)
    assert Caps.of(ledger.filter(TOTAL)) == caps(2)
    with ledger._file.read() as transaction:
        body = transaction.head.body
        assert (body["changes"], body["declaration"], body["allowances"]) == ([], "again", [])


def test_what_a_part_keeps_changes_no_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for parts in ([], [Setting({("month", "ana"): {"anything": 1}})]):
        monkeypatch.setattr("discreet.trusted.ledger.accounts.PARTS", parts)
        one = Ledger(None)
        one.register({TOTAL: caps(2), "ana": caps(1)}, "declared")
        one.reserve(PRICE, question="q", key="q", account="ana")
        with one._file.read() as transaction:
            found.append([transaction.account(name) for name in (TOTAL, "ana")])
    assert found[0] == found[1]
