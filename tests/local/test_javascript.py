"""The client in JavaScript reports what the one in Python reports, byte for byte: both replay the same vectors."""

from __future__ import annotations

import json
from pathlib import Path

import make_vectors
from discreet.local import Collection, Collector
from node_tools import MODULE, needs_node, node


def test_python_gives_the_reports_of_the_vectors() -> None:
    assert make_vectors.made() == json.loads(make_vectors.PATH.read_text("utf-8"))


def test_the_vectors_take_every_mechanism() -> None:
    text = make_vectors.PATH.read_text("utf-8")
    for name in ("randomised response", "projective geometry response", "hybrid mechanism", "local hashing"):
        assert f'\\"mechanism\\":\\"{name}\\"' in text


@needs_node
def test_javascript_gives_the_reports_of_the_vectors() -> None:
    vectors = json.loads(make_vectors.PATH.read_text("utf-8"))
    assert int(node("replay.mjs", str(make_vectors.PATH))) == sum(len(one["cases"]) for one in vectors)


@needs_node
def test_the_javascript_client_keeps_to_one_report_a_window(tmp_path: Path) -> None:
    many = Collection("many", "Which?", [f"v{place}" for place in range(400)], epsilon=1)
    found = json.loads(node("client_replay.mjs", many.to_json()))
    assert found["first"] == found["again"]
    assert all(other == found["first"] for other in found["others"])  # whatever the answer is by then
    assert set(found["wrong"]) == {"TypeError"}
    assert found["forged"] == ["TypeError"] * 13
    with Collector(many, tmp_path / "reports.duckdb") as collector:
        assert collector.add(json.dumps(found["first"])) == 1


def test_the_module_is_small_and_needs_nothing() -> None:
    text = MODULE.read_text("utf-8")
    assert len(text.splitlines()) < 500
    assert "import " not in text
    assert "Math.random" not in text
