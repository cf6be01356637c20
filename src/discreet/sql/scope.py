"""What names mean in a SELECT: the tables it reads, under their aliases, and their columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from discreet.errors import QuestionError
from discreet.sql.refusals import STAR, only, unknown_name, written_name
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Column, Relation
from discreet.trusted.ring_b.relations import RelationShape, shape


def numbered(name: str) -> Iterator[str]:
    """The name itself, and with numbers: n, n_2, n_3, and so on."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


@dataclass(frozen=True)
class NamedTable:
    """One table of a FROM: its alias, and its columns as they are written and as the relation calls them."""

    alias: str
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scope:
    """The relation that a FROM makes, and what its names mean. `merged` are the columns that USING made one of; `met`
    are the conditions of WHERE that its joins meet, `further` those that joins add to WHERE. `kept` are public tables
    that an outer join keeps, and `missing` the columns without a value in the rows that SQL has of them alone."""

    relation: Relation
    sources: tuple[NamedTable, ...]
    merged: Mapping[str, Expression] = field(default_factory=dict)
    met: tuple[exp.Expression, ...] = ()
    further: tuple[exp.Expression, ...] = ()
    missing: frozenset[str] = frozenset()
    kept: tuple[Relation, ...] = ()

    @property
    def shape(self) -> RelationShape:
        """What follows for the relation from declarations alone."""
        return shape(self.relation)

    def read(self, node: exp.Column) -> Expression:
        """The column that a name means. Raises QuestionError where it means none, or several."""
        if not isinstance(node.this, exp.Identifier):
            raise QuestionError(
                "star",
                "all columns at once cannot be asked for",
                where="SELECT",
                fix=STAR,
            )
        only(node, "this", "table", fix="write column, or table.column")
        sources = self.sources
        if node.table:
            sources = tuple(one for one in sources if one.alias.casefold() == node.table.casefold())
            if not sources:
                aliases = [one.alias for one in self.sources]
                raise unknown_name(node.table, aliases, kind="table", where=node.sql()[:60])
        elif node.name.casefold() in self.merged:
            return self.merged[node.name.casefold()]
        found = [
            internal for one in sources for visible, internal in one.names if visible.casefold() == node.name.casefold()
        ]
        if len(found) > 1:
            fix = "write " + " or ".join(f"{one.alias}.{node.name}" for one in sources[:5])
            message = f"Column name {node.name} is ambiguous"
            raise QuestionError("ambiguous", message, where=node.sql()[:60], fix=fix)
        if not found:
            known = [visible for one in sources for visible, _ in one.names]
            where = ", ".join(one.alias for one in sources)
            raise unknown_name(node.name, known, kind="column", where=where, quoted=bool(node.this.quoted))
        column = self.column(found[0])
        assert column.type is not None
        return ColumnOf(column.name, column.type)

    def column(self, internal: str) -> Column:
        """What is known of a column of the relation."""
        return self.shape.column(internal)

    def names(self, internal: str) -> bool:
        """Whether a question can name a column of the relation."""
        return any(inside == internal for one in self.sources for _, inside in one.names)

    def visible(self, internal: str) -> str:
        """A column's name as it is declared or selected, without the table."""
        return next(name for one in self.sources for name, inside in one.names if inside == internal)

    def written(self, internal: str) -> str:
        """A column's name with the alias of its table."""
        found = next((one.alias, name) for one in self.sources for name, inside in one.names if inside == internal)
        return ".".join(map(written_name, found))

    def all(self, alias: str = "") -> list[tuple[str, Expression]]:
        """The columns that `*`, or `alias.*`, stands for."""
        listed: list[tuple[str, Expression]] = []
        seen: set[str] = set()
        for one in self.sources:
            if alias and one.alias.casefold() != alias.casefold():
                continue
            for visible, internal in one.names:
                if visible.casefold() in self.merged and not alias:
                    if visible.casefold() not in seen:
                        seen.add(visible.casefold())
                        listed.append((visible, self.merged[visible.casefold()]))
                    continue
                column = self.column(internal)
                assert column.type is not None
                listed.append((visible, ColumnOf(internal, column.type)))
        return listed
