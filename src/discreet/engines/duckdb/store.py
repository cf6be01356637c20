"""Tables kept in files: what a question reads is made once, and opened again at every later start.

Beside the declaration lies a folder, and in it a database file for each table: its declared columns, typed, clamped and
numbered within their person, as `ring_a.storing` makes them. It is not encrypted: it has the mode 0600, its folder
0700, and what others may read is refused. A file is written under another name and then given its own, so that there is
a whole one or none. Its name follows from the hash of its rows, which the ledger holds as the snapshot's; what it was
made of (the declared columns, the load's key, the form of the file) is held against a digest inside.

The rows of a snapshot's number are those in its file: nobody reads the source again before `refresh` or the declared
clock, and a source that has changed by then matters to nobody. A refresh takes the file over for the next number where
nobody touched the source (`origin`), and makes the next file of this one and of added files where there are only such.

A table is made in buckets of persons, so that memory is bounded by a bucket and not by the table, and so is what
questions need beside it. Whatever the statements compute over several rows, they compute within a person
(`ring_a.windows`), and a person's rows are all in one bucket: the rows are the same as if they had been made at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from math import isqrt
from pathlib import Path

from sqlglot import exp

from discreet.catalog.formats import load_statements
from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.names import BEFORE, LEFT, LOCK
from discreet.engines.files import files
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Source, Table, Type

LARGE = 1 << 30
"""Sources of at least so many bytes are kept in files, where the owner does not say otherwise."""

FORM = "3"
"""What a file looks like inside: another form is made anew."""

_ROW, _VALUE = 112, 16
"""About the bytes that numbering takes of memory: for a row, and for each of its columns beside the bytes of texts."""
_SHARE = 2
"""A bucket takes about this part of the engine's memory."""
LEAST, MOST = 4, 1_024
"""A file is made in no fewer buckets, and in no more."""
_FEW = 8
"""So many buckets are made of all rows."""


def size(source: Source) -> int:
    """The bytes of a source's files; 0 where it has none, or where they cannot be looked at."""
    if source.path is None:
        return 0
    try:
        found = [source.path] if source.path.is_file() else files(source)
        return sum(path.stat().st_size for path in found)
    except (DeclarationError, OSError):
        return 0


def kept(table: Table, limits: EngineLimits) -> bool:
    """Whether a table is kept in a file: where the owner says so, or says nothing and its source is large."""
    return limits.folder is not None and (
        limits.store == "file" or (limits.store is None and size(table.source) >= LARGE)
    )


def place(folder: Path, table: Table, fingerprint: str) -> Path:
    """Where the rows of a table with this hash are kept."""
    return folder / f"{_stem(table)}-{fingerprint[:32]}.duckdb"


def others(folder: Path, table: Table, fingerprint: str) -> list[Path]:
    """Where rows of a table with other hashes are kept."""
    return [one for one in folder.glob(f"{_stem(table)}-*.duckdb") if one != place(folder, table, fingerprint)]


def built(path: Path) -> str:
    """How the names of files begin in which stands what questions built beside the rows of a table's file. It is of one
    number: `renewed` ends it, as another file does; and of one version of the programs that made it."""
    versions = hashlib.sha256(f"{FORM} {version('discreet')} {version('duckdb')}".encode()).hexdigest()[:8]
    return f"{LEFT}-{path.stem}-{path.stat().st_mtime_ns}-{versions}-"


def renewed(path: Path) -> bool:
    """A table's file is taken over for a new number, without what was built beside it: else whoever asks could see by
    the time that an answer takes whether the rows are the same."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def _stem(table: Table) -> str:
    return hashlib.sha256(table.name.encode()).hexdigest()[:16]


def digest(table: Table, key: str) -> str:
    """What a file's content follows from, beside the source's rows: the declared columns and limits, the load's key,
    and how all of it is written. From it nobody learns the key, which has 128 secret bits."""
    made, _ = load_statements(table, exp.to_table("source"), key)
    text = "\n".join([FORM, *map(DUCKDB.text, made)])
    return hashlib.sha256(text.encode()).hexdigest()


def typed(made: Sequence[exp.Expression], table: Table) -> tuple[exp.Expression, exp.Expression] | None:
    """The statement that stores all rows of a table, typed, beside it, and the one that says about how many bytes it
    takes to number them; None for a table whose persons have one row, which is made in one go."""
    if table.person is None:
        return None
    first = exp.Create(this=_TYPED.copy(), kind="TABLE", expression=_rows(made[0]).this.copy())
    return first, weight(table, _TYPED)


def weight(table: Table, rows: exp.Table) -> exp.Expression:
    """The statement that says about how many bytes it takes to number these rows of a table."""
    found: exp.Expression = exp.Mul(
        this=exp.Count(this=exp.Star(), big_int=True),
        expression=exp.Literal.number(_ROW + _VALUE * len(table.columns)),
    )
    for index, column in enumerate(table.columns):
        if column.type is Type.TEXT:
            size = exp.Sum(this=exp.Anonymous(this="STRLEN", expressions=[exp.column(column_name(index))]))
            found = exp.Add(this=found, expression=exp.Coalesce(this=size, expressions=[exp.Literal.number(0)]))
    return exp.select(exp.cast(found, "BIGINT")).from_(rows.copy())


def buckets(weight: int, limits: EngineLimits, *, least: int = 1) -> int:
    """In how many buckets of persons rows of so many bytes are numbered."""
    return min(max(least, -(-weight * _SHARE // (limits.memory_gib << 30))), MOST)


def in_buckets(made: Sequence[exp.Expression], table: Table, number: int) -> list[exp.Expression]:
    """The statements that make a table, bucket by bucket, of its `typed` rows. Of many buckets some at a time are first
    put apart, so that not each of them reads all rows."""
    (whole,) = made
    together = isqrt(number) if number > _FEW else number
    statements: list[exp.Expression] = []
    for bucket in range(number):
        if together < number and bucket % together == 0:
            apart = exp.IntDiv(this=_numbered(table, number), expression=exp.Literal.number(together))
            mine = exp.EQ(this=exp.paren(apart), expression=exp.Literal.number(bucket // together))
            rows = exp.select(exp.Star()).from_(_TYPED.copy()).where(mine)
            statements.append(exp.Create(this=_PART.copy(), kind="TABLE", replace=True, expression=rows))
        part = whole.copy()
        _rows(part).set("this", _bucket(_PART if together < number else _TYPED, table, bucket, number))
        statements.append(exp.Insert(this=part.this, expression=part.expression) if bucket else part)
    return statements


def before(table: Table) -> exp.Table:
    """A table as it was before files were added to its source."""
    return exp.table_(table_name(table), db="main", catalog=BEFORE)


def touched(table: Table, number: int) -> list[exp.Expression]:
    """The statements that add to the `typed` rows, which are those of added files, all others of the same persons.

    Of the rows of a person the first are kept, in an order that follows from the rows alone: so the first of all of
    them are the first of those that were kept and those that are new."""
    columns = [exp.column(column_name(index)) for index in range(len(table.columns))]
    return [
        exp.Insert(this=_TYPED.copy(), expression=exp.select(*columns).from_(rows.subquery("b")))
        for rows in (_of_touched(table, bucket, number) for bucket in range(number))
    ]


def untouched(table: Table, number: int) -> list[exp.Expression]:
    """The statements that add the rows of those persons who have none among the `typed` ones, as they were."""
    name = exp.to_table(table_name(table))
    return [
        exp.Insert(this=name.copy(), expression=_of_touched(table, bucket, number, others=True))
        for bucket in range(number)
    ]


def _of_touched(table: Table, bucket: int, number: int, *, others: bool = False) -> exp.Select:
    """The rows of a bucket, as they were, of those persons who have some among the `typed` rows, or of the others."""
    mine = exp.select(_person(table)).from_(_TYPED.copy()).where(_in_bucket(table, bucket, number))
    mine = mine.where(exp.Not(this=exp.Is(this=_person(table), expression=exp.null())))
    among: exp.Expression = exp.In(this=_person(table), query=mine.subquery())
    return _bucket(before(table), table, bucket, number).where(exp.Not(this=among) if others else among)


def beside(made: exp.Expression, table: Table, side: str, number: int) -> list[exp.Expression]:
    """The statements that build, bucket by bucket, what one would build beside a table of all its rows, in the child's
    own file for it. What replaces the table reads it until it is whole."""
    name = exp.to_table(table_name(table))
    own = exp.table_(made.this.name, db="main", catalog=side)
    target = exp.table_(f"next_{name.name}", db="main", catalog=side) if made.args.get("replace") else own
    statements: list[exp.Expression] = []
    for bucket in range(number):
        select = made.expression.copy()
        for node in list(select.find_all(exp.Table)):
            if node.name == name.name:
                rows = _bucket(name, table, bucket, number) if number > 1 else exp.select(exp.Star()).from_(name.copy())
                node.replace(rows.subquery(node.alias_or_name))
        insert = exp.Insert(this=target.copy(), expression=select)
        statements.append(insert if bucket else exp.Create(this=target.copy(), kind="TABLE", expression=select))
    if target is not own:
        statements.append(exp.Drop(tables=[own], kind="TABLE", exists=True))
        statements.append(exp.Alter(this=target.copy(), kind="TABLE", actions=[exp.AlterRename(this=name)]))
    return statements


def _bucket(rows: exp.Table, table: Table, bucket: int, number: int) -> exp.Select:
    """The rows of the persons in a bucket."""
    return exp.select(exp.Star()).from_(rows.copy()).where(_in_bucket(table, bucket, number))


def _in_bucket(table: Table, bucket: int, number: int) -> exp.Expression:
    return exp.EQ(this=_numbered(table, number), expression=exp.Literal.number(bucket))


def _numbered(table: Table, number: int) -> exp.Expression:
    """The bucket of a row's person."""
    hashed = exp.Anonymous(this="HASH", expressions=[_person(table)])
    return exp.paren(exp.Mod(this=hashed, expression=exp.Literal.number(number)))


def _person(table: Table) -> exp.Column:
    return exp.column(column_name(next(i for i, one in enumerate(table.columns) if one.name == table.person)))


_TYPED, _PART = (exp.table_(name, db="main", catalog="staging") for name in ("typed", "part"))


def _rows(made: exp.Expression) -> exp.Subquery:
    """The rows, typed, that a statement numbers."""
    return next(one for one in made.find_all(exp.Subquery) if one.alias == "typed")


def clear(folder: Path, pid: int) -> None:
    """Removes what a child that has ended left: what it built beside tables, and files that it did not finish."""
    for kind in ("side", "building"):
        _remove(folder.glob(f"{kind}-{pid}-*"))


def tidy(folder: Path, table: Table, registered: Callable[[], str | None]) -> None:
    """Removes what is kept of a table's other rows than the registered ones, and what nobody finished; nothing while
    somebody makes files here, as theirs may be registered next."""
    with suppress(OSError):
        lock = os.open(folder / LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fingerprint = registered()
            if fingerprint is not None:
                _remove(others(folder, table, fingerprint))
                path = place(folder, table, fingerprint)
                mine = built(path) if path.exists() else None
                stale = folder.glob(f"{LEFT}-{_stem(table)}-*")
                _remove(one for one in stale if mine is None or not one.name.startswith(mine))
            _remove(folder.glob("building-*"))
        finally:
            os.close(lock)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # it stays where the disk can only be read
            path.unlink()


def there(folder: Path, *files: Path) -> bool:
    """Whether a folder and these files in it are there. Raises DeclarationError where they are somebody else's, or
    others than their owner may read them."""
    try:
        found = [(one, one.stat()) for one in (folder, *files)]
    except FileNotFoundError:
        return False
    except OSError:
        raise unwritten(folder) from None
    for one, known in found:
        if known.st_uid != os.geteuid() or (known.st_mode & 0o077 and folder.is_dir()):
            fix = f"run chmod go-rwx {one}, as its owner; it holds rows of persons"
            raise DeclarationError([Fault("engine.store", f"others may read {one}", fix)], code="snapshot")
    return True


def unwritten(folder: Path) -> DeclarationError:
    """What is said where a file could not be made."""
    message = f"the tables cannot be kept in {folder}"
    fix = 'see that its disk has room and that you may write there, or write store = "memory"'
    return DeclarationError([Fault("engine.store", message, fix)], code="snapshot")
