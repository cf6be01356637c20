"""Rows as cells: the engine's marginals against plain Python, and what one person can move."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import BoundedRange, Declared
from discreet.accounting.room import part_used
from discreet.catalog import declare
from discreet.catalog.model import Declaration, EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.errors import EngineError
from discreet.ledger import TOTAL, Caps, Ledger
from discreet.markov import Domain
from discreet.mechanisms import Gaussian
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.sql import lower
from discreet.synthesis.candidates import weights
from discreet.synthesis.schedule import marginals_for
from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type, Value
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.marginals import Declaring, Marginals, _apart
from kinds import some

TEXTS = ["a", "it's", "", "é\u2028", "\x00", "x" * 300, "NULL", "0", "b", "c"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3]),
        st.one_of(st.none(), st.sampled_from([*TEXTS, "zz"])),
        st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.1, 0.3, 1.0, 1e300, float("inf"), float("nan")])),
        st.one_of(st.none(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    ),
    max_size=12,
)


def declaration(most: int) -> Declaration:
    columns = {
        "p": {"type": "integer"},
        "t": {"type": "text", "length": 300},
        "x": {"type": "number"},
        "i": {"type": "integer"},
    }
    raw: dict[str, Any] = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": "t.csv", "person": "p", "rows_per_person": most, "columns": columns}},
    }
    return declare(raw)


def declared(most: int) -> Table:
    return declaration(most).tables["t"]


def loaded(rows: Sequence[tuple[Any, ...]], most: int) -> tuple[DuckDB, Table]:
    """The rows in an engine of their own."""
    frame = pd.DataFrame(
        {
            "p": pd.array([row[0] for row in rows], "Int64"),
            "t": pd.array([row[1] for row in rows], "string"),
            "x": pd.array([row[2] for row in rows], "Float64"),
            "i": pd.array([row[3] for row in rows], "Int64"),
        }
    )
    table = declared(most)
    table = Table(**{**vars(table), "source": Source(SourceKind.FRAME, frame=frame)})
    engine = DuckDB(EngineLimits(memory_gib=4))
    engine.load(table, b"salt")
    return engine, table


PREFIXES = ("b", "x", "xx", "x" * 12, "it", "é", "\x00", "0", "zz")


def coding(table: Table, *, null: bool, other: bool, texts: int, prefixes: int = 0) -> Coding:
    text, number, whole = (table.column(name) for name in ("t", "x", "i"))
    assert text is not None
    assert number is not None
    assert whole is not None
    return Coding(
        (
            ListedCells(text, tuple(TEXTS[:texts]), other=other, null=null, prefixes=PREFIXES[:prefixes]),
            Binned(number, (Fraction(0), Fraction(1, 10), Fraction(3, 10), Fraction(1)), null=null),
            Binned(whole, (-1, 0, 2**63 - 1), null=null),
        )
    )


def cell(coded: ListedCells | Binned, value: Any) -> int | None:
    """What the engine is held against."""
    none = coded.size - 1 if coded.null else None
    if value is None or value != value:
        return none
    if isinstance(coded, Binned):
        return sum(float(cut) <= value if isinstance(cut, Fraction) else cut <= value for cut in coded.cuts)  # type: ignore[operator]
    if value in coded.values:
        return coded.values.index(value)
    begun = [one for one in coded.prefixes if value.startswith(one)]
    if begun:
        return len(coded.values) + coded.prefixes.index(max(begun, key=len))
    return len(coded.values) + len(coded.prefixes) if coded.other else none


CLIQUES: list[tuple[str, ...]] = [(), ("t",), ("x",), ("i",), ("i", "x"), ("t", "x", "i"), ("x", "t", "i")]


@settings(max_examples=15, deadline=None)
@given(ROWS, st.booleans(), st.booleans(), st.sampled_from([0, 3, 10]), st.sampled_from([0, 0, 1, 9]))
def test_marginals_are_those_of_plain_python(
    rows: list[tuple[Any, ...]], null: bool, other: bool, texts: int, prefixes: int
) -> None:
    if texts == prefixes == 0 and not null and not other:
        return  # no cell at all: refused
    engine, table = loaded(rows, most=100)
    known = coding(table, null=null, other=other, texts=texts, prefixes=prefixes)
    coded = engine.code(known, table)
    names = ("t", "x", "i")
    cells = [[cell(one, value) for one, value in zip(known.columns, row[1:], strict=True)] for row in rows]
    kept = [row for row in cells if None not in row]
    for clique, marginal in zip(CLIQUES, engine.marginals(coded, CLIQUES), strict=True):
        expected = Counter(tuple(row[names.index(name)] for name in clique) for row in kept)
        assert marginal.shape == known.shape(clique)
        assert {place: int(count) for place, count in np.ndenumerate(marginal) if count} == expected
    engine.uncode(coded)
    with pytest.raises(EngineError):
        engine.marginals(coded, [()])
    engine.close()


@settings(max_examples=10, deadline=None)
@given(ROWS, st.integers(1, 3))
def test_one_person_moves_a_marginal_by_no_more_than_the_rows_that_count(
    rows: list[tuple[Any, ...]], most: int
) -> None:
    """Neighbouring tables through the real engine, with one load's key and salt fixed by having one person's rows only:
    what a person adds is what the engine counts of that person alone."""
    for person in {row[0] for row in rows}:
        engine, table = loaded([row for row in rows if row[0] == person], most)
        known = coding(table, null=True, other=True, texts=3, prefixes=9)
        for marginal in engine.marginals(engine.code(known, table), CLIQUES):
            assert marginal.sum() == min(most, sum(row[0] == person for row in rows))
        engine.close()


def test_a_coding_is_checked() -> None:
    table = declared(1)
    number = table.column("x")
    assert number is not None
    with pytest.raises(ValueError, match="ascending order"):
        Binned(number, (Fraction(1), Fraction(1)))
    with pytest.raises(ValueError, match="coded twice"):
        Coding((Binned(number, ()), Binned(number, ())))
    with pytest.raises(ValueError, match="cell"):
        Coding((ListedCells(number, (), null=False),))
    with pytest.raises(ValueError, match="only texts"):
        ListedCells(number, (), prefixes=("1",))
    text = Column("t", Type.TEXT)
    for odd in (("a", "a"), ("",)):
        with pytest.raises(ValueError, match="different texts"):
            ListedCells(text, (), prefixes=odd)
    assert ListedCells(text, ("ab",), True, True, ("a",)).names == ("ab", "a*", "(other)", "(none)")
    assert repr(ListedCells(text, ("ab",))) == f"ListedCells(column={text!r}, values=('ab',), other=False, null=True)"
    wide = Column("w", Type.INTEGER)
    known = Coding((Binned(wide, tuple(range(1 << 13))), Binned(number, tuple(map(Fraction, range(1 << 13))))))
    with pytest.raises(ValueError, match="cells"):
        known.shape(("w", "x"))
    with pytest.raises(ValueError, match="once"):
        known.shape(("w", "w"))
    assert known.shape(()) == ()


VALUES: list[tuple[Type, tuple[Value, ...], tuple[Any, ...]]] = [
    (Type.DATE, (datetime.date(2020, 2, 29),), (datetime.date(2020, 2, 28), datetime.date(2020, 2, 29))),
    (Type.BOOLEAN, (False, True), (True, False)),
    (Type.NUMBER, (Fraction(1, 10),), (0.1, 0.2)),
]


@pytest.mark.parametrize(("kind", "values", "held"), VALUES)
def test_values_of_every_type_find_their_cell(kind: Type, values: tuple[Value, ...], held: tuple[Any, ...]) -> None:
    frame = pd.DataFrame({"v": [*held, None]}, dtype=object)
    raw = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"one_row_per_person": True, "columns": {"v": {"type": str(kind)}}}},
    }
    raw["tables"]["t"]["source"] = frame  # type: ignore[index]
    table = declare(raw).tables["t"]
    engine = DuckDB(EngineLimits(memory_gib=4))
    engine.load(table, b"salt")
    known = Coding((ListedCells(table.columns[0], values, other=True),))
    (marginal,) = engine.marginals(engine.code(known, table), [("v",)])
    known_values = [float(value) if isinstance(value, Fraction) else value for value in values]
    expected = [sum(one == value for one in held) for value in known_values]
    assert marginal.tolist() == [*expected, len(held) - sum(expected), 1]
    engine.close()


def opened(rows: Sequence[tuple[Any, ...]], batch: Declared, most: int = 2) -> tuple[Marginals, Ledger]:
    engine, table = loaded(rows, most)
    ledger = Ledger(None)
    ledger.register({TOTAL: Caps(Fraction(10**6), Fraction(1, 10**6), Fraction(1, 10**7))}, "")
    door = Door(ledger, engine, [table])
    grant = door.open(Declaring(table, batch), analyst=TOTAL, question="q", key="k", request=None)
    assert isinstance(grant, Grant)
    return Marginals(grant), ledger


EVENT = Fraction(1, 10**8)
ROW = (1, "a", 0.5, 0)


def test_a_run_takes_what_the_batch_declared_and_no_more() -> None:
    sigma = Fraction(1)
    batch = Declared((Gaussian(sigma).loss(4), BoundedRange(Fraction(4))), EVENT)
    run, ledger = opened([ROW] * 5, batch)
    table = declared(2)
    run.code(coding(table, null=True, other=True, texts=3))
    assert run.measure(("t", "i"), sigma).shape == (5, 5)
    with pytest.raises(ValueError, match="batch"):
        run.measure(("t",), sigma)
    far, near = np.full((5,), 1000, np.int64), np.zeros((5,), np.int64)
    with pytest.raises(ValueError, match="batch"):
        run.select(Fraction(9), [("t",)], [near], [1], [0])
    assert run.select(Fraction(4), [("t", "x"), ("i",)], [np.zeros(30, np.int64), far], [1, 1], [0, 0]) == 1
    with pytest.raises(ValueError, match="batch"):
        run.select(Fraction(4), [("t",)], [near], [1], [0])
    run.commit(b"{}")
    with pytest.raises(ValueError, match="batch"):
        run.measure(("t",), sigma)
    assert part_used(ledger.filter(TOTAL)) > 0


def test_questions_of_a_run_take_their_price_of_the_batch() -> None:
    """Each once, for what it costs: another price is refused, and so is the same one again."""
    plan = lower("SELECT COUNT(*) FROM t", declaration(2)).plan
    half, third = (measurement(plan, Price(Fraction(1, part), Fraction(0))) for part in (2, 3))
    batch = Declared((*half.loss.parts, BoundedRange(Fraction(4))), EVENT)
    run, _ = opened([ROW] * 5, batch)
    with pytest.raises(ValueError, match="batch"):
        run.find(third)
    assert len(run.find(half).parts) == 1
    with pytest.raises(ValueError, match="batch"):
        run.find(half)


def test_a_grant_opens_one_run_of_the_batch_that_was_reserved() -> None:
    batch = Declared((BoundedRange(Fraction(4)),), EVENT)
    run, _ = opened([ROW], batch)
    with pytest.raises(ValueError, match="grant"):
        Marginals(run._grant)
    with pytest.raises(ValueError, match="grant"):
        run._grant.take()
    run.code(coding(declared(2), null=True, other=True, texts=3))
    with pytest.raises(ValueError, match="batch"):
        run.select(Fraction(5), [("t",)], [np.zeros((5,), np.int64)], [1], [0])


def test_a_failure_ends_the_run_and_says_nothing() -> None:
    sigma = Fraction(3)
    run, _ = opened([ROW], Declared((Gaussian(sigma).loss(4),) * 2, EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    run._engine.close()
    with pytest.raises(EngineError) as error:
        run.measure(("t",), sigma)
    assert error.value.__context__ is None
    with pytest.raises((ValueError, EngineError)):
        run.measure(("t",), sigma)


@pytest.mark.parametrize("far", [-(2**63), 2**63 - 1, 2**61, 2**60])
def test_predictions_that_64_bits_cannot_be_told_from_move_as_any_others(far: int) -> None:
    """|0 − (−2^63)| wraps to −2^63 in 64 bits, |1 − (−2^63)| does not: one row would move the distance by 2^64. And it
    would be a failure, of which somebody learns for nothing."""
    sigma = Fraction(2)
    batch = Declared((BoundedRange(Fraction(1)), Gaussian(sigma).loss(4)), EVENT)
    wild = [np.full(5, far, np.int64)]
    for rows in ([ROW], []):
        run, _ = opened(rows, batch)
        run.code(coding(declared(2), null=True, other=True, texts=3))
        assert run.select(Fraction(1), [("t",)], wild, [1], [0]) == 0
        (found,) = run.distances([("t",)], wild, sigma)
        exact = 5 * abs(far) if not rows else 4 * abs(far) + abs(1 - far)
        assert abs(found - exact) < 50  # 25 deviations
        run.commit(b"{}")


@pytest.mark.parametrize(
    "wrong", [np.zeros(4, np.int64), np.zeros(5), np.zeros(5, np.uint64), np.zeros((5, 5), np.int64)]
)
def test_predictions_that_are_none_are_refused_before_anything_is_used_up(wrong: Any) -> None:
    sigma = Fraction(2)
    run, _ = opened([ROW], Declared((BoundedRange(Fraction(1)), Gaussian(sigma).loss(4)), EVENT))
    good = np.zeros(5, np.int64)
    with pytest.raises(AssertionError, match="nothing is coded"):
        run.select(Fraction(1), [("t",)], [good], [1], [0])
    run.code(coding(declared(2), null=True, other=True, texts=3))
    for handed in ([wrong], [good, good], []):
        with pytest.raises((ValueError, TypeError), match=r"reshape|cast|argument"):
            run.select(Fraction(1), [("t",)], handed, [1], [0])
        with pytest.raises((ValueError, TypeError), match=r"reshape|cast|argument"):
            run.distances([("t",)], handed, sigma)
    assert run.select(Fraction(1), [("t",)], [good], [1], [0]) == 0
    assert len(run.distances([("t",)], [good], sigma)) == 1


class ChangingColumns(list[str]):
    """Two columns when it is first read, and one from then on."""

    read = 0

    def __iter__(self) -> Iterator[str]:
        self.read += 1
        return iter(["t", "i"][: 2 if self.read == 1 else 1])


class ChangingName(str):
    """A name that is another one's in a look-up after the first."""

    asked: ClassVar[list[int]] = []

    def __hash__(self) -> int:
        self.asked.append(1)
        return hash("t" if len(self.asked) < 3 else "i")

    def __eq__(self, other: object) -> bool:
        return other == ("t" if len(self.asked) < 3 else "i")


class Curious(np.ndarray):
    """An array that would be told what it is compared with."""

    told: ClassVar[list[Any]] = []

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **more: Any) -> Any:
        self.told.append(given)
        return getattr(function, method)(*map(np.asarray, given), **more)


def test_what_is_priced_is_what_is_measured_and_nothing_handed_in_sees_it() -> None:
    """Columns that change in between were measured against a larger prediction, and moved by more than was charged."""
    sigma = Fraction(1, 100)
    run, _ = opened([ROW] * 2, Declared((BoundedRange(Fraction(1)), Gaussian(sigma).loss(4)), EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    prediction = np.zeros((5, 5), np.int64).view(Curious)
    assert run.select(Fraction(1), [ChangingColumns(["t", "i"])], [prediction], [1], [0]) == 0
    assert run.distances([ChangingColumns(["t", "i"])], [prediction], sigma) == [2]
    assert not Curious.told


def test_a_name_is_what_its_letters_say() -> None:
    sigma = Fraction(1, 100)
    run, _ = opened([ROW] * 2, Declared((Gaussian(sigma).loss(4),), EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    assert run.distances([(ChangingName("t"),)], [np.zeros(5, np.int64)], sigma) == [2]
    assert not ChangingName.asked


WIDE = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(WIDE, WIDE), max_size=8))
def test_distances_are_those_of_whole_numbers_without_end(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array([pair[place] for pair in pairs], np.int64) for place in range(2))
    assert _apart(one, other) == sum(abs(a - b) for a, b in pairs)


def test_a_weight_below_zero_counts_with_its_size() -> None:
    """Scores −9·3 and 1·0: the noise is for a weight of 9."""
    runs, epsilon, first = 100, Fraction(1, 2), 0
    run, _ = opened([(person, "a", 0.5, 0) for person in (1, 2, 3)], Declared((BoundedRange(epsilon),) * runs, EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    none = [np.zeros(5, np.int64), np.array([0, 0, 3, 0, 0], np.int64)]
    for _ in range(runs):
        first += run.select(epsilon, [("t",), ("i",)], none, [-9, 1], [0, 0]) == 0
    assert 8 < first < 78  # chance .407, a standard deviation of 4.9; with noise for a weight of 1 it is .033


def test_a_choice_among_marginals_of_different_weight_is_noisy_for_the_heaviest() -> None:
    """The weights are those of a target's triple and of a pair without it; scores are the heavy one's 3 and 0 rows."""
    domain = Domain.of({"y": 2, "t": 5, "i": 5, **{f"c{place}": 2 for place in range(9)}})
    workload = marginals_for(domain, "y")
    heavy, light = weights(domain, [("y", "t", "i"), ("t", "i")], workload)
    assert heavy > 2 * light
    runs, epsilon, first = 200, Fraction(1, 2), 0
    run, _ = opened([(person, "a", 0.5, 0) for person in (1, 2, 3)], Declared((BoundedRange(epsilon),) * runs, EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    none = [np.zeros(5, np.int64), np.array([0, 0, 3, 0, 0], np.int64)]
    for _ in range(runs):
        first += run.select(epsilon, [("t",), ("i",)], none, [heavy, light], [0, 0]) == 0
    # two rows a person count: chance 1/(1 + e^-.375) = .593; a standard deviation is 6.9, and 5 of them 35. Of noise
    # for a weight of 1 the chance is above .999
    assert abs(first - 118.5) < 35


@pytest.mark.parametrize("most", some([2, 1], pytest.mark.power))
def test_choices_are_drawn_from_exact_misses(most: int) -> None:
    """The exponential mechanism's distribution over two candidates whose scores differ by d: odds e^(ε·d/(2·w·R))."""
    runs, odds = 400, 0
    epsilon = Fraction(1, 2)
    batch = Declared((BoundedRange(epsilon),) * runs, EVENT)
    run, _ = opened([(person, "a", 0.5, 0) for person in (1, 2, 3) for _ in range(most)], batch, most)
    run.code(coding(declared(most), null=True, other=True, texts=3))
    none = [np.zeros(5, np.int64), np.array([0, 0, 3 * most, 0, 0], np.int64)]
    for _ in range(runs):
        odds += run.select(epsilon, [("t",), ("i",)], none, [1, 1], [0, 0]) == 0
    # misses 3 and 0 persons' rows: chance 1/(1 + e^-.75) = .679; of 400 draws the standard deviation is .0233, and
    # 5 of them .117; without the factor 2 the chance is .818
    assert abs(odds / runs - 0.679) < 0.117


def test_measured_noise_is_what_the_loss_says() -> None:
    """The variance of 60 marginals of 125 cells: within 5 standard deviations of sigma²; half of it would be 38 off."""
    sigma, runs = Fraction(20), 60
    run, _ = opened([ROW] * 3, Declared((Gaussian(sigma).loss(4),) * runs, EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    cliques = itertools.repeat(("t", "x", "i"), runs)
    noise = np.concatenate([run.measure(clique, sigma).reshape(-1) for clique in cliques])
    assert abs(noise.var() / 400 - 1) < 5 * (2 / len(noise)) ** 0.5 + 0.002


def test_distances_are_noisy_as_their_loss_says() -> None:
    """60 times 150 distances, all of them the 6 rows of three persons: within 5 standard deviations of sigma²."""
    sigma, runs, together = Fraction(20), 60, 150
    run, _ = opened([ROW] * 3, Declared((Gaussian(sigma).loss(4 * together),) * runs, EVENT))
    run.code(coding(declared(2), null=True, other=True, texts=3))
    nothing = [np.zeros(5, np.int64)] * together
    noise = np.concatenate([run.distances([("t",)] * together, nothing, sigma) for _ in range(runs)])
    assert abs(noise.var() / 400 - 1) < 5 * (2 / len(noise)) ** 0.5 + 0.002
