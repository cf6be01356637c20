"""COPY (SELECT …) TO STDOUT: an answer as text, as CSV, or in binary."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from discreet.wire import messages
from discreet.wire.refusals import Trouble
from discreet.wire.results import StatementResult
from discreet.wire.values import copied, encoded

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_MARKS = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def check(options: Mapping[str, str]) -> None:
    """Raises Trouble on options that are not known: before anything is asked, and charged."""
    if _format(options) not in ("text", "csv", "binary") or not set(options) <= {"FORMAT", "HEADER", "ENCODING"}:
        raise Trouble("0A000", "these options of COPY are not known here", hint="write (FORMAT csv, HEADER)")


def _format(options: Mapping[str, str]) -> str:
    return options.get("FORMAT", "text").lower()


def copy_rows(result: StatementResult, options: Mapping[str, str]) -> StatementResult:
    """A question's result as COPY sends it."""
    assert result.columns is not None
    form = _format(options)
    header = options.get("HEADER", "off").lower() in ("on", "true", "1", "match")
    oids = [one.oid for one in result.columns]
    names = [one.name for one in result.columns]
    pieces: list[bytes] = []
    if form == "binary":
        for row in result.rows:
            fields = [encoded(oid, one, messages.BINARY) for oid, one in zip(oids, row, strict=True)]
            pieces.append(struct.pack("!h", len(fields)) + b"".join(map(_sized, fields)))
        pieces.append(b"\xff\xff")
        pieces[0] = _HEAD + pieces[0]  # clients look for it before the first row
    else:
        write = _csv if form == "csv" else _text
        pieces += [write(names)] if header else []
        pieces += [write([copied(oid, one) for oid, one in zip(oids, row, strict=True)]) for row in result.rows]
    how = messages.BINARY if form == "binary" else messages.TEXT
    return replace(result, tag=f"COPY {len(result.rows)}", copied=pieces, copy_format=how)


def _sized(content: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if content is None else struct.pack("!i", len(content)) + content


def _text(row: Sequence[str | None]) -> bytes:
    line = "\t".join("\\N" if one is None else one.translate(_MARKS) for one in row)
    return f"{line}\n".encode("utf-8", "replace")


def _csv(row: Sequence[str | None]) -> bytes:
    """A line, in which nothing at all is NULL, and a text without letters stands between quotes."""
    line = ",".join("" if one is None else _quoted(one) for one in row)
    return f"{line}\n".encode("utf-8", "replace")


def _quoted(text: str) -> str:
    if text and not any(one in text for one in ',"\r\n') and text != "\\.":
        return text
    return '"' + text.replace('"', '""') + '"'
