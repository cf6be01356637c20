"""A picture of an audit: for each subject, how much of its claim was proved to be given away. As a page, what was found
stands first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.audit.report import Report, ReportLine
from discreet.look.page import document, escape, points, table
from discreet.release.plot import figure_class, shown, target, write

FURTHEST = 2.5  # of a claim: what lies beyond stands at the edge
_RIGHT, _WRONG, _CLAIM = "#0b5394", "#cc4b4b", "#74797e"


def plot(report: Report, path: str | Path) -> Path:
    """Draws the report to `path` (.png, .svg, .html). Raises QuestionError where that cannot be."""
    found = target(path)
    figure = _figure(report, figure_class())
    if found.suffix.lower() == ".html":
        found.write_text(_page(report, figure), "utf-8")
    else:
        write(figure, found, "")
    return found


def _page(report: Report, figure: Any) -> str:
    """What an owner has to know stands in the first lines: whether a promise was broken, and what that means."""
    broken = len(report.findings)
    body = ["<h1>Audit of the privacy promises</h1>"]
    if broken:
        words = "A promise is broken." if broken == 1 else f"{broken:,} promises are broken."
        body.append(
            f'<div class="note bad"><p class="big">{words}</p><p>An attacker can learn more about a person than'
        )
        body.append("was promised. Ask nothing more, release nothing more, and report what stands here.</p>")
        body.append(points(report.finding_in_words(one) for one in report.findings) + "</div>")
    else:
        body.append('<div class="note good"><p class="big">No promise was found broken.</p><p>Our own attacker tried ')
        body.append(f"{len(report.lines):,} things and could prove of none that it tells more about a person than ")
        body.append("promised. That is no proof that nobody can.</p></div>")
    about = f"of {report.declaration}" if report.declaration else "of the mechanisms; no declaration was given"
    body.append(
        f"<p>{escape(about[0].upper() + about[1:])}, on made-up rows: no private row was read, and nothing spent. "
    )
    body.append(f"{escape(report.verdict())}</p>")
    body.append(shown(figure))
    body.append("<h2>What was tried</h2>")
    words = (
        "For each subject: what is promised at most, what an attacker gets exactly or at least, whether the noise fits"
    )
    body.append(table(words, report.HEADS, report.cells(), numbers=[False, True, True, True, True, False]))
    return document("Audit of the privacy promises", "\n".join(body))


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
    worst = max(lines, key=lambda line: line.part, default=None)
    figure.said = f"Points of {len(lines):,} subjects along one axis: which part of its claim an attacker can prove"
    if worst is not None:
        figure.said += f"; the largest is {worst.part:.2f} of the claim, of {worst.subject}"
    figure.said += "; at 1 stands a line, the claim."
    return figure


def _label(line: ReportLine) -> str:
    claim = f"{line.claim.unit} {line.claim.amount:.3g}"
    return f"{'FOUND  ' if line.broken else ''}{line.subject}  ({claim})"
