"""A digest of the rows of a published table, whatever file they are in: what is known of a release is not believed of
other rows. They are public: this runs in the owner's process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ROWS = "rows\x1f"
"""What the rows are called while they are read: no table is."""


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def digest_of(arrow: Any) -> str:
    """A digest of the rows of an Arrow table: the same for the same rows in any order, in whatever file they are."""
    with reading() as connection:
        connection.register(ROWS, arrow)
        return digest(connection, quoted(ROWS))
    return ""


def digest(connection: Any, place: str) -> str:
    """The same of what a database reads at `place`: of names, types and rows."""
    found = connection.execute(f"SELECT * FROM {place} LIMIT 0")
    columns = [(one[0], str(one[1])) for one in found.description]
    said = f"SELECT COUNT(*), SUM(md5_number_lower(CAST({quoted(ROWS)} AS TEXT))) FROM {place} AS {quoted(ROWS)}"
    count, together = connection.execute(said).fetchone()
    return hashlib.sha256(repr((columns, count, together)).encode()).hexdigest()


@contextmanager
def reading() -> Iterator[Any]:
    """A database in memory, of which nothing is wanted where it fails."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    try:
        yield connection
    except duckdb.Error:
        pass
    finally:
        connection.close()
