"""Sessions over TLS on loopback: what is opened, and every way in which a party can end one, with nothing opened."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import BudgetError, QuestionError, SessionError
from discreet.together import Opened, Session, from_dict, read, take_part
from discreet.together import session as module
from discreet.together.meeting import Meeting
from discreet.together.protocol import _PartyProgress, _PartyRun, added_up
from discreet.together.session import most_absent
from discreet.together.wire import Link, MessageKind, PeerGone
from discreet.trusted.ring_c.shares import Residues
from kinds import examples
from together_tools import Made, certificate, needs_openssl, play, session, take

pytestmark = needs_openssl
NAMES, FOUR = "abc", "abcd"
RESULT = NOTHING, NOT_THIS, OTHERS = (
    "; nothing was opened",
    "; no total with this party in it was opened",
    "; this party has no result, but the others may have opened it",
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("keys")
    made = {name: certificate(folder, name) for name in (*FOUR, "stranger")}
    return made | {"child": certificate(folder, "child", signer="b")}


@pytest.fixture
def agreed(keys: dict[str, tuple[str, Path]]) -> Session:
    return session({name: keys[name] for name in NAMES})


def brought(agreed: Session) -> dict[str, Made]:
    return {name: Made(agreed.mechanism, [place, 10 * place]) for place, name in enumerate(agreed.names, 1)}


def all_of(
    agreed: Session, keys: dict[str, tuple[str, Path]], made: dict[str, Made], names: str = NAMES
) -> list[object]:
    return play(*(take(agreed, name, keys[name][1], made[name]) for name in names))


def codes(ends: list[object]) -> set[str]:
    assert all(isinstance(end, SessionError) for end in ends), ends
    assert all(sum(words in str(end) for words in RESULT) == 1 for end in ends)
    return {end.code for end in ends}  # type: ignore[attr-defined]


def test_all_open_the_same_total(agreed: Session, keys: dict[str, tuple[str, Path]]) -> None:
    opened = all_of(agreed, keys, brought(agreed))
    assert opened == [Opened((6, 60), ("a", "b", "c"), opened[0].transcript)] * 3
    assert len(opened[0].transcript) == 64


def test_in_a_notebook(agreed: Session, keys: dict[str, tuple[str, Path]]) -> None:
    """Where a loop runs already."""

    async def cell(name: str) -> Opened:
        return take_part(agreed, name, keys[name][1], brought(agreed)[name])

    with ThreadPoolExecutor(3) as pool:
        opened = list(pool.map(lambda name: asyncio.run(cell(name)), NAMES))
    assert [one.totals for one in opened] == [(6, 60)] * 3


def test_wide_numbers_and_two_parties(keys: dict[str, tuple[str, Path]]) -> None:
    """Sums that do not fit 64 bits, negative ones too."""
    wide = session({name: keys[name] for name in "ab"}, sensitivity=2**70, epsilon=Fraction(2**80))
    assert wide.mechanism.ring.bits == 128
    made = {"a": Made(wide.mechanism, [-(2**100), 3]), "b": Made(wide.mechanism, [5, 2**99])}
    opened = all_of(wide, keys, made, "ab")
    assert [one.totals for one in opened] == [(5 - 2**100, 3 + 2**99)] * 2


def test_five_parties_of_whom_two_collude(keys: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    many = {name: certificate(tmp_path, name) for name in "vwxyz"}
    agreed = session(many, colluding=2, absent=1)
    assert agreed.mechanism.honest == 2
    opened = all_of(agreed, keys | many, brought(agreed), "vwxyz")
    assert opened == [Opened((15, 150), tuple("vwxyz"), opened[0].transcript)] * 5


def test_a_bug_on_one_side_says_nothing_of_its_numbers(agreed: Session, keys: dict[str, tuple[str, Path]]) -> None:
    class Broken(Made):
        def shares(self) -> list[Residues]:
            raise ZeroDivisionError(self.exact)

    made = brought(agreed)
    made["a"] = Broken(agreed.mechanism, [31_337, 0])
    ends = all_of(agreed, keys, made)
    assert "failed" in codes(ends)
    assert not any("31337" in repr(end) or "31337" in str(end) for end in ends)
    assert all(frames(end) <= {"_take_part"} and end.__context__ is None for end in ends)


def test_who_does_not_come_is_left_out_if_that_was_agreed(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in FOUR}, absent=1, seconds=1)
    opened = all_of(agreed, keys, brought(agreed), "acd")
    assert opened == [Opened((8, 80), ("a", "c", "d"), opened[0].transcript)] * 3


def test_who_does_not_come_ends_the_session_else(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in NAMES}, seconds=1)
    made = brought(agreed)
    ends = all_of(agreed, keys, made, "ac")
    assert codes(ends) == {"missing"}
    assert all(NOTHING in str(end) for end in ends)
    assert not made["a"].asked
    assert not made["c"].asked


def test_who_is_left_alone_does_not_say_what_the_others_do(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in FOUR}, absent=1, seconds=1)
    (end,) = all_of(agreed, keys, brought(agreed), "a")
    assert NOT_THIS in str(end)


def test_the_same_party_twice_ends_the_session(keys: dict[str, tuple[str, Path]]) -> None:
    """Once for each other party, both with the right key. Nobody measures."""
    agreed = session({name: keys[name] for name in NAMES}, seconds=1)
    made = [Made(agreed.mechanism, [1, 1]) for _ in range(3)]
    ends = play(*(take(agreed, name, keys[name][1], one) for name, one in zip("acc", made, strict=True)))
    assert "twice" in codes(ends)
    assert not any("shares" in one.asked for one in made)


@pytest.mark.parametrize("who", ["stranger", "child"])
def test_a_stranger_does_not_take_a_place(keys: dict[str, tuple[str, Path]], who: str) -> None:
    """Somebody with a certificate of his own who calls himself c cannot come, nor end the session of the others; not
    even if another party signed that certificate."""
    agreed = session({name: keys[name] for name in "abdc"}, seconds=1, absent=1)
    stranger = replace(agreed, parties=(*agreed.parties[:3], replace(agreed.parties[3], certificate=keys[who][0])))
    made = brought(agreed)
    ends = play(
        *(take(agreed, name, keys[name][1], made[name]) for name in "abd"),
        take(stranger, "c", keys[who][1], made["c"]),
    )
    assert [end.roster for end in ends[:3]] == [("a", "b", "d")] * 3
    assert codes(ends[3:]) == {"missing"}
    assert not made["c"].asked


def test_another_document_ends_the_session(agreed: Session, keys: dict[str, tuple[str, Path]]) -> None:
    made = brought(agreed)
    other = replace(agreed, epsilon=Fraction(1))
    ends = play(
        *(take(one, name, keys[name][1], made[name]) for one, name in zip((agreed, agreed, other), NAMES, strict=True))
    )
    assert "document" in codes(ends)
    assert not any("shares" in one.asked for one in made.values())


def test_a_key_of_another_certificate_is_refused(
    agreed: Session, keys: dict[str, tuple[str, Path]], tmp_path: Path
) -> None:
    for wrong in (keys["b"][1], tmp_path / "missing"):
        assert codes(play(take(agreed, "a", wrong, Made(agreed.mechanism, [1])))) == {"key"}


def test_an_address_in_use_is_said(agreed: Session, keys: dict[str, tuple[str, Path]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", agreed.parties[0].port))
        taken.listen()
        assert codes(play(take(agreed, "a", keys["a"][1], Made(agreed.mechanism, [1])))) == {"address"}


def test_only_the_named_address_is_listened_at(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in NAMES}, seconds=1)

    async def look() -> list[int]:
        meeting = Meeting(agreed, "a", keys["a"][1])
        waiting = asyncio.create_task(meeting.meet())
        await asyncio.sleep(0.2)
        found = []
        for host in ("127.0.0.1", "127.0.0.2"):
            with socket.socket() as caller:
                found.append(caller.connect_ex((host, agreed.parties[0].port)))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await meeting.close(end=False)
        return found

    here, elsewhere = asyncio.run(look())
    assert here == 0
    assert elsewhere != 0


class Rogue(_PartyRun):
    """Keeps to the protocol up to one phase, in which it does something else."""

    phase: MessageKind
    act: Callable[[Link, MessageKind, bytes], object]

    async def _exchange(
        self, kind: MessageKind, body: Callable[[str], bytes], length: int, *, all_: bool = False
    ) -> dict[str, bytes]:
        if kind != self.phase:
            return await super()._exchange(kind, body, length, all_=all_)
        for link in self.links.values():
            done = type(self).act(link, kind, body(link.name))
            if done is None:
                return await asyncio.sleep(3600, {})
            await done
        return {name: await link.receive(kind, length) for name, link in self.links.items()}


async def rogue(
    agreed: Session, key: Path, made: Made, phase: MessageKind, act: Callable[[Link, MessageKind, bytes], object]
) -> None:
    """Party c."""
    kind = type("Made", (Rogue,), {"phase": phase, "act": staticmethod(act)})
    meeting = Meeting(agreed, "c", key)
    try:
        await meeting.meet()
        await kind(agreed, "c", dict(meeting.links), _PartyProgress(agreed.absent)).run(made)
    finally:
        await meeting.close(end=False)


def frames(error: BaseException) -> set[str]:
    """The functions of the package whose variables an error takes along."""
    found, trace = set(), error.__traceback__
    while trace is not None:
        code, trace = trace.tb_frame.f_code, trace.tb_next
        if "together_tools" not in code.co_filename:
            found.add(code.co_name)
    return found - {"run"}


def raw(link: Link, *parts: bytes) -> object:
    link.writer.write(b"".join(parts))
    return link.writer.drain()


def framed(link: Link, kind: int, body: bytes, *, length: int | None = None, hash: bytes | None = None) -> object:
    return raw(
        link, bytes([kind]), hash or link.hash, (len(body) if length is None else length).to_bytes(8, "big"), body
    )


async def dies(link: Link, kind: MessageKind, body: bytes) -> None:  # noqa: ARG001
    link.writer.transport.abort()


def is_silent(link: Link, kind: MessageKind, body: bytes) -> None:  # noqa: ARG001
    return None


async def sends_twice(link: Link, kind: MessageKind, body: bytes) -> None:
    await framed(link, kind, body)
    await framed(link, kind, body)


WRONG = {
    "longer": (lambda link, kind, body: framed(link, kind, body + b"\0" * 8), "length"),
    "shorter": (lambda link, kind, body: framed(link, kind, body[:-8]), "length"),
    "claims 2^63 bytes": (lambda link, kind, body: framed(link, kind, body, length=2**63), "length"),
    "twice": (sends_twice, "malformed"),
    "no message": (lambda link, _, body: framed(link, 99, body), "malformed"),
    "another phase": (lambda link, kind, body: framed(link, MessageKind.OPENED - kind + 1, body), "malformed"),
    "another session": (lambda link, kind, body: framed(link, kind, body, hash=bytes(32)), "document"),
    "noise on the line": (lambda link, _, body: raw(link, bytes(range(200)), body), "document"),
    "other content": (lambda link, kind, body: framed(link, kind, bytes([body[0] ^ 1]) + body[1:]), ""),
}
CONTENT = {
    MessageKind.ROSTER: "roster",
    MessageKind.COMMITMENT: "sum",
    MessageKind.SUM: "sum",
    MessageKind.OPENED: "transcript",
}


def cases() -> Iterator[object]:
    for phase in (
        MessageKind.CHARGED,
        MessageKind.SHARES,
        MessageKind.HELD,
        MessageKind.ROSTER,
        MessageKind.COMMITMENT,
        MessageKind.SUM,
        MessageKind.OPENED,
    ):
        yield pytest.param(phase, dies, "stopped", id=f"{phase.name} dies")
        if phase in CONTENT:
            yield pytest.param(phase, WRONG["other content"][0], CONTENT[phase], id=f"{phase.name} other content")
    for phase in (MessageKind.SHARES, MessageKind.SUM):
        for name, (act, code) in WRONG.items():
            if code:
                yield pytest.param(phase, act, code, id=f"{phase.name} {name}")
    yield pytest.param(MessageKind.SUM, is_silent, "stopped", id="SUM is silent")


@pytest.mark.parametrize(("phase", "act", "code"), list(cases()))
def test_whatever_a_party_does_nothing_is_opened(
    keys: dict[str, tuple[str, Path]], phase: MessageKind, act: Callable[[Link, MessageKind, bytes], object], code: str
) -> None:
    """The others end with an error that says what happened, both of them, and both were charged."""
    agreed = session({name: keys[name] for name in NAMES}, seconds=1 if act is is_silent else 20)
    made = brought(agreed)

    async def run() -> list[object]:
        others = [asyncio.create_task(take(agreed, name, keys[name][1], made[name])) for name in "ab"]
        bad = asyncio.create_task(rogue(agreed, keys["c"][1], made["c"], phase, act))
        async with asyncio.timeout(300):
            ends = await asyncio.gather(*others, return_exceptions=True)
        bad.cancel()
        await asyncio.gather(bad, return_exceptions=True)
        return ends

    ends = asyncio.run(run())
    found = codes(ends)
    assert code in found
    assert found <= {code, "ended", "stopped"}
    assert all(one.asked[0] == "charge" for one in made.values())
    shown = code == "sum" or phase in (MessageKind.SUM, MessageKind.OPENED)
    assert all((OTHERS if shown else NOTHING) in str(end) for end in ends)
    assert all(frames(end) <= {"_take_part"} and end.__context__ is None for end in ends)


@pytest.mark.parametrize("phase", [MessageKind.CHARGED, MessageKind.SHARES, MessageKind.HELD])
def test_who_stops_before_all_agree_is_left_out_if_that_was_agreed(
    keys: dict[str, tuple[str, Path]], phase: MessageKind
) -> None:
    agreed = session({name: keys[name] for name in FOUR}, absent=1)
    made = brought(agreed)
    ends = play(
        *(take(agreed, name, keys[name][1], made[name]) for name in "abd"),
        rogue(agreed, keys["c"][1], made["c"], phase, dies),
    )
    assert ends[:3] == [Opened((7, 70), ("a", "b", "d"), ends[0].transcript)] * 3


def test_who_stops_later_ends_the_session_all_the_same(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in FOUR}, absent=1)
    made = brought(agreed)
    ends = play(
        *(take(agreed, name, keys[name][1], made[name]) for name in "abd"),
        rogue(agreed, keys["c"][1], made["c"], MessageKind.SUM, dies),
    )
    assert "stopped" in codes(ends[:3])
    assert all(OTHERS in str(end) for end in ends[:3])


def test_shares_for_some_only_leave_nobody_behind_unseen(keys: dict[str, tuple[str, Path]]) -> None:
    """c sends its shares to a, not to the others, and goes: a holds them, they do not; all go on without c."""
    agreed = session({name: keys[name] for name in FOUR}, absent=1)
    made = brought(agreed)

    async def to_one(link: Link, kind: MessageKind, body: bytes) -> None:
        if link.name == "a":
            await framed(link, kind, body)
        else:
            await link.close(end=False)

    ends = play(
        *(take(agreed, name, keys[name][1], made[name]) for name in "abd"),
        rogue(agreed, keys["c"][1], made["c"], MessageKind.SHARES, to_one),
    )
    assert ends[:3] == [Opened((7, 70), ("a", "b", "d"), ends[0].transcript)] * 3


@pytest.mark.parametrize("absent", [0, 1])
def test_a_party_cannot_have_others_left_out(keys: dict[str, tuple[str, Path]], absent: int) -> None:
    """d tells each honest party that it holds no shares of the others, and names a roster of that one and itself: as
    small a total would have the noise of too few. Nobody commits to a sum, let alone shows one."""
    many = {name: keys[name] for name in FOUR}
    agreed = session(many, absent=absent)
    made = brought(agreed)
    came: list[MessageKind] = []

    class Splits(_PartyRun):
        async def _roster(self, held: set[str]) -> set[str]:  # noqa: ARG002
            for kind in (MessageKind.HELD, MessageKind.ROSTER):
                for link in self.links.values():
                    await framed(link, kind, bytes(name in ("d", link.name) for name in agreed.names))
            with suppress(SessionError, PeerGone):
                for link in self.links.values():
                    while True:
                        kind, _ = await link.receive_one(
                            {kind: (0, 100) for kind in MessageKind if kind != MessageKind.END}
                        )
                        came.append(kind)
            raise PeerGone("enough")

    async def splits() -> None:
        meeting = Meeting(agreed, "d", many["d"][1])
        try:
            await meeting.meet()
            await Splits(agreed, "d", dict(meeting.links), _PartyProgress(absent)).run(made["d"])
        finally:
            await meeting.close(end=False)

    ends = play(*(take(agreed, name, keys[name][1], made[name]) for name in NAMES), splits())
    assert "roster" in codes(ends[:3])
    assert set(came) <= {MessageKind.HELD, MessageKind.ROSTER}


class Liar(_PartyRun):
    """Names to each other party the roster that it chose for it, in both phases, and then keeps to the protocol with
    everybody who stays. `lies` are the rosters; `opened` is what it adds up of the sums that it is shown."""

    lies: dict[str, str]
    opened: list[tuple[frozenset[str], tuple[int, ...]]]

    async def _roster(self, held: set[str]) -> set[str]:  # noqa: ARG002
        for kind in (MessageKind.HELD, MessageKind.ROSTER):
            for link in self.links.values():
                await framed(link, kind, bytes(name in self.lies[link.name] for name in self.session.names))
        return {*self.session.names}

    async def _sums(self, roster: set[str], mine: Residues) -> Opened:  # noqa: ARG002
        self.sums: dict[str, Residues] = {}
        await asyncio.gather(*(self._each(link) for link in self.links.values()), return_exceptions=True)
        for lie in {*self.lies.values()}:
            others = [name for name in lie if name != self.name]
            if others and all(name in self.sums for name in others):
                mine = added_up(self.ring, self.name, {*lie}, self.own, self.held)
                total = self.ring.total([mine, *(self.sums[name] for name in others)])
                self.opened.append((frozenset(lie), tuple(self.ring.signed(total))))
        raise PeerGone("enough")

    async def run(self, contribution: Made) -> Opened:
        await self._charged(contribution)
        self.own = dict(zip(self.session.names, contribution.shares(), strict=True))
        self.held = await self._shares(self.own)
        return await self._sums(await self._roster(set()), self.own[self.name])

    async def _each(self, link: Link) -> None:
        """Commits to the sum for the roster that this party believes in, shows it, and keeps what it is shown."""
        body = bytes(32) + self.ring.pack(added_up(self.ring, self.name, {*self.lies[link.name]}, self.own, self.held))
        names = len(self.session.names)
        await link.receive(MessageKind.HELD, names)
        await link.receive(MessageKind.ROSTER, names)
        await framed(link, MessageKind.COMMITMENT, self._commitment(self.name, body))
        await link.receive(MessageKind.COMMITMENT, 32)
        await framed(link, MessageKind.SUM, body)
        shown = await link.receive(MessageKind.SUM, len(body))
        self.sums[link.name] = self.ring.unpack(shown[32:])


def against_a_liar(
    agreed: Session, keys: dict[str, tuple[str, Path]], lies: dict[str, str]
) -> tuple[list[object], list[tuple[frozenset[str], tuple[int, ...]]]]:
    """What the honest parties end with where the last party lies so, and what that one has learned."""
    made, learned = brought(agreed), []
    kind, liar = type("One", (Liar,), {"lies": lies, "opened": learned}), agreed.names[-1]

    async def lying() -> None:
        meeting = Meeting(agreed, liar, keys[liar][1])
        try:
            await meeting.meet()
            await kind(agreed, liar, dict(meeting.links), _PartyProgress(agreed.absent)).run(made[liar])
        finally:
            await meeting.close(end=False)

    honest = agreed.names[:-1]
    return play(*(take(agreed, name, keys[name][1], made[name]) for name in honest), lying())[:-1], learned


def test_two_totals_could_be_opened_if_one_of_three_may_be_absent(
    keys: dict[str, tuple[str, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rule for `absent` is for: c names {a, c} to a and {b, c} to b, and learns both totals one by one."""
    three = {name: keys[name] for name in NAMES}
    with pytest.raises(QuestionError, match="two totals"):
        session(three, absent=1)
    with monkeypatch.context() as without:
        without.setattr(module, "most_absent", lambda *_: 2)
        agreed = session(three, absent=1)
    _, learned = against_a_liar(agreed, keys, {"a": "ac", "b": "bc"})
    assert dict(learned) == {frozenset("ac"): (4, 40), frozenset("bc"): (5, 50)}


LIES = [
    {"a": "abd", "b": "abd", "c": "acd"},
    {"a": "abd", "b": "bcd", "c": "acd"},
    {"a": "abd", "b": "abd", "c": "cd"},
    {"a": "abcd", "b": "abd", "c": "abcd"},
    {"a": "acd", "b": "abcd", "c": "acd"},
    {"a": "bcd", "b": "bcd", "c": "bcd"},
]


@pytest.mark.parametrize("lies", LIES, ids=lambda lies: "-".join(lies.values()))
def test_a_lying_party_has_one_total_opened_at_most(keys: dict[str, tuple[str, Path]], lies: dict[str, str]) -> None:
    """d keeps to the protocol with each in turn, with a sum for the roster that it named to it."""
    agreed = session({name: keys[name] for name in FOUR}, absent=1, seconds=1)
    ends, learned = against_a_liar(agreed, keys, lies)
    rosters = {roster for roster, _ in learned} | {frozenset(end.roster) for end in ends if isinstance(end, Opened)}
    assert len(rosters) <= 1
    assert all(len(roster) >= 3 for roster in rosters)
    codes([end for end in ends if not isinstance(end, Opened)])


def test_rosters_that_share_liars_alone_are_those_that_the_rule_forbids() -> None:
    """All rosters of up to seven parties, of whom the last ones lie."""
    for parties in range(2, 8):
        masks = [{place for place in range(parties) if mask >> place & 1} for mask in range(1 << parties)]
        for absent, colluding in itertools.product(range(parties), range(1, parties)):
            rosters = [roster for roster in masks if len(roster) >= parties - absent]
            liars = {*range(parties - colluding, parties)}
            two = any(one & other <= liars for one, other in itertools.combinations(rosters, 2))
            liars_alone = any(roster <= liars for roster in rosters)
            assert (absent > most_absent(parties, colluding)) == (two or liars_alone)


def test_a_party_that_is_refused_ends_the_session_before_anything_leaves(
    agreed: Session, keys: dict[str, tuple[str, Path]]
) -> None:
    made = brought(agreed)
    refusal = BudgetError("the budget does not allow this question", asked="1", left="0", fits="nothing")

    class Refused(Made):
        def charge(self) -> None:
            raise refusal

    made["b"] = Refused(agreed.mechanism, [1, 1])
    ends = all_of(agreed, keys, made)
    assert ends[1] is refusal
    assert codes([ends[0], ends[2]]) <= {"ended", "stopped"}
    assert not any("shares" in one.asked for one in made.values())


def test_a_document_is_read_as_it_was_written(agreed: Session, tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text(agreed.to_json(), "utf-8")
    found = read(tmp_path / "session.json")
    assert found == agreed
    assert found.hash == agreed.hash
    assert replace(agreed, nonce="0" * 64).hash != agreed.hash
    assert agreed.parties[0].certificate not in repr(agreed)


CHANGES = [
    ("question", ""),
    ("question", 3),
    ("question", "\ud800"),
    ("keys", ("city", "city")),
    ("keys", ("n",)),
    ("keys", ()),
    ("cells", ()),
    ("cells", (("north",), ("north",))),
    ("cells", (("north", "south"),)),
    ("cells", (([],),)),
    ("cells", ((float("nan"),),)),
    ("sensitivity", 0),
    ("sensitivity", True),
    ("epsilon", Fraction(0)),
    ("step", Fraction(-1)),
    ("colluding", 3),
    ("colluding", 0),
    ("colluding", -1),
    ("absent", 2),
    ("seconds", 0),
    ("nonce", "short"),
    ("parties", ()),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_sessions_that_could_not_be_held_are_refused(agreed: Session, name: str, value: object) -> None:
    with pytest.raises(QuestionError) as error:
        replace(agreed, **{name: value})
    assert error.value.code == "session"


@pytest.mark.parametrize(
    "change",
    [{"host": host} for host in ("", "0.0.0.0", "::", "[::]", "224.0.0.1", "a b", "x" * 300)]
    + [{"port": 0}, {"port": 65_536}, {"port": True}, {"name": ""}, {"name": "a\n"}, {"name": "b"}]
    + [{"certificate": "none"}, {"certificate": "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"}],
)
def test_parties_that_could_not_come_are_refused(agreed: Session, change: dict[str, object]) -> None:
    with pytest.raises(QuestionError):
        replace(agreed, parties=(replace(agreed.parties[0], **change), *agreed.parties[1:]))


def test_a_host_that_means_every_address_is_not_listened_at(keys: dict[str, tuple[str, Path]]) -> None:
    """`0` is a name, not an address, and stands for all of them."""
    agreed = session({name: keys[name] for name in "ab"}, seconds=1)
    agreed = replace(agreed, parties=tuple(replace(party, host="0") for party in agreed.parties))
    assert codes(play(take(agreed, "a", keys["a"][1], Made(agreed.mechanism, [1])))) == {"address"}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def written(keys: dict[str, tuple[str, Path]]) -> dict[str, object]:
    return json.loads(session({name: keys[name] for name in "ab"}).to_json())  # type: ignore[no-any-return]


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_documents_of_others_end_in_one_error(written: dict[str, object], data: st.DataObject) -> None:
    """Any JSON in the place of any field, or of the whole."""
    name = data.draw(st.sampled_from([*written, ""]))
    with suppress(QuestionError):
        from_dict(written | {name: data.draw(values)} if name else data.draw(values))


@pytest.mark.parametrize("text", ["1e99999999", "1/0", "9" * 500, "0x10", "nan", ""])
def test_numbers_that_could_not_be_computed_with_are_refused(agreed: Session, text: str) -> None:
    with pytest.raises(QuestionError):
        from_dict(json.loads(agreed.to_json()) | {"epsilon": text})


@pytest.mark.parametrize("content", [b"", b"[", b"[1]", b"\xff", b"[" * 100_000])
def test_files_that_are_no_documents_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "session.json").write_bytes(content)
    with pytest.raises(QuestionError):
        read(tmp_path / "session.json")
    with pytest.raises(QuestionError):
        read(tmp_path / "missing.json")


def test_a_connection_is_let_go_where_the_time_ends_in_a_greeting(keys: dict[str, tuple[str, Path]]) -> None:
    agreed = session({name: keys[name] for name in NAMES}, seconds=1)

    async def cancelled() -> bool:
        meeting = Meeting(agreed, "b", keys["b"][1])
        server = await asyncio.start_server(lambda _, writer: silent.append(writer), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        greeting = asyncio.create_task(meeting._greet(Link("a", b"", reader, writer)))
        await asyncio.sleep(0.1)
        greeting.cancel()
        await asyncio.gather(greeting, return_exceptions=True)
        gone = writer.transport.is_closing()
        for one in (writer, *silent):
            one.transport.abort()
        server.close()
        return gone

    silent: list[asyncio.StreamWriter] = []
    assert asyncio.run(cancelled())
