"""Writes a page for each public module of the package, from its docstrings:

    python tests/lib/reference_pages.py FOLDER

Public are the names in a module's `__all__`. A class is shown with all of its public members, those that it has from a
class above it too, unless that one has a page of its own: `Curator.ask` stands where a reader looks for it.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pdoc import pdoc, render

MODULES = ("discreet", "discreet.local", "discreet.together", "discreet.mechanisms", "discreet.accounting")


def gathered(module: ModuleType) -> None:
    """Loads what a module loads when it is first used, and gives its classes what they inherit."""
    shown = [getattr(module, name) for name in module.__all__]
    for name, value in zip(module.__all__, shown, strict=True):
        setattr(module, name, value)
    for kind in (value for value in shown if isinstance(value, type)):
        above = [base for base in kind.__mro__[1:] if base.__module__.startswith("discreet") and base not in shown]
        for name in (name for base in above for name in vars(base)):
            if name not in vars(kind) and (name == "__init__" or not name.startswith("_")):
                setattr(kind, name, inspect.getattr_static(kind, name))


def main(folder: Path) -> None:
    for name in MODULES:
        gathered(import_module(name))
    # types that a module imports for the type checker alone are shown as they are written
    warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
    render.configure(
        docformat="markdown", show_source=False, footer_text=f"discreet {sys.modules['discreet'].__version__}"
    )
    inside = "|".join(name.partition(".")[2] for name in MODULES[1:])
    pdoc(*MODULES, rf"!discreet\.(?!({inside})$).*", output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
