"""In a real browser, by keyboard alone: an analyst logs in, looks at tables, writes, asks, takes the answer, leaves; an
owner publishes a table, makes a token and revokes it, and finds both in the log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from accessibility import AXE, faults_in_all_windows
from browser_tools import CHROMIUM, Browser
from face_tools import Data
from service_tools import CLINIC, Served, served

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing (Debian: chromium); no page is opened"),
]

PICTURES = os.environ.get("DISCREET_PICTURES")
"""A folder for pictures of each page, for whoever wants to look at them."""


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("walks")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, CLINIC) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def at(browser: Browser, path: str) -> None:
    """Waits until a page is there, whose path begins so."""
    browser.arrives(f"location.pathname.startsWith({json.dumps(path)}) && document.readyState === 'complete'")


def tab_to(browser: Browser, selector: str, most: int = 60) -> None:
    """Presses Tab until what is meant has the focus."""
    for _ in range(most):
        if browser.run(f"document.activeElement.matches({json.dumps(selector)})"):
            return
        browser.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")


def look(browser: Browser, name: str) -> None:
    """Nothing about the page keeps anybody out; with PICTURES, it is drawn."""
    if AXE.is_file():
        folder = Path(PICTURES) if PICTURES else None
        assert faults_in_all_windows(browser, folder, name) == []
    browser.window(1280, 900)


def log_in(browser: Browser, service: Served, who: str) -> None:
    browser.go(f"{service.url}/console/login")
    at(browser, "/console/login")
    browser.arrives("document.activeElement.id === 'token'")
    browser.press(service.tokens[who])
    browser.press("Enter")
    browser.arrives("location.pathname !== '/console/login' && document.readyState === 'complete'")


def test_an_analyst_walks_by_keyboard_alone(service: Served, browser: Browser) -> None:
    browser.go(f"{service.url}/")
    at(browser, "/console/login")
    look(browser, "login")
    log_in(browser, service, "ana")
    at(browser, "/console/ask")
    look(browser, "ask-empty")
    tab_to(browser, "nav a[href='/console/tables']")
    browser.press("Enter")
    at(browser, "/console/tables")
    look(browser, "tables")
    tab_to(browser, "nav a[href='/console/ask']")
    browser.press("Enter")
    at(browser, "/console/ask")
    before = service.curator.ledger.head
    tab_to(browser, "#question")
    browser.press("SELECT ci")
    browser.arrives("!document.getElementById('proposals').hidden")
    browser.press("ArrowDown")
    browser.arrives("document.getElementById('question').getAttribute('aria-activedescendant') === 'proposal-0'")
    look(browser, "ask-proposals")
    tab_to(browser, "#question")
    if browser.run("document.getElementById('proposals').hidden"):
        browser.press("Space", control=True)
        browser.arrives("!document.getElementById('proposals').hidden")
        browser.press("ArrowDown")
    browser.press("Enter")
    assert browser.run("document.getElementById('question').value") == "SELECT city"
    browser.press(", COUNT(*) AS n FROM visits GROUP BY city")
    browser.press("Escape")
    tab_to(browser, "#epsilon")
    browser.press("0.05")
    browser.arrives("!!document.querySelector('#check [data-plain]')")
    assert "±" in browser.run("document.getElementById('check').innerText")
    look(browser, "ask-checked")
    tab_to(browser, "#slider")
    for _ in range(3):
        browser.press("ArrowRight")
    browser.arrives("Number(document.getElementById('epsilon').value) > 0.05")
    assert "ε" in browser.run("document.getElementById('slider').getAttribute('aria-valuetext')")
    price = browser.run("document.getElementById('epsilon').value")
    browser.arrives(f"document.querySelector('#check .big')?.textContent.includes({json.dumps(price)})")
    assert service.curator.ledger.head == before  # nothing was spent so far
    tab_to(browser, "#go")
    browser.run(
        "document.getElementById('ask').addEventListener('submit', () => { window.sent = (window.sent || 0) + 1 })"
    )
    browser.press("Enter")
    at(browser, "/console/answers/")
    look(browser, "answer")
    assert "95 %" in browser.run("document.querySelector('caption').innerText")
    assert browser.run("document.querySelectorAll('figure svg[role=img][aria-label]').length") == 1
    tab_to(browser, "a[href$='/csv']")
    saved = browser.run("fetch(document.activeElement.href).then((reply) => reply.text())")
    assert saved.startswith("city,n,n_low,n_high")
    tab_to(browser, "a[href^='/console/ask?']")
    browser.press("Enter")
    at(browser, "/console/ask")
    assert browser.run("document.getElementById('question').value").startswith("SELECT city, COUNT(*) AS n")
    head = service.curator.ledger.head
    tab_to(browser, "#go")
    browser.press("Enter")
    at(browser, "/console/answers/")
    assert "asked before, so it was free" in browser.run("document.body.innerText")
    assert service.curator.budget.used == pytest.approx(service.curator.budget.used)
    assert head is not None
    tab_to(browser, "nav a[href='/console/history']")
    browser.press("Enter")
    at(browser, "/console/history")
    look(browser, "history")
    tab_to(browser, "nav a[href='/console/balance']")
    browser.press("Enter")
    at(browser, "/console/balance")
    look(browser, "balance")
    tab_to(browser, ".who button")
    browser.press("Enter")
    at(browser, "/console/login")
    browser.go(f"{service.url}/console/history")
    at(browser, "/console/login")


def test_a_target_for_the_error_is_a_price(service: Served, browser: Browser) -> None:
    log_in(browser, service, "ana")
    tab_to(browser, "#question")
    browser.press("SELECT COUNT(*) AS n FROM visits")
    browser.press("Escape")
    tab_to(browser, "input[name=by]")
    browser.press("ArrowRight")
    browser.arrives("!document.querySelector('[data-by=within]').hidden")
    tab_to(browser, "#column")
    browser.press("n")
    tab_to(browser, "#error")
    browser.press("50")
    browser.arrives("!!document.querySelector('#check .big')")
    look(browser, "ask-within")
    tab_to(browser, "#slider")
    browser.press("ArrowRight")
    browser.arrives("document.getElementById('error').value !== '50'")
    assert browser.run("document.getElementById('column').value") == "n"
    browser.run("document.getElementById('question').value = 'SELECT nonsense'; 1")
    tab_to(browser, "#go")
    browser.press("Enter")
    browser.arrives("!!document.querySelector('main form [role=alert]')")
    look(browser, "ask-refused")
    assert browser.run("document.getElementById('question').value") == "SELECT nonsense"


def press_on(browser: Browser, selector: str, key: str = "Enter") -> None:
    tab_to(browser, selector, 120)
    browser.press(key)


def test_an_owner_publishes_and_revokes_by_keyboard_alone(service: Served, browser: Browser) -> None:
    log_in(browser, service, "owner")
    at(browser, "/console/overview")
    rows = "new Set([...document.querySelectorAll('nav li')].map((one) => one.getBoundingClientRect().top)).size"
    browser.window(1280, 900)
    assert browser.run(rows) == 1  # the menu
    assert "owner, owner" not in browser.run("document.querySelector('.who').innerText")
    assert "left: " not in browser.run("document.querySelector('main').innerText")
    look(browser, "overview")
    head = service.curator.ledger.head
    press_on(browser, "nav a[href='/console/publish']")
    at(browser, "/console/publish")
    look(browser, "publish-empty")
    for place in range(browser.run("document.querySelectorAll('[name=columns]').length")):
        name = browser.run(f"document.querySelectorAll('[name=columns]')[{place}].value")
        if name not in ("city", "smoker"):
            press_on(browser, f"[name=columns][value={name}]", "Space")
    tab_to(browser, "#epsilon", 120)
    browser.press("0.5")
    browser.press("Enter")
    browser.arrives("!!document.querySelector('form[data-once]') && document.readyState === 'complete'")
    assert browser.run("document.querySelectorAll('[name=columns]:checked').length") == 2
    look(browser, "publish-seen")
    assert service.curator.ledger.head == head  # nothing was spent so far
    press_on(browser, "form[data-once] button")
    at(browser, "/console/publish/")
    look(browser, "publish-runs")
    browser.arrives("!!document.querySelector('main a[href$=\"/csv\"]') && document.readyState === 'complete'")
    look(browser, "published")
    tab_to(browser, "a[href$='/csv']", 120)
    saved = browser.run("fetch(document.activeElement.href).then((reply) => reply.text())")
    assert saved.startswith("city,smoker")
    press_on(browser, "nav a[href='/console/accounts']")
    at(browser, "/console/accounts")
    press_on(browser, "a[href='/console/accounts/token?account=ana']")
    at(browser, "/console/accounts/token")
    tab_to(browser, "#reason")
    browser.press("a second computer")
    press_on(browser, "main button.first")
    browser.arrives("!!document.querySelector('.note.good code')")
    look(browser, "token-made")
    secret = browser.run("document.querySelector('.note.good code').textContent")
    assert service.call("GET", "/balance", secret).status == 200
    press_on(browser, "nav a[href='/console/accounts']")
    at(browser, "/console/accounts")
    number = max(token.number for _, tokens in service.accounts.known() for token in tokens)
    look(browser, "accounts")
    press_on(browser, f"a[href='/console/accounts/revoke?account=ana&token={number}']")
    at(browser, "/console/accounts/revoke")
    look(browser, "revoke")
    tab_to(browser, "#reason")
    browser.press("it was lost")
    press_on(browser, "main button.danger")
    browser.arrives("location.pathname === '/console/accounts' && document.readyState === 'complete'")
    assert service.call("GET", "/balance", secret).status == 401
    browser.go(f"{service.url}/console/log?who=ana&kind=acts")
    at(browser, "/console/log")
    look(browser, "log-of-acts")
    assert "it was lost" in browser.run("document.querySelector('main').innerText")
    for page in ("analysts", "health", "refresh"):
        press_on(browser, f"nav a[href='/console/{page}']")
        at(browser, f"/console/{page}")
        look(browser, page)
