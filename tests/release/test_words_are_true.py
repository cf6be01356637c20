"""What stands beside a number is true of it: each sentence is read as it is written, and the answer is held against
what the sentences together say of the rows. A limit that no sentence tells would put the answer outside."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("pandas")

import pandas

import discreet
from discreet.curator.lookup import CHOSEN
from limited_tools import NOTHING, clause

INFINITE = 10**9
DECLARED = [f"c{number}" for number in range(6)]
LEAST, MOST = 10, 60
"""The declared bounds of an amount; in the rows it lies between 0 and 100."""


def visits() -> Any:
    """Visits of 60 persons and of nobody: of 1 to 14 rows, one has 130; with keys that nobody declared, and NULLs."""
    rows = []
    for person in range(60):
        for number in range(130 if person == 7 else 1 + (person * 5) % 14):
            place = (person * 3 + number * number) % 8
            cat = None if (person + number) % 11 == 0 else f"c{place}"
            amount = None if (person + 2 * number) % 9 == 0 else (person * 37 + number * 17) % 101
            rows.append({"uid": person, "cat": cat, "free": f"w{place}", "amount": amount})
    rows += [{"uid": None, "cat": "c0", "free": "w0", "amount": 50}] * 5
    return pandas.DataFrame(rows).astype({"uid": "Int64", "cat": "string", "free": "string", "amount": "Int64"})


def of_visits(frame: Any, **said: Any) -> discreet.Curator:
    columns = {
        "uid": {"type": "integer"},
        "cat": DECLARED,
        "free": {"type": "text"},
        "amount": {"type": "integer", "min": LEAST, "max": MOST},
    }
    table = discreet.Table(frame, person="uid", rows_per_person=6, groups_per_person=3, columns=columns)
    return discreet.Curator({"t": table}, epsilon=10**25, delta="0.1", keys_delta="0.09", **said)


def census() -> Any:
    text = gzip.decompress((files("discreet") / "data" / "adult.csv.gz").read_bytes())
    return pandas.read_csv(io.BytesIO(text)).head(4000)


EDUCATIONS = ["Bachelors", "HS-grad", "Masters", "Some-college"]


def of_census(frame: Any) -> discreet.Curator:
    columns = {
        "age": {"type": "integer", "min": 25, "max": 50},
        "hours_per_week": {"type": "integer", "min": 0, "max": 40},
        "sex": ["Female", "Male"],
        "education": EDUCATIONS,
        "occupation": {"type": "text"},
    }
    kept = frame[list(columns)].astype({"age": "Int64", "hours_per_week": "Int64", "sex": "string"})
    kept = kept.astype({"education": "string", "occupation": "string"})
    table = discreet.Table(kept, one_row_per_person=True, columns=columns)
    return discreet.Curator({"t": table}, epsilon=10**25, delta="0.1", keys_delta="0.09")


# what the sentences say


class Said:
    """The sentences of an answer, each understood, as limits."""

    def __init__(self, lines: list[str]) -> None:
        self.rows = self.groups = self.cap = INFINITE
        self.nobody, self.declared_keys, self.null_key, self.each_row = True, False, True, False
        self.clamps: dict[str, tuple[int, int]] = {}
        self.least: dict[str, float] = {}
        self.missing: dict[str, float] = {}
        self.ranks: float | None = None
        self.inside = 0.0
        self.shown_from: int | None = None
        for line in lines:
            self.take(line.partition("; how much: ")[0])

    def take(self, line: str) -> None:
        patterns: list[tuple[str, Any]] = [
            (
                r"at most ([\d,]+) (rows|groups) of each person count(?:, .*)?; further \2 are left out, at random",
                self.limit,
            ),
            (r"of t, rows of a person beyond ([\d,]+) are left out (?:where it is read|when it is loaded)", self.read),
            (r"of t, each row counts as one person", lambda: setattr(self, "each_row", True)),
            (r"rows without a person are left out", lambda: setattr(self, "nobody", False)),
            (r"(\w+) is clamped to \[(\d+), (\d+)\](?:, as declared)?", self.clamp),
            (r"each person's (?:count|sum) in a group is clamped to \[0, (\d+)\]", self.total),
            (r"rows whose key is not declared are left out", self.keys),
            (r"rows whose key is NULL or not declared are left out", lambda: (self.keys(), self.no_null())),
            (r"rows whose key is NULL are left out", self.no_null),
            (r"\w+ is cut to 200 characters", lambda: None),
            (
                r"q: off by at most ([\d,.]+) ranks at 95 % confidence, by any number in a group of fewer rows; "
                r"a lattice of steps of 1",
                self.off,
            ),
            (
                r"q: the target ranks stay ([\d,.]+) away from the ends, or 10 % of the rows where these are fewer",
                self.kept,
            ),
            (
                r"(\w): the limits keep at least ([\d.]+) % of what the declared limits count(?:, on average)?",
                self.there,
            ),
            (
                r"(\w): the limits keep at least ([\d.]+) % of what the declared limits count(?:, on average)?;"
                r" at most ([\d,.]+) is missing, at 95 % confidence(?:, from at most [\d,]+ persons)?",
                self.there,
            ),
            (r"\w: how much is missing is not known", lambda: None),
            (re.escape(CHOSEN), lambda: None),
            (
                r"groups of too few persons are left out: a group of ([\d,]+) or more counted persons is shown with"
                r" probability 95 %(?:; with max_groups_contributed = 1, a group of [\d,]+)?",
                lambda number: setattr(self, "shown_from", int(number.replace(",", ""))),
            ),
        ]
        for pattern, act in patterns:
            if (found := re.fullmatch(pattern, line)) is not None:
                act(*found.groups())
                return
        raise AssertionError(f"nobody understands: {line}")

    def limit(self, number: str, what: str) -> None:
        setattr(self, what, min(getattr(self, what), int(number.replace(",", ""))))

    def read(self, number: str) -> None:
        self.limit(number, "rows")

    def clamp(self, name: str, low: str, high: str) -> None:
        least, most = self.clamps.get(name, (int(low), int(high)))
        self.clamps[name] = max(least, int(low)), min(most, int(high))

    def total(self, high: str) -> None:
        self.cap = int(high)

    def keys(self) -> None:
        self.declared_keys = True

    def no_null(self) -> None:
        self.null_key = False

    def off(self, ranks: str) -> None:
        self.ranks = float(ranks.replace(",", ""))

    def kept(self, ranks: str) -> None:
        self.inside = float(ranks.replace(",", ""))

    def there(self, name: str, share: str, missing: str | None = None) -> None:
        self.least[name] = float(share) / 100
        if missing is not None:
            self.missing[name] = float(missing.replace(",", ""))


def between(said: Said, frame: Any, aggregate: str, key: str | None, where: Any) -> tuple[float, float]:
    """What the sentences let a number be, added up over all groups."""
    if not said.nobody:
        frame = frame[frame["uid"].notna()]
    frame = frame.assign(person=range(len(frame)) if said.each_row else frame["uid"])
    for name, (low, high) in said.clamps.items():
        frame = frame.assign(**{name: frame[name].clip(low, high)})
    frame = frame.assign(matches=where(frame).fillna(False) if where is not None else True)
    if key is not None:
        if said.declared_keys:
            declared = DECLARED if key == "cat" else EDUCATIONS
            frame = frame.assign(matches=frame["matches"] & (frame[key].isin(declared) | frame[key].isna()))
        if not said.null_key:
            frame = frame.assign(matches=frame["matches"] & frame[key].notna())
    low = high = 0.0
    for _, rows in frame.groupby("person"):
        least, most = _person(said, rows, aggregate, key)
        low, high = low + least, high + most
    return low, high


def _person(said: Said, rows: Any, aggregate: str, key: str | None) -> tuple[float, float]:
    """What one person may add, over all groups."""
    touched = 1 if key is None else rows[key].nunique(dropna=False)
    matching = rows[rows["matches"]]
    groups = [matching] if key is None else [group for _, group in matching.groupby(key, dropna=False)]
    values = [sorted(_worth(group, aggregate)) for group in groups if len(group)]
    drawn = len(rows) > said.rows or touched > said.groups
    if aggregate == "COUNT(DISTINCT uid)":
        most = min(len(values), said.groups, said.rows)
        return (0 if drawn else len(values)), most
    sums = sorted((min(said.cap, sum(group[-said.rows :])) for group in values), reverse=True)
    most = sum(sums[: said.groups])
    if said.cap == INFINITE:
        best = sorted((value for group in values for value in group), reverse=True)
        most = min(most, sum(best[: said.rows]))
    if not drawn:
        return most, most
    if touched > said.groups or said.cap < INFINITE:
        return 0, most
    sure = min(len(rows), said.rows) - (len(rows) - len(matching))
    return sum(sorted(value for group in values for value in group)[: max(0, sure)]), most


def _worth(rows: Any, aggregate: str) -> list[float]:
    if aggregate.startswith(("COUNT(*", "COUNT(DISTINCT")):
        return [1] * len(rows)
    name = re.search(r"\((\w+)", aggregate)
    assert name is not None
    values = rows[name[1]].dropna()
    present = [1.0] * len(values) if aggregate.startswith("COUNT") else [float(value) for value in values]
    return present + [0.0] * (len(rows) - len(values))


# visits: limits on rows and groups

WHERE: dict[str, Any] = {
    "": None,
    "WHERE amount > 30": lambda frame: frame["amount"] > 30,
    "WHERE cat <> 'c1'": lambda frame: frame["cat"] != "c1",
}
AGGREGATES = ["COUNT(*)", "COUNT(DISTINCT uid)", "SUM(amount)", "COUNT(amount)"]
OPTIONS = ["", "max_rows_contributed = 2", "max_rows_contributed = 9", "max_groups_contributed = 1"]
VISITS = [
    (options, aggregate, key, where)
    for key in (None, "cat")
    for options in OPTIONS
    for aggregate in AGGREGATES
    for where in WHERE
    if key is not None or not options.startswith("max_groups")
]
VISITS += [
    (options, f"COUNT(*, contribution_bounds_per_group => (0, {most}))", "cat", "")
    for options in ("max_groups_contributed = 5", "max_groups_contributed = 2")
    for most in (1, 3)
]


def written(options: str, aggregate: str, key: str | None, where: str) -> str:
    rest = (
        f"{aggregate} AS n FROM t {where}" if key is None else f"{key}, {aggregate} AS n FROM t {where} GROUP BY {key}"
    )
    return clause(options, rest) if options else f"SELECT {rest}"


def added_up(release: discreet.Release) -> float:
    return float(sum(row["n"] for row in release.rows))


@pytest.fixture(scope="module")
def visited() -> Iterator[discreet.Curator]:
    with of_visits(visits()) as one:
        yield one


@pytest.mark.power
def test_a_hundred_answers_lie_where_their_sentences_say(visited: discreet.Curator) -> None:
    frame, differ = visits(), 0
    assert len(VISITS) > 80
    for options, aggregate, key, where in VISITS:
        question = written(options, aggregate, key, where)
        release = visited.ask(question, epsilon=NOTHING)
        said = Said(release.bounds)
        low, high = between(said, frame, aggregate, key, WHERE[where])
        assert low <= added_up(release) <= high, (question, release.bounds, low, added_up(release), high)
        plain = between(Said([]), frame.assign(uid=frame["uid"].fillna(-1)), aggregate, None, WHERE[where])[1]
        differ += added_up(release) != plain
        if "n" in said.missing:  # against the same question at the declared limits
            whole = added_up(
                visited.ask(written("", aggregate.partition(",")[0].rstrip(")") + ")", key, where), epsilon=NOTHING)
            )
            assert whole - added_up(release) <= said.missing["n"], question
    assert differ > 80  # the limits bind


def of_person(frame: Any) -> Any:
    """A neighbour: without the person who has most rows."""
    return frame[frame["uid"] != 7]


MASKED = re.compile(r"at most [\d,.]+ is missing(, at 95 % confidence, from at most [\d,]+ persons)?")
"""Worked out from the noisy numbers that were paid for."""


def words(curator: discreet.Curator, question: str) -> list[str]:
    release = curator.ask(question, epsilon=1, delta="1e-6")
    explained = repr(curator.explain(question, epsilon=1, delta="1e-6"))
    beside = [repr(release).partition("\n· ")[2], release._repr_html_().partition("<ul>")[2], *release.bounds]
    return [explained, *(MASKED.sub("", text) for text in beside)]


def test_neighbours_are_told_the_same() -> None:
    """Byte for byte, on the table without a person, and on one without rows."""
    questions = [written(*one) for one in VISITS[::4]]
    questions += [f"SELECT free, COUNT(*) AS n FROM t {where} GROUP BY free" for where in WHERE]
    questions += ["SELECT MEDIAN(amount) AS q, AVG(amount) AS a FROM t"]
    frame = visits()
    with of_visits(frame) as whole, of_visits(of_person(frame)) as without, of_visits(frame.head(0)) as empty:
        for question in questions:
            if "free" not in question:
                assert words(whole, question) == words(without, question) == words(empty, question)
                continue
            lines = [one.ask(question, epsilon=1, delta="1e-6").bounds for one in (whole, without, empty)]
            assert lines[0] == lines[1] == lines[2]


# the census: values that are clamped, keys that are not declared

MEANS = [
    (aggregate, key, where)
    for aggregate in ("AVG(age)", "AVG(hours_per_week)", "SUM(hours_per_week)", "COUNT(*)")
    for key in (None, "sex", "education")
    for where in ("", "WHERE age >= 30", "WHERE age > 50")
]
CENSUS_WHERE: dict[str, Any] = {
    "": None,
    "WHERE age >= 30": lambda frame: frame["age"] >= 30,
    "WHERE age > 50": lambda frame: frame["age"] > 50,
}


def test_clamped_values_of_the_census_are_said() -> None:
    frame = census()
    clamped = 0
    with of_census(frame) as one:
        for aggregate, key, where in MEANS:
            release = one.ask(written("", aggregate, key, where), epsilon=NOTHING)
            said = Said(release.bounds)
            rows = frame.copy()
            for name, (low, high) in said.clamps.items():
                rows[name] = rows[name].clip(low, high)
            if CENSUS_WHERE[where] is not None:
                rows = rows[CENSUS_WHERE[where](rows)]
            if said.declared_keys:
                rows = rows[rows[key].isin(EDUCATIONS)]
            assert said.each_row
            name = re.search(r"\((\w+)", aggregate)
            for row in release.rows:
                own = rows if key is None else rows[rows[key] == row[key]]
                if not len(own):
                    continue
                values = own[name[1]] if name is not None else own["age"]
                truth = {"AVG": values.mean, "SUM": values.sum, "COU": values.count}[aggregate[:3]]()
                assert row["n"] == pytest.approx(truth, abs=0.01), (aggregate, key, where, release.bounds)
            plain = frame if CENSUS_WHERE[where] is None else frame[CENSUS_WHERE[where](frame)]
            if name is not None and key is None and len(rows):
                clamped += (
                    abs(release.rows[0]["n"] - getattr(plain[name[1]], "mean" if "AVG" in aggregate else "sum")()) > 0.1
                )
    assert clamped >= 4


@pytest.mark.power
def test_ranks_and_shown_groups_hold_as_often_as_is_said() -> None:
    """5 % may be off; 40 quantiles of which 14 are, or 60 groups of which 17 are not shown, come by chance once in a
    million."""
    frame, off, asked = census(), 0, 0
    with of_census(frame) as one:
        for number in range(40):
            release = one.ask(f"SELECT MEDIAN(age) AS q FROM t WHERE hours_per_week >= {number % 20}", epsilon="0.2")
            if any("hours_per_week" in line for line in release.bounds) and release.charged:
                asked += 1
                said = Said(release.bounds)
                assert said.ranks is not None
                ages = frame[frame["hours_per_week"].clip(0, 40) >= number % 20]["age"].clip(*said.clamps["age"])
                below, at_most = (ages < release.rows[0]["q"] - 1).sum(), (ages <= release.rows[0]["q"] + 1).sum()
                half = len(ages) / 2
                off += not below - said.ranks <= half <= at_most + said.ranks
        assert asked == 20
        assert off < 9
        wrong = 0
        for number in range(10):
            release = one.ask(f"SELECT MAX(age) AS q FROM t WHERE hours_per_week >= {30 + number}", epsilon="0.05")
            said = Said(release.bounds)
            assert said.ranks is not None
            ages = frame[frame["hours_per_week"].clip(0, 40) >= 30 + number]["age"].clip(*said.clamps["age"])
            below, at_most = (ages < release.rows[0]["q"] - 1).sum(), (ages <= release.rows[0]["q"] + 1).sum()
            aimed = len(ages) - min(said.inside, len(ages) / 10)
            assert said.inside == 250
            wrong += not below - said.ranks <= aimed <= at_most + said.ranks
        assert wrong < 7
        hidden, large = 0, 0
        counts = frame["occupation"].value_counts()
        for number in range(8):
            question = f"SELECT occupation, COUNT(*) AS n FROM t WHERE age < {60 + number} GROUP BY occupation"
            release = one.ask(question, epsilon="0.5", delta="1e-6")
            said = Said(release.bounds)
            assert said.shown_from is not None
            sure = set(counts[counts >= said.shown_from].index)
            large += len(sure)
            hidden += len(sure - {row["occupation"] for row in release.rows})
        assert large >= 60
        assert hidden <= 20


def test_what_is_read_beside_the_number_is_the_same_everywhere(visited: discreet.Curator) -> None:
    question = written("max_groups_contributed = 1", "SUM(amount)", "cat", "")
    release = visited.ask(question, epsilon=NOTHING)
    assert "amount is clamped to [10, 60], as declared" in release.bounds
    for line in release.bounds:
        assert f"\n· {line}" in repr(release)
    assert release.to_dict()["bounds"] == release.bounds
    assert release.to_pandas().attrs["bounds"] == release.bounds
    assert visited.explain(question, epsilon=NOTHING).bounds[:4] == tuple(release.bounds[:4])
    chosen = visited.select("SELECT cat, COUNT(*) AS n FROM t GROUP BY cat", epsilon=1)
    assert "below the best one's" in repr(chosen)
    assert "ranks at 95 % confidence" in repr(visited.ask("SELECT MEDIAN(amount) AS q FROM t", epsilon=1))


def test_nothing_says_that_nothing_is_missing() -> None:
    with of_census(census()) as one:
        for question in ("SELECT COUNT(*) AS n FROM t", "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex"):
            assert "none" not in repr(one.ask(question, epsilon=1)).partition("price")[2]
