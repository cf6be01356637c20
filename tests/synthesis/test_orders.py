"""Columns in order: no made-up row has a larger value before a smaller one, whatever was measured and drawn."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.catalog import declare
from discreet.errors import DeclarationError, QuestionError
from discreet.synthesis.cells import line
from discreet.synthesis.orders import Drawn, in_order, order_zeros
from discreet.synthesis.publication import PublishOptions, publication
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_c.coding import Coding
from kinds import examples, some
from related_tables import NAMES, said, shop

DAY, MOMENT = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
KINDS: dict[str, dict[str, Any]] = {
    "integer": {"type": Type.INTEGER, "minimum": 0, "maximum": 60},
    "number": {"type": Type.NUMBER, "minimum": Fraction(0), "maximum": Fraction(60)},
    "steps": {"type": Type.NUMBER, "minimum": Fraction(0), "maximum": Fraction(6), "step": Fraction(1, 10)},
    "date": {"type": Type.DATE, "minimum": DAY, "maximum": DAY + datetime.timedelta(days=60)},
    "timestamp": {"type": Type.TIMESTAMP, "minimum": MOMENT, "maximum": MOMENT + datetime.timedelta(seconds=60)},
}
CLOSED = (("a", "b"), ("a", "c"), ("b", "c"))


@settings(max_examples=examples(300, 30), deadline=None)
@given(st.data())
def test_values_are_in_order_and_stay_in_their_cells(data: Any) -> None:
    """Every combination of cells that is possible for three columns in order, with NULL."""
    kind = KINDS[data.draw(st.sampled_from(list(KINDS)))]
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    lines = {name: line(Column(name, **kind)) for name in "abc"}
    cells = []
    for name, along in lines.items():
        assert along is not None
        cuts = {
            along.low + (along.unit or Fraction(1, 10)) * step
            for step in data.draw(st.sets(st.integers(1, 59), max_size=4))
        }
        cells.append(along.binned(sorted(cuts)))
        assert name == cells[-1].column.name
    coding = Coding(tuple(cells))
    known = {name: along for name, along in lines.items() if along is not None}
    zeros = order_zeros(CLOSED, coding, known)
    every = np.array(list(itertools.product(*map(range, coding.sizes))))
    possible = np.ones(len(every), bool)
    for (first, second), empty in zeros.items():
        possible &= ~empty[every[:, "abc".index(first)], every[:, "abc".index(second)]]
    rows = np.repeat(every[possible], 5, axis=0)
    drawn = {}
    for place, one in enumerate(cells):
        along = known[one.column.name]
        ends = [along.low, *(along.place(cut) for cut in one.cuts), along.end()]
        codes = rows[:, place]
        whole = along.column.type is not Type.NUMBER
        values = []
        for code in np.minimum(codes, len(ends) - 2).tolist():
            low, high = ends[code], ends[code + 1]
            unit = along.unit or Fraction(1, 100)
            step = int(generator.integers(0, max(1, (high - low) // unit)))
            values.append(int(low + unit * step) if whole else float(low + unit * step))
        drawn[one.column.name] = Drawn(one, along, codes, np.array(values, np.int64 if whole else float))
    before = {name: one.values.copy() for name, one in drawn.items()}
    in_order(CLOSED, drawn, generator)
    there = {name: one.codes < one.cells.size - 1 for name, one in drawn.items()}
    for low, high in CLOSED:
        both = there[low] & there[high]
        assert (drawn[low].values <= drawn[high].values)[both].all()
    for name, one in drawn.items():
        along, ends = one.line, [one.line.low, *(one.line.place(cut) for cut in one.cells.cuts), one.line.end()]
        for code, value in zip(one.codes[there[name]].tolist(), one.values[there[name]].tolist(), strict=True):
            assert float(ends[code]) <= value
            assert value < float(ends[code + 1]) or (code == len(ends) - 2 and value <= float(along.high))
            if along.unit is not None and along.column.type is Type.NUMBER:
                assert value == float(along.low + along.unit * round((Fraction(value) - along.low) / along.unit))
        right = np.ones(len(rows), bool)
        for low, high in CLOSED:
            right &= (before[low] <= before[high]) | ~there[low] | ~there[high]
        alone = right & there["a"] & there["b"] & there["c"]
        assert (one.values == before[name])[alone].all()  # what was right stays


def stays(count: int, seed: int = 1) -> pd.DataFrame:
    """Stays of a few days, who pays at the end or later, and what they cost and paid."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 700, count)
    length = rng.poisson(6, count)
    cost = np.round(rng.gamma(2, 400, count).clip(0, 9000), 2)
    frame = pd.DataFrame(
        {
            "admitted": [DAY + datetime.timedelta(days=int(one)) for one in start],
            "discharged": [DAY + datetime.timedelta(days=int(one)) for one in start + length],
            "settled": [DAY + datetime.timedelta(days=int(one)) for one in start + length + rng.integers(0, 90, count)],
            "cost": cost,
            "paid": np.round(cost * rng.choice([0, 0.5, 1], count), 2),
            "ward": rng.choice(["A", "B"], count),
        }
    )
    frame["discharged"] = frame["discharged"].where(rng.random(count) > 0.2, None)
    return frame


END = DAY + datetime.timedelta(days=1000)
COLUMNS: dict[str, Any] = {
    **{name: {"type": "date", "min": DAY, "max": END} for name in ("admitted", "discharged", "settled")},
    **{name: {"type": "number", "min": 0, "max": 9000, "step": 0.01} for name in ("cost", "paid")},
    "ward": {"type": "text", "values": ["A", "B"]},
}
ORDERS = [["admitted", "discharged", "settled"], ["paid", "cost"]]


def curator(frame: pd.DataFrame, **more: Any) -> discreet.Curator:
    table = discreet.Table(frame, columns=COLUMNS, one_row_per_person=True, **{"orders": ORDERS, **more})
    return discreet.Curator({"stays": table}, epsilon=10, delta=1e-5, engine={"memory_gib": 4})


@pytest.mark.parametrize("method", some(["adaptive", "independent", "mst"], pytest.mark.power))
def test_a_published_table_is_in_order(method: str) -> None:
    """Of dates and of money, with NULL in the middle of three, and a rule about one of them; nothing is lost of what is
    seen of the columns alone."""
    frame = stays(3000)
    rules = [{"ward": "B", "admitted": {"max": DAY + datetime.timedelta(days=100)}}]
    with curator(frame, impossible=rules) as holder:
        release = holder.publish("stays", epsilon=5, method=method)
    for row in release.rows:
        for low, high in [*itertools.pairwise(ORDERS[0]), ("admitted", "settled"), ("paid", "cost")]:
            assert row[low] is None or row[high] is None or row[low] <= row[high]
        assert not (row["ward"] == "B" and row["admitted"] and row["admitted"] <= DAY + datetime.timedelta(days=100))
    made = release.to_pandas()
    assert abs(made.discharged.isna().mean() - 0.2) < 0.06
    assert made.cost.isna().mean() < 0.05
    assert abs(made.cost.median() - frame.cost.median()) < 150
    assert abs((made.paid == 0).mean() - (frame.paid == 0).mean()) < 0.06
    assert any("paid is never larger than cost" in bound for bound in release.bounds)


def test_beside_public_totals_and_in_one_row() -> None:
    with curator(stays(1), totals=[{"by": ["ward"], "counts": {"A": 1, "B": 0}}]) as holder:
        (row,) = holder.publish("stays", epsilon=1).rows
    assert row["ward"] == "A"
    assert row["admitted"] is None or row["settled"] is None or row["admitted"] <= row["settled"]


def test_of_columns_that_are_left_out_the_others_stay_in_order() -> None:
    with curator(stays(400)) as holder:
        release = holder.publish("stays", epsilon=1, columns=["settled", "admitted"])
    assert all(None in row.values() or row["admitted"] <= row["settled"] for row in release.rows)


def declared(orders: Any, **more: Any) -> Any:
    columns = {
        "a": {"type": "integer", "min": 0, "max": 9},
        "b": {"type": "integer", "min": 5, "max": 20},
        "c": {"type": "integer", "min": 10, "max": 30},
        "date": {"type": "date", "min": DAY, "max": END},
        "moment": {"type": "timestamp", "min": MOMENT, "max": MOMENT + datetime.timedelta(days=9)},
        "odd": {
            "type": "timestamp",
            "min": MOMENT + datetime.timedelta(microseconds=5),
            "max": MOMENT.replace(year=2021),
        },
        "cents": {"type": "number", "min": 0, "max": 9, "step": 0.01},
        "tenths": {"type": "number", "min": 0, "max": 9, "step": 0.1},
        "half": {"type": "number", "min": 0.005, "max": 9, "step": 0.01},
        "free": {"type": "text"},
        "sex": {"type": "text", "values": ["F", "M"], "nulls": False},
    }
    table = {"source": "t.csv", "one_row_per_person": True, "columns": columns, "orders": orders, **more}
    return declare({"budget": {"epsilon": 1, "delta": Fraction(1, 10**6)}, "tables": {"t": table}})


def test_orders_are_read_with_what_follows_from_them() -> None:
    assert declared([["a", "b"], ["B", "c"]]).orders["t"] == (("a", "b"), ("a", "c"), ("b", "c"))
    assert "t" not in declared([]).orders


FAULTS: list[tuple[Any, dict[str, Any], str]] = [
    ("a", {}, "not a valid list of lists"),
    ([["a"]], {}, "not a valid list of lists"),
    ([["a", 3]], {}, "not a valid list of lists"),
    ([["a", "x"]], {}, "x is not declared"),
    ([["a", "free"]], {}, "the bounds of free are not declared"),
    ([["a", "sex"]], {}, "the bounds of sex are not declared"),
    ([["a", "b"], ["b", "a"]], {}, "a is before itself"),
    ([["a", "a"]], {}, "a is before itself → take one of these orders out"),
    ([["a", "date"]], {}, "not one type and step"),
    ([["date", "moment"]], {}, "not one type and step"),
    ([["cents", "tenths"]], {}, "not one type and step"),
    ([["cents", "half"]], {}, "not whole steps apart"),
    ([["moment", "odd"]], {}, "not whole steps apart"),
    ([["c", "a"]], {}, "no value of c is at most one of a"),
    (
        [["a", "b"]],
        {"impossible": [{"sex": "M", "b": {"max": 9}}], "totals": [{"by": ["sex"], "counts": {"F": 1, "M": 1}}]},
        "tie it to columns with totals",
    ),
]


@pytest.mark.parametrize(("orders", "more", "words"), FAULTS)
def test_faults_are_named(orders: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declared(orders, **more)
    assert words in str(error.value)


def test_orders_decide_the_release_and_no_price() -> None:
    asked = PublishOptions(table="t", epsilon="0.5")
    plain, ordered = (publication(declared(orders), asked) for orders in ([], [["a", "b"]]))
    assert plain.declared.loss == ordered.declared.loss
    assert len(ordered.parts) == len(plain.parts) + 1


def test_rules_that_leave_nothing_in_order_are_refused_before_anything_is_spent() -> None:
    """All was admitted late and settled early; none may be missing."""
    late, early = DAY + datetime.timedelta(days=500), DAY + datetime.timedelta(days=400)
    rules = [{"admitted": {"max": late}}, {"settled": {"min": early}}]
    columns = {**COLUMNS, **{name: {**COLUMNS[name], "nulls": False} for name in ("admitted", "settled")}}
    table = discreet.Table(stays(30), columns=columns, one_row_per_person=True, orders=ORDERS, impossible=rules)
    with discreet.Curator({"stays": table}, epsilon=10, delta=1e-5, engine={"memory_gib": 4}) as holder:
        with pytest.raises(QuestionError, match="no row possible"):
            holder.publish("stays", epsilon=1)
        assert holder.budget.used == 0


def test_tables_that_are_published_together_are_in_order_too() -> None:
    """Also rows below others, which are drawn one column after the other; with a rule about one of the columns."""
    known, told = shop(400), said(6, 20)
    days = {"type": "integer", "min": 0, "max": 300}
    rng = np.random.default_rng(1)
    for name in NAMES:
        sent = rng.integers(0, 250, len(known[name]))
        known[name] = known[name].assign(sent=sent, came=sent + rng.poisson(3, len(sent)))
        told[name]["columns"] = {**told[name]["columns"], "sent": days, "came": days}
        told[name]["orders"] = [["sent", "came"]]
    told["orders"]["impossible"] = [{"channel": "web", "sent": {"max": 50}}, {"channel": "web", "came": {"min": 240}}]
    tables = {name: discreet.Table(known[name], **told[name]) for name in NAMES}
    with discreet.Curator(tables, epsilon=10, delta=1e-5, engine={"memory_gib": 4}) as holder:
        release = holder.publish(NAMES, epsilon=5)
    for name in NAMES:
        assert len(release.tables[name].rows) > 100
        assert all(None in row.values() or row["sent"] <= row["came"] for row in release.tables[name].rows)
    for row in release.tables["orders"].rows:
        if row["channel"] == "web":
            assert row["sent"] is None or row["sent"] > 50
            assert row["came"] is None or row["came"] < 240


@settings(max_examples=examples(100), deadline=None)
@given(st.sets(st.integers(1, 9)), st.sets(st.integers(1, 9)), st.booleans())
def test_cells_are_impossible_where_no_two_values_are_in_order(first: set[int], second: set[int], turned: Any) -> None:
    """By all values of two columns from 0 to 9."""
    names = ("b", "a") if turned else ("a", "b")
    lines = {name: line(Column(name, Type.INTEGER, 0, 9, nulls=False)) for name in names}
    known = {name: along for name, along in lines.items() if along is not None}
    cells = {
        name: known[name].binned(sorted(map(Fraction, cuts))) for name, cuts in zip("ab", (first, second), strict=True)
    }
    ((clique, empty),) = order_zeros((("a", "b"),), Coding(tuple(cells[name] for name in names)), known).items()
    assert clique == names
    right = np.zeros((cells["a"].size, cells["b"].size), bool)
    for low, high in itertools.product(range(10), repeat=2):
        right[cells["a"].cell(low), cells["b"].cell(high)] |= low <= high
    assert (empty == ~(right.T if turned else right)).all()


def test_no_rows_make_columns_too_fine_for_a_model_that_is_paid() -> None:
    """Four columns in order are one clique, and rows with spikes cut each into more cells than were counted before."""
    generator = np.random.default_rng(0)
    spikes = generator.choice(np.arange(20, 1_000, 40), (4_000, 4))
    values = np.where(generator.random((4_000, 4)) < 0.85, spikes, generator.integers(0, 1_000, (4_000, 4)))
    columns = {name: {"type": "integer", "min": 0, "max": 999, "nulls": False} for name in "abcd"}
    frame = pd.DataFrame(values, columns=list("abcd"))
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, orders=[["a", "b", "c", "d"]])
    with discreet.Curator({"t": table}, epsilon=100, delta=1e-6) as holder:
        made = holder.publish("t", epsilon=20).to_pandas()
    assert (np.diff(made.to_numpy(), axis=1) >= 0).all()
