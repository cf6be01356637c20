"""Questions that are no text: a tree of sqlglot, an expression of Ibis. Each is written as a text in our dialect, which
is then read as any other: what it may be, what it costs and what the ledger keeps follow from that text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator as BaseGenerator

from discreet.catalog.model import Declaration
from discreet.errors import QuestionError
from discreet.sql.grammar import Questions
from discreet.sql.limits import too_deep

if TYPE_CHECKING:
    import ibis

Askable: TypeAlias = "str | exp.Expr | ibis.Expr"
"""A question: a text, or what is written as one."""

WRITE = 'write "SELECT … FROM table", or an expression on the tables of curator.ibis()'

_LEVELS: Mapping[int, tuple[type[exp.Expr], ...]] = {
    0: (exp.Or,),
    1: (exp.And,),
    2: (exp.Not,),
    3: (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.DPipe),
    4: (exp.Add, exp.Sub),
    5: (exp.Mul, exp.Div, exp.Mod),
    6: (exp.Neg,),
}
_BINDS = {kind: level for level, kinds in _LEVELS.items() for kind in kinds}
"""Operators, the higher the closer they bind; what stands at 3 is not chained."""


def _moment(write: BaseGenerator, node: exp.Func) -> str:
    """A date or a timestamp made of whole numbers: a constant where they are constants."""
    parts = [one for one in node.args.values() if one is not None]
    words = [one.name.removesuffix(".0") if isinstance(one, exp.Literal) else "" for one in parts]
    numbers = [int(word) for word in words if word.isdecimal()]
    if len(numbers) == len(parts) == 3:
        return f"DATE '{numbers[0]:04}-{numbers[1]:02}-{numbers[2]:02}'"
    if len(numbers) == len(parts) == 6:
        year, month, day, *clock = numbers
        return f"TIMESTAMP '{year:04}-{month:02}-{day:02} {clock[0]:02}:{clock[1]:02}:{clock[2]:02}'"
    return write.func(str(node.sql_name()), *parts)


class Writing(Questions):
    """The dialect of questions, where one is written: nodes of sqlglot under the names by which they are read."""

    class Generator(Questions.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **Questions.Generator.TRANSFORMS,
            exp.ApproxDistinct: lambda write, node: f"COUNT(DISTINCT {write.sql(node, 'this')})",
            exp.CountIf: lambda write, node: write.func("COUNTIF", node.this),
            exp.DateFromParts: _moment,
            exp.StrPosition: lambda write, node: write.func("STRPOS", node.this, node.args.get("substr")),
            exp.TimestampFromParts: _moment,
            exp.TimeToStr: lambda write, node: write.func("STRFTIME", node.this, node.args.get("format")),
            exp.TimeToUnix: lambda write, node: write.func("UNIX_SECONDS", node.this),
            exp.TsOrDsToDate: lambda write, node: write.func("DATE", node.this),
        }


def as_text(question: Any) -> Any:
    """The text of a question that is a tree or an expression; what is neither stays as it is.

    Raises QuestionError where it cannot be written as a question.
    """
    if isinstance(question, str):
        return question
    if isinstance(question, exp.Expr):
        return written(question)
    if type(question).__module__.partition(".")[0] == "ibis":
        return written(_ibis().tree(question))
    return question


def unbound(declaration: Declaration) -> Mapping[str, Any]:
    """The declared tables as unbound tables of Ibis, by name. Raises QuestionError without Ibis."""
    return {name: _ibis().table(name, table.columns) for name, table in declaration.tables.items()}


def _ibis() -> Any:
    """The module that knows Ibis. Raises QuestionError where Ibis is missing, or another version."""
    try:
        return importlib.import_module("discreet.sql.of_ibis")
    except ImportError:
        fix = 'run pip install "discreet[ibis]"'
        raise QuestionError("extra", "expressions of Ibis need ibis-framework 12", where="question", fix=fix) from None


def written(tree: exp.Expr) -> str:
    """The text of a tree. An operator that stands below another gets brackets, so that it is read as it stands."""
    try:
        tree = tree.copy()
        for node in [one for one in tree.walk() if _needs_brackets(one)]:
            brackets = exp.Paren()
            node.replace(brackets)
            brackets.set("this", node)
        return tree.sql(dialect=Writing, comments=False)
    except RecursionError:
        raise too_deep() from None
    except (SqlglotError, ValueError, TypeError, AttributeError):
        message = "this tree cannot be written as SQL"
        raise QuestionError("syntax", message, where="question", fix=WRITE) from None


def _needs_brackets(node: exp.Expr) -> bool:
    """Whether a node is an operand that SQL would read as part of another operation. Chains are read from the left."""
    own, above = _BINDS.get(type(node)), _BINDS.get(type(node.parent)) if node.parent is not None else None
    if own is None or above is None or own > above:
        return False
    chained = node.arg_key == "this" or isinstance(node, exp.And | exp.Or)
    return own < above or own == 3 or not chained
