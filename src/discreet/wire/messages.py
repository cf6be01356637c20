"""The messages of the protocol of PostgreSQL, version 3.0: those of clients are read, those of a server written.

What is read is bounded by `line` before it gets here. A message is taken whole, or not: lengths that do not fit, bytes
that are left over and texts that are not UTF-8 are errors of the one who sent them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.wire.refusals import Trouble

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
PROTOCOL = 3 << 16
TEXT, BINARY = 0, 1


class Body:
    """A message's content, read from its beginning. Raises Trouble 08P01 where it is not as it must be."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, length: int) -> bytes:
        """So many bytes more. Raises Trouble 08P01 where there are fewer."""
        if not 0 <= length <= len(self._content) - self._at:
            raise broken()
        self._at += length
        return self._content[self._at - length : self._at]

    def again(self) -> None:
        """Reads it from its beginning once more."""
        self._at = 0

    def int16(self) -> int:
        """A whole number of two bytes with its sign, the highest byte first."""
        (number,) = struct.unpack("!h", self.take(2))
        return int(number)

    def int32(self) -> int:
        """A whole number of four bytes with its sign, the highest byte first."""
        (number,) = struct.unpack("!i", self.take(4))
        return int(number)

    def count(self) -> int:
        """How many of something follow."""
        number = self.int16()
        if number < 0:
            raise broken()
        return number

    def text(self) -> str:
        """A text that ends with a zero byte."""
        end = self._content.find(b"\0", self._at)
        if end < 0:
            raise broken()
        content = self.take(end - self._at)
        self._at += 1
        return utf8(content)

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(len(self._content) - self._at)

    def end(self) -> None:
        """Raises Trouble 08P01 where something is left."""
        if self._at != len(self._content):
            raise broken()


def utf8(content: bytes) -> str:
    """Raises Trouble where it is no UTF-8, or has a zero byte in it."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Trouble("22021", "a text is not in UTF-8", hint="set the client's encoding to UTF8")
    return text


def broken() -> Trouble:
    """The error for a message that is not as it must be; it ends the connection."""
    return Trouble("08P01", "this message is not as the protocol has it", fatal=True)


@dataclass(frozen=True)
class Startup:
    """How a connection begins: the version, and the parameters that follow it."""

    minor: int
    parameters: Mapping[str, str]


def startup(body: Body) -> Startup:
    """Raises Trouble where it is no beginning of version 3."""
    version = body.int32()
    if version >> 16 != 3:
        raise Trouble("0A000", "this version of the protocol is not spoken here", fatal=True)
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    body.end()
    return Startup(version & 0xFFFF, parameters)


@dataclass(frozen=True)
class Parse:
    """A statement to prepare, with the types of its parameters as far as they are named."""

    name: str
    text: str
    types: Sequence[int]


def parse(body: Body) -> Parse:
    """A Parse message. Raises Trouble 08P01 where it is not as it must be."""
    name, text = body.text(), body.text()
    types = [body.int32() & 0xFFFFFFFF for _ in range(body.count())]
    body.end()
    return Parse(name, text, types)


@dataclass(frozen=True)
class Bind:
    """A prepared statement with values for its parameters; `formats` are one for each, or one, or none."""

    portal: str
    statement: str
    formats: Sequence[int]
    values: Sequence[bytes | None]
    results: Sequence[int]


def bind(body: Body) -> Bind:
    """A Bind message. Raises Trouble 08P01 where it is not as it must be, and where its formats are neither none, nor
    one, nor one for each value."""
    portal, statement = body.text(), body.text()
    formats = _formats(body)
    values: list[bytes | None] = []
    for _ in range(body.count()):
        length = body.int32()
        values.append(None if length == -1 else body.take(length))
    results = _formats(body)
    body.end()
    if len(formats) not in (0, 1, len(values)):
        raise broken()
    return Bind(portal, statement, formats, values, results)


def _formats(body: Body) -> list[int]:
    formats = [body.int16() for _ in range(body.count())]
    if not set(formats) <= {TEXT, BINARY}:
        raise broken()
    return formats


def named(body: Body) -> tuple[str, str]:
    """What Describe and Close name: "S" a statement or "P" a portal, and its name."""
    kind, name = body.take(1), body.text()
    body.end()
    if kind not in (b"S", b"P"):
        raise broken()
    return kind.decode(), name


def execute(body: Body) -> tuple[str, int]:
    """A portal, and how many rows are wanted at most; 0 is all."""
    portal, most = body.text(), body.int32()
    body.end()
    return portal, max(0, most)


def format_of(formats: Sequence[int], place: int) -> int:
    """The format of one, where there are formats of all, one for all, or none. Raises Trouble where there are less."""
    if 1 < len(formats) <= place:
        raise Trouble("08P01", f"there are {len(formats)} formats, and more columns")
    return formats[place] if len(formats) > 1 else formats[0] if formats else TEXT


# those of a server


def message(kind: bytes, content: bytes = b"") -> bytes:
    """One message: its kind, the length of what follows, itself included, and the content."""
    return kind + struct.pack("!i", len(content) + 4) + content


def zero_ended(text: str) -> bytes:
    """A text in UTF-8 with a zero byte behind it; those within it are left out."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication(number: int, content: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", number) + content)


def parameter(name: str, value: str) -> bytes:
    return message(b"S", zero_ended(name) + zero_ended(value))


def ready(status: str) -> bytes:
    return message(b"Z", status.encode())


def row_description(columns: Sequence[tuple[str, int, int]], formats: Sequence[int]) -> bytes:
    """Columns by name, type and the type's size."""
    parts = [struct.pack("!h", len(columns))]
    for place, (name, oid, size) in enumerate(columns):
        parts.append(zero_ended(name) + struct.pack("!ihIhih", 0, 0, oid, size, -1, format_of(formats, place)))
    return message(b"T", b"".join(parts))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row: the bytes of each value behind their length, which is −1 for NULL."""
    parts = [struct.pack("!h", len(values))]
    for value in values:
        parts.append(b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value)
    return message(b"D", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!h{len(types)}I", len(types), *types))


def complete(tag: str) -> bytes:
    return message(b"C", zero_ended(tag))


def negotiated(options: Sequence[str]) -> bytes:
    """That 3.0 is spoken, and which options of the protocol are not known."""
    return message(b"v", struct.pack("!ii", PROTOCOL, len(options)) + b"".join(map(zero_ended, options)))


def copy_out(columns: int, form: int) -> bytes:
    """That rows follow as COPY gives them, all columns in this format."""
    return message(b"H", struct.pack(f"!bh{columns}h", form, columns, *(form for _ in range(columns))))


def said(kind: bytes, severity: str, trouble: Trouble) -> bytes:
    """An error (b"E") or a notice (b"N")."""
    fields = {"S": severity, "V": severity, "C": trouble.code, "M": trouble.message}
    fields |= {"D": trouble.detail, "H": trouble.hint}
    written = (name.encode() + zero_ended(text) for name, text in fields.items() if text)
    return message(kind, b"".join(written) + b"\0")


PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY, SUSPENDED, COPIED = message(b"n"), message(b"I"), message(b"s"), message(b"c")
