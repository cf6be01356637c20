"""The style sheet: what is read stands out from what it stands on, in both themes, and nothing comes from elsewhere."""

from __future__ import annotations

import re

import pytest

from discreet.look import style

LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", style(), re.S)
)


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""
    shades = []
    for colour in (one, other):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        shades.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(shades) + 0.05) / (min(shades) + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_marks_stand_out(theme: dict[str, str]) -> None:
    for text in ("ink", "soft", "accent", "good", "bad", "warn"):
        for ground in ("ground", "raised"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    for text in ("ink", "accent"):
        for ground in ("good-ground", "bad-ground", "warn-ground"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    assert contrast(theme["on-accent"], theme["accent"]) >= 4.5
    for mark in ("edge", "spent", "reserved", "apart", "accent"):
        assert contrast(theme[mark], theme["ground"]) >= 3, mark
        assert contrast(theme[mark], theme["left"]) >= 3 or mark == "edge", mark
    assert contrast(theme["accent"], theme["pale"]) >= 3


def test_both_themes_have_the_same_colours_and_nothing_is_loaded() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert not re.search(r"url\(|@import|@font-face|http", style())
