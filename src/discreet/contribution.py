"""`curator.contribution`: what one party brings to a sum that several open together, from the call to its ledger."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, runtime_checkable

from discreet.accounting import Loss
from discreet.errors import refused
from discreet.intervals.noise import CONFIDENCE
from discreet.ledger import TOTAL, Ledger, Stored
from discreet.ledger.refusal import refusal
from discreet.plan.measurement import Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.release import Release
from discreet.release.content import ONE_PERSON, Cost, ReleaseContent
from discreet.release.left_out import of_plan
from discreet.release.values import plain
from discreet.sql import Question
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.nodes import PartKind
from discreet.trusted.ring_a.sensitivity import cell_count, sensitivity
from discreet.trusted.ring_c.share_measurement import Shares
from discreet.trusted.ring_c.shares import LaplaceShares, Residues

_refused = partial(refused, "together")

MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Terms:
    """What all parties must mean by the same question, from one party's declaration alone: the groups in their order,
    the unit of what is added up, and how much of it one person can move."""

    keys: tuple[str, ...]
    types: tuple[str, ...]
    column: str
    cells: tuple[tuple[Any, ...], ...]
    step: Fraction
    sensitivity: int


@runtime_checkable
class Agreed(Protocol):
    """What a party reads in the session's document (`discreet.together.Session`)."""

    @property
    def question(self) -> str: ...  # read by the curator, to make `OpenedContribution` of it
    @property
    def opens(self) -> str: ...
    @property
    def mechanism(self) -> LaplaceShares: ...
    @property
    def hash(self) -> str: ...
    @property
    def words(self) -> str: ...


@dataclass(frozen=True)
class ContributionKeeper:
    """What the curator does for a contribution: loads its tables and says what makes this session the same one to the
    ledger, and of which rows; makes a release."""

    key: Callable[[], tuple[str, object]]
    release: Callable[[ReleaseContent, Loss, Cost], Release]


class OpenedContribution:
    """A checked question of one party, for one session with others.

    In this order: `charge`, durable; `shares`, which measures; `commit`, which stores what was opened. What was charged
    stays charged however the session ends.
    """

    def __init__(
        self, question: Question, session: Agreed, door: Door, ledger: Ledger, held: ContributionKeeper
    ) -> None:
        """Raises QuestionError where the party's own declaration means something else by the session's question,
        BudgetError where its budget does not admit the loss. Nothing is spent.
        """
        self._terms, self._session = terms(question, session.opens), session
        self._plan, self._table = question.plan, question.table
        self._door, self._held = door, held
        self._grant: Any = None  # the door's, once it is charged
        other = [name for name, value in vars(self._terms).items() if getattr(session, name) != value]
        if other:
            fix = "declare the same bounds and values, or agree on a session that all declarations fit"
            raise _refused(f"this party's declaration has different {', '.join(other)}", "session", fix)
        total = ledger.whole()
        if not total.admits(self.loss):
            raise refusal(TOTAL, total, self.loss, total)

    @property
    def loss(self) -> Loss:
        """What the party's ledger is charged with."""
        return self._session.mechanism.loss()

    def charge(self) -> None:
        """Reserves the loss, durably.

        Raises BudgetError (nothing was spent), LedgerError "pending" where this party was in the session before and
        no result is stored, QuestionError where one is.
        """
        words, request = self._session.words, self._session.hash
        key, rows = self._held.key()
        measurement = Shares(self._plan, self._table, self._session.mechanism)
        grant = self._door.open(measurement, analyst=TOTAL, question=words, key=key, request=request, rows=rows)
        if isinstance(grant, Stored):
            fix = "look into the ledger for what was opened, or agree on a new session"
            raise _refused("this party already took part in this session, which was opened", "session", fix)
        self._grant = grant

    def shares(self) -> list[Residues]:
        """One vector for each party of the session. Raises EngineError; the price stays charged."""
        shares: list[Residues] = self._grant.measure()
        return shares

    def commit(self, totals: Sequence[int], roster: Sequence[str], transcript: str) -> Release:
        """Stores what was opened, durably, and gives it as a release."""
        content = self._content(totals, roster, transcript)
        self._grant.commit(content.to_json())
        return self._held.release(content, self.loss, content.cost)

    def _content(self, totals: Sequence[int], roster: Sequence[str], transcript: str) -> ReleaseContent:
        """What is stored and shown: rows with intervals, or the group with the largest total."""
        if self._session.opens == "largest":
            return self._described(self._terms.keys, [self._terms.cells[totals[0]]], roster, transcript)
        own, mechanism, cells = self._terms, self._session.mechanism, len(totals)
        values = [_number(total * own.step) for total in totals]
        reach, wide = (mechanism.half_width(CONFIDENCE, len(roster), count) * own.step for count in (1, cells))

        def around(half: Fraction) -> list[dict[str, Any]]:
            exact = (total * own.step for total in totals)
            return [{own.column: (_number(value - half), _number(value + half))} for value in exact]

        rows = [(*cell, value) for cell, value in zip(own.cells, values, strict=True)]
        described = self._described((*own.keys, own.column), rows, roster, transcript)
        return replace(described, intervals=around(reach), simultaneous=around(wide))

    def _described(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], roster: Sequence[str], transcript: str
    ) -> ReleaseContent:
        own, mechanism = self._terms, self._session.mechanism
        described = {
            "columns": own.column,
            "mechanism": mechanism.describe(),
            "unit": f"{show(own.step)} a step",
            "sensitivity": f"{own.sensitivity} steps",
        }
        return ReleaseContent(
            columns=columns,
            types=dict(zip(own.keys, own.types, strict=True)),
            rows=[dict(zip(columns, row, strict=True)) for row in rows],
            cost=Cost(epsilon=float(mechanism.epsilon), delta=0.0),
            mechanisms=[described],
            bounds=[one.line for one in of_plan(self._plan, self._table)],
            unit=f"{ONE_PERSON} at one party",
            more={"session": self._session.hash, "parties": list(roster), "transcript": transcript},
        )


def terms(question: Question, opens: str) -> Terms:
    """What the question adds up. Raises QuestionError where it is no count or sum over public groups, or not what a
    session that opens "totals" or "largest" can open."""
    plan, fix = question.plan, "write the keys and one COUNT(*), COUNT(DISTINCT person) or SUM(column)"
    outputs = [output for output in plan.outputs if output.kind is not OutputKind.KEY]
    if plan.private or (cell_count(plan.keys) or 0) > MOST_CELLS:
        where = f"group by columns whose values are declared, the same at each party, up to {MOST_CELLS:,} groups"
        raise _refused("groups must have declared keys: other parties would see which exist", "GROUP BY", where)
    if len(outputs) != 1 or len(plan.parts) != 1 or plan.specials or plan.ranges or plan.least != 1:
        raise _refused("a session is for one count or sum", "SELECT", fix)
    one_vector = (PartKind.COUNT, PartKind.PERSONS, PartKind.SUM)
    if outputs[0].kind not in (OutputKind.COUNT, OutputKind.SUM) or plan.parts[0].kind not in one_vector:
        raise _refused("a session is for one count or sum", "SELECT", fix)
    if plan.having is not None or plan.order or plan.limit is not None:
        raise _refused("all groups are opened, in the order in which they are declared", "HAVING", "leave it out")
    if plan.parts[0].epsilon is not None or question.epsilon is not None or question.delta is not None:
        raise _refused("the session says what it costs", "epsilon", "leave the price out of the question")
    keys = [output for output in plan.outputs if output.kind is OutputKind.KEY]
    if len(plan.parts[0].vectors) != 1 or sorted(key.index for key in keys) != list(range(len(plan.keys))):
        raise _refused("each key is selected once", "SELECT", fix)
    if opens == "largest" and (outputs[0].kind is not OutputKind.COUNT or cell_count(plan.keys) == 1):
        raise _refused("the largest is found among counts of several groups", "SELECT", "write keys and COUNT(*)")
    (step,) = outputs[0].weights
    moved = sensitivity(plan.root, plan.parts[0])
    return Terms(
        tuple(key.name for key in keys),
        tuple(str(key.type_of(plan.keys[key.index])) for key in keys),
        outputs[0].name,
        _cells(plan, keys),
        step,
        moved.each if opens == "largest" else moved.l1,
    )


def _cells(plan: Plan, order: Sequence[Output]) -> tuple[tuple[Any, ...], ...]:
    """The groups in the order of the exact vector, each with its keys in the order of the answer's columns."""
    groups = itertools.product(*(key.groups or () for key in plan.keys))
    return tuple(tuple(plain(key.shown(group[key.index])) for key in order) for group in groups)


def _number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
