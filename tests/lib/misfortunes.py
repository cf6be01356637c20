"""What may happen to a ledger's files, tried on real ones: writers killed at any moment, then a flipped bit, a lost
file, an older copy, pages that a crash mixed. Each is refused, or no acknowledged charge is missing: else it is unseen.

`PYTHONPATH=.. python misfortunes.py [ROUNDS]` tries many and prints the counts.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from discreet.errors import LedgerError
from discreet.ledger import TOTAL, Ledger
from discreet.trusted.ledger import note
from storms import PRICE, SHORE, finish, hear, make, start

_NAME = "storm.ledger"
_PAGE = 4096


def outcome(path: Path, acknowledged: int) -> str:
    """How a ledger opens of which so many charges were acknowledged: refused, whole, or unseen."""
    try:
        with closing(Ledger(path)) as ledger:
            whole = (ledger.filter(TOTAL).spent.pure or 0) >= acknowledged * PRICE.epsilon
            return "whole" if whole else "unseen"
    except LedgerError:
        return "refused"


# files after a kill


def killed(rounds: int, seed: int = 1) -> Iterator[tuple[Path, int]]:
    """A folder with a ledger whose two writers were just killed, and how many charges they had been told of; again and
    again. What happens to the folder stays in it.
    """
    chance = random.Random(seed)
    acknowledged: list[str] = []
    with tempfile.TemporaryDirectory(dir=SHORE) as folder, tempfile.TemporaryDirectory(dir=SHORE) as copies:
        path = Path(folder, _NAME)
        make(path, 10**7)
        brood = start("brood", path)
        for turn in range(rounds):
            children = [int(hear(brood, f"{turn}-{name}", "child ", acknowledged)) for name in "ab"]
            assert brood.stdout is not None
            acknowledged += [brood.stdout.readline().strip() for _ in range(chance.randrange(12))]
            for child in children:
                os.kill(child, signal.SIGKILL)
            hear(brood, "reap", "reaped", acknowledged)
            copy = Path(copies, str(turn))
            shutil.copytree(folder, copy)
            yield copy, len(acknowledged)
            shutil.rmtree(copy)
        assert finish(brood) == []


def flip(name: str) -> Callable[[Path, random.Random], None]:
    def change(folder: Path, chance: random.Random) -> None:
        content = bytearray((folder / name).read_bytes())
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (folder / name).write_bytes(content)

    return change


def lose(name: str) -> Callable[[Path, random.Random], None]:
    return lambda folder, _: (folder / name).unlink()


def cut(folder: Path, chance: random.Random) -> None:
    size = (folder / _NAME).stat().st_size
    os.truncate(folder / _NAME, chance.randrange(size))


def _put(copy: bytes) -> Callable[[Path, random.Random], None]:
    def change(folder: Path, _: random.Random) -> None:
        (folder / _NAME).write_bytes(copy)

    return change


def _nothing(folder: Path, chance: random.Random) -> None:
    pass


FILES = (_NAME, f"{_NAME}-journal", f"{_NAME}.head")
MISFORTUNES = {
    **{f"flip in {name.removeprefix(_NAME) or 'the ledger'}": (name, flip(name)) for name in FILES},
    **{f"loss of {name.removeprefix(_NAME)}": (name, lose(name)) for name in FILES[1:]},
    "cut": (_NAME, cut),
}


def storm(rounds: int, each: int, seed: int = 1) -> Counter[tuple[str, str]]:
    """How often each misfortune led to what. Older copies are those of the rounds before."""
    found: Counter[tuple[str, str]] = Counter()
    chance = random.Random(seed)
    older: list[bytes] = []
    for folder, acknowledged in killed(rounds, seed):
        tries = [("kill", _nothing)]
        tries += [(what, change) for what, (name, change) in MISFORTUNES.items() if (folder / name).exists()] * each
        tries += [("older copy", _put(chance.choice(older)))] if older else []
        for what, change in tries:
            with tempfile.TemporaryDirectory(dir=SHORE) as trial:
                shutil.copytree(folder, trial, dirs_exist_ok=True)
                change(Path(trial), chance)
                found[what, outcome(Path(trial, _NAME), acknowledged)] += 1
        with closing(Ledger(folder / _NAME)):
            pass
        older.append((folder / _NAME).read_bytes())
    return found


# pages that a crash mixed


def mixtures(charges: int, most: int, seed: int = 1) -> Counter[str]:
    """A crash in the middle of a commit whose journal is lost too: each page of the file is the one before or the one
    after. For each charge, up to so many mixtures of those pages that differ.
    """
    found: Counter[str] = Counter()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=SHORE) as folder:
        path, trial = Path(folder, _NAME), Path(folder, "trial")
        make(path, 10**7)
        before, noted = path.read_bytes(), note.place(path).read_bytes()
        for turn in range(charges):
            with closing(Ledger(path)) as ledger:
                ledger.reserve(PRICE, question="q" * chance.randrange(3000), key=f"{turn}")
            after = path.read_bytes()
            pages = range(0, max(len(before), len(after)), _PAGE)
            differ = [page for page in pages if before[page : page + _PAGE] != after[page : page + _PAGE]]
            for _ in range(min(most, 2 ** len(differ))):
                new = {page for page in differ if chance.random() < 1 / 2}
                content = b"".join((after if page in new else before)[page : page + _PAGE] for page in pages)
                trial.write_bytes(content)
                note.place(trial).write_bytes(noted)
                found[outcome(trial, turn)] += 1
            before, noted = after, note.place(path).read_bytes()
    return found


def report(rounds: int) -> None:
    for (what, how), count in sorted(storm(rounds, 20).items()):
        print(f"{what}: {how} {count}")
    for how, count in sorted(mixtures(rounds, 40).items()):
        print(f"mixed pages: {how} {count}")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
