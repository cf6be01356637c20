"""Child processes that begin in a moment: each is forked from a process that has loaded its program once.

    curator ── starts ──► server, which loads the program ── forks ──► child, child, child, …

A server holds no table, no ledger, no key and no text: it is asked to fork, and nothing else. So a child begins as a
process of its own would, but for what it need not load again, and what one child is told no other can know. The server
has one thread, so nothing is half done when it forks. Server and children end when the curator's process ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import weakref

from discreet.locks import Lock

LARGE = ("pandas",)
"""What takes long to load: loaded beside a program that names it as `BESIDE`, where the curator has it."""

CURATOR = 3
"""In a server and its children: the descriptor of the curator's process, which is ready when that has ended."""

EVERY = 0.1
"""Seconds: how often a server that still loads its program looks whether the curator's process has ended."""


def fork(program: str, requests: int, answers: int) -> socket.socket:
    """Has a child forked that runs `main` of the module `program`, with these descriptors as standard input and output.

    What comes through the socket is the child's number and, beside it, the descriptor of its process: it names the
    child for good, where a number may be given to another. Where nothing comes, there is no child."""
    news, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there, contextlib.suppress(OSError):
        socket.send_fds(_server(program).asking, [b"f"], [requests, answers, there.fileno()])
    return news


class _ForkServer:
    """The process that forks children of one program, with an environment that tells it nothing of its surroundings."""

    def __init__(self, program: str) -> None:
        environment = {
            "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
            "PATH": os.environ.get("PATH", ""),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "OPENBLAS_NUM_THREADS": "1",  # one thread: a fork has no other
            "JE_ARROW_MALLOC_CONF": "background_thread:false",
            "DUCKDB_JE_MALLOC_CONF": "retain:false",  # what is freed counts no more: memory is limited as address space
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        }
        self._owner = os.getpid()
        self.asking, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        large = [name for name in LARGE if name in sys.modules]
        with there:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    f"from {__name__} import main; main({self._owner}, {program!r}, {large!r})",
                ],
                stdin=there.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in environment.items() if value},
                cwd="/",  # what is there to the end: the curator's folder may be removed, and DuckDB needs one
                start_new_session=True,
            )
        weakref.finalize(self, _end, self._process, self.asking, self._owner)

    @property
    def usable(self) -> bool:
        """Whether it runs, and belongs to this process (a fork does not inherit it)."""
        return self._owner == os.getpid() and self._process.poll() is None


def _end(process: subprocess.Popen[bytes], asking: socket.socket, owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.wait()
    asking.close()


_servers: dict[str, _ForkServer] = {}
_lock = Lock()


def _server(program: str) -> _ForkServer:
    with _lock:
        if program not in _servers or not _servers[program].usable:
            _servers[program] = _ForkServer(program)
        return _servers[program]


def main(curator: int, program: str, large: list[str]) -> None:
    """The server: loads the program, and what of `large` that needs, has it prepare what each of its children would
    make alike, and forks a child that runs its `main` whenever it is asked to."""
    asking = socket.socket(fileno=0)
    watched = os.pidfd_open(curator)
    if os.getppid() != curator:
        return  # it has ended already, and its number may be another's
    if watched != CURATOR:
        os.dup2(watched, CURATOR)
        os.close(watched)
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGALRM, _end_with_curator)  # no thread, which would leave the children its memory
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])  # as the curator may have it blocked
    signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    loaded = importlib.import_module(program)
    for name in large:
        if name in getattr(loaded, "BESIDE", ()):
            importlib.import_module(name)
    if hasattr(loaded, "prepare"):
        loaded.prepare()
    gc.collect()
    gc.freeze()  # what all children share stays shared
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    while True:
        ready, _, _ = select.select([0, CURATOR], [], [])
        if CURATOR in ready:
            return
        asked, descriptors, _, _ = socket.recv_fds(asking, 1, 3)
        if not asked:
            return
        requests, answers, news = descriptors
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # its number is its own until it is told
        child: int | None
        try:
            child = os.fork()
        except OSError:
            child = None  # there is no room for another process now: then nothing is told
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            asking.detach()
            os.setsid()
            os.dup2(requests, 0)
            os.dup2(answers, 1)
            for descriptor in descriptors:
                os.close(descriptor)
            try:
                loaded.main()
            finally:
                os._exit(1)
        with socket.socket(fileno=news) as told, contextlib.suppress(OSError):
            if child is not None:
                descriptor = os.pidfd_open(child)
                socket.send_fds(told, [child.to_bytes(8, "big")], [descriptor])
                os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        os.close(requests)
        os.close(answers)


def _end_with_curator(*_: object) -> None:
    """Ends the server, while it loads its program, where the curator's process has ended."""
    if select.select([CURATOR], [], [], 0)[0]:
        os._exit(1)


def _reap(*_: object) -> None:
    """Lets go of children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
