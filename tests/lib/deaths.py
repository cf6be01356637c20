"""Kill −9 at a named point of a program, from outside: nothing in the program knows of these points.

`python deaths.py POINT PROGRAM [ARGUMENT …]` runs the program (a file, or `-c CODE`), and ends the process without a
further instruction where it first comes to the point. The points are

* of what the ledger's methods write: `KIND-before-begin`, `-after-begin`, `-before-commit-transaction`,
  `-after-commit-transaction` around the storage's own statements and `-after-note`, with the kinds of `METHODS`;
  `ENTRY-before-insert` and `-after-insert` around the row of an entry of this kind; `read-after-begin`;
* `create-before-link`, `create-after-link`, `note-before-link`, `note-after-link`: a new file gets its name;
* `state-before-replace`, `state-after-replace`: a secret of a stream, or of the synthetic state, takes the place
  of the one before;
* `before-measure` and `after-measure`: around what sees exact numbers.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

METHODS = {"register": "register", "register_snapshots": "snapshot", "reserve": "reserve", "commit": "commit"}


def command(point: str, *program: object) -> list[str]:
    """What to run so that the program dies at the point, or lives where there is none."""
    return [sys.executable, *([__file__, point] if point else []), *map(str, program)]


def install(point: str) -> None:
    """From now on this process dies at the point."""

    def at(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(act: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
        def acted(*arguments: Any, **named: Any) -> Any:
            at(before)
            result = act(*arguments, **named)
            at(after)
            return result

        return acted

    class Connection(apsw.Connection):
        def execute(self, statements: str, *arguments: Any, **named: Any) -> Any:
            before, after = _moments(statements, arguments)
            return around(super().execute, before, after)(statements, *arguments, **named)

    apsw.Connection = Connection  # type: ignore[misc]
    if "psycopg" in sys.modules or any("::" in word for word in sys.argv):
        import psycopg

        execute = psycopg.Connection.execute

        def executed(self: Any, statements: str, *arguments: Any, **named: Any) -> Any:
            before, after = _moments(statements, arguments)
            return around(execute, before, after)(self, statements, *arguments, **named)

        psycopg.Connection.execute = executed  # type: ignore[assignment]
    link = os.link

    def linked(source: Any, target: Any, **named: Any) -> None:
        what = "note" if str(target).endswith(".head") else "create"
        around(link, f"{what}-before-link", f"{what}-after-link")(source, target, **named)

    os.link = linked  # type: ignore[assignment]
    replace = os.replace

    def replaced(source: Any, target: Any, **named: Any) -> None:
        what = "state" if str(target).endswith((".stream", ".state")) else "file"
        around(replace, f"{what}-before-replace", f"{what}-after-replace")(source, target, **named)

    os.replace = replaced  # type: ignore[assignment]
    if point.endswith("-after-note"):
        from discreet.trusted.ledger import note

        advance = note.advance
        note.advance = lambda *arguments: around(advance, "", f"{_writing()}-after-note")(*arguments)
    if point.endswith("-measure"):
        from discreet.trusted.ring_a.gate import Grant

        guarded = Grant.guarded
        Grant.guarded = lambda self, draw, table: guarded(  # type: ignore[method-assign]
            self, around(draw, "before-measure", "after-measure"), table
        )


_begun = threading.local()
"""The name of the transaction that this thread began last."""


def _moments(statements: str, arguments: tuple[Any, ...]) -> tuple[str, str]:
    """The names of the points before and after a statement."""
    if statements.startswith("BEGIN"):
        _begun.name = _writing() if "IMMEDIATE" in statements or "LOCK" in statements else "read"
        return f"{_begun.name}-before-begin", f"{_begun.name}-after-begin"
    if statements.startswith("COMMIT"):  # of what was begun last: a method may read before it writes
        return f"{_begun.name}-before-commit-transaction", f"{_begun.name}-after-commit-transaction"
    if statements.startswith("INSERT INTO entries"):
        kind = arguments[0][1]
        return f"{kind}-before-insert", f"{kind}-after-insert"
    return "", ""


def _writing() -> str:
    """The kind of the innermost method of the ledger that runs."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name in METHODS and "ledger" in Path(frame.f_code.co_filename).parts:
            return METHODS[frame.f_code.co_name]
    return ""


if __name__ == "__main__":
    install(sys.argv[1])
    if sys.argv[2] == "-c":
        code = sys.argv[3]
        sys.argv = ["-c", *sys.argv[4:]]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = sys.argv[2:]
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
