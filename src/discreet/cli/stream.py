"""`discreet stream`: a declared stream goes on by the clock."""

from __future__ import annotations

import click

from discreet.cli import screen
from discreet.cli.opening import opened
from discreet.errors import refused


@click.command("stream")
@click.argument("declaration")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Show all periods so far, not the latest alone.")
@click.option("-o", "--output", metavar="FILE", help="Also write them: .csv, .parquet, .xlsx, .html or .json.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(declaration: str, name: str | None, everything: bool, output: str | None, as_json: bool) -> None:
    """Release what is due of the stream NAME of DECLARATION: each period that is over, once.

    The first time it charges the price of the whole horizon. Run it once a day, after `discreet refresh`: a day that
    was missed is made up for. NAME may be left out where one stream is declared.
    """
    if output:
        from discreet.catalog import read
        from discreet.cli.outputs import spare
        from discreet.release.save import place

        place(output)
        spare(read(declaration), output)  # before anything is paid
    with opened(declaration, load=True, owner=True) as curator:
        known = list(curator.declaration.streams)
        if name is None and len(known) != 1:
            fix = f"name one of {', '.join(known)}" if known else "declare one: [streams.daily]"
            raise refused("stream", f"{len(known)} streams are declared", "NAME", fix)
        stream = curator.stream(known[0] if name is None else name)
        release = stream.advance()
        if everything:
            release = stream.releases
        if output:
            release.save(output)
        click.echo(release.to_json() if as_json else screen.answer(release))
