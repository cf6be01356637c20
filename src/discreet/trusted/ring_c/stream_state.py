"""The secret state of a stream: what was counted exactly, in an encrypted file of its own.

What a stream releases is exact counts with noise; whoever has the counts behind it, or the persons' memory, needs no
release. So the state lies in a sealed file (`sealed_file`). Its size tells the number of persons by no more than a
factor of two. That it is the newest state follows from the ledger (`continual`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar

from discreet.trusted.ring_c.arrivals import Memory, Person
from discreet.trusted.ring_c.sealed_file import SealedFile


@dataclass(frozen=True)
class State:
    """What a stream knows that nobody else may: `identity`, whose hash the ledger holds; the exact counts of each
    period so far, by group; the persons' memory; and the last release, which is in the ledger or about to be."""

    identity: str = field(repr=False)
    counted: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    memory: Memory = field(default_factory=dict, repr=False)
    released: str = field(default="", repr=False)

    @property
    def seen(self) -> Seen:
        """All but the counts and the persons' memory."""
        return Seen(self.identity, len(self.counted), self.released)

    def to_json(self) -> bytes:
        """All of it, exact counts and persons too: bytes to be sealed."""
        persons = {name: [one.periods, *map(list, one.counted.items())] for name, one in self.memory.items()}
        whole = {"identity": self.identity, "counted": self.counted, "persons": persons, "released": self.released}
        return json.dumps(whole, separators=(",", ":")).encode()

    @staticmethod
    def from_json(text: bytes) -> State:
        """The state that `to_json` wrote."""
        whole = json.loads(text)
        memory = {name: Person(periods, dict(cells)) for name, (periods, *cells) in whole["persons"].items()}
        return State(whole["identity"], tuple(map(tuple, whole["counted"])), memory, whole["released"])


@dataclass(frozen=True)
class Seen:
    """Of a state, what is not exact: its identity, how many periods it has, and its last release, which may be in no
    ledger yet."""

    identity: str = field(repr=False)
    periods: int
    released: str = field(repr=False)


@dataclass(frozen=True)
class StateFile(SealedFile):
    """Where a stream's state and its key lie."""

    format: ClassVar[bytes] = b"discreet stream 1\n"
    kind: ClassVar[str] = "stream"

    def read(self, key: bytes, name: str) -> State:
        """The whole state, for the gate's frames alone. Whatever is raised is a failure there."""
        return State.from_json(self.unsealed(key, name))

    def seen(self, key: bytes, name: str) -> Seen | None:
        """What may be seen of the state: `SealedFile.part`."""
        return self.part(key, name, lambda plain: State.from_json(plain).seen)

    def write(self, state: State, key: bytes, name: str) -> bool:
        """Puts a state in the place of the one that is there: `SealedFile.write_sealed`."""
        return self.write_sealed(state.to_json(), key, name)
