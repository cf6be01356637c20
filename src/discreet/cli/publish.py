"""`discreet publish`: a synthetic table, written to a file."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import screen
from discreet.cli.there import Source, sourced
from discreet.errors import refused

if TYPE_CHECKING:
    from discreet.synthesis.adaptive import Progress


def _of_table(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments DECLARATION and TABLE."""

    @click.argument("declaration", required=False)
    @click.argument("table", required=False)
    @functools.wraps(command)
    def given(declaration: str | None, table: str | None, **said: Any) -> Any:
        if said["server"] is not None and table is None and not str(declaration).endswith(".toml"):
            declaration, table = None, declaration  # a service is asked: what was named first is the table
        if table is None:
            raise refused("table", "there is no table", "TABLE", "name one, as in clinic.toml visits")
        return command(declaration=declaration, table=table, **said)

    return given


@click.command("publish")
@_of_table
@sourced
@click.option("--epsilon", help="The price, for instance 1.")
@click.option("--delta", help="By default the budget's, pro rata to epsilon.")
@click.option("--rows", type=int, help="How many rows; by default as many as the table seems to hold.")
@click.option("--method", default="adaptive", show_default=True, help="adaptive, mst, workload or independent.")
@click.option(
    "--workload",
    multiple=True,
    metavar="COLUMNS",
    help="Columns whose joint distribution matters: sex,age. Once for each set.",
)
@click.option("--column", "columns", multiple=True, metavar="COLUMN", help="Only these columns.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@click.option("--owner", is_flag=True, help="The owner asks: no analyst's account pays.")
@click.option("--request", help="An id that makes a retry safe: the same id is charged once.")
@click.option("-o", "--output", metavar="FILE", help="Where the rows go: .csv, .parquet, .xlsx, .html or .json.")
@click.option("--plot", "picture", metavar="FILE", help="Also a page of pictures: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(
    source: Source,
    table: str,
    columns: tuple[str, ...],
    workload: tuple[str, ...],
    output: str | None,
    picture: str | None,
    analyst: str | None,
    owner: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Publish TABLE of DECLARATION, or of a service, as synthetic rows.

    Ctrl-C ends it early: what was measured until then makes the table. A service goes on: ask again for it.
    """
    from discreet.release.plot import target
    from discreet.release.save import place

    if output:
        place(output)  # before anything is paid
    if picture:
        target(picture)
    who = source.who(analyst, owner)
    if not source.elsewhere:
        who["tell"] = None if as_json or not sys.stderr.isatty() else _told
    with source.curator(load=True, owner=owner) as curator:
        together = [[name.strip() for name in one.split(",")] for one in workload] or None
        release = curator.publish(table, columns=list(columns) or None, workload=together, **said, **who)
        if output:
            release.save(output)
        if picture:
            release.plot(picture)
        if as_json:
            click.echo(release.to_json())
        else:
            click.echo(screen.answer(release))
            if output:
                click.echo(f"{len(release):,} rows are in {Path(output)}")


def _told(progress: Progress) -> None:
    """One step in a line: what was measured, how much of the price is used, how wrong the table was there before."""
    words = f"{progress.step}/{progress.steps}  {', '.join(progress.clique)}  {progress.spent:.0%} of the price used"
    click.echo(words + (f"  off by about {progress.error:.1%} before" if progress.error else ""), err=True)
