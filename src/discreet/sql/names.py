"""Names as tools write them: the schema, and what stands before it, are taken off where it is the declared one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.errors import QuestionError
from discreet.sql.refusals import written_name


def unqualified(tree: exp.Expression, declaration: Declaration) -> None:
    """Takes schemas off the tables and columns of a tree. Raises QuestionError where another one is named, and where
    the name alone would mean something else."""
    named = {query.alias.casefold() for query in tree.find_all(exp.CTE)}
    aliases: dict[str, str] = {}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier):
            _split(table, declaration)
            before = table.args.get("db")
            _taken_off(table, table.name, declaration)
            if before is not None and table.name.casefold() in named:
                message = f"{table.name[:60]} is a table, and WITH names a query so too"
                raise QuestionError("names", message, where="WITH", fix="give the query another name")
            if table.alias:
                aliases[table.alias.casefold()] = table.name.casefold()
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None:
            _taken_off(column, column.table, declaration)
            if aliases.get(column.table.casefold(), column.table.casefold()) != column.table.casefold():
                fix = f"write {written_name(column.table)}.{written_name(column.name)}"
                message = f"{column.table[:60]} is the alias of another table"
                raise QuestionError("names", message, where=column.sql()[:60], fix=fix)


def told_apart(tree: exp.Expr, tables: Collection[str], own: Callable[[], str]) -> None:
    """Gives each query of WITH that is called as a table is, or as a query of a WITH around it, a name of its own: it
    hides them where it is named, as in SQL. `tables` are in small letters; `own` makes a name that is not taken."""

    def within(node: exp.Expr, known: Mapping[str, str]) -> None:
        clause = node.args.get("with_")
        if clause is not None:
            names = [one.alias.casefold() for one in clause.expressions]
            for query, name in zip(clause.expressions, names, strict=True):
                within(query.this, known)
                taken = name in known or name in tables
                known = {**known, name: own() if taken and names.count(name) == 1 else ""}
                if known[name]:
                    query.args["alias"].set("this", exp.to_identifier(known[name], quoted=True))
        named = known.get(node.name.casefold(), "") if isinstance(node, exp.Table) else ""
        if named:
            if not node.alias:
                columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
                node.set("alias", exp.TableAlias(this=node.this.copy(), columns=columns))
            node.set("this", exp.to_identifier(named, quoted=True))
        for one in list(node.iter_expressions()):
            if one is not clause:
                within(one, known)

    if tree.find(exp.With) is not None:
        within(tree, {})


def _split(table: exp.Table, declaration: Declaration) -> None:
    """A name with points between two quotes, as BigQuery has it, is one of several parts."""
    name = table.this
    if not name.quoted or "." not in name.name or table.args.get("db") or declaration.table(name.name) is not None:
        return
    *before, last = name.name.split(".")
    known = [one.casefold() for one in declaration.schemas]
    if all((*before, last)) and len(before) <= 2 and before[-1].casefold() in known:
        table.set("this", exp.to_identifier(last, quoted=True))
        for place, part in zip(("db", "catalog"), reversed(before), strict=False):
            table.set(place, exp.to_identifier(part, quoted=True))


def _taken_off(node: exp.Expression, table: str, declaration: Declaration) -> None:
    schema = node.args.get("db")
    if schema is None:
        return
    if not isinstance(schema, exp.Identifier):  # database..table
        fix = f"write {written_name(declaration.schemas[0])}.{written_name(table)}"
        raise QuestionError("unknown-schema", "a schema without a name", where=node.sql()[:60], fix=fix)
    if schema.name.casefold() not in [one.casefold() for one in declaration.schemas]:
        message = f"there is no schema {schema.name[:60]!r}: the tables are in {declaration.schemas[0]}"
        fix = f"write {written_name(declaration.schemas[0])}.{written_name(table)}, or {written_name(table)} alone"
        raise QuestionError("unknown-schema", message, where=node.sql()[:60], fix=fix)
    node.set("db", None)
    node.set("catalog", None)
