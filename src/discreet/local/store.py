"""The file of reports, in DuckDB. All reports are randomised already; no true answer is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from discreet.errors import LedgerError, QuestionError
from discreet.local.channels import Counts
from discreet.local.collection import Collection
from discreet.local.report import Report
from discreet.locks import Lock

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_HELD = "the file cannot be opened: another process holds it, or it is not a reports file"
_FIX = "end the other process, or look at the file and its folder"


def _alone(
    method: Callable[Concatenate[ReportStore, Arguments], Result],
) -> Callable[Concatenate[ReportStore, Arguments], Result]:
    """One thread at a time: what one is about to read another would end, or add to."""

    @wraps(method)
    def one_at_a_time(self: ReportStore, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with self.lock:
            return method(self, *arguments, **named)

    return one_at_a_time


def document(path: str | Path) -> str:
    """The document of the collection whose reports a file holds. Raises LedgerError."""
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"}) as connection:
            return str(connection.execute("SELECT document FROM collection").fetchall()[0][0])
    except (duckdb.Error, IndexError):
        raise LedgerError("store", _HELD, where=str(path), fix=_FIX) from None


class ReportStore:
    """The file of one collection, for several threads. Each `add` is one transaction, on the disk when it returns."""

    def __init__(self, collection: Collection, path: str | Path) -> None:
        import duckdb

        self.lock = Lock()
        self.collection, self._where, self._error = collection, str(path), duckdb.Error
        names = [f'"{name}" VARCHAR NOT NULL' for name in collection.public]
        fields = [
            "window_ VARCHAR NOT NULL",
            "token VARCHAR NOT NULL",
            "part INTEGER NOT NULL",
            "report BIGINT NOT NULL",
        ]
        try:
            self._connection = duckdb.connect(self._where, config={"enable_external_access": "false"})
            self._connection.execute("BEGIN")
            self._connection.execute("CREATE TABLE IF NOT EXISTS collection (document VARCHAR NOT NULL)")
            known = self._connection.execute("SELECT document FROM collection").fetchall()
            if not known:
                columns = ", ".join([*fields, *names, "PRIMARY KEY (window_, token)"])
                self._connection.execute(f"CREATE TABLE reports ({columns})")
                self._connection.execute("INSERT INTO collection VALUES (?)", [collection.text])
            self._connection.execute("COMMIT")
        except duckdb.Error:
            raise LedgerError("store", _HELD, where=self._where, fix=_FIX) from None
        if known and known != [(collection.text,)]:
            self.close()
            fix = "open it with its own collection, or name a new file"
            raise LedgerError(
                "collection", "the file holds the reports of another collection", where=self._where, fix=fix
            )

    @_alone
    def add(self, reports: Sequence[Report]) -> int:
        """How many of them are new; of several with one token and window the first counts, for ever."""
        first: dict[tuple[str, str], Report] = {}
        for one in reports:
            first.setdefault((one.window, one.token), one)
        if not first:
            return 0
        columns: dict[str, Any] = {
            "window_": np.array([window for window, _ in first], object),
            "token": np.array([token for _, token in first], object),
            "part": np.array([one.part for one in first.values()], np.int32),
            "report": np.array([one.report for one in first.values()], np.int64),
        }
        columns |= {
            name: np.array([one.public[name] for one in first.values()], object) for name in self.collection.public
        }
        try:
            self._connection.register("arrived", columns)
            insert = "INSERT INTO reports SELECT * FROM arrived ON CONFLICT DO NOTHING"
            new = self._connection.execute(insert).fetchall()[0][0]
            self._connection.unregister("arrived")
        except self._error:
            what = "the reports could not be written; none of them is stored"
            raise LedgerError("store", what, where=self._where, fix=_FIX) from None
        return int(new)

    @_alone
    def sizes(self) -> dict[str, int]:
        """How many reports there are of each window, the latest last."""
        return dict(self.query("SELECT window_, COUNT(*) FROM reports GROUP BY window_ ORDER BY window_"))

    @_alone
    def has(self, window: str, part: int) -> bool:
        """Whether there is a report of a part in a window."""
        ask = "SELECT 1 FROM reports WHERE window_ = ? AND part = ? LIMIT 1"
        return bool(self._connection.execute(ask, [window, part]).fetchall())

    @_alone
    def alike(self, window: str, columns: Sequence[str]) -> int:
        """How many reports of a window agree in these columns, where they are fewest."""
        groups = ", ".join(["window_", *(f'"{name}"' for name in columns)])
        ask = f"SELECT COUNT(*) FROM reports WHERE window_ = ? GROUP BY {groups} ORDER BY COUNT(*) LIMIT 1"
        found = self._connection.execute(ask, [window]).fetchall()
        return int(found[0][0]) if found else 0

    @_alone
    def counts(self, window: str, part: int, outputs: int) -> Counts:
        """How often each report of a part came in a window."""
        ask = "SELECT report, COUNT(*) AS n FROM reports WHERE window_ = ? AND part = ? GROUP BY report"
        found = self._connection.execute(ask, [window, part]).fetchnumpy()
        counts = np.zeros(outputs, np.int64)
        counts[np.asarray(found["report"])] = np.asarray(found["n"])
        return counts

    @_alone
    def raw(self, window: str, part: int) -> Counts:
        """The reports of a part themselves."""
        ask = "SELECT report FROM reports WHERE window_ = ? AND part = ?"
        return np.asarray(self._connection.execute(ask, [window, part]).fetchnumpy()["report"], np.int64)

    @_alone
    def load(self, table: str, columns: dict[str, Any]) -> None:
        """A table of this connection alone."""
        self._connection.register("arrived", columns)
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM arrived")
        self._connection.unregister("arrived")

    @_alone
    def view(self, name: str, statement: str) -> None:
        """A view of this connection alone."""
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {statement}")

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as `table` has them. Raises QuestionError."""
        return self.table(statement)[1]

    @_alone
    def table(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names and rows of one SELECT; should it change anything, that is undone. Raises QuestionError."""
        fix = "read from the table weights"
        try:
            parsed = self._connection.extract_statements(statement) if isinstance(statement, str) else []
            if [one.type.name for one in parsed] != ["SELECT"]:
                raise QuestionError("sql", "a query is one SELECT", where="query", fix=fix)
            self._connection.execute("BEGIN")
            try:
                done = self._connection.execute(parsed[0])
                return [one[0] for one in done.description or []], done.fetchall()
            finally:
                self._connection.execute("ROLLBACK")
        except self._error as error:
            first = str(error).splitlines()[0][:200]
            raise QuestionError("sql", first, where="query", fix=fix) from None

    def close(self) -> None:
        self._connection.close()
