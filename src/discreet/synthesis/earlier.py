"""What a release of a table hands on to the next one of the same columns: its cells, how values lie inside them, and
its marginals with their noise. Written beside its rows, and read again.

Privacy: all of it was released before, or is made up by whoever names it. It says what is measured and where fits
begin, as a declaration does, and never what a measurement costs: that follows from the measurements themselves. So a
forged one makes a table worse, and nothing less private. It is read as what anybody may have written: its sizes are
bounded, and whatever is not as a release has it is refused before anything is charged.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import refused
from discreet.markov import Clique, Domain, MarginalMeasurement
from discreet.markov.measurement import averages
from discreet.synthesis.adaptive import LIMIT
from discreet.synthesis.cells import FINE, NoisyHistogram, NumberLine
from discreet.synthesis.columns import MOST_VALUES, PublishedColumn
from discreet.synthesis.packed import pack, unpack
from discreet.synthesis.prefixes import DEEPEST, MOST_PREFIXES
from discreet.synthesis.prior import LEAST, MOST, Expected, Prior
from discreet.synthesis.synthetic import Synthetic
from discreet.texts import visible
from discreet.trusted.ring_a.table import Type, Value
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells

MOST_MARGINALS, MOST_CUTS, MOST_FINE, MOST_TEXT = 1000, 4 * FINE, 1 << 14, 100_000
_PLACE = re.compile(r"-?[0-9]{1,340}(/[0-9]{1,340})?")  # as large and as small as bounds may be
_WHOLE = 1 << 63


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier release as a start. `cells` are what it says of each column's cells, `marginals` its noisy counts,
    each once, `left_out` columns that it does not have; `digest` tells it from others."""

    cells: Mapping[str, Mapping[str, Any]]
    marginals: tuple[Expected, ...]
    left_out: frozenset[str]
    digest: str

    @staticmethod
    def of(release: object) -> Earlier:
        """The start that a release is. Raises QuestionError where it is none."""
        if not isinstance(release, Synthetic) or release.holds.more.get("together"):
            fix = "give what curator.publish or discreet.published gives of a single table"
            if isinstance(release, str | Path):
                fix = f'write like=discreet.published("{visible(str(release))[:80]}")'
            raise refused("like", "only a table that was published by itself is continued", "like", fix)
        more = release.holds.more
        if "start" not in more:
            message = "an earlier version made this release, which says too little to be continued"
            raise refused("like", message, "like", "publish the table afresh with this version")
        try:
            return _read(more)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, zlib.error):
            fix = "give what curator.publish gives, or a .json that release.save has written"
            raise refused("like", "this is not as a published table is", "like", fix) from None

    def columns(
        self, kept: Sequence[PublishedColumn], named: bool
    ) -> tuple[tuple[PublishedColumn, ...], dict[str, str], dict[str, NoisyHistogram]]:
        """These columns with the cells of the earlier release; those that are left out, as they were there, and why;
        and how values lie inside bins. Raises QuestionError where a column or its cells are not as they were there."""
        known = {one.column.name for one in kept}
        other = sorted(set(self.cells) - known)
        if other and not named:
            raise _changed(f"it has a column {visible(other[0])[:80]}, and this table does not")
        found, left_out, looks = [], {}, {}
        for one in kept:
            name = one.column.name
            if name not in self.cells and name in self.left_out and one.found and not named:
                left_out[name] = "the earlier release found no value of it"
                continue
            if name not in self.cells:
                raise _changed(f"it has no column {name}")
            column, look = _as_before(one, self.cells[name])
            found.append(column)
            if look is not None:
                looks[name] = look
        return tuple(found), left_out, looks

    def prior(self, domain: Domain, certain: Sequence[Clique]) -> Prior:
        """What it says of the marginals of these columns, as much as half a model holds beside what is `certain` to be
        in it."""
        inside = [one for one in self.marginals if set(one.clique) <= set(domain.names)]
        ordered = []
        for one in inside:
            clique = domain.clique(one.clique)
            axes = [one.clique.index(name) for name in clique]
            ordered.append(Expected(clique, one.values.transpose(axes), one.variance))
        return Prior.of(domain, ordered, LIMIT // 2, certain)


def start(
    coding: Coding,
    lines: Mapping[str, NumberLine],
    looks: Mapping[str, NoisyHistogram],
    carried: Sequence[MarginalMeasurement],
) -> dict[str, Any]:
    """What a release hands on, as JSON can hold it; what was measured stands in the release anyway."""
    return {
        "cells": {
            one.column.name: _written(one, lines.get(one.column.name), looks.get(one.column.name))
            for one in coding.columns
        },
        "carried": [
            {"columns": list(one.clique), "sigma": float(one.sigma), "counts": pack(one.values)} for one in carried
        ],
    }


def _written(one: ListedCells | Binned, along: NumberLine | None, look: NoisyHistogram | None) -> dict[str, Any]:
    if isinstance(one, ListedCells):
        found = {"found": list(one.values), "prefixes": list(one.prefixes), "null": one.null}
        return found if one.other else {"listed": list(one.names)}
    assert along is not None
    fine = None
    if look is not None:
        fine = {"cuts": list(map(str, look.cuts)), "counts": list(look.counts), "sigma": look.sigma}
    return {
        "cuts": [str(along.place(cut)) for cut in one.cuts],
        "null": one.null,
        "line": _line(along),
        "look": fine,
    }


def _line(along: NumberLine) -> list[str | None]:
    return [str(along.column.type), *(None if one is None else str(one) for one in (along.low, along.high, along.unit))]


def _as_before(one: PublishedColumn, cells: Mapping[str, Any]) -> tuple[PublishedColumn, NoisyHistogram | None]:
    """A column with the cells that it had, and how values lie inside its bins."""
    column, along = one.column, one.line
    if along is not None:
        if cells.get("line") != _line(along) or cells["null"] != column.nulls:
            raise _changed(f"{column.name} has other bounds there, or another type")
        try:
            cuts = _places(cells["cuts"], along)
            look = None if cells["look"] is None else _look(cells["look"], along)
        except (ValueError, ArithmeticError):
            raise _changed(f"its bins of {column.name} are none") from None
        return replace(one, coded=along.binned(cuts), looks=0), look
    if one.found:
        values = cells.get("found")
        if values is None or cells["null"] != column.nulls or not all(_is_of(column.type, value) for value in values):
            raise _changed(f"the values of {column.name} were not found there, or are of another type")
        prefixes = tuple(cells["prefixes"])
        if prefixes and column.type is not Type.TEXT:
            raise _changed(f"{column.name} has prefixes there, and is no text here")
        coded = ListedCells(column, tuple(values), other=True, null=column.nulls, prefixes=prefixes)
        return replace(one, coded=coded, looks=0), None
    assert isinstance(one.coded, ListedCells)
    if cells.get("listed") != list(one.coded.names):
        raise _changed(f"{column.name} has other values there")
    return one, None


def _is_of(kind: Type | None, value: Value) -> bool:
    if kind is Type.TEXT:
        return isinstance(value, str)
    return kind is Type.INTEGER and isinstance(value, int) and not isinstance(value, bool)


def _places(texts: Sequence[str], along: NumberLine) -> list[Fraction]:
    """Cuts of a line, in ascending order, at values of its column. Raises ValueError where they are not."""
    cuts = [Fraction(text) for text in texts]
    if any(low >= high for low, high in itertools.pairwise([along.low, *cuts, along.end()] if cuts else [])):
        raise ValueError
    if any(along.place(along.value(cut)) != cut for cut in cuts):
        raise ValueError
    return cuts


def _look(said: Mapping[str, Any], along: NumberLine) -> NoisyHistogram:
    return NoisyHistogram(along, tuple(_places(said["cuts"], along)), tuple(said["counts"]), float(said["sigma"]))


def _changed(why: str) -> Exception:
    fix = "publish the table afresh, or name a release of the same columns"
    return refused("like", f"the earlier release is of another table, or of another declaration: {why}", "like", fix)


def _read(more: Mapping[str, Any]) -> Earlier:
    """The start in a release's words. Raises ValueError, TypeError, KeyError or AttributeError where it is none."""
    said = more["start"]
    cells = {_held(isinstance(name, str), name): _checked(one) for name, one in said["cells"].items()}
    sizes = {name: _size(one) for name, one in cells.items()}
    listed = [*more["measured"], *said["carried"]]
    _held(len(listed) <= 3 * MOST_MARGINALS and bool(cells))
    measured = [_marginal(one, sizes) for one in listed]
    _held(sum(one.values.size for one in measured) <= 4 * LIMIT)
    found = tuple(Expected(one.like.clique, one.values, one.sigma**2) for one in averages(measured))
    left_out = frozenset(name for name in more["columns_left_out"] if isinstance(name, str))
    told = json.dumps([said, more["measured"], sorted(left_out)], sort_keys=True, allow_nan=False)
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
    return Earlier(cells, found[:MOST_MARGINALS], left_out, digest)


def _checked(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is said of a column's cells, each part of its type and no larger than a release has it."""
    if "listed" in one:
        _held(isinstance(one["listed"], list) and all(isinstance(name, str) for name in one["listed"]))
        return {"listed": list(one["listed"])}
    _held(isinstance(one["null"], bool))
    if "found" in one:
        values = one["found"]
        _held(isinstance(values, list) and len(values) <= MOST_VALUES and len(set(values)) == len(values))
        _held(all(_plain(value) for value in values))
        _held(sum(len(str(value)) for value in values) <= MOST_TEXT)
        prefixes = one["prefixes"]
        _held(isinstance(prefixes, list) and len(prefixes) <= MOST_PREFIXES and len(set(prefixes)) == len(prefixes))
        _held(all(isinstance(prefix, str) and 0 < len(prefix) <= DEEPEST and _plain(prefix) for prefix in prefixes))
        return {"found": list(values), "prefixes": list(prefixes), "null": one["null"]}
    _held(_texts(one["cuts"], MOST_CUTS))
    look = one["look"]
    if look is not None:
        counts = look["counts"]
        _held(_texts(look["cuts"], MOST_FINE) and len(counts) == len(look["cuts"]) + 1 and _number(look["sigma"]))
        _held(all(isinstance(count, int) and not isinstance(count, bool) and abs(count) <= MOST for count in counts))
    return {name: one[name] for name in ("cuts", "null", "line", "look")}


def _plain(value: object) -> bool:
    if isinstance(value, str):
        value.encode()  # no text has half a character
        return "\0" not in value
    return isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE


def _texts(cuts: object, most: int) -> bool:
    """Whether these are places on a line, written as fractions."""
    return isinstance(cuts, list) and len(cuts) <= most and all(_PLACE.fullmatch(cut) is not None for cut in cuts)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and LEAST <= value <= MOST


def _size(cells: Mapping[str, Any]) -> int:
    if "listed" in cells:
        return len(cells["listed"])
    inside = [*cells["found"], *cells["prefixes"]] if "found" in cells else cells["cuts"]
    return len(inside) + 1 + bool(cells["null"])


def _marginal(one: Mapping[str, Any], sizes: Mapping[str, int]) -> MarginalMeasurement:
    """A marginal's noisy counts, with its columns in the order in which it says them."""
    clique = tuple(one["columns"])
    shape = tuple(sizes[name] for name in clique)
    _held(len(set(clique)) == len(clique) > 0 and math.prod(shape) <= LIMIT and _number(one["sigma"]))
    counts = unpack(one["counts"], most=8 * math.prod(shape))
    _held(counts.dtype.kind in "iu" and counts.shape == shape)
    _held(int(counts.max()) <= MOST and int(counts.min()) >= -MOST)
    return MarginalMeasurement(clique, counts, Fraction(one["sigma"]))


def _held(true: bool, value: Any = None) -> Any:
    if not true:
        raise ValueError
    return value
