"""What the tests of ring A notice: each of its modules is changed in one place at a time, and some test must then fail.

    python tests/mutants_of_ring_a.py                  all modules of MODULES
    python tests/mutants_of_ring_a.py threshold loss   these
    python tests/mutants_of_ring_a.py --write [...]    and writes their figures into docs/mutants.md, module by module

The changes (mutants) are those of cosmic-ray's operators named in CHANGES, and two of our own: an error that is not
raised, and `min` in place of `max`. What differs in annotations or in the size of a cache alone is none.

A module is judged by the test files that import something of it. They are collected once; a first run says which tests
run which lines, and leaves out those that take longer than a mutant may. Each mutant is a fork of that process in which
the code of one function is replaced; the tests that run this function judge it, those of the changed line and the quick
ones first, until one fails. What is changed outside functions is tried in a new process that imports the changed
module. A process that tests start runs the unchanged code, and what was computed while tests were collected stays. The
seconds of tests that a mutant may take are limited: one that lives for that long is counted as alive.

Exit status 1: fewer than 95 % are killed, or a mutant lives for which docs/mutants.md has no reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar

import coverage
import parso
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names

TESTS = Path(__file__).parent
RING = TESTS.parent / "src" / "discreet" / "trusted" / "ring_a"
PAGE = TESTS.parent / "docs" / "mutants.md"
PACKAGE = "discreet.trusted.ring_a"

FOLDERS = ("accounting", "attacks", "dialect", "neighbours", "noise", "plan", "trusted")
"""Where the test files stand that judge a module: those that import something of it."""
OF_CLASSES = "trusted/ring_a/test_frozen.py"
"""The tests that judge what is changed outside functions, beside those of the module's own name, though they run no
line of it."""
MODULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sensitivity", "measurement", "threshold", "additive", "loss"), ()),
    "public_groups": ("trusted/ring_a/test_public_groups.py",),
    **dict.fromkeys(("curves", "gaussian_budget", "filter", "exact", "bits", "sampler", "inversion"), ()),
    **dict.fromkeys(("laplace", "gaussian", "rounded_gaussian_wide", "least", "lattice"), ()),
    **dict.fromkeys(("groups", "expressions", "nodes", "table", "names"), ()),
    "gate": ("trusted/ring_a/test_gate.py",),
    "casts": ("trusted/ring_a/test_statement.py", "trusted/ring_b/test_scalars.py"),
    "terms": ("trusted/ring_a/test_statement.py",),
    "quantities": ("trusted/ring_a/test_statement.py", "neighbours/test_neighbours.py"),
    "windows": ("neighbours/test_neighbours.py", "neighbours/test_window_bounds.py"),
    "storing": ("trusted/ring_a/test_storing.py",),
    "statement": ("neighbours/test_neighbours.py",),
}
"""The modules that are changed, and what judges them beside the test files that import something of them."""

CHANGES = re.compile(
    r"core/(NumberReplacer|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd"
    r"|ZeroIterationForLoop|ReplaceContinueWithBreak|ReplaceUnaryOperator_Delete_(Not|USub|Invert)"
    r"|ReplaceComparisonOperator_(Lt_LtE|Lt_NotEq|LtE_Lt|LtE_Eq|Gt_GtE|Gt_NotEq|GtE_Gt|GtE_Eq|Eq_NotEq|NotEq_Eq"
    r"|NotEq_Lt|NotEq_Gt|Is_IsNot|IsNot_Is)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_FloorDiv|Pow_Mul|LShift_RShift"
    r"|RShift_LShift|BitAnd_BitOr|BitOr_BitAnd|BitXor_BitAnd))"
)
"""Which of cosmic-ray's operators: each comparison at its edge and with its direction lost, each sum as a difference,
each number by one, each condition turned round, each loop left out."""
GOAL = 0.95
BROKEN = 70
"""The exit status of a fork in which no test was judge: it could not be changed."""
MOST_MEMORY = 8 << 30


class _Raise(Operator):
    """Leaves an error out: what it guards is not held any more."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "raise_stmt":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        return parso.python.tree.Name(" pass", node.start_pos, prefix=node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("raise ValueError", "pass"),)


class _Side(Operator):
    """A bound from the other side."""

    OTHER: ClassVar = {
        "min": "max",
        "max": "min",
        "any": "all",
        "all": "any",
        "__floor__": "__ceil__",
        "__ceil__": "__floor__",
    }

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "name" and node.value in self.OTHER:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        return parso.python.tree.Name(self.OTHER[node.value], node.start_pos, prefix=node.prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("min(a, b)", "max(a, b)"),)


Name = tuple[str, str, str, str]


@dataclass(frozen=True)
class Mutant:
    """A module changed in one place: in which function (none: outside all), the line of it before and after, and the
    changed source."""

    module: str
    function: str
    first: int
    last: int
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> Name:
        return self.module, self.function, self.before, self.after

    def __str__(self) -> str:
        return f"`{self.function or 'outside'}`: `{self.before}` → `{self.after}`"


_OPPOSITE = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn}


class _Meaning(ast.NodeTransformer):
    """What a source says but for types, which no code of ring A reads, how arguments are written, sizes of caches."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.args, node.posonlyargs, node.kwonlyargs = [*node.posonlyargs, *node.args, *node.kwonlyargs], [], []
        node.defaults, node.kw_defaults = [one for one in (*node.defaults, *node.kw_defaults) if one is not None], []
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        inner = self.generic_visit(node).operand
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.Compare) and type(inner.ops[0]) in _OPPOSITE:
            return ast.Compare(inner.left, [_OPPOSITE[type(inner.ops[0])]()], inner.comparators)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("lru_cache", "TypeVar"):
            return node.func
        return self.generic_visit(node)


def _functions(body: Sequence[ast.stmt], inside: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield inside + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{inside}{node.name}.")


def _parts(source: str) -> tuple[list[tuple[str, ast.FunctionDef, str]], str]:
    """Each function's name, node and meaning; and the meaning of the rest."""
    tree = _Meaning().visit(ast.parse(source))
    found = [(name, node, ast.dump(ast.Module(node.body, []))) for name, node in _functions(tree.body)]
    for _, node, _ in found:
        node.body = []
    return found, ast.dump(tree)


def mutants(module: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    source = (RING / f"{module}.py").read_text("utf-8")
    functions, rest = _parts(source)
    nodes = list(ast_nodes(get_ast(source)))
    kept = [get_operator(name)() for name in operator_names() if CHANGES.fullmatch(name)]
    found: dict[tuple[str, ...], Mutant] = {}
    for operator in (*kept, _Raise(), _Side()):
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
            changed = mutate_code(source, operator, occurrence)
            try:
                new, new_rest = _parts(changed)
            except SyntaxError:
                continue
            differ = [old for old, one in zip(functions, new, strict=True) if old[2] != one[2]]
            if not differ and rest == new_rest:
                continue
            name, first, last = "", 0, 0
            if differ and rest == new_rest:
                name, node, _ = differ[0]
                first, last = min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or 0
            old_lines, new_lines = source.splitlines(), changed.splitlines()
            line = next(at for at, (old, one) in enumerate(zip(old_lines, new_lines, strict=False)) if old != one)
            before, after = (" ".join(lines[line].split()) for lines in (old_lines, new_lines))
            meaning = new_rest, *(dumped for _, _, dumped in new)
            found.setdefault(meaning, Mutant(module, name, first, last, line + 1, before, after, changed))
    return sorted(found.values(), key=lambda one: one.line)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


@functools.cache
def _live() -> tuple[dict[tuple[str, str, int], list[FunctionType]], list[Any]]:
    """The functions of ring A that this process holds, whatever wraps them, and all caches."""
    functions, caches = defaultdict(list), []
    gc.unfreeze()  # what is frozen, as after the collection of tests, would not be found
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            caches.append(one)
        elif isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(RING)):
            functions[_key(one.__code__)].append(one)
    gc.freeze()  # forks share what lies here
    return functions, caches


def _key(code: CodeType) -> tuple[str, str, int]:
    return Path(code.co_filename).stem, code.co_qualname, code.co_firstlineno


def _patch(mutant: Mutant) -> bool:
    """Replaces the code of the function in this process; False where no such function is found."""
    path = str(RING / f"{mutant.module}.py")
    code = {_key(one): one for one in _codes(compile(mutant.source, path, "exec"))}
    key = mutant.module, mutant.function, mutant.first
    functions, caches = _live()
    for function in functions[key]:
        function.__code__ = code[key]
    for one in caches:
        one.cache_clear()
    return bool(functions[key])


class _Changed(importlib.abc.MetaPathFinder):
    """Imports one module from a changed source."""

    def __init__(self, name: str, path: str, source: str) -> None:
        class Loader(SourceFileLoader):
            def get_code(self, _name: str) -> CodeType:
                return compile(source, path, "exec")

        self.name, self.path, self.loader = name, path, Loader(name, path)

    def find_spec(self, name: str, _path: Any, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self.loader)


def judging(modules: Sequence[str]) -> list[Path]:
    """The test files that judge these modules."""
    files = [file for folder in FOLDERS for file in sorted((TESTS / folder).rglob("test_*.py"))]
    wanted = {f"{PACKAGE}.{module}" for module in modules}
    beside = {TESTS / one for module in modules for one in MODULES[module]}
    return [file for file in files if file in beside or wanted & set(_defining(file))]


def _defining(file: Path) -> Iterator[str]:
    """The modules that a test file imports something of, by whatever name."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet"):
            yield str(node.module)
            there = importlib.import_module(str(node.module))
            for alias in node.names:
                one = getattr(there, alias.name, None)
                yield str(getattr(one, "__name__" if isinstance(one, ModuleType) else "__module__", ""))


def _options() -> list[str]:
    return ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not (storm or power or outside)"]


class _Quick:
    """Properties try the same examples each time, and keep and shrink none."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            database=None,
            derandomize=True,
            deadline=None,
            max_examples=25,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")


def _anew(file: str) -> int:
    """Tries one mutant in this new process."""
    told = json.loads(Path(file).read_text("utf-8"))
    path = str(RING / f"{told['module']}.py")
    sys.meta_path.insert(0, _Changed(f"{PACKAGE}.{told['module']}", path, told["source"]))
    return int(pytest.main([*_options(), "-x", *told["tests"]], plugins=[_Quick()]))


@dataclass
class Seen:
    """What the first run has seen: seconds of each test, and which tests run a line of a module."""

    seconds: dict[str, float]
    lines: defaultdict[str, defaultdict[int, list[str]]]


class Run(_Quick):
    """Collects tests, learns what they run, and tries mutants on them."""

    def __init__(self, modules: Sequence[str], jobs: int, most: float, write: bool) -> None:
        self.modules, self.jobs, self.most, self.write = modules, jobs, most, write
        self.longest = 3 * most  # of a test: to be watched takes time
        self.killed: dict[str, int] = {}
        self.alive: dict[str, list[Mutant]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.reporter = session.config.pluginmanager.getplugin("terminalreporter")
        self.session = session
        self.here = Path(tempfile.mkdtemp(prefix="mutants-"))
        try:
            begun = time.monotonic()
            self.seen = self._first()
            _live()
            print(f"\n{len(self.items)} tests run once in {time.monotonic() - begun:.0f} s", flush=True)
            for module in self.modules:
                self._module(module)
                if self.write:
                    _write(self, reasons())
        finally:
            shutil.rmtree(self.here, ignore_errors=True)
        return True

    def _become_child(self, name: str) -> None:
        os.setsid()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(self.here / name)
        Path(self.here / name).mkdir()
        self.session.config.pluginmanager.unregister(self.reporter)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        _, hard = resource.getrlimit(resource.RLIMIT_AS)  # stays: an engine that is started here has a limit of its own
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))

    def _first(self) -> Seen:
        """Runs every test once, shared out to forks, and sees which lines of ring A it runs."""
        tests = list(self.items)
        children = [self._watch(tests[place :: self.jobs]) for place in range(self.jobs)]
        seen = Seen({}, defaultdict(lambda: defaultdict(list)))
        failed: list[str] = []
        for child in children:
            os.waitpid(child, 0)
            _end(child)
            told = json.loads((self.here / f"{child}.json").read_text("utf-8"))
            failed += told["failed"]
            seen.seconds.update(told["seconds"])
            for module, lines in told["lines"].items():
                for line, names in lines.items():
                    seen.lines[module][int(line)] += names
        if failed:
            raise pytest.UsageError(f"tests fail without any change: {failed}")
        return seen

    def _watch(self, tests: Sequence[str]) -> int:
        """Runs tests in a fork, which writes down what they run."""
        if child := os.fork():
            return child
        self._become_child(str(os.getpid()))
        watch = coverage.Coverage(data_file=None, config_file=False, include=[str(RING / "*.py")])
        watch.start()
        seconds: dict[str, float] = {}
        signal.signal(signal.SIGPROF, lambda *_: pytest.skip("no mutant waits for it"))
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            watch.switch_context(test)
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, self.longest)
            self._run(test, following)
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds[test] = time.process_time() - begun
        watch.stop()
        data = watch.get_data()
        lines = {Path(one).stem: data.contexts_by_lineno(one) for one in data.measured_files()}
        told = json.dumps({"seconds": seconds, "lines": lines, "failed": self.failed})
        (self.here / f"{os.getpid()}.json").write_text(told)
        os._exit(0)

    def _run(self, test: str, following: str | None) -> None:
        item, nextitem = self.items[test], None if following is None else self.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)

    def _judges(self, mutant: Mutant) -> list[str]:
        """The tests that run the changed function, or anything of the module: the likeliest and the quickest first."""
        lines = self.seen.lines[mutant.module]
        wanted = range(mutant.first, mutant.last + 1) if mutant.function else lines
        tests = {test for at in wanted for test in lines.get(at, ()) if test and self.seen.seconds[test] < self.longest}
        own = OF_CLASSES, f"/test_{mutant.module}.py"
        tests |= set() if mutant.function else {test for test in self.items if any(one in test for one in own)}
        nearest = set(lines.get(mutant.line, ()))
        chosen, seconds = [], 0.0
        for test in sorted(tests, key=lambda one: (one not in nearest, self.seen.seconds[one])):
            seconds += self.seen.seconds[test]
            if chosen and seconds > self.most:
                break
            chosen.append(test)
        return chosen

    def _module(self, module: str) -> None:
        begun = time.monotonic()
        all_of_it = mutants(module)
        alive = self._try(all_of_it)
        self.alive[module] = sorted(alive, key=lambda one: one.line)
        self.killed[module] = len(all_of_it) - len(alive)
        self.seconds[module] = time.monotonic() - begun
        print(
            f"{module}: {self.killed[module]} of {len(all_of_it)} mutants killed, {self.seconds[module]:.0f} s",
            *(f"    line {one.line}, {one}" for one in self.alive[module]),
            sep="\n",
            flush=True,
        )

    def _try(self, wanted: Sequence[Mutant]) -> list[Mutant]:
        """The mutants that no test kills."""
        alive, running = [], {}
        waiting = list(reversed(wanted))
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                tests = self._judges(mutant)
                if not tests:
                    alive.append(mutant)
                    continue
                running[self._start(mutant, tests)] = mutant
            for child, mutant in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    _end(child)
                    if os.waitstatus_to_exitcode(status) == BROKEN:
                        raise RuntimeError(f"could not be tried: {mutant.module}, {mutant}")
                    if status == 0:
                        alive.append(mutant)
                    del running[child]
                    shutil.rmtree(self.here / str(child), ignore_errors=True)
            time.sleep(0.005)
        return alive

    def _start(self, mutant: Mutant, tests: Sequence[str]) -> int:
        if child := os.fork():
            return child
        try:
            self._become_child(str(os.getpid()))
            if not _patch(mutant):
                _limit(20 + 10 * sum(map(self.seen.seconds.__getitem__, tests)))
                file = self.here / str(os.getpid()) / "told.json"
                file.write_text(json.dumps({**asdict(mutant), "tests": list(tests)}))
                os.execv(sys.executable, [sys.executable, __file__, "--anew", str(file)])
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                _limit(3 + 10 * self.seen.seconds[test])
                try:
                    self._run(test, following)
                except BaseException:  # numbers too large for this process, and for pytest to show
                    os._exit(1)
                if self.failed:
                    os._exit(1)
            os._exit(0)
        finally:
            os._exit(BROKEN)


def _limit(seconds: float) -> None:
    """Lets this process work for so much longer: a loop without end is noticed. The timer is this process's own: an
    engine that it starts, and keeps for many tests, has none."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _end(child: int) -> None:
    """Ends what a child has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


UNKNOWN = "NO REASON YET"
ROW = re.compile(r"^\* `(?P<function>[^`]*)`: `(?P<before>.*?)` → `(?P<after>.*?)`: (?P<reason>.*)$")


def reasons() -> dict[Name, str]:
    """Why each mutant that lives may live, from the page."""
    found, module = {}, ""
    for line in PAGE.read_text("utf-8").splitlines() if PAGE.exists() else ():
        if line.startswith("## "):
            module = line[3:]
        elif (row := ROW.match(line)) and row["reason"] != UNKNOWN:
            function = "" if row["function"] == "outside" else row["function"]
            found[module, function, row["before"], row["after"]] = row["reason"]
    return found


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--anew"]:
        return _anew(arguments[1])
    reader = argparse.ArgumentParser()
    reader.add_argument("modules", nargs="*", choices=[[], *MODULES], metavar="MODULE")
    reader.add_argument("--write", action="store_true", help="write the figures into docs/mutants.md")
    reader.add_argument("--list", action="store_true", help="only count the mutants")
    reader.add_argument("--tests", nargs="+", metavar="PATH", help="judge by these below tests/ alone")
    reader.add_argument("--seconds", type=float, default=10.0, help="of tests that a mutant may take")
    reader.add_argument("--jobs", type=int, default=1, help="processes that try mutants at once")
    wanted = reader.parse_args(arguments)
    modules = list(wanted.modules or MODULES)
    if wanted.list:
        counts = {module: len(mutants(module)) for module in modules}
        print(counts, sum(counts.values()))
        return 0
    sys.path.insert(0, str(TESTS / "lib"))
    tests = [str(TESTS / one) for one in wanted.tests] if wanted.tests else [str(file) for file in judging(modules)]
    tests += [] if wanted.tests else [str(TESTS / OF_CLASSES)]
    run = Run(modules, wanted.jobs, wanted.seconds, wanted.write)
    status = pytest.main([*_options(), "-p", "no:warnings", *tests], plugins=[run])
    if status or len(run.killed) < len(modules):
        return int(status) or 1
    known = reasons()
    new = [one for alive in run.alive.values() for one in alive if one.name not in known]
    total = sum(run.killed.values()) + sum(map(len, run.alive.values()))
    share = sum(run.killed.values()) / total
    print(f"{total} mutants, {share:.1%} killed, {len(new)} alive without a reason, {sum(run.seconds.values()):.0f} s")
    return 1 if new or share < GOAL else 0


BEGIN = "<!-- figures: python tests/mutants_of_ring_a.py --write -->"


def _write(run: Run, known: dict[Name, str]) -> None:
    """Writes what was found of these modules into the page, with the reasons that it has; the others' stays."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    sections = {part.split("\n")[0]: part.partition("\n")[2].strip() for part in rest.split("\n## ")[1:]}
    for module in run.killed:
        alive = run.alive[module]
        lines = [f"{run.killed[module] + len(alive)} mutants, {run.killed[module]} killed."]
        rows = dict.fromkeys(f"* {one}: {known.get(one.name, UNKNOWN)}" for one in alive)
        sections[module] = "\n".join([*lines, *(["", *rows] if rows else [])])
    figures = [re.match(r"(\d+) mutants, (\d+) killed", text) for text in sections.values()]
    made, killed = (sum(int(one[place]) for one in figures if one) for place in (1, 2))
    text = f"{made} mutants, {killed} killed: {killed / made:.1%}.\n"
    text += "".join(f"\n## {module}\n\n{sections[module]}\n" for module in MODULES if module in sections)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
