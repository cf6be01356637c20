"""`discreet publish`: synthetic tables, written to files."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import screen
from discreet.cli.there import CommandTarget, sourced
from discreet.errors import refused

if TYPE_CHECKING:
    from discreet.synthesis.adaptive import Progress


def _of_tables(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments DECLARATION and TABLE, once or several times."""

    @click.argument("declaration", required=False)
    @click.argument("tables", nargs=-1, metavar="[TABLE]...")
    @functools.wraps(command)
    def given(declaration: str | None, tables: tuple[str, ...], **said: Any) -> Any:
        if said["server"] is not None and declaration is not None and not declaration.endswith(".toml"):
            tables = (declaration, *tables)  # a service is asked: what was named first is a table
            declaration = None
        if not tables:
            raise refused("table", "there is no table", "TABLE", "name one, as in clinic.toml visits")
        return command(declaration=declaration, tables=tables, **said)

    return given


@click.command("publish")
@_of_tables
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
@click.option("--target", metavar="COLUMN", help="The column that models will predict from the others.")
@click.option("--like", metavar="FILE", help="Continue an earlier release of the same columns: its .json.")
@click.option("--column", "columns", multiple=True, metavar="COLUMN", help="Only these columns.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@click.option("--owner", is_flag=True, help="The owner asks: no analyst's account pays.")
@click.option("--part", help="Of the persons of this part alone, whose own budget pays: [budget] parts.")
@click.option("--request", help="An id that makes a retry safe: the same id is charged once.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where the rows go: .csv, .parquet, .xlsx, .html, .json or .duckdb; of several tables each to FILE_TABLE, all "
    "to one .duckdb with keys, or to one .json.",
)
@click.option("--plot", "picture", metavar="FILE", help="Also a page of pictures: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(
    source: CommandTarget,
    tables: tuple[str, ...],
    columns: tuple[str, ...],
    workload: tuple[str, ...],
    output: str | None,
    picture: str | None,
    like: str | None,
    analyst: str | None,
    owner: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Publish TABLE of DECLARATION, or of a service, as synthetic rows; several of the same persons with keys that fit.

    Ctrl-C ends it early: what was measured until then makes the table, of several those that were begun. A service goes
    on: ask again for it.
    """
    from discreet.release.plot import target
    from discreet.synthesis.destinations import each, place
    from discreet.synthesis.saved import published

    if like is not None:
        said["like"] = published(like)
    if output:
        place(output)
    if picture:
        target(picture)
    files: list[Path] = [] if output is None else [Path(output)]
    if output is not None and len(tables) > 1:
        files = list(each(Path(output), tables).values())
    source.spare(*files, picture)  # before anything is paid
    who = source.who(analyst, owner)
    if not source.elsewhere:
        who["tell"] = None if as_json or not sys.stderr.isatty() else _told
    with source.curator(load=True, owner=owner) as curator:
        if len(tables) > 1:
            if picture:
                fix = "draw one table of the release in Python"
                raise refused("table", "several tables cannot be published with --plot", "TABLE", fix)
            said |= {"columns": list(columns) or None, "workload": list(workload) or None}
            asked: Any = curator
            _several(asked.publish(tables, **said, **who), output, as_json=as_json)
            return
        together = [[name.strip() for name in one.split(",")] for one in workload] or None
        release = curator.publish(tables[0], columns=list(columns) or None, workload=together, **said, **who)
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


def _several(release: Any, output: str | None, *, as_json: bool) -> None:
    written = release.save(output) if output else {}
    if as_json:
        click.echo(release.to_json())
        return
    click.echo(screen.answer(release))
    for name, path in written.items():
        click.echo(f"{len(release.tables[name]):,} rows of {name} are in {path}")


def _told(progress: Progress) -> None:
    """One step in a line: what was measured, how much of the price is used, how wrong the table was there before."""
    words = f"{progress.step}/{progress.steps}  {', '.join(progress.clique)}  {progress.spent:.0%} of the price used"
    click.echo(words + (f"  off by about {progress.error:.1%} before" if progress.error else ""), err=True)
