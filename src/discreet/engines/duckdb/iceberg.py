"""A snapshot of an Iceberg table in a folder. Its metadata says which Parquet files are in it; DuckDB reads them.

The declared folder alone decides: no catalog, setting or environment is asked, and no file is read that lies elsewhere.
What the metadata calls below the table's own place is looked up below the folder, wherever it was copied to. What may
be read otherwise than its writer meant is refused.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.catalog.formats import words_of
from discreet.engines.answers import told_apart
from discreet.engines.child import UnreadableSource
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Source

REASONS = {
    "table": ("it is no Iceberg table", "name the folder in which the folder metadata lies"),
    "snapshot": ("it has no snapshot with this id", "write the id of a snapshot that has not expired"),
    "format": ("this version of the format of Iceberg is not read", "write its rows to a table of version 2"),
    "schema": ("it does not say which columns this snapshot has", "write its rows to a table of version 2"),
    "equality": ("rows were deleted by their values, which is not read", "compact it, and name the new snapshot"),
    "kind": ("not all of its files are Parquet", "write them anew as Parquet, and name the new snapshot"),
    "foreign": ("some files state no ids of columns, or lack one", "write them anew, and name the new snapshot"),
    "elsewhere": ("some of its files lie outside the folder", "write them anew, and name the new snapshot"),
}
"""What the child says of a table, and what its owner reads."""

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
}
_DELETED, _ADDED = 2, 1
_ROWS, _POSITIONS, _VALUES = 0, 1, 2


def refusal(source: Source, word: str) -> DeclarationError:
    """What the owner reads where a table is not read."""
    message, fix = REASONS[word]
    return DeclarationError([Fault("source", f"{words_of(source)}: {message}", fix)], code="unreadable")


@dataclass(frozen=True)
class _DataFile:
    """A file of rows, or of positions of deleted rows: its name in the table, where it lies, and its place in the
    order of changes. `keys` are the ids of the columns that its folder's name may hold instead of the file."""

    name: str
    path: str
    number: int
    keys: frozenset[int]


class IcebergTable:
    """A snapshot of the table in a folder. `names` are those of its columns that hold single values."""

    def __init__(self, folder: str, version: int) -> None:
        self._folder = Path(folder)
        self._metadata = _metadata(self._folder, version)
        if self._metadata["format-version"] not in (1, 2):
            raise UnreadableSource("format")
        (self._snapshot,) = (one for one in self._metadata["snapshots"] if one["snapshot-id"] == version)
        self._columns: list[tuple[int, str]] = []
        self.names: list[str] = []
        for column in _schema(self._metadata, self._snapshot)["fields"]:
            if (kind := _type(column["type"])) is not None:
                self._columns.append((column["id"], kind))
                self.names.append(column["name"])

    def empty(self) -> str:
        """A statement that has the table's columns, and no row."""
        columns = (
            f"CAST(NULL AS {kind}) AS {name}" for (_, kind), name in zip(self._columns, self._named, strict=True)
        )
        return f"SELECT {', '.join(columns)} WHERE false"

    def rows(self, ids: Callable[[list[str]], dict[str, set[int]]]) -> str:
        """A statement that reads the table's rows. `ids` tells, of files, which ids of columns each has."""
        data, deletes = self._files()
        if not data:
            if int((self._snapshot.get("summary") or {}).get("total-data-files", 0)):
                raise ValueError  # the list was cut before its first entry
            return self.empty()
        found = ids([file.path for file in data])
        for file in data:
            have = found[file.path]
            if not have or any(number in file.keys and number not in have for number, _ in self._columns):
                raise UnreadableSource("foreign")
        schema = (
            f"{number}: {{'name': 'c{number}', 'type': '{kind}', 'default_value': NULL}}"
            for number, kind in self._columns
        )
        columns = (f"r.c{number} AS {name}" for (number, _), name in zip(self._columns, self._named, strict=True))
        read = (
            f"read_parquet({paths([one.path for one in data])}, schema = MAP {{{', '.join(schema)}}}, "
            "hive_partitioning = false, filename = 'filename', file_row_number = true) AS r"
        )
        if deletes:
            read += f" ANTI JOIN ({_gone(data, deletes)}) AS gone"
            read += " ON gone.path = r.filename AND gone.pos = r.file_row_number"
        return f"SELECT {', '.join(columns)} FROM {read}"

    @property
    def _named(self) -> list[str]:
        return ['"' + name.replace('"', '""') + '"' for name in told_apart(self.names)]

    def _files(self) -> tuple[list[_DataFile], list[_DataFile]]:
        """The snapshot's files of rows, and those of positions of deleted rows. Where rows are deleted by their values
        too, it is refused; values that were deleted before all rows were written change nothing."""
        found: dict[int, list[_DataFile]] = {_ROWS: [], _POSITIONS: [], _VALUES: []}
        for manifest in _records(self._place(self._snapshot["manifest-list"])):
            path = self._place(manifest["manifest_path"])
            if path.stat().st_size != manifest["manifest_length"]:
                raise ValueError
            keys = self._keys(manifest["partition_spec_id"])
            for entry in _records(path):
                if entry["status"] == _DELETED:
                    continue
                file = entry["data_file"]
                content = found[file.get("content", _ROWS)]
                number = _number(entry, manifest)
                name = file["file_path"]
                if file["file_format"].upper() != "PARQUET" and content is not found[_VALUES]:
                    raise UnreadableSource("kind")
                content.append(_DataFile(name, str(self._place(name)), number, keys))
        oldest = min((file.number for file in found[_ROWS]), default=None)
        if oldest is not None and any(file.number > oldest for file in found[_VALUES]):
            raise UnreadableSource("equality")
        if not all(Path(file.path).is_file() for file in (*found[_ROWS], *found[_POSITIONS])):
            raise FileNotFoundError
        return found[_ROWS], found[_POSITIONS]

    def _keys(self, number: int) -> frozenset[int]:
        """The ids of the columns by which rows are put into folders as they are."""
        specs = self._metadata.get("partition-specs") or [{"spec-id": 0, "fields": self._metadata["partition-spec"]}]
        (spec,) = (one for one in specs if one["spec-id"] == number)
        return frozenset(field["source-id"] for field in spec["fields"] if field["transform"] == "identity")

    def _place(self, name: str) -> Path:
        """Where a file lies, by its name in the metadata. Raises UnreadableSource outside the folder."""
        name = _plain(name)
        for root in (_plain(self._metadata["location"]), str(self._folder)):
            rest = name.removeprefix(root.rstrip("/") + "/")
            if rest != name and ".." not in Path(rest).parts:
                return self._folder / rest
        raise UnreadableSource("elsewhere")


def paths(names: Sequence[str]) -> str:
    """A list of files as DuckDB's functions read it, whatever their names."""
    return _list([re.sub(r"([*?[])", r"[\1]", name) for name in names])


def _metadata(folder: Path, version: int) -> dict[str, Any]:
    """The newest of a table's metadata in which a snapshot is. What cannot be read is being written."""
    some = list(folder.glob("metadata/*.metadata.json*"))
    if not some:
        raise UnreadableSource("table")
    for path in sorted(some, key=_age, reverse=True):
        try:
            data = path.read_bytes()
            found = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
        except (OSError, EOFError, zlib.error, ValueError):
            continue
        if any(one["snapshot-id"] == version for one in found.get("snapshots") or ()):
            return dict(found)
    raise UnreadableSource("snapshot")


def _age(path: Path) -> tuple[int, str]:
    """The number in the name of a file of metadata: v12.metadata.json or 00012-….metadata.json."""
    number = re.match(r"v?(\d+)[-.]", path.name)
    return (int(number[1]) if number else -1, path.name)


def _schema(metadata: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]:
    """The columns of a snapshot, as they were when it was made."""
    schemas = metadata.get("schemas") or [metadata["schema"]]
    if (number := snapshot.get("schema-id")) is None:
        if len(schemas) > 1:
            raise UnreadableSource("schema")
        return dict(schemas[0])
    (schema,) = (one for one in schemas if one.get("schema-id", 0) == number)
    return dict(schema)


def _type(kind: Any) -> str | None:
    """DuckDB's type for one of Iceberg's; None for lists, maps and structures."""
    if not isinstance(kind, str):
        return None
    if decimal := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", kind):
        return f"DECIMAL({decimal[1]},{decimal[2]})"
    return "BLOB" if re.fullmatch(r"fixed\[\d+\]", kind) else _TYPES[kind]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """What an Avro file holds, one after another. Raises an error where it was cut."""
    from fastavro import reader

    with path.open("rb") as file:
        yield from reader(file)


def _number(entry: dict[str, Any], manifest: dict[str, Any]) -> int:
    """A file's place in the order of changes: its own, or that of the list in which it was added."""
    number = entry.get("sequence_number")
    if number is None:
        number = manifest.get("sequence_number") or 0
        if number and entry["status"] != _ADDED:
            raise ValueError
    return int(number)


def _plain(name: str) -> str:
    """A file's name without the scheme of local files."""
    return re.sub(r"^file:(//)?(?=/)", "", name)


def _gone(data: Sequence[_DataFile], deletes: Sequence[_DataFile]) -> str:
    """A statement for the positions of deleted rows, in the files where they lie: those deleted with or after them."""
    held = f"SELECT {_each([one.name for one in data])} AS name, {_each([one.path for one in data])} AS path, "
    held += f"unnest({[one.number for one in data]}) AS number"
    made = f"SELECT {_each([one.path for one in deletes])} AS path, unnest({[one.number for one in deletes]}) AS number"
    read = f"read_parquet({paths([one.path for one in deletes])}, hive_partitioning = false, filename = 'made_in')"
    return (
        f"SELECT held.path, d.pos FROM {read} AS d JOIN ({held}) AS held ON held.name = d.file_path "
        f"JOIN ({made}) AS made ON made.path = d.made_in WHERE made.number >= held.number"
    )


def _each(texts: Sequence[str]) -> str:
    return f"unnest({_list(texts)})"


def _list(texts: Sequence[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"
