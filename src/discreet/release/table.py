"""The release: a small table with intervals, its price, and how it was made."""

from __future__ import annotations

import datetime
import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.accounting import Loss
from discreet.accounting.balance import Balance, used
from discreet.errors import QuestionError
from discreet.plan.measurement import Plan
from discreet.release.left_out import LeftOut
from discreet.trusted.ring_a.exact import fraction, show
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type, Value

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = Mapping[str, Any]


class Cost(dict[str, float]):
    """A price as numbers: `cost["epsilon"]` or `cost.epsilon`, the same for delta. False where it is nothing."""

    @property
    def epsilon(self) -> float:
        return self["epsilon"]

    @property
    def delta(self) -> float:
        return self["delta"]

    def __bool__(self) -> bool:
        return any(self.values())

    def __str__(self) -> str:
        delta = f", δ {show(fraction(self.delta))}" if self.delta else ""
        return f"ε {show(fraction(self.epsilon))}{delta}"


FREE = Cost(epsilon=0.0, delta=0.0)


@dataclass(frozen=True, repr=False)
class Release:
    """An answer that may be published.

    `rows` and `intervals` go together: a list of mappings, from column to value and from column to (low, high).
    `cost` is the price of what was asked, `charged` what this call took: nothing for a repeat. `used` is the part of
    the whole budget that is used now, in percent, `more` how many more questions of this price fit, and `left` what is
    left; these two of what the whole budget and the asker's own account, where there is one, both allow.
    """

    content: Mapping[str, Any]
    charged: Cost
    balance: Balance
    """What whoever asked has left, as it was when this was answered."""
    loss: Loss
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> float:
        """The part of the whole budget that is used, in percent."""
        return used(self.balance.total)

    @functools.cached_property
    def more(self) -> int:
        """How many more questions of this price fit. Worked out when somebody looks: it takes as long as the rest of a
        small question."""
        return self.balance.more(self.loss)

    @functools.cached_property
    def left(self) -> str:
        """What is left for questions or for publishing, in words."""
        return self.balance.left

    @property
    def columns(self) -> list[str]:
        return list(self.content["columns"])

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        types = self.content["types"]
        return [
            {name: _typed(value, types[name]) if name in types else value for name, value in row.items()}
            for row in self.content["rows"]
        ]

    @property
    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """95 %, each row for itself; where rows were picked by noisy values (HAVING, LIMIT), for all cells at once."""
        return _pairs(self.content["intervals"])

    def simultaneous(self) -> list[dict[str, tuple[float, float]]]:
        """Intervals that hold for all cells at once with 95 % (Dwork & Roth 2014, Theorem 3.8)."""
        return _pairs(self.content["simultaneous"])

    @property
    def cost(self) -> Cost:
        return Cost(self.content["cost"])

    @property
    def mechanisms(self) -> list[dict[str, str]]:
        return list(self.content["mechanisms"])

    @property
    def bounds(self) -> list[str]:
        """All that changes how the answer may be read: what was limited, clamped or left out, and questions that tell
        by how much."""
        return list(self.content["bounds"])

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The same with numbers: how much limits may have left out."""
        return tuple(LeftOut(**one) for one in self.content.get("left_out", ()))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**self.content, "charged": dict(self.charged), **self.left_to_ask()}

    def left_to_ask(self) -> dict[str, Any]:
        """The balance as plain values; `analyst` is the asker's own account, None where there is none."""
        return {"used": self.used, "more": self.more, "left": self.left, "analyst": self.balance.account()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_columns(self) -> dict[str, list[Any]]:
        """The table as lists: the columns, then for each estimate x its interval x_low, x_high."""
        table: dict[str, list[Any]] = {name: [row[name] for row in self.rows] for name in self.columns}
        for name in self.columns:
            if name not in self.content["types"]:
                for place, end in enumerate(("low", "high")):
                    beside = f"{name}_{end}"
                    while beside in table or beside in self.columns:
                        beside += "_"
                    table[beside] = [interval[name][place] for interval in self.intervals]
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame: the columns, then for each estimate x its interval x_low, x_high. Its `attrs` say the price
        and the bounds."""
        frame: pandas.DataFrame = _extra("pandas", "pandas").DataFrame(self.to_columns())
        frame.attrs |= {"price": dict(self.cost), "bounds": self.bounds, "unit": self.content.get("unit")}
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars frame of the same shape."""
        frame: polars.DataFrame = _extra("polars", "polars").DataFrame(self.to_columns(), strict=False)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table of the same shape."""
        table: pyarrow.Table = _extra("pyarrow", "arrow").table(self.to_columns())
        return table

    def save(self, path: str | Path) -> Path:
        """Writes the table as .csv or .parquet (which needs the extra `arrow`), or all of the release as .json. Raises
        QuestionError where that cannot be done."""
        from discreet.release.save import save

        return save(self, path)

    def plot(self, path: str | Path | None = None) -> Any:
        """A picture with error bars. With a path ending in .png, .svg or .html it is written there; else a matplotlib
        figure is returned. Needs the extra `plot`."""
        from discreet.release.plot import plot

        return plot(self, path)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """A row by its place. Raises QuestionError on the name of a column: a row has to be named first."""
        if not isinstance(place, str):
            return self.rows[place]
        fix = f'write release.rows[0]["{self.columns[0]}"], or release.to_pandas()'
        raise QuestionError("column", "a release is a list of rows", where="release", fix=fix)

    def __repr__(self) -> str:
        from discreet.release.show import text

        return text(self)

    def _repr_html_(self) -> str:
        from discreet.release.show import html

        return html(self)


def _extra(module: str, extra: str) -> Any:
    """A package that only an extra installs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        fix = f'run pip install "discreet[{extra}]"'
        raise QuestionError("extra", f"this needs {module}", where="release", fix=fix) from None


def _typed(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("list of "):
        return [_typed(one, kind.removeprefix("list of ")) for one in value]
    if kind == Type.DATE:
        return datetime.date.fromisoformat(value)
    return datetime.datetime.fromisoformat(value) if kind == Type.TIMESTAMP else value


def _pairs(rows: Sequence[Mapping[str, Sequence[float]]]) -> list[dict[str, tuple[float, float]]]:
    return [{name: (low, high) for name, (low, high) in row.items()} for row in rows]


def arranged(plan: Plan, groups: Sequence[Sequence[Value | None]], rows: Sequence[Row]) -> list[int]:
    """Which rows stand in the answer, in which order: HAVING, ORDER BY and LIMIT on the noisy values; without ORDER BY
    as the values of the first column of GROUP BY come, then of the second, and so on."""
    picked = [index for index in range(len(rows)) if plan.having is None or value_of(plan.having, rows[index]) is True]
    for place in reversed(plan.written):
        first = {value: number for number, value in reversed(list(enumerate(group[place] for group in groups)))}
        picked.sort(key=lambda index: first[groups[index][place]])
    for place, descending in reversed(plan.order):
        name = plan.outputs[place].name
        picked.sort(key=lambda index: (rows[index][name] is not None, rows[index][name]), reverse=descending)
    return picked if plan.limit is None else picked[: plan.limit]


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    # in floating point, where what is too large is infinite and no error
    "add": lambda a, b: float(a) + float(b),
    "subtract": lambda a, b: float(a) - float(b),
    "multiply": lambda a, b: float(a) * float(b),
    "divide": lambda a, b: float(a) / float(b) if b else None,
    "round": lambda a, places: round(float(a), max(-300, min(300, int(places)))),
}


def value_of(expression: Expression, row: Row) -> Any:
    """An expression on one row of the answer, with SQL's NULL."""
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, Fraction):
            return float(value)
        return value.isoformat() if isinstance(value, datetime.date) else value
    if isinstance(expression, ColumnOf):
        return row[expression.name]
    return _called(expression, row)


def _called(call: Call, row: Row) -> Any:
    if call.operator == "case":
        for condition, result in zip(call.arguments[0:-1:2], call.arguments[1:-1:2], strict=True):
            if value_of(condition, row) is True:
                return value_of(result, row)
        return value_of(call.arguments[-1], row)
    values = [value_of(argument, row) for argument in call.arguments]
    if call.operator == "is_null":
        return values[0] is None
    if call.operator == "coalesce":
        return next((value for value in values if value is not None), None)
    if call.operator in ("and", "or"):
        decisive = call.operator == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    if any(value is None for value in values):
        return None
    if call.operator == "not":
        return not values[0]
    if call.operator == "negate":
        return -values[0]
    if call.operator == "absolute":
        return abs(values[0])
    if call.operator == "round" and len(values) == 1:
        return float(round(values[0]))
    if call.operator == "in":
        return values[0] in values[1:]
    if call.operator == "like":
        return _like(values[0], values[1])
    return _OPERATIONS[call.operator](*values)


def _like(value: str, pattern: str) -> bool:
    import re

    pieces = ["".join("." if letter == "_" else re.escape(letter) for letter in piece) for piece in pattern.split("%")]
    if len(pieces) > 1:  # each piece at its first place, for good: a pattern of many % is not tried over and over
        pieces = [pieces[0], *(f"(?>.*?{piece})" for piece in pieces[1:-1]), f".*{pieces[-1]}"]
    return re.fullmatch("".join(pieces), value, re.DOTALL) is not None
