"""`publish(..., like=release)`: a table continued from an earlier release, and what hostile ones do."""

from __future__ import annotations

import base64
import copy
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import discreet
from discreet.cli import main
from discreet.errors import EngineError, QuestionError
from discreet.synthesis import adaptive
from discreet.synthesis.earlier import Earlier
from discreet.synthesis.packed import pack, unpack
from discreet.synthesis.publication import Publication, PublishOptions, publication
from discreet.synthesis.synthetic import Synthetic

COLUMNS: dict[str, Any] = {
    "sex": {"type": "text", "values": ["F", "M"], "nulls": False},
    "age": {"type": "integer", "min": 0, "max": 99},
    "town": {"type": "text"},
    "paid": {"type": "number", "min": 0, "max": 1000, "step": 0.01},
}


def people(count: int, seed: int = 1, towns: tuple[str, ...] = ("Ulm", "Bonn", "Köln")) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], count)
    age = np.clip(rng.normal(np.where(sex == "F", 60, 30), 8), 0, 99).astype(int)
    town = rng.choice(np.array(towns, object), count)
    return pd.DataFrame({"sex": sex, "age": age, "town": town, "paid": np.round(rng.random(count) * age * 10, 2)})


def curator(frame: pd.DataFrame, *, columns: Any = None, **more: Any) -> discreet.Curator:
    table = discreet.Table(frame, one_row_per_person=True, columns=COLUMNS if columns is None else columns, **more)
    return discreet.Curator({"people": table}, epsilon=20, delta=1e-5)


@pytest.fixture(scope="module")
def first() -> Synthetic:
    with curator(people(3000)) as holder:
        return holder.publish("people", epsilon=3)


@pytest.fixture(scope="module")
def second() -> Any:
    with curator(people(3000, seed=2)) as holder:
        yield holder


def called(holder: discreet.Curator, **said: Any) -> Publication:
    return publication(holder.declaration, PublishOptions(table="people", **said))


def forged(release: Synthetic, change: Callable[[dict[str, Any]], object]) -> Synthetic:
    """The release with something else in what it says beside its rows."""
    more = copy.deepcopy(dict(release.holds.more))
    change(more)
    return replace(release, holds=replace(release.holds, more=more))


def test_a_month_is_continued_from_the_one_before_and_pays_for_nothing_that_is_known(
    first: Synthetic, second: discreet.Curator, tmp_path: Path
) -> None:
    afresh, call = called(second, epsilon=1), called(second, epsilon=1, like=first)
    assert set(afresh.finders) == {"town"}
    assert afresh.steps > call.steps
    assert not call.finders
    assert not any(one.looks for one in call.columns)
    assert call.declared.loss.mu_squared <= afresh.declared.loss.mu_squared * 101 / 100  # type: ignore[operator]
    assert call.schedule.single_sigma < afresh.schedule.single_sigma
    release = second.publish("people", epsilon=1, like=first)
    assert release.charged.epsilon == 1
    assert release.domain == first.domain
    assert any("continues an earlier release" in line for line in release.bounds)
    made = release.to_pandas()
    assert made[made.sex == "F"].age.mean() - made[made.sex == "M"].age.mean() > 20
    saved = discreet.published(first.save(tmp_path / "first.json"))
    again = second.publish("people", epsilon=1, like=saved)
    assert not again.charged
    assert again.rows == release.rows
    assert second.publish("people", epsilon="0.5", like=release).charged  # an earlier one of the same table, continued


def test_it_is_charged_as_much_as_afresh(first: Synthetic) -> None:
    left = []
    for like in (None, first):
        with curator(people(500)) as holder:
            holder.publish("people", epsilon=9, like=like)
            left.append(holder.budget.used)
    assert left[0] == pytest.approx(left[1], abs=1)
    assert left[1] > 20


def test_the_batch_does_not_depend_on_what_an_earlier_release_counts(
    first: Synthetic, second: discreet.Curator
) -> None:
    """It may be forged: what is charged, and what noise there is, follows from the declaration, the price and the
    cells."""

    def sure(more: dict[str, Any]) -> None:
        for one in more["measured"]:
            one["sigma"] = 0.001
            one["counts"] = pack(10**9 * np.ones_like(unpack(one["counts"]).astype(np.int64)))

    honest, lying = called(second, epsilon=1, like=first), called(second, epsilon=1, like=forged(first, sure))
    assert honest.declared == lying.declared
    assert honest.schedule == lying.schedule
    assert honest.parts != lying.parts  # but it is another release
    made = second.publish("people", epsilon=1, like=forged(first, sure))
    assert abs(made.total - 3000) < 600
    assert abs((made.to_pandas().sex == "F").mean() - 0.5) < 0.15


def test_a_run_that_measures_more_than_it_declared_ends_without_a_table(
    first: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = adaptive._Run.fixed
    monkeypatch.setattr(adaptive._Run, "fixed", lambda run: (real(run), real(run), real(run))[0])
    with curator(people(300)) as holder:
        with pytest.raises((EngineError, ValueError)):
            holder.publish("people", epsilon=1, like=first)
        assert holder.budget.used > 0  # what was reserved stays charged


def test_values_that_were_not_found_share_a_cell(first: Synthetic) -> None:
    with curator(people(3000, towns=("Ulm", "Rom", "Rom"))) as holder:
        release = holder.publish("people", epsilon=2, like=first)
    assert set(release.to_pandas().town.dropna()) <= {"Ulm", "Bonn", "Köln", "(other)"}
    assert release.to_pandas().town.eq("(other)").mean() == pytest.approx(2 / 3, abs=0.15)
    assert "town: values that the earlier release has not found are one cell, (other)" in release.bounds


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(more: dict[str, Any]) -> None:
        place: Any = more
        for one in path[:-2]:
            place = place[one]
        place[path[-2]] = path[-1]

    return change


BOMB = {"type": "|u1", "shape": [2], "bytes": base64.b64encode(zlib.compress(bytes(1 << 24))).decode()}
DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]
FORGED = {
    "nothing": lambda more: more.pop("start"),
    "no mapping": _set("start", 3),
    "no cells": _set("start", "cells", {}),
    "deep": _set("start", "cells", "town", DEEP),
    "no noise": _set("measured", 0, "sigma", 0),
    "noise that is no number": _set("measured", 0, "sigma", float("nan")),
    "true noise": _set("measured", 0, "sigma", True),
    "immense noise": _set("measured", 0, "sigma", 1e300),
    "unknown columns": _set("measured", 0, "columns", ["nobody"]),
    "a column twice": _set("measured", 0, "columns", ["sex", "sex"]),
    "no columns": _set("measured", 0, "columns", []),
    "another shape": _set("measured", 0, "counts", pack(np.zeros(7, np.int64))),
    "fractions": _set("measured", 0, "counts", pack(np.zeros(2))),
    "objects": _set("measured", 0, "counts", {"type": "|O", "shape": [2], "bytes": ""}),
    "a bomb": _set("measured", 0, "counts", BOMB),
    "immense counts": _set("measured", 0, "counts", pack(np.full(2, 1 << 62))),
    "cuts that fall": _set("start", "cells", "age", "cuts", ["50", "20"]),
    "cuts outside": _set("start", "cells", "age", "cuts", ["-3", "500"]),
    "cuts between values": _set("start", "cells", "age", "cuts", ["1/2"]),
    "cuts by nothing": _set("start", "cells", "age", "cuts", ["1/0"]),
    "immense cuts": _set("start", "cells", "age", "cuts", ["1e999999999"]),
    "cuts that are none": _set("start", "cells", "age", "cuts", [5]),
    "a look without counts": _set("start", "cells", "age", "look", {"cuts": ["5"], "counts": [1], "sigma": 1.0}),
    "other bounds": _set("start", "cells", "age", "line", ["integer", "0", "98", "1"]),
    "another NULL": _set("start", "cells", "age", "null", False),
    "values of another type": _set("start", "cells", "town", "found", [1, 2, 3]),
    "values twice": _set("start", "cells", "town", "found", ["Ulm", "Ulm", "Bonn"]),
    "half a character": _set("start", "cells", "town", "found", ["Ulm", "Bonn", "\ud800"]),
    "no character": _set("start", "cells", "town", "found", ["Ulm", "Bonn", "\0"]),
    "an array of no type": _set("measured", 0, "counts", "type", "(,)i4"),
    "an array of objects": _set("measured", 0, "counts", "type", "|O"),
    "values of very many letters": _set("start", "cells", "town", "found", [one * 40_000 for one in "abc"]),
    "prefixes of many letters": _set("start", "cells", "town", "prefixes", ["Ulmer"]),
    "prefixes of none": _set("start", "cells", "town", "prefixes", [""]),
    "prefixes twice": _set("start", "cells", "town", "prefixes", ["U", "U"]),
    "prefixes that are none": _set("start", "cells", "town", "prefixes", [["U"]]),
    "very many prefixes": _set("start", "cells", "town", "prefixes", [f"{one:03}" for one in range(200)]),
    "very many values": _set("start", "cells", "town", "found", [str(one) for one in range(5000)]),
    "other declared values": _set("start", "cells", "sex", "listed", ["F", "X"]),
    "a further column": _set("start", "cells", "further", {"listed": ["x"]}),
    "a column less": lambda more: more["start"]["cells"].pop("town"),
    "several": _set("together", "name"),
}


@pytest.mark.parametrize("kind", list(FORGED))
def test_what_is_no_release_of_these_columns_is_refused_before_anything_is_charged(
    first: Synthetic, second: discreet.Curator, kind: str
) -> None:
    before = second.budget.used
    with pytest.raises(QuestionError) as raised:
        second.publish("people", epsilon=1, like=forged(first, FORGED[kind]))
    assert raised.value.fix
    assert "like" in str(raised.value)
    assert second.budget.used == before


def test_a_file_of_an_earlier_release_has_to_be_read(second: discreet.Curator) -> None:
    with pytest.raises(QuestionError, match=r"like=discreet\.published\(\"made\.json\"\)"):
        second.publish("people", epsilon=1, like="made.json")


@pytest.mark.parametrize(
    ("frame", "columns", "more"),
    [
        (people(50).drop(columns="town"), {k: v for k, v in COLUMNS.items() if k != "town"}, {}),
        (people(50).assign(more=1), {**COLUMNS, "more": {"type": "integer", "min": 0, "max": 9}}, {}),
        (people(50), {**COLUMNS, "sex": {**COLUMNS["sex"], "values": ["F", "M", "X"]}}, {}),
        (people(50), {**COLUMNS, "paid": {**COLUMNS["paid"], "max": 2000}}, {}),
        (people(50), {**COLUMNS, "town": {"type": "text", "values": ["Ulm", "Bonn"]}}, {}),
        (people(50), COLUMNS, {"impossible": [{"age": {"min": 71, "max": 73}, "sex": "M"}]}),
    ],
)
def test_another_declaration_is_refused(first: Synthetic, frame: pd.DataFrame, columns: Any, more: Any) -> None:
    with curator(frame, columns=columns, **more) as holder, pytest.raises(QuestionError, match="like"):
        holder.publish("people", epsilon=1, like=first)


@pytest.mark.parametrize(
    "said",
    [
        {"bins": {"age": 3}},
        {"method": "mst"},
        {"like": 3},
        {"like": "first.json"},
        {"columns": ["sex", "nobody"]},
        {"epsilon": 1e-30},
        {"table": ["people"]},
    ],
)
def test_calls_that_say_two_things_are_refused(first: Synthetic, second: discreet.Curator, said: Any) -> None:
    before = second.budget.used
    with pytest.raises(QuestionError):
        second.publish(**{"table": "people", "epsilon": 1, "like": first, **said})
    assert second.budget.used == before


@pytest.mark.parametrize("count", [0, 1])
def test_a_month_without_rows_is_continued_too(first: Synthetic, count: int) -> None:
    with curator(people(5).head(count)) as holder:
        release = holder.publish("people", epsilon="0.2", like=first, columns=["sex", "age"])
        assert release.columns == ["sex", "age"]
        assert release.charged.epsilon == 0.2


def test_totals_of_this_month_stand_above_the_month_before(first: Synthetic) -> None:
    totals = [{"by": ["sex"], "counts": {"F": 1200, "M": 300}}]
    with curator(people(1500, seed=4), totals=totals) as holder:
        made = holder.publish("people", epsilon=1, like=first).to_pandas()
    assert made.sex.value_counts().to_dict() == {"F": 1200, "M": 300}


def test_a_service_says_that_it_publishes_afresh(first: Synthetic) -> None:
    with (
        discreet.connect(url="http://127.0.0.1:1", token="a token") as remote,
        pytest.raises(QuestionError, match="afresh"),
    ):
        remote.publish("people", epsilon=1, like=first)


def test_a_chain_of_months_hands_on_what_it_was_told(first: Synthetic, tmp_path: Path) -> None:
    """Sharper each month: what is handed on has less noise than what a month alone measures."""
    month: Synthetic = first
    for seed in (11, 12):
        with curator(people(3000, seed=seed)) as holder:
            month = holder.publish("people", epsilon=1, like=month, target="age")
    handed = Earlier.of(discreet.published(month.save(tmp_path / "month.json")))
    noise = {one.clique: one.variance for one in handed.marginals}
    alone = min(one["sigma"] for one in month.measured if one["columns"] == ["sex"])
    assert noise["sex",] < alone**2
    assert set(handed.cells) == {"sex", "age", "town", "paid"}


def test_the_command_continues_a_file(tmp_path: Path) -> None:
    people(400).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(
        '[budget]\nepsilon = 10.0\ndelta = 1e-5\n[tables.people]\nsource = "people.csv"\none_row_per_person = true\n'
        '[tables.people.columns]\nsex = { type = "text", values = ["F", "M"] }\n'
        'age = { type = "integer", min = 0, max = 99 }\n'
    )
    made, next_one = str(tmp_path / "1.json"), str(tmp_path / "2.json")
    run = partial(CliRunner().invoke, main)
    asked = ["publish", str(tmp_path / "people.toml"), "people", "--epsilon"]
    assert run([*asked, "2", "-o", made]).exit_code == 0
    assert run([*asked, "1", "--like", made, "-o", next_one]).exit_code == 0
    assert json.loads(Path(next_one).read_text())["start"]["carried"]
    (tmp_path / "bad.json").write_text("{}")
    refused = run([*asked, "1", "--like", str(tmp_path / "bad.json")])
    assert refused.exit_code
    assert "holds no published table" in str(refused.exception)


def test_prefixes_are_taken_over(tmp_path: Path) -> None:
    """A text that is declared short is looked at for its first letters once; who continues it pays no look."""
    columns = {"sex": COLUMNS["sex"], "code": {"type": "text", "length": 5}}
    rng = np.random.default_rng(3)

    def coded(seed: int) -> pd.DataFrame:
        frame = people(3000, seed)[["sex"]]
        return frame.assign(code=[f"{one}{rng.integers(1000):03}" for one in rng.choice(["A", "B"], 3000)])

    with curator(coded(1), columns=columns) as one, curator(coded(2), columns=columns) as next_:
        begun = one.publish("people", epsilon=3)
        prefixes = begun.holds.more["start"]["cells"]["code"]["prefixes"]
        assert any(prefix[0] == "A" for prefix in prefixes)
        for earlier in (begun, discreet.published(begun.save(tmp_path / "made.json"))):
            made = next_.publish("people", epsilon=2, like=earlier)
            assert made.holds.more["start"]["cells"]["code"]["prefixes"] == prefixes
            letters = made.ask("SELECT COUNT(*) AS n FROM people WHERE code LIKE 'A%'").rows[0]["n"]
            assert abs(letters - 1500) < 300
        assert "histogram" not in str(made.mechanisms)
