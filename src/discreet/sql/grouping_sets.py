"""GROUP BY ROLLUP, CUBE and GROUPING SETS: the lists of expressions that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.errors import QuestionError

MOST_SETS = 8
"""How many lists one GROUP BY may stand for: each is a measured table of its own."""

Sets = list[list[exp.Expression]]


def grouping_sets(group: exp.Group) -> Sets:
    """The lists that a GROUP BY stands for; one where it is plain. Several items are combined: of each, every list with
    every list of the others."""
    made: Sets = [[]]
    for item in group.expressions:
        made = _combined(made, _sets(item))
    return made


def in_front(group: exp.Group) -> None:
    """Writes GROUP BY a, b WITH ROLLUP as GROUP BY ROLLUP (a, b), in place."""
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(name):
            group.set(name, None)
            group.set("expressions", [kind(expressions=group.expressions)])


def _combined(first: Sets, second: Sets) -> Sets:
    _few(len(first) * len(second))
    return [[*one, *other] for one in first for other in second]


def _sets(item: exp.Expression) -> Sets:
    if isinstance(item, exp.GroupingSets):
        made = []
        for one in item.expressions:
            made += _sets(one)
            _few(len(made))
        return made
    if isinstance(item, exp.Rollup | exp.Cube):
        return _of(item, [_list(one) for one in item.expressions])
    return [_list(item)]


def _of(item: exp.Expr, parts: Sequence[list[exp.Expression]]) -> Sets:
    """ROLLUP: all parts, all but the last, and so on to none. CUBE: each choice of them."""
    if isinstance(item, exp.Rollup):
        _few(len(parts) + 1)
        return [[one for part in parts[:count] for one in part] for count in range(len(parts), -1, -1)]
    _few(2 ** min(len(parts), 60))
    choices = range(2 ** len(parts) - 1, -1, -1)
    places = list(enumerate(reversed(parts)))[::-1]
    return [[one for place, part in places if choice >> place & 1 for one in part] for choice in choices]


def _list(item: exp.Expression) -> list[exp.Expression]:
    """What stands in brackets as one list: (a, b), (a) and ()."""
    if isinstance(item, exp.Tuple):
        return list(item.expressions)
    return [item.this] if isinstance(item, exp.Paren) else [item]


def _few(count: int) -> None:
    if count > MOST_SETS:
        message = f"this GROUP BY asks for more than {MOST_SETS} levels of groups at once"
        fix = "name fewer: GROUP BY GROUPING SETS ((a, b), (a), ())"
        raise QuestionError("too-long", message, where="GROUP BY", fix=fix)
