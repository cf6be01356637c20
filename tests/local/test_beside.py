"""Estimates while a collector holds its file: over the socket beside it, and from the file where none runs."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.errors import LedgerError, QuestionError
from discreet.local import Client, Collection, Collector, Ordered
from discreet.local.beside import answering, asked

BOTH = Collection("devices", "Which, and how old?", {"os": ["linux", "mac"], "Your age": Ordered(0, 9)}, epsilon=2)
SAID = {"attribute": "os", "window": None, "confidence": 0.95}


def some(people: int) -> list[object]:
    return [
        Client(BOTH).report({"os": "mac" if place % 3 else "linux", "Your age": place % 10}) for place in range(people)
    ]


def test_the_owner_sees_what_came_so_far(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 40) / "r.duckdb"  # longer than the path of a socket may be
    path.parent.mkdir()
    beside = path.with_name("r.duckdb.socket")
    with Collector(BOTH, path) as collector:
        collector.add(some(60))
        with answering(collector, path):
            assert stat.S_IMODE(beside.stat().st_mode) == 0o600
            first = asked(path, SAID)["estimates"][0]
            collector.add(some(60))
            second = asked(path, SAID)["estimates"][0]
            assert first["reports"] < second["reports"]
            assert first["rows"] != second["rows"]
            assert set(second["rows"][0]) == {"value", "estimate", "low", "high", "consistent"}
            every = asked(path, SAID | {"attribute": None})
            assert [one["attribute"] for one in every["estimates"]] == ["os", "Your age"]
            assert every["estimates"][0]["rows"] == collector.estimate(attribute="os").to_dict()["rows"]
            with pytest.raises(QuestionError, match="name one of os, Your age"):
                asked(path, SAID | {"attribute": "sex"})
            with pytest.raises(QuestionError, match="window"):
                asked(path, SAID | {"window": "2020-01"})
        assert not beside.exists()
    assert asked(path, SAID)["estimates"][0] == second  # nobody holds the file: it is read


def test_what_is_no_request_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with Collector(BOTH, path) as collector, answering(collector, path):
        collector.add(some(30))
        for odd in (b"", b"[]", b"\xff", b"[" * 60_000, b"x" * 200_000, b'{"confidence": "much"}', b'{"window": 3}'):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(tmp_path / "r.duckdb.socket"))
                try:
                    caller.sendall(odd)
                    caller.shutdown(socket.SHUT_WR)
                    reply = caller.makefile("rb").read()
                except OSError:  # it was refused before it was read to the end
                    continue
                assert not reply or "error" in json.loads(reply), odd[:20]
        assert asked(path, SAID)["estimates"][0]["reports"] > 0


def test_a_socket_that_a_killed_collector_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with Collector(BOTH, path) as collector:
        collector.add(some(30))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "r.duckdb.socket"))
    assert asked(path, SAID)["estimates"]
    with Collector(BOTH, path) as collector, answering(collector, path):
        assert asked(path, SAID)["estimates"]


def test_a_file_with_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / f"{'long' * 40}.duckdb"
    with Collector(BOTH, path) as collector, answering(collector, path):
        collector.add(some(30))
        assert asked(path, SAID)["estimates"]


def test_what_is_no_file_of_reports(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="no reports file"):
        asked(tmp_path / "none.duckdb", SAID)
    with pytest.raises(QuestionError, match="no such folder"):
        asked(tmp_path / "none" / "r.duckdb", SAID)
    (tmp_path / "odd.duckdb").write_text("odd")
    with pytest.raises(LedgerError, match="not a reports file"):
        asked(tmp_path / "odd.duckdb", SAID)


def test_the_command_while_the_collector_runs(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(BOTH.to_json(), "utf-8")
    with Collector(BOTH, tmp_path / "r.duckdb") as collector:
        collector.add(some(30))
    program = [sys.executable, "-m", "discreet"]
    server = subprocess.Popen(
        [*program, "collect", "c.json", "r.duckdb", "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    try:
        while not (tmp_path / "r.duckdb.socket").exists() and server.poll() is None:
            time.sleep(0.05)
        said = subprocess.run(
            [*program, "estimate", "r.duckdb"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert "Your age\n" in said.stdout
        assert "linux" in said.stdout
        assert server.poll() is None
    finally:
        server.terminate()
        server.communicate()
    assert not os.path.exists(tmp_path / "r.duckdb.socket")
