"""The synthetic state as people meet it: its answers, what they cost and say, and when it answers no more."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.errors import DeclarationError, EngineError, QuestionError
from discreet.synthesis.state import fitted
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_c.coding import Coding, ListedCells
from face_tools import Command
from state_tools import REGIONS, ROWS, Used, World
from state_tools import surely as surely

FEMALE = "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'"
EASY = "SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND level > 4"
TRUE = sum(sex == "F" for _, sex, _, _ in ROWS)


# the distribution

DOMAIN = Coding(
    (
        ListedCells(Column("a", Type.TEXT, values=("x", "y")), ("x", "y"), null=False),
        ListedCells(Column("b", Type.INTEGER, minimum=1, maximum=3), (1, 2, 3), null=False),
    )
)


def test_it_begins_uniform_and_then_says_what_was_counted() -> None:
    assert np.allclose(fitted(DOMAIN, 60, []).shares, 1 / 6)
    rows, columns = np.array([0, 0, 0, 1, 1, 1], np.int32), np.array([0, 1, -1] * 2, np.int32)
    found = fitted(DOMAIN, 60, [(rows, (45, 15)), (columns, (30, 12))])
    assert found.counts(rows, 2) == (45, 15)
    assert found.counts(columns, 2) == (30, 12)
    assert np.allclose(found.shares.reshape(2, 3), np.outer([0.75, 0.25], [0.5, 0.2, 0.3]))  # of largest entropy


@pytest.mark.parametrize("counts", [(-5, -7), (100, 100), (0, 0), (60, 0)])
def test_noise_beyond_what_is_possible_leaves_a_distribution(counts: tuple[int, int]) -> None:
    for labels, rows in itertools.product(([0, 0, 0, 1, 1, 1], [0, 1, -1] * 2, [-1] * 6), (-3, 0, 60)):
        found = fitted(DOMAIN, rows, [(np.array(labels, np.int32), counts)])
        assert math.isclose(found.shares.sum(), 1)
        assert (found.shares >= 0).all()
        assert min(found.counts(np.array(labels, np.int32), 2)) >= 0


def test_null_begins_small() -> None:
    with_null = Coding((ListedCells(Column("a", Type.TEXT, values=("x", "y")), ("x", "y")),))
    assert np.allclose(fitted(with_null, 10, []).shares, [0.4995, 0.4995, 0.001])


def test_the_cells_of_a_group_are_those_that_it_counts(tmp_path: Path) -> None:
    text = "SELECT region, level, COUNT(*) FROM people WHERE sex <> 'M' AND level IN (1, 2, 3) GROUP BY level, region"
    with World(tmp_path).opened() as asker:
        question = asker.question(text)
        labels = question.labels(asker.whole.domain, asker.curator._engine.cells).reshape(3, 4, 5)
        groups = [
            (dict(zip((key.name for key in question.plan.keys), values, strict=True)))
            for values in itertools.product(*(key.groups or () for key in question.plan.keys))
        ]
    for (s, sex), (r, region), (v, level) in itertools.product(
        enumerate(["F", "M", None]), enumerate([*REGIONS, None]), enumerate([1, 2, 3, 4, None])
    ):
        place = labels[s, r, v]
        if sex != "F" or level not in (1, 2, 3):
            assert place == -1
        elif {"region": region, "level": level} in groups:
            assert groups[place] == {"region": region, "level": level}
        else:
            assert place == -1


# what it answers, and what that costs


def test_a_question_is_answered_for_nothing_and_again_with_the_same_numbers(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        curator = asker.curator
        foretold = curator.explain(FEMALE)
        assert foretold.synthetic.startswith("from the synthetic state, ±")
        assert "0 of 5 updates used; it begins with this question, at ε 2 once" in foretold.synthetic
        assert repr(foretold).startswith(f"free: {foretold.synthetic}")
        assert curator.budget.used == 0
        first = curator.ask(FEMALE)
        assert dict(first.charged) == {"epsilon": 2.0, "delta": 0.0}
        assert "it began with this question: ε 2 once" in str(first)
        used = curator.budget.used
        again = curator.ask("SELECT COUNT(*) AS women FROM people WHERE 'F' = sex")
        assert (first.rows[0]["n"], first.intervals[0]["n"]) == (again.rows[0]["women"], again.intervals[0]["women"])
        assert not again.charged
        assert not again.cost
        assert "free: " in str(again)
        assert "updates used" in str(again)
        assert curator.budget.used == used
        assert "begins" not in curator.explain(FEMALE).synthetic
    with world.opened() as asker:
        assert asker.curator.ask(FEMALE).rows == first.rows


def test_a_hard_question_is_counted_and_the_state_knows_it_then(tmp_path: Path) -> None:
    """With ε 4.5 and 2 updates the threshold is 87 rows, and the state begins with as many men as women: 500 are off by
    190 scales of the noise more, and once the women are counted the men by 80 scales less."""
    with World(tmp_path, updates=2, epsilon=4.5).opened() as asker:
        curator = asker.curator
        hard = curator.ask(FEMALE)
        assert "counted for the synthetic state" in str(hard)
        assert "1 of 2 updates used" in str(hard)
        assert "Laplace" in hard.mechanisms[0]["mechanism"]
        assert abs(hard.rows[0]["n"] - TRUE) < 60
        men = curator.ask("SELECT COUNT(*) AS n FROM people WHERE sex = 'M'")
        assert "from the synthetic state" in str(men)
        assert "1 of 2 updates used" in str(men)
        assert abs(men.rows[0]["n"] - (3_000 - hard.rows[0]["n"])) < 60
        assert "above threshold" in men.mechanisms[0]["mechanism"]
        low, high = men.intervals[0]["n"]
        assert (high - low) // 2 == asker.whole.half_width(0.05)
        assert low <= 3_000 - TRUE <= high


def test_groups_having_order_and_what_is_computed_around_them(tmp_path: Path) -> None:
    with World(tmp_path, updates=4, epsilon=4.5).opened() as asker:
        curator = asker.curator
        true = Counter((sex, region) for _, sex, region, _ in ROWS)
        wide = asker.whole.half_width(0.05)
        release = curator.ask("SELECT sex, region, COUNT(*) AS n FROM people GROUP BY sex, region ORDER BY n DESC")
        assert [row["n"] for row in release] == sorted((row["n"] for row in release), reverse=True)
        assert all(abs(row["n"] - true[row["sex"], row["region"]]) <= wide for row in release)
        few = curator.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING n > 400 LIMIT 1")
        assert len(few) == 1
        assert "synthetic state" in str(few)
        outer = curator.ask(
            "WITH s AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT MAX(n) AS most FROM s"
        )
        assert not outer.charged
        assert not outer.cost
        assert "free: from the synthetic state; " in str(outer)
        mixed = curator.ask(
            "WITH s AS (SELECT COUNT(*) AS n FROM people), t AS (SELECT AVG(level) AS a FROM people)"
            " SELECT n, a FROM s CROSS JOIN t",
            epsilon="0.002",
        )
        assert mixed.cost == mixed.charged == {"epsilon": 0.001, "delta": 0.0}
        assert curator.explain("SELECT region, COUNT(*) AS n FROM people GROUP BY region").synthetic


def test_a_named_price_or_error_buys_what_it_says_unless_the_state_is_as_good(tmp_path: Path) -> None:
    with World(tmp_path).opened() as asker:
        curator, wide = asker.curator, asker.whole.half_width(0.05)
        curator.ask(EASY)
        used = curator.budget.used
        assert curator.ask(EASY, epsilon=0.1).cost == {"epsilon": 0.1, "delta": 0.0}
        assert curator.budget.used > used
        used = curator.budget.used
        for said in ({"epsilon": "0.001"}, {"within": {"n": wide + 1}}):
            assert "synthetic state" in str(curator.ask("SELECT COUNT(*) AS n FROM people WHERE sex IS NULL", **said))
            assert curator.explain(FEMALE, **said).synthetic
        assert curator.budget.used == used
        assert curator.ask("SELECT COUNT(*) AS n FROM people WHERE level = 1", within={"n": wide - 1}).charged
        assert not curator.explain(FEMALE, within={"n": wide - 1}).synthetic
        assert not curator.explain(FEMALE, epsilon=0.1).synthetic


def test_who_names_a_price_or_an_error_pays_no_other_one_for_the_beginning(tmp_path: Path) -> None:
    with World(tmp_path).opened() as asker:
        curator, wide = asker.curator, asker.whole.half_width(0.05)
        assert not curator.explain(EASY, epsilon="0.001").synthetic
        assert curator.ask(EASY, epsilon="0.001").charged == {"epsilon": 0.001, "delta": 0.0}
        assert curator.ask(FEMALE, within={"n": wide + 1}).charged.epsilon < 0.1
        assert not asker.state.begun


def test_a_layered_question_that_uses_it_up_says_that_it_needs_a_price(tmp_path: Path) -> None:
    """Its first table has begun the state, so something was spent."""
    with World(tmp_path, updates=1, epsilon=4.0).opened() as asker:
        text = f"WITH s AS ({FEMALE}), t AS ({EASY.replace(' n ', ' m ')}) SELECT n, m FROM s CROSS JOIN t"
        with pytest.raises(QuestionError, match="answers no more, and no price is named"):
            asker.curator.ask(text)
        assert asker.curator.budget.used == 80
        assert "counted for the synthetic state" in str(asker.curator.ask(FEMALE))


def test_what_is_kept_for_publishing_is_not_left_for_it(tmp_path: Path) -> None:
    world = World(tmp_path, updates=1, epsilon=4.0, top="[question]\nepsilon = 0.01\n")
    world.file.write_text(world.file.read_text().replace("[budget]\n", "[budget]\nreserve = { publish = 3.5 }\n"))
    with world.opened() as asker:
        assert not asker.curator.explain(EASY).synthetic
        release = asker.curator.ask(EASY)
        assert release.charged == {"epsilon": 0.01, "delta": 0.0}
        assert "has not begun, and its price is more than is left" in str(release)


def test_who_is_frozen_or_suspended_is_not_told_what_it_has_answered_either(tmp_path: Path) -> None:
    with World(tmp_path).opened() as asker:
        curator = asker.curator
        first = curator.ask(EASY)
        curator.freeze(tables=["people"], reason="a doubt")
        with pytest.raises(EngineError, match="frozen"):
            curator.ask(EASY)
        curator.lift(tables=["people"], reason="none")
        assert curator.ask(EASY).rows == first.rows


def test_afresh_is_measured_at_its_price(tmp_path: Path) -> None:
    with World(tmp_path, top="").opened() as asker:
        asker.curator.ask(FEMALE)
        with pytest.raises(QuestionError, match="price"):
            asker.curator.ask(EASY, epsilon=None, reuse=False)
        assert asker.curator.ask(FEMALE, epsilon=1, reuse=False).charged == {"epsilon": 1.0, "delta": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM people WHERE id = 'p1'",
        "SELECT AVG(level) AS n FROM people",
        "SELECT SUM(level) AS n FROM people WHERE sex = 'F'",
        "SELECT COUNT(DISTINCT id) AS n FROM people WHERE sex = 'F'",
        "SELECT sex, COUNT(*) AS n, AVG(level) AS a FROM people GROUP BY sex",
        "SELECT COUNT(level) AS n FROM people",
        "SELECT level + 1 AS one, COUNT(*) AS n FROM people GROUP BY one",
    ],
)
def test_what_it_cannot_answer_goes_the_ordinary_way(tmp_path: Path, text: str) -> None:
    with World(tmp_path).opened() as asker:
        with pytest.raises(QuestionError, match="price"):
            asker.curator.ask(text)
        with pytest.raises(QuestionError, match="price"):
            asker.curator.explain(text)
        release = asker.curator.ask(text, epsilon=1)
        assert release.charged == {"epsilon": 1.0, "delta": 0.0}
        assert "synthetic" not in str(release)
        assert not asker.state.begun


def test_once_its_updates_are_used_up_it_says_so_and_questions_have_their_price(tmp_path: Path) -> None:
    with World(tmp_path, updates=1, epsilon=4.0).opened() as asker:
        curator = asker.curator
        hard = curator.ask(FEMALE)
        assert "1 of 1 updates used" in str(hard)
        with pytest.raises(QuestionError, match="price"):
            curator.ask(EASY)
        bought = curator.ask(EASY, epsilon="0.001")
        assert bought.charged
        assert "the synthetic state answers no more (1 of 1 updates used)" in str(bought)
        assert "the synthetic state answers no more" in repr(curator.explain(EASY, epsilon="0.001"))
        assert curator.ask(FEMALE).rows == hard.rows  # what it has answered stays


def test_a_state_that_the_budget_does_not_admit_does_not_begin(tmp_path: Path) -> None:
    world = World(tmp_path, updates=1, epsilon=5.0, top="[question]\nepsilon = 0.1\n")
    with world.opened() as asker:
        curator = asker.curator
        curator.ask("SELECT AVG(level) AS a FROM people", epsilon=4.5)
        release = curator.ask(FEMALE)
        assert release.charged == {"epsilon": 0.1, "delta": 0.0}
        assert "has not begun, and its price is more than is left" in str(release)
        assert not curator.explain(FEMALE).synthetic


def test_a_default_price_is_paid_for_what_it_cannot_answer_alone(tmp_path: Path) -> None:
    with World(tmp_path, top="[question]\nepsilon = 0.1\n").opened() as asker:
        assert not asker.curator.ask(EASY).cost
        assert asker.curator.ask("SELECT AVG(level) AS a FROM people").cost.epsilon == 0.1


def test_an_analyst_with_an_account_of_her_own_pays_as_ever(tmp_path: Path) -> None:
    """Her own promise counts what she sees, and the state is charged to the whole budget alone."""
    world = World(tmp_path, top="[analysts.ana]\nepsilon = 1.0\n[question]\nepsilon = 0.1\n")
    with discreet.open(world.file, owner=True) as curator:
        assert not curator.ask(EASY).cost
        release = curator.ask(EASY, analyst="ana")
        assert release.charged.epsilon == 0.1
        assert "synthetic" not in str(release)
        assert not curator.explain(EASY, analyst="ana").synthetic


def test_new_rows_are_asked_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        asker.curator.ask(EASY)
        assert len(asker.transcript.replies) == 1
        asker.curator.ask(EASY)
        assert len(asker.transcript.replies) == 1
        world.write(ROWS[:100])
        asker.curator.refresh()
        asker.curator.ask(EASY)
        assert len(asker.transcript.replies) == 2


def test_a_state_that_is_declared_otherwise_is_another_at_its_own_price(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        asker.curator.ask(EASY)
        used, name = asker.curator.budget.used, asker.whole.name
    world.file.write_text(world.file.read_text().replace("updates = 5", "updates = 6"))
    with world.opened() as asker:
        assert asker.whole.name != name
        assert "it begins with this question" in asker.curator.explain(EASY).synthetic
        asker.curator.ask(EASY)
        assert asker.curator.budget.used > used


def test_columns_whose_types_have_no_values_are_a_fault_of_the_declaration(tmp_path: Path) -> None:
    world = World(tmp_path)
    text = world.file.read_text().replace('level = { type = "integer", min = 1, max = 4 }', "level = { min = 1 }")
    world.file.write_text(text)
    with pytest.raises(DeclarationError):
        discreet.open(world.file)


def test_at_the_command_line(tmp_path: Path, cli: Command) -> None:
    world = World(tmp_path)
    assert "free: from the synthetic state, ±" in cli("explain", world.file, EASY).out
    said = cli("ask", world.file, EASY)
    assert said.code == 0
    assert "free: from the synthetic state, ±" in said.out
    plain = json.loads(cli("ask", world.file, EASY, "--json").out)
    assert "updates used" in plain["synthetic_state"]
    assert plain["charged"] == {"epsilon": 0.0, "delta": 0.0}
    assert cli("ask", world.file, EASY, "--afresh").code == 2
    assert cli("ask", world.file, EASY, "--afresh", "--epsilon", "0.1").code == 0
    assert cli("ledger", world.file, "--verify").code == 0
    assert cli("backup", world.file, tmp_path / "copy").code == 0
    held = b"".join(one.read_bytes() for one in (tmp_path / "copy").rglob("*") if one.is_file())
    assert world.secret.read_bytes()[:40] not in held
    assert (world.folder / "keys" / "state.key").read_bytes().strip() not in held


def test_a_request_gets_the_reply_that_it_got_whatever_rows_are_there(tmp_path: Path) -> None:
    """After a refresh, in another process, by layers, and once the updates are used up; another question is refused."""
    world = World(tmp_path, updates=2, epsilon=4.5)
    layered = f"WITH s AS ({EASY}) SELECT n + 1 AS m FROM s"
    with world.opened() as asker:
        first = [
            asker.curator.ask(FEMALE, request="r"),
            asker.curator.ask(FEMALE, request="known"),  # nothing new is drawn for it
            asker.curator.ask(layered, request="layers"),
        ]
        assert len(asker.transcript.replies) == 2
        assert first[0].rows == first[1].rows
    world.write([row for row in ROWS if row[1] == "M"])
    with discreet.open(world.file) as curator:
        curator.refresh()
    with world.opened() as asker:
        curator = asker.curator
        replies = asker.transcript.replies
        for text, request, before in zip((FEMALE, FEMALE, layered), ("r", "known", "layers"), first, strict=True):
            again = curator.ask(text, request=request)
            assert (again.rows, again.intervals) == (before.rows, before.intervals)
            assert not again.charged
        assert asker.transcript.replies == replies
        for text, named in ((EASY, {}), (FEMALE, {"epsilon": 0.1}), (FEMALE, {"epsilon": "0.001", "reuse": False})):
            said = "belongs to another question" if text == EASY else "under this request id before"
            with pytest.raises(QuestionError, match=said):
                curator.ask(text, request="r", **(named or {"epsilon": 0.1}))
        assert asker.transcript.replies == replies
        assert curator.ask(FEMALE).rows != first[0].rows  # 2,000 women, and none now
        with suppress(Used):
            while True:
                asker.ask(10**6)
        assert asker.answering.over
        for text, request, before in zip((FEMALE, FEMALE, layered), ("r", "known", "layers"), first, strict=True):
            assert curator.ask(text, request=request).rows == before.rows
        curator.ledger.verify()


def test_a_request_that_somebody_else_is_answered_meanwhile_gets_that(tmp_path: Path) -> None:
    """Two processes draw for one request: the reply that was kept for it first is what both are told."""
    world = World(tmp_path)
    with world.opened() as asker, world.opened() as other:
        told = []

        def late(*_: Any, **__: Any) -> Any:
            told.append(other.curator.ask(FEMALE, request="r").rows)
            other.ask()
            return replace(asker.transcript.replies[-1], counts=(-1,))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asker.state, "reply", late)
            assert asker.curator.ask(FEMALE, request="r").rows == told[0]
