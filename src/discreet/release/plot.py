"""A picture of a release: bars with their errors, or a line in its band. Needs matplotlib, from the extra `plot`."""

from __future__ import annotations

import functools
import importlib
import io
import math
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError
from discreet.release.data import ReleaseData
from discreet.release.render import estimate
from discreet.release.save import given
from discreet.texts import visible
from discreet.trusted.ring_a.table import Type

LEAST_OF_A_LINE = 3
"""Fewer points make no line."""

MOST_INCHES = 300
"""The height of a picture, of which no pixel is lost at 200 an inch."""

_NUMBERS = (Type.INTEGER, Type.NUMBER)
_MOMENTS = (Type.DATE, Type.TIMESTAMP)
_ORDERED = (*_NUMBERS, *_MOMENTS)
_DARK, _PALE = "#0b5394", "#6fa8dc"

LETTERS = 22
"""Small letters in an inch."""


def target(path: str | Path) -> Path:
    """Where a picture goes. Raises QuestionError where none can be written there."""
    found = given(path, "answer.png")
    if found.suffix.lower() not in (".png", ".svg", ".html"):
        message = f"a picture cannot be written as {found.suffix or 'a name without ending'}"
        raise QuestionError("picture", message, where="path", fix="end it in .png, .svg or .html")
    if not found.parent.is_dir():
        raise QuestionError("picture", f"there is no folder {found.parent}", where="path", fix="make it first")
    figure_class()
    return found


def plot(release: ReleaseData, path: str | Path | None) -> Any:
    """Draws the release. Writes it to `path` (.png, .svg, .html) and returns the path, or returns the figure."""
    found = target(path) if path is not None else None
    figure = _figure(release, figure_class())
    if found is None:
        return figure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks is drawn as a box
        _write(figure, found)
    return found


@functools.cache
def figure_class() -> Any:
    """A figure that a notebook shows, however its pictures are set up. Raises QuestionError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        fix = 'run pip install "discreet[plot]"'
        raise QuestionError("extra", "pictures need matplotlib", where="plot", fix=fix) from None

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

    return Picture


def _write(figure: Any, path: Path) -> None:
    if path.suffix.lower() != ".html":
        figure.savefig(path, dpi=150)
        return
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    drawing = buffer.getvalue()
    page = f"<!doctype html><meta charset='utf-8'><title>discreet</title>{drawing[drawing.index('<svg') :]}"
    path.write_text(page, "utf-8")


@dataclass(frozen=True)
class _Drawn:
    """What is drawn of a column: numbers with the ends of their intervals, NaN where there is none."""

    name: str
    values: list[float]
    low: list[float]
    high: list[float]
    dates: bool = False
    """Whether the numbers are days, as the axes count them."""

    @property
    def label(self) -> str:
        known = any(not math.isnan(low) for low in self.low)
        return f"{self.name}, 95 % intervals" if known else self.name


def _drawn(release: ReleaseData, name: str, places: Sequence[int]) -> _Drawn:
    values, low, high = [], [], []
    dates = release.holds.types.get(name) in _MOMENTS
    for place in places:
        value, interval = release.rows[place][name], release.intervals[place].get(name)
        if dates and value is not None:
            value = importlib.import_module("matplotlib.dates").date2num(value)
        values.append(math.nan if value is None else float(value))
        ends = (math.nan, math.nan) if value is None or interval is None else interval
        low.append(min(float(ends[0]), values[-1]))
        high.append(max(float(ends[1]), values[-1]))
    return _Drawn(name, values, low, high, dates)


def _figure(release: ReleaseData, kind: Any) -> Any:
    """Bars for each group; over one key that has an order, a line in a band. All rows are drawn."""
    types = release.holds.types
    about = types if release.holds.keys is None else release.holds.keys
    keys = [name for name in about if name in types]
    numbers = [name for name in release.columns if name not in keys and types.get(name, "number") in _ORDERED]
    drawn = numbers if release.holds.drawn is None else release.holds.drawn
    names = [name for name in drawn if name in release.columns]
    ordered = keys[0] if len(keys) == 1 and types[keys[0]] in _ORDERED else None
    if ordered is not None and names:
        places = [place for place, row in enumerate(release.rows) if row[ordered] is not None]
        if len(places) >= LEAST_OF_A_LINE:
            return _lines(release, kind, ordered, names, sorted(places, key=lambda place: release.rows[place][ordered]))
    return _bars(release, kind, keys, names)


def _lines(release: ReleaseData, kind: Any, key: str, names: Sequence[str], places: Sequence[int]) -> Any:
    """One axis below the other, for each column a line in the band of its intervals."""
    across = [release.rows[place][key] for place in places]
    height = 2.6 * len(names) + 0.6
    figure = kind(figsize=(8, height), layout="constrained")
    without = [row for row in range(len(release.rows)) if row not in set(places)]
    for axis, name in zip(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], names, strict=True):
        drawn = _drawn(release, name, places)
        axis.fill_between(across, drawn.low, drawn.high, color=_PALE, alpha=0.5, linewidth=0)
        axis.plot(across, drawn.values, color=_DARK, marker="o", markersize=3)
        axis.set_ylabel(drawn.label, parse_math=False)
        _plain(axis, "y")
        if drawn.dates:
            axis.yaxis_date()
        elif all(value >= 0 for value in drawn.values) and not _narrow(drawn.values):
            axis.set_ylim(bottom=0)
        for place in without:
            value, interval = release.rows[place][name], release.intervals[place].get(name)
            shown = value if value is None or interval is None else estimate(value, interval)
            axis.set_title(f"where {key} is NULL: {shown}", fontsize=8, loc="left", parse_math=False)
    axis.tick_params(axis="x", labelrotation=0 if release.holds.types[key] in _NUMBERS else 20)
    axis.set_xlabel(key, parse_math=False)
    return _signed(release, figure)


def _bars(release: ReleaseData, kind: Any, keys: Sequence[str], names: Sequence[str]) -> Any:
    """One axis beside the other, in each a bar a row; points where an axis from zero would hide what differs."""
    rows = release.rows
    passed = "(all)" if release.holds.drawn is not None else ""  # in a workload, a column that a row is not about
    labels = [_label(row, [key for key in keys if not passed or row[key] != passed]) for row in rows]
    height = min(MOST_INCHES, max(2.4, 0.3 * len(rows) + 1.4))
    figure = kind(figsize=(2.2 + 4.2 * max(1, len(names)), height), layout="constrained")
    axes = figure.subplots(1, max(1, len(names)), sharey=True, squeeze=False)[0]
    places = list(range(len(rows)))
    for axis, name in zip(axes, names, strict=False):
        drawn = _drawn(release, name, places)
        ends = [
            [value - low for value, low in zip(drawn.values, drawn.low, strict=True)],
            [high - value for value, high in zip(drawn.values, drawn.high, strict=True)],
        ]
        if drawn.dates:
            axis.xaxis_date()
            axis.tick_params(axis="x", labelrotation=20)
        if drawn.dates or _narrow(drawn.values):
            axis.plot(drawn.values, places, "o", color=_DARK)
        else:
            axis.barh(places, drawn.values, color=_PALE)
        axis.errorbar(drawn.values, places, xerr=ends, fmt="none", ecolor=_DARK, elinewidth=1.5, capsize=3)
        axis.set_xlabel(drawn.label, parse_math=False)
        _plain(axis, "x")
    every = max(1, math.ceil(len(rows) * 0.12 / height))  # as many labels as there is room for
    axes[0].set_yticks(places[::every], labels[::every], parse_math=False)
    axes[0].set_ylim(max(1, len(rows)) - 0.5, -0.5)
    return _signed(release, figure)


def _label(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The keys of a row in words."""
    return " · ".join("NULL" if row[key] is None else str(row[key]) for key in keys) if keys else "all"


def _plain(axis: Any, side: str) -> None:
    axis.grid(axis=side, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _signed(release: ReleaseData, figure: Any) -> Any:
    """The figure with its price, and with what changes how the numbers may be read."""
    figure.suptitle(f"{release.cost}, per person", fontsize=9, x=0.99, ha="right")
    wide = int(figure.get_figwidth() * LETTERS)
    words = [line for one in release.bounds for line in textwrap.wrap(visible(one), wide, subsequent_indent="  ")]
    if words:
        figure.supxlabel("\n".join(words), fontsize=6, x=0.01, ha="left", parse_math=False)
        figure.set_figheight(figure.get_figheight() + 0.12 * len(words))
    return figure


def _narrow(values: list[float]) -> bool:
    """Whether the values lie so close together that an axis from zero would hide their differences."""
    known = [value for value in values if not math.isnan(value)]
    return len(known) > 1 and 0 < max(known) - min(known) < 0.3 * max(known)
