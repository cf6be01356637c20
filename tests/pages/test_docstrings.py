"""What a user meets says what it does and what it refuses.

Met are the names that `discreet`, `discreet.local` and `discreet.together` export, what the curator's longer calls give
(`GIVEN`), and the public methods and properties of these. Of each the docstring's first line is a whole sentence; of a
function or method it begins with a verb in the present tense. The docstring says `Raises` and names the error for each
error of ours that is found by following the code: from a call to the function that is called, wherever the name alone
says which that is (a name of the module, a method of the same class, or of an attribute whose class is declared or made
in the class), to its `raise` statements, less what is caught on the way. Calls of what only a run knows, as of an
argument, are not followed.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any, get_type_hints

import pytest

import discreet
import discreet.local
import discreet.together
from discreet.errors import Error, LedgerError, QuestionError, refused
from discreet.learning.predictor import Predictor
from discreet.local.estimate import Estimate
from discreet.selection.watch import AboveThresholdRun
from discreet.selection.weights import WeightsRun
from discreet.synthesis.synthetic import Synthetic

MODULES = (discreet, discreet.local, discreet.together)
GIVEN = (AboveThresholdRun, Estimate, Predictor, Synthetic, WeightsRun)
AFTER = ("__init__", "__post_init__", "__attrs_post_init__")
"""What runs when an object is made."""


@dataclass(frozen=True)
class Code:
    """A function, and the class on which it was looked up."""

    function: Any
    owner: type | None


@dataclass(frozen=True)
class Member:
    """An attribute of a class: what `Class.name`, or `self.attribute.name`, is."""

    owner: type
    name: str

    @property
    def value(self) -> Any:
        return inspect.getattr_static(self.owner, self.name, None)


def ours(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module == __name__ or module.split(".")[0] == "discreet"


def code(value: Any, owner: type | None) -> Code | None:
    """The function of ours behind a method, a property or a partial call."""
    if isinstance(value, Member):
        value, owner = value.value, value.owner
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property | partial):
        value = value.func
    value = inspect.unwrap(getattr(value, "__func__", value))
    return Code(value, owner) if inspect.isfunction(value) and ours(value) else None


@cache
def tree(function: Any) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # what dataclasses write themselves, and what stands amid an expression
        return ast.Module([], [])


@cache
def names(function: Any) -> dict[str, Any]:
    """What a function's names stand for: those of its module, and what it imports itself."""
    found = dict(function.__globals__)
    for node in ast.walk(tree(function)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = getattr(import_module(node.module), alias.name, None)
    return found


@cache
def attributes(owner: type) -> dict[str, type]:
    """The classes of a class's attributes: as they are declared, or as the class itself makes them."""
    found: dict[str, Any] = {}
    for base in filter(ours, reversed(owner.__mro__)):
        with suppress(NameError):  # a type that is imported for types alone
            found |= get_type_hints(base)
        for place in filter(None, (code(method, owner) for method in vars(base).values())):
            for node in ast.walk(tree(place.function)):
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(node.value, ast.Call)
                    and isinstance(node.value.func, ast.Name)
                ):
                    kind = names(place.function).get(node.value.func.id)
                    found |= {target.attr: kind for target in node.targets if isinstance(target, ast.Attribute)}
    return {name: kind for name, kind in found.items() if isinstance(kind, type)}


def resolved(node: ast.AST | None, place: Code) -> Any:
    """What a name, or an attribute of one, stands for; None where only a run knows."""
    if isinstance(node, ast.Name):
        return place.owner if node.id == "cls" else names(place.function).get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    private = node.attr.startswith("_") and not node.attr.startswith("__")
    if place.owner is not None and (private or is_self(node.value)) and hasattr(place.owner, node.attr):
        return Member(place.owner, node.attr)  # a private method is its own class's, whatever it is called on
    if isinstance(node.value, ast.Attribute) and is_self(node.value.value) and place.owner is not None:
        kind = attributes(place.owner).get(node.value.attr)
        return Member(kind, node.attr) if kind else None
    base = resolved(node.value, place)
    if isinstance(base, type):
        return Member(base, node.attr)
    return getattr(base, node.attr, None) if inspect.ismodule(base) else None


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def kinds(kind: type[Error] = Error) -> Iterator[type[Error]]:
    yield kind
    for one in kind.__subclasses__():
        yield from kinds(one)


def raised(node: ast.expr, place: Code) -> type[Error] | None:
    """The class of the error that a `raise` names: itself, or what the function returns that makes it."""
    value = resolved(node.func if isinstance(node, ast.Call) else node, place)
    if isinstance(value, Member) and issubclass(value.owner, Error):
        return value.owner  # LedgerError.of(…)
    if isinstance(value, type):
        return value if issubclass(value, Error) else None
    made = code(value, None)
    said = made.function.__annotations__.get("return") if made else None
    return next((kind for kind in kinds() if kind.__name__ == said), None)


def kept(node: ast.Try, place: Code) -> frozenset[type]:
    """What the handlers of a `try` keep to themselves."""
    found: set[type] = set()
    for handler in node.handlers:
        raises = (part for part in ast.walk(handler) if isinstance(part, ast.Raise))
        if not any(part.exc is None or isinstance(part.exc, ast.Name) for part in raises):
            named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            found |= {kind for one in named if isinstance(kind := resolved(one, place), type)}
            found |= {Exception for one in named if isinstance(one, ast.Name) and one.id == "Exception"}
    return frozenset(found)


def steps(node: ast.AST, place: Code, caught: frozenset[type]) -> Iterator[tuple[Any, frozenset[type]]]:
    """The errors that a piece of code raises, and the functions that it calls, each with what is caught around it."""
    if isinstance(node, ast.Try):
        for part in node.body:
            yield from steps(part, place, caught | kept(node, place))
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            yield from steps(part, place, caught)
        return
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield raised(node.exc, place), caught
    if isinstance(node, ast.Call):
        called = resolved(node.func, place)
        for each in begun(called) if isinstance(called, type) else [code(called, place.owner)]:
            yield each, caught
    if isinstance(node, ast.Attribute):
        read = resolved(node, place)
        if isinstance(read, Member) and isinstance(read.value, property | cached_property):
            yield code(read, None), caught
    for part in ast.iter_child_nodes(node):
        yield from steps(part, place, caught)


def begun(kind: type) -> list[Code | None]:
    return [code(Member(kind, name), None) for name in AFTER]


def refusals(*places: Code | None) -> set[str]:
    """The names of the errors of ours that functions, or what they call, can raise."""
    found: set[str] = set()
    seen: set[tuple[Code, frozenset[type]]] = set()
    rest = [(place, frozenset[type]()) for place in places if place is not None]
    while rest:
        one = rest.pop()
        if one not in seen:
            seen.add(one)
            for step, caught in steps(tree(one[0].function), *one):
                if isinstance(step, Code):
                    rest.append((step, caught))
                elif step is not None and not issubclass(step, tuple(caught)):
                    found.add(step.__name__)
    return found


@dataclass(frozen=True)
class Met:
    """What a user meets: its name, the object that has the docstring, what runs, and whether it is called by name."""

    name: str
    value: Any
    runs: tuple[Code | None, ...]
    called: bool


def met() -> Iterator[Met]:
    seen: set[Any] = set()
    exported = [(f"{module.__name__}.{name}", getattr(module, name)) for module in MODULES for name in module.__all__]
    for full, value in [*exported, *((kind.__name__, kind) for kind in GIVEN)]:
        if value in seen:
            continue
        seen.add(value)
        if not isinstance(value, type):
            yield Met(full, value, (code(value, None),), called=True)
            continue
        yield Met(full, value, tuple(begun(value)), called=False)
        for name in dir(value):
            member = Member(value, name)
            if not name.startswith("_") and (place := code(member, None)) is not None:
                called = not isinstance(member.value, property | cached_property)
                yield Met(f"{full}.{name}", place.function, (place,), called)


ALL = list(met())


def said(one: Met) -> str:
    """The object's own docstring, not that of a class above it, nor what dataclasses write."""
    own = vars(one.value).get("__doc__") if isinstance(one.value, type) else one.value.__doc__
    text = inspect.cleandoc(own or "")
    return "" if text.startswith(f"{one.name.rpartition('.')[2]}(") else text


def named_errors(text: str) -> set[str]:
    """The names of errors after `Raises`."""
    after = re.search(r"\bRaises\b(.*)", text, re.DOTALL)
    return set(re.findall(r"\b\w*Error\b", after[1] if after else ""))


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_docstring_begins_with_a_sentence(one: Met) -> None:
    first = said(one).split("\n")[0]
    assert re.fullmatch(r"[A-Z`].*\.", first), f"the first line is no whole sentence: {first!r}"
    if one.called:
        assert re.match(r"(?!This|Its|Is|As)[A-Z][a-z]*s\b", first), f"it begins with no verb: {first!r}"


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_docstring_names_what_is_raised(one: Met) -> None:
    missing = refusals(*one.runs) - named_errors(said(one))
    assert not missing, f"it says nothing of {', '.join(sorted(missing))}"


class Example:
    """Refusals in each of the ways that are followed."""

    def __init__(self) -> None:
        self.inner = Inner()

    def direct(self) -> None:
        raise QuestionError("example", "this is refused")

    def by_a_function(self) -> None:
        raise refused("example", "this is refused", "here", "do not")

    def by_its_own(self) -> None:
        self.direct()

    def by_an_attribute(self) -> None:
        self.inner.check()

    def by_a_property(self) -> object:
        return self.inner.read

    def by_making(self) -> None:
        Made()

    def caught(self) -> None:
        try:
            self.direct()
            self.inner.check()
        except QuestionError:
            pass

    def caught_and_raised(self) -> None:
        try:
            self.direct()
        except QuestionError:
            raise


class Inner:
    def check(self) -> None:
        LedgerError.unless(False, "busy")

    @property
    def read(self) -> object:
        return self.check()


@dataclass
class Made:
    def __post_init__(self) -> None:
        raise LedgerError.of("busy")


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("direct", {"QuestionError"}),
        ("by_a_function", {"QuestionError"}),
        ("by_its_own", {"QuestionError"}),
        ("by_an_attribute", {"LedgerError"}),
        ("by_a_property", {"LedgerError"}),
        ("by_making", {"LedgerError"}),
        ("caught", {"LedgerError"}),
        ("caught_and_raised", {"QuestionError"}),
    ],
)
def test_what_is_raised_is_found(name: str, errors: set[str]) -> None:
    assert refusals(code(Member(Example, name), None)) == errors


def test_much_is_met() -> None:
    """All three modules, inherited methods, and what calls give."""
    found = {one.name for one in ALL}
    assert {
        "Predictor.predict",
        "discreet.Curator.ask",
        "discreet.local.Number.code",
        "discreet.together.Session.place",
    } <= found
    assert len(found) > 150
