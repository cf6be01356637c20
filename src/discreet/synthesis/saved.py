"""A published table or several, read from the .json that they were saved as."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import QuestionError
from discreet.release.told import heard
from discreet.synthesis.packed import pack
from discreet.synthesis.synthetic import Synthetic
from discreet.synthesis.synthetic_tables import SyntheticTables


def published(path: str | Path) -> Synthetic | SyntheticTables:
    """Reads what `release.save("made.json")` has written of a published table, or of several: rows and bounds.

    Nothing is asked and no ledger is needed. Raises QuestionError where the file holds nothing of the kind, and
    LedgerError where a newer version has written it.
    """
    try:
        plain = _of_part(json.loads(Path(path).read_text("utf-8")))
        if "tables" in plain:
            tables = {name: _packed(one) for name, one in plain["tables"].items()}
            several = SyntheticTables.of(heard({**plain, "tables": tables, "notes": ()}))
            return several if all(map(_whole, several.tables.values())) else _none(path)
        single = Synthetic.of(heard({**_packed(plain), "notes": ()}))
        return single if _whole(single) else _none(path)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise QuestionError("source", message, where="path", fix="name a file that release.save has written") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return _none(path)


def _whole(one: Synthetic) -> bool:
    """Whether all is there that a table is asked with: rows, each value of its type, and sound bounds."""
    return len(one.rows) == len(one) and one.known.sound and set(one.holds.types) >= set(one.columns)


def _none(path: str | Path) -> Synthetic:
    fix = 'write it with release.save("made.json") of a published table'
    if not str(path).lower().endswith(".json"):
        fix += ", and name that: of all files that it can be saved as, the .json alone can be read back"
    raise QuestionError("source", f"{path} holds no published table", where="path", fix=fix)


def _of_part(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the part as a field, where an earlier version wrote it among the bounds alone; of several, into each."""
    lines = [one for one in plain["bounds"] if re.fullmatch("of the part .+ alone", one, re.DOTALL)]
    if not lines or "part" in plain:
        return plain
    part = lines[-1].removeprefix("of the part ").removesuffix(" alone")
    if "tables" not in plain:
        return {**plain, "part": part}
    tables = {
        name: {**one, "bounds": list(dict.fromkeys([*one["bounds"], lines[-1]])), "part": part}
        for name, one in plain["tables"].items()
    }
    return {**plain, "tables": tables, "part": part}


def _packed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a table as a release holds them."""
    rows = plain["rows"]
    return {**plain, "rows": (), "table": {name: _column([row[name] for row in rows]) for name in plain["columns"]}}


def _column(values: Sequence[Any]) -> dict[str, Any]:
    distinct = [one for one in dict.fromkeys(values) if one is not None]
    "".join(one for one in distinct if isinstance(one, str)).encode()  # no text has half a character
    places = {value: place for place, value in enumerate(distinct)}
    return {"values": distinct, "places": pack(np.array([places.get(one, len(distinct)) for one in values], np.int64))}
