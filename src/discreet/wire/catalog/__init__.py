"""What clients ask of `pg_catalog` and `information_schema`, and of the session itself, when they connect and browse.

    catalog = Catalog(curator.tables)
    answer = await catalog.answer(statement, parameters, session)

An answer is CatalogRows; or None, where the statement is a question about people's tables, which others answer. It
follows from the declaration and the session alone. Whatever a statement does, it does in a child process that holds the
declared names and descriptions, reads nothing else, and is ended after `SECONDS`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from discreet.catalog.listing import said
from discreet.engines.child import UnreadableSource
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Lost, Stopped
from discreet.errors import QuestionError
from discreet.wire.catalog.settings import WORDS, settled, written

SECONDS = 2.0
"""The wall time of one statement."""
START_SECONDS = 30.0
"""That of a child's beginning."""

SQLSTATES = {
    "catalog": "0A000", "catalog_relation": "42P01", "catalog_function": "42883", "catalog_type": "42704",
    "catalog_schema": "3F000", "catalog_role": "42704", "catalog_setting": "42704", "catalog_size": "54000",
    "catalog_time": "57014",
}  # fmt: skip
"""PostgreSQL's codes for the codes of errors that come from here."""


@dataclass(frozen=True)
class CatalogSession:
    """What a statement may learn of who sends it. `settings` are those that the session has set itself."""

    user: str
    database: str = "discreet"
    settings: Mapping[str, str] = field(default_factory=dict)
    process: int = 0


@dataclass(frozen=True)
class CatalogRows:
    """An answer: names and PostgreSQL's types of its columns, its rows, the types of the statement's parameters, and
    the settings that the session has from now on. Values are None, bool, int, float, str, and lists of these; what has
    another type in PostgreSQL is text as PostgreSQL writes it."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[tuple[Any, ...], ...]
    parameters: tuple[int, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)


class Catalog:
    """The catalogue of these declared tables (as `Curator.tables` gives them) in their schema, for all sessions: one
    child answers them in turn, and is started when it is first needed."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]], schema: str = "public") -> None:
        self._schema = schema
        self._declared = [
            (name, str(table["rows"]), [(column, known["type"], said(known), known["nulls"])
                                        for column, known in table["columns"].items()])
            for name, table in sorted(tables.items())
        ]  # fmt: skip
        names = "|".join(re.escape(name) for name in tables) or "(?!)"
        self._of_people = re.compile(rf"(?<!\w)({names})(?!\w)", re.IGNORECASE)
        self._turns = ThreadPoolExecutor(1, "catalog")
        self._process: EngineProcess | None = None

    async def answer(
        self, statement: str, parameters: Sequence[str | None] | None, session: CatalogSession
    ) -> CatalogRows | None:
        """Answers a statement, or gives None where it is not about the catalogue. Parameters are as text; where they
        are None it is only described: its columns and parameters, and no rows to be shown. Raises QuestionError."""
        words = statement.strip().removesuffix(";").split()
        if len(words) > 1 and words[0].lower() == "show":
            return _setting(" ".join(words[1:]).lower().replace('"', ""), self._settings(session))
        if self._of_people.search(statement) and not _ABOUT.search(statement):
            return None
        values = None if parameters is None else list(parameters)
        found = await self._asked("answer", session, statement, values)
        if "elsewhere" in found:
            return None
        if "wrong" in found:
            raise _wrong(found)
        return CatalogRows(
            tuple((name, kind) for name, kind in found["columns"]),
            tuple(tuple(row) for row in found["rows"]),
            tuple(found["parameters"]),
            found["sets"],
        )

    async def probed(self, statement: str, session: CatalogSession) -> Sequence[tuple[str, int | None]] | None:
        """Names and types, as far as they are known, of the columns of a statement that gives no row, whatever the
        tables hold. Gives None where it may give one. Raises QuestionError where that was not found out in time:
        it would be charged as if it gave one."""
        found = await self._asked("probe", session, statement)
        if found.get("wrong", [""])[0] == "catalog_time":
            raise _wrong(found)
        return None if "columns" not in found else [(name, kind) for name, kind in found["columns"]]

    async def _asked(self, operation: str, session: CatalogSession, *arguments: Any) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._turns, self._called, operation, session, *arguments)

    def _called(self, operation: str, session: CatalogSession, *arguments: Any) -> dict[str, Any]:
        facts = {
            "user": session.user,
            "database": session.database,
            "schemas": self._schemas(session.settings.get("search_path", self._schema)),
            "version": f"PostgreSQL 15.0 (discreet {version('discreet')})",
            "process": session.process,
            "settings": self._settings(session),
        }
        try:
            if self._process is None or not self._process.usable:
                self._process = EngineProcess(WORKER)
                self._process.call("declare", self._declared, self._schema, seconds=START_SECONDS)
            found: dict[str, Any] = self._process.call(operation, *arguments, facts, seconds=SECONDS)
        except (Failed, UnreadableSource, Lost, Stopped):
            if self._process is not None:
                self._process.kill()
            self._process = None
            return {"wrong": ["catalog_time", "the statement takes too long, or too much memory", "ask for less"]}
        return found

    def _settings(self, session: CatalogSession) -> dict[str, str]:
        return settled({"search_path": self._schema, **session.settings})

    def _schemas(self, path: str) -> list[str]:
        """The schemas of a search path that are here."""
        named = [one.strip().strip('"') for one in path.split(",")]
        return [one for one in named if one in (self._schema, "pg_catalog", "information_schema")]

    def close(self) -> None:
        """Ends the child."""
        self._turns.shutdown(cancel_futures=True)
        if self._process is not None:
            self._process.close()


WORKER = "discreet.wire.catalog.worker"

_ABOUT = re.compile(r"pg_|information_schema", re.IGNORECASE)


def _wrong(found: Mapping[str, Any]) -> QuestionError:
    code, message, fix = found["wrong"]
    return QuestionError(code, message, where="question", fix=fix)


def _setting(name: str, settings: Mapping[str, str]) -> CatalogRows | None:
    if name.startswith("discreet."):
        return None
    if name == "all":
        rows = tuple((written(one), value, "") for one, value in sorted(settings.items()))
        return CatalogRows((("name", 25), ("setting", 25), ("description", 25)), rows)
    name = WORDS.get(name, name)
    if name not in settings:
        raise QuestionError(
            "catalog_setting", f"there is no setting {name[:60]!r}", where="question", fix="SHOW ALL lists them"
        )
    return CatalogRows(((written(name), 25),), ((settings[name],),))
