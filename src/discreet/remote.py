"""A curator that somebody else runs, called over HTTP: the same questions, releases and errors as with a local one."""

from __future__ import annotations

import http.client
import json
import logging
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload
from urllib.parse import urlsplit

from discreet import errors
from discreet.catalog.listing import Tables
from discreet.errors import EngineError, Error, Fault, refused
from discreet.explanation import BudgetState, Explanation
from discreet.procedures.progress import progress
from discreet.release import Release
from discreet.release.told import heard
from discreet.service.serving import loopback
from discreet.sql.compiled import Askable, as_text
from discreet.texts import visible
from discreet.trusted.ring_a.exact import Number, floor

if TYPE_CHECKING:  # what few sessions need is loaded when it is asked for
    from discreet.synthesis.synthetic import Synthetic
    from discreet.synthesis.synthetic_tables import SyntheticTables
    from discreet.workload import Workload

_log = logging.getLogger("discreet.question")

_ERRORS = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Error)}
_NO_ANSWER = "what came is no answer of a service"
_Made = TypeVar("_Made")
_KEPT_SECONDS = 20
"""How long a connection is kept that nothing is sent on; a service keeps it for longer."""

_LOOK_SECONDS = 0.5
"""Between looks at a job."""

_LONGEST = 25
"""Digits of a price that is no decimal: it is rounded down."""


def connect(
    url: str, *, token: str, certificate: str | Path | None = None, seconds: float | None = 900
) -> RemoteCurator:
    """Gives the curator of a service, `discreet serve`, for the account whose `token` it is.

    `certificate` is a file in PEM with the authorities that are trusted, where the system's are not meant; `seconds` is
    how long an answer may take. Nothing is sent yet. Raises QuestionError on an address that cannot be one, and on
    plain HTTP beyond this machine.
    """
    return RemoteCurator(url, token=token, certificate=certificate, seconds=seconds)


class RemoteCurator:
    """A curator that somebody else runs. `connect` makes it.

    Every method raises what a local curator raises: QuestionError, BudgetError, DeclarationError, EngineError,
    LedgerError; and EngineError "unreachable" where no answer came: ask again, with the same `request` where
    nothing must be charged twice.

    Raises QuestionError on an address or a token that cannot be one.
    """

    def __init__(self, url: str, *, token: str, certificate: str | Path | None, seconds: float | None) -> None:
        fix = "write https://host:8443; on this machine http://127.0.0.1:8443 does"
        try:
            parts = urlsplit(url)
            self._host, self._port, self._path = parts.hostname or "", parts.port, parts.path.rstrip("/")
            known = parts.scheme in ("http", "https") and self._host and not (parts.query or parts.fragment)
        except (ValueError, AttributeError, TypeError):
            raise refused("url", "this is no address of a service", "url", fix) from None
        if not known or parts.username is not None or parts.password is not None:
            raise refused("url", "this is no address of a service", "url", fix)
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise refused("token", "this is no token", "token", "the owner makes one with `discreet token new`")
        if parts.scheme == "http" and not loopback(self._host):
            raise refused("url", "beyond this machine the token needs TLS", "url", fix)
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
            except (OSError, ValueError):
                raise refused(
                    "certificate", "this file has no certificates", "certificate", "name a PEM file"
                ) from None
        self._token = token.strip()
        self._seconds = seconds
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._used = time.monotonic()

    def ask(
        self,
        question: Askable,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        default_price: bool = True,
        reuse: bool = True,
        request: str | None = None,
        dialect: str | None = None,
        part: str | None = None,
    ) -> Release:
        """Answers a question, with noise that costs `epsilon` (and `delta`) of the budget: `Curator.ask`.

        Raises QuestionError, BudgetError, DeclarationError, EngineError, LedgerError; Error where the
        service has a fault.
        """
        said = _said(question, epsilon, delta, within, confidence, together, default_price, reuse, dialect, part)
        plain = self._call("POST", "/ask", said, request)
        release = _made(heard, plain)
        for words in plain.get("warnings", ()):
            _log.warning("%s", visible(str(words)))
        return release

    def explain(
        self,
        question: Askable,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        default_price: bool = True,
        reuse: bool = True,
        dialect: str | None = None,
        part: str | None = None,
    ) -> Explanation:
        """Says the price and expected error of a question; nothing is spent: `Curator.explain`.

        Raises QuestionError, BudgetError, DeclarationError, EngineError, LedgerError; Error where the
        service has a fault.
        """
        said = _said(question, epsilon, delta, within, confidence, together, default_price, reuse, dialect, part)
        return _made(Explanation.from_dict, self._call("POST", "/explain", said))

    def check_question(self, question: Askable, *, dialect: str | None = None) -> tuple[str, ...]:
        """Says whether a question can be asked, whatever its price: `Curator.check_question`.

        Raises QuestionError, DeclarationError, EngineError, LedgerError; Error where the
        service has a fault.
        """
        said = _said(question, None, None, None, 0.95, False, True, True, dialect, None)
        return _made(lambda plain: tuple(plain["tables"]), self._call("POST", "/check", said))

    @overload
    def publish(
        self,
        table: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        method: str = "adaptive",
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Any] | None = None,
        workload: Sequence[Sequence[str]] | None = None,
        target: str | None = None,
        like: object = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Synthetic: ...

    @overload
    def publish(
        self,
        table: list[str] | tuple[str, ...],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> SyntheticTables: ...

    def publish(
        self,
        table: str | list[str] | tuple[str, ...],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        method: str = "adaptive",
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Any] | None = None,
        workload: Sequence[Sequence[str]] | None = None,
        target: str | None = None,
        like: object = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Synthetic | SyntheticTables:
        """Makes a synthetic table like the declared one, or several together: `Curator.publish`.

        It is made there, and goes on where this program ends: the same `request`, asked again, waits for it further.
        What is shown of its steps meanwhile goes by the clock.

        Raises QuestionError, BudgetError, DeclarationError, EngineError, LedgerError; Error where the
        service has a fault.
        """
        from discreet.synthesis.related import neither
        from discreet.synthesis.synthetic import Synthetic
        from discreet.synthesis.synthetic_tables import SyntheticTables
        from discreet.workload.told import plain

        if like is not None:
            fix = "leave like out, or publish where the table lies"
            raise refused("like", "a service publishes afresh, and continues no earlier release", "like", fix)
        if not isinstance(table, str | list | tuple):
            raise neither(table)
        how = None if method == "adaptive" else method
        said = {"table": table, "rows": rows, "method": how, "columns": columns, "bins": bins, "workload": workload}
        priced = {"target": target, "epsilon": _number(epsilon), "delta": _number(delta), "part": part}
        released = _made(heard, self._job("/publish", "publishing", {**plain(said), **priced}, request))
        return Synthetic.of(released) if isinstance(table, str) else SyntheticTables.of(released)

    def answer(
        self,
        workload: Workload,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Release:
        """Answers all of a workload, measured so that they err least together: `Curator.answer`.

        Raises QuestionError, BudgetError, DeclarationError, EngineError, LedgerError; Error where the
        service has a fault.
        """
        from discreet.workload.told import told

        said = {**told(workload), "epsilon": _number(epsilon), "delta": _number(delta), "part": part}
        return _made(heard, self._job("/workload", "answering", said, request))

    def request_more(self, epsilon: Number, reason: str) -> dict[str, Any]:
        """Requests so much more of the account's own budget, with a reason: `Curator.request_more`.

        Raises QuestionError, EngineError, LedgerError; Error where the service has a fault.
        """
        return self._call("POST", "/requests", {"epsilon": _number(epsilon), "reason": reason})

    def requests(self) -> list[dict[str, Any]]:
        """Lists the account's own requests for more, and what was decided; for owner and auditors everybody's.

        Raises QuestionError where the token does not hold, EngineError, LedgerError; Error where the service has a
        fault.
        """
        return _made(lambda plain: list(plain["requests"]), self._call("GET", "/requests"))

    @property
    def tables(self) -> Tables:
        """What may be asked about: whose rows the tables hold, their columns, types, bounds and values. Print it.

        Raises QuestionError where the token does not hold, EngineError, LedgerError; Error where the
        service has a fault.
        """
        return Tables(self._call("GET", "/tables"))

    @property
    def budget(self) -> BudgetState:
        """What is used and left of the account's own budget; for owner and auditors everybody's.

        Raises QuestionError where the token does not hold, EngineError, LedgerError; Error where the
        service has a fault.
        """
        plain = self._call("GET", "/balance")
        return _made(BudgetState.from_dict, {name: plain[name] for name in plain.keys() - {"analyst", "pace"}})

    @property
    def ledger(self) -> dict[str, Any]:
        """What was used, by whom and for what, as `discreet ledger --json` says it. For the owner and auditors.

        Raises QuestionError where the token does not hold or is another's, EngineError, LedgerError; Error where the
        service has a fault.
        """
        return self._call("GET", "/ledger")

    def close(self) -> None:
        """Closes the connection; the next question opens another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        port = "" if self._port is None else f":{self._port}"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"Curator at {'http' if self._tls is None else 'https'}://{host}{port}{self._path}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        """What a notebook shows: also what is left, which takes a call; or why that is not known."""
        try:
            said: object = self.budget
        except Error as error:
            said = error
        printer.text(f"{self!r}: {said}")

    # how it is called

    def _job(self, path: str, words: str, said: Mapping[str, Any], request: str | None) -> dict[str, Any]:
        """What a job released, once it has ended; its steps are shown meanwhile. A service that cannot be reached for
        a while is asked again."""
        name = secrets.token_urlsafe(16) if request is None else request
        job = self._call("POST", path, {one: value for one, value in said.items() if value is not None}, name)
        fix = f'the same call with request="{name}" waits further, and is charged once'
        begun = reached = time.monotonic()
        with progress(words, job["steps"]) as tell:
            while job["state"] == "running":
                if self._seconds is not None and time.monotonic() - begun > self._seconds:
                    raise _unreachable("the job still runs", fix)
                tell(job["done"], job["steps"])
                time.sleep(min(_LOOK_SECONDS, (time.monotonic() - begun) / 4 + 0.02))
                try:
                    job, reached = self._call("GET", f"/jobs/{job['job']}"), time.monotonic()
                except EngineError as error:
                    if error.code not in ("unreachable", "busy"):
                        raise
                    if time.monotonic() - reached > _KEPT_SECONDS:
                        raise _unreachable("the service cannot be reached any more", fix) from None
        return self._call("GET", f"/jobs/{job['job']}/answer?rows=packed")

    def _call(
        self, method: str, path: str, said: Mapping[str, Any] | None = None, request: str | None = None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        body = None
        if said is not None:
            body = json.dumps(said).encode()
            headers["Content-Type"] = "application/json"
        if request is not None:
            if not isinstance(request, str) or not request.isascii() or not request.isprintable():
                fix = "write up to 200 ASCII letters and digits, without blanks"
                raise refused("request", "this cannot be the name of a request", "request", fix)
            headers["Idempotency-Key"] = request
        with self._lock:
            status, content = self._sent(method, self._path + path, body, headers)
        try:
            plain = json.loads(content)
        except ValueError:
            plain = None
        if status in (200, 202) and isinstance(plain, dict):
            return plain
        raise _error(plain)

    def _sent(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """Sends it; again where a connection that was kept had been closed, and nothing can be charged twice."""
        if time.monotonic() - self._used > _KEPT_SECONDS:
            self._drop()
        again = self._connection is not None and (path != f"{self._path}/ask" or "Idempotency-Key" in headers)
        for kept in (again, False):
            try:
                connection = self._open()
                connection.request(method, path, body, headers)
                reply = connection.getresponse()
                content = reply.read()
                self._used = time.monotonic()
                return reply.status, content
            except ssl.SSLCertVerificationError:
                self._drop()
                fix = "name the authority's file: certificate=, or SSL_CERT_FILE in the environment"
                raise _unreachable("the service's certificate is not trusted", fix) from None
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._drop()
                if not kept:
                    raise _unreachable() from None
            except (OSError, http.client.HTTPException):
                self._drop()
                raise _unreachable() from None
            except BaseException:
                self._drop()  # an answer that was not read belongs to nobody
                raise
        raise _unreachable()

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._tls is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
            else:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._seconds, context=self._tls
                )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _said(
    question: Askable,
    epsilon: Number | None,
    delta: Number | None,
    within: Mapping[str, Number] | None,
    confidence: Number,
    together: bool,
    default_price: bool,
    reuse: bool,
    dialect: str | None,
    part: str | None,
) -> dict[str, Any]:
    """What is sent of a question: what differs from the usual."""
    text = as_text(question)
    if not isinstance(text, str):
        raise refused("question", "this is no question", "question", 'write "SELECT … FROM table"')
    if part is not None and not isinstance(part, str):
        fix = "write its name, as `budget` has it"
        raise refused("part", "no such part is declared with a budget of its own", "part", fix)
    whose = None if dialect is None else str(dialect)  # what is none is for the service to refuse
    said: dict[str, Any] = {"question": text, "dialect": whose, "epsilon": _number(epsilon), "delta": _number(delta)}
    if within is not None:
        if not isinstance(within, Mapping):
            fix = 'write within={"n": 100}'
            raise refused("within", "within maps names of columns to wanted errors", "within", fix)
        said["within"] = {str(name): _number(value) for name, value in within.items()}
    if str(confidence) != "0.95":
        said["confidence"] = _number(confidence)
    if together:
        said["together"] = True
    if default_price is not True:
        said["default_price"] = False
    if reuse is not True:
        said["reuse"] = False
    if part is not None:
        said["part"] = part
    return {name: value for name, value in said.items() if value is not None}


def _number(value: Any) -> Any:
    """A number as text, as it is written; what is none is for the service to refuse."""
    if isinstance(value, Fraction):
        value = floor(value, _LONGEST)
        return str(Decimal(value.numerator) / Decimal(value.denominator))
    return repr(value) if isinstance(value, float) else None if value is None else str(value)


def _made(kind: Callable[[dict[str, Any]], _Made], plain: dict[str, Any]) -> _Made:
    """What was said, as an object. Raises EngineError where another program than a service said it."""
    try:
        return kind(plain)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unreachable(_NO_ANSWER) from None


def _unreachable(message: str = "no answer came from the service", fix: str = "") -> EngineError:
    usual = (
        "look at the address, which begins with https:// where it has TLS, and whether it runs; "
        "ask again, with the same request where one was named"
    )
    return EngineError.told("unreachable", message, where="url", fix=fix or usual)


def _error(problem: Any) -> Error:
    """The error that a problem tells; one of no known kind is the service's own fault."""
    if not isinstance(problem, dict):
        return _unreachable(_NO_ANSWER)
    said = {name: str(problem.get(name, "")) for name in ("type", "code", "detail", "where", "fix")}
    kind = _ERRORS.get(said["type"].removeprefix("urn:discreet:"), Error)
    error = kind.told(said["code"], said["detail"], where=said["where"], fix=said["fix"])
    if isinstance(error, errors.BudgetError):
        rest, _, error.left = said["detail"].rpartition(", left ")
        error.asked, error.fits = rest.rpartition(": asked ")[2], said["fix"]
    if isinstance(error, errors.DeclarationError):
        error.faults, error.file = (Fault(said["where"], said["detail"], said["fix"]),), ""
    return error


__all__ = ["RemoteCurator", "connect"]
