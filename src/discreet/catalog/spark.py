"""A Spark server and its tables, as a declaration names them: `remote = "sc://host:15002"`, `source =
"spark::schema.table"`.

No token stands in a declaration, which is copied, shown and kept with others. Nothing that is refused here is quoted:
what stands in the wrong place may be one.
"""

from __future__ import annotations

import re

from discreet.errors import Fault
from discreet.trusted.ring_a.table import Source, SourceKind

TOKEN = "DISCREET_SPARK_TOKEN"
"""The variable of the environment in which the server's token stands, where it asks for one."""

_REMOTE = re.compile(r"sc://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})(/;?(.*))?", re.DOTALL)
_SETTING = re.compile(r"(use_ssl)=(true|false)|(user_id)=[A-Za-z0-9._@-]{1,64}")
_NAMED = re.compile(r"[^\s.`\x00-\x1f]+")
_EXAMPLE = 'write remote = "sc://host:15002"'


def remote(where: str, raw: object) -> str | Fault:
    """The server that a declaration names, or what is wrong with it."""
    if raw is None:
        return Fault(where, "it is missing", _EXAMPLE)
    found = _REMOTE.fullmatch(raw) if isinstance(raw, str) else None
    if found is None or int(found[2]) > 65_535:
        return Fault(where, "it is no address of a Spark Connect server", _EXAMPLE)
    settings = [one for one in (found[4] or "").split(";") if one]
    if any(one.partition("=")[0].strip().casefold() in ("token", "password") for one in settings):
        return Fault(where, "a token stands in it", f"take it out; the environment has it ({TOKEN})")
    if not all(_SETTING.fullmatch(one) for one in settings):
        return Fault(
            where, "something behind its / is not known here", "write use_ssl=true or user_id=name, or nothing"
        )
    return f"sc://{found[1]}:{found[2]}/" + "".join(f";{one}" for one in settings)


def source(where: str, text: str) -> Source | Fault:
    """The table of the catalog that a source names, or what is wrong with it."""
    names = text.removeprefix(f"{SourceKind.SPARK}::").split(".")
    if len(names) > 3 or not all(_NAMED.fullmatch(name) for name in names):
        return Fault(where, "it does not name a table of Spark's catalog", 'write source = "spark::schema.table"')
    return Source(SourceKind.SPARK, server="spark", relation=".".join(names))
