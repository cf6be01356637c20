"""A workload as another process is told it, in JSON's values: ranges are {"low": 18, "high": 30}, dates are texts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

from discreet.errors import QuestionError, refused
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.table import Table, Type
from discreet.workload.question import Workload, WorkloadCall

KINDS = ("marginal", "all", "ranges", "prefixes", "count")
_FIX = 'write {"questions": [{"marginal": ["sex"]}, {"prefixes": "age"}, {"count": {"sex": "Female"}}]}'


def told(workload: object) -> dict[str, Any]:
    """All that a workload asks, as plain values. Raises QuestionError where it is none."""
    if not isinstance(workload, Workload):
        fix = 'write discreet.Workload("…").marginals("…")'
        raise refused("workload", "this is not a valid workload", "workload", fix)
    questions: list[dict[str, Any]] = []
    for one in workload.asked:
        if one.kind == "all":
            ways, columns = one.given
            questions.append({"all": plain(ways), **({} if columns is None else {"columns": plain(columns)})})
        else:
            questions.append({one.kind: _condition(one.given) if one.kind == "count" else plain(one.given)})
    bins = {} if not workload.bins else {"bins": plain(workload.bins)}
    return {"table": workload.table, "questions": questions, **bins}


def heard(said: Mapping[str, Any], table: Table | None) -> Workload:
    """The workload that was told. Texts are dates where the table's columns are. Raises QuestionError."""
    calls = []
    for one in said.get("questions", ()):
        kind = next(iter(one), None) if isinstance(one, dict) else None
        if kind not in KINDS or not set(one) <= ({kind, "columns"} if kind == "all" else {kind}):
            raise refused("workload", f"a question is one of {', '.join(KINDS)}", "questions", _FIX)
        given = one[kind]
        if kind == "all":
            given = (number(given), one.get("columns"))
        if kind == "count" and isinstance(given, dict):
            given = {name: _value(value, table, name) for name, value in given.items()}
        calls.append(WorkloadCall(kind, given))
    return Workload(said["table"], heard_bins(said.get("bins", {}), table), tuple(calls))


def heard_bins(bins: Mapping[str, Any], table: Table | None) -> dict[str, Any]:
    """The bins that were told: how many, or where they begin. Raises QuestionError."""
    return {name: _value(value, table, name) for name, value in bins.items()}


def _condition(condition: Any) -> Any:
    """A condition: pairs are ranges."""
    if not isinstance(condition, Mapping):
        return plain(condition)
    told: dict[str, Any] = {}
    for name, value in condition.items():
        pair = isinstance(value, tuple) and len(value) == 2
        told[str(name)] = {"low": plain(value[0]), "high": plain(value[1])} if pair else plain(value)
    return told


def plain(value: Any) -> Any:
    """A value as JSON has it; what is none is told as it is shown, and refused by the curator."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Set):
        return sorted((plain(one) for one in value), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Fraction | Decimal | Integral) and not isinstance(value, bool):
        return _written(value)
    return value if value is None or isinstance(value, str | bool | float) else repr(value)


def _written(value: Any) -> Any:
    """A number as JSON has it, where it is exactly that."""
    try:
        known = fraction(value)
        shown = known.numerator if known.denominator == 1 else float(known)
        return shown if fraction(shown) == known else repr(value)
    except (ValueError, OverflowError):
        return repr(value)


def _value(value: Any, table: Table | None, column: str) -> Any:
    """A value of a column."""
    if isinstance(value, dict):
        if set(value) != {"low", "high"}:
            fix = 'write {"low": 18, "high": 30}, null for an open end'
            raise refused("workload", f"the range of {column[:60]} is not a valid range", "count", fix)
        return (_value(value["low"], table, column), _value(value["high"], table, column))
    if isinstance(value, list):
        return [_value(one, table, column) for one in value]
    if isinstance(value, Decimal):
        return number(value)
    return _moment(value, table, column) if isinstance(value, str) else value


def _moment(text: str, table: Table | None, name: str) -> Any:
    """A text, or the date that it writes where the column has dates."""
    kind = None
    for column in () if table is None else table.columns:
        kind = column.type if column.name.casefold() == name.casefold() else kind
    try:
        if kind is Type.DATE:
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(text) if kind is Type.TIMESTAMP else text
    except ValueError:
        return text


def number(value: Any) -> Any:
    """A number as JSON wrote it, exactly. Raises QuestionError on one too long to compute with."""
    if not isinstance(value, Decimal):
        return value
    try:
        known = fraction(value)
    except ValueError:
        raise QuestionError("number", "a number is too long", where="body", fix="write a shorter one") from None
    return int(known) if known.denominator == 1 else known
