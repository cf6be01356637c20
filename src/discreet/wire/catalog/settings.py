"""The settings that SHOW and current_setting know: clients ask for them when they connect."""

from __future__ import annotations

from collections.abc import Mapping

SAME = {
    "server_version": "15.0", "server_version_num": "150000", "server_encoding": "UTF8", "client_encoding": "UTF8",
    "standard_conforming_strings": "on", "integer_datetimes": "on", "is_superuser": "off", "TimeZone": "UTC",
    "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "bytea_output": "hex", "extra_float_digits": "1",
    "transaction_isolation": "read committed", "default_transaction_isolation": "read committed",
    "transaction_read_only": "on", "default_transaction_read_only": "on", "transaction_deferrable": "off",
    "default_transaction_deferrable": "off", "search_path": "public", "lc_collate": "C", "lc_ctype": "C",
    "lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C", "max_identifier_length": "63",
    "max_index_keys": "32", "max_function_args": "100", "block_size": "8192", "application_name": "",
    "statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "notice", "row_security": "on", "jit": "off", "in_hot_standby": "off", "ssl": "on",
    "escape_string_warning": "on", "backslash_quote": "safe_encoding", "array_nulls": "on",
    "password_encryption": "scram-sha-256", "port": "5432", "max_connections": "100", "wal_level": "replica",
    "xmloption": "content", "enable_seqscan": "on", "work_mem": "4MB", "session_authorization": "default",
    "default_tablespace": "", "default_table_access_method": "heap", "temp_tablespaces": "",
    "default_with_oids": "off", "synchronous_commit": "on",
    "timezone_abbreviations": "Default", "default_text_search_config": "pg_catalog.simple",
    "check_function_bodies": "on",
    "session_replication_role": "origin", "role": "none",
}  # fmt: skip

WORDS = {
    "transaction isolation level": "transaction_isolation",
    "time zone": "timezone",
    "session authorization": "session_authorization",
}
"""Settings that SHOW has in several words."""


def settled(own: Mapping[str, str]) -> dict[str, str]:
    """All settings by their names in small letters, with what a session has set itself."""
    return {name.lower(): value for name, value in SAME.items()} | {name.lower(): value for name, value in own.items()}


def written(name: str) -> str:
    """A setting's name as PostgreSQL writes it."""
    return next((one for one in SAME if one.lower() == name), name)
