"""The curator: questions, and procedures that are made of many measurements."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

from discreet.catalog.charged_once import secret_file
from discreet.curator.requests import Requesting
from discreet.errors import QuestionError, refused
from discreet.finishing import stopping
from discreet.ledger import Stored
from discreet.pricing import named_epsilon
from discreet.procedures.arguments import with_owners
from discreet.procedures.progress import progress
from discreet.procedures.run import declared, released, request_key
from discreet.profile.call import ProfileCall, call
from discreet.release import Release
from discreet.release.content import FREE, ReleaseContent
from discreet.schedule import Turns, engine_time_over
from discreet.selection.choice import Select, select
from discreet.selection.watch import AboveThresholdRun, mechanism
from discreet.sql.compiled import Askable, as_text, unbound
from discreet.texts import visible
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.table import Value
from discreet.trusted.ring_b.watching import Watching, WatchMeasurement

if TYPE_CHECKING:  # what few sessions need is loaded when it is asked for
    from discreet.contribution import Agreed, OpenedContribution, Terms
    from discreet.learning.aggregate import Aggregation
    from discreet.learning.model import Fit
    from discreet.learning.predictor import Predictor
    from discreet.selection.weights import WeightsRun
    from discreet.streams.stream import Stream
    from discreet.synthesis.adaptive import Progress
    from discreet.synthesis.publication import Publication
    from discreet.synthesis.run import Tell, Turn
    from discreet.synthesis.several import SeveralPublication
    from discreet.synthesis.synthetic import Synthetic
    from discreet.synthesis.synthetic_tables import SyntheticTables
    from discreet.trusted.ring_c.marginals import Marginals, Opened
    from discreet.workload import Workload
    from discreet.workload.answers import PlannedWorkload

    _Call = Aggregation | PlannedWorkload | Fit | ProfileCall | Select


class Curator(Requesting):
    """Holds tables about people and answers questions about them with differential privacy.

    `tables` maps names to `discreet.Table`; `epsilon`, `delta` and `keys_delta` are the budget for the people in them,
    over everybody who asks, for ever. With `ledger` (a path) what was spent lasts; without, it ends with this object.
    `analysts` maps names to their own smaller budgets; `least` is the least price of a question. With
    `reserve={"publish": 1}` nothing is admitted after which a table could not be published at ε 1. A budget that is
    larger than the ledger's is refused, unless `raise_budget` says that it is the owner's word. Where `analysts` are
    declared, whatever costs or is priced names one of them, unless `owner` says that the owner asks. Raises
    DeclarationError with every fault at once, LedgerError.
    """

    def ibis(self) -> Mapping[str, Any]:
        """Gives the declared tables by name, as unbound tables of Ibis: `ask` takes an expression on them.

        They hold no row. Needs the extra `ibis`. Raises QuestionError without it.
        """
        return unbound(self._declaration)

    def select(
        self,
        question: Askable,
        *,
        k: int = 1,
        epsilon: Number | None = None,
        gap: bool = False,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Release:
        """Picks the group that holds the most: the key of the largest count, or the `k` largest, best first.

        The question counts over groups with declared keys: "SELECT city, COUNT(DISTINCT person) FROM visits GROUP BY
        city". However many groups there are and a person touches, it costs `epsilon`. No count is released: with `gap`,
        by how many the winner's noisy count is ahead. The winner's count is a question with a price of its own.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        account, question = self._balances.of(analyst), as_text(question)
        checked = self._planner.one_table(question)
        price = self._measurements.price(checked, epsilon, None, None, account)
        call = select(checked, question, checked.table, k=k, epsilon=price.epsilon, gap=gap)
        return self._through(call, call.measurement, account, request)

    def above_threshold(
        self,
        threshold: int,
        *,
        epsilon: Number | None = None,
        limit: int = 1,
        sensitivity: int = 1,
        analyst: str | None = None,
    ) -> AboveThresholdRun:
        """Opens a run of many counts, and charges what all its replies together cost, `epsilon`.

        Each `ask(question)` of the run says whether the count seems to be at least `threshold`; after `limit` times yes
        the run ends. However many say no, nothing more is charged. `sensitivity` is by how much one person may move a
        count: 1 for counts of persons. Other questions may be asked while the run is open.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        LedgerError.
        """
        account = self._balances.of(analyst)
        price = named_epsilon(self._declaration, epsilon)
        kind = mechanism(threshold, price, limit, sensitivity)
        self._holdings.load()
        words = f"above threshold {threshold}, up to {limit} times"
        key = secrets.token_hex(32)  # a run is never a repeat: its replies follow from what is asked
        grant = self._door.open(WatchMeasurement(kind), analyst=account, question=words, key=key, request=None)
        assert not isinstance(grant, Stored)
        return AboveThresholdRun(Watching(grant), kind, self._planner.one_table, self._holdings.load)

    def multiplicative_weights(
        self,
        table: str,
        columns: Sequence[str],
        *,
        epsilon: Number | None = None,
        questions: int = 1_000,
        alpha: Number = "0.1",
        beta: Number = "0.05",
        analyst: str | None = None,
    ) -> WeightsRun:
        """Opens a run of up to so many `questions`, and charges what all its answers together cost, `epsilon`.

        Each `ask("SELECT COUNT(*) FROM table WHERE …")` of the run, over these columns, whose values are declared, is
        answered at once. With probability 1 − `beta` all are within `run.half_width` rows, a little more than the share
        `alpha` of the rows; a smaller `alpha` pays where there are many rows. Other questions may be asked while the
        run is open.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        from discreet.selection.weights import WeightsRun, weighted
        from discreet.trusted.ring_c.weighing import Weigh, Weighing

        account = self._balances.of(analyst)
        call = weighted(self._declaration, table, columns, epsilon=epsilon, questions=questions, alpha=alpha, beta=beta)
        self._holdings.load()
        key = secrets.token_hex(32)  # a run is never a repeat
        opened = Weigh(call.construction, call.table, call.coding)
        grant = self._door.open(opened, analyst=account, question=call.question, key=key, request=None)
        assert not isinstance(grant, Stored)
        return WeightsRun(Weighing(grant), call, self._planner.one_table)

    def stream(self, name: str) -> Stream:
        """Opens a declared stream: running totals, windows and counts by period, at one price for its whole horizon.

        Nothing is spent or measured before its `advance`. The owner's, as its secret state is. Needs the extra
        `streams`. Raises QuestionError where no stream of this name is declared, DeclarationError where it does not go
        with its source, LedgerError.
        """
        try:
            from discreet.streams.stream import Stream, priced
            from discreet.trusted.ring_c.continual import Continuing, begun_with
            from discreet.trusted.ring_c.stream_state import StateFile
        except ImportError:
            fix = 'run pip install "discreet[streams]"'
            raise refused("extra", "a stream needs cryptography", "stream", fix) from None

        account, release = self._balances.of(None), self._balances.release
        call = priced(self._declaration, name, lambda one: begun_with(self._door, one))
        self._engine.hold_rows(call.table)
        beside = self._declaration.beside
        assert beside is not None  # it was declared so
        file = StateFile(secret_file(beside, call.declared.name, "stream"), call.declared.key.absolute())
        return Stream(
            call,
            Continuing(self._door, call.whole, file),
            self._turn,
            lambda table: self._holdings.held(table).rows,
            lambda content, charged: release(content, call.whole.loss, call.cost if charged else FREE, account),
        )

    def sample_and_aggregate(
        self,
        function: Callable[[Any], object],
        table: str,
        *,
        low: Number,
        high: Number,
        blocks: int | None = None,
        aggregate: str = "median",
        columns: Sequence[str] | None = None,
        epsilon: Number | None = None,
        step: Number | None = None,
        seconds: int = 60,
        memory_gib: int = 2,
        constant_time: bool = False,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Release:
        """Computes a private summary of the owner's own `function` on disjoint blocks of the persons.

        `function` gets a block as a pandas frame of the declared columns and gives one number, which is clamped to
        [`low`, `high`]; where it gives none, fails, or takes more than `seconds` of processor time or `memory_gib`, the
        middle of the bounds counts. Released is the `mean` or the `median` of the blocks' values, in one row `value`.
        `blocks` is how many, by default from the price alone; `step` the unit in which values are counted.

        The function is trusted as this program is: only the owner may choose it, and `analyst` is refused. It must not
        carry anything from one block to another. With `constant_time` every block lasts twice `seconds`; without, how
        long the call takes depends on the rows. Needs the extra `functions`.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        from discreet.learning.aggregate import AggregateOptions, aggregation
        from discreet.trusted.ring_c.blocks import BlockLimits

        options = AggregateOptions(
            table=table,
            low=low,
            high=high,
            blocks=blocks,
            aggregate=aggregate,
            columns=columns,
            epsilon=epsilon,
            step=step,
            limits=BlockLimits(seconds, memory_gib, constant_time),
            analyst=analyst,
        )
        call = aggregation(self._declaration, function, options)
        self._engine.hold_rows(call.table)
        account = self._balances.of(None)
        with call.ready() as measurement:
            return self._released(call, measurement, account, request)

    def fit(
        self,
        table: str,
        *,
        target: str,
        features: Sequence[str] | None = None,
        model: str = "logistic",
        epsilon: Number | None = None,
        delta: Number | None = None,
        sample_rate: Number = "0.1",
        steps: int = 200,
        clip: Number = 1,
        learning_rate: Number | None = None,
        positive: Value | None = None,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Predictor:
        """Trains a `logistic` or `linear` model of the column `target` by gradient descent with noise.

        Features are the declared columns with bounds, values or truth values, or those named; what they are turned into
        follows from declarations alone. Each of the `steps` takes each person with probability `sample_rate`, clips
        the person's gradient to `clip`, and adds as much noise as the price (epsilon, delta) asks for; without `delta`
        that is the budget's, in the share of `epsilon`. `positive` is the positive class, by default the second value.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        from discreet.learning.model import FitOptions, fit
        from discreet.learning.predictor import Predictor

        account = self._balances.of(analyst)
        options = FitOptions(
            table=table,
            target=target,
            features=features,
            model=model,
            epsilon=epsilon,
            delta=delta,
            sample_rate=sample_rate,
            steps=steps,
            clip=clip,
            learning_rate=learning_rate,
            positive=positive,
        )
        call = fit(self._declaration, options)
        self._engine.hold_rows(call.table)
        with progress("steps", call.steps) as tell:
            release = self._released(call, call.measurement(tell), account, request)
        return Predictor(release, call.model, call.features, call.target)

    def terms(self, question: str, opens: str = "totals") -> Terms:
        """Says what other parties must mean by this question to open one answer together. Raises QuestionError."""
        from discreet.contribution import terms

        return terms(self._planner.one_table(question), opens)

    def contribution(self, session: Agreed) -> OpenedContribution:
        """Makes this party's part in a session (`discreet.together`), which is the owner's: the whole budget pays.

        Nothing is spent before the session begins. Raises QuestionError, BudgetError, DeclarationError, LedgerError.
        """
        from discreet.contribution import Agreed, ContributionKeeper, OpenedContribution

        if not isinstance(session, Agreed):
            fix = 'write discreet.together.read("session.json")'
            raise refused("together", "not a valid session", "session", fix)
        account, release = self._balances.of(None), self._balances.release
        checked = self._planner.one_table(session.question)
        parts = (self._kept_under, "together", session.hash)

        def key() -> tuple[str, object]:
            held = self._holdings.held(checked.table)
            return request_key(checked.table, held.numbers, *parts), held.rows

        hold = ContributionKeeper(key, lambda content, loss, charged: release(content, loss, charged, account))
        return OpenedContribution(checked, session, self._door, self._ledger, hold)

    def answer(
        self,
        workload: Workload,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        analyst: str | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Release:
        """Answers all of a workload, measured so that they err least together: one row each, with its variance.

        They agree with each other, and none errs more than asked by itself with an equal share of the same price.
        Without `delta` it is the budget's, in the share of `epsilon`; with delta=0 there is no Gaussian noise.
        With `part`, of the rows of that part's persons alone, as in `ask`.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        one = self._about(part)
        account = one._balances.of(analyst)
        from discreet.workload.answers import answering

        call = answering(one._declaration, workload, epsilon, delta)
        return one._through(call, call.measurement, account, request)

    def profile(
        self,
        table: str | None = None,
        *,
        epsilon: Number | None = None,
        keys: Sequence[Sequence[str]] | None = None,
        columns: Sequence[str] | None = None,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Release:
        """Releases how much persons contribute, as noisy numbers of persons by powers of two: once for a snapshot.

        Of each person the rows; the groups, for each set of `keys` ([["city"], ["city", "year"]]); the largest size of
        the values in each of these `columns`. Each histogram gets an equal share of `epsilon`. From then on each
        question of whoever paid for it has the limits and bounds that are best for its own price, at no further one;
        declared limits are the most that can be chosen. `release.content["proposed"]` are lines that a declaration
        may have by these numbers.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        account = self._balances.of(analyst)
        made = self._profile_call(table, epsilon, keys, columns)
        return self._through(made, made.measurement, account, request)

    def explain_profile(
        self,
        table: str | None = None,
        *,
        epsilon: Number | None = None,
        keys: Sequence[Sequence[str]] | None = None,
        columns: Sequence[str] | None = None,
    ) -> tuple[str, ...]:
        """Says how many histograms `profile` would release, of what, and the share of the price that each gets.

        Nothing is spent, and no row is read. Raises QuestionError.
        """
        return self._profile_call(table, epsilon, keys, columns).shares

    def _profile_call(
        self,
        table: str | None,
        epsilon: Number | None,
        keys: Sequence[Sequence[str]] | None,
        columns: Sequence[str] | None,
    ) -> ProfileCall:
        made = call(self._declaration, table, epsilon, keys, columns)
        for one in made.measurement.histograms:
            self._planner.hold((one.of.root,), one.table)
        return made

    def _through(self, call: _Call, measurement: Any, account: str, request: str | None) -> Release:
        """A procedure's release on the schedule: measured and stored, or from the ledger."""
        with self._on_schedule(self._turn):
            return self._released(call, measurement, account, request)

    def _released(self, call: _Call, measurement: Any, account: str, request: str | None) -> Release:
        self._request_ids.hold_alone(account, request)
        held = self._holdings.held(call.table)
        of = held.numbers, self._kept_under
        stored, charged = released(
            self._door,
            measurement,
            lambda noisy: call.content(noisy).to_json(),
            analyst=account,
            question=call.question,
            key=call.key(*of) if isinstance(call, ProfileCall) else request_key(call.table, *of, *call.parts),
            request=request,
            rows=held.rows,
            due=engine_time_over,
        )
        return self._balances.release(
            ReleaseContent.from_json(stored), measurement.loss, call.cost if charged else FREE, account
        )

    @overload
    def publish(
        self,
        table: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        method: str = "adaptive",
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Any] | None = None,
        workload: Sequence[Sequence[str]] | None = None,
        target: str | None = None,
        like: Release | None = None,
        tell: Callable[[Progress], None] | None = None,
        analyst: str | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Synthetic: ...

    @overload
    def publish(
        self,
        table: list[str] | tuple[str, ...],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        tell: Callable[[Progress], None] | None = None,
        analyst: str | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> SyntheticTables: ...

    def publish(
        self,
        table: str | list[str] | tuple[str, ...],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        method: str = "adaptive",
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Any] | None = None,
        workload: Sequence[Sequence[str]] | None = None,
        target: str | None = None,
        like: Release | None = None,
        tell: Callable[[Progress], None] | None = None,
        analyst: str | None = None,
        request: str | None = None,
        part: str | None = None,
    ) -> Synthetic | SyntheticTables:
        """Makes a synthetic table like the declared one: rows whose marginals are near the truth's, and how near.

        Columns with declared values or bounds, or those named; values of texts are found where enough persons share
        them; numbers and dates are cut into bins that are chosen privately, or into those that `bins` names ({"age":
        20} or {"age": [18, 30, 65]}). `method` is adaptive (marginals are measured where the table fits worst), mst (a
        tree of pairs), independent (single columns) or workload (all that `workload` names, lists of columns; with
        `adaptive` it says which marginals matter). `target` names the column that models will predict from the others:
        then those that hold it matter, at the same price. `rows` is how many rows, by default as many as the table
        seems to hold. `like` is an earlier release of a table with the same columns, as of the month before: its bins
        and found values are taken over, nothing is spent on finding them, and its marginals are where this table
        begins, weighted by how far today's noisy counts are from them. All that is measured is declared as one batch at
        the price (epsilon, delta); without `delta` that is the budget's, in the share of `epsilon`. `tell` hears of
        each step; an interrupt, or an error of `tell`, ends the run early: the table is made of what was measured until
        then.

        Several tables, named in a list, are made together at one price, with keys that fit: a table with one row a
        person, and others whose rows refer to it, or to a row that does. `epsilon`, `delta` and `tell` are all that can
        be said of these; after an interrupt there are the tables that were begun until then.

        With `part`, of the rows of that part's persons alone, as in `ask`. Public totals are of all rows: a table that
        has some is not published so.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        from discreet.synthesis.publication import PublishOptions, hold_without_totals, publication
        from discreet.synthesis.related import neither, number_of_rows
        from discreet.synthesis.run import published
        from discreet.synthesis.synthetic import Synthetic
        from discreet.trusted.ring_c.marginals import Declaring

        one = self._about(part)
        account = one._balances.of(analyst)
        if tell is not None and not callable(tell):
            raise refused("tell", "tell must be callable", "tell", "write tell=print")
        if isinstance(table, Set):
            raise neither(table)
        if isinstance(table, list | tuple):
            said = {
                "rows": rows,
                "columns": columns,
                "bins": bins,
                "workload": workload,
                "target": target,
                "like": like,
            }
            said["method"] = None if method == "adaptive" else method
            return one._publish_several(table, epsilon, delta, said, tell, account, request)
        options = PublishOptions(
            table=table,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            method=method,
            columns=columns,
            bins=bins,
            workload=workload,
            target=target,
            like=like,
        )
        call = publication(self._declaration, options)
        if part is not None:
            hold_without_totals(call)
        read = with_owners(self._declaration, call.table)
        if read.relation is not None:
            self._planner.hold([number_of_rows(read)], read)
        held = one._holdings.held(read)
        key = request_key(call.table, held.numbers, one._kept_under, *call.parts, *declared(*read.bases[1:]))
        opened = Declaring(read, call.declared)

        def at(price: Fraction) -> Publication:
            return publication(self._declaration, replace(options, epsilon=price))

        return Synthetic.of(one._published(call, at, opened, published, key, held.rows, tell, account, request))

    def _publish_several(
        self,
        names: Sequence[str],
        epsilon: Number | None,
        delta: Number | None,
        said: Mapping[str, Any],
        tell: Callable[[Progress], None] | None,
        account: str,
        request: str | None,
    ) -> SyntheticTables:
        from discreet.synthesis.publication import hold_without_totals
        from discreet.synthesis.related import number_of_rows
        from discreet.synthesis.several import hold_single, several
        from discreet.synthesis.several_run import published
        from discreet.synthesis.synthetic_tables import SyntheticTables
        from discreet.trusted.ring_c.marginals import DeclaringSeveral

        hold_single(said)
        call = several(self._declaration, names, epsilon, delta)
        for each in call.each if self._balances.part is not None else ():
            hold_without_totals(each)
        for one in call.tables:
            self._planner.hold([number_of_rows(one.view)], one.view)
        held = [self._holdings.held(one) for one in call.read]
        numbers = " ".join(one.numbers for one in held)
        key = request_key(call.tables[0].table, numbers, self._kept_under, *call.parts)
        opened = DeclaringSeveral(call.read, call.declared)

        def at(price: Fraction) -> SeveralPublication:
            return several(self._declaration, names, price, delta)

        made = self._published(call, at, opened, published, key, held[0].rows, tell, account, request)
        return SyntheticTables.of(made)

    def _published(
        self,
        call: Publication | SeveralPublication,
        at: Callable[[Fraction], Publication | SeveralPublication],
        opened: Opened,
        make: Callable[[Any, Marginals, Turn, Tell], ReleaseContent],
        key: str,
        rows: object,
        tell: Tell | None,
        account: str,
        request: str | None,
    ) -> Release:
        """A publication's release: each step in its turn, with its progress shown. `at` is the call at another ε."""
        from discreet.synthesis.adaptive import EndedEarly
        from discreet.synthesis.content import of_part
        from discreet.synthesis.least_price import too_cheap
        from discreet.synthesis.run import carried_out

        self._request_ids.hold_alone(account, request)
        turn = Turns(self._declaration.limits.answer_seconds or None, self._turn).one
        showing = progress("publishing") if tell is None else nullcontext(print)
        raised: list[str] = []
        _ = opened.loss  # it takes a moment, and whoever interrupts that pays nothing
        with stopping() as came, showing as bar:
            hears = tell or (lambda step: bar(step.step, step.steps))

            def told(step: Progress) -> None:
                try:
                    hears(step)
                except InterruptedError:  # it ends the run early on purpose
                    raise
                except Exception as error:  # and so does a fault, of which whoever wrote it wants to know
                    raised[:] = [visible(f"tell raised {type(error).__name__}: {str(error)[:200]}".rstrip(": "))]
                    raise

            @contextmanager
            def step() -> Iterator[None]:
                if came():
                    raise EndedEarly  # between two steps: what was measured is kept
                with turn():
                    yield

            def made(run: Marginals) -> ReleaseContent:
                try:
                    return make(call, run, step, told)
                except EndedEarly:  # before there was anything to keep
                    raise KeyboardInterrupt from None

            try:
                content, charged = carried_out(
                    self._door,
                    opened,
                    made,
                    analyst=account,
                    question=call.question,
                    key=key,
                    request=request,
                    rows=rows,
                )
            except QuestionError as error:
                if error.code == "price":  # the door says which μ² is enough, and here it is known which ε is
                    refusal = too_cheap(call, self._balances.least, self._declaration.budget.epsilon, at)
                    if refusal is not None:
                        raise refusal from None
                raise
        if self._balances.part is not None:
            content = of_part(content, self._balances.part_name)
        release = self._balances.release(content, call.declared.loss, call.cost if charged else FREE, account)
        return replace(release, notes=(*release.notes, *raised))
