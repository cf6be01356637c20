"""Sample and aggregate, from the call to the content of the release."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from types import CodeType
from typing import Any

from discreet.catalog import Declaration
from discreet.dialect.quantization import lattice
from discreet.errors import QuestionError, refused
from discreet.intervals.noise import CONFIDENCE, half_width
from discreet.mechanisms import Laplace, PermuteAndFlip
from discreet.procedures.arguments import amount, columns_of, epsilon_of, private_table, whole, within
from discreet.procedures.progress import progress
from discreet.release.content import Cost, ReleaseContent
from discreet.trusted.ring_a.exact import Number, show
from discreet.trusted.ring_a.lattice import ROW_LIMIT, Lattice
from discreet.trusted.ring_a.table import Column, Table
from discreet.trusted.ring_c.blocks import BlockLimits, BlockProcesses, Blocks, Unusable

MOST_BLOCKS, MOST_POINTS = 10_000, 1_000
_PER_EPSILON, _FEWEST, _DEFAULT_MOST = 50, 50, 1_000


@dataclass(frozen=True)
class Aggregation:
    """A checked call: what is computed on each block, into what it is summarised, and at which price."""

    table: Table
    function: bytes
    name: str
    columns: tuple[Column, ...]
    blocks: int
    aggregate: str
    bounds: tuple[Fraction, Fraction]
    lattice: Lattice
    epsilon: Fraction
    limits: BlockLimits
    code: str

    @property
    def mechanism(self) -> Laplace | PermuteAndFlip:
        """What hides the blocks: for a mean, noise of scale width/ε in steps of the lattice; else permute-and-flip with
        ε."""
        return Laplace(self.lattice.width / self.epsilon) if self.aggregate == "mean" else PermuteAndFlip(self.epsilon)

    @property
    def cost(self) -> Cost:
        """Pure ε, with no δ."""
        return Cost(epsilon=float(self.epsilon), delta=0.0)

    @property
    def question(self) -> str:
        """The call in words, for the owner's ledger."""
        return f"{self.aggregate} over {self.blocks} blocks of {self.table.name} of the function {self.name}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The arguments that determine the answer, besides the table."""
        names = [column.name for column in self.columns]
        described = (names, self.blocks, self.aggregate, self.bounds, self.lattice, self.epsilon, self.limits)
        return ("sample and aggregate", hashlib.sha256(self.function).hexdigest(), self.code, repr(described))

    @contextmanager
    def ready(self) -> Iterator[Blocks]:
        """The measurement, with its processes started. Raises QuestionError where the function cannot be loaded."""
        try:
            processes = BlockProcesses(self.function, self.limits, self.blocks)
        except Unusable:
            fix = "define all it needs inside it, or in a module that can be imported"
            raise refused("function", "the function cannot be loaded in a separate process", "function", fix) from None
        with processes, progress("blocks", self.blocks) as tell:
            yield Blocks(self.table, self.columns, self.blocks, self.lattice, self.mechanism, processes, tell)

    def content(self, noisy: int) -> ReleaseContent:
        """The content of the release: one row with the value; for a mean an interval of the noise."""
        low, high = (float(bound) for bound in self.bounds)
        share = self.lattice.step / (self.blocks if self.aggregate == "mean" else 1)
        value = _inside(float(noisy * share), low, high)
        interval: dict[str, tuple[float, float]] = {}
        mechanism = self.mechanism
        if isinstance(mechanism, Laplace):
            wide = half_width(mechanism, [1.0], 1 - CONFIDENCE) * float(share)
            interval["value"] = (
                _inside(float(noisy * share) - wide, low, high),
                _inside(float(noisy * share) + wide, low, high),
            )
        return ReleaseContent(
            columns=["value"],
            types={} if interval else {"value": "number"},
            rows=[{"value": value}],
            intervals=[interval],
            simultaneous=[interval],
            cost=self.cost,
            mechanisms=[self._described()],
            bounds=self._bounds(),
        )

    def _described(self) -> dict[str, str]:
        mechanism = self.mechanism
        steps = self.lattice.width
        return {
            "columns": "value",
            "mechanism": mechanism.describe(),
            "unit": f"{show(self.lattice.step)} a step",
            "sensitivity": f"{steps} steps: one block's value"
            if isinstance(mechanism, Laplace)
            else "a score changes by 1: one block's value",
        }

    def _bounds(self) -> list[str]:
        low, high = (show(bound) for bound in self.bounds)
        middle = show((self.lattice.low + self.lattice.high) // 2 * self.lattice.step)
        words = [
            f"{self.blocks} blocks; each person is in one, at random",
            f"each block's value is clamped to [{low}, {high}]; a block without a number counts as {middle}",
        ]
        if self.aggregate == "mean":
            return [*words, "the interval is of the noise alone: it does not say how much blocks differ"]
        return [*words, f"the value is a multiple of {show(self.lattice.step)}"]


@dataclass(frozen=True, kw_only=True)
class AggregateOptions:
    """What a call of `Curator.sample_and_aggregate` names, as it was written: that method says what each means."""

    table: str
    low: Number
    high: Number
    blocks: int | None = None
    aggregate: str = "median"
    columns: Sequence[str] | None = None
    epsilon: Number | None = None
    step: Number | None = None
    limits: BlockLimits
    analyst: str | None = None


def aggregation(declaration: Declaration, function: Callable[[Any], object], options: AggregateOptions) -> Aggregation:
    """The checked call. Raises QuestionError; nothing is spent and no row is read.

    Without `blocks`: 50/ε of them, at least 50 and at most 1,000, so the noise of a mean is about a fiftieth of the
    width at every price, and a median has so many values to stand out from noise. Nothing of it comes from the rows.
    """
    if options.analyst is not None:
        fix = "leave analyst out: only the owner, who reads the rows anyway, runs functions on them"
        raise refused("analyst", "an analyst cannot run functions on private rows", "analyst", fix)
    known = private_table(declaration, options.table)
    chosen = tuple(columns_of(known, options.columns, "columns"))
    price = epsilon_of(declaration, options.epsilon)
    bounds = amount("low", options.low, "low=0"), amount("high", options.high, "high=100")
    if bounds[0] >= bounds[1]:
        raise refused("bounds", "low must be below high", "low", "write bounds that the value lies in")
    aggregate, blocks, limits = options.aggregate, options.blocks, options.limits
    if aggregate not in ("mean", "median"):
        raise refused("aggregate", "aggregate must be mean or median", "aggregate", 'write aggregate="median"')
    if blocks is None:
        blocks = max(_FEWEST, min(_DEFAULT_MOST, -(-_PER_EPSILON * price.denominator // price.numerator)))
    count = whole("blocks", blocks, 2, MOST_BLOCKS, "blocks=50")
    whole("seconds", limits.seconds, 1, 86_400, "seconds=60")
    whole("memory_gib", limits.memory_gib, 1, 1_024, "memory_gib=2")
    packed = _packed(function)
    grid = _grid(bounds, aggregate, options.step)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return Aggregation(known, packed, name, chosen, count, aggregate, bounds, grid, price, limits, _code(function))


def _grid(bounds: tuple[Fraction, Fraction], aggregate: str, step: Number | None) -> Lattice:
    """The public points that values are rounded to: for a median few enough to choose among."""
    width = bounds[1] - bounds[0]
    named = None if step is None else within("step", step, 0, width, f"step={show(width / 100)}")
    if aggregate == "mean":
        return lattice(bounds, named)
    if named is not None and width / named > MOST_POINTS:
        fix = f"write a step of at least {show(width / MOST_POINTS)}"
        raise refused("step", f"a median is chosen among at most {MOST_POINTS:,} points", "step", fix)
    each = named or width / MOST_POINTS
    if 2 * max(abs(bound) for bound in bounds) / each > ROW_LIMIT:
        fix = "let the function return the difference from a number between them"
        raise refused("bounds", "the bounds are too close together for doubles of this size", "low", fix)
    return Lattice(each, bounds[0] // each, -(-bounds[1] // each))


def _packed(function: Callable[[Any], object]) -> bytes:
    """The function as bytes that another process can load."""
    if not callable(function):
        raise refused("function", "this is not a function", "function", "give a function of a pandas frame")
    for module in ("cloudpickle", "pandas"):
        if find_spec(module) is None:
            fix = 'run pip install "discreet[functions]"'
            raise QuestionError("extra", f"this needs {module}", where="function", fix=fix)
    try:
        packed: bytes = import_module("cloudpickle").dumps(function)
    except Exception:
        fix = "a function may use no open file, lock, connection or generator from outside"
        raise refused("function", "the function cannot be sent to another process", "function", fix) from None
    return packed


def _code(function: object) -> str:
    """What a function does, as far as its own code says: one that is imported travels by its name alone."""
    code = getattr(function, "__code__", None)
    return hashlib.sha256(repr(_contents(code)).encode()).hexdigest() if isinstance(code, CodeType) else ""


def _contents(code: CodeType) -> tuple[object, ...]:
    constants = [_contents(one) if isinstance(one, CodeType) else _written(one) for one in code.co_consts]
    return code.co_code, code.co_names, constants


def _written(constant: object) -> str:
    """A constant as text: sets in an order that is the same in every process."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _inside(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
