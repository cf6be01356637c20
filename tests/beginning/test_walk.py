"""An owner who is no programmer, in a real browser, by keyboard: what is said comes to a declaration that is taken."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from accessibility import AXE, faults_in_all_windows
from beginning_tools import HOSTILE, PATIENTS, VISITS, form
from browser_tools import CHROMIUM, Browser
from discreet.catalog import read

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing (Debian: chromium); no page is opened"),
]

PICTURES = os.environ.get("DISCREET_PICTURES")
"""A folder for pictures of each page, for whoever wants to look at them."""


def look(browser: Browser, name: str) -> None:
    """Nothing about the page keeps anybody out; with PICTURES, it is drawn."""
    if AXE.is_file():
        folder = Path(PICTURES) if PICTURES else None
        assert faults_in_all_windows(browser, folder, name) == []
    browser.window(1280, 900)


def at(browser: Browser, words: str) -> None:
    browser.arrives(f"document.readyState === 'complete' && document.title.includes({json.dumps(words)})")


def on(browser: Browser, field: str) -> None:
    """Presses Tab until the field has the focus."""
    for _ in range(120):
        if browser.run(f"document.activeElement.id === {json.dumps(field)}"):
            return
        browser.press("Tab")
    raise AssertionError(f"{field} is not reached by Tab")


def choose(browser: Browser, field: str, words: str) -> None:
    """Chooses in a list by typing how the choice begins."""
    on(browser, field)
    script = f"document.getElementById({json.dumps(field)})"
    for _ in range(20):
        if browser.run(f"{script}.selectedOptions[0].textContent.startsWith({json.dumps(words)})"):
            return
        browser.press("ArrowDown")
    raise AssertionError(f"{field} has no choice {words}")


def write(browser: Browser, field: str, text: str) -> None:
    on(browser, field)
    browser.press(text)


def test_an_owner_fills_in_the_form_by_keyboard(tmp_path: Path) -> None:
    with (
        form(tmp_path, {"patients.csv": PATIENTS, "visits.csv": VISITS}) as one,
        Browser(tmp_path / "profile") as browser,
    ):
        browser.go(one.url)
        at(browser, "Write clinic.toml")
        look(browser, "begin-empty")
        page = browser.run("document.documentElement.outerHTML")
        assert not [value for value in ("Roe", "777", "1980", "flu") if value in page]
        assert browser.run("document.querySelectorAll('script').length") == 1
        assert HOSTILE in browser.run("document.getElementById('t1.c3.keep').closest('fieldset').innerText")
        browser.run("document.querySelector('button.first').focus()")
        browser.press("Enter")
        browser.arrives("!!document.querySelector('[role=alert]') && document.readyState === 'complete'")
        look(browser, "begin-refused")
        browser.run("document.getElementById('main').focus()")
        on(browser, "t0.about")
        browser.press("Space")
        choose(browser, "t0.person", "Id")
        choose(browser, "t0.c0.type", "whole")
        write(browser, "t0.c1.values", "F\nM")
        on(browser, "t0.c1.full")
        browser.press("Space")
        choose(browser, "t0.c2.type", "date")
        write(browser, "t0.c2.min", "1900-01-01")
        write(browser, "t0.c2.max", "2026-13-31")
        browser.arrives("!document.getElementById('t0.c2.max-fault').hidden")
        assert browser.run("document.getElementById('t0.c2.max').getAttribute('aria-invalid')") == "true"
        assert not browser.run("document.getElementById('t0.c4.type-fault').hidden")  # it stood there already
        look(browser, "begin-wrong")
        browser.run("document.getElementById('t0.c2.max').focus(); document.getElementById('t0.c2.max').select()")
        browser.press("2026-12-31")
        browser.arrives("document.getElementById('t0.c2.max-fault').hidden")
        assert not browser.run("document.getElementById('t0.c3.keep').checked")  # Last Name
        choose(browser, "t0.c4.type", "number")
        write(browser, "t0.c4.min", "0")
        write(browser, "t0.c4.max", "2000000")
        choose(browser, "t0.dates", "31.01.2020")
        on(browser, "t1.about")
        browser.press("Space")
        browser.press("ArrowDown")
        choose(browser, "t1.person", "PATIENT")
        choose(browser, "t1.refers", "patients, column Id")
        write(browser, "t1.rows", "20")
        choose(browser, "t1.c0.type", "whole")
        choose(browser, "t1.c1.type", "date")
        on(browser, "t1.c3.keep")
        browser.press("Space")
        write(browser, "a0.name", "ana")
        write(browser, "a0.epsilon", "0.5")
        browser.arrives("document.getElementById('check').innerText.includes('All is said')")
        assert browser.run("document.getElementById('said').textContent").startswith("All is said")
        assert "73.2 %" in browser.run("document.getElementById('check').innerText")
        shown = browser.run("document.querySelector('#check pre').textContent")
        look(browser, "begin-full")
        browser.run("document.querySelector('button.first').focus()")
        browser.press("Enter")
        at(browser, "Written")
        look(browser, "begin-written")
        assert "discreet serve" in browser.run("document.body.innerText")
        one.running.join()  # the command ends by itself
    assert one.beginning.written
    text = (tmp_path / "clinic.toml").read_text("utf-8")
    assert text == shown
    declared = read(tmp_path / "clinic.toml")
    patients, visits = declared.tables["patients"], declared.tables["visits"]
    assert (patients.one_row_per_person, patients.person, visits.person, visits.rows_per_person) == (
        True,
        "Id",
        "PATIENT",
        20,
    )
    assert patients.source.dates == "%d.%m.%Y"
    assert [column.name for column in patients.columns] == ["Id", "GENDER", "BIRTHDATE", "EXPENSES"]
    assert declared.analysts["ana"].epsilon == declared.budget.epsilon / 2
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == [
        "clinic.toml",
        "patients.csv",
        "visits.csv",
    ]
