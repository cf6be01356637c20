"""Questions about a part of the persons, from an assistant: of a service, and of a curator here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.agents.tools import TOOLS, Assistant, Said
from discreet.catalog import read
from discreet.curator import Curator
from part_tools import ALL, COUNT, NO_PART, SIZES, declared
from service_tools import served

TOOL = {tool.name: tool for tool in TOOLS}


@pytest.fixture(params=["here", "there"])
def assistant(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Assistant]:
    text = declared(tmp_path, len(SIZES))
    if request.param == "there":
        with served(tmp_path, text) as service, service.connect("ana") as there:
            yield Assistant(there, None)
        return
    (tmp_path / "clinic.toml").write_text(text, "utf-8")
    with Curator.of(read(tmp_path / "clinic.toml")) as here:
        yield Assistant(here, "ana")


def call(assistant: Assistant, tool: str, **said: object) -> Said:
    return assistant.call(TOOL[tool], said)


def test_an_assistant_asks_about_a_part(assistant: Assistant) -> None:
    for part in (*SIZES, None):
        said = {"question": COUNT, "epsilon": 5, "part": part}
        words = f"of the part {part} alone" if part is not None else "of all rows"
        assert words in call(assistant, "explain", **said).text
        found = call(assistant, "ask", **said)
        assert abs(found.plain["rows"][0]["n"] - SIZES.get(part or "", ALL)) <= 5
        assert words in found.text
        assert call(assistant, "ask", **said).plain["rows"] == found.plain["rows"]
    budget = call(assistant, "budget")
    assert list(budget.plain["parts"]) == list(SIZES)
    assert budget.plain["parts"]["north"]["whole"]["used"] == 1
    assert "part north: 1 % of ε 1000 used; left for ana: ε 460 in questions" in budget.text
    for wrong in ("west", "", "north\0", "\ud800", "North"):
        for tool in ("ask", "explain"):
            refused = call(assistant, tool, question=COUNT, epsilon=5, part=wrong)
            assert (refused.failed, refused.plain["code"], refused.plain["message"]) == (True, "part", NO_PART)
    for none in (3, ["north"], True):
        assert call(assistant, "ask", question=COUNT, epsilon=5, part=none).plain["code"] == "argument"
    assert call(assistant, "budget").plain == budget.plain
