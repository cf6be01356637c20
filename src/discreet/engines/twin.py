"""The declared tables without a row, in a child of their own: where a question's statements are tried before its price.

What is tried is the very statements that the engine would run, salt and all, on tables made by the statements that load
the real ones. So what the engine cannot bind, plan or fold, and whatever it would give as another type than the plan
says, is found out while it costs nothing, and a row has no part in it: no row is here, and the child that holds the
rows is not asked. Nor does anybody wait for a question that runs there. Where bounds are found first, what follows is
planned after the trial; it differs from what was tried by numbers of its lattices alone, which `Lattice` holds.

What a trial cannot show is that no row makes a statement fail: that is argued where expressions are compiled, in
`ring_b.scalars` and `quantities`: every operator is total by itself, whatever stands around it, so that no
order in which the engine may compute them matters.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from discreet.catalog.formats import load_statements
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Stopped
from discreet.engines.statements import Statements
from discreet.errors import DeclarationError, EngineError, QuestionError
from discreet.locks import Lock
from discreet.trusted.ring_a.casts import TYPES
from discreet.trusted.ring_a.engine import Lost
from discreet.trusted.ring_a.nodes import Aggregate, Root, project_of
from discreet.trusted.ring_a.table import Source, SourceKind, Table, Type
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.dialect import Dialect, Lacking
from discreet.trusted.ring_b.order_statistics import Distinct, GroupHistograms

_SECONDS = 20
"""A trial may take so long; then the question is refused. It takes milliseconds."""

_TYPES = {**TYPES, Type.TEXT: "VARCHAR"}
"""What an engine's program calls the types that hold ours."""

_FRAME = exp.to_table("frame")
_SALT = Salt.of("a salt like those drawn")
_WHOLE = ("BIGINT", "HUGEINT")


class Twin:
    """One child process with empty tables."""

    def __init__(
        self,
        tables: Iterable[Table],
        worker: str,
        begin: Callable[[EngineProcess, float], None],
        dialect: Dialect,
        statements: Statements,
    ) -> None:
        self._tables = [table for table in tables if _known(table)]
        self._worker, self._begin, self._dialect, self._statements = worker, begin, dialect, statements
        self._process: EngineProcess | None = None
        self._ready = False
        self._starting = Lock()

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        with self._starting:
            self._start()

    def _start(self) -> EngineProcess:
        if self._process is None or not self._process.usable:
            self._process, self._ready = EngineProcess(self._worker), False
        return self._process

    def wait(self) -> None:
        """Waits until the child has its tables. What fails now fails again, and is said, when a question is tried."""
        with contextlib.suppress(Failed, Lost, Stopped, DeclarationError):
            self._loaded()

    def hold(self, roots: Iterable[Root], table: Table) -> None:
        """Raises QuestionError where the engine could not compute these, or would give other types than the plan;
        DeclarationError where its server cannot be reached."""
        if not all(map(_known, table.bases)):
            return  # a public table that could not be read: whoever asks for it is told so
        roots = tuple(roots)
        try:
            trials = [self._trial(root, table) for root in roots]
        except Lacking as error:
            message = f"{error} does not run on this engine"
            fix = 'write it without, or declare kind = "duckdb" under [engine]: everything runs there'
            raise QuestionError("engine", message, where="question", fix=fix) from None
        try:
            found = self._loaded().call("prepare", trials, seconds=_SECONDS)["types"]
        except Failed:
            raise _impossible() from None
        except (Lost, Stopped):  # too slow for its limit, or for the schedule: nothing is known of the question
            raise EngineError(busy=True) from None
        for root, kinds in zip(roots, found, strict=True):
            keys, totals = types(root)
            if kinds[: len(keys)] != keys or len(kinds) != len(keys) + totals:
                raise _impossible()
            if any(kind not in _WHOLE for kind in kinds[len(keys) :]):
                raise _impossible()

    def _trial(self, root: Root, table: Table) -> tuple[list[str], str]:
        """What is built beside the tables for a plan, and its statement."""
        made = self._statements.of(root, table)
        return list(made.beside.build) if made.beside is not None else [], made.salted(_SALT)

    def _loaded(self) -> EngineProcess:
        with self._starting:
            process = self._start()
            if not self._ready:
                try:
                    self._begin(process, _SECONDS)
                    for table in self._tables:
                        statements = _loading(replace(table, source=Source(SourceKind.FRAME)), self._dialect)
                        process.call("empty", statements, seconds=_SECONDS)
                    process.call("lock", seconds=_SECONDS)
                    self._ready = True
                except BaseException:
                    process.kill()  # also interrupted: with some of its tables it would fail for ever
                    raise
            return process

    def close(self) -> None:
        """Ends the child."""
        with self._starting:
            if self._process is not None:
                self._process.kill()
                self._process = None


def types(root: Root) -> tuple[list[str], int]:
    """The engine's types of a plan's keys, and how many whole numbers stand behind them."""
    keys = project_of(root).keys
    if isinstance(root, Distinct):
        keys = keys[:-1]
    totals = len(root.totals) if isinstance(root, Aggregate) else 2 if isinstance(root, GroupHistograms) else 1
    return [_TYPES[key.type] for key in keys], totals


@lru_cache
def _loading(table: Table, dialect: Dialect) -> list[str]:
    """What makes a table without rows, written once for every twin."""
    made, _ = load_statements(table, _FRAME.copy(), "a key")
    return [dialect.text(node) for node in (_creation(table), *made)]


def _creation(table: Table) -> exp.Expression:
    """A source of a table's columns in its declared types, without rows, called as one that Python holds is."""
    columns = [
        exp.ColumnDef(this=exp.to_identifier(column.name, quoted=True), kind=exp.DataType.build(TYPES[column.type]))
        for column in table.columns
        if column.type is not None
    ]
    return exp.Create(this=exp.Schema(this=_FRAME.copy(), expressions=columns), kind="TABLE", replace=True)


def _known(table: Table) -> bool:
    return bool(table.columns) and all(column.type is not None for column in table.columns)


def _impossible() -> QuestionError:
    fix = "write it in another form, and report this question to the authors of discreet"
    return QuestionError("engine", "this cannot be computed", where="question", fix=fix)
