"""The commands `discreet serve`, a curator for others, and `discreet account` and `discreet token`, who they are."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.service.roles import Role
from discreet.texts import visible

if TYPE_CHECKING:
    from discreet.catalog import Declaration
    from discreet.ledger import Ledger
    from discreet.service.accounts import Account, Accounts

TURN_SECONDS = 0.0005
"""How long a thread computes while others wait. With Python's own 0.005 seconds, who looks into the ledger waits for
many of them while rows are made or written for somebody else."""

_machine = click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")


def _those_of(declaration: str) -> tuple[Declaration, Accounts]:
    from discreet.catalog import read
    from discreet.service.accounts import Accounts

    found = read(declaration)
    return found, Accounts.of(found)


def _ledger(declaration: Declaration) -> Ledger:
    from discreet.ledger import Ledger

    return Ledger(declaration.ledger)


def _in_words(account: Account) -> str:
    whose = f" with the budget of {visible(account.analyst)}" if account.analyst else ""
    return f"{account.name}: {account.role}{whose}"


@click.command()
@click.argument("declaration")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8443, show_default=True, type=click.IntRange(0, 65535))
@click.option("--certificate", metavar="FILE", type=Path, help="The server's certificate, with its chain, in PEM.")
@click.option("--key", metavar="FILE", type=Path, help="The certificate's key, in PEM, without a password.")
@click.option("--behind-proxy", is_flag=True, help="A proxy before it speaks TLS, and nobody else can call it.")
@click.option(
    "--log", type=click.Choice(("json", "text")), help="A line for each request on standard error, for the owner alone."
)
@click.option(
    "--psql-port",
    type=click.IntRange(0, 65535),
    help="A port for psql and other programs that speak PostgreSQL's protocol; beyond this machine with a certificate.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes that answer: so many analysts' questions run at once.",
)
def serve(
    declaration: str,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    behind_proxy: bool,
    log: str | None,
    psql_port: int | None,
    workers: int,
) -> None:
    """Answer others over HTTP, each with a token of an account. The first start prints the owner's.

    `discreet account` and `discreet token` say who they are, also while it runs. SIGTERM ends it: what runs is
    answered first.
    """
    from discreet.curator import Curator
    from discreet.service import oidc
    from discreet.service.accounts import Account
    from discreet.service.serving import Address, enter, how_scheduled, needed, scheduled, server
    from discreet.service.workers import several

    needed()
    from discreet.console.app import pages
    from discreet.wire.server import Wire

    if log is not None:
        from discreet.service.watching import log_to_standard_error

        log_to_standard_error(log)
    address = Address(host, port, certificate, key, behind_proxy)
    address.check()
    psql = None if psql_port is None else replace(address, port=psql_port, behind_proxy=False)
    if psql is not None:
        psql.check()
    found, accounts = _those_of(declaration)
    found = scheduled(found)
    oidc.needed(found)
    with (
        address.bound() as listening,
        nullcontext() if psql is None else psql.bound() as psql_listening,
        Curator.of(found, load=workers == 1, owner=True) as curator,
        several(curator, workers, log) as asked,
    ):
        accounts.hold_against(curator.ledger.acts())
        enter(found, curator.ledger)
        if not any(account.role is Role.OWNER for account, _ in accounts.known()):
            accounts.add(Account("owner", Role.OWNER), curator.ledger.enter)
            token, _ = accounts.new_token("owner", None, curator.ledger.enter)
            click.echo("the owner's token, which is not shown again:", err=True)
            click.echo(token)
        click.echo(how_scheduled(found), err=True)
        where = address.url(listening.getsockname()[1])
        everywhere = " (all addresses of this machine)" if host in ("0.0.0.0", "::") else ""
        click.echo(f"{', '.join(map(visible, found.tables))}: {where}{everywhere}", err=True)
        if psql_listening is not None:
            click.echo(f"psql: host={host} port={psql_listening.getsockname()[1]}{everywhere}", err=True)
        logging.getLogger("discreet.question").setLevel(logging.CRITICAL)  # it quotes questions
        sys.setswitchinterval(TURN_SECONDS)
        beside = None
        if psql is not None and psql_listening is not None:
            beside = partial(Wire, accounts=accounts, bound=psql_listening, address=psql)
        server(curator, accounts, address, asked, pages, beside).run(sockets=[listening])


@click.group()
def account() -> None:
    """Who may ask a service: accounts, in a file beside the ledger."""


@account.command("add")
@click.argument("declaration")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default="analyst",
    show_default=True,
    help="What it may do.",
)
@click.option("--analyst", help="The name of [analysts] whose budget an analyst's account has.")
@_machine
def add(declaration: str, name: str, role: str, analyst: str | None, as_json: bool) -> None:
    """Make an account NAME. An auditor sees the ledger and what was spent, and asks nothing."""
    from discreet.service.accounts import Account, bound

    found, accounts = _those_of(declaration)
    made = Account(name, Role(role), bound(found, Role(role), analyst))
    with closing(_ledger(found)) as ledger:
        accounts.add(made, ledger.enter)
    click.echo(json.dumps(made.to_dict()) if as_json else f"{_in_words(made)}; next: `discreet token new`")


@account.command("end")
@click.argument("declaration")
@click.argument("name")
@_machine
def end(declaration: str, name: str, as_json: bool) -> None:
    """End the account NAME and all its tokens, at once. What it asked stays charged."""
    found, accounts = _those_of(declaration)
    with closing(_ledger(found)) as ledger:
        ended = accounts.end(name, ledger.enter)
    numbers = [one.number for one in ended]
    if as_json:
        click.echo(json.dumps({"account": name, "ended": True, "revoked": numbers}))
    else:
        click.echo(f"{name}: ended{', and token ' + ', '.join(map(str, numbers)) if numbers else ''}")


@account.command("list")
@click.argument("declaration")
@_machine
def list_(declaration: str, as_json: bool) -> None:
    """Every account, with the numbers of its tokens."""
    _, accounts = _those_of(declaration)
    known = accounts.known()
    if as_json:
        facts = [{**one.to_dict(), "tokens": [token.to_dict() for token in tokens]} for one, tokens in known]
        click.echo(json.dumps({"accounts": facts}))
        return
    for one, tokens in known:
        held = [
            f"token {token.number}" + (f" until {token.to_dict()['expires']}" if token.expires else "")
            for token in tokens
            if token.holds
        ]
        click.echo(f"{_in_words(one)}; {', '.join(held) or 'no token'}")
    if not known:
        click.echo("no accounts")


@click.group()
def token() -> None:
    """What an account asks with: tokens, made and revoked."""


@token.command("new")
@click.argument("declaration")
@click.argument("name")
@click.option("--days", type=click.IntRange(1, 36_500), help="It holds for so many days; without, until it is revoked.")
@_machine
def new(declaration: str, name: str, days: int | None, as_json: bool) -> None:
    """Make a token of the account NAME, and print it this once."""
    found, accounts = _those_of(declaration)
    with closing(_ledger(found)) as ledger:
        secret, made = accounts.new_token(name, days, ledger.enter)
    facts = made.to_dict()
    if as_json:
        click.echo(json.dumps({**facts, "secret": secret}))
        return
    until = f"until {facts['expires']}" if made.expires else "until it is revoked"
    click.echo(f"token {made.number} of {name}, which holds {until} and is not shown again:", err=True)
    click.echo(secret)


@token.command("revoke")
@click.argument("declaration")
@click.argument("name")
@click.argument("number", type=int, required=False)
@_machine
def revoke(declaration: str, name: str, number: int | None, as_json: bool) -> None:
    """End all tokens of the account NAME, or the one of this NUMBER, at once."""
    found, accounts = _those_of(declaration)
    with closing(_ledger(found)) as ledger:
        ended = accounts.revoke(name, number, ledger.enter)
    numbers = [one.number for one in ended]
    if as_json:
        click.echo(json.dumps({"account": name, "revoked": numbers}))
    else:
        click.echo(f"{name}: {'token ' + ', '.join(map(str, numbers)) if numbers else 'nothing'} revoked")
