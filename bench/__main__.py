"""`make bench`: every figure of the project, as ratios of one run where speed is concerned."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "lib"))

from bench import (
    accounting,
    accuracy,
    asked,
    audit,
    big,
    interactive,
    kept,
    learning,
    ledgers,
    local,
    noise,
    profile,
    reuse,
    service,
    small,
    streams,
    synthesis,
    tables,
    textbook,
    together,
    tpch,
    workload,
)


def show(title: str, figures: list[tuple[str, float]]) -> None:
    print(f"\n{title}")
    for name, value in figures:
        print(f"  {name:<72} {value:>12,.4g}", flush=True)


def main() -> None:
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        show("Importing", small.weight())
        show("One question on a small table", small.latency(place))
        show("Samples a second, ours over opendp's", noise.ratios())
        show("Accuracy", small.accuracy(place))
        show("Errors beside other libraries', at epsilon 1 and delta 1e-6", accuracy.figures())
        show("COUNT(*) over the error at the best limit, heavy tails", profile.figures())
        show("SUM(amount), mean error in % of the sum, heavy tails", list(profile.sums()))
        show("A published table at ε 1, by how many rows of a person count", list(profile.published()))
        show("Earlier answers used again, Adult", [*reuse.figures(), *reuse.speed()])
        show("The synthetic state beside plain prices, Adult", list(interactive.figures(place / "state", 40)))
        show("The textbook's constructions", textbook.figures())
        show("Models and functions of the owner's own", learning.figures(place))
        show("Many questions known beforehand", workload.figures())
        show("Running totals over days, in units of one release at the whole budget", streams.figures())
        show("Three parties together", together.figures(place))
        show("Randomised at home: 100,000 reports, 1,024 values, ε = 1", local.figures())
        show("Publishing a table, Adult in 32 bins", synthesis.figures())
        show("Publishing three tables, a made shop", tables.figures(tables.shop()))
        accounting.main()
        show("What the audit finds", audit.power())
        show("Ten million rows, a million people", big.ratios(place))
        show("TPC-H's shapes, 600,000 lines", tpch.figures(place / "tpch"))
        show("Questions torn by chance", asked.figures(place / "asked"))
        show("Tables kept in files", kept.figures(place))
        show("A service under load", service.figures(place / "served"))
        show("Ledgers in a file and on a server", ledgers.figures())
        show("Kills and races of the ledger", storms())


def storms(kills: int = 1000, races: int = 100) -> list[tuple[str, float]]:
    """What a thousand kills of two writers, and a hundred races of eight processes for ten units, did to the ledger."""
    ledger_storms = importlib.import_module("storms")
    storm = ledger_storms.kill_storm(kills)
    grants = ledger_storms.race(races)
    return [
        ("random kills", kills),
        ("answers released meanwhile", storm.released),
        ("of them without a durable reserve", storm.unknown),
        ("charged without an answer", storm.unanswered),
        ("races of 8 processes for 10 units", races),
        ("races that granted other than 10", sum(granted != 10 for granted in grants)),
    ]


if __name__ == "__main__":
    main()
