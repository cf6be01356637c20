"""The child process that reads texts: it parses them, and goes with each as far as the engine's statement.

Forked for each curator (`engines.forkserver`). It gets the declaration once, then texts, and
answers each with the tree, or with the refusal that the text deserves. What takes longer than `SECONDS` of processor
time, or more than `MEMORY` beside what it needs to begin with, ends the process: the parent starts another.

It holds no row, no ledger, no salt and no source: only declarations and texts pass here.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import pickle
import resource
import sys
from fractions import Fraction
from typing import Any, BinaryIO

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.engines.child import HEADER, held, serve
from discreet.engines.chosen import DIALECT, OUTER
from discreet.errors import QuestionError
from discreet.postprocessing.outer import outer_query, released_tables
from discreet.sql.asked import Asked
from discreet.sql.dialects import read
from discreet.sql.layers import layers
from discreet.sql.limits import FRAMES, too_deep
from discreet.sql.trees import written
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.table import Relation, Type, Value
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.relations import shape

DIALECT.text(exp.null())  # loads the grammar here, once: else each child would, with its first statement

SECONDS = 10
"""Processor time for one text. The slowest that is admitted takes about one second."""

MEMORY = 1 << 30
"""Bytes of address space for one text."""

_SOME: dict[Type, Value] = {
    Type.INTEGER: 0,
    Type.NUMBER: Fraction(0),
    Type.TEXT: "",
    Type.BOOLEAN: False,
    Type.DATE: datetime.date(2000, 1, 1),
    Type.TIMESTAMP: datetime.datetime(2000, 1, 1),
}


def main() -> None:
    """Takes the declaration, then answers one text after another until there are no more. The system ends the process
    at the limits of one text."""
    requests, answers = serve()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    declaration: Declaration = pickle.load(requests)  # from the curator: no text has been here yet
    limit = held() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.setrecursionlimit(FRAMES)
    while header := requests.read(HEADER.size):
        text, dialect, day = json.loads(requests.read(HEADER.unpack(header)[0]))
        used = resource.getrusage(resource.RUSAGE_SELF)
        last = math.ceil(used.ru_utime + used.ru_stime) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (last, resource.RLIM_INFINITY))
        _send(answers, _answer(Asked(text, dialect, datetime.date.fromisoformat(day)), declaration))


def _answer(asked: Asked, declaration: Declaration) -> Any:
    try:
        return {"tree": rehearsed(asked, declaration)}
    except QuestionError as error:
        return {"refused": [error.code, error.message, error.where, error.fix]}
    except MemoryError:
        os._exit(1)


def rehearsed(asked: Asked, declaration: Declaration) -> list[list[Any]]:
    """The nodes of a question's tree, once the whole way to the engine's statement was gone with it.

    Where groups come of a public table, one row of nothing stands for its rows."""
    tree = read(asked.text, asked.dialect)
    try:
        nodes = written(tree)
    except ValueError:  # what no question has
        raise QuestionError("syntax", "this cannot be read", where="question", fix="write plain SQL") from None
    found = layers(tree, declaration, _one_row, asked.day)
    try:
        for checked in (one.question for one in found.measured):
            for root in checked.plan.roots:
                DIALECT.text(statement(root, checked.table, Salt.of("")), copy=False)
        tables = released_tables(found, declaration)
        outer: list[tuple[exp.Query, tuple[str, ...]]] = [(one.query, ("*",)) for one in found.values.values()]
        outer += [(found.outer, found.names)] if found.outer is not None else []
        for query, names in outer:
            outer_query(query, names, tables, OUTER)
    except RecursionError:
        raise too_deep() from None
    return nodes


def _one_row(relation: Relation) -> list[tuple[Value, ...]]:
    return [tuple(_SOME[column.type or Type.TEXT] for column in shape(relation).columns)]


def _send(stream: BinaryIO, answer: Any) -> None:
    body = json.dumps(answer).encode()
    stream.write(HEADER.pack(len(body)) + body)
    stream.flush()
