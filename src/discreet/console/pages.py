"""What a page is: plain data, and a template that shows them. The same data are what programs get as JSON.

Whatever a template puts in is escaped, and made visible where it would steer the reader's eyes (`texts.visible`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from discreet.ledger.words import LONGEST_REASON
from discreet.look import style
from discreet.look.headers import HEADERS
from discreet.release.values import up
from discreet.texts import visible

JSON, HTML = "application/json", "text/html"

_STATIC = {"style.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8"}
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b5394"/>'
    '<path d="M3 12V8m5 4V4m5 8V6" stroke="#fff" stroke-width="2"/></svg>'
)


def wants_json(request: Request) -> bool:
    """Whether the reader is a program: it says so, or has a bearer token and does not ask for a page."""
    wanted = ",".join(request.headers.getlist("accept")).lower()
    return HTML not in wanted and (JSON in wanted or "authorization" in request.headers)


def rendered(template: str, words: Mapping[str, Any], package: str = "discreet.console") -> str:
    """A page as HTML, of a package's templates; what it does not have is the console's."""
    text: str = _templates(package).get_template(template).render(words)
    return text


def replied(
    content: str | bytes, kind: str = HTML, status: int = 200, more: Mapping[str, str] | None = None
) -> Response:
    """A reply with all headers of a page."""
    whole = content.encode("utf-8", "replace") if isinstance(content, str) else content
    kind = f"{kind}; charset=utf-8" if kind == HTML else kind
    return Response(whole, status, media_type=kind, headers={**HEADERS, "vary": "accept, cookie", **(more or {})})


def as_json(plain: Any) -> str:
    """Plain values as JSON."""
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


@cache
def static(name: str) -> tuple[bytes, str] | None:
    """A file that all pages share, and its kind; None where there is none of this name."""
    if name == "icon.svg":
        return _ICON.encode(), "image/svg+xml"
    if name == "style.css":
        return style().encode(), _STATIC[name]
    if name in _STATIC:
        return (files("discreet.console") / name).read_bytes(), _STATIC[name]
    return None


@cache
def address(name: str) -> str:
    """Where a shared file lies: another address once it is another file, so that browsers may keep it."""
    found = static(name)
    assert found is not None
    return f"/console/static/{name}?{hashlib.sha256(found[0]).hexdigest()[:12]}"


def kept_lines(text: str) -> Markup:
    """A text with its line breaks and tabs, for a field in which it is edited."""
    return escape("".join(part if part in "\t\n" else visible(part) for part in re.split(r"([\t\n])", text)))


def number(value: float | int | None, digits: int = 3) -> str:
    """A number for people, to so many digits; "any" where nothing is known."""
    if value is None:
        return "—"
    if abs(value) > 1e300:
        return "any"
    if value == 0 or (abs(value) >= 10 ** (digits - 1) and abs(value) < 1e15):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def risen(value: float, digits: int = 3) -> float:
    """A bound as it is shown with so many digits: rounded up."""
    return up(value, max(0, digits - 1 - math.floor(math.log10(value)))) if 0 < value < 1e300 else value


def bound(value: Any) -> str:
    """A declared end of a range."""
    if value is None:
        return "any"
    return f"{value:,.0f}" if isinstance(value, float) and value == int(value) and abs(value) < 1e15 else str(value)


def begun(text: str) -> str:
    """A sentence with its first letter large."""
    return text[:1].upper() + text[1:]


def moment(text: str) -> str:
    """A moment of the ledger, in UTC."""
    return text.replace("T", " ").removesuffix("Z")


def after_left(text: str) -> str:
    """What is left, where a heading says that already: "left for ana: either …"."""
    head, colon, rest = text.partition(": ")
    return rest if colon and head.startswith("left") else text


def percent(value: float) -> str:
    """A part in percent: never shown as smaller than it is where it is small; "any" where nothing is known."""
    if value > 1e300:
        return "any"
    return "0 %" if value == 0 else f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def today() -> str:
    """This day, in UTC."""
    return datetime.now(UTC).date().isoformat()


def duration(seconds: float) -> str:
    """How long something takes, about."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


@cache
def _templates(package: str) -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    def shown(value: Any) -> Any:
        """What is put into a page: text that somebody may have written, with nothing hidden in it."""
        if value is None:
            return ""
        return value if isinstance(value, Markup) else visible(str(value))

    made = Environment(
        loader=ChoiceLoader([PackageLoader(one) for one in dict.fromkeys((package, "discreet.console"))]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shapes: dict[str, Callable[..., Any]] = {
        "number": number,
        "percent": percent,
        "risen": risen,
        "bound": bound,
        "begun": begun,
        "moment": moment,
        "after_left": after_left,
        "duration": duration,
        "kept_lines": kept_lines,
    }
    made.filters |= shapes
    made.globals |= {"address": address, "longest_reason": LONGEST_REASON, "today": today}
    return made
