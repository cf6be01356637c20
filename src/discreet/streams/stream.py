"""`curator.stream`: a declared stream, which goes on by the clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from statistics import NormalDist

from discreet.catalog import Declaration
from discreet.catalog.model import DeclaredStream
from discreet.errors import DeclarationError, Fault, refused
from discreet.intervals.noise import CONFIDENCE
from discreet.plan.left_out import unit
from discreet.release import Release
from discreet.release.content import Cost, Ends, ReleaseContent
from discreet.release.left_out import LeftOut
from discreet.release.values import plain
from discreet.streams.estimates import StreamEstimates
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import figure, sqrt_ceiling
from discreet.trusted.ring_a.table import Table, Type, Value
from discreet.trusted.ring_c.continual import Continual, Continuing
from discreet.trusted.ring_c.factorisation import BITS, coefficients, squared_sensitivity
from discreet.trusted.ring_c.vectors import VectorColumn

_ORIGIN = date(1970, 1, 1)
_SAME = Fraction(1, 10**5)
WINDOWS = (7, 28)
"""The days of the windows that are shown, where they are whole periods, and more than one."""


@dataclass(frozen=True)
class PricedStream:
    """A declared stream, the noise that its price buys, and the table that it reads."""

    declared: DeclaredStream
    whole: Continual
    cost: Cost

    @property
    def table(self) -> Table:
        return self.whole.table

    @property
    def question(self) -> str:
        """The stream in words, for the ledger."""
        one = self.declared
        keys = f" by {', '.join(one.keys)}" if one.keys else ""
        length = "1 day" if one.days == 1 else f"{one.days} days"
        return f"stream {one.name}: counts of {one.table}{keys}, {one.horizon:,} periods of {length}"

    @property
    def columns(self) -> dict[str, int | None]:
        """The columns that are estimates, each with the number of periods that it counts; None for all of them."""
        windows = {f"last_{days}_days": days // self.declared.days for days in WINDOWS if not days % self.declared.days}
        return {"count": 1, **{name: periods for name, periods in windows.items() if periods > 1}, "total": None}

    @property
    def groups(self) -> list[tuple[Value, ...]]:
        """The groups of public keys, in the order of what is released."""
        found: list[tuple[Value, ...]] = [()]
        for key in self.whole.keys:
            found = [(*group, value) for group in found for value in key.values or ()]
        return found

    def content(self, released: Sequence[Sequence[int]], first: int) -> ReleaseContent:
        """What was released of all periods from the `first` on, a row for each and each group."""
        estimates = StreamEstimates(self.whole.column, float(self.whole.sigma))
        cells = (len(released) - first) * len(self.groups) * len(self.columns)
        columns = {
            name: (estimates.values(released, periods), estimates.deviations(len(released), periods))
            for name, periods in self.columns.items()
        }
        rows, each, all_ = list[dict[str, object]](), list[Ends](), list[Ends]()
        for number in range(first, len(released)):
            for place, group in enumerate(self.groups):
                row: dict[str, object] = {"until": self.declared.until(number).isoformat()}
                row |= {key: plain(value) for key, value in zip(self.declared.keys, group, strict=True)}
                row |= {name: round(float(values[number][place])) for name, (values, _) in columns.items()}
                rows.append(row)
                own = {name: (row[name], deviations[number]) for name, (_, deviations) in columns.items()}
                each.append({name: _interval(value, deviation, 1) for name, (value, deviation) in own.items()})
                all_.append({name: _interval(value, deviation, cells) for name, (value, deviation) in own.items()})
        types = {"until": str(Type.DATE)}
        types |= {key.column.name: str(key.column.type) for key in self.whole.keys}
        remarks = tuple(self._left_out())
        return ReleaseContent(
            columns=["until", *self.declared.keys, *self.columns],
            types=types,
            rows=rows,
            cost=self.cost,
            mechanisms=[self._described()],
            bounds=[one.line for one in remarks],
            left_out=remarks,
            unit=unit(self.table),
            intervals=each,
            simultaneous=all_,
            keys=["until", *self.declared.keys],
        )

    def _described(self) -> dict[str, str]:
        sigma = figure(self.whole.sigma / (1 << BITS))
        rows, periods = self.declared.rows, self.declared.periods
        return {
            "columns": ", ".join(self.columns),
            "mechanism": f"rounded Gaussian noise, sigma {sigma}, on the square root of running totals",
            "unit": f"2^-{BITS} rows a step",
            "sensitivity": f"{rows:,} rows of a person in one period, in at most {periods:,} periods",
        }

    def _left_out(self) -> Iterator[LeftOut]:
        one = self.declared
        rows, counts = ("1 row", "counts") if one.rows == 1 else (f"{one.rows:,} rows", "count")
        yield LeftOut("rows", f"at most {rows} of a person {counts} in one period; further ones in later periods")
        words = (
            f"each person counts in at most {one.periods:,} of the {one.horizon:,} periods; what comes then is left out"
        )
        yield LeftOut("rows", words)
        words = f"rows count when they are there, from their {one.date} on, late ones when they come"
        yield LeftOut("read", f"{words}; rows that are gone are taken off in the period in which that is seen")
        if not self.table.one_row_per_person:
            words = f"of {one.table}, rows of a person beyond {self.table.stored:,} are left out when it is loaded"
            yield LeftOut("read", words)
        yield LeftOut("keys", f"rows before {one.start}, and rows without a date or a declared key, are left out")


def _interval(value: object, deviation: float, cells: int) -> tuple[float, float]:
    """The interval of one of so many cells that hold at once, in whole rows; the estimate was rounded."""
    assert isinstance(value, int)
    half = math.ceil(-NormalDist().inv_cdf((1 - CONFIDENCE) / cells / 2) * float(deviation) + 0.5)
    return value - half, value + half


def priced(declaration: Declaration, name: object, begun: Callable[[str], Fraction | None]) -> PricedStream:
    """The declared stream of that name, with the noise with which it has `begun`. Raises QuestionError where there is
    none, DeclarationError where it does not go with the types of its source."""
    one = declaration.streams.get(name) if isinstance(name, str) else None
    if one is None:
        known = ", ".join(declaration.streams)
        fix = f"name one of {known}" if known else "declare one: [streams.daily]"
        raise refused("stream", "this stream is not declared", "stream", fix)
    table = declaration.tables[one.table]
    day, columns = table.column(one.date), [table.column(key) for key in one.keys]
    mu = mu_of_budget(one.epsilon, one.delta)
    try:
        if day is None or not mu or not all(columns):
            raise ValueError("this price buys no noise for a stream")
        moved = squared_sensitivity(coefficients(one.horizon), one.rows, one.periods)
        sigma = Fraction(math.ceil(sqrt_ceiling(moved / mu**2)) + 1)
        noise = begun(one.name)  # another version may find a slightly better one for the same price
        if noise is not None and abs(noise / sigma - 1) < _SAME:
            sigma = noise
        whole = Continual(
            name=one.name,
            table=table,
            date=day,
            keys=tuple(VectorColumn(column, column.keys()) for column in columns if column is not None),
            first=(one.start - _ORIGIN).days,
            days=one.days,
            horizon=one.horizon,
            rows=one.rows,
            periods=one.periods,
            sigma=sigma,
        )
    except ValueError as error:
        fault = Fault(f"streams.{one.name}", str(error), "declare its columns and its price so")
        raise DeclarationError([fault], file=str(declaration.file or "")) from None
    return PricedStream(one, whole, Cost(epsilon=float(one.epsilon), delta=float(one.delta)))


class Stream:
    """A declared stream, which goes on from process to process; its price is charged when it begins.

    `advance` releases each period that is over and was not released: once a period, whoever runs it, however often. A
    missed period is made up for in the next call, a row for each. Rows are those of the table's last snapshot, so the
    owner refreshes the table before. Only the owner has one.
    """

    def __init__(
        self,
        priced: PricedStream,
        continuing: Continuing,
        turn: AbstractContextManager[object],
        rows: Callable[[Table], object],
        shown: Callable[[ReleaseContent, bool], Release],
    ) -> None:
        self._priced, self._continuing, self._turn, self._rows, self._shown = priced, continuing, turn, rows, shown

    @property
    def name(self) -> str:
        """The name under which it is declared."""
        return self._priced.declared.name

    @property
    def due(self) -> int:
        """How many periods are over today, in UTC."""
        return self._priced.declared.over(datetime.now(UTC).date())

    @property
    def released(self) -> int:
        """How many periods were released. Raises LedgerError."""
        return len(self._continuing.released())

    @property
    def groups(self) -> int:
        """How many groups each period has."""
        return self._priced.whole.groups

    @property
    def expected(self) -> dict[str, float]:
        """The deviation of the noise of each column in the last period of the horizon, in rows. Spends nothing."""
        whole = self._priced.whole
        estimates = StreamEstimates(whole.column, float(whole.sigma))
        return {
            name: float(estimates.deviations(whole.horizon, periods)[-1])
            for name, periods in self._priced.columns.items()
        }

    def advance(self) -> Release:
        """Releases what is due, and gives the latest period. The first call charges the price of the whole horizon.

        Raises QuestionError where no period is over yet, BudgetError or DeclarationError, where the source is not what
        it was (nothing was spent), EngineError where a period failed (the next call tries it again), LedgerError, also
        where the secret state does not go with the ledger: then the stream has ended.
        """
        if not self.due:
            day = self._priced.declared.until(0)
            raise refused("stream", "no period of it is over yet", self.name, f"ask after {day}, by UTC")
        return self._advance_to(self.due)

    def _advance_to(self, due: int) -> Release:
        """Releases the first `due` periods, as far as they were not, and gives the latest: for the audit, which has no
        clock. Raises as `advance` does."""
        with self._turn:
            rows, question = self._rows(self._priced.table), self._priced.question
            charged = self._continuing.begin(question)
            self._continuing.advance(due, rows)
            return self._latest(1, charged)

    @property
    def release(self) -> Release:
        """The latest period, as it was released: nothing is measured or spent.

        Raises QuestionError where there is none, LedgerError.
        """
        return self._latest(1, False)

    def latest(self, periods: int) -> Release:
        """So many of the latest periods in one table; all, where there are fewer. Nothing is measured or spent.

        Raises QuestionError where there is none, LedgerError.
        """
        return self._latest(periods, False)

    def _latest(self, periods: int, charged: bool) -> Release:
        released = self._released()
        return self._shown(self._priced.content(released, max(0, len(released) - periods)), charged)

    @property
    def releases(self) -> Release:
        """All periods so far in one table. Raises QuestionError where there is none, LedgerError."""
        return self._latest(self._priced.declared.horizon, False)

    def _released(self) -> list[list[int]]:
        released = self._continuing.released()
        if not released:
            raise refused("stream", "nothing of it was released yet", self.name, "write advance()")
        return released

    def __repr__(self) -> str:
        return f"<stream {self.name}, {self.due:,} of {self._priced.declared.horizon:,} periods are over>"
