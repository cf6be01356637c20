"""What tests of public totals share."""

from __future__ import annotations

from collections import Counter
from typing import Any


def met(release: Any, total: Any) -> None:
    """The rows have exactly these counts: each that is declared, and no others."""
    found = Counter(tuple(row[name] for name in total["by"]) for row in release.rows)
    wanted: dict[tuple[Any, ...], int] = {}
    for key, value in total["counts"].items():
        for line, count in value.items() if isinstance(value, dict) else [((), value)]:
            wanted[(key, *([line] if isinstance(value, dict) else []))] = count
    assert found == {line: count for line, count in wanted.items() if count}
