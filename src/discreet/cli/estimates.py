"""`discreet estimate --browser`: the owner's page of a collection, for whoever has started the command alone."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import math
import threading
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from discreet.errors import Error
from discreet.local.beside import asked, running
from discreet.look import style
from discreet.look.page import escape, figure, points, table
from discreet.look.pictures import MOST_GROUPS, Point, bars
from discreet.release.render import estimate
from discreet.service.loopback import Message, Receive, Send
from discreet.texts import visible

MOST_ROWS = 100
"""Of more values the largest are shown."""

WIDE = 5
"""Percentage points: a wider interval is said to be wide."""

JSON, HTML = "application/json", "text/html"

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
<script src="estimates.js" defer></script>
<main>
<h1>{title}</h1>
<p class="soft"><span id="looked">Looked at {moment}.</span> <a href="{again}">Look again</a>
<label class="beside" hidden id="following"><input type="checkbox" id="follow" checked> every 5 seconds</label></p>
<div id="live" data-stamp="{stamp}">
{body}
</div>
</main>
</html>
"""


class EstimatePages:
    """The paths below the root: / (a page, or JSON), /sizes (what says whether anything has come), and its files.

    The same reports are estimated once, however often somebody looks; and where no collector runs, the file is opened
    only once it has changed, so that a collector can begin with it.
    """

    def __init__(self, path: str, said: Mapping[str, Any]) -> None:
        self._path, self._said, self._lock = path, said, threading.Lock()
        self._file: tuple[object, dict[str, Any]] | None = None
        self._kept: dict[str | None, tuple[str, dict[str, Any]]] = {}
        script = (files("discreet.cli") / "estimates.js").read_text("utf-8")
        self._files = {"/style.css": ("text/css", style()), "/estimates.js": ("text/javascript", script)}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:  # noqa: ARG002
        status, kind, text = await self._reply(scope)
        body = text.encode("utf-8", "replace")
        headers = [(b"content-type", f"{kind}; charset=utf-8".encode()), (b"vary", b"accept")]
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _reply(self, scope: Message) -> tuple[int, str, str]:
        path = scope["path"].removeprefix(scope["root_path"])
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "text/plain", "This page is read alone.\n"
        if path in self._files:
            return 200, *self._files[path]
        if path == "/sizes":
            return await self._sized()
        if path != "/":
            return 404, "text/plain", "There is nothing here.\n"
        return await self._shown(scope)

    async def _sized(self) -> tuple[int, str, str]:
        try:
            found = await asyncio.to_thread(self._alone, self._sizes)
        except Error as error:
            return 503, JSON, json.dumps(error.to_dict())
        return 200, JSON, json.dumps({"stamp": _stamp(found), "moment": _moment()})

    async def _shown(self, scope: Message) -> tuple[int, str, str]:
        window = parse_qs(scope["query_string"].decode("latin-1")).get("window", [None])[0] or self._said["window"]
        accepted = b",".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1").lower()
        as_json = JSON in accepted and HTML not in accepted
        again = "./" if window is None else f"?window={quote(window)}"
        try:
            stamp, found = await asyncio.to_thread(self._alone, partial(self._estimates, window))
        except Error as error:
            status = 503 if error.exit_code == 4 else 400
            if as_json:
                return status, JSON, json.dumps(error.to_dict())
            body = f'<p class="note bad">{escape(str(error))}</p>\n<p><a href="./">The latest reports</a></p>'
            title = "Estimates"
            stamp = ""
        else:
            if as_json:
                plain = [{key: one[key] for key in one if key != "text"} for one in found["estimates"]]
                return 200, JSON, json.dumps({**found, "estimates": plain}, ensure_ascii=False)
            status, title, body = 200, found["collection"], page(found, self._said["confidence"], window)
        words = {"title": escape(title), "stamp": stamp, "moment": _moment(), "again": escape(again)}
        return status, HTML, _PAGE.format(**words, body=body)

    def _alone(self, look: Any) -> Any:
        with self._lock:
            return look()

    def _sizes(self) -> dict[str, Any]:
        if running(self._path):
            self._file = None
            return asked(self._path, {"sizes": True})
        if self._file is None or self._file[0] != self._state():
            found = asked(self._path, {"sizes": True})
            self._file = self._state(), found
        return self._file[1]

    def _state(self) -> object:
        try:
            state = Path(self._path).stat()
        except OSError:
            return None
        return state.st_ino, state.st_size, state.st_mtime_ns

    def _estimates(self, window: str | None) -> tuple[str, dict[str, Any]]:
        stamp = _stamp(self._sizes())
        if self._kept.get(window, ("",))[0] != stamp:
            found = asked(self._path, {**self._said, "window": window, "empty": True})
            self._file = None if self._file is None else (self._state(), self._file[1])
            self._kept = {window: (stamp, found)}
        return self._kept[window]


def _stamp(sizes: Mapping[str, Any]) -> str:
    """A word that is another one as soon as there are other reports."""
    return hashlib.sha256(json.dumps([sizes["windows"], sizes["running"]]).encode()).hexdigest()[:16]


def _moment() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def page(found: Mapping[str, Any], confidence: float, window: str | None) -> str:
    """What is asked, how many reports came, and each estimate, as HTML."""
    windows = {one["window"]: one["reports"] for one in found["windows"]}
    shown = window or next(reversed(windows), "")
    kept = "" if found["window"] == "ever" or not shown else f" of {shown}"
    came = f"{_reports(windows.get(shown, 0))}{kept}. "
    came += "A collector takes reports now." if found["running"] else "No collector runs: this is what the file holds."
    several = len(found["estimates"]) > 1
    parts = [
        f"<p>{escape(found['question'])}</p>",
        f"<p><strong>{escape(came)}</strong></p>",
        '<p class="note">This page costs nobody any privacy. Each answer was changed by chance on the device of the '
        "person who gave it, before it was sent. The numbers below are calculated from these reports. The true answers "
        "are neither in the file nor on this page.</p>",
        *(_section(one, confidence, several) for one in found["estimates"]),
        f"<h2>For all of these numbers</h2>\n{points(_for_all(found))}" if windows.get(shown) else "",
        _windows(windows, found["window"], shown),
    ]
    return "\n".join(parts)


def _reports(number: int) -> str:
    return f"{number:,} report{'s' * (number != 1)}"


def _section(one: Mapping[str, Any], confidence: float, several: bool) -> str:
    sure = f"{confidence * 100:g} %"
    title = one["question"] or one["attribute"] or "Answers"
    said = f"About this question: {_reports(one['reports'])}. " if several else ""
    if not one["reports"]:
        return f"<h2>{escape(title)}</h2>\n<p>No report of this window is about this question yet.</p>"
    heads, rows, drawn, told = _drawn(one, sure)
    if not rows:
        said += "No text is shared by so many people that it can be found among so few reports."
        return f"<h2>{escape(title)}</h2>\n<p>{escape(said)}</p>"
    picture = bars(drawn, "Mean" if one["kind"] == "number" else "Share of respondents in %", len(rows), sure)
    name = f"{one['attribute']}: " if several else ""
    shapes = [False, *[True] * (len(heads) - 1)]
    return "\n".join(
        [
            f"<h2>{escape(title)}</h2>",
            f"<p>{escape(said)}</p>" if said else "",
            '<div class="halves"><div>',
            table(told, heads, rows, numbers=shapes, name=name + told),
            _quartiles(one, sure, name),
            f"</div><div>{figure(picture.svg, picture.caption, name=f'{name}picture')}</div></div>",
            "<h3>What may mislead</h3>",
            points(_misleading(one, confidence)),
        ]
    )


def _drawn(one: Mapping[str, Any], sure: str) -> tuple[list[str], list[list[str]], list[Point], str]:
    """Heads and rows of a table, what is drawn of it, and its caption."""
    interval = f"{sure} interval"
    if one["kind"] == "number":
        rows = [["mean", _number(row), _ends(row)] for row in one["rows"]]
        drawn = [Point("mean", 0, row["estimate"], row["low"], row["high"], _number(row)) for row in one["rows"]]
        return ["of all answers", "estimate", interval], rows, drawn, "The mean"
    heads, chosen = ["answer", "share in %", interval], one.get("ranges", one["rows"])
    told = "Shares of ranges; `discreet estimate --json` has each value" if "ranges" in one else "Shares of the answers"
    if len(chosen) > MOST_ROWS:
        chosen = sorted(chosen, key=lambda row: -row["estimate"])[:MOST_ROWS]
        told = f"The {MOST_ROWS} largest of {len(one['rows']):,} shares; `discreet estimate --json` has all"
    named = [(_between(row) if "ranges" in one else visible(row["value"]), _percents(row)) for row in chosen]
    rows = [[name, _number(row), _ends(row)] for name, row in named]
    if one["kind"] == "values":
        heads.append("fitted")
        rows = [[*cells, f"{row['consistent']:,.{_digits(row)}f}"] for cells, (_, row) in zip(rows, named, strict=True)]
    drawn = [
        Point(name, at, row["estimate"], row["low"], row["high"], f"{_number(row)} %")
        for at, (name, row) in enumerate(named[:MOST_GROUPS])
    ]
    return heads, rows, drawn, told


def _between(row: Mapping[str, float]) -> str:
    return f"{row['from']:g}" if row["from"] == row["to"] else f"{row['from']:g} to {row['to']:g}"


def _percents(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: 100 * row[name] for name in ("estimate", "low", "high", "consistent") if name in row}


def _number(row: Mapping[str, float]) -> str:
    return estimate(row["estimate"], (row["low"], row["high"]))


def _wide(row: Mapping[str, float]) -> str:
    return _number(row).partition("±")[2]


def _digits(row: Mapping[str, float]) -> int:
    """Digits behind the point: one more than the width of the interval asks for."""
    wide = (row["high"] - row["low"]) / 2
    return max(0, min(9, 1 - math.floor(math.log10(wide)))) if wide > 0 else 0


def _ends(row: Mapping[str, float]) -> str:
    return f"{row['low']:,.{_digits(row)}f} to {row['high']:,.{_digits(row)}f}"


def _quartiles(one: Mapping[str, Any], sure: str, name: str) -> str:
    if one["kind"] != "ordered":
        return ""
    rows = [
        [f"{row['share'] * 100:g} %", f"{row['estimate']:g}", f"{row['low']:g} to {row['high']:g}"]
        for row in one["quartiles"]
    ]
    heads, told = ["so many respondents", "are at or below", f"{sure} interval"], "Quartiles and median"
    return table(told, heads, rows, numbers=[True] * 3, name=name + told)


def _misleading(one: Mapping[str, Any], confidence: float) -> list[str]:
    rows = one.get("ranges", one["rows"])
    wide = max((row["high"] - row["low"]) / 2 for row in rows)
    lines = [f"{warning[:1].upper()}{warning[1:]}." for warning in one["warnings"]]
    if one["kind"] == "number":
        lines.append(f"The mean is known to ±{_wide(rows[0])}. Half of that takes four times as many reports.")
    elif 100 * wide > WIDE:
        needed = one["reports"] * (100 * wide / WIDE) ** 2
        step = 10 ** max(0, math.floor(math.log10(needed)) - 1)
        lines.append(
            f"There are few reports, so intervals are wide: up to ±{math.ceil(100 * wide)} percentage points. "
            f"For ±{WIDE}, about {math.ceil(needed / step) * step:,} reports about this question are needed."
        )
    missed = len(rows) * (1 - confidence)
    if missed >= 0.5:
        lines.append(
            f"Each interval by itself holds the truth with {confidence * 100:g} % chance. Of these {len(rows):,} "
            f"intervals, about {max(1, round(missed)):,} may not."
        )
    if one["kind"] != "number" and any(row["estimate"] < 0 or row["estimate"] > 1 for row in rows):
        lines.append("Shares below 0 % or above 100 % are no mistake: chance makes them. Add them up as they are.")
    if one["kind"] == "values":
        lines.append(
            "Fitted shares add up to 100 and are never below 0, which makes small ones too small: good for pictures."
        )
    if one["kind"] == "text":
        lines.append("Texts that few people share are not found. Those at the end of the list are a little too high.")
    elif len(one["rows"]) > MOST_ROWS and one["kind"] == "values":
        lines.append("The largest of many estimates are a little too high: chance has helped to choose them.")
    lines.append(f"One made-up report can count as much as {one['weight']:.1f} respondents.")
    return lines


def _for_all(found: Mapping[str, Any]) -> list[str]:
    lines = ["They are about those who sent a report. Those who did not may differ."]
    if found["running"]:
        lines.append("Reports still come, so the numbers change while you look.")
    if found["window"] != "ever":
        lines.append("The days on which windows begin are those of UTC.")
    return lines


def _windows(windows: Mapping[str, int], kind: str, shown: str) -> str:
    """How many reports came in each window, the latest first, each leading to its estimates."""
    if kind == "ever" or not windows:
        return ""
    rows = "\n".join(
        f'<tr><th scope=row><a href="?window={quote(name)}"{" aria-current=page" * (name == shown)}>{escape(name)}</a>'
        f"</th><td class=number>{reports:,}</td></tr>"
        for name, reports in reversed([*windows.items()])
    )
    return (
        f'<h2>Reports by {kind}</h2>\n<div class="box{" high" * (len(windows) > MOST_ROWS // 3)}" role="region" '
        f'tabindex="0" aria-label="Reports by {kind}"><table><caption>Each {kind} has its own estimates</caption>'
        f"<thead><tr><th scope=col>{kind}</th><th scope=col class=number>reports</th></tr></thead>"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )
