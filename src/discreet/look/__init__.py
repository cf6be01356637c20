"""What pages look like: one style sheet for all that this package shows in a browser, and for pages saved to files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def style() -> str:
    """Gives the style sheet. It names no font or picture of another place, and holds for light and dark."""
    return (files("discreet.look") / "style.css").read_text("utf-8")
