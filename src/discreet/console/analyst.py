"""The pages of those who ask: tables, the editor with its live check, answers, what was asked before, what is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup, escape

from discreet.console.pages import as_json, wants_json
from discreet.console.pictures import chart, meter
from discreet.console.requests import count_open
from discreet.console.visits import ConsolePage, Download, Page, Redirect, Reply, Visit
from discreet.curator.history import as_entry
from discreet.dialect.table import BY_NAME
from discreet.errors import Error
from discreet.release import Release
from discreet.release.render import estimate
from discreet.release.told import told
from discreet.release.values import FAR
from discreet.service.requests import RefusedRequest
from discreet.service.roles import Role

_Result = TypeVar("_Result")

ASKING = frozenset({Role.OWNER, Role.ANALYST})
ALL = ASKING | {Role.AUDITOR}

MOST_VALUES = 24
"""Public values of a column that are shown at once; the others are a click away."""

MOST_NAMED = 200
"""Public values of a column that the editor proposes."""

MOST_ANSWERS = 20
"""Answers of an account that are kept in memory, to be looked at and downloaded again; the ledger keeps all."""

MOST_BYTES = 1 << 24
"""How large they are together, as the ledger stores them; the latest is kept in any case."""

MOST_SHOWN = 500
"""Rows of an answer on its page."""

MOST_READ = 2_000
"""Entries of the ledger that one page of a history is found in."""

LONGEST_QUESTION = 20_000

AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE_CONT", "MIN", "MAX"),
    *("STDDEV", "VARIANCE", "CORR", "COVAR_SAMP", "REGR_SLOPE", "APPROX_TOP_K"),
)
WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "ON", "USING", "AS"),
    *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "IS NOT NULL", "CASE WHEN", "THEN", "ELSE", "END"),
    *("COUNT(*)", "COUNT(DISTINCT", "WITH", "ROLLUP", "CUBE", "DATE", "CURRENT_DATE"),
)
"""What the editor proposes besides names; docs/dialect.md has the whole."""

FORMATS: Mapping[str, tuple[str, str]] = {
    "csv": ("text/csv; charset=utf-8", "CSV"),
    "json": ("application/json", "JSON"),
    "html": ("text/html; charset=utf-8", "a page"),
    "parquet": ("application/vnd.apache.parquet", "Parquet"),
}


# tables


async def tables(visit: Visit) -> Reply:
    """What may be asked about: declarations alone."""
    known = dict(visit.service.tables)
    return Page("tables.html", {"tables": known}, {"most": MOST_VALUES, "joined": _joined(known)})


def _joined(known: Mapping[str, Mapping[str, Any]]) -> str:
    """How two tables with a column for the person are joined; empty where there are no two with plain names."""
    found = [(name, table["person"]) for name, table in known.items() if table["person"] and not table["public"]]
    named = [(name, person) for name, person in found if name.isidentifier() and person.isidentifier()]
    if len(named) < 2:
        return ""
    (first, one), (second, other) = named[:2]
    return f"{first} JOIN {second} ON {first}.{one} = {second}.{other}"


async def names(visit: Visit) -> Reply:
    """What the editor proposes."""
    found = {
        name: {
            column: {"type": known["type"], "values": [str(value) for value in (known["values"] or [])[:MOST_NAMED]]}
            for column, known in table["columns"].items()
        }
        for name, table in visit.service.tables.items()
    }
    return Page("names.html", {"tables": found, "functions": _functions(), "words": list(WORDS)})


@cache
def _functions() -> list[str]:
    return sorted({*AGGREGATES, *(name.upper() for name in BY_NAME if name.replace("_", "").isalnum())})


# the editor


@dataclass(frozen=True)
class _EditorForm:
    """What stands in the editor's form."""

    question: str = ""
    by: str = "epsilon"
    epsilon: str = ""
    column: str = ""
    error: str = ""
    afresh: str = ""
    part: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """The same as a question is asked. Raises RefusedRequest."""
        if not self.question:
            raise RefusedRequest(
                422, "question", "there is no question yet", "question", "write one: SELECT COUNT(*) AS n FROM …"
            )
        if len(self.question) > LONGEST_QUESTION:
            raise RefusedRequest(
                413, "size", f"a question has at most {LONGEST_QUESTION:,} letters", "question", "ask less"
            )
        how = {"question": self.question, **({"reuse": False} if self.afresh else {})}
        how |= {"part": self.part} if self.part else {}
        if self.by == "within":
            if not self.column or not self.error:
                fix = "name a column of the answer, and the largest error that it may have"
                raise RefusedRequest(422, "within", "no error is named", "error", fix)
            return {**how, "within": {self.column: self.error}}
        return {**how, **({"epsilon": self.epsilon} if self.epsilon else {})}

    @classmethod
    def of(cls, visit: Visit, sent: bool) -> _EditorForm:
        """What was sent, or what the address says."""
        word = visit.word if sent else visit.query
        by = "within" if word("by") == "within" else "epsilon"
        epsilon, error = (word(name).replace(",", ".") for name in ("epsilon", "error"))
        part = (visit.said if sent else visit.request.query_params).get("part", "")  # with the blanks of its name
        return cls(word("question"), by, epsilon, word("column"), error, "yes" if word("afresh") else "", part)


async def editor(visit: Visit) -> Reply:
    """The editor. What the address says stands in it; nothing is asked yet."""
    return await _editor(visit, _EditorForm.of(visit, sent=False))


async def _editor(visit: Visit, draft: _EditorForm, problem: Mapping[str, Any] | None = None) -> Page:
    balance = await visit.service.balance(visit.account)
    data = {**vars(draft), "balance": balance, "problem": problem}
    words = {
        "request": secrets.token_urlsafe(12),
        "seconds": visit.service.curator.declaration.limits.answer_seconds or 0,
        "example": _example(visit),
        "parts": parts(balance, draft.part, "questions"),
    }
    return Page("ask.html", data, words, 200 if problem is None else problem["status"])


def parts(balance: Mapping[str, Any], chosen: str, priced: str) -> list[tuple[Markup, str, str, bool]]:
    """The parts that a question can be about, or a table: each as the form sends it, to the letter; its name; the
    largest price that is left for what is `priced`; whether it is chosen. One that is chosen and not declared any more
    stays, to be refused: without it, the question would be about all."""
    found = {name: str(one["prices"][priced]) for name, one in balance.get("parts", {}).items()}
    found |= {chosen: "0"} if chosen and chosen not in found else {}
    return [(escape(name), name, most, name == chosen) for name, most in found.items()]


def _example(visit: Visit) -> str:
    """A question that can be asked here."""
    about = [(name, table) for name, table in visit.service.tables.items() if not table["public"]]
    if not about:
        return "SELECT COUNT(*) AS n FROM …"
    name, table = about[0]
    keys = [column for column, known in table["columns"].items() if known["values"] and column.isidentifier()]
    if keys and name.isidentifier():
        return f"SELECT {keys[0]}, COUNT(*) AS n FROM {name} GROUP BY {keys[0]}"
    return f"SELECT COUNT(*) AS n FROM {name}" if name.isidentifier() else f'SELECT COUNT(*) AS n FROM "{name}"'


def turn(visit: Visit) -> asyncio.Lock:
    """Of an account the console asks one thing at a time: what comes next waits, and is not refused."""
    found = visit.kept.setdefault("turn", asyncio.Lock())
    assert isinstance(found, asyncio.Lock)
    return found


async def written(visit: Visit, function: Callable[[], _Result]) -> _Result:
    """Writes out what may be long: of whoever looks at it one thing at a time, and in threads of its own."""
    writing = visit.kept.setdefault("writing", asyncio.Lock())
    assert isinstance(writing, asyncio.Lock)
    async with writing:
        return await visit.service.write(function)


async def check(visit: Visit) -> Reply:
    """What a question would cost and how far off its answer would be, while it is written. Of what waits only the
    latest is looked at."""
    number = visit.kept["latest"] = visit.kept.get("latest", 0) + 1
    try:
        said = _EditorForm.of(visit, sent=True).said
        async with turn(visit):
            if number != visit.kept["latest"]:
                raise RefusedRequest(409, "newer", "a newer draft is looked at", "question", "look at that one")
            explained = await visit.service.explained(visit.account, said)
    except (Error, RefusedRequest) as error:
        if wants_json(visit.request):
            raise
        return Page("check.html", {"problem": visit.service.problem_of(error, visit.account)})
    data = explained.to_dict()
    return Page(
        "check.html", {"problem": None, **data}, {"plain": json.dumps(_for_slider(data), allow_nan=False), "far": FAR}
    )


def _for_slider(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the slider between price and error needs."""
    return {"epsilon": data["price"]["epsilon"], "errors": data["expected_error"]}


# answers


@dataclass(frozen=True)
class _KeptAnswer:
    """An answer that is kept in memory: of a part alone, or of all rows where that is empty."""

    question: str
    part: str
    release: Release
    warnings: Sequence[str]
    size: int


def size_of_answers(kept: Mapping[str, Any]) -> int:
    """How large the answers are that are kept for somebody, as the ledger stores them."""
    return sum(one.size for one in kept.get("answers", {}).values())


def _answers(visit: Visit) -> dict[str, _KeptAnswer]:
    found: dict[str, _KeptAnswer] = visit.kept.setdefault("answers", {})
    return found


async def ask(visit: Visit) -> Reply:
    """Asks. The same form sent twice is one question: its name goes with it."""
    draft = _EditorForm.of(visit, sent=True)
    try:
        said = draft.said
        once = hashlib.sha256(
            f"{visit.word('request') or secrets.token_urlsafe(12)}\n{as_json(said)}".encode("utf-8", "surrogatepass")
        ).hexdigest()
        name = once[:32]
        visit.kept["latest"] = visit.kept.get("latest", 0) + 1  # no check comes before this
        async with turn(visit):
            answers = _answers(visit)
            if name in answers:
                await visit.service.hold_open(visit.account, draft.question)
            else:
                release, warnings = await visit.service.asked(visit.account, said, f"console-{name}")
                size = len(await written(visit, release.holds.to_json))
                answers[name] = _KeptAnswer(draft.question, draft.part, release, warnings, size)
                while len(answers) > MOST_ANSWERS or (size_of_answers(visit.kept) > MOST_BYTES and len(answers) > 1):
                    del answers[next(iter(answers))]
    except (Error, RefusedRequest) as error:
        if wants_json(visit.request):
            raise
        return await _editor(visit, draft, visit.service.problem_of(error, visit.account))
    data = await written(visit, partial(_answer_data, name, answers[name])) if wants_json(visit.request) else {}
    return Redirect(f"/console/answers/{name}", data)


def _answer_data(name: str, answer: _KeptAnswer) -> dict[str, Any]:
    asked = {"answer": name, "question": answer.question, "part": answer.part}
    return {**asked, **told(answer.release), "warnings": list(answer.warnings)}


async def _of(visit: Visit) -> tuple[str, _KeptAnswer]:
    """An answer that is kept. Raises RefusedRequest, and EngineError where the owner has frozen questions like its
    own."""
    name = str(visit.request.path_params["answer"])
    found = _answers(visit).get(name)
    if found is None:
        fix = "ask the same question at the same price again: the ledger has its answer, and it is free"
        raise RefusedRequest(404, "answer", "this answer is not kept here any more", "answers", fix)
    await visit.service.hold_open(visit.account, found.question)
    return name, found


async def answer(visit: Visit) -> Reply:
    """An answer that was given: looked at again, nothing is asked and nothing is paid."""
    return await written(visit, partial(_answer_page, *await _of(visit)))


def _answer_page(name: str, found: _KeptAnswer) -> Page:
    release = found.release
    words = {
        "cells": cells(release, range(len(release.rows))),
        "numbers": [release.holds.types.get(key, "number") in ("integer", "number") for key in release.columns],
        "pictures": chart(release),
        "formats": forms(FORMATS),
        "most": MOST_SHOWN,
        "again": release.holds.cost.epsilon,
    }
    return Page("answer.html", _answer_data(name, found), words)


def forms(wanted: Iterable[str]) -> list[tuple[str, str]]:
    """Those of these FORMATS that can be written here, each with what people call it."""
    return [(one, FORMATS[one][1]) for one in wanted if one != "parquet" or find_spec("pyarrow")]


def cells(release: Release, places: Iterable[int]) -> list[list[tuple[str, str]]]:
    """Each cell of the first MOST_SHOWN rows at these places in words, with the ends of its interval beside it."""
    table, rows, intervals = [], release.rows, release.intervals
    for place in islice(places, MOST_SHOWN):
        row, interval, line = rows[place], intervals[place], list[tuple[str, str]]()
        for name in release.columns:
            value, ends = row[name], interval.get(name)
            if value is None:
                line.append(("NULL", ""))
            elif isinstance(value, list):
                line.append((f"[{', '.join(map(str, value))}]", ""))
            elif ends is None:
                line.append((str(value), ""))
            else:
                wide = ends[1] >= FAR or ends[0] <= -FAR
                line.append((estimate(value, ends), "" if wide else f"{_end(ends[0])} to {_end(ends[1])}"))
        table.append(line)
    return table


def _end(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:.4g}"


async def download(visit: Visit) -> Reply:
    """An answer as a file."""
    _, found = await _of(visit)
    form = str(visit.request.path_params["form"])
    if form not in FORMATS:
        raise RefusedRequest(
            404, "output", "there is no such form of an answer", "answers", f"take one of {', '.join(FORMATS)}"
        )
    content = await written(visit, partial(saved, found.release, form))
    return Download(f"answer.{form}", FORMATS[form][0], content)


def saved(release: Release, form: str) -> bytes:
    """A release as a file in one of FORMATS."""
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        path = Path(folder) / f"answer.{form}"
        release.save(path)
        return path.read_bytes()


# what was asked, what is left


async def history(visit: Visit) -> Reply:
    """What this account asked before, the latest first."""
    before = visit.query("before")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 16 else None
    data = await written(visit, partial(_history, visit, place))
    return Page("history.html", {**data, "answers": _named(visit)})


def _history(visit: Visit, before: int | None) -> dict[str, Any]:
    curator, mine = visit.service.curator, visit.account.asks_as
    made = visit.service.accounts.made(visit.account.name) or "9"  # what came before may be of another of this name
    last = curator.ledger.last.seq if before is None else min(before - 1, curator.ledger.last.seq)
    first, parts = max(0, last - MOST_READ), curator.ledger.parts
    found = [
        {**as_entry(curator, entry), "part": (curator.ledger.part_of(entry) if parts else None) or ""}
        for entry in islice(curator.ledger.entries(first), max(0, last - first))
        if entry.question and (entry.analyst or None) == mine and (mine is None or entry.time >= made)
    ]
    paid: dict[tuple[str, str], str] = {}  # a repeat is free: what the question had cost finds its answer again
    for one in found:
        same = one["question"], one["part"]
        one["epsilon"] = paid.get(same, "")
        if one["price"].startswith("ε "):
            paid[same] = one["epsilon"] = one["price"].removeprefix("ε ").partition(",")[0]
    return {"entries": found[::-1], "before": first + 1 if first else None}


def _named(visit: Visit) -> list[dict[str, Any]]:
    """The answers that are still kept here, the latest first."""
    return [
        {"answer": name, "question": one.question, "part": one.part, "epsilon": one.release.cost.epsilon}
        for name, one in reversed(_answers(visit).items())
    ]


async def balance(visit: Visit) -> Reply:
    """What is spent and what is left."""
    found = await visit.service.balance(visit.account)
    mine = found["analyst"]
    known = await visit.service.look(partial(visit.service.curator.ledger.requests, mine))
    words = {"bar": meter(found["used"]), "parts": found.get("parts", {})}
    return Page("balance.html", {**found, "requests": count_open(known)}, words)


PLACES = (
    ConsolePage(
        "/console/ask",
        "Ask",
        ASKING,
        editor,
        ask,
        "Ask",
        ("question", "by", "epsilon", "column", "error", "afresh", "part", "request"),
    ),
    ConsolePage(
        "/console/check",
        "Check",
        ASKING,
        None,
        check,
        "",
        ("question", "by", "epsilon", "column", "error", "afresh", "part"),
    ),
    ConsolePage("/console/names", "Names", ASKING, names),
    ConsolePage("/console/answers/{answer}", "Answer", ASKING, answer),
    ConsolePage("/console/answers/{answer}/{form}", "Download", ASKING, download),
    ConsolePage("/console/tables", "Tables and columns", ALL, tables, None, "Tables"),
    ConsolePage("/console/history", "What I asked", ASKING, history, None, "History"),
    ConsolePage("/console/balance", "What is left", ALL, balance, None, "Balance"),
)
