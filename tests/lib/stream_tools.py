"""A declared stream in a folder, whose rows a test changes from day to day, and which it may look into."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import discreet
from discreet import Curator
from discreet.streams.stream import Stream
from discreet.trusted.ring_c.continual import Continuing
from discreet.trusted.ring_c.stream_state import State

START = datetime.date(2026, 1, 1)
Visit = tuple[Any, Any, Any]
"""A patient, the number of the day from the start on (or any text for the file), and a ward."""


def declaration(**said: Any) -> str:
    """The text of a declaration with one stream, `daily`; what is said replaces lines of it, None leaves one out."""
    lines = {
        "table": "visits",
        "date": "day",
        "keys": ["ward"],
        "start": START,
        "every": "1 day",
        "horizon": 8,
        "rows_per_period": 2,
        "periods_per_person": 3,
        "epsilon": 1.0,
        "delta": 1e-7,
        "key": "keys/daily.key",
    } | {name: value for name, value in said.items() if name not in ("patient", "wards")}
    stream = "\n".join(f"{name} = {_toml(value)}" for name, value in lines.items() if value is not None)
    return f"""[budget]
epsilon = 5.0
delta = 1e-6

[tables.visits]
source = "visits.csv"
person = "patient"
rows_per_person = 50
[tables.visits.columns]
patient = {{ type = "{said.get("patient", "text")}" }}
day = {{ type = "date" }}
ward = {{ type = "text", values = {_toml(list(said.get("wards", "abc")))} }}
note = {{ type = "text" }}

[streams.daily]
{stream}
"""


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


class World:
    """A folder with a declaration, its source, and the stream's files. A curator lives as long as a `with` block."""

    def __init__(self, folder: Path, rows: Iterable[Visit] = (), **said: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "keys").mkdir(exist_ok=True)
        self.folder, self.file = folder, folder / "clinic.toml"
        self.file.write_text(declaration(**said))
        self.state, self.ledger = folder / "clinic.ledger+daily.stream", folder / "clinic.ledger"
        self.head = folder / "clinic.ledger.head"
        self.write(rows)

    def write(self, rows: Iterable[Visit]) -> None:
        """What the source holds from now on."""
        with (self.folder / "visits.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["patient", "day", "ward", "note"])
            for patient, day, ward in rows:
                on = START + datetime.timedelta(days=day) if isinstance(day, int) else day
                writer.writerow([patient, on, ward, "x"])

    @contextmanager
    def opened(self, rows: Sequence[Visit] | None = None) -> Any:
        """A curator with its stream. With `rows`, the owner has refreshed the source."""
        if rows is not None:
            self.write(rows)
        with discreet.open(self.file) as curator:
            if rows is not None:
                curator.refresh()
            yield curator, curator.stream("daily")

    def advance(self, due: int, rows: Sequence[Visit] | None = None) -> list[list[int]]:
        """What was released after so many periods, by a process of its own as far as this one knows."""
        with self.opened(rows) as (curator, stream):
            return advance(curator, stream, due)

    def secret(self) -> State:
        """The state, exact counts and all."""
        with self.opened() as (_, stream):
            return secret(stream)


def advance(curator: Curator, stream: Stream, due: int) -> list[list[int]]:
    """Goes on as on the day on which so many periods are over."""
    one: Continuing = stream._continuing
    one.begin("stream")
    one.advance(due, curator._holdings.held(stream._priced.table).rows)
    return one.released()


def secret(stream: Stream) -> State:
    one: Continuing = stream._continuing
    with one._file.held() as key:
        return one._file.read(key, stream.name)
