"""Arithmetic of doubles on the server is that of IEEE 754, bit for bit, and never raises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from sqlglot import exp

from discreet.engines.postgresql import doubles, powers
from discreet.engines.postgresql.dialect import FUNCTIONS, POSTGRESQL
from discreet.trusted.ring_a.dialect import function
from kinds import some
from two_engines import both

Doubles = NDArray[np.float64]
VERSIONS = some([18, 15], pytest.mark.power)
MOST, LEAST = 1.7976931348623157e308, 5e-324
EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1 / 3, LEAST, -LEAST, 1e-323, 2.2250738585072014e-308, MOST, -MOST),
    *(math.inf, -math.inf, math.nan, 2.0**-537, 2.0**-538, 2.0**511.5, 2.0**512, 2.0**1023, 2.0**-500, 2.0**500),
    *(2.0**-51, 2.0**-50, math.nextafter(1, 0), math.nextafter(1, 2), math.nextafter(2.0**-1022, 0)),
]
OPERATIONS: Mapping[str, Any] = {
    "number_sum": np.add,
    "number_difference": np.subtract,
    "number_product": np.multiply,
    "number_quotient": np.divide,
}


def any_bits(chance: np.random.Generator, count: int) -> Doubles:
    return chance.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)


def next_to(value: float, chance: np.random.Generator, count: int) -> Doubles:
    """Doubles a few steps from 1 away, times a value."""
    steps = chance.integers(-(2**12), 2**12, count) * chance.integers(0, 2, count)
    near: Doubles = value * (1 + steps * 2.0**-52)
    return near


def pairs(chance: np.random.Generator, count: int) -> tuple[Doubles, Doubles]:
    """Edges with edges; any bits; and pairs whose sum, product or quotient is next to being infinite, or 0."""
    first, second = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    both_of = [(first, second), (any_bits(chance, count), any_bits(chance, count))]
    with np.errstate(all="ignore"):
        for ends in ([-1076, -1075, -1074], [1023, 1024]):
            size, end = chance.integers(-1074, 1024, count), chance.choice(ends, count)
            one, other = next_to(1.0, chance, count), 1 / next_to(1.0, chance, count)
            rest = np.clip(end - size, -1100, 1023)
            both_of.append((np.ldexp(one, size), np.ldexp(other, rest)))  # products
            both_of.append((np.ldexp(one, size), np.ldexp(other, np.clip(size - end, -1100, 1023))))  # quotients
        large = next_to(MOST / 2, chance, count), next_to(MOST / 2, chance, count)
        both_of.append(
            (large[0] * chance.choice([1, 2, -1, -2], count), large[1] * chance.choice([1, 2, -1, -2], count))
        )
        both_of.append((next_to(MOST / 2, chance, count) * 2, np.ldexp(next_to(1.0, chance, count), 969)))
        inverse = 1 + chance.random(count)  # products whose rounding alone is 1
        size = chance.integers(-1000, -60, count)
        other = np.nextafter(1 / inverse, chance.integers(0, 3, count))
        both_of.append((np.ldexp(inverse, size), np.ldexp(other, -1075 - size)))
    return np.concatenate([one for one, _ in both_of]), np.concatenate([other for _, other in both_of])


def bits(column: Doubles) -> NDArray[np.uint64]:
    same = column.copy()
    same[np.isnan(same)] = math.nan
    return same.view(np.uint64)


def asked(version: int, first: Doubles, second: Doubles, form: str) -> Doubles:
    """What a form gives for each pair."""
    engines = both(version)
    engines.server.execute("DROP TABLE IF EXISTS pairs")
    table = {"n": np.arange(len(first)), "a": first, "b": second}
    engines.server.adbc_ingest("pairs", pyarrow.table(table))
    engines.server.execute(f"SELECT {form} AS x FROM pairs ORDER BY n")
    found: Doubles = engines.server.fetch_arrow_table().column(0).to_numpy()
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_two_doubles_give_the_double_of_ieee(version: int, name: str) -> None:
    first, second = pairs(np.random.default_rng(20), 8_000)
    assert len(first) > 60_000
    with np.errstate(all="ignore"):
        wanted = OPERATIONS[name](first, second)
    found = asked(version, first, second, FUNCTIONS[name].format("a", "b"))
    wrong = np.nonzero(bits(found) != bits(wanted))[0]
    assert not len(wrong), [(first[at].hex(), second[at].hex(), wanted[at], found[at]) for at in wrong[:5]]


def test_the_pairs_have_products_of_which_only_the_bits_tell() -> None:
    """Half of the least double, but for less than a double can say: some of them are more, and some are not."""
    first, second = (np.abs(one) for one in pairs(np.random.default_rng(20), 8_000))
    with np.errstate(all="ignore"):
        scaled = np.ldexp(first, 537) * np.ldexp(second, 538)
        product = first * second
    close = (scaled == 1) & (first <= 1) & (second <= 1)
    assert np.sum(close & (product == 0)) > 50
    assert np.sum(close & (product > 0)) > 50


CONSTANTS = [
    3.0,
    0.1,
    -7e200,
    1e-200,
    1e308,
    LEAST,
    -LEAST,
    100.0,
    0.0,
    -0.0,
    -1.0,
    1e300,
    2.0**-1022,
    math.inf,
    2.0**1023,
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_constant_on_either_side_changes_no_bit(version: int, name: str) -> None:
    chance = np.random.default_rng(21)
    for constant in CONSTANTS:
        with np.errstate(all="ignore"):
            ends = [MOST / constant, LEAST / constant, MOST * constant, constant, LEAST * constant] if constant else []
            near = [next_to(end, chance, 300) for end in ends if math.isfinite(end)]
            column = np.concatenate([EDGES, any_bits(chance, 3_000), *near])
            same = np.full(len(column), constant)
            for first, second in ((column, same), (same, column)):
                wanted = OPERATIONS[name](first, second)
                literal = exp.cast(exp.Literal.string(repr(constant)), "DOUBLE")
                sides = [literal if one is same else exp.column("a") for one in (first, second)]
                found = asked(version, column, column, POSTGRESQL.text(function(name, *sides)))
                wrong = np.nonzero(bits(found) != bits(wanted))[0]
                assert not len(wrong), (constant, [(column[at].hex(), wanted[at], found[at]) for at in wrong[:5]])


def test_constants_have_shorter_forms() -> None:
    for name in OPERATIONS:
        form = doubles.with_constant(name, 2.5, first=False)
        assert form is not None
        assert len(form) < 200
    assert doubles.with_constant("number_sum", 0.5, first=False) == f"({{0}} + {doubles.double(0.5)})"
    assert doubles.with_constant("number_sum", MOST, first=False) is None
    assert doubles.with_constant("number_quotient", 2.5, first=True) is None


@pytest.mark.parametrize("constant", [1, 2, 1000, 2.0**40, 1e300, 0.3, 3 / 7, 10, 1e10, 1e-300])
@pytest.mark.parametrize("name", ["rounded_product", "rounded_quotient"])
def test_what_is_rounded_next_is_rounded_to_the_same_number(name: str, constant: float) -> None:
    chance = np.random.default_rng(22)
    column = np.concatenate([EDGES, any_bits(chance, 20_000), chance.normal(size=5_000) * 1000])
    column = column[~np.isnan(column)]
    form = (doubles.rounded_product if name == "rounded_product" else doubles.rounded_quotient)(float(constant))
    half, most = doubles.double(0.5), doubles.double(2.0**53)
    text = f"GREATEST(LEAST(FLOOR({form.format('a')} + {half}), {most}), -{most})"
    with np.errstate(all="ignore"):
        exact = column * constant if name == "rounded_product" else column / constant
        wanted = np.clip(np.floor(exact + 0.5), -(2.0**53), 2.0**53)
    assert np.array_equal(asked(18, column, column, text), wanted)


EXPONENTS = [2.0, 3.0, 5.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1.5, -1.5, 10.0, 100.0, 1 / 3, 0.0, 1.0]
BASES = [2.0, 10.0, 0.5, 1.0000001, 1e-300, math.e, 1.0]


@pytest.mark.parametrize("version", VERSIONS)
def test_powers_with_a_constant_are_those_of_duckdb(version: int) -> None:
    chance = np.random.default_rng(23)
    column = np.concatenate(
        [EDGES, any_bits(chance, 3_000), chance.normal(size=3_000) * 10.0 ** chance.integers(-3, 4, 3_000)]
    )
    engines = both(version)
    for constant, first in [(one, False) for one in EXPONENTS] + [(one, True) for one in BASES]:
        form = powers.of_constant_base(constant) if first else powers.of_constant_exponent(constant)
        assert form is not None
        numbers = sorted({float(word) for word in form.replace("'", " ").split() if _is_number(word)})
        ends = [
            math.nextafter(sign * one, side)
            for one in numbers
            for sign in (1, -1)
            for side in (-math.inf, sign * one, math.inf)
        ]
        asked_of = np.concatenate([column, ends])
        asked_of = asked_of[~np.isnan(asked_of)]
        engines.duck.register("pairs", pyarrow.table({"n": np.arange(len(asked_of)), "a": asked_of}))
        call = f"POW({constant!r}::DOUBLE, a)" if first else f"POW(a, {constant!r}::DOUBLE)"
        text = f"SELECT CASE WHEN NOT ISNAN({call}) THEN {call} END AS x FROM pairs ORDER BY n"
        wanted = engines.duck.sql(text).to_arrow_table().column(0).to_pylist()
        text = f"NULLIF({form.format('a')}, {doubles.NAN})"
        engines.server.execute("DROP TABLE IF EXISTS pairs")
        engines.server.adbc_ingest("pairs", pyarrow.table({"n": np.arange(len(asked_of)), "a": asked_of}))
        engines.server.execute(f"SELECT {text} AS x FROM pairs ORDER BY n")
        found = engines.server.fetch_arrow_table().column(0).to_pylist()
        for number, one, other in zip(asked_of, wanted, found, strict=True):
            assert repr(one) == repr(other), (constant, first, number.hex())


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word)) and "." in word
    except ValueError:
        return False
