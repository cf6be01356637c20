"""Whom a command asks: the curator of a declaration, here, or a service's, there."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from discreet.cli.opening import opened
from discreet.errors import refused

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.remote import RemoteCurator

TOKEN = "DISCREET_TOKEN"
"""The variable that holds a token. A command line is read by everybody on the machine."""

_MOST_READ = 1 << 16
"""Bytes of a file with a token: those of issuers are long."""


@dataclass(frozen=True)
class CommandTarget:
    """The declaration that a command names, or else the service: its address, and where the token stands."""

    declaration: str | None
    server: str = ""
    token_file: Path | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether it is a service."""
        return self.declaration is None

    def refuse(self, **given: object) -> None:
        """Raises QuestionError on the options given that nobody but the owner has, where the ledger lies."""
        for name, value in given.items():
            if value and self.elsewhere:
                option = f"--{name.replace('_', '-')}"
                where, fix = option, "leave it out; the owner says it where the declaration lies"
                raise refused("server", f"a service does not take {option}", where, fix)

    def spare(self, *outputs: str | Path | None) -> None:
        """Raises QuestionError where one of these files is not to be written: `outputs.spare`. What a service's
        declaration needs does not lie here."""
        if self.declaration is not None and any(outputs):
            from discreet.catalog import read
            from discreet.cli.outputs import spare

            spare(read(self.declaration), *outputs)

    def who(self, analyst: str | None, owner: bool) -> dict[str, Any]:
        """What is said of who asks. Raises QuestionError where the token has said it."""
        if not self.elsewhere:
            return {"analyst": analyst}
        if analyst is not None or owner:
            where = "--owner" if owner else "--analyst"
            raise refused("analyst", "the token says who asks", where, "leave it out")
        return {}

    @contextmanager
    def curator(self, *, load: bool, owner: bool = False) -> Iterator[Curator | RemoteCurator]:
        """The curator, closed at the end. Raises QuestionError where there is no token for a service."""
        if self.declaration is not None:
            with opened(self.declaration, load=load, owner=owner) as here:
                yield here
            return
        with self.service() as there:
            yield there

    def service(self) -> RemoteCurator:
        """The service's curator. Raises QuestionError where there is no token for it."""
        from discreet.remote import connect

        return connect(self.server, token=self._token())

    def _token(self) -> str:
        fix = f"set {TOKEN}, or name a file that holds it: --token-file FILE"
        if self.token_file is None:
            token = os.environ.get(TOKEN, "").strip()
            if not token:
                raise refused("token", "there is no token", TOKEN, fix)
            return token
        try:
            with self.token_file.open("rb") as file:
                token = file.read(_MOST_READ).decode("ascii").strip()
        except (OSError, ValueError):
            raise refused("token", f"{self.token_file} cannot be read", "--token-file", fix) from None
        if not token:
            raise refused("token", f"{self.token_file} is empty", "--token-file", fix)
        return token


def sourced(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a service, instead of the argument DECLARATION; one of them is the command's `source`.

    A declaration that is named is asked, whatever service the environment names."""

    @click.option(
        "--server",
        metavar="URL",
        envvar="DISCREET_SERVER",
        help=f"Ask a service instead of DECLARATION, with the token in {TOKEN}.  [env: DISCREET_SERVER]",
    )
    @click.option(
        "--token-file", metavar="FILE", type=Path, help=f"With --server: a file with the token, instead of {TOKEN}."
    )
    @functools.wraps(command)
    def given(declaration: str | None, server: str | None, token_file: Path | None, **said: Any) -> Any:
        return command(source=_source(declaration, server, token_file), **said)

    return given


def _source(declaration: str | None, server: str | None, token_file: Path | None) -> CommandTarget:
    if declaration is not None:
        if server is not None and said_here("server"):
            fix = "leave out DECLARATION, or --server"
            raise refused("server", "a service has a declaration of its own", "DECLARATION", fix)
        if token_file is not None:
            fix = "leave it out; or name a service with --server"
            raise refused("server", "a token is for a service", "--token-file", fix)
        return CommandTarget(declaration)
    if server is None:
        fix = "name its file, as in clinic.toml; or a service with --server https://host:8443"
        raise refused("declaration", "there is no declaration", "DECLARATION", fix)
    return CommandTarget(None, server, token_file)


def said_here(option: str) -> bool:
    """Whether an option stands on the command line, and not in the environment."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE
