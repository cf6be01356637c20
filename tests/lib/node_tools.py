"""The client in JavaScript, run by Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import discreet.local

HERE = Path(__file__).parent
MODULE = Path(discreet.local.__file__).parent / "client.mjs"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="Node is missing (Debian: nodejs); nothing replays JavaScript here"
)


def node(script: str, *arguments: str) -> str:
    command = [str(NODE), str(HERE / script), MODULE.as_uri(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
