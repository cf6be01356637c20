"""`discreet demo`: the main job on real data, in a few seconds."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from discreet import BudgetError, QuestionError, open
from discreet.catalog.model import EngineKind
from discreet.cli import screen
from discreet.cli.history import as_text
from discreet.cli.start import suggest
from discreet.curator.history import as_dict
from discreet.engines.chosen import example

_FIRST = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM adult GROUP BY sex"
_SECOND = (
    "SELECT education, COUNT(*) AS people, AVG(hours_per_week) AS hours "
    "FROM adult GROUP BY education ORDER BY hours DESC"
)
_THIRD = "SELECT SUM(capital_gain) AS gains FROM adult WHERE age BETWEEN 30 AND 39 AND income = '>50K'"
_TOO_MUCH = "SELECT race, sex, COUNT(*) AS n FROM adult GROUP BY race, sex"


def unpacked(folder: Path) -> None:
    """Writes the data that comes with the package to a folder: adult.csv, patients.csv, conditions.csv, names.csv. A
    file that exists stays as it is."""
    for packed in (files("discreet") / "data").iterdir():
        target = folder / packed.name.removesuffix(".gz")
        if packed.name.endswith(".gz") and not target.exists():
            target.write_bytes(gzip.decompress(packed.read_bytes()))


def demonstrate(output: Path, kind: EngineKind = EngineKind.HERE, server: str = "") -> None:
    """Answers, repeats and refuses questions about the 32,561 people of UCI Adult. Leaves a picture, the data and a
    declaration of it, of which nothing is spent, in `output`. Where questions run on a server, the data is put there
    for as long as this takes."""
    output.mkdir(parents=True, exist_ok=True)
    unpacked(output)
    with tempfile.TemporaryDirectory() as folder, example(kind, server, output / "adult.csv") as there:
        here = Path(folder) / "adult.csv"
        shutil.copy(output / "adult.csv", here)
        source = str(here) if kind is EngineKind.HERE else there
        flags = (
            "--one-row-per-person --public sex --public race --public education "
            "--range age=17:90 --range hours_per_week=1:99 --range capital_gain=0:99999 --epsilon 3"
        )
        _say("32,561 people of a census, one row each. The owner declares what may be asked, and a budget of ε 3:")
        _shell(f"discreet init {'adult.csv' if kind is EngineKind.HERE else there} {flags}")
        file = Path(folder) / "adult.toml"
        text = declaration(source, Path(folder))
        if kind is not EngineKind.HERE:
            engine = {"kind": kind.value} | ({"remote": server} if kind is EngineKind.SPARK else {})
            written = [f'{name} = "{value}"' for name, value in engine.items()]
            _say(f"Questions run where the table is: the owner calls it adult, and adds {', '.join(written)}.")
            name = there.rpartition("::")[2].replace(".", "_")
            text = "\n".join([text.replace(f"tables.{name}", "tables.adult"), "[engine]", *written, ""])
        file.write_text(text, "utf-8")
        with open(file) as curator:
            _say("An analyst sees the price and the expected error before anything is spent:")
            _shell(f'discreet explain adult.toml "{_FIRST}" --epsilon 0.5')
            click.echo(screen.prose(repr(curator.explain(_FIRST, epsilon="0.5"))))
            _say("and asks. Every number has its 95 % confidence interval:")
            _shell(f'discreet ask adult.toml "{_FIRST}" --epsilon 0.5')
            click.echo(screen.answer(curator.ask(_FIRST, epsilon="0.5")))
            _say("The same question again gives the same answer, free of charge:")
            click.echo(screen.answer(curator.ask(_FIRST, epsilon="0.5")))
            _say("Sixteen groups at once, in order of the noisy answer:")
            _shell(f'discreet ask adult.toml "{_SECOND}" --epsilon 1')
            release = curator.ask(_SECOND, epsilon="1")
            click.echo(screen.answer(release))
            _say("A sum, at whatever price gives ±1,000,000 dollars:")
            _shell(f'discreet ask adult.toml "{_THIRD}" --within gains=1000000')
            click.echo(screen.answer(curator.ask(_THIRD, within={"gains": 1_000_000})))
            _say("A question over the budget is refused; the error says what still fits:")
            _shell(f'discreet ask adult.toml "{_TOO_MUCH}" --epsilon 2')
            try:
                curator.ask(_TOO_MUCH, epsilon="2")
            except BudgetError as error:
                click.echo(screen.prose(str(error)))
            _say("The ledger records every charge durably, before the answer:")
            _shell("discreet ledger adult.toml --verify")
            click.echo(as_text(as_dict(curator, curator.ledger.verify()), screen.width()))
            picture = output / "discreet-demo.png"
            try:
                release.plot(picture)
                _say(f"A picture with error bars: {picture}")
            except QuestionError as error:
                _say(f"No picture: {error}")
        kept = output / "demo.toml"
        if not kept.exists():
            kept.write_text(declaration(str(here), Path(folder)), "utf-8")
    _say(f"Continue with {kept}; its budget is untouched, nothing above was charged to it:")
    _shell(f'{_command()} ask {kept} "SELECT race, COUNT(*) AS n FROM adult GROUP BY race" --epsilon 0.5')


def declaration(source: str, folder: Path) -> str:
    """What the owner of the census in `source` declares, in a file of this folder."""
    return suggest(
        [source],
        folder,
        one_row_per_person=True,
        person=[],
        rows_per_person=[],
        groups_per_person=[],
        public=["sex", "race", "education"],
        ranges=["age=17:90", "hours_per_week=1:99", "capital_gain=0:99999"],
        types=[],
        epsilon="3.0",
        delta="1e-6",
    )


def _command() -> str:
    """What starts the command in the shell that this runs in."""
    if shutil.which("discreet"):
        return "discreet"
    script = Path(sys.executable).with_name("discreet")
    return os.path.relpath(script) if script.exists() else f"{sys.executable} -m discreet"


def _say(text: str) -> None:
    click.secho(f"\n{screen.prose(text)}", bold=True)


def _shell(command: str) -> None:
    click.secho(f"$ {command}", fg="cyan")
