"""One report: what leaves the device, and nothing else does."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import QuestionError
from discreet.local.collection import Collection
from discreet.local.draws import Remembered, below
from discreet.trusted.ring_a.bits import Words

LARGEST = 8_192
"""Bytes of a report as JSON, at most."""

_TOKEN, _LONGEST = re.compile(r"[0-9a-f]{32}"), 100


@dataclass(frozen=True)
class Report:
    """A randomised answer. `part` says what it is about (`Collection.parts`), `report` is the channel's output.

    `token` is one of the respondent's for this window: the collector counts it once, and tokens of two windows, or of
    two reports of one window, cannot be told from those of two respondents.
    """

    collection: str
    window: str
    token: str
    part: int
    report: int
    public: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Gives the report as plain values, as JSON has them."""
        sent: dict[str, Any] = {"collection": self.collection, "window": self.window, "token": self.token}
        sent |= {"part": self.part, "report": self.report}
        return sent | ({"public": dict(sorted(self.public.items()))} if self.public else {})

    def to_json(self) -> str:
        """Writes the report as the JSON that a collector takes."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Reads the report that `to_json` wrote. Raises QuestionError on what is no report."""
        try:
            if len(text) > LARGEST:
                raise ValueError
            document = json.loads(text)
            return cls.of(document)
        except (ValueError, TypeError, RecursionError):
            raise refused("this is not a valid report", "send what Client.report gives") from None

    @classmethod
    def of(cls, document: object) -> Report:
        """Reads the report that a JSON object describes. Raises QuestionError."""
        if not isinstance(document, dict) or not set(document) <= {*cls.__dataclass_fields__}:
            raise refused("this is not a valid report", "send what Client.report gives")
        texts = [document.get(name) for name in ("collection", "window", "token")]
        numbers = [document.get(name) for name in ("part", "report")]
        public = document.get("public", {})
        if not (
            all(isinstance(one, str) for one in texts)
            and all(isinstance(one, int) and not isinstance(one, bool) for one in numbers)
            and isinstance(public, dict)
        ):
            raise refused("this is not a valid report", "send what Client.report gives")
        return cls(**document)


def refused(message: str, fix: str) -> QuestionError:
    """A report that cannot be one of the collection's. What it holds is not quoted."""
    return QuestionError("report", message, where="report", fix=fix)


def check(collection: Collection, report: Report) -> None:
    """Raises QuestionError where no client of the collection can have made the report."""
    if report.collection != collection.hash:
        raise refused("the report belongs to another collection", "send it to the collector of its collection")
    if not _TOKEN.fullmatch(report.token) or not collection.is_window(report.window):
        raise refused("its token or window is not valid", "send what Client.report gives")
    if not 0 <= report.part < len(collection.parts):
        raise refused("its part is not in the collection", "send what Client.report gives")
    if not 0 <= report.report < collection.parts[report.part][1].channel.outputs:
        raise refused("this is not a valid report of its part", "send what Client.report gives")
    public_of(collection, report.public)


def public_of(collection: Collection, public: Mapping[str, str]) -> dict[str, str]:
    """The public attributes, all that the collection names. Raises QuestionError."""
    if not isinstance(public, Mapping) or set(public) != set(collection.public):
        named = ", ".join(collection.public) or "none"
        raise refused("public attributes are missing, or not the collection's", f"send exactly these: {named}")
    for value in public.values():
        if not isinstance(value, str) or len(value) > _LONGEST or any("\ud800" <= one <= "\udfff" for one in value):
            raise refused(f"a public attribute is a text of at most {_LONGEST} characters", "shorten it")
    return dict(public)


def randomised(
    collection: Collection, secret: bytes, window: str, value: object, words: Words, turn: int = 0
) -> tuple[str, int, int]:
    """(token, part, report) of a respondent with this secret. Raises QuestionError where the value is no answer.

    Which part it is about depends on secret and window alone. The remembered report is drawn from a stream that secret,
    window, part and answer decide: the same answer gives the same report. Where the collection randomises again, that
    is drawn from `words`, for the report number `turn` of the window.
    """

    def message(*fields: str) -> bytes:
        return "\n".join((fields[0], collection.hash, window, *fields[1:])).encode("utf-8")

    choice = Remembered(secret, message("part"))
    place = below(choice, len(collection.attributes))
    attribute = collection.attributes[place]
    level = below(choice, len(attribute.parts))
    answer = value
    if len(collection.attributes) > 1 or attribute.name:
        answer = _attributes(collection, value)[attribute.name]
    part, number = attribute.parts[level], collection.starts[place] + level
    code = attribute.answer.code(answer)
    if isinstance(code, bytes):
        prefix = code[: part.size]
        known, at = prefix.hex(), fingerprint(prefix)
    else:
        at = code // part.size
        known = str(at)
    report = part.channel.draw(at, Remembered(secret, message("answer", str(number), known)))
    again = collection.again(part)
    if again is not None:
        report = again.draw(report, words)
    token = hmac.digest(secret, message("token", str(turn)), "sha256")[:16].hex()
    return token, number, report


def _attributes(collection: Collection, value: object) -> Mapping[str, object]:
    """The record, once all of it is an answer: whether one is refused does not depend on what is drawn."""
    names = [one.name for one in collection.attributes]
    if not isinstance(value, Mapping) or set(value) != set(names):
        fix = f"answer with exactly these attributes: {', '.join(names)}"
        raise QuestionError("value", "this is not a valid record of the collection", where="value", fix=fix)
    for one in collection.attributes:
        one.answer.code(value[one.name])
    return value


def fingerprint(prefix: bytes) -> int:
    """64 bits of SHA-256, by which local hashing knows a text."""
    return int.from_bytes(hashlib.sha256(prefix).digest()[:8], "big")
