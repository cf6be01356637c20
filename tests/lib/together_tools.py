"""Sessions on loopback with certificates of their own, and contributions without a table."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from discreet.together import Opened, Party, Session
from discreet.together.protocol import _take_part
from discreet.trusted.ring_c.shares import LaplaceShares, Residues

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")


OPENSSL = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def certificate(folder: Path, name: str, signer: str = "") -> tuple[str, Path]:
    """A certificate that is self-signed, or signed by another of the folder, and the file of its private key."""
    key, written = folder / f"{name}.key", folder / f"{name}.pem"
    signed = ["-CA", str(folder / f"{signer}.pem"), "-CAkey", str(folder / f"{signer}.key")] if signer else []
    subprocess.run(
        [*OPENSSL, "-days", "2", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(written), *signed],
        check=True,
        capture_output=True,
    )
    return written.read_text(), key


_next = count()


def ports(wanted: int) -> list[int]:
    """Free ports of the loopback address: below those that the system gives to callers, others in each of the processes
    that run the tests together."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8
    begin = 10_000 + (os.getppid() % 6 * 8 + worker) * 400
    found: list[int] = []
    while len(found) < wanted:
        port = begin + next(_next) % 400
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
    return found


class Made:
    """A contribution of given numbers, that notes what was asked of it."""

    def __init__(self, mechanism: LaplaceShares, exact: Sequence[int]) -> None:
        self.mechanism, self.exact, self.asked = mechanism, exact, []

    def charge(self) -> None:
        self.asked.append("charge")

    def shares(self) -> list[Residues]:
        assert self.asked
        self.asked.append("shares")
        return self.mechanism.release(self.exact)


def session(parties: dict[str, tuple[str, Path]], **changes: object) -> Session:
    names = list(parties)
    found = [
        Party(name, "127.0.0.1", port, parties[name][0]) for name, port in zip(names, ports(len(names)), strict=True)
    ]
    values: dict[str, object] = {
        "question": "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
        "keys": ("city",),
        "types": ("text",),
        "column": "n",
        "cells": (("north",), ("south",)),
        "step": Fraction(1),
        "sensitivity": 1,
        "epsilon": Fraction(10**9),  # then noise is 0
        "colluding": 1,
        "absent": 0,
        "parties": tuple(found),
        "seconds": 3,
    }
    return Session(**(values | changes))


def play(*parts: object) -> list[Opened | BaseException]:
    """Runs coroutines together, and gives what each returned or raised."""

    async def run() -> list[Opened | BaseException]:
        return await asyncio.gather(*parts, return_exceptions=True)

    return asyncio.run(run())


take = _take_part


EPSILON = 1.0
REACH = 60
"""Noise is enumerated up to this size: what is left out has a probability below e^−59."""


def share_pmf(shares: int, epsilon: float = EPSILON) -> dict[int, float]:
    """P(N − N′ = x) for |x| ≤ REACH, negative binomial with r = 1/shares and q = e^(−epsilon)."""
    r, q = 1 / shares, math.exp(-epsilon)
    one = [(1 - q) ** r]
    for n in range(1, 3 * REACH):
        one.append(one[-1] * q * (n - 1 + r) / n)
    both = np.convolve(one, one[::-1])
    middle = len(one) - 1
    return {x: float(both[middle + x]) for x in range(-REACH, REACH + 1)}
