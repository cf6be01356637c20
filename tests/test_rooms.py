"""Each room of the house knows only those below it: read from the imports, held against one table."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import discreet
from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_c.engine import CodedEngine
from trusted_list import closure

SOURCE = Path(discreet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

RINGS = {"ring_a", "ring_b", "ring_c", "budget_ledger"}
"""The rooms of the trusted package; each imports itself and what stands below it."""
PROCEDURES = {"synthesis", "workload", "learning", "selection", "contribution", "profile", "streams"}
WITH_PLANS = RINGS | {"dialect", "plan", "catalog", "errors", "texts"}
FACADE = (
    WITH_PLANS
    | {"curator", "tables", "pricing", "sql", "intervals", "release", "ledger", "accounting"}
    | {"mechanisms"}
)
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "texts": set(),
    "look": {"errors", "texts"},
    "locks": set(),
    "finishing": set(),
    # what the promise rests on: ring A and the ledger beside it, ring B, ring C; whom the gate asks is the ledger
    "trusted": set(),
    "ring_a": {"errors", "budget_ledger"},
    "budget_ledger": {
        "errors",
        "ring_a",
        "ring_b",
    },  # of ring B the certified filter alone: tests/trusted/test_trusted.py
    "ledger_server": {"budget_ledger", "errors"},  # the ledger on a server: nothing of ours but its opener knows it
    # a budget that renews for new persons: who is in which period, and the ledger's lists of them
    "renewal": {"ring_a", "budget_ledger", "errors"},
    "parts": {"ring_a", "budget_ledger", "renewal", "errors"},
    # caps by day and month in an analyst's own budget; of ring B the filter that accounts are
    "allowances": {"budget_ledger", "ring_b", "errors"},
    "dialect": {"ring_a", "errors"},  # the table of functions, and where values lie
    "ring_b": {"ring_a", "dialect", "errors"},
    # of the ledger: what was stored for a stream, and how a file appears whole
    "ring_c": {"ring_a", "ring_b", "budget_ledger", "dialect", "errors"},
    # the mathematics by the names under which pages show it
    **{name: RINGS | {"reference", "odds"} for name in ("noise", "accounting", "mechanisms")},
    "reference": {"ring_a", "ring_b", "ring_c", "errors"},  # to compare with: no curator runs it
    "odds": {"ring_a", "ring_b", "ring_c"},  # a price in words
    "textbook": {"reference", "ring_a", "ring_b", "ring_c", "errors"},  # no table, no engine, no ledger
    "markov": {"ring_a", "errors"},
    # of the ledger: where it is, periods; of what is fitted, whether there is a table with declared counts
    "catalog": {"ring_a", "budget_ledger", "ledger_server", "markov", "errors", "texts"},
    "ledger": {
        "budget_ledger",
        "ledger_server",
        "renewal",
        "parts",
        "allowances",
        "ring_a",
        "ring_b",
        "accounting",
        "errors",
        "texts",
    },  # never plans
    "plan": {"ring_a", "ring_b", "ring_c", "dialect", "catalog", "mechanisms", "errors"},
    "intervals": WITH_PLANS | {"mechanisms"},  # of a price, before there is an answer
    "release": WITH_PLANS | {"intervals", "accounting", "mechanisms", "look"},  # no engine or ledger
    "engines": RINGS | {"renewal", "parts", "dialect", "catalog", "errors", "texts", "locks"},  # no release
    "sql": {"plan", "dialect", "catalog", "ring_a", "ring_b", "errors", "texts"},  # no engine or ledger
    "postprocessing": WITH_PLANS
    | {"sql", "engines", "release", "locks"},  # what was released and public tables: no row
    "reading": WITH_PLANS | {"sql", "engines", "postprocessing"},  # no holdings: texts and declarations
    "pricing": WITH_PLANS | {"sql", "intervals", "accounting"},  # no answer is formatted for a price
    "procedures": WITH_PLANS | {"ledger", "release", "finishing"},
    **dict.fromkeys(
        PROCEDURES,
        WITH_PLANS
        | {"procedures", "sql", "intervals", "release", "ledger", "accounting", "mechanisms", "textbook", "locks"},
    ),
    "synthesis": WITH_PLANS
    | {"procedures", "markov", "sql", "intervals", "look", "release", "ledger", "accounting", "mechanisms", "textbook"},
    "tables": {"catalog", "ring_a", "errors", "texts"},
    "explanation": {"odds", "intervals", "release", "texts", "ring_a"},
    "schedule": {"engines", "locks", "errors"},  # the moment at which an engine has failed
    "holdings": WITH_PLANS | {"renewal", "engines", "ledger", "locks"},
    "curator": FACADE - {"curator"}
    | PROCEDURES
    | {"procedures", "engines", "explanation", "holdings", "odds", "postprocessing", "reading", "schedule"}
    | {"finishing", "locks"},
    # no engine, no plan, no text; of the rings what a loss is; of procedures what calls are
    "service": {
        "accounting",
        "holdings",
        "curator",
        "catalog",
        "ledger",
        "budget_ledger",
        "release",
        "explanation",
        "odds",
        "look",  # of a page that its own command serves, the headers alone
        "ring_a",
        "errors",
    }
    | {"synthesis", "workload"},
    # publishes what was published again: through a curator as anybody does
    "simulation": {"curator", "tables", "synthesis", "release", "procedures", "look", "errors", "texts", "ring_a"},
    # pages of the service: no engine and no plan either
    "console": {"service", "curator", "catalog", "release", "dialect", "ledger", "budget_ledger", "ring_a", "look"}
    | {"accounting", "odds", "errors", "texts"},
    # a form for a first declaration: no source and no curator; of the service and its pages how one is asked over HTTP
    "beginning": {"console", "service", "catalog", "odds", "errors"},
    # another way in to the service: no curator, no ledger, no tree of a question; of the engines a child process alone,
    # in which what clients ask of the catalogue is answered
    "wire": {"service", "release", "explanation", "catalog", "engines", "errors", "texts"},
    # no curator: it is elsewhere; of the service, which addresses are this machine's
    "remote": {"catalog", "release", "explanation", "service", "sql", "ring_a", "errors", "texts"}
    | {"procedures", "synthesis", "workload"},
    # whom an assistant asks: a curator, here or elsewhere; of the service what others are told
    "agents": {"curator", "remote", "service", "explanation", "errors", "texts", "__init__"},
    **dict.fromkeys(
        ("cli", "notebook"),
        FACADE
        | PROCEDURES
        | {
            "procedures",
            "agents",
            "audit",
            "beginning",
            "console",
            "engines",
            "explanation",
            "local",
            "look",
            "odds",
            "remote",
            "service",
            "simulation",
            "wire",
            "together",
            "__init__",
        },
    ),
    # an attacker sees all that a careless or curious insider might, but only of tables that it has made up itself
    "audit": FACADE | {"engines", "reference", "local", "look", "synthesis"},
    **{
        name: RINGS | {"noise", "accounting", "mechanisms", "errors", "texts", "look", "locks"}
        for name in ("local", "together")
    },
    "__main__": {"cli"},
    "__init__": {
        "curator",
        "errors",
        "explanation",
        "notebook",
        "release",
        "remote",
        "simulation",
        "synthesis",
        "tables",
        "workload",
    },
}
"""What a room may import. A new room says here where it stands."""
OLD_NAMES = {f"accounting/{name}.py" for name in ("calibrate", "odds", "plain", "residue")} | {
    "noise/words.py",
    "constructions/__init__.py",
}
"""Modules that pages once showed, under other names now: each hands the names on, and no module of ours uses it."""
READ = (*RINGS, "ledger_server", "renewal", "parts", "allowances", "ledger", "plan", "engines")
"""Rooms whose modules name the very modules that they need, so that what one rests on can be followed file by file."""


def room(name: str) -> str:
    """The room of a module, by the parts of its name behind `discreet`."""
    parts = name.split(".")
    if parts[0] == "trusted" and len(parts) > 1:
        return "budget_ledger" if parts[1] == "ledger" else parts[1]
    return parts[0]


@cache
def room_of(file: Path) -> str:
    return room(".".join(file.relative_to(SOURCE).with_suffix("").parts))


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules of this package that a module imports, wherever the import stands."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "discreet")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            if node.module in ("discreet", "discreet.trusted"):
                for alias in node.names:
                    place = SOURCE.parent / node.module.replace(".", "/") / alias.name
                    known = place.with_suffix(".py").exists() or place.is_dir()
                    yield f"{node.module}.{alias.name}" if known else node.module
            elif node.module is not None and node.module.startswith("discreet."):
                yield node.module


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All of a tree, found once."""
    return tuple(ast.walk(tree))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for file in FILES:
        yield file, parsed(file)


@pytest.mark.parametrize("own", sorted({room_of(file) for file in FILES}))
def test_a_room_knows_only_those_below_it(own: str) -> None:
    for file in FILES:
        if room_of(file) != own or str(file.relative_to(SOURCE)) in OLD_NAMES:
            continue
        assert own in BELOW, f"say in BELOW where {own} stands"
        for module in imports(parsed(file)):
            other = room(module.removeprefix("discreet.")) if "." in module else "__init__"
            assert other == own or other in BELOW[own], f"{file.relative_to(SOURCE)}: {own} must not know {other}"


def test_old_names_only_hand_on() -> None:
    for name in OLD_NAMES:
        body = ast.parse((SOURCE / name).read_text("utf-8")).body
        first, *handed, last = map(type, body)
        assert (first, {*handed}, last) == (ast.Expr, {ast.ImportFrom}, ast.Assign), name
    old = {module_of(SOURCE / name) for name in OLD_NAMES}
    for file, tree in trees():
        assert not old & set(imports(tree)), file


def test_what_is_read_names_modules_not_rooms() -> None:
    """`from discreet.accounting import Loss` would make whoever reads that module read the whole room."""
    for file, tree in trees():
        if room_of(file) not in READ or file.name == "__init__.py":
            continue
        for node in nodes(tree):
            if isinstance(node, ast.ImportFrom) and node.module in tuple(
                f"discreet.{room}" for room in ("accounting", "mechanisms", "noise")
            ):
                for alias in node.names:
                    assert (SOURCE / node.module.split(".")[1] / f"{alias.name}.py").exists(), (file, alias.name)


def test_whoever_reads_a_ledger_knows_every_kind_of_event() -> None:
    """`loss_from_json` reads the kinds of the modules that are loaded: the ledger's own imports load them all."""
    kinds = {module_of(file) for file in FILES if "@stored" in file.read_text("utf-8")}
    assert kinds == {"discreet.trusted.ring_a.loss", "discreet.trusted.ring_b.further_losses"}
    assert kinds <= closure(frozenset({"discreet.trusted.ledger.ledger"}))


def test_the_table_has_no_circle() -> None:
    """Whoever is below somebody is not above him, by any number of steps. The package's own names are loaded late; the
    gate asks the ledger, which keeps what rings A and B say of losses: three rooms that are read together."""
    together = {"ring_a", "ring_b", "budget_ledger", "dialect"}
    for one in BELOW:
        seen, rest = set(), set(BELOW[one]) - {"__init__"}
        while rest:
            other = rest.pop()
            assert other != one or one in together, f"{one} stands below itself"
            if other not in seen:
                seen.add(other)
                rest |= BELOW[other] - {"__init__"}


@cache
def module_of(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def links(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules that a module imports, at any level: in a function or for types alone counts as much. A name that a
    package gives is a link to the package's own module, which says where it comes from."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in known else str(node.module)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the next, and the last the first; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """A module can be read knowing only what it imports. No import inside a function is excused."""
    known = {module_of(file) for file in FILES}
    graph = {module_of(file): set(links(tree, known)) - {module_of(file)} for file, tree in trees()}
    assert sum(map(len, graph.values())) > 3 * len(FILES)  # the imports are found
    assert circle(graph) == []


def test_a_circle_would_be_found() -> None:
    low = ast.parse("def late():\n    from discreet.high import name")
    assert set(links(low, {"discreet.high", "discreet.low"})) == {"discreet.high"}
    found = circle({"discreet.low": {"discreet.high"}, "discreet.high": {"discreet.low"}})
    assert set(found) == {"discreet.low", "discreet.high"}


REPEATED = {
    "Coded",  # of ring C, and what a workload is on cells: its name stands in stored keys
    "Generator",  # sqlglot looks for this name in a dialect
    "Report",  # of an audit, of a device: both are imported by users
    "Seen",  # two in ring C
    "Session",  # what parties agree on, imported by users; and a connection in the trusted ledger on a server
    "Table",  # `discreet.Table`, and the declared one in ring A
}
"""Names of several classes. A new class takes a name that no other has, so that a search for it finds one."""


def test_a_class_has_a_name_of_its_own() -> None:
    found = Counter(
        node.name.lstrip("_") for _, tree in trees() for node in nodes(tree) if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in found.items() if count > 1} == REPEATED
    assert all(found[name] == 2 for name in REPEATED)


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every call of a method: the last name of what it is called on, and the method."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = node.func.value
            name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
            yield name.lstrip("_"), node.func.attr


def test_only_the_door_runs_plans_and_reserves_losses() -> None:
    found, exact = set(), tuple(("engine", name) for name in ("run", "vectors", "code", "marginals"))
    for file, tree in trees():
        for name, method in calls(tree):
            if (name, method) in (*exact, ("ledger", "reserve"), ("ledger", "commit")):
                found.add((room_of(file), name, method))
    gate = {("ring_a", "engine", "run"), ("ring_a", "ledger", "commit"), ("ring_a", "ledger", "reserve")}
    others = {("ring_b", "engine", "run"), *(("ring_c", *call) for call in exact)}
    assert found - gate - others == {("audit", "engine", "run")}  # of tables made up: tests/audit holds that
    assert gate <= found


def test_only_the_door_makes_grants_and_draws() -> None:
    for file, tree in trees():
        if room_of(file) not in RINGS:
            names = {node.id for node in nodes(tree) if isinstance(node, ast.Name)}
            assert not names & {"Grant", "noisy_answer", "noisy_groups", "exact_groups"}, file


def test_engines_of_the_database_are_loaded_in_the_child_alone() -> None:
    """The database's own library is imported by the worker, so that no other process of ours holds rows in it; and
    where SQL runs on synthetic rows, which are public."""
    holders = set()
    for file, tree in trees():
        for node in nodes(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if "duckdb" in modules:
                holders.add(str(file.relative_to(SOURCE)))
    # the others hold what was released, what is made up, what is randomised already, and what is declared
    assert holders == {
        *("engines/duckdb/worker.py", "engines/duckdb/kept.py", "engines/duckdb/outer_worker.py"),
        *("synthesis/database.py", "synthesis/digest.py", "local/store.py", "wire/catalog/worker.py"),
    }


def test_rows_of_a_server_are_read_in_the_child_alone() -> None:
    """What connects to a server is imported by the programs of children alone, and by what they import."""
    drivers, readers, known = set(), set(), {module_of(one) for one in FILES}
    for file, tree in trees():
        modules = {alias.name for node in nodes(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in nodes(tree) if isinstance(node, ast.ImportFrom)}
        if any(module.startswith("adbc") for module in modules):
            drivers.add(str(file.relative_to(SOURCE)))
        if "discreet.engines.postgresql.server" in links(tree, known):
            readers.add(str(file.relative_to(SOURCE)))
    assert drivers == {"engines/postgresql/server.py", "engines/postgresql/worker.py"}
    assert readers == {"engines/duckdb/worker.py", "engines/postgresql/worker.py"}


NAMING = {
    "catalog/model.py": "the engine's name in a declaration",
    "engines/chosen.py": "says which engine the house runs on",
    "engines/forkserver.py": "tells its allocator, before a program is loaded, to retain no memory",
    "trusted/ring_a/table.py": "the kind of a source: the format of a file, whatever engine reads it",
    "synthesis/query.py": "reads SQL on synthetic rows, which are public",
    "synthesis/digest.py": "reads synthetic rows, which are public, to know them again",
    "synthesis/database.py": "holds synthetic rows, which are public, and writes them to its file",
    "sql/dialects.py": "a question may be written in its SQL, whatever engine runs it",
    "local/store.py": "keeps reports, which are randomised already, in a file",
    "wire/catalog/statement.py": "writes what clients ask of the catalogue for it, whatever engine holds the rows",
    "wire/catalog/worker.py": "holds the catalogue, which follows from the declaration, and no row",
}
"""Who names the database beside its own package, and why."""


def named(tree: ast.AST) -> Iterator[str]:
    """The identifiers and imports of a module, and the texts that are one word. Sentences may name what they like."""
    for node in nodes(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield from (node.name, node.asname or "")
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def test_no_room_but_its_own_names_the_database_or_its_dialect() -> None:
    """So another engine is another package beside it, and a choice in one place."""
    found = set()
    for file, tree in trees():
        place = file.relative_to(SOURCE).as_posix()
        if not place.startswith("engines/duckdb/") and any("duckdb" in name.casefold() for name in named(tree)):
            found.add(place)
    assert found == NAMING.keys() | {"dialect/table.py"}  # a function that questions may not call


def test_the_gate_reads_nothing_of_an_engine_but_what_every_engine_has() -> None:
    known = {name for kind in (Engine, CodedEngine) for name in vars(kind) if not name.startswith("_")}
    read = {
        node.attr
        for file, tree in trees()
        if room_of(file) in RINGS
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] in ("engine", "_engine")
    }
    assert read == known


DRAWING = {
    *("bits.py", "inversion.py", "sampler.py", "laplace.py", "gaussian.py", "rounded_gaussian_wide.py"),  # ring A
    *("geometric.py", "choice.py", "k_norm.py", "quantile.py", "selection.py", "noisy_max.py", "sparse.py"),  # ring B
    *("winners.py", "logarithmic.py", "polya.py", "shares.py", "sampling.py"),  # rings B and C
    "block_worker.py",  # gives the owner's function a fresh seed
}
"""The modules that draw."""


def test_nothing_above_noise_and_mechanisms_names_a_source_of_randomness() -> None:
    """No parameter, name or import of a Words object; and no other randomness that could become noise."""
    for file, tree in trees():
        made_up = ("markov", "synthesis", "reference")  # rows that follow what was released; comparisons
        if room_of(file) in ("noise", "local", "together", *made_up) or file.name in DRAWING:
            continue  # markov draws rows from public models
        for node in nodes(tree):
            names = []
            if isinstance(node, ast.Name):
                names = [node.id]
            elif isinstance(node, ast.arg):
                names = [node.arg]
            elif isinstance(node, ast.Attribute):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names]
                assert not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet.noise")), file
            assert not {"Words", "SystemWords"} & set(names), file
            assert "random" not in names, file


def test_nothing_prints_or_logs_but_with_fixed_words() -> None:
    """A log line is a constant with numbers and fixed words put in; printing is for the ways in."""
    for file, tree in trees():
        if room_of(file) in ("cli", "notebook"):
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name):
                    assert node.func.id != "print", file
                if isinstance(node.func, ast.Attribute) and node.func.attr in (
                    "debug",
                    "info",
                    "warning",
                    "error",
                    "exception",
                ):
                    assert isinstance(node.args[0], ast.Constant), file
                    assert node.func.attr != "exception", file
