"""A picture of a release: each estimate with its error bar. Needs matplotlib, from the extra `plot`."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import QuestionError

if TYPE_CHECKING:
    from discreet.release.table import Release

MOST_GROUPS = 60


def target(path: str | Path) -> Path:
    """Where a picture goes. Raises QuestionError where none can be written there."""
    found = Path(path)
    if found.suffix.lower() not in (".png", ".svg", ".html"):
        message = f"no picture is written as {found.suffix or 'a name without ending'}"
        raise QuestionError("picture", message, where="path", fix="end it in .png, .svg or .html")
    if not found.parent.is_dir():
        raise QuestionError("picture", f"there is no folder {found.parent}", where="path", fix="make it first")
    figure_class()
    return found


def plot(release: Release, path: str | Path | None) -> Any:
    """Draws the release. Writes it to `path` (.png, .svg, .html) and returns the path, or returns the figure."""
    found = target(path) if path is not None else None
    figure = _figure(release, figure_class())
    if found is None:
        return figure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks is drawn as a box
        _write(figure, found)
    return found


def figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        fix = 'run pip install "discreet[plot]"'
        raise QuestionError("extra", "pictures need matplotlib", where="plot", fix=fix) from None
    return Figure


def _write(figure: Any, path: Path) -> None:
    if path.suffix.lower() != ".html":
        figure.savefig(path, dpi=150)
        return
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    drawing = buffer.getvalue()
    page = f"<!doctype html><meta charset='utf-8'><title>discreet</title>{drawing[drawing.index('<svg') :]}"
    path.write_text(page, "utf-8")


def _figure(release: Release, kind: Any) -> Any:
    names = [name for name in release.columns if name not in release.content["types"]]
    keys = [name for name in release.columns if name in release.content["types"]]
    rows = release.rows[:MOST_GROUPS]
    labels = [" · ".join(str(row[key]) for key in keys) for row in rows] if keys else ["all"]
    height = max(2.4, 0.3 * len(rows) + 1.4)
    figure = kind(figsize=(2.2 + 4.2 * max(1, len(names)), height), layout="constrained")
    axes = figure.subplots(1, max(1, len(names)), sharey=True, squeeze=False)[0]
    places = list(range(len(rows)))
    for axis, name in zip(axes, names, strict=False):
        values = [float(row[name]) for row in rows]
        low = [max(0.0, value - interval[name][0]) for value, interval in zip(values, release.intervals, strict=False)]
        high = [max(0.0, interval[name][1] - value) for value, interval in zip(values, release.intervals, strict=False)]
        axis.errorbar(
            values,
            places,
            xerr=[low, high],
            fmt="o",
            color="#0b5394",
            ecolor="#6fa8dc",
            elinewidth=3,
            capsize=4,
        )
        axis.set_xlabel(f"{name}, with 95 % intervals", parse_math=False)
        axis.grid(axis="x", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        if all(value >= 0 for value in values) and not _narrow(values):
            axis.set_xlim(left=0)
    axes[0].set_yticks(places, labels, parse_math=False)
    axes[0].invert_yaxis()
    figure.suptitle(f"{release.cost}, per person", fontsize=9, x=0.99, ha="right")
    return figure


def _narrow(values: list[float]) -> bool:
    """Whether the values lie so close together that an axis from zero would hide their differences."""
    return bool(values) and max(values) - min(values) < 0.3 * max(values)
