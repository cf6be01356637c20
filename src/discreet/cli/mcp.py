"""The command `discreet mcp`: an assistant asks, as an analyst with a budget of its own."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from discreet.cli.there import CommandTarget, sourced
from discreet.errors import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.curator import Curator
    from discreet.remote import RemoteCurator


@click.command()
@click.argument("declaration", required=False)
@sourced
@click.option("--analyst", help="With DECLARATION: the name of [analysts] whose budget the assistant has.")
def command(source: CommandTarget, analyst: str | None) -> None:
    """Let an assistant ask, over the Model Context Protocol on standard input and output.

    It asks as an analyst: the holder of the service's token, or --analyst of DECLARATION on this machine. Programs that
    run assistants start it; what it can do: docs/agents.md.
    """
    if find_spec("mcp") is None:
        fix = 'install the extra "mcp": pip install "discreet[mcp]"'
        raise refused("extra", "this needs the package mcp", "discreet mcp", fix)
    from discreet.agents.protocol import serve
    from discreet.agents.tools import Assistant

    source.who(analyst, owner=False)
    if source.declaration is not None and analyst is None:
        fix = "name one of [analysts], with a small budget of its own: --analyst bot"
        raise refused("analyst", "an assistant asks as an analyst", "--analyst", fix)
    if sys.stdin.isatty():
        click.echo("waits for a program that runs an assistant, on standard input; Ctrl-C ends it", err=True)
    with _curator(source) as curator:
        serve(Assistant(curator, analyst))


@contextmanager
def _curator(source: CommandTarget) -> Iterator[Curator | RemoteCurator]:
    """The curator, loaded. One of this machine answers on a service's schedule: who asks is not who holds the rows."""
    if source.declaration is None:
        with source.service() as there:
            yield there
        return
    from discreet.catalog import read
    from discreet.curator import Curator
    from discreet.service.serving import how_scheduled, scheduled

    found = scheduled(read(source.declaration))
    click.echo(how_scheduled(found), err=True)
    with Curator.of(found) as curator:
        yield curator
