"""Questions in the cells of a notebook: `%load_ext discreet`, `%discreet clinic.toml` or the address of a service, and
cells that begin with `%%discreet --epsilon 0.5`. Needs the extra `notebook`, or any program that runs IPython."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import shlex
import warnings
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import display

from discreet.curator import Curator, open
from discreet.errors import Error, QuestionError
from discreet.release.plot import figure_class
from discreet.remote import RemoteCurator, connect


class _LineOptions(argparse.ArgumentParser):
    """Options of a line; what is wrong in it is said as IPython says it."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. {' '.join(self.format_usage().split())}")


def _opening() -> _LineOptions:
    words = _LineOptions(prog="%discreet", add_help=False)
    words.add_argument(
        "declaration", nargs="?", help="a declaration file, the address of a service, or the name of a curator"
    )
    words.add_argument("--owner", action="store_true", help="the owner asks: no analyst's account pays")
    words.add_argument("--name", help="the curator's name in Python")
    return words


def _asking() -> _LineOptions:
    words = _LineOptions(prog="%%discreet", add_help=False)
    words.add_argument("--epsilon", help="the price")
    words.add_argument("--delta", help="with public groups: may buy smaller noise")
    words.add_argument("--within", action="append", metavar="COLUMN=ERROR", help="instead of a price: the wanted error")
    words.add_argument("--confidence", default="0.95", help="with --within")
    words.add_argument("--together", action="store_true", help="with --within: for all cells at once")
    words.add_argument("--analyst", help="who asks")
    words.add_argument("--request", help="an id that makes a retry safe")
    words.add_argument("--name", help="the answer's name in Python")
    words.add_argument("--explain", action="store_true", help="say the price and the expected error; spend nothing")
    words.add_argument("--no-plot", action="store_true", help="draw no picture")
    return words


class Magic:
    """What `%discreet` and `%%discreet` do in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._curator: Curator | RemoteCurator | None = None
        self._own = False

    def __call__(self, line: str, cell: str | None = None) -> None:
        """Opens a declaration, or answers the question of a cell. Raises UsageError, which is shown without a trace."""
        try:
            words = shlex.split(line)
        except ValueError:
            raise UsageError("close every quote of this line") from None
        try:
            if cell is None:
                self._open(_opening().parse_args(words))
            else:
                self._ask(cell, _asking().parse_args(words))
        except Error as error:
            raise UsageError(str(error)) from None

    def close(self) -> None:
        """Closes the curator that was opened here."""
        if self._curator is not None and self._own:
            self._curator.close()
        self._curator = None

    def _open(self, said: argparse.Namespace) -> None:
        name = _name(said.name) if said.name else None
        if said.declaration is not None:
            named = self._shell.user_ns.get(said.declaration)
            known = isinstance(named, Curator | RemoteCurator)
            found = named if known else _opened(said.declaration, said.owner)
            try:
                tables = found.tables
            except Error:  # a service that does not answer
                if not known:
                    found.close()
                raise
            if found is not self._curator:
                self.close()
                self._curator, self._own = found, not known
        else:
            tables = self._known().tables
        curator = self._known()
        if name is not None:
            self._shell.push({name: curator})
        display(tables)
        display(curator)

    def _known(self) -> Curator | RemoteCurator:
        if self._curator is None:
            raise UsageError("no declaration is open: write %discreet clinic.toml in a cell before this one")
        return self._curator

    def _ask(self, question: str, said: argparse.Namespace) -> None:
        name = _name(said.name) if said.name else None
        price: dict[str, Any] = {
            "epsilon": said.epsilon,
            "delta": said.delta,
            "within": _within(said.within),
            "confidence": said.confidence,
            "together": said.together,
        }
        curator = self._known()
        if isinstance(curator, Curator):
            price["analyst"] = said.analyst
        elif said.analyst is not None:
            raise UsageError("--analyst: the token says who asks: leave it out")
        if said.explain:
            answer: Any = curator.explain(question, **price)
        else:
            answer = curator.ask(question, **price, request=said.request)
        if name is not None:
            self._shell.push({name: answer})
        display(answer)
        if not said.explain and not said.no_plot and answer.rows:
            with contextlib.suppress(QuestionError):  # without matplotlib there is the table alone
                figure_class()
                display(answer.plot())


_TOKEN = "DISCREET_TOKEN"


def _opened(named: str, owner: bool) -> Curator | RemoteCurator:
    """The curator of a declaration, or of a service's address."""
    if not named.startswith(("http://", "https://")):
        return open(Path(named), owner=owner)
    if owner:
        raise UsageError("--owner: the token says who asks: leave it out")
    return connect(named, token=os.environ.get(_TOKEN) or _asked_for())


def _asked_for() -> str:
    """The token, asked for where nobody sees it and no cell keeps it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # it would be shown
            return getpass.getpass("token: ")
    except (EOFError, NotImplementedError, getpass.GetPassWarning):
        raise UsageError(f"no token can be asked for here: set {_TOKEN} before the notebook starts") from None


def _within(pairs: list[str] | None) -> dict[str, str] | None:
    found = {}
    for pair in pairs or ():
        name, separator, error = pair.rpartition("=")
        if not separator:
            raise UsageError(f"{pair[:60]!r} is not a valid column=error: write --within n=100")
        found[name] = error
    return found or None


def _name(word: str) -> str:
    if not word.isidentifier():
        raise UsageError(f"{word[:60]!r} cannot be a name in Python: write --name answer")
    return word


_KEPT = "_discreet_magic"


def load(shell: Any) -> None:
    """Gives a shell of IPython `%discreet` and `%%discreet`."""
    magic = Magic(shell)
    setattr(shell, _KEPT, magic)
    shell.register_magic_function(magic, "line_cell", "discreet")


def unload(shell: Any) -> None:
    """Closes what `%discreet` opened, and takes it away."""
    magic = getattr(shell, _KEPT, None)
    if magic is not None:
        magic.close()
        delattr(shell, _KEPT)
        for kind in shell.magics_manager.magics.values():
            kind.pop("discreet", None)
