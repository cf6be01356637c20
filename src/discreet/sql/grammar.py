"""Parses text into a tree: ordinary SQL, and GoogleSQL's `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…)`.

Identifiers may stand in double quotes or backticks; strings stand in single quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.generator import Generator as BaseGenerator
from sqlglot.parser import Parser as BaseParser
from sqlglot.parser import binary_range_parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer as BaseTokenizer

from discreet.dialect.table import BY_NAME
from discreet.errors import DeclarationError, Fault, QuestionError
from discreet.sql.hints import unreadable
from discreet.sql.limits import (
    LONGEST_NUMBER,
    CountingParser,
    Endless,
    numbers,
    several,
    shallow,
    small,
    too_deep,
    words,
)


class DifferentialPrivacy(exp.Expression):
    """The clause after SELECT, with its options as `name = value`."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


try:
    DifferentialPrivacy()
except TypeError:  # sqlglot's compiled form does not let its classes be extended
    fault = Fault("sqlglotc", "discreet does not run where it is installed", "run `pip uninstall sqlglotc`")
    raise DeclarationError([fault], code="library") from None


class Statistic(exp.Expression, exp.AggFunc):
    """An aggregate with its arguments as they stand, named ones among them. `this` is its name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}
    is_var_len_args = True


STATISTICS = {
    "SUM": (1, 1),
    "AVG": (1, 1),
    "MIN": (1, 1),
    "MAX": (1, 1),
    "COUNTIF": (1, 1),
    "COUNT_IF": (1, 1),
    "VAR_POP": (1, 1),
    "VAR_SAMP": (1, 1),
    "VARIANCE": (1, 1),
    "STDDEV_POP": (1, 1),
    "STDDEV_SAMP": (1, 1),
    "STDDEV": (1, 1),
    "COVAR_POP": (2, 2),
    "COVAR_SAMP": (2, 2),
    "CORR": (2, 2),
    "MEDIAN": (1, 1),
    "PERCENTILE_CONT": (2, 2),
    "PERCENTILE_DISC": (2, 2),
    "QUANTILE": (2, 2),
    "QUANTILE_CONT": (2, 2),
    "QUANTILE_DISC": (2, 2),
    "APPROX_QUANTILE": (2, 2),
    "APPROX_QUANTILES": (2, 2),
    "APPROX_TOP_COUNT": (2, 2),
    "MODE": (1, 1),
}
"""Aggregates that are read by their own names, with how many arguments each takes."""


def _with_named_arguments(node: type[exp.Expression], name: str) -> Callable[[list[Any]], exp.Expression]:
    """A function of one argument that may carry `name => value` arguments: then it is read by its name."""

    def build(arguments: list[Any]) -> exp.Expression:
        if any(isinstance(argument, exp.Kwarg) for argument in arguments) or len(arguments) != 1:
            return Statistic(this=name, expressions=arguments)
        return node(this=arguments[0])

    return build


def _statistic(name: str) -> Callable[[list[Any]], exp.Expression]:
    return lambda arguments: Statistic(this=name, expressions=arguments)


def as_written(name: str) -> Callable[[list[Any]], exp.Expression]:
    """A function of the dialect, with its name and its arguments in the order in which they stand."""
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


AGGREGATES: Mapping[str, Callable[[list[Any]], exp.Expression]] = {
    **{name: _statistic(name) for name in STATISTICS},
    "SUM": _with_named_arguments(exp.Sum, "SUM"),
    "AVG": _with_named_arguments(exp.Avg, "AVG"),
    "MIN": _with_named_arguments(exp.Min, "MIN"),
    "MAX": _with_named_arguments(exp.Max, "MAX"),
}
"""How aggregates are read."""

SPELLED = re.findall(
    r"\w+",
    """NOW GETDATE GETUTCDATE SYSDATETIME SYSUTCDATETIME SYSDATE TRANSACTION_TIMESTAMP STATEMENT_TIMESTAMP
    CLOCK_TIMESTAMP UTC_TIMESTAMP CURRENT_TIMESTAMP CURRENT_DATETIME LOCALTIMESTAMP SYSTIMESTAMP TODAY CURDATE UTC_DATE
    CURRENT_DATE DATE_BIN TIME_SLICE RANGE_BUCKET
    DATEADD DATE_SUB TIMESTAMP_SUB DATETIME_SUB ADDDATE SUBDATE TIMESTAMPADD DATETRUNC TIME_BUCKET DATEPART
    DATE_PART DATENAME DATEFROMPARTS DATE_FROM_PARTS MAKE_DATE EOMONTH DATE_FORMAT TO_CHAR TO_TIMESTAMP STRPTIME
    PARSE_DATE PARSE_TIMESTAMP PARSE_DATETIME STR_TO_DATE FROM_UNIXTIME IIF ISNULL CHARINDEX TRUNCATE DECODE COUNT_BIG
    VAR VARP STD STDEV STDEVP STDDEVP SAMPLE_VARIANCE OFFSET SAFE_OFFSET ORDINAL SAFE_ORDINAL""",
)
"""Functions that tools write, for which `spelling` puts those of the dialect."""

_NAMES = (*BY_NAME, *SPELLED)


_ONE_UNIT = re.compile(r"\s*-?[0-9]+\s*[a-zA-Z]*\s*")


class Reader(CountingParser):
    """What is read alike in every dialect: the clause, COUNT, TOP and intervals; nothing of a text is logged."""

    def _warn_unsupported(self) -> None:
        """Does nothing, so that a question's text goes to no log."""

    def _parse_limit(self, this: Any = None, top: bool = False, skip_limit_token: bool = False) -> Any:
        """TOP 10 and TOP (10), behind SELECT: elsewhere TOP is a name as any other."""
        number = self._next.token_type if self._next is not None else None
        if number is TokenType.L_PAREN and self._index + 2 < len(self._tokens):
            number = self._tokens[self._index + 2].token_type
        if top and number is TokenType.NUMBER and self._match_text_seq("TOP"):
            wrapped = self._match(TokenType.L_PAREN)
            many = self._parse_number()
            if wrapped:
                self._match_r_paren()
            return self.expression(exp.Limit(expression=many, limit_options=self._parse_limit_options()))
        return super()._parse_limit(this, top, skip_limit_token)

    def _parse_interval_span(self, this: Any, parse_function_unit: bool = True) -> Any:
        """The base reads '1 day ago' and '1 day 12:00:00' as one day: what is more than one unit stays a text."""
        if isinstance(this, exp.Literal) and this.is_string and not _ONE_UNIT.fullmatch(this.name):
            return self.expression(exp.Interval(this=this))
        return super()._parse_interval_span(this, parse_function_unit)

    def _parse_user_defined_type(self, identifier: exp.Identifier) -> Any:
        self.raise_error(f"there is no type {identifier.name[:40]}")

    def _parse_count(self) -> exp.Expression:
        """COUNT, whose DISTINCT may be followed by named arguments."""
        distinct = self._match(TokenType.DISTINCT)
        arguments = self._parse_csv(lambda: self._parse_lambda(alias=False))
        named = [argument for argument in arguments if isinstance(argument, exp.Kwarg)]
        plain = [argument for argument in arguments if not isinstance(argument, exp.Kwarg)]
        if distinct:
            return self.expression(exp.Count(this=exp.Distinct(expressions=plain), expressions=named))
        if not arguments:  # DuckDB's COUNT()
            plain = [exp.Star()]
        if len(plain) != 1:
            self.raise_error("COUNT takes * or one expression")
        return self.expression(exp.Count(this=plain[0], expressions=named, big_int=True))

    def _parse_hint(self) -> Any:
        """The clause stands where other dialects have a hint: right after SELECT."""
        if not self._match_text_seq("WITH", "DIFFERENTIAL_PRIVACY"):
            return super()._parse_hint()
        options = []
        if self._match_text_seq("OPTIONS"):
            options = self._parse_wrapped_csv(self._parse_assignment, optional=False)
        return self.expression(DifferentialPrivacy(expressions=options))


def unread(_dialect: Dialect, path: Any) -> Any:
    """A path into JSON, which no question can use: the base would read it, and log what it cannot read."""
    return path


class Questions(Dialect):
    """The dialect of questions."""

    to_json_path = unread

    class Tokenizer(BaseTokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **BaseTokenizer.KEYWORDS,
            "XOR": TokenType.XOR,
            "//": TokenType.DIV,
        }

    class Parser(Reader):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expression]]] = {
            **BaseParser.FUNCTIONS,
            **AGGREGATES,
            **{name: as_written(name) for name in _NAMES},
        }
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            **BaseParser.RANGE_PARSERS,
            TokenType.TILDE: binary_range_parser(exp.RegexpLike),
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parser
            for name, parser in BaseParser.FUNCTION_PARSERS.items()
            if (name not in BY_NAME or name in ("SUBSTRING", "TRIM"))  # SUBSTRING(x FROM 1), TRIM(BOTH 'x' FROM y)
            and name not in ("CONVERT", "TRY_CONVERT", *SPELLED)  # read, or refused, by their names
        } | {"COUNT": lambda self: self._parse_count()}
        ODBC_DATETIME_LITERALS: ClassVar[dict[str, type[exp.Expr]]] = {"d": exp.Date, "ts": exp.Timestamp}
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*BaseParser.FUNC_TOKENS, TokenType.DIV}
        DISJUNCTION: ClassVar[dict[Any, Any]] = {**BaseParser.DISJUNCTION, TokenType.XOR: exp.Xor}

    class Generator(BaseGenerator):
        TRANSFORMS: ClassVar[dict[Any, Callable[..., str]]] = {
            **BaseGenerator.TRANSFORMS,
            Statistic: lambda self, node: self.func(str(node.this), *node.expressions),
            DifferentialPrivacy: lambda self, node: _clause(self.expressions(node, flat=True)),
        }


def _clause(options: str) -> str:
    return " WITH DIFFERENTIAL_PRIVACY" + (f" OPTIONS ({options})" if options else "")


def text_of(tree: exp.Expr) -> str:
    """The text of a tree, which `parse` reads as this tree."""
    return tree.sql(dialect=Questions)


def parse(text: str, dialect: Dialect | None = None) -> exp.Expression:
    """The tree of one statement, in our own dialect or another one. Raises QuestionError on anything else."""
    words(text)
    dialect = dialect or Questions()
    tokens: list[Token] = []
    try:
        tokens = dialect.tokenize(text)
        shallow(tokens)
        for token in tokens:
            token.comments = []  # no message, name or label repeats them
        statements = [one for one in dialect.parser().parse(tokens, text) if one is not None]
    except ParseError as error:
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        where = f"line {first['line']}, column {first['col']}" if first.get("line") else "question"
        message, fix = unreadable(first, [token.text for token in tokens], text)
        raise QuestionError("syntax", f"this is not SQL: {message}", where=where, fix=fix) from None
    except TokenError:
        fix = "close every quote and comment"
        raise QuestionError(
            "syntax", "this is not SQL: it ends in the middle of a word", where="question", fix=fix
        ) from None
    except (Endless, RecursionError, ValueError):
        raise too_deep() from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError):
        # other databases' grammars do not look at all that they take
        raise QuestionError("syntax", "this cannot be read", where="question", fix="write plain SQL") from None
    if not statements:
        raise QuestionError("empty", "the question is empty", where="question", fix="write SELECT COUNT(*) FROM table")
    if len(statements) > 1:
        raise several()
    tree = cast(exp.Expression, statements[0])
    small(tree)
    for number in numbers(tree):
        if len(number.name) > LONGEST_NUMBER:
            fix = f"write a number of at most {LONGEST_NUMBER} digits"
            raise QuestionError("number", "this number is out of range", where=number.name[:20], fix=fix)
    return tree
