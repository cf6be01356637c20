"""Publishing as a subject: finished releases of neighbouring tables, and a distinguisher who reads nothing else.

A crowd has what is common; its neighbour is the crowd and one person who has what is rare, with more rows than are
allowed. A release is made by all that `Curator.publish` runs, through engine, door and run, but for a ledger that
admits everything. Half of the releases are with the person, and whoever knows both tables guesses which.

A batch charges each step for itself, and a guess is made of
what the release says of one step: fresh noise on numbers that both tables are known to have there, whatever came
before. A release may hold several guesses: right code has noise of its own for each, so they are independent. There
is one subject of a whole release too, by all that it measures and for all that it is charged.
"""

from __future__ import annotations

import itertools
import json
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, cast

import numpy as np

from discreet.audit.attack import Paper
from discreet.audit.claims import Claim
from discreet.audit.made_up import Record, Stage
from discreet.audit.targets import GuessedAttack, Guesses, Late
from discreet.catalog import Budget, declare
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Threshold
from discreet.release.content import ReleaseContent
from discreet.release.told import ToldBalance
from discreet.synthesis import run, several_run
from discreet.synthesis.bounds import DISTANCE
from discreet.synthesis.cells import NoisyHistogram, refined
from discreet.synthesis.columns import BINS
from discreet.synthesis.packed import unpack
from discreet.synthesis.prefixes import FoundPrefixes
from discreet.synthesis.publication import Publication, PublishOptions, publication
from discreet.synthesis.several import SeveralPublication, several
from discreet.synthesis.synthetic import Synthetic
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_c.coding import Binned
from discreet.trusted.ring_c.marginals import Declaring, DeclaringSeveral, Marginals

BUDGET = Budget(Fraction(10**9), Fraction(4, 5), Fraction(2, 5))
DELTA = Fraction(1, 1000)
OVER = 3
"""By how many rows the person is above what is allowed."""

COMMON, RARE = "common", "rare"
Call = Publication | SeveralPublication
World = Mapping[str, Sequence[Record]]


@dataclass(frozen=True)
class Subject:
    """A publication of neighbouring made-up tables: the call, whose rows it is about, and both worlds."""

    stage: Stage
    declared: Mapping[str, Any]
    """What is declared of each table, without its source."""
    said: Mapping[str, Any]
    worlds: tuple[World, World]
    ends: list[Callable[[], None]] = field(default_factory=list)

    @cached_property
    def call(self) -> Call:
        return checked(self.declared, self.said)

    @cached_property
    def _doors(self) -> tuple[Door, Door]:
        one, two = (self._door(world) for world in self.worlds)
        return one, two

    def _door(self, world: World) -> Door:
        tables = _known(self.declared).tables
        loaded = [self.stage.write(tables[name], rows) for name, rows in world.items()]
        engine = self.stage.beside(loaded)
        self.ends.append(engine.close)
        return Door(cast(Ledger, Paper()), engine, tables.values())

    def attacked(
        self,
        name: str,
        claim: Claim,
        ways: Mapping[str, Callable[[Any], Guesses]],
        guesses: int,
        *,
        each: int = 1,
        ranged: bool = False,
    ) -> GuessedAttack:
        """The attack on one of its steps, with about so many guesses, of which a release holds about `each`."""
        draws = 2 * -(-guesses // (2 * each))  # half on each neighbour
        return GuessedAttack(f"publishing: {name}", claim, self.release, ways, draws, ranged, self.close)

    def close(self) -> None:
        """Ends its engines."""
        for end in self.ends:
            end()

    def release(self, there: bool) -> dict[str, Any]:
        """A finished release, as whoever it is given to reads it."""
        found: dict[str, Any] = json.loads(self.made(there).to_json())
        return found

    def made(self, there: bool) -> ReleaseContent:
        """A finished release."""
        call, door = self.call, self._doors[there]
        made, _ = run.carried_out(
            door,
            Declaring(call.table, call.declared)
            if isinstance(call, Publication)
            else DeclaringSeveral(call.read, call.declared),
            lambda marginals: _published(call, marginals),
            analyst="audit",
            question=call.question,
            key="made up",
            request=None,
            rows=None,
        )
        return made


def _published(call: Call, marginals: Marginals) -> ReleaseContent:
    if isinstance(call, Publication):
        return run.published(call, marginals, nullcontext, lambda _: None)
    return several_run.published(call, marginals, nullcontext, lambda _: None)


def _known(declared: Mapping[str, Any]) -> Any:
    tables = {name: {"source": "nowhere.csv", **one} for name, one in declared.items()}
    return replace(declare({"budget": {"epsilon": 1, "delta": 0.1}, "tables": tables}), budget=BUDGET)


def checked(declared: Mapping[str, Any], said: Mapping[str, Any]) -> Call:
    """The call that publishes what is declared: of one table, or of all together."""
    known = _known(declared)
    if len(declared) > 1:
        return several(known, list(declared), said["epsilon"], DELTA)
    return publication(known, PublishOptions(table=next(iter(declared)), delta=DELTA, **said))


# what a release says of one step


def noisy_counts(release: Mapping[str, Any], columns: Sequence[str]) -> Any:
    """The noisy counts of a marginal as it was measured first."""
    for one in release["measured"]:
        if one["columns"] == list(columns):
            return unpack(one["counts"])
    raise ValueError("it was not measured")


def rare_place(release: Mapping[str, Any], columns: Sequence[str]) -> tuple[int, ...]:
    """The cell of the person's values."""
    return tuple(release["domain"][name].index(RARE) for name in columns)


def rare_count(release: Mapping[str, Any], columns: Sequence[str]) -> int:
    """How often the person's values were counted, with noise. Of the crowd nobody has them."""
    return int(noisy_counts(release, columns)[rare_place(release, columns)])


Numbers = Callable[[Mapping[str, Any]], Sequence[float]]
"""Of each of several numbers, how far it lies above what it would be without the person."""


def above(numbers: Numbers) -> dict[str, Callable[[Any], Guesses]]:
    """Guesses by numbers that a person moves by 1, or by more where something is wrong."""
    return {
        "at least 1": lambda release: [one > 0.5 for one in numbers(release)],
        "at least 2": lambda release: [one > 1.5 for one in numbers(release)],
    }


def gaussian(sigma: Fraction, moved: int = 1) -> Claim:
    """What a step with noise of this deviation claims of a person who moves it by so much."""
    return Claim.of(Gaussian(sigma).loss(moved**2))


# the steps

_LISTED: dict[str, Any] = {"type": "text", "values": [COMMON, RARE], "nulls": False}
_CROWD = 12
_ALONE: dict[str, Any] = {"method": "independent", "workload": [["column 0"]]}
"""Columns alone, and the distance of one: nothing is asked of the engine that no guess is about."""
PERSON, LIMITED = "who", {"person": "who", "rows_per_person": 1}


def _declared(columns: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A table of which one row of a person counts."""
    return {"t": {**LIMITED, "columns": {PERSON: {"type": "text"}, **columns}, **more}}


def _beside(
    stage: Stage, declared: Mapping[str, Any], said: Mapping[str, Any], crowd: list[Record], person: list[Record]
) -> Subject:
    """A crowd, and its neighbour with the person's rows too."""
    return Subject(stage, declared, said, ({"t": crowd}, {"t": crowd + person}))


def _of_one(stage: Stage, columns: Mapping[str, Any], said: Mapping[str, Any], common: Any, rare: Any) -> Subject:
    """A table of a crowd that has the common value in every column, and of a person who has the rare one."""
    declared = _declared(columns)
    crowd = [{PERSON: f"nobody {one}", **dict.fromkeys(columns, common)} for one in range(_CROWD)]
    person = [{PERSON: "somebody", **dict.fromkeys(columns, rare)}] * (1 + OVER)
    return _beside(stage, declared, said, crowd, person)


def _named(columns: int, kind: Mapping[str, Any]) -> dict[str, Any]:
    return {f"column {one}": kind for one in range(columns)}


def _single(subject: Subject) -> Publication:
    assert isinstance(subject.call, Publication)
    return subject.call


def found_values(stage: Stage, guesses: int) -> GuessedAttack:
    """Values that as many persons share as make it a toss-up whether they are found, and one more."""
    columns = _named(6, {"type": "text"})
    declared = _declared(columns)
    said = {"epsilon": 60, **_ALONE}
    call = checked(declared, said)
    assert isinstance(call, Publication)
    (mechanism,) = {one.parts[0].mechanism for one in call.finders.values()}
    assert isinstance(mechanism, Threshold)
    assert isinstance(mechanism.noise, Gaussian)
    shared = dict.fromkeys(columns, RARE)
    crowd = [{PERSON: f"nobody {one}", **shared} for one in range(mechanism.threshold - 1)]
    person = [{PERSON: "somebody", **shared}] * (1 + OVER)
    subject = _beside(stage, declared, said, crowd, person)

    claim = replace(gaussian(mechanism.noise.sigma), delta=float(mechanism.delta))
    return subject.attacked("found values", claim, _shown(columns), guesses, each=len(columns))


def lone_values(stage: Stage, guesses: int) -> GuessedAttack:
    """Values that nobody else has are found with a probability of δ."""
    columns = _named(6, {"type": "text"})
    subject = _of_one(stage, columns, {"epsilon": 60, **_ALONE}, COMMON, RARE)
    delta = max(float(one.loss.keys_delta) for one in _single(subject).finders.values())
    return subject.attacked("lone values", Claim(0.0, delta, 0.0), _shown(columns), guesses, each=len(columns))


def _shown(columns: Iterable[str], value: str = RARE) -> dict[str, Callable[[Any], Guesses]]:
    """Guesses by whether a value was found in each column."""
    return {"found": lambda release: [value in release["domain"].get(name, ()) for name in columns]}


def prefixes(stage: Stage, guesses: int) -> GuessedAttack:
    """First letters that as many rows share as make it a toss-up whether they are told from noise, and one more."""
    columns = _named(6, {"type": "text", "length": 2})
    declared = _declared(columns)
    said = {"epsilon": 120, **_ALONE}
    call = checked(declared, said)
    assert isinstance(call, Publication)
    first = FoundPrefixes(call.columns[0].column, (), float(call.look_sigma))
    cells = len(first.looked_at(0).prefixes)
    told = next(many for many in itertools.count(1) if first.after(0, [many] * cells).counts)
    letters = string.ascii_lowercase[:_CROWD]
    crowd = [{PERSON: f"nobody {one}", **dict.fromkeys(columns, COMMON[0] + one)} for one in letters]
    crowd += [{PERSON: f"no {one}", **dict.fromkeys(columns, RARE[0] + one)} for one in letters[: told - 1]]
    person = [{PERSON: "somebody", **dict.fromkeys(columns, RARE[0] + "z")}] * (1 + OVER)
    subject = _beside(stage, declared, said, crowd, person)

    ways = _shown(columns, f"{RARE[0]}*")
    return subject.attacked("prefixes", gaussian(call.look_sigma), ways, guesses, each=len(columns))


def first_looks(stage: Stage, guesses: int) -> GuessedAttack:
    """The first look at each column of numbers: whether the next is finer where as many rows are as make that a
    toss-up, and one more."""
    columns = _named(6, {"type": "integer", "min": 0, "max": 999, "nulls": False})
    declared = _declared(columns)
    said = {"epsilon": 120, **_ALONE}
    call = checked(declared, said)
    assert isinstance(call, Publication)
    (line, *_), (coded, *_) = zip(*((one.line, one.coded) for one in call.columns), strict=True)
    assert line is not None
    assert isinstance(coded, Binned)
    cuts = tuple(map(line.place, coded.cuts))
    low, high = cuts[-2:]  # the last cell but one

    def finer(cuts: Iterable[Fraction]) -> bool:
        return any(low < cut < high for cut in cuts)

    def after(many: int) -> Iterable[Fraction]:
        counts = (_CROWD, *[0] * (len(cuts) - 2), many, 0)
        return refined(NoisyHistogram(line, cuts, counts, float(call.look_sigma)), BINS)

    divided = next(many for many in itertools.count(1) if finer(after(many)))
    crowd = [
        {PERSON: f"nobody {one}", **dict.fromkeys(columns, "10" if one < _CROWD else "900")}
        for one in range(_CROWD + divided - 1)
    ]
    person = [{PERSON: "somebody", **dict.fromkeys(columns, "900")}] * (1 + OVER)
    subject = _beside(stage, declared, said, crowd, person)

    def seen(release: Mapping[str, Any]) -> Guesses:
        looks = [release["start"]["cells"][name]["look"] for name in columns]
        return [finer(map(Fraction, look["cuts"])) for look in looks]

    claim, ways = gaussian(call.look_sigma), {"finer": seen}
    return subject.attacked("first looks", claim, ways, guesses, each=len(columns))


def fine_looks(stage: Stage, guesses: int) -> GuessedAttack:
    """The last look at each column of numbers, where nobody else's number is near."""
    columns = _named(6, {"type": "integer", "min": 0, "max": 999, "nulls": False})
    subject = _of_one(stage, columns, {"epsilon": 120, **_ALONE}, "100", "900")

    def seen(release: Mapping[str, Any]) -> list[float]:
        looks = [release["start"]["cells"][name]["look"] for name in columns]
        return [look["counts"][sum(Fraction(cut) <= 900 for cut in look["cuts"])] for look in looks]

    claim = gaussian(_single(subject).look_sigma)
    return subject.attacked("fine looks", claim, above(seen), guesses, each=len(columns))


def single_columns(stage: Stage, guesses: int) -> GuessedAttack:
    """The counts of single columns."""
    columns = _named(6, _LISTED)
    subject = _of_one(stage, columns, {"epsilon": 28, **_ALONE}, COMMON, RARE)

    def counted(release: Mapping[str, Any]) -> list[float]:
        return [rare_count(release, [name]) for name in columns]

    claim = gaussian(_single(subject).schedule.single_sigma)
    return subject.attacked("single columns", claim, above(counted), guesses, each=len(columns))


def measured_pairs(stage: Stage, guesses: int) -> GuessedAttack:
    """The counts of pairs, whichever were chosen."""
    columns = _named(5, _LISTED)
    subject = _of_one(stage, columns, {"epsilon": 26, **_ALONE, "method": "mst"}, COMMON, RARE)

    def counted(release: Mapping[str, Any]) -> list[float]:
        pairs = [one["columns"] for one in release["measured"] if len(one["columns"]) == 2]
        return [rare_count(release, pair) for pair in pairs]

    (sigma,) = {one.sigma for one in _single(subject).schedule.rounds}
    return subject.attacked("measured pairs", gaussian(sigma), above(counted), guesses, each=len(columns) - 1)


def distances(stage: Stage, guesses: int) -> GuessedAttack:
    """How far one row, taken for all, is from the table, as the bound of its error says it."""
    values = [COMMON, RARE, *map(str, range(10))]
    columns = {"column": {**_LISTED, "values": values}}
    subject = _of_one(stage, columns, {"epsilon": 80, "method": "independent", "rows": 1}, COMMON, RARE)
    schedule = _single(subject).schedule
    nothing = _above_distance(schedule.distance_sigma)

    def further(release: Mapping[str, Any]) -> list[float]:
        (bound,) = release["marginals"]
        made = np.rint(unpack(release["cells"]["column"]) * release["total"]).astype(int)
        exact = np.zeros(len(made), int)
        exact[release["domain"]["column"].index(COMMON)] = _CROWD
        # another bound is said where it is smaller: then the noisy distance is large
        noisy = bound["rows"] - nothing if bound["by"] == "distance" else math.inf
        without = int(np.abs(exact - made).sum())
        closer = made[release["domain"]["column"].index(RARE)] > 0
        return [without - noisy if closer else noisy - without]

    return subject.attacked("distances", gaussian(schedule.distance_sigma), above(further), guesses)


def _above_distance(sigma: Fraction) -> float:
    """What stands above a noisy distance in a bound at 95 %."""
    return NormalDist().inv_cdf(1 - DISTANCE * 0.05) * float(sigma) + 0.5


_CELLS = np.array([[[3, 0], [3, 3]], [[2, 5], [2, 1]]])
"""How many of a crowd are in each cell of three columns."""
_CELLS_ALIKE = np.array([[[3, 0], [0, 2]], [[0, 2], [2, 0]]])
"""How many of these have the rare value in two further columns, which say the same."""


def chosen_pair(stage: Stage, guesses: int) -> GuessedAttack:
    """Which of two pairs is measured first, where a person makes the one more worth it and the other less.

    Single columns are public totals: so it is public what every pair is expected to hold, 5 rows in each cell, and
    nothing but the choice tells of the person. The first pair is off by 7 rows and the second by 5, and two rows of the
    person, as many as are allowed, change that to 5 and 7: a toss-up that leans to either side by half of the ε."""
    return _chosen(stage, guesses, "chosen pair", 100, 0)


def later_choice(stage: Stage, guesses: int) -> GuessedAttack:
    """Which of the same pairs is measured second: after that of two columns more, which say the same, so that it is off
    by 19 rows or 21. Every other pair is off by 3 at most."""
    return _chosen(stage, guesses, "later choice", 185, 1)


def _chosen(stage: Stage, guesses: int, name: str, epsilon: int, place: int) -> GuessedAttack:
    """The attack on the choice at this place, with two columns that say the same if it is not the first."""
    columns = _named(5 if place else 3, _LISTED)
    first, _, third = list(columns)[:3]
    totals = [{"by": [name], "counts": {COMMON: 10, RARE: 10}} for name in columns]
    declared = _declared(columns, rows_per_person=2, totals=totals)
    crowd: list[Record] = []
    for cell, many in np.ndenumerate(_CELLS):
        for one in range(many):
            places = (*cell, *[int(one < _CELLS_ALIKE[cell])] * 2)
            values = {name: (COMMON, RARE)[place] for name, place in zip(columns, places, strict=False)}
            crowd.append({PERSON: f"nobody {cell} {one}", **values})
    person = [{PERSON: "somebody", **dict.fromkeys(columns, RARE)}] * (2 + OVER)
    said = {"epsilon": epsilon, "method": "mst", "workload": [[first, third]]}
    subject = _beside(stage, declared, said, crowd, person)

    def chosen(release: Mapping[str, Any]) -> Guesses:
        return [release["measured"][place]["columns"] == [first, third]]

    (epsilon_of_choice,) = {one.selection for one in _single(subject).schedule.rounds}
    return subject.attacked(name, Claim(float(epsilon_of_choice)), {"the pair": chosen}, guesses, ranged=True)


def several_tables(stage: Stage, guesses: int) -> GuessedAttack:
    """Rows below rows, whose weights say how much each person counts."""
    columns = _named(2, _LISTED)
    declared = {
        "people": {"person": PERSON, "one_row_per_person": True, "columns": {PERSON: {"type": "text"}, "own": _LISTED}},
        "visits": {"person": PERSON, "rows_per_person": 4, "columns": {PERSON: {"type": "text"}, **columns}},
    }
    people = [{PERSON: f"nobody {one}", "own": COMMON} for one in range(_CROWD)]
    visits = [{PERSON: one[PERSON], **dict.fromkeys(columns, COMMON)} for one in people]
    person = [{PERSON: "somebody", **dict.fromkeys(columns, RARE)}] * (4 + OVER)
    worlds = (
        {"people": people, "visits": visits},
        {"people": [*people, {PERSON: "somebody", "own": RARE}], "visits": visits + person},
    )
    subject = Subject(stage, declared, {"epsilon": 50}, worlds)
    assert isinstance(subject.call, SeveralPublication)
    schedule = subject.call.each[1].schedule

    def counted(release: Mapping[str, Any]) -> list[float]:
        table = release["tables"]["visits"]
        return [rare_count(table, [name]) for name in columns]

    claim = gaussian(schedule.single_sigma, schedule.moved)
    return subject.attacked("several tables", claim, above(counted), guesses, each=len(columns))


def rows_in_time(stage: Stage, guesses: int) -> GuessedAttack:
    """Rows that follow one another: what stands beside a person's rows, and beside those of others."""
    values = {**_LISTED, "values": [COMMON, "other", RARE]}
    columns = {"day": {"type": "integer", "min": 0, "max": 31, "nulls": False}, "column": values}
    most = 40
    declared = {
        "people": {"person": PERSON, "one_row_per_person": True, "columns": {PERSON: {"type": "text"}, "own": _LISTED}},
        "visits": {
            "person": PERSON,
            "rows_per_person": most,
            "time": "day",
            "columns": {PERSON: {"type": "text"}, **columns},
        },
    }
    people = [{PERSON: f"nobody {one}", "own": COMMON} for one in range(8)]
    visits = [
        {PERSON: f"nobody {one}", "day": str(4 * one + later), "column": (COMMON, "other")[one % 2]}
        for one in range(8)
        for later in (1, 3)
    ]
    person = [{PERSON: "somebody", "day": str(2 * one % 32), "column": RARE} for one in range(most + OVER)]
    worlds = (
        {"people": people, "visits": visits},
        {"people": [*people, {PERSON: "somebody", "own": RARE}], "visits": visits + person},
    )
    subject = Subject(stage, declared, {"epsilon": 80}, worlds)
    assert isinstance(subject.call, SeveralPublication)
    schedule, pair = subject.call.each[1].schedule, ["column", "column before"]

    def beside(release: Mapping[str, Any], own: str) -> list[float]:
        """How often the person's value stands before this one, in each marginal of both."""
        table = release["tables"]["visits"]
        place = tuple(table["domain"][name].index(value) for name, value in zip(pair, (own, RARE), strict=True))
        return [float(unpack(one["counts"])[place]) for one in table["measured"] if one["columns"] == pair]

    ways = {
        f"{whose}: {name}": way
        for whose, own in {"the person's": RARE, "another's": COMMON}.items()
        for name, way in above(partial(beside, own=own)).items()
    }
    (sigma,) = {one.sigma for one in schedule.rounds}
    # of the two marginals that could hold the pair, a release has one or both
    return subject.attacked("rows in time", gaussian(sigma, schedule.moved), ways, guesses)


def continued(stage: Stage, guesses: int) -> GuessedAttack:
    """A release that continues an earlier one, of the crowd alone: what is measured anew."""
    columns = _named(6, _LISTED)
    said = {"workload": [["column 0"]]}
    before = _of_one(stage, columns, {"epsilon": 20, **said}, COMMON, RARE)
    try:
        made = before.made(False)
    finally:
        before.close()
    like = Synthetic(made, made.cost, ToldBalance(0, "", 0), None)
    subject = _of_one(stage, columns, {"epsilon": 120, **said, "like": like}, COMMON, RARE)

    def counted(release: Mapping[str, Any]) -> list[float]:
        return [rare_count(release, [name]) for name in columns]

    claim = gaussian(_single(subject).schedule.single_sigma)
    return subject.attacked("continued", claim, above(counted), guesses, each=len(columns))


def whole(stage: Stage, guesses: int) -> GuessedAttack:
    """A whole release, by all of its counts, for all that it is charged."""
    columns = _named(3, _LISTED)
    subject = _of_one(stage, columns, {"epsilon": 8, **_ALONE}, COMMON, RARE)

    def counted(release: Mapping[str, Any]) -> list[float]:
        return [sum(rare_count(release, [name]) for name in columns) / len(columns)]

    claim = Claim.of(subject.call.declared.loss)
    return subject.attacked("whole", claim, above(counted), guesses)


STEPS = (
    lone_values,
    found_values,
    prefixes,
    first_looks,
    fine_looks,
    single_columns,
    chosen_pair,
    later_choice,
    measured_pairs,
    distances,
    several_tables,
    rows_in_time,
    continued,
    whole,
)


def everything(stage: Stage, guesses: int) -> Iterator[Late]:
    """A subject for each step that draws noise, with about so many guesses."""
    for step in STEPS:
        name = " ".join(step.__name__.split("_"))
        yield Late(f"publishing: {name}", partial(step, stage, guesses))
