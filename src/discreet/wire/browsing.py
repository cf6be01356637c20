"""What a session is told of the catalogue, in the words of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import QuestionError
from discreet.wire.catalog import SQLSTATES, Catalog, CatalogRows, CatalogSession
from discreet.wire.refusals import Trouble
from discreet.wire.results import ResultColumn, StatementResult
from discreet.wire.values import ARRAYS, INTEGERS, SIZES, TEXT

_SENT = {*SIZES, *INTEGERS, *ARRAYS, TEXT}
"""Types that a parameter may have; a parameter of another is sent as text."""


class Browsing:
    """The catalogue of the declared tables, for all sessions of a port."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]], schema: str) -> None:
        self._catalog = Catalog(tables, schema)

    async def answer(self, text: str, parameters: Sequence[str | None], facts: Any) -> StatementResult | None:
        """The answer, or None where the statement is not about the catalogue. Raises Trouble."""
        found = await self._asked(text, parameters, facts)
        if found is None:
            return None
        told = [(name, value) for name, value in found.sets.items()]
        return StatementResult(f"SELECT {len(found.rows)}", _columns(found), found.rows, parameters=told)

    async def described(self, text: str, facts: Any) -> tuple[Sequence[int], Sequence[ResultColumn]] | None:
        """The types of the statement's parameters, and its columns. Raises Trouble."""
        found = await self._asked(text, None, facts)
        if found is None:
            return None
        return [kind if kind in _SENT else TEXT for kind in found.parameters], _columns(found)

    async def probed(self, text: str, facts: Any) -> Sequence[tuple[str, int | None]] | None:
        """The columns of a statement that gives no row whatever the tables hold, each with its type where that is
        known; None where it may give one. Raises Trouble."""
        session = CatalogSession(facts.user, facts.database, facts.settings, facts.process)
        try:
            return await self._catalog.probed(text, session)
        except QuestionError as error:
            raise _trouble(error) from None

    async def _asked(self, text: str, parameters: Sequence[str | None] | None, facts: Any) -> CatalogRows | None:
        session = CatalogSession(facts.user, facts.database, facts.settings, facts.process)
        try:
            return await self._catalog.answer(text, parameters, session)
        except QuestionError as error:
            raise _trouble(error) from None

    def close(self) -> None:
        """Ends its child."""
        self._catalog.close()


def _trouble(error: QuestionError) -> Trouble:
    return Trouble(SQLSTATES.get(error.code, "0A000"), error.message, hint=error.fix)


def _columns(found: CatalogRows) -> list[ResultColumn]:
    return [ResultColumn(name, kind) for name, kind in found.columns]
