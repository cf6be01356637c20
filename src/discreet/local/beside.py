"""Estimates while a collector runs: it answers its owner at a socket beside its file.

One process holds the file of reports, so no other can read it. What is estimated is arithmetic on randomised reports:
it costs nobody anything, and says nothing that the file does not. The socket can be opened by the user alone who runs
the collector.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import Error, LedgerError, QuestionError
from discreet.local.collection import Collection
from discreet.local.collector import Collector
from discreet.local.ranges import Ranges

LARGEST = 65_536
"""Bytes of a request."""

_LONGEST = 64
"""Bytes of a file's name that its socket has too; of a longer one it has a hash."""

SECONDS = 10
"""How long a request may take to arrive."""


def answered(collector: Collector, said: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked, how many reports there are, and estimates of the named attribute, or of each that there are
    reports of, as plain values.

    With `sizes` it is the numbers of reports alone; with `empty`, attributes without a report have no rows, in place of
    an error. Raises QuestionError."""
    collection = collector.collection
    facts = {
        "collection": collection.name,
        "question": collection.question,
        "window": collection.window,
        "windows": [{"window": window, "reports": reports} for window, reports in collector.sizes.items()],
    }
    if said.get("sizes"):
        return facts
    names = [one.name for one in collection.attributes]
    chosen, missing = names if said.get("attribute") is None else [said["attribute"]], None
    found = []
    for name in chosen:
        try:
            one = collector.estimate(said.get("confidence", 0.95), attribute=name, window=said.get("window"))
        except QuestionError as error:
            if error.code != "reports":
                raise
            missing = error
            if said.get("empty"):
                found.append({**_asked(collection, name), "reports": 0, "rows": [], "warnings": []})
            continue
        more = {"ranges": one.grouped(), "quartiles": one.quartiles()} if isinstance(one, Ranges) else {}
        found.append({**_asked(collection, name), **one.to_dict(), **more, "text": repr(one)})
    if missing is not None and not found:
        raise missing
    return {**facts, "estimates": found}


def _asked(collection: Collection, name: str) -> dict[str, Any]:
    one = next(one for one in collection.attributes if one.name == name)
    return {"attribute": name, "question": one.question, "kind": one.answer.kind}


def asked(path: str | Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """The same from the collector that runs with this file, or from the file where none does; `running` says which.

    Raises QuestionError, LedgerError."""
    with _connected(path) as client:
        if client is None:
            with Collector.of(path) as collector:
                return {"running": False, **answered(collector, said)}
        try:
            client.sendall(json.dumps(said).encode())
            client.shutdown(socket.SHUT_WR)
            with client.makefile("rb") as stream:
                reply: dict[str, Any] = json.loads(stream.read())
        except (OSError, ValueError):
            what = "the collector ended before it answered"
            raise LedgerError("store", what, where=str(path), fix="ask again") from None
    if (told := reply.get("error")) is not None:
        raise QuestionError(told["code"], told["message"], where=told["where"], fix=told["fix"])
    return {"running": True, **reply}


def running(path: str | Path) -> bool:
    """Whether a collector runs with this file. Raises QuestionError where its folder is missing."""
    with _connected(path) as client:
        return client is not None


@contextmanager
def _connected(path: str | Path) -> Iterator[socket.socket | None]:
    with _place(path) as place, socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(place)
        except OSError:
            client.close()
            yield None
        else:
            yield client


@contextmanager
def answering(collector: Collector, path: str | Path) -> Iterator[None]:
    """Answers at the socket as long as the collector runs."""
    with _place(path) as place, socket.socket(socket.AF_UNIX) as server:
        with suppress(FileNotFoundError):
            os.unlink(place)  # of a collector that was killed: the file is held by this process alone
        before = os.umask(0o177)
        try:
            server.bind(place)
        finally:
            os.umask(before)
        server.listen()
        thread = threading.Thread(target=_serve, args=(server, collector), daemon=True)
        thread.start()
        try:
            yield
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)
            with suppress(FileNotFoundError):
                os.unlink(place)


def _serve(server: socket.socket, collector: Collector) -> None:
    while True:
        try:
            caller, _ = server.accept()
        except OSError:
            return  # it was shut
        with caller, suppress(OSError):
            caller.settimeout(SECONDS)
            caller.sendall(json.dumps(_reply(caller, collector), ensure_ascii=False).encode())


def _reply(caller: socket.socket, collector: Collector) -> dict[str, Any]:
    request = b""
    while len(request) <= LARGEST and (piece := caller.recv(LARGEST)):
        request += piece
    try:
        said = json.loads(request)
        if not isinstance(said, dict):
            raise ValueError
        return answered(collector, said)
    except Error as error:
        return {"error": error.to_dict()}
    except (ValueError, RecursionError):
        odd = QuestionError("request", "this is no request", where="estimate", fix="ask with discreet estimate")
        return {"error": odd.to_dict()}


@contextmanager
def _place(path: str | Path) -> Iterator[str]:
    """The socket's path. It goes through the folder's descriptor: a socket's own path holds 107 bytes at most."""
    file = Path(path).absolute()
    name = file.name if len(os.fsencode(file.name)) <= _LONGEST else hashlib.sha256(os.fsencode(file.name)).hexdigest()
    try:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        raise QuestionError("path", "there is no such folder", where=str(path), fix="make it first") from None
    try:
        yield f"/proc/self/fd/{folder}/{name}.socket"
    finally:
        os.close(folder)
