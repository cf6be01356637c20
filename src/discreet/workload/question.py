"""The workload that an analyst writes: many questions about one table, known in advance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class WorkloadCall:
    """One call of a workload's method, as it was written."""

    kind: str
    given: Any


@dataclass(frozen=True)
class Workload:
    """Questions about one table, to be answered together by `curator.answer`.

    Workload("adult").marginals(["sex", "education"], ["age"]).prefixes("age").counts({"age": (20, 30)})

    Each method gives a new workload with more questions. Columns need declared values, or integer bounds that are not
    far apart, or `bins`: the values at which a new bin begins, as {"hours": [20, 40, 60]}. Nothing is checked here:
    the curator says what is wrong.
    """

    table: str
    bins: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    asked: tuple[WorkloadCall, ...] = ()

    def marginals(self, *columns: str | Sequence[str]) -> Workload:
        """Adds the number of rows for each combination of values of some columns; each argument is one marginal."""
        return self._with("marginal", columns)

    def all_marginals(self, ways: int, columns: Sequence[str] | None = None) -> Workload:
        """Adds the marginals of every choice of `ways` columns, of these or of all that have cells."""
        return self._with("all", [(ways, columns)])

    def ranges(self, *columns: str) -> Workload:
        """Adds the number of rows in every range of values of each of these columns."""
        return self._with("ranges", columns)

    def prefixes(self, *columns: str) -> Workload:
        """Adds the number of rows up to each value of each of these columns."""
        return self._with("prefixes", columns)

    def counts(self, *conditions: Mapping[str, Any]) -> Workload:
        """Adds the number of rows that meet each of these conditions.

        A condition names for each column a value, a list of values, None for what is NULL or not declared, or a pair
        (low, high), where None is an open end: for integers and dates both ends are in, for numbers and timestamps the
        upper one is not.
        """
        return self._with("count", conditions)

    def _with(self, kind: str, given: Sequence[Any]) -> Workload:
        return replace(self, asked=(*self.asked, *(WorkloadCall(kind, one) for one in given)))
