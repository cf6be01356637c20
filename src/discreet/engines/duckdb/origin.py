"""What the rows in a file were read from, as far as that is told without reading it again.

Of each file of a source its path, size, times and inode are compared, and not what stands in it. Whoever
writes into a file changes the time of its last change, which no program can set; only a clock that was set back, or a
disk that keeps no such times, could hide it. A time that may still come again, as it is hardly over, is no proof: such
a file counts as one that nothing is known of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from discreet.engines.files import files
from discreet.trusted.ring_a.table import Source, SourceKind

_SETTLED, _COARSE = 50_000_000, 2_000_000_000
"""So many nanoseconds after a change the next one has another time; on disks that keep whole seconds only, so many."""


@dataclass(frozen=True)
class Origin:
    """How rows were read, and of which files."""

    how: Sequence[object]
    """All that decides what is made of a file's bytes."""
    files: Mapping[str, Sequence[int]]
    """What each file was, by its path; nothing of one that may change without being noticed."""

    @property
    def text(self) -> str:
        """It in a form that a file can keep."""
        return json.dumps(asdict(self))

    def since(self, known: str | None) -> list[Path] | None:
        """The files that were added to those that are known, which are as they were; None where anything else may have
        become of them."""
        before = json.loads(known) if known else None
        if before is None or before["how"] != json.loads(json.dumps(self.how)):
            return None
        same = all(one and self.files.get(path) == one for path, one in before["files"].items())
        return [Path(path) for path in self.files if path not in before["files"]] if same else None


def origin(source: Source, found: Sequence[Path], how: Sequence[object]) -> Origin | None:
    """What these files of a source are now. None for what is not told by files alone: tables in Python, of servers, and
    of database files, where a view may read anything. A version of a Delta table is told by its own entry in the log.
    """
    if source.kind is SourceKind.DELTA and source.path is not None:
        found = [source.path / "_delta_log" / f"{source.version:020}.json"]
    elif source.kind not in (SourceKind.CSV, SourceKind.PARQUET):
        return None
    try:
        known = {str(path): _state(path) for path in found}
    except OSError:
        return None
    return Origin([source.kind, version("duckdb"), *how], known)


def _state(path: Path) -> list[int]:
    """What a file is, before it is read: it waits where the file was written just now."""
    found = path.stat()
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    coarse = not (found.st_mtime_ns % 10**9 or found.st_ctime_ns % 10**9)
    if not coarse and 0 <= (age := time.time_ns() - changed) < _SETTLED:
        time.sleep((_SETTLED - age) / 1e9)
    if time.time_ns() - changed < (_COARSE if coarse else _SETTLED):
        return []
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def listed(source: Source) -> list[Path]:
    """The files of a source that has some, as they are found now."""
    return files(source) if source.kind in (SourceKind.CSV, SourceKind.PARQUET) else []
