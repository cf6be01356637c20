"""A small audit, for what is about the audit and not about what it finds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from discreet.audit import interaction, textbook
from discreet.cli import run


class Said(NamedTuple):
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few draws and one budget."""
    real = textbook.DrawCounts
    monkeypatch.setattr(textbook, "DrawCounts", lambda *_: real(400, 1_200))
    monkeypatch.setattr(interaction, "BUDGETS", interaction.BUDGETS[2:3])


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`discreet audit …` in this process."""

    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["discreet", "audit", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            run()
        heard = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Said(end.value.code, heard.out, heard.err)

    return call
