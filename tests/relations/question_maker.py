"""Questions made up at random over the grammar: joins of all kinds, subqueries, UNION ALL, lookups, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

QUOTE = '"'
BOUNDS = "contribution_bounds_per_group"
Columns = Sequence[tuple[str, str]]
"""Names as they are written, and types: p(erson), o(rder), i(nteger), n(umber), t(ext)."""

TABLES: dict[str, Columns] = {
    "customers": [("id", "p"), ("city", "t"), ("age", "i"), ("h", "t")],
    "orders": [
        ("oid", "o"),
        ("cust", "p"),
        ("st", "t"),
        ("total", "n"),
        ("k", "i"),
        ("big", "i"),
        ("f", "n"),
    ],
    "lines": [("oid", "o"), ("qty", "i"), ("cur", "t")],
    "solo": [("cur", "t"), ("age", "i"), ("w", "n")],
    "rates": [("cur", "t"), ("rate", "n"), ('"a.b"', "i"), ("word", "t")],
}


@dataclass(frozen=True)
class From:
    """What stands in FROM, and its columns."""

    text: str
    columns: Columns
    public: bool = False

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.columns if kind in kinds]


class Maker:
    """One stream of questions. `wild` also writes what no plan can have."""

    def __init__(self, seed: int, *, wild: bool = False) -> None:
        self.random = Random(seed)
        self.wild = wild
        self.count = 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        self.count += 1
        return self.pick(f"s{self.count}", f"s{self.count}", f'"s.{self.count}"', f'"Ü {self.count}"')

    # expressions of one row

    def number(self, source: From, depth: int = 2) -> str:
        names = source.of("i", "n")
        if depth == 0 or self.chance(0.4):
            return self.pick(*names, *names, "1", "0.5", "-3", "9223372036854775808")
        one, two = self.number(source, depth - 1), self.number(source, depth - 1)
        return self.pick(
            f"({one} {self.pick('+', '-', '*', '/')} {two})",
            f"ABS({one})",
            f"-({one})",
            f"CASE WHEN {self.condition(source, depth - 1)} THEN {one} ELSE {two} END",
            f"COALESCE({one}, {two})",
        )

    def text(self, source: From) -> str:
        names = source.of("t")
        return self.pick(*names, *names, "'x'", f"COALESCE({self.pick(*names, 'NULL')}, 'z')", self.cases(source))

    def cases(self, source: From) -> str:
        return f"CASE WHEN {self.condition(source, 1)} THEN 'x' WHEN {self.condition(source, 0)} THEN 'it''s' END"

    def condition(self, source: From, depth: int = 1) -> str:
        if depth > 0 and self.chance(0.3):
            one, two = self.condition(source, depth - 1), self.condition(source, depth - 1)
            return self.pick(f"NOT ({one})", f"({one} AND {two})", f"({one} OR {two})")
        text = self.text(source) if depth > 0 else self.pick(*source.of("t"), "'x'")
        return self.pick(
            f"{self.number(source, 1)} {self.pick('<', '<=', '=', '<>', '>')} {self.number(source, 0)}",
            f"{text} {self.pick('=', '<>', '<')} {self.pick(*source.of('t'), repr('x'))}",
            f"{text} LIKE {self.pick(repr('%'), repr('_%'), repr('%x'))}",
            f"{self.pick(*(name for name, _ in source.columns))} IS {self.pick('', 'NOT ')}NULL",
            f"{self.number(source, 0)} IN (0, 1, 2.5, NULL)",
            f"{self.number(source, 0)} BETWEEN 0 AND 4",
        )

    # sources

    def source(self, depth: int) -> From:
        """A table, or what is made of several."""
        if depth == 0 or self.chance(0.2):
            name = self.pick("customers", "orders", "orders", "lines", "lines", "solo")
            return From(name, TABLES[name])
        return self.random.choice([self.joined, self.rows, self.totals, self.joined, self.stacked])(depth)

    def renamed(self, source: From) -> tuple[str, From]:
        """The same under an alias."""
        alias = self.name()
        names = [
            (f"{alias}.{name if name[0] == QUOTE else name.split('.')[-1]}", kind) for name, kind in source.columns
        ]
        return alias, From(f"{source.text} AS {alias}", names, source.public)

    def single(self, depth: int) -> From:
        """A table or subquery, without joins."""
        while True:
            found = self.source(depth)
            if " JOIN " not in found.text or found.text.startswith("("):
                return found

    def people(self, depth: int) -> From:
        """A source that shows its persons."""
        found = self.source(depth)
        return found if found.of("p") else From("orders", TABLES["orders"])

    def joined(self, depth: int) -> From:
        _, left = self.renamed(self.single(depth - 1))
        public = self.chance(0.4)
        other = self.lookup() if public else self.single(depth - 1)
        _, right = self.renamed(other)
        both = From("", [*left.columns, *right.columns])
        kind = self.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        parts = [f"{self.pick(*left.of('t'))} = {self.pick(*right.of('t'))}"] if public else []
        persons = left.of("p"), right.of("p")
        if all(persons):
            parts.append(f"{self.pick(*persons[0])} = {self.pick(*persons[1])}")
        orders = left.of("o"), right.of("o")
        if all(orders) and self.chance(0.5):
            parts.append(f"{self.pick(*orders[0])} = {self.pick(*orders[1])}")
        if not parts or self.chance(0.3):
            parts.append(self.condition(both))
        if public and self.chance(0.5):
            left, right = (right, left) if kind == "RIGHT JOIN" else (left, right)
        return From(f"{left.text} {kind} {right.text} ON {' AND '.join(parts)}", both.columns)

    def lookup(self) -> From:
        """The public table, or what is made of it."""
        return self.random.choice(
            [
                From("rates", TABLES["rates"], True),
                From("(SELECT DISTINCT cur FROM rates)", [("cur", "t")], True),
                From("(SELECT cur, COUNT(*) AS n, MAX(rate) AS m FROM rates GROUP BY cur)", [("cur", "t"), ("n", "i")]),
                From("(SELECT DISTINCT word AS cur FROM rates WHERE rate > 0)", [("cur", "t")], True),
            ]
        )

    def where(self, source: From, share: float = 0.5) -> str:
        parts = [self.condition(source)] if self.chance(share) else []
        if source.of("p") and self.chance(0.2):
            among = self.pick("id FROM customers", "cust FROM orders", "cust FROM orders WHERE total > 3")
            parts.append(f"{self.pick(*source.of('p'))} {self.pick('', 'NOT ')}IN (SELECT {among})")
        if source.of("t") and self.chance(0.1):
            parts.append(f"{self.pick(*source.of('t'))} {self.pick('', 'NOT ')}IN (SELECT cur FROM rates)")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def person(self, source: From) -> list[tuple[str, str, str]]:
        return [(self.pick(*source.of("p")), "pp", "p")]

    def rows(self, depth: int) -> From:
        """Each row made anew."""
        below = self.people(depth - 1)
        items = [*self.person(below), (self.number(below), "num", "n"), (self.text(below), "word", "t")]
        if orders := below.of("o"):
            items.append((orders[0], "oo", "o"))
        distinct = self.pick("", "", "DISTINCT ")
        return self.subquery(f"SELECT {distinct}", items, f" FROM {below.text}{self.where(below)}")

    def totals(self, depth: int) -> From:
        """Totals of each person."""
        below = self.people(depth - 1)
        keys = self.person(below)
        if self.chance(0.4):
            keys.append((self.text(below), "word", "t"))
        made = [self.aggregate(below) for _ in range(self.random.randint(1, 2))]
        items = [*keys, *((one, f"num{place or ''}", "n") for place, one in enumerate(made))]
        if not any(kind == "t" for _, _, kind in items):
            items.append((f"MIN({self.text(below)})", "word", "t"))
        tail = f" FROM {below.text}{self.where(below)} GROUP BY {', '.join(key for key, _, _ in keys)}"
        if self.chance(0.3):
            tail += f" HAVING {self.aggregate(below)} > 1"
        return self.subquery("SELECT ", items, tail)

    def aggregate(self, source: From) -> str:
        one = self.number(source, 1)
        return self.pick(
            "COUNT(*)", f"{self.pick('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}({one})", f"COUNT(DISTINCT {one})"
        )

    def subquery(self, head: str, items: Sequence[tuple[str, str, str]], tail: str) -> From:
        listed = ", ".join(f"{one} AS {name}" for one, name, _ in items)
        return From(f"({head}{listed}{tail})", [(name, kind) for _, name, kind in items])

    def stacked(self, depth: int) -> From:
        parts = []
        for _ in range(self.random.randint(2, 3)):
            below = self.people(depth - 1)
            items = f"{self.pick(*below.of('p'))} AS pp, {self.number(below, 1)} AS num, {self.text(below)} AS word"
            parts.append(f"SELECT {items} FROM {below.text}{self.where(below, 0.3)}")
        return From(f"({' UNION ALL '.join(parts)})", [("pp", "p"), ("num", "n"), ("word", "t")])

    # the question

    def question(self) -> str:
        source = self.source(self.random.randint(0, 3))
        wanted = [self.wanted(source) for _ in range(self.random.randint(1, 3))]
        wanted = list(dict.fromkeys(wanted))
        keys = list(dict.fromkeys(self.key(source) for _ in range(self.random.choice([0, 0, 1, 1, 2]))))
        head = "SELECT "
        if self.chance(0.3) and not any(one.startswith("AVG") for one in wanted):
            head += f"WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {self.pick('1', '2', '4')}) "
        text = f"{head}{', '.join(wanted)} FROM {source.text}{self.where(source)}"
        text += f" GROUP BY {', '.join(keys)}" if keys else ""
        return (
            f"WITH {self.name()} AS ({text[7:] if self.wild else 'SELECT cur FROM rates'}) {text}"
            if self.chance(0.1)
            else text
        )

    def key(self, source: From) -> str:
        one = self.number(source, 1)
        columns = source.of("t", "i", "o", "p") if self.wild else source.of("t", "i", "o")
        return self.pick(*columns, self.cases(source), f"CASE WHEN {one} > 1 THEN 1 ELSE 2 END", self.text(source))

    def wanted(self, source: From) -> str:
        one = self.number(source, 1)
        persons = [f"COUNT(DISTINCT {name})" for name in source.of("p")]
        return self.pick(
            "COUNT(*)",
            f"COUNT({one})",
            f"SUM({one}, {BOUNDS} => (-2, 7))",
            f"SUM({one}, {BOUNDS} => (0.5, 3))",
            f"COUNT(*, {BOUNDS} => (0, 2))",
            f"COUNT({self.text(source)}, {BOUNDS} => (2, 3))",
            f"SUM(CASE WHEN {one} > 1 THEN 2 ELSE 0.5 END)",
            f"AVG(CASE WHEN {self.condition(source)} THEN 1 ELSE -2 END)",
            f"SUM({one})",
            *persons,
        )
