"""What a child's program says to the parent: one answer to each request, and no message of a database."""

from __future__ import annotations

import datetime
import itertools
import json
import pickle
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, BinaryIO, Protocol
from uuid import UUID

from discreet.engines.child import HEADER, serve


class ChildProgram(Protocol):
    """A child's program."""

    def answer(self, operation: str, *arguments: Any) -> Any: ...


def answering(made: Callable[[], ChildProgram], failed: Callable[[str, Exception], Any]) -> None:
    """Answers requests until there are no more. `failed` gives the answer where one fails, or ends the process."""
    requests, answers = serve()
    worker = made()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = worker.answer(*request)
        except Exception as error:
            answer = failed(request[0], error)
        _send(answers, answer)


def _send(stream: BinaryIO, answer: Any) -> None:
    """The answer as JSON, and behind it the bytes of its `buffers`, in whose place their lengths stand."""
    buffers = answer.get("buffers", [])
    if buffers:
        answer = answer | {"buffers": [len(buffer) for buffer in buffers]}
    body = json.dumps(answer, default=_plain, ensure_ascii=False).encode()
    stream.write(HEADER.pack(len(body)) + body)
    for buffer in buffers:
        stream.write(buffer)
    stream.flush()


def _plain(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, UUID):
        return str(value)
    raise TypeError("not an integer, text or date")


def dense(places: Sequence[Any], count: Any, shape: tuple[int, ...]) -> bytes:
    """The counts of all cells, of the places of some and their counts."""
    import numpy as np  # it takes time and memory: only where it is needed

    counts = np.zeros(shape, np.int64)
    counts.reshape(-1)[np.ravel_multi_index(tuple(places), shape) if places else slice(None)] = count
    return counts.tobytes()


def told_apart(names: Sequence[str]) -> list[str]:
    """The names, where those that are empty, or repeat another but for its case, get a new one that nobody uses."""
    spare = (f"column_{number}" for number in itertools.count())
    taken = {name.casefold() for name in names}
    met = {""}
    found: list[str] = []
    for name in names:
        found.append(next(other for other in spare if other not in taken) if name.casefold() in met else name)
        met.add(name.casefold())
    return found
