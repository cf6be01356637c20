"""What a published table would be at other prices, before one of them is paid: simulated on the made-up rows."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator import Curator
from discreet.errors import refused
from discreet.look.page import document, escape, points, table
from discreet.procedures.arguments import within
from discreet.release.plot import DARK, LINES, MOST_LINES, PALE, figure_class, placed, shown
from discreet.release.render import aligned
from discreet.release.table import Release
from discreet.release.values import finite
from discreet.synthesis.prefixes import SHORT
from discreet.synthesis.publication import rows_that_fit
from discreet.synthesis.synthetic import Synthetic
from discreet.tables import Table
from discreet.texts import visible
from discreet.trusted.ring_a.exact import Number, fraction, show

BINS = 10
"""Into so many parts with about as many rows each, numbers, dates and times are cut to be compared."""
MOST_OF_TRIPLES = 18
"""Of more columns no triples are compared."""
MOST_NAMED = 40
"""Of more cells of a column no names are written below the bars."""
_MARKS = "os^Dv*"
_SETS = ("columns", "pairs", "triples")
_HEADS = ["price", *_SETS, "bound of pairs", "columns left out"]
_RIGHT = [False, True, True, True, True, False]


@dataclass(frozen=True)
class SimulatedPrice:
    """What was simulated at one price.

    `columns`, `pairs` and `triples` say by what part of the rows all counts over the cells of a column, of two and of
    three are off, added up (from 0 to 2), in the mean over all of them; None where there are none, and of triples of
    more than 18 columns. `bound` is the middle one of the bounds that the release holds of its pairs; `left_out` are
    columns of which nothing is left at this price, and they are in none of these. `release` has the rows.
    """

    epsilon: float
    delta: float
    columns: float | None
    pairs: float | None
    triples: float | None
    bound: float | None
    left_out: tuple[str, ...]
    release: Synthetic = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Gives the numbers as plain values."""
        names = ("epsilon", "delta", *_SETS, "bound")
        plain: dict[str, Any] = finite({name: getattr(self, name) for name in names})
        plain["left_out"] = list(self.left_out)
        return plain


@dataclass(frozen=True)
class Simulation:
    """A published table that was published again at several prices, as if its made-up rows were the real ones.

    `prices` has what came of each. Nothing about anybody is in it that was not published before, and nothing was spent.
    """

    release: Synthetic = field(repr=False)
    prices: tuple[SimulatedPrice, ...]

    @property
    def words(self) -> str:
        """What the numbers mean, in sentences."""
        return (
            "the part of the rows that would be off in sum, in the mean over all columns, pairs and triples, if the "
            "real table were as these made-up rows; bound: what the release would say of its pairs, in the middle. "
            "Nothing was spent. What this table does not show, as how columns hang together that were never measured "
            "together, no simulation shows: at higher prices the real table may be off by more"
        )

    def to_json(self) -> str:
        """Writes the numbers of each price as JSON."""
        plain = {"name": self.release.known.name, "prices": [one.to_dict() for one in self.prices], "words": self.words}
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draws errors against prices, and each column at each price beside the rows it was simulated on.

        It is written to `path` (.html, .png or .svg); else a matplotlib figure is returned. Needs the extra `plot`.
        Raises QuestionError where that is missing, or the path has another ending.
        """
        return placed(path, lambda: _figure(self), lambda drawn: _page(self, drawn))

    def __str__(self) -> str:
        lines = aligned(_HEADS, _rows(self), _RIGHT)
        return "\n".join([*lines, self.words])

    def __repr__(self) -> str:
        return str(self)


def simulate(
    release: Release,
    epsilon: Sequence[Number],
    *,
    method: str = "adaptive",
    tell: Callable[[SimulatedPrice], object] | None = None,
) -> Simulation:
    """Publishes a published table again at other prices, as if its made-up rows were the real ones.

    It says about how good a table each price would buy, and costs nothing: only what was published is read. The rows
    are as many as the real table seems to hold, each person has as many at most as the real ones, and δ is to ε as in
    the release. A target that it was made for is named again. `tell` hears of each price when it is done.

    Raises QuestionError where it is no release of a single table, or a price is none; DeclarationError where its
    columns cannot be declared; BudgetError, EngineError and LedgerError as `Curator.publish`.
    """
    if not isinstance(release, Synthetic) or release.holds.more.get("together"):
        fix = "give what curator.publish or discreet.published gives of a single table"
        raise refused("synthetic", "only a table that was published by itself is simulated", "release", fix)
    if "rows_per_person" not in release.holds.more:
        message = "this release does not say how many rows a person has at most: an earlier version made it"
        raise refused("synthetic", message, "release", "publish the table again with this version")
    if isinstance(epsilon, str) or not isinstance(epsilon, Sequence) or not epsilon:
        raise refused("epsilon", "there is no list of prices", "epsilon", "write epsilon=[0.1, 1]")
    if tell is not None and not callable(tell):
        raise refused("tell", "tell must be callable", "tell", "write tell=print")
    prices = [within("epsilon", one, 0, 1_000, "epsilon=[0.1, 1]") for one in epsilon]
    name = release.known.name
    try:
        of_one = Fraction(release.cost.delta) / Fraction(release.cost.epsilon)
        deltas = [min(Fraction(1, 4), of_one * price) for price in prices]
        wanted = _rows_of(release)
        whole = _as_real(release, wanted)
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError):  # a file that somebody wrote
        fix = "give what curator.publish gives, or a .json that release.save has written"
        raise refused("synthetic", "this is not as a published table is", "release", fix) from None
    to = release.target if method == "adaptive" and release.target in release.columns else None
    measured = _measured(release)
    done: list[SimulatedPrice] = []
    for price, delta in zip(prices, deltas, strict=True):
        with Curator({name: whole}, epsilon=2 * price, delta=2 * delta) as curator:
            made = curator.publish(
                name, epsilon=price, delta=delta, rows=wanted, method=method, columns=measured, target=to
            )
        done.append(_compared(release, made))
        if tell is not None:
            tell(done[-1])
    return Simulation(release, tuple(done))


def _measured(release: Synthetic) -> list[str]:
    """The columns that were measured: all but sums of others."""
    return [name for name in release.columns if name in release.domain]


def _rows_of(release: Synthetic) -> int:
    """As many rows as the real table seems to hold, up to as many as are published. Raises ValueError where there is no
    row, or rows are not of the columns."""
    known = {name: str(one["type"]) for name, one in release.as_source()[1].items()}
    if not len(release) or len(release.rows) != len(release) or known != {n: release.holds.types[n] for n in known}:
        raise ValueError
    if set(known) != set(release.columns):
        raise ValueError
    return min(rows_that_fit(len(known)), max(1, round(release.total)))


def _as_real(release: Synthetic, wanted: int) -> Table:
    """So many made-up rows, declared as rows about persons. Of columns whose values were found, they are to be found
    again."""
    rows, columns = release.as_source()
    if wanted != len(release):
        rows = rows.take(np.arange(wanted) % len(release))
    begun = release.holds.more.get("start", {}).get("cells", {})
    short = {name for name in columns if begun.get(name, {}).get("prefixes")}  # first letters are looked for again
    stated = {
        name: {key: value for key, value in one.items() if key != "values" or name in release.known.whole}
        | ({"nulls": False} if "(none)" not in release.domain.get(name, ["(none)"]) else {})
        | ({"length": SHORT} if name in short else {})
        for name, one in columns.items()
    }
    most = release.holds.more["rows_per_person"]
    if most == 1:
        return Table(rows, columns=stated, one_row_per_person=True)
    own = "person"
    while own in {name.casefold() for name in stated}:
        own += "_"
    rows = rows.append_column(own, [np.arange(len(rows))])
    return Table(rows, columns={**stated, own: {"type": "integer"}}, person=own, rows_per_person=most)


def _compared(release: Synthetic, made: Synthetic) -> SimulatedPrice:
    real, drawn = release.to_columns(), made.to_columns()
    cells = [_coded(real[name], drawn[name]) for name in _measured(release) if name in drawn]
    errors = [
        [_distance(sets) for sets in itertools.combinations(cells, size)]
        if size < 3 or len(cells) <= MOST_OF_TRIPLES
        else []
        for size in (1, 2, 3)
    ]
    columns, pairs, triples = (sum(one) / len(one) if one else None for one in errors)
    bounds = sorted(one["share"] for one in made.marginals if len(one["columns"]) == 2)
    middle = bounds[len(bounds) // 2] if bounds else None
    missing = tuple(name for name in _measured(release) if name not in made.columns)
    return SimulatedPrice(made.cost.epsilon, made.cost.delta, columns, pairs, triples, middle, missing, made)


@dataclass(frozen=True)
class _ColumnCells:
    """A column's cells in words, and the cell of each value in both tables."""

    names: list[str]
    real: NDArray[np.int64]
    made: NDArray[np.int64]


def _coded(real: Sequence[Any], made: Sequence[Any]) -> _ColumnCells:
    """The column's values as cells; of many numbers, dates or times, tenths of the real rows. NULL is one."""
    known = [value for value in real if value is not None]
    if known and not isinstance(known[0], str | bool) and len(set(known)) > 2 * BINS:
        ordered = sorted(known)
        cuts = sorted({ordered[len(ordered) * part // BINS] for part in range(1, BINS)})
        first, second = (
            np.array([len(cuts) + 1 if value is None else bisect_right(cuts, value) for value in values], np.int64)
            for values in (real, made)
        )
        return _ColumnCells(["lower", *(f"from {_short(cut)}" for cut in cuts), "(none)"], first, second)
    places = {value: place for place, value in enumerate(dict.fromkeys([*real, *made]))}
    first, second = (np.array([places[value] for value in values], np.int64) for values in (real, made))
    return _ColumnCells(["(none)" if value is None else _short(value) for value in places], first, second)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value)[:14])


def _distance(sets: Sequence[_ColumnCells]) -> float:
    """How far the shares of all cells are apart, added up."""
    many = len(sets[0].real)
    places = np.zeros(many + len(sets[0].made), np.int64)
    for one in sets:
        places = places * len(one.names) + np.concatenate([one.real, one.made])
    _, cells = np.unique(places, return_inverse=True)
    real, made = (np.bincount(part, minlength=cells.max() + 1) / len(part) for part in (cells[:many], cells[many:]))
    return float(np.abs(real - made).sum())


def _rows(simulation: Simulation) -> list[list[str]]:
    """A line for each price."""
    lines = []
    for one in simulation.prices:
        parts = ("" if part is None else f"{part:.1%}" for part in (one.columns, one.pairs, one.triples, one.bound))
        lines.append([str(one.release.cost), *parts, visible(", ".join(one.left_out))])
    return lines


def _figure(simulation: Simulation) -> Any:
    """Errors against prices; below, each column: bars for the rows it was simulated on, a mark for each price."""
    release, prices = simulation.release, simulation.prices
    names = _measured(release)
    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = figure_class()(figsize=(4.6 * across, 2.6 * down + 3), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[3, 2.6 * down])
    axis = upper.subplots()
    ordered = sorted(prices, key=lambda one: one.epsilon)
    for place, name in enumerate(_SETS):
        values = [getattr(one, name) for one in ordered]
        if None not in values:
            axis.plot([one.epsilon for one in ordered], values, color=LINES[place], marker=_MARKS[place], label=name)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("epsilon")
    axis.set_ylabel("part of the rows that is off, in sum", fontsize=8)
    axis.legend(fontsize=7)
    axes = lower.subplots(down, across, squeeze=False).reshape(-1)
    for axis, name in zip(axes, names, strict=False):
        _column(axis, release, ordered, name)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.suptitle(f"{release.known.name}, simulated at other prices", fontsize=10, parse_math=False)
    figure.said = visible(
        "Lines for how much columns, pairs and triples are off at each price. Below, for each of "
        f"{', '.join(names)} bars for the shares of the rows it was simulated on, and marks for each price. The table "
        "has the numbers of the lines."
    )
    return figure


def _column(axis: Any, release: Synthetic, prices: Sequence[SimulatedPrice], name: str) -> None:
    """Shares of a column's values, or of its tenths: of the rows, and at each price."""
    real = release.to_columns()[name]
    shown_prices = prices[:MOST_LINES]
    names: list[str] = []
    for place, one in enumerate(shown_prices):
        if name in one.left_out:
            continue
        cells = _coded(real, one.release.to_columns()[name])
        bars, shares = (np.bincount(part, minlength=len(cells.names)) / len(part) for part in (cells.real, cells.made))
        across = np.arange(len(cells.names))
        if len(cells.names) > len(names):
            axis.bar(across[len(names) :], bars[len(names) :], color=PALE, edgecolor=DARK, linewidth=0.5)
            names = cells.names
        shift = 0.12 * (place - (len(shown_prices) - 1) / 2)
        label = f"ε {show(fraction(one.epsilon))}"
        axis.plot(across + shift, shares, _MARKS[place], color=LINES[place], markersize=4, label=label)
    axis.set_title(name, fontsize=9, parse_math=False)
    axis.tick_params(axis="y", labelsize=7)
    if len(names) <= MOST_NAMED:
        axis.set_xticks(range(len(names)), names, rotation=90, fontsize=6, parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)
    if names:
        axis.legend(fontsize=6, frameon=False, loc="best")


def _page(simulation: Simulation, drawn: Any) -> str:
    name = visible(simulation.release.known.name)
    body = [
        f"<h1>{escape(name)}, simulated at other prices</h1>",
        '<div class="note"><p class="big">Which price is enough?</p>'
        "<p>The published rows were published again, as if they were the real ones. Nothing was spent.</p></div>",
        table(
            "By what part of the rows all counts are off, added up",
            _HEADS,
            _rows(simulation),
            numbers=_RIGHT,
        ),
        shown(drawn),
        "<h2>How to read it</h2>",
        points([f"{simulation.words}."]),
    ]
    return document(f"{name}, simulated at other prices", "\n".join(body))
