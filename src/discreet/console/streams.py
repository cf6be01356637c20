"""The pages of declared streams: what they are, what was released of them, and when more is due.

All of it is read from the ledger: no page goes on with a stream, opens its secret state or the key of it, or charges.
They are the owner's alone: what a stream released is charged to the whole budget and to no analyst's own, so an analyst
who read it here would learn more than that analyst's budget promises.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from datetime import UTC
from functools import partial
from itertools import islice
from typing import Any

from discreet.catalog.model import DeclaredStream
from discreet.console.analyst import FORMATS, MOST_SHOWN, cells, forms, saved, written
from discreet.console.visits import ConsolePage, Download, Page, Reply, Visit
from discreet.errors import Error
from discreet.ledger import TOTAL
from discreet.look.pictures import Picture, Point, line
from discreet.release import Release
from discreet.release.render import estimate
from discreet.release.told import told
from discreet.service.requests import RefusedRequest
from discreet.service.roles import Role
from discreet.texts import visible
from discreet.trusted.ring_a.exact import show

PATH = "/console/streams"
OWNING = frozenset({Role.OWNER})

PERIODS = 30
"""The latest periods that stand on a page and in its JSON; a file has all."""

MOST_READ = 20_000
"""Rows, one for each period and group, that one page is made of."""

MOST_SAVED = 200_000
"""Rows of a file."""

MOST_PICTURES = 6
MOST_POINTS = 400

SAVED = ("csv", "json")


async def streams(visit: Visit) -> Reply:
    """The declared streams, each with what is released of it."""
    return Page("streams.html", {"streams": await written(visit, partial(_all, visit))})


def _all(visit: Visit) -> dict[str, Any]:
    curator = visit.service.curator
    found: dict[str, Any] = {}
    for name, one in curator.declaration.streams.items():
        released, problem = None, None
        try:
            released = curator.stream(name).released
        except Error as error:  # of one stream: the others are shown all the same
            problem = visit.service.problem_of(error, visit.account)
        found[name] = facts(one, released, datetime.datetime.now(UTC).date()) | {"problem": problem}
    return found


def facts(one: DeclaredStream, released: int | None, today: datetime.date) -> dict[str, Any]:
    """What is declared of a stream, and how far it is: `due` periods are over and not released, and the next is due
    on the day `next`, the first after its end. None of both where it is not known how many are released."""
    known = {
        "table": one.table,
        "date": one.date,
        "keys": list(one.keys),
        "start": one.start.isoformat(),
        "end": one.until(one.horizon - 1).isoformat(),
        "days": one.days,
        "horizon": one.horizon,
        "rows_per_period": one.rows,
        "periods_per_person": one.periods,
        "price": {"epsilon": show(one.epsilon), "delta": float(one.delta)},
        "released": released,
        "due": None,
        "next": None,
    }
    if released is not None:
        known["due"] = max(0, one.over(today) - released)
        last = one.until(released) if released < one.horizon else datetime.date.max
        known["next"] = (last + datetime.timedelta(1)).isoformat() if last < datetime.date.max else None
    return known


async def stream(visit: Visit) -> Reply:
    """What was released of a stream: its latest periods, and pictures of its running totals."""
    return await written(visit, partial(_page, visit))


def _open(visit: Visit) -> tuple[DeclaredStream, Any]:
    """The stream that the path names. Raises RefusedRequest, and EngineError where the owner has frozen everybody for
    its table: what was released is not given again then."""
    curator, name = visit.service.curator, str(visit.request.path_params["stream"])
    one = curator.declaration.streams.get(name)
    if one is None:
        raise RefusedRequest(404, "stream", "this stream is not declared", "stream", f"{PATH} has those that are")
    curator.ledger.hold_open([one.table], TOTAL)
    return one, curator.stream(name)


def _page(visit: Visit) -> Page:
    one, opened = _open(visit)
    released = opened.released
    known = facts(one, released, datetime.datetime.now(UTC).date())
    data = {"name": one.name, "stream": known, "latest": None}
    words: dict[str, Any] = {"cells": [], "periods": 0, "rows": 0, "pictures": [], "formats": forms(SAVED)}
    if released:
        groups = opened.groups
        most = max(1, MOST_READ // groups)
        whole = opened.latest(most)
        latest = whole if min(released, most) <= PERIODS else opened.latest(min(PERIODS, most))
        periods = len(latest.rows) // groups
        order = (first + place for first in range((periods - 1) * groups, -1, -groups) for place in range(groups))
        data["latest"] = told(latest)
        words |= {
            "cells": cells(latest, order),
            "numbers": [name not in latest.holds.types for name in latest.columns],
            "periods": periods,
            "rows": len(latest.rows),
            "most": MOST_SHOWN,
            "groups": groups,
            "pictures": list(islice(_pictures(whole, one.keys, groups), MOST_PICTURES)),
        }
    return Page("stream.html", data, words)


def _pictures(release: Release, keys: Sequence[str], groups: int) -> Iterator[Picture]:
    """Of each group its running total along the periods, with its band; none where there is one period alone."""
    rows, intervals = release.rows, release.intervals
    periods = len(rows) // groups
    if periods < 2:
        return
    step = -(-periods // MOST_POINTS)
    for place in range(groups):
        points = []
        for number in range((periods - 1) % step, periods, step):  # the latest is there in any case
            row, (low, high) = rows[number * groups + place], intervals[number * groups + place]["total"]
            total, until = row["total"], row["until"]
            words = estimate(total, (low, high))
            points.append(Point(str(until), float(until.toordinal()), float(total), float(low), float(high), words))
        name = ", ".join(visible(str(rows[place][key])) for key in keys)
        yield line(points, f"total, {name}" if name else "total", "until")


async def download(visit: Visit) -> Reply:
    """All periods as a file."""
    name, content = await visit.service.released(partial(_file, visit))
    return Download(name, FORMATS[str(visit.request.path_params["form"])][0], content)


def _file(visit: Visit) -> tuple[str, bytes]:
    one, opened = _open(visit)
    form = str(visit.request.path_params["form"])
    if form not in SAVED:
        raise RefusedRequest(
            404, "output", "there is no such form of a stream", "form", f"take one of {', '.join(SAVED)}"
        )
    if opened.released * opened.groups > MOST_SAVED:
        fix = f"write it where the service runs: discreet stream DECLARATION {one.name} --all -o FILE"
        raise RefusedRequest(422, "size", f"it has more than {MOST_SAVED:,} rows", "form", fix)
    return f"{one.name}.{form}", saved(opened.releases, form)


PLACES: Sequence[ConsolePage] = (
    ConsolePage(PATH, "Streams", OWNING, streams, None, "Streams"),
    ConsolePage(f"{PATH}/{{stream}}", "A stream", OWNING, stream),
    ConsolePage(f"{PATH}/{{stream}}/{{form}}", "Download", OWNING, download),
)
