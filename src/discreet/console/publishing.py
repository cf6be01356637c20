"""Publishing a synthetic table from a browser, or several that refer to one another: what it would cost first, then a
job that goes on by itself, then the tables with the bounds of their errors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from discreet.console.analyst import ASKING, FORMATS, forms, parts, saved, turn
from discreet.console.pages import as_json, wants_json
from discreet.console.visits import ConsolePage, Download, Page, Redirect, Reply, Visit
from discreet.errors import Error
from discreet.look.pictures import Picture, Point, bars
from discreet.release.values import FAR, up
from discreet.service.api import each_table, hold_small
from discreet.service.jobs import Job, publishing
from discreet.service.requests import RefusedRequest
from discreet.texts import visible

PATH = "/console/publish"

MOST_ROWS_SHOWN = 20
"""Synthetic rows on the page; a download has all."""

MOST_BOUNDS = 40
"""Bounds of errors of a table on the page, of each kind; the page as JSON has all."""

KINDS: Mapping[str, str] = {
    "": "",
    "inside": "inside: columns of the table",
    "across": "across: a column beside one of a row above, as counts of rows",
    "above": "above: columns of a row above alone, as counts of rows",
    "before": "before: a column beside the same of the row before",
    "rows": "rows: how many rows below refer to a row",
}
"""What bounds are about, of tables that refer to one another; of a single table they have no kind."""

MOST_PICTURES = 6

SAVED = ("csv", "parquet")
"""The files of a synthetic table."""


@dataclass(frozen=True)
class _PublicationForm:
    """What the form says: of one table, or of several together. Without columns, all that can be published; without a
    part, of all persons."""

    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    epsilon: str = ""
    part: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """The same as a publication is called."""
        said: dict[str, Any] = {"table": list(self.tables) if len(self.tables) > 1 else "".join(self.tables)}
        said |= {"columns": list(self.columns)} if self.columns else {}
        said |= {"part": self.part} if self.part else {}
        return said | ({"epsilon": self.epsilon} if self.epsilon else {})

    @property
    def query(self) -> str:
        """The same as an address says it."""
        part = [("part", self.part)] if self.part else []
        tables = (("table", one) for one in self.tables)
        return urlencode([*tables, *(("columns", one) for one in self.columns), *part])


async def form(visit: Visit) -> Reply:
    """The form; where the address names a price, also what it would cost. Nothing is spent."""
    params = visit.request.query_params
    tables, columns = (tuple(one for one in params.getlist(name) if one) for name in ("table", "columns"))
    part = params.get("part", "")  # with the blanks of its name
    wanted, found = _PublicationForm(tables, columns, visit.query("epsilon").replace(",", "."), part), None
    try:
        if wanted.epsilon:
            async with turn(visit):
                found = await visit.service.foreseen(visit.account, wanted.said)
        elif len(tables) > 1:
            await visit.service.related(tables)
    except (Error, RefusedRequest) as error:
        if wants_json(visit.request):
            raise
        return await _form(visit, wanted, problem=visit.service.problem_of(error, visit.account))
    return await _form(visit, wanted, found)


async def _form(
    visit: Visit,
    wanted: _PublicationForm,
    found: Mapping[str, Any] | None = None,
    problem: Mapping[str, Any] | None = None,
) -> Page:
    known, related = await visit.service.publishable(), list[dict[str, Any]]()
    chosen = [one for one in wanted.tables if one in known] or list(known)[:1]
    if len(wanted.tables) > 1:
        with suppress(Error):
            related = await visit.service.related(wanted.tables)
            chosen = [one["table"] for one in related]
    jobs = await visit.service.look(partial(visit.service.jobs.all, visit.account))
    balance = await visit.service.balance(visit.account)
    data = {
        "tables": known,
        "connected": await visit.service.connected(),
        "chosen": chosen,
        "together": related,
        "columns": list(wanted.columns) or (known[chosen[0]]["columns"] if len(chosen) == 1 else []),
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
    tables, columns = (tuple(visit.lines(name)) for name in ("table", "columns"))
    wanted = _PublicationForm(tables, columns, visit.word("epsilon").replace(",", "."), visit.said.get("part", ""))
    try:
        if not wanted.epsilon:
            raise RefusedRequest(422, "price", "no price is named", "epsilon", "write one, as 1")
        words = f"{visit.word('request') or secrets.token_urlsafe(12)}\n{as_json(wanted.said)}"
        name = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        async with turn(visit):
            job = await visit.service.begun(visit.account, publishing, wanted.said, f"console-{name}")
    except (Error, RefusedRequest) as error:
        if wants_json(visit.request):
            raise
        return await _form(visit, wanted, problem=visit.service.problem_of(error, visit.account))
    return Redirect(f"{PATH}/{job.job}", _told(visit, job))


def _told(visit: Visit, job: Job) -> dict[str, Any]:
    return job.to_dict(visit.service.jobs.pace)


async def published(visit: Visit) -> Reply:
    """How far a publication is; once it is done, the tables."""
    number = str(visit.request.path_params["job"])
    job = await visit.service.look(partial(visit.service.jobs.of, visit.account, number))
    if job.kind != "publish":
        raise RefusedRequest(404, "job", "this job publishes no table", "job", f"{PATH} has your published tables")
    data, again = {"job": _told(visit, job), "released": None}, _PublicationForm(job.tables, part=job.part or "")
    words: dict[str, Any] = {"several": len(job.tables) > 1, "shown": [], "formats": [], "again": again.query}
    if job.state == "done":
        data["released"], words["shown"] = released, _ = await visit.service.released(partial(_released, visit, job))
        words["formats"] = forms(SAVED)
        if len(job.tables) == 1:
            words["again"] = replace(again, columns=tuple(released["tables"][0]["columns"])).query
    return Page("published.html", data, words)


def _released(visit: Visit, job: Job) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was released, in plain values; of several tables, `together` has the middle bound of each kind. And what is
    shown of each table: its first bounds, pictures of its first columns, and what the address of its files says."""
    made = visit.service.synthetic(visit.account, job.job)
    several, tables = len(job.tables) > 1, [{"table": name, **_table(one)} for name, one in each_table(made).items()]
    data = {
        "tables": tables,
        "together": made.rows if several else [],
        "not_made": made.holds.more.get("not_made", []),
        "price": dict(made.cost),
        "charged": bool(made.charged),
        "left": made.left,
    }
    return data, [
        {
            "bounds": _bounds(one),
            "pictures": list(islice(_pictures(one), MOST_PICTURES)),
            "query": f"?{urlencode({'table': one['table']})}" if several else "",
        }
        for one in tables
    ]


def _table(made: Any) -> dict[str, Any]:
    """A synthetic table in plain values, with its first rows."""
    first = made.first(MOST_ROWS_SHOWN)
    return {
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
        "refers": dict(made.holds.more.get("refers", {})),
        "declaration": made.declaration,
    }


def _bounds(made: Mapping[str, Any]) -> list[tuple[str, list[Any], int]]:
    """The bounds of a table by what they are about: that in words, the first of them, and how many there are."""
    kinds = {kind: [one for one in made["marginals"] if one.get("about", "") == kind] for kind in KINDS}
    return [(KINDS[kind], found[:MOST_BOUNDS], len(found)) for kind, found in kinds.items() if found]


def _pictures(made: Mapping[str, Any]) -> Iterator[Picture]:
    """Of each column with several cells how many rows each has, and by how much that may be off; of several tables,
    also of how many rows below refer to a row."""
    own = [one for one in made["marginals"] if len(one["columns"]) == 1 and one.get("about") not in ("above", "before")]
    alone = {one["columns"][0]: one["cell"] for one in own}
    for name, counts in made["counts"].items():
        if len(counts) < 2 or alone.get(name, FAR) >= FAR:  # of a table that ended early, nothing may be known
            continue
        off, text = float(alone[name]), made["types"].get(name) == "text"
        points = [
            Point(
                visible(cell if text else _bin(cell)),
                float(place),
                count,
                max(0.0, count - off),
                count + off,
                f"{count:,.0f} ± {up(off):,.0f}",
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
    """A table as a file; of several, the one that is named."""
    number, form_ = (str(visit.request.path_params[name]) for name in ("job", "form"))
    if form_ not in SAVED:
        raise RefusedRequest(
            404, "output", "there is no such form of a table", "form", f"take one of {', '.join(SAVED)}"
        )
    named = visit.request.query_params.get("table")
    name, content = await visit.service.released(partial(_file, visit, number, form_, named))
    return Download(f"{name}.{form_}", FORMATS[form_][0], content)


def _file(visit: Visit, number: str, form_: str, named: str | None) -> tuple[str, bytes]:
    tables = each_table(visit.service.synthetic(visit.account, number))
    found = next(iter(tables)) if named is None and len(tables) == 1 else named
    if found is None or found not in tables:
        fix = f"name one: ?table={', or '.join(tables)}"
        raise RefusedRequest(404, "output", "which of these tables is to be taken is not said", "table", fix)
    hold_small(tables[found])
    name = "".join(letter for letter in found if (letter.isascii() and letter.isalnum()) or letter in "_-")
    return f"{name or 'table'}-synthetic", saved(tables[found], form_)


PLACES: Sequence[ConsolePage] = (
    ConsolePage(
        PATH,
        "Publish tables",
        ASKING,
        form,
        begin,
        "Publish",
        ("table", "columns", "epsilon", "part", "request"),
        ("table", "columns"),
    ),
    ConsolePage(f"{PATH}/{{job}}", "What was published", ASKING, published),
    ConsolePage(f"{PATH}/{{job}}/{{form}}", "Download", ASKING, download),
)
