"""The commands `discreet backup` and `discreet restore`: a copy of ledger, accounts and declaration, and back again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from discreet.texts import visible

_machine = click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")


@click.command()
@click.argument("declaration", type=Path)
@click.argument("folder", type=Path)
@_machine
def backup(declaration: Path, folder: Path, as_json: bool) -> None:
    """Copy DECLARATION, its ledger and its accounts into the new FOLDER, while others ask.

    Prepared copies of tables are not in it: they hold rows, and are made again. Note the printed head elsewhere.
    """
    from discreet.catalog import read
    from discreet.cli.outputs import spare
    from discreet.service.backup import back_up

    spare(read(declaration), folder)
    done = back_up(declaration, folder)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
    else:
        names = ", ".join(visible(file.name) for file in done.files.values())
        click.echo(f"{names}: copied and verified, {done.head.seq:,} entries")
        click.echo(f"head {done.head.hash.hex()}")


@click.command()
@click.argument("declaration", type=Path)
@click.argument("folder", type=Path)
@click.option("--expect-head", metavar="HASH", help="The head with which the ledger ended: the copy must end with it.")
@click.option(
    "--spend-unknown",
    metavar="AMOUNT",
    help="Where the copy may lack something: charge what that cost together: 0.5, or 0.5,1e-8; 0 if nothing.",
)
@_machine
def restore(declaration: Path, folder: Path, expect_head: str | None, spend_unknown: str | None, as_json: bool) -> None:
    """Put the copy in FOLDER back, where DECLARATION has no ledger any more.

    It takes one of the two options: a copy cannot know what was asked after it was taken.
    """
    from discreet.cli.history import unknown_loss
    from discreet.service.backup import restore

    if (expect_head is None) is (spend_unknown is None):
        raise click.UsageError(
            "say --expect-head HASH, where the copy ends as the ledger did; else --spend-unknown AMOUNT"
        )
    loss = None if spend_unknown is None else unknown_loss(spend_unknown)
    done = restore(declaration, folder, expect_head=expect_head, loss=loss)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
        return
    click.echo(f"{visible(declaration.name)}: the ledger is back, {done.head.seq:,} entries")
    click.echo(f"head {done.head.hash.hex()}")
    if done.ended:
        click.echo(f"all accounts are ended: {', '.join(done.ended)}; next: `discreet account add`")
