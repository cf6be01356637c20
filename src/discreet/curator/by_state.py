"""Questions that the declared synthetic state answers: which, why it answers no new one, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.catalog import Declaration, Table
from discreet.catalog.charged_once import secret_file
from discreet.curator.balances import Balances
from discreet.curator.options import AskOptions
from discreet.engines.protocol import Owned
from discreet.errors import BudgetError, DeclarationError, Fault, QuestionError
from discreet.finishing import finishing
from discreet.holdings import Holdings
from discreet.intervals.expected import expected_errors
from discreet.ledger import TOTAL, Ledger
from discreet.plan.measurement import Measurement, Price
from discreet.pricing import widths
from discreet.procedures.run import declared, digest
from discreet.release.content import FREE, Cost, ReleaseContent
from discreet.schedule import engine_time_over
from discreet.trusted.ring_a.gate import Door

if TYPE_CHECKING:
    from discreet.synthesis.state import StateQuestion, SyntheticState
    from discreet.trusted.ring_c.interactive import Reply


def opened(declaration: Declaration, door: Door, engine: Owned) -> SyntheticState | None:
    """The declared synthetic state. Raises DeclarationError where it does not go with its source."""
    one, beside = declaration.state, declaration.beside
    if one is None or beside is None:
        return None
    try:
        from discreet.synthesis.state import SyntheticState, declared_state
        from discreet.trusted.ring_c.interactive import Answering, SecretFile
    except ImportError:
        fault = Fault("synthesis.interactive", "it needs cryptography", 'run pip install "discreet[streams]"')
        raise DeclarationError([fault], file=str(declaration.file or "")) from None
    whole = declared_state(declaration)
    assert whole is not None
    file = SecretFile(secret_file(beside, whole.name[:8], "state"), one.key.absolute())
    return SyntheticState(Answering(door, whole, file), engine.cells, Price(one.epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class ByState:
    """Asks the `state`; where there is none, it answers nothing."""

    state: SyntheticState | None
    ledger: Ledger
    holdings: Holdings
    balances: Balances

    def question(self, priced: Measurement, table: Table, options: AskOptions) -> StateQuestion | None:
        """A question that the synthetic state answers as whoever asks wants it, while it answers: in its form, for who
        has no account of his own, and as precise as the price that is `named` would be, or within the wanted errors.
        For whoever names one of these it does not begin: no other price is charged."""
        state, account, within, named = self.state, options.account, options.within, options.named
        if state is None or not options.reuse or (account != TOTAL and self.ledger.has_account(account)):
            return None
        if (named or within is not None) and not state.begun:
            return None
        from discreet.synthesis.state import state_question

        question = state_question(priced.plan, table, state.whole)
        if question is None:
            return None
        if within is not None:
            errors = state.errors(priced, 1 - float(within.confidence))
            fits = all(errors[name] <= width for name, (width, _) in widths(priced.plan, within).items())
        else:
            own = expected_errors(priced) if named else {}
            fits = not named or all(error <= own[name] for name, error in state.errors(priced).items())
        return question if fits else None

    def answers(self, priced: Measurement, table: Table, options: AskOptions) -> bool:
        """Whether it answers this, as far as can be known before: it still does, or has answered this very one."""
        question = self.question(priced, table, options)
        if question is None or self.state is None:
            return False
        if not self.why_not() or self.again(question, options) is not None:
            return True
        numbers = self.holdings.numbers(table)
        return numbers is not None and self.state.known(question, _rows(table, numbers)) is not None

    def again(self, question: StateQuestion, options: AskOptions) -> Reply | None:
        """The reply that a request got for this very question, whatever rows are there now."""
        known = self.ledger.requested(options.account, options.request)
        return None if known is None or self.state is None else self.state.got(question, known[0])

    def why_not(self) -> list[str]:
        """Why it answers no new question, in words; nothing where it does."""
        assert self.state is not None
        if self.state.over:
            return [f"the synthetic state answers no more ({self.state.used()}): questions have their own price"]
        if not self.state.begun and not self.balances.admits(self.state.whole.loss):
            return ["the synthetic state has not begun, and its price is more than is left: questions have their own"]
        return []

    def reply(
        self, text: str, priced: Measurement, question: StateQuestion, options: AskOptions, together: int
    ) -> tuple[ReleaseContent, Cost] | None:
        """Its answer, and what was charged for it now: the price of all its answers, when it begins; None where it
        gives none. A request gets what it got."""
        state, snapshots = self.state, self.holdings.held(question.table)
        account, request = options.account, options.request
        assert state is not None
        self.ledger.check([question.table.name], account)  # also before what it has answered
        again = self.again(question, options)
        if again is not None:
            return state.content(question, again, priced, together), FREE
        numbers = _rows(question.table, snapshots.numbers)
        charged = FREE
        with finishing():
            if self.why_not():
                reply = state.known(question, numbers) if state.begun else None
            else:
                try:
                    begins = state.begin(question, snapshots.rows)
                except BudgetError:
                    return None
                charged = Cost(epsilon=float(state.price.epsilon), delta=0.0) if begins else FREE
                reply = state.reply(
                    question,
                    text=text,
                    analyst=account,
                    numbers=numbers,
                    rows=snapshots.rows,
                    due=engine_time_over,
                )
            if reply is not None and request is not None:
                try:
                    state.remember(reply, request=request, text=text, analyst=account)
                except QuestionError:  # another process was faster: what it was told, if it asked the same
                    reply = self.again(question, options)
                    if reply is None:
                        raise
        return None if reply is None else (state.content(question, reply, priced, together), charged)


def _rows(table: Table, numbers: str) -> str:
    """Which rows a reply of the synthetic state is of."""
    return digest(*declared(table), numbers)
