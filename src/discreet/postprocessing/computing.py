"""Runs outer queries in their own engine, and makes an answer of what comes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.engines.child import UnreadableSource
from discreet.engines.chosen import OUTER_WORKER
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Lost, Stopped
from discreet.errors import QuestionError
from discreet.locks import Lock
from discreet.postprocessing.box import HIGH, LOW, ONE_HIGH, ONE_LOW, Followed
from discreet.postprocessing.outer import OuterQuery, ReleasedTable, beside
from discreet.release.content import ONE_PERSON, Cost, ReleaseContent
from discreet.release.values import FAR, plain, typed

SECONDS = 10.0
"""The wall time of one outer query."""

_LARGEST = 2**63
Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class OuterResult:
    """What an outer query gives: the types of its columns and its rows, the intervals' columns behind the others.
    `several`: a subquery in it gives more rows than the one that is wanted, and the first was taken."""

    kinds: Sequence[str]
    rows: Sequence[Sequence[Any]]
    several: bool = False


class OuterEngine:
    """One child, started when it is first needed, for outer queries one after another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: EngineProcess | None = None

    def compute(
        self, query: OuterQuery, tables: Mapping[str, ReleasedTable], data: Mapping[str, Columns], *, paid: bool = False
    ) -> OuterResult:
        """Runs a query. Raises QuestionError where it cannot be run. With `paid`, that says that what was measured
        stays; and where a subquery gives several rows for one value, which depends on the noise, the first is taken."""
        sent = []
        for name in query.tables:
            table = tables[name]
            columns = data.get(name, {})
            listed = [_fitting(kind, columns.get(column, [])) for column, kind in table.stored]
            names = [column for column, _ in table.stored]
            sent.append((name, [(column, kind) for column, (kind, _) in zip(names, listed, strict=True)],
                         [values for _, values in listed]))  # fmt: skip
        with self._lock:
            if self._process is None or not self._process.usable:
                self._process = EngineProcess(OUTER_WORKER)
            try:
                found = self._process.call("compute", sent, query.text, paid, seconds=SECONDS)
            except (Failed, UnreadableSource, Lost, Stopped):
                self._process.kill()
                self._process = None
                raise _refused("it takes too long, or too much memory", "compute less in one question", paid) from None
        if "wrong" in found:
            raise _wrong(found["wrong"], found["function"], paid)
        return OuterResult(found["kinds"], found["rows"], found.get("several", False))

    def close(self) -> None:
        """Ends the child."""
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None


def _fitting(kind: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """A column as its type takes it: whole numbers that are too large go as doubles."""
    if kind == "integer" and any(isinstance(one, int) and abs(one) >= _LARGEST for one in values):
        kind = "number"
    if kind == "number":
        return kind, [None if one is None else float(one) for one in values]
    return kind, values


def _wrong(kind: str, function: str, paid: bool) -> QuestionError:
    if kind == "rows":
        return _refused("it gives more than 100,000 rows", "write LIMIT, or group by less", paid)
    if function:
        message = f"{function.upper()[:60]} cannot take these values"
        return _refused(message, f"cast what {function.upper()[:60]} takes: CAST(x AS TEXT), CAST(x AS INTEGER)", paid)
    if "Binder" in kind or "Catalog" in kind or "NotImplemented" in kind:
        return _refused("its types do not fit together", "cast one of them, as CAST(x AS TEXT)", paid)
    if "Memory" in kind:
        return _refused("it takes too much memory", "compute less in one question", paid)
    return _refused("it cannot be computed", "write it more simply", paid)


def _refused(what: str, fix: str, paid: bool) -> QuestionError:
    message = f"the query on the answers cannot be run: {what}"
    if paid:
        fix += "; what was measured is paid and kept: asked again, it is free"
    return QuestionError("outer", message, where="question", fix=fix)


def data_of(content: ReleaseContent, table: ReleasedTable) -> dict[str, list[Any]]:
    """A released table's columns, with the ends of both kinds of intervals."""
    found: dict[str, list[Any]] = {}
    for name, _ in table.columns:
        low = name.lower()
        found[low] = [row[name] for row in content.rows]
        if name in table.noisy:
            for ends, intervals in (((LOW, HIGH), content.simultaneous), ((ONE_LOW, ONE_HIGH), content.intervals)):
                for place, ending in enumerate(ends):
                    unknown = (-math.inf, math.inf)[place]
                    found[low + ending] = [one[name][place] if name in one else unknown for one in intervals]
    return found


def rows_of(table: ReleasedTable, rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns of a table that is about nobody."""
    return {name.lower(): [plain(row[place]) for row in rows] for place, (name, _) in enumerate(table.columns)}


def content(
    query: OuterQuery,
    computed: OuterResult,
    parts: Sequence[ReleaseContent],
    cost: Cost,
    *,
    compared: bool = False,
    notes: Sequence[str] = (),
) -> ReleaseContent:
    """The answer of an outer query over measured tables. It follows from what these released."""
    names = [name for name, _ in query.columns]
    rows: list[dict[str, Any]] = [{} for _ in computed.rows]
    single: list[dict[str, tuple[float, float]]] = [{} for _ in computed.rows]
    joint: list[dict[str, tuple[float, float]]] = [{} for _ in computed.rows]
    types: dict[str, str] = {}
    unknown: list[str] = []
    for place, ((name, followed), (at, count)) in enumerate(zip(query.columns, beside(query), strict=True)):
        kind = computed.kinds[place]
        ends = [_ends(row[at], row[at + 1], kind) for row in computed.rows] if count else []
        known = followed.boxed and not computed.several and (not ends or any(end != (-FAR, FAR) for end in ends))
        if not known:
            types[name] = kind
            if followed is not Followed.EXACT:
                unknown.append(name)
        for index, row in enumerate(computed.rows):
            rows[index][name] = _finite(row[place])
            if known:
                joint[index][name] = ends[index]
                alone = count == 4 and not query.picked
                single[index][name] = _ends(row[at + 2], row[at + 3], kind) if alone else ends[index]
    bounds = [
        *(line for part in parts for line in part.bounds),
        *(f"{name}: how far it lies from the truth is not known" for name in unknown),
    ]
    if compared:
        bounds.append("rows are compared with a released value: intervals are for that value, not for the true one")
    if computed.several:
        bounds.append("of several rows of a subquery, the first is taken")
    bounds += notes
    left_out = [one for part in parts for one in part.left_out or ()]
    return ReleaseContent(
        columns=names,
        types=types,
        keys=[name for name, followed in query.columns if followed is Followed.EXACT],
        rows=rows,
        intervals=single,
        simultaneous=joint,
        cost=cost,
        mechanisms=[dict(one) for part in parts for one in part.mechanisms],
        bounds=list(dict.fromkeys(bounds)),
        left_out=left_out,
        unit=parts[0].unit if parts else ONE_PERSON,
    )


def _ends(low: Any, high: Any, kind: str) -> tuple[float, float]:
    if (
        not isinstance(low, int | float)
        or not isinstance(high, int | float)
        or not math.isfinite(low)
        or not math.isfinite(high)
        or low > high
    ):
        return -FAR, FAR
    if kind == "integer" and float(low).is_integer() and float(high).is_integer():
        return int(low), int(high)
    return float(low), float(high)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def kind_of(query: OuterQuery, computed: OuterResult) -> str:
    """The type of the one column that a subquery gives to a measured table. Raises QuestionError on any other."""
    if len(query.columns) != 1:
        message = "a subquery that is compared with has one column"
        raise QuestionError("subquery", message, where="subquery", fix="name one column in its SELECT")
    if computed.kinds[0].startswith("list of"):
        message = "a subquery that is compared with gives a list"
        raise QuestionError("type", message, where="subquery", fix="ask for one value: PERCENTILE_CONT(x, 0.5)")
    return computed.kinds[0]


def value_of(computed: OuterResult, *, many: bool) -> list[Any]:
    """What a subquery gives to a measured table: the values of its one column, or where one is wanted the first, and
    NULL where there is none."""
    values = [None if isinstance(row[0], float) and math.isnan(row[0]) else row[0] for row in computed.rows]
    made = [_within_the_calendar(one, computed.kinds[0]) for one in values]
    return made if many else made[:1] or [None]


def first_of(computed: OuterResult, *, many: bool) -> list[str]:
    """What the answer says where one value is wanted, and several were given."""
    count = len(computed.rows)
    inner = ["of several rows of a subquery, the first is taken"] if computed.several else []
    return inner + ([] if many or count < 2 else [f"of {count} rows of a subquery, the first is compared with"])


def _within_the_calendar(value: Any, kind: str) -> Any:
    """A value as Python has it; NULL for a date beyond the years that Python knows."""
    try:
        return typed(value, kind)
    except ValueError:
        return None
