"""The limit of memory is one of address space: what was freed must not count, or chance decides which tables load."""

from __future__ import annotations

from pathlib import Path

import discreet

COLUMNS, LETTERS = 8, 50_000
MIB = 1 << 10
"""In the KiB that the system counts in."""


def reserved(folder: Path, rows: int) -> int:
    """What the engine's process has taken of the address space beyond the memory that it used, in KiB, at the most."""
    names = [f"t{place}" for place in range(COLUMNS)]
    folder.mkdir()
    with (folder / "long.csv").open("w", encoding="utf-8") as file:
        file.write(",".join(["who", *names]) + "\n")
        for row in range(rows):
            texts = (chr(97 + (row + place) % 26) * (LETTERS - 8) + f"{row:08d}" for place in range(COLUMNS))
            file.write(",".join([str(row), *texts]) + "\n")
    declared = "[budget]\nepsilon = 1.0\n[engine]\nmemory_gib = 1\n[tables.long]\nsource = 'long.csv'\n"
    declared += "person = 'who'\nrows_per_person = 2\n[tables.long.columns]\nwho = { type = 'integer' }\n"
    declared += "".join(f"{name} = {{ type = 'text', length = {LETTERS} }}\n" for name in names)
    (folder / "clinic.toml").write_text(declared, "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        process = curator._engine._process
        status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    facts = dict(line.split(":", 1) for line in status.splitlines())
    return int(facts["VmPeak"].split()[0]) - int(facts["VmHWM"].split()[0])


def test_rows_take_no_more_of_the_address_space_than_of_memory(tmp_path: Path) -> None:
    """160 MB of texts, of which the window holds a second copy while they are loaded. How many threads have an arena of
    the allocator is chance, so the least of what they take is compared with the most that one row takes, over at most
    five turns. In 21 turns many rows took 980 MiB or more 3 times, and one row less than 870 6 times: all of five turns
    so, and the limit is passed, once in ten million. An allocator that retains what it is given back took 1,239 MiB or
    more, beside 974 or less, in each of 9."""
    many, one = list[int](), list[int]()
    for turn in range(5):
        many.append(reserved(tmp_path / f"many{turn}", 400))
        one.append(reserved(tmp_path / f"one{turn}", 1))
        if min(many) - max(one) < 128 * MIB:
            break
    assert min(many) - max(one) < 128 * MIB
