"""What engines write differently: a statement is made as one tree for all of them, and written by one.

The tree is of sqlglot's nodes, where these mean the same for every engine (sqlglot then knows how each writes it), and
of functions by names of our own: `function`. An engine's `Dialect` says how each is written; what each must do, and
that no value makes it fail, stands in `ring_b.engine_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.generator import Generator


class Lacking(Exception):
    """An engine has no such function."""


class Function(exp.Anonymous):
    """A call of a function by our name for it."""


def function(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A call of one of the functions that every engine has."""
    return Function(this=name, expressions=list(arguments))


@dataclass(frozen=True)
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
