"""Runs the service: where it listens, with which certificate, and how it ends."""

from __future__ import annotations

import importlib
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import QuestionError, refused

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from discreet.catalog import Declaration
    from discreet.curator import Curator
    from discreet.ledger import Ledger
    from discreet.service.accounts import Accounts
    from discreet.service.api import Service
    from discreet.service.connections import BackgroundTask
    from discreet.service.workers import Answerer

KEEP_ALIVE_SECONDS = 30
LARGEST_HEAD = 16_384

ANSWER_SECONDS = 2
"""The schedule of a service whose declaration names none. Not measured: times follow from rows."""

_refused = partial(refused, "serve")


@dataclass(frozen=True)
class Address:
    """Where a service listens. Beyond this machine tokens and answers travel under TLS: with `certificate` and `key`,
    files in PEM, or with those of a proxy that is said to stand before it."""

    host: str = "127.0.0.1"
    port: int = 8443
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

    def check(self) -> None:
        """Raises QuestionError where tokens would travel for everybody to read, or the certificate does not do."""
        if (self.certificate is None) != (self.key is None):
            raise _refused("a certificate and its key go together", "--certificate", "name both files")
        if self.certificate is not None and self.key is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
            except (OSError, ValueError):  # ssl.SSLError is an OSError
                fix = "name two PEM files that belong together, the key without a password"
                raise _refused("the certificate or its key cannot be used", "--certificate", fix) from None
        elif not loopback(self.host) and not self.behind_proxy:
            fix = "name --certificate and --key; or say --behind-proxy where a proxy speaks TLS"
            raise _refused("beyond this machine, tokens and answers need TLS", "--host", fix)

    @contextmanager
    def bound(self) -> Iterator[socket.socket]:
        """Its socket. Raises QuestionError where the address cannot be had."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=256)
        except (OSError, OverflowError):
            fix = "name an address of this machine, and a port that nobody has"
            raise _refused("this address cannot be had", f"{self.host}:{self.port}", fix) from None
        with listening:
            # a reply's head and body are two packets: the second waits for no acknowledgement of the first
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield listening

    @property
    def secure(self) -> bool:
        """Whether those who call it speak TLS, to it or to its proxy."""
        return self.certificate is not None or self.behind_proxy

    def url(self, port: int) -> str:
        """What one calls, as the machine itself would."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{port}"


def loopback(host: str) -> bool:
    """Whether only this machine can call it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def needed() -> Any:
    """The server's module. Raises QuestionError where the extra is missing."""
    try:
        importlib.import_module("jinja2")
        importlib.import_module("prometheus_client")
        importlib.import_module("starlette")
        return importlib.import_module("uvicorn")
    except ImportError:
        fix = 'run pip install "discreet[server]"'
        raise QuestionError(
            "extra", "this needs starlette, uvicorn, jinja2 and prometheus_client", where="serve", fix=fix
        ) from None


def scheduled(declaration: Declaration) -> Declaration:
    """The same with a schedule: others see when an answer comes. `answer_seconds = "off"` stays what it is."""
    if declaration.limits.answer_seconds is not None:
        return declaration
    return replace(declaration, limits=replace(declaration.limits, answer_seconds=ANSWER_SECONDS))


def how_scheduled(declaration: Declaration) -> str:
    """For whoever starts a service: when answers come, and what that means."""
    seconds = declaration.limits.answer_seconds
    if not seconds:
        return 'answer_seconds = "off": how long an answer takes tells analysts about rows'
    half = f"{seconds / 2:g} s"
    return f"answers come after {seconds} s; what takes the engine more than {half} fails: see [engine] answer_seconds"


def enter(declaration: Declaration, ledger: Ledger) -> None:
    """Enters in the ledger what the owner lets this service do, where it is not as at the last start: at which times it
    answers, and whose logins it takes."""
    issuer = declaration.issuer
    facts = {"answer_seconds": declaration.limits.answer_seconds, "issuer": None if issuer is None else vars(issuer)}
    last = next((said for act, said in reversed(ledger.acts()) if act == "serve"), None)
    if last != facts:
        ledger.enter("serve", **facts)


def configured(
    app: Any, address: Address, *, lifespan: str = "on", timeout_graceful_shutdown: int | None = None
) -> Any:
    """How the server's module runs an application at an address: it logs nothing, and names nobody."""
    return needed().Config(
        app,
        timeout_graceful_shutdown=timeout_graceful_shutdown,
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan=lifespan,
        access_log=False,
        log_config=None,
        log_level="critical",  # of ours nothing gets there, of strangers' as much as they like
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )


def server(
    curator: Curator,
    accounts: Accounts,
    address: Address,
    workers: Answerer | None = None,
    pages: Callable[[Service, Address], Sequence[BaseRoute]] = lambda _service, _address: (),
    beside: Callable[[Service], BackgroundTask] | None = None,
) -> Any:
    """A server that is not started: `server.run(sockets=[…])` ends after SIGTERM, once what runs is answered.

    `pages` are what it shows people beside the paths of programs; what `beside` makes starts and ends with it.
    """
    needed()
    from discreet.service.api import Service
    from discreet.service.connections import MOST, MOST_OF_ONE, Connections, Server, WatchedApplication

    shared = address.behind_proxy or loopback(address.host)  # by strangers to each other, who have one address
    connections = Connections(MOST if shared else MOST_OF_ONE)
    service = Service(curator, accounts, workers)
    watched = WatchedApplication(service.watch.around(service.app(pages(service, address))), connections)
    config = configured(watched, address)
    running = Server(config, connections, () if beside is None else (beside(service),))
    service.jobs.ending = lambda: running.should_exit  # who listens to a job is let go
    return running
