"""What the ledger charges, stores and remembers."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting import Approximate, Batch, DiscreteLaplace, Gaussian, Laplace, Loss, Pure, Spent
from discreet.errors import BudgetError, LedgerError, QuestionError
from discreet.ledger import TOTAL, Caps, Ledger, Reserved, Snapshot, Stored, Unit
from discreet.trusted.ledger import chain
from discreet.trusted.ledger_server.server import LedgerServer
from storms import PRICE, caps, failed, frozen

SMALL_DELTA = Caps(Fraction(1), Fraction("1e-6"), Fraction("1e-7"))


@pytest.fixture(params=["file", "memory", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "server":
        made = Ledger(request.getfixturevalue("at_server")[1](tmp_path))
    else:
        made = Ledger(tmp_path / "a.ledger" if request.param == "file" else None)
    made.register({TOTAL: caps(5), "ana": caps(3), "bob": caps(3)}, "declared")
    return made


def ask(
    ledger: Ledger, key: str, analyst: str = "", request: str | None = None, loss: Loss = PRICE
) -> Reserved | Stored:
    return ledger.reserve(loss, question=f"SELECT {key}", key=key, account=analyst, request=request)


def units(ledger: Ledger) -> list[int]:
    """How many units of PRICE each account has spent."""
    return [int((ledger.filter(name).spent.pure or 0) / PRICE.epsilon) for name in (TOTAL, "ana", "bob")]


def test_a_reserve_charges_the_whole_budget_and_the_analysts_own(ledger: Ledger) -> None:
    given = ask(ledger, "a", "ana")
    assert isinstance(given, Reserved)
    assert given.charged == {TOTAL: PRICE, "ana": PRICE}
    assert units(ledger) == [1, 1, 0]
    assert ask(ledger, "b", "eve").charged == {TOTAL: PRICE}  # an analyst without an account of her own
    assert units(ledger) == [2, 1, 0]


def test_where_the_ledger_is_only_read_nothing_is_added(ledger: Ledger) -> None:
    ask(ledger, "a", "ana")
    head = ledger.head
    with pytest.raises((ValueError, LedgerError)), ledger.read() as transaction:
        transaction.append("snapshot", {"table": "t", "number": 1, "fingerprint": "f", "since": "2020-01-01"})
    assert ledger.head == head
    assert ledger.verify()
    assert ask(ledger, "b", "ana")


def test_a_reserve_without_an_answer_stays_charged(ledger: Ledger) -> None:
    ask(ledger, "a", "ana")
    ask(ledger, "a", "ana")  # no answer was stored: a second charge
    assert units(ledger) == [2, 2, 0]
    assert [entry.status for entry in ledger.entries() if entry.kind == "reserve"] == ["no answer"] * 2
    assert ledger.verify().unanswered == 2


def test_a_repeat_is_free_for_who_paid_and_debits_another_analyst_once(ledger: Ledger) -> None:
    first = ask(ledger, "a", "ana")
    ledger.commit(first.reserve_id, b"42")
    head = ledger.head
    assert ask(ledger, "a", "ana") == Stored(first.reserve_id, b"42", {})
    assert ask(ledger, "a") == Stored(first.reserve_id, b"42", {})
    assert ask(ledger, "a", "eve") == Stored(first.reserve_id, b"42", {})
    assert ledger.head == head  # nothing to write
    assert ask(ledger, "a", "bob") == Stored(first.reserve_id, b"42", {"bob": PRICE})
    assert ask(ledger, "a", "bob") == Stored(first.reserve_id, b"42", {})
    assert units(ledger) == [1, 1, 1]
    assert [entry.kind for entry in ledger.entries()][-1] == "repeat"


def test_a_repeat_that_an_own_account_cannot_pay_is_refused(ledger: Ledger) -> None:
    first = ask(ledger, "a")
    ledger.commit(first.reserve_id, b"42")
    ledger.register({"bob": Caps(Fraction("0.05"), Fraction(0), Fraction(0))}, "declared")
    head = ledger.head
    with pytest.raises(BudgetError, match="analyst bob's budget does not allow this question: asked"):
        ask(ledger, "a", "bob")
    assert ledger.head == head
    assert units(ledger) == [1, 0, 0]


def test_a_repeat_is_debited_for_what_was_released(ledger: Ledger) -> None:
    first = ask(ledger, "a")
    ledger.commit(first.reserve_id, b"42")
    assert ask(ledger, "a", "bob", loss=Pure(Fraction(1, 1000))).charged == {"bob": PRICE}


def test_an_own_answer_goes_before_one_that_is_not_paid(ledger: Ledger) -> None:
    """Two draws of one question at once: each analyst gets the one that his account was debited for."""
    anas, bobs = ask(ledger, "a", "ana"), ask(ledger, "a", "bob")
    ledger.commit(bobs.reserve_id, b"bob's")
    ledger.commit(anas.reserve_id, b"ana's")
    assert ask(ledger, "a", "ana") == Stored(anas.reserve_id, b"ana's", {})
    assert ask(ledger, "a", "bob") == Stored(bobs.reserve_id, b"bob's", {})
    assert units(ledger) == [2, 1, 1]


def test_a_debit_for_a_lost_draw_does_not_pay_for_another_draw(ledger: Ledger) -> None:
    ask(ledger, "a", "ana")  # never answered, or not yet
    bobs = ask(ledger, "a", "bob")
    ledger.commit(bobs.reserve_id, b"bob's")
    assert ask(ledger, "a", "ana").charged == {"ana": PRICE}


def test_a_request_is_charged_once(ledger: Ledger) -> None:
    first = ask(ledger, "a", "ana", "r1")
    with pytest.raises(LedgerError, match="was already charged but has no stored answer") as pending:
        ask(ledger, "a", "ana", "r1")
    assert (pending.value.code, pending.value.fix) == ("pending", "ask again with a new request id")
    ledger.commit(first.reserve_id, b"42")
    assert ask(ledger, "a", "ana", "r1") == Stored(first.reserve_id, b"42", {})
    with pytest.raises(QuestionError, match="belongs to another question") as other:
        ask(ledger, "b", "ana", "r1")
    assert other.value.code == "request"
    assert units(ledger) == [1, 1, 0]


def test_a_request_id_is_its_analysts(ledger: Ledger) -> None:
    """Nobody learns another's request ids, and none gives him an answer that his account did not pay."""
    first = ask(ledger, "a", "ana", "r1")
    ledger.commit(first.reserve_id, b"42")
    assert ask(ledger, "a", "bob", "r1").charged == {"bob": PRICE}
    assert isinstance(ask(ledger, "b", "bob", "r2"), Reserved)
    assert isinstance(ask(ledger, "c", "ana", "r2"), Reserved)


def test_a_repeat_remembers_its_request(ledger: Ledger) -> None:
    first = ask(ledger, "a", "ana")
    ledger.commit(first.reserve_id, b"42")
    assert ask(ledger, "a", "ana", "r1").charged == {}
    assert list(ledger.entries())[-1].status == "repeated"
    assert ask(ledger, "a", "ana", "r1") == Stored(first.reserve_id, b"42", {})
    with pytest.raises(QuestionError):
        ask(ledger, "b", "ana", "r1")
    assert ledger.verify().accounts[TOTAL].spent.pure == PRICE.epsilon


def test_an_account_that_came_later_pays_for_its_old_request(ledger: Ledger) -> None:
    first = ask(ledger, "a", "eve", "r1")
    ledger.commit(first.reserve_id, b"42")
    ledger.register({"eve": caps(1)}, "declared")
    assert ask(ledger, "a", "eve", "r1").charged == {"eve": PRICE}
    assert ask(ledger, "a", "eve", "r1").charged == {}
    ledger.verify()


def test_commit_takes_one_answer(ledger: Ledger) -> None:
    given = ask(ledger, "a")
    ledger.commit(given.reserve_id, bytes(range(256)))
    with pytest.raises(LedgerError) as twice:
        ledger.commit(given.reserve_id, b"other")
    assert twice.value.code == "committed"
    for unknown in (0, 1, 10**6):
        with pytest.raises(LedgerError) as never:
            ledger.commit(unknown, b"")
        assert never.value.code == "unknown"
    assert ask(ledger, "a").answer == bytes(range(256))


def test_an_answer_that_is_known_beforehand_is_stored_with_its_charge_or_neither_is(ledger: Ledger) -> None:
    given = ledger.reserve(PRICE, question="q", key="a", account="ana", answer=b"words")
    assert given == Stored(given.reserve_id, b"words", {TOTAL: PRICE, "ana": PRICE})
    assert [entry.kind for entry in ledger.entries()][-2:] == ["reserve", "commit"]
    assert ledger.verify().unanswered == 0
    head = ledger.head
    again = ledger.reserve(PRICE, question="q", key="a", account="ana", answer=b"others")
    assert again == Stored(given.reserve_id, b"words", {})
    with pytest.raises(LedgerError, match="already has an answer"):
        ledger.commit(given.reserve_id, b"others")
    with pytest.raises(BudgetError):
        ledger.reserve(DiscreteLaplace(Fraction(99), 1), question="q", key="b", answer=b"words")
    with pytest.raises(BudgetError):
        ledger.reserve(PRICE, question="q", key="b", answer=b"words", keep=DiscreteLaplace(Fraction(99), 1))
    assert ledger.head == head
    assert units(ledger) == [1, 1, 0]


def test_refusals_write_nothing_and_say_what_fits(ledger: Ledger) -> None:
    ask(ledger, "a", "ana")
    head = ledger.head
    with pytest.raises(BudgetError) as total:
        ask(ledger, "b", loss=Pure(Fraction(7)))
    assert str(total.value) == (
        "the budget does not allow this question: asked ε 7, left ε 0.4 → a price of at most ε 0.4"
    )
    with pytest.raises(BudgetError) as own:
        ask(ledger, "b", "ana", loss=Pure(Fraction(1, 4)))
    assert str(own.value) == (
        "analyst ana's budget does not allow this question: asked ε 0.25, left ε 0.2 → a price of at most ε 0.2"
    )
    assert ledger.head == head
    assert isinstance(ask(ledger, "b", "ana", loss=Pure(Fraction(1, 5))), Reserved)
    with pytest.raises(BudgetError) as empty:
        ask(ledger, "c", "ana")
    assert (empty.value.left, empty.value.fits) == ("ε 0", "nothing is left")


def test_both_accounts_or_none(ledger: Ledger) -> None:
    for key in "abcd":
        ask(ledger, key)
    with pytest.raises(BudgetError, match="the budget does not"):
        ask(ledger, "e", "ana", loss=Pure(Fraction(2, 10)))
    assert units(ledger) == [4, 0, 0]


def test_other_losses_are_refused_in_their_own_words() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: SMALL_DELTA}, "declared")
    with pytest.raises(BudgetError) as gaussian:
        ask(ledger, "a", loss=Gaussian(Fraction("0.45")))
    assert gaussian.value.asked == "μ 0.45"
    assert gaussian.value.left.startswith("μ 0.2")
    with pytest.raises(BudgetError) as keys:
        ask(ledger, "a", loss=Approximate(Fraction("0.5"), Fraction("2e-7")))
    assert keys.value.asked == "ε 0.5 and δ 2e-7 for private keys"
    assert keys.value.left == "ε 1 and δ 1e-7 for private keys"
    assert keys.value.fits == "declare the values of the group keys, and ask at a price of at most ε 1"
    ledger.register({TOTAL: caps(10)}, "declared", raising=True)
    with pytest.raises(BudgetError) as none:
        ask(ledger, "a", loss=Gaussian(Fraction("0.01")))
    assert none.value.fits == "questions without delta, at a price of at most ε 1"


def test_what_is_left_is_rounded_down_and_what_is_asked_up() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: caps(5)}, "declared")
    ask(ledger, "a", loss=Pure(Fraction("0.1234562")))
    with pytest.raises(BudgetError) as refused:
        ask(ledger, "b", loss=Pure(Fraction("0.37654381")))
    assert (refused.value.asked, refused.value.left) == ("ε 0.376544", "ε 0.376543")
    assert refused.value.fits == "a price of at most ε 0.376543"


def test_an_overdrawn_delta_leaves_nothing() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: SMALL_DELTA}, "declared")
    ask(ledger, "a", loss=Approximate(Fraction(1, 10), Fraction("1e-7")))
    ledger.register({TOTAL: Caps(Fraction(1), Fraction("9.1e-7"), Fraction("1e-8"))}, "declared")
    with pytest.raises(BudgetError) as refused:
        ask(ledger, "b")
    assert refused.value.left == "nothing, its δ for private keys is overdrawn"
    assert refused.value.fits == "nothing is left"


def test_what_fits_is_admitted_where_only_the_gaussian_sum_has_room() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: SMALL_DELTA}, "declared")
    ask(ledger, "a", loss=Gaussian(Fraction("0.1")))  # from now on there is no pure sum
    with pytest.raises(BudgetError) as refused:
        ask(ledger, "b", loss=Pure(Fraction(5, 8)))
    price = refused.value.fits.removeprefix("a price of at most ε ")
    assert Fraction(price) == Fraction(1, 2)  # of the pair that has half of ε
    assert isinstance(ask(ledger, "b", loss=Pure(Fraction(price))), Reserved)
    ledger.verify()


@pytest.mark.parametrize(
    "loss",
    [
        DiscreteLaplace(Fraction("0.3"), 4),
        Gaussian(Fraction("0.02")),
        Approximate(Fraction("0.01"), Fraction("1e-9")),
        Batch((DiscreteLaplace(Fraction("0.01"), 1), Gaussian(Fraction("0.01")), Pure(Fraction("1e-3")))),
    ],
)
def test_every_loss_is_stored_as_it_is(loss: Loss) -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: SMALL_DELTA}, "declared")
    ask(ledger, "a", loss=loss)
    after = SMALL_DELTA.filter().after(loss).spent
    assert ledger.filter(TOTAL).spent == after
    assert list(ledger.entries())[-1].loss == loss
    assert ledger.verify().accounts[TOTAL].spent == after


def test_losses_that_are_no_losses() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: SMALL_DELTA}, "declared")
    head = ledger.head
    for made in (lambda: Pure(Fraction(-1, 10)), lambda: Approximate(Fraction(0), Fraction(-1))):
        with pytest.raises(ValueError, match="must not be negative"):
            made()
    with pytest.raises(ValueError, match="cannot contain a batch"):
        ask(ledger, "a", loss=Batch((Batch((PRICE,)),)))  # type: ignore[arg-type]
    assert ledger.head == head


def test_the_smallest_price_is_not_nothing(ledger: Ledger) -> None:
    tiny = Pure(Fraction("1e-320"))
    before = Spent()
    for key in ("a", "b", "c"):
        ask(ledger, key, "ana", loss=tiny)
        spent = ledger.filter("ana").spent
        assert spent.pure is not None
        assert before.pure is not None
        assert spent.pure >= before.pure + tiny.epsilon
        assert spent.mu_squared is None  # a budget without delta has no μ
        before = spent
    ask(ledger, "d", "ana")
    ask(ledger, "e", "ana", loss=tiny)
    assert (ledger.filter("ana").spent.pure or 0) > PRICE.epsilon + 3 * tiny.epsilon
    ledger.verify()


def test_ten_times_a_tenth_is_one() -> None:
    ledger = Ledger(None)
    ledger.register({TOTAL: Caps(Fraction(1), Fraction(0), Fraction(0))}, "declared")
    for key in range(10):
        ask(ledger, str(key))
    assert ledger.filter(TOTAL).spent.pure == 1
    with pytest.raises(BudgetError):
        ask(ledger, "more", loss=Pure(Fraction("1e-320")))


# the owner


def test_register_writes_only_what_differs(ledger: Ledger) -> None:
    head = ledger.head
    ledger.register({TOTAL: caps(5), "ana": caps(3), "bob": caps(3)}, "declared")
    ledger.register({TOTAL: caps(5)}, "declared")  # who is left out stays as he is
    assert ledger.head == head
    assert ledger.filter("bob").epsilon == caps(3).epsilon
    ledger.register({TOTAL: caps(5)}, "declared otherwise")
    assert ledger.head != head
    assert list(ledger.entries())[-1].note == "the declaration"


def test_caps_change_and_what_was_spent_stays(ledger: Ledger) -> None:
    for key in "abcd":
        ask(ledger, key)
    ledger.register({TOTAL: caps(2)}, "declared")
    assert units(ledger)[0] == 4
    assert list(ledger.entries())[-1].note == "the budget: ε 0.5 → ε 0.2"
    with pytest.raises(BudgetError) as over:
        ask(ledger, "e", loss=Pure(Fraction("1e-9")))
    assert over.value.left == "ε 0"
    ledger.verify()
    ledger.register({TOTAL: caps(5)}, "declared", raising=True)
    ask(ledger, "e")
    assert units(ledger)[0] == 5
    with pytest.raises(BudgetError):
        ask(ledger, "f")
    ledger.verify()


def test_of_two_declarations_the_smaller_budget_holds(ledger: Ledger) -> None:
    """Whatever is opened last: a cap is raised by the owner's word alone, in ε, in δ, or from one δ to the other."""
    whole = Caps(Fraction(1), Fraction("1e-6"), Fraction("1e-7"))
    ledger.register({TOTAL: whole, "ana": caps(3)}, "one", raising=True)
    larger = [
        {TOTAL: Caps(Fraction(2), Fraction("1e-6"), Fraction("1e-7"))},
        {TOTAL: Caps(Fraction(1), Fraction("2e-6"), Fraction("1e-7"))},
        {TOTAL: Caps(Fraction(1), Fraction("1e-6"), Fraction("2e-7"))},
        {TOTAL: Caps(Fraction(1), Fraction("1e-6"), Fraction("1e-8"))},
        {TOTAL: Caps(Fraction(1, 2), Fraction("1e-6"), Fraction(0))},
        {TOTAL: whole, "ana": caps(4)},
    ]
    for other in larger:
        head = ledger.head
        with pytest.raises(LedgerError) as refused:
            ledger.register(other, "another")
        assert (refused.value.code, ledger.head) == ("raised", head)
        assert "--raise-budget" in refused.value.fix
    ledger.register({TOTAL: Caps(Fraction("0.5"), Fraction("1e-7"), Fraction("1e-8"))}, "another")  # lower is lower
    with pytest.raises(LedgerError):
        ledger.register({TOTAL: whole}, "one")
    ledger.register({TOTAL: whole}, "one", raising=True)
    assert ledger.verify().accounts[TOTAL].epsilon == 1


def test_a_cap_is_raised_in_no_part_while_it_is_lowered_in_another(ledger: Ledger) -> None:
    """The filters of either would admit their own δ: (1, .1) without private keys, then .09 of it for these, reach .19.
    Also where a smaller cap stood between."""
    first = Caps(Fraction(1), Fraction("0.1"), Fraction(0))
    other = Caps(Fraction(1), Fraction("0.1"), Fraction("0.09"))
    ledger.register({TOTAL: first}, "first", raising=True)
    for between in (first, Caps(Fraction(1), Fraction("0.01"), Fraction(0))):
        ledger.register({TOTAL: between}, "between")
        head = ledger.head
        with pytest.raises(LedgerError) as refused:
            ledger.register({TOTAL: other}, "other", raising=True)
        assert (refused.value.code, ledger.head) == ("apart", head)
        assert "0.19" in refused.value.fix
    ledger.register({TOTAL: first}, "first", raising=True)
    ledger.register({TOTAL: Caps(Fraction(1), Fraction("0.19"), Fraction("0.09"))}, "both", raising=True)
    assert ledger.verify().accounts[TOTAL].epsilon == 1


def test_who_is_a_person_cannot_change_under_answers(ledger: Ledger) -> None:
    def declare(**units: Unit) -> None:
        ledger.register({TOTAL: caps(5)}, "declared", units=units)

    declare(visits=Unit("each row", 1))
    declare(visits=Unit("patient", 19))  # nothing was answered yet
    declare(visits=Unit("each row", 1))
    for key in "ab":
        ask(ledger, key)
    declare(visits=Unit("each row", 1), cities=Unit("each row", 1))  # a further table
    declare(visits=Unit("each row", 1), doctors=Unit("doctor", 3))
    declare(doctors=Unit("doctor", 3, "text"))  # earlier versions did not note the type
    with pytest.raises(LedgerError):
        declare(doctors=Unit("doctor", 3, "integer"))
    declare(cities=Unit("each row", 1))
    head = ledger.head
    with pytest.raises(LedgerError) as refused:
        declare(visits=Unit("patient", 19))
    assert (refused.value.code, ledger.head) == ("unit", head)
    assert "tables.visits: a person was each row in the answers so far" in refused.value.message
    assert "K = 19: ε 0.2 becomes ε 3.8" in refused.value.fix
    ledger.verify()


def test_what_is_unknown_is_charged_to_everybody(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with closing(Ledger(path)) as first:
        first.register({TOTAL: caps(5), "ana": caps(3)}, "declared")
        ask(first, "a")
    for loss, total, own in ((PRICE, 2, 1), (None, 2, 1), (Approximate(Fraction("0.2"), Fraction("1e-9")), 4, 3)):
        with closing(Ledger.spend_unknown(path, loss)) as again:
            assert [again.filter(name).spent.pure for name in (TOTAL, "ana")] == [
                n * PRICE.epsilon for n in (total, own)
            ]
            assert list(again.entries())[-1].kind == "unknown"
    with closing(Ledger(path)) as ledger:
        assert ledger.filter(TOTAL).spent.keys == Fraction("1e-9")
        with pytest.raises(BudgetError):
            ask(ledger, "b")  # there is no δ in this budget: it is overdrawn
        ledger.register({TOTAL: caps(4)}, "declared")
        assert ledger.verify().accounts[TOTAL].spent.pure == 4 * PRICE.epsilon


def test_caps_that_are_none(ledger: Ledger) -> None:
    head = ledger.head
    for wrong in (Caps(Fraction(0), Fraction(0), Fraction(0)), Caps(Fraction(1), Fraction(0), Fraction(1))):
        with pytest.raises(ValueError, match="a filter needs"):
            ledger.register({"ana": wrong}, "declared")
    assert ledger.head == head


def test_without_a_registered_budget_nothing_is_charged() -> None:
    ledger = Ledger(None)
    with pytest.raises(LedgerError) as missing:
        ask(ledger, "a")
    assert missing.value.code == "account"
    with pytest.raises(LedgerError):
        ledger.filter("nobody")


def test_snapshots_count_up_and_thaw(ledger: Ledger) -> None:
    assert ledger.snapshot("t") is None
    assert not frozen(ledger, "t")
    assert ledger.register_snapshots({"t": "first"}, anew=True)["t"].number == 1
    assert ledger.snapshot("t") == Snapshot(1, "first")
    failed(ledger, "t", limit=1)
    assert frozen(ledger, "t")
    assert not frozen(ledger, "u")
    assert ledger.snapshot("t") == Snapshot(1, "first")
    assert ledger.register_snapshots({"t": "second"}, anew=True)["t"].number == 2
    assert not frozen(ledger, "t")
    failed(ledger, "unknown", limit=1)
    assert frozen(ledger, "unknown")
    assert ledger.snapshot("unknown") is None
    assert [entry.note for entry in ledger.entries()][-3:] == [
        "t: snapshot 2",
        "",
        "entry 7 failed: those who name no analyst are suspended on unknown",
    ]
    ledger.verify()


def test_the_salt_lasts(tmp_path: Path) -> None:
    first, other = Ledger(tmp_path / "a.ledger"), Ledger(tmp_path / "b.ledger")
    assert len(first.salt()) == 32
    assert first.salt() == Ledger(tmp_path / "a.ledger").salt() != other.salt()


# history


def test_the_history_for_people(ledger: Ledger) -> None:
    given = ask(ledger, "a", "ana")
    ledger.commit(given.reserve_id, b"42")
    ask(ledger, "a", "bob")
    shown = [(entry.kind, entry.analyst, entry.question, entry.charged, entry.status) for entry in ledger.entries()]
    assert shown == [
        ("open", "", "", (), ""),
        ("register", "", "", (), ""),
        ("reserve", "ana", "SELECT a", (TOTAL, "ana"), "committed"),
        ("commit", "", "", (), ""),
        ("repeat", "bob", "SELECT a", ("bob",), "repeated"),
    ]
    entries = list(ledger.entries())
    assert entries[2].loss == entries[4].loss == PRICE
    assert [entry.reserve_id for entry in entries] == [None, None, 3, 3, 3]
    assert entries[1].note == "the budget: ε 0.5; ana: ε 0.3; bob: ε 0.3"


def test_heads_are_all_remembered(ledger: Ledger) -> None:
    heads = [ledger.head]
    for key in "abc":
        ask(ledger, key)
        heads.append(ledger.head)
    assert len(set(heads)) == 4
    for head in heads:
        assert ledger.verify(head.upper() + "\n").head == heads[-1]
    for wrong in ("", "00" * 32, heads[0][:-1]):
        with pytest.raises(LedgerError) as missing:
            ledger.verify(wrong)
        assert missing.value.code == "rewritten"


def test_heads_do_not_repeat_though_all_else_does() -> None:
    heads = set()
    for _ in range(3):
        ledger = Ledger(None)
        ledger.register({TOTAL: caps(1)}, "declared")
        heads.add(ledger.head)
    assert len(heads) == 3


def test_the_clock_is_a_label(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, now in (("a", "2099-01-01T00:00:00Z"), ("b", "1970-01-01T00:00:00Z"), ("c", "?")):
        monkeypatch.setattr(chain, "now", lambda now=now: now)
        ask(ledger, key)
    assert units(ledger)[0] == 3
    assert [entry.time for entry in ledger.entries()][-2:] == ["1970-01-01T00:00:00Z", "?"]
    ledger.verify()


@pytest.mark.parametrize("text", ["", "naïve 🦉 ‮ \x00 \n '; DROP TABLE entries --", "x" * 49_990])
def test_any_text(ledger: Ledger, text: str) -> None:
    if isinstance(ledger._file, LedgerServer):  # names there have no character 0
        with pytest.raises(LedgerError) as refused:
            ledger.reserve(PRICE, question="q", key="k", request="\0")
        assert (refused.value.code, ledger.filter(TOTAL).spent.nothing) == ("server", True)
        text = text.replace("\0", "")
    ledger.register({f"{text[:50]}!": caps(1)}, text)
    given = ledger.reserve(PRICE, question=text, key=text, account=f"{text[:50]}!", request=text)
    ledger.commit(given.reserve_id, text.encode())
    again = ledger.reserve(PRICE, question=text, key=text, account=f"{text[:50]}!", request=text)
    assert again == Stored(given.reserve_id, text.encode(), {})
    assert [entry.question for entry in ledger.entries() if entry.kind == "reserve"] == [text]
    ledger.register_snapshots({text: text}, anew=True)
    ledger.verify()


def test_text_that_is_none(ledger: Ledger) -> None:
    for place in ("question", "key", "account", "request"):
        texts = {"question": "q", "key": "k", "account": "ana", "request": "r"} | {place: "\ud800"}
        with pytest.raises(QuestionError) as wrong:
            ledger.reserve(PRICE, **texts)
        assert wrong.value.code == "text"
    assert units(ledger) == [0, 0, 0]


def test_a_closed_ledger(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError) as closed:
        ask(ledger, "a")
    assert closed.value.code == "closed"


def test_it_lasts(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "a.ledger")
    first.register({TOTAL: caps(5), "ana": caps(3)}, "declared")
    given = ask(first, "a", "ana")
    first.commit(given.reserve_id, b"42")
    second = Ledger(tmp_path / "a.ledger")  # beside the first, and after it
    first.close()
    assert ask(second, "a", "ana").answer == b"42"
    assert second.filter(TOTAL).spent.pure == PRICE.epsilon
    assert second.verify().entries == 4


def test_other_caps_reckon_every_release_anew() -> None:
    """What a release takes of the residue depends on the cap it is taken from; dead under one, alive under a larger."""
    ledger = Ledger(None)
    small, large = Caps(Fraction(1), Fraction("1e-6"), Fraction(0)), Caps(Fraction(10), Fraction("1e-6"), Fraction(0))
    ledger.register({TOTAL: small}, "declared")
    losses = [Pure(Fraction("0.9")), *[Pure(Fraction("0.01"))] * 5, Laplace("0.02")]
    for key, loss in enumerate(losses):
        ask(ledger, str(key), loss=loss)
    begun = ledger.filter(TOTAL)
    assert begun.residue is None
    for wanted in (large, small, Caps(Fraction("0.5"), Fraction("1e-6"), Fraction(0))):
        ledger.register({TOTAL: wanted}, "declared", raising=True)
        expected = wanted.filter(Spent(begun.family))
        for loss in losses:
            expected = expected.after(loss)
        assert ledger.filter(TOTAL) == expected
        assert (expected.residue is not None) == (wanted == large)
        assert ledger.verify().accounts[TOTAL] == expected
    with pytest.raises(BudgetError):
        ask(ledger, "more", loss=Pure(Fraction("1e-6")))


def test_the_first_snapshot_is_registered_once(tmp_path: Path) -> None:
    """Two processes that open a new ledger at the same instant: the second gets the first one's snapshot."""
    place = tmp_path / "new.ledger"
    with closing(Ledger(place)) as one, closing(Ledger(place)) as two:
        assert one.register_snapshots({"t": "seen"})["t"].number == 1
        assert two.register_snapshots({"t": "seen"})["t"] == one.snapshot("t")
        assert two.register_snapshots({"t": "other"})["t"].fingerprint == "seen"
        assert two.register_snapshots({"t": "other"}, anew=True)["t"].number == 2
