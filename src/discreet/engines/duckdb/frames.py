"""Frames of pandas as the engine takes them: no value decides how others are read.

In pandas one missing value turns a numpy integer into a float, and a boolean into a Python object; one text turns all
of a column into objects. So numpy's numbers state that they are numbers, objects state no type, and each value becomes
the same value of the declared type, whatever else stands in its column: objects become texts from which the engine
reads the type, as it does of the numpy type that they would have alone. Where it does not, the others become texts too.
Else one person's missing value would be seen in everybody's: 1 would be "1.0", and no declared value any more.

What is lost before the frame comes here is lost: as a float, a whole number beyond 2^53 is another.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any

from discreet.trusted.ring_a.table import Type

_WHOLE = 1 << 63


def taken(frame: Any, types: Mapping[str, Type]) -> tuple[Any, dict[str, str | None]]:
    """A frame that the engine can take, and what is stated of the types of columns whose dtype depends on values: None
    where nothing is. `types` are the declared ones, by names in lower case."""
    if type(frame).__module__.partition(".")[0] != "pandas":
        return frame, {}
    stated: dict[str, str | None] = {}
    frame = frame.copy(deep=False)
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        wanted, column = types.get(str(name).casefold()), frame.iloc[:, place]
        categories = getattr(dtype, "categories", None)
        kind = _kind(dtype if categories is None else categories.dtype)
        if (categories is not None and kind != "") or kind == "O" or _read_otherwise(kind, wanted):
            column = column.astype(object).map(partial(written, wanted=wanted), na_action="ignore").astype("string")
            stated[str(name)] = None
        elif kind == "M" and _unit(dtype) == "ns":
            column = column.dt.as_unit("us")  # as the engine counts moments
        if kind in ("i", "u", "f"):
            stated[str(name)] = "DOUBLE"
        frame.isetitem(place, column)
    return frame, stated


def _kind(dtype: Any) -> str:
    """The kind of a numpy type, and of moments in a zone; empty for pandas' own types and Arrow's, which do not depend
    on values."""
    if type(dtype).__module__.startswith("numpy"):
        return str(dtype.kind)
    return "M" if getattr(dtype, "tz", None) is not None else ""


def _read_otherwise(kind: str, wanted: Type | None) -> bool:
    """Whether the engine makes another value of a numpy type than of a text that `written` gives."""
    return (wanted is Type.TEXT and kind in ("b", "f", "M", "m")) or (
        wanted is Type.BOOLEAN and kind in ("i", "u", "f")
    )


def _unit(dtype: Any) -> str:
    """In what a type of moments counts."""
    return str(dtype).partition("[")[2][:2]


def written(value: Any, wanted: Type | None) -> str:
    """A value as a text from which the engine reads what it would make of the value's own numpy type; what is too large
    to be written is no value."""
    try:
        return _written(value, wanted)
    except (OverflowError, ValueError):
        return ""


def _written(value: Any, wanted: Type | None) -> str:
    if type(value).__name__ in ("bool", "bool_"):
        return str(int(value)) if wanted in (Type.INTEGER, Type.NUMBER) else str(value).lower()
    if isinstance(value, Real) and not isinstance(value, int):
        if wanted in (Type.DATE, Type.TIMESTAMP):
            return ""  # infinity would be a date, as a text
        number = float(value)
        if abs(number) < _WHOLE and (number.is_integer() or wanted is Type.INTEGER):
            return str(round(number))  # half to even, as the engine does
        return str(number)
    if isinstance(value, datetime.datetime):
        moment: Any = value.as_unit("us") if getattr(value, "unit", "") == "ns" else value  # type: ignore[attr-defined]
        moment = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return str(moment.date() if wanted is Type.DATE else moment)
    return str(value)
