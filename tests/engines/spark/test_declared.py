"""What can be known of Spark without a server: how it is declared, what is refused, and what it says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest

from discreet.catalog import declare
from discreet.catalog.formats import words_of
from discreet.catalog.model import EngineKind, EngineLimits
from discreet.engines import letters
from discreet.engines.spark import sources
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.driver import Spark
from discreet.errors import DeclarationError
from discreet.sql import lower
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.table import Source, SourceKind
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.dialect import Lacking
from engine_tools import declaration, planned
from spark_tools import free_port

KIND = "exact"


def declared(engine: dict[str, Any], source: str = "spark::shop.visits") -> Any:
    table = {"source": source, "person": "p", "one_row_per_person": True, "columns": {"p": {"type": "text"}}}
    return declare({"budget": {"epsilon": 1, "delta": Fraction(1, 10**6)}, "engine": engine, "tables": {"t": table}})


def test_a_server_and_its_tables_are_declared() -> None:
    known = declared({"kind": "spark", "remote": "sc://spark.example:15002"})
    assert known.limits.kind is EngineKind.SPARK
    assert known.limits.remote == "sc://spark.example:15002/"
    assert known.tables["t"].source == Source(SourceKind.SPARK, server="spark", relation="shop.visits")
    assert words_of(known.tables["t"].source) == "spark::shop.visits"
    assert declared({"kind": "spark", "remote": "sc://[::1]:1/;use_ssl=true"}).limits.remote.endswith(";use_ssl=true")


@pytest.mark.parametrize(
    ("engine", "source", "where"),
    [
        ({}, "spark::a.b", "tables.t.source"),
        ({"kind": "spark"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": 5}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "https://host:1"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host:99999"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://user:word@host:1"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host:1/;token=s3cret"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host:1/;x-key=s3cret"}, "spark::a.b", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host:1/;token=a;s3cret;b"}, "spark::a.b", "engine.remote"),
        (
            {"kind": "spark", "remote": "sc://host:1/;use_ssl=true;Token =a;user_id=s3cret"},
            "spark::a.b",
            "engine.remote",
        ),
        ({"kind": "spark", "remote": "sc://host:1/;user_id=b;s3cret"}, "spark::a.b", "engine.remote"),
        ({"remote": "sc://host:1"}, "a.csv", "engine.remote"),
        ({"kind": "spark", "remote": "sc://host:1"}, "spark::", "tables.t.source"),
        ({"kind": "spark", "remote": "sc://host:1"}, "spark::a.b.c.d", "tables.t.source"),
        ({"kind": "spark", "remote": "sc://host:1"}, "spark::a.`b`", "tables.t.source"),
    ],
)
def test_what_is_declared_wrongly_is_said_and_no_secret_with_it(
    engine: dict[str, Any], source: str, where: str
) -> None:
    with pytest.raises(DeclarationError) as caught:
        declared(engine, source)
    assert [fault.where for fault in caught.value.faults] == [where]
    assert "s3cret" not in str(caught.value)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("token", ["plain", "a;user_id=mallory;b", "a=b%3B%", ";use_ssl=false", "/?#a b&é+"])
def test_a_token_s_characters_are_no_settings(token: str) -> None:
    client = pytest.importorskip("pyspark.sql.connect.client.core", reason="what speaks to Spark is not here")
    from discreet.engines.spark.worker import address

    remote = declared({"kind": "spark", "remote": "sc://host:1/;use_ssl=true;user_id=us"}).limits.remote
    known = client.DefaultChannelBuilder(address(remote, token, "1-2-3"))
    assert (known.token, known.use_ssl, known.userId, known.get("session_id")) == (token, True, "us", "1-2-3")


def test_letters_are_duckdb_s() -> None:
    """All characters of Unicode but halves of pairs."""
    every = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    select = "SELECT upper(c), lower(c) FROM (SELECT chr(UNNEST(?::INT[])) AS c)"
    with duckdb.connect() as connection:
        found = connection.execute(select, [every]).fetchall()
    for code, (large, small) in zip(every, found, strict=True):
        letter = chr(code)
        assert (letter.upper() if code < 128 else letters.LARGE.get(letter, letter)) == large
        assert letters.small(letter) == small


def test_what_it_lacks_is_refused_by_its_name() -> None:
    known = declaration({"person": "p", "rows_per_person": 3})
    for text, name in {
        "SELECT COUNT(*) FROM t WHERE EXP(w) > 1": "exp",
        "SELECT COUNT(*) FROM t WHERE h ~ 'a+'": "matches",
        "SELECT COUNT(*) FROM t WHERE h LIKE 'a_'": "LIKE with _",
        "SELECT COUNT(*) FROM t WHERE CAST(h AS INTEGER) > 1": "try_cast",
    }.items():
        with pytest.raises(Lacking, match=name):
            SPARK.text(statement(planned(text, known).root, known.tables["t"], Salt.of("a salt")))


def test_a_tree_is_not_changed_by_being_written() -> None:
    known = declaration({"person": "p", "rows_per_person": 3})
    plan = lower("SELECT h, SUM(w) FROM t WHERE UPPER(h) LIKE 'a%b' GROUP BY h", known).plan
    tree = statement(plan.root, known.tables["t"], Salt.of("a salt"))
    before = tree.copy()
    assert SPARK.text(tree) == SPARK.text(tree)
    assert tree == before


def test_no_server_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = EngineLimits(kind=EngineKind.SPARK, remote=f"sc://127.0.0.1:{free_port()}/")
    monkeypatch.setattr(sources, "find_spec", lambda _name: None)
    with pytest.raises(DeclarationError, match="not installed"):
        Spark(limits).types(Source(SourceKind.SPARK, server="spark", relation="a.b"))
    monkeypatch.undo()
    pytest.importorskip("pyspark.sql.connect", reason="what speaks to Spark is not here: pip install pyspark-client")
    engine = Spark(limits)
    with pytest.raises(DeclarationError, match="no server answers there"):
        engine.types(Source(SourceKind.SPARK, server="spark", relation="a.b"))
    engine.close()
