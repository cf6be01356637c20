"""Pages that are saved to a file: they carry the style sheet, run no script and load nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from html import escape as escaped

from discreet.look import style
from discreet.texts import visible

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a saved page may do: show its own styles and the pictures that are written in it."""

_HIGH = 30
"""Rows beyond which a table scrolls upwards too."""


def escape(text: str) -> str:
    """A text as HTML, on one line, with what would hide or turn the writing spelled out."""
    return escaped(visible(text))


def document(title: str, body: str, *, narrow: bool = False) -> str:
    """A whole page with this title, and a body that is HTML already."""
    kind = " class=narrow" if narrow else ""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style()}</style>\n<main{kind}>\n{body}\n</main>\n</html>\n"
    )


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[bool] = (),
    keys: int = 1,
    name: str = "",
) -> str:
    """A table of texts in a box that scrolls, a long one also upwards. The first `keys` cells of a row say what it is
    about; `numbers` says of each column whether it stands at the right. Where several boxes of a page have one caption,
    each has a `name`."""
    sides = [" class=number" if number else "" for number in numbers] or [""] * len(heads)
    head = "".join(f"<th scope=col{side}>{escape(name)}</th>" for name, side in zip(heads, sides, strict=True))
    begun = [f"<th scope=row{side}>" for side in sides[:keys]] + [f"<td{side}>" for side in sides[keys:]]
    ended = itertools.chain(itertools.repeat("</th>", keys), itertools.repeat("</td>"))
    ends = list(itertools.islice(ended, len(heads)))
    lines = [
        "".join(start + escape(cell) + end for start, cell, end in zip(begun, row, ends, strict=True)) for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    kind = "box high" if len(lines) > _HIGH else "box"
    return (
        f'<div class="{kind}" role="region" tabindex="0" aria-label="{escape(name or caption)}"><table>'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def figure(picture: str, told: str, *, name: str = "Picture") -> str:
    """A picture, SVG or an img, in a box that scrolls, with what it shows in words below it. Of several boxes on a page
    each has another name."""
    if not picture:
        return ""
    return (
        f'<figure><div class="box" role="region" tabindex="0" aria-label="{escape(name)}">{picture}</div>'
        f"<figcaption>{escape(told)}</figcaption></figure>"
    )


def points(lines: Iterable[str]) -> str:
    """A list, where there is anything in it."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
