from __future__ import annotations

import pytest

from theory_tools import ROOT


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippets of the pages read files from the root of the repository."""
    monkeypatch.chdir(ROOT)
