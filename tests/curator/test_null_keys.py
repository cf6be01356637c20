"""NULL as a key: a group like any other, wherever nothing rules it out; and nothing is said that only rows tell."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow
import pytest

import discreet
from discreet.sql import lower
from discreet.trusted.ring_a.sensitivity import sensitivity

NOTHING = 10**20
"""A price that leaves no noise."""
DAY = datetime.date(2020, 1, 31)
ROWS = {
    "uid": [1, 1, 2, 2, 3, None],
    "word": ["a", None, None, "b", "other", "a"],
    "free": ["a", None, None, "b", "a", "a"],
    "full": ["a", "a", None, "b", "b", "a"],
    "flag": [True, None, None, False, True, True],
    "whole": [0, None, 2, None, 7, 1],
    "day": [DAY, None, None, DAY, DAY, DAY],
    "pid": [1, 2, None, 1, 2, 1],
}
COLUMNS: Mapping[str, Any] = {
    "uid": {"type": "integer"},
    "word": {"type": "text", "values": ["a", "b"]},
    "free": {"type": "text"},
    "full": {"type": "text", "values": ["a", "b"], "nulls": False},
    "flag": {"type": "boolean"},
    "whole": {"type": "integer", "min": 0, "max": 2},
    "day": {"type": "date"},
    "pid": {"type": "integer"},
}
TYPES = {"text": pyarrow.string(), "integer": pyarrow.int64(), "boolean": pyarrow.bool_(), "date": pyarrow.date32()}


def curator(rows: Mapping[str, list[Any]], groups: int = 9) -> discreet.Curator:
    frame = pyarrow.table({name: pyarrow.array(rows[name], TYPES[one["type"]]) for name, one in COLUMNS.items()})
    tables = {
        "t": discreet.Table(frame, person="uid", rows_per_person=9, groups_per_person=groups, columns=COLUMNS),
        "p": discreet.Table(
            pyarrow.table({"pid": [1, 2], "name": ["x", None]}),
            public=True,
            columns={"pid": {"type": "integer"}, "name": {"type": "text"}},
        ),
    }
    return discreet.Curator(tables, epsilon=10**25, delta="1e-3")


@pytest.fixture(scope="module")
def known() -> Iterator[discreet.Curator]:
    with curator(ROWS) as made:
        yield made


ANSWERS: list[tuple[str, dict[Any, int]]] = [
    ("word AS g FROM t GROUP BY word", {"a": 1, "b": 1, None: 2}),
    ("free AS g FROM t GROUP BY free", {"a": 2, "b": 1, None: 2}),
    ("flag AS g FROM t GROUP BY flag", {False: 1, True: 2, None: 2}),
    ("whole AS g FROM t GROUP BY whole", {0: 1, 1: 0, 2: 2, None: 2}),
    ("day AS g FROM t GROUP BY day", {DAY: 3, None: 2}),
    ("YEAR(day) AS g FROM t GROUP BY YEAR(day)", {2020: 3, None: 2}),
    ("CASE WHEN flag THEN 'yes' END AS g FROM t GROUP BY g", {"yes": 2, None: 3}),
    ("UPPER(full) AS g FROM t GROUP BY g", {"A": 2, "B": 2}),
    ("p.name AS g FROM t JOIN p ON t.pid = p.pid GROUP BY p.name", {"x": 2, None: 2}),
    ("p.name AS g FROM t LEFT JOIN p ON t.pid = p.pid GROUP BY p.name", {"x": 2, None: 3}),
    ("word AS g FROM t WHERE free = 'a' OR free IS NULL GROUP BY word", {"a": 1, "b": 0, None: 2}),
    # where NULL is ruled out, there is no group for it
    ("full AS g FROM t GROUP BY full", {"a": 2, "b": 2}),
    ("full = 'a' AS g FROM t GROUP BY g", {False: 2, True: 2}),
    ("COALESCE(flag, FALSE) AS g FROM t GROUP BY g", {False: 3, True: 2}),
    ("CASE WHEN flag THEN 'yes' ELSE 'no' END AS g FROM t GROUP BY g", {"yes": 2, "no": 3}),
    ("word AS g FROM t WHERE word IS NOT NULL GROUP BY word", {"a": 1, "b": 1}),
    ("word AS g FROM t WHERE word <> 'b' GROUP BY word", {"a": 1}),
    ("word AS g FROM t WHERE word IN ('a', 'b') OR word LIKE 'x%' GROUP BY word", {"a": 1, "b": 1}),
    ("YEAR(day) AS g FROM t WHERE day >= DATE '2000-01-01' GROUP BY g", {2020: 3}),
    ("flag AS g FROM (SELECT uid, flag FROM t WHERE NOT flag OR flag) s GROUP BY flag", {False: 1, True: 2}),
    ("t.pid AS g FROM t JOIN p ON t.pid = p.pid GROUP BY t.pid", {1: 2, 2: 2}),
    ("pid AS g FROM t WHERE pid IN (SELECT pid FROM p) GROUP BY pid", {1: 2, 2: 2}),
    ("n AS g FROM (SELECT uid, COUNT(*) AS n FROM t GROUP BY uid) s GROUP BY n", {1: 1, 2: 2}),
]


@pytest.mark.parametrize(("text", "groups"), ANSWERS, ids=[text[:60] for text, _ in ANSWERS])
def test_each_key_has_its_rows(known: discreet.Curator, text: str, groups: dict[Any, int]) -> None:
    """Also NULL, where it is one; with windows of groups, and without."""
    keys, rest = text.split(" FROM ", 1)
    for clause in ("", "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 2) "):  # nobody has more than two
        release = known.ask(f"SELECT {clause}{keys}, COUNT(*) AS n FROM {rest}", epsilon=NOTHING)
        found = {row["g"]: row["n"] for row in release.rows}
        assert (None in found) is (None in groups)
        assert json.loads(release.to_json())["columns"] == ["g", "n"]
        if any(one.what == "small groups" for one in release.left_out):  # those of one person are not shown
            assert found.items() <= groups.items()
        else:
            assert {key: n for key, n in found.items() if n or key is None or key in groups} == groups


def test_null_is_printed_and_put_in_order(known: discreet.Curator) -> None:
    release = known.ask("SELECT word, COUNT(*) AS n FROM t GROUP BY word ORDER BY word DESC", epsilon=NOTHING)
    assert [row["word"] for row in release.rows] == ["b", "a", None]
    assert "NULL  2 ±0" in repr(release)
    assert release.to_pandas().shape == (3, 4)
    few = known.ask(
        "SELECT word, COUNT(*) AS n FROM t GROUP BY word HAVING word = 'a' OR word IS NULL", epsilon=NOTHING
    )
    assert [row["word"] for row in few.rows] == ["a", None]
    most = known.select("SELECT whole, COUNT(*) FROM t GROUP BY whole", epsilon=NOTHING, k=2)
    assert {row["whole"] for row in most.rows} == {2, None}


def test_null_counts_among_the_groups_of_a_person() -> None:
    """With a limit of one, the person of "a" and NULL is in one of them; the limit, or all there are, is paid for."""
    with curator(ROWS, groups=1) as limited:
        for number in range(6):
            where = f"WHERE whole < {number + 9} OR whole IS NULL"
            text = f"SELECT free, COUNT(DISTINCT uid) AS n FROM t {where} GROUP BY free"
            assert sum(row["n"] for row in limited.ask(text, epsilon=NOTHING).rows) <= 3
    with curator(ROWS, groups=1) as limited:
        plan = lower("SELECT word, COUNT(DISTINCT uid) FROM t GROUP BY word", limited.declaration).plan
        assert sensitivity(plan.root, plan.parts[0]).cells == 1
    with curator(ROWS, groups=3) as limited:
        plan = lower("SELECT word, COUNT(DISTINCT uid) FROM t GROUP BY word", limited.declaration).plan
        assert sensitivity(plan.root, plan.parts[0]).cells == 3  # two declared, and NULL


QUESTIONS = [
    "SELECT {key}, COUNT(*) AS n FROM t GROUP BY {key}",
    "SELECT {key}, COUNT(DISTINCT uid) AS n FROM t GROUP BY {key}",
    "SELECT {key}, AVG(whole) AS n FROM t WHERE whole > 0 GROUP BY {key}",
]


def test_what_is_said_is_the_same_on_every_table() -> None:
    """No row, all rows, and rows that have every key and person: byte for byte the same words beside the answer."""
    empty: dict[str, list[Any]] = {name: [] for name in ROWS}
    plain = {name: [next(value for value in values if value is not None)] * 3 for name, values in ROWS.items()}
    texts = []
    for rows in (ROWS, empty, plain):
        with curator(rows) as one:
            said = []
            for question in QUESTIONS:
                for key in ("word", "free", "full", "flag", "whole"):
                    text = question.format(key=key)
                    explained = one.explain(text, epsilon=1)
                    said.append(repr(explained))
                    release = one.ask(text, epsilon=1)
                    said.append("; ".join(release.bounds))
                    said += [part.words for part in release.left_out if part.at_most is None]
            texts.append(said)
    assert texts[0] == texts[1] == texts[2]


SAID = [
    ("SELECT COUNT(*) AS n FROM t", ["rows without a person are left out"]),
    ("SELECT word, COUNT(*) AS n FROM t GROUP BY word", ["rows whose key is not declared are left out"]),
    ("SELECT full, COUNT(*) AS n FROM t GROUP BY full", ["rows whose key is NULL or not declared are left out"]),
    ("SELECT flag, COUNT(*) AS n FROM t GROUP BY flag", []),
    ("SELECT whole, COUNT(*) AS n FROM t GROUP BY whole", []),
    (
        "SELECT word, COUNT(*) AS n FROM t WHERE word <> 'b' GROUP BY word",
        ["rows whose key is NULL or not declared are left out"],
    ),
]


@pytest.mark.parametrize(("question", "words"), SAID, ids=[question[:60] for question, _ in SAID])
def test_what_may_be_left_out_is_said(known: discreet.Curator, question: str, words: list[str]) -> None:
    release = known.ask(question, epsilon=NOTHING)
    assert "rows without a person are left out" in repr(release)
    assert all(any(one in bound for bound in release.bounds) for one in words)
    assert any("rows whose key" in bound for bound in release.bounds) is any("key" in one for one in words)


def test_one_row_of_each_person_is_not_all_rows() -> None:
    frame = pyarrow.table({"id": ["a", "a", None, "b"]})
    for person, words in (("id", "of t, rows of a person beyond the first are left out"), (None, None)):
        table = discreet.Table(frame, person=person, one_row_per_person=True, columns={"id": {"type": "text"}})
        with discreet.Curator({"t": table}, epsilon=10**25) as one:
            release = one.ask("SELECT COUNT(*) AS n FROM t", epsilon=NOTHING)
            assert release.rows == [{"n": 2 if words else 4}]
            assert ("of t, each row counts as one person" in repr(release)) is (words is None)
            assert words is None or (words in repr(release) and "rows without a person are left out" in repr(release))
