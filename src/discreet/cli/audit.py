"""`discreet audit`: an attack on the mechanisms, the filter and, with a declaration, on its questions."""

from __future__ import annotations

import json

import click

from discreet.cli import screen

FOUND = 5


@click.command("audit")
@click.argument("declaration", required=False)
@click.option("--thorough", is_flag=True, help="Ten times the draws, and every column: some minutes, not half of one.")
@click.option("--hunt", "hunted", type=click.IntRange(0), metavar="N", help="Whole questions to make up: 100.")
@click.option("--seed", type=int, default=1, metavar="N", help="Other questions for another number.")
@click.option("--plot", "picture", metavar="FILE", help="Also draw what was found: .png, .svg or .html.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(
    declaration: str | None, thorough: bool, hunted: int | None, seed: int, picture: str | None, as_json: bool
) -> int:
    """Attack the privacy guarantees on synthetic tables and report what was found.

    With DECLARATION also the questions that its tables allow. Reads no private row and spends nothing. Exit code 5 if
    something was found.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from discreet.audit import audit
    from discreet.audit.picture import plot
    from discreet.catalog import read
    from discreet.cli.outputs import spare
    from discreet.release.plot import target

    if picture:
        target(picture)
    known = read(declaration) if declaration else None
    if known is not None:
        spare(known, picture)  # before the work
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
        task = bar.add_task("getting ready")

        def tell(done: int, total: int, subject: str) -> None:
            bar.update(task, completed=done, total=total, description=subject[:60])

        report = audit(known, thorough=thorough, hunted=hunted, seed=seed, progress=tell)
    if as_json:
        click.echo(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        width = max(72, min(160, screen.width() or 160))
        click.echo(report.text(width, colour=screen.emphasised()))
    if picture:
        plot(report, picture)
    return FOUND if report.findings else 0
