"""Many counts at one price, whoever asks and whenever: a public distribution answers, and is watched.

Private multiplicative weights (Hardt & Rothblum 2010; Dwork & Roth 2014, section 4.2), as it goes on from process to
process. A distribution over a declared finite domain, made of released numbers alone, gives an answer to each question.
Above threshold, with a limit of one yes, says whether that answer is off by the threshold or more. No: it is the
answer. Yes: the question is hard, its exact counts are released with noise, and the distribution is corrected by them.
This module holds what sees rows: the replies. The distribution is made outside of them (`synthesis.state`).

Unit: a person, with at most R rows that count. Neighbours: one person added or removed, in all snapshots of the table.

What is released, and its loss. First the number of rows, with noise at ε_c. Then at most T *runs*, one after another.
A run is

* above threshold (`ring_b.sparse`) with ε_w: a noisy threshold, drawn once; then replies, each with fresh noise on the
  score max_g |c_g − r_g| of a question, with c_g the exact count of its group g and r_g the public answer. One person
  moves the vector c by at most R in ℓ1, so each |c_g − r_g|, and the largest of them, by at most R, up or down;
* after its one yes the vector c with discrete Laplace noise of scale R/ε_c on each count: R in ℓ1, so ε_c.

That R holds for a question is no claim of whoever asks: `Counted.hold` has the fold over the plan's nodes prove it
(`ring_a.sensitivity`), for the very plan that is run. All together are (T + 1) counts of ε_c and T interactive
mechanisms of ε_w, chosen adaptively: `Interactive.loss` is their batch, pure ε_c + T·(ε_w + ε_c) in all (Dwork & Roth
2014, Theorems 3.16, 3.23 and 3.25), reserved before the first. As each is pure, they and whatever else is asked beside
them or between two replies compose as single releases of these losses, made when the whole was reserved, would, in any
filter for adaptive releases (Vadhan & Wang 2021; Lyu 2022; Haney, Shoemate, Tian, Vadhan et al. 2023). Questions and
public answers may follow from all that was released, and rows may change between replies: for each reply the two worlds
differ by one person, which is all that its proof uses. Whether a question was hard is an output, and stands in the
answer: that it takes longer to say so tells nothing more.

That there are no more than T runs, each with one threshold noise and one yes, whatever happens to processes and files:

* The transcript is in the ledger, as numbered steps of one whole (`wholes`): of each number one answer is ever stored,
  that of the last reserve, and what was drawn for a number and not stored is shown to nobody. So the steps before a
  number are the same for all who reserve it.
* A run has an identity, 256 random bits drawn together with its threshold noise, and both lie in the secret file. It
  begins with a step of its own that says the identity; there are at most T such steps. A reply is drawn for the run
  that the last of these steps names, while no yes stands after it, with the threshold that lies beside that identity.
  So two threshold noises are never used in one run, whoever has put which file in whose place.
* Where the open run's threshold is not in the file (another machine, a file that was lost or set back), the run is
  over: the next one begins, with a noise of its own, and one of T is used up without a correction.
* At a yes the file says first, durably, that the run is over. A process that dies before the step is stored has shown
  nothing; the run is over all the same. That a run ends early, for whatever reason, is post-processing. At a no the
  file is written too, as it was: else that it cannot be written would say yes, each time, and the run would go on.
* The file counts the runs. Where it knows more than the ledger, or says of a run that the ledger lacks that it is
  over, the ledger was set back, and nothing is answered. Nor is anything once the owner has said that entries of the
  ledger are lost: replies may be among them, which had no price of their own, and the file may be lost too. Ledger,
  note and file, all set back together, cannot be told from the past: that is a second copy of the ledger, of which
  SECURITY.md speaks.

Asked again, a question may get another reply of the open run: of these there may be any number.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from discreet.errors import LedgerError
from discreet.trusted.ledger.ledger import Stored
from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_a.groups import GroupsMeasurement, combined, exact_groups
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_a.measurement import CertifiedMeasurement, ExactPlan
from discreet.trusted.ring_a.nodes import PartKind
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.sparse import AboveThreshold
from discreet.trusted.ring_c import wholes
from discreet.trusted.ring_c.coding import Coding, ListedCells, rows_of_person
from discreet.trusted.ring_c.sealed_file import SealedFile

MOST_UPDATES, MOST_QUESTIONS = 200, 10_000
"""How many runs, and how many replies, there are at most."""

WATCHED = 3
"""ε_w in units of ε_c: the noise of the replies is in every answer's error, that of the counts in few."""

_FAR = 7
"""The threshold in units of the scale of a reply's noise: a question without any error is called hard in one case of a
thousand."""


@dataclass(frozen=True)
class Interactive:
    """A declared state: the table, the domain, how many runs there are at most (`updates`), and `each`, the ε of one
    vector of noisy counts. Raises ValueError where a person's rows are not limited."""

    table: Table
    domain: Coding
    updates: int
    each: Fraction

    def __post_init__(self) -> None:
        if type(self.updates) is not int or not 1 <= self.updates <= MOST_UPDATES:
            raise ValueError("a state has a number of updates")
        if not isinstance(self.each, Fraction) or self.each <= 0:
            raise ValueError("a state has a price")
        if not all(isinstance(one, ListedCells) for one in self.domain.columns) or self.table.relation is not None:
            raise ValueError("a state is over columns of one table with public values")
        rows_of_person(self.table)

    @classmethod
    def of(cls, table: Table, domain: Coding, updates: int, epsilon: Fraction) -> Interactive:
        """The state whose whole pure loss is `epsilon`."""
        return cls(table, domain, updates, epsilon / (1 + updates * (1 + WATCHED)))

    @property
    def moved(self) -> int:
        """R: how far one person moves a vector of counts in ℓ1."""
        return rows_of_person(self.table)

    @property
    def count(self) -> Laplace:
        """The noise of counts."""
        return Laplace(self.moved / self.each)

    @property
    def threshold(self) -> int:
        """The error from which on a question is hard, but for the noise."""
        return math.ceil(_FAR * self._watching(0).scales[1])

    @cached_property
    def watch(self) -> AboveThreshold:
        """What a run's replies are drawn by."""
        return self._watching(self.threshold)

    def _watching(self, threshold: int) -> AboveThreshold:
        return AboveThreshold(threshold, WATCHED * self.each, self.moved, limit=1)

    @cached_property
    def loss(self) -> Batch:
        """Of all that will ever be released."""
        counts, watched = self.count.loss(self.moved), self.watch.loss()
        return Batch((counts, *(watched, counts) * self.updates))

    def half_width(self, miss: float) -> int:
        """With probability 1 − miss, all answers of the distribution are within this, in rows, of all the runs and all
        the questions that there may be.

        At a no, score + V < threshold + Z: the score is below threshold + Z − V. Each Z is at most a, and each −V at
        most b, but for miss/2 each: union bounds over the runs and the replies (Dwork & Roth 2014, Theorem 3.24), of
        one tail alone.
        """
        first, second = (Laplace(scale) for scale in self.watch.scales)
        above = first.half_width(1 - miss, self.updates) + second.half_width(1 - miss, MOST_QUESTIONS)
        return self.threshold + above - 1

    @property
    def description(self) -> str:
        """All that says what is measured, and of whom."""
        listed: list[Any] = []
        for one in self.domain.columns:
            assert isinstance(one, ListedCells)
            listed.append([one.column.name, str(one.column.type), [repr(value) for value in one.values], one.null])
        limits = [self.moved, self.updates, str(self.each), self.threshold]
        return json.dumps([self.table.name, self.table.unit, listed, limits])

    @property
    def name(self) -> str:
        """What it is known by: a state that is declared otherwise is another."""
        return hashlib.sha256(self.description.encode()).hexdigest()

    @property
    def key(self) -> str:
        """By what the ledger knows the state."""
        return f"state {self.name}"


@dataclass(frozen=True)
class Counted:
    """A question of counts: its plan, the public answer to each of its groups, and in public words what is stored
    beside its reply: what is `said` of every question, and what is `kept` of a hard one."""

    plan: ExactPlan
    public: tuple[int, ...]
    said: str = ""
    kept: str = ""

    def hold(self, whole: Interactive) -> None:
        """Raises ValueError unless the plan counts rows of the state's table, in public groups, and one person moves
        these counts by at most R in ℓ1."""
        measurement = CertifiedMeasurement(self.plan, (whole.count,) * len(self.plan.parts))
        loss = GroupsMeasurement(measurement, whole.table).loss  # of the plan on this table, as it is declared
        kinds = [(part.kind, len(part.vectors)) for part in self.plan.parts]
        if kinds != [(PartKind.COUNT, 1)] or self.plan.private or loss.pure is None or loss.pure > whole.each:
            raise ValueError("a state answers counts in public groups, which a person moves as far as it is made for")
        if not all(type(one) is int for one in self.public):
            raise ValueError("public answers are whole numbers")

    def exact(self, engine: Engine, table: Table) -> list[int]:
        """The counts. For the gate's frames."""
        keys, totals = exact_groups(engine, self.plan, table)
        if len(self.public) != len(keys):
            raise ValueError("there is one public answer for each group")
        return combined(self.plan.parts[0].vectors[0], totals)


@dataclass(frozen=True)
class Reply:
    """What was released for a question, and what was `said` of it; of a hard one, what was `kept`, else None. It is the
    step of this number."""

    said: str
    counts: tuple[int, ...]
    kept: str | None = None
    number: int = -1

    @property
    def hard(self) -> bool:
        """Whether its counts are exact ones with noise."""
        return self.kept is not None

    @classmethod
    def of(cls, step: bytes, number: int) -> Reply:
        """What a step stored."""
        plain = json.loads(step)
        return cls(plain["said"], tuple(plain["counts"]), plain.get("hard"), number)


@dataclass(frozen=True)
class Transcript:
    """All that was released so far: the noisy number of rows, None before; the identities of the runs; the one that is
    open, None where the last has said yes; and the replies."""

    steps: int = 0
    rows: int | None = None
    runs: tuple[str, ...] = ()
    open: str | None = None
    replies: tuple[Reply, ...] = ()

    @property
    def updates(self) -> int:
        """How many runs have begun and are over."""
        return len(self.runs) - (self.open is not None)

    def after(self, steps: list[bytes]) -> Transcript:
        """With the steps that came since."""
        rows, runs, run, replies = self.rows, list(self.runs), self.open, list(self.replies)
        for number, step in enumerate(steps, self.steps):
            one = json.loads(step)
            if "rows" in one:
                rows = one["rows"]
            elif "run" in one:
                run = one["run"]
                runs.append(one["run"])
            else:
                replies.append(Reply.of(step, number))
                run = None if replies[-1].hard else run
        return Transcript(self.steps + len(steps), rows, tuple(runs), run, tuple(replies))


@dataclass(frozen=True)
class Secret:
    """The noisy threshold of a run, and whether the run is over; it is the run of this number, from 1 on."""

    run: str
    number: int
    threshold: int = field(repr=False)
    over: bool = False

    def to_json(self) -> bytes:
        """All of it, the threshold too: bytes to be sealed."""
        return json.dumps([self.run, self.number, self.threshold, self.over]).encode()

    @property
    def seen(self) -> Seen:
        """All but the threshold."""
        return Seen(self.run, self.number, self.over)


@dataclass(frozen=True)
class Seen:
    """Of a secret, what is none."""

    run: str
    number: int
    over: bool


@dataclass(frozen=True)
class SecretFile(SealedFile):
    """Where the noisy threshold of the last run lies, and the key to it."""

    format: ClassVar[bytes] = b"discreet state 1\n"
    kind: ClassVar[str] = "state"

    def read(self, key: bytes, name: str) -> Secret:
        """The secret, for the gate's frames alone. Whatever is raised is a failure there."""
        return Secret(*json.loads(self.unsealed(key, name)))

    def seen(self, key: bytes, name: str) -> Seen | None:
        """What may be seen of it: `SealedFile.part`."""
        return self.part(key, name, lambda plain: Secret(*json.loads(plain)).seen)

    def write(self, secret: Secret, key: bytes, name: str) -> bool:
        """Puts it in the place of the one that is there: `SealedFile.write_sealed`."""
        return self.write_sealed(secret.to_json(), key, name)


@dataclass(frozen=True)
class NextStep:
    """The right to one more step of a state that has begun."""

    whole: Interactive
    begun: bytes
    number: int

    def __post_init__(self) -> None:
        if type(self.number) is not int or self.number < 0:
            raise ValueError("steps are numbered")


class Answering:
    """A declared state, as it goes on from process to process."""

    def __init__(self, door: Door, whole: Interactive, file: SecretFile) -> None:
        self._door, self._whole, self._file = door, whole, file
        self._known = Transcript()

    @property
    def whole(self) -> Interactive:
        """What was declared."""
        return self._whole

    @property
    def begun(self) -> bool:
        """Whether it was charged."""
        return self._begun() is not None

    def transcript(self) -> Transcript:
        """All that was released so far. The ledger alone is read."""
        known, steps = self._known, list[bytes]()
        while (step := wholes.released(self._door, self._whole, known.steps + len(steps))) is not None:
            steps.append(step)
        self._known = known = known.after(steps) if steps else known
        return known

    def begin(self, total: Counted, *, question: str, rows: object) -> bool:
        """Charges the whole, where that has not happened, and releases the noisy number of rows, where it was not;
        whether it was charged now.

        Raises BudgetError, QuestionError or EngineError (nothing was spent); EngineError where the number of rows
        failed (the next call tries it again); LedgerError.
        """
        total.hold(self._whole)
        charged = False
        with self._file.held() as key:
            if self._begun() is None:
                self._seen(key, Transcript())
                begun = json.dumps({"state": self._whole.description})
                wholes.begin(self._door, self._whole, begun.encode(), question=question)
                charged = True
            if self.transcript().rows is None:
                draw = lambda engine: {"rows": self._whole.count.release(total.exact(engine, self._whole.table))[0]}  # noqa: E731
                self._step(0, draw, question="synthetic state: the number of rows", rows=rows)
        return charged

    def ask(
        self, asked: Counted, *, question: str, analyst: str, rows: object, due: Callable[[], None] = lambda: None
    ) -> Reply | None:
        """The reply to a question; None where all runs are over, or all replies were given.

        Raises EngineError where it failed, LedgerError: "state restored" where the secret does not go with the ledger.
        """
        asked.hold(self._whole)
        with self._file.held() as key:
            running = self._running(key, rows)
            if running is None:
                return None
            run, number = running
            draw = lambda engine: self._drawn(engine, key, run, asked)  # noqa: E731
            reply = self._step(number, draw, question=question, rows=rows, analyst=analyst, due=due)
            return Reply.of(reply, number)

    def remember(self, reply: Reply, *, request: str, question: str, analyst: str) -> None:
        """Keeps that a request of an analyst got a reply that is stored. Raises QuestionError where the request belongs
        to something else."""
        begun = self._begun()
        assert begun is not None
        one = NextStep(self._whole, begun, reply.number)
        found = wholes.step(self._door, one, question=question, rows=None, analyst=analyst, request=request)
        assert isinstance(found, Stored)

    @property
    def over(self) -> bool:
        """Whether no more questions are answered."""
        known = self.transcript()
        used = known.updates >= self._whole.updates or len(known.replies) >= MOST_QUESTIONS
        return used or wholes.lost(self._door, self._whole)

    def _begun(self) -> bytes | None:
        return wholes.begun(self._door, self._whole)

    def _seen(self, key: bytes, known: Transcript) -> Seen | None:
        """What may be seen of the secret, held against the ledger. Raises LedgerError "state restored"."""
        seen, begun = self._file.seen(key, self._whole.name), len(known.runs)
        fits = seen is None or seen.number <= begun or (seen.number == begun + 1 and not seen.over)
        LedgerError.unless(fits, "state restored", file=self._file.path.name)
        return seen

    def _running(self, key: bytes, rows: object) -> tuple[str, int] | None:
        """The run whose replies may be drawn: the open one, where its threshold is here, or the next one, which begins;
        and the number of the next step. None where there is none. A step of that number is stored only where the
        transcript is as it was looked at here."""
        while True:
            known = self.transcript()
            seen = self._seen(key, known)
            if len(known.replies) >= MOST_QUESTIONS:
                return None
            if seen is not None and seen.run == known.open and not seen.over:
                return seen.run, known.steps
            if len(known.runs) >= self._whole.updates:
                return None
            self._begin_run(key, known, seen, rows)

    def _begin_run(self, key: bytes, known: Transcript, seen: Seen | None, rows: object) -> None:
        """Draws the threshold of the next run and keeps it; or, where it was kept and no step says so, takes that."""
        number, whole = len(known.runs) + 1, self._whole
        kept = seen.run if seen is not None and seen.number == number else None

        def begin(_engine: Engine) -> dict[str, Any] | None:
            secret = Secret(secrets.token_hex(32), number, 0)
            if kept is None:
                secret = replace(secret, threshold=whole.watch.noisy_threshold())
                if not self._file.write(secret, key, whole.name):
                    return None
            return {"run": kept or secret.run}

        self._step(known.steps, begin, question=f"synthetic state: run {number} of {whole.updates}", rows=rows)

    def _step(
        self,
        number: int,
        draw: Callable[[Engine], dict[str, Any] | None],
        *,
        question: str,
        rows: object,
        analyst: str | None = None,
        due: Callable[[], None] = lambda: None,
    ) -> bytes:
        """Draws and stores the step of this number. What `draw` gives is None where the secret could not be kept, and
        so nothing is shown."""
        begun = self._begun()
        known = begun is not None and not wholes.lost(self._door, self._whole)
        LedgerError.unless(known, "state restored", file=self._file.path.name)
        assert begun is not None
        more = {} if analyst is None else {"analyst": analyst}
        one = NextStep(self._whole, begun, number)
        grant: Grant[Any] | Stored = wholes.step(self._door, one, question=question, rows=rows, **more)
        LedgerError.unless(not isinstance(grant, Stored), "superseded")
        assert not isinstance(grant, Stored)
        with grant:
            grant.take()
            engine = grant._engine
            drawn = grant.guarded(lambda: draw(engine), self._whole.table)
            LedgerError.unless(drawn is not None, "state unwritable", file=self._file.path.name)
            due()
            stored = json.dumps(drawn).encode()
            grant.commit(stored)
            return stored

    def _drawn(self, engine: Engine, key: bytes, run: str, asked: Counted) -> dict[str, Any] | None:
        """A reply. For the gate's frames: the threshold is the one that lies beside the run's identity."""
        whole = self._whole
        secret = self._file.read(key, whole.name)
        if secret.run != run or secret.over:
            raise ValueError("this is not the threshold of the open run")
        exact = asked.exact(engine, whole.table)
        score = max((abs(count - public) for count, public in zip(exact, asked.public, strict=True)), default=0)
        hard = whole.watch.reply(score, secret.threshold)
        if not self._file.write(replace(secret, over=hard), key, whole.name):  # at a no too: a failure tells no reply
            return None
        if not hard:
            return {"said": asked.said, "counts": asked.public}
        return {"said": asked.said, "counts": whole.count.release(exact), "hard": asked.kept}
