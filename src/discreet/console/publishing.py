"""Publishing a synthetic table from a browser: what it would cost first, then a job that goes on by itself, then the
table with the bounds of its errors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from discreet.console.analyst import ASKING, FORMATS, forms, parts, saved, turn
from discreet.console.pages import as_json, wants_json
from discreet.console.visits import Download, Elsewhere, Page, Place, Reply, Visit
from discreet.errors import Error
from discreet.look.pictures import Picture, Point, bars
from discreet.service.api import hold_small
from discreet.service.jobs import Job, publishing
from discreet.service.requests import Refused
from discreet.texts import visible

PATH = "/console/publish"

MOST_ROWS_SHOWN = 20
"""Synthetic rows on the page; a download has all."""

MOST_BOUNDS = 40
"""Bounds of errors on the page, of several columns together; the page as JSON has all."""

MOST_PICTURES = 6

SAVED = ("csv", "parquet")
"""The files of a synthetic table."""


@dataclass(frozen=True)
class _Wanted:
    """What the form says. Without columns, all that can be published; without a part, of all persons."""

    table: str = ""
    columns: tuple[str, ...] = ()
    epsilon: str = ""
    part: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """The same as a publication is called."""
        said: dict[str, Any] = {"table": self.table}
        said |= {"columns": list(self.columns)} if self.columns else {}
        said |= {"part": self.part} if self.part else {}
        return said | ({"epsilon": self.epsilon} if self.epsilon else {})

    @property
    def query(self) -> str:
        """The same as an address says it."""
        part = [("part", self.part)] if self.part else []
        return urlencode([("table", self.table), *(("columns", one) for one in self.columns), *part])


async def form(visit: Visit) -> Reply:
    """The form; where the address names a price, also what it would cost. Nothing is spent."""
    params = visit.request.query_params
    columns = tuple(one for one in params.getlist("columns") if one)
    part = params.get("part", "")  # with the blanks of its name
    wanted = _Wanted(visit.query("table"), columns, visit.query("epsilon").replace(",", "."), part)
    if not wanted.epsilon:
        return await _form(visit, wanted)
    try:
        async with turn(visit):
            found = await visit.service.foreseen(visit.account, wanted.said)
    except (Error, Refused) as error:
        if wants_json(visit.request):
            raise
        return await _form(visit, wanted, problem=visit.service.problem_of(error, visit.account))
    return await _form(visit, wanted, found)


async def _form(
    visit: Visit,
    wanted: _Wanted,
    found: Mapping[str, Any] | None = None,
    problem: Mapping[str, Any] | None = None,
) -> Page:
    known = await visit.service.publishable()
    table = wanted.table if wanted.table in known else next(iter(known), "")
    jobs = await visit.service.look(partial(visit.service.jobs.all, visit.account))
    balance = await visit.service.balance(visit.account)
    data = {
        "tables": known,
        "table": table,
        "columns": list(wanted.columns) or (known[table]["columns"] if table else []),
        "epsilon": wanted.epsilon,
        "part": wanted.part,
        "foreseen": found,
        "published": [_told(visit, one) for one in jobs if one.kind == "publish"],
        "prices": balance["prices"],
        "problem": problem,
    }
    words = {"request": secrets.token_urlsafe(12), "parts": parts(balance, wanted.part, "publishing")}
    return Page("publish.html", data, words, 200 if problem is None else problem["status"])


async def begin(visit: Visit) -> Reply:
    """Publishes. The same form sent twice is one job: its name goes with it."""
    columns, part = tuple(visit.lines("columns")), visit.said.get("part", "")
    wanted = _Wanted(visit.word("table"), columns, visit.word("epsilon").replace(",", "."), part)
    try:
        if not wanted.epsilon:
            raise Refused(422, "price", "no price is named", "epsilon", "write one, as 1")
        words = f"{visit.word('request') or secrets.token_urlsafe(12)}\n{as_json(wanted.said)}"
        name = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        async with turn(visit):
            job = await visit.service.begun(visit.account, publishing, wanted.said, f"console-{name}")
    except (Error, Refused) as error:
        if wants_json(visit.request):
            raise
        return await _form(visit, wanted, problem=visit.service.problem_of(error, visit.account))
    return Elsewhere(f"{PATH}/{job.job}", _told(visit, job))


def _told(visit: Visit, job: Job) -> dict[str, Any]:
    return job.to_dict(visit.service.jobs.pace)


async def published(visit: Visit) -> Reply:
    """How far a publication is; once it is done, the table."""
    number = str(visit.request.path_params["job"])
    job = await visit.service.look(partial(visit.service.jobs.of, visit.account, number))
    if job.kind != "publish":
        raise Refused(404, "job", "this job publishes no table", "job", f"{PATH} has your published tables")
    data = {"job": _told(visit, job), "released": None}
    again = _Wanted(job.tables[0], part=job.part or "").query
    words: dict[str, Any] = {"pictures": [], "most": MOST_BOUNDS, "formats": [], "again": again}
    if job.state == "done":
        shown = await visit.service.released(partial(_released, visit, job))
        data["released"], words["pictures"], words["again"] = shown
        words["formats"] = forms(SAVED)
    return Page("published.html", data, words)


def _released(visit: Visit, job: Job) -> tuple[dict[str, Any], list[Picture], str]:
    """A table in plain values with its first rows, pictures of its first columns, and what the form says of it."""
    made = visit.service.synthetic(visit.account, job.job)
    first = made.first(MOST_ROWS_SHOWN)
    data = {
        "columns": list(made.columns),
        "types": {name: made.holds.types[name] for name in made.columns},
        "rows": len(made),
        "total": made.total,
        "first": [[visible(str(value)) if value is not None else None for value in row] for row in first],
        "marginals": sorted(made.marginals, key=lambda one: (len(one["columns"]), -one["share"])),
        "counts": {name: made.counts(name) for name in made.domain},
        "columns_left_out": made.columns_left_out,
        "bounds": list(made.bounds),
        "notes": list(made.notes),
        "ended_early": bool(made.holds.more["ended_early"]),
        "declaration": made.declaration,
        "price": dict(made.cost),
        "charged": bool(made.charged),
        "left": made.left,
    }
    wanted = _Wanted(made.holds.more["name"], tuple(made.columns), part=job.part or "")
    return data, list(islice(_pictures(data), MOST_PICTURES)), wanted.query


def _pictures(released: Mapping[str, Any]) -> Iterator[Picture]:
    """Of each column with several cells how many rows each has, and by how much that may be off."""
    alone = {one["columns"][0]: one["cell"] for one in released["marginals"] if len(one["columns"]) == 1}
    for name, counts in released["counts"].items():
        if len(counts) < 2 or name not in alone:
            continue
        off, text = float(alone[name]), released["types"][name] == "text"
        points = [
            Point(
                visible(cell if text else _bin(cell)),
                float(place),
                count,
                max(0.0, count - off),
                count + off,
                f"{count:,.0f} ± {off:,.0f}",
            )
            for place, (cell, count) in enumerate(counts.items())
        ]
        yield bars(points, name, len(points))


def _bin(cell: str) -> str:
    """A bin in words, also where it is open."""
    if cell == "to":
        return "any value"
    return f"below {cell[3:]}" if cell.startswith("to ") else f"from {cell[:-3]}" if cell.endswith(" to") else cell


async def download(visit: Visit) -> Reply:
    """The table as a file."""
    number, form_ = (str(visit.request.path_params[name]) for name in ("job", "form"))
    if form_ not in SAVED:
        raise Refused(404, "output", "there is no such form of a table", "form", f"take one of {', '.join(SAVED)}")
    name, content = await visit.service.released(partial(_file, visit, number, form_))
    return Download(f"{name}.{form_}", FORMATS[form_][0], content)


def _file(visit: Visit, number: str, form_: str) -> tuple[str, bytes]:
    made = visit.service.synthetic(visit.account, number)
    hold_small(made)
    name = "".join(
        letter for letter in made.holds.more["name"] if (letter.isascii() and letter.isalnum()) or letter in "_-"
    )
    return f"{name or 'table'}-synthetic", saved(made, form_)


PLACES: Sequence[Place] = (
    Place(
        PATH,
        "Publish a table",
        ASKING,
        form,
        begin,
        "Publish",
        ("table", "columns", "epsilon", "part", "request"),
        ("columns",),
    ),
    Place(f"{PATH}/{{job}}", "A published table", ASKING, published),
    Place(f"{PATH}/{{job}}/{{form}}", "Download", ASKING, download),
)
