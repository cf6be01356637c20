"""`discreet profile`: how much persons contribute, once for a snapshot."""

from __future__ import annotations

from typing import Any

import click

from discreet.cli import screen
from discreet.cli.opening import opened


@click.command("profile")
@click.argument("declaration")
@click.argument("table", required=False)
@click.option("--epsilon", help="The price of all histograms together, for instance 0.05.")
@click.option(
    "--keys", multiple=True, metavar="COLUMNS", help="Also count each person's groups by these columns: city,year."
)
@click.option("--column", "columns", multiple=True, metavar="COLUMN", help="Also the largest size of its values.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@click.option("--owner", is_flag=True, help="The owner asks: no analyst's account pays.")
@click.option("--request", help="An id that makes a retry safe: the same id is charged once.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(
    declaration: str,
    table: str | None,
    epsilon: str | None,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    owner: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Release how much persons of TABLE contribute: rows, groups, sizes of values.

    Each histogram gets an equal share of the price. From then on questions have the limits and bounds that are best for
    their own price, free; what is declared is the most.
    """
    asked: dict[str, Any] = {
        "epsilon": epsilon,
        "keys": [[name.strip() for name in one.split(",")] for one in keys] or None,
        "columns": list(columns) or None,
    }
    with opened(declaration, load=True, owner=owner) as curator:
        for line in curator.explain_profile(table, **asked):
            click.echo(line, err=True)
        release = curator.profile(table, **asked, **said)
        if as_json:
            click.echo(release.to_json())
            return
        click.echo(screen.answer(release))
        if proposed := release.content["proposed"]:
            click.echo("\n".join(["the declaration may say, by these numbers:", *(f"  {line}" for line in proposed)]))
