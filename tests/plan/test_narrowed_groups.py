"""An answer has the groups that WHERE leaves, and a question that leaves none is refused at no price."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from importlib.resources import files

import pandas
import pytest

import discreet

START = datetime.date(1950, 1, 1)


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    frame = pandas.read_csv(str(files("discreet") / "data" / "adult.csv.gz"))
    frame["start"] = [START + datetime.timedelta(days=place) for place in range(len(frame))]
    columns = {
        "education": {"values": sorted(frame.education.unique())},
        "age": {"type": "integer", "min": 17, "max": 90},
        "hours_per_week": {"type": "integer", "min": 1, "max": 99},
        "start": {"type": "date", "min": datetime.date(1900, 1, 1), "max": datetime.date(2026, 12, 31)},
    }
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    with discreet.Curator({"adult": table}, epsilon=100, delta=0) as one:
        yield one


YEAR = "EXTRACT(YEAR FROM start)"
HIGH = "education IN ('Bachelors', 'Masters')"
ANSWERS = [
    (f"education AS g FROM adult WHERE {HIGH} GROUP BY g", ["Bachelors", "Masters"]),
    (f"education AS g FROM (SELECT * FROM adult WHERE {HIGH}) GROUP BY g", ["Bachelors", "Masters"]),
    (f"{YEAR} AS g FROM adult WHERE start >= '2010-01-01' GROUP BY g", list(range(2010, 2027))),
    (f"{YEAR} AS g FROM adult WHERE start BETWEEN '2010-01-01' AND '2011-12-31' GROUP BY g", [2010, 2011]),
    ("COALESCE(age, 1) AS g FROM adult WHERE age IS NULL OR age < 20 GROUP BY g", [1, 17, 18, 19]),
    ("ROUND(age, -1) AS g FROM adult WHERE age > 60 GROUP BY g", [60, 70, 80, 90]),
    ("CASE WHEN age < 9 THEN 'child' WHEN age < 40 THEN 'young' ELSE 'old' END AS g FROM adult GROUP BY g", None),
]


@pytest.mark.parametrize(("rest", "groups"), ANSWERS, ids=[rest for rest, _ in ANSWERS])
def test_the_groups_of_an_answer(curator: discreet.Curator, rest: str, groups: list[object] | None) -> None:
    release = curator.ask(f"SELECT AVG(hours_per_week) AS h, COUNT(*) AS n, {rest}", epsilon=1)
    assert sorted(row["g"] for row in release.rows) == (groups or ["old", "young"])


def test_the_highest_of_those_asked_for(curator: discreet.Curator) -> None:
    question = f"SELECT education, AVG(hours_per_week) AS h FROM adult WHERE {HIGH} GROUP BY education ORDER BY h DESC"
    rows = curator.ask(f"{question} LIMIT 3", epsilon=10).rows
    assert [row["education"] for row in rows] == ["Masters", "Bachelors"]


def test_nothing_is_spent_where_no_group_is_left(curator: discreet.Curator) -> None:
    head = curator.ledger.head
    for ask in (curator.ask, curator.explain):
        with pytest.raises(discreet.QuestionError, match="no group can meet WHERE") as refused:
            ask("SELECT education, COUNT(*) AS n FROM adult WHERE education > 'z' GROUP BY education", epsilon=1)
        assert "10th, 11th" in refused.value.fix
    assert curator.ledger.head == head
