"""What servers answer, as columns of Arrow, in the forms in which it crosses to the parent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute


def rows_of(found: pyarrow.Table) -> list[list[Any]]:
    """The rows of a table."""
    columns = [column.to_pylist() for column in found.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def bytes_of(column: Any) -> list[bytes]:
    """A column's values as 64-bit numbers; texts in one piece, and then how many bytes each has."""
    if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
        texts = [text.encode() if text is not None else b"" for text in column.to_pylist()]
        return [b"".join(texts), np.array([len(text) for text in texts], np.int64).tobytes()]
    whole = not pyarrow.types.is_floating(column.type)
    filled = pyarrow.compute.fill_null(column, pyarrow.scalar(0, column.type))
    return [filled.to_numpy().astype(np.int64 if whole else np.float64).tobytes()]
