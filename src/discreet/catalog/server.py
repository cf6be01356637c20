"""A table on a PostgreSQL server, as a declaration names it: `postgresql://host:5432/database::schema.table`; and a
ledger there: `postgresql://host:5432/database::schema`.

No password stands in a declaration, which is copied, shown and kept with others. Nothing that is refused here is
quoted: what stands in the wrong place may be one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from discreet.errors import Fault
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.ring_a.table import Source, SourceKind

SETTINGS = frozenset(
    {
        *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "connect_timeout"),
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "channel_binding", "require_auth"),
        *("gssencmode", "krbsrvname", "target_session_attrs"),
    }
)
"""What may stand behind `?`: where the server is and how the connection is protected."""

_SCHEMES = ("postgresql://", "postgres://")
_WHERE = re.compile(
    r"([^:@/\s]+@)?([^:@/\s\[\]]*|\[[0-9A-Fa-f:.%]+\])(:[0-9]*)?(,([^:@/\s\[\]]*|\[[0-9A-Fa-f:.%]+\])(:[0-9]*)?)*"
)
_NAMED = re.compile(r"[^\s.\x00-\x1f]+([^.\x00-\x1f]*[^\s.\x00-\x1f])?")
_EXAMPLE = 'write source = "postgresql://host:5432/database::schema.table"'
_LEDGER = 'write ledger = "postgresql://host:5432/database::schema", a schema with nothing else in it'
_PASSWORD = (
    "take it out; the environment has it (PGPASSWORD, PGPASSFILE), or ~/.pgpass, or a service: "
    "postgresql:///?service=NAME::schema.table"
)


def is_server(text: str) -> bool:
    """Whether a source is meant to be on a server."""
    return "://" in text or text.casefold().startswith(("postgres:", "postgresql:"))


def server(where: str, text: str) -> Source | Fault:
    """The source that a text names, or what is wrong with it."""
    url, separator, table = text.rpartition("::")
    scheme = next((one for one in _SCHEMES if text.casefold().startswith(one)), None)
    if scheme is None:
        return Fault(where, "of servers, PostgreSQL's can be read", _EXAMPLE)
    rest = url[len(scheme) :] if separator else text[len(scheme) :]
    if ":" in rest.rpartition("@")[0].rpartition("/")[2]:
        return Fault(where, "a password stands in it", _PASSWORD)
    try:
        parts = urlsplit(f"postgresql://{rest}")
        settings = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), errors="strict")
    except ValueError:
        return Fault(where, "it is no URL of a server", _EXAMPLE)
    if any("password" in name.casefold() for name, _ in settings):
        return Fault(where, "a password stands in it", _PASSWORD)
    if _hides(parts.netloc, [("dbname", parts.path.removeprefix("/")), *settings]):
        return Fault(where, "a password may stand in it", _PASSWORD)
    unknown = [name for name, _ in settings if name not in SETTINGS]
    if unknown:
        return Fault(where, "something behind its ? is not known here", f"write one of {', '.join(sorted(SETTINGS))}")
    path = parts.path.removeprefix("/")
    plain = _WHERE.fullmatch(parts.netloc) and not parts.fragment and not re.search(r"[/@\s\x00-\x1f]", path)
    if not plain or "\x00" in unquote(rest):
        return Fault(where, "it is no URL of a server", _EXAMPLE)
    names = table.split(".")
    if not separator or len(names) > 2 or not all(_NAMED.fullmatch(name) for name in names):
        return Fault(where, "it does not name a table of the server", _EXAMPLE)
    relation = table if len(names) == 2 else f"public.{table}"
    return Source(SourceKind.POSTGRESQL, server=f"postgresql://{rest}", relation=relation)


def ledger(text: str, beside: Path) -> Place | Fault:
    """The ledger's place that a text names, its note beside this file, or what is wrong with it."""
    found = server("ledger", text)
    schema = text.rpartition("::")[2]
    if isinstance(found, Fault):
        fix = found.fix.replace(_EXAMPLE, _LEDGER).removesuffix("::schema.table")
        return Fault("ledger", found.message.replace("a table of", "a schema of"), fix)
    if "." in schema or schema.startswith("pg_") or schema in ("public", "information_schema"):
        return Fault("ledger", "it does not name a schema of its own", _LEDGER)
    assert found.server is not None
    return Place(found.server, schema, beside)


def _hides(where: str, settings: Sequence[tuple[str, str]]) -> bool:
    """Whether a user, host, database or service, however it is encoded, may have a password in it: `user:password`, or
    `name password=…`, which the client's library reads as settings of their own."""
    user, _, hosts = re.sub(r"\[[^\]]*\]", "", where).rpartition("@")
    found = [("user", user), *(("dbname", re.sub(r":[0-9]*$", "", host)) for host in hosts.split(",")), *settings]
    for name, value in found:
        if name in ("user", "dbname", "host", "service"):
            plain = _decoded(value).casefold()
            address = name == "host" and re.fullmatch(r"[0-9a-f:.,]*(%[0-9a-z.]+)?", plain)
            if "=" in plain or "password" in plain or (":" in plain and not address):
                return True
    return False


def _decoded(text: str) -> str:
    """A text in which nothing is encoded any more, were it encoded twice."""
    while (plain := unquote(text)) != text:
        text = plain
    return text
