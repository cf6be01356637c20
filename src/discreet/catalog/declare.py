"""From the owner's text, or the same in Python, to a validated `Declaration`, with every fault named at once."""

from __future__ import annotations

import datetime
import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any

from discreet.catalog import spark
from discreet.catalog.formats import DATES
from discreet.catalog.impossible import impossible
from discreet.catalog.in_python import in_python
from discreet.catalog.issuer import Issuer, read_issuer
from discreet.catalog.model import (
    ENCODINGS,
    MOST_PARTS,
    MOST_WORK,
    USUAL_GROUPS,
    YEARLY,
    Budget,
    Declaration,
    EngineKind,
    EngineLimits,
    Orders,
    Parts,
    PublicTotal,
    Renewal,
    Renews,
    Rules,
    Store,
    Sums,
    comparable,
    writable,
)
from discreet.catalog.orders import beside_totals, orders, time
from discreet.catalog.server import is_server, server
from discreet.catalog.server import ledger as server_ledger
from discreet.catalog.streams import read_streams
from discreet.catalog.sums import sums
from discreet.catalog.synthetic_state import read_state
from discreet.catalog.totals import public_totals
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type, Value

MAXIMUM_EPSILON = Fraction(10) ** 30
MINIMUM_EPSILON = Fraction(1, 10**9)
_INT64 = 2**63 - 1
_LARGEST = Fraction(10) ** 300

_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_TOP = {"budget", "question", "schema", "tables", "analysts", "ledger", "engine", "service", "streams", "synthesis"}
_TABLE = {
    "source",
    "person",
    "one_row_per_person",
    "rows_per_person",
    "groups_per_person",
    "public",
    "shared",
    "csv",
    "delta",
    "iceberg",
    "columns",
    "impossible",
    "totals",
    "orders",
    "sums",
    "time",
}
_COLUMN = {"type", "min", "max", "step", "values", "nulls", "length"}
_LONGEST = 100_000
_BUDGET = {"epsilon", "delta", "keys_delta"}


def read(path: str | Path) -> Declaration:
    """The declaration in a TOML file. Numbers are decimals as written.

    Raises DeclarationError with every fault: its key, what is wrong, what to write.
    """
    if not isinstance(path, str | os.PathLike):
        raise DeclarationError([Fault("file", "not a valid file path", 'write discreet.open("clinic.toml")')])
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        fix = f"write one with `discreet init`, or check the path {path}"
        raise DeclarationError([Fault("file", "there is no such file", fix)], code="missing", file=str(path)) from None
    except (OSError, UnicodeDecodeError):
        fix = "check its name and permissions" if path.suffix == ".toml" else _NO_DECLARATION
        fault = Fault("file", "it cannot be read as UTF-8 text", fix)
        raise DeclarationError([fault], code="unreadable", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        fix = not_toml(str(error), path.read_text("utf-8")) if path.suffix == ".toml" else _NO_DECLARATION
        if path.suffix.lower() == ".json":
            fix += f'; a release that was saved is asked in Python: discreet.published("{path}").ask("SELECT …")'
        fault = Fault("file", f"it is not TOML: {error}", fix)
        raise DeclarationError([fault], code="toml", file=str(path)) from None
    except (ValueError, RecursionError):  # Python reads no number of over 4,300 digits
        fault = Fault("file", "it is nested too deeply, or a number in it is too long", "simplify it")
        raise DeclarationError([fault], code="toml", file=str(path)) from None
    return declare(raw, file=path)


def not_toml(error: str, text: str) -> str:
    """What to write in a line that is not TOML, as far as the line itself shows it."""
    place = re.search(r"line (\d+)", error)
    lines = text.splitlines()
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    value = re.search(r"=\s*(True|False)\b", line)
    if value:
        return f"write {value[1].lower()}, in small letters"
    if "\\" in line:
        return "write / for \\, or single quotes"
    if re.search(r"\d{1,2}[-./]\d{1,2}[-./]\d{4}|\d{4}[./]\d{1,2}[./]\d{1,2}", line):
        return "write a date as 2020-01-31, without quotes"
    if re.search(r"\d,\d", line):
        return "write numbers with a point and no commas: 0.5, 2_000_000"
    if "twice" in error or "overwrite" in error:
        return "move it into the section of that name above; each section is written once"
    if re.search(r"=\s*[A-Za-z]", line):
        return 'a text is written in double quotes: "text"'
    if "Unclosed" in error:
        return "close every { and [ in the line where it opens"
    return "correct that line"


def declare(raw: Mapping[str, Any], *, file: Path | None = None, python: bool = False) -> Declaration:
    """Validates a declaration given as nested mappings (what TOML gives, or Python's form of it, in whose words faults
    are told then)."""
    reader = _DeclarationReader(python)
    reader.unknown("", raw, _TOP)
    base = (file.parent if file else Path()).resolve()
    budget = reader.budget("budget", reader.mapping("budget", raw.get("budget"), required=True), None)
    question = reader.mapping("question", raw.get("question"))
    reader.unknown("question", question, {"epsilon", "least", "date", "share_answers"})
    question_epsilon = reader.epsilon("question.epsilon", question["epsilon"]) if "epsilon" in question else None
    if question_epsilon is not None and question_epsilon > budget.epsilon:
        reader.fault("question.epsilon", "it is larger than the whole budget", "write at most budget.epsilon")
    least = reader.epsilon("question.least", question["least"]) if "least" in question else None
    if least is not None and least > budget.epsilon:
        reader.fault("question.least", "it is larger than the whole budget", "write at most budget.epsilon")
    if least is not None and question_epsilon is not None and question_epsilon < least:
        reader.fault("question.epsilon", "it is below question.least", "write at least question.least")
    date = reader.date("question.date", question.get("date"))
    share = reader.flag("question.share_answers", question.get("share_answers", False))
    schema = reader.schema(raw.get("schema"))
    analysts = {
        name: reader.budget(f"analysts.{name}", reader.mapping(f"analysts.{name}", value), budget, least)
        for name, value in reader.mapping("analysts", raw.get("analysts")).items()
    }
    if not all(map(writable, analysts)):
        reader.fault("analysts", "an analyst needs a name, without control characters", "write [analysts.ana]")
    tables = reader.tables(reader.mapping("tables", raw.get("tables"), required=True), base)
    ledger = reader.ledger(raw.get("ledger"), base, file)
    beside = file or (ledger.beside if isinstance(ledger, Place) else ledger)
    limits = reader.limits(
        reader.mapping("engine", raw.get("engine")), beside.with_suffix(".snapshots").absolute() if beside else None
    )
    reader.placed(tables, limits.kind)
    budget, limits = reader.for_new_persons(budget, tables, raw.get("tables"), limits)
    budget, limits = reader.for_parts(budget, tables, raw.get("tables"), limits)
    issuer = reader.issuer(raw.get("service"))
    streams, faults = read_streams(reader.mapping("streams", raw.get("streams")), tables, budget, ledger, base)
    reader.faults += faults
    state, faults = read_state(reader.mapping("synthesis", raw.get("synthesis")), tables, budget, ledger, base)
    reader.faults += faults
    if reader.faults:
        faults = [in_python(fault) for fault in reader.faults] if python else reader.faults
        raise DeclarationError(faults, file=str(file) if file else "")
    return Declaration(
        tables,
        budget,
        question_epsilon,
        least,
        analysts,
        ledger,
        limits,
        file,
        schema,
        date,
        issuer,
        streams,
        share,
        state,
        reader.impossible,
        reader.totals,
        reader.orders,
        reader.sums,
        reader.times,
    )


class _DeclarationReader:
    """Collects faults while it reads, so that the owner sees all of them in one go."""

    def __init__(self, python: bool) -> None:
        self.faults: list[Fault] = []
        self.impossible: dict[str, Rules] = {}
        self.totals: dict[str, tuple[PublicTotal, ...]] = {}
        self.orders: dict[str, Orders] = {}
        self.sums: dict[str, Sums] = {}
        self.times: dict[str, str] = {}
        self.python = python

    def fault(self, where: str, message: str, fix: str) -> None:
        self.faults.append(Fault(where or "declaration", message, fix))

    def unknown(self, where: str, raw: Mapping[str, Any], known: set[str]) -> None:
        for key in raw:
            if key not in known:
                near = difflib.get_close_matches(str(key), sorted(known), 1)
                fix = f"write {near[0]}" if near else f"write one of {', '.join(sorted(known))}"
                if not where and not near and isinstance(raw[key], Mapping):
                    under = f"tables.NAME.{key}" if key == "columns" else f"tables.{key}"
                    fix = f"write [{under}] for a table; else one of {', '.join(sorted(known))}"
                elif where and key == "ledger":
                    fix = "write it at the top of the file, above every [section]"
                self.fault(f"{where}.{key}".lstrip("."), "this key is not known", fix)

    def mapping(self, where: str, raw: Any, *, required: bool = False) -> Mapping[str, Any]:
        if isinstance(raw, Mapping):
            if required and not raw:
                self.fault(where, "it is empty", f"write at least one entry under [{where}]")
            return raw
        if raw is not None:
            self.fault(where, "it must be a table", f"write [{where}]")
        elif required:
            self.fault(where, "it is missing", f"write [{where}]")
        return {}

    def number(self, where: str, raw: Any) -> Fraction | None:
        try:
            if isinstance(raw, bool | str) or raw is None:
                raise ValueError
            return fraction(raw)
        except (ValueError, TypeError):
            self.fault(where, "it must be a finite number", "write a decimal such as 0.5, without quotes")
            return None

    def epsilon(self, where: str, raw: Any) -> Fraction:
        value = self.number(where, raw)
        if value is not None and not MINIMUM_EPSILON <= value <= MAXIMUM_EPSILON:
            self.fault(where, "epsilon must lie between 1e-9 and 1e30", "write a decimal such as 1.0")
        return value if value is not None and value > 0 else Fraction(1)

    def delta(self, where: str, raw: Any) -> Fraction:
        value = self.number(where, raw)
        if value is not None and not 0 <= value < 1:
            self.fault(where, "delta must be at least 0 and below 1", "write a decimal such as 1e-6")
        return value if value is not None and 0 <= value < 1 else Fraction(0)

    def budget(self, where: str, raw: Mapping[str, Any], whole: Budget | None, least: Fraction | None = None) -> Budget:
        """The whole budget, or an analyst's within it; no price of a question is below the `least`."""
        own = {"reserve", "period", "renews", "parts"} if whole is None else {"day", "month", "question"}
        self.unknown(where, raw, _BUDGET | own)
        if "epsilon" not in raw:
            self.fault(f"{where}.epsilon", "it is missing", "write epsilon = 1.0")
        epsilon = self.epsilon(f"{where}.epsilon", raw.get("epsilon", 1))
        delta = (
            self.delta(f"{where}.delta", raw["delta"]) if "delta" in raw else (whole.delta if whole else Fraction(0))
        )
        if "keys_delta" in raw:
            keys_delta = self.delta(f"{where}.keys_delta", raw["keys_delta"])
        elif whole is not None and "delta" not in raw:
            keys_delta = whole.keys_delta
        else:
            keys_delta = delta / 10
        if keys_delta > delta:
            self.fault(f"{where}.keys_delta", "it is a part of delta and cannot be larger", "write at most delta")
        if whole is not None and epsilon > whole.epsilon:
            self.fault(f"{where}.epsilon", "it is larger than the whole budget", "write at most budget.epsilon")
        kept = self.reserve(where, raw.get("reserve"), epsilon, delta, keys_delta) if whole is None else Fraction(0)
        month = self.allowance(where, "month", raw, "epsilon", epsilon) if whole is not None else None
        longer = ("epsilon", epsilon) if month is None else ("month", month)
        day = self.allowance(where, "day", raw, *longer) if whole is not None else None
        shortest = longer if day is None else ("day", day)
        question = self.allowance(where, "question", raw, *shortest) if whole is not None else None
        if question is not None and least is not None and question < least:
            self.fault(f"{where}.question", "it is below question.least", "write at least question.least")
        renewal = self.renewal(where, raw) if whole is None else None
        parts = self.parts(where, raw, renewal) if whole is None else None
        return Budget(epsilon, delta, keys_delta, kept, day, month, renewal, question, parts)

    def parts(self, where: str, raw: Mapping[str, Any], renewal: Renewal | None) -> Parts | None:
        """The column by which parts have a budget each; None where there is one for all."""
        where += ".parts"
        named = raw.get("parts")
        if named is None:
            return None
        if renewal is not None or "period" in raw:
            message = "each part has a budget for ever, and this budget renews"
            self.fault(where, message, "leave parts out, or period and renews")
            return None
        table, dot, column = named.rpartition(".") if isinstance(named, str) else ("", "", "")
        if not (table and dot and column):
            self.fault(where, "it must name a table and a column of it", 'write parts = "TABLE.COLUMN"')
            return None
        return Parts(table, column)

    def renewal(self, where: str, raw: Mapping[str, Any]) -> Renewal | None:
        """How a budget renews; None where it is for ever."""
        if "period" not in raw:
            if "renews" in raw:
                self.fault(f"{where}.renews", "it says for whom a budget renews", 'write period = "1 month" beside it')
            return None
        lengths = {f"1 {length}": length for length in YEARLY}
        if raw["period"] not in list(lengths):
            known = " or ".join(f'"{length}"' for length in lengths)
            self.fault(f"{where}.period", "it must be a period of the calendar", f"write {known}")
            return None
        if raw.get("renews") not in list(Renews):
            known = " or ".join(f'"{one}"' for one in Renews)
            self.fault(f"{where}.renews", "it must say for whom the budget renews", f"write renews = {known}")
            return None
        return Renewal(lengths[raw["period"]], Renews(raw["renews"]))

    def allowance(
        self, where: str, window: str, raw: Mapping[str, Any], longer: str, most: Fraction
    ) -> Fraction | None:
        """The most ε that may be spent in one day or month, or the price of a question; None where it is not
        declared."""
        if window not in raw:
            return None
        found = self.epsilon(f"{where}.{window}", raw[window])
        if found > most:
            self.fault(f"{where}.{window}", f"it is larger than {longer}", f"write at most {where}.{longer}")
        return found

    def for_new_persons(
        self, budget: Budget, tables: Mapping[str, Table], raw: Any, limits: EngineLimits
    ) -> tuple[Budget, EngineLimits]:
        """A budget that renews for new persons with the table that holds each of them."""
        if budget.renewal is None or budget.renewal.persons is not Renews.NEW_PERSONS or not isinstance(raw, Mapping):
            return budget, limits
        words = f'renews = "{Renews.NEW_PERSONS}"'
        who, limits = self.known_again(words, tables, raw, limits)
        return replace(budget, renewal=replace(budget.renewal, who=who)), limits

    def for_parts(
        self, budget: Budget, tables: Mapping[str, Table], raw: Any, limits: EngineLimits
    ) -> tuple[Budget, EngineLimits]:
        """A budget for each part with the parts that are declared, as `for_new_persons`."""
        parts, where = budget.parts, "budget.parts"
        if parts is None or not isinstance(raw, Mapping):
            return budget, limits
        if limits.every is not None:
            message = "a question by the clock would tell whether a source changed while it was read for each part"
            self.fault("engine.every", message, "leave it out, and run `discreet refresh`")
        who, limits = self.known_again("parts", tables, raw, limits)
        folded = parts.table.casefold()
        table = next((one for one in tables.values() if one.name.casefold() == folded and not one.public), None)
        columns = () if table is None else table.columns
        named = [one for one in columns if one.name.casefold() == parts.column.casefold()]
        if table is None or not named:
            about = [one.name for one in tables.values() if not one.public]
            message = f"{parts.table}.{parts.column} is no declared column of a table about people"
            self.fault(where, message, f"name a column of {', '.join(about)}")
            return replace(budget, parts=None), limits
        values = named[0].values or ()
        if not values or not all(isinstance(value, str | int) and not isinstance(value, bool) for value in values):
            fix = f'write values = ["north", "south"] under [tables.{table.name}.columns.{named[0].name}]'
            self.fault(where, "the parts must be declared, as texts or whole numbers", fix)
        texts = tuple(str(value) for value in values)
        if not all(map(writable, texts)) or len(set(texts)) < len(texts):
            self.fault(where, "a part has no name, a control character in it, or another one's", "name them apart")
        if len(texts) > MOST_PARTS:
            self.fault(where, f"there are more than {MOST_PARTS} parts", "declare parts by a column with fewer values")
        return replace(budget, parts=Parts(table.name, named[0].name, texts, who)), limits

    def known_again(
        self, words: str, tables: Mapping[str, Table], raw: Mapping[str, Any], limits: EngineLimits
    ) -> tuple[str | None, EngineLimits]:
        """The table that holds each person, where each must be known again; all tables are in memory then, and say in a
        column of their own which of these persons a row is about."""
        if limits.kind is not EngineKind.HERE:
            self.fault("engine.kind", f"with {words} questions run in DuckDB here", "leave kind out")
        if limits.store is Store.FILE:
            self.fault("engine.store", f"with {words} tables are kept in memory", 'write store = "memory"')
        about = [table for table in tables.values() if not table.public]
        refer = {name for name, one in raw.items() if isinstance(one, Mapping) and "->" in str(one.get("person"))}
        whole = [table.name for table in about if table.name not in refer]
        for table in about:
            where = f"tables.{table.name}.person"
            if table.person is None:
                self.fault(where, f"{words} must know each person again", 'write person = "COLUMN"')
            elif table.path is not None:
                self.fault(where, f"{words} needs the person in the row itself", "name a column that holds the person")
            elif table.name in whole[1:]:
                known = tables[whole[0]]
                fix = f'write person = "{table.person} -> {known.name}.{known.person}", with one_row_per_person there'
                self.fault(where, f"{words} needs one table that holds every person", fix)
        return (whole[0] if whole else None), replace(limits, store=Store.MEMORY)

    def reserve(self, where: str, raw: Any, epsilon: Fraction, delta: Fraction, keys_delta: Fraction) -> Fraction:
        """The price of the table for which room is kept; 0 for none."""
        if raw is None:
            return Fraction(0)
        where += ".reserve"
        kept = self.mapping(where, raw)
        self.unknown(where, kept, {"publish"})
        if "publish" not in kept:
            self.fault(f"{where}.publish", "it is missing", "write reserve = { publish = 1.0 }")
            return Fraction(0)
        price = self.epsilon(f"{where}.publish", kept["publish"])
        if price > epsilon:
            self.fault(f"{where}.publish", "it is larger than the whole budget", "write less than budget.epsilon")
        if not 0 < keys_delta < delta:
            self.fault(f"{where}.publish", "publishing a table needs a delta", "write delta = 1e-6, without keys_delta")
        return price

    def schema(self, raw: Any) -> str | None:
        """The name of the schema that questions may write before a table's."""
        declared = self.mapping("schema", raw)
        self.unknown("schema", declared, {"name"})
        name = declared.get("name")
        if name is not None and (not isinstance(name, str) or not writable(name)):
            self.fault("schema.name", "it must be a name", 'write name = "public"')
            return None
        return name

    def date(self, where: str, raw: Any) -> datetime.date | None:
        """A day, without a time."""
        if raw is None or (isinstance(raw, datetime.date) and not isinstance(raw, datetime.datetime)):
            return raw
        self.fault(where, "it must be a date", f"write {_UNQUOTED[Type.DATE][self.python]}")
        return None

    def ledger(self, raw: Any, base: Path, file: Path | None) -> Path | Place | None:
        if raw is None:
            return file.with_suffix(".ledger") if file else None
        if not isinstance(raw, str | os.PathLike) or not str(raw):
            self.fault("ledger", "it must be the path of a file", 'write ledger = "clinic.ledger"')
            return None
        if isinstance(raw, str) and is_server(raw):
            beside = file.with_suffix(".ledger") if file else base / f"{raw.rpartition('::')[2]}.ledger"
            place = server_ledger(raw, beside)
            if isinstance(place, Place):
                return place
            self.faults.append(place)
            return None
        return base / raw

    def limits(self, raw: Mapping[str, Any], folder: Path | None) -> EngineLimits:
        known = {"memory_gib", "seconds", "windows", "answer_seconds", "work", "failures", "store", "every"}
        known |= {"kind", "remote"}
        self.unknown("engine", raw, known)
        default = EngineLimits()
        memory = self.count("engine.memory_gib", raw.get("memory_gib", default.memory_gib), 4096)
        seconds = self.count("engine.seconds", raw.get("seconds", default.seconds), 86_400)
        self.flag("engine.windows", raw.get("windows", True))  # of older declarations: it chooses nothing any more
        answer = None
        if "answer_seconds" in raw:
            off = raw["answer_seconds"] == "off"
            answer = 0 if off else self.count("engine.answer_seconds", raw["answer_seconds"], 86_400)
        work = self.count("engine.work", raw["work"], MOST_WORK) if "work" in raw else None
        failures = self.count("engine.failures", raw.get("failures", default.failures), 1_000)
        kind = self.kind(raw)
        return EngineLimits(
            memory or default.memory_gib,
            seconds or default.seconds,
            answer,
            work,
            failures or default.failures,
            self.store(raw.get("store"), folder),
            folder,
            self.every(raw.get("every")),
            kind,
            self.remote(raw, kind),
        )

    def remote(self, raw: Mapping[str, Any], kind: EngineKind) -> str | None:
        if kind is not EngineKind.SPARK:
            if "remote" in raw:
                self.fault("engine.remote", "it is the address of a Spark server", 'write kind = "spark" beside it')
            return None
        found = spark.remote("engine.remote", raw.get("remote"))
        if isinstance(found, str):
            return found
        self.faults.append(found)
        return None

    def issuer(self, raw: Any) -> Issuer | None:
        """Whose word a service takes, beside its own tokens."""
        declared = self.mapping("service", raw)
        self.unknown("service", declared, {"issuer", "audience", "claim"})
        found = read_issuer("service", declared) if declared else None
        if isinstance(found, list):
            self.faults += found
            return None
        return found

    def placed(self, tables: Mapping[str, Table], kind: EngineKind) -> None:
        """Whether tables of Spark's catalog are read by Spark."""
        for name, table in tables.items():
            if table.source.kind is SourceKind.SPARK and kind is not EngineKind.SPARK:
                message = "it is a table of Spark's catalog, and questions run elsewhere"
                fix = 'write [engine] with kind = "spark" and remote = "sc://host:15002"'
                self.fault(f"tables.{name}.source", message, fix)

    def kind(self, raw: Mapping[str, Any]) -> EngineKind:
        if raw.get("kind", EngineKind.HERE) not in list(EngineKind):
            known = " or ".join(f'"{kind}"' for kind in EngineKind)
            self.fault("engine.kind", "it must be the engine that questions run on", f"write {known}")
            return EngineKind.HERE
        kind = EngineKind(raw.get("kind", EngineKind.HERE))
        if kind is not EngineKind.HERE and "store" in raw:
            self.fault("engine.store", f'tables are kept on the server with kind = "{kind}"', "leave it out")
        return kind

    def store(self, raw: Any, folder: Path | None) -> Store | None:
        if raw is None:
            return None
        if raw not in list(Store):
            self.fault("engine.store", "it must be where tables are kept", 'write "memory" or "file"')
            return None
        if raw == Store.FILE and folder is None:
            self.fault("engine.store", "there is no place for the files", "name a ledger: they are kept beside it")
        return Store(raw)

    def every(self, raw: Any) -> int | None:
        if raw is None:
            return None
        found = re.fullmatch(r"([1-9][0-9]{0,3}) (minute|hour|day|week)s?", raw) if isinstance(raw, str) else None
        if found is None:
            self.fault(
                "engine.every", "it must be a time after which sources are read anew", 'write for example "1 day"'
            )
            return None
        return int(found[1]) * _SECONDS[found[2]]

    def count(self, where: str, raw: Any, most: int) -> int | None:
        if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= most:
            self.fault(where, f"it must be a whole number from 1 to {most}", "write for example 20, without quotes")
            return None
        return raw

    def flag(self, where: str, raw: Any) -> bool:
        if not isinstance(raw, bool):
            self.fault(where, "it must be true or false", "write true or false")
        return raw is True

    def tables(self, raw: Mapping[str, Any], base: Path) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        if self.python:
            for name in [name for name, value in raw.items() if not isinstance(value, Mapping)]:
                fix = "write discreet.Table(source, columns={…}, one_row_per_person=True)"
                self.fault(f"tables.{name}", "not a discreet.Table", fix)
            raw = {name: value for name, value in raw.items() if isinstance(value, Mapping)}
        for name, value in raw.items():
            where = f"tables.{name}"
            if any(name.casefold() == other.casefold() for other in tables):
                self.fault(where, "another table has the same name in other case", "rename one of them")
            tables[name] = self.table(name, self.mapping(where, value), base)
        for name, value in raw.items():
            if isinstance(value, Mapping) and isinstance(value.get("person"), str):
                self.path(name, value["person"], tables)
            if tables[name].shared and tables[name].path is None:
                fix = 'leave it out, or write person = "COLUMN -> table.column"'
                self.fault(
                    f"tables.{name}.shared",
                    "shared is for rows along a foreign key: each of these rows belongs to one person",
                    fix,
                )
        self.circles(tables)
        return tables

    def path(self, name: str, person: str, tables: dict[str, Table]) -> None:
        """A person found along a foreign key: `order_id -> orders.id`: a row belongs to whom the row there belongs to.

        Where the table there has one row a person, and the column names the person, the key is the person itself.
        """
        if "->" not in person or name not in tables:
            return
        where = f"tables.{name}.person"
        written = person.split("->", 1)[1].strip()
        table_name, _, column_name = written.partition(".")
        table = next((table for key, table in tables.items() if key.casefold() == table_name.casefold()), None)
        column = table.column(column_name) if table is not None else None
        if table is None or column is None or table.name == name:
            known = [f"{one.name}.{other.name}" for one in tables.values() if one.name != name for other in one.columns]
            near = difflib.get_close_matches(written, known, 1, 0.7)
            fix = (
                f'write "{person.split("->", 1)[0].strip()} -> {near[0]}"' if near else 'write "COLUMN -> table.column"'
            )
            self.fault(where, f"there is no declared column {written}", fix)
            return
        if table.public:
            self.fault(where, f"{table.name} is public: its rows belong to nobody", "name a table about people")
            return
        if table.one_row_per_person and table.person is None:
            table = tables[table.name] = replace(table, person=column.name)
        mine = tables[name].column(tables[name].person or "")
        if mine is not None and mine.type and column.type and mine.type is not column.type:
            fix = f"declare {mine.name} and {written} with one type"
            self.fault(where, f"{mine.name} is {mine.type}, {written} is {column.type}", fix)
        if table.person == column.name and not table.path and table.one_row_per_person:
            return
        if column.minimum is not None or column.maximum is not None:
            fix = f"leave out min and max of {column.name}"
            self.fault(f"tables.{table.name}.columns.{column.name}", "clamping would make several keys one", fix)
        tables[table.name] = _identified(tables[table.name], column.name)
        tables[name] = replace(tables[name], path=(table.name, column.name))
        if tables[name].one_row_per_person:
            fix = "name a column that holds the person, or rows_per_person"
            self.fault(where, "one_row_per_person cannot be combined with a foreign key", fix)

    def circles(self, tables: Mapping[str, Table]) -> None:
        """Foreign keys must end at a table that holds the person."""
        for name, table in tables.items():
            seen, at = {name}, table
            while at.path is not None:
                if at.path[0] in seen:
                    fix = "end them at a column that holds the person"
                    self.fault(f"tables.{name}.person", "the foreign keys form a cycle", fix)
                    break
                seen.add(at.path[0])
                at = tables[at.path[0]]

    def table(self, name: str, raw: Mapping[str, Any], base: Path) -> Table:
        where = f"tables.{name}"
        self.unknown(where, raw, _TABLE)
        source = self.source(f"{where}.source", raw.get("source"), base)
        if "csv" in raw:
            source = self.csv(f"{where}.csv", raw["csv"], source)
        for kind in (SourceKind.DELTA, SourceKind.ICEBERG):
            if kind in raw:
                source = self.version(f"{where}.{kind}", kind, raw[kind], source)
        public = self.flag(f"{where}.public", raw.get("public", False))
        listed = self.mapping(f"{where}.columns", raw.get("columns"), required=not public)
        columns = self.columns(f"{where}.columns", listed, source)
        one_row = self.flag(f"{where}.one_row_per_person", raw.get("one_row_per_person", False))
        rows = (
            self.count(f"{where}.rows_per_person", raw["rows_per_person"], _INT64 >> 24) or 1
            if "rows_per_person" in raw
            else None
        )
        groups = (
            self.count(f"{where}.groups_per_person", raw["groups_per_person"], _INT64 >> 24) or 1
            if "groups_per_person" in raw
            else None
        )
        person = self.person(where, raw.get("person"), columns)
        said = person or (str(raw["person"]) if raw.get("person") else None)
        self.unit(where, public, said, one_row, rows, groups)
        for word in ("impossible", "totals", "orders", "sums", "time"):
            if public and word in raw:
                self.fault(
                    f"{where}.{word}",
                    f"{word} is for tables about people: a public one is not published",
                    "leave it out",
                )
                raw = {other: said for other, said in raw.items() if other != word}
        if rules := impossible(self, f"{where}.impossible", raw.get("impossible", []), columns):
            self.impossible[name] = rules
        if totals := public_totals(self, f"{where}.totals", raw.get("totals", []), columns, person, rules):
            self.totals[name] = totals
        if found := orders(self, f"{where}.orders", raw.get("orders", []), columns):
            self.orders[name] = found
            tied = beside_totals(found, self.totals.get(name, ()), rules)
            if tied is not None:
                message = f"{tied} is in order, and impossible or totals tie it to columns with totals"
                self.fault(f"{where}.orders", message, "leave one of them out")
        held = {
            "impossible": {one.column for rule in rules for one in rule},
            "totals": {column for total in self.totals.get(name, ()) for column in total.columns},
            "orders": {column for pair in found for column in pair},
            "person": {person} if person else set(),
        }
        if made := sums(self, f"{where}.sums", raw.get("sums", {}), columns, held):
            self.sums[name] = made
        if "time" in raw and (moment := time(self, f"{where}.time", raw["time"], columns, found)) is not None:
            self.times[name] = moment
            if one_row:
                self.fault(f"{where}.time", "a person has one row, and none before it", "leave it out")
        columns = tuple(replace(one, identifies=one.name == person) for one in columns)
        return Table(
            name,
            source,
            columns,
            person,
            one_row,
            1 if one_row else rows,
            1 if one_row else groups or (rows and min(rows, USUAL_GROUPS)),
            public,
            shared=self.flag(f"{where}.shared", raw.get("shared", False)),
        )

    def unit(
        self,
        where: str,
        public: bool,
        person: str | None,
        one_row: bool,
        rows: int | None,
        groups: int | None,
    ) -> None:
        if public:
            if person or one_row or rows or groups:
                self.fault(
                    where,
                    "a public table has no persons",
                    "leave out person and its bounds, or leave out public",
                )
        elif person is None and not one_row:
            fix = 'write one_row_per_person = true, or person = "COLUMN"'
            self.fault(where, "the privacy unit is missing", fix)
        elif one_row and (rows not in (None, 1) or groups not in (None, 1)):
            self.fault(
                where,
                "one row per person cannot be combined with other contribution bounds",
                "leave out rows_per_person and groups_per_person",
            )
        elif person is not None and not one_row and rows is None:
            fix = "write rows_per_person = 20, the maximum of rows counted per person; or one_row_per_person = true"
            self.fault(f"{where}.rows_per_person", "it is missing", fix)

    def person(self, where: str, raw: Any, columns: tuple[Column, ...]) -> str | None:
        if raw is None:
            return None
        if not isinstance(raw, str) or not raw.strip():
            self.fault(f"{where}.person", "it must name a column", 'write person = "COLUMN"')
            return None
        name = raw.split("->", 1)[0].strip()
        column = next((column for column in columns if column.name.casefold() == name.casefold()), None)
        if column is None:
            near = difflib.get_close_matches(name, [column.name for column in columns], 1, 0.7)
            fix = f'write {name} = {{ type = "text" }} under [{where}.columns]'
            if near:
                fix = f'write person = "{near[0]}"'
            elif "." in name:
                fix = 'write person = "COLUMN -> table.column" for a key of another table'
            self.fault(f"{where}.person", f"the column {name} is not declared", fix)
            return None
        if column.minimum is not None or column.maximum is not None:
            fix = f"leave out min and max of {name}"
            self.fault(f"{where}.columns.{name}", "clamping would make several persons one", fix)
        if column.type is Type.NUMBER:
            self.fault(
                f"{where}.columns.{name}",
                "a number with fractions cannot identify a person",
                'write type = "integer" or "text"',
            )
        return column.name

    def source(self, where: str, raw: Any, base: Path) -> Source:
        if raw is None:
            self.fault(where, "it is missing", 'write source = "file.csv"')
            return Source(SourceKind.CSV)
        if isinstance(raw, list | tuple):
            return self.files(where, raw, base)
        if isinstance(raw, bool | int | float | Decimal | dict | datetime.date | datetime.time):
            raw = ""
        if not isinstance(raw, str | Path):
            return Source(SourceKind.FRAME, frame=raw)
        if str(raw).startswith(f"{SourceKind.SPARK}::"):
            named = spark.source(where, str(raw))
            if isinstance(named, Source):
                return named
            self.faults.append(named)
            return Source(SourceKind.SPARK)
        if is_server(str(raw)):
            found = server(where, str(raw))
            if isinstance(found, Source):
                return found
            self.faults.append(found)
            return Source(SourceKind.POSTGRESQL)
        path, separator, relation = str(raw).partition("::")
        suffix = Path(path).suffix.lower()
        if separator:
            if not path or not relation:
                self.fault(where, "a DuckDB source is a file and a table", 'write source = "x.duckdb::table"')
            return Source(SourceKind.DATABASE, base / path, relation)
        if suffix == ".parquet" or path.endswith("/"):
            return Source(SourceKind.PARQUET, base / path)
        if suffix in (".csv", ".gz"):
            return Source(SourceKind.CSV, base / path)
        fix = 'write for example source = "file.csv"'
        if self.python and not str(raw):
            fix = "give a pandas or polars DataFrame, an Arrow table, or the path of a file"
        elif path and (base / path).is_dir():
            fix = f'write source = "{path}/" for all Parquet files in this folder'
        elif suffix:
            fix = f"save {Path(path).name} as .csv or .parquet, and name that"
        self.fault(where, "it is neither .csv, .parquet nor file.duckdb::table", fix)
        return Source(SourceKind.CSV, base / path)

    def files(self, where: str, raw: Sequence[Any], base: Path) -> Source:
        """Several files that are one table."""
        fix = 'write source = ["a.csv", "b.csv"]'
        if not raw or not all(isinstance(one, str | Path) for one in raw):
            self.fault(where, "it is neither .csv, .parquet nor file.duckdb::table", fix)
            return Source(SourceKind.CSV)
        first, *others = [self.source(where, one, base) for one in raw]
        if {one.kind for one in (first, *others)} not in ({SourceKind.CSV}, {SourceKind.PARQUET}):
            self.fault(where, "these files are not all .csv, or all .parquet", fix)
            return Source(SourceKind.CSV)
        return replace(first, further=tuple(one.path for one in others if one.path is not None))

    def version(self, where: str, kind: SourceKind, raw: Any, source: Source) -> Source:
        """Which version of a Delta or Iceberg table it is."""
        said = self.mapping(where, raw)
        self.unknown(where, said, {"version"})
        version = said.get("version")
        if source.kind is not SourceKind.PARQUET or source.further:
            message = f"this is for the folder of one {kind.title()} table"
            self.fault(where, message, 'write source = "folder/", or leave it out')
        elif isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= _INT64:
            what, example = "id of a snapshot", 7612345678901234567
            if kind is SourceKind.DELTA:
                what, example = "number of a version", 12
            self.fault(f"{where}.version", f"it must be the {what}", f"write {kind} = {{ version = {example} }}")
        else:
            return Source(kind, source.path, version=version)
        return source

    def csv(self, where: str, raw: Any, source: Source) -> Source:
        """How a CSV file is written, where it is not the usual way."""
        if source.kind is not SourceKind.CSV:
            self.fault(where, "this is for CSV files", "leave it out")
            return source
        said = self.mapping(where, raw)
        self.unknown(where, said, {"delimiter", "decimal", "dates", "encoding"})
        delimiter, decimal = said.get("delimiter", ","), said.get("decimal", ".")
        encoding = said.get("encoding", "utf-8")
        odd = not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter.isalnum()
        if odd or delimiter in '"\r\n\0' or not delimiter.isascii():
            self.fault(f"{where}.delimiter", "it must be one character", 'write delimiter = ";"')
            delimiter = ","
        if decimal not in (".", ",") or (decimal == delimiter and "decimal" in said):
            self.fault(f"{where}.decimal", "it must be . or , and not the delimiter", 'write decimal = ","')
            decimal = "."
        dates = said.get("dates", source.dates)
        if not isinstance(dates, str) or not DATES.fullmatch(dates):
            message = "it must have %d, %m and %Y, and one of . / - between them"
            self.fault(f"{where}.dates", message, 'write dates = "%d.%m.%Y"')
            dates = source.dates
        if encoding not in ENCODINGS:
            self.fault(f"{where}.encoding", "this encoding is not known", f"write one of {', '.join(ENCODINGS)}")
            encoding = "utf-8"
        return replace(source, delimiter=delimiter, decimal=decimal, dates=dates, encoding=encoding)

    def columns(self, where: str, raw: Mapping[str, Any], source: Source) -> tuple[Column, ...]:
        columns: list[Column] = []
        for name, value in raw.items():
            if not isinstance(name, str) or not writable(name) or not _utf8(name):
                message = "a column's name is not a string, is empty, or has control characters"
                self.fault(where, message, "name the column as its source does")
                continue
            if any(name.casefold() == column.name.casefold() for column in columns):
                self.fault(f"{where}.{name}", "another column has the same name in other case", "declare one of them")
            columns.append(self.column(f"{where}.{name}", name, value, source))
        return tuple(columns)

    def column(self, where: str, name: str, raw: Any, source: Source) -> Column:
        raw = _short_form(raw, self_typed=source.kind is not SourceKind.CSV)
        if not isinstance(raw, Mapping):
            fix = 'write (17, 90), str, ["a", "b"] or { type = "text" }' if self.python else 'write { type = "text" }'
            self.fault(where, "it does not describe a column", fix)
            return Column(name, Type.TEXT)
        self.unknown(where, raw, _COLUMN)
        kind: Type | None = None
        if "type" in raw:
            if isinstance(raw["type"], str) and raw["type"] in set(Type):
                kind = Type(raw["type"])
            else:
                said = str(raw["type"]).casefold().partition("(")[0].strip()
                near = [_OTHERS[said]] if said in _OTHERS else difflib.get_close_matches(said, list(Type), 1, 0.3)
                self.fault(
                    f"{where}.type",
                    "this type is not known",
                    f"write {near[0] if near else ' or '.join(Type)}",
                )
                if not near:
                    return Column(name, Type.TEXT)
                kind = Type(near[0])
        elif source.kind is SourceKind.CSV:
            self.fault(
                f"{where}.type",
                "a CSV file does not state types",
                'write type = "text", "integer", "number" …',
            )
            kind = Type.TEXT
        low = high = None
        if kind in (Type.TEXT, Type.BOOLEAN) and ("min" in raw or "max" in raw):
            self.fault(where, f"a {kind} column takes no min and max", "leave them out")
        else:
            low, high = (self.value(f"{where}.{key}", raw.get(key), kind) for key in ("min", "max"))
        if low is not None and high is not None and not comparable(low, high):
            fix = "write both as numbers, as dates or as times, and the column's type with them"
            self.fault(f"{where}.min", "min and max are of two kinds", fix)
            low = high = None
        if low is not None and high is not None and low > high:  # type: ignore[operator]
            self.fault(f"{where}.min", "min is larger than max", "write min at most max")
        step = self.number(f"{where}.step", raw["step"]) if "step" in raw else None
        if "step" in raw and (kind not in (Type.NUMBER, None) or (step is not None and step <= 0)):
            self.fault(f"{where}.step", "step is for numbers, and above 0", "write step = 0.01, or leave it out")
            step = None
        nulls = self.flag(f"{where}.nulls", raw.get("nulls", True))
        length = self.count(f"{where}.length", raw["length"], _LONGEST) if "length" in raw else None
        if length is not None and kind not in (Type.TEXT, None):
            self.fault(f"{where}.length", "length is for texts", "leave it out")
        values = self.values(where, raw, kind)
        if length is not None and any(isinstance(value, str) and len(value) > length for value in values or ()):
            self.fault(f"{where}.length", "a declared value is longer", "write a larger length")
        if step is not None and any(isinstance(value, int | Fraction) and value % step for value in values or ()):
            fix = "write multiples of it, or leave step out"
            self.fault(f"{where}.values", "a declared value is not a multiple of the step", fix)
        return Column(name, kind, low, high, step, values, nulls, length)

    def values(self, where: str, raw: Mapping[str, Any], kind: Type | None) -> tuple[Value, ...] | None:
        if "values" not in raw:
            return None
        if not isinstance(raw["values"], list | tuple) or not raw["values"]:
            self.fault(f"{where}.values", "it must be a list with at least one value", 'write values = ["a", "b"]')
            return None
        if "min" in raw or "max" in raw:
            self.fault(where, "values and min/max cannot be combined", "keep one of them")
        values = [self.value(f"{where}.values", value, kind) for value in raw["values"]]
        known = tuple(value for value in values if value is not None)
        # the engine holds numbers as doubles: two values that are one double would count a row in two groups
        if len({float(value) if isinstance(value, Fraction) else value for value in known}) != len(known):
            self.fault(f"{where}.values", "a value is repeated", "write each value once")
        return known

    def value(self, where: str, raw: Any, kind: Type | None) -> Value | None:
        """One bound or key, of the column's type. A column without a declared type takes it from the value."""
        if raw is None:
            return None
        value: Value
        if isinstance(raw, bool):
            good, value = kind in (Type.BOOLEAN, None), raw
        elif isinstance(raw, datetime.datetime):
            good, value = kind in (Type.TIMESTAMP, None) and raw.tzinfo is None, raw
        elif isinstance(raw, datetime.date):
            good, value = kind in (Type.DATE, Type.TIMESTAMP, None), raw
            if kind is Type.TIMESTAMP:
                value = datetime.datetime.combine(raw, datetime.time())
        elif isinstance(raw, str):
            good, value = kind in (Type.TEXT, None) and _utf8(raw), raw
        else:
            number = self.number(where, raw)
            if number is None:
                return None
            if far := _too_far(number, kind):
                self.fault(where, *far)
                return None
            whole = int(number) if number.denominator == 1 else None
            if kind is Type.INTEGER or (kind is None and whole is not None and abs(whole) <= _INT64):
                good, value = whole is not None, whole if whole is not None else 0
            else:
                good, value = kind in (Type.NUMBER, None), number
        if not good:
            fix = f"write a value of type {kind or 'text or number'}"
            if kind in _UNQUOTED:
                how = "it without quotes, " if isinstance(raw, str) else f"a value of type {kind}, for example "
                fix = f"write {how}{_UNQUOTED[kind][self.python]}"
            elif kind is Type.TEXT:
                fix = f'write it in quotes: "{str(raw)[:60]}"'
            self.fault(where, f"not a valid {kind or 'value of a column'}", fix)
            return None
        return value


def _too_far(number: Fraction, kind: Type | None) -> tuple[str, str] | None:
    """What is wrong with a number that is beyond the limits of its type, and what to write; None where it is not, or is
    none of this type. A column without a declared type may be one of numbers."""
    if kind is Type.INTEGER and number.denominator == 1 and abs(number) > _INT64:
        message, most = "an integer must lie between -(2^63-1) and 2^63-1", str(_INT64)
    elif kind in (Type.NUMBER, None) and abs(number) > _LARGEST:
        message, most = "a number must lie between -10^300 and 10^300", "1e300"
    else:
        return None
    return message, f"write at most {most}" if number > 0 else f"write at least -{most}"


def _identified(table: Table, name: str) -> Table:
    """The table with a column of which no text is cut."""
    columns = (replace(one, identifies=True) if one.name == name else one for one in table.columns)
    return replace(table, columns=tuple(columns))


_OTHERS: dict[str, Type] = {
    **dict.fromkeys(("string", "str", "varchar", "char", "object", "category", "uuid"), Type.TEXT),
    **dict.fromkeys(("int", "int32", "int64", "bigint", "long", "whole"), Type.INTEGER),
    **dict.fromkeys(("float", "float64", "double", "real", "decimal", "numeric"), Type.NUMBER),
    **dict.fromkeys(("bool", "bit"), Type.BOOLEAN),
    **dict.fromkeys(("datetime", "datetime64", "time"), Type.TIMESTAMP),
}
"""What other systems call our types."""

_NO_DECLARATION = "name the declaration, a .toml file: `discreet init SOURCE` writes one"

_UNQUOTED: dict[Type | None, tuple[str, str]] = {
    Type.INTEGER: ("17", "17"),
    Type.NUMBER: ("0.5", "0.5"),
    Type.BOOLEAN: ("true", "True"),
    Type.DATE: ("2020-01-31", "datetime.date(2020, 1, 31)"),
    Type.TIMESTAMP: ("2020-01-31T12:00:00", "datetime.datetime(2020, 1, 31, 12)"),
}
"""Values that are no text, in TOML and in Python."""


def example_of(kind: Type | None, *, python: bool) -> str:
    """A value of a type, as TOML or Python write it; nothing for texts, which stand in quotes."""
    return _UNQUOTED[kind][python] if kind in _UNQUOTED else ""


_PYTHON_TYPES: dict[Any, str] = {
    int: "integer",
    float: "number",
    Decimal: "number",
    Fraction: "number",
    str: "text",
    bool: "boolean",
    datetime.date: "date",
    datetime.datetime: "timestamp",
}


def _kind(value: Any) -> str:
    """The type of a column that holds this value of Python's."""
    kinds = (
        (bool, "boolean"),
        (Integral, "integer"),
        (str, "text"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
    )
    return next((kind for known, kind in kinds if isinstance(value, known)), "number")


def _short_form(raw: Any, *, self_typed: bool) -> Any:
    """Python's short forms of a column: `str`, `(17, 90)`, `["a", "b"]`. Where the source states types, they stand."""
    if isinstance(raw, type):
        return {"type": _PYTHON_TYPES[raw]} if raw in _PYTHON_TYPES else raw
    if raw is None:
        return {}
    if isinstance(raw, str):
        return {"type": raw}
    if isinstance(raw, tuple) and len(raw) == 2:
        spec: dict[str, Any] = {"min": raw[0], "max": raw[1]}
    elif isinstance(raw, list):
        spec = {"values": raw}
    else:
        return raw
    if not self_typed:
        kinds = {_kind(value) for value in raw}
        spec["type"] = kinds.pop() if len(kinds) == 1 else "number"
    return spec


def _utf8(text: str) -> bool:
    """Whether a text has no lone surrogate: no engine and no file can hold one."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
