"""The functions that a statement about the catalogue may call: what each is to the child's engine, and which type
its result has. There are no others."""

from __future__ import annotations

from discreet.wire.catalog.relations import BOOL, INT4, INT8, NAME, OID, TEXT

NAMES, TEXTS, CHAR, TIMESTAMPTZ, FLOAT4 = 1003, 1009, 18, 1184, 700

MACROS = {
    "format_type": (
        "(kind, modifier) AS CASE WHEN kind IS NULL THEN NULL ELSE coalesce((SELECT own_.own_name FROM own.types own_ "
        "WHERE own_.own_oid = kind::UINTEGER), '???') END"
    ),
    "pg_get_userbyid": (
        "(role) AS coalesce((SELECT own_.own_name FROM own.roles own_ WHERE own_.own_oid = role), 'unknown')"
    ),
    "pg_table_is_visible": "(relation) AS relation::UINTEGER NOT IN (SELECT own_.own_oid FROM own.hidden own_)",
    "pg_type_is_visible": "(kind) AS kind::UINTEGER NOT IN (SELECT own_.own_oid FROM own.hidden own_)",
    "obj_description": (
        "(object, catalog := 'pg_class') AS (SELECT own_.own_text FROM own.said own_ WHERE own_.own_object = object "
        "AND own_.own_place = 0 AND own_.own_class = catalog)"
    ),
    "shobj_description": "(object, catalog) AS NULL::VARCHAR",
    "col_description": (
        "(relation, place) AS (SELECT own_.own_text FROM own.said own_ WHERE own_.own_object = relation "
        "AND own_.own_place = place AND own_.own_class = 'pg_class')"
    ),
    "number_of_called": (
        "(given) AS coalesce(try_cast(given AS UINTEGER), "
        "(SELECT own_.own_oid FROM own.called own_ WHERE own_.own_name = given::VARCHAR))"
    ),
    "number_of_named": (
        "(given) AS coalesce(try_cast(given AS UINTEGER), "
        "(SELECT own_.own_oid FROM own.named own_ WHERE own_.own_name = given::VARCHAR))"
    ),
    "text_of": (
        "(sort, number) AS CASE WHEN number IS NULL THEN NULL WHEN number = 0 THEN '-' ELSE "
        "coalesce((SELECT own_.own_name FROM own.shown own_ WHERE own_.own_kind = sort AND own_.own_oid = number), "
        "number::VARCHAR) END"
    ),
    "array_to_string": "(given, between, missing := NULL) AS array_to_string(given, between)",
    "array_upper": "(given, dimension) AS CASE WHEN len(given) > 0 THEN len(given)::INTEGER END",
    "array_lower": "(given, dimension) AS CASE WHEN len(given) > 0 THEN 1 END",
    "array_length": "(given, dimension) AS CASE WHEN len(given) > 0 THEN len(given)::INTEGER END",
    "cardinality": "(given) AS len(given)::INTEGER",
    "_pg_expandarray": (
        "(given) AS unnest([{'x': value, 'n': place::INTEGER} FOR value, place IN coalesce(given, [])])"
    ),
    "_pg_truetypid": "(a, t) AS a.atttypid",
    "pg_encoding_to_char": "(encoding) AS CASE encoding WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END",
    "pg_char_to_encoding": "(encoding) AS CASE upper(encoding) WHEN 'UTF8' THEN 6 WHEN 'SQL_ASCII' THEN 0 ELSE -1 END",
    "quote_ident": (
        "(given) AS CASE WHEN regexp_full_match(given, '[a-z_][a-z0-9_$]*') THEN given "
        "ELSE '\"' || replace(given, '\"', '\"\"') || '\"' END"
    ),
    "quote_literal": "(given) AS '''' || replace(given, '''', '''''') || ''''",
    "to_regclass": (
        "(given) AS (SELECT own_.own_oid FROM own.called own_ WHERE own_.own_name = pg__given_name(given))"
    ),
    "to_regtype": ("(given) AS (SELECT own_.own_oid FROM own.named own_ WHERE own_.own_name = pg__given_name(given))"),
    "pg_relation_is_publishable": "(relation) AS relation >= 16384",
    "has_table_privilege": "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) LIKE 'select%'",
    "has_any_column_privilege": "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) LIKE 'select%'",
    "has_column_privilege": ("(a, b, c, d := '') AS lower(CASE WHEN d = '' THEN c::VARCHAR ELSE d END) LIKE 'select%'"),
    "has_schema_privilege": "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) = 'usage'",
    "has_database_privilege": (
        "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) IN ('connect', 'temp', 'temporary')"
    ),
    "has_function_privilege": "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) = 'execute'",
    "has_type_privilege": "(a, b, c := '') AS lower(CASE WHEN c = '' THEN b::VARCHAR ELSE c END) = 'usage'",
    "has_sequence_privilege": "(a, b, c := '') AS false",
    "has_tablespace_privilege": "(a, b, c := '') AS false",
    "pg_has_role": "(a, b, c := '') AS a::VARCHAR <> '10'",
    "pg_size_pretty": "(bytes) AS bytes::VARCHAR || ' bytes'",
    "given_name": "(given) AS CASE WHEN given LIKE '%\"%' THEN given ELSE lower(given) END",
    "setting": "(given) AS (SELECT own_.own_name FROM own.settings own_ WHERE own_.own_key = lower(given))",
    "array_position": "(given, sought) AS list_position(given, sought)",
    "array_remove": "(given, sought) AS list_filter(given, lambda one: one <> sought)",
    "array_append": "(given, more) AS list_append(given, more)",
    "array_cat": "(given, more) AS list_concat(given, more)",
    "in_place": (
        "(place, value) AS CASE place WHEN '%s' THEN coalesce(value, '') WHEN '%I' THEN pg__quote_ident(value) "
        "WHEN '%L' THEN coalesce(pg__quote_literal(value), 'NULL') ELSE '' END"
    ),
    "format": (
        "(pattern, a := NULL, b := NULL, c := NULL) AS "
        "regexp_split_to_array(pattern, '%[sIL]')[1] || "
        "pg__in_place(regexp_extract_all(pattern, '%[sIL]')[1], a::VARCHAR) || "
        "coalesce(regexp_split_to_array(pattern, '%[sIL]')[2], '') || "
        "pg__in_place(regexp_extract_all(pattern, '%[sIL]')[2], b::VARCHAR) || "
        "coalesce(regexp_split_to_array(pattern, '%[sIL]')[3], '') || "
        "pg__in_place(regexp_extract_all(pattern, '%[sIL]')[3], c::VARCHAR) || "
        "coalesce(regexp_split_to_array(pattern, '%[sIL]')[4], '')"
    ),
}
"""By name the definition of a macro in DuckDB, where its name is the same with `pg__` before it."""

NULLS = {
    **dict.fromkeys(
        [
            "pg_get_expr",
            "pg_get_constraintdef",
            "pg_get_indexdef",
            "pg_get_viewdef",
            "pg_get_ruledef",
            "pg_get_triggerdef",
            "pg_get_functiondef",
            "pg_get_function_result",
            "pg_get_function_arguments",
            "pg_get_function_identity_arguments",
            "pg_get_function_sqlbody",
            "pg_get_serial_sequence",
            "pg_get_partkeydef",
            "pg_get_statisticsobjdef",
            "pg_get_statisticsobjdef_columns",
            "pg_get_partition_constraintdef",
            "pg_tablespace_location",
            "inet_server_addr",
            "pg_relation_filepath",
            "pg_describe_object",
            "pg_stat_get_db_conflict_all",
            "inet_client_addr",
        ],
        TEXT,
    ),
    **dict.fromkeys(["pg_stat_get_numscans", "pg_stat_get_tuples_returned", "pg_sequence_last_value"], INT8),
    "json_build_object": 114,
    "pg_my_temp_schema": OID,
    "pg_is_other_temp_schema": BOOL,
    "inet_server_port": INT4,
    "inet_client_port": INT4,
}
"""Functions of what is never here: each gives NULL, of this type."""

ZEROS = {
    **dict.fromkeys(
        [
            "pg_table_size",
            "pg_total_relation_size",
            "pg_relation_size",
            "pg_indexes_size",
            "pg_database_size",
            "pg_tablespace_size",
            "txid_current",
            "pg_current_xact_id",
        ],
        INT8,
    ),
}
"""Functions that give 0 here: no size depends on a row."""

TRUTHS = {
    **dict.fromkeys(
        [
            "pg_function_is_visible",
            "pg_operator_is_visible",
            "pg_opclass_is_visible",
            "pg_opfamily_is_visible",
            "pg_collation_is_visible",
            "pg_conversion_is_visible",
            "pg_ts_config_is_visible",
            "pg_ts_dict_is_visible",
            "pg_ts_parser_is_visible",
            "pg_ts_template_is_visible",
            "pg_statistics_obj_is_visible",
        ],
        True,
    ),
    "pg_is_in_recovery": False,
    "pg_is_wal_replay_paused": False,
    "pg_try_advisory_lock": True,
    "pg_advisory_unlock": True,
    "row_security_active": False,
    "pg_column_is_updatable": False,
    "pg_relation_is_updatable": False,
}
"""Functions that say the same of everything."""

PASSED = {
    "lower": TEXT, "upper": TEXT, "length": INT4, "char_length": INT4, "concat": TEXT, "left": TEXT, "right": TEXT,
    "split_part": TEXT, "strpos": INT4, "abs": None, "row_number": INT8, "rank": INT8, "dense_rank": INT8,
    "string_agg": TEXT, "array_agg": None, "count": INT8, "min": None, "max": None, "sum": None, "bool_and": BOOL,
    "bool_or": BOOL, "coalesce": None, "nullif": None, "greatest": None, "least": None, "replace": TEXT,
    "substring": TEXT, "substr": TEXT, "trim": TEXT, "ltrim": TEXT, "rtrim": TEXT, "unnest": None,
    "generate_series": None,
    "generate_subscripts": INT4, "regexp_replace": TEXT, "round": None, "exists": BOOL, "any_value": None,
    "avg": None,
    "concat_ws": TEXT, "starts_with": BOOL, "ascii": INT4, "reverse": TEXT, "mod": None, "floor": None, "ceil": None,
}  # fmt: skip
"""Functions that the child's engine has too; None: the type follows from what they are given."""

KINDS: dict[str, int] = {
    "format_type": TEXT, "pg_get_userbyid": NAME, "pg_table_is_visible": BOOL, "pg_type_is_visible": BOOL,
    "obj_description": TEXT, "shobj_description": TEXT, "col_description": TEXT, "array_to_string": TEXT,
    "array_upper": INT4, "array_lower": INT4, "array_length": INT4, "cardinality": INT4, "pg_encoding_to_char": NAME,
    "pg_char_to_encoding": INT4, "quote_ident": TEXT, "quote_literal": TEXT, "to_regclass": 2205, "to_regtype": 2206,
    "current_database": NAME, "current_catalog": NAME, "current_user": NAME, "session_user": NAME, "user": NAME,
    "current_role": NAME, "current_schema": NAME, "current_schemas": NAMES, "version": TEXT, "pg_backend_pid": INT4,
    "current_setting": TEXT, "set_config": TEXT, "now": TIMESTAMPTZ, "current_timestamp": TIMESTAMPTZ,
    "transaction_timestamp": TIMESTAMPTZ, "statement_timestamp": TIMESTAMPTZ, "clock_timestamp": TIMESTAMPTZ,
    "pg_postmaster_start_time": TIMESTAMPTZ, "pg_conf_load_time": TIMESTAMPTZ, "getdatabaseencoding": NAME,
    "pg_client_encoding": NAME, "pg_size_pretty": TEXT, "pg_advisory_unlock_all": 2278,
    "pg_relation_is_publishable": BOOL,
    "current_date": 1082, "array_position": INT4, "format": TEXT, "to_char": TEXT,
    **{name: BOOL for name in MACROS if name.startswith(("has_", "pg_has_"))},
    **{name: kind for name, kind in PASSED.items() if kind is not None},
    **NULLS, **ZEROS, **dict.fromkeys(TRUTHS, BOOL),
}  # fmt: skip
"""The types of results."""

TABLES = {
    "unnest", "generate_series", "generate_subscripts", "pg_get_keywords", "pg_available_extensions",
    "pg_available_extension_versions", "_pg_expandarray", "pg_partition_ancestors", "pg_listening_channels",
    "pg_options_to_table", "aclexplode",
}  # fmt: skip
"""Functions that give rows."""

SPOKEN = {
    "current_database", "current_catalog", "current_user", "session_user", "user", "current_role", "current_schema",
    "current_schemas", "version", "pg_backend_pid", "current_setting", "set_config", "now", "current_timestamp",
    "transaction_timestamp", "statement_timestamp", "clock_timestamp", "pg_postmaster_start_time",
    "pg_conf_load_time",
    "getdatabaseencoding", "pg_client_encoding", "pg_advisory_unlock_all", "current_date",
}  # fmt: skip
"""Functions whose result follows from the session alone: it is written into the statement."""

KNOWN = {*MACROS, *NULLS, *ZEROS, *TRUTHS, *PASSED, *TABLES, *SPOKEN, "to_char"} - {
    "given_name",
    "setting",
    "number_of_called",
    "number_of_named",
    "text_of",
    "in_place",
}
"""All that may be called."""
