"""Pictures of a synthetic table, from the release alone. A comparison with the real table would be an answer without a
price."""

from __future__ import annotations

import base64
import html
import io
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.release.plot import figure_class, target
from discreet.synthesis.data import SyntheticData
from discreet.synthesis.packed import unpack

_MOST_BARS = 40


def page(release: SyntheticData, path: str | Path | None) -> Any:
    """The pictures: as a figure, or written to a path that ends in .png, .svg or .html."""
    found = target(path) if path is not None else None
    figure = _figure(release)
    if found is None:
        return figure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks is drawn as a box
        if found.suffix.lower() == ".html":
            found.write_text(_html(release, figure), "utf-8")
        else:
            figure.savefig(found, dpi=110)
    return found


def _figure(release: SyntheticData) -> Any:
    """Each column measured and synthetic; then, for all pairs, what is known of their error."""
    names = release.columns
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
    figure.suptitle(f"{release.holds.more['name']}, synthetic: {release.cost}, per person", fontsize=10)
    return figure


def _column(axis: Any, release: SyntheticData, name: str) -> None:
    """Shares of a column's cells: bars as synthetic, points with 95 % bars as measured."""
    cells = release.domain[name]
    drawn = unpack(release.holds.more["cells"][name])
    places = np.arange(len(cells))
    axis.bar(places, drawn / max(1, drawn.sum()), color="#9fc5e8", label="synthetic")
    known = measured(release, name)
    if known is not None:
        counts, deviation = known
        total = max(1.0, release.total)
        axis.errorbar(
            places, counts / total, yerr=1.96 * deviation / total, fmt=".", color="#0b5394", capsize=2, label="measured"
        )
    axis.set_title(name, fontsize=9, parse_math=False)
    if len(cells) <= _MOST_BARS:
        axis.set_xticks(places, [cell[:14] for cell in cells], rotation=90, fontsize=6, parse_math=False)
    axis.tick_params(axis="y", labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=6, frameon=False)


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
    names = release.columns
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
        axis.text(first, second, f"{bounds[second, first]:.2f}{mark}", ha="center", va="center", fontsize=6)
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7, parse_math=False)
    axis.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    axis.set_title("pairs: the part of the rows that may be off, in sum (95 %); • measured together", fontsize=9)
    figure.colorbar(shown, ax=axis, shrink=0.6)


def _html(release: SyntheticData, figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    picture = base64.b64encode(buffer.getvalue()).decode("ascii")
    items = "".join(f"<li>{html.escape(bound)}</li>" for bound in release.bounds)
    lines = "".join(
        f"<tr><td>{html.escape(', '.join(one['columns']))}</td><td>{one['sigma']:.4g}</td></tr>"
        for one in release.measured
    )
    title = html.escape(f"{release.holds.more['name']}, synthetic")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}"
        f"img{{max-width:100%}}</style><h1>{title}</h1>"
        f"<p>{len(release):,} made-up rows; none is anybody's. The real table seems to hold {release.total:,.0f} rows. "
        f"Price {html.escape(str(release.cost))}, {html.escape(release.holds.unit)}.</p><ul>{items}</ul>"
        '<img alt="each column, measured and synthetic; pairs and their error bounds" '
        f'src="data:image/png;base64,{picture}">'
        "<h2>What was measured, in order</h2><table><tr><th>columns</th><th>sigma of the noise, in rows</th></tr>"
        f"{lines}</table></html>"
    )
