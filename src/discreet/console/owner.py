"""The owner's pages: budgets, who asks what, the log, who may ask, new snapshots, whether all is as it should be."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from discreet.accounting.pace import part
from discreet.accounting.room import part_used
from discreet.catalog.written import analyst_written
from discreet.console.pictures import between, parts
from discreet.console.requests import count_open
from discreet.console.visits import ConsolePage, Download, Page, Redirect, Reply, Visit
from discreet.curator.history import as_entry, tables
from discreet.errors import Error
from discreet.ledger import Entry
from discreet.odds import best_guess_of_budget, best_guess_of_spent, chance
from discreet.service.log import KINDS, EntryFilter
from discreet.service.owner import token_number
from discreet.service.requests import RefusedRequest
from discreet.service.roles import Role
from discreet.texts import visible
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.loss import Loss

OWNING = frozenset({Role.OWNER})
AUDITING = OWNING | {Role.AUDITOR}

PER_PAGE = 50
"""Entries of the log on one page."""

MOST_SAVED = 100_000
"""Entries of the log in one file."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


# the budgets


async def overview(visit: Visit) -> Reply:
    """The whole budget and each analyst's, how long they last, and what they mean for a person."""
    data = await visit.service.look(partial(_overview, visit))
    words = {
        "bars": [parts(one, f"{one['name'] or 'The whole budget'}: {_in_words(one)}") for one in data["budgets"]],
        "spans": [_in_words(one) for one in data["budgets"]],
        "odds_picture": between(data["odds"]["now"], data["odds"]["whole"], data["odds"]["words"]),
        "analyst_link": urlencode,
    }
    return Page("overview.html", data, words)


def _overview(visit: Visit) -> dict[str, Any]:
    curator, owner = visit.service.curator, visit.service.owner
    known, balance = owner.analysts(), curator.balance()
    reserved = curator.ledger.open_reserves()
    budgets = [_budget("", balance.total, reserved, curator.budget.room, owner.pace(), balance.kept)]
    for one in known["analysts"]:
        if one["budget"] is not None:
            account = curator.ledger.filter(one["analyst"])
            budget = _budget(one["analyst"], account, reserved, one["budget"]["room"], one["pace"], None)
            own = {"approved": one["budget"]["approved"], "windows": one["budget"]["windows"]}
            budgets.append({**budget, "frozen": one["frozen"], **own})
    now, total = best_guess_of_spent(balance.total.spent), balance.total
    whole = max(now, best_guess_of_budget(total.epsilon, total.promised_delta))
    renewal = curator.declaration.budget.renewal
    whole_of = "the whole budget" if renewal is None else f"the whole budget of one {renewal.length}"
    words = (
        f"An attacker who knows everybody else's data guesses whether one person is in it, and is right at most"
        f" {chance(now)} of the time after all that was charged so far, at most {chance(whole)} after {whole_of};"
        " 50 % is a coin."
    )
    return {
        "budgets": budgets,
        "odds": {"now": now, "whole": whole, "words": words},
        "requests": count_open(curator.ledger.requests()),
        "frozen": known["frozen"],
        "suspended": {one["analyst"]: one["suspended"] for one in known["analysts"] if one["suspended"]},
        "tables": tables(curator),
        "period": None if curator.budget.period is None else dict(curator.budget.period),
    }


def _budget(
    name: str,
    account: PrivacyFilter,
    reserved: Sequence[Entry],
    room: str,
    pace: Mapping[str, Any],
    kept: Loss | None,
) -> dict[str, Any]:
    """A budget's parts in percent."""
    used = 100 * float(part_used(account))
    losses = [one.loss for one in reserved if name in one.charged and one.loss is not None]
    running = min(used, 100 * float(part(account, losses)))
    apart = 0.0 if kept is None else max(0.0, 100 * float(part_used(account.after(kept))) - used)
    return {
        "name": name,
        "epsilon": show(account.epsilon),
        "delta": show(account.promised_delta),
        "spent": used - running,
        "reserved": running,
        "apart": apart,
        "left": max(0.0, 100 - used - apart),
        "room": room,
        "pace": dict(pace),
        "frozen": False,
        "approved": "0",
        "windows": {},
    }


def _in_words(budget: Mapping[str, Any]) -> str:
    names = {
        "spent": "spent",
        "reserved": "reserved by questions that run",
        "apart": "set apart to publish",
        "left": "left",
    }
    return ", ".join(
        f"{budget[key]:.3g} % {words}" for key, words in names.items() if key in ("spent", "left") or budget[key]
    )


# who may ask


async def analysts(visit: Visit) -> Reply:
    """Who asks, with which caps, and what of which table; and who may not."""
    declaration = visit.service.curator.declaration
    data = await visit.service.look(partial(_analysts, visit))
    words = {
        "query": urlencode,
        "file": declaration.file.name if declaration.file is not None else "the declaration",
        "written": {name: analyst_written(name, own, declaration.budget) for name, own in declaration.analysts.items()},
    }
    return Page("analysts.html", data, words)


def _analysts(visit: Visit) -> dict[str, Any]:
    owner = visit.service.owner
    known, counted, states = owner.analysts(), owner.log.counted(), tables(visit.service.curator)
    about = [name for name, table in visit.service.curator.declaration.tables.items() if not table.public]
    rows = {one["analyst"]: one for one in known["analysts"]}
    others = sorted({name for name, _ in counted} - {*rows})
    asked = [
        {
            "analyst": name,
            "tables": {table: counted[name, table] for table in about},
            "may": {table: _may(name, rows.get(name), table, known, states.get(table, {})) for table in about},
        }
        for name in [*rows, *others]
    ]
    return {**known, "asked": asked, "tables": about}


def _may(
    name: str, own: Mapping[str, Any] | None, table: str, known: Mapping[str, Any], state: Mapping[str, Any]
) -> dict[str, Any]:
    """Whether something of a table is measured for somebody. `why` says what stands against it, the nearest first;
    `lift`, whether that, or a part of it, ends with the table's name and this one."""
    of_table = own is not None and table in own["frozen_tables"]
    suspended = (name or None) in state.get("suspended", ())
    against = [
        "no analyst any more" if own is None and name else "",
        "frozen for this table" if of_table else "",
        "suspended: a question failed" if suspended else "",
        "frozen for all tables" if own is not None and own["frozen"] else "",
        "everybody is frozen for this table" if table in known["frozen_tables"] else "",
        "everybody is frozen" if known["frozen"] else "",
        "questions failed: the table is frozen" if state.get("frozen") else "",
    ]
    why = next(filter(None, against), "")
    return {"may": not why, "why": why, "lift": of_table or suspended}


Does = Callable[[Visit, Mapping[str, Any]], dict[str, Any]]


def _act(template: str, does: Does, onward: str, fields: Sequence[str]) -> tuple[Any, Any]:
    """A page that asks why, and the act: what was written stays there where it is refused."""

    async def show(visit: Visit) -> Reply:
        return Page(template, {**{name: visit.query(name) for name in fields}, "problem": None})

    async def act(visit: Visit) -> Reply:
        said = {name: visit.word(name) for name in fields}
        try:
            data = await visit.service.look(partial(does, visit, said))
        except (Error, RefusedRequest) as error:
            problem = visit.service.problem_of(error, visit.account)
            return Page(template, {**said, "problem": problem}, status=problem["status"])
        return Redirect(onward, data)

    return show, act


def _of_analyst(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a form says: whose questions, and about which table, or about all."""
    named = [said["table"]] if said["table"] else []
    return {"analyst": said["analyst"] or None, "tables": named, "reason": said["reason"]}


FREEZE = _act(
    "freeze.html",
    lambda visit, said: visit.service.owner.freeze(visit.account, _of_analyst(said)),
    "/console/analysts",
    ("analyst", "table", "reason"),
)
LIFT = _act(
    "lift.html",
    lambda visit, said: visit.service.owner.lift(visit.account, _of_analyst(said)),
    "/console/analysts",
    ("analyst", "table", "reason"),
)
END = _act(
    "end.html",
    lambda visit, said: visit.service.owner.end(visit.account, said["account"], said),
    "/console/accounts",
    ("account", "reason"),
)

REVOKE = _act(
    "revoke.html",
    lambda visit, said: visit.service.owner.revoke(visit.account, said["account"], token_number(said["token"]), said),
    "/console/accounts",
    ("account", "token", "reason"),
)

ACCOUNT = ("account", "role", "analyst", "days", "reason")
TOKEN = ("account", "days", "reason", "request")

MOST_SENT = 20
"""Forms for a token that are remembered, so that one that comes again makes no other."""


async def accounts(visit: Visit) -> Reply:
    """Every account, and a form for a new one."""
    return await _accounts(visit, dict.fromkeys(ACCOUNT, ""))


async def add(visit: Visit) -> Reply:
    """Makes an account. Its token stands on this page alone, this once."""
    said = {name: visit.word(name) for name in ACCOUNT}
    given: dict[str, Any] = {name: value for name, value in said.items() if value}
    given.setdefault("account", "")
    try:
        given["days"] = _days(said["days"])
        made = await visit.service.look(partial(visit.service.owner.add, visit.account, given))
    except (Error, RefusedRequest) as error:
        return await _accounts(visit, said, visit.service.problem_of(error, visit.account))
    return await _accounts(visit, dict.fromkeys(ACCOUNT, ""), None, made)


async def new_token(visit: Visit) -> Reply:
    """Asks for how long, and why."""
    said = {"account": visit.query("account"), "days": "", "reason": ""}
    return Page("token.html", {**said, "problem": None, "made": None}, {"request": secrets.token_urlsafe(12)})


async def make_token(visit: Visit) -> Reply:
    """Makes one more token of an account, which stands on this page alone, this once."""
    said = {name: visit.word(name) for name in TOKEN}
    request, problem, made = said.pop("request")[:64], None, None
    sent: dict[str, int] = visit.kept.setdefault("tokens", {})
    try:
        if request in sent:
            message = f"this form has made token {sent[request]} already, which was shown once"
            fix = "where it was lost, revoke it on the page Accounts, and make another from there"
            raise RefusedRequest(422, "sent", message, "request", fix)
        given: dict[str, Any] = {**said, "days": _days(said["days"])}
        made = await visit.service.look(partial(visit.service.owner.new_token, visit.account, said["account"], given))
        if request:
            sent[request] = made["token"]["token"]
            while len(sent) > MOST_SENT:
                del sent[next(iter(sent))]
    except (Error, RefusedRequest) as error:
        problem = visit.service.problem_of(error, visit.account)
    status = 200 if problem is None else problem["status"]
    return Page("token.html", {**said, "problem": problem, "made": made}, {"request": request}, status)


def _days(text: str) -> Decimal | None:
    """For how many days a token holds. Raises RefusedRequest."""
    if text and not re.fullmatch(r"[0-9]{1,5}", text):
        raise RefusedRequest(422, "account", "a token holds for whole days", "days", "write 1 to 36500, or nothing")
    return Decimal(text) if text else None


async def _accounts(
    visit: Visit, said: Mapping[str, str], problem: Mapping[str, Any] | None = None, made: Any = None
) -> Page:
    known = await visit.service.look(visit.service.owner.analysts)
    data = {"accounts": known["accounts"], "made": made, "said": dict(said), "problem": problem}
    words = {
        "known": {one["account"] for one in known["accounts"]},
        "declared": list(visit.service.curator.declaration.analysts),
        "roles": [role.value for role in Role if role is not Role.OWNER],
        "query": urlencode,
    }
    return Page("accounts.html", data, words, 200 if problem is None else problem["status"])


# the log


def _sought(visit: Visit) -> EntryFilter:
    """What the address asks for. Raises RefusedRequest."""
    first, last = visit.query("from"), visit.query("until")
    for day in (first, last):
        if day and not _DAY.fullmatch(day):
            raise RefusedRequest(400, "query", "this is no day", "from, until", "write a day as 2026-11-23")
    return EntryFilter(visit.query("who"), visit.query("table"), visit.query("kind"), first, last, visit.query("text"))


async def log(visit: Visit) -> Reply:
    """Who asked what, and what the owner did: the latest first."""
    sought, before = _sought(visit), visit.query("before")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 16 else None
    data = await visit.service.look(partial(_log, visit, sought, place))
    wanted = {
        "who": sought.who,
        "table": sought.table,
        "kind": sought.kind,
        "from": sought.first,
        "until": sought.last,
        "text": sought.text,
    }
    words = {"wanted": wanted, "query": urlencode({name: value for name, value in wanted.items() if value})}
    return Page("log.html", data, words)


def _log(visit: Visit, sought: EntryFilter, before: int | None) -> dict[str, Any]:
    log = visit.service.owner.log
    found = list(islice(log.found(sought, before), PER_PAGE + 1))
    return {
        "entries": [_row(visit, one) for one in found[:PER_PAGE]],
        "sought": asdict(sought),
        "before": found[PER_PAGE - 1].seq if len(found) > PER_PAGE else None,
        "names": log.names(),
        "tables": list(visit.service.curator.declaration.tables),
        "kinds": [*KINDS, "acts"],
        "head": visit.service.curator.ledger.head,
    }


def _row(visit: Visit, entry: Entry) -> dict[str, Any]:
    log = visit.service.owner.log
    plain = as_entry(visit.service.curator, entry)
    return {**plain, "by": entry.by, "status": log.status(entry), "tables": list(log.tables(entry))}


async def saved(visit: Visit) -> Reply:
    """The same as a file of CSV."""
    sought = _sought(visit)
    return Download("log.csv", "text/csv; charset=utf-8", await visit.service.look(partial(_saved, visit, sought)))


COLUMNS = ("entry", "time", "kind", "analyst", "by", "tables", "question", "price", "status", "note")


def _saved(visit: Visit, sought: EntryFilter) -> bytes:
    text = io.StringIO(newline="")
    written = csv.writer(text)
    written.writerow(COLUMNS)
    for one in islice(visit.service.owner.log.found(sought), MOST_SAVED):
        row = _row(visit, one)
        written.writerow([_cell(row[name]) for name in COLUMNS])
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    """A cell that no spreadsheet takes for a formula and that steers no terminal, whatever an analyst has asked."""
    text = ", ".join(value) if isinstance(value, list) else str(value)
    text = "\n".join(map(visible, text.split("\n")))
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


async def entry(visit: Visit) -> Reply:
    """One entry, whole; of a question also how it is measured, as the tables are now."""
    number = str(visit.request.path_params["number"])
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0
    found = await visit.service.look(partial(visit.service.owner.log.one, place))
    if found is None:
        raise RefusedRequest(404, "entry", "the ledger has no such entry", "log", "/console/log has the entries")
    data = await visit.service.look(partial(_row, visit, found))
    price = data["price"].removeprefix("ε ").partition(",")[0] if data["price"].startswith("ε ") else ""
    explained: dict[str, Any] | None = None
    if data["question"] and price and visit.account.role is Role.OWNER:
        try:
            said = {"question": data["question"], "epsilon": price}
            explained = (await visit.service.explained(visit.account, said)).to_dict()
        except (Error, RefusedRequest):
            explained = None  # of tables that were declared otherwise, or while another question runs
    about = [visit.service.tables[name]["rows"] for name in data["tables"] if name in visit.service.tables]
    again = urlencode({"question": data["question"], "epsilon": price})
    return Page("entry.html", {**data, "explained": explained, "about": about}, {"again": again, "epsilon": price})


# new snapshots


async def refresh(visit: Visit) -> Reply:
    """The snapshots, and how the last refresh ended."""
    return await _refresh(visit, {"table": "", "reason": ""})


async def renew(visit: Visit) -> Reply:
    """Begins a refresh."""
    said = {"table": visit.word("table"), "reason": visit.word("reason")}
    try:
        if visit.word("sure") != "yes":
            fix = "tick the box: what was asked before costs anew"
            raise RefusedRequest(422, "sure", "a new snapshot was not confirmed", "sure", fix)
        wanted = _numbers(visit.word("numbers"))
        if said["table"]:
            wanted = {said["table"]: wanted.get(said["table"], 0)}
        given = {"tables": wanted, "reason": said["reason"]}
        data = await visit.service.look(partial(visit.service.owner.refresh, visit.account, given))
    except (Error, RefusedRequest) as error:
        return await _refresh(visit, said, visit.service.problem_of(error, visit.account))
    return Redirect("/console/refresh", data)


def _numbers(text: str) -> dict[str, int]:
    """The snapshots that the page has shown. Raises RefusedRequest."""
    try:
        found = json.loads(text)
        if isinstance(found, dict) and all(type(number) is int for number in found.values()):
            return found
    except (ValueError, RecursionError):
        pass
    raise RefusedRequest(
        400, "body", "the form cannot be read", "numbers", "open the page again, and send it from there"
    )


async def _refresh(visit: Visit, said: Mapping[str, str], problem: Mapping[str, Any] | None = None) -> Page:
    data = await visit.service.look(partial(_refreshed, visit))
    words = {
        "numbers": json.dumps(data["snapshots"]),
        "failed": data.get("problem"),
        "problem": problem,
        "said": said,
    }
    return Page("refresh.html", data, words, 200 if problem is None else problem["status"])


def _refreshed(visit: Visit) -> dict[str, Any]:
    period = visit.service.curator.budget.period
    return {**visit.service.owner.refreshed(), "period": None if period is None else dict(period)}


# whether all is as it should be


async def health(visit: Visit) -> Reply:
    """The ledger's head, what is open, what failed; with ?verify=1 its whole history."""
    try:
        await visit.service.look(visit.service.watch.ready)
        ready: dict[str, Any] = {"ready": True, "problem": None}
    except Error as error:
        ready = {"ready": False, "problem": visit.service.problem_of(error, visit.account)}
    data = await visit.service.look(partial(_health, visit, visit.query("verify") == "1"))
    return Page("health.html", {**data, "ready": ready, "version": version("discreet")})


def _health(visit: Visit, verify: bool) -> dict[str, Any]:
    curator = visit.service.curator
    verified: dict[str, Any] | None = None
    if verify:
        found = curator.ledger.verify()
        verified = {"entries": found.entries, "head": found.head, "unanswered": found.unanswered}
    last = curator.ledger.last
    return {
        "entries": last.seq,
        "head": last.hash.hex(),
        "verified": verified,
        "open": [
            {"entry": one.seq, "time": one.time, "analyst": one.analyst} for one in curator.ledger.open_reserves()
        ],
        "tables": tables(curator),
        "frozen": sorted(name or "everybody" for name in curator.frozen),
        "engine_starts": curator.engine_starts,
    }


PLACES = (
    ConsolePage("/console/overview", "Overview", OWNING, overview, None, "Overview"),
    ConsolePage("/console/analysts", "Analysts", OWNING, analysts, None, "Analysts"),
    ConsolePage("/console/freeze", "Freeze", OWNING, *FREEZE, "", ("analyst", "table", "reason")),
    ConsolePage("/console/lift", "Lift", OWNING, *LIFT, "", ("analyst", "table", "reason")),
    ConsolePage("/console/log", "Log", AUDITING, log, None, "Log"),
    ConsolePage("/console/log.csv", "Log", AUDITING, saved),
    ConsolePage("/console/log/{number}", "Entry", AUDITING, entry),
    ConsolePage(
        "/console/refresh", "New snapshots", OWNING, refresh, renew, "Refresh", ("table", "numbers", "reason", "sure")
    ),
    ConsolePage("/console/accounts", "Accounts", OWNING, accounts, add, "Accounts", ACCOUNT),
    ConsolePage("/console/accounts/token", "A new token", OWNING, new_token, make_token, "", TOKEN),
    ConsolePage("/console/accounts/revoke", "Revoke a token", OWNING, *REVOKE, "", ("account", "token", "reason")),
    ConsolePage("/console/accounts/end", "End an account", OWNING, *END, "", ("account", "reason")),
    ConsolePage("/console/health", "Health", AUDITING, health, None, "Health"),
)
