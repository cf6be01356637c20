"""Frames of pandas as the engine takes them: no value decides how others are read.

In pandas one missing value turns a numpy integer into a float, and a boolean into a Python object; one text turns all
of a column into objects; `convert_dtypes` and the like choose pandas' own types by the rows. So numpy's numbers state
that they are numbers, objects state no type, and each value becomes the same value of the declared type, whatever else
stands in its column: objects become texts from which the engine reads the type, as it does of the type that they would
have alone. Where it does not, the others become texts too. Else one person's missing value would be seen in
everybody's: 1 would be "1.0", and no declared value any more.

It happens in the process that holds the frame: values of a program's own classes go to no other one. A value has the
same text in every process, or none: else a table would be another one at its next opening.

What is lost before the frame comes here is lost: as a float, a whole number beyond 2^53 is another.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Complex, Integral, Rational, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

_WHOLE = 1 << 63
_DIGITS = 400
"""Decimals of more digits before or behind the point are written with an exponent."""

_LONGEST = 100_000
"""What holds values has no longer text."""

_FLAT = (bytes, bytearray, complex, datetime.time, Enum, PurePath, UUID)

_ARROW = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")


def taken(frame: Any, types: Mapping[str, str]) -> tuple[Any, dict[str, str | None]]:
    """A frame that the engine can take, and what is stated of the types of columns whose dtype depends on values: None
    where nothing is. `types` are the declared ones, in words, by names in lower case."""
    if type(frame).__module__.partition(".")[0] != "pandas":
        return frame, {}
    stated: dict[str, str | None] = {}
    frame = frame.copy(deep=False)
    # what stands beside the rows may be anything, and is not read
    frame.attrs, frame.index, frame.columns = {}, range(len(frame)), [str(name) for name in frame.columns]
    for place, name in enumerate(frame.columns):
        wanted, column = types.get(name.casefold()), _plain(frame.iloc[:, place])
        categories = getattr(column.dtype, "categories", None)
        values = column.dtype if categories is None else categories.dtype
        kind = _kind(values)
        if categories is None:
            apart = not kind or _read_otherwise(kind, _unit(values), wanted)
        else:
            apart = not _texts(kind, categories) and (not kind or wanted is not None)
        if apart:
            column, stated[name] = _as_texts(column, wanted), None
        elif kind == "M" and categories is None:
            column = _counted(column)
        if type(values).__module__.startswith("numpy") and kind in ("i", "u", "f"):
            stated[name] = "DOUBLE"
        frame.isetitem(place, column)
    return frame, stated


def _plain(column: Any) -> Any:
    """A column of which every row has a place, of numbers that the engine takes; of moments as numpy has them, in UTC:
    as Python's objects some could not be made."""
    dtype, name = column.dtype, type(column.dtype).__name__
    if name == "SparseDtype":
        return _plain(type(column)(column.to_numpy(), index=column.index))
    if name == "CategoricalDtype":
        values = dtype.categories.dtype
        moments = getattr(values, "kind", "") == "M" and _kind(values) != "days"
        return _plain(_of_categories(column, dtype.categories.array)) if moments else column
    if name == "DatetimeTZDtype":
        return column.dt.tz_convert(None)
    if _arrow(dtype).startswith("timestamp["):
        if dtype.pyarrow_dtype.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.astype(f"datetime64[{dtype.pyarrow_dtype.unit}]")
    return column.astype(float) if _kind(dtype) == "f" and dtype.itemsize > 8 else column


def _arrow(dtype: Any) -> str:
    """The name of one of Arrow's types; of another dtype nothing."""
    return str(getattr(dtype, "pyarrow_dtype", ""))


def _kind(dtype: Any) -> str:
    """What a dtype holds: one of numpy's letters, "texts" or "days"; nothing where the engine does not take it, or what
    it makes of a value depends on others."""
    if arrow := _arrow(dtype):
        known = {"string": "texts", "large_string": "texts", "date32[day]": "days"}
        return str(dtype.kind) if arrow in _ARROW else known.get(arrow, "")
    if type(dtype).__name__ == "StringDtype":
        return "" if dtype.storage == "python" else "texts"
    if type(dtype).__module__.startswith("numpy") or hasattr(dtype, "numpy_dtype"):
        return str(dtype.kind) if dtype.kind in "biufmM" else ""
    return ""


def _texts(kind: str, categories: Any) -> bool:
    """Whether every category is a text that the engine takes."""
    return kind == "texts" or all(type(one) is str and _encoded(one) for one in _objects(categories))


def _encoded(text: str) -> bool:
    """Whether a text can be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_otherwise(kind: str, unit: str, wanted: str | None) -> bool:
    """Whether the engine makes another value of a type of numbers or moments than of a text that `written` gives, or
    none of those that are far away."""
    if kind == "M" and unit in ("s", "ms"):
        return wanted is not None
    return (wanted == "text" and kind in ("b", "f", "M", "m")) or (wanted == "boolean" and kind in ("i", "u", "f"))


def _unit(dtype: Any) -> str:
    """In what a type of moments counts."""
    return str(dtype).partition("[")[2].rstrip("]")


def _counted(column: Any) -> Any:
    """Moments as the engine counts them, but for the two that are infinite to it and far away to pandas."""
    if _unit(column.dtype) == "ns" and hasattr(column.dt, "as_unit"):
        return column.dt.as_unit("us")
    return column.mask(abs(column.to_numpy().view("i8")) == _WHOLE - 1)


def _as_texts(column: Any, wanted: str | None) -> Any:
    """A column of what is `written` of each value; of categories once of each."""
    import pandas  # it has the frame

    categories = getattr(column.dtype, "categories", None)
    values = column if categories is None else categories
    texts = pandas.array([written(value, wanted) for value in _objects(values)], dtype="string")
    return pandas.Series(texts, index=column.index) if categories is None else _of_categories(column, texts)


def _of_categories(column: Any, values: Any) -> Any:
    """A column with these values for its categories."""
    return type(column)(values.take(column.cat.codes.to_numpy(), allow_fill=True), index=column.index)


def _objects(values: Any) -> Iterable[Any]:
    """Values as Python's objects; where Python has no such object for one of them, that one is None."""
    try:
        return list(values.astype(object))
    except Exception:
        return [_object(values.array, place) for place in range(len(values))]


def _object(values: Any, place: int) -> Any:
    try:
        return values[place]
    except Exception:
        return None


def written(value: Any, wanted: str | None) -> str | None:
    """A value as a text from which the engine reads what it would make of the value's own type; None where it is
    missing, or cannot be written."""
    try:
        text = _written(value, wanted)
        return text if text is None or _encoded(text) else None
    except Exception:  # whatever an object does where it is written: it fails for nobody
        return None


def _missing(value: Any) -> bool:
    """Whether there is no value: pandas has several ways to say that."""
    empty = value is None or type(value).__name__ in ("NAType", "NaTType")
    return empty or (isinstance(value, Real | Decimal) and bool(value != value))


def _written(value: Any, wanted: str | None) -> str | None:
    name = type(value).__name__
    if isinstance(value, str):
        return str.__str__(value)
    # one complex number makes complex ones of all
    if isinstance(value, Complex) and not isinstance(value, Real) and value.imag == 0:
        value = value.real
    if isinstance(value, Rational) and value.denominator == 1 and name not in ("bool", "bool_"):
        value = value.numerator
    if _missing(value):
        return None
    if name in ("bool", "bool_"):
        return str(int(value)) if wanted in ("integer", "number") else str(value).lower()
    if isinstance(value, datetime.timedelta) or name in ("timedelta64", "datetime64"):
        import pandas

        value = pandas.Timestamp(value) if name == "datetime64" else pandas.Timedelta(value)
        if value is pandas.NaT:
            return None
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        if wanted in ("date", "timestamp"):
            return None  # infinity would be a date, as a text
        if isinstance(value, Fraction) and wanted == "text":
            return str(value)
        number = float(value)
        if -_WHOLE <= number < _WHOLE and (number.is_integer() or wanted == "integer"):
            return str(round(number))  # half to even, as the engine does
        return str(number)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime.datetime):
        moment = _moment(value)
        return moment.partition(" ")[0] if wanted == "date" else moment
    if isinstance(value, datetime.date):
        return datetime.date.isoformat(value)
    return _composed(value, wanted)


def _decimal(value: Decimal) -> str:
    """Without zeros at the end: how many there are may follow from other values."""
    if not value:
        return "0"
    if not value.is_finite() or not -_DIGITS < value.adjusted() < _DIGITS:
        return str(value)
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _moment(value: datetime.datetime) -> str:
    """A moment in UTC, also where that is beyond the years that Python has."""
    if hasattr(value, "as_unit"):  # pandas'
        moment: Any = value.as_unit("us") if getattr(value, "unit", "") == "ns" else value
        if abs(moment.asm8.view("i8")) == _WHOLE - 1:
            raise OverflowError  # infinite to the engine, far away to pandas
        return str(moment if moment.tzinfo is None else moment.tz_convert(None))
    offset, naive = value.utcoffset(), value.replace(tzinfo=None)
    if not offset:
        return datetime.datetime.isoformat(naive, " ")
    import numpy
    import pandas

    return str(pandas.Timestamp(numpy.datetime64(naive, "us") - numpy.timedelta64(offset, "us")))


def _composed(value: Any, wanted: str | None) -> str | None:
    """Of what holds values: each of them, so that none is shortened. Of anything else its own text where its class is
    known to have one that is whole, and the same in every process."""
    if type(value).__name__ == "Interval":  # one missing value gives all of them floats for ends
        low, high = _written(value.left, wanted), _written(value.right, wanted)
        return f"{'[' if value.closed_left else '('}{low}, {high}{']' if value.closed_right else ')'}"
    for listed in ("tolist", "to_pylist", "to_list"):
        if hasattr(value, listed):
            value = getattr(value, listed)()
            if not isinstance(value, list):
                return None if hasattr(value, listed) else _written(value, wanted)
    if isinstance(value, list | tuple):
        return f"[{_joined(_inner(one, wanted) for one in value)}]"
    if isinstance(value, dict):
        pairs = ((key, one) for key, one in value.items() if not _missing(one))
        texts = (f"{_inner(key, wanted)}: {_inner(one, wanted)}" for key, one in pairs)
        return f"{{{_joined(texts, ordered=True)}}}"
    known = isinstance(value, _FLAT) or type(value).__module__ == "ipaddress"
    return str(value) if known or type(value).__name__ in ("Period", "Timedelta") else None


def _inner(value: Any, wanted: str | None) -> str:
    """A value in another one: texts in quotes, so that two are not one."""
    if isinstance(value, str):
        return repr(str.__str__(value))
    text = "NULL" if _missing(value) else _written(value, wanted)
    if text is None:
        raise ValueError
    return text


def _joined(texts: Iterable[str], *, ordered: bool = False) -> str:
    """Texts in a row: of parts that hold one another many times there is no end. The order in which a table names its
    fields may follow from other rows: they are `ordered`."""
    found, length = [], 0
    for text in texts:
        found.append(text)
        length += len(text)
        if length > _LONGEST:
            raise ValueError
    return ", ".join(sorted(found) if ordered else found)
