"""A picture of a release: bars with their errors, a line in its band, or a map of two keys, and what it shows in words.
Needs matplotlib, from the extra `plot`."""

from __future__ import annotations

import functools
import html
import importlib
import io
import itertools
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError
from discreet.look.page import document
from discreet.look.page import figure as boxed
from discreet.release.data import ReleaseData
from discreet.release.render import estimate
from discreet.release.save import given, page
from discreet.texts import visible
from discreet.trusted.ring_a.exact import figure as figure_of
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.table import Type

LEAST_OF_A_LINE = 3
"""Fewer points make no line."""

MOST_LINES = 6
"""More lines than these in one picture are not told apart."""

MOST_CELLS = 400
"""A map of more cells than these has no numbers in them."""

MOST_BARS = 100
"""Groups of which a bar is drawn; the table has all."""

MOST_INCHES = 300
"""The height of a picture, of which no pixel is lost at 200 an inch."""

_NUMBERS = (Type.INTEGER, Type.NUMBER)
_MOMENTS = (Type.DATE, Type.TIMESTAMP)
_ORDERED = (*_NUMBERS, *_MOMENTS)
DARK, PALE = "#0b5394", "#c5dcf2"
_IN_CELLS = "#111111", "#fefefe"
LINES = ("#3a7fc4", "#b8621b", "#2f8759", "#8a63c7", "#cc4b4b", "#74797e")
"""Colours of several lines: each stands out from a white ground and from a dark one, 3 : 1."""

_MARKS = "os^Dv*"
_THEMED = {
    "#000000": "var(--edge)",
    "#b0b0b0": "var(--line)",
    "#ffffff": "var(--ground)",
    DARK: "var(--accent)",
    PALE: "var(--pale)",
}
"""Colours that a page has of its own, light and dark."""

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
    return placed(
        path,
        lambda: _figure(release, figure_class()),
        lambda figure: page(release, lambda _: shown(figure)),
    )


def placed(path: str | Path | None, draw: Callable[[], Any], paged: Callable[[Any], str]) -> Any:
    """A drawn figure; with a path it is written there, as a page where that ends in .html, and the path is given.
    Raises QuestionError, before it is drawn, where none can be written there."""
    found = target(path) if path is not None else None
    figure = draw()
    if found is None:
        return figure
    if found.suffix.lower() == ".html":
        found.write_text(paged(figure), "utf-8")
    else:
        write(figure, found, "")
    return found


@functools.cache
def figure_class() -> Any:
    """A figure that a notebook shows, however its pictures are set up. Raises QuestionError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        fix = 'run pip install "discreet[plot]"'
        raise QuestionError("extra", "pictures need matplotlib", where="plot", fix=fix) from None

    class PlotFigure(Figure):
        said = ""
        """What is drawn, in words: for those who do not see it."""

        def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
            buffer = io.BytesIO()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue(), {"alt": self.said}

    return PlotFigure


def drawing(release: ReleaseData) -> str:
    """The picture to stand in a page, with what it shows in words; empty without matplotlib, and where there is nothing
    to draw, as of made-up rows."""
    if find_spec("matplotlib") is None or not release.rows or not release.intervals:
        return ""
    return shown(plot(release, None))


def shown(figure: Any) -> str:
    """A figure in a page: SVG in the page's colours, its texts as texts, and what is drawn in words. What changes how
    the numbers may be read stands in the page itself."""
    figure.supxlabel("")
    buffer = io.StringIO()
    with warnings.catch_warnings(), importlib.import_module("matplotlib").rc_context({"svg.fonttype": "none"}):
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks: the browser has it
        figure.savefig(buffer, format="svg", transparent=True)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", lambda one: f"{one[1]}: {_THEMED.get(one[2], one[2])}", drawn)
    drawn = "\n".join(map(visible, drawn.split("\n")))
    named = f'<svg role="img" aria-label="{html.escape(figure.said)}" '
    return boxed(named + drawn.removeprefix("<svg ").rstrip(), figure.said)


def write(figure: Any, path: Path, title: str) -> None:
    """Writes a figure to a path that `target` gave."""
    if path.suffix.lower() == ".html":
        path.write_text(document(title, f"<h1>{html.escape(title)}</h1>{shown(figure)}"), "utf-8")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks is drawn as a box
        figure.savefig(path, dpi=150)


@dataclass(frozen=True)
class _PlottedColumn:
    """What is drawn of a column: numbers with the ends of their intervals, NaN where there is none."""

    name: str
    values: list[float]
    low: list[float]
    high: list[float]
    dates: bool = False
    """Whether the numbers are days, as the axes count them."""

    @property
    def ends(self) -> list[list[float]]:
        """How far the intervals reach below and above."""
        below = [value - low for value, low in zip(self.values, self.low, strict=True)]
        return [below, [high - value for value, high in zip(self.values, self.high, strict=True)]]

    @property
    def widest(self) -> str:
        """The name, with the largest error of all."""
        reach = max((end for side in self.ends for end in side if not math.isnan(end)), default=math.nan)
        return self.name if math.isnan(reach) else f"{self.name}, 95 % intervals of at most ±{reach:,.3g}"

    @property
    def label(self) -> str:
        known = any(not math.isnan(low) for low in self.low)
        return f"{self.name}, 95 % intervals" if known else self.name


def _drawn(release: ReleaseData, name: str, places: Sequence[int]) -> _PlottedColumn:
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
    return _PlottedColumn(name, values, low, high, dates)


def _figure(release: ReleaseData, kind: Any) -> Any:
    """The picture that follows from the keys; bars for each group where no other does. Of bars the first are drawn,
    of all else all rows."""
    types = release.holds.types
    about = types if release.holds.keys is None else release.holds.keys
    keys = [name for name in about if name in types]
    numbers = [name for name in release.columns if name not in keys and types.get(name, "number") in _ORDERED]
    drawn = numbers if release.holds.drawn is None else release.holds.drawn
    names = [name for name in drawn if name in release.columns]
    once = len({tuple(str(row[key]) for key in keys) for row in release.rows}) == len(release.rows)
    if names and once and len(keys) == 1 and types[keys[0]] in _ORDERED:
        key = keys[0]
        places = [place for place, row in enumerate(release.rows) if row[key] is not None]
        places.sort(key=lambda place: release.rows[place][key])
        if len(places) >= LEAST_OF_A_LINE:
            if width := _width([release.rows[place][key] for place in places]):
                return _bins(release, kind, key, names, places, width)
            return _lines(release, kind, key, names, {"": places})
    if names and once and len(keys) == 2 and release.holds.drawn is None:
        return _of_two(release, kind, keys, names)
    return _bars(release, kind, keys, names)


def _of_two(release: ReleaseData, kind: Any, keys: Sequence[str], names: Sequence[str]) -> Any:
    """Of two keys: lines over dates, one for each value of the other key where these are few; else a map."""
    for key, other in (keys, reversed(keys)):
        values = list(dict.fromkeys(row[other] for row in release.rows))
        if release.holds.types[key] in _MOMENTS and len(values) <= MOST_LINES:
            lines = {_label({other: value}, [other]): _along(release, key, other, value) for value in values}
            if all(len(places) >= LEAST_OF_A_LINE for places in lines.values()):
                return _lines(release, kind, key, names, lines)
    if min(len({row[key] for row in release.rows}) for key in keys) < 2:
        return _bars(release, kind, keys, names)
    return _map(release, kind, keys, names)


def _along(release: ReleaseData, key: str, other: str, value: Any) -> list[int]:
    """The rows of one line, in the order of the key."""
    places = [at for at, row in enumerate(release.rows) if row[other] == value and row[key] is not None]
    return sorted(places, key=lambda place: release.rows[place][key])


def _width(values: Sequence[Any]) -> float:
    """The width of the bins whose lower ends these are: 0 where they are none. Whole numbers one apart are values."""
    if not all(isinstance(value, int | float) for value in values):
        return 0
    steps = [after - before for before, after in itertools.pairwise(values)]
    least = min(steps)
    whole = all(abs(step / least - round(step / least)) < 1e-6 for step in steps)
    return least if whole and least not in (0, 1) and max(steps) < 20 * least else 0


def _lines(release: ReleaseData, kind: Any, key: str, names: Sequence[str], lines: Mapping[str, Sequence[int]]) -> Any:
    """One axis below the other, for each column its lines in the bands of their intervals."""
    figure, axes = _below(kind, len(names))
    kept = {place for places in lines.values() for place in places}
    without = [row for row in range(len(release.rows)) if row not in kept]
    for axis, name in zip(axes, names, strict=True):
        known: list[float] = []
        for at, (label, places) in enumerate(lines.items()):
            across = [release.rows[place][key] for place in places]
            drawn = _drawn(release, name, places)
            dark, pale = (DARK, PALE) if len(lines) == 1 else (LINES[at], LINES[at])
            axis.fill_between(
                across, drawn.low, drawn.high, color=pale, alpha=0.8 if len(lines) == 1 else 0.2, linewidth=0
            )
            axis.plot(across, drawn.values, color=dark, marker=_MARKS[at], markersize=3, label=label)
            known += drawn.values
        _upright(axis, drawn, known)
        if len(lines) > 1:
            axis.legend(fontsize=7, loc="best")
        _missing(axis, release, key, name, without)
    axes[-1].tick_params(axis="x", labelrotation=0 if release.holds.types[key] in _NUMBERS else 20)
    axes[-1].set_xlabel(key, parse_math=False)
    what = "A line" if len(lines) == 1 else f"Lines for {', '.join(lines)}"
    across = sorted(release.rows[place][key] for place in kept)
    what += f" over {key}, {across[0]} to {across[-1]}, each in the band of its intervals"
    return _signed(release, figure, what, [key, *(one for one in release.holds.types if one != key)], names)


def _bins(release: ReleaseData, kind: Any, key: str, names: Sequence[str], places: Sequence[int], width: float) -> Any:
    """A histogram: a bar over each bin, from its lower end to the next one's, with its interval."""
    figure, axes = _below(kind, len(names))
    kept = set(places)
    without = [row for row in range(len(release.rows)) if row not in kept]
    across = [release.rows[place][key] for place in places]
    middle = [value + width / 2 for value in across]
    for axis, name in zip(axes, names, strict=True):
        drawn = _drawn(release, name, places)
        if drawn.dates:
            axis.plot(middle, drawn.values, "o", color=DARK)
        else:
            axis.bar(across, drawn.values, width=width, align="edge", color=PALE, edgecolor=DARK, linewidth=0.5)
        axis.errorbar(middle, drawn.values, yerr=drawn.ends, fmt="none", ecolor=DARK, elinewidth=1.5, capsize=3)
        axis.set_ylabel(drawn.label, parse_math=False)
        _plain(axis, "y")
        if drawn.dates:
            axis.yaxis_date()
        _missing(axis, release, key, name, without)
    bins = f"in bins of {figure_of(fraction(width))}"
    axes[-1].set_xlabel(f"{key}, {bins}", parse_math=False)
    return _signed(release, figure, f"Bars over {key}, {bins}, with error bars", [key], names)


def _map(release: ReleaseData, kind: Any, keys: Sequence[str], names: Sequence[str]) -> Any:
    """One map beside the other: a cell for each pair of keys, the darker the larger, with number and error in it."""
    down, across = keys
    if release.holds.types[down] in _ORDERED and release.holds.types[across] not in _ORDERED:
        down, across = across, down
    sides = [_side(release, key) for key in (down, across)]
    size = (len(sides[0]), len(sides[1]))
    few = size[0] * size[1] <= MOST_CELLS
    wide = min(MOST_INCHES / 10, max(4.0, (0.75 if few else 0.25) * size[1] + 1.5))
    height = min(MOST_INCHES, max(2.4, (0.35 if few else 0.2) * size[0] + 1.4))
    figure = kind(figsize=(1.5 + wide * len(names), height), layout="constrained")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    places = range(len(release.rows))
    for axis, name in zip(axes, names, strict=True):
        drawn = _drawn(release, name, places)
        cells = [[math.nan] * size[1] for _ in range(size[0])]
        for place in places:
            row = release.rows[place]
            cells[sides[0][row[down]]][sides[1][row[across]]] = drawn.values[place]
        known = [value for value in drawn.values if not math.isnan(value)]
        low = min([*known, 0]) if not drawn.dates else min(known, default=0)
        axis.set_facecolor("#eeeeee")  # a cell that is not shown
        high = max(known, default=1)
        image = axis.imshow(cells, cmap="Blues", aspect="auto", interpolation="nearest", vmin=low, vmax=high)
        if few:
            _written_in(axis, release, name, (down, across), sides, low + 0.6 * (high - low), drawn)
        else:
            figure.colorbar(image, ax=axis, shrink=0.6)
        for side, (labels, axle) in enumerate(zip(sides, (axis.yaxis, axis.xaxis), strict=True)):
            every = max(1, math.ceil(size[side] * 0.12 / (height, wide)[side]))
            words = [_label({"": value}, [""]) for value in labels]
            axle.set_ticks(list(range(size[side]))[::every], words[::every], parse_math=False)
        axis.tick_params(axis="x", labelrotation=20 if size[1] > 4 else 0)
        axis.set_ylabel(down, parse_math=False)
        axis.set_xlabel(across, parse_math=False)
        axis.set_title(drawn.label if few else drawn.widest, fontsize=9, parse_math=False)
    what = f"A map, the darker the larger: {down} from top to bottom, {across} from left to right"
    return _signed(release, figure, what, keys, names)


def _written_in(
    axis: Any,
    release: ReleaseData,
    name: str,
    keys: tuple[str, str],
    sides: Sequence[Mapping[Any, int]],
    dark: float,
    drawn: _PlottedColumn,
) -> None:
    """Each cell's number with its error, light on what is darker than `dark`."""
    for place, row in enumerate(release.rows):
        value, interval = row[name], release.intervals[place].get(name)
        words = (
            "NULL" if value is None else str(value) if interval is None or drawn.dates else estimate(value, interval)
        )
        at = (sides[1][row[keys[1]]], sides[0][row[keys[0]]])
        colour = _IN_CELLS[drawn.values[place] > dark]
        axis.text(*at, words, ha="center", va="center", fontsize=7, color=colour, parse_math=False)


def _side(release: ReleaseData, key: str) -> dict[Any, int]:
    """The values of a key with their places: in their order where they have one, else as they come; NULL is last."""
    values = list(dict.fromkeys(row[key] for row in release.rows))
    ordered = release.holds.types[key] in _ORDERED
    known = [value for value in values if value is not None]
    known = sorted(known) if ordered else known
    return {value: place for place, value in enumerate([*known, *([None] if None in values else [])])}


def _below(kind: Any, number: int) -> tuple[Any, Any]:
    """A figure with so many axes, one below the other."""
    figure = kind(figsize=(8, 2.6 * number + 0.6), layout="constrained")
    return figure, figure.subplots(number, 1, sharex=True, squeeze=False)[:, 0]


def _upright(axis: Any, drawn: _PlottedColumn, values: list[float]) -> None:
    """The axis of the values: from zero, where that hides no difference."""
    axis.set_ylabel(drawn.label, parse_math=False)
    _plain(axis, "y")
    if drawn.dates:
        axis.yaxis_date()
    elif all(value >= 0 for value in values) and not _narrow(values):
        axis.set_ylim(bottom=0)


def _missing(axis: Any, release: ReleaseData, key: str, name: str, places: Sequence[int]) -> None:
    """What has no place on the axis, in words."""
    words = []
    for place in places:
        row, interval = release.rows[place], release.intervals[place].get(name)
        shown = row[name] if row[name] is None or interval is None else estimate(row[name], interval)
        others = [one for one in release.holds.types if one != key and one in row]
        beside = f" and {_label(row, others)}" if others else ""
        words.append(f"where {key} is NULL{beside}: {shown}")
    if words:
        axis.set_title("; ".join(words), fontsize=8, loc="left", parse_math=False)


def _bars(release: ReleaseData, kind: Any, keys: Sequence[str], names: Sequence[str]) -> Any:
    """One axis beside the other, in each a bar a row; points where an axis from zero would hide what differs."""
    rows = release.rows[:MOST_BARS]
    passed = "(all)" if release.holds.drawn is not None else ""  # in a workload, a column that a row is not about
    labels = [_label(row, [key for key in keys if not passed or row[key] != passed]) for row in rows]
    height = min(MOST_INCHES, max(2.4, 0.3 * len(rows) + 1.4))
    figure = kind(figsize=(2.2 + 4.2 * max(1, len(names)), height), layout="constrained")
    axes = figure.subplots(1, max(1, len(names)), sharey=True, squeeze=False)[0]
    places = list(range(len(rows)))
    for axis, name in zip(axes, names, strict=False):
        drawn = _drawn(release, name, places)
        if drawn.dates:
            axis.xaxis_date()
            axis.tick_params(axis="x", labelrotation=20)
        if drawn.dates or _narrow(drawn.values):
            axis.plot(drawn.values, places, "o", color=DARK)
        else:
            axis.barh(places, drawn.values, color=PALE, edgecolor=DARK, linewidth=0.5)
        axis.errorbar(drawn.values, places, xerr=drawn.ends, fmt="none", ecolor=DARK, elinewidth=1.5, capsize=3)
        axis.set_xlabel(drawn.label, parse_math=False)
        _plain(axis, "x")
    every = max(1, math.ceil(len(rows) * 0.12 / height))  # as many labels as there is room for
    axes[0].set_yticks(places[::every], labels[::every], parse_math=False)
    axes[0].set_ylim(max(1, len(rows)) - 0.5, -0.5)
    part = f"the first {len(rows):,} of {len(release.rows):,} groups" if len(rows) < len(release.rows) else ""
    if part:
        axes[0].set_title(f"{part}; the table has all", fontsize=8, loc="left")
    about = f"of {part}" if part else "of each group" if keys and len(rows) > 1 else ""
    return _signed(release, figure, " ".join(["Bars or points with error bars", about]).rstrip(), keys, names)


def _label(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The keys of a row in words."""
    return " · ".join("NULL" if row[key] is None else str(row[key]) for key in keys) if keys else "all"


def _plain(axis: Any, side: str) -> None:
    axis.grid(axis=side, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _signed(release: ReleaseData, figure: Any, what: str, keys: Sequence[str], names: Sequence[str]) -> Any:
    """The figure with its price, what changes how the numbers may be read, and `what` is drawn in words."""
    figure.suptitle(f"{release.cost}, per person", fontsize=9, x=0.99, ha="right")
    wide = int(figure.get_figwidth() * LETTERS)
    words = [line for one in release.bounds for line in textwrap.wrap(visible(one), wide, subsequent_indent="  ")]
    if words:
        figure.supxlabel("\n".join(words), fontsize=6, x=0.01, ha="left", parse_math=False)
        figure.set_figheight(figure.get_figheight() + 0.12 * len(words))
    figure.said = visible("; ".join([what, *(_ranges(release, name, keys) for name in names)]) + ".")
    return figure


def _ranges(release: ReleaseData, name: str, keys: Sequence[str]) -> str:
    """A column's smallest and largest number with their errors, and where they are."""
    known = [place for place, row in enumerate(release.rows) if row[name] is not None]
    if not known:
        return f"{name}: no number"
    ends = [choose(known, key=lambda place: release.rows[place][name]) for choose in (min, max)]
    words = []
    for place in ends:
        row, interval = release.rows[place], release.intervals[place].get(name)
        plain = interval is None or release.holds.types.get(name) in _MOMENTS
        words.append(str(row[name]) if plain or interval is None else estimate(row[name], interval))
        about = [one for one in keys if one in row]
        words[-1] += f" ({_label(row, about)})" if about and len(release.rows) > 1 else ""
    if len(known) == 1:
        return f"{name}: {words[0]}"
    return f"{name}: from {words[0]} to {words[1]}"


def _narrow(values: list[float]) -> bool:
    """Whether the values lie so close together that an axis from zero would hide their differences."""
    known = [value for value in values if not math.isnan(value)]
    return len(known) > 1 and 0 < max(known) - min(known) < 0.3 * max(known)
