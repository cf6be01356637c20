"""What a publication's release holds: the rows, the domain, what was measured, and bounds of the errors."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from discreet.release.content import ReleaseContent
from discreet.release.values import plain
from discreet.synthesis.adaptive import SynthesisResult
from discreet.synthesis.cells import NoisyHistogram
from discreet.synthesis.data import MADE
from discreet.synthesis.decode import drawn_values, stored
from discreet.synthesis.orders import Drawn, in_order
from discreet.synthesis.packed import pack
from discreet.synthesis.publication import Publication
from discreet.synthesis.row_before import RowSequences
from discreet.synthesis.sums import computed
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Type, Value
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells, rows_of_person

CONTINUED = (
    "it continues an earlier release, whose bins and found values it has; what that says of marginals was weighted by "
    "how far today's noisy counts are from it, and no bound rests on it"
)


def content(
    call: Publication,
    coding: Coding,
    looks: Mapping[str, NoisyHistogram],
    left_out: Mapping[str, str],
    result: SynthesisResult,
    followed: RowSequences | None = None,
    evenly: bool = False,
) -> ReleaseContent:
    """The content of the release: its rows stand packed in `more`. Where rows follow one another, so do their times.
    `evenly`: what was measured are weights, by which persons weigh alike."""
    drawn = result.rows
    generator = np.random.default_rng(secrets.randbits(128))
    lines = {one.column.name: one.line for one in call.columns}
    values = {}
    for place, one in enumerate(coding.columns):
        name, codes = one.column.name, drawn[:, place]
        along = lines.get(name)
        if isinstance(one, Binned) and along is not None:
            look = looks.get(name)
            values[name] = Drawn(one, along, codes, drawn_values(one, codes, along, look, generator), look)
    if followed is not None:
        times = values[followed.time]
        times.values[:] = followed.rising(times.codes, times.values)
    in_order(call.orders, values, generator)
    if followed is not None:
        times.values[:] = followed.lowered(times.codes, times.values)
    table = {
        one.column.name: stored(
            one, drawn[:, place], values[one.column.name].values if one.column.name in values else None
        )
        for place, one in enumerate(coding.columns)
        if one.column.name in lines  # of several tables others stand beside a table's own
    }
    table |= {one.name: computed((one, parts), values) for one, parts in call.sums}
    names = [*coding.names, *(one.name for one, _ in call.sums)]
    return ReleaseContent(
        columns=names,
        types={
            **{one.column.name: str(one.column.type) for one in coding.columns},
            **{one.name: str(one.type) for one, _ in call.sums},
        },
        rows=(),
        cost=call.cost,
        mechanisms=_mechanisms(call, result, evenly),
        bounds=[
            *_bounds(call, [one for one in coding.columns if one.column.name in lines], left_out),
            *([] if call.totals is None else call.totals.words(evenly)),
            *([] if call.earlier is None else [CONTINUED]),
            *(f"{low} is never larger than {high}, as declared" for low, high in call.orders),
            *(f"{one.name} is not measured: it is {' + '.join(parts)} of the same row" for one, parts in call.sums),
        ],
        more={
            "name": call.table.name,
            "table": table,
            "rows_drawn": len(drawn),
            "rows_per_person": rows_of_person(call.table),
            "total": result.model.total,
            "cells": {
                name: pack(np.bincount(drawn[:, place], minlength=size))
                for place, (name, size) in enumerate(zip(coding.names, coding.sizes, strict=True))
            },
            "domain": {one.column.name: list(one.names) for one in coding.columns},
            "declaration": declaration_of(call, coding),
            "measured": [
                {"columns": list(one.clique), "sigma": float(one.sigma), "counts": pack(one.values)}
                for one in result.measurements
            ],
            "marginals": [
                {
                    "columns": list(clique),
                    "rows": bound.l1,
                    "cell": bound.cell,
                    "share": bound.l1 / max(1.0, result.model.total),
                    "by": bound.source,
                }
                for clique, bound in result.bounds.items()
            ],
            "columns_left_out": dict(left_out),
            "ended_early": not result.complete,
            "method": call.method,
            "target": call.target,
            **({} if call.totals is None else {"totals": [list(clique) for clique in call.totals.counts]}),
        },
    )


def _mechanisms(call: Publication, result: SynthesisResult, evenly: bool) -> list[dict[str, str]]:
    person = rows_of_person(call.table)
    counted = "1 row" if person == 1 else f"{person} rows"
    unit, rows = ("1 person, whose rows share it", "1 person") if evenly else ("1 row", counted)
    scale = call.schedule.moved if evenly else 1
    found = [
        {
            "columns": name,
            "mechanism": finder.parts[0].mechanism.describe(),
            "unit": "1 a step",
            "sensitivity": "1 in each of a person's values",
        }
        for name, finder in call.finders.items()
    ]
    looked = [one.column.name for one in call.columns if one.looks]
    if looked:
        words = f"rounded Gaussian noise, sigma {show(call.look_sigma / scale, 4)}, on a histogram, one to four times"
        found.append({"columns": ", ".join(looked), "mechanism": words, "unit": unit, "sensitivity": rows})
    words = f"rounded Gaussian noise, sigma {show(call.schedule.distance_sigma, 4)}, on how far marginals are off"
    found.append({"columns": "all", "mechanism": words, "unit": "1 row", "sensitivity": f"{counted} in each"})
    sigmas = sorted({one.sigma for one in result.measurements})
    if sigmas:
        words = (
            f"rounded Gaussian noise on {len(result.measurements)} marginals, sigma {show(sigmas[0] / scale, 4)} to "
        )
        words += f"{show(sigmas[-1] / scale, 4)}; the exponential mechanism chose which"
        found.append({"columns": "all", "mechanism": words, "unit": unit, "sensitivity": rows})
    return found


def _bounds(call: Publication, coded: Sequence[ListedCells | Binned], left_out: Mapping[str, str]) -> list[str]:
    person = rows_of_person(call.table)
    words = ["one row a person" if person == 1 else f"of each person at most {person} rows count; others are left out"]
    for one in coded:
        if isinstance(one, Binned):
            bins = f"{len(one.cuts) + 1} bins" if one.cuts else "one bin"
            words.append(f"{one.column.name} is cut into {bins}")
        elif one.other:
            shared = (
                "values that the earlier release has not found" if call.earlier else "values that too few persons share"
            )
            first = (
                f"stand as their first letters and *, as {one.names[len(one.values)]}; others " if one.prefixes else ""
            )
            words.append(f"{one.column.name}: {shared} {first}are one cell, (other)")
        if not one.null:
            words.append(f"rows without a value in {one.column.name} are left out: it declares that there are none")
    return words + [f"{name} is left out: {why}" for name, why in left_out.items()]


def declaration_of(call: Publication, coding: Coding) -> str:
    """The synthetic table as a public table of a declaration."""
    made = _text(f"{call.table.name}{MADE}.csv")  # never a file of the real rows, which have the table's name
    lines = [f"[tables.{_key(call.table.name)}]", f"source = {made}", "public = true"]
    lines.append(f"[tables.{_key(call.table.name)}.columns]")
    for one in coding.columns:
        column = one.column
        said = [f'type = "{column.type}"']
        if isinstance(one, ListedCells) and one.listed and column.type is not Type.BOOLEAN:
            said.append("values = [" + ", ".join(_written(value) for value in one.listed) + "]")
        elif isinstance(one, Binned):
            assert column.minimum is not None
            assert column.maximum is not None
            said += [f"min = {_written(column.minimum)}", f"max = {_written(column.maximum)}"]
        lines.append(f"{_key(column.name)} = {{ {', '.join(said)} }}")
    for column, _ in call.sums:
        assert column.minimum is not None
        assert column.maximum is not None
        ends = f"min = {_written(column.minimum)}, max = {_written(column.maximum)}"
        lines.append(f'{_key(column.name)} = {{ type = "{column.type}", {ends} }}')
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _written(value: Value) -> str:
    known = plain(value)
    if isinstance(known, bool):
        return "true" if known else "false"
    if isinstance(value, str):
        return _text(value)
    return str(known)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # as TOML writes it too


def of_part(content: ReleaseContent, part: str) -> ReleaseContent:
    """A published table, or several, of the rows of one part's persons: each says so, as each gets files of its own."""
    words, more = f"of the part {part} alone", dict(content.more)
    if "tables" in more:
        more["tables"] = {
            name: {**plain, "bounds": [*plain["bounds"], words], "part": part} for name, plain in more["tables"].items()
        }
    return replace(content, bounds=[*content.bounds, words], more=more)
