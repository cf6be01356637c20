"""What an engine is to those who use it: a few methods, each with what it promises.

What is trusted of an engine is one sentence: **it computes the statement on the loaded rows.** The statement says which
rows count, clamps them before it adds them up, and gives whole numbers; it is made as a tree for all engines alike
(`ring_a.statement`), and written by the engine's `Dialect`. The rows are what `load` made of a source by the
statements in `ring_a.storing`. So a sceptic reads those, and of an engine that it runs what it is given, on
what it was given, and gives back what came of it.

What holds of every method here:

* *Total.* No row makes it fail: every operator of a statement gives a value for every row. What fails all the same is
  the engine's own fault or a limit, and is told apart by nothing but the three errors below: no message of a database,
  which may quote a value, gets out.
* *Limited.* It ends within the declared seconds and memory, and at `UNTIL`, however the engine's parts behave: what
  does not is killed. It is never half done.
* *Errors.* EngineError where the engine could not do it and goes on; `Stopped` where it ended, or had to be ended,
  under this request; `Lost` where it had ended before this request came to it. Nothing else. After the last two an
  engine holds no table until its owner loads them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, Protocol

from discreet.trusted.ring_a.engine import Lost, Row
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import Relation, Source, Table, Type, Value
from discreet.trusted.ring_b.relations import Attributed
from discreet.trusted.ring_c.engine import CodedEngine

__all__ = ["LOAD_SECONDS", "UNTIL", "Lost", "Owned", "Row", "Sources", "Stopped", "Trial"]

UNTIL: ContextVar[float | None] = ContextVar("until", default=None)
"""The moment on the monotonic clock at which whatever is asked of an engine has failed; None where there is none."""


LOAD_SECONDS = 3_600
"""Loading is the owner's act and may take as long as it needs, within reason."""


class Stopped(Exception):
    """The engine ended or was ended under this request: it took too long, or too much memory."""


class Trial(Protocol):
    """The declared tables without a row: where a question's statements are tried before its price."""

    def start(self) -> None:
        """Begins to make it ready, and waits for nothing."""
        ...

    def wait(self) -> None:
        """Waits until it is ready. What fails now fails again, and is said, when a question is tried."""
        ...

    def hold(self, roots: Iterable[Root], table: Table, /) -> None:
        """Raises QuestionError where the engine could not compute these, or would give other types than the plan;
        EngineError where that could not be found out in time, DeclarationError where a server cannot be reached."""
        ...

    def close(self) -> None: ...


class Owned(CodedEngine, Protocol):
    """An engine as its owner has it, who loads tables: none of these methods sees a question about people.

    What concerns a source raises DeclarationError, in words for the owner."""

    @property
    def name(self) -> str:
        """What answers are kept under: another engine's may differ in what a person's salt chooses."""
        ...

    period: str | None
    """As of `Engine`: set by whoever loads, before."""

    @property
    def starts(self) -> int:
        """How often its process was started."""
        ...

    @property
    def shut(self) -> bool:
        """Whether it can load nothing more until it is closed."""
        ...

    def start(self) -> None:
        """Begins to make it ready, and waits for nothing."""
        ...

    def types(self, source: Source, /) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a source that states types, from its schema alone: None for a type that is not ours; and the
        step of a decimal, where that is no matter of the rows."""
        ...

    def check(self, table: Table, /) -> None:
        """Whether the source is there and has the declared columns. Reads no row."""
        ...

    def together(self, tables: Iterable[Table], /) -> None:
        """Begins to load these tables: what they read of one server is of one moment. Raises nothing that `load` would
        not."""
        ...

    def load(self, table: Table, salt: bytes, /) -> str:
        """Reads the declared columns of a table, and gives a hash of them under this key: the same for the same rows in
        whatever order, another for others so far as the engine's `hash` tells them apart."""
        ...

    def open(self, table: Table, salt: bytes, fingerprint: str, /) -> bool:
        """Whether the rows with this hash under this key are kept where they outlast the process: then they are loaded,
        and no source is read."""
        ...

    def advance(self, table: Table, salt: bytes, fingerprint: str, /) -> tuple[str, int] | None:
        """Loads a table as `load` would, but reads no more of its source than the files that were added to it, where
        the rows with this hash are kept and nothing else became of their source: gives the hash, and how many files
        were read. None where that cannot be told, or not be done."""
        ...

    def retain(self, table: Table, registered: Callable[[], str | None], /) -> None:
        """Lets go of what is kept of a table's rows with other hashes than the registered one, which is asked for when
        nobody makes any. Who reads them goes on doing so."""
        ...

    def size(self, table: Table, fingerprint: str | None, /) -> int | None:
        """The bytes in which the rows with this hash are kept where they outlast the process, 0 where that is still to
        be made; None of a table that is kept in memory. Reads no row."""
        ...

    def first_seen(
        self,
        tables: Sequence[Table],
        anew: Collection[str],
        key: bytes,
        salt: bytes,
        before: Sequence[bytes],
        now: Sequence[bytes],
        /,
    ) -> tuple[dict[str, str], bytes]:
        """Leaves in tables that are loaded the rows of those persons alone who are in the present period
        (`trusted.renewal.first_seen`): whose keyed ids are in `now`, or who are in a table that is taken `anew` and
        neither there nor in `before`. Gives the tables' hashes then, and the keyed ids of these new persons. DuckDB
        alone can."""
        ...

    def assigning(
        self,
        table: Table,
        column: str,
        values: Sequence[str],
        key: bytes,
        lists: Sequence[tuple[Sequence[str], bytes]],
        /,
    ) -> bytes:
        """The keyed ids of those persons who are in a part by the value that a row of theirs has in a column of a
        loaded table, each with the value's place, and are on none of these lists (`trusted.parts`). DuckDB alone
        can."""
        ...

    def keep_part(
        self,
        tables: Sequence[Table],
        of: tuple[Table, str, str],
        key: bytes,
        account: str,
        lists: Sequence[tuple[Sequence[str], bytes]],
        /,
    ) -> None:
        """Leaves in tables that are loaded the rows of those persons alone whom these lists have in the part with this
        account (`trusted.parts.rows`), and in the table `of` which a column says so by a value, rows that have it.
        DuckDB alone can."""
        ...

    def leads_to_several(self, relation: Attributed, /) -> bool:
        """Whether some value that rows refer to leads to several persons."""
        ...

    def hold_rows(self, table: Table, /) -> None:
        """Raises QuestionError where `vectors` cannot be had of the table."""
        ...

    def lock(self) -> None:
        """Shuts it off from files, network and settings. Called once every table is loaded."""
        ...

    def has(self, table: str, /) -> bool:
        """Whether the table is loaded, and the engine still lives."""
        ...

    def public_values(self, relation: Relation, most: int, /) -> list[tuple[Value, ...]]:
        """The different rows of a relation that is about nobody, sorted; at most `most` + 1. Rows with NULL or an
        infinite number are left out: no group is called so.

        Raises QuestionError where that is too much for the engine, whose tables live on; ValueError where the relation
        is about people."""
        ...

    def public_rows(self, relation: Relation, most: int, /) -> list[tuple[Value | None, ...]]:
        """All rows of a relation that is about nobody, sorted; at most `most` + 1. Errors as of `public_values`."""
        ...

    def most(self, relation: Relation, names: tuple[str, ...], /) -> int:
        """The largest number of rows of a public relation that share their values in these columns; of no columns: all
        its rows. Errors as of `public_values`."""
        ...

    def longest(self, relation: Relation, /) -> dict[str, int]:
        """The characters of the longest text in each column of a public relation. Errors as of `public_values`."""
        ...

    def sql(self, plan: Root, table: Table, /) -> str:
        """The statement that `run` would run, with a placeholder for the salt. For the owner's eyes."""
        ...

    def trial(self, tables: Iterable[Table], /) -> Trial:
        """Where statements on these tables are tried."""
        ...

    def close(self) -> None:
        """Ends it, and lets go of all tables."""
        ...


class Sources(Protocol):
    """Sources, as whoever writes a first declaration looks at them. Raises DeclarationError."""

    def types(self, source: Source, /) -> dict[str, tuple[Type | None, Fraction | None]]:
        """As of `Owned`."""
        ...

    def tables(self, source: Source, /) -> list[str]:
        """The tables of a source that may hold several, by name."""
        ...

    def sniffed(self, source: Source, /) -> tuple[str, list[Type | None]] | None:
        """What stands between the columns of a CSV file, and what types its first rows seem to have, as far as they are
        read so; None where that cannot be told."""
        ...

    def distinct(self, source: Source, column: str, most: int, /) -> list[Any]:
        """The distinct values of a column that the owner declares public, sorted, NULL last; at most `most` + 2."""
        ...

    def close(self) -> None: ...
