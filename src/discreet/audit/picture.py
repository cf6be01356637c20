"""A picture of an audit: for each subject, how much of its claim was proved to be given away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.audit.report import Report, ReportLine
from discreet.release.plot import _write, figure_class, target

FURTHEST = 2.5  # of a claim: what lies beyond stands at the edge
_RIGHT, _WRONG, _CLAIM = "#0b5394", "#cc0000", "#999999"


def plot(report: Report, path: str | Path) -> Path:
    """Draws the report to `path` (.png, .svg, .html). Raises QuestionError where that cannot be."""
    found = target(path)
    _write(_figure(report, figure_class()), found)
    return found


def _figure(report: Report, figure_class: Any) -> Any:
    lines = [line for line in report.lines if line.found is not None or line.broken]
    figure = figure_class(figsize=(11, 0.23 * len(lines) + 1.6), layout="constrained")
    axis = figure.subplots()
    places = range(len(lines))
    axis.axvline(1, color=_CLAIM, linewidth=1.5, label="claimed")
    for mark, ways, name in (
        ("o", ("exact", "change", "interaction"), "exactly"),
        ("|", ("sampled", "asked"), "at least"),
    ):
        for broken, colour in ((False, _RIGHT), (True, _WRONG)):
            points = [
                (min(FURTHEST, most / line.claim.amount if line.claim.amount else FURTHEST), place)
                for place, line in zip(places, lines, strict=True)
                if (most := line.most(*ways)) is not None and bool(line.broken) == broken and most + line.claim.amount
            ]
            if points:
                label = name + (", a finding" if broken else "")
                axis.scatter(*zip(*points, strict=True), marker=mark, s=28, color=colour, label=label, zorder=3)
    axis.set_yticks(list(places), [_label(line) for line in lines], fontsize=7, parse_math=False)
    for place, line in zip(places, lines, strict=True):
        if line.broken:
            axis.get_yticklabels()[place].set_color(_WRONG)
    axis.set_xlim(0, FURTHEST * 1.02)
    axis.set_ylim(len(lines) - 0.4, -0.6)
    axis.set_xlabel("what an attacker can prove, as a part of what was claimed")
    axis.grid(axis="y", alpha=0.2)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="lower right", fontsize=7)
    figure.suptitle(report.verdict(), fontsize=8, x=0.99, ha="right")
    return figure


def _label(line: ReportLine) -> str:
    claim = f"{line.claim.unit} {line.claim.amount:.3g}"
    return f"{'FOUND  ' if line.broken else ''}{line.subject}  ({claim})"
