"""`discreet request`, `requests`, `approve` and `deny`: more of an analyst's own budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from discreet.cli.opening import opened
from discreet.cli.there import CommandTarget, sourced
from discreet.texts import visible

_json = click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")


@click.command()
@click.argument("declaration", required=False)
@sourced
@click.option("--epsilon", required=True, help="How much more, for instance 0.2.")
@click.option("--reason", required=True, help="What it is for.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@_json
def request(source: CommandTarget, epsilon: str, reason: str, analyst: str | None, as_json: bool) -> None:
    """Ask the owner for more of an analyst's own budget. Spends nothing."""
    who = source.who(analyst, owner=False)
    with source.curator(load=False) as curator:
        found = curator.request_more(epsilon, reason, **who)
    _say(found if isinstance(found, dict) else found.to_dict(), as_json)


@click.command()
@click.argument("declaration", required=False)
@sourced
@_json
def requests(source: CommandTarget, as_json: bool) -> None:
    """Requests for more, and what was decided: of an analyst's token, that analyst's."""
    with source.curator(load=False) as curator:
        found = [one if isinstance(one, dict) else one.to_dict() for one in curator.requests()]
    if as_json:
        click.echo(json.dumps({"requests": found}, ensure_ascii=False))
    else:
        click.echo("\n".join(map(_line, found)) or "nobody has asked for more")


@click.command()
@click.argument("declaration")
@click.argument("number", type=int)
@click.option("--epsilon", help="How much of it; without it, all that was asked for.")
@click.option("--reason", required=True, help="Why: it is kept in the ledger.")
@_json
def approve(declaration: str, number: int, epsilon: str | None, reason: str, as_json: bool) -> None:
    """Approve request NUMBER: raises the analyst's own cap within the whole budget. For the owner."""
    with opened(declaration, load=False, owner=True) as curator:
        _say(curator.approve(number, reason, epsilon=epsilon).to_dict(), as_json)


@click.command()
@click.argument("declaration")
@click.argument("number", type=int)
@click.option("--reason", required=True, help="Why: it is kept in the ledger.")
@_json
def deny(declaration: str, number: int, reason: str, as_json: bool) -> None:
    """Deny request NUMBER. For the owner."""
    with opened(declaration, load=False, owner=True) as curator:
        _say(curator.deny(number, reason).to_dict(), as_json)


def _say(found: Mapping[str, Any], as_json: bool) -> None:
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else _line(found))


def _line(one: Mapping[str, Any]) -> str:
    """A request on a line: what a stranger wrote is made visible."""
    said = f"request {one['number']} of {one['analyst']}, {one['time']}: ε {one['epsilon']} more: {one['reason']}"
    if one["state"] == "open":
        return visible(f"{said} · open")
    when = f" in {one['period']}" if one["period"] else ""
    what = f"approved with ε {one['approved']}{when}" if one["approved"] else "denied"
    return visible(f"{said} · {what}: {one['answer']}")


COMMANDS: Sequence[click.Command] = (request, requests, approve, deny)
