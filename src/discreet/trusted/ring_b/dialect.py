"""How an engine writes the tree of a statement: with its own grammar, and its own words for our functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.generator import Generator

from discreet.trusted.ring_a.dialect import Function


class Lacking(Exception):
    """An engine has no such function."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """How one engine writes a tree: its grammar, by the name that sqlglot has for it, and the table of functions.

    Each is written as a text with places for the arguments, as of `str.format`: {0}, {1}, …, {all} of them, the {rest}
    after the first, and their {count}; those of `same` by their own names. `rewritten` gives the tree that is written,
    in which further functions may be gone. Raises Lacking for a function that stands in neither."""

    grammar: str
    functions: Mapping[str, str]
    same: frozenset[str] = frozenset()
    rewritten: Callable[[exp.Expr], exp.Expr] = lambda tree: tree

    def text(self, tree: exp.Expr, *, pretty: bool = False, copy: bool = True) -> str:
        """The tree as the engine reads it. Without `copy` the tree is changed by it: it is not used again."""
        grammar = Grammar.get_or_raise(self.grammar)
        return self._writer(dialect=grammar, pretty=pretty).generate(self.rewritten(tree), copy)

    @cached_property
    def _writer(self) -> type[Generator]:
        """The grammar's own writer, which knows our functions beside the nodes of trees."""
        base = Grammar.get_or_raise(self.grammar).generator_class
        written: dict[str, Any] = {"TRANSFORMS": {**base.TRANSFORMS, Function: self._call}}
        return type("Writer", (base,), written)

    def _call(self, writer: Generator, call: Function) -> str:
        if call.name not in self.functions:
            if call.name not in self.same:
                raise Lacking(call.name)
            return writer.func(call.name, *call.expressions)
        texts = [writer.sql(one) for one in call.expressions]
        some = {"all": ", ".join(texts), "rest": ", ".join(texts[1:]), "count": len(texts)}
        return self.functions[call.name].format(*texts, **some)
