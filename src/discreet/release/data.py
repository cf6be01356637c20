"""The data of a release: its table with intervals, its price, and what is left."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from discreet.accounting import Loss
from discreet.errors import QuestionError
from discreet.release.content import Cost, ReleaseContent
from discreet.release.left_out import LeftOut
from discreet.release.values import finite, typed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Left(Protocol):
    """What whoever asked has left: `discreet.accounting.balance.Balance`, or what was said of one elsewhere."""

    @property
    def used(self) -> float: ...

    @property
    def left(self) -> str: ...

    def more(self, loss: Any, /) -> int: ...

    def account(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, repr=False)
class ReleaseData:
    """What a release says, apart from how it is shown. `Release` has the words."""

    holds: ReleaseContent
    charged: Cost
    balance: Left
    """What whoever asked has left, as it was when this was answered."""
    loss: Loss | None
    """What it takes of an account; None where that is known elsewhere alone."""
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def content(self) -> dict[str, Any]:
        """What it holds, as plain values."""
        return self.holds.to_dict()

    @property
    def used(self) -> float:
        """The part of the whole budget that is used, in percent."""
        return self.balance.used

    @functools.cached_property
    def more(self) -> int:
        """How many more questions of this price fit.

        Worked out when somebody looks: it takes as long as the rest of a small question.
        """
        return self.balance.more(self.loss)

    @functools.cached_property
    def left(self) -> str:
        """What is left for questions or for publishing, in words."""
        return self.balance.left

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the question."""
        return list(self.holds.columns)

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a mapping from column to value, with dates and timestamps as Python has them."""
        types = self.holds.types
        return [
            {name: typed(value, types[name]) if name in types else value for name, value in row.items()}
            for row in self.holds.rows
        ]

    @functools.cached_property
    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """For each row the 95 % interval of each estimate: a mapping from column to (low, high), in the column's unit.

        They hold each for itself; where rows were picked by noisy values (HAVING, LIMIT), for all cells at once.
        """
        return _pairs(self.content["intervals"])

    def simultaneous(self) -> list[dict[str, tuple[float, float]]]:
        """Gives intervals that hold for all cells at once at 95 % confidence, shaped as `intervals`.

        Source: Dwork & Roth 2014, Theorem 3.8.
        """
        return _pairs(self.content["simultaneous"])

    @property
    def cost(self) -> Cost:
        """The price of what was asked: `epsilon` and `delta`, as numbers."""
        return self.holds.cost

    @property
    def mechanisms(self) -> list[dict[str, str]]:
        """The noise of each column: the mechanism's name and its scale, as texts."""
        return [dict(one) for one in self.holds.mechanisms]

    @property
    def bounds(self) -> list[str]:
        """All that changes how the answer may be read, a line each.

        What was limited, clamped or left out, and questions that tell by how much.
        """
        return list(self.holds.bounds)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The same as `bounds` with numbers: how much limits may have left out."""
        return tuple(self.holds.left_out or ())

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values, as JSON has them.

        Where nothing is known of an interval's end, it is the largest number of floating point with its sign.
        """
        whole: dict[str, Any] = finite({**self.content, "charged": dict(self.charged), **self.left_to_ask()})
        return whole

    def left_to_ask(self) -> dict[str, Any]:
        """Gives the balance as plain values; `analyst` is the asker's own account, None where there is none."""
        return {"used": self.used, "more": self.more, "left": self.left, "analyst": self.balance.account()}

    def to_json(self) -> str:
        """Writes everything as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def json_parts(self) -> Iterator[str]:
        """Gives what `to_json` does, in parts where it is long."""
        yield self.to_json()

    def blocks(self) -> Iterator[dict[str, list[Any]]]:
        """Gives what `to_columns` does, in blocks of rows where there are many."""
        yield self.to_columns()

    def to_columns(self) -> dict[str, list[Any]]:
        """Gives the table as lists of one length: the columns, then for each estimate x its interval x_low, x_high."""
        table: dict[str, list[Any]] = {name: [row[name] for row in self.rows] for name in self.columns}
        for name in self.columns:
            if name not in self.holds.types:
                for place, end in enumerate(("low", "high")):
                    beside = f"{name}_{end}"
                    while beside in table or beside in self.columns:
                        beside += "_"
                    table[beside] = [interval.get(name, (None, None))[place] for interval in self.intervals]
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """Gives a pandas frame: the columns, then for each estimate x its interval x_low, x_high.

        Its `attrs` say the price and the bounds. Raises QuestionError where pandas is missing (extra `pandas`).
        """
        frame: pandas.DataFrame = extra("pandas", "pandas").DataFrame(self.to_columns())
        frame.attrs |= {"price": dict(self.cost), "bounds": self.bounds, "unit": self.holds.unit}
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Gives a polars frame of the same shape. Raises QuestionError where polars is missing (extra `polars`)."""
        frame: polars.DataFrame = extra("polars", "polars").DataFrame(self.to_columns(), strict=False)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Gives an Arrow table of the same shape. Raises QuestionError where pyarrow is missing (extra `arrow`)."""
        table: pyarrow.Table = extra("pyarrow", "arrow").table(self.to_columns())
        return table

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


def extra(module: str, extra: str) -> Any:
    """A package that only an extra installs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        fix = f'run pip install "discreet[{extra}]"'
        raise QuestionError("extra", f"this needs {module}", where="release", fix=fix) from None


def _pairs(rows: Sequence[Mapping[str, Sequence[float]]]) -> list[dict[str, tuple[float, float]]]:
    return [{name: (low, high) for name, (low, high) in row.items()} for row in rows]
