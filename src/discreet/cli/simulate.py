"""`discreet simulate`: how good a published table other prices would buy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from discreet.simulation import SimulatedPrice


@click.command("simulate")
@click.argument("made", metavar="FILE")
@click.option("--epsilon", "epsilon", multiple=True, required=True, help="A price, for instance 1. Once for each.")
@click.option("--method", default="adaptive", show_default=True, help="adaptive, mst or independent.")
@click.option("--plot", "picture", metavar="PAGE", help="Also a page of pictures: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def command(made: str, epsilon: tuple[str, ...], method: str, picture: str | None, *, as_json: bool) -> None:
    """Simulate what other prices would buy, on the made-up rows of FILE.

    FILE is a .json that `discreet publish -o` has written. Its rows are published again at each price, as if they were
    the real ones. No ledger is touched, and nothing is spent.
    """
    from discreet.release.plot import target
    from discreet.simulation import simulate
    from discreet.synthesis.saved import published

    if picture:
        target(picture)
    tell = None if as_json or not sys.stderr.isatty() else _told
    simulation = simulate(published(made), epsilon, method=method, tell=tell)
    if picture:
        simulation.plot(picture)
    click.echo(simulation.to_json() if as_json else str(simulation))


def _told(one: SimulatedPrice) -> None:
    click.echo(f"{one.release.cost} is done", err=True)
