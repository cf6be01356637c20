"""Groups that a public table lists, of one column and of several together: all of them are shown and none other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402

VISITS = {
    "uid": [1, 1, 2, 3, 4, 5, 5],
    "ward": ["a", "b", "a", "b", "b", "c", None],
    "year": [2020, 2021, 2020, 2020, 2021, 2020, 2020],
    "sex": ["F", "F", "M", "F", "M", "F", "F"],
}
OPEN = {"ward": ["a", "a", "b", "q", None, "b"], "year": [2020, 2021, 2021, 2020, 2020, 2021]}
LISTED = [("a", 2020), ("a", 2021), ("b", 2021), ("q", 2020)]
"""What the public table lists, each once, without NULL."""


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    keys = {"ward": {"type": "text"}, "year": {"type": "integer"}}
    people = {"uid": {"type": "integer"}, "sex": {"values": ["F", "M"], "nulls": False}, **keys}
    tables = {
        "visits": discreet.Table(pandas.DataFrame(VISITS), person="uid", rows_per_person=5, columns=people),
        "opened": discreet.Table(pandas.DataFrame(OPEN), public=True, columns=keys),
        "more": discreet.Table(
            pandas.DataFrame({"a": [1] * 100_000 + [2], "b": [*range(100_000), 1]}),
            public=True,
            columns={"a": {"type": "integer"}, "b": {"type": "integer"}},
        ),
        "many": discreet.Table(
            pandas.DataFrame({"a": range(1_000), "b": range(1_000)}),
            public=True,
            columns={"a": {"type": "integer"}, "b": {"type": "integer"}},
        ),
    }
    with discreet.Curator(tables, epsilon=1e25, delta=1e-3, keys_delta=9e-4) as curator:
        yield curator


OPTIONS = "epsilon=1e20, delta=1e-5, max_groups_contributed=5, group_selection_strategy=PUBLIC_GROUPS"
DISTINCT = "(SELECT DISTINCT ward, year FROM opened)"
JOINS = [
    f"FROM visits v RIGHT JOIN {DISTINCT} o ON v.ward = o.ward AND v.year = o.year GROUP BY o.ward, o.year",
    f"FROM visits v RIGHT JOIN {DISTINCT} o ON o.year = v.year AND v.ward = o.ward GROUP BY v.ward, v.year",
    f"FROM {DISTINCT} o LEFT JOIN visits v ON v.ward = o.ward AND v.year = o.year GROUP BY v.ward, o.year",
    f"FROM visits RIGHT JOIN {DISTINCT} USING (ward, year) GROUP BY ward, year",
    "FROM visits RIGHT JOIN (SELECT ward, year FROM opened GROUP BY ward, year) USING (ward, year) GROUP BY ward, year",
]


@pytest.mark.parametrize("join", JOINS, ids=range(len(JOINS)))
@pytest.mark.parametrize("counted", ["COUNT(*)", "COUNT(DISTINCT uid)", "SUM(5)"])
def test_the_listed_pairs_are_the_groups(curator: discreet.Curator, join: str, counted: str) -> None:
    columns = join.rpartition("GROUP BY ")[2]
    asked = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({OPTIONS}) {columns}, {counted} AS n {join}"
    rows = curator.ask(asked).rows
    counts = dict.fromkeys(LISTED, 0) | {("a", 2020): 2, ("b", 2021): 2}
    each = 5 if counted == "SUM(5)" else 1
    assert {(row["ward"], row["year"]): row["n"] for row in rows} == {key: n * each for key, n in counts.items()}
    assert len(rows) == len(LISTED)


def test_listed_pairs_stand_beside_other_keys(curator: discreet.Curator) -> None:
    join = f"FROM visits v RIGHT JOIN {DISTINCT} o ON v.ward = o.ward AND v.year = o.year"
    rows = curator.ask(
        f"SELECT o.year, sex, o.ward, COUNT(*) AS n {join} GROUP BY o.year, sex, o.ward", epsilon=1e20
    ).rows
    assert {(row["ward"], row["year"], row["sex"]) for row in rows} == {(*pair, sex) for pair in LISTED for sex in "FM"}
    assert {(row["ward"], row["sex"]): row["n"] for row in rows if row["n"]} == {
        ("a", "F"): 1,
        ("a", "M"): 1,
        ("b", "F"): 1,
        ("b", "M"): 1,
    }
    rows = curator.ask(f"SELECT v.ward, o.ward AS w, COUNT(*) AS n {join} GROUP BY v.ward, o.ward", epsilon=1e20).rows
    assert [(row["ward"], row["w"], row["n"]) for row in rows] == [("a", "a", 2), ("b", "b", 2), ("q", "q", 0)]
    rows = curator.ask(f"SELECT o.ward, COUNT(*) AS n {join} GROUP BY o.ward", epsilon=1e20).rows
    assert {row["ward"]: row["n"] for row in rows} == {"a": 2, "b": 2, "q": 0}
    rows = curator.ask(f"SELECT o.ward, o.year, MEDIAN(v.uid) AS m {join} GROUP BY o.ward, o.year", epsilon=1e20).rows
    assert len(rows) == len(LISTED)


def test_as_many_groups_as_are_listed_and_not_their_product(curator: discreet.Curator) -> None:
    """1,000 pairs of two columns with 1,000 values each: a product would be more than may be asked for."""
    pairs = "RIGHT JOIN (SELECT DISTINCT a, b FROM many) m ON v.year = m.a AND v.uid = m.b"
    rows = curator.ask(f"SELECT m.a, m.b, COUNT(*) AS n FROM visits v {pairs} GROUP BY m.a, m.b", epsilon=1e20).rows
    assert [(row["a"], row["b"]) for row in rows] == [(place, place) for place in range(1_000)]


def test_what_is_chosen_is_listed(curator: discreet.Curator) -> None:
    join = JOINS[0].rpartition(" GROUP BY")[0]
    question = f"SELECT o.ward, o.year, COUNT(DISTINCT v.uid) AS n {join} GROUP BY o.ward, o.year"
    assert {(row["ward"], row["year"]) for row in curator.select(question, k=4, epsilon=1).rows} == set(LISTED)
    with pytest.raises(discreet.QuestionError, match="number of groups"):
        curator.select(question, k=5, epsilon=1)


def test_groups_that_take_too_long_to_list_cost_nothing_and_the_engine_lives(
    curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.engines.driver.LISTING_SECONDS", 0.2)
    curator.left("SELECT COUNT(*) FROM visits", epsilon=1)
    process = curator._engine._process
    assert process is not None
    head, pid = curator.ledger.head, process.pid
    product = "(SELECT x.a, y.b FROM more x CROSS JOIN more y CROSS JOIN more z GROUP BY x.a, y.b)"
    join = f"visits v RIGHT JOIN {product} m ON v.year = m.a AND v.uid = m.b"
    with pytest.raises(discreet.QuestionError, match="could not list the groups") as refused:
        curator.explain(f"SELECT m.a, m.b, COUNT(*) AS n FROM {join} GROUP BY m.a, m.b", epsilon=1)
    assert "nothing was spent" in refused.value.message
    assert (curator.ledger.head, process.pid, process.usable) == (head, pid, True)


def test_more_than_can_be_read_is_refused_and_not_cut(curator: discreet.Curator) -> None:
    pairs = "RIGHT JOIN (SELECT DISTINCT a, b FROM more) m ON v.year = m.a AND v.uid = m.b"
    for columns in ("m.a, m.b", "m.a"):
        with pytest.raises(discreet.QuestionError, match="lists more than 100,000 groups") as refused:
            curator.ask(f"SELECT {columns}, COUNT(*) AS n FROM visits v {pairs} GROUP BY {columns}", epsilon=1)
        assert refused.value.code == "too-many-groups"


REFUSED = [
    f"RIGHT JOIN {DISTINCT} o ON v.ward = o.ward",
    f"RIGHT JOIN {DISTINCT} o ON v.ward = o.ward AND v.ward = o.ward",
    f"RIGHT JOIN {DISTINCT} o ON v.ward = o.ward AND v.year < o.year",
    f"RIGHT JOIN {DISTINCT} o ON v.ward = o.ward AND v.year = o.year AND v.sex = 'F'",
    f"RIGHT JOIN {DISTINCT} o ON v.ward = o.ward OR v.year = o.year",
    "RIGHT JOIN (SELECT ward, year, COUNT(*) AS k FROM opened GROUP BY ward, year) o "
    "ON v.year = o.year AND v.ward = o.ward",
]


@pytest.mark.parametrize("join", REFUSED, ids=range(len(REFUSED)))
def test_what_compares_not_each_key_once_is_refused(curator: discreet.Curator, join: str) -> None:
    used = curator.budget.used
    with pytest.raises(discreet.QuestionError, match=r"RIGHT OUTER join must|row of NULLs"):
        curator.ask(f"SELECT o.ward, o.year, COUNT(*) FROM visits v {join} GROUP BY o.ward, o.year", epsilon=1)
    assert curator.budget.used == used
