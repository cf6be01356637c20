"""SQL on synthetic tables, which are public, with bounds of the errors where a release knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import QuestionError, refused
from discreet.release.content import ReleaseContent
from discreet.release.values import up
from discreet.synthesis.data import SyntheticData
from discreet.synthesis.database import run
from discreet.synthesis.known import KnownErrors, SyntheticTable, known_errors

_SHOWN = 60
_DECLARED = "values that were not declared count as NULL, or their rows are left out"


@dataclass(frozen=True, repr=False)
class Answer:
    """An answer of synthetic tables. `within` bounds the sum of the errors of all its counts, in rows, at 95 %;
    None where no bound is known. `intervals` has, for each row, the ends between which the real table's
    count lies, by column, at 95 % for all of them at once: of the columns of which the release says that. `words` say
    what is covered."""

    columns: list[str]
    rows: list[dict[str, Any]]
    within: float | None
    words: str
    intervals: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def as_source(self) -> Any:
        """Refuses: the rows of an answer have no bounds. Raises QuestionError."""
        fix = "write discreet.Table(release, public=True), and ask that"
        raise refused("source", "an answer is no published table", "source", fix)

    def __str__(self) -> str:
        ends = self.intervals or [{} for _ in self.rows]
        lines_of = zip(self.rows[:_SHOWN], ends, strict=False)
        cells = [self.columns, *([_cell(row[name], one.get(name)) for name in self.columns] for row, one in lines_of)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        more = [f"… {len(self.rows) - _SHOWN:,} more rows"] if len(self.rows) > _SHOWN else []
        return "\n".join([*lines, *more, self.words])

    __repr__ = __str__


def answered(tables: Mapping[str, SyntheticData], question: str) -> Answer:
    """Runs one SELECT on the rows of these tables. Raises QuestionError where it is none, or fails."""
    statement = parsed(question)
    read = {table.name.casefold() for table in statement.find_all(exp.Table)}
    read -= {cte.alias_or_name.casefold() for cte in statement.find_all(exp.CTE)}
    if not read <= {name.casefold() for name in tables}:
        raise refused("synthetic", "it reads another table", "question", f"write FROM {' or '.join(tables)}")
    used = {name: one for name, one in tables.items() if name.casefold() in read}
    # counts of several tables together are of as many rows as were drawn
    scale = next(iter(used.values())).known.factor if len(used) == 1 else 1.0
    columns, rows = run(used, _scaled(statement, scale).sql("duckdb"))
    if len(set(columns)) < len(columns):
        raise refused("synthetic", "two columns of the answer have one name", "SELECT", "name them with AS")
    plain = isinstance(statement, exp.Select) and len(statement.expressions) == len(columns)
    known = known_errors(statement, {name: one.known for name, one in used.items()}) if plain else KnownErrors()
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    ends = [known.intervals(columns, row) for row in named]
    return Answer(columns, named, known.within, _words(statement, known, scale), ends)


def parsed(question: str) -> exp.Query:
    """The question as a tree. Raises QuestionError where it is not one SELECT."""
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


def _cell(value: Any, ends: tuple[float, float] | None) -> str:
    return str(value) if ends is None else f"{value:,} ± {ends[1] - value:,.0f}"


def _words(statement: exp.Query, known: KnownErrors, scale: float) -> str:
    scaled = "" if abs(scale - 1) < 1e-9 else f"; counts and sums are scaled by {scale:.4g} to the real number of rows"
    others = [one for one in statement.find_all(exp.AggFunc) if not _counts(one)]
    more = ("; of other functions no bound is known" if others else "") + scaled
    if known.counts:
        return f"± is the release's bound, at 95 % for all counts at once{more}; {_DECLARED}"
    if known.within is None:
        return f"no error bound is known: the release has none for what it reads together{scaled}"
    words = f"all counts of cells are off by at most {up(known.within):,.0f} rows in sum (95 %)"
    return f"{words}, before what falls inside a bin{more}; {_DECLARED}"


def _counts(one: exp.AggFunc) -> bool:
    return isinstance(one, exp.Count | exp.CountIf) and not isinstance(one.this, exp.Distinct)


def with_errors(content: ReleaseContent, question: str, tables: Mapping[str, SyntheticTable]) -> ReleaseContent:
    """An answer that read these tables, and others perhaps, with what is known of its errors: intervals of counts, and
    of all else that nothing is."""
    try:
        statement: exp.Expr | None = parsed(question)
    except QuestionError:
        statement = None
    about = f"{' and '.join(replace(one, name=name).title for name, one in tables.items())}: made-up rows, published"
    items = statement.expressions if isinstance(statement, exp.Select) else []
    drawn = all(one.factor == 1 for one in tables.values())
    known = known_errors(statement, tables) if statement is not None and drawn else KnownErrors()
    counts = [content.columns[place] for place in known.counts] if len(items) == len(content.columns) else []
    if not counts:
        fewer = "" if drawn else "; there are fewer of them than of the real ones"
        return replace(
            content, bounds=[*content.bounds, f"{about}; nothing is known of the errors that come of them{fewer}"]
        )
    ends = [known.intervals(content.columns, row) for row in content.rows]
    others = "".join(
        f"; of {name} nothing is known" for name in _estimates(items, content.columns) if name not in counts
    )
    return replace(
        content,
        types={name: kind for name, kind in content.types.items() if name not in counts},
        keys=[name for name in content.keys or () if name not in counts],
        intervals=ends,
        simultaneous=ends,
        bounds=[
            *content.bounds,
            f"{about}; ± is the bound of {', '.join(counts)} that their release holds{others}; {_DECLARED}",
        ],
    )


def _estimates(items: Sequence[exp.Expr], columns: Sequence[str]) -> list[str]:
    return [name for item, name in zip(items, columns, strict=True) if item.find(exp.AggFunc) is not None]
