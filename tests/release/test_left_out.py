"""How an answer and its explanation say what may be missing: in words, for machines, and with questions that tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pandas")

import pandas

import discreet
import limited_tools as tools
import related_tables
from discreet.release.content import FREE, ReleaseContent
from limited_tools import NOTHING, clause, number


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    with tools.curator(tools.rows()) as curator:
        yield curator


@pytest.fixture(scope="module")
def unknown() -> Iterator[discreet.Curator]:
    """With private categories."""
    with tools.curator(tools.rows(), private=True) as curator:
        yield curator


def said(answer: Any, what: str) -> Any:
    return next(one for one in answer.left_out if one.what == what)


def test_the_declared_limit_is_said_as_one(curator: discreet.Curator) -> None:
    release = curator.ask("SELECT COUNT(*) AS n, SUM(x) AS s, SUM(y) AS m, AVG(x) AS a FROM t", epsilon=NOTHING)
    assert [one.what for one in release.left_out] == ["read", "rows", "clamped", "clamped"]
    words = "at most 8 rows of each person count, as declared; further rows are left out, at random"
    assert release.left_out[1].words == words
    assert words in repr(release)
    release = curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert not release.charged  # a part of the first answer, and none of its words about x and y
    assert curator.explain("SELECT COUNT(*) AS n FROM t", epsilon=1).left_out == release.left_out
    for limit, beside in ((8, "as declared"), (100, "above the declared 8")):
        release = curator.ask(clause(f"max_rows_contributed = {limit}", "COUNT(*) AS n FROM t"), epsilon=NOTHING)
        assert f"at most {limit} rows of each person count, {beside}; " in repr(release)
        assert [one.what for one in release.left_out] == ["read", "rows"]


def test_words_numbers_and_json_are_the_same(curator: discreet.Curator) -> None:
    question = clause("max_groups_contributed = 1", "cat, COUNT(DISTINCT uid) AS n FROM t GROUP BY cat")
    release = curator.ask(question, epsilon=3)
    content = json.loads(release.to_json())["left_out"]
    assert content == [one.to_dict() for one in release.left_out]
    one = next(one for one in content if one["what"] == "number")
    assert (one["column"], one["share"]) == ("n", 0.25)
    assert one["words"] in repr(release)
    assert one["words"] in release._repr_html_()
    assert f"at most {one['at_most']:,} is missing, at 95 % confidence" in one["words"]
    assert curator.ask(question, epsilon=3).left_out == release.left_out  # from the ledger
    before = curator.explain(question, epsilon=3)
    assert number(before, "n").to_dict() == {
        **one,
        "at_most": None,
        "persons": None,
        "words": number(before, "n").words,
    }
    assert next(one for one in before.to_dict()["left_out"] if one["what"] == "groups")["limit"] == 1
    assert number(before, "n").words in repr(before)


def test_answers_of_before_and_of_other_kinds_say_their_bounds(curator: discreet.Curator) -> None:
    release = curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=NOTHING)
    old = {name: value for name, value in release.content.items() if name != "left_out"}
    older = discreet.Release(ReleaseContent.from_dict(old), FREE, release.balance, release.loss)
    assert older.left_out == ()
    assert older.bounds == release.bounds


UNKNOWN = [
    (clause("max_rows_contributed = 2", "SUM(y) AS s FROM t"), "s: how much is missing is not known"),
    (
        "SELECT COUNT(DISTINCT x) AS n FROM t",
        "at most 4 different values of each person count; further ones are left out",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT uid FROM t UNION ALL SELECT uid FROM t)",
        "n: how much is missing is not known",
    ),
    ("SELECT COUNT(*) AS n FROM t a JOIN t b ON a.uid = b.uid", "n: how much is missing is not known"),
]


@pytest.mark.parametrize(("question", "words"), UNKNOWN, ids=[words[:40] for _, words in UNKNOWN])
def test_what_is_not_known_is_said(curator: discreet.Curator, question: str, words: str) -> None:
    assert words in repr(curator.ask(question, epsilon=NOTHING))
    assert any(words in one.words for one in curator.explain(question, epsilon=1).left_out)


def test_a_quantile_of_limited_rows_says_that_rows_were_limited(curator: discreet.Curator) -> None:
    release = curator.ask(clause("max_rows_contributed = 2", "PERCENTILE_CONT(x, 0.5) AS q FROM t"), epsilon=NOTHING)
    assert "at most 2 rows of each person count, of the declared 8; further" in repr(release)
    assert "how much: SELECT COUNT(*) FROM (SELECT uid, COUNT(*) AS k FROM t GROUP BY uid) WHERE k > 2" in repr(release)


def test_rows_that_a_subquery_does_not_read_are_said(curator: discreet.Curator) -> None:
    release = curator.ask("SELECT AVG(k) AS a FROM (SELECT uid, COUNT(*) AS k FROM t GROUP BY uid)", epsilon=NOTHING)
    assert "of t, rows of a person beyond 8 are left out where it is read" in release.bounds


def test_public_tables_beside_one_table_change_nothing(curator: discreet.Curator) -> None:
    """A join that meets each row once at most, lookups, and computed keys: the declared limit is known."""
    for rest in (
        "p.cat, COUNT(*) AS n FROM t RIGHT JOIN (SELECT DISTINCT cat FROM pub) p ON t.cat = p.cat GROUP BY p.cat",
        "COUNT(*) AS n FROM t WHERE cat IN (SELECT cat FROM pub)",
        "x > 5 AS big, COUNT(*) AS n FROM t GROUP BY x > 5",
    ):
        whole = curator.ask(f"SELECT {rest}", epsilon=NOTHING)
        release = curator.ask(clause("max_rows_contributed = 4", rest), epsilon=NOTHING)
        assert said(release, "rows").declared == 8
        missing = sum(row["n"] for row in whole.rows) - sum(row["n"] for row in release.rows)
        assert 0 < missing <= number(release, "n").at_most
        assert number(release, "n").persons  # limited after everything else: each person above adds exactly 4


def test_limits_along_keys_keep_the_share_that_is_said() -> None:
    """Each customer has 20 items of which 8 count as declared, each customer of the second kind in two copies, as the
    order stands there twice: the share is then just what a limit keeps of a count of rows, and what is missing no more
    than is said; the questions read items, and items beside a public table."""
    people = [(f"c{one}", "FM"[one % 2], one % 10) for one in range(40)]
    orders = [(10 * one + order, f"c{one}", "web") for one in range(40) for order in range(4)]
    orders += [one for one in orders if int(one[1][1:]) % 2]
    items = [
        (number, kind) for number, _, _ in dict.fromkeys(orders) for kind in ("book", "toy", "toy", "food", "food")
    ]
    tables = related_tables.frames(people, orders, items)
    said = related_tables.said(orders=10, items=8)
    kinds = pandas.DataFrame({"name": ["book", "toy"], "price": [1, 2]})
    sources = {name: discreet.Table(frame, **said[name]) for name, frame in tables.items()}
    columns = {"name": {"values": ["book", "toy"], "nulls": False}, "price": (0, 9)}
    sources["kinds"] = discreet.Table(kinds, public=True, columns=columns)
    with discreet.Curator(sources, epsilon=10**25) as shop:
        for rest in (
            "COUNT(*) AS n FROM items",
            "kind, COUNT(*) AS n FROM items GROUP BY kind",
            "COUNT(*) AS n FROM items WHERE kind <> 'food'",
            "k.name, COUNT(*) AS n FROM items RIGHT JOIN (SELECT DISTINCT name FROM kinds) k ON items.kind = k.name"
            " GROUP BY k.name",
        ):
            whole = shop.ask(f"SELECT {rest}", epsilon=NOTHING)
            assert "at most 8 rows of each person count, as declared; further" in repr(whole)
            assert not any(one.what == "number" for one in whole.left_out)
            for limit in (1, 2, 5):
                release = shop.ask(clause(f"max_rows_contributed = {limit}", rest), epsilon=NOTHING)
                found, every = (sum(row["n"] for row in one.rows) for one in (release, whole))
                share = number(release, "n").share
                assert share == limit / 8
                assert found == share * every
                assert 0 < every - found <= number(release, "n").at_most
                assert number(release, "n").persons is None
                assert "on average" in number(release, "n").words  # of whom orders are drawn, too, where they are many


QUESTIONS = [
    "SELECT COUNT(*) AS n, SUM(x) AS s, VAR_POP(y) AS v FROM t",
    "SELECT cat, COUNT(*) AS n, COUNT(DISTINCT uid) AS m FROM t GROUP BY cat",
    clause("max_groups_contributed = 2", "cat, COUNT(DISTINCT uid) AS n, MEDIAN(y) AS q FROM t GROUP BY cat"),
    clause(
        "max_groups_contributed = 2", "cat, SUM(x, contribution_bounds_per_group => (0, 5)) AS s FROM t GROUP BY cat"
    ),
    clause(
        "max_groups_contributed = 2",
        "cat, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, COUNT(DISTINCT uid) AS m, SUM(y) AS s FROM t "
        "GROUP BY cat",
    ),
]


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_other_limits_cost_what_is_said(
    curator: discreet.Curator, unknown: discreet.Curator, question: str, private: bool
) -> None:
    """The stated error at another limit is that of the question with that limit in its clause."""
    asked = unknown if private else curator
    price: dict[str, Any] = {"epsilon": 2, "delta": "1e-6"}
    explained = asked.explain(question, **price)
    assert explained.choices
    for choice in explained.choices:
        rest = question.partition("OPTIONS(max_groups_contributed = 2) ")[2] or question.removeprefix("SELECT ")
        other = asked.explain(clause(f"{choice.option} = {choice.limit}", rest), **price)
        assert choice.expected_error == pytest.approx(dict(other.expected_error))
        if choice.now:
            assert choice.expected_error == explained.expected_error
    first, last = explained.choices[0], explained.choices[-1]
    assert (first.limit, last.limit) in ((1, 8), (1, 4))
    assert all(error <= last.expected_error[name] * 1.001 for name, error in first.expected_error.items())
    assert f"{first.option} = 1" in repr(explained)


TELLING: list[tuple[str, str, list[Any]]] = [
    ("max_rows_contributed = 3", "COUNT(*) AS n FROM t", [8]),
    ("max_groups_contributed = 1", "cat, COUNT(DISTINCT uid) AS n FROM t GROUP BY cat", [None]),
    (
        "max_groups_contributed = 5",
        "cat, COUNT(*, contribution_bounds_per_group => (0, 1)) AS n FROM t GROUP BY cat",
        [None],
    ),
    (
        "max_groups_contributed = 4",
        "SUM(x, contribution_bounds_per_group => (0, 20)) AS s FROM t",
        [None],
    ),
    (
        "max_rows_contributed = 8",
        "SUM(x, contribution_bounds_per_row => (2, 8)) AS s FROM t",
        [8],
    ),
]


@pytest.mark.parametrize(("options", "rest", "answers"), TELLING, ids=[rest[:40] for _, rest, _ in TELLING])
def test_the_questions_that_tell_are_answered(
    curator: discreet.Curator, options: str, rest: str, answers: list[Any]
) -> None:
    explained = curator.explain(clause(options, rest), epsilon=1)
    rows = [curator.ask(one.split(": ", 1)[1], epsilon=NOTHING).rows for one in explained.advice]
    told = [next(iter(row[0].values())) for row in rows]
    assert len(told) == len(answers)
    assert all(wanted is None or value == wanted for value, wanted in zip(told, answers, strict=True))
    for one in explained.left_out:
        if one.question is not None:
            assert curator.ask(one.question, epsilon=NOTHING).rows
            assert one.question in repr(explained)


def test_outside_means_outside(curator: discreet.Curator) -> None:
    """Against the rows themselves."""
    rows = tools.rows()
    question = clause("max_rows_contributed = 8", "SUM(x, contribution_bounds_per_row => (2, 8)) AS s FROM t")
    one = next(one for one in curator.ask(question, epsilon=NOTHING).left_out if one.question and one.column)
    assert one.words == "x is clamped to [2, 8]"
    outside = sum(row["x"] is not None and not 2 <= row["x"] <= 8 for row in rows)
    assert curator.ask(one.question, epsilon=NOTHING).rows == [{"outside": outside}]
    keyless = said(curator.ask("SELECT cat, COUNT(*) AS n FROM t GROUP BY cat", epsilon=NOTHING), "keys")
    undeclared = sum(row["cat"] == "undeclared" for row in rows)
    assert curator.ask(keyless.question, epsilon=NOTHING).rows == [{"outside": undeclared}]


def test_names_that_need_quotes_and_bounds_that_were_found() -> None:
    import pandas

    frame = pandas.DataFrame({"order": [1, 1, 2, 3], "k": ["it's", "b", "b", None], "größe": [0.5, 900.25, 7.5, 1.0]})
    columns = {"order": {"type": "integer"}, "k": ["it's", "b"], "größe": {"type": "number"}}
    table = discreet.Table(frame, person="order", rows_per_person=3, columns=columns)
    with discreet.Curator({"group": table}, epsilon=10**25) as curator:
        question = clause("max_groups_contributed = 1", 'k, COUNT(DISTINCT "order") AS n FROM "group" GROUP BY k')
        explained = curator.explain(question, epsilon=1)
        told = [curator.ask(one.split(": ", 1)[1], epsilon=NOTHING).rows[0] for one in explained.advice]
        assert told == [{"k_0": 2}]
        groups = said(explained, "groups")
        assert curator.ask(groups.question, epsilon=NOTHING).rows == [{"count": 1}]
        release = curator.ask(question, epsilon=NOTHING)
        assert curator.ask(said(release, "keys").question, epsilon=NOTHING).rows == [{"outside": 0}]
        assert release.rows[-1] == {"k": None, "n": 1}
        release = curator.ask('SELECT SUM("größe") AS s FROM "group"', epsilon=NOTHING)
        one = said(release, "clamped")
        assert "bounds found at a fifth of the price" in one.words
        assert curator.ask(one.question, epsilon=NOTHING).rows[0]["outside"] in (0, 1, 2)


def test_what_depends_on_the_size_of_a_group_is_said_of_moments_and_not_of_what_is_hidden(
    curator: discreet.Curator,
) -> None:
    chosen = "VAR_POP(x) AS v, CORR(x, y) AS c, AVG(x) AS a, COUNT(*) AS n, SUM(x) / COUNT(*) AS f"
    explained = curator.explain(f"SELECT {chosen} FROM t", epsilon=1)
    assert explained.means == ("v", "c", "a")
    assert explained.to_dict()["means"] == ["v", "c", "a"]
    assert repr(explained).count("in a group of at least 1,000 values") == 3


def test_a_column_of_one_value_and_unknown_bounds_with_private_groups(unknown: discreet.Curator) -> None:
    import pandas

    columns = {"uid": {"type": "integer"}, "x": {"type": "integer", "min": 0, "max": 0}}
    table = discreet.Table(pandas.DataFrame({"uid": [1], "x": [0]}), person="uid", rows_per_person=4, columns=columns)
    with discreet.Curator({"t": table}, epsilon=10**25) as curator:
        release = curator.ask(clause("max_rows_contributed = 2", "SUM(x) AS s, COUNT(*) AS n FROM t"), epsilon=NOTHING)
        assert number(release, "n").at_most >= 1
    question = "SELECT cat, SUM(x / y) AS s, MEDIAN(y) AS m FROM t GROUP BY cat HAVING s > 0 LIMIT 2"
    assert "known once the bounds are found" in said(unknown.explain(question, epsilon=1), "small groups").words
    assert "is shown with probability 95 %" in said(unknown.ask(question, epsilon=1), "small groups").words


def test_huge_limits_and_tiny_prices_are_answered() -> None:
    found = [{"uid": 1, "x": 1, "y": 1, "cat": "a"}]
    with tools.curator(found, least="1e-9") as curator:
        release = curator.ask(clause("max_rows_contributed = 7", "COUNT(*) AS n, SUM(x) AS s FROM t"), epsilon="1e-9")
        assert number(release, "n").at_most is not None
    import pandas

    table = discreet.Table(
        pandas.DataFrame({"uid": [1], "z": [1.0]}),
        person="uid",
        rows_per_person=2**16,
        columns={"uid": {"type": "integer"}, "z": {"type": "number", "min": 0, "max": 10**230}},
    )
    with discreet.Curator({"t": table}, epsilon=1, least="1e-9") as curator:
        release = curator.ask(clause("max_rows_contributed = 1", "SUM(z) AS n, COUNT(*) AS m FROM t"), epsilon="1e-9")
        assert json.loads(json.dumps(release.to_dict(), allow_nan=False))


def test_explain_says_from_how_many_persons_groups_are_shown_and_what_limit_shows_smaller_ones() -> None:
    import pandas

    frame = pandas.DataFrame({"uid": [1, 2], "word": ["a", "b"]})
    columns = {"uid": {"type": "integer"}, "word": {"type": "text"}}
    table = discreet.Table(frame, person="uid", rows_per_person=200, columns=columns)
    with discreet.Curator({"t": table}, epsilon=3, delta="1e-6") as curator:
        assert table.declaration["rows_per_person"] == 200
        explained = curator.explain("SELECT word, COUNT(DISTINCT uid) AS n FROM t GROUP BY word", epsilon="0.5")
        small = said(explained, "small groups").words
        shown = {choice.limit: choice.shown_from for choice in explained.choices}
        assert max(shown) == 10  # not 200, which would show no group of less than some thousand persons
        assert f"a group of {shown[10]:,} or more counted persons is shown with probability 95 %" in small
        assert f"; with max_groups_contributed = 1, a group of {shown[1]:,}" in small
        assert f"groups from {shown[1]:,} persons; 2: " in repr(explained)
        assert shown[1] < shown[2] < shown[5] < shown[10]
        assert explained.to_dict()["choices"][0]["shown_from"] == shown[1]
