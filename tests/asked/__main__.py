"""`python -m tests.asked [--write] [SUITE[/name] …]`: asks the questions of the public suite, and prints what became of
them by suite; those that are not as they should be, with what was said, where `--said` stands there."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))

from asked_data import opened
from asked_tools import NOT_YET, PAGE, Question, in_page, judged, suites, table, write_not_yet


def main(*arguments: str) -> None:
    named = [one for one in arguments if not one.startswith("--")]
    every = {
        name: [one for one in questions if not named or any(one.id.startswith(word) for word in named)]
        for name, questions in suites().items()
    }
    every = {name: questions for name, questions in every.items() if questions}
    flat = [one for questions in every.values() for one in questions]
    states = asked(flat, "--said" in arguments)
    if "--write" in arguments and not named:
        write_not_yet(states, flat)
        PAGE.write_text(in_page(table(every, states)), "utf-8")
        print(f"written: {NOT_YET.name}, {PAGE.name}")
    print(table(every, states), end="")


def asked(questions: list[Question], said: bool = False) -> dict[str, str]:
    states = {}
    for data in dict.fromkeys(one.data for one in questions):
        with tempfile.TemporaryDirectory() as folder:
            both = opened(data, Path(folder))
            for one in questions:
                if one.data != data:
                    continue
                began = time.perf_counter()
                outcome = judged(both, one)
                states[one.id] = outcome.state
                if said and outcome.state != one.wanted:
                    print(f"{one.id} · {outcome.state} · {time.perf_counter() - began:.2f} s\n    {outcome.told}")
            both.close()
    return states


if __name__ == "__main__":
    main(*sys.argv[1:])
