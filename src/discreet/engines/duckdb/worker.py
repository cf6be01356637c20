"""The child process in which the engine runs: it holds the tables, answers one request at a time, and can be killed.

Forked for each curator (`forkserver`), with requests on standard input and answers on standard output (`child`). It
limits its own address space.
An engine's error message may quote a private value, so it never crosses: the parent learns `failed` and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from discreet.engines.answers import answering, dense, told_apart
from discreet.engines.child import UnreadableSource, held, libraries
from discreet.engines.duckdb.kept import OpenFiles

if TYPE_CHECKING:
    from discreet.engines.duckdb.iceberg import IcebergTable
    from discreet.engines.postgresql.server import SnapshotConnection

BESIDE = ("pandas",)
"""Tables that Python holds come as frames of pandas."""

_GIB = 1 << 30
_THREAD = 128 << 20
"""What a thread takes of the address space when it first allocates: it reserves this much, and uses little of it. At
the beginning it depends on chance how many threads have done so."""
_BUILDING = (
    duckdb.StatementType.CREATE,
    duckdb.StatementType.INSERT,
    duckdb.StatementType.DROP,
    duckdb.StatementType.ALTER,
)

DISABLED = (
    "top_n_window_elimination",  # costs row_number() <= K three times the memory, and had a wrong-result bug
    "type_pushdown",  # a cast that is moved into the reading of a file fails there, or loses the row
    "statistics_propagation",  # what a column holds must not decide how a question is planned: one failed by it
    "join_order",  # nor which side of a join is read first, or what is read of the other
    "build_side_probe_side",
    "join_filter_pushdown",
)
"""The engine's rewrites that do harm, or let rows decide about the work on other rows."""


_prepared: list[duckdb.DuckDBPyConnection] = []


def prepare() -> None:
    """In the server, before it forks: an engine that holds nothing, which a child then need not make, as that takes
    longer than all else at its beginning. It is made of constants alone, so children know no more of each other than
    if each made its own; and it has no thread, so a fork finds it whole. Arrays are loaded too: a question needs them,
    beside rows, within the limit of memory."""
    import numpy  # noqa: F401

    connection = _made()
    connection.execute("SELECT count(*), sum(i) FROM range(10) AS numbers(i) GROUP BY i % 3").fetchall()  # warm
    _prepared.append(connection)


def _made() -> duckdb.DuckDBPyConnection:
    """An engine without a thread of its own."""
    alone: dict[str, Any] = {"threads": 1, "async_threads": 0}
    return duckdb.connect(":memory:", config={"python_enable_replacements": "false", **alone})


def main() -> None:
    answering(DuckDBWorker, _failed)


def _failed(_: str, error: Exception) -> Any:
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        os._exit(1)  # this tells that there are such rows: as after a kill, the tables wait for their owner
    return {"refused": error.word} if isinstance(error, UnreadableSource) else {"failed": True}


class DuckDBWorker:
    """One in-memory DuckDB with the declared columns of the declared tables."""

    def __init__(self) -> None:
        self.connection = _prepared.pop() if _prepared else _made()
        for threads in ("threads", "async_threads"):
            self.connection.execute(f"RESET {threads}")  # as many as the engine takes by itself
        self.stated: dict[str, str | None] = {}
        self.names: list[str] = []
        self.delta: Any = None
        self.iceberg: IcebergTable | None = None
        self.servers: dict[str, SnapshotConnection] = {}
        self.reading: SnapshotConnection | None = None
        self.kept = OpenFiles(self.connection)
        self.locked = False

    def answer(self, operation: str, *arguments: Any) -> Any:
        return getattr(self, f"do_{operation}")(*arguments)

    def do_limit(self, memory_gib: int) -> Any:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        threads = len(os.listdir("/proc/self/task"))
        resource.setrlimit(resource.RLIMIT_AS, (held() + threads * _THREAD + memory_gib * _GIB, most))
        run = self.connection.execute
        run(f"SET memory_limit = '{memory_gib * 768}MiB'")
        run("SET temp_directory = ''")  # private rows are never spilled to a disk
        run("SET autoinstall_known_extensions = false")
        run("SET autoload_known_extensions = false")
        run(f"SET disabled_optimizers = '{','.join(DISABLED)}'")
        return {}

    def do_frame(self, frame: Any, stated: dict[str, str | None]) -> Any:
        """Takes a table that Python held, and what is stated of the types of its columns."""
        self.stated = stated
        self.names = [str(name) for name in getattr(frame, "column_names", None) or frame.columns]
        self.connection.register("frame", _renamed(frame, self.names, told_apart(self.names)))
        return {}

    def do_attach(self, path: str) -> Any:
        self.connection.execute(f"ATTACH '{_quoted(path)}' AS source (READ_ONLY)")
        return {}

    def do_delta(self, path: str, version: int) -> Any:
        """Opens a version of a Delta table: for now its columns, and no row."""
        with libraries():
            import deltalake
            import pyarrow

        self.delta = deltalake.DeltaTable(path, version=version)
        self.connection.register("frame", pyarrow.schema(self.delta.schema().to_arrow()).empty_table())
        return {}

    def do_iceberg(self, path: str, version: int) -> Any:
        """Opens a snapshot of an Iceberg table: for now its columns, and no row."""
        with libraries():
            from discreet.engines.duckdb.iceberg import IcebergTable

        self.iceberg = IcebergTable(path, version)
        self.names = self.iceberg.names
        self._view(self.iceberg.empty())
        return {}

    def do_state(self) -> Any:
        """The rows of the Delta or Iceberg table that is open, to be read once."""
        if self.iceberg is not None:
            with libraries():
                import fastavro  # noqa: F401

            self._view(self.iceberg.rows(self._ids))
            return {}
        import deltalake
        import pyarrow

        read = deltalake.QueryBuilder().register("t", self.delta).execute("SELECT * FROM t")
        self.connection.register("frame", pyarrow.RecordBatchReader.from_stream(read))
        return {}

    def _view(self, select: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW frame AS {select}")

    def _ids(self, files: list[str]) -> dict[str, set[int]]:
        """The ids of columns that Parquet files state."""
        from discreet.engines.duckdb.iceberg import paths

        query = "SELECT file_name, list(field_id) FILTER (field_id IS NOT NULL) FROM parquet_schema(%s) GROUP BY ALL"
        return {name: set(ids or ()) for name, ids in self.connection.execute(query % paths(files)).fetchall()}

    def do_server(self, url: str, environment: dict[str, str], seconds: int) -> Any:
        """Connects to a PostgreSQL server, unless a connection reads tables of one moment from it already."""
        if self.locked:
            raise ValueError
        if url not in self.servers:
            with libraries():
                try:
                    from discreet.engines.postgresql import server
                except ImportError:
                    raise UnreadableSource("library") from None
            self.servers[url] = server.SnapshotConnection(url, environment, seconds)
        return {}

    def do_columns(self, url: str, relation: str) -> Any:
        """The columns of a server's table, from its catalog."""
        return {"columns": self.servers[url].columns(relation)}

    def do_rows(self, url: str, together: list[str], select: str, names: list[str]) -> Any:
        """What a statement reads of a server's table, to be read once; of the moment of all that is read together."""
        server = self.servers[url]
        if select not in server.locked:
            server.hold([*together, *({select} - {*together})])
        self.connection.register("frame", server.read(select, names))
        self.reading = server
        return {}

    def do_describe(self, sql: str) -> Any:
        """The names and engine types of a source's columns, from its schema."""
        rows = self.connection.execute(f"DESCRIBE {sql}").fetchall()
        names = self.names or [row[0] for row in rows]
        return {
            "columns": [[name, self.stated.get(name, kind)] for name, (_, kind, *_) in zip(names, rows, strict=True)]
        }

    def do_load(self, statements: list[str], fingerprint: str, salt: bytes) -> Any:
        """Builds a table, and gives a keyed hash of its content that does not depend on the order of its rows."""
        try:
            with self._told():
                for statement in statements:
                    self.connection.execute(statement)
            return {"fingerprint": self._fingerprint(fingerprint, salt)}
        except (duckdb.OutOfMemoryException, MemoryError):
            return {"fingerprint": None}

    def do_first_seen(
        self, before: list[bytes], now: list[bytes], statements: list[str], facts: list[str], salt: bytes
    ) -> Any:
        """Leaves in tables the rows of the present period's persons: their hashes then, and the new persons."""
        import numpy as np

        with libraries():
            from discreet.trusted.renewal.first_seen import BEFORE, NEW, NOW

        if self.locked:
            raise ValueError
        for name, lists in ((BEFORE, before), (NOW, now)):
            ids = np.frombuffer(b"".join(lists), "<u8").reshape(-1, 2)
            columns: Any = {"a": np.ascontiguousarray(ids[:, 0]), "b": np.ascontiguousarray(ids[:, 1])}
            self.connection.register("frame", columns)
            self.connection.execute(f"CREATE TEMP TABLE {name} AS SELECT a, b FROM frame")
            self.connection.unregister("frame")
        for statement in statements:
            self.connection.execute(statement)
        found: dict[str, Any] = self.connection.execute(f"SELECT a, b FROM {NEW}").fetchnumpy()
        pairs = np.stack([np.ma.getdata(found[name]).astype("<u8") for name in ("a", "b")], axis=1)
        for name in (BEFORE, NOW, NEW):
            self.connection.execute(f"DROP TABLE {name}")
        return {"fingerprints": [self._fingerprint(one, salt) for one in facts], "buffers": [pairs.tobytes()]}

    def do_assigning(self, lists: list[bytes], select: str) -> Any:
        """The persons who are in a part by their rows and are on none of these lists, with the place of it."""
        import numpy as np

        with libraries():
            from discreet.trusted.parts.rows import KNOWN

        self._known(lists, [-1] * len(lists))
        found: dict[str, Any] = self.connection.execute(select).fetchnumpy()
        self.connection.execute(f"DROP TABLE {KNOWN}")
        columns = [np.ma.getdata(found[name]).astype("<u8") for name in ("a", "b", "place")]
        return {"buffers": [np.stack(columns, axis=1).tobytes()]}

    def do_part(self, lists: list[bytes], places: list[int], statements: list[str]) -> Any:
        """Leaves in tables the rows of those persons alone who have the part's place on the first list with them."""
        with libraries():
            from discreet.trusted.parts.rows import KNOWN

        if self.locked:
            raise ValueError
        self._known(lists, places)
        for statement in [*statements, f"DROP TABLE {KNOWN}"]:
            self.connection.execute(statement)
        return {}

    def _known(self, lists: list[bytes], places: list[int]) -> None:
        """A table of listed persons, with the number of their list and whether they are in the part of that place."""
        import numpy as np

        with libraries():
            from discreet.trusted.parts.rows import KNOWN

        persons = [np.frombuffer(one, "<u8").reshape(-1, 3) for one in [*lists, b""]]
        whole = np.concatenate(persons)
        numbers = [np.full(len(one), number) for number, one in enumerate(persons)]
        placed = zip(persons, [*places, -1], strict=True)
        here = [one[:, 2] == place if place >= 0 else np.zeros(len(one), bool) for one, place in placed]
        columns: Any = {
            "a": np.ascontiguousarray(whole[:, 0]),
            "b": np.ascontiguousarray(whole[:, 1]),
            "list": np.concatenate(numbers),
            "here": np.concatenate(here),
        }
        self.connection.register("frame", columns)
        self.connection.execute(f"CREATE TEMP TABLE {KNOWN} AS SELECT a, b, list, here FROM frame")
        self.connection.unregister("frame")

    def _fingerprint(self, facts: str, salt: bytes) -> str:
        """A keyed hash of a table's content, of the one row that these facts are."""
        ((*found,),) = self.connection.execute(facts).fetchall()
        return hashlib.sha256(salt + json.dumps([str(fact) for fact in found]).encode()).hexdigest()

    def do_typed(self, statements: list[str], weight: str) -> Any:
        """Stores rows of a source, and says about how many bytes it takes to number them."""
        with self._told():
            for statement in statements:
                self.connection.execute(statement)
        ((found,),) = self.connection.execute(weight).fetchall()
        return {"weight": found}

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What a source's server refuses while it is read is told."""
        try:
            yield
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error:
            if self.reading is not None and (word := self.reading.why()):
                raise UnreadableSource(word) from None
            raise

    def do_open(self, path: str, digest: str, fingerprint: str, table: str, built: str) -> Any:
        """Opens a table's file, and says how heavy its rows are and what stands beside it; nothing where it is not
        there."""
        return {"opened": self.kept.opened(path, digest, fingerprint, table, built)}

    def do_leave(self) -> Any:
        """Leaves what was built beside tables for later starts."""
        self.kept.leave()
        return {}

    def do_origin(self, path: str, digest: str, fingerprint: str) -> Any:
        """What the rows of a table's file were read from; nothing where it is not there."""
        return {"origin": self.kept.origin(path, digest, fingerprint)}

    def do_alone(self, folder: str) -> Any:
        """Has a folder for itself, to make files there."""
        self.kept.alone(folder)
        return {}

    def do_begin(self) -> Any:
        """Begins to make a table's file: what is loaded next goes there."""
        self.kept.begin()
        return {}

    def do_keep(self, path: str, digest: str, fingerprint: str, weight: int, origin: str) -> Any:
        """Ends it: the file has its name."""
        self.kept.end(path, digest, fingerprint, weight, origin)
        return {}

    def do_forget(self) -> Any:
        """Lets go of the source that was opened last, and of a file that was begun and not ended."""
        self.kept.end(None)
        self.connection.unregister("frame")
        self.connection.execute("DROP VIEW IF EXISTS frame")
        self.stated, self.names, self.delta, self.iceberg = {}, [], None, None
        if self.reading is not None:
            self.reading.done()
            self.reading = None
        self._hang_up(lambda server: not server.locked)
        self.connection.execute("DETACH DATABASE IF EXISTS source")
        return {}

    def _hang_up(self, which: Callable[[SnapshotConnection], bool]) -> None:
        for url in [url for url, server in self.servers.items() if which(server)]:
            self.servers.pop(url).close()

    def do_values(self, sql: str) -> Any:
        """Values that the owner declared public, when a declaration is first written."""
        return {"rows": self.connection.execute(sql).fetchall()}

    def do_lock(self) -> Any:
        """From here on: no file, no network, no setting can be reached, and the limit of the memory stays."""
        self._hang_up(lambda _: True)
        self.kept.shut()
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        self.locked = True
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")
        return {}

    def do_run(self, sql: str) -> Any:
        return {"rows": self._select(sql).fetchall()}

    def do_listed(self, sql: str, seconds: float) -> Any:
        """Rows of public tables, or failed where that takes longer: the tables that are here stay."""
        end = threading.Timer(seconds, self.connection.interrupt)
        end.start()
        try:
            return self.do_run(sql)
        finally:
            end.cancel()

    def do_build(self, statements: list[str]) -> Any:
        """Builds what questions read beside a table, from the tables that are here. All of it, or nothing."""
        run = self.connection.execute
        run("BEGIN TRANSACTION")
        try:
            for statement in statements:
                (parsed,) = self.connection.extract_statements(statement)
                if parsed.type not in _BUILDING:
                    raise ValueError
                run(statement)
            run("COMMIT")
        except Exception:
            run("ROLLBACK")
            raise
        return {}

    def do_empty(self, statements: list[str]) -> Any:
        """Builds a table that has no rows."""
        for statement in statements:
            self.connection.execute(statement)
        return {}

    def do_prepare(self, trials: list[tuple[list[str], str]]) -> Any:
        """The types of what each SELECT gives, after what is built for it, of which nothing is kept."""
        run = self.connection.execute
        types = []
        for built, sql in trials:
            if built:
                run("BEGIN TRANSACTION")
            try:
                for statement in built:
                    run(statement)
                found = self._select(sql)
                types.append([str(column[1]) for column in found.description or ()])
                found.fetchall()
            finally:
                if built:
                    run("ROLLBACK")
        return {"types": types}

    def do_vectors(self, sql: str) -> Any:
        """Each column of a SELECT as bytes: the first without NULLs; of the others what is not NULL, then values."""
        import numpy as np  # it takes time and memory: only where it is needed

        found: dict[str, Any] = self._select(sql).fetchnumpy()
        first, *columns = found.values()
        buffers = [np.ascontiguousarray(np.ma.getdata(first), np.int64).tobytes()]
        for column in columns:
            buffers.append((~np.ma.getmaskarray(column)).tobytes())
            buffers += _bytes(column)
        return {"buffers": buffers}

    def do_counts(self, wanted: list[tuple[str, tuple[int, ...]]]) -> Any:
        """For each SELECT of places and their count: the counts of all places, as bytes."""
        import numpy as np

        buffers = []
        for sql, shape in wanted:
            *places, count = self._select(sql).fetchnumpy().values()
            buffers.append(dense([np.ma.getdata(place) for place in places], np.ma.getdata(count), shape))
        return {"buffers": buffers}

    def _select(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Runs what must be one SELECT. Raises ValueError on anything else."""
        (statement,) = self.connection.extract_statements(sql)
        if statement.type != duckdb.StatementType.SELECT:
            raise ValueError
        return self.connection.execute(statement)


def _bytes(column: Any) -> list[bytes]:
    """A column's values as 64-bit numbers; texts in one piece, and then how many bytes each has."""
    import numpy as np

    data = np.ma.getdata(column)
    if data.dtype == object:
        texts = [
            b"" if hidden else text.encode() for text, hidden in zip(data, np.ma.getmaskarray(column), strict=True)
        ]
        return [b"".join(texts), np.array([len(text) for text in texts], np.int64).tobytes()]
    return [data.astype(np.float64 if data.dtype.kind == "f" else np.int64).tobytes()]


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _renamed(frame: Any, old: list[str], new: list[str]) -> Any:
    """A pandas, polars or Arrow table with other names."""
    if old == new:
        return frame
    if hasattr(frame, "set_axis"):
        return frame.set_axis(new, axis="columns")
    return (
        frame.rename_columns(new)
        if hasattr(frame, "rename_columns")
        else frame.rename(dict(zip(old, new, strict=True)))
    )
