"""The commands `discreet collect`, a collector over HTTP, and `discreet estimate`, what it has so far."""

from __future__ import annotations

import importlib
import json
from typing import Any

import click

from discreet.errors import QuestionError
from discreet.texts import visible


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
    from discreet.local.beside import answering

    with Collector(Collection.read(collection), reports) as collector, answering(collector, reports):
        click.echo(f"{collector.collection.name}: http://{host}:{port}/", err=True)
        click.echo(
            f"while it runs, `discreet estimate {reports}` says what came so far; with --browser, as a page", err=True
        )
        uvicorn.run(collector.app(), host=host, port=port, access_log=False, log_level="error", server_header=False)


@click.command("estimate")
@click.argument("reports")
@click.option("--attribute", help="Only this one of several that are asked.")
@click.option("--window", help="Another window than the latest, for instance 2026-11.")
@click.option("--confidence", default=0.95, show_default=True, type=float, help="How sure the intervals are.")
@click.option(
    "--browser", is_flag=True, help="Show a page, for yourself at this machine alone, that follows what comes."
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def estimate_command(
    reports: str, attribute: str | None, window: str | None, confidence: float, browser: bool, as_json: bool
) -> None:
    """Estimate from the file REPORTS what respondents answered, with intervals, also while `discreet collect` runs.

    It costs nothing: reports are randomised before they are sent.
    """
    from discreet.local.beside import asked

    said = {"attribute": attribute, "window": window, "confidence": confidence}
    if browser:
        if as_json:
            raise click.UsageError("--browser and --json do not go together")
        _show(reports, said)
        return
    found = asked(reports, said)
    if as_json:
        for one in found["estimates"]:
            del one["text"]
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for one in found["estimates"]:
        if one["attribute"]:
            click.echo(visible(f"{one['attribute']}: {one['question']}" if one["question"] else one["attribute"]))
        click.echo("\n".join(visible(line) for line in one["text"].splitlines()))


def _show(reports: str, said: dict[str, Any]) -> None:
    from discreet.cli.estimates import EstimatePages
    from discreet.local.beside import asked
    from discreet.service.loopback import Loopback

    found = asked(reports, {**said, "empty": True})  # what is wrong is said here, before there is a page
    with Loopback() as page:
        click.echo(f"{visible(found['collection'])}: {page.address}", err=True)
        click.echo("this address is for you alone, in a browser at this machine; Ctrl-C ends the page", err=True)
        page.run(EstimatePages(reports, said))
