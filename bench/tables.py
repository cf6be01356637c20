"""Publishing several tables: how far counts across keys are off, beside the same counts asked alone.

`python -m bench.tables [PATIENTS.csv CONDITIONS.csv]`: a made shop of customers, orders and items, at most 10 orders
and 20 items a customer; with files, Synthea's patients and conditions too. At ε 1 and δ 10^−6, as the mean over runs.
`python -m bench.tables --coverage 200`: in how many of so many publications of a shop of 500 customers at ε 2 each
bound, of 95 %, held.

Errors are ℓ1 distances of counts, in rows, over all cells of a pair of columns across a key, or over the histogram of
how many rows a person has. Beside them the same counts asked alone: at the whole price, and at as small a part of it as
is left where all pairs and histograms that a publication gives are asked.

Scores lie between 0 and 1, as SDMetrics (MIT licence) defines them: for the shares of cells, 1 less half of their
distance; for how many rows below a row has, 1 less the largest distance of the two distribution functions. Answers of
twenty joins are compared with those on the real tables: by how much they are off, as a part of what they add up to.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import discreet

RUNS = 3
EPSILON = 1
MOST_DESCRIPTIONS, YEARS = 20, 10
STARTS = [*range(1, 10), 13, 17]
"""Where the cells of a number of rows below a row begin, as a publication has them, up to 24."""
OF_ORDERS = "orders JOIN customers c ON customer = c.id"
OF_ITEMS = 'items JOIN orders o ON "order" = o.id'
OF_ALL = f"{OF_ITEMS} JOIN customers c ON customer = c.id"
JOINS = [
    f"SELECT sex, COUNT(*) FROM {OF_ORDERS} GROUP BY 1",
    f"SELECT region, COUNT(*) FROM {OF_ORDERS} GROUP BY 1",
    f"SELECT decade, COUNT(*) FROM {OF_ORDERS} GROUP BY 1",
    f"SELECT decade, channel, COUNT(*) FROM {OF_ORDERS} GROUP BY 1, 2",
    f"SELECT sex, region, channel, COUNT(*) FROM {OF_ORDERS} GROUP BY 1, 2, 3",
    f"SELECT region, COUNT(DISTINCT customer) FROM {OF_ORDERS} GROUP BY 1",
    f"SELECT sex, AVG(weekday) FROM {OF_ORDERS} GROUP BY 1",
    f"SELECT decade, AVG(weekday) FROM {OF_ORDERS} WHERE channel = 'web' GROUP BY 1",
    f"SELECT COUNT(*) FROM {OF_ORDERS} WHERE region = 'west' AND weekday < 2",
    f"SELECT AVG(decade) FROM {OF_ORDERS} WHERE channel <> 'web'",
    f"SELECT channel, COUNT(*) FROM {OF_ITEMS} GROUP BY 1",
    f"SELECT kind, channel, COUNT(*) FROM {OF_ITEMS} GROUP BY 1, 2",
    f"SELECT kind, AVG(weekday) FROM {OF_ITEMS} GROUP BY 1",
    f"SELECT weekday, COUNT(*) FROM {OF_ITEMS} WHERE kind = 'toy' GROUP BY 1",
    f"SELECT COUNT(DISTINCT o.id) FROM {OF_ITEMS} WHERE kind IN ('book', 'food')",
    f"SELECT sex, kind, COUNT(*) FROM {OF_ALL} GROUP BY 1, 2",
    f"SELECT sex, channel, kind, COUNT(*) FROM {OF_ALL} GROUP BY 1, 2, 3",
    f"SELECT region, COUNT(DISTINCT customer) FROM {OF_ALL} WHERE kind = 'tool' GROUP BY 1",
    "SELECT sex, COUNT(*) FROM customers c LEFT JOIN orders o ON customer = c.id WHERE o.id IS NULL GROUP BY 1",
    "SELECT n, COUNT(*) FROM customers c JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1) m "
    "ON m.customer = c.id WHERE decade < 5 GROUP BY 1",
]
"""Of the shop."""


@dataclass(frozen=True)
class Made:
    """Tables with their declarations; `links` says which column of a table refers to which key of which other, `joins`
    are questions of them."""

    frames: Mapping[str, pd.DataFrame]
    declared: Mapping[str, Mapping[str, Any]]
    links: Mapping[str, tuple[str, str, str]]
    joins: Sequence[str] = ()

    def curator(self) -> discreet.Curator:
        tables = {name: discreet.Table(frame, **self.declared[name]) for name, frame in self.frames.items()}
        return discreet.Curator(tables, epsilon=10_000, delta=Fraction(1, 100))


def shop(customers: int = 5_000, seed: int = 1) -> Made:
    """Customers whose orders follow from who they are, items that follow from the order."""
    rng = np.random.default_rng(seed)
    who = pd.DataFrame({"id": np.arange(customers)})
    who["sex"] = rng.choice(["F", "M"], customers)
    who["decade"] = rng.choice(range(2, 9), customers)
    who["region"] = rng.choice(["north", "east", "south", "west"], customers, p=[0.4, 0.3, 0.2, 0.1])
    many = rng.binomial(10, np.where(who.decade < 5, 0.6, 0.3))
    orders = pd.DataFrame({"customer": np.repeat(who.id.to_numpy(), many)})
    orders.insert(0, "id", np.arange(len(orders)))
    owner = who.loc[orders.customer].reset_index(drop=True)
    orders["channel"] = np.where(
        rng.random(len(orders)) < np.where(owner.decade < 5, 0.8, 0.3),
        "web",
        rng.choice(["shop", "phone"], len(orders)),
    )
    orders["weekday"] = (rng.poisson(np.where(orders.channel == "web", 5, 2)) % 7).astype(int)
    each = rng.integers(1, 4, len(orders))
    items = pd.DataFrame({"order": np.repeat(orders.id.to_numpy(), each)})
    above = owner.loc[items.order].reset_index(drop=True)
    kinds = np.array(["book", "toy", "food", "tool", "cloth"])
    items["kind"] = kinds[(rng.integers(0, 3, len(items)) + 2 * (above.sex == "M")) % 5]
    items = items[items.groupby(items.order.map(orders.customer)).cumcount() < 20].reset_index(drop=True)
    whole = {"type": "integer"}
    declared = {
        "customers": {
            "one_row_per_person": True,
            "person": "id",
            "columns": {
                "id": whole,
                "sex": _words("F", "M"),
                "decade": {"type": "integer", "min": 2, "max": 8, "nulls": False},
                "region": _words("north", "east", "south", "west"),
            },
        },
        "orders": {
            "person": "customer",
            "rows_per_person": 10,
            "columns": {
                "id": whole,
                "customer": whole,
                "channel": _words("web", "shop", "phone"),
                "weekday": {"type": "integer", "min": 0, "max": 6, "nulls": False},
            },
        },
        "items": {
            "person": "order -> orders.id",
            "rows_per_person": 20,
            "columns": {"order": whole, "kind": _words(*kinds.tolist())},
        },
    }
    links = {"orders": ("customer", "customers", "id"), "items": ("order", "orders", "id")}
    return Made({"customers": who, "orders": orders, "items": items}, declared, links, JOINS)


def synthea(patients: Path, conditions: Path) -> Made:
    """Patients by decade of birth, and what they had, with its decade."""
    who = pd.read_csv(patients)[["Id", "BIRTHDATE", "RACE", "GENDER", "MARITAL"]]
    had = pd.read_csv(conditions)[["PATIENT", "START", "DESCRIPTION"]]
    who["BORN"] = pd.to_datetime(who.pop("BIRTHDATE")).dt.year // YEARS
    had["SINCE"] = pd.to_datetime(had.pop("START")).dt.year // YEARS
    frequent = had.DESCRIPTION.value_counts().index[:MOST_DESCRIPTIONS].tolist()
    had["DESCRIPTION"] = had.DESCRIPTION.where(had.DESCRIPTION.isin(frequent), "other")
    had = had[had.groupby("PATIENT").cumcount() < 50].reset_index(drop=True)
    declared = {
        "patients": {
            "one_row_per_person": True,
            "person": "Id",
            "columns": {
                "Id": {"type": "text"},
                "BORN": {"type": "integer", "min": 190, "max": 202, "nulls": False},
                "RACE": _words(*sorted(who.RACE.unique())),
                "GENDER": _words("F", "M"),
                "MARITAL": {"type": "text", "values": sorted(who.MARITAL.dropna().unique())},
            },
        },
        "conditions": {
            "person": "PATIENT",
            "rows_per_person": 50,
            "columns": {
                "PATIENT": {"type": "text"},
                "DESCRIPTION": _words(*frequent, "other"),
                "SINCE": {"type": "integer", "min": 190, "max": 202, "nulls": False},
            },
        },
    }
    return Made({"patients": who, "conditions": had}, declared, {"conditions": ("PATIENT", "patients", "Id")})


def _words(*values: str) -> dict[str, Any]:
    return {"type": "text", "values": list(values), "nulls": False}


def pairs(made: Made) -> Iterator[tuple[str, str, str, str]]:
    """Each table with each of its columns, beside each column of a table above."""
    for name, (_, above, _) in made.links.items():
        ids = {made.links[name][0], *(key for _, table, key in made.links.values() if table == name)}
        own = [column for column in made.frames[name].columns if column not in ids]
        while above:
            up = made.links.get(above, ("", "", ""))
            keys = {up[0], *(key for _, table, key in made.links.values() if table == above)}
            for column, other in itertools.product(own, (c for c in made.frames[above].columns if c not in keys)):
                yield name, column, above, other
            above = up[1]


def beside(made: Made, frames: Mapping[str, pd.DataFrame], name: str, above: str) -> pd.DataFrame:
    """A table's rows with the columns of those above."""
    found = frames[name]
    while name != above:
        column, parent, key = made.links[name]
        found = found.merge(frames[parent], left_on=column, right_on=key, suffixes=("", "_"))
        name = parent
    return found


Counts = Mapping[tuple[str, ...], float]


def counts(frame: pd.DataFrame, *columns: str) -> Counts:
    return Counter(_keys(frame[list(columns)]))


def shares(frame: pd.DataFrame, *columns: str) -> Counts:
    return {key: value / len(frame) for key, value in counts(frame, *columns).items()}


def _keys(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return [
        tuple("" if pd.isna(v) else str(v).removesuffix(".0") for v in row) for row in frame.itertuples(index=False)
    ]


def away(one: Counts, other: Counts) -> float:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other})


def numbers(made: Made, frames: Mapping[str, pd.DataFrame], name: str) -> Counts:
    """How many rows above have how many rows of a table."""
    return counts(below(made, frames, name).to_frame("n"), "n")


def below(made: Made, frames: Mapping[str, pd.DataFrame], name: str) -> pd.Series[int]:
    """How many rows of a table each row above has."""
    column, parent, key = made.links[name]
    return frames[name][column].value_counts().reindex(frames[parent][key]).fillna(0).astype(int)


def asked(curator: discreet.Curator, made: Made, pair: tuple[str, str, str, str], epsilon: float) -> Counts:
    """A pair across a key, asked alone."""
    name, column, above, other = pair
    joins, table = f"{name} AS t0", name
    at = 0
    while table != above:
        own, parent, key = made.links[table]
        joins += f' JOIN {parent} AS t{at + 1} ON t{at}."{own}" = t{at + 1}."{key}"'
        table, at = parent, at + 1
    text = f'SELECT t0."{column}" AS a, t{at}."{other}" AS b, COUNT(*) AS n FROM {joins} GROUP BY 1, 2'
    answer = curator.ask(text, epsilon=epsilon).to_pandas()
    return dict(zip(_keys(answer[["a", "b"]]), answer.n, strict=True))


def view(made: Made, frames: Mapping[str, pd.DataFrame], name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """A table as a publication measures it: its own columns, those of the rows above, and how many rows of the tables
    below refer to each row, in their cells; and what each column is about."""
    frame, link = frames[name], made.links.get(name)
    children = {child: key for child, (_, table, key) in made.links.items() if table == name}
    ids = {*children.values(), *(link[:1] if link else ())}
    found = frame[[column for column in frame.columns if column not in ids]].copy()
    about = dict.fromkeys(found.columns, "inside")
    for child in children:
        found[f"rows of {child}"] = np.searchsorted(STARTS, below(made, frames, child).to_numpy(), side="right")
        about[f"rows of {child}"] = "rows"
    if link is not None:
        column, parent, key = link
        above, kinds = view(made, frames, parent)
        above = above.drop(columns=[one for one in kinds if kinds[one] == "rows" and one != f"rows of {name}"])
        above.columns = [one if kinds[one] == "across" else f"{parent}.{one}" for one in above.columns]
        places = pd.Series(range(len(above)), index=frames[parent][key].to_numpy())
        given = above.iloc[places[frame[column]].to_numpy()].reset_index(drop=True)
        found = pd.concat([found.reset_index(drop=True), given], axis=1)
        about |= dict.fromkeys(given.columns, "across")
    return found, about


def kind(columns: Sequence[str], about: Mapping[str, str]) -> str:
    kinds = {about[one] for one in columns}
    return "across a key" if "across" in kinds else "numbers of rows" if "rows" in kinds else "inside a table"


def scores(made: Made, frames: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """The scores of reports on several tables, each the mean over all columns, pairs or keys."""
    found: dict[str, list[float]] = {}

    def alike(score: str, real: pd.DataFrame, ours: pd.DataFrame, columns: Sequence[str]) -> None:
        off = away(shares(real, *columns), shares(ours, *columns))
        found.setdefault(score, []).append(1 - off / 2)

    for name in made.frames:
        (real, about), (ours, _) = (view(made, each, name) for each in (made.frames, frames))
        own = [column for column, of in about.items() if of == "inside"]
        for column in own:
            alike("columns", real, ours, [column])
        for pair in itertools.combinations(own, 2):
            alike("pairs inside a table", real, ours, pair)
    for name, column, above, other in pairs(made):
        real, ours = (beside(made, each, name, above) for each in (made.frames, frames))
        alike("pairs across a key", real, ours, (column, other))
    for name, (column, parent, key) in made.links.items():
        fitting = frames[name][column].isin(frames[parent][key]).mean()
        found.setdefault("keys that fit", []).append(float(fitting))
        found.setdefault("keys that are different", []).append(frames[parent][key].nunique() / len(frames[parent]))
        ends = []
        for each in (made.frames, frames):
            many = below(made, each, name)
            ends.append(np.cumsum(np.bincount(many, minlength=200)) / len(many))
        found.setdefault("numbers of rows below a row", []).append(1 - float(np.abs(ends[0] - ends[1]).max()))
    return {name: float(np.mean(each)) for name, each in found.items()}


def joined(made: Made, frames: Mapping[str, pd.DataFrame]) -> list[Counts]:
    """What the joins answer: for each its rows, by all but the last column."""
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            connection.register(name, frame)
        found: list[Counts] = []
        for text in made.joins:
            rows = connection.sql(text).fetchall()
            found.append({tuple(str(one).removesuffix(".0") for one in row[:-1]): float(row[-1] or 0) for row in rows})
        return found


def coverage(publications: int) -> list[tuple[str, float]]:
    """The smallest part of the publications in which a bound of a kind held, over all its marginals; and the mean."""
    made, held = shop(500), dict[tuple[str, str, tuple[str, ...]], list[bool]]()
    real = {name: view(made, made.frames, name) for name in made.frames}
    for _ in range(publications):
        with made.curator() as curator:
            release = curator.publish(list(made.frames), epsilon=2, delta=Fraction(1, 10**6))
        frames = {name: table.to_pandas() for name, table in release.tables.items()}
        for name, table in release.tables.items():
            (theirs, about), (ours, _) = real[name], view(made, frames, name)
            for bound in table.marginals:
                columns = tuple(bound["columns"])
                off = away(counts(theirs, *columns), counts(ours, *columns))
                held.setdefault((kind(columns, about), name, columns), []).append(off <= bound["rows"])
    found = []
    for what in sorted({one for one, _, _ in held}):
        parts = [float(np.mean(each)) for (one, _, _), each in held.items() if one == what]
        found += [(f"{what}: {len(parts)} bounds, least", min(parts)), (f"{what}: mean", float(np.mean(parts)))]
    return found


def figures(made: Made) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    wanted, names = list(pairs(made)), list(made.frames)
    parts = len(wanted) + len(made.links)
    errors: dict[Any, list[tuple[float, ...]]] = {}
    told: list[dict[str, float]] = []
    seconds = 0.0
    for _ in range(RUNS):
        with made.curator() as curator:
            start = time.process_time()
            release = curator.publish(names, epsilon=EPSILON, delta=Fraction(1, 10**6))
            seconds += (time.process_time() - start) / RUNS
            frames = {name: release.tables[name].to_pandas() for name in names}
            told.append({f"score: {score}": value for score, value in scores(made, frames).items()})
            if made.joins:
                off = [
                    away(real, ours) / sum(map(abs, real.values()))
                    for real, ours in zip(joined(made, made.frames), joined(made, frames), strict=True)
                ]
                told[-1] |= {"joins, off by: median": float(np.median(off)), "joins, off by: most": max(off)}
            for pair in wanted:
                name, column, above, other = pair
                truth = counts(beside(made, made.frames, name, above), column, other)
                ours = away(truth, counts(beside(made, frames, name, above), column, other))
                part, alone = (  # the dearer one later, which nothing stored answers
                    away(truth, asked(curator, made, pair, epsilon)) for epsilon in (EPSILON / parts, EPSILON)
                )
                errors.setdefault(pair, []).append((ours, alone, part, float(sum(truth.values()))))
            for name in made.links:
                truth, found_numbers = (numbers(made, one, name) for one in (made.frames, frames))
                # alone, a person is in one bucket: two-sided geometric noise, E|noise| = 2q/(1 − q²) in each
                rows = made.declared[made.links[name][1]].get("rows_per_person", 1)
                buckets = made.declared[name]["rows_per_person"] + 1
                alone, part = (
                    buckets * 2 * np.exp(-each) / (1 - np.exp(-2 * each))
                    for each in (EPSILON / rows, EPSILON / parts / rows)
                )
                errors.setdefault(f"rows of {name}", []).append(
                    (away(truth, found_numbers), alone, part, float(sum(truth.values())))
                )
    for key, each in errors.items():
        ours, alone, part, rows = np.mean(each, 0)
        what = key if isinstance(key, str) else f"{key[0]}.{key[1]} × {key[2]}.{key[3]}"
        found.append((f"{what}: ours / all rows", ours / rows))
        found.append((f"{what}: ours / asked alone at ε {EPSILON}", ours / alone))
        found.append((f"{what}: ours / asked alone at ε {EPSILON}/{parts}", ours / part))
    found += [(name, float(np.mean([each[name] for each in told]))) for name in told[0]]
    return [*found, ("CPU seconds", seconds)]


def main() -> None:
    if sys.argv[1:2] == ["--coverage"]:
        for name, value in coverage(int(sys.argv[2])):
            print(f"  {name:<60} {value:>9.3f}", flush=True)
        return
    given = [Path(one) for one in sys.argv[1:]]
    for title, made in [("shop", shop()), *([("Synthea", synthea(*given))] if given else [])]:
        print(f"\n{title}: {', '.join(f'{name} {len(frame):,}' for name, frame in made.frames.items())}")
        for name, value in figures(made):
            print(f"  {name:<88} {value:>9.3f}", flush=True)


if __name__ == "__main__":
    main()
