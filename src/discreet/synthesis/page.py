"""Pictures of a synthetic table, from the release alone. A comparison with the real table would be an answer without a
price."""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.look.page import document, points, table
from discreet.release.plot import DARK, PALE, figure_class, placed, shown
from discreet.release.values import up
from discreet.synthesis.data import SyntheticData
from discreet.synthesis.packed import unpack
from discreet.texts import visible

_MOST_BARS = 40
_DARK = 0.355
"""Shares above it stand on a ground so dark that white is read better than black: 4.2 : 1 at least on either side."""


def page(release: SyntheticData, path: str | Path | None) -> Any:
    """The pictures: as a figure, or written to a path that ends in .png, .svg or .html."""
    return placed(path, lambda: _figure(release), lambda figure: _html(release, figure))


def _figure(release: SyntheticData) -> Any:
    """Each column measured and synthetic; then, for all pairs, what is known of their error."""
    names = list(release.domain)  # of several tables, those of rows above too, and no keys
    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = figure_class()(figsize=(4.6 * across, 2.6 * down + 0.55 * len(names) + 2), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[2.6 * down, 0.55 * len(names) + 2])
    axes = upper.subplots(down, across, squeeze=False).reshape(-1)
    for axis, name in zip(axes, names, strict=False):
        _column(axis, release, name)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    _pairs(lower, release)
    title = visible(f"{release.known.title}, synthetic: {release.cost}, per person")
    figure.suptitle(title, fontsize=10, parse_math=False)
    figure.said = visible(
        f"For each of {', '.join(names)} a bar chart: bars for the shares of the made-up rows, points with 95 % error "
        "bars for what was measured. Below, a map of all pairs of columns with the part of the rows that may be off, "
        "which the table of pairs lists."
    )
    return figure


def _column(axis: Any, release: SyntheticData, name: str) -> None:
    """Shares of a column's cells: bars as synthetic, points with 95 % bars as measured."""
    cells = release.domain[name]
    drawn = unpack(release.holds.more["cells"][name]).astype(float)
    places = np.arange(len(cells))
    axis.bar(places, drawn / max(1, drawn.sum()), color=PALE, edgecolor=DARK, linewidth=0.5, label="synthetic")
    known = measured(release, name)
    if known is not None:
        counts, deviation = known
        total = max(1.0, float(counts.sum()) if release.holds.more.get("evenly") else release.total)
        axis.errorbar(
            places, counts / total, yerr=1.96 * deviation / total, fmt=".", color=DARK, capsize=2, label="measured"
        )
    axis.set_title(name, fontsize=9, parse_math=False)
    if len(cells) <= _MOST_BARS:
        axis.set_xticks(places, [cell[:14] for cell in cells], rotation=90, fontsize=6, parse_math=False)
    axis.tick_params(axis="y", labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=6, frameon=False, loc="best")


def measured(release: SyntheticData, name: str) -> tuple[NDArray[np.float64], float] | None:
    """The column's noisy counts, and their deviation: from the measurement that says most of it."""
    best: tuple[NDArray[np.float64], float] | None = None
    for one in release.holds.more["measured"]:
        if name not in one["columns"]:
            continue
        counts = unpack(one["counts"]).astype(float)
        axis = one["columns"].index(name)
        others = tuple(place for place in range(counts.ndim) if place != axis)
        deviation = one["sigma"] * float(np.sqrt(counts.size / counts.shape[axis]))
        if best is None or deviation < best[1]:
            best = counts.sum(axis=others), deviation
    return best


def _pairs(figure: Any, release: SyntheticData) -> None:
    names = list(release.domain)
    bounds = np.full((len(names), len(names)), np.nan)
    together = np.zeros_like(bounds, bool)
    for one in release.measured:
        for first, second in itertools.combinations(sorted(names.index(name) for name in one["columns"]), 2):
            together[second, first] = True
    for one in release.marginals:
        if len(one["columns"]) == 2:
            first, second = sorted(names.index(name) for name in one["columns"])
            bounds[second, first] = one["share"]
    axis = figure.subplots()
    shown = axis.imshow(bounds, vmin=0, vmax=0.5, cmap="YlOrRd")
    for second, first in zip(*np.nonzero(~np.isnan(bounds)), strict=True):
        mark = "•" if together[second, first] else ""
        words = f"{up(bounds[second, first], 2):.0%}{mark}"
        dark = bounds[second, first] > _DARK
        axis.text(first, second, words, ha="center", va="center", fontsize=6, color="#ffffff" if dark else "#111111")
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7, parse_math=False)
    axis.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    axis.set_title("pairs: the part of the rows that may be off, in sum (95 %); • measured together", fontsize=9)
    figure.colorbar(shown, ax=axis, shrink=0.6)


def _html(release: SyntheticData, figure: Any) -> str:
    """What the table is and how far it may be trusted, in a few lines; then pictures, then all numbers."""
    name = visible(release.known.title)
    pairs = sorted((one for one in release.marginals if len(one["columns"]) == 2), key=lambda one: -one["share"])
    holds = "holds, by declared public totals," if "totals" in release.holds.more else "seems to hold"
    body = [
        f"<h1>{html.escape(name)}, synthetic</h1>",
        '<div class="note"><p class="big">Made-up rows: none is anybody\'s.</p>',
        f"<p>{len(release):,} rows, made to give nearly the same counts as the real table, which {holds} "
        f"{release.total:,.0f} rows. They may be handed to anybody.</p></div>",
        "<h2>What it may be used for</h2>",
        points(_trust(pairs, release.target)),
        f"<p>Price {html.escape(str(release.cost))}, {html.escape(release.holds.unit)}.</p>",
        shown(figure),
        "<h2>How to read it</h2>",
        points(map(visible, release.bounds)),
    ]
    if release.columns_left_out:
        body.append("<h2>Columns that are not there</h2>")
        body.append(points(visible(f"{one}: {why}") for one, why in release.columns_left_out.items()))
    if pairs:
        together = {frozenset(pair) for one in release.measured for pair in itertools.combinations(one["columns"], 2)}
        words = "Pairs of columns: how many of the rows may be off, in sum over all cells (95 %), the largest first"
        rows = [
            [
                visible(", ".join(one["columns"])),
                f"{up(one['rows']):,.0f}",
                f"{up(one['share'], 3):.1%}",
                "yes" if frozenset(one["columns"]) in together else "no",
            ]
            for one in pairs
        ]
        heads = ["columns", "rows off, at most", "of all rows", "measured together"]
        body.append(f"<h2>How far pairs may be off</h2>{table(words, heads, rows, numbers=[False, True, True, False])}")
    rows = [[visible(", ".join(one["columns"])), f"{one['sigma']:.4g}"] for one in release.measured]
    words = "The marginals that were measured, each with the standard deviation of its Gaussian noise"
    body.append("<h2>What was measured, in order</h2>")
    body.append(table(words, ["columns", "sigma of the noise, in rows"], rows, numbers=[False, True]))
    return document(f"{name}, synthetic", "\n".join(body))


def _trust(pairs: Sequence[Mapping[str, Any]], target: str | None) -> list[str]:
    """The bounds of the pairs, and what is to be predicted, in sentences."""
    words = ["Counts, shares and means over a few columns. For numbers that matter, ask the real table."]
    if target is not None:
        words.append(f"Models that predict {target} from the other columns: it was made for these.")
    if pairs:
        best, worst = pairs[-1], pairs[0]
        least, most = up(best["share"], 2), up(worst["share"], 2)
        words.append(
            f"Of two columns together at most {most:.0%} of the rows are off, in sum over all cells, at 95 % "
            f"confidence a pair ({' and '.join(worst['columns'])}); of the best pair, {least:.0%} "
            f"({' and '.join(best['columns'])})."
        )
    words.append("Never to find a person: a row that looks like somebody is chance.")
    return list(map(visible, words))
