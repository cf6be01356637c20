"""The engine protocol of ring A: what the gate may call.

What is trusted of an engine is one sentence: **it computes the statement on the loaded rows.** The statement says which
rows count, clamps them before it adds them up, and gives whole numbers.

* *Total.* No row makes it fail: every operator of a statement gives a value for every row. What fails all the same is
  the engine's own fault or a limit; no message of a database, which may quote a value, gets out.
* *Limited.* It ends within the declared seconds and memory: what does not is killed. It is never half done.
"""

from __future__ import annotations

from typing import Protocol

from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import Table, Value

Row = tuple[tuple[Value | None, ...], tuple[int, ...]]
"""The keys of one group and its exact totals."""


class Lost(Exception):
    """The engine had ended under another's request before this one began: nothing of this one failed."""


class Engine(Protocol):
    """An engine as the gate has it. What its methods give is exact and never leaves the gate's frames."""

    @property
    def rows(self) -> object:
        """What stands for the rows that are loaded: the same object as long as they are the same, and never again once
        others are loaded."""
        ...

    @property
    def period(self) -> str | None:
        """The period for which the rows that are loaded are meant (`trusted.ledger.periods`); "" where budgets never
        renewed. Where they do it is None while rows are loaded, and until the ledger knows what follows from them."""
        ...

    def run(self, plan: Root, table: Table, /) -> list[Row]:
        """The exact totals of each group that holds a row, with a fresh salt each time. No two have the same keys; a
        group whose key is infinite is left out. Raises Lost; anything else is a failure."""
        ...
