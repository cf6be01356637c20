"""The ledger in words that a user knows: prices as ε and δ, one entry whole; and figures without powers of ten."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import discreet
from discreet.intervals.noise import three_digits
from discreet.release.render import estimate
from discreet.trusted.ring_a.exact import figure
from face_tools import Command

LONG = "SELECT COUNT(*) AS n FROM visits WHERE " + " OR ".join(f"age = {age}" for age in range(20))
SUM = "SELECT SUM(EXP(LN(cost + 20)) * 1000000) AS s FROM visits"


def test_a_published_table_costs_an_epsilon(cli: Command, clinic: Path) -> None:
    for price in ("0.5", "0.25"):
        assert cli("publish", clinic, "visits", "--column", "city", "--epsilon", price).code == 0
    said = cli("ledger", clinic)
    assert "μ" not in said.out
    assert re.findall(r"ε [\d.]+, δ \S+", said.out.partition("entry")[2]) == ["ε 0.5, δ 3.6e-7", "ε 0.25, δ 1.8e-7"]
    prices = [entry["price"] for entry in cli("ledger", clinic, "--json").json["entries"] if entry["loss"]]
    assert prices == ["ε 0.5, δ 3.6e-7", "ε 0.25, δ 1.8e-7"]


def test_one_entry_whole(cli: Command, clinic: Path) -> None:
    assert cli("ask", clinic, LONG).code == 0
    said = cli("ledger", clinic)
    number = next(line.split()[0] for line in said.out.splitlines() if "SELECT" in line)
    assert LONG not in said.out
    one = cli("ledger", clinic, number)
    assert LONG in one.out
    assert "price     ε 0.1" in one.out
    assert "the budget" in one.out
    assert cli("ledger", clinic, number, "--json").json["question"] == LONG
    none = cli("ledger", clinic, "999")
    assert (none.code, none.out) == (2, "")
    assert "name one from 1 to" in none.err


def test_no_powers_of_ten(cli: Command, clinic: Path) -> None:
    said = cli("explain", clinic, SUM).out
    assert re.search(r"scale [\d,]{9,}\n", said)
    assert not re.search(r"\de\+?\d", said)
    for price in ("0.1", "0.01"):
        assert not re.search(r"\de\+\d", cli("ask", clinic, SUM, "--epsilon", price).out)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.42e6, "2,420,000"), (999.6, "1,000"), (1234.0, "1,230"), (0.00123, "0.00123"), (0.0, "0"), (9.94, "9.94")],
)
def test_three_digits(value: float, shown: str) -> None:
    assert three_digits(value) == shown


def test_figures() -> None:
    assert figure(Fraction(20_480_000_000)) == "20,480,000,000"
    assert figure(Fraction(1, 3)) == "0.333333"
    assert estimate(1_234_567.25, (1_234_567.25, 1_234_567.25)) == "1,234,570 ±0"


def test_the_sets_that_matter_are_named_at_the_command_line(cli: Command, clinic: Path) -> None:
    refused = cli("publish", clinic, "visits", "--method", "workload", "--epsilon", "0.5")
    assert (refused.code, refused.out) == (2, "")
    assert "--workload" in refused.err
    arguments = ["publish", clinic, "visits", "--column", "city", "--column", "smoker", "--epsilon", "0.5"]
    said = cli(*arguments, "--method", "workload", "--workload", "city, smoker", "--json")
    assert said.code == 0
    assert said.json["rows"]
    assert "workload" in cli("ledger", clinic).out


def test_an_answer_is_written_to_a_file(cli: Command, clinic: Path) -> None:
    question = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    refused = cli("ask", clinic, question, "-o", "answer.docx")
    assert refused.code == 2
    assert "committed" not in cli("ledger", clinic).out
    assert cli("ask", clinic, question, "-o", "answer.csv").code == 0
    assert (clinic.parent / "answer.csv").read_text("utf-8").startswith("city,n,n_low,n_high\n")


def test_an_answer_that_hides_nothing_says_so() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "age": [20, 30]})
    table = discreet.Table(frame, one_row_per_person=True, columns={"id": str, "age": (0, 99)})
    with discreet.Curator({"p": table}, epsilon=100) as curator:
        question = "SELECT COUNT(*) AS n FROM p WHERE id = 'a'"
        assert "hides almost nothing about a person" in repr(curator.ask(question, 10))
        assert "hides almost nothing" not in repr(curator.ask(question.replace("'a'", "'b'"), 1))
        assert [row["n"] for row in curator.ask(question, 10)] == [1]
