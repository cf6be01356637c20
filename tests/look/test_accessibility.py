"""The check that all pages go through sees what is missing, and nothing where a page is as it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from accessibility import faults_in_all_windows, needs_axe
from browser_tools import Browser
from discreet.look import style

pytestmark = [pytest.mark.outside, needs_axe]

GOOD = (
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, "
    f"initial-scale=1'><title>A page</title><style>{style()}</style><main><h1>A page</h1><div class=box tabindex=0 "
    "role=region aria-label=Numbers><table><caption>Numbers</caption><thead><tr><th scope=col>n</thead>"
    "<tbody><tr><td class=number>5</tbody></table></div><label>Name <input></label></main>"
)


def test_a_good_page_has_no_fault_and_each_lack_is_one(tmp_path: Path) -> None:
    lacks = {
        "html-has-lang": GOOD.replace(" lang=en", ""),
        "document-title": GOOD.replace("<title>A page</title>", ""),
        "landmark-one-main": GOOD.replace("<main>", "<div>"),
        "page-has-heading-one": GOOD.replace("h1>", "h3>"),
        "label": GOOD.replace("<label>Name ", "<label></label>Name "),
        "color-contrast": GOOD.replace("<h1>", "<p style='color:#888;background:#777'>dim</p><h1>"),
        "image-alt": GOOD.replace("<h1>", "<img src='data:,'><h1>"),
        "wider than the window": GOOD.replace("<h1>", "<div style='width:2000px'>wide</div><h1>"),
    }
    page = tmp_path / "page.html"
    with Browser(tmp_path / "profile") as browser:
        page.write_text(GOOD, "utf-8")
        browser.go(page.as_uri())
        browser.until("document.readyState === 'complete'")
        assert faults_in_all_windows(browser, tmp_path) == []
        assert (tmp_path / "page-400-dark.png").read_bytes().startswith(b"\x89PNG")
        for rule, text in lacks.items():
            page.write_text(text, "utf-8")
            browser.go(page.as_uri())
            browser.until("document.readyState === 'complete'")
            found = faults_in_all_windows(browser)
            assert any(rule in one for one in found), (rule, found)
