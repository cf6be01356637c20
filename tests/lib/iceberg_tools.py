"""Iceberg tables of a test's own, written by pyiceberg; what that does not write, deleted positions and values, is made
from its files by hand."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table


def catalog(folder: Path) -> SqlCatalog:
    """A catalog in memory, of tables below a folder."""
    made = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    made.create_namespace("n")
    return made


def plain(name: str) -> Path:
    return Path(name.removeprefix("file://"))


def version(table: Table) -> int:
    """The id of the newest snapshot."""
    found = table.current_snapshot()
    assert found is not None
    return found.snapshot_id


def data_files(table: Table) -> list[str]:
    """The names of the files that hold the newest snapshot's rows."""
    return sorted(task.file.file_path for task in table.scan().plan_files())


def without(made: SqlCatalog, table: Table, rows: Mapping[str, Sequence[int]], content: int = 1, **more: Any) -> Table:
    """The table after rows at these positions of files were deleted: in a file of deletes beside those of rows.
    `content` 2 says that they were deleted by value; what else the entry of the file says is `more`."""
    name = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    gone = sorted((file, position) for file, some in rows.items() for position in some)
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    arrays = [pa.array([file for file, _ in gone], pa.string()), pa.array([at for _, at in gone], pa.int64())]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), plain(name))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    listed, list_schema, list_facts = avro(plain(snapshot.manifest_list))
    entries, schema_of_entries, facts = avro(plain(listed[0]["manifest_path"]))
    number, new = table.metadata.last_sequence_number + 1, uuid.uuid4().int >> 66
    entry = entries[0] | {"status": 1, "snapshot_id": new, "sequence_number": None, "file_sequence_number": None}
    emptied = {key: None for key in entry["data_file"] if key.endswith(("counts", "sizes", "bounds", "offsets"))}
    entry["data_file"] |= emptied | {"content": content, "file_path": name, "record_count": len(gone)} | more
    entry["data_file"]["equality_ids"] = [1] if content == 2 else None
    manifest = plain(f"{table.location()}/metadata/{uuid.uuid4()}-m0.avro")
    write_avro(manifest, [entry], schema_of_entries, facts | {"content": "deletes"})
    added = listed[0] | {
        "manifest_path": f"file://{manifest}",
        "manifest_length": manifest.stat().st_size,
        "content": 1,
    }
    added |= {
        "content": 1,
        "sequence_number": number,
        "min_sequence_number": number,
        "added_snapshot_id": new,
        "partitions": None,
    }
    list_name = f"{table.location()}/metadata/snap-{new}.avro"
    write_avro(plain(list_name), [*listed, added], list_schema, list_facts)
    metadata = json.loads(plain(table.metadata_location).read_text("utf-8"))
    metadata["snapshots"].append(
        {
            "snapshot-id": new,
            "parent-snapshot-id": snapshot.snapshot_id,
            "sequence-number": number,
            "timestamp-ms": metadata["last-updated-ms"],
            "manifest-list": list_name,
            "summary": {"operation": "delete"},
            "schema-id": metadata["current-schema-id"],
        }
    )
    metadata |= {"current-snapshot-id": new, "last-sequence-number": number}
    metadata["refs"]["main"]["snapshot-id"] = new
    return registered(made, table, metadata)


def registered(made: SqlCatalog, table: Table, metadata: Mapping[str, Any]) -> Table:
    """The table with other metadata, as its newest."""
    before = plain(table.metadata_location)
    after = before.with_name(f"{int(before.name.partition('-')[0]) + 1:05d}-{uuid.uuid4()}.metadata.json")
    after.write_text(json.dumps(metadata), "utf-8")
    made.drop_table("n.t")
    return made.register_table("n.t", f"file://{after}")


def avro(path: Path) -> tuple[list[Any], Any, dict[str, str]]:
    """What an Avro file holds, its schema, and what it says of itself."""
    with path.open("rb") as file:
        read = fastavro.reader(file)
        facts = dict(read.metadata)
        return list(read), json.loads(facts.pop("avro.schema")), {**facts, "avro.codec": "deflate"}


def write_avro(path: Path, records: Sequence[Any], schema: Any, facts: Mapping[str, str]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec="deflate", metadata=dict(facts))
