"""What engines write differently: a statement is made as one tree for all of them.

The tree is of sqlglot's nodes, where these mean the same for every engine (sqlglot then knows how each writes it), and
of functions by names of our own: `function`. What each must do, and that no value makes it fail, stands in
`ring_b.engine_functions`; how an engine writes a tree, in `ring_b.dialect`.
"""

from __future__ import annotations

from sqlglot import exp


class Function(exp.Anonymous):
    """A call of a function by our name for it."""


def function(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A call of one of the functions that every engine has."""
    return Function(this=name, expressions=list(arguments))
