"""What must be read to be convinced: every module of `discreet.trusted`, its lines, and what it still leans on outside.

    python tests/lib/trusted_list.py           prints the list
    python tests/lib/trusted_list.py --write   writes it into src/discreet/trusted/README.md

The list follows from the imports alone, wherever in a module they stand: a module that privacy rests on cannot be left
out of it as long as it is imported. Lines of code are lines that hold some of it: no blank ones, comments, docstrings.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import discreet

SOURCE = Path(discreet.__file__).parent
TRUSTED = "discreet.trusted"
RINGS = ("ring_a", "ledger", "ring_b", "ring_c")
"""From the inside out: each may import itself and those before it. Ring A and the ledger know each other."""
BESIDE = ("ledger_server", "renewal", "parts", "allowances")
"""Parts beside the rings, for whom they concern: no ring imports one, each imports ring A and the ledger at most."""
PARTS = (*RINGS, *BESIDE)
README = SOURCE / "trusted" / "README.md"
BEGIN, END = "<!-- list -->", "<!-- end of list -->"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports(name: str) -> frozenset[str]:
    """The modules of ours that a module imports, at its top or inside a function; not the packages around them."""
    return frozenset(_imports(ast.parse(modules()[name].read_text("utf-8")))) - {name}


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "discreet":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())


def closure(names: frozenset[str]) -> frozenset[str]:
    """These modules and all that they import, by any number of steps."""
    found, rest = set(names), set(names)
    while rest:
        new = imports(rest.pop()) - found
        found |= new
        rest |= new
    return frozenset(found)


@cache
def code_lines(name: str) -> int:
    """The lines of a module that hold code."""
    text = modules()[name].read_text("utf-8")
    words = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.body:
                if (
                    isinstance(one, ast.Expr)
                    and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str)
                ):
                    words.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    skipped = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - words)


def ring(name: str) -> str | None:
    """The ring or part that a module stands in; None outside."""
    return next((one for one in PARTS if name == f"{TRUSTED}.{one}" or name.startswith(f"{TRUSTED}.{one}.")), None)


def inside(one: str) -> frozenset[str]:
    """The modules of a ring."""
    return frozenset(name for name in modules() if ring(name) == one)


def leans_on(one: str) -> frozenset[str]:
    """What a ring and those inside it, or a part, import from outside the trusted package, by any number of steps."""
    below = RINGS[: RINGS.index(one)] if one in RINGS else ()
    within = frozenset().union(*(inside(other) for other in (*below, one)))
    return frozenset(name for name in closure(within) if ring(name) is None and name != TRUSTED)


def listed() -> str:
    """The list as a table of Markdown."""
    rows = ["| ring | modules | lines of code | leans on outside | lines of these |", "|---|---|---|---|---|"]
    for one in PARTS:
        names, others = inside(one), leans_on(one)
        rows.append(
            f"| `{one}` | {len(names)} | {sum(map(code_lines, names)):,} | {len(others)} |"
            f" {sum(map(code_lines, others)):,} |"
        )
    rows.append("")
    for one in PARTS:
        rows.append(f"**{one}**: " + ", ".join(f"`{short(name)}` {code_lines(name)}" for name in sorted(inside(one))))
        rows.append("")
    outside = sorted(leans_on(RINGS[-1]))
    if outside:
        rows.append("**still outside**: " + ", ".join(f"`{name[9:]}` {code_lines(name)}" for name in outside))
    return "\n".join(rows).strip()


def short(name: str) -> str:
    return "__init__" if name == f"{TRUSTED}.{ring(name)}" else name.split(".")[-1]


def main(arguments: list[str]) -> None:
    print(listed())
    if arguments == ["--write"]:
        text = README.read_text("utf-8")
        before, rest = text.split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n{listed()}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
