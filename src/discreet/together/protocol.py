"""One session, phase by phase: meet, charge, share, agree on who is in, commit to sums, show them, open.

What holds, and where:
* nothing is measured before every party that is there has said that its ledger is charged (`_charged`);
* what leaves a party before it knows the roster are shares, each uniform (`ring_c.shares`);
* a party gives out its sum once, and only after everybody in the roster has named the same one, of at least parties −
  absent members (`_roster`): so its vector is in one total, and with it the noise shares of at least k honest parties;
* one total is opened, and no second one over other parties, whatever up to `colluding` of them say (below);
* sums are committed to before any is shown, so nobody chooses what to add from what the others added (`_sums`);
* whatever is not the next message ends the session for the one who got it, who tells the others; a total is returned
  only where all in the roster have seen the same transcript (`_sums`).
A party may drop out until it is agreed who is in, as far as `absent` allows; later that ends the session. What parties
see of each other beside these messages is when they come.

One total. Model: m parties, of whom at most t = `colluding` send whatever they like, other things to each; the other,
honest ones follow the protocol; a link shows who wrote, and may be cut by anybody; d = `absent`. A session is one only
if 2(m − d) > m + t (`session`). Say an honest party P shows its sum for a roster R, and an honest party Q for S. An
honest party names one roster in a session, to all that are in it, and P goes on only if everybody in R has named R to
it (`_roster`); Q likewise. Both rosters have at least m − d of the m members, so at least 2(m − d) − m > t in common:
one of those is honest, has named R to P and S to Q, and names but one. So R = S. What is shown is thus the sums of one
roster, of which each honest member shows its own once; they add up to one total (`ring_c.shares`: all else in them
is uniform). With 2(m − d) = m + t there are two rosters that share liars alone: the t liars with half of the honest
parties, and with the other half. Liars can have up to d honest parties left out, as if these had dropped out, no more.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from discreet.errors import Error, SessionError
from discreet.together.largest import needed, place_of_largest
from discreet.together.meeting import Meeting
from discreet.together.session import Session
from discreet.together.wire import Link, MessageKind, PeerGone, ended
from discreet.trusted.ring_c.shares import Residues, Ring

_SALT, _DIGEST = 32, 32


class Contribution(Protocol):
    """A party's input to the session. Both steps may raise any error, which ends the session."""

    def charge(self) -> None:
        """Charges the party's own ledger, durably."""

    def shares(self) -> list[Residues]:
        """Splits the exact vector, with a share of the noise in it: one vector of random residues for each party."""


@dataclass(frozen=True)
class Opened:
    """The noisy totals, in steps, in the order of the session's cells, or alone the place of the largest.

    `roster` names who is in them, `transcript` is the hash of all that everybody saw.
    """

    totals: tuple[int, ...]
    roster: tuple[str, ...]
    transcript: str


def take_part(session: Session, name: str, key: str | Path, contribution: Contribution) -> Opened:
    """Takes part in a session as the party of that name, whose private key is in the file `key`.

    Raises SessionError where this party has no result, and says in it whether others may have one; QuestionError where
    the session has no such party, and what `contribution` raises.
    """
    part = partial(_take_part, session, name, Path(key), contribution)
    if not _in_a_loop():
        return asyncio.run(part())
    with ThreadPoolExecutor(1) as other:  # a notebook has a loop of its own
        return other.submit(lambda: asyncio.run(part())).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@dataclass
class _PartyProgress:
    """How far a party is. `shown`: whether it may have sent what the others need to open the result."""

    absent: int
    shown: bool = False

    def said(self, error: SessionError) -> SessionError:
        """The same error, with what is true of the result where a session ends here. Others see no sum of this party
        before it is shown, so until then no total that they can open has this party in it."""
        if self.shown:
            what = "this party has no result, but the others may have opened it"
        else:
            what = "no total with this party in it was opened" if self.absent else "nothing was opened"
        return ended(error.code, f"{error.message}; {what}", error.fix)


async def _take_part(session: Session, name: str, key: Path, contribution: Contribution) -> Opened:
    """The session's result; or its error, raised outside all frames that held shares, with none of them behind it."""
    end: BaseException
    progress = _PartyProgress(session.absent)
    try:
        return await _meet_and_open(session, name, key, contribution, progress)
    except SessionError as error:
        end = progress.said(error)
    except Error as error:
        end = error
    except Exception:
        end = progress.said(ended("failed", "this party failed"))
    except BaseException as interrupt:
        end = type(interrupt)(*interrupt.args)
    end.__cause__ = end.__context__ = end.__traceback__ = None
    raise end


async def _meet_and_open(
    session: Session, name: str, key: Path, contribution: Contribution, progress: _PartyProgress
) -> Opened:
    if session.opens == "largest":
        needed()
    meeting = Meeting(session, name, key)
    done = False
    try:
        await meeting.meet()
        opened = await _PartyRun(session, name, dict(meeting.links), progress).run(contribution)
        done = True
        return opened
    finally:
        await meeting.close(end=not done)


def added_up(
    ring: Ring, name: str, roster: Set[str], own: Mapping[str, Residues], held: Mapping[str, Residues]
) -> Residues:
    """A party's sum over a roster: the shares that it `held` of the others there, the one of its `own` that it kept,
    and those that it made for parties who are not in. So the sums of the roster add up to its members' vectors.
    """
    came = [vector for party, vector in held.items() if party in roster]
    kept = [vector for party, vector in own.items() if party == name or party not in roster]
    return ring.total([*came, *kept])


class _PartyRun:
    """What one party holds between the phases. `links` are the parties still there."""

    def __init__(self, session: Session, name: str, links: dict[str, Link], progress: _PartyProgress) -> None:
        self.session, self.name, self.links, self.progress = session, name, links, progress
        self.ring = session.mechanism.ring
        self.length = len(session.cells) * self.ring.width

    async def run(self, contribution: Contribution) -> Opened:
        await self._charged(contribution)
        if self.session.opens == "largest":
            return await self._largest(contribution)
        own = dict(zip(self.session.names, contribution.shares(), strict=True))
        held = await self._shares(own)
        roster = await self._roster({self.name, *held})
        return await self._sums(roster, added_up(self.ring, self.name, roster, own, held))

    async def _charged(self, contribution: Contribution) -> None:
        contribution.charge()
        await self._exchange(MessageKind.CHARGED, lambda _: b"", 0)

    async def _shares(self, own: Mapping[str, Residues]) -> dict[str, Residues]:
        """What the others sent to this party."""
        came = await self._exchange(MessageKind.SHARES, lambda party: self.ring.pack(own[party]), self.length)
        return {party: self.ring.unpack(body) for party, body in came.items()}

    async def _roster(self, held: set[str]) -> set[str]:
        """Those whose shares everybody has who is there; all of them must name the same."""
        names = self.session.names

        def mask(parties: set[str]) -> bytes:
            return bytes(name in parties for name in names)

        came = await self._exchange(MessageKind.HELD, lambda _: mask(held), len(names))
        roster = {self.name, *came}
        for body in came.values():
            roster &= {name for name, has in zip(names, body, strict=True) if has}
        if self.name not in roster or len(roster) < len(names) - self.session.absent:
            raise ended("roster", "too few parties hold each other's shares")
        self.links = {name: link for name, link in self.links.items() if name in roster}
        said = await self._exchange(MessageKind.ROSTER, lambda _: mask(roster), len(names), all_=True)
        for party, body in said.items():
            if body != mask(roster):
                raise ended("roster", f"{party} sent another roster")
        return roster

    async def _sums(self, roster: set[str], mine: Residues) -> Opened:
        """Every party's sum of the shares it holds, and what they add up to."""
        salt = secrets.token_bytes(_SALT)
        shown = {self.name: salt + self.ring.pack(mine)}
        promised = {self.name: self._commitment(self.name, shown[self.name])}
        promised |= await self._exchange(MessageKind.COMMITMENT, lambda _: promised[self.name], _DIGEST, all_=True)
        self.progress.shown = True
        shown |= await self._exchange(MessageKind.SUM, lambda _: shown[self.name], _SALT + self.length, all_=True)
        for party, body in shown.items():
            if self._commitment(party, body) != promised[party]:
                raise ended("sum", f"{party} opened another sum than it had committed to")
        order = [name for name in self.session.names if name in roster]
        seen = hashlib.sha256(bytes.fromhex(self.session.hash))
        for party in order:
            seen.update(hashlib.sha256(party.encode() + b"\0" + shown[party]).digest())
        transcript = seen.digest()
        said = await self._exchange(MessageKind.OPENED, lambda _: transcript, _DIGEST, all_=True)
        for party, body in said.items():
            if body != transcript:
                raise ended("transcript", f"{party} received other messages")
        total = self.ring.total([self.ring.unpack(shown[party][_SALT:]) for party in order])
        return Opened(tuple(self.ring.signed(total)), tuple(order), transcript.hex())

    async def _largest(self, contribution: Contribution) -> Opened:
        """Where the largest noisy total is; the totals themselves stay shared."""
        own = self.ring.signed(self.ring.total(contribution.shares()))
        self.progress.shown = True  # less than all of the parties can open the place, once they share it
        place = await place_of_largest(self.session, self.name, self.links, own)
        seen = hashlib.sha256(bytes.fromhex(self.session.hash) + place.to_bytes(8, "big")).hexdigest()
        return Opened((place,), tuple(self.session.names), seen)

    def _commitment(self, party: str, body: bytes) -> bytes:
        """Binds a party to a sum, and hides it until the salt is shown."""
        return hashlib.sha256(bytes.fromhex(self.session.hash) + party.encode() + b"\0" + body).digest()

    async def _exchange(
        self, kind: MessageKind, body: Callable[[str], bytes], length: int, *, all_: bool = False
    ) -> dict[str, bytes]:
        """Sends each party there its message of this phase, and gives those that came in time.

        Who has gone is left out from now on, as long as the session allows it, and never with `all_`. Raises
        SessionError.
        """
        links = list(self.links.values())
        tasks = [asyncio.create_task(self._with(link, kind, body(link.name), length)) for link in links]
        try:
            found = await asyncio.gather(*tasks)
        finally:  # what one party does wrong ends the session at once
            for task in tasks:
                task.cancel()
        came = {link.name: result for link, result in zip(links, found, strict=True) if isinstance(result, bytes)}
        gone = [result for result in found if isinstance(result, PeerGone)]
        if gone and (all_ or len(self.session.names) - 1 - len(came) > self.session.absent):
            raise ended("stopped", str(gone[0]))
        self.links = {name: self.links[name] for name in came}
        return came

    async def _with(self, link: Link, kind: MessageKind, body: bytes, length: int) -> bytes | PeerGone:
        """One message each way, or how the other party has gone."""
        try:
            async with asyncio.timeout(self.session.seconds):
                _, came = await asyncio.gather(link.send(kind, body), link.receive(kind, length))
                return came
        except PeerGone as gone:
            return gone
        except TimeoutError:
            return PeerGone(f"{link.name} was silent for {self.session.seconds} seconds")
