"""Texts that somebody else wrote, made fit to be printed."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    r"""The text on one line, with every character spelled out that would steer a terminal or hide.

    Control characters (escape sequences begin with one, and after a line break a forged line could stand), overrides of
    the writing direction, marks without a width and halves of characters become `\x1b`, `\n`, `\u202e`. Spaces of every
    width stay, also those at which no line ends: French has one before "?".
    """
    return "".join(letter if _harmless(letter) else repr(letter)[1:-1] for letter in text)


def _harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"
