"""What a sceptic must read of the ledger: closed under imports, and without any way to end the process."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import discreet

TRUSTED = Path(discreet.__file__).parent / "trusted" / "ledger"
FILES = sorted(TRUSTED.glob("*.py"))
MAY_IMPORT = (
    "discreet.trusted.ledger.",
    "discreet.trusted.ring_a.",
    "discreet.trusted.ring_b.gdp_filter.",
    "discreet.errors.",
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_it_imports_nothing_of_ours_but_losses_and_the_ground(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            assert not name.startswith("discreet") or name.startswith(MAY_IMPORT), name


def test_no_part_of_the_program_ends_it_where_its_environment_says_so() -> None:
    for file in TRUSTED.parents[1].rglob("*.py"):
        text = file.read_text("utf-8")
        assert "KILL_AT" not in text, file
        assert file.is_relative_to(TRUSTED) is False or ("environ" not in text and "kill" not in text.lower().split())


def test_every_file_stands_in_the_reading_order() -> None:
    order = (TRUSTED / "README.md").read_text("utf-8")
    for file in FILES:
        assert file.name == "__init__.py" or f"`{file.name}`" in order
