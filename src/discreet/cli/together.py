"""`discreet together`: several data holders open one noisy count or sum; and a demonstration of it on one machine."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from discreet.errors import QuestionError, SessionError
from discreet.texts import visible

_QUESTION = "SELECT education, COUNT(*) AS people FROM adult GROUP BY education"
_HOSPITALS = ("north", "south", "west")
_SPARE = 120  # seconds that a party's process may take beside the phases of a session
_PHASES = 9
_OPENSSL = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SPLIT = """
import duckdb, sys
source, *targets = sys.argv[1:]
for place, target in enumerate(targets):
    with duckdb.connect(target) as file:
        numbered = f"SELECT *, row_number() OVER () AS place FROM read_csv('{source}', nullstr='', parallel=false)"
        part = f"WHERE place % {len(targets)} = {place}"
        file.execute(f"CREATE TABLE adult AS SELECT * EXCLUDE (place) FROM ({numbered}) {part}")
"""
"""Run in a process of its own: no other of ours holds rows in the database's library."""


@click.group("together", invoke_without_command=True)
@click.option(
    "--parties",
    multiple=True,
    metavar="FILE",
    help="Declarations of the parties, in place of the made-up: once for each, or a text file with one a line.",
)
@click.option("--question", help="One count or sum, with groups that all declarations give the same values.")
@click.option("--epsilon", default="1", show_default=True, help="What each party's ledger is charged.")
@click.option("--colluding", default=1, show_default=True, help="How many parties may collude.")
@click.option(
    "--absent", default=0, show_default=True, help="How many parties may drop out before the roster is fixed."
)
@click.option("--largest", is_flag=True, help="Open only which group has the largest count. Needs the extra mpc.")
@click.option("--seconds", default=60, show_default=True, help="How long each phase may take.")
@click.pass_context
def command(
    context: click.Context,
    parties: tuple[str, ...],
    question: str | None,
    epsilon: str,
    colluding: int,
    absent: int,
    largest: bool,
    seconds: int,
) -> None:
    """Open one answer over the tables of several parties who show each other nothing else.

    Without a command: a demonstration on this machine, with a process, a DuckDB file and a ledger for each party.
    """
    if context.invoked_subcommand is not None:
        return
    if parties and question is None:
        raise QuestionError("together", "the question is missing", where="--question", fix=f'write "{_QUESTION}"')
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = [one for name in parties for one in _declarations(name)] or _made_up(place)
        names = [file.stem for file in files]
        certificates = [_certificate(place, name) for name in names]
        addresses = [
            f"{name}=127.0.0.1:{port}={certificate}"
            for name, port, certificate in zip(names, _ports(len(names)), certificates, strict=True)
        ]
        document = place / "session.json"
        asked = question or _QUESTION
        _write(document, files[0], asked, addresses, epsilon, colluding, absent, largest, seconds)
        _say(f"{len(files)} parties, each with a process, a table and a ledger of its own, agree on a document:")
        options = f"--epsilon {epsilon} --colluding {colluding} --absent {absent} --seconds {seconds}"
        opens = " --largest" if largest else ""
        _shell(f'discreet together agree {files[0].name} "{asked}" {options}{opens} --party …')
        _say("and each takes part, with its own key; what goes between them are random numbers:")
        for name, file in zip(names, files, strict=True):
            _shell(f"discreet together join session.json {file.name} --party {name} --key {name}.key")
        _demonstrate(document, files, names, seconds)


@command.command()
@click.argument("declaration")
@click.argument("question")
@click.option("--party", "parties", multiple=True, required=True, metavar="NAME=HOST:PORT=CERTIFICATE.pem")
@click.option("--epsilon", required=True, help="What each party's ledger is charged.")
@click.option("--colluding", required=True, type=int, help="How many parties may collude.")
@click.option(
    "--absent", default=0, show_default=True, help="How many parties may drop out before the roster is fixed."
)
@click.option("--largest", is_flag=True, help="Open only which group has the largest count. Needs the extra mpc.")
@click.option("--seconds", default=60, show_default=True, help="How long each phase may take.")
@click.option("-o", "--output", default="session.json", show_default=True, metavar="FILE")
def agree(
    declaration: str,
    question: str,
    parties: tuple[str, ...],
    epsilon: str,
    colluding: int,
    absent: int,
    largest: bool,
    seconds: int,
    output: str,
) -> None:
    """Write the document that all parties take, from one party's DECLARATION. Reads no row and spends nothing."""
    from discreet.catalog import read
    from discreet.cli.outputs import spare

    if Path(output).exists():
        fix = "remove it, or name another with --output"
        raise QuestionError("exists", "this file exists", where=output, fix=fix)
    spare(read(declaration), output)
    written = _write(Path(output), Path(declaration), question, parties, epsilon, colluding, absent, largest, seconds)
    click.echo(f"{output} is written, with the hash {written}; every party takes the same file")


@command.command()
@click.argument("session")
def show(session: str) -> None:
    """What SESSION says, and the fingerprint of each party's certificate: to compare by another way."""
    from discreet.together import read as read_session
    from discreet.trusted.ring_a.exact import show as shown

    agreed = read_session(session)
    what = (
        f"the largest of {len(agreed.cells):,} groups" if agreed.opens == "largest" else f"{len(agreed.cells):,} totals"
    )
    click.echo(f"{visible(agreed.question)}\nopens {what} for ε {shown(agreed.epsilon)} of each party's budget")
    click.echo(f"holds though {agreed.colluding} of {len(agreed.parties)} collude and {agreed.absent} others drop out")
    for party in agreed.parties:
        address = f"{visible(party.name)} at {visible(party.host)}:{party.port}"
        click.echo(f"{address}, certificate {party.fingerprint}")
    click.echo(f"session {agreed.hash}")


@command.command()
@click.argument("session")
@click.argument("declaration")
@click.option("--party", required=True, help="Which of the session's parties this is.")
@click.option("--key", required=True, metavar="FILE", help="The private key of its certificate.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")
def join(session: str, declaration: str, party: str, key: str, as_json: bool) -> None:
    """Take part in SESSION with the tables of DECLARATION.

    Charged before anything leaves; printed is what all parties opened.
    """
    from discreet.catalog import read
    from discreet.curator import Curator
    from discreet.together import read as read_session
    from discreet.together import take_part

    agreed = read_session(session)
    agreed.place(party)
    with Curator.of(read(declaration), load=True, owner=True) as curator:  # a party is the owner
        contribution = curator.contribution(agreed)
        opened = take_part(agreed, party, key, contribution)
        release = contribution.commit(opened.totals, opened.roster, opened.transcript)
    click.echo(release.to_json() if as_json else repr(release))
    if not as_json:
        together = (
            f"{', '.join(map(visible, opened.roster))} together; session {agreed.hash}; transcript {opened.transcript}"
        )
        click.echo(f"{together}\n{_noise(agreed.mechanism.parties, agreed.mechanism.honest, len(opened.roster))}")


def _noise(parties: int, honest: int, present: int) -> str:
    """The cost of distributed trust: how much larger the noise variance is."""
    more = Fraction(present, honest)
    times = f"{more.numerator / more.denominator:.3g} times"
    return (
        f"noise: {times} the variance of one curator who holds all {parties} tables"
        if more > 1
        else "noise: that of one curator"
    )


def _write(
    target: Path,
    declaration: Path,
    question: str,
    parties: Sequence[str],
    epsilon: str,
    colluding: int,
    absent: int,
    largest: bool,
    seconds: int,
) -> str:
    """Writes the document; gives its hash."""
    from discreet.catalog import read
    from discreet.curator import Curator
    from discreet.together import Session
    from discreet.trusted.ring_a.exact import fraction

    try:
        price = fraction(epsilon)
    except ValueError:
        fix = "write --epsilon 0.5"
        raise QuestionError("price", "epsilon must be a finite number", where="--epsilon", fix=fix) from None
    found, opens = tuple(map(_party, parties)), "largest" if largest else "totals"
    with Curator.of(read(declaration), load=False) as curator:
        terms = vars(curator.terms(question, opens))
    session = Session(
        question=question,
        epsilon=price,
        colluding=colluding,
        absent=absent,
        parties=found,
        opens=opens,
        seconds=seconds,
        **terms,
    )
    target.write_text(session.to_json(), "utf-8")
    return session.hash


def _declarations(name: str) -> list[Path]:
    """Declarations that --parties names: one, several with commas, or those that stand in a text file, one a line."""
    file = Path(name)
    if file.suffix == ".toml" or not file.is_file():
        return [Path(one.strip()) for one in name.split(",")]
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    found = [file.parent / line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        fix = "name declarations, or a text file with one a line"
        raise QuestionError("together", "no declaration is named there", where=f"--parties {name[:60]}", fix=fix)
    return found


def _party(text: str) -> Any:
    from discreet.together import Party

    name, _, rest = text.partition("=")
    address, _, file = rest.partition("=")
    host, _, port = address.rpartition(":")
    fix = "write north=192.0.2.7:7001=north.pem"
    if not port.isascii() or not port.isdecimal() or len(port) > 5 or not file:
        raise QuestionError("party", "not a valid party", where=f"--party {text[:60]}", fix=fix)
    try:
        certificate = Path(file).read_text("ascii")
    except (OSError, ValueError):
        message = "its certificate cannot be read"
        raise QuestionError("party", message, where=f"--party {text[:60]}", fix="name a file in PEM") from None
    return Party(name, host.strip("[]"), int(port), certificate)


def _demonstrate(document: Path, files: Sequence[Path], names: Sequence[str], seconds: int) -> None:
    """All parties as processes; what they opened, and what each ledger says."""
    with ExitStack() as stack:
        processes = []
        for name, file in zip(names, files, strict=True):
            arguments = ["together", "join", str(document), str(file), "--party", name]
            arguments += ["--key", str(document.parent / f"{name}.key")]
            starts = [sys.executable, "-P", "-c", "from discreet.cli import run; run()", *arguments]
            process = subprocess.Popen(starts, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            stack.callback(process.kill)
            processes.append(process)
        said = []
        for name, process in zip(names, processes, strict=True):
            try:
                out, error = process.communicate(timeout=_PHASES * seconds + _SPARE)
            except subprocess.TimeoutExpired:
                out, error = "", "it did not end in time"
            if process.returncode != 0:
                click.echo(f"{name}: {error.strip()}", err=True)
            said.append(out)
        seen = {line for out in said for line in out.splitlines() if "transcript" in line}
        ended = any(process.returncode != 0 for process in processes) or len(seen) != 1
    if not ended:
        _say("What all of them opened, printed by the first:")
        click.echo(said[0].rstrip())
    _say("What each ledger says:")
    for name, file in zip(names, files, strict=True):
        click.secho(f"{name}:", bold=True)
        click.echo(_ledger(file))
    if ended:
        fix = "see what each party said"
        raise SessionError("ended", "not every party came to the end", where="together", fix=fix)


def _ledger(declaration: Path) -> str:
    from discreet.catalog import read
    from discreet.cli.history import as_text
    from discreet.curator import Curator
    from discreet.curator.history import as_dict

    with Curator.of(read(declaration), load=False) as curator:
        return as_text(as_dict(curator, curator.ledger.verify()))


def _made_up(folder: Path) -> list[Path]:
    """The census that comes with the package, in three DuckDB files, as if three hospitals held a part each."""
    import gzip
    from importlib.resources import files

    from discreet.cli.demo import declaration as declared

    source = folder / "adult.csv"
    source.write_bytes(gzip.decompress((files("discreet") / "data" / "adult.csv.gz").read_bytes()))
    targets = [folder / f"{name}.duckdb" for name in _HOSPITALS]
    subprocess.run([sys.executable, "-P", "-c", _SPLIT, str(source), *map(str, targets)], check=True)
    text, found = declared(str(source), source.parent), []
    for target in targets:
        found.append(target.with_suffix(".toml"))
        found[-1].write_text(text.replace(source.name, f"{target.name}::adult"), "utf-8")
    return found


def _certificate(folder: Path, name: str) -> Path:
    """A certificate that a party signs itself, and its key beside it, for two days."""
    if shutil.which("openssl") is None:
        fix = "install openssl: it makes the certificates of the demonstration"
        raise QuestionError("together", "this needs the command openssl", where="together", fix=fix)
    target = folder / f"{name}.pem"
    made = ["-days", "2", "-subj", f"/CN={name}", "-keyout", str(target.with_suffix(".key")), "-out", str(target)]
    subprocess.run([*_OPENSSL, *made], check=True, capture_output=True)
    return target


def _ports(count: int) -> list[int]:
    """Ports of the loopback address that are free now, below those that the system gives to callers."""
    found: set[int] = set()
    while len(found) < count:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.add(port)
    return sorted(found)


def _say(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _shell(command: str) -> None:
    click.secho(f"$ {command}", fg="cyan")
