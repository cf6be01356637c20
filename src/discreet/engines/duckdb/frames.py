"""Frames of pandas as the engine takes them: no value decides how others are read.

In pandas one missing value turns a numpy integer into a float, and a boolean into a Python object; one text turns all
of a column into objects; `convert_dtypes` and the like choose pandas' own types by the rows. So numpy's numbers state
that they are numbers, objects state no type, and each value becomes the same value of the declared type, whatever else
stands in its column: objects become texts from which the engine reads the type, as it does of the type that they would
have alone. Where it does not, the others become texts too. Else one person's missing value would be seen in
everybody's: 1 would be "1.0", and no declared value any more.

What is lost before the frame comes here is lost: as a float, a whole number beyond 2^53 is another.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

_WHOLE = 1 << 63


def taken(frame: Any, types: Mapping[str, str]) -> tuple[Any, dict[str, str | None]]:
    """A frame that the engine can take, and what is stated of the types of columns whose dtype depends on values: None
    where nothing is. `types` are the declared ones, in words, by names in lower case."""
    if type(frame).__module__.partition(".")[0] != "pandas":
        return frame, {}
    stated: dict[str, str | None] = {}
    frame = frame.copy(deep=False)
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        wanted, column = types.get(str(name).casefold()), frame.iloc[:, place]
        categories = getattr(dtype, "categories", None)
        values = dtype if categories is None else categories.dtype
        kind, numpy = getattr(values, "kind", ""), type(values).__module__.startswith("numpy")
        objects = numpy and kind in ("O", "c")
        apart = categories is not None and (numpy or kind != "O") and wanted is not None
        if (objects and categories is None) or apart or _read_otherwise(values, wanted):
            column = column.astype(object).map(partial(written, wanted=wanted), na_action="ignore").astype("string")
            stated[str(name)] = None
        elif categories is None and kind == "M" and _unit(dtype) == "ns" and hasattr(column.dt, "as_unit"):
            column = column.dt.as_unit("us")  # as the engine counts moments
        if numpy and kind in ("i", "u", "f"):
            stated[str(name)] = "DOUBLE"
        frame.isetitem(place, column)
    return frame, stated


def _read_otherwise(dtype: Any, wanted: str | None) -> bool:
    """Whether the engine makes another value of a type of numbers or moments than of a text that `written` gives, or
    none of those that are far away."""
    kind = getattr(dtype, "kind", "")
    if kind == "M" and _unit(dtype) in ("s", "ms"):
        return wanted is not None
    return (wanted == "text" and kind in ("b", "f", "M", "m")) or (wanted == "boolean" and kind in ("i", "u", "f"))


def _unit(dtype: Any) -> str:
    """In what a type of moments counts."""
    return str(dtype).partition("[")[2].rstrip("]").partition(",")[0]


def written(value: Any, wanted: str | None) -> str:
    """A value as a text from which the engine reads what it would make of the value's own type; what cannot be written
    is no value."""
    try:
        text = _written(value, wanted)
        text.encode()
    except Exception:  # whatever an object does where it is written: it fails for nobody
        return ""
    return text


def _written(value: Any, wanted: str | None) -> str:
    name = type(value).__name__
    if isinstance(value, str):
        return str.__str__(value)
    if name in ("bool", "bool_"):
        return str(int(value)) if wanted in ("integer", "number") else str(value).lower()
    if isinstance(value, datetime.timedelta) or name in ("timedelta64", "datetime64"):
        import pandas  # it has the frame

        value = pandas.Timestamp(value) if name == "datetime64" else pandas.Timedelta(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        if wanted in ("date", "timestamp"):
            return ""  # infinity would be a date, as a text
        number = float(value)
        if -_WHOLE <= number < _WHOLE and (number.is_integer() or wanted == "integer"):
            return str(round(number))  # half to even, as the engine does
        return str(number)
    if isinstance(value, datetime.datetime):
        moment: Any = value.as_unit("us") if getattr(value, "unit", "") == "ns" else value  # type: ignore[attr-defined]
        moment = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return str(moment).partition(" ")[0] if wanted == "date" else str(moment)
    return str(value)
