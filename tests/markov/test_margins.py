"""Tables with given margins: beside an enumeration of all tables, and rows that are moved until they have them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.markov import Domain, MarginalMeasurement, fit
from discreet.markov import margins as module
from discreet.markov.margins import Margins
from discreet.markov.moved import moved
from kinds import examples
from memory_measurer import counts

KIND = "exact"
TINY = Domain.of({"a": 2, "b": 2, "c": 2})
WIDE = Domain.of({"a": 3, "b": 2, "c": 3, "d": 4, "e": 2})


def cliques(domain: Domain, most: int):
    every = [clique for size in range(1, most + 1) for clique in itertools.combinations(domain.names, size)]
    return st.lists(st.sampled_from(every), max_size=3, unique=True)


def possible(domain: Domain, known, zeros, rows: int) -> bool:
    """Whether one of all tables of so many rows has these counts, and no row in a zero."""
    cells = [
        cell
        for cell in itertools.product(*map(range, domain.sizes))
        if not any(empty[tuple(cell[domain.place[n]] for n in clique)] for clique, empty in zeros.items())
    ]
    return any(
        all((counts(np.array(table, np.int64), domain, clique) == one).all() for clique, one in known.items())
        for table in itertools.combinations_with_replacement(cells, rows)
    )


def held(margins: Margins, tables) -> None:
    """The tables have the counts, are empty where they shall, and agree in what they share."""
    tree = margins.tree
    for clique, separator, parent, table in zip(tree.cliques, tree.separators, tree.parents, tables, strict=True):
        assert (table >= 0).all()
        for other, wanted in (*margins.counts.items(), *margins.zeros.items()):
            if set(other) <= set(clique):
                axes = tuple(axis for axis, name in enumerate(clique) if name not in other)
                order = [[name for name in clique if name in other].index(name) for name in other]
                found = table.sum(axis=axes).transpose(order)
                assert not found[wanted].any() if wanted.dtype == bool else (found == wanted).all()
        if parent >= 0:
            mine, theirs = (
                {
                    cell: int(
                        one[tuple(cell[separator.index(n)] if n in separator else slice(None) for n in names)].sum()
                    )
                    for cell in np.ndindex(margins.domain.shape(separator))
                }
                for one, names in ((table, clique), (tables[parent], tree.cliques[parent]))
            )
            assert mine == theirs


@settings(max_examples=examples(300, 40))
@given(st.data())
def test_a_table_is_found_where_there_is_one_and_nowhere_else(data) -> None:
    """All tables of up to four rows of three columns; margins of tables, of which a cell or two is moved."""
    rows = data.draw(st.integers(1, 4))
    table = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=rows, max_size=rows)))
    known = {clique: counts(table, TINY, clique) for clique in data.draw(cliques(TINY, 2))} or {
        ("a",): counts(table, TINY, ("a",))
    }
    for clique in data.draw(st.lists(st.sampled_from(list(known)), max_size=1)):
        flat = known[clique].reshape(-1)
        full = np.flatnonzero(flat)[0]
        flat[full] -= 1
        flat[data.draw(st.integers(0, len(flat) - 1))] += 1
    zeros = {
        clique: np.array(
            data.draw(st.lists(st.booleans(), min_size=TINY.cells(clique), max_size=TINY.cells(clique)))
        ).reshape(TINY.shape(clique))
        for clique in data.draw(cliques(TINY, 3))
    }
    margins = Margins.of(TINY, known, zeros)
    found = margins.tables()
    about = {clique: one for clique, one in zeros.items() if set(clique) & set(margins.domain.names)}
    assert (found is not None) == possible(TINY, known, about, rows)
    if found is not None:
        held(margins, found)


@settings(max_examples=examples(200, 30), deadline=None)
@given(st.data())
def test_rows_are_moved_until_they_have_the_margins(data) -> None:
    """Whatever the model: of other tables, with zeros that the model has too, as the owner's rules are."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows = data.draw(st.sampled_from([1, 2, 30, 400]))
    table = np.stack([generator.integers(0, size, rows) for size in WIDE.sizes], axis=1)
    zeros = {}
    for clique in data.draw(cliques(WIDE, 3)):
        zeros[clique] = (counts(table, WIDE, clique) == 0) & (generator.random(WIDE.shape(clique)) < 0.5)
    known = {clique: counts(table, WIDE, clique) for clique in data.draw(cliques(WIDE, 2))}
    known = {one: n for one, n in known.items() if not any(set(one) < set(other) for other in known)}
    if not known:
        return
    other = np.stack([generator.integers(0, size, 300) for size in WIDE.sizes], axis=1)
    measured = [MarginalMeasurement((n,), counts(other, WIDE, (n,)), 1) for n in WIDE.names]
    model = fit(WIDE, measured, zeros=zeros, rows=rows)
    margins = Margins.of(WIDE, known, zeros)
    otherwise = margins.tables()
    assert otherwise is not None
    drawn = model.sample(rows)
    found = moved(model, drawn, margins, otherwise, generator)
    for clique, wanted in known.items():
        assert (counts(found, WIDE, clique) == wanted).all()
    for clique, empty in zeros.items():
        assert not counts(found, WIDE, clique)[empty].any()
    others = [WIDE.place[name] for name in WIDE.names if name not in margins.domain.names]
    assert (found[:, others] == drawn[:, others]).all()


def test_no_more_rows_are_moved_than_need_be() -> None:
    """Of a value there are 50 rows too many: 50 rows change, about nine in ten of them rows that the new value suits.
    Half of them or fewer have a chance below 1e-8."""
    generator = np.random.default_rng(1)
    first = generator.integers(0, 2, 20_000)
    table = np.stack([first, np.where(generator.random(20_000) < 0.9, first, 1 - first)], axis=1)
    domain = Domain.of({"a": 2, "b": 2})
    model = fit(domain, [MarginalMeasurement(("a", "b"), counts(table, domain, ("a", "b")), 1)])
    drawn = model.sample(20_000)
    wanted = counts(drawn, domain, ("a",)) + np.array([50, -50])
    margins = Margins.of(domain, {("a",): wanted}, {})
    found = moved(model, drawn, margins, margins.tables(), generator)
    changed = (found != drawn).any(axis=1)
    assert changed.sum() == 50
    assert (found[changed, 1] == 0).sum() > (found[changed, 1] == 1).sum()


def test_where_no_nearest_table_is_found_another_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit(WIDE, [], rows=50)
    known = {("a", "b"): np.array([[10, 0], [5, 5], [30, 0]]), ("d",): np.array([0, 50, 0, 0])}
    margins = Margins.of(WIDE, known, {})
    otherwise = margins.tables()
    monkeypatch.setattr(Margins, "tables", lambda *_: None)
    found = moved(model, model.sample(50), margins, otherwise, np.random.default_rng())
    for clique, wanted in known.items():
        assert (counts(found, WIDE, clique) == wanted).all()


def test_values_that_nothing_tells_apart_are_one_class() -> None:
    domain = Domain.of({"a": 2, "age": 100, "town": 50, "free": 9})
    zeros = {("a", "age"): np.arange(100) >= np.array([[50], [200]]), ("town", "free"): np.ones((50, 9), bool)}
    margins = Margins.of(domain, {("a",): np.array([3, 4])}, zeros)
    assert margins.domain == Domain.of({"a": 2, "age": 2})
    assert margins.classes["age"].tolist() == [0] * 50 + [1] * 50
    assert margins.rows == 7


def test_many_rows_are_counted_to_the_row() -> None:
    """Ten million, where a solver's tolerance is more than a row in relative terms."""
    domain = Domain.of({"sex": 2, "well": 2, "town": 40})
    towns = np.random.default_rng(3).multinomial(9_999_991, np.full(80, 1 / 80)).reshape(2, 40)
    women = int(towns[0].sum())
    impossible = np.array([[False, False], [False, True]])
    wells = np.array([9_999_991 - women, women])
    margins = Margins.of(domain, {("sex", "town"): towns, ("well",): wells}, {("sex", "well"): impossible})
    found = margins.tables()
    assert found is not None
    held(margins, found)
    more = {("sex", "town"): towns, ("well",): wells + np.array([-1, 1])}
    assert Margins.of(domain, more, {("sex", "well"): impossible}).tables() is None


def test_what_is_too_large_to_be_solved_is_not_begun() -> None:
    size = math.isqrt(module.MOST_CELLS) + 1
    domain = Domain.of({"a": size, "b": size})
    assert Margins.of(domain, {("a", "b"): np.ones((size, size), np.int64)}, {}).tables() is None


def test_the_same_margins_are_met_once(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain.of({"a": 3, "b": 3, "c": 3})
    table = np.arange(27).reshape(3, 3, 3)
    known = {("a", "b"): table.sum(2), ("b", "c"): table.sum(0), ("a", "c"): table.sum(1)}
    (found,) = Margins.of(domain, known, {}).tables() or ((),)
    monkeypatch.setattr(Margins, "_found", lambda *_: pytest.fail("it is looked for again"))
    (again,) = Margins.of(domain, known, {}).tables() or ((),)
    assert (again == found).all()
    monkeypatch.undo()
    others = {clique: one * 2 for clique, one in known.items()}
    (other,) = Margins.of(domain, others, {}).tables() or ((),)
    assert other.sum() == 2 * table.sum()
    assert other.sum(2).tolist() == others["a", "b"].tolist()


def test_no_limit_is_in_seconds_and_what_is_declared_is_decided_alike_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three pairs of columns, for which the linear program has no whole solution: so a search follows it. Within the
    limits it finds the same each time; beyond them nothing is found, and nothing is made up."""
    import scipy.optimize

    asked: list[dict[str, object]] = []
    for name in ("linprog", "milp"):
        solver = getattr(scipy.optimize, name)

        def noted(*args: object, solver: Any = solver, **more: Any) -> Any:
            asked.append(more["options"])
            return solver(*args, **more)

        monkeypatch.setattr(scipy.optimize, name, noted)
    domain = Domain.of({"a": 7, "b": 7, "c": 7})
    table = np.random.default_rng(7).integers(0, 3, (7, 7, 7))
    known = {("a", "b"): table.sum(2), ("b", "c"): table.sum(0), ("a", "c"): table.sum(1)}
    module._any_table.cache_clear()
    margins = Margins.of(domain, known, {})
    first = margins.tables()
    assert first is not None
    held(margins, first)
    module._any_table.cache_clear()
    again = margins.tables()
    assert again is not None
    assert all((one == two).all() for one, two in zip(first, again, strict=True))
    assert all("time_limit" not in one for one in asked)
    assert len(asked) == 4
    module._any_table.cache_clear()
    monkeypatch.setattr(module, "_STEPS", 3)
    assert margins.tables() is None
    assert margins.tables([np.zeros((7, 7, 7), np.int64)]) is None
    module._any_table.cache_clear()


def test_no_search_begins_that_would_take_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of four columns: the linear program is soon solved, and not in whole numbers. A search does many
    times as much before its first node."""
    import scipy.optimize

    def begun(*args: object, **more: object) -> None:
        raise AssertionError(f"a search began: {len(args)} {len(more)}")

    monkeypatch.setattr(scipy.optimize, "milp", begun)
    domain = Domain.of(dict.fromkeys("abcd", 8))
    rows = np.random.default_rng(1).integers(0, 8, (1000, 4))
    known = {}
    for one, two in itertools.combinations(range(4), 2):
        counts = np.bincount(rows[:, one] * 8 + rows[:, two], minlength=64).reshape(8, 8)
        known["abcd"[one], "abcd"[two]] = counts
    assert Margins.of(domain, known, {}).tables() is None
