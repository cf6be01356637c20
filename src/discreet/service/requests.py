"""What a request may say: its body, read with a limit of size and time; its fields; in which form the answer goes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

from starlette.requests import Request

from discreet.errors import Error, QuestionError

LARGEST = 65_536
"""Bytes of a body."""

BODY_SECONDS = 10
"""How long a body may take to arrive."""

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
FORMS = (JSON, CSV, ARROW)
"""The forms of an answer, the usual one first."""

_REQUEST = re.compile(r"[\x21-\x7e]{1,200}")


class RefusedRequest(Exception):
    """A request that is not one: its status, and the error that says so."""

    def __init__(
        self, status: int, code: str, message: str, where: str, fix: str, kind: type[Error] = QuestionError
    ) -> None:
        super().__init__(code)
        self.status = status
        self.error = kind.told(code, message, where=where, fix=fix)


def bearer(request: Request) -> str:
    """The token that a request has in its header. Raises RefusedRequest 401."""
    scheme, _, token = ",".join(request.headers.getlist("authorization")).partition(" ")
    if scheme.casefold() != "bearer" or not token.strip():
        raise unknown_token()
    return token.strip()


def unknown_token() -> RefusedRequest:
    """One text for every token that does not hold, whatever it is."""
    fix = "send Authorization: Bearer and a token; the owner makes one with `discreet token new`"
    return RefusedRequest(401, "token", "there is no token, or it does not hold (any more)", "Authorization", fix)


async def body(request: Request, kind: str = JSON, largest: int = LARGEST) -> bytes:
    """The whole body. Raises RefusedRequest where it is not of this kind, too large or too slow; what comes after the
    limit is read and dropped, up to a limit of its own."""
    if kind_of(request) != kind:
        raise RefusedRequest(415, "type", f"what is sent here is {kind}", "Content-Type", f"send Content-Type: {kind}")
    if ",".join(request.headers.getlist("content-encoding") or ["identity"]).lower() != "identity":
        raise RefusedRequest(415, "type", "a compressed body is not taken", "Content-Encoding", "send it as it is")
    found, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size <= largest:
                    found += piece
                elif size > 16 * LARGEST:
                    break
    except TimeoutError:
        raise RefusedRequest(408, "slow", "the body took too long to arrive", "body", "send it again") from None
    if size > largest:
        raise RefusedRequest(413, "size", f"a body has at most {largest:,} bytes", "body", "ask something shorter")
    return bytes(found)


def kind_of(request: Request) -> str:
    """What a body is said to be."""
    return ",".join(request.headers.getlist("content-type")).split(";")[0].strip().lower()


MOST_ENTRIES = 1_000
"""Entries of the ledger in one page."""

DEEPEST = 8
"""Lists and objects in each other, in the body of a workload."""

Shape = Mapping[str, type | tuple[type, ...]]

QUESTION: Shape = {"question": str, "dialect": str}
PRICED: Shape = {
    **QUESTION,
    "epsilon": (Decimal, str),
    "delta": (Decimal, str),
    "within": dict,
    "confidence": (Decimal, str),
    "together": bool,
    "default_price": bool,
    "reuse": bool,
    "part": str,
}
"""What the body of a question may have; null is the same as nothing. Who asks is no part of it."""

PUBLISH: Shape = {
    "table": (str, list),
    "epsilon": (Decimal, str),
    "delta": (Decimal, str),
    "rows": Decimal,
    "method": str,
    "columns": list,
    "bins": dict,
    "workload": list,
    "target": str,
    "part": str,
}
"""What the body of a publication may have."""

WORKLOAD: Shape = {
    "table": str,
    "questions": list,
    "bins": dict,
    "epsilon": (Decimal, str),
    "delta": (Decimal, str),
    "part": str,
}
"""What the body of a workload may have."""


MORE: Shape = {"epsilon": (Decimal, str), "reason": str}
"""What the body of a request for more may have."""

DECIDED: Shape = {"approve": bool, **MORE}
"""What the body of a decision about one may have."""


def said_of_more(body: bytes, shape: Shape) -> dict[str, Any]:
    """The fields of the body of a request for more, or of a decision. Raises RefusedRequest 400."""
    given = _given(body, shape)
    needed = ("approve", "reason") if "approve" in shape else ("epsilon", "reason")
    for name in needed:
        if name not in given:
            example = 'send {"approve": true, "reason": "…"}' if needed[0] == "approve" else ""
            raise _malformed(f"there is no {name}", name, example or 'send {"epsilon": "0.2", "reason": "…"}')
    return {name: _plain(value) for name, value in given.items()}


def fields(body: bytes, shape: Shape) -> dict[str, Any]:
    """The fields of a question's body: numbers as they were written. Raises RefusedRequest 400."""
    given = _given(body, shape)
    for name, value in given.items():
        if isinstance(value, dict) and not all(isinstance(one, Decimal | str) for one in value.values()):
            raise _malformed("this field has another type", name)
    if "question" not in given:
        raise _malformed("there is no question", "question")
    return {name: _plain(value) for name, value in given.items()}


def called(body: bytes, shape: Shape) -> dict[str, Any]:
    """The fields of the body of a publication or a workload: numbers are `Decimal`. Raises RefusedRequest 400."""
    given = _given(body, shape)
    if "table" not in given:
        raise _malformed("there is no table", "table", 'send {"table": "…", "epsilon": "0.5"}')
    for name, value in given.items():
        if not _shallow(value, DEEPEST):
            raise _malformed("this field is nested too deeply", name, "write what the description has")
    return given


def texts(body: bytes, names: Sequence[str]) -> dict[str, str]:
    """The fields of a body that has texts and numbers alone, of these names; all as texts. Raises RefusedRequest
    400."""
    given = _given(body, dict.fromkeys(names, (str, Decimal)))
    return {name: str(value) for name, value in given.items()}


ACT: Shape = {"analyst": str, "tables": list, "reason": str}
REFRESH: Shape = {"tables": dict, "reason": str}
TOKEN: Shape = {"days": Decimal, "reason": str}
ACCOUNT: Shape = {"account": str, "role": str, "analyst": str, **TOKEN}
END: Shape = {"reason": str}
REVOKE: Shape = {"token": Decimal, "reason": str}
"""What the bodies of the owner's acts may have."""


def told(body: bytes, shape: Shape, *needed: str) -> dict[str, Any]:
    """The fields of the body of an owner's act; some are `needed`. Raises RefusedRequest 400."""
    given, fix = _given(body, shape), f"write {', '.join(needed)}"
    for name in needed:
        if name not in given:
            raise _malformed("this field is missing", name, fix)
    if not all(isinstance(name, str) for name in given.get("tables", [])):
        raise _malformed("each table is a name", "tables", 'write {"tables": ["visits"]}')
    for number in given["tables"].values() if isinstance(given.get("tables"), dict) else ():
        if not isinstance(number, Decimal) or number != number.to_integral_value() or not 0 <= number < 10**9:
            raise _malformed("the number of a snapshot is a whole number", "tables", 'write {"tables": {"visits": 1}}')
    return given


def _shallow(value: Any, levels: int) -> bool:
    """Whether lists and objects in each other are at most so many."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(one, levels - 1) for one in inside)


def _given(body: bytes, shape: Shape) -> dict[str, Any]:
    """The fields that a body has, each of its type."""
    try:
        plain = json.loads(
            body.decode("utf-8"),
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=_no_number,
            object_pairs_hook=_once,
        )
    except (ValueError, RecursionError, ArithmeticError):
        raise _malformed("the body is no JSON in UTF-8", "body") from None
    if not isinstance(plain, dict):
        raise _malformed("the body is no JSON object", "body")
    given = {name: value for name, value in plain.items() if value is not None}
    for name, value in given.items():
        if name not in shape:
            raise _malformed("this field is not known", name[:60], f"write some of {', '.join(shape)}")
        if not isinstance(value, shape[name]):
            raise _malformed("this field has another type", name)
    return given


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return str(value) if isinstance(value, Decimal) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Where a name stands twice, others on the way may have read the other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _malformed("a field stands there twice", "body")
    return found


def _no_number(_: str) -> None:
    raise ValueError


def _malformed(message: str, where: str, fix: str = "") -> RefusedRequest:
    return RefusedRequest(400, "body", message, where, fix or 'send {"question": "SELECT …", "epsilon": "0.5"}')


def digest(said: Mapping[str, Any]) -> bytes:
    """What makes two bodies the same: their fields."""
    text = json.dumps(said, sort_keys=True, default=lambda number: {"number": str(number)})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def request_name(request: Request) -> str | None:
    """The name that makes a retry safe. Raises RefusedRequest 400."""
    names = request.headers.getlist("idempotency-key")
    name = " ".join(names) if names else None  # of two, neither
    if name is not None and not _REQUEST.fullmatch(name):
        fix = "write up to 200 ASCII letters and digits, without blanks"
        raise RefusedRequest(400, "request", "this cannot be the name of a request", "Idempotency-Key", fix)
    return name


def rows_packed(request: Request) -> bool:
    """Whether synthetic rows are wanted as `discreet.connect` reads them. Raises RefusedRequest 400."""
    wanted = _query(request, {"rows"}, "write ?rows=packed, or nothing")
    if wanted.get("rows", "packed") != "packed":
        raise RefusedRequest(
            400, "query", "rows are packed, or as the form has them", "rows", "write ?rows=packed, or nothing"
        )
    return bool(wanted)


def page(request: Request) -> tuple[int, int] | None:
    """Behind which entry, and how many, where a part of the ledger is wanted. Raises RefusedRequest 400."""
    fix = f"write ?after=0&limit={MOST_ENTRIES}"
    wanted = _query(request, {"after", "limit"}, fix)
    if not wanted:
        return None
    if not all(re.fullmatch(r"[0-9]{1,15}", one) for one in wanted.values()):
        raise RefusedRequest(400, "query", "after and limit are whole numbers", "after, limit", fix)
    limit = int(wanted.get("limit", MOST_ENTRIES))
    if not 1 <= limit <= MOST_ENTRIES:
        raise RefusedRequest(400, "query", f"limit is from 1 to {MOST_ENTRIES:,}", "limit", fix)
    return int(wanted.get("after", 0)), limit


def without_query(request: Request) -> None:
    """Raises RefusedRequest 400 where something stands behind the question mark of a request that a body says all of:
    what nobody reads there may be meant as a part of it, and to leave it out would be another request."""
    if request.scope["query_string"]:
        fix = "write each field in the body, and nothing behind the path"
        raise RefusedRequest(400, "query", "this query is not known here", "query", fix)


def _query(request: Request, known: Set[str], fix: str) -> dict[str, str]:
    """What stands behind the question mark, each once. Raises RefusedRequest 400."""
    found = request.query_params.multi_items()
    if len(dict(found)) < len(found) or not set(dict(found)) <= known:
        raise RefusedRequest(400, "query", "this query is not known here", "query", fix)
    return dict(found)


def form(request: Request) -> str:
    """In which of FORMS the answer goes: the one that is wanted most, JSON where none is named. Raises RefusedRequest
    400 where it cannot be made, before anything is paid."""
    wanted = []
    for place, part in enumerate(",".join(request.headers.getlist("accept")).split(",")):
        kind, *parameters = (one.strip().lower() for one in part.split(";"))
        weights = [one.removeprefix("q=") for one in parameters if one.startswith("q=")]
        if kind in FORMS:
            wanted.append((-_weight(weights[0]) if weights else -1.0, place, kind))
    chosen = min(wanted)[2] if wanted else JSON
    if chosen == ARROW and find_spec("pyarrow") is None:
        raise RefusedRequest(
            400, "extra", "this needs pyarrow", "Accept", f"take {JSON} or {CSV}; or the owner installs it"
        )
    return chosen


def _weight(text: str) -> float:
    return float(text) if re.fullmatch(r"[01](\.\d{1,3})?", text) else 0.0
