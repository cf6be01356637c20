"""Requests for more of an analyst's own budget: what is approved lasts, is within the whole, and counts once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.catalog import read
from discreet.cli.history import raised
from discreet.errors import BudgetError, LedgerError, QuestionError
from discreet.ledger.requests import MOST_OPEN
from discreet.ledger.words import LONGEST_REASON
from discreet.trusted.ledger import chain
from face_tools import Command

COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
DECLARATION = """
[budget]
epsilon = 3
[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
age = { type = "integer", min = 0, max = 99 }
[analysts.ana]
epsilon = 1
[analysts.ben]
epsilon = 2
"""


@pytest.fixture(params=["file", "server"])
def declared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{place % 90}\n" for place in range(200)))
    ledger = "people.ledger"
    if request.param == "server":
        at = request.getfixturevalue("at_server")[1](tmp_path)
        ledger = f"{at.server}::{at.schema}"
    (tmp_path / "people.toml").write_text(f"ledger = {json.dumps(ledger)}\n{DECLARATION}")
    return tmp_path / "people.toml"


def declare(declared: Path, before: str, after: str) -> None:
    """Writes something else into the declaration."""
    text = declared.read_text()
    assert before in text
    declared.write_text(text.replace(before, after))


def cap(curator: discreet.Curator, name: str = "ana") -> Fraction:
    return curator.ledger.filter(name).epsilon


def test_what_is_approved_is_there_at_once_and_outlives_restarts(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator:
        curator.ask(COUNT.format(1), 1, analyst="ana")
        with pytest.raises(BudgetError):
            curator.ask(COUNT.format(2), "0.1", analyst="ana")
        asked = curator.request_more("0.5", "the second wave", analyst="ana")
        assert (asked.state, asked.epsilon) == ("open", Fraction(1, 2))
        assert cap(curator) == 1
        done = curator.approve(asked.number, "as agreed", epsilon="0.2")
        assert (done.state, done.approved, done.answer) == ("approved", Fraction(1, 5), "as agreed")
        curator.ask(COUNT.format(2), "0.1", analyst="ana")
        with pytest.raises(BudgetError):
            curator.ask(COUNT.format(3), "0.2", analyst="ana")
        assert "ana: 92 % of ε 1.2 (0.2 of it approved) used" in repr(curator.budget)
    for _ in range(2):
        with discreet.open(declared, owner=True) as curator:
            assert cap(curator) == Fraction(6, 5)
            head = curator.ledger.head
            assert curator.approve(asked.number, "once more", epsilon="0.2") == done
            assert curator.requests("ana") == curator.requests() == (done,)
            assert curator.ledger.head == head
            curator.ledger.verify()


def test_a_declared_cap_and_what_was_approved_add_up(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator:
        number = curator.request_more("0.5", "why not", analyst="ana").number
        curator.approve(number, "yes")
    declare(declared, "epsilon = 1\n", "epsilon = 0.4\n")
    with discreet.open(declared, owner=True) as curator:
        assert cap(curator) == Fraction(9, 10)
    declare(declared, "epsilon = 0.4\n", "epsilon = 1\n")
    with pytest.raises(
        LedgerError, match=r"is ε 0.9 in the ledger, and the declaration says ε 1: with what was approved that is ε 1.5"
    ):
        discreet.open(declared, owner=True)
    assert [line.partition(";")[0] for line in raised(str(declared))] == ["analyst ana: ε 0.9 → ε 1.5"]
    with discreet.Curator.of(read(declared), owner=True, raise_budget=True) as curator:
        assert cap(curator) == Fraction(3, 2)


def test_never_above_the_whole_budget(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator:
        first = curator.request_more("0.9", "a", analyst="ben")
        second = curator.request_more("0.8", "b", analyst="ben")
        curator.approve(first.number, "yes")
        with pytest.raises(QuestionError, match=r"at most epsilon = 0\.1"):
            curator.approve(second.number, "yes")
        with pytest.raises(QuestionError, match=r"at most epsilon = 0\.1"):
            curator.request_more("0.2", "c", analyst="ben")
        curator.deny(second.number, "no")
        assert cap(curator, "ben") == Fraction(29, 10)
        whole = curator.ledger.filter("").epsilon
    assert whole == 3
    declare(declared, "[budget]\nepsilon = 3", "[budget]\nepsilon = 2.5")
    with discreet.open(declared, owner=True) as curator:
        assert cap(curator, "ben") == Fraction(5, 2)


def test_nobody_is_given_more_than_was_asked_for(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator:
        asked = curator.request_more("0.1234567", "why not", analyst="ana")
        assert asked.to_dict()["epsilon"] == "0.123456"
        for more in ("2", "0.123457"):
            with pytest.raises(QuestionError, match=r"asks for less → name at most epsilon = 0\.123456"):
                curator.approve(asked.number, "a slip of the keys", epsilon=more)
        assert cap(curator) == 1
        assert curator.approve(asked.number, "yes", epsilon="0.123456").approved == asked.epsilon


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the clock to noon of a day."""
    return lambda day: monkeypatch.setattr(chain, "now", lambda: f"{day}T12:00:00Z")


def test_where_the_budget_renews_it_counts_in_its_own_period(declared: Path, clock: Callable[[str], None]) -> None:
    declare(declared, "[budget]\n", '[budget]\nperiod = "1 month"\nrenews = "everybody"\n')
    clock("2026-10-02")
    with discreet.Curator.of(read(declared), owner=True, load=False) as curator:
        asked = curator.request_more("0.5", "before the first period", analyst="ana")
        assert curator.approve(asked.number, "yes", epsilon="0.1").period == ""
    with discreet.open(declared, owner=True) as curator:
        first = curator.requests()[0]
        assert (first.period, cap(curator)) == ("2026-10", Fraction(11, 10))
        asked = curator.request_more("1.9", "the second wave", analyst="ana")
        assert curator.approve(asked.number, "all of it").period == "2026-10"
        assert cap(curator) == 3
        curator.ask(COUNT.format(1), 2, analyst="ana")
        clock("2026-11-01")
        assert cap(curator) == 3
        later = curator.request_more("0.2", "the third", analyst="ben")
        with discreet.open(declared, owner=True) as other:
            other.refresh()
            assert [cap(one, "ana") for one in (other, curator)] == [1, 1]
            with pytest.raises(BudgetError):
                other.ask(COUNT.format(1), 2, analyst="ana")
        assert curator.approve(later.number, "yes").period == "2026-11"
        assert curator.ledger.approved() == {"ben": Fraction(1, 5)}
        curator.ledger.verify()
    with discreet.open(declared, owner=True) as curator:
        assert (cap(curator), cap(curator, "ben")) == (1, Fraction(11, 5))
        assert "approved" not in repr(curator.budget.analysts["ana"])
        assert [one.period for one in curator.requests()] == ["2026-10", "2026-10", "2026-11"]


@pytest.fixture
def monthly(declared: Path) -> Path:
    declare(declared, "[budget]\n", '[budget]\nperiod = "1 month"\nrenews = "everybody"\n')
    return declared


def elsewhere(declared: Path, before: str, after: str) -> Path:
    """A second declaration of the same ledger, in which something else stands."""
    other = declared.with_name("other.toml")
    other.write_text(declared.read_text())
    other.with_name("other.ledger.head").symlink_to("people.ledger.head")  # a server's ledger is noted by this name
    declare(other, before, after)
    return other


def run(*arguments: object) -> str:
    """A command in a process of its own."""
    words = [sys.executable, "-m", "discreet", *map(str, arguments)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_what_another_process_approves_under_a_smaller_declaration_ends_with_its_period(
    monthly: Path, clock: Callable[[str], None]
) -> None:
    """The service that begins the next period still has the declaration that allows more."""
    other = elsewhere(monthly, "[analysts.ana]\nepsilon = 1\n", "[analysts.ana]\nepsilon = 0.4\n")
    with discreet.open(monthly, owner=True) as service:
        number = service.request_more("0.5", "the second wave", analyst="ana").number
        run("approve", other, number, "--reason", "yes")
        assert cap(service) == Fraction(9, 10)
        clock("2126-11-01")
        service.refresh()
        assert cap(service) == Fraction(2, 5)
        with pytest.raises(BudgetError):
            service.ask(COUNT.format(1), "0.5", analyst="ana")
        clock("2126-12-01")
        service.refresh()
        assert cap(service) == Fraction(2, 5)
        service.ledger.verify()
    with discreet.open(other, owner=True) as curator:
        assert (cap(curator), curator.ledger.approved()) == (Fraction(2, 5), {})


def test_an_approval_ends_though_the_declaration_that_renews_lacks_the_analyst(
    monthly: Path, clock: Callable[[str], None]
) -> None:
    clock("2026-10-02")
    other = elsewhere(monthly, "[analysts.ana]\nepsilon = 1\n", "")
    with discreet.open(monthly, owner=True) as curator:
        for amount in ("0.5", "0.25"):
            curator.approve(curator.request_more(amount, "now", analyst="ana").number, "yes")
        assert cap(curator) == Fraction(7, 4)
    clock("2026-11-01")
    with discreet.open(other, owner=True) as curator:
        curator.refresh()
        assert (cap(curator), cap(curator, "ben")) == (1, 2)
        curator.ledger.verify()


def test_what_comes_back_with_a_period_is_raised_by_the_owners_word_alone(
    monthly: Path, clock: Callable[[str], None]
) -> None:
    """Where the whole budget has cut what was approved, a larger declaration would not raise the cap of this period."""
    clock("2026-10-02")
    small = elsewhere(monthly, "[analysts.ana]\nepsilon = 1\n", "[analysts.ana]\nepsilon = 0.4\n")
    discreet.open(monthly, owner=True).close()
    with discreet.open(small, owner=True) as curator:
        curator.approve(curator.request_more("2.5", "now", analyst="ana").number, "yes")
        assert cap(curator) == Fraction(29, 10)
    for path in (monthly, small):
        declare(path, "[budget]\nperiod", "[budget]\n# less\nperiod")
        declare(path, "epsilon = 3\n", "epsilon = 2\n")
    with discreet.open(small, owner=True) as curator:
        assert cap(curator) == 2
    with pytest.raises(LedgerError, match=r"ana's budget is ε 0\.4 in the ledger, and the declaration says ε 1 "):
        discreet.open(monthly, owner=True)
    assert raised(str(monthly)) == ["analyst ana: ε 0.4 → ε 1 without what was approved"]
    assert raised(str(small)) == []
    with discreet.Curator.of(read(monthly), owner=True, raise_budget=True) as curator:
        assert cap(curator) == 2
        clock("2026-11-01")
        curator.refresh()
        assert cap(curator) == 1
        curator.ledger.verify()


def test_a_period_that_begins_before_another_process_opens(monthly: Path, clock: Callable[[str], None]) -> None:
    clock("2026-10-02")
    with discreet.open(monthly, owner=True) as curator:
        curator.approve(curator.request_more("0.5", "now", analyst="ana").number, "yes")
        clock("2026-11-01")
        curator.refresh()
        with discreet.open(monthly, owner=True) as other:
            assert (cap(other), other.ledger.approved()) == (1, {})


def test_few_are_open_and_the_same_is_the_same(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator:
        made = [curator.request_more("0.1", f"reason {place}", analyst="ana") for place in range(MOST_OPEN)]
        assert curator.request_more("0.1", "reason 0", analyst="ana") == made[0]
        with pytest.raises(QuestionError, match=f"{MOST_OPEN} requests of this analyst are open"):
            curator.request_more("0.1", "one more", analyst="ana")
        curator.request_more("0.1", "another's", analyst="ben")
        denied = curator.deny(made[0].number, "not now")
        assert curator.deny(made[0].number, "not now") == denied
        with pytest.raises(QuestionError, match="is denied already"):
            curator.approve(made[0].number, "yes")
        assert curator.request_more("0.1", "reason 0", analyst="ana").number != made[0].number


@pytest.mark.parametrize("reason", ["", "  \n", "x" * (LONGEST_REASON + 1), 3, None])
def test_a_reason_that_is_none(declared: Path, reason: str) -> None:
    with discreet.open(declared, owner=True) as curator:
        head = curator.ledger.head
        with pytest.raises(QuestionError, match="a reason is a text"):
            curator.request_more("0.1", reason, analyst="ana")
        assert curator.ledger.head == head


def test_a_reason_is_as_long_as_it_was_written_and_stands_once_in_the_ledger(declared: Path) -> None:
    reason = "a wave\n" * (LONGEST_REASON // 7)
    with discreet.open(declared, owner=True) as curator:
        asked = curator.request_more("0.1", reason, analyst="ana", by="desk")
        assert curator.request_more("0.1", reason, analyst="ana", by="desk") == asked
        done = curator.approve(asked.number, reason, by="boss")
        assert done.answer == asked.reason == reason.strip().replace("\n", "\\n")
        other = curator.request_more("0.2", "more", analyst="ana").number
        assert curator.deny(other, reason).answer == done.answer
        notes = [entry.note for entry in curator.ledger.entries() if entry.kind == "service"]
    assert [note.count(asked.reason) for note in notes] == [1, 1, 0, 1]
    assert notes[0].startswith("ana asks for ε 0.1 more, by desk: a wave")
    assert notes[1].startswith(f"request {asked.number} of ana approved with ε 0.1 more, by boss: a wave")


def test_who_has_no_account_of_their_own_asks_for_nothing(declared: Path) -> None:
    with discreet.open(declared, owner=True) as curator, pytest.raises(QuestionError, match="no account"):
        curator.request_more("0.1", "mine")
    with pytest.raises(QuestionError, match="not declared"), discreet.open(declared, owner=True) as curator:
        curator.request_more("0.1", "mine", analyst="eve")


def test_an_approval_while_another_process_opens_is_not_undone(declared: Path) -> None:
    """Processes that open the declaration as fast as they can, while this one approves: at no moment is less there."""
    opener = (
        "import sys, discreet\nfrom discreet.catalog import read\n"
        "while sys.stdin.read(1): discreet.Curator.of(read(sys.argv[1]), owner=True, load=False).close()"
    )
    with discreet.open(declared, owner=True) as curator:
        words = [sys.executable, "-c", opener, str(declared)]
        others = [subprocess.Popen(words, stdin=subprocess.PIPE, text=True) for _ in range(2)]
        for other in others:
            assert other.stdin is not None
            other.stdin.write("x" * 12)
            other.stdin.close()
        least = Fraction(1)
        for turn in range(8):
            number = curator.request_more("0.1", f"wave {turn}", analyst="ana").number
            curator.approve(number, "yes")
            least += Fraction(1, 10)
            for _ in range(20):
                assert cap(curator) == least
        assert [other.wait() for other in others] == [0, 0]
        assert cap(curator) == least
        curator.ledger.verify()


def test_the_commands(declared: Path, cli: Command) -> None:
    asked = cli("request", declared, "--epsilon", "0.2", "--reason", "wave\x1b[2J two", "--analyst", "ana")
    assert "ε 0.2 more: wave\\x1b[2J two · open" in asked.out
    number = asked.out.split()[1]
    assert cli("requests", declared).out == asked.out
    done = cli("approve", declared, number, "--epsilon", "0.1", "--reason", "half")
    assert "· approved with ε 0.1: half" in done.out
    assert cli("deny", declared, number, "--reason", "no").code == 2
    told = cli("ledger", declared).out
    assert "analyst ana: 0 % of ε 1.1 (0.1 of it approved) used" in told
