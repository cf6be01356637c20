"""The child that answers what clients ask of the catalogue: a DuckDB with the catalogue's tables and nothing else.

It is told names, types and descriptions of the declared tables, and no more: there is no row about a person here. It
reads no file, no network and no setting, and has limits of memory; its owner ends it where a statement takes too long.
What fails is not said in DuckDB's words.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from discreet.engines.answers import answering
from discreet.engines.child import held
from discreet.wire.catalog import functions
from discreet.wire.catalog.relations import (
    INT2VECTOR,
    OIDVECTOR,
    OWNER,
    OWNER_ROLE,
    USER,
    CatalogRelation,
    Catalogue,
    Row,
)
from discreet.wire.catalog.statement import CatalogStatement, Facts, NotOfCatalog, Refusal, moment

MEMORY = 768 << 20
"""Bytes of address space beside what the program takes."""

MOST_ROWS, MOST_BYTES = 50_000, 16 << 20
"""The size of an answer."""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}

_VIEWS = {
    "pg_tables": (
        "SELECT n.nspname AS schemaname, c.relname AS tablename, 'discreet' AS tableowner, NULL::VARCHAR AS "
        "tablespace, "
        "false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity "
        "FROM pg.pg_class c JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
    ),
    "pg_views": (
        "SELECT n.nspname AS schemaname, c.relname AS viewname, 'discreet' AS viewowner, NULL::VARCHAR AS definition "
        "FROM pg.pg_class c JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'"
    ),
    "pg_user": (
        "SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper, "
        "rolreplication AS userepl, rolbypassrls AS usebypassrls, NULL::VARCHAR AS passwd, NULL::TIMESTAMP AS "
        "valuntil, "
        "NULL::VARCHAR[] AS useconfig FROM pg.pg_roles"
    ),
}
_INFORMATION = {
    "information_schema_catalog_name": "SELECT datname AS catalog_name FROM pg.pg_database",
    "schemata": (
        "SELECT d.datname AS catalog_name, n.nspname AS schema_name, r.rolname AS schema_owner, "
        "NULL::VARCHAR AS default_character_set_catalog, NULL::VARCHAR AS default_character_set_schema, "
        "NULL::VARCHAR AS default_character_set_name, NULL::VARCHAR AS sql_path "
        "FROM pg.pg_namespace n JOIN pg.pg_roles r ON r.oid = n.nspowner, pg.pg_database d WHERE n.nspname <> "
        "'pg_toast'"
    ),
    "tables": (
        "SELECT d.datname AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, "
        "CASE c.relkind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END AS table_type, "
        "NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation, "
        "NULL::VARCHAR AS user_defined_type_catalog, NULL::VARCHAR AS user_defined_type_schema, "
        "NULL::VARCHAR AS user_defined_type_name, CASE c.relkind WHEN 'r' THEN 'YES' ELSE 'NO' END AS "
        "is_insertable_into, "
        "'NO' AS is_typed, NULL::VARCHAR AS commit_action "
        "FROM pg.pg_class c JOIN pg.pg_namespace n ON n.oid = c.relnamespace, pg.pg_database d"
    ),
    "columns": (
        "SELECT d.datname AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, "
        "a.attname AS column_name, a.attnum::INTEGER AS ordinal_position, NULL::VARCHAR AS column_default, "
        "CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable, "
        "CASE WHEN b.typelem <> 0 AND b.typlen = -1 THEN 'ARRAY' WHEN n2.nspname <> 'pg_catalog' AND t.typtype <> 'd' "
        "THEN 'USER-DEFINED' ELSE pg__format_type(b.oid, NULL) END AS data_type, "
        "NULL::INTEGER AS character_maximum_length, "
        "CASE WHEN b.oid IN (25, 1042, 1043) THEN 1073741824 END AS character_octet_length, "
        "CASE b.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 END "
        "AS numeric_precision, CASE WHEN b.oid IN (20, 21, 23, 700, 701) THEN 2 WHEN b.oid = 1700 THEN 10 END "
        "AS numeric_precision_radix, CASE WHEN b.oid IN (20, 21, 23) THEN 0 END AS numeric_scale, "
        "CASE WHEN b.oid IN (1114, 1184, 1083, 1266) THEN 6 WHEN b.oid = 1082 THEN 0 END AS datetime_precision, "
        "NULL::VARCHAR AS interval_type, NULL::INTEGER AS interval_precision, "
        "NULL::VARCHAR AS character_set_catalog, NULL::VARCHAR AS character_set_schema, "
        "NULL::VARCHAR AS character_set_name, "
        "CASE WHEN a.attcollation NOT IN (0, 100) THEN d.datname END AS collation_catalog, "
        "CASE WHEN a.attcollation NOT IN (0, 100) THEN 'pg_catalog' END AS collation_schema, "
        "CASE WHEN a.attcollation NOT IN (0, 100) THEN 'C' END AS collation_name, "
        "CASE WHEN t.typtype = 'd' THEN d.datname END AS domain_catalog, "
        "CASE WHEN t.typtype = 'd' THEN n2.nspname END AS domain_schema, "
        "CASE WHEN t.typtype = 'd' THEN t.typname END AS domain_name, d.datname AS udt_catalog, "
        "CASE WHEN t.typtype = 'd' THEN 'pg_catalog' ELSE n2.nspname END AS udt_schema, b.typname AS udt_name, "
        "NULL::VARCHAR AS scope_catalog, NULL::VARCHAR AS scope_schema, NULL::VARCHAR AS scope_name, "
        "NULL::INTEGER AS maximum_cardinality, a.attnum::VARCHAR AS dtd_identifier, 'NO' AS is_self_referencing, "
        "'NO' AS is_identity, NULL::VARCHAR AS identity_generation, NULL::VARCHAR AS identity_start, "
        "NULL::VARCHAR AS identity_increment, NULL::VARCHAR AS identity_maximum, NULL::VARCHAR AS identity_minimum, "
        "'NO' AS identity_cycle, 'NEVER' AS is_generated, NULL::VARCHAR AS generation_expression, "
        "CASE c.relkind WHEN 'r' THEN 'YES' ELSE 'NO' END AS is_updatable "
        "FROM pg.pg_attribute a JOIN pg.pg_class c ON c.oid = a.attrelid JOIN pg.pg_namespace n ON n.oid = "
        "c.relnamespace "
        "JOIN pg.pg_type t ON t.oid = a.atttypid JOIN pg.pg_namespace n2 ON n2.oid = t.typnamespace "
        "JOIN pg.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, pg.pg_database d"
    ),
    "character_sets": (
        "SELECT NULL::VARCHAR AS character_set_catalog, NULL::VARCHAR AS character_set_schema, "
        "'UTF8' AS character_set_name, 'UCS' AS character_repertoire, 'UTF8' AS form_of_use, "
        "d.datname AS default_collate_catalog, 'pg_catalog' AS default_collate_schema, 'C' AS default_collate_name "
        "FROM pg.pg_database d"
    ),
    "table_privileges": (
        "SELECT 'discreet' AS grantor, current.user_ AS grantee, d.datname AS table_catalog, n.nspname AS "
        "table_schema, "
        "c.relname AS table_name, 'SELECT' AS privilege_type, 'NO' AS is_grantable, 'YES' AS with_hierarchy "
        "FROM pg.pg_class c JOIN pg.pg_namespace n ON n.oid = c.relnamespace, pg.pg_database d, own.current current "
        "WHERE n.oid = 2200"
    ),
}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit = held() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    answering(CatalogWorker, _failed)


def prepare() -> None:
    """Loads what each child needs, once for all."""
    duckdb.connect().execute("SELECT 1").fetchall()


def _failed(_operation: str, error: Exception) -> dict[str, Any]:
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException | duckdb.FatalException):
        os._exit(1)
    return {"wrong": ["catalog", "the catalogue cannot answer this statement", "write it more simply"]}


class CatalogWorker:
    """One statement after another, on one database that no statement changes."""

    def __init__(self) -> None:
        self._catalogue: Catalogue | None = None
        self._seated: tuple[str, str] | None = None
        self._settings: Mapping[str, str] | None = None

    def answer(self, operation: str, *arguments: Any) -> Any:
        """Takes a catalogue ("declare"), or says of a statement which columns it has ("probe") or what it gives."""
        if operation == "declare":
            self._catalogue = Catalogue(*arguments)
            self._database = _made(self._catalogue)
            return {}
        return self._probed(*arguments) if operation == "probe" else self._answer(*arguments)

    def _probed(self, text: str, facts: dict[str, Any]) -> dict[str, Any]:
        assert self._catalogue is not None
        try:
            return {"columns": CatalogStatement(self._catalogue, text, None, Facts(now=moment(), **facts)).probed()}
        except (NotOfCatalog, Refusal, RecursionError):
            return {"elsewhere": True}

    def _answer(self, text: str, values: Sequence[str | None] | None, facts: dict[str, Any]) -> dict[str, Any]:
        assert self._catalogue is not None
        known = Facts(now=moment(), **facts)
        try:
            written = CatalogStatement(self._catalogue, text, values, known).written()
        except NotOfCatalog:
            return {"elsewhere": True}
        except Refusal as refusal:
            return {"wrong": list(refusal.args)}
        with self._database.cursor() as connection:
            self._seat(connection, known)
            statements = connection.extract_statements(written.text)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                return {"wrong": ["catalog", "only a SELECT can be asked of the catalogue", "write one"]}
            found = connection.execute(statements[0])
            kinds = [(str(one[0]), str(one[1])) for one in found.description]
            rows = found.fetchmany(1 if values is None and written.parameters else MOST_ROWS + 1)
        if len(rows) > MOST_ROWS or sum(_size(one) for row in rows for one in row) > MOST_BYTES:
            return {"wrong": ["catalog_size", "the answer is too large", "ask for less, or write LIMIT"]}
        columns = self._columns(kinds, written.columns)
        shown = self._catalogue.shown
        named = [shown.get(kind) for _, kind in columns]
        vectors = [place for place, (_, kind) in enumerate(columns) if kind in (INT2VECTOR, OIDVECTOR)]
        rows = [
            tuple(" ".join(map(str, one)) if place in vectors and one else one for place, one in enumerate(row))
            for row in rows
        ]
        listed = [
            [
                name(one) if name is not None and isinstance(one, int) else _value(one)
                for name, one in zip(named, row, strict=True)
            ]
            for row in rows
        ]
        return {"columns": columns, "rows": listed, "parameters": written.parameters, "sets": written.sets}

    def _columns(
        self, kinds: Sequence[tuple[str, str]], known: Sequence[tuple[str, int | None]] | None
    ) -> list[tuple[str, int]]:
        """Names and types of the answer's columns: by the statement, and where it does not say, by the engine."""
        assert self._catalogue is not None
        if known is None or len(known) != len(kinds):
            known = [(name, None) for name, _ in kinds]
        found = []
        for (name, kind), (_, stored) in zip(known, kinds, strict=True):
            told = kind if kind is not None and kind != 705 else self._kind(stored)
            found.append((name, self._catalogue.base(told)))
        return found

    def _kind(self, stored: str) -> int:
        assert self._catalogue is not None
        if stored.endswith("[]"):
            return self._catalogue.arrays.get(self._kind(stored[:-2]), 1009)
        if stored.startswith("DECIMAL"):
            return 1700
        if stored.startswith("STRUCT"):
            return 25
        kinds: dict[str, int] = {
            "BOOLEAN": 16,
            "TINYINT": 21,
            "SMALLINT": 21,
            "INTEGER": 23,
            "BIGINT": 20,
            "UINTEGER": 26,
            "HUGEINT": 20,
            "UBIGINT": 20,
            "FLOAT": 700,
            "DOUBLE": 701,
            "DATE": 1082,
            "TIMESTAMP": 1114,
        }
        return kinds.get(stored, 25)

    def _seat(self, connection: duckdb.DuckDBPyConnection, facts: Facts) -> None:
        """Writes down who asks, where the catalogue speaks of it."""
        seated = (facts.user, facts.database)
        if seated != self._seated:
            assert self._catalogue is not None
            connection.execute("DELETE FROM own.current; DELETE FROM pg.pg_roles; DELETE FROM pg.pg_database")
            connection.execute("INSERT INTO own.current VALUES ($1)", [facts.user])
            named = ((OWNER, OWNER_ROLE), (USER, facts.user))
            connection.execute("DELETE FROM own.roles")
            connection.executemany("INSERT INTO own.roles VALUES ($1, $2)", named)
            roles = [
                self._catalogue.row(
                    "pg_roles",
                    oid=oid,
                    rolname=name,
                    rolinherit=True,
                    rolcanlogin=oid == USER,
                    rolconnlimit=-1,
                    rolpassword="********",
                    rolsuper=False,
                    rolcreaterole=False,
                    rolcreatedb=False,
                    rolreplication=False,
                    rolbypassrls=False,
                )
                for oid, name in named
            ]
            _insert(connection, self._catalogue, "pg_roles", roles)
            _insert(
                connection,
                self._catalogue,
                "pg_database",
                [
                    self._catalogue.row(
                        "pg_database",
                        oid=5,
                        datname=facts.database,
                        datdba=OWNER,
                        encoding=6,
                        datlocprovider="c",
                        datallowconn=True,
                        datconnlimit=-1,
                        dattablespace=1663,
                        datcollate="C",
                        datctype="C",
                    )
                ],
            )
            self._seated = seated
        if facts.settings != self._settings:
            assert self._catalogue is not None
            connection.execute("DELETE FROM pg.pg_settings; DELETE FROM own.settings")
            connection.execute(
                "INSERT INTO own.settings SELECT unnest($1), unnest($2)",
                [list(facts.settings), list(facts.settings.values())],
            )
            _insert(
                connection,
                self._catalogue,
                "pg_settings",
                [
                    self._catalogue.row(
                        "pg_settings",
                        name=name,
                        setting=value,
                        context="user",
                        vartype="string",
                        source="default",
                        boot_val=value,
                        reset_val=value,
                        pending_restart=False,
                        category="discreet",
                        short_desc="",
                    )
                    for name, value in facts.settings.items()
                ],
            )
            self._settings = facts.settings


def _made(catalogue: Catalogue) -> duckdb.DuckDBPyConnection:
    """The database with the catalogue's tables, views and functions."""
    database = duckdb.connect(":memory:", config=_CONFIG)
    database.execute("SET python_enable_replacements = false")
    database.execute("CREATE SCHEMA pg; CREATE SCHEMA info; CREATE SCHEMA own")
    database.execute("BEGIN")
    database.execute("CREATE TABLE own.current (user_ VARCHAR)")
    database.execute(
        "CREATE TABLE own.nothing (name VARCHAR, default_version VARCHAR, installed_version VARCHAR, comment VARCHAR)"
    )
    for (schema, name), relation in catalogue.relations.items():
        if not (name in _VIEWS and schema == "pg_catalog") and not (name in _INFORMATION and schema != "pg_catalog"):
            database.execute(_created(catalogue, relation))
    for name, rows in catalogue.rows.items():
        _insert(database, catalogue, name, rows)
    for name, pairs in {
        "types": catalogue.written.items(),
        "classes": catalogue.classes.items(),
        "called": [(oid, text) for text, oid in catalogue.called.items()],
        "named": [(oid, text) for text, oid in catalogue.named.items()],
        "hidden": [(one.oid, "") for one in catalogue.relations.values() if one.schema != "pg_catalog"]
        + [(row["oid"], "") for row in catalogue.rows["pg_type"] if row["typnamespace"] == catalogue.information],
        "roles": [],
    }.items():
        database.execute(f"CREATE TABLE own.{name} (own_oid UINTEGER, own_name VARCHAR)")
        given = list(pairs)
        database.execute(
            f"INSERT INTO own.{name} SELECT unnest($1::UINTEGER[]), unnest($2::VARCHAR[])",
            [[oid for oid, _ in given], [one for _, one in given]],
        )
    database.execute(
        "CREATE TABLE own.keywords (word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc "
        "VARCHAR)"
    )
    columns = [
        [row[key] for row in catalogue.keywords] for key in ("word", "catcode", "barelabel", "catdesc", "baredesc")
    ]
    database.execute(
        "INSERT INTO own.keywords SELECT unnest($1), unnest($2), unnest($3), unnest($4), unnest($5)", columns
    )
    database.execute("CREATE TABLE own.settings (own_key VARCHAR, own_name VARCHAR)")
    database.execute(
        "CREATE TABLE own.said (own_object UINTEGER, own_class VARCHAR, own_place INTEGER, own_text VARCHAR)"
    )
    said = [
        [row["objoid"], catalogue.classes[row["classoid"]], row["objsubid"], row["description"]]
        for row in catalogue.rows["pg_description"]
    ]
    database.execute(
        "INSERT INTO own.said SELECT unnest($1), unnest($2), unnest($3), unnest($4)",
        [list(one) for one in zip(*said, strict=True)],
    )
    database.execute("CREATE TABLE own.shown (own_kind INTEGER, own_oid UINTEGER, own_name VARCHAR)")
    shown = [
        (2205, catalogue.classes),
        (2206, catalogue.written),
        (4089, catalogue.schemas),
        (4096, catalogue.roles),
        (24, catalogue.functions),
        (2202, catalogue.functions),
    ]
    triples = [(kind, oid, name) for kind, names in shown for oid, name in names.items()]
    database.execute(
        "INSERT INTO own.shown SELECT unnest($1), unnest($2), unnest($3)",
        [list(one) for one in zip(*triples, strict=True)],
    )
    for name in sorted(functions.MACROS, key=lambda one: one != "given_name"):
        database.execute(f"CREATE MACRO pg__{name}{functions.MACROS[name]}")
    for name, select in _VIEWS.items():
        database.execute(f"CREATE VIEW pg.{name} AS {select}")
    for name, select in _INFORMATION.items():
        database.execute(f"CREATE VIEW info.{name} AS {select}")
    database.execute("COMMIT")
    database.execute("SET lock_configuration = true")
    return database


def _created(catalogue: Catalogue, relation: CatalogRelation) -> str:
    schema = "pg" if relation.schema == "pg_catalog" else "info"
    columns = ", ".join(f'"{name}" {catalogue.stored(kind)}' for name, kind, _ in relation.columns)
    return f'CREATE TABLE {schema}."{relation.name}" ({columns})'


def _insert(database: duckdb.DuckDBPyConnection, catalogue: Catalogue, name: str, rows: Sequence[Row]) -> None:
    """Puts rows into a relation of pg_catalog."""
    columns = catalogue.relations["pg_catalog", name].columns
    taken = ", ".join(f"unnest(${place}::{catalogue.stored(kind)}[])" for place, (_, kind, _) in enumerate(columns, 1))
    database.execute(
        f'INSERT INTO pg."{name}" SELECT {taken}', [[row[column] for row in rows] for column, _, _ in columns]
    )


def _size(value: Any) -> int:
    if isinstance(value, list | dict):
        return 8 + sum(_size(one) for one in (value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, str) else 8


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_value(one) for one in value]
    return str(value)
