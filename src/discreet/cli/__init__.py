"""The command line. Answers go to standard output, everything else to standard error.

Exit codes: 0 done, 1 a fault of discreet itself, 2 the question or the declaration is wrong, 3 refused for the budget,
4 the engine, the ledger or a session of several parties failed, 5 the audit found something, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import functools
import io
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import click

from discreet import __version__
from discreet.catalog.model import EngineKind
from discreet.cli import screen
from discreet.cli.audit import command as audit_command
from discreet.cli.backup import backup as backup_command
from discreet.cli.backup import restore as restore_command
from discreet.cli.collect import command as collect_command
from discreet.cli.collect import estimate_command
from discreet.cli.mcp import command as mcp_command
from discreet.cli.opening import opened
from discreet.cli.profile import command as profile_command
from discreet.cli.publish import command as publish_command
from discreet.cli.requests import COMMANDS as REQUESTS
from discreet.cli.serve import account as account_command
from discreet.cli.serve import serve as serve_command
from discreet.cli.serve import token as token_command
from discreet.cli.simulate import command as simulate_command
from discreet.cli.stream import command as stream_command
from discreet.cli.there import CommandTarget, said_here, sourced
from discreet.cli.together import command as together_command
from discreet.errors import DeclarationError, Error, Fault, QuestionError
from discreet.texts import visible

USUAL = 0.7311
"""The odds of ε 1."""

MOST_READ = 1 << 20
"""Bytes of a file or of standard input that are read for a question; far shorter ones are refused as too long."""

BUG = "this is a bug in discreet; nothing private is shown here. Please report the command, not the data."


def run() -> None:
    """Every error becomes a text and an exit code; a bug never shows what it held. Raises KeyboardInterrupt, of which
    `discreet.__main__` says what becomes."""
    as_json = "--json" in sys.argv
    signal.signal(signal.SIGTERM, _end)  # as an exit: what is open is closed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an answer is paid for: it is printed whatever the terminal can show
    try:
        code = main(standalone_mode=False)
    except Error as error:
        _complain(error, as_json)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except Exception as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # click hands it on as an Abort, or fails to say it
            raise KeyboardInterrupt from None
        ended = isinstance(error, click.Abort)  # by the end of what is typed, or a no
        click.echo("stopped" if ended else f"{BUG} ({type(error).__name__})", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    sys.exit(128 + number)


def _complain(error: Error, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(error.to_dict(), ensure_ascii=False))
    else:
        lines = str(error).split("\n") if isinstance(error, DeclarationError) else [str(error)]  # a line for each fault
        click.echo(screen.complaint("\n".join(map(visible, lines))), err=True)


def _pages() -> str:
    """Where the documentation begins: in the package, or above it in a clone."""
    package = Path(__file__).parent.parent
    places = (place / "README.md" for place in (package, package.parent.parent) if (place / "docs").is_dir())
    return str(next(places, "README.md"))


class _Commands(click.Group):
    """The commands, and where the documentation begins, in a line that no terminal wraps."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("More"):
            formatter.write_text("`discreet demo` shows it on real data. The pages begin with:")
            formatter.write(f"{'':{formatter.current_indent}}{_pages()}\n")
            formatter.write_text(
                "Exit codes: 0 done, 1 a fault of discreet itself, 2 the question or the declaration is wrong, "
                "3 refused for the budget, 4 the engine, the ledger or a session of several parties failed, "
                "5 the audit found something, 130 stopped with Ctrl-C."
            )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="discreet")
@click.pass_context
def main(context: click.Context) -> None:
    """Ask questions about tables of people in SQL, and get answers that may be published."""
    context.color = None if screen.emphasised() else False


def _machine(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Write JSON, for a machine.")(command)


def _asked(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments DECLARATION and QUESTION, or a file that holds this."""

    @click.argument("declaration", required=False)
    @click.argument("question", required=False)
    @click.option(
        "-f",
        "--file",
        "file",
        metavar="FILE",
        help="A file with the question, instead of QUESTION; - is standard input.",
    )
    @functools.wraps(command)
    def given(declaration: str | None, question: str | None, file: str | None, **said: Any) -> Any:
        if said["server"] is not None and question is None and (file is None or said_here("server")):
            if not str(declaration).endswith(".toml"):  # a service is asked: what was named first is the question
                declaration, question = None, declaration
        elif str(declaration).lstrip()[:6].upper() == "SELECT":
            message, fix = "a question was given in place of the declaration", 'write clinic.toml "SELECT …"'
            raise QuestionError("question", message, where="DECLARATION", fix=fix)
        return command(declaration=declaration, question=_question(question, file), **said)

    return given


def _numbered(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments DECLARATION and ENTRY."""

    @click.argument("declaration", required=False)
    @click.argument("entry", type=int, required=False)
    @functools.wraps(command)
    def given(declaration: str | None, entry: int | None, **said: Any) -> Any:
        if said["server"] is not None and entry is None and str(declaration).isdecimal():
            declaration, entry = None, int(str(declaration))
        return command(declaration=declaration, entry=entry, **said)

    return given


def _question(question: str | None, file: str | None) -> str:
    if (question is None) == (file is None):
        message = "there is no question" if file is None else "there are two questions"
        raise QuestionError(
            "question", message, where="QUESTION", fix='write "SELECT …", --file question.sql, or - for standard input'
        )
    if "-" in (question, file):
        return _decoded(sys.stdin.buffer.read(MOST_READ), "standard input", "-")
    if file is None:
        if str(question).endswith(".sql"):
            fix = f"write --file {question}"
            raise QuestionError("question", "this is the name of a file", where="QUESTION", fix=fix)
        return str(question)
    try:
        with Path(file).open("rb") as stream:
            return _decoded(stream.read(MOST_READ), file, "--file")
    except OSError:
        fix = "name a text file in UTF-8"
        raise QuestionError("question", f"{file} cannot be read", where="--file", fix=fix) from None


def _decoded(text: bytes, what: str, where: str) -> str:
    """The text of a question. Raises QuestionError where it is none."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        fix = "name a text file in UTF-8" if where == "--file" else "write it in UTF-8"
        raise QuestionError("question", f"{what} cannot be read", where=where, fix=fix) from None


def _priced(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.option("--epsilon", help="The price, for instance 0.5. Without a delta the noise is pure."),
        click.option(
            "--delta",
            help="With public groups: may buy smaller, Gaussian noise. With private ones: pays for finding them.",
        ),
        click.option(
            "--within",
            multiple=True,
            metavar="COLUMN=ERROR",
            help='Instead of a price: the wanted error, "n=100", "n=5 % of 2000", "mean=0.5 of 300".',
        ),
        click.option("--confidence", default="0.95", help="With --within: the confidence level.", show_default=True),
        click.option("--together", is_flag=True, help="With --within: for all cells of the answer at once."),
        click.option("--afresh", is_flag=True, help="Measure anew what earlier answers hold for nothing."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _within(pairs: tuple[str, ...]) -> dict[str, str] | None:
    wanted = {}
    for pair in pairs:
        name, separator, error = pair.rpartition("=")
        if not separator:
            raise QuestionError(
                "within",
                f"{pair[:60]!r} is not a valid column=error",
                where="--within",
                fix="write --within n=100",
            )
        wanted[name] = error
    return wanted or None


@main.command()
@_asked
@sourced
@_priced
@click.option("--dialect", help="Whose SQL it is: postgres, bigquery, snowflake, duckdb, tsql, mysql or redshift.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@click.option("--owner", is_flag=True, help="The owner asks: no analyst's account pays.")
@click.option("--part", help="Of the persons of this part alone, whose own budget pays: [budget] parts.")
@click.option("--request", help="An id that makes a retry safe: the same id is charged once.")
@click.option("-o", "--output", metavar="FILE", help="Also write the answer: .csv, .parquet, .xlsx, .html or .json.")
@click.option("--plot", "picture", metavar="FILE", help="Also draw the answer: .png, .svg or .html.")
@_machine
def ask(
    source: CommandTarget,
    question: str,
    epsilon: str | None,
    delta: str | None,
    within: tuple[str, ...],
    confidence: str,
    together: bool,
    afresh: bool,
    dialect: str | None,
    analyst: str | None,
    owner: bool,
    part: str | None,
    request: str | None,
    output: str | None,
    picture: str | None,
    as_json: bool,
) -> None:
    """Answer QUESTION about the tables of DECLARATION, or of a service."""
    who = source.who(analyst, owner) | ({"reuse": False} if afresh else {}) | ({} if part is None else {"part": part})
    if output:
        from discreet.release.save import place

        place(output)
    if picture:
        from discreet.release.plot import target

        target(picture)
    source.spare(output, picture)  # before anything is paid
    with source.curator(load=True, owner=owner) as curator:
        release = curator.ask(
            question,
            epsilon=epsilon,
            delta=delta,
            within=_within(within),
            confidence=confidence,
            together=together,
            request=request,
            dialect=dialect,
            **who,
        )
        click.echo(release.to_json() if as_json else screen.answer(release))
        if output:
            release.save(output)
        if picture:
            release.plot(picture)


@main.command()
@_asked
@sourced
@_priced
@click.option("--dialect", help="Whose SQL it is: postgres, bigquery, snowflake, duckdb, tsql, mysql or redshift.")
@click.option("--analyst", help="Who asks: a name of [analysts].")
@click.option("--owner", is_flag=True, help="The owner asks: no analyst's account pays.")
@click.option("--part", help="Of the persons of this part alone, whose own budget pays: [budget] parts.")
@click.option("--sql", is_flag=True, help="For the owner: also the statement that the engine would run.")
@_machine
def explain(
    source: CommandTarget,
    question: str,
    epsilon: str | None,
    delta: str | None,
    within: tuple[str, ...],
    confidence: str,
    together: bool,
    afresh: bool,
    dialect: str | None,
    analyst: str | None,
    owner: bool,
    part: str | None,
    sql: bool,
    as_json: bool,
) -> None:
    """Price and expected error of QUESTION. Spends nothing and reads no row."""
    source.refuse(sql=sql)
    who = source.who(analyst, owner) | ({"reuse": False} if afresh else {}) | ({} if part is None else {"part": part})
    with source.curator(load=False, owner=owner) as curator:
        explanation = curator.explain(
            question,
            epsilon=epsilon,
            delta=delta,
            within=_within(within),
            confidence=confidence,
            together=together,
            dialect=dialect,
            **who,
        )
        statements = None
        if sql:
            from discreet.curator import Curator

            assert isinstance(curator, Curator)
            statements = curator.engine_sql(question, dialect=dialect)
    if as_json:
        extra = {} if statements is None else {"sql": statements}
        click.echo(json.dumps(explanation.to_dict() | extra, ensure_ascii=False))
    else:
        words = screen.prose(repr(explanation))
        click.echo(words if statements is None else f"{words}\n{statements}")


@main.command()
@click.argument("declaration")
@_machine
def check(declaration: str, as_json: bool) -> None:
    """Check DECLARATION and list all faults. Reads no row."""
    from discreet.odds import ALMOST_SURE, best_guess_of_budget, chance
    from discreet.trusted.ring_a.exact import show

    with opened(declaration, load=False) as curator:
        curator.check()
        tables = [table.name for table in curator.declaration.tables.values()]
        shared = [table.name for table in curator.declaration.tables.values() if table.shared]
        kept = curator.kept
        total = curator.balance().total
        odds = best_guess_of_budget(total.epsilon, total.delta)
        renewal, parts = curator.declaration.budget.renewal, curator.declaration.budget.parts
    if as_json:
        sizes = {name: state.bytes for name, state in kept.items()}
        facts = {"faults": [], "tables": tables, "shared": shared, "odds_of_budget": odds, "file_bytes": sizes}
        click.echo(json.dumps(facts))
    else:
        click.echo(screen.prose(f"{declaration}: no faults; tables: {', '.join(tables)}"))
        words = f"is right at most {chance(odds)} of the time after the whole budget"
        click.echo(screen.prose(f"membership inference: an attacker who knows everyone else {words}"))
        if renewal is not None:
            a_year = chance(best_guess_of_budget(*renewal.in_a_year(total.epsilon, total.delta)))
            promise = renewal.in_words(total.epsilon, total.delta)
            click.echo(screen.prose(f"{promise}; the attacker is right at most {a_year} of the time then"))
        if parts is not None:
            click.echo(screen.prose(f"{parts.in_words}: {', '.join(parts.values)}; others are in none"))
        if odds > ALMOST_SURE:
            words = f"ε {show(total.epsilon)} hides almost nothing about a person: at ε 1 it is {chance(USUAL)}"
            click.echo(screen.prose(words))
        for name in shared:
            words = "a row may belong to several persons: each one's part in a row is hidden, not the row itself"
            click.echo(screen.prose(f"{name}: {words}"))
        for name, state in kept.items():
            if state.place:
                click.echo(f"{name}: kept in {state.place}")


@main.command()
@click.argument("declaration", required=False)
@sourced
@_machine
def tables(source: CommandTarget, as_json: bool) -> None:
    """What may be asked about: whose rows, columns, types, bounds and values. Reads no row."""
    with source.curator(load=False) as curator:
        found, period = curator.tables, curator.budget.period
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else repr(found))
    if period is not None and not as_json:
        click.echo(screen.prose(period["promise"]))


@main.command()
@click.argument("declaration", required=False)
@sourced
@_machine
def budget(source: CommandTarget, as_json: bool) -> None:
    """What is used and left of the budget. Of a service, of the token's own account."""
    with source.curator(load=False) as curator:
        found = curator.budget
    click.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else screen.prose(repr(found)))


@main.command()
@click.argument("declaration")
@click.argument("tables", nargs=-1)
@_machine
def refresh(declaration: str, tables: tuple[str, ...], as_json: bool) -> None:
    """Take the sources of these TABLES, or of all, as they are now for the new snapshot. The budget goes on, answers
    from other tables stay free. What changed is for the owner's eyes."""
    from discreet.catalog import read
    from discreet.curator import Curator

    curator = Curator.of(read(declaration), load=False)
    try:
        done = curator.refresh(*tables)
    finally:
        curator.close()
    if as_json:
        numbers = {name: state.snapshot for name, state in done.tables.items() if state.snapshot}
        states = {name: asdict(state) for name, state in done.tables.items()}
        click.echo(json.dumps({"snapshots": numbers, "changed": done, "tables": states}))
    else:
        click.echo(repr(done))


@main.command()
@click.argument("declaration")
@click.option("--analyst", help="Whose questions; without it, everybody's.")
@click.option("--table", "tables", multiple=True, help="About which table; may stand several times. Without it, all.")
@click.option("--reason", required=True, help="Why; the ledger keeps it.")
@_machine
def freeze(declaration: str, analyst: str | None, tables: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Let nothing be measured for an analyst, or for anybody, until `discreet lift`. Nothing is spent or given back."""
    with opened(declaration, load=False) as curator:
        new = curator.freeze(analyst, tables=tables, reason=reason)
    if as_json:
        click.echo(json.dumps({"analyst": analyst, "frozen": True, "new": new, "tables": list(tables)}))
    else:
        about = f" for {', '.join(map(visible, tables))}" if tables else ""
        click.echo(f"{visible(analyst or 'everybody')}: frozen{about}{'' if new else ' already'}")


@main.command()
@click.argument("declaration")
@click.option("--analyst", help="Who may ask again; without it, those who name no analyst, and all who are frozen.")
@click.option("--table", "named", multiple=True, help="About which table alone; may stand several times.")
@click.option("--reason", help="Why; the ledger keeps it.")
@_machine
def lift(declaration: str, analyst: str | None, named: tuple[str, ...], reason: str | None, as_json: bool) -> None:
    """Let an analyst ask again who is frozen, or suspended since a measurement failed. What failed stays counted, and
    a freeze for single tables ends with --table alone."""
    with opened(declaration, load=False) as curator:
        frozen, before = analyst in curator.frozen, curator.frozen_tables.get(analyst, ())
        tables = curator.lift(analyst, tables=named, reason=reason)
        frozen, left = frozen and not named, curator.frozen_tables.get(analyst, ())
    if as_json:
        click.echo(json.dumps({"analyst": analyst, "tables": list(tables), "frozen": frozen}))
        return
    whose = visible(analyst or "those who name no analyst")
    suspended = [visible(one) for one in tables if one not in before]
    thawed = [visible(one) for one in before if one not in left]
    ended = [f"suspended on {', '.join(suspended)}"] if suspended else []
    ended += [f"frozen for {', '.join(thawed)}"] if thawed else []
    ended += ["frozen"] if frozen else []
    said = f"{whose}: no longer {', nor '.join(ended)}" if ended else f"{whose}: not suspended"
    still = f"; frozen for {', '.join(map(visible, left))} until `discreet lift --table`" if left else ""
    click.echo(said + still)


@main.command()
@_numbered
@sourced
@click.option("--verify", is_flag=True, help="Walk the whole chain and recompute every balance.")
@click.option(
    "--expect-head", metavar="HASH", help="A head that was noted earlier; fails if the history does not contain it."
)
@click.option(
    "--spend-unknown",
    metavar="AMOUNT",
    help="For the owner, after a loss: charge what the lost questions cost together: 0.5, or 0.5,1e-8; 0 if none.",
)
@click.option(
    "--raise-budget",
    is_flag=True,
    help="For the owner: take the declaration's larger budget into the ledger, once you have seen the odds.",
)
@click.option("--yes", is_flag=True, help="With --raise-budget: do not ask again.")
@click.option(
    "--renew-filters",
    is_flag=True,
    help="For the owner: replace the filters of an earlier version. The promise becomes (ε, 2δ − keys_delta).",
)
@_machine
def ledger(
    source: CommandTarget,
    entry: int | None,
    verify: bool,
    expect_head: str | None,
    spend_unknown: str | None,
    raise_budget: bool,
    yes: bool,
    renew_filters: bool,
    as_json: bool,
) -> None:
    """What was used, what is left, who asked what. With the number ENTRY, all of that entry."""
    from discreet.cli.history import as_text, entry_text, one_entry, raised, renewed, spent_unknown
    from discreet.curator.history import as_dict

    source.refuse(verify=verify, expect_head=expect_head, spend_unknown=spend_unknown)
    source.refuse(raise_budget=raise_budget, renew_filters=renew_filters)
    if source.declaration is None:
        with source.service() as there:
            found = there.ledger
    else:
        if spend_unknown is not None:
            spent_unknown(source.declaration, spend_unknown)
        larger = raised(source.declaration) if raise_budget else ()
        for line in larger:
            click.echo(line, err=True)
        if larger and not yes:
            click.confirm("Raise it, for good?", abort=True, err=True)
        with opened(source.declaration, load=False, raise_budget=raise_budget) as curator:
            if renew_filters:
                click.echo(renewed(curator.ledger.renew()), err=as_json)
            verification = curator.ledger.verify(expect_head) if verify or expect_head else None
            found = as_dict(curator, verification)
    if entry is not None:
        one = one_entry(found, entry)
        click.echo(json.dumps(one, ensure_ascii=False) if as_json else entry_text(one))
    else:
        click.echo(json.dumps(found, ensure_ascii=False) if as_json else as_text(found, screen.width()))


@main.command()
@click.argument("sources", nargs=-1, required=True)
@click.option(
    "--one-row-per-person",
    is_flag=True,
    help="Each row is a person, or the person column holds each once. Of several sources: where no rows are named.",
)
@click.option(
    "--person",
    multiple=True,
    metavar="COLUMN",
    help='The column that says whose row it is; of several sources table.COLUMN, or "lines.order_id -> orders.id".',
)
@click.option("--rows-per-person", multiple=True, metavar="N", help="Maximum rows counted per person; or table=N.")
@click.option(
    "--groups-per-person",
    multiple=True,
    metavar="N",
    help="Maximum groups of an answer that one person may contribute to.",
)
@click.option(
    "--public",
    multiple=True,
    metavar="COLUMN",
    help="A column whose values are public: they are read and declared as keys.",
)
@click.option("--range", "ranges", multiple=True, metavar="COLUMN=MIN:MAX", help="The range of a number column.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help="integer, number, text, boolean, date, timestamp.",
)
@click.option("--epsilon", default="1", show_default=True, help="The whole budget.")
@click.option("--delta", default="0.000001", show_default=True, help="The whole budget's delta.")
@click.option(
    "-o", "--output", metavar="FILE", help="Where to write it; by default the first source's name with .toml."
)
@click.option(
    "--browser",
    is_flag=True,
    help="Say all this in a form, at an address of this machine: it goes with --epsilon, --delta and --output alone.",
)
@_machine
@click.pass_context
def init(
    context: click.Context,
    /,
    sources: tuple[str, ...],
    output: str | None,
    browser: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Write a declaration for SOURCES: .csv, .parquet, folder/, file.duckdb::table, postgresql://….

    A CSV file's first rows are looked at for delimiter, decimal comma and encoding, and for types, which are written
    as comments: none is taken until you write it. No other value is read, but for those of columns named --public.

    With --browser you say the same in a form, which shows what will be written. It needs the extra `server`.
    """
    from discreet.catalog.suggest import write_new
    from discreet.cli.start import found, named, suggest

    target = Path(output or f"{named(sources[0])}.toml")
    if not target.parent.is_dir():
        fault = Fault(str(target), "there is no such folder", "make it, or name another with --output")
        raise DeclarationError([fault], code="folder")
    if target.exists():
        fault = Fault(str(target), "this file exists", "remove it, or name another with --output")
        raise DeclarationError([fault], code="exists")
    told: list[str] = []
    if browser:
        if any(value for name, value in said.items() if name not in ("epsilon", "delta")):
            raise click.UsageError("--browser goes with --epsilon, --delta and --output alone: the form asks the rest")
        from discreet.beginning.serving import asked

        tables = found(sources, target.parent, told.append)
        for line in told:
            click.echo(visible(line), err=True)
        opens = "open this in a browser on this machine, once; Ctrl-C ends it:"
        if not asked(
            tables, target, (said["epsilon"], said["delta"]), told, lambda url: click.echo(f"{opens}\n{url}", err=True)
        ):
            click.echo("nothing was written", err=True)
            context.exit(1)
        told = []
    else:
        write_new(target, suggest(sources, target.parent, **said, tell=told.append))
    if as_json:
        click.echo(json.dumps({"declaration": str(target), "told": told}, ensure_ascii=False))
    else:
        click.echo(
            "\n".join([f"{target} is written; read it, and declare more about your columns where you can", *told])
        )


@main.command()
@click.option(
    "-o",
    "--output",
    default=".",
    show_default=True,
    metavar="DIRECTORY",
    help="Where picture, data and declaration go.",
)
@click.option(
    "--engine",
    type=click.Choice([kind.value for kind in EngineKind]),
    default=EngineKind.HERE.value,
    show_default=True,
    help="Where questions run.",
)
@click.option(
    "--server", metavar="URL", help="The server they run on: postgresql://user@host/database, or sc://host:15002."
)
def demo(output: str, engine: str, server: str | None) -> None:
    """Real data: questions answered with error bars, a refusal, a picture. Leaves the data and a declaration of it."""
    from discreet.cli.demo import demonstrate

    kind = EngineKind(engine)
    if (kind is EngineKind.HERE) is not (server is None):
        raise click.UsageError(f"--engine {kind} {'takes no --server' if server else 'needs --server URL'}")
    demonstrate(Path(output), kind, server or "")


main.add_command(account_command)
main.add_command(audit_command)
main.add_command(backup_command)
main.add_command(restore_command)
main.add_command(profile_command)
main.add_command(publish_command)
main.add_command(simulate_command)
main.add_command(stream_command)
main.add_command(together_command)
main.add_command(collect_command)
main.add_command(estimate_command)
main.add_command(mcp_command, "mcp")
main.add_command(serve_command)
main.add_command(token_command)
for _one in REQUESTS:
    main.add_command(_one)
