"""Aggregates of SQL that are not answered, because one person's row decides them or because nobody made them: each with
the nearest question that can be asked."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from discreet.errors import QuestionError

_LISTS = (
    "it would list the values of single persons",
    "write SELECT {x}, COUNT(*) … GROUP BY {x}: each value and how often",
)
_ONE = (
    "it would show the value of one person",
    "write APPROX_TOP_COUNT({x}, 1) for the commonest declared value, or GROUP BY {x}",
)
_END = "it would show a row of one person", "write SELECT {x}, MAX(y) … GROUP BY {x}, or AVG(y)"
_SOME = "one person's row decides it", "write COUNTIF({x}) and compare it with 0"
_ALL = "one person's row decides it", "write COUNTIF(NOT ({x})) and compare it with 0, or AVG({x}) for the share"
_BITS = "one person's row decides it", "write COUNTIF({x} & 1 = 1), bit by bit"
_PRODUCT = "one person's row decides it", "write EXP(SUM(LN({x}))) of what is above 0, or AVG(LN({x}))"
_SHAPE = (
    "it is not computed",
    "write AVG({x}), AVG(POWER({x}, 2)), AVG(POWER({x}, 3)), AVG(POWER({x}, 4)) and compute it from these",
)
_LINE = (
    "it is not computed",
    "write COVAR_POP({x}, {y}), VAR_POP({y}), AVG({x}) and AVG({y}), and compute it from these",
)
_SPREAD = "it is not computed", "write APPROX_QUANTILES({x}, 4) for the quartiles, or STDDEV_SAMP({x})"
_MOST = (
    "it is not known",
    "write APPROX_TOP_COUNT({x}, 3) where values are declared; else GROUP BY {x} and ORDER BY COUNT(*) DESC",
)
_BETWEEN = "it is not known", "write PERCENTILE_CONT({x}, 0.5), with a share from 0 to 1"

_REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("STRING_AGG", "GROUP_CONCAT", "LISTAGG", "ARRAY_AGG", "LIST", "ARRAY_CONCAT_AGG", "ARRAY_UNIQUE_AGG"), _LISTS
    ),
    **dict.fromkeys(
        ("COLLECT_LIST", "COLLECT_SET", "JSON_AGG", "JSONB_AGG", "JSON_ARRAYAGG", "JSON_OBJECT_AGG", "MAP_AGG"), _LISTS
    ),
    **dict.fromkeys(("ANY_VALUE", "ARBITRARY", "FIRST", "LAST", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"), _ONE),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "ARGMAX", "ARGMIN", "MAX_BY", "MIN_BY"), _END),
    **dict.fromkeys(("BOOL_OR", "LOGICAL_OR"), _SOME),
    **dict.fromkeys(("BOOL_AND", "LOGICAL_AND", "EVERY"), _ALL),
    **dict.fromkeys(("BIT_AND", "BIT_OR", "BIT_XOR", "BITWISE_AND_AGG", "BITWISE_OR_AGG", "BITWISE_XOR_AGG"), _BITS),
    **dict.fromkeys(("PRODUCT", "GEOMEAN", "GEOMETRIC_MEAN"), _PRODUCT),
    **dict.fromkeys(("KURTOSIS", "KURTOSIS_POP", "SKEWNESS", "SKEW"), _SHAPE),
    **dict.fromkeys(("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY"), _LINE),
    **dict.fromkeys(("MAD", "IQR", "ENTROPY"), _SPREAD),
    **dict.fromkeys(("APPROX_TOP_K", "TOP_K", "TOPK", "APPROX_MOST_FREQUENT", "APPROX_TOP_SUM"), _MOST),
    **dict.fromkeys(("APPROX_PERCENTILE", "PERCENTILE", "PERCENTILE_APPROX"), _BETWEEN),
}
"""Why, and what to write instead: {x} is the first argument, {y} the second."""

_SAID = {"LOGICAL_OR": "BOOL_OR", "LOGICAL_AND": "BOOL_AND", "GROUP_CONCAT": "STRING_AGG"}
"""The commonest of names that are read as one."""


def refusal(node: exp.Expression) -> QuestionError | None:
    """The error for such an aggregate; None where the node is none."""
    if not isinstance(node, exp.Func):
        return None
    name = (node.name if isinstance(node, exp.Anonymous) else type(node).sql_name()).upper()
    if name not in _REFUSED:
        return None
    why, fix = _REFUSED[name]
    name = _SAID.get(name, name)
    given = [node.this, node.args.get("expression")]
    if isinstance(node, exp.Anonymous | exp.List):
        given = list(node.expressions)
    x, y = (_written(given, place, other) for place, other in ((0, "x"), (1, "y")))
    return QuestionError("not-allowed", f"{name} cannot be used: {why}", where=name, fix=fix.format(x=x, y=y))


def _written(given: list[object], place: int, otherwise: str) -> str:
    """An argument as it stands, without ORDER BY and DISTINCT; a name where there is none, or a long one."""
    node = given[place] if place < len(given) else None
    while isinstance(node, exp.Order | exp.Limit | exp.Distinct | exp.Paren):
        node = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
    text = node.sql() if isinstance(node, exp.Expression) else ""
    return text if 0 < len(text) <= 40 else otherwise
