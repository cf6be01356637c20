"""Which total is the largest, without opening any: comparisons on shared numbers, by MPyC over the session's own links.

MPyC's own way to connect listens on all interfaces, takes its arguments from the command line, waits for ever for who
is gone, and at its end reads objects that could run code. None of that is used: its messages go in frames over the
links of the session, with their pinned certificates and deadlines.

It holds against less than half of the parties, who follow the protocol: numbers are shared so that half of the parties
or more are needed to see one (Shamir 1979). What is opened on the way hides each number but for a statistical distance
of 2^−SECURITY a comparison, and for what the keyed hash gives away that the shared randomness is made of.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from discreet.errors import QuestionError
from discreet.together.session import Session
from discreet.together.wire import Link, MessageKind, PeerGone, ended

SECURITY = 100
AT_ONCE = 64
"""So many totals are compared before messages and deadlines are looked at again."""
MOST = 1 << 26
"""Bytes of one frame: MPyC sends the numbers of one step together."""
_DIGEST = 32


def needed() -> None:
    """Raises QuestionError where the extra is not installed."""
    if find_spec("mpyc") is None:
        fix = 'run pip install "discreet[mpc]"'
        raise QuestionError("extra", "to find the largest needs mpyc", where="together", fix=fix)


async def place_of_largest(session: Session, name: str, links: Mapping[str, Link], own: Sequence[int]) -> int:
    """The place of the largest of the totals of all parties' vectors, the first of equal ones.

    `own` is this party's vector with its share of the noise. Raises SessionError, QuestionError without the extra. A
    process can do this once: MPyC has one runtime.
    """
    needed()
    place = session.place(name)
    runtime = _runtime(len(session.parties), place)
    exchangers = {link.name: _connected(runtime, session.place(link.name), link) for link in links.values()}
    reading = [asyncio.create_task(_read(links[peer], exchanger)) for peer, exchanger in exchangers.items()]
    working = asyncio.create_task(_compute(runtime, session, own))
    try:
        async with asyncio.timeout(session.seconds):
            done, _ = await asyncio.wait([working, *reading], return_when=asyncio.FIRST_COMPLETED)
            while working not in done:
                for one in done:
                    one.result()  # who has said already where it is, or what ends the session
                waiting = [working, *(task for task in reading if not task.done())]
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found = _result(working)
            seen = hashlib.sha256(bytes.fromhex(session.hash) + found.to_bytes(8, "big")).digest()
            await asyncio.gather(*(link.send(MessageKind.OPENED, seen) for link in links.values()))
            said = dict(zip(exchangers, await asyncio.gather(*reading), strict=True))
    except TimeoutError:
        raise ended("stopped", f"the largest was not found within {session.seconds} seconds") from None
    except PeerGone as gone:
        raise ended("stopped", str(gone)) from None
    finally:
        for exchanger in exchangers.values():
            exchanger.transport.open = False
        for task in (working, *reading):
            task.cancel()
    for party, digest in said.items():
        if digest != seen:
            raise ended("transcript", f"{party} found another result")
    return found


def _result(working: asyncio.Task[int]) -> int:
    """What was found. An error of MPyC's would carry numbers that it held: another one is raised, outside of it."""
    with suppress(Exception):
        return working.result()
    raise ended("failed", "the computation failed")


async def _compute(runtime: Any, session: Session, own: Sequence[int]) -> int:
    """Adds up the parties' vectors and compares the totals, all of it on shares."""
    await runtime.parties[runtime.pid].protocol
    for peer in runtime.parties:
        if peer.pid != runtime.pid and peer.protocol.place != peer.pid:
            raise ended("malformed", f"{session.names[peer.protocol.place]} takes another's place")
    number = runtime.SecInt(session.mechanism.bits + 1)  # the difference of two totals too
    vectors = runtime.input([number(value) for value in own])
    totals = vectors[0]
    for vector in vectors[1:]:
        totals = runtime.vector_add(totals, vector)
    known = [[total, number(place)] for place, total in enumerate(totals)]
    while len(known) > 1:
        winners = []
        for start in range(0, len(known), AT_ONCE):
            some = known[start : start + AT_ONCE]
            best = runtime.argmax(some, key=lambda pair: pair[0])[1] if len(some) > 1 else some[0]
            await runtime.gather(best)  # until this party has its shares of it, which opens nothing
            winners.append(best)
        known = winners
    return int(await runtime.output(known[0][1]))


def _runtime(parties: int, place: int) -> Any:
    """MPyC's runtime for this party. It reads `sys.argv` when it is loaded, and sets up logging, which is undone."""
    if "mpyc.runtime" in sys.modules:
        raise ended(
            "again",
            "this process has already taken part in a search for the largest",
            "take part in a process of its own",
        )
    root, given = logging.getLogger(), sys.argv
    kept, level = list(root.handlers), root.level
    addresses = [word for _ in range(parties) for word in ("-P", "unused:1")]
    options = ["-I", str(place), "-T", str((parties - 1) // 2), "-K", str(SECURITY), "--no-log", "--no-uvloop"]
    sys.argv = [given[0] if given else "discreet", *addresses, *options]
    try:
        runtime = import_module("mpyc.runtime").mpc
    finally:
        sys.argv, root.handlers[:] = given, kept
        root.setLevel(level)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # its own prints what numbers it held
    runtime._loop = loop
    for peer in runtime.parties:
        peer.protocol = loop.create_future() if peer.pid == place else None
    return runtime


class _Transport:
    """Where MPyC writes to: frames of the session."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.open = True

    def write(self, data: bytes) -> None:
        if (
            self.open and not self._link.writer.is_closing()
        ):  # its unfinished steps go on writing when the session has ended
            self._link.put(MessageKind.MPYC, data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        """The session closes its links itself."""


def _connected(runtime: Any, place: int, link: Link) -> Any:
    """MPyC's end of a link. The earlier of two parties says first who it is."""
    exchanger_type = import_module("mpyc.asyncoro").MessageExchanger
    made = type("Exchanger", (exchanger_type,), {"place": place})(runtime, place if runtime.pid < place else None)
    made.connection_made(_Transport(link))
    return made


async def _read(link: Link, exchanger: Any) -> bytes:
    """Gives MPyC what comes, until the other party says what it has found."""
    while True:
        kind, body = await link.receive_one({MessageKind.MPYC: (1, MOST), MessageKind.OPENED: (_DIGEST, _DIGEST)})
        if kind == MessageKind.OPENED:
            return body
        exchanger.data_received(body)
