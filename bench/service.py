"""`discreet serve` under load: repeats and new questions by 1, 8 and 64 clients, beside the same server saying that it
runs; what a question takes over HTTP beyond a local `ask`; and how soon the first is answered.

The clients are one process that sends prepared bytes on connections it keeps. Ratios are of one run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import discreet
from bench.big import processor_seconds
from discreet.catalog import read
from discreet.curator import Curator
from discreet.service.accounts import Account, Accounts
from discreet.service.roles import Role

DECLARED = """
[budget]
epsilon = 1000000000
[engine]
store = "file"
answer_seconds = "off"
[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
age = { type = "integer", min = 17, max = 90 }
"""
"""No analysts are declared: each account asks from the whole budget, and 64 ask at once."""

CLIENTS = (1, 8, 64)
SECONDS = 2.0

Bodies = Iterator[dict[str, str]]


def figures(folder: Path, workers: Sequence[int] = (1, 2)) -> list[tuple[str, float]]:
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text("age\n" + "".join(f"{17 + index % 74}\n" for index in range(10_000)))
    (folder / "served.toml").write_text(DECLARED, "utf-8")
    tokens = _tokens(folder / "served.toml")
    found = list[tuple[str, float]]()
    for number in workers:
        name = "1 worker" if number == 1 else f"{number} workers"
        begun = time.perf_counter()
        with _served(folder, number) as (port, process):
            _loaded(port, tokens[:1], _fixed(), once=True)
            found.append((f"{name}: from the command to the first answer, seconds", time.perf_counter() - begun))
            for clients in CLIENTS:
                mine = tokens[:clients]
                idle = _loaded(port, mine, None)
                for what, load in (
                    ("saying that it runs", idle),
                    ("repeats", _loaded(port, mine, _fixed())),
                    ("new questions", _loaded(port, mine, _fresh())),
                ):
                    found += [(f"{name}, {clients:>2} clients, {what}: {of}", one) for of, one in load.told(idle)]
            found += [(f"{name}: {what}", one) for what, one in _beyond(folder, port, tokens[0], process)]
    return found


@dataclass(frozen=True)
class _Load:
    """What clients got in so many seconds."""

    seconds: float
    taken: list[float]

    @property
    def rate(self) -> float:
        return len(self.taken) / self.seconds

    def told(self, idle: _Load) -> list[tuple[str, float]]:
        last = sorted(self.taken)[int(0.99 * len(self.taken))]
        facts = [("a second", self.rate), ("99th percentile, ms", 1000 * last)]
        return facts if self is idle else [*facts, ("a second / saying that it runs", self.rate / idle.rate)]


def _fixed() -> Bodies:
    while True:
        yield {"question": "SELECT COUNT(*) AS n FROM people WHERE age > 40", "epsilon": "0.5"}


_numbers = count(1)


def _fresh() -> Bodies:
    """Each is new: other rows, so that no stored answer holds it."""
    while True:
        number = next(_numbers)
        where = f"age > {17 + number % 73} AND age <> {number + 100}"
        yield {"question": f"SELECT COUNT(*) AS n FROM people WHERE {where}", "epsilon": "0.5"}


def _loaded(port: int, tokens: Sequence[str], bodies: Bodies | None, *, once: bool = False) -> _Load:
    """A client with each token asks one request after another; without bodies, whether the server runs."""

    async def client(token: str, end: float) -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        taken = []
        while True:
            sent = _request(token, bodies)
            begun = time.perf_counter()
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length is not None
            content = await reader.readexactly(int(length[1]))
            assert head.startswith(b"HTTP/1.1 200"), content
            taken.append(time.perf_counter() - begun)
            if once or time.perf_counter() > end:
                writer.close()
                return taken

    async def all_of_them() -> _Load:
        begun = time.perf_counter()
        taken = await asyncio.gather(*(client(token, begun + SECONDS) for token in tokens))
        return _Load(time.perf_counter() - begun, [one for each in taken for one in each])

    return asyncio.run(all_of_them())


def _request(token: str, bodies: Bodies | None) -> bytes:
    if bodies is None:
        return b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    body = json.dumps(next(bodies)).encode()
    head = f"POST /ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _tokens(declaration: Path) -> list[str]:
    """A token of each of as many accounts as there are clients."""
    found = read(str(declaration))
    accounts = Accounts.of(found)
    with Curator.of(found, load=False, owner=True) as curator:
        enter = curator.ledger.enter
        accounts.add(Account("owner", Role.OWNER), enter)
        for number in range(max(CLIENTS)):
            accounts.add(Account(f"a{number}", Role.ANALYST), enter)
        return [accounts.new_token(f"a{number}", None, enter)[0] for number in range(max(CLIENTS))]


@contextmanager
def _served(folder: Path, workers: int) -> Iterator[tuple[int, int]]:
    """The server's port, and its process."""
    command = [sys.executable, "-m", "discreet", "serve", "served.toml", "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            ports = (re.search(r"http://127.0.0.1:(\d+)", line) for line in process.stderr)
            port = next(one for one in ports if one is not None)
            yield int(port[1]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)


def _beyond(folder: Path, port: int, token: str, process: int) -> list[tuple[str, float]]:
    """Milliseconds of the processors that a question takes over HTTP and in a local curator, with all processes."""
    questions = 200

    def local() -> None:
        for _, body in zip(range(questions), _fresh(), strict=False):
            curator.ask(body["question"], body["epsilon"])

    def remote() -> None:
        async def ask() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _, body in zip(range(questions), _fresh(), strict=False):
                writer.write(_request(token, iter([body])))
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
            writer.close()

        asyncio.run(ask())

    with discreet.open(folder / "served.toml") as curator:
        curator.ask(next(_fresh())["question"], "0.5")
        here = _spent(local, _family(0)) / questions
    there = _spent(remote, _family(process)) / questions
    return [
        ("a local question, processor ms", 1000 * here),
        ("what HTTP adds to it, processor ms (the client's part too)", 1000 * (there - here)),
    ]


def _family(process: int) -> list[int]:
    """A process (0: this one) and those that it started, however far down."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [process or os.getpid()]
    for one in found:
        found += children.get(one, [])
    return found


def _spent(work: Callable[[], object], processes: Sequence[int]) -> float:
    """Processor seconds of a piece of work in these processes and in this one."""
    known = {*processes, os.getpid()}
    before = sum(map(processor_seconds, known))
    work()
    return sum(map(processor_seconds, known)) - before


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name, value in figures(Path(place), [int(one) for one in sys.argv[1:]] or (1, 2)):
            print(f"{name:<72} {value:>12,.4g}", flush=True)
