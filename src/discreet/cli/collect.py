"""The command `discreet collect`: a collector over HTTP."""

from __future__ import annotations

import importlib

import click

from discreet.errors import QuestionError


@click.command("collect")
@click.argument("collection")
@click.argument("reports")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
def command(collection: str, reports: str, host: str, port: int) -> None:
    """Take randomised reports for COLLECTION (a document) into the file REPORTS, and show respondents a page.

    Beyond this machine, put it behind a server that speaks TLS: a browser lends its randomness and its storage to
    secure pages only.
    """
    try:
        uvicorn = importlib.import_module("uvicorn")
    except ImportError:
        fix = 'run pip install "discreet[server]"'
        raise QuestionError("extra", "this needs uvicorn", where="collect", fix=fix) from None
    from discreet.local import Collection, Collector

    with Collector(Collection.read(collection), reports) as collector:
        click.echo(f"{collector.collection.name}: http://{host}:{port}/", err=True)
        uvicorn.run(collector.app(), host=host, port=port, access_log=False, log_level="error", server_header=False)
