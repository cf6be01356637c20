"""Keys that follow from a range of dates: exactly those that some day of it has, whatever rows there are."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import Curator, Table
from discreet.sql.lower import lower
from kinds import examples

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=7 * week) for week in range(30)]
FRAME = pd.DataFrame(
    {
        "id": [f"p{place}" for place in range(600)],
        "day": [DAYS[place % 30] for place in range(600)],
        "at": [datetime.datetime(2024, 3, 1, place % 24, place % 60) for place in range(600)],
        "age": [place % 70 + 17 for place in range(600)],
    }
)
COLUMNS: dict[str, Any] = {
    "id": str,
    "day": {"type": "date"},
    "at": {"type": "timestamp"},
    "age": {"type": "integer", "min": 17, "max": 90},
}
BOUNDED = COLUMNS | {"day": {"type": "date", "min": datetime.date(2024, 1, 1), "max": datetime.date(2024, 12, 31)}}


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    tables = {
        name: Table(FRAME, person="id", one_row_per_person=True, columns=columns)
        for name, columns in (("t", COLUMNS), ("bounded", BOUNDED))
    }
    with Curator(tables, epsilon=1e12, delta=0.5) as curator:
        yield curator


def keys(question: str, curator: Curator) -> tuple[Any, ...] | None:
    """The public keys of a question of one key; None where they are private."""
    (key,) = lower(question, curator.declaration).plan.keys
    return key.groups


RANGE = "day BETWEEN DATE '2024-02-10' AND DATE '2024-12-01'"
OF_A_DAY = [
    "day",
    "DATE_TRUNC('day', day)",
    "DATE_TRUNC('week', day)",
    "DATE_TRUNC('month', day)",
    "DATE_TRUNC('quarter', day)",
    "DATE_TRUNC('year', day)",
    "EXTRACT(YEAR FROM day)",
    "EXTRACT(QUARTER FROM day)",
    "EXTRACT(MONTH FROM day)",
    "EXTRACT(WEEK FROM day)",
    "EXTRACT(ISOYEAR FROM day)",
    "EXTRACT(DAY FROM day)",
    "EXTRACT(DOY FROM day)",
    "EXTRACT(DOW FROM day)",
    "EXTRACT(ISODOW FROM day)",
    "EXTRACT(YEAR FROM day) * 100 + EXTRACT(MONTH FROM day)",
    "STRFTIME(day, '%Y-%m')",
    "STRFTIME(day, '%d.%m.%y')",
    "STRFTIME(day, '%j%%')",
]
ANY_DAY = st.dates(datetime.date(1990, 1, 1), datetime.date(2040, 12, 31))


@settings(max_examples=examples(400), deadline=None)
@given(key=st.sampled_from(OF_A_DAY), start=ANY_DAY, days=st.integers(0, 900))
def test_the_keys_are_those_of_the_days(key: str, start: datetime.date, days: int, curator: Curator) -> None:
    end = start + datetime.timedelta(days=days)
    days_of_it = f"range(DATE '{start}', DATE '{end}' + 1, INTERVAL 1 DAY) AS r(d)"
    with duckdb.connect() as plain:
        wanted = plain.execute(f"SELECT DISTINCT {key} FROM (SELECT d::DATE AS day FROM {days_of_it})").fetchall()
    found = keys(f"SELECT COUNT(*) FROM t WHERE day BETWEEN DATE '{start}' AND DATE '{end}' GROUP BY {key}", curator)
    assert found is not None
    assert None not in found
    assert set(map(_alike, found)) == {_alike(value) for (value,) in wanted}
    assert list(found) == sorted(found)


OF_A_MOMENT = [
    "DATE_TRUNC('hour', at)",
    "DATE_TRUNC('week', at + INTERVAL 1 DAY) - INTERVAL 1 DAY",
    "DATE_TRUNC('day', at - INTERVAL 6 HOUR)",
    "TIME_BUCKET(INTERVAL '15 minutes', at)",
    "TIME_BUCKET(INTERVAL '6 hours', at)",
    "EPOCH(DATE_TRUNC('hour', at))",
    "FLOOR(EPOCH(at) / 3600)",
    "EPOCH(at) // 1800",
    "CAST(EPOCH(at) / 7200 AS BIGINT)",
    "DATE_DIFF('hour', TIMESTAMP '1970-01-03 00:20:00', at)",
    "DATE_DIFF('minute', TIMESTAMP '1970-01-03 00:30:00', at) // 30",
    "DATE_DIFF('month', DATE '1970-02-10', at)",
]
"""What has one value on each minute at least."""


@settings(max_examples=examples(200), deadline=None)
@example(key="CAST(EPOCH(at) / 7200 AS BIGINT)", start=datetime.datetime(1970, 1, 1, 1), minutes=2)
@given(
    key=st.sampled_from(OF_A_MOMENT),
    start=st.datetimes(datetime.datetime(1969, 12, 25), datetime.datetime(1970, 1, 9)).map(
        lambda moment: moment.replace(second=0, microsecond=0)
    ),
    minutes=st.integers(2, 3_000),
)
def test_no_moment_of_the_range_has_another_key(
    key: str, start: datetime.datetime, minutes: int, curator: Curator
) -> None:
    end = start + datetime.timedelta(minutes=minutes)
    found = keys(
        f"SELECT COUNT(*) FROM t WHERE at >= TIMESTAMP '{start}' AND at < TIMESTAMP '{end}' GROUP BY {key}", curator
    )
    if found is None:
        return
    rounded = re.sub(r"^CAST\((.*) AS BIGINT\)$", r"CAST(ROUND(\1) AS BIGINT)", key)  # halves: here away from zero
    plainly = re.sub(r"\bat\b", "moment", rounded).replace("EPOCH(moment)", "CAST(FLOOR(EPOCH(moment)) AS BIGINT)")
    with duckdb.connect() as plain:
        series = f"range(TIMESTAMP '{start}', TIMESTAMP '{end}', INTERVAL 20 SECOND) AS r(m)"
        moments = f"SELECT m + to_microseconds(shift) AS moment FROM {series}, (VALUES (0), (1), (999999)) AS s(shift)"
        wanted = plain.execute(f"SELECT DISTINCT {plainly} FROM ({moments})").fetchall()
    assert {_moment(value) for (value,) in wanted} <= {_moment(value) for value in found}
    if not key.startswith(("CAST", "EPOCH(at)", "DATE_DIFF")):  # before 1970 these cut the other way, and say no more
        assert len(found) == len(wanted)


def _moment(value: Any) -> Any:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value if isinstance(value, datetime.datetime) else float(value)


def test_buckets_of_seconds_have_the_keys_of_their_range(curator: Curator) -> None:
    where = "WHERE EPOCH(at) >= 1709247600 AND EPOCH(at) <= 1709258399"  # 2024-02-29 23:00:00 to 2024-03-01 01:59:59
    assert keys(f"SELECT COUNT(*) FROM t {where} GROUP BY FLOOR(EPOCH(at) / 3600)", curator) == (474791, 474792, 474793)


def _alike(value: Any) -> Any:
    """A date that plain SQL gives as a moment."""
    return value.date() if isinstance(value, datetime.datetime) else value


@pytest.mark.parametrize(
    ("where", "first", "last"),
    [
        ("day >= DATE '2024-02-10' AND day < DATE '2024-05-01'", 2, 4),
        ("DATE '2024-02-10' < day AND DATE '2024-05-01' >= day", 2, 5),
        ("day > DATE '2024-02-29' AND day <= '2024-05-01' AND age > 20", 3, 5),
        ("day IN (DATE '2024-02-10', DATE '2024-05-01')", 2, 5),
        ("EXTRACT(YEAR FROM day) = 2024 AND day >= DATE '2024-11-30'", 11, 12),
        ("CAST(day AS TIMESTAMP) >= TIMESTAMP '2024-10-31 00:00:01' AND day < DATE '2024-12-01'", 11, 11),
        ("day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' AND EXTRACT(MONTH FROM day) IN (3, 4)", 3, 4),
    ],
)
def test_ends_as_they_are_written(where: str, first: int, last: int, curator: Curator) -> None:
    for key, made in (("STRFTIME(day, '%m')", "{:02}".format), ("EXTRACT(MONTH FROM day)", int)):
        found = keys(f"SELECT COUNT(*) FROM t WHERE {where} GROUP BY {key}", curator)
        assert found is not None
        months = [made(month) for month in range(first, last + 1)]
        assert list(found) == ([months[0], months[-1]] if " IN (DATE" in where else months)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM t GROUP BY DATE_TRUNC('month', day)",
        "SELECT COUNT(*) FROM t WHERE day > DATE '2024-01-01' GROUP BY DATE_TRUNC('month', day)",
        f"SELECT COUNT(*) FROM t WHERE {RANGE} OR age > 20 GROUP BY DATE_TRUNC('month', day)",
        f"SELECT COUNT(*) FROM t WHERE NOT ({RANGE}) GROUP BY DATE_TRUNC('month', day)",
        "SELECT COUNT(*) FROM t WHERE day BETWEEN DATE '2020-01-01' AND DATE '2024-01-01' GROUP BY day",  # 1,462 days
        "SELECT COUNT(*) FROM t WHERE day BETWEEN DATE '1000-01-01' AND DATE '2999-01-01' GROUP BY STRFTIME(day, '%Y')",
        f"SELECT COUNT(*) FROM t WHERE {RANGE} GROUP BY at",
        "SELECT COUNT(*) FROM t WHERE at BETWEEN '2024-01-01' AND '2024-01-02' GROUP BY at",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = LAPLACE_THRESHOLD) COUNT(*) FROM t "
        f"WHERE {RANGE} GROUP BY DATE_TRUNC('month', day)",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(min_privacy_units_per_group = 5) COUNT(*) FROM t "
        f"WHERE {RANGE} GROUP BY DATE_TRUNC('month', day)",
    ],
)
def test_what_has_no_range_stays_private(question: str, curator: Curator) -> None:
    assert keys(question, curator) is None


def test_moments_of_a_range(curator: Curator) -> None:
    where = "WHERE at >= TIMESTAMP '2024-02-29 22:30:00' AND at < TIMESTAMP '2024-03-02 00:00:00'"
    hours = keys(f"SELECT COUNT(*) FROM t {where} GROUP BY DATE_TRUNC('hour', at)", curator)
    assert hours is not None
    assert (len(hours), hours[0]) == (26, datetime.datetime(2024, 2, 29, 22))
    days = keys(f"SELECT COUNT(*) FROM t {where} GROUP BY CAST(at AS DATE)", curator)
    assert days == (datetime.date(2024, 2, 29), datetime.date(2024, 3, 1))
    written = keys(f"SELECT COUNT(*) FROM t {where} GROUP BY STRFTIME(at, '%d %H')", curator)
    assert written is not None
    assert len(written) == 26
    minutes = keys(
        "SELECT COUNT(*) FROM t WHERE CAST(at AS DATE) = DATE '2024-03-01' AND at < TIMESTAMP '2024-03-01 00:05:00' "
        "GROUP BY DATE_TRUNC('minute', at)",
        curator,
    )
    assert minutes == tuple(datetime.datetime(2024, 3, 1, 0, minute) for minute in range(5))


def test_a_declared_range_is_enough_and_null_is_a_key_of_it(curator: Curator) -> None:
    months = keys("SELECT COUNT(*) FROM bounded GROUP BY DATE_TRUNC('month', day)", curator)
    assert months == (*(datetime.date(2024, month, 1) for month in range(1, 13)), None)


def test_subqueries_are_seen_through(curator: Curator) -> None:
    quarters = f"SELECT id, DATE_TRUNC('quarter', day) AS q FROM t WHERE {RANGE}"
    assert keys(f"SELECT COUNT(*) FROM ({quarters}) GROUP BY q", curator) == tuple(
        datetime.date(2024, month, 1) for month in (1, 4, 7, 10)
    )
    outside = "SELECT id, day AS d, DATE_TRUNC('quarter', day) AS q FROM t"
    assert keys(f"SELECT COUNT(*) FROM ({outside}) WHERE {RANGE.replace('day', 'd')} GROUP BY q", curator) == tuple(
        datetime.date(2024, month, 1) for month in (1, 4, 7, 10)
    )
    decades = "SELECT id, FLOOR(age / 10) * 10 AS decade FROM t WHERE age < 50"
    found = keys(f"SELECT COUNT(*) FROM ({decades}) GROUP BY decade", curator)
    assert found is not None
    assert [value for value in found if value is not None] == [10, 20, 30, 40]


@pytest.mark.parametrize("key", ["DATE_TRUNC('month', day)", "EXTRACT(WEEK FROM day)", "STRFTIME(day, '%Y-%m')", "day"])
def test_the_answer_has_what_plain_sql_has_and_what_is_empty(key: str, curator: Curator) -> None:
    question = f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {RANGE} GROUP BY 1"
    with duckdb.connect() as plain:
        plain.register("frame", FRAME)
        wanted = dict(plain.execute(question.replace("FROM t ", "FROM frame ")).fetchall())
    release = curator.ask(question, epsilon=1e6)
    assert release.cost.delta == 0
    found = {row["k"]: row["n"] for row in release.rows}
    assert {_alike(one): number for one, number in found.items() if number} == {
        _alike(one): number for one, number in wanted.items()
    }
    assert len(found) > len(wanted)
