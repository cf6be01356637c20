"""Numbers with a step are whole numbers of steps: their arithmetic and comparisons are those of fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import discreet
from discreet.dialect.steps import exactly, step_of
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import LARGEST, Column, Type
from engine_tools import Bench, declaration, planned
from kinds import examples

EXACT = 10**20
CLAMP = 10**10
GROUPS = 1e-7
"""The delta of a question with private groups."""

COLUMNS = {
    "d": {"type": "number", "min": 0, "max": 0.99, "step": 0.01, "nulls": False},
    "e": {"type": "number", "min": -5, "max": 5, "step": 0.1},
    "q": {"type": "number", "step": 0.25},
    "i": {"type": "integer", "min": 0, "max": 99},
}
"""From zero on and below it, of several steps, with bounds and without; whole numbers."""

Row = Mapping[str, Fraction | None]
ROWS: list[Row] = [
    {
        "d": Fraction(n, 100),
        "e": Fraction(n * 37 % 101 - 50, 10) if n % 9 else None,
        "q": Fraction(n * 13 % 29 - 11, 4) if n % 7 else None,
        "i": Fraction(n),
    }
    for n in range(100)
]


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    columns: dict[str, list[Any]] = {
        name: [None if row[name] is None else float(row[name] or 0) for row in ROWS] for name in COLUMNS
    }
    frame = pandas.DataFrame({**columns, "i": range(100)})
    people = discreet.Table(frame, one_row_per_person=True, columns=COLUMNS)
    with discreet.Curator({"t": people}, epsilon=10**27, delta=1e-3, keys_delta=9e-4) as one:
        yield one


def asked(one: discreet.Curator, text: str) -> list[dict[str, Any]]:
    return one.ask(text, epsilon=EXACT).rows


def value(one: discreet.Curator, text: str) -> Any:
    ((found,),) = (row.values() for row in asked(one, text))
    return found


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("d = .06 + .01", 1),
        ("d * 100 = 7", 1),
        ("100 * d IN (7, 29, 58.5)", 2),
        ("FLOOR(d * 100) = i", 100),
        ("CEIL(d * 100) = i AND ROUND(d * 100) = i AND TRUNC(d * 100) = i AND CAST(d * 100 AS INTEGER) = i", 100),
        ("d + .01 BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", 3),
        ("d - .3 + .1 = -.2 AND ABS(d - .3) = .3", 1),
        ("-d * 3 = -(d * 3) AND d / 10 * 30 = d * 3", 100),
        ("ROUND(d, 1) = FLOOR(d * 10 + .5) / 10", 100),
        ("TRUNC(d, 2) = d AND TRUNC(d, 1) * 10 = DIV(d, .1)", 100),
        ("MOD(d, .05) = 0 AND DIV(d, .05) * 5 = i", 20),
        ("WIDTH_BUCKET(d, 0, 1, 100) = i + 1 AND WIDTH_BUCKET(d, .2, .7, 50) = GREATEST(LEAST(i - 19, 51), 0)", 100),
        ("CASE WHEN i > 50 THEN d ELSE 0 END * 100 = IF(i > 50, i, 0)", 100),
        ("GREATEST(d, .5) * 100 = GREATEST(i, 50) AND COALESCE(d, 1) * 100 = i", 100),
        ("i * 0.01 = d AND i / 10 * 0.1 = d", 100),
        ("i / 10 * 3 = 2.1", 1),
        ("d / .01 = i AND (d + .01) / .01 = i + 1", 100),
        ("NULLIF(d, .29) * 100 = i", 99),
        ("d * 100 IS NOT DISTINCT FROM 29", 1),
        ("CAST(d * 3 AS TEXT) = '0.87'", 1),
        ("d = .07000000000000000001 OR d IN (.0699999999999999999999, 1e-30)", 0),
        ("d < .07000000000000000001", 8),
        ("d <= .0699999999999999999999", 7),
        ("d > .0699999999999999999999 AND d < 1e299 AND d > -1e299", 93),
    ],
)
def test_decimals_are_computed_as_written(curator: discreet.Curator, condition: str, count: int) -> None:
    """Doubles find other rows of almost each: .29 * 100 is 28.999999999999996."""
    assert value(curator, f"SELECT COUNT(*) AS n FROM t WHERE {condition}") == count


# formulas by chance


@dataclass(frozen=True)
class Formula:
    """An expression, its value on a row, the step it is a multiple of, and how large it gets."""

    text: str
    of: Callable[[Row], Fraction | None]
    step: Fraction
    size: Fraction


def _nearest(x: Fraction) -> Fraction:
    return Fraction(math.floor(abs(x) + Fraction(1, 2))) * (1 if x >= 0 else -1)


def _cut(x: Fraction) -> Fraction:
    return Fraction(math.trunc(x))


def _lifted(function: Callable[..., Fraction | None], *parts: Formula) -> Callable[[Row], Fraction | None]:
    def of(row: Row) -> Fraction | None:
        values = [part.of(row) for part in parts]
        return None if None in values else function(*values)

    return of


def _common(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )


LEAVES = [
    Formula("d", lambda row: row["d"], Fraction(1, 100), Fraction(1)),
    Formula("e", lambda row: row["e"], Fraction(1, 10), Fraction(5)),
    Formula("q", lambda row: row["q"], Fraction(1, 4), Fraction(5)),
    Formula("i", lambda row: row["i"], Fraction(1), Fraction(99)),
]
CONSTANTS = ["0.01", "0.07", "2", "3.5", "0.125", "0.3", "-0.6", "1.1", "7", "29", "10", "100", "0.015"]


def constant(text: str) -> Formula:
    number = Fraction(text)
    return Formula(text, lambda row: number, Fraction(1, number.denominator), abs(number))  # noqa: ARG005


@st.composite
def grown(draw: st.DrawFn, below: st.SearchStrategy[Formula]) -> Formula:
    one = draw(below)
    kind = draw(
        st.sampled_from(
            ["+", "-", "*", "/", "MOD", "DIV", "neg", "abs", "floor", "ceil", "round", "trunc", "int", "if"]
        )
    )
    if kind in ("+", "-", "*", "MOD", "DIV", "if"):
        two = draw(below)
        both = _common(one.step, two.step)
        if kind in ("+", "-"):
            of = _lifted(lambda a, b: a + b if kind == "+" else a - b, one, two)
            return Formula(f"({one.text} {kind} {two.text})", of, both, one.size + two.size)
        if kind == "*":
            step = one.step * two.step
            return Formula(
                f"({one.text} * {two.text})", _lifted(lambda a, b: a * b, one, two), step, one.size * two.size
            )
        if kind == "if":
            assume(not {one.text, two.text} & set(CONSTANTS))
            of = _lifted(lambda a, b: a if a < b else b * 0 + a, one, two)
            return Formula(
                f"CASE WHEN {one.text} < {two.text} THEN {one.text} ELSE {two.text} * 0 + {one.text} END",
                of,
                both,
                one.size,
            )
        if kind == "MOD":
            of = _lifted(lambda a, b: a - _cut(a / b) * b if b else None, one, two)
            return Formula(f"MOD({one.text}, {two.text})", of, both, max(one.size, two.size))
        of = _lifted(lambda a, b: _cut(a / b) if b else None, one, two)
        return Formula(f"DIV({one.text}, {two.text})", of, both, one.size / both)
    if kind == "/":
        two = constant(draw(st.sampled_from(CONSTANTS)))
        divisor = Fraction(two.text)
        of = _lifted(lambda a: a / divisor, one)
        return Formula(f"({one.text} / {two.text})", of, one.step / abs(divisor), one.size / abs(divisor))
    if kind in ("round", "trunc"):
        digits = draw(st.sampled_from([-1, 0, 1, 2, 3]))
        unit = Fraction(10) ** -digits
        nearest = _nearest if kind == "round" else _cut
        of = _lifted(lambda a: nearest(a / unit) * unit, one)
        return Formula(f"{kind.upper()}({one.text}, {digits})", of, _common(unit, one.step), one.size + unit)
    functions: dict[str, tuple[str, Callable[[Fraction], Fraction], Fraction]] = {
        "neg": ("-({})", lambda a: -a, one.step),
        "abs": ("ABS({})", abs, one.step),
        "floor": ("FLOOR({})", lambda a: Fraction(math.floor(a)), Fraction(1)),
        "ceil": ("CEIL({})", lambda a: Fraction(math.ceil(a)), Fraction(1)),
        "int": ("CAST({} AS INTEGER)", _nearest, Fraction(1)),
    }
    text, function, step = functions[kind]
    return Formula(text.format(one.text), _lifted(function, one), step, one.size + 1)


def followed(one: Formula) -> bool:
    """Whether what it counts stays within what is exact."""
    return one.step.denominator <= LARGEST and max(1, one.size) / one.step * one.step.numerator <= LARGEST


FORMULAS = st.recursive(
    st.sampled_from(LEAVES) | st.sampled_from(CONSTANTS).map(constant),
    lambda below: grown(below).filter(followed),
    max_leaves=5,
).filter(lambda one: any(letter in one.text for letter in ("d", "e", "q", "i")))


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, int]:
    """A condition, and of how many rows it is true."""
    one = draw(FORMULAS)
    sign = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "IN"]))
    known = sorted({found for row in ROWS if (found := one.of(row)) is not None and _written(found)})
    close = [_written(found) for found in known[:: max(1, len(known) // 5)]]
    if sign == "IN" or draw(st.booleans()):
        others = [constant(text) for text in [*close, "0.07", "3.5"]]
        two = draw(st.sampled_from(others))
    else:
        two = draw(FORMULAS)
        assume(followed(Formula("", two.of, _common(one.step, two.step), max(one.size, two.size))))
    compared: Callable[[Any, Any], bool] = {
        "=": lambda a, b: a == b,
        "IN": lambda a, b: a in (b, Fraction(7, 100)),
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "<>": lambda a, b: a != b,
    }[sign]
    count = 0
    for row in ROWS:
        left, right = one.of(row), two.of(row)
        count += left is not None and right is not None and compared(left, right)
    return (f"{one.text} IN ({two.text}, .07)" if sign == "IN" else f"{one.text} {sign} {two.text}"), count


def _written(number: Fraction) -> str:
    """A number as a decimal; nothing where it is none."""
    digits = next((n for n in range(16) if (number * 10**n).denominator == 1), None)
    if digits is None:
        return ""
    whole = abs(int(number * 10**digits))
    point = f"{whole // 10**digits}.{whole % 10**digits:0{digits}}" if digits else str(whole)
    return f"-{point}" if number < 0 else point


@settings(max_examples=examples(12, quick=4), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(conditions(), min_size=10, max_size=12))
def test_formulas_count_what_fractions_count(curator: discreet.Curator, wanted: list[tuple[str, int]]) -> None:
    counts = ", ".join(f"COUNTIF({text}) AS n{place}" for place, (text, _) in enumerate(wanted))
    (row,) = asked(curator, f"SELECT {counts} FROM t")
    for (text, count), found in zip(wanted, row.values(), strict=True):
        assert found == count, text


@settings(max_examples=examples(30), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(FORMULAS.filter(lambda one: max(1, one.size) / one.step < 2**40 and CLAMP / one.step <= 2**50))
def test_sums_of_formulas_are_those_of_fractions(curator: discreet.Curator, one: Formula) -> None:
    """The lattice of a sum is the formula's own, where the clamp is no more than 2^50 of its steps; so its noise is all
    that is added."""
    known = [found for row in ROWS if (found := one.of(row)) is not None]
    text = f"SELECT SUM({one.text}, contribution_bounds_per_row => (-{CLAMP}, {CLAMP})) AS n FROM t"
    found = value(curator, text)
    assert math.isclose(float(found), float(sum(known)), rel_tol=1e-14, abs_tol=1e-12), (one.text, found, sum(known))


@settings(max_examples=examples(30), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(FORMULAS)
def test_formulas_group_by_the_values_of_fractions(curator: discreet.Curator, one: Formula) -> None:
    """Each group is shown as the double nearest to its key, with all rows that have it. Of private keys, those of two
    rows or more are shown at this price."""
    rows = curator.ask(f"SELECT {one.text} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=EXACT, delta=GROUPS).rows
    exact = Counter(None if (found := one.of(row)) is None else float(found) for row in ROWS)
    shown = {row["k"]: row["n"] for row in rows}
    assert len(shown) == len(rows)
    assert all(exact[key] == count for key, count in shown.items()), one.text
    assert all(key in shown for key, count in exact.items() if count >= 2), one.text


# where decimals come from


def held(one: discreet.Curator, column: str) -> list[float | None]:
    """What the engine holds of a column."""
    table = one.declaration.tables["t"]
    place = [known.name for known in table.columns].index(column)
    assert one._engine._process is not None
    name = f"t_{table.name.encode().hex()}"
    rows = one._engine._process.call("run", f"SELECT c{place} FROM {name}", seconds=60)["rows"]
    return sorted((row[0] for row in rows), key=lambda found: (found is None, found))


def opened(source: Any, columns: Mapping[str, Any], **others: Any) -> discreet.Curator:
    unit = {"one_row_per_person": True} | others
    return discreet.Curator({"t": discreet.Table(source, columns=dict(columns), **unit)}, epsilon=10**27)


def test_values_are_rounded_to_their_step_when_they_are_loaded() -> None:
    """Halves up; within bounds, if these are no multiples the nearest that lies between them; as the double nearest to
    the multiple. Where there is no bound, what is beyond exact counting stays."""
    values = [0.125, -0.125, 0.1, 0.07 + 1e-9, 1e300, -math.inf, 3.6 * 2**60, math.nan, -0.3, 77.0]
    frame = pandas.DataFrame(dict.fromkeys("abcxz", values))
    number = {"type": "number"}
    columns = {
        "a": number | {"step": 0.25},
        "b": number | {"step": 0.01, "min": -0.295, "max": 0.999},
        "c": number | {"step": 0.01, "min": 0},
        "x": number | {"step": 1e-20},
        "z": number | {"step": 0.75, "min": -2, "max": 2},
    }
    with opened(frame, columns) as one:
        large = 3.6 * 2**60
        assert held(one, "a") == [-math.inf, -0.25, 0, 0, 0, 0.25, 77, large, 1e300, None]
        assert held(one, "b") == [-0.29, -0.29, -0.12, 0.07, 0.1, 0.13, 0.99, 0.99, 0.99, None]
        assert held(one, "c") == [0, 0, 0, 0.07, 0.1, 0.13, 77, large, 1e300, None]
        assert held(one, "x") == [*sorted(value for value in values if not math.isnan(value)), None]
        assert held(one, "z") == [-1.5, 0, 0, 0, 0, 0, 1.5, 1.5, 1.5, None]
        assert value(one, "SELECT COUNT(*) AS n FROM t WHERE a * 3 > 1e17 AND c * 3 / 2 - a > 0") == 2


DECIMALS = "SELECT n::DECIMAL(15, 2) / 100 AS x, (n / 100)::DECIMAL(15, 2) AS d, n AS i FROM range(100) AS r(n)"


@pytest.mark.parametrize("kind", ["duckdb", "parquet"])
@pytest.mark.parametrize("said", [{}, {"type": "number"}])
def test_decimals_of_a_file_have_the_step_of_their_type(tmp_path: Path, kind: str, said: dict[str, Any]) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS {DECIMALS}")
        connection.execute(f"COPY t TO '{tmp_path / 'x.parquet'}'")
    source = f"{tmp_path / 'x.duckdb'}::t" if kind == "duckdb" else str(tmp_path / "x.parquet")
    integer = {"type": "integer", "min": 0, "max": 99}
    with opened(source, {"d": said | {"min": 0, "max": 1}, "i": integer}) as one:
        (column, _) = one.declaration.tables["t"].columns
        assert (column.type, column.step) == (Type.NUMBER, Fraction(1, 100))
        assert value(one, "SELECT COUNT(*) AS n FROM t WHERE d * 100 = i") == 100
        assert value(one, "SELECT SUM(d) AS n FROM t") == 49.5
    with opened(source, {"d": said | {"min": 0, "max": 1, "step": 0.1}, "i": integer}) as one:
        assert one.declaration.tables["t"].columns[0].step == Fraction(1, 10)  # what is declared counts


def test_decimals_of_python_have_no_step_that_rows_may_have_made() -> None:
    """Arrow reads the number of digits off the values: one row would decide what is computed how."""
    from decimal import Decimal

    for last in ("0.29", "0.295"):
        arrow = pyarrow.table({"d": [Decimal("0.07"), Decimal(last)]})
        with opened(arrow, {"d": {"min": 0, "max": 1}}) as one:
            assert one.declaration.tables["t"].columns[0].step is None


def test_values_that_are_listed_are_multiples_of_the_step() -> None:
    with pytest.raises(discreet.DeclarationError, match="not a multiple of the step"):
        opened(pandas.DataFrame({"d": [0.1]}), {"d": {"type": "number", "step": 0.1, "values": [0.1, 0.25]}})


# what is made of decimals


@pytest.fixture(scope="module")
def several() -> Iterator[discreet.Curator]:
    """Ten persons with three rows each; a public table of prices."""
    rows = pandas.DataFrame(
        {
            "p": [n % 10 for n in range(30)],
            "d": [n % 10 / 100 + n // 10 / 10 for n in range(30)],
            "k": [n % 10 / 10 for n in range(30)],
        }
    )
    prices = pandas.DataFrame({"price": [n / 100 for n in range(10)], "ten": range(10)})
    decimal = {"type": "number", "min": 0, "max": 1, "step": 0.01}
    keys = {"type": "number", "step": 0.1, "values": [n / 10 for n in range(10)], "nulls": False}
    tables = {
        "t": discreet.Table(
            rows, person="p", rows_per_person=3, groups_per_person=3, columns={"p": int, "d": decimal, "k": keys}
        ),
        "prices": discreet.Table(prices, public=True, columns={"price": decimal, "ten": int}),
    }
    with discreet.Curator(tables, epsilon=10**27) as one:
        yield one


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "SELECT COUNT(*) AS n FROM (SELECT p, SUM(d) AS s, MIN(d) AS low FROM t GROUP BY p) "
            "WHERE s * 100 = low * 300 + 30 AND s - .3 = 3 * low",
            [{"n": 10}],
        ),
        ("SELECT COUNT(*) AS n FROM (SELECT p, SUM(d * 1.1) AS s FROM t GROUP BY p) WHERE s = .33", [{"n": 1}]),
        ("SELECT COUNT(*) AS n FROM (SELECT p, d * 3 AS x FROM t) WHERE x * 100 IN (3, 6, 87)", [{"n": 3}]),
        ("SELECT COUNT(*) AS n FROM (SELECT p, d + .1 AS x FROM t GROUP BY p, d + .1) WHERE x * 100 = 17", [{"n": 1}]),
        ("SELECT COUNT(*) AS n FROM t JOIN prices ON d - .2 = price", [{"n": 10}]),
        ("SELECT COUNT(*) AS n FROM t JOIN prices ON d * 100 - 20 = ten", [{"n": 10}]),
        ("SELECT COUNT(*) AS n FROM t JOIN (SELECT p AS o, d + .2 AS x FROM t) ON p = o AND d = x", [{"n": 10}]),
        ("SELECT COUNT(*) AS n FROM (SELECT p, d FROM t UNION ALL SELECT p, d FROM t) WHERE d * 100 = 7", [{"n": 2}]),
        ("SELECT COUNT(*) AS n FROM t WHERE d - .2 IN (SELECT price FROM prices)", [{"n": 10}]),
        (
            "SELECT FLOOR(d * 10) AS x, COUNT(*) AS n FROM t GROUP BY x HAVING n > 1",
            [{"x": n, "n": 10} for n in range(3)],
        ),
        ("SELECT k, COUNT(*) AS n FROM t WHERE k * 10 IN (3, 7) GROUP BY k", [{"k": 0.3, "n": 3}, {"k": 0.7, "n": 3}]),
        ("SELECT k, COUNT(*) AS n FROM t WHERE k + .1 > .85 GROUP BY k", [{"k": 0.8, "n": 3}, {"k": 0.9, "n": 3}]),
    ],
)
def test_decimals_stay_exact_through_subqueries_joins_and_groups(
    several: discreet.Curator, text: str, rows: list[dict[str, Any]]
) -> None:
    assert asked(several, text) == rows


def test_the_same_arithmetic_in_other_words_is_free(several: discreet.Curator) -> None:
    first = several.ask("SELECT COUNT(*) AS n FROM t WHERE d * 100 + 1 = 8 AND d < .5", epsilon=5)
    again = several.ask("SELECT COUNT(*) AS n FROM t WHERE .5 > d AND 8 = 1 + 100 * d", epsilon=5)
    assert again.charged["epsilon"] == 0 < first.charged["epsilon"]
    assert again.rows == first.rows


# the form


def number(step: str | None, **bounds: int) -> Column:
    return Column("x", Type.NUMBER, bounds.get("low"), bounds.get("high"), None if step is None else Fraction(step))


X = ColumnOf("x", Type.NUMBER)


def times(*factors: Fraction) -> Call:
    made: Any = X
    for factor in factors:
        made = Call("multiply", (made, Literal(factor, Type.NUMBER)), Type.NUMBER)
    return made


def test_the_form_follows_from_the_declaration_and_is_its_own_form() -> None:
    """What is exact and what is not are different expressions, so no stored answer is taken for the other."""
    for step, changes in (("1/100", True), (None, False), ("1e-20", False)):
        columns = {"x": number(step)}
        made = exactly(times(Fraction(100)), columns)
        assert (made != times(Fraction(100))) is changes
        assert exactly(made, columns) == made
        assert step_of(made, columns) == (1 if changes else None)
    assert number("1/100", low=0, high=10**14).steps is None  # more steps than are counted exactly
    assert number("1/100", low=0, high=10**13).steps == (0, 10**15)
    assert number("3", low=1, high=2).steps is None  # no multiple lies between
    assert number("3", low=-4, high=4).steps == (-1, 1)


def test_steps_that_get_too_fine_are_left_to_doubles() -> None:
    columns = {"x": number("1/100", low=0, high=1)}
    fine = times(Fraction(1, 10**6), Fraction(1, 10**6))
    assert step_of(exactly(fine, columns), columns) == Fraction(1, 10**14)
    finer = exactly(times(Fraction(1, 10**6), Fraction(1, 10**6), Fraction(1, 10**6)), columns)
    assert step_of(finer, columns) is None
    assert finer == Call("multiply", (exactly(fine, columns), Literal(Fraction(1, 10**6), Type.NUMBER)), Type.NUMBER)


@pytest.mark.parametrize("text", ["d * e", "d * e - i * 0.01", "e / 3 + d", "ROUND(d * 1.5, 1) - e", "q * d"])
def test_a_row_adds_no_more_than_its_bound(bench: Bench, text: str) -> None:
    """Whatever it holds: the lattice is the formula's own, and its ends are those of the declared bounds."""
    known = declaration(
        {"one_row_per_person": True}, COLUMNS | {"q": {"type": "number", "step": 0.25, "max": 2, "min": 0}}
    )
    plan = planned(f"SELECT SUM({text}) FROM t", known)
    (part,) = plan.parts
    assert part.lattice is not None
    assert part.lattice.step.denominator in (1000, 300, 100, 10, 400)
    bound = sensitivity(plan.root, part).row
    assert bound == max(abs(part.lattice.low), abs(part.lattice.high))
    edges = [0.29, -0.0, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324, 0.005, 2**53 + 2.0, None]
    largest = 0
    for place, edge in enumerate(edges):
        row = {"d": edge, "e": edges[place - 3], "q": edges[place - 5], "i": 2**63 - 1 if place % 2 else -(2**63)}
        ((_, (total,)),) = bench.run(plan, bench.load(known.tables["t"], [row]), "salt")
        assert abs(total) <= bound
        largest = max(largest, abs(total))
    assert largest > 0


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("20 > 19.99999999999999999", True),
        ("19.99999999999999999 < 20", True),
        ("20 = 19.99999999999999999", False),
        ("20 IN (19.99999999999999999)", False),
        ("20 <> 19.99999999999999999", True),
        ("7 >= 0", True),
    ],
)
def test_two_constants_are_compared_exactly(condition: str, expected: bool) -> None:
    frame = pandas.DataFrame({"x": [1] * 50})
    table = discreet.Table(frame, one_row_per_person=True, columns={"x": (0, 9)})
    with discreet.Curator({"t": table}, epsilon=1e25) as one:
        assert one.ask(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", 1e20).rows == [{"n": 50 * expected}]
