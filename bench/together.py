"""Three parties open one sum on this machine: seconds, bytes, and how much noise; beside MPyC where it is installed."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bench.noise import rate
from discreet.mechanisms import LaplaceShares
from discreet.noise import discrete_laplace
from discreet.together import Party, Session
from discreet.together.protocol import _take_part
from discreet.together.wire import Link, MessageKind
from discreet.trusted.ring_c.polya import polya
from discreet.trusted.ring_c.shares import Residues

NAMES = ("north", "south", "west")
COLLUDING = 1
ROUNDS = 3
_OPENSSL = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_MPYC = """
import sys, time
cells, place, *ports = map(int, sys.argv[1:])
sys.argv = ["sum", *(word for port in ports for word in ("-P", f"127.0.0.1:{port}")), "-I", str(place), "--no-log"]
from mpyc.runtime import mpc

async def main():
    await mpc.start()
    field = mpc.SecFld(modulus=2**61 - 1)
    start = time.perf_counter()
    total, *others = mpc.input([field(place) for _ in range(cells)])
    for other in others:
        total = mpc.vector_add(total, other)
    opened = await mpc.output(total)
    assert int(opened[0]) == 3
    if place == 0:
        print(time.perf_counter() - start)
    await mpc.shutdown()

mpc.run(main())
"""


class _Made:
    """A party with the same number in each cell."""

    def __init__(self, mechanism: LaplaceShares, cells: int) -> None:
        self.mechanism, self.exact = mechanism, [1] * cells

    def charge(self) -> None:
        """There is no ledger here."""

    def shares(self) -> list[Residues]:
        return self.mechanism.release(self.exact)


def figures(folder: Path) -> list[tuple[str, float]]:
    """The best of a few rounds; all three parties in one process."""
    found: list[tuple[str, float]] = []
    for name in NAMES:
        made = ["-days", "2", "-subj", f"/CN={name}", "-keyout", str(folder / f"{name}.key"), "-out"]
        subprocess.run([*_OPENSSL, *made, str(folder / f"{name}.pem")], check=True, capture_output=True)
    for cells in (1_000, 100_000):
        seconds, sent, ratio = _opened(folder, cells)
        theirs = _mpyc(cells) if find_spec("mpyc") is not None else None
        found += [
            (f"3 parties, {cells:,} cells: seconds, with meeting over TLS and drawing the noise", seconds),
            (f"3 parties, {cells:,} cells: bytes that a party sends", sent),
            (f"3 parties, {cells:,} cells: variance over m/(m − t − d) times one curator's", ratio),
        ]
        if theirs is not None:
            found.append((f"3 parties, {cells:,} cells: MPyC's seconds for the sum alone, over ours", theirs / seconds))
    for scale in (1, 1_000, 10**9):
        shares = rate(lambda scale=scale: polya(scale, 2, 100_000), 100_000)  # type: ignore[misc]
        found.append((f"noise shares a second, scale {scale:,}", shares))
        whole = rate(lambda scale=scale: discrete_laplace(scale, 100_000), 100_000)  # type: ignore[misc]
        found.append((f"over whole noise values a second, scale {scale:,}", shares / whole))
    return found


def _opened(folder: Path, cells: int) -> tuple[float, float, float]:
    """Seconds, bytes a party, and the variance of what was opened over the theory's."""
    parties = tuple(
        Party(name, "127.0.0.1", port, (folder / f"{name}.pem").read_text())
        for name, port in zip(NAMES, _ports(len(NAMES)), strict=True)
    )
    sent = 0
    usual = Link.send

    async def counted(link: Link, kind: MessageKind, body: bytes) -> None:
        nonlocal sent
        sent += 41 + len(body)
        await usual(link, kind, body)

    async def all_of(session: Session) -> list[Any]:
        parts = (_take_part(session, name, folder / f"{name}.key", _Made(session.mechanism, cells)) for name in NAMES)
        return await asyncio.gather(*parts)

    seconds, noise = [], []
    Link.send = counted  # type: ignore[method-assign,assignment]
    try:
        for _ in range(ROUNDS):
            session = Session(
                question="SELECT COUNT(*) AS n FROM t GROUP BY k",
                keys=("k",),
                types=("integer",),
                column="n",
                cells=tuple((cell,) for cell in range(cells)),
                step=Fraction(1),
                sensitivity=1,
                epsilon=Fraction(1),
                colluding=COLLUDING,
                absent=0,
                parties=parties,
            )
            session.hash  # noqa: B018 - worked out before the clock runs
            start = perf_counter()
            opened = asyncio.run(all_of(session))
            seconds.append(perf_counter() - start)
            noise.append(np.array(opened[0].totals) - len(NAMES))
    finally:
        Link.send = usual  # type: ignore[method-assign]
    theory = session.mechanism.variance(len(NAMES))
    return min(seconds), sent / ROUNDS / len(NAMES), float(np.concatenate(noise).var() / theory)


def _mpyc(cells: int) -> float:
    """Seconds of a sum of three parties without noise, in three processes."""
    ports = [str(port) for port in _ports(len(NAMES))]
    with ExitStack() as stack:
        running = []
        for place in range(len(NAMES)):
            starts = [sys.executable, "-c", _MPYC, str(cells), str(place), *ports]
            process = subprocess.Popen(starts, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ))
            stack.callback(process.kill)
            running.append(process)
        out, _ = running[0].communicate(timeout=120)
    return float(out)


def _ports(count: int) -> list[int]:
    """Ports of the loopback address that are free now, below those that the system gives to callers."""
    found: set[int] = set()
    while len(found) < count:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.add(port)
    return sorted(found)
