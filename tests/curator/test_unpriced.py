"""Questions that name no price: a stored answer of one's own, the declared price, or a refusal that says prices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet.curator.options import AskOptions
from discreet.errors import BudgetError, DeclarationError, QuestionError
from kinds import some

COUNT = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex"
WAITS = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) AS x FROM people)"
DECLARATION = """
[budget]
epsilon = 3
delta = 1e-6
[question]
least = 0.005
[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
age = { type = "integer", min = 17, max = 97 }
sex = { type = "text", values = ["F", "M"], nulls = false }
city = { type = "text" }
[analysts.ana]
epsilon = 1
[analysts.ben]
epsilon = 1
[analysts.bi]
epsilon = 1
day = 0.05
question = 0.02
"""


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    rows = "\n".join(f"{17 + place % 80},{'FM'[place % 2]},c{place % 3}" for place in range(400))
    (tmp_path / "people.csv").write_text(f"age,sex,city\n{rows}\n")
    (tmp_path / "people.toml").write_text(DECLARATION)
    return tmp_path / "people.toml"


@pytest.fixture
def curator(declared: Path) -> Iterator[discreet.Curator]:
    with discreet.open(declared) as one:
        yield one


def entries(curator: discreet.Curator) -> list[str]:
    return [entry.kind for entry in curator.ledger.entries()]


def test_without_any_price_it_is_refused_with_prices_and_what_they_buy(curator: discreet.Curator) -> None:
    before = entries(curator)
    for call in (curator.ask, curator.explain, curator.left):
        with pytest.raises(QuestionError) as refused:
            call(COUNT, analyst="ana")
        error = refused.value
        assert error.code == "price"
        assert error.message.startswith("the question has no price: ε 0.01 buys n ±497, a ±")
        assert "; ε 0.1 buys n ±49.7, a ±" in error.message
        assert "epsilon = 0.1" in error.fix
        assert "[analysts.ana] question = 0.01" in error.fix
    assert entries(curator) == before


def test_what_is_said_fits_what_is_left(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.98", analyst="ana")
    with pytest.raises(QuestionError, match=r"ε 0.01 buys n ±300; ε 0.02 buys n ±150 →"):
        curator.ask("SELECT COUNT(*) AS n FROM people", analyst="ana")
    curator.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.02", analyst="ana")
    with pytest.raises(QuestionError, match="nothing is left that would buy one"):
        curator.ask("SELECT COUNT(*) AS n FROM people WHERE age > 40", analyst="ana")


def test_a_question_that_no_price_answers_says_why(curator: discreet.Curator) -> None:
    with pytest.raises(QuestionError, match=r"not a column|no column|is not known") as refused:
        curator.ask("SELECT COUNT(nothing) AS n FROM people", analyst="ana")
    assert refused.value.code != "price"


def test_the_dearest_stored_answer_of_ones_own_is_given_and_is_free(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.1", analyst="ana")
    best = curator.ask(COUNT, epsilon="0.2", delta="1e-7", analyst="ana")
    curator.ask(COUNT, epsilon="0.05", analyst="ana")
    before = entries(curator)
    for text in (COUNT, "SELECT AVG(age) AS mean, sex, COUNT(*) AS m FROM people GROUP BY sex ORDER BY m"):
        given = curator.ask(text, analyst="ana")
        assert not given.charged
        assert given.cost == best.cost
        assert sorted(row.get("n", row.get("m")) for row in given.rows) == sorted(row["n"] for row in best.rows)
    explained = curator.explain(COUNT, analyst="ana")
    assert explained.stored
    assert explained.price == best.cost
    assert repr(explained).startswith("free: the answer is stored, at price ε 0.2, δ 1e-7\n")
    assert entries(curator) == before


def test_nobody_gets_what_others_paid_for(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.1", analyst="ana")
    with pytest.raises(QuestionError, match="has no price"):
        curator.ask(COUNT, analyst="ben")
    with pytest.raises(QuestionError, match="has no price"):
        curator.explain(COUNT, analyst="ben")


def test_names_that_are_not_declared_share_nothing_either(declared: Path) -> None:
    declared.write_text(DECLARATION.partition("[analysts")[0])
    with discreet.open(declared) as curator:
        curator.ask(COUNT, epsilon="0.1", analyst="ana")
        assert not curator.ask(COUNT, analyst="ana").charged
        assert not curator.ask(COUNT).charged  # nobody in particular
        with pytest.raises(QuestionError, match="has no price") as refused:
            curator.ask(COUNT, analyst="ben")
        assert "declares [question] epsilon =" in refused.value.fix  # [analysts.ben] would end what others ask


@pytest.mark.parametrize("times", some([100, 1_000], pytest.mark.power))
def test_a_dashboard_is_charged_once_a_snapshot(curator: discreet.Curator, times: int) -> None:
    question = "SELECT COUNT(*) AS n FROM people"
    first = curator.ask(question, analyst="bi")
    assert first.charged.epsilon == 0.02
    spent, before = curator.balance("bi").own, entries(curator)
    for _ in range(times):
        again = curator.ask(question, analyst="bi")
        assert not again.charged
        assert again.rows == first.rows
    assert curator.balance("bi").own == spent
    assert entries(curator) == before
    curator.refresh()
    assert curator.ask(question, analyst="bi").charged.epsilon == 0.02
    assert not curator.ask(question, analyst="bi").charged


def test_the_cap_a_day_ends_what_asks_something_new_each_time(curator: discreet.Curator) -> None:
    for place in range(2):
        curator.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {40 + place}", analyst="bi")
    for _ in range(3):
        with pytest.raises(BudgetError, match=r"of this day .*left ε 0.01 .* ask again from 20..-..-.. on, in UTC"):
            curator.ask("SELECT COUNT(*) AS n FROM people WHERE age > 50", analyst="bi")
    assert not curator.ask("SELECT COUNT(*) AS n FROM people WHERE age > 40", analyst="bi").charged


def test_others_answers_at_the_declared_price_cost_the_account_alone(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.02", analyst="ana")
    whole = curator.balance().total.spent
    given = curator.ask(COUNT, analyst="bi")
    assert given.charged
    assert curator.balance().total.spent == whole
    assert not curator.ask(COUNT, analyst="bi").charged


def test_a_cheaper_answer_of_ones_own_comes_before_the_declared_price(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.01", analyst="bi")
    assert not curator.ask(COUNT, analyst="bi").charged
    assert curator.ask(COUNT, epsilon="0.02", analyst="bi").charged
    assert curator.ask(COUNT, analyst="bi").cost.epsilon == 0.02


def test_several_measured_tables_are_stored_together_or_not_at_all(curator: discreet.Curator) -> None:
    with pytest.raises(QuestionError, match=r"ε 0.1 buys x ±"):
        curator.ask(WAITS, analyst="ana")
    curator.ask("SELECT AVG(age) AS x FROM people", epsilon="0.05", analyst="ana")
    with pytest.raises(QuestionError, match="has no price"):
        curator.ask(WAITS, analyst="ana")
    paid = curator.ask(WAITS, epsilon="0.2", analyst="ana")
    before = entries(curator)
    again = curator.ask(WAITS, analyst="ana")
    assert (again.rows, again.cost, again.charged.epsilon) == (paid.rows, paid.cost, 0)
    assert curator.explain(WAITS, analyst="ana").stored
    assert entries(curator) == before


def test_a_request_is_answered_again_and_belongs_to_its_question(curator: discreet.Curator) -> None:
    first = curator.ask(COUNT, analyst="bi", request="one")
    curator.ask(COUNT, epsilon="0.025", analyst="bi")
    again = curator.ask(COUNT, analyst="bi", request="one")
    assert (again.rows, bool(again.charged)) == (first.rows, False)
    with pytest.raises(QuestionError, match="belongs to another question"):
        curator.ask("SELECT COUNT(*) AS n FROM people", analyst="bi", request="one")


def test_a_price_that_a_clause_names_in_part_is_no_question_without_a_price(curator: discreet.Curator) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1) COUNT(*) AS n FROM people"
    assert curator.ask(clause, analyst="ana").charged
    plain = curator.ask("SELECT COUNT(*) AS n FROM people", analyst="ana")
    assert not plain.charged
    assert plain.cost.epsilon == 0.1
    with pytest.raises(QuestionError, match="has no price"):
        curator.ask("SELECT COUNT(*) AS n FROM people", delta="1e-8", analyst="ana")


def test_what_was_stored_is_not_measured_where_another_took_a_new_snapshot(curator: discreet.Curator) -> None:
    curator.ask(COUNT, epsilon="0.1", analyst="ana")
    asked = curator._prices.of(curator._planner.asked(COUNT), AskOptions(account="ana"), load=True)
    assert asked.stored
    curator.refresh()
    before = entries(curator)
    (part,) = asked.parts
    with pytest.raises(QuestionError, match="a new snapshot was taken meanwhile; nothing was spent"):
        curator._answering.measuring.measured(COUNT, part.measured, part.table, AskOptions(account="ana"), stored=True)
    assert entries(curator) == before


def test_private_groups_are_stored_with_the_delta_that_follows(curator: discreet.Curator) -> None:
    question = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    paid = curator.ask(question, epsilon="0.5", analyst="ana")
    assert curator.ask(question, analyst="ana").rows == paid.rows


def test_what_asks_by_itself_never_takes_the_price_for_all(declared: Path) -> None:
    declared.write_text(DECLARATION.replace("least = 0.005", "least = 0.005\nepsilon = 0.1"))
    with discreet.open(declared) as curator:
        for call in (curator.ask, curator.explain):
            with pytest.raises(QuestionError, match="has no price"):
                call(COUNT, analyst="ana", default_price=False)
        assert curator.budget.used == 0
        assert curator.ask(COUNT, analyst="bi", default_price=False).charged["epsilon"] == 0.02
        paid = curator.ask(COUNT, analyst="ana")
        assert paid.charged["epsilon"] == 0.1
        assert curator.ask(COUNT, analyst="ana", default_price=False).rows == paid.rows


def test_public_tables_alone_have_no_price(declared: Path) -> None:
    (declared.parent / "areas.csv").write_text("area\na\nb\n")
    text = '[tables.areas]\nsource = "areas.csv"\npublic = true\n[tables.areas.columns]\narea = { type = "text" }\n'
    declared.write_text(f"{DECLARATION}{text}")
    with discreet.open(declared) as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM areas", analyst="ana").rows == [{"n": 2}]


@pytest.mark.parametrize(
    ("price", "fault"),
    [
        ("0.06", "larger than day"),
        ("0.001", "below question.least"),
        ("0", "must lie between"),
        ('"0.02"', "finite number"),
        ("true", "finite number"),
    ],
)
def test_a_price_that_cannot_be_charged_is_a_fault(declared: Path, price: str, fault: str) -> None:
    declared.write_text(DECLARATION.replace("question = 0.02", f"question = {price}"))
    with pytest.raises(DeclarationError, match=fault) as refused:
        discreet.open(declared)
    assert refused.value.faults[0].where == "analysts.bi.question"


def test_a_selection_is_a_question_and_what_buys_many_answers_is_none(curator: discreet.Curator) -> None:
    """The price that is declared for an account's questions is never that of a publication, a workload or a run."""
    picked = curator.select("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", analyst="bi")
    assert picked.charged["epsilon"] == 0.02
    before = entries(curator)
    for call in (
        lambda: curator.select("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", analyst="ana"),
        lambda: curator.publish("people", analyst="bi"),
        lambda: curator.answer(discreet.Workload("people").marginals("sex"), analyst="bi"),
        lambda: curator.above_threshold(100, analyst="bi"),
    ):
        with pytest.raises(QuestionError) as refused:
            call()
        assert refused.value.code == "price"
    assert entries(curator) == before
