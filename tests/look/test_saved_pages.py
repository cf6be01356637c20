"""Saved pages: what others wrote stays text, nothing runs or is loaded, and everybody can use them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from discreet import Curator, Table
from discreet.audit.claims import Claim, Result
from discreet.audit.picture import plot
from discreet.audit.report import Report
from discreet.look.page import POLICY

HOSTILE = ["<script>window.ran = 1</script>", "\"'><img src=x onerror=window.ran=1>", "\u202eleft", "]]>--><b>"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    days = [pd.Timestamp(2024, 1, 1 + place % 9).date() for place in range(900)]
    frame = pd.DataFrame({"key": [HOSTILE[place % 4] for place in range(900)], "day": days})
    columns = {
        "key": {"type": "text", "values": HOSTILE, "nulls": False},
        "day": {"type": "date", "values": sorted(set(days)), "nulls": False},
    }
    made = []
    with Curator({"t": Table(frame, one_row_per_person=True, columns=columns)}, epsilon=100, delta=1e-6) as curator:
        for name, group in (("bars", "key"), ("line", "day"), ("lines", "day, key")):
            release = curator.ask(f"SELECT {group}, COUNT(*) AS n FROM t GROUP BY {group}", epsilon=5)
            made += [release.save(folder / f"{name}.html"), release.plot(folder / f"{name}_picture.html")]
        release = curator.publish("t", epsilon=5)
        made += [release.plot(folder / "made_up.html"), release.save(folder / "rows.html")]
    claim = Claim(1.0)
    results = [Result(HOSTILE[0], "exact", claim, 0.5, False), Result(HOSTILE[1], "exact", claim, 2.0, True)]
    made += [
        plot(Report(tuple(found), False, 1.0, HOSTILE[1]), folder / f"audit{len(found)}.html")
        for found in (results[:1], results)
    ]
    return made


def test_what_others_wrote_is_text_and_nothing_is_loaded(pages: list[Path]) -> None:
    for page in pages:
        text = page.read_text("utf-8")
        assert f'content="{POLICY}"' in text
        assert text.count("<h1>") == 1
        for tag in ("<script", "<img src=x", "<b>", "\u202e"):
            assert tag not in text, (page, tag)
        if page.stem != "rows":
            assert text.count('<svg role="img" aria-label=') == 1
            assert "<figcaption>" in text


def test_a_broken_promise_stands_first(pages: list[Path]) -> None:
    whole, broken = (page.read_text("utf-8") for page in pages[-2:])
    assert "No promise was found broken." in whole
    assert broken.index("A promise is broken.") < broken.index("<svg")


@pytest.mark.outside
@needs_axe
def test_everybody_can_use_them(pages: list[Path], tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        for page in pages:
            browser.go(page.as_uri())
            browser.until(f"document.readyState === 'complete' && location.href === '{page.as_uri()}'")
            assert faults_in_all_windows(browser, tmp_path, page.stem) == []
            assert browser.run("window.ran") is None
