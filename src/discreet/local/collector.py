"""The collector: takes randomised reports, keeps them in a file, and estimates."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from discreet.errors import QuestionError
from discreet.local.answers import Choice, Number, Ordered, ReportPart
from discreet.local.app import App
from discreet.local.channels import Hashed, Projective, Response, composed
from discreet.local.collection import Attribute, Collection, today
from discreet.local.estimate import Estimate, Oracle, mean_of, rows_of, shares_of
from discreet.local.hybrid import Hybrid
from discreet.local.prefixes import Prefixes, found
from discreet.local.ranges import Level, Ranges, Tree
from discreet.local.report import Report, check, refused
from discreet.local.shuffle import Central, central
from discreet.local.store import ReportStore, document
from discreet.trusted.ring_a.exact import Number as Amount
from discreet.trusted.ring_a.exact import fraction

MOST_WEIGHTS = 8_000_000


class Collector:
    """Reports of one collection, in one file that this process alone holds open.

    Raises LedgerError where the file cannot be used, or holds the reports of another collection.
    """

    def __init__(self, collection: Collection, path: str | Path) -> None:
        self.collection = collection
        self._store = ReportStore(collection, path)
        self._weighed = False

    @classmethod
    def of(cls, path: str | Path) -> Collector:
        """Opens the collector of a file that holds reports already, of whichever collection.

        Raises QuestionError where there is no such file, DeclarationError where its collection is none, LedgerError."""
        if not Path(path).is_file():
            fix = "name the file that discreet collect writes"
            raise QuestionError("path", "there is no reports file at this path", where=str(path), fix=fix)
        return cls(Collection.from_json(document(path)), path)

    def add(self, reports: Report | str | Mapping[str, Any] | Iterable[Report | str | Mapping[str, Any]]) -> int:
        """Takes a report or many, as objects, JSON or dictionaries; returns how many are new.

        One counts for each token and window, the first: adding the same again changes nothing. All or none of them are
        taken. Raises QuestionError where one is no report of this collection, or of a window that is yet to come,
        LedgerError where the file cannot be written.
        """
        many = [reports] if isinstance(reports, Report | str | bytes | Mapping) else reports
        latest = self.collection.window_of(today() + datetime.timedelta(days=1))
        if not isinstance(many, Iterable):
            raise refused("this is not a valid report", "send what Client.report gives")
        known = [_report(one) for one in many]
        for one in known:
            check(self.collection, one)
            if one.window > latest:
                raise refused("its window has not begun", "look at the clock of the device")
        return self._store.add(known)

    @property
    def windows(self) -> list[str]:
        """The windows of which there are reports, the latest last. Raises QuestionError."""
        return list(self._store.sizes())

    @property
    def sizes(self) -> dict[str, int]:
        """How many reports there are of each window, the latest last. Raises QuestionError."""
        return self._store.sizes()

    def estimate(self, confidence: float = 0.95, *, attribute: str = "", window: str | None = None) -> Estimate:
        """Estimates one attribute in one window, the latest one where none is named.

        `confidence`, from 0 to 1, is that of the intervals. Nothing is spent: this is arithmetic on what is randomised
        already. Raises QuestionError."""
        if not isinstance(confidence, int | float) or not 0 < confidence < 1:
            raise QuestionError("confidence", "confidence must be a probability", where="confidence", fix="write 0.95")
        chosen, first = self._attribute(attribute)
        span = self._window(window)
        kinds = {Choice: self._shares, Number: self._mean, Ordered: self._ranges}
        if not any(self._store.has(span, first + place) for place in range(len(chosen.parts))):
            fix = "wait for reports, or name another window: " + (", ".join(self.windows[-3:]) or "there is none yet")
            raise QuestionError("reports", "this window has no report of this attribute", where="estimate", fix=fix)
        return kinds.get(type(chosen.answer), self._texts)(chosen, first, span, confidence)

    def central_epsilon(self, delta: Amount, *, shuffled_by: str, window: str | None = None) -> Central:
        """Says the central epsilon of one report of a window, for observers who see only the shuffled reports.

        `shuffled_by` names who mixes them and takes off all that tells them apart. Nobody does by himself: without a
        third party that does, a report costs its local epsilon. Public attributes are not taken off: counted are the
        reports that have the same ones, where they are fewest. Raises QuestionError.
        """
        if not isinstance(shuffled_by, str) or not shuffled_by.strip():
            fix = 'say who does, as in shuffled_by="the mix server of …", or keep to the local epsilon'
            raise QuestionError("shuffled", "it is not said who shuffles the reports", where="shuffled_by", fix=fix)
        try:
            known = fraction(delta)
        except ValueError:
            known = fraction(0)
        if not fraction("1e-15") <= known < 1:
            raise QuestionError("delta", "delta lies between 1e-15 and 1", where="delta", fix="write delta=1e-6")
        # with `each` one respondent's reports are all about the same part, and hide nobody's about another one
        apart = [*self.collection.public, *(["part"] if self.collection.each is not None else [])]
        return central(self.collection, self._store.alike(self._window(window), apart), known, shuffled_by)

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Answers SQL over the table `weights`: window_, the public attributes, attribute, value, weight.

        Each report stands there once for each value, with an unbiased weight: SUM(weight) over any part of the reports
        estimates how many of those respondents hold the value (for a number, value is mean, and AVG(weight) estimates
        it), and SQRT(SUM(weight * weight)) is about the deviation of that sum. Only sums mean something: a single
        weight is noise. Raises QuestionError.
        """
        self._weigh()
        names, rows = self._store.table(statement)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def app(self) -> App:
        """Makes an ASGI application that takes reports and shows respondents a page."""
        return App(self)

    def close(self) -> None:
        """Closes the file."""
        self._store.close()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _attribute(self, name: str) -> tuple[Attribute, int]:
        for one, first in zip(self.collection.attributes, self.collection.starts, strict=True):
            if one.name == name:
                return one, first
        known = ", ".join(one.name for one in self.collection.attributes)
        fix = f"name one of {known}" if known else "leave attribute out"
        raise QuestionError("attribute", "the collection has no such attribute", where="attribute", fix=fix)

    def _window(self, window: str | None) -> str:
        if window is None:
            return (self.windows or [self.collection.window_of(today())])[-1]
        if not isinstance(window, str) or not self.collection.is_window(window):
            fix = f"write it like {self.collection.window_of(today())}"
            raise QuestionError("window", "this is not a valid window of the collection", where="window", fix=fix)
        return window

    def _oracle(self, part: ReportPart, number: int, span: str) -> tuple[Oracle, Any]:
        channel = part.channel
        assert isinstance(channel, Response | Projective)
        counts = self._store.counts(span, number, channel.outputs)
        collection = self.collection
        sampled = len(collection.parts) > 1
        oracle = Oracle(channel, collection.again(part), int(counts.sum()), sampled, collection.reports)
        return oracle, channel.supports(counts)

    def _facts(self, span: str, confidence: float, reports: int, weight: float) -> dict[str, Any]:
        epsilon = float(self.collection.loss().epsilon)
        return {"reports": reports, "epsilon": epsilon, "confidence": confidence, "window": span, "weight": weight}

    def _shares(self, attribute: Attribute, first: int, span: str, confidence: float) -> Estimate:
        assert isinstance(attribute.answer, Choice)
        oracle, supports = self._oracle(attribute.parts[0], first, span)
        rows, warnings = shares_of(attribute.answer.values, oracle, supports, confidence)
        return Estimate(rows, warnings=warnings, **self._facts(span, confidence, oracle.reports, oracle.weight))

    def _mean(self, attribute: Attribute, first: int, span: str, confidence: float) -> Estimate:
        channel, lattice = attribute.parts[0].channel, attribute.answer
        assert isinstance(channel, Hybrid)
        assert isinstance(lattice, Number)
        counts = self._store.counts(span, first, channel.outputs)
        rows, warnings = mean_of(lattice, channel, counts, confidence, sampled=len(self.collection.parts) > 1)
        weight = float(channel.numbers.max()) / channel.steps
        facts = self._facts(span, confidence, int(counts.sum()), weight)
        return Estimate(rows, warnings=warnings, reach=float(lattice.high - lattice.low), **facts)

    def _ranges(self, attribute: Attribute, first: int, span: str, confidence: float) -> Ranges:
        lattice = attribute.answer
        assert isinstance(lattice, Ordered)
        levels = []
        for place, part in enumerate(attribute.parts):
            oracle, supports = self._oracle(part, first + place, span)
            levels.append(Level(part.size, oracle, oracle.shares(supports)))
        tree = Tree(lattice.bins, tuple(levels))
        values = [lattice.value(code) for code in range(lattice.bins)]
        rows, warnings = rows_of(values, tree.known, tree.variances(), confidence)
        total = sum(level.oracle.reports for level in levels)
        there = [level.oracle for level in levels if level.oracle.reports]
        facts = self._facts(span, confidence, total, max(one.weight * total / one.reports for one in there))
        return Ranges(rows, warnings=warnings, lattice=lattice, tree=tree, **facts)

    def _texts(self, attribute: Attribute, first: int, span: str, confidence: float) -> Estimate:
        levels = []
        for place, part in enumerate(attribute.parts):
            assert isinstance(part.channel, Hashed)
            levels.append(Prefixes(part.channel, self._store.raw(span, first + place)))
        total = sum(len(level.reports) for level in levels)
        fewest = min(len(level.reports) for level in levels if len(level.reports))
        weight = Oracle(levels[0].channel, None, 1, sampled=True).weight * total / fewest
        return Estimate(found(levels, confidence), **self._facts(span, confidence, total, weight))

    def _weigh(self) -> None:
        """The tables behind `weights`, once: the weight of every report for every value, and the view that joins."""
        with self._store.lock:
            if not self._weighed:
                self._weigh_once()

    def _weigh_once(self) -> None:
        collection, pieces = self.collection, []
        for attribute, first in zip(collection.attributes, collection.starts, strict=True):
            if isinstance(attribute.answer, Choice | Number):
                pieces.append((attribute, first, *_weights(collection, attribute)))
        if not pieces:
            raise QuestionError("weights", "no attribute has values to weight", where="query", fix="use estimate()")
        columns: dict[str, list[Any]] = {"attribute": [], "value": [], "part": [], "output": [], "weight": []}
        for attribute, first, names, weights in pieces:
            shape = weights.shape
            columns["attribute"].append(np.full(weights.size, attribute.name, object))
            columns["value"].append(np.repeat(np.array(names, object), shape[1]))
            columns["part"].append(np.full(weights.size, first, np.int32))
            columns["output"].append(np.tile(np.arange(shape[1]), shape[0]))
            columns["weight"].append(weights.ravel())
        self._store.load("channel", {name: np.concatenate(parts) for name, parts in columns.items()})
        public = "".join(f'r."{name}", ' for name in collection.public)
        self._store.view(
            "weights",
            f"SELECT r.window_, {public}c.attribute, c.value, c.weight "
            "FROM reports r JOIN channel c ON r.part = c.part AND r.report = c.output",
        )
        self._weighed = True


def _weights(collection: Collection, attribute: Attribute) -> tuple[list[str], Any]:
    """Names of the values, and the weight of each report for each of them: (1[supports] − q)/(p − q)."""
    part = attribute.parts[0]
    channel, answer = part.channel, attribute.answer
    if isinstance(channel, Hybrid):
        assert isinstance(answer, Number)
        return ["mean"], (float(answer.low) + channel.numbers * float(answer.step))[None, :]
    assert isinstance(channel, Response | Projective)
    assert isinstance(answer, Choice)
    if channel.inputs * channel.outputs > MOST_WEIGHTS:
        fix = "use estimate(), or ask for fewer values"
        raise QuestionError("weights", "there are too many values to weight in SQL", where="query", fix=fix)
    p, q = map(float, composed(channel, collection.again(part)))
    return [str(value) for value in answer.values], (channel.rows(range(channel.inputs)) - q) / (p - q)


def _report(one: object) -> Report:
    if isinstance(one, Report):
        return Report.of(one.to_dict())
    return Report.from_json(one) if isinstance(one, str | bytes) else Report.of(one)
