"""The catalogue's relations as PostgreSQL 15 has them, filled with the declared tables: what each row says follows from
the declaration, or is the same on every server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

OWNER, OWNER_ROLE, USER = 10, "discreet", 16383
"""The role that everything belongs to, its name, and the number of whoever asks."""
PUBLIC, SYSTEM, TOAST = 2200, 11, 99
"""The numbers of schemas."""
FIRST = 16385
"""The number of the first declared table; each takes as many numbers as PostgreSQL gives it."""

BOOL, NAME, INT8, INT2, INT4, TEXT, OID, FLOAT8, DATE, TIMESTAMP = 16, 19, 20, 21, 23, 25, 26, 701, 1082, 1114
INT2VECTOR, OIDVECTOR, NUMERIC = 22, 30, 1700

KINDS = {"integer": INT8, "number": FLOAT8, "text": TEXT, "boolean": BOOL, "date": DATE, "timestamp": TIMESTAMP}
"""The type of each declared type."""

_STORED = {
    16: "BOOLEAN", 20: "BIGINT", 21: "SMALLINT", 23: "INTEGER", 26: "UINTEGER", 28: "UINTEGER", 29: "UINTEGER",
    24: "UINTEGER", 2202: "UINTEGER", 2203: "UINTEGER", 2204: "UINTEGER", 2205: "UINTEGER", 2206: "UINTEGER",
    3734: "UINTEGER", 3769: "UINTEGER", 4089: "UINTEGER", 4096: "UINTEGER", 4191: "UINTEGER", 700: "FLOAT",
    701: "DOUBLE", 1082: "DATE", 1114: "TIMESTAMP", 1184: "TIMESTAMP", 1186: "INTERVAL", 1700: "DECIMAL(38, 9)",
    22: "SMALLINT[]", 30: "UINTEGER[]", 2277: "VARCHAR",
}  # fmt: skip
"""How values of a type lie in the child's tables; others as text."""


@dataclass(frozen=True)
class CatalogRelation:
    """A relation of the catalogue; `columns` are names, numbers of types, and whether there is always a value."""

    schema: str
    name: str
    oid: int
    kind: str
    rowtype: int
    array: int
    columns: tuple[tuple[str, int, bool], ...]


Declared = Sequence[tuple[str, str, Sequence[tuple[str, str | None, str, bool]]]]
"""Names of tables, what is said of each, and their columns: name, type, what is said of it, whether it may be NULL."""

Row = dict[str, Any]


class Catalogue:
    """The relations, types and rows for these declared tables."""

    def __init__(self, declared: Declared, schema: str = "public") -> None:
        text = files(__package__).joinpath("postgresql_15.json").read_text("utf-8")
        self._parts: dict[str, list[Row]] = {
            name: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for name, rows in json.loads(text).items()
        }
        self.relations = {
            (row["schema"], row["name"]): CatalogRelation(
                row["schema"], row["name"], row["oid"], row["kind"], row["reltype"], row["typarray"],
                tuple((name, int(kind.rstrip("!")), kind.endswith("!"))
                      for name, _, kind in (one.rpartition(":") for one in row["columns"].split(" "))),
            )
            for row in self._parts["relations"]
        }  # fmt: skip
        self.declared, self.schema = declared, schema
        self.tables = {name: FIRST + 6 * place for place, (name, _, _) in enumerate(declared)}
        self._bases: dict[int, int] = {
            row["oid"]: row["typbasetype"] for row in self._parts["types"] if row["typbasetype"]
        }
        self._elements: dict[int, int] = {
            row["oid"]: row["typelem"] for row in self._parts["types"] if row["typcategory"] == "A" and row["typelem"]
        }
        self.arrays: dict[int, int] = {row["oid"]: row["typarray"] for row in self._parts["types"] if row["typarray"]}
        self.functions: dict[int, str] = {row["oid"]: row["proname"] for row in self._parts["functions"]}
        self.schemas = {
            SYSTEM: "pg_catalog",
            PUBLIC: schema,
            TOAST: "pg_toast",
            self.information: "information_schema",
        }
        self.roles = {OWNER: OWNER_ROLE}

    @cached_property
    def of_people(self) -> dict[str, CatalogRelation]:
        """The declared tables by their names in small letters."""
        return {
            name.lower(): CatalogRelation(
                self.schema, name, self.tables[name], "r", self.tables[name] + 2, self.tables[name] + 1,
                tuple((column, KINDS.get(kind or "", TEXT), False) for column, kind, _, _ in columns),
            )
            for name, _, columns in self.declared
        }  # fmt: skip

    @cached_property
    def information(self) -> int:
        """The number of the schema information_schema: the first that a server gives before its relations."""
        return int(next(row["typnamespace"] for row in self._parts["types"] if row["typname"] == "sql_identifier"))

    def element(self, kind: int) -> int | None:
        """The type of an array's elements."""
        return {INT2VECTOR: INT2, OIDVECTOR: OID}.get(kind) or self._elements.get(kind)

    def base(self, kind: int) -> int:
        """The type that a domain stands on, or the type itself."""
        return self._bases.get(kind, kind)

    def stored(self, kind: int) -> str:
        """The child's type for values of a type."""
        kind = self.base(kind)
        if kind in _STORED:
            return _STORED[kind]
        element = self._elements.get(kind)
        return "VARCHAR" if element is None else f"{self.stored(element)}[]"

    @cached_property
    def written(self) -> dict[int, str]:
        """Each type as PostgreSQL writes it."""
        written = {row["oid"]: row["written"] for row in self._parts["types"]}
        for oid, (schema, name) in self._rows_of.items():
            for number, ending in ((oid, ""), (self._array_of[oid], "[]")):
                if number:
                    ours = schema == self.schema
                    shown = quoted(name) if ours else name if schema == "pg_catalog" else f"{schema}.{name}"
                    written[number] = shown + ending
        return written

    @cached_property
    def named(self) -> dict[str, int]:
        """Types by all their names."""
        names = {text: oid for oid, text in self.written.items()}
        for row in self.rows["pg_type"]:
            schema = self.schemas[row["typnamespace"]]
            if schema != "information_schema":
                names.setdefault(row["typname"], row["oid"])
            names[f"{schema}.{row['typname']}"] = row["oid"]
        return names | {"int": INT4, "decimal": NUMERIC, "float": FLOAT8, "serial": INT4, "string": TEXT}

    @cached_property
    def _rows_of(self) -> dict[int, tuple[str, str]]:
        """The types that are rows of a relation."""
        found = {one.rowtype: (one.schema, one.name) for one in self.relations.values() if one.rowtype}
        return found | {oid + 2: (self.schema, name) for name, oid in self.tables.items()}

    @cached_property
    def _array_of(self) -> dict[int, int]:
        found = {one.rowtype: one.array for one in self.relations.values() if one.rowtype}
        return found | {oid + 2: oid + 1 for oid in self.tables.values()}

    @cached_property
    def classes(self) -> dict[int, str]:
        """Each relation as `::regclass` shows it."""
        shown = {
            one.oid: one.name if one.schema == "pg_catalog" else f"{one.schema}.{one.name}"
            for one in self.relations.values()
        }
        return shown | {oid: quoted(name) for name, oid in self.tables.items()}

    @cached_property
    def called(self) -> dict[str, int]:
        """Relations by all names that `::regclass` reads."""
        found: dict[str, int] = {}
        for name, oid in self.tables.items():
            for one in (name, quoted(name), f'"{name}"'):
                found |= {one: oid, f"{self.schema}.{one}": oid, f'"{self.schema}".{one}': oid}
        for (schema, name), relation in self.relations.items():
            if schema == "pg_catalog":
                found[name] = relation.oid
            found[f"{schema}.{name}"] = relation.oid
        return found

    def row(self, relation: str, schema: str = "pg_catalog", **known: Any) -> Row:
        """A row with what is known of it, and elsewhere what means nothing."""
        empty: dict[str, Any] = {"BOOLEAN": False, "VARCHAR": ""}
        found = {}
        for name, kind, always in self.relations[schema, relation].columns:
            stored = self.stored(kind)
            found[name] = known.get(name, empty.get(stored, [] if "[" in stored else 0) if always else None)
        return found

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of each relation of pg_catalog that has some."""
        settled = {
            "pg_am": self._given("pg_am"),
            "pg_collation": self._given("pg_collation"),
            "pg_language": self._given("pg_language"),
            "pg_range": self._given("pg_range"),
            "pg_tablespace": self._given("pg_tablespace"),
            "pg_proc": [
                self.row("pg_proc", pronamespace=SYSTEM, proowner=OWNER, prolang=12, procost=1.0, proisstrict=True,
                         proparallel="s", prosrc=one["proname"],
                         **{**one, "proargtypes": [int(kind) for kind in one["proargtypes"].split()]})
                for one in self._parts["functions"]
            ],
        }  # fmt: skip
        settled["pg_namespace"] = [
            self.row("pg_namespace", oid=oid, nspname=name, nspowner=OWNER) for oid, name in self.schemas.items()
        ]
        return settled | {
            "pg_type": self._types(),
            "pg_class": [
                *(self._class(one.name, one.oid, one.kind, self._schema(one.schema), one.rowtype, len(one.columns))
                  for one in self.relations.values()),
                *(self._class(name, self.tables[name], "r", PUBLIC, self.tables[name] + 2, len(columns))
                  for name, _, columns in self.declared),
            ],
            "pg_attribute": [
                *(self._attribute(one.oid, place, name, kind, always)
                  for one in self.relations.values() for place, (name, kind, always) in enumerate(one.columns, 1)),
                *(self._attribute(self.tables[table], place, name, KINDS.get(kind or "", TEXT), False)
                  for table, _, columns in self.declared for place, (name, kind, _, _) in enumerate(columns, 1)),
            ],
            "pg_description": [
                *self._given("pg_description"),
                *(self.row("pg_description", objoid=self.tables[table], classoid=1259, objsubid=place, description=said)
                  for table, about, columns in self.declared
                  for place, said in enumerate([about, *(words for _, _, words, _ in columns)]) if said),
            ],
        }  # fmt: skip

    def _given(self, relation: str) -> list[Row]:
        return [self.row(relation, **row) for row in self._parts[relation]]

    @property
    def keywords(self) -> list[Row]:
        """What pg_get_keywords gives."""
        return self._parts["keywords"]

    def _schema(self, name: str) -> int:
        return next(oid for oid, known in self.schemas.items() if known == name)

    def _class(self, name: str, oid: int, kind: str, schema: int, rowtype: int, columns: int) -> Row:
        table = kind == "r"
        return self.row(
            "pg_class", oid=oid, relname=name, relnamespace=schema, reltype=rowtype, relowner=OWNER,
            relam=2 if table else 0, reltuples=-1.0, relpersistence="p", relkind=kind, relnatts=columns,
            relhasrules=not table, relispopulated=True, relreplident="d" if schema == PUBLIC else "n",
        )  # fmt: skip

    def _attribute(self, relation: int, place: int, name: str, kind: int, always: bool) -> Row:
        known = self._type_of[kind]
        return self.row(
            "pg_attribute", attrelid=relation, attname=name, atttypid=kind, attstattarget=-1, attlen=known["typlen"],
            attnum=place, attcacheoff=-1, atttypmod=-1, attbyval=known["typbyval"], attalign=known["typalign"],
            attstorage=known["typstorage"], attnotnull=always, attislocal=True, attcollation=known["typcollation"],
            attndims=int(known["typcategory"] == "A" and kind not in (INT2VECTOR, OIDVECTOR)),
        )  # fmt: skip

    @cached_property
    def _type_of(self) -> dict[int, Row]:
        return {row["oid"]: row for row in self.rows_of_types}

    @cached_property
    def rows_of_types(self) -> list[Row]:
        """The rows of pg_type."""
        return self._types()

    def _types(self) -> list[Row]:
        functions = {name: oid for oid, name in self.functions.items()}
        found = [
            self.row("pg_type", typowner=OWNER, typisdefined=True, **{"typtypmod": -1, **row})
            for row in self._parts["types"]
        ]
        relations = {one.rowtype: one.oid for one in self.relations.values()}
        relations |= {oid + 2: oid for oid in self.tables.values()}
        for oid, (schema, name) in self._rows_of.items():
            array = self._array_of[oid]
            common: Row = {
                "typnamespace": self._schema(schema), "typowner": OWNER, "typlen": -1, "typisdefined": True,
                "typdelim": ",", "typalign": "d", "typstorage": "x", "typtypmod": -1,
            }  # fmt: skip
            found.append(
                self.row(
                    "pg_type",
                    oid=oid,
                    typname=name,
                    typtype="c",
                    typcategory="C",
                    typrelid=relations[oid],
                    typarray=array,
                    typinput=functions["record_in"],
                    typoutput=functions["record_out"],
                    typreceive=functions["record_recv"],
                    typsend=functions["record_send"],
                    **common,
                )
            )
            if array:
                found.append(
                    self.row(
                        "pg_type",
                        oid=array,
                        typname=f"_{name}",
                        typtype="b",
                        typcategory="A",
                        typelem=oid,
                        typsubscript=functions["array_subscript_handler"],
                        typinput=functions["array_in"],
                        typoutput=functions["array_out"],
                        typreceive=functions["array_recv"],
                        typsend=functions["array_send"],
                        typanalyze=functions["array_typanalyze"],
                        **common,
                    )
                )
        return found

    @cached_property
    def shown(self) -> dict[int, Callable[[int], str]]:
        """How a number is shown where its type says what it numbers."""

        def by(names: Mapping[int, str]) -> Callable[[int], str]:
            return lambda number: names.get(number, str(number) if number else "-")

        functions, classes, types = by(self.functions), by(self.classes), by(self.written)
        return {
            24: functions,
            2202: functions,
            2205: classes,
            2206: types,
            4089: by(self.schemas),
            4096: by(self.roles),
        }


def quoted(name: str) -> str:
    """A name as PostgreSQL writes it: in quotes where it needs them."""
    plain = name.replace("_", "a").isalnum() and name.isascii() and name == name.lower() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'
