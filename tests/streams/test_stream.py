"""A declared stream as its owner meets it: in Python and at the command line."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

import discreet
from discreet.errors import BudgetError, DeclarationError, QuestionError
from face_tools import Command
from stream_tools import World

ROWS = [(f"p{i % 500}", i % 8, "abc"[i % 3]) for i in range(1_000)]


def test_it_releases_what_is_due_at_one_price(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        with pytest.raises(QuestionError, match="nothing of it was released"):
            _ = stream.release
        release = stream.advance()
        assert release.charged == release.cost == {"epsilon": 1.0, "delta": 1e-7}
        assert (
            release.columns == ["until", "ward", "count", "last_7_days", "total"] or "last_28_days" in release.columns
        )
        assert [(row["until"], row["ward"]) for row in release] == [(datetime.date(2026, 1, 8), one) for one in "abc"]
        used = curator.budget.used
        again = stream.advance()
        assert not again.charged
        assert again.rows == release.rows == stream.release.rows == stream.releases.rows[-3:]
        assert len(stream.releases) == 8 * 3
        assert (stream.released, stream.groups) == (8, 3)
        assert stream.latest(2).rows == stream.releases.rows[-6:]
        assert stream.latest(2).intervals == stream.releases.intervals[-6:]
        assert stream.latest(100).rows == stream.releases.rows
        assert curator.budget.used == used
        assert "8 of 8" in repr(stream)
    with world.opened() as (_, stream):
        assert stream.release.rows == release.rows


def test_its_numbers_agree_and_its_intervals_are_as_wide_as_the_noise(tmp_path: Path) -> None:
    with World(tmp_path, ROWS).opened() as (_, stream):
        stream.advance()
        rows, intervals = stream.releases.rows, stream.releases.intervals
        for place, ward in enumerate("abc"):
            own = rows[place::3]
            assert {row["ward"] for row in own} == {ward}
            assert abs(sum(row["count"] for row in own) - own[-1]["total"]) <= len(own)
            assert abs(sum(row["count"] for row in own[-7:]) - own[-1]["last_7_days"]) <= 7
        for name, deviation in stream.expected.items():
            low, high = intervals[-1][name]
            width = NormalDist().inv_cdf(0.975) * deviation
            assert abs((high - low) / 2 - width) <= 2
            wide = stream.releases.simultaneous()[-1][name]
            assert wide[0] < low < rows[-1][name] < high < wide[1]


def test_the_truth_lies_within_seven_deviations(tmp_path: Path) -> None:
    """8 periods, 3 groups, 4 columns, each beyond 7 deviations with a chance of 3e-12."""
    world = World(tmp_path, ROWS)
    with world.opened() as (_, stream):
        release = stream.advance()
        for row in release:
            true = sum(ward == row["ward"] for _, _, ward in ROWS)
            assert abs(row["total"] - true) <= 7 * stream.expected["total"] + 1


def test_weeks_without_keys(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS, keys=None, every="1 week", horizon=2, periods_per_person=2)
    with world.opened() as (_, stream):
        release = stream.advance()
        assert release.columns == ["until", "count", "last_28_days", "total"]
        assert [row["until"] for row in stream.releases] == [datetime.date(2026, 1, 7), datetime.date(2026, 1, 14)]


def test_before_a_period_is_over_nothing_is_charged(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS, start=datetime.date(9_000, 1, 1))
    with world.opened() as (curator, stream):
        with pytest.raises(QuestionError, match="no period"):
            stream.advance()
        assert stream.expected
        assert curator.budget.used == 0
    assert not world.state.exists()


def test_the_budget_refuses_a_stream(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS, epsilon=5.0, delta=8e-7)
    with world.opened() as (curator, stream):
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=4)
        with pytest.raises(BudgetError):
            stream.advance()


def test_a_larger_budget_or_another_analyst_changes_no_stream(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (_, stream):
        rows = stream.advance().rows
    text = world.file.read_text().replace("delta = 1e-6", "delta = 9e-7").replace("epsilon = 5.0", "epsilon = 4.5")
    world.file.write_text(text)
    with world.opened() as (_, stream):
        assert stream.advance().rows == rows


@pytest.mark.parametrize(
    "changed",
    [{"epsilon": 1.1}, {"rows_per_period": 1}, {"start": datetime.date(2026, 1, 2)}, {"keys": None}],
    ids=repr,
)
def test_a_stream_that_is_declared_otherwise_does_not_go_on(tmp_path: Path, changed: dict[str, Any]) -> None:
    World(tmp_path, ROWS).advance(1)
    with World(tmp_path, ROWS, **changed).opened() as (_, stream), pytest.raises(discreet.LedgerError) as caught:
        stream.advance()
    assert "declared otherwise" in str(caught.value)
    with World(tmp_path, ROWS, **changed).opened() as (_, stream):
        for read in (
            lambda: stream.release,
            lambda: stream.releases,
            lambda: stream.latest(2),
            lambda: stream.released,
        ):
            with pytest.raises(discreet.LedgerError, match="declared otherwise"):
                read()


def test_the_ledger_shows_it_with_its_price_and_its_periods_free(tmp_path: Path, cli: Command) -> None:
    world = World(tmp_path, ROWS, horizon=2, periods_per_person=2)
    said = cli("stream", world.file)
    assert said.code == 0
    assert "until" in said.out
    assert "asked before" not in said.out
    listed = cli("ledger", world.file).out
    assert "stream daily: counts of visits by ward, 2 periods of 1 day" in listed
    assert "stream daily, period 2 of 2" in listed
    assert "1,000,000" not in listed
    assert cli("ledger", world.file, "--verify").code == 0


def test_at_the_command_line(tmp_path: Path, cli: Command) -> None:
    world = World(tmp_path, ROWS, horizon=3)
    plain = json.loads(cli("stream", world.file, "daily", "--json").out)
    assert [row["ward"] for row in plain["rows"]] == ["a", "b", "c"]
    everything = json.loads(cli("stream", world.file, "--all", "--json", "-o", tmp_path / "all.csv").out)
    assert len(everything["rows"]) == 9
    assert everything["rows"][-3:] == plain["rows"]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 10
    assert cli("stream", world.file, "weekly").code == 2
    world.file.write_text(world.file.read_text().partition("[streams.daily]")[0])
    said = cli("stream", world.file)
    assert said.code == 2
    assert "[streams.daily]" in said.err


def test_a_backup_has_neither_state_nor_key(tmp_path: Path, cli: Command) -> None:
    world = World(tmp_path / "now", ROWS)
    world.advance(1)
    assert cli("backup", world.file, tmp_path / "copy").code == 0
    held = b"".join(one.read_bytes() for one in (tmp_path / "copy").rglob("*") if one.is_file())
    assert world.state.read_bytes()[:40] not in held
    assert (world.folder / "keys" / "daily.key").read_bytes().strip() not in held
    assert not [one for one in (tmp_path / "copy").rglob("*") if "stream" in one.name]


def test_a_column_that_its_source_states_otherwise_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    text = world.file.read_text()
    world.file.write_text(text.replace('patient = { type = "text" }', 'patient = { type = "date" }'))
    with pytest.raises(DeclarationError, match="persons are texts or whole numbers"):
        discreet.open(world.file)


def test_ledgers_of_one_stem_have_a_state_each_and_one_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """clinic.ledger, clinic.db and clinic, with one key; then a state that lies where an earlier version has put it."""
    world = World(tmp_path, ROWS)
    text = world.file.read_text()
    known = {}
    for ledger in ("clinic.ledger", "clinic.db", "clinic"):
        world.file.write_text(f'ledger = "{ledger}"\n{text}')
        known[ledger] = world.advance(1)
        assert (tmp_path / f"{ledger}+daily.stream").exists()
    for ledger, released in known.items():
        world.file.write_text(f'ledger = "{ledger}"\n{text}')
        assert world.advance(2)[:1] == released
    old = tmp_path / "clinic.daily.stream"
    world.file.write_text(text)
    world.state.rename(old)
    before = old.read_bytes()
    assert len(world.advance(3)) == 3
    assert old.read_bytes() != before
    assert not world.state.exists()
