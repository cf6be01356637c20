"""Arrays of numbers as text, for a release that the ledger stores."""

from __future__ import annotations

import base64
import re
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPE = re.compile("[<|][biuf][1248]")


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """An array as its type, shape and compressed bytes; whole numbers that are not negative in as few bytes as hold
    them."""
    if array.dtype.kind in "iu" and (not array.size or array.min() >= 0):
        array = array.astype(np.min_scalar_type(int(array.max(initial=0))))
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    body = base64.b64encode(zlib.compress(array.tobytes(), 6)).decode("ascii")
    return {"type": array.dtype.str, "shape": list(array.shape), "bytes": body}


def unpack(packed: dict[str, Any], most: int | None = None) -> NDArray[Any]:
    """The array that `pack` took. Raises ValueError where it has more than so many bytes, of which no more are made."""
    reader, body = zlib.decompressobj(), base64.b64decode(packed["bytes"])
    body = reader.decompress(body, 0 if most is None else most)
    if not reader.eof:
        raise ValueError("the array is not whole, or has more bytes")
    if _TYPE.fullmatch(packed["type"]) is None:
        raise ValueError("the array is of a type that pack does not write")
    return np.frombuffer(body, np.dtype(packed["type"])).reshape(packed["shape"])
