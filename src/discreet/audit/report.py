"""What an audit found, as a table for people and a mapping for machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.audit.claims import FALSE_ALARM, REPORTED, Claim, Result
from discreet.release.render import wrapped

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class ReportLine:
    """All results of one subject under one claim."""

    subject: str
    claim: Claim
    results: tuple[Result, ...]

    def most(self, *ways: str) -> float | None:
        """The largest loss that was found in one of these ways."""
        return max((r.found for r in self.results if r.how in ways and r.found is not None), default=None)

    @property
    def found(self) -> float | None:
        """The largest loss found at all."""
        return max((r.found for r in self.results if r.found is not None), default=None)

    @property
    def part(self) -> float:
        """The largest loss found, as a part of the claim; infinite where nothing was claimed and something found."""
        if not self.found:
            return 0.0
        return self.found / self.claim.amount if self.claim.amount else math.inf

    @property
    def broken(self) -> tuple[Result, ...]:
        """The results by which the claim does not hold."""
        return tuple(result for result in self.results if result.broken)


@dataclass(frozen=True)
class Report:
    """The results of one audit. `findings` are the claims that do not hold; empty where all is right."""

    results: tuple[Result, ...]
    thorough: bool
    seconds: float
    declaration: str = ""

    @property
    def findings(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.broken)

    @property
    def lines(self) -> tuple[ReportLine, ...]:
        """The results by subject, in the order in which they were found."""
        found: dict[tuple[str, Claim], list[Result]] = {}
        for result in self.results:
            found.setdefault((result.subject, result.claim), []).append(result)
        return tuple(ReportLine(subject, claim, tuple(results)) for (subject, claim), results in found.items())

    @property
    def draws(self) -> int:
        """How many draws were made for all results, on both neighbours."""
        return sum(result.draws for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the chance of a false alarm and the confidence of lower bounds."""
        return {
            "findings": [result.to_dict() for result in self.findings],
            "results": [result.to_dict() for result in self.results],
            "false_alarm": FALSE_ALARM,
            "confidence_of_bounds": 1 - REPORTED,
            "draws": self.draws,
            "thorough": self.thorough,
            "declaration": self.declaration,
            "seconds": round(self.seconds, 1),
        }

    def verdict(self) -> str:
        """The last line."""
        looked = f"{len(self.lines)} subjects, {self.draws:,} draws, {self.seconds:.0f} s"
        if not self.findings:
            return f"nothing found: {looked}. Right code is blamed by chance in one of {1 / FALSE_ALARM:,.0f} audits."
        return f"{len(self.findings)} finding{'s' * (len(self.findings) > 1)}: {looked}"

    def text(self, width: int = 120, *, colour: bool = False) -> str:
        """The table, what tells where something was found, and the verdict."""
        import io

        from rich.console import Console

        stream = io.StringIO()
        console = Console(file=stream, width=width, force_terminal=colour, color_system="auto" if colour else None)
        console.print(self._table())
        for result in self.findings:
            words = wrapped(f"FOUND  {self.finding_in_words(result)}", width)
            console.print(words, style="bold red", highlight=False, markup=False, soft_wrap=True)
        style = "bold red" if self.findings else "green"
        console.print(wrapped(self.verdict(), width), style=style, highlight=False, markup=False, soft_wrap=True)
        return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())

    HEADS: ClassVar = ("subject", "claimed", "exactly", "at least", "noise", "result")

    def cells(self) -> list[list[str]]:
        """The lines as texts, a row each."""
        return [
            [
                line.subject,
                _claimed(line.claim),
                _amount(line.most("exact", "change", "interaction")),
                _amount(line.most("sampled", "guessed", "asked")),
                _fits([result for result in line.results if result.how == "fit"]),
                "FOUND" if line.broken else "holds",
            ]
            for line in self.lines
        ]

    def finding_in_words(self, result: Result) -> str:
        """Where a claim does not hold, and by how much."""
        return f"{result.subject} ({result.how}): {_losses(result)}{result.event}"

    def _table(self) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("subject", overflow="fold")
        for head in self.HEADS[1:-1]:
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("")
        for line, cells in zip(self.lines, self.cells(), strict=True):
            table.add_row(*map(Text, cells), style="bold red" if line.broken else "")
        return table


def _losses(result: Result) -> str:
    if result.found is None:
        return ""
    return f"{result.claim.unit} {_amount(result.found)} where {_amount(result.claim.amount)} was claimed; "


def _claimed(claim: Claim) -> str:
    if claim.of_delta:
        return f"δ {claim.delta:.3g} at ε {claim.epsilon:.3g}"
    return f"{claim.unit} {claim.amount:.3g}" + (f", δ {claim.delta:.2g}" if claim.delta else "")


def _amount(found: float | None) -> str:
    if found is None:
        return ""
    return "∞" if found == math.inf else f"{found:.3g}"


def _fits(results: Sequence[Result]) -> str:
    if not results:
        return ""
    return "does not fit" if any(result.broken for result in results) else "fits"
