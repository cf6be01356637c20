"""The audit of declared streams: nothing is found, and wrong streams are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.audit import questions
from discreet.audit.made_up import Stage
from discreet.audit.streams import difference, targets
from discreet.catalog import Declaration, read
from discreet.release.left_out import LeftOut
from discreet.streams.stream import PricedStream
from discreet.trusted.ring_c import arrivals, continual
from stream_tools import World


@pytest.fixture
def known(tmp_path: Path) -> Iterator[tuple[Declaration, Stage]]:
    world = World(tmp_path, [("p", 0, "a")])
    declared = questions.typed(read(world.file))
    with Stage(declared.limits) as stage:
        yield declared, stage


def test_nothing_is_found_of_a_stream_and_nothing_is_left_behind(
    known: tuple[Declaration, Stage], tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    (target,) = targets(*known)
    result = target.attack(1e-6)
    assert (result.broken, result.event) == (False, "nothing")
    assert sorted(tmp_path.rglob("*")) == before


def _fails(patch: pytest.MonkeyPatch) -> None:
    """Where a person has more rows than count."""
    real = arrivals.within

    def within(rows: int, wanted: Any) -> Any:
        if sum(map(abs, wanted.values())) > rows:
            raise OverflowError
        return real(rows, wanted)

    patch.setattr(arrivals, "within", within)


def _says_too_much(patch: pytest.MonkeyPatch) -> None:
    """How many persons are remembered."""
    real: Any = continual.Continuing._drawn
    persons = {0}

    def drawn(own: Any, *given: Any) -> Any:
        found = real(own, *given)
        persons.add(len(own._file.read(given[2], own._whole.name).memory))
        return found

    patch.setattr(continual.Continuing, "_drawn", drawn)
    patch.setattr(PricedStream, "_left_out", lambda _: [LeftOut("rows", f"of {max(persons)} persons")])


@pytest.mark.parametrize(("wrong", "words"), [(_fails, "EngineError"), (_says_too_much, "differs")])
def test_wrong_streams_are_found(
    known: tuple[Declaration, Stage],
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[pytest.MonkeyPatch], None],
    words: str,
) -> None:
    wrong(monkeypatch)
    assert words in difference(*known, "daily")
