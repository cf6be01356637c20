"""SQL on a synthetic table, which is public: run by the database in this process, with a bound of the error where one
is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import refused
from discreet.synthesis.data import SyntheticData

_MOST = 100_000


@dataclass(frozen=True)
class Answer:
    """An answer of the synthetic table. `within` bounds the sum of the errors of all counts of the answer, in rows, at
    95 % confidence; None where no bound is known. `words` say what it covers."""

    columns: list[str]
    rows: list[dict[str, Any]] = field(repr=False)
    within: float | None
    words: str

    def __str__(self) -> str:
        cells = [self.columns, *([str(row[name]) for name in self.columns] for row in self.rows[:60])]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join([*lines, self.words])


def answered(release: SyntheticData, question: str) -> Answer:
    """Runs one SELECT on the rows of the release. Raises QuestionError where it is none, or fails."""
    statement = _parsed(question)
    name = str(release.holds.more["name"])
    tables = {table.name.casefold() for table in statement.find_all(exp.Table)}
    named = {cte.alias_or_name.casefold() for cte in statement.find_all(exp.CTE)}
    if not tables - named <= {name.casefold()}:
        raise refused("synthetic", "it reads another table", "question", f"write FROM {name}")
    rounded = abs(release.total - len(release)) <= 0.5  # as many rows as the real table seems to hold
    scale = 1.0 if rounded else release.total / max(1, len(release))
    columns, rows = _run(release, name, _scaled(statement, scale).sql("duckdb"))
    within = _within(release, statement)
    return Answer(columns, rows, within, _words(statement, within, scale))


def _parsed(question: str) -> exp.Query:
    try:
        statements = [one for one in sqlglot.parse(question, read="duckdb") if one is not None]
    except (SqlglotError, RecursionError, TypeError):
        raise refused("synthetic", "it cannot be read", "question", "write one SELECT") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise refused("synthetic", "it is not a single SELECT", "question", "write one SELECT")
    return statements[0]


def _scaled(statement: exp.Query, scale: float) -> exp.Query:
    """Counts and sums times the scale, so that they are about the real table and not about as many rows as were
    drawn."""
    if abs(scale - 1) < 1e-9:
        return statement
    statement = statement.copy()
    for select in statement.find_all(exp.Select):
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.replace(exp.alias_(item.copy(), item.sql("duckdb"), quoted=True))
    factor = exp.Literal.number(repr(scale))
    for node in list(statement.find_all(exp.Count, exp.CountIf, exp.Sum)):
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            continue
        whole: Any = node.parent if isinstance(node.parent, exp.Filter | exp.Window) else node
        product = exp.Mul(this=whole.copy(), expression=factor.copy())
        rounded = not isinstance(node, exp.Sum)
        whole.replace(exp.cast(exp.Round(this=product), "BIGINT") if rounded else exp.paren(product))
    return statement


def _run(release: SyntheticData, name: str, sql: str) -> tuple[list[str], list[dict[str, Any]]]:
    import duckdb

    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    try:
        arrays = {column: one.values for column, one in release._read.items()}
        connection.register("synthetic_rows", arrays)
        types = release.holds.types
        casts = ", ".join(f"CAST({_quoted(one)} AS {_TYPES[types[one]]}) AS {_quoted(one)}" for one in release.columns)
        connection.execute(f"CREATE TABLE {_quoted(name)} AS SELECT {casts} FROM synthetic_rows")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        found = connection.execute(sql)
        columns = [one[0] for one in found.description or ()]
        return columns, [dict(zip(columns, row, strict=True)) for row in found.fetchmany(_MOST)]
    except duckdb.Error as error:
        message = f"the database rejected it: {str(error).splitlines()[0][:200]}"
        raise refused("synthetic", message, "question", "correct the question") from None
    finally:
        connection.close()


_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _used(release: SyntheticData, statement: exp.Query) -> Sequence[str]:
    known = {name.casefold(): name for name in release.columns}
    named = [
        known[column.name.casefold()] for column in statement.find_all(exp.Column) if column.name.casefold() in known
    ]
    return list(dict.fromkeys(named))


def _within(release: SyntheticData, statement: exp.Query) -> float | None:
    """Rows by which counts over cells of the columns that the question reads are off, added up: the marginal's bound
    times the number of rows."""
    selects = list(statement.find_all(exp.Select))
    if len(selects) != 1 or next(statement.find_all(exp.Join), None) is not None:
        return None
    return release.off_by(_used(release, statement))


def _words(statement: exp.Query, within: float | None, scale: float) -> str:
    scaled = "" if abs(scale - 1) < 1e-9 else f"; counts and sums are scaled by {scale:.4g} to the real number of rows"
    if within is None:
        return f"no error bound is known: it reads more columns together than the release gives a bound for{scaled}"
    words = f"all counts of cells are off by at most {within:,.0f} rows in sum (95 %), before what falls inside a bin"
    others = [one for one in statement.find_all(exp.AggFunc) if not isinstance(one, exp.Count | exp.CountIf)]
    return words + ("; of other functions no bound is known" if others else "") + scaled
