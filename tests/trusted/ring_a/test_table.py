"""What a table is declared as is written into the keys of stored answers, which never change."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.procedures.run import declared
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type

KIND = "exact"

WORDS = ("csv", "parquet", "delta", "iceberg", "duckdb", "postgresql", "spark", "frame", "relation")


def test_the_kinds_of_sources_are_these_words() -> None:
    assert tuple(map(str, SourceKind)) == WORDS


@pytest.mark.parametrize("word", WORDS)
def test_keys_say_the_kind_of_a_source_as_a_text(word: str) -> None:
    """As ledgers of every version hold them."""
    table = Table("t", Source(SourceKind(word), Path("elsewhere.csv")), (Column("v", Type.TEXT),), person="p")
    (text,) = declared(table)
    assert f"source=Source(kind='{word}', path=None, relation=None, server=None, further=(), version=None)" in text
