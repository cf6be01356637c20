"""Pages held against what the program prints, and written anew from it.

A page is README or one of docs. Its blocks run in order, in a folder of its own: `toml` is written to the file that its
first line names, `python` is executed, and `ipython` as a cell of a notebook; `text` is what they printed,
`console` has commands after `$` with what they print below. Every character counts, but for

* what differs whatever the program does: the closed list `CHANGING`;
* a number before `±`. It is noisy, its interval stands beside it: the page's must lie within `PAGE` times that of the
  truth, the run's within `RUN` times;
* noisy numbers without an interval, which a comment before the block marks, one line for each line that has some:

      <!-- noisy:
      {32561±70} rows are in synthetic.csv
      -->

  `{truth±most}`, or `{truth}` where `±` follows, stands for the number; `most` has to be so large that a run fails in
  fewer than one of a million.

The truth of what `discreet ask` prints is what it prints at a price of ε 1e8, in a second folder. Elsewhere the comment
says it.

`python tests/lib/page_tools.py [PAGE …]` writes pages anew: whatever does not hold is replaced by what was printed.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

CHANGING = [
    (r"\b20\d\d-\d\d(-\d\d(T\d\d:\d\d:\d\dZ)?)?(?=: \d+(,\d+)* reports)", "the window in which reports are made"),
    (r"(?<= draws, )\d+ s\b", "how long an audit takes"),
]
"""What differs from run to run beside noise, and why."""

PAGE = 2
"""A number on a page is off by at most so many of the intervals beside it, which hold with 95 %. Who draws it anew
has one in some hundreds beyond."""

RUN = 5
"""The same of a run: Laplace noise, which has the heaviest tail there is here, exceeds five of its 95 % intervals with
a chance of e^(-5 ln 20) = 3e-7."""

NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
BEFORE_INTERVAL = re.compile(rf"(?<![\w.])({NUMBER})(?= ?± ?\d)")
BLOCK = re.compile(r"(?:^<!-- noisy:\n(.*?)-->\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOLE = re.compile(rf"\{{({NUMBER})(?:±({NUMBER}))?\}}")

EXTRAS = {
    "arrow": {"pyarrow"},
    "delta": {"deltalake", "pyarrow"},
    "excel": {"xlsxwriter"},
    "functions": {"cloudpickle", "pandas", "pyarrow"},
    "ibis": {"ibis"},
    "mcp": {"mcp", "starlette", "uvicorn"},
    "mpc": {"mpyc"},
    "notebook": {"IPython"},
    "pandas": {"pandas", "pyarrow"},
    "plot": {"matplotlib"},
    "polars": {"polars", "pyarrow"},
    "postgresql": {"adbc_driver_postgresql", "psycopg", "pyarrow"},
    "server": {"prometheus_client", "starlette", "uvicorn"},
}
"""What each extra of the package installs."""

NEEDS = re.compile(r"^To follow this page: (.+)\.$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block, the lines that its comment marks as noisy, and where its body stands on the page."""

    kind: str
    body: str
    noisy: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Shown:
    """What a page says that a command or a snippet prints, and what it did print. `where` names it."""

    where: str
    page: str
    run: str
    noisy: tuple[str, ...]
    start: int
    end: int

    @property
    def faults(self) -> list[str]:
        return compared(self.page, self.run, self.noisy)


def blocks(page: Path) -> list[Block]:
    found = []
    for match in BLOCK.finditer(page.read_text("utf-8")):
        noisy = tuple(match[1].strip("\n").split("\n")) if match[1] else ()
        found.append(Block(match[2], match[3], noisy, match.start(3), match.end(3)))
    return found


def needs(page: Path) -> str:
    """What a page says at its top that one needs to follow it."""
    text = page.read_text("utf-8")
    said = NEEDS.search(text)
    first = min((block.start for block in blocks(page)), default=0)
    assert said is not None, f"{page.name} does not say what one needs to follow it"
    assert said.start() < first, f"{page.name} says too late what one needs to follow it"
    return said[1]


def followed(page: Path, folder: Path) -> Iterator[Shown]:
    """Runs the blocks of a page in a folder, and yields what it shows beside what is printed."""
    said = needs(page)
    there = {module for extra, modules in EXTRAS.items() if f"`{extra}`" in said for module in modules}
    names: dict[str, object] = {}
    printed = ""
    with chdir(folder), without(set().union(*EXTRAS.values()) - there):
        for block in blocks(page):
            if block.kind == "toml":
                Path(block.body.splitlines()[0].removeprefix("# ")).write_text(block.body, "utf-8")
            elif block.kind == "python":
                assert not printed, f"{page.name} does not show what is printed: {printed}"
                with redirect_stdout(io.StringIO()) as stream:
                    exec(compile(block.body, str(page), "exec"), names)
                printed = stream.getvalue()
            elif block.kind == "ipython":
                assert not printed, f"{page.name} does not show what is printed: {printed}"
                printed = cell(block.body, names)
            elif block.kind == "text":
                yield Shown("what Python prints", block.body, printed, block.noisy, block.start, block.end)
                printed = ""
            elif block.kind == "console":
                yield from session(block)
    assert not printed, f"{page.name} does not show what is printed: {printed}"


def cell(body: str, names: dict[str, object]) -> str:
    """What a cell of a notebook shows, as text: a page names no picture. It knows the names of the page."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    shell.push(names)
    with capture_output() as captured:
        shell.run_cell(body).raise_error()
    shown = [output.data.get("text/plain", "") for output in captured.outputs]
    return captured.stdout + "".join(f"{text}\n" for text in shown if not text.startswith("<"))


@contextmanager
def without(absent: set[str]) -> Iterator[None]:
    """As if these modules were not installed."""
    loaded = {name: sys.modules[name] for name in absent & set(sys.modules)}
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
        sys.modules.update(loaded)


def session(block: Block) -> Iterator[Shown]:
    """Runs the lines after `$`."""
    for part in re.finditer(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", block.body, re.MULTILINE):
        command = part[1].strip()
        noisy = block.noisy
        if re.match(r"discreet ask\b", command) and "±" in part[2]:
            noisy += known(part[2], ran(*clear(command)), noisy)
        run = ran(command, Path.cwd())
        yield Shown(command, part[2], run, noisy, block.start + part.start(2), block.start + part.end(2))


def ran(command: str, folder: Path) -> str:
    """What a command prints, as a terminal shows it."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode in (0, 2, 3), f"{command}\n{done.stdout}"
    return done.stdout


def clear(command: str) -> tuple[str, Path]:
    """The same question at a price of ε 1e8, and a folder for it: there every budget is larger still, and no ledger."""
    folder = Path(tempfile.mkdtemp(dir=Path.cwd().parent))
    for file in Path.cwd().iterdir():
        if file.suffix == ".toml":
            text = re.sub(r"^epsilon = .*", "epsilon = 1e11", file.read_text("utf-8"), flags=re.MULTILINE)
            (folder / file.name).write_text(text, "utf-8")
        elif ".ledger" not in file.name:
            (folder / file.name).symlink_to(file)
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in ("--epsilon", "--within", "--delta"):
            next(words)
        else:
            kept.append(re.sub(r"\bepsilon\s*=\s*[\d.]+,\s*", "", word))
    return shlex.join([*kept, "--epsilon", "1e8"]), folder


def known(page: str, truth: str, noisy: tuple[str, ...]) -> tuple[str, ...]:
    """The page's lines with the truth in place of each number before `±`, but for those that are marked already."""
    marked, true = ([line for line in text.split("\n") if BEFORE_INTERVAL.search(line)] for text in (page, truth))
    assert len(marked) == len(true), f"the truth has other lines:\n{truth}"
    lines = []
    for line, beside in zip(marked, true, strict=True):
        values = iter(BEFORE_INTERVAL.findall(beside))
        if not any(pattern(one).fullmatch(line) for one in noisy):
            lines.append(BEFORE_INTERVAL.sub(lambda _, values=values: f"{{{next(values)}}}", line))
    return tuple(lines)


def compared(page: str, run: str, noisy: tuple[str, ...] = ()) -> list[str]:
    """What a page shows against what is printed: the faults, none if it holds."""
    lines, printed = settled(page), settled(run)
    if len(lines) != len(printed):
        return list(difflib.unified_diff(lines, printed, "page", "run", lineterm="", n=0))
    faults: list[str] = []
    exact: list[tuple[str, str]] = []
    shifted = False  # a noisy number is longer or shorter than on the page, so columns lie elsewhere
    for line, beside in zip(lines, printed, strict=True):
        holes = next((one for one in noisy if pattern(one).fullmatch(line)), None)
        if holes is None:
            if BEFORE_INTERVAL.search(line):
                faults.append(f"nothing says how large this is in truth: {line}")
            exact.append((line, beside))
            continue
        ours, theirs = pattern(holes).fullmatch(line), pattern(holes).fullmatch(beside)
        if ours is None or theirs is None:
            faults.append(f"- {line}\n+ {beside}")
            continue
        shifted |= any(len(one) != len(other) for one, other in zip(ours.groups(), theirs.groups(), strict=True))
        exact.append((emptied(line, ours), emptied(beside, theirs)))
        faults += far(holes, ours, PAGE, "page") + far(holes, theirs, RUN, "run")
    for line, beside in exact:
        as_shown = line == beside if not shifted else loose(line) == loose(beside)
        if not as_shown:
            faults.append(f"- {line}\n+ {beside}")
    return faults


def far(holes: str, found: re.Match[str], times: int, whose: str) -> list[str]:
    """The noisy numbers of a line that are too far from the truth."""
    faults = []
    for place, hole in enumerate(HOLE.finditer(holes), 1):
        value, truth = number(found[place]), number(hole[1])
        if hole[2] is None:
            width = re.match(rf" ?± ?({NUMBER})", found.string[found.end(place) :])
            assert width, f"no interval follows {{{hole[1]}}}: {holes}"
            most = times * number(width[1])
        else:
            most = number(hole[2])
        if abs(value - truth) > most * (1 + 1e-9):
            faults.append(f"{whose}: {found[place]} is further than {most:g} from {hole[1]}: {found.string}")
    return faults


def pattern(holes: str) -> re.Pattern[str]:
    """A line with numbers in its holes, and any blanks where there are some."""
    parts = HOLE.sub("\0", blanks(holes)).split("\0")
    return re.compile(f"\\s*{f'({NUMBER})'.join(re.escape(part) for part in parts)}".replace("\\ ", "\\s+"))


def emptied(line: str, found: re.Match[str]) -> str:
    """The line with a mark for each noisy number, as wide as it is."""
    for place in range(found.re.groups, 0, -1):
        line = f"{line[: found.start(place)]}{'#' * len(found[place])}{line[found.end(place) :]}"
    return line


def loose(line: str) -> str:
    return re.sub(r"#+", "#", blanks(line))


def settled(text: str) -> list[str]:
    """Lines, with what changes from run to run in one form."""
    for changing, _ in CHANGING:
        text = re.sub(changing, "…", text)
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


def blanks(line: str) -> str:
    return re.sub(r"[ \t]+", " ", line).strip()


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def anew(page: Path, folder: Path) -> bool:
    """Writes what does not hold on a page anew. Whether there was any."""
    text = page.read_text("utf-8")
    wrong = [shown for shown in followed(page, folder) if shown.faults]
    for shown in reversed(wrong):
        print(f"{page.name}: {shown.where}", *shown.faults, sep="\n")
        text = text[: shown.start] + shown.run.rstrip("\n") + "\n" + text[shown.end :]
    page.write_text(text, "utf-8")
    return bool(wrong)


def demonstrated(folder: Path) -> Path:
    """A folder as README's install leaves it."""
    ran("discreet demo --output out", folder)
    return folder / "out"


def folder_for(page: Path, folder: Path, demo: Path) -> Path:
    """An empty folder for a page, with what `discreet demo` leaves where the page says that it needs this."""
    place = folder / "page"
    place.mkdir()
    if "`discreet demo`" in needs(page):
        for file in demo.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
    return place


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        left = demonstrated(Path(made))
        for given in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
            if blocks(given):
                with tempfile.TemporaryDirectory() as place:
                    anew(given, folder_for(given, Path(place), left))
