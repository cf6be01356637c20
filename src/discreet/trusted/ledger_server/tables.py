"""The tables of a ledger on a PostgreSQL server: what is made there, and what must be found at each connection.

They are those of a file (`ledger.schema`). `origin` says of which version they are and on which server; who writes
locks it. What is found is held against what was made: another column, a trigger, a rule, a policy or a function that
anybody has put there, an unlogged table, rights of others to write: each is refused. Nothing of others is run: the
schema belongs to the role that connects, nobody else may make anything in it, and names are looked up in the server's
own schema and in this one alone.
"""

from __future__ import annotations

import hashlib

from discreet.errors import LedgerError
from discreet.trusted.ledger import schema
from discreet.trusted.ledger.chain import Connection

OLDEST = 150_000
"""Servers of this version, 15.0, and later ones keep ledgers."""

TABLES = (
    "CREATE TABLE origin (version int8 NOT NULL, server text NOT NULL)",
    'CREATE TABLE entries (seq int8 PRIMARY KEY, kind text COLLATE "C" NOT NULL, reserve int8,'
    ' analyst text COLLATE "C", account text COLLATE "C", key text COLLATE "C", request text COLLATE "C",'
    " nonce bytea NOT NULL, body text NOT NULL, hash bytea NOT NULL, answer bytea)",
    'CREATE TABLE states (kind text COLLATE "C", name text COLLATE "C", state text NOT NULL, PRIMARY KEY (kind, name))',
    *(one for one in schema.TABLES if "INDEX" in one),
    "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'entries stay'; END$$",
    "CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries EXECUTE FUNCTION stay()",
    "ALTER TABLE entries ENABLE ALWAYS TRIGGER entries_stay",  # whatever session_replication_role is
    "REVOKE UPDATE, DELETE, TRUNCATE ON entries FROM CURRENT_USER",
)

FACTS = """
WITH here AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = $1),
made AS (SELECT c.* FROM pg_class c JOIN here ON c.relnamespace = here.oid WHERE c.relkind NOT IN ('i', 'I'))
SELECT concat_ws(' ', known.type, known.name)
FROM pg_depend d JOIN here ON d.refobjid = here.oid, LATERAL pg_identify_object(d.classid, d.objid, 0) AS known
WHERE d.refclassid = CAST('pg_namespace' AS regclass)
UNION ALL
SELECT concat_ws(' ', relname, relkind, relpersistence, relowner = nspowner, relrowsecurity, relhasrules,
    relhassubclass, relispartition) FROM made, here
UNION ALL
SELECT concat_ws(' ', relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, atthasdef, collname)
FROM made JOIN pg_attribute ON attrelid = made.oid LEFT JOIN pg_collation l ON l.oid = attcollation WHERE attnum > 0
UNION ALL
SELECT concat_ws(' ', pg_get_indexdef(indexrelid, 0, true), indisvalid) FROM pg_index JOIN made ON indrelid = made.oid
UNION ALL
SELECT concat_ws(' ', conname, pg_get_constraintdef(k.oid)) FROM pg_constraint k JOIN made ON conrelid = made.oid
WHERE contype <> 'n'
UNION ALL
SELECT concat_ws(' ', pg_get_triggerdef(t.oid, true), tgenabled) FROM pg_trigger t JOIN made ON tgrelid = made.oid
UNION ALL
SELECT concat_ws(' ', proname, prosrc, lanname, prosecdef, proconfig, proowner = nspowner)
FROM pg_proc JOIN here ON pronamespace = here.oid JOIN pg_language l ON l.oid = prolang
UNION ALL
SELECT concat_ws(' ', relname, 'others may', privilege_type)
FROM made, here, LATERAL aclexplode(relacl) WHERE grantee <> relowner AND privilege_type <> 'SELECT'
UNION ALL
SELECT concat_ws(' ', relname, attname, 'others may', privilege_type)
FROM made JOIN pg_attribute ON attrelid = made.oid, LATERAL aclexplode(attacl)
WHERE grantee <> relowner AND privilege_type <> 'SELECT'
UNION ALL
SELECT 'others may make something' FROM pg_namespace n JOIN here ON n.oid = here.oid, LATERAL aclexplode(nspacl)
WHERE grantee <> n.nspowner AND privilege_type = 'CREATE'
"""
"""What the server says of all that is in a schema."""

_FOUND = "162786eb6000e734ce967a1ed38ef62858557780ef0e389b4c642c9bab5d8eaf"
"""The SHA-256 of the facts of a ledger's schema, in order, a line each: a test has
them."""

_OWNER = "SELECT pg_get_userbyid(nspowner) = current_user FROM pg_namespace WHERE nspname = $1"
_ANY = "SELECT count(*) FROM pg_depend d JOIN pg_namespace n ON d.refobjid = n.oid WHERE n.nspname = $1"
_ANY += " AND d.refclassid = CAST('pg_namespace' AS regclass)"
_STRANGE = """
SELECT EXISTS (SELECT FROM pg_namespace, LATERAL aclexplode(nspacl)
    WHERE nspname = $1 AND grantee <> nspowner AND privilege_type = 'CREATE')
OR EXISTS (SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = oprnamespace WHERE nspname = $1)
OR EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = $1 AND proname <> 'stay')
"""
_ORIGIN = (
    "SELECT concat_ws(' ', (pg_control_system()).system_identifier,"
    " left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),"
    " (SELECT oid FROM pg_database WHERE datname = current_database()),"
    " (SELECT oid FROM pg_namespace WHERE nspname = $1))"
)
_POWER = (
    "SELECT rolsuper, getdatabaseencoding(), current_setting('server_version_num'), pg_backend_pid()"
    " FROM pg_roles WHERE rolname = current_user"
)


def check_server(connection: Connection, process: int) -> None:
    """Make sure of the server, the role and the way to it, whose process there has this number as it was said at login:
    behind a pooler a session is not ours. Raises LedgerError."""
    super_, encoding, version, pid = connection.execute(_POWER).fetchone()
    LedgerError.unless(pid == process, "server pooled")
    LedgerError.unless(int(version) >= OLDEST, "server old")
    LedgerError.unless(encoding == "UTF8", "server encoding")
    LedgerError.unless(not super_, "server power")


def there(connection: Connection, name: str) -> bool:
    """Whether the schema has anything in it. Raises LedgerError where it is another role's."""
    owner = connection.execute(_OWNER, (name,)).fetchone()
    LedgerError.unless(owner is None or owner[0], "server taken")
    return bool(connection.execute(_ANY, (name,)).fetchone()[0])


def check(connection: Connection, name: str, *, lost: bool) -> None:
    """Make sure that the schema is a ledger's, as it was made and, unless it was `lost`, where it was made. From then
    on it is of the present version. Raises LedgerError."""
    LedgerError.unless(there(connection, name), "server none")
    enter(connection, name)
    LedgerError.unless(facts(connection, name) == _FOUND, "tables")
    version, server = connection.execute("SELECT version, server FROM origin").fetchone() or (0, "")
    LedgerError.unless(version <= schema.VERSION, "newer")
    if version < schema.VERSION:
        connection.execute("UPDATE origin SET version = $1", (schema.VERSION,))
    LedgerError.unless(lost or server == origin(connection, name), "server other")


def enter(connection: Connection, name: str) -> None:
    """From now on names are looked up in this schema, after the server's own, where nobody else has made or may make
    what a statement of ours would run: the look at it would run it too. Raises LedgerError."""
    LedgerError.unless(not connection.execute(_STRANGE, (name,)).fetchone()[0], "tables")
    connection.execute(f"SET search_path = {quoted(name)}, pg_temp")


def quoted(name: str) -> str:
    """A name in double quotes, as SQL reads it; a quote in it is doubled."""
    return '"' + name.replace('"', '""') + '"'


def facts(connection: Connection, name: str) -> str:
    """What the server says of all that is in a schema, as one hash."""
    found = sorted(text for (text,) in connection.execute(FACTS, (name,)).fetchall())
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def origin(connection: Connection, name: str) -> str:
    """Where a schema is: the server's own number, how often another has taken over from it, the database, the schema.

    A replica that takes over, a server that was set back to an earlier moment, and tables that were restored from a
    copy have another one: each may lack what was charged last, and the note of a machine that charged before knows
    nothing of that.
    """
    return str(connection.execute(_ORIGIN, (name,)).fetchone()[0])
