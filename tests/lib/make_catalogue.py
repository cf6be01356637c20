"""Writes `wire/catalog/postgresql_15.json` anew, from a PostgreSQL 15 that runs here: which relations its catalogue
has, with which columns, and its types, with the functions that these name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import discreet
from postgres_tools import Postgres, running

FILE = Path(discreet.__file__).parent / "wire" / "catalog" / "postgresql_15.json"

RELATIONS = """
SELECT n.nspname, c.relname, c.oid::bigint, c.relkind::text, c.reltype::bigint, coalesce(t.typarray::bigint, 0),
  (SELECT string_agg(a.attname || ':' || a.atttypid || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ' '
    ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_type t ON t.oid = c.reltype
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') ORDER BY c.oid"""

TYPES = """
SELECT oid::bigint, typname::text, typnamespace::bigint, typlen::int, typbyval, typtype::text, typcategory::text,
  typispreferred, typdelim::text, typsubscript::oid::bigint, typelem::bigint, typarray::bigint, typinput::oid::bigint,
  typoutput::oid::bigint, typreceive::oid::bigint, typsend::oid::bigint, typmodin::oid::bigint, typmodout::oid::bigint,
  typanalyze::oid::bigint, typalign::text, typstorage::text, typbasetype::bigint, typtypmod, typcollation::bigint,
  format_type(oid, NULL)
FROM pg_type WHERE oid < 16384 AND typrelid = 0
  AND NOT EXISTS (SELECT FROM pg_type e WHERE e.oid = pg_type.typelem AND e.typrelid <> 0) ORDER BY oid"""

FUNCTIONS = """
SELECT p.oid::bigint, p.proname::text, p.prokind::text, p.proretset, p.provolatile::text, p.pronargs::int,
  p.prorettype::bigint, array_to_string(p.proargtypes::oid[], ' ')
FROM pg_proc p WHERE p.oid IN (SELECT unnest(ARRAY[typsubscript, typinput, typoutput, typreceive, typsend, typmodin,
  typmodout, typanalyze]::oid[]) FROM pg_type)
  OR p.oid IN (SELECT unnest(ARRAY[rngcanonical, rngsubdiff]::oid[]) FROM pg_range)
  OR p.oid IN (SELECT amhandler FROM pg_am) OR p.proname IN ('now', 'version', 'format_type', 'current_setting')
ORDER BY p.oid"""

OTHERS = {
    "pg_am": "SELECT oid::bigint, amname::text, amhandler::oid::bigint, amtype::text FROM pg_am ORDER BY oid",
    "pg_collation": "SELECT oid::bigint, collname::text, 11::bigint AS collnamespace, 10::bigint AS collowner, "
    "collprovider::text, collisdeterministic, collencoding, collcollate, collctype FROM pg_collation "
    "WHERE oid IN (100, 950, 951) ORDER BY oid",
    "pg_language": "SELECT oid::bigint, lanname::text, 10::bigint AS lanowner, lanispl, lanpltrusted "
    "FROM pg_language ORDER BY oid",
    "pg_range": "SELECT rngtypid::bigint, rngsubtype::bigint, rngmultitypid::bigint, rngcollation::bigint, "
    "rngsubopc::bigint, rngcanonical::oid::bigint, rngsubdiff::oid::bigint FROM pg_range ORDER BY 1",
    "pg_tablespace": "SELECT oid::bigint, spcname::text, 10::bigint AS spcowner FROM pg_tablespace ORDER BY oid",
    "pg_description": "SELECT objoid::bigint, classoid::bigint, objsubid, description FROM pg_description WHERE "
    "classoid IN ('pg_am'::regclass, 'pg_namespace'::regclass) ORDER BY 1, 2",
    "keywords": "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords()",
}

NAMED = {
    "relations": ["schema", "name", "oid", "kind", "reltype", "typarray", "columns"],
    "functions": ["oid", "proname", "prokind", "proretset", "provolatile", "pronargs", "prorettype", "proargtypes"],
    "types": [
        "oid",
        "typname",
        "typnamespace",
        "typlen",
        "typbyval",
        "typtype",
        "typcategory",
        "typispreferred",
        "typdelim",
        "typsubscript",
        "typelem",
        "typarray",
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typmodout",
        "typanalyze",
        "typalign",
        "typstorage",
        "typbasetype",
        "typtypmod",
        "typcollation",
        "written",
    ],
}


def main() -> None:
    with running(15) as server:
        parts = {"relations": RELATIONS, "types": TYPES, "functions": FUNCTIONS} | OTHERS
        texts = [f"{json.dumps(name)}: {_part(server, name, select)}" for name, select in parts.items()]
    FILE.write_text("{\n" + ",\n".join(texts) + "\n}\n", "utf-8")


def _part(server: Postgres, name: str, select: str) -> str:
    with server.session() as cursor:
        cursor.execute(select)
        columns = NAMED.get(name) or [str(column[0]) for column in cursor.description or ()]
        rows: list[Any] = [list(row) for row in cursor.fetchall()]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in [columns, *rows])
    return f"[\n{lines}\n]"


if __name__ == "__main__":
    main()
