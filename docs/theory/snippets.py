"""The code of the pages, for the pictures and the table of theorems: what they show is what the pages compute."""

from __future__ import annotations

import io
import re
import tempfile
from contextlib import chdir, redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

from discreet.cli.demo import unpacked

FOLDER = Path(__file__).parent
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@lru_cache
def page(name: str, last: str) -> SimpleNamespace:
    """The names that the page's snippets define, run in order up to the one that defines `last`, beside the data that
    `discreet demo` leaves."""
    names: dict[str, object] = {}
    path = FOLDER / f"{name}.md"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        unpacked(Path(folder))
        for snippet in _PYTHON.findall(path.read_text("utf-8")):
            with redirect_stdout(io.StringIO()):
                exec(compile(snippet, str(path), "exec"), names)
            if last in names:
                return SimpleNamespace(**names)
    raise LookupError(f"{path.name} defines no {last}")
