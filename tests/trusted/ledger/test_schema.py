"""Ledgers of other versions, faulty programs, and charges that take as long in a long ledger as in a short
one.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import apsw
import pytest

from discreet.accounting import Batch, Family, Gaussian, Pure, Spent
from discreet.accounting.room import gaussian_room
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Caps, Ledger, Reserved, Snapshot, Stored, TableState, Unit
from discreet.trusted.ledger import chain, schema
from kinds import DATA
from storms import PRICE, forge, make

FIXTURES = DATA
HEAD = "41e10c23be33adb35319f5fa193b49e86966de0f76bb9768b9631954ba6b821f"
HEAD_2 = "4fef9ab8412c586e60a62cc198904a81d0b91298da333d6006340bd87e420cfa"
HEAD_3 = "16cfdda20d594687455ec0a9916a44cb137bb469a7425ec413c64278d32ca053"
HEAD_5 = "603801f3ec66291758ad3acf83a40d34506096c1af510b6016d53398a0ae1b19"
HEAD_4 = "2442865c7f3d58ab7580bf0f25d9d6e9d715c8d81b3d422bd95f8601307ba88e"
OLD = Family(1)


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    return Path(shutil.copy(FIXTURES / "version-1.ledger", tmp_path / "old.ledger"))


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    return Path(shutil.copy(FIXTURES / "version-2.ledger", tmp_path / "old.ledger"))


@pytest.fixture
def version_3(tmp_path: Path) -> Path:
    shutil.copy(FIXTURES / "version-3.ledger.head", tmp_path / "old.ledger.head")
    return Path(shutil.copy(FIXTURES / "version-3.ledger", tmp_path / "old.ledger"))


@pytest.fixture
def version_4(tmp_path: Path) -> Path:
    shutil.copy(FIXTURES / "version-4.ledger.head", tmp_path / "old.ledger.head")
    return Path(shutil.copy(FIXTURES / "version-4.ledger", tmp_path / "old.ledger"))


@pytest.fixture
def version_5(tmp_path: Path) -> Path:
    shutil.copy(FIXTURES / "version-5.ledger.head", tmp_path / "old.ledger.head")
    return Path(shutil.copy(FIXTURES / "version-5.ledger", tmp_path / "old.ledger"))


CAPS = Caps(Fraction(1), Fraction("1e-6"), Fraction("1e-7"))


def gaussian(path: Path) -> Ledger:
    """A new ledger whose budget has a delta, and so a μ²."""
    ledger = Ledger(path)
    ledger.register({TOTAL: Caps(Fraction(5), Fraction("1e-6"), Fraction(0))}, "a test")
    return ledger


def check_fixture(ledger: Ledger) -> None:
    """What the fixture says, whatever version reads it."""
    verified = ledger.verify(HEAD)
    assert verified.entries == 15
    assert verified.unanswered == 2
    assert ledger.filter(TOTAL).spent.pure is None
    assert ledger.filter(TOTAL).spent.keys == Fraction("1e-8")
    ana = ledger.filter("ana")
    assert (ana.epsilon, ana.spent.pure, ana.spent.keys) == (
        Fraction("0.4"),
        Fraction("0.3"),
        Fraction("1e-8"),
    )
    assert ledger.snapshot("patients") == Snapshot(2, "second")
    losses = [entry.loss for entry in ledger.entries() if entry.kind == "reserve"]
    assert losses[0] == Pure(Fraction(1, 10))
    assert isinstance(losses[3], Batch)
    assert losses[4] == Gaussian(Fraction("0.05"))


def test_a_ledger_of_version_1_opens_verifies_and_goes_on(version_1: Path) -> None:
    ledger = Ledger(version_1)
    check_fixture(ledger)
    assert len(ledger.salt()) == 32
    again = ledger.reserve(PRICE, question="question 3", key="3")
    assert isinstance(again, Stored)
    assert (again.answer, again.charged) == (b'{"rows":[3]}', {})
    with pytest.raises(LedgerError, match="no stored answer"):
        ledger.reserve(PRICE, question="question 1", key="1", account="ana", request="1")
    given = ledger.reserve(PRICE, question="new", key="new", account="ana")
    assert isinstance(given, Reserved)
    ledger.commit(given.reserve_id, b"new")
    assert ledger.verify(HEAD).entries == 17


def test_a_ledger_of_version_3_opens_verifies_and_goes_on(version_3: Path) -> None:
    """Every kind of entry that was written before the trusted part was divided from the rest."""
    ledger = Ledger(version_3)
    verified = ledger.verify(HEAD_3)
    assert (verified.entries, verified.unanswered, verified.head) == (24, 4, HEAD_3)
    kinds = {entry.kind for entry in ledger.entries()}
    assert kinds >= {"open", "register", "snapshot", "reserve", "commit", "repeat", "failure", "lift", "end", "unknown"}
    total, ana = ledger.filter(TOTAL).spent, ledger.filter("ana").spent
    assert (total.finite, total.gaussian, total.keys) == (Fraction("0.9"), Fraction("0.0025"), Fraction("1e-8"))
    assert total.mu_squared == Fraction("0.09232794406224091220172596993110222605726")
    assert (ana.finite, ana.gaussian, ana.mu_squared, ana.keys) == (Fraction("0.5"), 0, None, Fraction("1e-8"))
    assert ledger.tables()["patients"] == TableState(2, "second")
    with pytest.raises(LedgerError, match=r"patients: a person was id \(text\) in the answers so far"):
        ledger.register({}, "[budget]\n", units={"patients": Unit("id", 3, "integer")})
    again = ledger.reserve(PRICE, question="question 3", key="3")
    assert isinstance(again, Stored)
    assert again.answer == b'{"rows":[3]}'
    with pytest.raises(LedgerError, match="no stored answer"):
        ledger.reserve(PRICE, question="question 1", key="1", account="ana", request="1")
    given = ledger.reserve(PRICE, question="new", key="new", tables=["patients"])
    assert isinstance(given, Reserved)
    ledger.fail(given.reserve_id)
    assert ledger.tables()["patients"].suspended == ("",)
    assert ledger.verify(HEAD_3).entries == 26


def test_a_ledger_of_version_4_opens_verifies_and_goes_on(version_4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not say what is left of a cap once what was approved has ended: that is said when the next period begins,
    of an analyst, too, whom nobody declares any more."""
    ledger = Ledger(version_4)
    assert (ledger.verify(HEAD_4).entries, ledger.verify().head) == (31, HEAD_4)
    assert {entry.kind for entry in ledger.entries()} >= {
        "period",
        "service",
        "register",
        "reserve",
        "commit",
        "snapshot",
    }
    assert [ledger.filter(name).epsilon for name in ("ana", "ben", "eve")] == [Fraction("1.025"), 2, Fraction("1.25")]
    assert ledger.approved() == {"ana": Fraction("0.625"), "eve": Fraction("0.75")}
    assert ledger.allowances("ana")["day"].account.epsilon == Fraction("0.2")
    monkeypatch.setattr(chain, "now", lambda: "2026-11-10T12:00:00Z")
    ledger.register_snapshots({"visits": "November"}, anew=True, turning=ledger.turn())
    assert [ledger.filter(name).epsilon for name in ("ana", "ben", "eve")] == [Fraction("0.4"), 2, Fraction("0.5")]
    assert ledger.filter("ana").spent.nothing
    given = ledger.reserve(PRICE, question="new", key="new", account="eve", period="2026-11")
    assert isinstance(given, Reserved)
    assert ledger.verify(HEAD_4).entries == 35
    ledger.close()
    with pytest.raises(BudgetError):
        Ledger(version_4).reserve(Pure(Fraction("0.45")), question="more", key="more", account="eve", period="2026-11")


def test_a_ledger_of_version_5_opens_verifies_and_goes_on(version_5: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knew no parts: each charge was for all. One that is declared now begins with all of them."""
    ledger = Ledger(version_5)
    verified = ledger.verify(HEAD_5)
    assert (verified.head, verified.unanswered) == (HEAD_5, 2)
    kinds = {entry.kind for entry in ledger.entries()}
    assert kinds >= {"persons", "period", "repeat", "failure", "end", "service", "commit", "snapshot"}
    assert [(name, len(ids)) for name, ids in ledger.seen()] == [("2026-10", 32), ("2026-11", 16)]
    assert (ledger.filter(TOTAL).spent.pure, ledger.filter("ana").epsilon) == (Fraction("0.3"), 1)
    again = ledger.reserve(PRICE, question="one", key="one", period="2026-11")
    assert isinstance(again, Stored)
    monkeypatch.setattr(chain, "now", lambda: "2026-11-11T12:00:00Z")
    caps = {TOTAL: Caps(Fraction(3), Fraction("1e-6"), Fraction("1e-7"))}
    ledger.register(caps, "parts", renewal=ledger.renewal, parts=["north"])
    north = ledger.parts["north"]
    assert ledger.filter(north) == ledger.filter(TOTAL)
    with pytest.raises(LedgerError):  # a budget that renews has none for each part
        ledger.reserve(PRICE, question="new", key="new", period=north)
    ledger.reserve(PRICE, question="new", key="new", period="2026-11")
    assert ledger.filter(north) == ledger.filter(TOTAL)
    assert ledger.verify(HEAD_5).entries == verified.entries + 2


def test_an_account_keeps_the_filters_that_it_began_with(version_2: Path) -> None:
    """Charged accounts go on in the first family, whatever their caps; who had spent nothing begins in the present."""
    ledger = Ledger(version_2)
    assert ledger.verify(HEAD_2).entries == 18
    for name in (TOTAL, "ana", "bob"):
        assert ledger.filter(name).family == OLD
    bob, eve = ledger.filter("bob"), ledger.filter("eve")
    assert (bob.spent.pure, bob.spent.mu_squared, gaussian_room(bob)) == (Fraction("0.4"), None, 0)
    assert eve.spent.family is None
    ledger.reserve(PRICE, question="bob", key="bob", account="bob")
    ledger.reserve(PRICE, question="eve", key="eve", account="eve")
    assert ledger.filter("bob") == bob.after(PRICE)
    assert ledger.filter("eve") == eve.after(PRICE)
    assert (ledger.filter("bob").family, ledger.filter("eve").family) == (OLD, eve.family)
    wider = {name: replace(CAPS, epsilon=Fraction(2)) for name in ("bob", "eve")}
    ledger.register(wider, "wider", raising=True)
    for name, before in (("bob", [Pure(Fraction("0.4")), PRICE]), ("eve", [PRICE])):
        expected = CAPS.filter().__class__(2, CAPS.delta, CAPS.keys_delta, Spent(ledger.filter(name).family))
        for loss in before:
            expected = expected.after(loss)
        assert ledger.filter(name) == expected
    assert gaussian_room(ledger.filter("bob")) == 0 < gaussian_room(ledger.filter("eve"))
    assert ledger.verify(HEAD_2).entries == 21
    ledger.close()
    again = Ledger(version_2)
    assert again.filter("bob").family == OLD
    assert again.verify(HEAD_2).entries == 21


def test_an_owner_moves_to_the_present_filters_and_promises_the_sum(version_2: Path) -> None:
    ledger = Ledger(version_2)
    promises = ledger.renew()
    assert promises == {TOTAL: "ε 5 δ 1.9e-6", "ana": "ε 0.4 δ 1.9e-7", "bob": "ε 1 δ 1.9e-6"}
    bob = ledger.filter("bob")
    assert bob.promised_delta == 2 * CAPS.delta - CAPS.keys_delta
    assert bob == CAPS.filter(Spent(bob.family)).after(Pure(Fraction("0.4")))
    assert gaussian_room(bob) > 0
    assert ledger.renew() == {}
    last = list(ledger.entries())[-1]
    assert (last.kind, last.loss, last.charged) == ("renew", None, ())
    assert "bob: filters renewed, from now on ε 1 δ 1.9e-6" in last.note
    ledger.reserve(PRICE, question="bob", key="bob", account="bob")
    ledger.register({"bob": replace(CAPS, epsilon=Fraction(2))}, "wider", raising=True)
    assert ledger.filter("bob").family.moved
    assert ledger.verify(HEAD_2).entries == 21


def test_filters_are_not_renewed_where_nothing_would_be_left(tmp_path: Path) -> None:
    """All of the old residue is spent, and four fifths of the δ are not enough for that."""
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.register({TOTAL: CAPS}, "a test")
    whole = CAPS.filter(Spent(OLD))
    with ledger._file.write() as transaction:
        loss = Gaussian(Fraction("0.2335"))
        fields = {"kind": "reserve", "reserve": 3, "analyst": "", "question": "q", "key": "k", "account": None}
        state = {"caps": CAPS.to_json(), "spent": whole.charge(loss).spent.to_json()}
        forge(transaction, fields | {"request": None, "loss": loss.to_json()}, {("account", TOTAL): state})
    head = ledger.head
    assert ledger.verify().accounts[TOTAL].family == OLD
    assert ledger.renew() == {}
    assert ledger.head == head


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("bob", {}, "corrupt"),
        ("bob", {"moved": True}, "corrupt"),
        ("eve", {"moved": True}, "corrupt"),
        ("eve", {"family": 3}, "newer"),
    ],
)
def test_an_account_that_changes_its_filters_by_itself_is_found(
    version_2: Path, name: str, changes: dict[str, object], code: str
) -> None:
    """A replay into other filters would add their δ, unsaid."""
    ledger = Ledger(version_2)
    renewed = CAPS.filter()
    for loss in [Pure(Fraction("0.4")), PRICE] if name == "bob" else [PRICE]:
        renewed = renewed.after(loss)
    with ledger._file.write() as transaction:
        total = transaction.account(TOTAL)
        states: dict[tuple[str, str], object] = {
            ("account", TOTAL): {"caps": Caps.of(total).to_json(), "spent": total.after(PRICE).spent.to_json()},
            ("account", name): {"caps": CAPS.to_json(), "spent": renewed.spent.to_json() | changes},
        }
        fields = {"kind": "reserve", "reserve": 19, "analyst": name, "account": name, "question": "q", "key": "k"}
        forge(transaction, fields | {"request": None, "loss": PRICE.to_json()}, states)
    with pytest.raises(LedgerError) as wrong:
        ledger.verify()
    assert wrong.value.code == code


def user_version(path: Path, number: int | None = None) -> int:
    """The number of a file's version, which may be set."""
    connection = apsw.Connection(str(path))
    if number is not None:
        connection.pragma("user_version", number)
    found: int = connection.pragma("user_version")
    connection.close()
    return found


def test_an_older_version_becomes_the_present_one(version_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with that no older program's any more; as with a made-up next version."""
    assert user_version(version_1) == 1
    check_fixture(Ledger(version_1))
    assert user_version(version_1) == schema.VERSION
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    check_fixture(Ledger(version_1))
    check_fixture(Ledger(version_1))  # now of the next version
    monkeypatch.undo()
    with pytest.raises(LedgerError) as newer:
        Ledger(version_1)
    assert newer.value.code == "newer"


def test_an_older_file_that_is_refused_stays_as_it_was(version_1: Path) -> None:
    for number in (0, -1):
        user_version(version_1, number)
        with pytest.raises(LedgerError, match="version is unknown"):
            Ledger(version_1)
        assert user_version(version_1) == number
    user_version(version_1, 1)
    connection = apsw.Connection(str(version_1))
    connection.execute("CREATE INDEX analysts ON entries (analyst)")
    with pytest.raises(LedgerError, match="schema is not valid"):
        Ledger(version_1)
    assert user_version(version_1) == 1
    connection.execute("DROP INDEX analysts")
    connection.close()
    check_fixture(Ledger(version_1))


def test_what_a_newer_program_has_opened_meanwhile_stays_newer(version_1: Path) -> None:
    """It opens the file after its version was read, and before it is written."""

    class Slow(apsw.Connection):
        def __enter__(self) -> Slow:
            user_version(version_1, schema.VERSION + 1)
            super().__enter__()
            return self

    with pytest.raises(LedgerError) as newer:
        schema.check(Slow(str(version_1)))
    assert (newer.value.code, user_version(version_1)) == ("newer", schema.VERSION + 1)


def test_a_newer_version_is_refused(version_1: Path) -> None:
    ledger = Ledger(version_1)
    apsw.Connection(str(version_1)).execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(LedgerError) as newer:
        Ledger(version_1)
    assert (newer.value.code, newer.value.fix) == ("newer", "upgrade discreet")
    with pytest.raises(LedgerError):  # one that was open goes no further either
        ledger.reserve(PRICE, question="q", key="k")


def test_a_loss_that_this_version_does_not_know(tmp_path: Path) -> None:
    make(tmp_path / "a.ledger", units=5)
    ledger = Ledger(tmp_path / "a.ledger")
    loss = {"event": "of the future"}
    with ledger._file.write() as transaction:
        fields = {"kind": "reserve", "reserve": 3, "analyst": "", "question": "q", "key": "k", "loss": loss}
        forge(transaction, fields, {})
    for act in (ledger.verify, lambda: list(ledger.entries())):
        with pytest.raises(LedgerError) as newer:
            act()
        assert newer.value.code == "newer"


@pytest.mark.parametrize(
    ("kind", "fields", "changes"),
    [
        ("reserve", {"reserve": 3, "loss": PRICE.to_json()}, {}),
        ("reserve", {"reserve": 3, "loss": PRICE.to_json()}, {"finite": "0"}),
        ("reserve", {"reserve": 3, "loss": PRICE.to_json()}, {"finite": "1/10", "mu_squared": "1/100"}),
        ("reserve", {"reserve": 3, "loss": Pure(Fraction(9)).to_json()}, {"finite": "9", "mu_squared": "100"}),
        ("freeze", {"table": "t"}, {"finite": "0"}),
        ("commit", {"reserve": 3, "answer": None}, {}),
        ("repeat", {"reserve": 3, "key": "k"}, {}),
        ("open", {}, {}),
    ],
)
def test_a_chained_entry_that_does_not_add_up(
    tmp_path: Path, kind: str, fields: dict[str, object], changes: dict[str, str]
) -> None:
    """Entries with good hashes, as a faulty program would write them: the replay finds them."""
    ledger = gaussian(tmp_path / "a.ledger")
    with ledger._file.write() as transaction:
        state = transaction.state("account", "")
        state["spent"] |= changes
        forge(transaction, {"kind": kind, **fields}, {("account", ""): state} if changes else {})
    with pytest.raises(LedgerError) as wrong:
        ledger.verify()
    assert wrong.value.code == "corrupt"


def test_balances_that_were_wrong_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.ledger", units=5)
    ledger = Ledger(tmp_path / "a.ledger")
    with ledger._file.write() as transaction:
        with monkeypatch.context() as patch:
            patch.setattr(chain, "balances", lambda _: "00" * 32)
            forge(transaction, {"kind": "note"}, {})
        forge(transaction, {"kind": "note"}, {})
    with pytest.raises(LedgerError, match="entry 3 is not as it was written"):
        ledger.verify()


def test_a_replay_allows_for_another_machines_last_digits(tmp_path: Path) -> None:
    ledger = gaussian(tmp_path / "a.ledger")
    exact = ledger.filter(TOTAL).after(PRICE).spent
    assert exact.mu_squared is not None
    with ledger._file.write() as transaction:
        state = transaction.state("account", "")
        state["spent"] = exact.to_json() | {"mu_squared": str(exact.mu_squared * (1 - Fraction(1, 10**9)))}
        forge(transaction, {"kind": "reserve", "reserve": 3, "loss": PRICE.to_json()}, {("account", ""): state})
    assert ledger.verify().entries == 3


def test_no_question_to_the_file_reads_all_entries(tmp_path: Path) -> None:
    """Every statement of a charge goes through an index."""
    make(tmp_path / "a.ledger", units=5, ana=5)
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.commit(ledger.reserve(PRICE, question="q", key="k", account="ana", request="r").reserve_id, b"")
    connection = ledger._file._connection
    assert connection is not None
    statements: dict[str, object] = {}
    connection.exec_trace = lambda _, sql, values: statements.setdefault(sql, values) is None or True
    ledger.commit(ledger.reserve(PRICE, question="q", key="l", account="ana", request="s").reserve_id, b"")
    ledger.reserve(PRICE, question="q", key="k", account="ana", request="t")
    connection.exec_trace = None
    asked = [sql for sql in statements if "entries" in sql]
    assert len(asked) > 5
    for sql in asked:
        values = statements[sql]
        for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values):  # type: ignore[arg-type]
            assert not str(row[3]).startswith("SCAN") or "LIMIT 1" in sql, (sql, row)


def test_the_columns_are_in_one_order() -> None:
    table = schema.TABLES[0]
    assert sorted(chain.INDEXED, key=table.index) == list(chain.INDEXED)
