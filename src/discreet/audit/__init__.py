"""An attacker of our own: tries to break every promise, on tables about nobody, and says what it found.

Two ways. From outside: draw many outcomes on two neighbouring inputs, look for an event that tells them apart, and
bound from below the ε that the mechanism must have. From inside: compare the exact distributions of neighbours, the
exact integers that the engine lets through, the draws with the distribution that they should have, and go through every
course of an interaction with a filter. Drawing finds what nobody thought of, if it is large; computing finds what is
small, if somebody thought of it.

It reads no private row: with a declaration it makes up its own tables, and a ledger in memory. It has to see exact
integers and to run whole curators, so it stands above all other rooms but the ways in.
"""

from __future__ import annotations

from contextlib import ExitStack
from time import perf_counter

from discreet.audit import channels, hunt, interaction, publishing, questions, streams, textbook
from discreet.audit.claims import FALSE_ALARM, Claim, Result
from discreet.audit.made_up import Stage
from discreet.audit.report import Report
from discreet.audit.targets import Progress, Target, run
from discreet.audit.world import world
from discreet.catalog import Declaration

__all__ = ["Claim", "Report", "Result", "audit"]

HUNTED = 100
"""Whole questions that an audit makes up, unless it is told how many."""

GUESSES = 300
"""Guesses of each step of a publication, by which half of its noise is found nearly always."""


def audit(
    declaration: Declaration | None = None,
    *,
    thorough: bool = False,
    hunted: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Attacks the mechanisms, the filter, and with a declaration the questions that can be asked of its tables.

    `thorough` takes ten times the draws and every column instead of one of each kind, and publishes tables of the
    audit's own. `hunted` is how many whole questions are made up, from `seed`, and asked with hostile persons in the
    tables and without: of the declaration's tables, or of some of the audit's own. `progress` is told the number of
    attacks to come, the number done, and the subject. Raises DeclarationError where a declaration does not fit its
    sources, whose schemas are all that is read of them.
    """
    start = perf_counter()
    sizes = textbook.DrawCounts(30_000, 120_000) if thorough else textbook.DrawCounts()
    rounds = 5 if thorough else 4
    with ExitStack() as stack:
        targets: list[Target] = [*textbook.everything(sizes), *channels.everything(sizes)]
        targets += interaction.everything(interaction.BUDGETS, rounds)
        if declaration is not None:
            known = questions.typed(declaration)
            stage = stack.enter_context(Stage(known.limits))
            targets += interaction.everything([known.budget], rounds)
            draws, asks = (12_000, 300) if thorough else (1_200, 100)
            targets += questions.of_declaration(known, stage, draws, asks, each=thorough)
            targets += streams.targets(known, stage)
        else:
            known = world()
            stage = stack.enter_context(Stage(known.limits))
        if thorough:
            targets += publishing.everything(stack.enter_context(Stage(world().limits)), GUESSES)
        if wanted := HUNTED * (10 if thorough else 1) if hunted is None else hunted:
            targets.append(hunt.target(known, stage, wanted, seed))
        results = run(targets, FALSE_ALARM, progress)
    file = str(declaration.file or "") if declaration is not None else ""
    return Report(tuple(results), thorough, perf_counter() - start, file)
