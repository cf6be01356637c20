"""Collections and clients: what is written down, what is refused, what is spent."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BudgetError, DeclarationError, LedgerError, QuestionError
from discreet.local import Client, Collection, Number, Ordered, Report, Text
from discreet.local import client as client_module
from discreet.local.draws import fresh
from discreet.local.report import check, randomised
from discreet.trusted.ring_a.exact import exp_bounds
from local_tools import spend_all

OS = Collection("os", "Which system?", ["linux", "mac", "windows"], epsilon=1)
KINDS = [
    ["no", "yes"],
    [1, 2, 3],
    Number(0, 100),
    Ordered("0", "1", "0.05"),
    Text(6),
    {"a": ["x", "y"], "b": Number(0, 9)},
]


@pytest.mark.parametrize("answer", KINDS, ids=str)
@pytest.mark.parametrize("epsilon", ["ln 3", "0.5", 2])
def test_a_document_is_read_back_as_the_same_collection(answer: object, epsilon: object) -> None:
    one = Collection("é", "Was?", answer, epsilon=epsilon, window="day", public=["country"])
    assert Collection.from_json(one.to_json()) == one
    assert Collection.from_json(one.to_json()).hash == one.hash
    assert one.hash != Collection("é", "Was?", answer, epsilon=epsilon, window="day").hash
    assert one.loss().epsilon >= Fraction(str(epsilon)) if epsilon != "ln 3" else one.odds == (3, 1)


def test_each_may_be_a_logarithm_too() -> None:
    one = Collection("a", "b", ["x", "y"], epsilon="ln 9", each="ln 3", cap=4)
    assert (one.each_odds, one.reports) == ((3, 1), 3)
    assert Collection.from_json(one.to_json()) == one


def test_ln_3_costs_at_least_the_logarithm() -> None:
    known = Collection("a", "b", ["x", "y"], epsilon="ln 3").epsilon
    assert 3 < exp_bounds(known, 200)[0] < 3 + Fraction(1, 10**15)


@pytest.mark.parametrize(
    "change",
    [
        {"odds": [4_000_000, 1_048_576]},
        {"odds": [2_850_325, 1_048_575]},
        {"epsilon": "0.5"},
        {"cap": "2"},
        {"version": "discreet local 2"},
        {"window": "week"},
        {"more": 1},
        {"attributes": []},
        {"attributes": [{"name": "", "kind": "values", "values": ["linux", "mac"], "parts": []}]},
        {"question": "a\nb"},
    ],
)
def test_a_document_whose_parts_do_not_agree_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(DeclarationError):
        Collection.from_json(json.dumps({**json.loads(OS.to_json()), **change}))


SIMPLE = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@given(st.recursive(SIMPLE, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=6))
@settings(max_examples=25)
def test_no_document_but_a_declaration_error(found: object) -> None:
    with pytest.raises(DeclarationError):
        Collection.from_json(json.dumps(found))


@pytest.mark.parametrize(
    "epsilon", [0, -1, "0.0001", 11, 1e300, "nan", "inf", "x", None, True, "ln 1", "ln 0.5", "1" * 100]
)
def test_what_is_no_epsilon(epsilon: object) -> None:
    with pytest.raises(DeclarationError) as caught:
        Collection("a", "b", ["x", "y"], epsilon=epsilon)
    assert caught.value.where == "epsilon"


@pytest.mark.parametrize(
    "answer",
    [
        ["one"],
        [],
        ["a", "a"],
        ["é", "e\u0301"],
        [1 << 63, 1],
        [1.5, 2],
        [True, False],
        ["a", "b\n"],
        ["a", "\ud800"],
        "ab",
        {},
        {"": ["a", "b"]},
        {"é": ["a", "b"], "e\u0301": ["a", "b"]},
        7,
    ],
    ids=repr,
)
def test_what_is_no_answer(answer: object) -> None:
    with pytest.raises(DeclarationError):
        Collection("a", "b", answer, epsilon=1)


@pytest.mark.parametrize(
    "ends", [(0, 0), (1, 0), (0, 1, 0), (0, 1, "0.3"), (0, 10**9), ("nan", 1), (0, 1, -1), (0, 1 << 200)]
)
def test_what_is_no_range(ends: tuple[object, ...]) -> None:
    for kind in (Number, Ordered):
        with pytest.raises(DeclarationError):
            kind(*ends)
    with pytest.raises(DeclarationError):
        Text(0)


def test_what_more_cannot_be() -> None:
    for wrong in (
        {"cap": 2},
        {"each": 0},
        {"each": 1, "cap": 5000},
        {"public": "ab"},
        {"public": ["token"]},
        {"public": ["A b"]},
        {"public": ["window_"]},
    ):
        with pytest.raises(DeclarationError):
            Collection("a", "b", ["x", "y"], **{"epsilon": 1, **wrong})
    for answer in (Number(0, 9), Text(3)):
        with pytest.raises(DeclarationError):
            Collection("a", "b", answer, epsilon=1, each=1)


@pytest.mark.parametrize(
    "value", ["bsd", "", None, 1, True, 1 << 63, "\ud800", ["linux"], {"linux": 1}, 0.5, float("nan"), b"linux"]
)
def test_a_value_outside_the_collection_is_refused_and_not_quoted(value: object) -> None:
    with Client(OS) as client:
        with pytest.raises(QuestionError) as caught:
            client.report(value)
        assert str(value) not in str(caught.value) or value in ("", None, 1)
        assert client.spent == 0


@pytest.mark.parametrize("value", ["x", None, True, float("inf"), "1e9999999", [1]])
def test_a_number_must_be_one(value: object) -> None:
    with Client(Collection("a", "b", Number(0, 9), epsilon=1)) as client, pytest.raises(QuestionError):
        client.report(value)


def test_numbers_outside_are_clamped_and_texts_are_cut_at_whole_characters() -> None:
    assert [Number(0, 9).code(value) for value in (-5, "4.5", 4.4, 1 << 63, -(1 << 63))] == [0, 5, 4, 9, 0]
    assert [Text(4).code(value) for value in ("aäöü", "abcdef", "e\u0301")] == [
        "aä".encode() + b"\0",
        b"abcd",
        "é".encode() + b"\0\0",
    ]
    for wrong in ("", "a\0", "\ud800", 5):
        with pytest.raises(QuestionError):
            Text(4).code(wrong)


def test_unicode_values_are_the_same_however_they_are_typed() -> None:
    drinks = Collection("drink", "Which?", ["café", "茶", "🍵"], epsilon=1)
    with Client(drinks) as client:
        first = client.report("cafe\u0301")
        assert client.report("café") == first


@pytest.fixture
def calendar(monkeypatch: pytest.MonkeyPatch) -> list[datetime.date]:
    """The day is the first of this list."""
    days = [datetime.date(2026, 11, 21)]
    monkeypatch.setattr(client_module, "today", lambda: days[0])
    return days


def test_the_same_answer_gives_the_same_report_all_window(tmp_path: Path, calendar: list[datetime.date]) -> None:
    with Client(OS, tmp_path / "own") as client:
        first = client.report("linux")
        assert client.report("linux") == first
        assert client.spent == 1
    with Client(OS, tmp_path / "own") as client:
        assert client.report("linux") == first
        calendar[0] = datetime.date(2026, 12, 1)
        second = client.report("linux")
        assert (second.window, client.spent) == ("2026-12", 2)
        assert second.token != first.token


def test_memory_needs_no_storage() -> None:
    for value in ("linux", "mac"):
        reports = {randomised(OS, b"s" * 32, "2026-11", value, fresh()) for _ in range(5)}
        assert len(reports) == 1
    several = {randomised(OS, b"s" * 32, f"{year}-01", "mac", fresh()) for year in range(1000, 3000)}
    assert len({token for token, _, _ in several}) == 2000  # another window, another token
    assert {report for _, _, report in several} == {0, 1, 2}  # and other randomness


def test_another_answer_in_the_window_gives_the_report_that_was_given(calendar: list[datetime.date]) -> None:
    """Nobody can see whether, or when, the answer changed; the new one counts in the next window."""
    many = Collection("many", "Which?", [f"v{place}" for place in range(300)], epsilon=5)
    with Client(many) as client:
        first = client.report("v0")
        assert {client.report(f"v{place}").to_json() for place in range(300)} == {first.to_json()}
        assert client.spent == 5
        with pytest.raises(QuestionError):
            client.report("none")
        calendar[0] = datetime.date(2026, 12, 1)
        assert client.report("v1").window == "2026-12"
        assert client.spent == 10


def test_the_respondents_own_cap_holds_over_collections(tmp_path: Path) -> None:
    other = Collection("age", "How old?", Number(0, 99), epsilon="0.5")
    with Client(OS, tmp_path / "own", cap="1.2") as client:
        client.report("linux")
        with Client(other, tmp_path / "own", cap="1.2") as second:
            with pytest.raises(BudgetError) as caught:
                second.report(40)
            assert (caught.value.asked, caught.value.left) == ("0.5", "0.2")
            assert second.spent == 1
        with Client(other, tmp_path / "own", cap="1.5") as second:
            second.report(40)
            assert second.spent == 1.5


def test_several_reports_a_window_are_each_charged_and_fresh() -> None:
    daily = Collection("mood", "How are you?", list(range(50)), epsilon=3, window="month", each="0.5", cap="10.2")
    assert daily.reports == 20
    with Client(daily) as client:
        reports = [client.report(7) for _ in range(20)]
        assert client.spent == 10
        with pytest.raises(BudgetError):
            client.report(7)
    assert len({one.token for one in reports}) == 20
    assert len({one.report for one in reports}) > 1  # all the same by chance: below 1e-20
    for one in reports:
        check(daily, one)


def test_a_record_reports_one_attribute_and_hides_whether_the_others_changed() -> None:
    record = Collection("r", "Both?", {"os": ["linux", "mac"], "age": Number(0, 99)}, epsilon=1)
    seen = set()
    for place in range(64):
        secret = bytes([place]) * 32
        one = randomised(record, secret, "2026-11", {"os": "mac", "age": 5}, fresh())
        seen.add(one[1])
        unused = {"os": "linux", "age": 5} if one[1] == 1 else {"os": "mac", "age": 80}
        assert randomised(record, secret, "2026-11", unused, fresh()) == one
    assert seen == {0, 1}
    for wrong in ({"os": "mac"}, "mac", {"os": "mac", "age": 5, "x": 1}, {"os": "bsd", "age": 5}):
        with Client(record) as client, pytest.raises(QuestionError):
            client.report(wrong)


def test_what_is_explained() -> None:
    coins = Collection("coin", "Heads?", ["no", "yes"], epsilon="ln 3", public=["country"])
    with Client(coins, cap=5) as client:
        client.report("yes", {"country": "DE"})
        text = client.explain()
    for words in ("75.0 %", "ln 3", "3 times as likely", "One report a month", "country", "at most 5"):
        assert words in text
    many = Collection("m", "Which?", [f"v{place}" for place in range(100)], epsilon=2, each=1, cap=10)
    with Client(many) as client:
        assert "Up to 10 reports a month" in client.explain()


def test_a_ledger_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").write_bytes(b"no ledger at all, but long enough to be read as one" * 50)
    for path in (tmp_path / "own", tmp_path / "none" / "own", tmp_path):
        with pytest.raises(LedgerError):
            Client(OS, path)


@pytest.mark.parametrize("damage", ["UPDATE secret SET bytes = x'00'", "UPDATE given SET cost = 'much'"])
def test_a_damaged_ledger_gives_no_report(tmp_path: Path, damage: str) -> None:
    path, days = tmp_path / "own.ledger", Collection("days", "How?", ["a", "b"], epsilon=1)
    with Client(days, path) as client:
        client.report("a")
    connection = apsw.Connection(str(path))
    connection.execute(damage)
    connection.close()
    with Client(Collection("others", "How?", ["a", "b"], epsilon=1), path) as client, pytest.raises(LedgerError):
        client.report("b")


def test_the_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    with Client(OS, tmp_path / "own") as client:
        client.report("mac")
    assert (tmp_path / "own").stat().st_mode & 0o77 == 0


@pytest.mark.storm
def test_two_processes_cannot_both_spend_what_is_left(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = context.Queue()
    workers = [context.Process(target=spend_all, args=(str(tmp_path / "own"), results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert sum(results.get(timeout=300) for _ in workers) == 20
    for worker in workers:
        worker.join()


KILLED = """
import sys
from discreet.local import Client, Collection
fine = Collection("fine", "How?", ["a", "b"], epsilon=1, each="0.001", cap=1)
with Client(fine, sys.argv[1]) as client:
    while True:
        print(client.report("a").token, flush=True)
"""


def test_a_killed_client_has_written_down_every_report_that_left_it(tmp_path: Path) -> None:
    fine = Collection("fine", "How?", ["a", "b"], epsilon=1, each="0.001", cap=1)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "own")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        tokens = [running.stdout.readline().strip() for _ in range(25)]
        os.kill(running.pid, signal.SIGKILL)
        tokens += running.stdout.read().split()
    with Client(fine, tmp_path / "own") as client:
        before = round(client.spent * 1000)
        assert before - len(tokens) in (0, 1)  # the last may be paid and not printed
        assert client.report("a").token not in tokens


def test_a_report_is_a_few_bytes_of_json() -> None:
    with Client(OS) as client:
        report = client.report("mac")
    assert Report.from_json(report.to_json()) == report
    assert len(report.to_json()) < 200
