"""What a page must have for those who do not see it, or use no mouse: names of controls, labels, headings, landmarks,
heads of tables, a language, contrast. Found by axe-core in a browser; `npm ci --prefix tests/lib/axe` fetches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_tools import CHROMIUM, Browser

AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"

needs_axe = pytest.mark.skipif(
    CHROMIUM is None or not AXE.is_file(),
    reason="axe-core is missing (npm ci --prefix tests/lib/axe), or Chromium; no page is looked at",
)

WINDOWS = [(1280, 900, False), (1280, 900, True), (400, 800, False), (400, 800, True)]
"""Width, height and whether it is dark: how a page is looked at."""

_LOOK = """axe.run(document, { resultTypes: ["violations"], runOnly: {
  type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] } })
.then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
  nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(" ")}: ${failureSummary}`)))"""

_WIDER = """[...document.querySelectorAll("body *")].filter((one) => {
  for (let box = one; box; box = box.parentElement) {
    if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(box).overflowX)) return false;
  }
  return one.getBoundingClientRect().right > innerWidth + 1;
}).slice(0, 5).map((one) => `wider than the window: ${one.outerHTML.slice(0, 120)}`)"""


def faults(browser: Browser) -> list[str]:
    """What is wrong with the page that the browser shows, a line each; empty where nothing is found."""
    if not browser.run("typeof axe === 'object'"):
        browser.run(AXE.read_text("utf-8") + "; 1")
    found: list[str] = browser.run(_LOOK)
    return found + list(browser.run(_WIDER))


def faults_in_all_windows(browser: Browser, pictures: Path | None = None, name: str = "page") -> list[str]:
    """The same in wide and narrow windows, light and dark. With a folder, a picture of each is put there."""
    found = []
    for width, height, dark in WINDOWS:
        browser.window(width, height, dark=dark)
        seen = f"{name} at {width}, {'dark' if dark else 'light'}"
        found += [f"{seen}: {one}" for one in faults(browser)]
        if pictures is not None:
            browser.picture(pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png")
    return found
