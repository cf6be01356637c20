"""A release as another process is told it: the same object, made of plain values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import LedgerError
from discreet.release.content import VERSION, Cost, ReleaseContent
from discreet.release.table import Release

_BESIDE = ("charged", "used", "more", "left", "analyst", "notes", "warnings")
"""What is told beside what the release holds."""


@dataclass(frozen=True)
class ToldBalance:
    """What was said of a balance when a question was answered: `fits` more like it did."""

    used: float
    left: str
    fits: int
    own: Mapping[str, Any] | None = None

    def more(self, _: object, /) -> int:
        """How many more like the question fitted."""
        return self.fits

    def account(self) -> Mapping[str, Any] | None:
        """The asker's own account; None where there is none."""
        return self.own


def told(release: Release) -> dict[str, Any]:
    """All that a release says, as plain values."""
    return {"release": VERSION, **release.to_dict(), "notes": list(release.notes)}


def heard(plain: Mapping[str, Any]) -> Release:
    """The release that was told. Raises LedgerError on what a newer version told."""
    if plain.get("release", 0) > VERSION:
        raise LedgerError("version", "a newer version of discreet gave this answer", fix="install that version")
    held = {name: value for name, value in plain.items() if name not in ("release", *_BESIDE)}
    balance = ToldBalance(plain["used"], plain["left"], plain["more"], plain["analyst"])
    return Release(ReleaseContent.from_dict(held), Cost(plain["charged"]), balance, None, tuple(plain["notes"]))
