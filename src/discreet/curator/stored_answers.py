"""What the ledger keeps, as an index in memory: which stored numbers may answer a question, in milliseconds.

It is read from the ledger's entries as they come, also those of other processes. It is a hint: an answer that is used
is read by its key, verified, and held against its plan.

What may be used. Whoever asks is answered from what was measured for him and, where he has an account of his own, from
what that was debited for. With `share_answers` those who have none are answered from everybody's. An exact repeat is
as ever: free on the total, and debited to an account that did not pay for it yet.

Which intervals. A number whose noise nobody has seen is as good as a fresh one: whoever asks for it first could not
choose it by its noise, which is independent of all that was seen. So that answer has the interval of an independent
number. The look is written down first, durably, as a repeat in the ledger, with the cells that it is of: whoever asks
later for some of these cells, or for another number of them, has seen their noise, and gets the interval that holds for
all such answers at once (`intervals.chosen`). The look itself, repeated, keeps its own. Where it is of a part of a
question, whose other parts may fail, it is written down as one that was not shown yet, and anew when all are there.

Why none of it needs a price. What is released is a function of numbers that were released and paid (post-processing;
Dwork & Roth 2014, Proposition 2.1). And whether a question is answered so, from which release, and what it costs else
follows from texts, declarations, prices, scales and from what was asked before: from no number that was ever measured,
exact or noisy. So on neighbouring tables, wherever the noisy answers were the same, the same questions are free, and
the filters see the same sequence of losses, each chosen by what was released before, which they are made for.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from discreet.intervals import chosen
from discreet.intervals.expected import expected_errors
from discreet.intervals.noise import CONFIDENCE
from discreet.ledger import TOTAL, Ledger
from discreet.ledger.history import Written
from discreet.locks import Lock
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.plan.whole import whole
from discreet.procedures.run import digest
from discreet.release.cells import Rows, Union, rows, union
from discreet.release.combined import WHOLE, CombinedMeasurement
from discreet.release.reused import MOST_TRIED, ReusableMeasurement, added_up, reused
from discreet.trusted.ring_a.nodes import scan_of
from discreet.trusted.ring_a.table import Column, Table

MOST_PLANS = 1_000
"""How many plans of stored answers are kept."""


@dataclass(frozen=True)
class StoredAnswer:
    """A stored measurement, as its first bytes describe it. `shape` is what is measured, whatever its price; `asked` is
    the key of the question that it was bought for, where more than that was measured. `base`, `columns` and `rest` say
    which cells it has: of which rows, by which keys, under which other conditions; `first` which of them were shown
    when they were measured, None where all were. `analyst` is whom it was measured for, by whose profiles its limits
    were chosen."""

    key: str
    reserve: int
    analyst: str
    price: Price
    shape: str
    asked: str
    base: str = ""
    columns: tuple[str, ...] = ()
    rest: str = ""
    first: Cells | None = None
    named: Price | None = None
    """Where it was bought to be put together with others: the price that the question named."""
    others: tuple[tuple[int, int], ...] = ()
    """These others, by their reserves, each with its weight."""

    @property
    def price_of_question(self) -> Price:
        """The price that the question named which it was bought for."""
        return self.price if self.named is None else self.named


@dataclass(frozen=True)
class Sought:
    """What is asked, as stored answers are looked for: at its price, of the snapshots of these `numbers`, with its key,
    and how the keys begin that have the same rows and groups. Its `base` is that of its cells."""

    priced: Measurement
    table: Table
    numbers: str
    key: str
    frame: str
    base: str

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The table's columns by their names."""
        return {column.name: column for column in self.table.columns}

    @cached_property
    def rows(self) -> Rows | None:
        """The rows that it measures (`release.cells`)."""
        return rows(self.priced.plan, self.columns)


@dataclass(frozen=True)
class Component:
    """A stored answer, of the key and the reserve, that holds what is asked with some error. The `look` is the request
    by which the ledger remembers that it was put together with others for the question."""

    key: str
    reserve: int
    held: ReusableMeasurement
    look: str


@dataclass(frozen=True)
class FoundAnswer:
    """The stored answer of this key, as a question is answered from it. Where some of its noise may have been seen
    before the question was asked, `release` is the share of the failures that its release has (`intervals.chosen`);
    else None."""

    key: str
    held: ReusableMeasurement | CombinedMeasurement
    release: float | None = None
    look: str | None = None
    """The request by which the ledger remembers who saw which cells, where this answer shows some."""
    reserve: int | None = None
    """Where the answer is made of several: the entry of the first, which is what was bought for it, if anything was."""
    others: tuple[Component, ...] = ()
    """The others that it is made of, in order."""

    @property
    def answers(self) -> int:
        """How many stored answers it is made of."""
        return 1 + len(self.others)

    def share(self, groups: int) -> float | None:
        """The share of one number, in an answer with so many groups."""
        return None if self.release is None else max(chosen.SMALLEST, self.release * self.held.share(groups))


Replan = Callable[[str, Price, str], tuple[Plan, Table] | None]
"""Plans a question's text anew, at a price and for an account; None where it cannot be asked any more."""


Cells = tuple[int, ...]
"""A set of cells that is a product of sets of values: of each key the places of these, as bits."""

_LOOK = "\x1flook"
"""How requests begin that the curator makes: nobody can write one, as names of requests have no control characters."""

_NOT_YET = "?"
"""Behind the name of a look whose answer is not shown yet."""

_MOST_LETTERS = 2_000
"""Of a set of cells in words; with more, all are taken for seen."""


def put_together(question: Sought, used: Sequence[Component], made: CombinedMeasurement) -> FoundAnswer:
    """An answer that is made of stored ones alone: the look at the first of them says of all what it is made of."""
    first, *others = used
    parts = ",".join(f"{one.reserve}:{weight}" for one, weight in zip(used, made.weights, strict=True))
    look = f"{first.look} {_together(question)} {parts}"
    return FoundAnswer(first.key, made, None, look, first.reserve, tuple(others))


def not_yet(look: str) -> str:
    """What is written down of a look while the answer may yet fail to be shown: the same cells are taken for seen. If
    others see them before it is shown, it has no right to the interval of an independent number."""
    begins, name, cells, *parts = look.split(" ")
    return f"{begins} {name}{'' if parts else _NOT_YET} {cells}"


def _name(question: Sought, one: StoredAnswer, account: str) -> str:
    """How a look is called by which a stored answer was put together with others, for whoever asks."""
    return digest("combined", question.key, one.key, account)


def _together(question: Sought) -> str:
    return digest("together", question.key)


def described(
    measured: Measurement, asked: Sought, key: str, combination: Sequence[object] | None = None
) -> list[object]:
    """What the index reads of a stored answer: what stands first in it. Where it is stored under another key than the
    question's, as more is measured than was asked for, also that key, and the cells that it shows; where it is put
    together with others, with which."""
    found = asked.rows if measured.plan is asked.priced.plan else rows(measured.plan, asked.columns)
    own = key == asked.key
    if found is None:
        return [shape(measured.plan), ""]
    described = [shape(measured.plan), "" if own else asked.key, asked.base, list(found.columns)]
    cells = None if own else cells_of(asked, measured)
    shown = None if cells is None else _written(_bits(cells))
    return [*described, digest(*found.rest(found.columns)), shown, *(() if combination is None else (combination,))]


def cells_of(asked: Sought, known: Measurement) -> Union | None:
    """What a question adds up of a measurement's cells; None where it is no union of them."""
    mine, theirs = asked.rows, rows(known.plan, asked.columns)
    return None if mine is None or theirs is None else union(mine, theirs, asked.columns)


def _bits(cells: Union) -> Cells:
    return tuple(sum(1 << place for place in places) for places in cells.touched)


def _written(cells: Cells) -> str:
    """A set of cells in words; "all" where they would be too many. Of a key with one value its place alone."""
    text = ",".join(f"@{bits.bit_length() - 1:x}" if bits.bit_count() == 1 else f"{bits:x}" for bits in cells)
    return text if len(text) <= _MOST_LETTERS else "all"


def _read(text: str) -> Cells | None:
    """What `_written` wrote; None for all, and for anything else."""
    try:
        return tuple(1 << int(one[1:], 16) if one[:1] == "@" else int(one, 16) for one in text.split(","))
    except ValueError:
        return None


def _apart(one: Cells | None, other: Cells | None) -> bool:
    """Whether no cell is in both: some key has no value in both."""
    if one is None or other is None:
        return False
    return any(not a & b for a, b in zip(one, other, strict=True))


def base(table: Table, plan: Plan, *parts: str) -> str:
    """What cells must share to be of the same rows: the rows of a relation, as declared, of the same snapshots."""
    return digest("cells", repr(scan_of(plan.root)), table.name, *parts)


def shape(plan: Plan) -> str:
    """What is measured, whatever the price."""
    made = {(one.kind, one.index, one.weights) for one in plan.outputs if one.kind is not OutputKind.KEY}
    outputs = sorted(map(repr, made))  # how many numbers are made of a part decides its share of the price
    return digest(repr((plan.root, plan.parts, plan.specials, plan.ranges, plan.keys, plan.least, outputs)))


@dataclass
class _Numbers:
    """The stored answers that somebody may be answered from, numbered from 1 on in the order in which that began."""

    places: dict[int, int] = field(default_factory=dict)

    def add(self, reserve: int) -> None:
        self.places.setdefault(reserve, len(self.places) + 1)


class StoredAnswers:
    """The index of one ledger's stored answers. It may be used from several threads."""

    def __init__(self, ledger: Ledger, replan: Replan, hears: Callable[[str], None], *, shared: bool) -> None:
        """`hears` is told the key of each answer that the ledger keeps, as it is read."""
        self._ledger, self._replan, self._hears, self._shared = ledger, replan, hears, shared
        self._lock = Lock()
        self._read = 0
        self._reserved: dict[int, Written] = {}
        self._known: dict[int, StoredAnswer] = {}
        self._keys: dict[str, list[StoredAnswer]] = {}
        self._asked: dict[str, list[StoredAnswer]] = {}
        self._frames: dict[str, list[StoredAnswer]] = {}
        self._cells: dict[str, dict[tuple[str, ...], dict[str, list[StoredAnswer]]]] = {}
        self._numbers: dict[tuple[str, str], _Numbers] = {}
        self._looks: dict[int, list[tuple[str, Cells | None]]] = {}
        self._together: dict[str, list[list[tuple[int, int]]]] = {}
        self._plans: OrderedDict[str, tuple[Plan, Rows | None]] = OrderedDict()

    # what was written since

    def read(self) -> None:
        """Takes in what was written since."""
        with self._lock:
            last, entries = self._ledger.written_after(self._read)
            for one in entries:
                if one.kind == "reserve":
                    self._reserved[one.reserve] = one
                elif one.kind == "commit":
                    self._add(one)
                elif one.reserve in self._known:
                    if one.account is not None:
                        self._of("account", one.account).add(one.reserve)
                    if (look := _look(one.request or "")) is not None:
                        self._looks[one.reserve].append(look)
                        for name, parts in _parts(one.request or "").items():
                            self._together.setdefault(name, []).append(parts)
            self._read = last

    def _add(self, commit: Written) -> None:
        self._hears(commit.key)
        of = self._reserved.pop(commit.reserve, None)
        found = None if of is None else _parsed(commit, of.analyst)
        if of is None or found is None:
            return
        self._known[found.reserve] = found
        self._looks[found.reserve] = [("first", found.first)]
        self._keys.setdefault(found.key, []).append(found)
        self._frames.setdefault(found.key.partition(" ")[0] + " ", []).append(found)
        if found.asked:
            self._asked.setdefault(found.asked, []).append(found)
        if found.base:
            by_columns = self._cells.setdefault(found.base, {}).setdefault(found.columns, {})
            by_columns.setdefault(found.rest, []).append(found)
        self._of("all", "").add(found.reserve)
        self._of("analyst", of.analyst).add(found.reserve)
        if of.account is not None:
            self._of("account", of.account).add(found.reserve)

    def _of(self, kind: str, name: str) -> _Numbers:
        return self._numbers.setdefault((kind, name), _Numbers())

    # who may use what

    def _usable(self, account: str) -> Mapping[int, int]:
        """The stored answers that may answer other questions of somebody, each with its number."""
        if account != TOTAL and self._ledger.has_account(account):
            return self._of("account", account).places
        return self._of("all", "").places if self._shared else self._of("analyst", account).places

    def exact(self, question: Sought, account: str) -> FoundAnswer | None:
        """The stored answer to this very question that costs whoever asks nothing; to the same measurement, or to the
        same question of which more was measured."""
        with self._lock:
            usable = self._usable(account)
            known = next((one for one in self._keys.get(question.key, ()) if one.reserve in usable), None)
            known = None if known is None else self._given(known, account)
            if known is not None and not known.asked:
                return FoundAnswer(question.key, ReusableMeasurement.whole(question.priced))
            if (made := self._once_more(question, usable, account)) is not None:
                return made
            more = next((one for one in self._asked.get(question.key, ()) if one.reserve in usable), known)
            return None if more is None else self.repeated(more, question, account)

    def retried(self, question: Sought, key: str, account: str) -> FoundAnswer | None:
        """What a request got for this very question, whose entry names this key of a stored answer; None where the
        request belongs to another question, or has no answer."""
        with self._lock:
            made = self._once_more(question, self._usable(account), account)
            if made is not None and made.key == key:
                return made
        one = self.of_key(key, question.key)
        if one is not None and one.key == question.key and not one.asked:
            return FoundAnswer(question.key, ReusableMeasurement.whole(question.priced))
        found = None if one is None else self.repeated(one, question, account) or self._same(one, question, account)
        if one is not None and found is not None and one.others and one.asked != question.key:
            look = None if found.look is None else _look(found.look)
            known = {name for name, _ in self._looks[one.reserve]}
            return found if look is not None and look[0] in known else None  # else less was bought than is asked for
        return found

    def asked(self, frame: str, account: str) -> dict[str, Price]:
        """Of questions of which more was measured, whose keys begin so: their keys, and their prices."""
        with self._lock:
            usable = self._usable(account)
            return {
                key: one.price_of_question
                for key, found in self._asked.items()
                if key.startswith(frame)
                for one in found
                if one.reserve in usable
            }

    def of_key(self, key: str, asked: str = "") -> StoredAnswer | None:
        """The first stored answer of this key; one that was bought for the question of the key `asked`, if there is
        one."""
        with self._lock:
            known = self._keys.get(key, [])
            return next((one for one in known if asked and one.asked == asked), next(iter(known), None))

    def _given(self, one: StoredAnswer, account: str) -> StoredAnswer:
        """Of stored answers of one key, that which the ledger gives whoever asks: the first that his own account was
        debited for, else the first. There are several where processes measured the same at the same time."""
        alike = self._keys[one.key]
        mine = self._of("account", account).places if self._ledger.has_account(account) else {}
        return next((other for other in alike if other.reserve in mine), alike[0])

    # what answers a question

    def repeated(self, one: StoredAnswer, question: Sought, account: str) -> FoundAnswer | None:
        """A question answered from this stored measurement, whatever its precision: a retry, or a measurement that
        others have bought. None where it lacks what is asked."""
        with self._lock:
            if one.others and question.key == one.asked:
                return self._combined(one, question, account)
            one = self._given(one, account)
            known = self._measurement(one)
            if known is None:
                return None
            names = [output.name for output in question.priced.plan.outputs]
            held = self._added_up(question, one, known, names)
            if held is None or question.key == (one.asked or one.key):
                return None if held is None else FoundAnswer(one.key, held)
            return self._seen(one, question, held, account)

    def _same(self, one: StoredAnswer, question: Sought, account: str) -> FoundAnswer | None:
        """A question answered from this stored measurement of the same rows and groups, as `found` answers it."""
        with self._lock:
            known = self._measurement(one)
            held = None if known is None or not one.key.startswith(question.frame) else _reused(question, known)
            return None if held is None else self._seen(one, question, held, account)

    def _seen(self, one: StoredAnswer, question: Sought, held: ReusableMeasurement, account: str) -> FoundAnswer:
        """An answer that shows cells of a stored measurement: with the interval of an independent number where it is
        the first look at these cells, now or when it was asked before, at whatever price."""
        one = self._given(one, account)
        cells = None if held.union is None else _bits(held.union)
        text = "all" if cells is None else _written(cells)
        name = digest(one.key, shape(question.priced.plan), text)
        if (
            not one.asked and held.asked is not None and shape(held.asked) == one.shape
        ):  # the very numbers that were shown when it was measured
            return FoundAnswer(one.key, held, None, f"{_LOOK} {name} {text}")
        if text != "all":
            for look, seen in self._looks[one.reserve]:
                if not _apart(cells, seen) and look != f"{name}{_NOT_YET}":
                    if look == name:
                        return FoundAnswer(one.key, held, None, f"{_LOOK} {name} {text}")
                    break
            else:
                return FoundAnswer(one.key, held, None, f"{_LOOK} {name} {text}")
        number = self._usable(account).get(one.reserve)
        release = chosen.release(self._of("all", "").places[one.reserve] if number is None else number)
        return FoundAnswer(one.key, held, release, f"{_LOOK} {name} {text}")

    def _combined(self, one: StoredAnswer, question: Sought, account: str) -> FoundAnswer | None:
        """The answer that was made of what was bought for a question and of others, once more. Whoever has an account
        of his own must have paid for all of them."""
        usable = self._usable(account)
        if self._ledger.has_account(account) and not {one.reserve, *(reserve for reserve, _ in one.others)} <= {
            *usable
        }:
            return None
        components = [self._component(question, self._known.get(reserve), "") for reserve, _ in one.others]
        bought = self._component(question, one, "")
        if bought is None or not all(components):
            return None
        others = tuple(other for other in components if other is not None)
        weights = [weight for _, weight in one.others]
        held = (bought.held, *(other.held for other in others))
        made = CombinedMeasurement(question.priced, held, (WHOLE - sum(weights), *weights))
        return FoundAnswer(one.key, made, None, None, one.reserve, others)

    def _once_more(self, question: Sought, usable: Mapping[int, int], account: str) -> FoundAnswer | None:
        """The answer that was put together of stored ones alone for this very question, if it was: the first one that
        was put together of such as answer whoever asks."""
        for parts in self._together.get(_together(question), []):
            known = [self._known.get(reserve) for reserve, _ in parts if reserve in usable]
            used = [
                self._component(question, one, "" if one is None else _name(question, one, account)) for one in known
            ]
            components = tuple(one for one in used if one is not None)
            if len(components) == len(parts):
                held, weights = tuple(one.held for one in components), tuple(weight for _, weight in parts)
                return put_together(question, components, CombinedMeasurement(question.priced, held, weights))
        return None

    def _component(self, question: Sought, one: StoredAnswer | None, name: str) -> Component | None:
        """What a stored answer holds of a question, whatever its precision."""
        known = None if one is None else self._measurement(one)
        if one is None or known is None:
            return None
        held = self._added_up(question, one, known, [output.name for output in question.priced.plan.outputs])
        if held is None or held.union is None:
            return None
        return Component(one.key, one.reserve, held, f"{_LOOK} {name} {_written(_bits(held.union))}")

    def unseen(self, question: Sought, account: str) -> list[Component]:
        """Stored answers that hold what is asked with any error, and of whose cells nobody has seen anything. What was
        marked for this very question, and has no answer yet, counts as unseen only where nobody saw more since."""
        with self._lock:
            found: list[Component] = []
            shown = {reserve for parts in self._together.get(_together(question), ()) for reserve, _ in parts}
            shown |= {reserve for one in self._asked.get(question.key, ()) for reserve, _ in one.others}
            for one in self._candidates(question, self._usable(account), of_each=MOST_TRIED):
                name = _name(question, one, account)
                known = self._component(question, one, name) if self._given(one, account) is one else None
                if known is None or known.look.endswith(" all"):
                    continue
                cells = _bits(known.held.union) if known.held.union is not None else None
                own = "" if one.reserve in shown else name
                if all(look == own or _apart(cells, seen) for look, seen in self._looks[one.reserve]):
                    found.append(known)
            return found

    def found(
        self,
        question: Sought,
        account: str,
        free: Collection[str] = (),
        fits: Callable[[FoundAnswer], bool] = lambda _: True,
    ) -> FoundAnswer | None:
        """A question answered from what was measured for another one, at least as precisely as its own price would,
        and as precisely as `fits` wants; errors of the columns that are `free` are judged by that alone."""
        with self._lock:
            usable = self._usable(account)
            best: tuple[float, FoundAnswer] | None = None
            for one in self._candidates(question, usable):
                known = self._measurement(one)
                if known is None:
                    continue
                held = self._added_up(question, one, known, free)
                if held is None and one.key.startswith(question.frame):
                    held = _reused(question, known)
                if held is None:
                    continue
                found = self._seen(one, question, held, account)
                if found.release is not None and held.share(1) * found.release <= chosen.SMALLEST:
                    continue
                if fits(found):
                    error = _error(found)
                    if best is None or error < best[0]:
                        best = error, found
            return None if best is None else best[1]

    def _candidates(self, question: Sought, usable: Mapping[int, int], of_each: int = 1) -> Iterator[StoredAnswer]:
        """Of each shape of stored measurement that may hold what is asked, the dearest `of_each` δ; few enough to
        try."""
        tried: Counter[tuple[str, Fraction, bool]] = Counter()
        lists = [self._frames.get(question.frame, ())]
        mine = question.rows
        for columns, by_rest in self._cells.get(question.base, {}).items() if mine is not None else ():
            assert mine is not None
            if set(mine.columns) <= set(columns):
                lists.append(by_rest.get(digest(*mine.rest(columns)), ()))
        for known in lists:
            for one in sorted(known, key=lambda one: (-one.price.epsilon, one.reserve)):
                alike = one.shape, one.price.delta, one.price.gaussian
                if one.reserve in usable and tried[alike] < of_each:
                    tried[alike] += 1
                    yield one
                    if tried.total() >= MOST_TRIED:
                        return

    def _added_up(
        self, question: Sought, one: StoredAnswer, known: Measurement, free: Collection[str]
    ) -> ReusableMeasurement | None:
        mine, theirs = question.rows, self._plans[one.shape][1]
        if mine is None or theirs is None or one.base != question.base:
            return None
        cells = union(mine, theirs, question.columns)
        return None if cells is None else added_up(question.priced, known, cells, question.table, free)

    def _measurement(self, one: StoredAnswer) -> Measurement | None:
        """The measurement of a stored answer, planned anew from its question; None where that is no longer the same."""
        if one.shape not in self._plans:
            text = self._ledger.question(one.reserve, one.key)
            planned = self._replan(text, one.price, one.analyst)
            plan = None if planned is None else _of_shape(one, *planned)
            if planned is None or plan is None:
                return None
            self.remember(plan, planned[1])
        self._plans.move_to_end(one.shape)
        return measurement(self._plans[one.shape][0], one.price)

    def remember(self, plan: Plan, table: Table) -> None:
        """Keeps a plan, so that it is not planned again where its answer may hold another question's."""
        with self._lock:
            self._plans[shape(plan)] = plan, rows(plan, {column.name: column for column in table.columns})
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)


def _of_shape(one: StoredAnswer, planned: Plan, table: Table) -> Plan | None:
    """What a stored answer measured: its question at the limits that are best now or were before, or more than that."""
    plans = planned.all_at(one.price)
    found = next((plan for plan in plans if shape(plan) == one.shape), None)
    if found is not None:
        return found
    more = (whole(measurement(plan, one.price), table) for plan in plans)
    return next((each.plan for each in more if each is not None and shape(each.plan) == one.shape), None)


def _reused(question: Sought, known: Measurement) -> ReusableMeasurement | None:
    """A question answered from a measurement of the same rows and groups: at its own limits, or at those that are best
    at the price of the stored one, or were before."""
    asked = question.priced
    for plan in (asked.plan, *(asked.plan.at(known.price) if asked.plan.at is not None else ())):
        held = reused(asked if plan is asked.plan else measurement(plan, asked.price), known, question.table)
        if held is not None:
            return held
    return None


def holds(more: Measurement, asked: Sought) -> bool:
    """Whether a measurement of all cells holds what is asked of one, as precisely."""
    cells = cells_of(asked, more)
    return cells is not None and cells.cells == 1 and added_up(asked.priced, more, cells, asked.table) is not None


def _error(found: FoundAnswer) -> float:
    """By what stored measurements are compared that all are precise enough: the logarithms of the printed errors."""
    miss = (1 - CONFIDENCE) * (found.share(1) or 1)
    return sum(math.log(max(error, 1e-300)) for error in expected_errors(found.held.made, miss).values())


def _look(request: str) -> tuple[str, Cells | None] | None:
    """A look that the ledger remembers by this request; None where somebody named the request himself. What an answer
    shows that has no look, it has shown when it was measured."""
    begins, _, rest = request.partition(" ")
    name, _, cells = rest.partition(" ")
    return (name, _read(cells.partition(" ")[0])) if begins == _LOOK else None


def _parts(request: str) -> dict[str, list[tuple[int, int]]]:
    """What such a look says of an answer that is put together: its name, and the reserves with their weights."""
    words = request.split(" ")
    if len(words) != 5:
        return {}
    pairs = [one.split(":") for one in words[4].split(",")]
    return {words[3]: [(int(reserve), int(weight)) for reserve, weight in pairs]}


def _parsed(commit: Written, analyst: str) -> StoredAnswer | None:
    """A stored answer by its first bytes; None where it is no question's, or an older version's."""
    text = commit.begins.decode(errors="ignore")
    head, _, more = text.partition(', "keys": ')
    if not text.startswith('{"cells": ') or not more:
        return None
    try:
        found = json.loads(head + "}")
        epsilon, delta, gaussian = found["price"]
        price = Price(Fraction(epsilon), Fraction(delta), bool(gaussian))
        what, asked, *cells = found["cells"]
        made = StoredAnswer(commit.key, commit.reserve, analyst, price, what, asked)
        if cells:
            rows_of, columns, rest, first, *combination = cells
            shown = None if first is None else _read(first)
            made = StoredAnswer(
                commit.key, commit.reserve, analyst, price, what, asked, rows_of, tuple(columns), rest, shown
            )
            if combination:
                ((epsilon, delta, gaussian), others) = combination[0]
                named = Price(Fraction(epsilon), Fraction(delta), bool(gaussian))
                made = replace(made, named=named, others=tuple((int(one), int(weight)) for one, weight in others))
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
    return made
