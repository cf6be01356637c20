"""Request ids: each belongs to one question of one account, however that is written, and its retry gets what it got."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.catalog import Table
from discreet.curator.lookup import Lookup
from discreet.curator.measurements import Measurements
from discreet.curator.options import AskOptions
from discreet.curator.planning import PlannedLayers, Planner
from discreet.errors import QuestionError
from discreet.ledger import Ledger
from discreet.ledger.refusal import asked_otherwise
from discreet.plan.measurement import Measurement
from discreet.plan.split import measurement
from discreet.sql.asked import Asked
from discreet.trusted.ledger.ledger import PIECE


def whole(request: str) -> str:
    """The name under which a question with an outer query is kept, made of its request's."""
    return f"{request}{PIECE}"


def piece(request: str | None, place: int) -> str | None:
    """The request of one measured table of a question with an outer query."""
    return None if request is None else f"{request}{PIECE}{place + 1}"


@dataclass(frozen=True, eq=False, repr=False)
class RequestIds:
    """Holds requests to the questions that they belong to. The ledger keeps the text that was asked under a name."""

    ledger: Ledger
    planner: Planner
    measurements: Measurements
    lookup: Lookup

    def hold_alone(self, account: str, request: str | None) -> None:
        """Raises QuestionError where a request belongs to a question with an outer query. Such a question has names of
        its own for its tables and for the whole, made of the request's, and nothing under the request's own name."""
        if request is not None:
            for name in (whole(request), piece(request, 0)):
                if self.ledger.requested(account, name) is not None:
                    raise asked_otherwise()

    def hold_whole(self, planned: PlannedLayers, options: AskOptions) -> None:
        """Raises QuestionError where the request belongs to another question with an outer query, also where both are
        computed from the same tables. Another spelling is the same question. What the tables measure, and at which
        price, is held for each of them: `hold`."""
        if options.request is None:
            return
        known = self.ledger.requested(options.account, whole(options.request))
        if known is None or known[1] == planned.asked.kept:
            return
        try:
            asked = self.planner.read(Asked.read(known[1]))
        except QuestionError:  # it cannot be asked any more
            raise asked_otherwise() from None
        if asked.computed != planned.computed:
            raise asked_otherwise()

    def keep_whole(self, planned: PlannedLayers, options: AskOptions, first: str | None) -> None:
        """Keeps that a request belongs to a question with an outer query, once the `first` of its tables is measured
        under this name. Raises QuestionError where another process has asked another question under it meanwhile."""
        if options.request is not None and first is not None:
            self.ledger.name_again(options.account, first, whole(options.request), planned.asked.kept)
            self.hold_whole(planned, options)

    def hold(self, text: str, priced: Measurement, table: Table, numbers: str, options: AskOptions) -> None:
        """Raises QuestionError where the request belongs to a question that measures something else, also where one
        stored answer holds both. Another text is the same question where it measures the same at the same price: one is
        written in many ways, and what else is made of the same numbers is free."""
        known = self.ledger.requested(options.account, options.request)
        if known is None or known[1] == text:
            return
        before = self.measurements.replanned(known[1], priced.price, options.account)
        key = self.lookup.key(table, priced, numbers)
        if before is None or self.lookup.key(before[1], measurement(before[0], priced.price), numbers) != key:
            raise asked_otherwise()
