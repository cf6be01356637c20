"""Whole questions made up at random over a declaration: every operator, unit, join, option and kind of key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from discreet.audit.random_expressions import Expressions, Name
from discreet.catalog import Declaration, Table, Type
from discreet.sql.grammar import STATISTICS

GROUP_BOUNDS = "contribution_bounds_per_group"
ROW_BOUNDS = "contribution_bounds_per_row"
OUR_NAMES = ("value 0", "value 1", "key 0", "total 0", "part 0", "aggregate 0", "the person of a row", "row_of_person")
"""What the curator calls columns of its own, or has called so. An analyst may call a column so too."""
BOUNDS = ("(-2, 7)", "(0.5, 3)", "(0, 1)", "(-1e12, 1e12)", "(0, 1e-9)", "(1e15, 1000000000000000.5)", "(3, 3)")
DAYS = (("2000-01-01", "2029-12-31"), ("0001-01-02", "9999-12-30"), ("2020-01-01", "2020-01-01"))
COUNTED = ("(0, 2)", "(2, 3)", "(0, 1)", "(0, 100)")
WHOLE, TEXT = Type.INTEGER, Type.TEXT


@dataclass(frozen=True)
class From:
    """What stands in FROM, and its columns. `person` marks in their order whose a row is."""

    text: str
    names: tuple[Name, ...]
    public: bool = False
    joined: bool = False

    @property
    def persons(self) -> list[Name]:
        """The columns that hold the person."""
        return [name for name in self.names if name.person == "person"]

    def links(self) -> dict[str, Name]:
        """The columns that lead to a person, by the key that they hold."""
        return {name.person: name for name in self.names if name.person not in ("", "person")}


@dataclass(frozen=True)
class Item:
    """What a list of a SELECT makes, and what it is called."""

    text: str
    name: str
    type: Type
    person: str = ""


class Maker(Expressions):
    """One stream of questions about the tables of a declaration.

    `plain` leaves out what has counts of its own (quantiles, commonest and different values) and moments; `slips` is
    the share of arguments of a wrong type, and of groups by what no group can be."""

    def __init__(self, known: Declaration, seed: int, *, plain: bool = False, slips: float = 0.0) -> None:
        super().__init__(Random(seed), slips=slips)
        self.tables = {table.name: _names(known, table) for table in known.tables.values()}
        self.private = [table.name for table in known.tables.values() if not table.public]
        self.public = [table.name for table in known.tables.values() if table.public]
        self.plain = plain
        self.titles: Sequence[str] = OUR_NAMES
        self.depths = (0, 0, 0, 1, 1, 1, 2, 2, 3)
        self.count = 0

    def alias(self) -> str:
        """A name for a table or a column."""
        self.count += 1
        return str(self.pick([f"s{self.count}", f"s{self.count}", f'"s.{self.count}"', f'"Ü {self.count}"']))

    def titled(self, usual: str) -> str:
        """A name for a computed column: now and then one that is ours."""
        return f'"{self.pick(self.titles)}"' if self.chance(0.15) else usual

    # sources

    def table(self, name: str, *, public: bool = False) -> From:
        return From(_quoted(name), self.tables[name], public)

    def source(self, depth: int) -> From:
        """A table about people, or what is made of several."""
        if depth <= 0 or self.chance(0.2):
            return self.table(self.pick(self.private))
        kinds = [self.joined, self.joined, self.rows, self.totals, self.stacked]
        return self.pick(kinds)(depth)  # type: ignore[no-any-return]

    def renamed(self, source: From) -> From:
        """The same under an alias."""
        alias = self.alias()
        names = tuple(replace(name, text=f"{alias}.{name.text}") for name in source.names)
        return From(f"{source.text} AS {alias}", names, source.public)

    def single(self, depth: int) -> From:
        """A table or a subquery: something that can stand on one side of a join."""
        found = self.source(depth)
        return self.table(self.pick(self.private)) if found.joined else found

    def people(self, depth: int) -> From:
        """A source that shows its persons, where there is one."""
        for _ in range(4):
            found = self.source(depth)
            if found.persons:
                return found
        held = [name for name in self.private if any(one.person == "person" for one in self.tables[name])]
        return self.table(self.pick(held or self.private))

    def joined(self, depth: int) -> From:
        """Two sources, the second at times public, joined on what meets, on a condition, or both; or a CROSS JOIN with
        a public one."""
        left = self.renamed(self.single(depth - 1))
        public = bool(self.public) and self.chance(0.4)
        right = self.renamed(self.lookup() if public else self.single(depth - 1))
        both = (*left.names, *right.names)
        kind = self.pick(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN"])
        parts = self._meeting(left, right, public=public)
        if not parts and public and self.chance(0.3):
            return From(f"{left.text} CROSS JOIN {right.text}", both, joined=True)
        if not parts or self.chance(0.3):
            parts.append(self.condition(both))
        if public and self.chance(0.5):
            left, right = (right, left) if kind == "RIGHT JOIN" else (left, right)
        return From(f"{left.text} {kind} {right.text} ON {' AND '.join(parts)}", both, joined=True)

    def _meeting(self, left: From, right: From, *, public: bool) -> list[str]:
        """What is equal where rows of two sources meet: the persons, the keys that lead to them, or any value."""
        parts = []
        if left.persons and right.persons and not self.chance(0.05):
            parts.append(f"{self.pick(left.persons).text} = {self.pick(right.persons).text}")
        for key, name in left.links().items():
            if key in right.links() and self.chance(0.6):
                parts.append(f"{name.text} = {right.links()[key].text}")
        if public or (not parts and self.chance(0.5)):
            pairs = [(a, b) for a in left.names for b in right.names if a.type is b.type]
            parts += [f"{a.text} = {b.text}" for a, b in ([self.pick(pairs)] if pairs and self.chance(0.8) else [])]
        return parts

    def lookup(self) -> From:
        """A public table, or what is made of it."""
        name = self.pick(self.public)
        whole = self.table(name, public=True)
        key, other = self.pick(whole.names), self.pick(whole.names)
        if self.chance(0.4):
            return whole
        condition = f" WHERE {self.condition(whole.names, 1)}" if self.chance(0.3) else ""
        if self.chance(0.5):
            return From(f"(SELECT DISTINCT {key.text} FROM {whole.text}{condition})", (_plain(key),), public=True)
        total = f"COUNT(*) AS n, MAX({other.text}) AS m"
        names = (_plain(key), Name("n", WHOLE), Name("m", other.type))
        return From(
            f"(SELECT {key.text}, {total} FROM {whole.text}{condition} GROUP BY {key.text})", names, public=True
        )

    def where(self, source: From, share: float = 0.5) -> str:
        """WHERE, or nothing: a condition on the row with the chance `share`, at times one on the person or on public
        values."""
        parts = [self.condition(source.names)] if self.chance(share) else []
        if source.persons and self.chance(0.2):
            among = self.people(0)
            person = self.pick(source.persons).text
            if among.persons:
                held = f"SELECT {among.persons[0].text} FROM {among.text}{self.where(among, 0.3)}"
                parts.append(f"{person} {self.pick(['', 'NOT '])}IN ({held})")
        if self.public and self.chance(0.1):
            among = self.table(self.pick(self.public))
            name = self.pick(among.names)
            values = f"SELECT {name.text} FROM {among.text}"
            parts.append(f"{self.value(name.type, source.names, 1)} {self.pick(['', 'NOT '])}IN ({values})")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def person(self, source: From) -> list[Item]:
        """The person of a source's rows, as a subquery must show it."""
        if not source.persons:
            return []
        name = self.pick(source.persons)
        return [Item(name.text, "pp", name.type, "person")]

    def rows(self, depth: int) -> From:
        """Each row made anew."""
        below = self.people(depth - 1)
        items = [*self.person(below), *self.made(below, self.dice.randint(1, 3))]
        for number, (key, name) in enumerate(below.links().items()):
            items.append(Item(name.text, f"oo{number}", name.type, key))
        return self.subquery(
            f"SELECT {self.pick(['', '', 'DISTINCT '])}", items, f" FROM {below.text}{self.where(below)}"
        )

    def made(self, below: From, count: int) -> list[Item]:
        """Columns computed anew, of different names."""
        items: dict[str, Item] = {}
        for place in range(count):
            kind = self.pick(list(Type))
            name = self.titled(f"x{place}")
            items[name] = Item(self.value(kind, below.names), name, kind)
        return list(items.values())

    def totals(self, depth: int) -> From:
        """Totals of each person."""
        below = self.people(depth - 1)
        keys = self.person(below)
        if self.chance(0.4):
            kind = self.pick(list(Type))
            keys.append(Item(self.value(kind, below.names, 1), self.titled("word"), kind))
        items = list(keys)
        for place in range(self.dice.randint(1, 2)):
            text, kind = self.exact(below)
            items.append(Item(text, f"n{place}", kind))
        tail = f" FROM {below.text}{self.where(below)} GROUP BY {', '.join(key.text for key in keys) or '1'}"
        if self.chance(0.3):
            tail += f" HAVING {self.exact(below, WHOLE)[0]} > 1"
        return self.subquery("SELECT ", items, tail)

    def exact(self, source: From, kind: Type | None = None) -> tuple[str, Type]:
        """A total over one person's rows, and its type."""
        kind = kind or self.pick(list(Type))
        one = self.value(kind, source.names, 1)
        if not kind.numeric or self.chance(0.3):
            if self.chance(0.3):
                return f"COUNT({self.pick(['', 'DISTINCT '])}{one})", WHOLE
            return f"{self.pick(['MIN', 'MAX'])}({one})", kind
        word = self.pick(["SUM", "AVG", "MIN", "MAX", "COUNT"])
        if word == "COUNT":
            return self.pick(["COUNT(*)", f"COUNT({one})"]), WHOLE
        return f"{word}({one})", Type.NUMBER if word == "AVG" else kind

    def subquery(self, head: str, items: Sequence[Item], tail: str) -> From:
        """A subquery as a source, with the items that it selects for columns."""
        listed = ", ".join(f"{item.text} AS {item.name}" for item in items)
        names = tuple(Name(item.name, item.type, item.person) for item in items)
        return From(f"({head}{listed}{tail})", names)

    def stacked(self, depth: int) -> From:
        """Several queries, one after another, of one person's type."""
        first = self.people(depth - 1)
        parts, kinds = [], [self.pick(list(Type)) for _ in range(2)]
        sources = [first]
        for _ in range(self.dice.randint(1, 2)):
            other = self.people(depth - 1)
            fits = other.persons and first.persons and other.persons[0].type is first.persons[0].type
            sources.append(other if fits else first)
        for below in sources:
            made = [f"{self.value(kind, below.names, 1)} AS x{place}" for place, kind in enumerate(kinds)]
            person = [f"{below.persons[0].text} AS pp"] if below.persons else []
            parts.append(f"SELECT {', '.join([*person, *made])} FROM {below.text}{self.where(below, 0.3)}")
        names = [Name("pp", first.persons[0].type, "person")] if first.persons else []
        names += [Name(f"x{place}", kind) for place, kind in enumerate(kinds)]
        return From(f"({' UNION ALL '.join(parts)})", tuple(names))

    # the question

    def question(self) -> str:
        """A whole question."""
        source = self.source(self.dice.choice(self.depths))
        named = ""
        if source.text.startswith("(") and not source.joined and self.chance(0.3):
            name = self.alias()
            named = f"WITH {name} AS {source.text} "
            source = replace(source, text=name)
        groups = self.groups(source) if self.public and self.chance(0.1) else None
        if groups is not None:
            source, keys = groups
        else:
            keys = list(dict.fromkeys(self.key(source) for _ in range(self.dice.choice([0, 0, 0, 1, 1, 2]))))
        wanted = list(dict.fromkeys(self.wanted(source) for _ in range(self.dice.randint(1, 3))))
        names = [self.titled(f"a{place}") for place in range(len(wanted))]
        columns = [f"{one} AS {name}" for one, name in zip(wanted, names, strict=True)]
        shown = keys if self.chance(0.8) else keys[:1]
        text = f"{named}SELECT {self.options(source, private=bool(keys))}{', '.join([*shown, *columns])}"
        text += f" FROM {source.text}{self.where(source)}"
        text += f" GROUP BY {', '.join(keys)}" if keys else ""
        return text + self.tail(names[0], keys)

    def groups(self, source: From) -> tuple[From, list[str]] | None:
        """Groups that a public table lists."""
        name = self.pick(self.public)
        listed = [one for one in self.tables[name] if one.type is not Type.NUMBER]
        both = [(mine, key) for mine in source.names for key in listed if mine.type is key.type]
        if not both or source.joined:
            return None
        left = self.renamed(source)
        mine, key = self.pick(both)
        alias = self.alias()
        mine = left.names[source.names.index(mine)].text
        text = f"{left.text} RIGHT JOIN (SELECT DISTINCT {key.text} FROM {_quoted(name)}) AS {alias}"
        group = Name(f"{alias}.{key.text}", key.type)
        return From(f"{text} ON {mine} = {group.text}", (*left.names, group), joined=True), [group.text]

    def options(self, source: From, *, private: bool) -> str:
        """GoogleSQL's clause, or nothing."""
        if not self.chance(0.3):
            return ""
        limit = self.pick(["max_groups_contributed = {}", "max_rows_contributed = {}", ""])
        chosen = [limit.format(self.pick([1, 2, 4, 1000]))] if limit else []
        if private and self.chance(0.3):
            chosen.append(f"min_privacy_units_per_group = {self.pick([1, 2, 30])}")
        elif self.chance(0.15):
            chosen.append(f"group_selection_strategy = {self.pick(['LAPLACE_THRESHOLD', 'PUBLIC_GROUPS'])}")
        if source.persons and self.chance(0.2):
            chosen.append(f"privacy_unit_column = {source.persons[0].text}")
        return f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({', '.join(chosen)}) " if chosen else ""

    def tail(self, name: str, keys: Sequence[str]) -> str:
        """HAVING, ORDER BY and LIMIT: on what is released."""
        text = ""
        if self.chance(0.15):
            text += (
                f" HAVING {self.pick(['{0} > -1e9', '{0} < 3 OR {0} IS NULL', 'ABS({0}) * 1e299 > 0']).format(name)}"
            )
        if self.chance(0.2):
            text += f" ORDER BY {self.pick([name, '1', *keys])}{self.pick(['', ' DESC'])}"
        return text + (f" LIMIT {self.pick([1, 3, 1000])}" if self.chance(0.1) else "")

    def key(self, source: From) -> str:
        """What groups are made by."""
        kinds = [Type.TEXT, Type.INTEGER, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP]
        if self.chance(self.slips + 0.05):  # a number that has declared values makes groups, others do not
            kinds = [Type.NUMBER]
        grouped = [name.text for name in source.names if name.type in kinds and name.person != "person"]
        if grouped and self.chance(0.6):
            return str(self.pick(grouped))
        if self.chance(0.3):
            return f"CASE WHEN {self.condition(source.names, 1)} THEN 'x' ELSE 'it''s' END"
        return self.value(self.pick(kinds), source.names, 1)

    def wanted(self, source: From) -> str:
        """An aggregate."""
        found = self._wanted(source)
        return f"{found} FILTER (WHERE {self.condition(source.names, 1)})" if self.chance(0.05) else found

    def _number(self, source: From, depth: int = 2) -> str:
        return self.value(self.pick([Type.INTEGER, Type.NUMBER]), source.names, depth)

    def _wanted(self, source: From) -> str:
        one = self._number(source)
        any_kind = self.pick(list(Type))
        share = f", epsilon => {self.pick(['0.001', '1', '1e-9'])}" if self.chance(0.03) else ""
        report = ", report_format => JSON" if self.chance(0.03) else ""
        forms = [
            f"COUNT(*{share}{report})",
            f"COUNT({self.value(any_kind, source.names)})",
            f"SUM({one}, {GROUP_BOUNDS} => {self.pick(BOUNDS)}{share})",
            f"COUNT(*, {GROUP_BOUNDS} => {self.pick(COUNTED)})",
            f"SUM(CASE WHEN {self.condition(source.names, 1)} THEN 2 ELSE 0.5 END)",
            f"AVG(CASE WHEN {self.condition(source.names)} THEN 1 ELSE -2 END{report})",
            f"SUM({one}, {ROW_BOUNDS} => {self.pick(BOUNDS)})",
            f"AVG({one}, {ROW_BOUNDS} => {self.pick(BOUNDS)})",
            f"COUNTIF({self.condition(source.names)})",
            *(f"COUNT(DISTINCT {name.text})" for name in source.persons),
        ]
        if not self.plain:
            forms += [f"SUM({one})", f"AVG({one})", f"100 * SUM({one}) / COUNT(*)", *self.specials(source)]
        return str(self.pick(forms))

    def specials(self, source: From) -> list[str]:
        """Quantiles, commonest and different values, moments: by each of their names."""
        name = self.pick(list(STATISTICS))
        one, other = self._number(source), self._number(source, 1)
        bounds = f", {ROW_BOUNDS} => {self.pick(BOUNDS)}" if self.chance(0.5) else ""
        if name in ("APPROX_TOP_COUNT", "MODE"):
            among = self.value(self.pick([Type.TEXT, Type.BOOLEAN, Type.INTEGER]), source.names, 1)
            made = f"{name}({among}{', 2' if name != 'MODE' else ''})"
        elif name in ("COVAR_POP", "COVAR_SAMP", "CORR"):
            made = f"{name}({one}, {other}{bounds})"
        elif name == "APPROX_QUANTILES":
            made = f"{name}({one}, {self.pick([1, 4, 100])}{bounds})"
        elif STATISTICS[name][1] == 2:
            made = f"{name}({one}, {self.pick(['0', '0.5', '0.999', '1'])}{bounds})"
        elif name in ("COUNTIF", "COUNT_IF"):
            made = f"{name}({self.condition(source.names)})"
        else:
            made = f"{name}({one}{bounds})"
        distinct = f"COUNT(DISTINCT {self.value(self.pick(list(Type)), source.names)})"
        return [made, made, distinct, f"MEDIAN({one}{bounds})", self._date_quantile(source)]

    def _date_quantile(self, source: From) -> str:
        """A quantile of dates or timestamps."""
        kind = self.pick([Type.DATE, Type.TIMESTAMP])
        midnight = "" if kind is Type.DATE else " 00:00:00"
        low, high = (f"'{day}{midnight}'" for day in self.pick(DAYS))
        name, rest = self.pick([("MIN", ""), ("MAX", ""), ("MEDIAN", ""), ("APPROX_QUANTILES", ", 4")])
        return f"{name}({self.value(kind, source.names, 1)}{rest}, {ROW_BOUNDS} => ({low}, {high}))"


def _names(known: Declaration, table: Table) -> tuple[Name, ...]:
    """The columns of a declared table as a question writes them, with whose they are."""
    names = []
    for column in table.columns:
        assert column.type is not None
        key = (table.name, column.name)
        leads = any(other.path == key for other in known.tables.values())
        whose = ".".join(key) if leads else ""
        if column.name == table.person:
            whose = "person" if table.path is None else ".".join(table.path)
        names.append(Name(_quoted(column.name), column.type, whose))
    return tuple(names)


def _plain(name: Name) -> Name:
    return replace(name, person="")


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'
