"""What one statement asks of the catalogue: read, held against the lists of what it may name, and written for the
child's engine. Nothing in a statement is run that is not on these lists."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from discreet.wire.catalog import functions
from discreet.wire.catalog.probes import gives_no_row
from discreet.wire.catalog.relations import (
    BOOL,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    OID,
    TEXT,
    CatalogRelation,
    Catalogue,
)

LONGEST, DEEPEST = 100_000, 150
"""The characters of a statement, and how deep it may be nested."""


class Refusal(Exception):
    """A statement about the catalogue that is not answered: the code, what is wrong, and what to write instead."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(code, message, fix)
        self.code, self.message, self.fix = code, message, fix


class NotOfCatalog(Exception):
    """The statement is not about the catalogue."""


@dataclass(frozen=True)
class Facts:
    """What a statement may learn of the session it comes from."""

    user: str
    database: str
    schemas: Sequence[str]
    version: str
    process: int
    settings: Mapping[str, str]
    now: str


@dataclass
class EngineStatement:
    """A statement for the child's engine, with the columns of its answer as far as they are known from the tree, the
    types of its parameters, and what it sets."""

    text: str
    columns: list[tuple[str, int | None]] | None
    parameters: list[int]
    sets: dict[str, str] = field(default_factory=dict)


_NODES = {
    "Select", "From", "Join", "Where", "Group", "Having", "Order", "Ordered", "Limit", "Offset", "Distinct", "With",
    "CTE",
    "Union", "Except", "Intersect", "Subquery", "Table", "TableAlias", "Alias", "Column", "Identifier", "Star",
    "Literal",
    "Boolean", "Null", "Paren", "And", "Or", "Not", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Is", "In", "Between",
    "Like",
    "ILike", "Escape", "RegexpLike", "RegexpILike", "NullSafeEQ", "NullSafeNEQ", "Add", "Sub", "Mul", "Div", "Mod",
    "Neg",
    "DPipe", "BitwiseAnd", "BitwiseOr", "Case", "If", "Cast", "DataType", "Dot", "Anonymous", "Operator", "Collate",
    "ObjectIdentifier", "Any", "All", "Array", "Bracket", "Slice", "Tuple", "Values", "Lateral", "Unnest", "Explode",
    "ExplodingGenerateSeries", "ByteString", "Parameter", "Window", "WindowSpec", "WithinGroup", "Exists", "Filter",
    "Var",
    "Interval", "AtTimeZone", "Pseudotype", "PseudoType", "DataTypeParam", "SetOperation", "AnonymousAggFunc",
    "Placeholder",
    "Posexplode", "LambdaParam", "Fetch", "JSONObject", "StrPosition", "Collation", "XMLTable",
} - {"LambdaParam", "XMLTable", "Posexplode"}  # fmt: skip

_TYPED = {
    "ArrayAgg": "array_agg", "GroupConcat": "string_agg", "LogicalAnd": "bool_and", "LogicalOr": "bool_or",
    "Trim": "trim",
    "Explode": "unnest", "Unnest": "unnest", "ExplodingGenerateSeries": "generate_series",
    "CurrentVersion": "version",
    "StrPosition": "strpos", "Substring": "substring", "ArrayLength": "array_length", "ArraySize": "array_length",
    "CurrentDatabase": "current_database", "CurrentCatalog": "current_catalog", "CurrentSchema": "current_schema",
    "CurrentSchemas": "current_schemas", "CurrentUser": "current_user", "SessionUser": "session_user",
    "CurrentTimestamp": "now", "CurrentDate": "current_date", "CurrentRole": "current_role", "Now": "now",
    "RowNumber": "row_number", "RegexpReplace": "regexp_replace", "SplitPart": "split_part",
    "ArrayToString": "array_to_string",
    "ConcatWs": "concat_ws", "ToRegtype": "to_regtype", "CurrentSetting": "current_setting", "Count": "count",
    "TimeToStr": "to_char",
}  # fmt: skip

_DIRECT = {"Any", "All", "Case", "If", "Cast", "Array", "And", "Or", "Values", "RegexpLike", "RegexpILike"}

_OPERATORS: dict[str, Any] = {
    "=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ,
    "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "~": exp.RegexpLike,
    "~~": exp.Like, "~~*": exp.ILike, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub, "~*": exp.RegexpILike,
}  # fmt: skip

_REG = {
    "regclass": 2205, "regtype": 2206, "regproc": 24, "regprocedure": 2202, "regnamespace": 4089, "regrole": 4096,
    "regoper": 2203, "regoperator": 2204,
}  # fmt: skip
_KINDS = {
    "varchar": 1043, "text": TEXT, "name": 19, "char": 18, "smallint": INT2, "int2": INT2, "int": INT4, "int4": INT4,
    "integer": INT4, "bigint": INT8, "int8": INT8, "oid": OID, "boolean": BOOL, "bool": BOOL, "xid": 28,
    "float8": 701,
    "double": 701, "double precision": 701, "real": 700, "float": 701, "float4": 700, "numeric": NUMERIC,
    "decimal": NUMERIC,
    "date": 1082, "timestamp": 1114, "timestamptz": 1184, "bpchar": 1042, "cstring": 2275, "unknown": 705,
    "json": TEXT, "jsonb": TEXT, "int2vector": 22, "oidvector": 30, "_text": 1009, "_oid": 1028, "_name": 1003,
    "_int2": 1005,
    "_int4": 1007, "regconfig": 3734, **_REG,
}  # fmt: skip

_FORMAT = re.compile(r"(?:%[YmdHMSfZz]|MS|[^%A-Za-z\"\\])*")
_LISTED = re.compile(r"(::\s*)((?:oid|regclass|regtype|regproc|regnamespace|regrole|name|xid)\s*\[)", re.I)


def _with_quoted_names(text: str) -> str:
    """The text with the words SELECT and TABLE in quotes where they are names of columns behind AS."""
    tokens = sqlglot.tokenize(text, read="postgres")
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if (
            before.token_type is TokenType.ALIAS
            and token.token_type in (TokenType.SELECT, TokenType.TABLE)
            and after.token_type in (TokenType.COMMA, TokenType.FROM)
        ):
            text = f'{text[: token.start]}"{token.text.lower()}"{text[token.end + 1 :]}'
    return text


class CatalogStatement:
    """One statement over one catalogue."""

    def __init__(self, catalogue: Catalogue, text: str, values: Sequence[str | None] | None, facts: Facts) -> None:
        self._catalogue, self._values, self._facts = catalogue, values, facts
        self._sets: dict[str, str] = {}
        self._parameters: dict[int, int] = {}
        self._of_people = False
        self._about = re.search(r"\bpg_|information_schema", text, re.I) is not None
        if len(text) > LONGEST:
            raise self._unknown("the statement is too long", "write less at once")
        try:
            text = _with_quoted_names(_LISTED.sub(r"\1pg_catalog.\2", text))
            trees = [tree for tree in sqlglot.parse(text, dialect="postgres") if tree]
        except (SqlglotError, RecursionError):
            raise self._unknown("the statement cannot be read", "write it more simply") from None
        if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.SetOperation | exp.Subquery | exp.Values):
            raise self._unknown("only one SELECT can be asked of the catalogue", "send statements one by one")
        self._tree: exp.Expr = trees[0]

    def _unknown(self, message: str, fix: str) -> Exception:
        return Refusal("catalog", message, fix) if self._about else NotOfCatalog()

    def written(self) -> EngineStatement:
        """The statement for the child. Raises NotOfCatalog where it is not about the catalogue, and Refusal."""
        self._simplify()
        self._check_relations()
        self._check_nodes()
        self._find_parameters()
        for cast in self._tree.find_all(exp.Cast):
            cast.meta["of"], cast.meta["to"] = self._kind(cast.this), self._cast(cast)
        for node in self._tree.find_all(exp.TimeToStr):
            self._check_format(node)
        self._find_classes()
        columns = self._columns(self._tree)
        self._name_columns()
        tree = changed(self._tree, self._rewritten)
        text = tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE, copy=False)
        most = max(self._parameters, default=0)
        return EngineStatement(
            text, columns, [self._parameters.get(place, TEXT) for place in range(1, most + 1)], self._sets
        )

    def probed(self) -> list[tuple[str, int | None]]:
        """Names and types of the columns of a statement that gives no row, also of one that reads declared tables: it
        is never run. Types that are not known are None. Raises NotOfCatalog where it may give a row, and Refusal."""
        if not gives_no_row(self._tree) or any(one.args.get("into") for one in self._tree.find_all(exp.Select)):
            raise NotOfCatalog
        self._of_people = True
        self._simplify()
        calls = (node for node in self._tree.find_all(exp.Func) if type(node).__name__ not in _DIRECT)
        if any(called(node) not in functions.KNOWN for node in calls):
            return []
        return self._columns(self._tree) or []

    # What it names

    def _simplify(self) -> None:
        """Takes the schema off functions, E'' off texts and OPERATOR() off operators."""

        def simple(node: exp.Expr) -> exp.Expr:
            if (
                isinstance(node, exp.Dot)
                and isinstance(node.this, exp.Identifier)
                and isinstance(node.expression, exp.Func)
            ):
                if node.this.name.lower() not in ("pg_catalog", "information_schema"):
                    raise self._unknown("a function of a schema that is not here", "leave it out")
                call = node.expression
                if isinstance(call, exp.Anonymous) and call.name.lower() in _AGAIN:
                    return exp.func(call.name, *call.expressions, dialect="postgres")
                return call
            if isinstance(node, exp.ByteString):
                return exp.Literal.string(node.name)
            if isinstance(node, exp.Operator):
                name = str(node.args["operator"]).rpartition(".")[2]
                negated = name.startswith("!~")
                made = _OPERATORS.get(name[1:] if negated else name)
                if made is None:
                    raise self._unknown("an operator that the catalogue does not have", "write another")
                found = made(this=node.this, expression=node.expression)
                return exp.Not(this=exp.Paren(this=found)) if negated else found
            if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.Anonymous):
                call = node.expression
                if call.name.upper() == "ALL" and len(call.expressions) == 1:  # of an array: of none of them
                    return exp.Not(this=exp.EQ(this=node.this, expression=exp.Any(this=call.expressions[0])))
            if isinstance(node, exp.Collate):
                inner: exp.Expr = node.this
                return inner
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and node.db:
                if node.db.lower() not in ("pg_catalog", "information_schema"):
                    raise self._unknown("a function of a schema that is not here", "leave it out")
                node.set("db", None)
                node.set("catalog", None)
            return node

        self._tree = changed(self._tree, simple)

    def _check_relations(self) -> None:
        """Every relation is the catalogue's; where none is, the question is another's."""
        named = [node for node in self._tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
        of_catalogue, others = list[exp.Table](), list[exp.Table]()
        for table in named:
            if not table.db and self._common(table) is not None:
                continue
            (others if self._relation(table) is None else of_catalogue).append(table)
        self._about = bool(of_catalogue)
        if not others:
            return
        if not of_catalogue:
            raise NotOfCatalog
        name = others[0].name
        if any(name.lower() == one.lower() for one in self._catalogue.tables):
            raise Refusal(
                "catalog",
                f"{name[:60]!r} holds rows, and {of_catalogue[0].name[:60]!r} is of the catalogue: one question cannot "
                "ask both",
                "ask them one after the other",
            )
        raise Refusal(
            "catalog_relation",
            f"relation {name[:60]!r} does not exist",
            "pg_catalog and information_schema have others",
        )

    def _relation(self, table: exp.Table) -> CatalogRelation | None:
        if table.catalog and table.catalog.lower() != self._facts.database.lower():
            return None
        if self._of_people and table.db.lower() in ("", self._catalogue.schema.lower()):
            return self._catalogue.of_people.get(table.name.lower())
        schema = table.db.lower() or "pg_catalog"
        return self._catalogue.relations.get((schema, table.name.lower()))

    def _check_nodes(self) -> None:
        for node in self._tree.walk():
            kind = type(node).__name__
            if isinstance(node, exp.Func) and kind not in _DIRECT:
                name = called(node)
                if name not in functions.KNOWN:
                    if not self._about:
                        raise NotOfCatalog
                    raise Refusal("catalog_function", f"function {name[:60]}() cannot be asked here", "leave it out")
            elif kind not in _NODES and kind not in _DIRECT:
                raise self._unknown(f"{kind} cannot be asked of the catalogue", "write it more simply")
        if any(select.args.get("into") or select.args.get("locks") for select in self._tree.find_all(exp.Select)):
            raise self._unknown("only reading is possible", "leave out INTO and FOR UPDATE")

    def _check_format(self, node: exp.TimeToStr) -> None:
        """The format of a moment, which sqlglot has translated, in the words of the child's engine: in UTC."""
        form = node.args["format"]
        known = isinstance(form, exp.Literal) and _FORMAT.fullmatch(form.name)
        if not known or self._kind(node.this) not in (1082, 1114, 1184):
            raise self._unknown("to_char writes moments, in simple formats", "write 'YYYY-MM-DD HH24:MI:SS.MS TZ'")
        written = form.name.replace("MS", "%g").replace("%Z", "UTC").replace("%z", "+00")
        node.set("format", exp.Literal.string(written))

    # Types

    def _find_parameters(self) -> None:
        for node in list(self._tree.find_all(exp.Parameter)):
            try:
                place = int(node.name)
            except ValueError:
                raise self._unknown("a parameter is written $1", "number the parameters") from None
            if not 1 <= place <= 1_000:
                raise self._unknown("a parameter's number is too large", "number them from 1")
            kind = self._needed(node)
            self._parameters[place] = kind if self._parameters.get(place, TEXT) == TEXT else self._parameters[place]
            if self._values is not None and place > len(self._values):
                raise Refusal("catalog", f"parameter ${place} has no value", "send one for each")
            value = None if self._values is None else self._values[place - 1]
            node.replace(self._value(value, self._parameters[place], isinstance(node.parent, exp.Limit | exp.Offset)))

    def _value(self, value: str | None, kind: int, bare: bool) -> exp.Expr:
        if value is None:
            return exp.Null()
        if bare:
            if not re.fullmatch(r"\d{1,18}", value):
                raise Refusal("catalog", "LIMIT and OFFSET are whole numbers", "send one")
            return exp.Literal.number(value)
        element = self._catalogue.element(kind)
        if element is not None and value.startswith("{"):
            listed = [self._value(one, element, False) for one in listed_in(value)]
            return exp.Array(expressions=listed)
        if kind in (INT2, INT4, INT8, OID) and re.fullmatch(r"-?\d{1,18}", value):
            number = exp.Literal.number(value.lstrip("-"))
            return exp.Paren(this=exp.Neg(this=number)) if value.startswith("-") else number
        return exp.Literal.string(value)

    def _needed(self, node: exp.Expr) -> int:
        """The type of a parameter, by what it stands beside."""
        above = node.parent
        while isinstance(above, exp.Paren):
            node, above = above, above.parent
        if isinstance(above, exp.Cast):
            return self._cast(above)
        if isinstance(above, exp.Limit | exp.Offset):
            return INT8
        if isinstance(above, exp.Any):
            kind = self._needed(above)
            return self._catalogue.arrays.get(kind, 1009)
        if isinstance(above, exp.Predicate | exp.In | exp.Binary):
            other = above.this if above.this is not node else above.args.get("expression")
            if isinstance(other, exp.Expr) and not isinstance(other, exp.Parameter):
                kind = self._kind(other) or TEXT
                return TEXT if kind in (705, 1043) else kind
        return TEXT

    def _cast(self, cast: exp.Cast) -> int:
        """The type that a value is cast to."""
        if "to" in cast.meta:
            return int(cast.meta["to"])
        to = cast.to
        if to.is_type(exp.DataType.Type.ARRAY) and to.expressions:
            element = self._named(to.expressions[0])
            return self._catalogue.arrays.get(element, 1009)
        return self._named(to)

    def _named(self, to: exp.Expr) -> int:
        kind = to.args.get("kind") if isinstance(to, exp.DataType) else None
        name = (kind if isinstance(kind, exp.Expr) else to).sql("postgres").replace('"', "").lower()
        name = name.partition("(")[0].strip() if name[:7] not in ("pg_cata", "informa") else name
        last = name.rpartition(".")[2]
        found = _KINDS.get(last.removesuffix("[]")) if not name.startswith("information") else None
        found = found or self._catalogue.named.get(name.removesuffix("[]")) or self._catalogue.named.get(last)
        if found is None:
            raise self._unknown(f"type {name[:60]!r} does not exist", "write another")
        return self._catalogue.arrays.get(found, 1009) if name.endswith("[]") else found

    def _kind(self, node: exp.Expr | None) -> int | None:
        """The type of an expression, so far as it is known."""
        if isinstance(
            node, exp.Alias | exp.Paren | exp.Window | exp.Filter | exp.WithinGroup | exp.Ordered | exp.Distinct
        ):
            inner = node.this if node.this is not None else (node.expressions or [None])[0]
            return self._kind(inner)
        if isinstance(node, exp.Column):
            return self._of_column(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.ObjectIdentifier):
            return _KINDS.get(node.name.lower())
        if isinstance(node, exp.Predicate | exp.Not | exp.And | exp.Or | exp.Boolean | exp.Exists | exp.In | exp.Any):
            return BOOL
        if isinstance(node, exp.DPipe):
            return TEXT
        if isinstance(node, exp.Literal) and self._of_people:
            return TEXT if node.is_string else INT4 if node.is_int else NUMERIC
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            columns = self._columns(node)
            return columns[0][1] if columns else None
        if isinstance(node, exp.Case):
            branches = [*(one.args.get("true") for one in node.args["ifs"]), node.args.get("default")]
            kinds = [self._kind(one) for one in branches if one is not None and not isinstance(one, exp.Null)]
            return next((one for one in kinds if one is not None), None)
        if isinstance(node, exp.Array):
            given = node.expressions[0] if node.expressions else None
            kind = self._kind(given)
            return self._catalogue.arrays.get(kind) if kind is not None else None
        if isinstance(node, exp.Bracket):
            kind = self._kind(node.this)
            return self._catalogue.element(kind) if kind is not None else None
        if isinstance(node, exp.Func):
            name = called(node)
            if name in functions.KINDS:
                return functions.KINDS[name]
            given = node.this if isinstance(node.this, exp.Expr) else None
            given = given or (node.expressions[0] if node.expressions else None)
            kind = self._kind(given)
            if kind is None or name in ("sum", "avg", "round", "abs", "mod"):
                return None
            if name == "array_agg":
                return self._catalogue.arrays.get(kind)
            return self._catalogue.element(kind) if name == "unnest" else kind
        return None

    def _find_classes(self) -> None:
        """Writes beside each `tableoid` whose it is."""
        for column in self._tree.find_all(exp.Column):
            select = column.find_ancestor(exp.Select)
            if column.name.lower() == "tableoid" and select is not None:
                for table in select.find_all(exp.Table):
                    relation = self._relation(table) if isinstance(table.this, exp.Identifier) else None
                    if relation is not None and column.table.lower() in ("", table.alias_or_name.lower()):
                        column.meta["of"] = relation.oid

    def _of_column(self, column: exp.Column) -> int | None:
        if "of" in column.meta:
            return OID
        name, table = column.name.lower(), column.table.lower()
        select = column.find_ancestor(exp.Select)
        while select is not None:
            for alias, columns in self._sources(select):
                if not table or alias == table:
                    for known, kind in columns:
                        if known.lower() == name:
                            return kind
            select = select.find_ancestor(exp.Select)
        return None

    def _sources(self, select: exp.Select) -> list[tuple[str, list[tuple[str, int | None]]]]:
        """The names of what a SELECT reads, with columns and types."""
        if "sources" in select.meta:
            return list(select.meta["sources"])
        select.meta["sources"] = []  # one that names itself ends here
        start = select.args.get("from_")
        parts = [] if start is None else [start.this]
        parts += [join.this for join in select.args.get("joins") or ()] + list(select.args.get("laterals") or ())
        found = []
        for part in parts:
            found += self._source(part)
        select.meta["sources"] = found
        return found

    def _source(self, part: exp.Expr) -> list[tuple[str, list[tuple[str, int | None]]]]:
        more = [one for join in part.args.get("joins") or () for one in self._source(join.this)]
        names = [column.name for column in part.args["alias"].columns] if part.args.get("alias") else []
        alias, columns = part.alias_or_name.lower(), list[tuple[str, int | None]]()
        if isinstance(part, exp.Table) and isinstance(part.this, exp.Identifier):
            relation = self._relation(part)
            cte = self._common(part) if not part.db else None
            if cte is not None:
                columns = self._columns(cte.this) or []
                names = names or [column.name for column in cte.args["alias"].columns]
            elif relation is not None:
                columns = [(name, self._catalogue.base(kind) if relation.schema != "pg_catalog" else kind)
                           for name, kind, _ in relation.columns]  # fmt: skip
        elif (
            isinstance(part, exp.Subquery | exp.Paren) and isinstance(part.this, exp.Table | exp.Subquery) and not alias
        ):
            return [*self._source(part.this), *more]
        elif isinstance(part, exp.Subquery):
            columns = self._columns(part.this) or []
        elif isinstance(part, exp.Table):
            name = called(part.this) if isinstance(part.this, exp.Func) else ""
            columns = [(part.alias or name, self._kind(part.this))]
        elif isinstance(part, exp.Lateral | exp.Unnest) and not isinstance(part.this, exp.Subquery):
            columns = [(names[0] if names else alias, self._kind(part if isinstance(part, exp.Unnest) else part.this))]
            unnest = part if isinstance(part, exp.Unnest) else part.this
            if isinstance(unnest, exp.Unnest) and isinstance(unnest.args.get("offset"), exp.Identifier):
                columns.append((unnest.args["offset"].name, INT8))
        elif isinstance(part, exp.Lateral):
            columns = self._columns(part.this) or []
        columns = [(names[place] if place < len(names) else name, kind) for place, (name, kind) in enumerate(columns)]
        return [(alias, columns), *more]

    def _common(self, table: exp.Table) -> exp.CTE | None:
        """What a name stands for where it stands: what is named before it; or itself, behind UNION in a recursive
        one."""
        passed: list[exp.Expr] = []
        above: exp.Expr | None = table
        while above is not None:
            with_ = above.args.get("with_")
            recursive = with_ is not None and with_.args.get("recursive")
            for cte in with_.expressions if with_ is not None else ():
                inside = any(one is cte for one in passed)
                behind = isinstance(cte.this, exp.Union) and any(one is cte.this.expression for one in passed)
                if inside and not (behind and recursive):
                    break
                if cte.alias.lower() == table.name.lower():
                    return cte if isinstance(cte, exp.CTE) else None
                if inside:
                    break
            passed.append(above)
            above = above.parent
        return None

    def _columns(self, query: exp.Expr) -> list[tuple[str, int | None]] | None:
        """Names and types of what a query gives; None where they cannot be told beforehand."""
        while isinstance(query, exp.Subquery):
            query = query.this
        if isinstance(query, exp.SetOperation):
            left, right = self._columns(query.this), self._columns(query.expression)
            if left and right and len(left) == len(right):
                return [(name, kind or other) for (name, kind), (_, other) in zip(left, right, strict=True)]
            return left
        if not isinstance(query, exp.Select):
            return None
        if "columns" in query.meta:
            return None if query.meta["columns"] is None else list(query.meta["columns"])
        query.meta["columns"] = None
        found: list[tuple[str, int | None]] = []
        for node in query.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                wanted = node.table.lower() if isinstance(node, exp.Column) else ""
                for alias, columns in self._sources(query):
                    if not wanted or alias == wanted:
                        found += columns
            else:
                found.append((shown(node), self._kind(node)))
        query.meta["columns"] = found
        return found

    # For the child's engine

    def _name_columns(self) -> None:
        for select in self._tree.find_all(exp.Select):
            inner = select.parent if isinstance(select.parent, exp.Subquery) else None
            scalar = inner is not None and not isinstance(inner.parent, exp.From | exp.Join | exp.Lateral)
            if (
                select is self._tree
                or scalar
                or isinstance(select.parent, exp.Exists | exp.In | exp.Array | exp.SetOperation)
            ):
                continue
            made = []
            for node in select.expressions:
                plain = isinstance(node, exp.Alias | exp.Column | exp.Star | exp.Dot | exp.Explode)
                made.append(node if plain else exp.alias_(node.copy(), shown(node), quoted=True))
            for before, after in zip(list(select.expressions), made, strict=True):
                if before is not after:
                    before.replace(after)

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            relation = self._relation(node)
            if relation is None or (not node.db and self._common(node) is not None):
                return node
            found = exp.table_(relation.name, db="pg" if relation.schema == "pg_catalog" else "info", quoted=True)
            found.set(
                "alias", node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(relation.name, quoted=True))
            )
            for key in ("joins", "laterals"):
                found.set(key, node.args.get(key))
            return found
        if isinstance(node, exp.Column) and node.name.lower() == "tableoid" and "of" in node.meta:
            return typed(exp.Literal.number(node.meta["of"]), "UINTEGER")
        if isinstance(node, exp.Column) and node.db:
            return exp.column(node.this.copy(), table=node.args["table"].copy())
        if isinstance(node, exp.Cast):
            return self._casted(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and called(node.this) in _EMPTY:
            name = called(node.this)
            found = exp.table_("keywords" if name == "pg_get_keywords" else "nothing", db="own")
            found.set("alias", exp.TableAlias(this=exp.to_identifier(node.alias or name, quoted=True)))
            return found
        if isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
            pattern = node.expression
            if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:  # PostgreSQL's own sign for the next sign
                return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        if isinstance(node, exp.Func) and type(node).__name__ not in _DIRECT:
            return self._call(node)
        return node

    def _casted(self, cast: exp.Cast) -> exp.Expr:
        to, of, given = self._cast(cast), cast.meta.get("of"), cast.this
        names = {2205: "called", 2206: "named"}
        inner = cast.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if to in _REG.values():
            if isinstance(inner, exp.Literal) and inner.is_string and not inner.name.isdigit():
                return exp.Literal.number(self._numbered(inner.name, to))
            if of in (19, TEXT, 1043, None) and to in names and not isinstance(inner, exp.Literal | exp.Null):
                return exp.func("pg__number_of_" + names[to], given)
            return typed(given, "UINTEGER")
        if of in (24, 2202, 2205, 2206, 4089, 4096) and to in (19, TEXT, 1043):
            return exp.func("pg__text_of", exp.Literal.number(2205 if of is None else of), given)
        if to == 16 and isinstance(inner, exp.Literal):
            return typed(given, "BOOLEAN")
        stored = self._catalogue.stored(to)
        element = self._catalogue.element(to)
        if element is not None and isinstance(inner, exp.Literal) and inner.is_string:
            listed = [self._value(one, element, False) for one in listed_in(inner.name)]
            return typed(exp.Array(expressions=listed), stored)
        return typed(given, stored)

    def _numbered(self, text: str, kind: int) -> int:
        catalogue = self._catalogue
        name = text if '"' in text else text.lower()
        if name == "-":
            return 0
        found: int | None = None
        if kind == 2205:
            found = catalogue.called.get(name)
        elif kind == 2206:
            found = catalogue.named.get(name.removeprefix("pg_catalog."))
        else:
            known = {4089: catalogue.schemas, 4096: catalogue.roles | {16383: self._facts.user}}.get(
                kind, catalogue.functions
            )
            found = next((oid for oid, one in known.items() if one == name.removeprefix("pg_catalog.")), None)
        if found is None:
            what = {2205: "relation", 2206: "type", 4089: "schema", 4096: "role"}.get(kind, "function")
            raise Refusal(f"catalog_{what}", f"{what} {text[:60]!r} does not exist", "write the name of one that does")
        return found

    def _call(self, node: exp.Func) -> exp.Expr:
        name = called(node)
        if name in functions.SPOKEN:
            return self._spoken(name, node)
        if name in _EMPTY:
            if isinstance(node.parent, exp.Table):
                return node
            return exp.func("unnest", typed(exp.Array(expressions=[]), "UINTEGER[]"), dialect="duckdb")
        if name in functions.NULLS:
            return typed(exp.Null(), self._catalogue.stored(functions.NULLS[name]))
        if name in functions.ZEROS:
            return typed(exp.Literal.number(0), "BIGINT")
        if name in functions.TRUTHS:
            return exp.Boolean(this=functions.TRUTHS[name])
        if name in functions.MACROS and name not in _DIRECT:
            given = [one for one in (node.this, node.args.get("expression"), *node.expressions)
                     if isinstance(one, exp.Expr)]  # fmt: skip
            if name == "array_length" and len(given) == 1:
                given.append(exp.Literal.number(1))
            if name == "_pg_expandarray" and isinstance(node.parent, exp.Paren):
                pass
            return exp.Anonymous(this=f"pg__{name}", expressions=given)
        return node

    def _spoken(self, name: str, node: exp.Func) -> exp.Expr:
        facts = self._facts
        given = [one for one in (node.this, *node.expressions) if isinstance(one, exp.Expr)]
        if name in ("current_setting", "set_config"):
            if name == "set_config" and len(given) < 2:
                raise Refusal("catalog", "set_config takes a name, a value and true or false", "write all three")
            given = [plain(one) for one in given]
            if given and name == "current_setting" and not isinstance(given[0], exp.Literal):
                return exp.Anonymous(this="pg__setting", expressions=given[:1])
            if not given or not isinstance(given[0], exp.Literal):
                raise Refusal("catalog", f"{name} takes a name in quotes", f"write {name}('server_version')")
            key = given[0].name.lower()
            if name == "set_config":
                local = len(given) > 2 and not (isinstance(given[2], exp.Boolean) and not given[2].this)
                unknown = not isinstance(given[1], exp.Literal) and self._values is not None
                if key == "discreet.part" and (local or unknown):  # unset, questions would be about all
                    fix = "write SET discreet.part = 'north', or SET LOCAL in a transaction"
                    raise Refusal("catalog", "set_config sets discreet.part to a text, and for the session alone", fix)
                if not isinstance(given[1], exp.Literal):
                    return exp.Null()
                if len(given) < 3 or not (isinstance(given[2], exp.Boolean) and given[2].this):  # else in this alone
                    self._sets[key] = given[1].name
                return exp.Literal.string(given[1].name)
            if key in facts.settings:
                return exp.Literal.string(facts.settings[key])
            if len(given) > 1 and isinstance(given[1], exp.Boolean) and given[1].this:
                return typed(exp.Null(), "VARCHAR")
            raise Refusal("catalog_setting", f"there is no setting {key[:60]!r}", "SHOW ALL lists them")
        if name == "current_schemas":
            hidden = isinstance(node.this, exp.Boolean) and not node.this.this
            listed = [*([] if hidden else ["pg_catalog"]), *facts.schemas]
            return exp.Array(expressions=[exp.Literal.string(one) for one in listed])
        if name == "pg_backend_pid":
            return typed(exp.Literal.number(facts.process), "INTEGER")
        if functions.KINDS[name] in (1184, 1082):
            return typed(exp.Literal.string(facts.now), "TIMESTAMP" if functions.KINDS[name] == 1184 else "DATE")
        said = {
            "current_database": facts.database, "current_catalog": facts.database, "version": facts.version,
            "current_schema": facts.schemas[0] if facts.schemas else None, "getdatabaseencoding": "UTF8",
            "pg_client_encoding": "UTF8", "pg_advisory_unlock_all": "",
        }.get(name, facts.user)  # fmt: skip
        return typed(exp.Null(), "VARCHAR") if said is None else exp.Literal.string(said)


_EMPTY = {name for name in functions.TABLES if name.startswith(("pg_", "aclexplode"))}
"""Functions that give rows, of which there are none here but the words of the language."""

_AGAIN = {
    "array_agg", "string_agg", "count", "min", "max", "sum", "bool_and", "bool_or", "unnest", "generate_series",
    "lower",
    "upper", "coalesce", "to_char", "substring", "replace", "concat", "row_number",
}  # fmt: skip
"""Functions that sqlglot reads as such only without their schema."""


def changed(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with each node changed, what is in it first."""
    for node in reversed(list(tree.walk())):
        after = change(node)
        if after is not node:
            if node is tree:
                tree = after
            else:
                node.replace(after)
    return tree


def typed(given: exp.Expr, stored: str) -> exp.Expr:
    """A value as one of the child's types."""
    return exp.Cast(this=given, to=exp.DataType.build(stored, dialect="duckdb"))


def called(node: exp.Func) -> str:
    """The name of a function as PostgreSQL has it."""
    kind = type(node).__name__
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    return _TYPED.get(kind) or str(node.sql_name()).lower()


def plain(node: exp.Expr) -> exp.Expr:
    """What is cast, or stands in parentheses."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def folded(name: exp.Expr) -> str:
    """A name as it is known: in small letters, unless it stands in quotes."""
    return str(name.name if name.args.get("quoted") else name.name.lower())


def shown(node: exp.Expr) -> str:
    """The name of a column of an answer, as PostgreSQL gives it."""
    if isinstance(node, exp.Alias):
        return folded(node.args["alias"])
    if isinstance(node, exp.Column):
        return folded(node.this)
    if isinstance(node, exp.Trim):
        return "btrim"
    if isinstance(node, exp.Paren | exp.Window | exp.Filter | exp.WithinGroup | exp.Bracket):
        return shown(node.this)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, exp.Cast):
        inner = shown(plain(node.this))
        written = node.to.sql("postgres").lower().replace('"', "").rpartition(".")[2]
        return inner if inner != "?column?" else {"int": "int4", "smallint": "int2", "bigint": "int8",
                                                  "boolean": "bool"}.get(written, written)  # fmt: skip
    if isinstance(node, exp.Boolean):
        return "bool"
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        inner = shown(default) if default is not None else "?column?"
        return inner if inner not in ("?column?", "bool") else "case"
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and node.this.expressions:
        return shown(node.this.expressions[0])
    if isinstance(node, exp.Array):
        return "array"
    if isinstance(node, exp.Exists):
        return "exists"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Any):
        return called(node)
    return "?column?"


def listed_in(text: str) -> list[str | None]:
    """The elements of an array of one dimension as PostgreSQL writes it. Raises Refusal."""
    if not (text.startswith("{") and text.endswith("}")):
        raise Refusal("catalog", "an array is written {a,b}", "write it so")
    found: list[str | None] = []
    for match in re.finditer(r'\s*("(?:[^"\\]|\\.)*"|[^,{}"]*)\s*(?:,|$)', text[1:-1]):
        one = match[1]
        if match.end() == len(text) - 2 and match.start() == match.end() and (not found or text[-2] != ","):
            break
        if one.startswith('"'):
            found.append(re.sub(r"\\(.)", r"\1", one[1:-1]))
        else:
            found.append(None if one.strip().upper() == "NULL" else one.strip())
    return found


def moment() -> str:
    """This moment, as a literal."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
