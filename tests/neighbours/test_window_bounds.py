"""What a window keeps of each person, in the real engine: never more than the limit, whoever else is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from discreet.trusted.ring_a.sensitivity import sensitivity
from kinds import examples
from windows_tools import BITS, CLIP, KINDS, Bench, Row, known, planned

GROUPS = ["a", "b", "", "ü", "it's", None]


def numbered(drawn: Sequence[tuple[Any, str | None]]) -> list[Row]:
    """Rows, each with the next free bit of its person."""
    used: dict[Any, int] = defaultdict(int)
    rows = []
    for person, group in drawn:
        if used[person] < BITS:
            rows.append(Row(person, group, used[person]))
        used[person] += 1
    return rows


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[Row]]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    person = st.sampled_from([*KINDS[kind][1], KINDS[kind][1][0], KINDS[kind][1][0], None])
    drawn = draw(st.lists(st.tuples(person, st.sampled_from(GROUPS)), min_size=1, max_size=20))
    return kind, numbered(drawn)


ONE_WITH_EVERYTHING = ("integer", numbered([(-1, group) for group in [*GROUPS, *GROUPS]]))
EXACTLY_TWO = ("text", numbered([("a", "a"), ("a", "b"), ("a", None), ("A", "a"), (None, "a"), (None, "b")]))


@settings(max_examples=25, suppress_health_check=list(HealthCheck), derandomize=True)
@given(table=tables(), most=st.integers(1, 4), salt=st.sampled_from(["", "0", "5f", "salt"]))
@example(table=ONE_WITH_EVERYTHING, most=3, salt="0")
@example(table=EXACTLY_TWO, most=2, salt="0")
def test_rows_of_a_person(small: Bench, table: tuple[str, list[Row]], most: int, salt: str) -> None:
    """As many rows as there are, or as the limit allows; WHERE takes some of them away, and moves no window; a person
    who leaves moves nobody's window."""
    kind, rows = table
    declaration = known(most, 1, kind)
    plan = planned("SELECT q, SUM(v) FROM t GROUP BY q", declaration)
    filtered = planned("SELECT q, SUM(v) FROM t WHERE bit <> 1 GROUP BY q", declaration)
    loaded = small.load(declaration.tables["t"], rows, kind=kind)
    kept = {key: total for key, (total, *_) in small.totals(plan, loaded, salt).items()}
    rest = {key: total for key, (total, *_) in small.totals(filtered, loaded, salt).items()}
    mine: dict[Any, int] = defaultdict(int)
    for row in rows:
        if row.person is not None:
            mine[place(kind, row.person),] += 1
    assert {key: total.bit_count() for key, total in kept.items()} == {key: min(n, most) for key, n in mine.items()}
    assert rest == {key: total & ~2 for key, total in kept.items() if total & ~2}
    gone = rows[0].person
    fewer = small.load(declaration.tables["t"], [row for row in rows if row.person != gone], kind=kind)
    left = {key: total for key, (total, *_) in small.totals(plan, fewer, salt).items()}
    assert left == {key: total for key, total in kept.items() if gone is None or key != (place(kind, gone),)}


@settings(max_examples=25, suppress_health_check=list(HealthCheck), derandomize=True)
@given(table=tables(), most=st.integers(1, 4), salt=st.sampled_from(["", "0", "5f", "salt"]), public=st.booleans())
@example(table=ONE_WITH_EVERYTHING, most=2, salt="0", public=True)
@example(table=EXACTLY_TWO, most=2, salt="0", public=False)
def test_groups_of_a_person(small: Bench, table: tuple[str, list[Row]], most: int, salt: str, public: bool) -> None:
    """As many of the question's groups as there are, or as the limit allows, whole; stored totals and rows give the
    same; WHERE takes rows away, and moves no window; a person who leaves moves nobody's window."""
    kind, rows = table
    values = ["a", "b", "it's"] if public else None
    declaration = known(50, most, kind, values)
    head = f"SELECT q, r, SUM(v, {CLIP}), COUNT(DISTINCT p), COUNT(*, {CLIP}) FROM t"
    plan = planned(f"{head} GROUP BY q, r", declaration)
    through_rows = planned(f"{head} WHERE v >= 0 GROUP BY q, r", declaration)
    filtered = planned(f"{head} WHERE bit <> 1 GROUP BY q, r", declaration)
    loaded = small.load(declaration.tables["t"], rows, kind=kind)
    kept = small.totals(plan, loaded, salt)
    whole: dict[Any, int] = defaultdict(int)
    for row in rows:
        if row.person is not None and (values is None or row.group in (*values, None)):
            whole[place(kind, row.person), row.group] |= 1 << row.bit
    found: dict[Any, int] = defaultdict(int)
    expected: dict[Any, int] = defaultdict(int)
    for person, _ in kept:
        found[person] += 1
    for person, _ in whole:
        expected[person] = min(expected[person] + 1, most)
    assert found == expected
    assert kept == {key: (whole[key].bit_count(), whole[key], 1) for key in kept}
    assert small.totals(through_rows, loaded, salt) == kept
    left_over = {key: whole[key] & ~2 for key in kept if whole[key] & ~2}
    assert small.totals(filtered, loaded, salt) == {key: (n.bit_count(), n, 1) for key, n in left_over.items()}
    gone = rows[0].person
    fewer = small.load(declaration.tables["t"], [row for row in rows if row.person != gone], kind=kind)
    stays = {key: total for key, total in kept.items() if gone is None or key[0] != place(kind, gone)}
    assert small.totals(plan, fewer, salt) == stays
    assert small.totals(through_rows, fewer, salt) == stays


def place(kind: str, person: Any) -> int:
    return KINDS[kind][1].index(person)


QUESTIONS = (
    "SELECT r, SUM(v), COUNT(*) FROM t {where} GROUP BY r",
    "SELECT r, COUNT(DISTINCT p) FROM t {where} GROUP BY r",
    f"SELECT r, SUM(v, {CLIP}), COUNT(v, contribution_bounds_per_group => (0, 2)) FROM t {{where}} GROUP BY r",
    f"SELECT r, SUM(v, {CLIP}), COUNT(*) FROM t {{where}} GROUP BY r",
    "SELECT r, COUNT(*, contribution_bounds_per_group => (2, 3)) FROM t {where} GROUP BY r",
    "SELECT r, bit, COUNT(DISTINCT p) FROM t {where} GROUP BY r, bit",
    "SELECT AVG(v) FROM t {where}",
)


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    table=tables(),
    most=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    question=st.sampled_from(QUESTIONS),
    where=st.sampled_from(["", "WHERE bit <> 1", "WHERE v > 3 OR r = 'a'"]),
    salt=st.sampled_from(["0", "1"]),
)
def test_neighbours_differ_by_no_more_than_the_sensitivity(
    small: Bench, table: tuple[str, list[Row]], most: tuple[int, int], question: str, where: str, salt: str
) -> None:
    """Every part of every form, with one person taken out: the exact vectors differ by what is paid for."""
    kind, rows = table
    declaration = known(*most, kind)
    plan = planned(question.format(where=where), declaration)
    gone = max(rows, key=lambda row: sum(row.person == other.person for other in rows)).person
    both = [rows, [row for row in rows if row.person != gone]]
    before, after = (small.totals(plan, small.load(declaration.tables["t"], some, kind=kind), salt) for some in both)
    for part in plan.parts:
        bound = sensitivity(plan.root, part)
        norms = [norm for key in before.keys() | after.keys() if (norm := moved(plan, part, before, after, key))]
        assert len(norms) <= bound.cells
        assert max(norms, default=0) <= bound.each
        assert sum(norms) <= bound.l1
        assert sum(norm * norm for norm in norms) <= bound.l2_squared


def moved(plan: Any, part: Any, before: Mapping[Any, Any], after: Mapping[Any, Any], key: Any) -> int:
    """The ℓ1 norm of a group's change in a part's vectors."""
    none = (0,) * len(plan.root.totals)
    one, two = before.get(key, none), after.get(key, none)
    return sum(abs(sum(weight * (one[at] - two[at]) for at, weight in vector.weights)) for vector in part.vectors)


def test_every_salt_keeps_two_of_five(small: Bench) -> None:
    """One person with five rows in five groups: exactly two of each, whatever the salt."""
    rows = [Row(-7, group, bit) for bit, group in enumerate("abcde")]
    declaration = known(2, 2)
    by_rows = planned("SELECT SUM(v) FROM t", declaration)
    by_groups = planned("SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r", declaration)
    loaded = small.load(declaration.tables["t"], rows)
    for salt in range(80):
        assert small.totals(by_rows, loaded, f"{salt:x}")[()][0].bit_count() == 2
        assert len(small.totals(by_groups, loaded, f"{salt:x}")) == 2
