"""Trees as plain data: how a parsed question goes from the process that parses to the one that asks.

Data only: names of the parser's own kinds of node, texts, numbers and places of other nodes. Reading it back makes
nodes of a closed list and nothing else; each stands in the tree once. So what a text could do to whoever parsed it, it
cannot do to whoever reads the tree: that one gets some tree, and reads it by its allow-list as it reads any.
"""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp

from discreet.sql.grammar import DifferentialPrivacy, Statistic

_KINDS: dict[str, type[exp.Expr]] = {
    **{kind.__name__: kind for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expr)},
    "DifferentialPrivacy": DifferentialPrivacy,
    "Statistic": Statistic,
}


def written(tree: exp.Expression) -> list[list[Any]]:
    """The nodes of a tree, those below first: each its kind, and names and values of its arguments in turn.

    A value is a text, a number or none; a list of values; {"node": place}; or {"type": name}. Raises ValueError on a
    tree that holds anything else."""
    places: dict[int, int] = {}
    nodes: list[list[Any]] = []

    def value(one: Any) -> Any:
        if one is None or type(one) in (str, int, bool):
            return one
        if isinstance(one, exp.Expr):
            return {"node": places.pop(id(one))}
        if isinstance(one, list):
            return [value(item) for item in one]
        if isinstance(one, exp.DType):
            return {"type": one.name}
        raise ValueError("not data")

    for node in reversed(list(tree.walk(bfs=True))):
        row: list[Any] = [type(node).__name__]
        for name, held in node.args.items():
            if held is not None:
                row += [name, value(held)]
        places[id(node)] = len(nodes)
        nodes.append(row)
    return nodes


def read(nodes: Any) -> exp.Expression:
    """The tree of which `written` gave the nodes. Raises ValueError on anything else."""
    made: list[exp.Expr | None] = []

    def value(one: Any, *, inside: bool = False) -> Any:
        if one is None or type(one) in (str, int, bool):
            return one
        if type(one) is list and not inside:
            return [value(item, inside=True) for item in one]
        ((name, held),) = one.items()
        if name == "type":
            return exp.DType[held]
        node = made[held] if type(held) is int and held >= 0 else None
        if name != "node" or node is None:
            raise ValueError("no such node, or one that stands elsewhere already")
        made[held] = None
        return node

    try:
        for kind, *arguments in nodes:
            names, values = arguments[::2], arguments[1::2]
            if not all(type(name) is str for name in names):
                raise ValueError("an argument without a name")
            made.append(_KINDS[kind](**{name: value(one) for name, one in zip(names, values, strict=True)}))
        *rest, tree = made
        if tree is None or any(node is not None for node in rest):
            raise ValueError("nodes without a place")
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError("no tree") from error
    return cast(exp.Expression, tree)
