"""The pictures are drawn by the code that is here, are small, and each stands on a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from theory_tools import THEORY

KIND = "exact"


@pytest.mark.outside
def test_every_picture_can_be_drawn(tmp_path: Path) -> None:
    from pictures import PICTURES, draw  # matplotlib takes long to load

    draw(tmp_path, quick=True)
    assert {file.stem for file in tmp_path.iterdir()} == set(PICTURES)


def test_every_picture_is_small_and_stands_on_a_page() -> None:
    from pictures import PICTURES

    pages = "".join(page.read_text("utf-8") for page in THEORY.glob("*.md"))
    files = sorted((THEORY / "images").iterdir())
    assert {file.stem for file in files} == set(PICTURES)
    for file in files:
        assert file.stat().st_size < 60_000
        assert f"](images/{file.name})" in pages
