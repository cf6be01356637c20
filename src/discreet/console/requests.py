"""The page of requests for more: an analyst asks and sees its own, the owner decides, an auditor reads."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from discreet.accounting.balance import used
from discreet.console.pages import wants_json
from discreet.console.visits import ConsolePage, Page, Redirect, Reply, Visit
from discreet.errors import Error
from discreet.ledger import TOTAL
from discreet.ledger.requests import MOST_OPEN, MoreRequest, whole
from discreet.odds import best_guess_of_budget, chance
from discreet.service.requests import RefusedRequest
from discreet.service.roles import Role
from discreet.trusted.ring_a.exact import floor, show

PATH = "/console/requests"
ASKING = frozenset({Role.ANALYST})
DECIDING = frozenset({Role.OWNER})
READING = ASKING | DECIDING | {Role.AUDITOR}

MOST_DECIDED = 100
"""Requests that were decided, on the page; the log has all."""

MOST_SENT = 20
"""Forms of an account that are remembered, so that one that comes again is not another request."""


def count_open(found: Sequence[MoreRequest]) -> int:
    """How many of these requests wait for the owner."""
    return sum(one.state == "open" for one in found)


async def requests(visit: Visit) -> Reply:
    """The requests: an analyst's own, everybody's for owner and auditor; those that are open first."""
    return await _page(visit, {})


async def act(visit: Visit) -> Reply:
    """Asks for more, as an analyst; decides, as the owner."""
    said = {name: visit.word(name) for name in FIELDS}
    said["epsilon"] = said["epsilon"].replace(",", ".")
    try:
        done = await (_decided if visit.account.role is Role.OWNER else _asked)(visit, said)
    except (Error, RefusedRequest) as error:
        if wants_json(visit.request):
            raise
        return await _page(visit, said, visit.service.problem_of(error, visit.account))
    return Redirect(PATH, done)


async def _asked(visit: Visit, said: Mapping[str, str]) -> dict[str, Any]:
    """Makes a request, unless this form has made one. Raises QuestionError, LedgerError."""
    sent: dict[str, dict[str, Any]] = visit.kept.setdefault("requests", {})
    form = said["request"][:64]
    if form in sent:
        return sent[form]
    ask = partial(visit.service.curator.request_more, analyst=visit.account.asks_as, by=visit.account.name)
    done = (await visit.service.look(partial(ask, said["epsilon"], said["reason"]))).to_dict()
    if form:
        sent[form] = done
        while len(sent) > MOST_SENT:
            del sent[next(iter(sent))]
    return done


async def _decided(visit: Visit, said: Mapping[str, str]) -> dict[str, Any]:
    """Approves or denies a request. Raises RefusedRequest, QuestionError, LedgerError."""
    number, curator = said["number"], visit.service.curator
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise RefusedRequest(422, "request", "there is no such request", "number", f"{PATH} has them all")
    if said["decision"] == "approve":
        decide = partial(curator.approve, epsilon=said["epsilon"])  # none is no amount, and not all of it
    elif said["decision"] == "deny":
        decide = partial(curator.deny)
    else:
        fix = "choose to approve it, with an amount, or to deny it"
        raise RefusedRequest(422, "decision", "nothing was decided", "decision", fix)
    return (await visit.service.look(partial(decide, int(number), said["reason"], by=visit.account.name))).to_dict()


async def _page(visit: Visit, said: Mapping[str, str], problem: Mapping[str, Any] | None = None) -> Page:
    data = await visit.service.look(partial(_mine if visit.account.role is Role.ANALYST else _all, visit))
    words = {
        "said": {**dict.fromkeys(FIELDS, ""), **said},
        "problem": problem,
        "most_open": MOST_OPEN,
        "request": secrets.token_urlsafe(12),
    }
    return Page("requests.html", data, words, 200 if problem is None else problem["status"])


def _mine(visit: Visit) -> dict[str, Any]:
    """An analyst's own budget, None where it has none, and requests."""
    name, budget = visit.account.asks_as or "", visit.service.curator.budget
    own = budget.analysts.get(name)
    account = None
    if own is not None:
        account = {"epsilon": own.total["epsilon"], "approved": own.approved, "used": own.used}
        account["windows"] = list(own.windows)  # what has a cap of its own
    return {"account": account, "period": _period(visit), **_sorted(visit.service.curator.ledger.requests(name))}


def _all(visit: Visit) -> dict[str, Any]:
    """Everybody's requests; of those that are open also what they mean."""
    found = _sorted(visit.service.curator.ledger.requests())
    approved = visit.service.curator.ledger.approved()
    found["open"] = [{**one, "account": _account(visit, one, approved)} for one in found["open"]]
    return {"period": _period(visit), **found}


def _sorted(found: Sequence[MoreRequest]) -> dict[str, list[dict[str, Any]]]:
    """The open ones, the first first, and those that were decided, the last first."""
    decided = sorted((one for one in found if one.state != "open"), key=lambda one: (one.decided, one.number))
    return {
        "open": [one.to_dict() for one in found if one.state == "open"],
        "decided": [one.to_dict() for one in decided[: -MOST_DECIDED - 1 : -1]],
    }


def _period(visit: Visit) -> str:
    """The name of the period in which what is approved now counts; empty where it counts for good."""
    period = visit.service.curator.budget.period
    return "" if period is None else period["name"]


def _account(visit: Visit, request: Mapping[str, Any], approved: Mapping[str, Fraction]) -> dict[str, Any]:
    """What an analyst has, what is used, and what an attacker could guess before and after."""
    ledger, name = visit.service.curator.ledger, request["analyst"]
    own, total = ledger.filter(name), ledger.filter(TOTAL)
    more = min(Fraction(request["epsilon"]), max(Fraction(0), total.epsilon - own.epsilon))
    odds = [
        best_guess_of_budget(epsilon, delta)
        for epsilon, delta in (
            (own.epsilon, own.promised_delta),
            (own.epsilon + more, own.promised_delta),
            (total.epsilon, total.promised_delta),
        )
    ]
    renewal = visit.service.curator.declaration.budget.renewal
    once = "" if renewal is None else f" in one {renewal.length}"
    words = (
        f"An attacker who knows everybody else's data guesses whether one person is in it, and is right at most"
        f" {chance(odds[0])} of the time once {name} has spent all of ε {show(own.epsilon)}{once}, at most"
        f" {chance(odds[1])} with ε {whole(floor(more, 6))} more; 50 % is a coin. The whole budget stays as it is:"
        f" ε {show(total.epsilon)}{once}, at most {chance(odds[2])}."
    )
    return {
        "epsilon": show(own.epsilon),
        "approved": show(approved.get(name, Fraction(0))),
        "used": used(own),
        "most": whole(floor(more, 6)),
        "odds": {"now": odds[0], "then": odds[1], "whole": odds[2], "words": words},
    }


FIELDS = ("request", "epsilon", "reason", "number", "decision")

PLACES = (
    ConsolePage(PATH, "Requests for more", READING, requests, None, "Requests"),
    ConsolePage(PATH, "Requests for more", ASKING | DECIDING, None, act, "", FIELDS),
)
