"""Declared streams, over made-up rows with hostile persons and without: none of what is said beside noise may differ.

Whether a period is released, what it costs, how wide its intervals are and what the ledger holds must not depend on
anybody. So two curators over neighbouring tables, each with a ledger and a secret state of its own in a folder that is
gone afterwards, go through the same session: some periods, a question about the same table, and again after a new
snapshot, with the other periods, in a process of its own as far as the ledger knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from discreet.audit.claims import Claim, Result
from discreet.audit.hostile import World, crowd, with_persons, written
from discreet.audit.hunt import NOISY, Seen, failure, seen, tried
from discreet.audit.made_up import Stage
from discreet.audit.targets import ComputedAttack
from discreet.catalog import Budget, Declaration
from discreet.curator import Curator

BUDGET = Budget(Fraction(10**9), Fraction(4, 5), Fraction(2, 5))
PERIODS, DAYS, START = 4, 7_500, date(1970, 1, 1)
"""The horizon, and the periods: so long that made-up dates lie in them. Half of them are over at first."""
_PRICE = Fraction(1), Fraction(1, 10**6)


def targets(known: Declaration, stage: Stage) -> Iterator[ComputedAttack]:
    """One attack on each declared stream."""
    for name in known.streams:
        yield _target(known, stage, name)


def _target(known: Declaration, stage: Stage, name: str) -> ComputedAttack:
    subject = f"the stream {name}, with hostile persons and without"

    def compute() -> Result:
        found = difference(known, stage, name)
        return Result(subject, "hunted", Claim(), None, bool(found), found or "nothing", 2)

    return ComputedAttack(subject, compute)


def difference(known: Declaration, stage: Stage, name: str) -> str:
    """What fails or differs in the two sessions; empty where nothing does."""
    others = crowd(known)
    sessions = []
    for world in (others, with_persons(known, others)):
        with TemporaryDirectory(prefix="discreet-audit-") as folder:
            sessions.append(list(_session(_made(known, stage, name, world, Path(folder)), name)))
    for one, two in zip(*sessions, strict=True):
        words = sorted({failure(one), failure(two)} - {""})
        differing = next((part for part in (*one, *two) if one.get(part) != two.get(part)), None)
        if words or differing is not None:
            return ": ".join([*([] if differing is None else [f"{differing} differs"]), *words])
    return ""


def _made(known: Declaration, stage: Stage, name: str, world: World, folder: Path) -> Declaration:
    """The declaration over this world, with this stream alone."""
    (folder / "keys").mkdir()
    tables = {
        one.name: stage.write(
            one, [{column: written(value) for column, value in row.items()} for row in world[one.name]]
        )
        for one in known.tables.values()
    }
    declared = known.streams[name]
    own = replace(
        declared,
        start=START,
        days=DAYS,
        horizon=PERIODS,
        periods=min(PERIODS, declared.periods),
        epsilon=Fraction(1),
        delta=Fraction(1, 100),
        key=folder / "keys" / "stream.key",
    )
    return replace(
        known,
        tables=tables,
        budget=BUDGET,
        analysts={},
        streams={name: own},
        state=None,
        ledger=folder / "audit.ledger",
        file=None,
        limits=replace(known.limits, answer_seconds=None, store=None),
    )


def _session(declared: Declaration, name: str) -> Iterator[Seen]:
    """What everybody may see, step after step."""
    one = declared.streams[name]
    for over in (PERIODS // 2, PERIODS, PERIODS):
        with Curator.of(declared) as curator:
            curator.refresh()
            yield tried(partial(_advanced, curator, name, over))
            yield seen(curator, f'SELECT COUNT(*) FROM "{one.table}"', _PRICE)
            entries = curator.ledger.entries()
            yield {"the ledger": repr([(entry.kind, entry.question, entry.loss, entry.status) for entry in entries])}


def _advanced(curator: Curator, name: str, over: int) -> Seen:
    """What is said of all periods, but for noise: it moves an interval, and leaves its width as it is."""
    stream = curator.stream(name)
    stream._advance_to(over)
    release = stream.releases
    widths = [{column: high - low for column, (low, high) in one.items()} for one in release.simultaneous()]
    content = {part: value for part, value in release.to_dict().items() if part not in NOISY}
    keys = [[row[column] for column in release.columns if column not in widths[0]] for row in release.rows]
    return {"widths": widths, "keys": keys, **{part: repr(value) for part, value in content.items()}}
