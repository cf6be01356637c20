"""What docs/service.md says of a service that runs: its Python and its curl, to the letter."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from page_tools import ROOT, blocks
from service_tools import served

DECLARED = """
[budget]
epsilon = 3
delta = 1e-6

[tables.adult]
source = "adult.csv"
one_row_per_person = true
[tables.adult.columns]
sex = { type = "text", values = ["Female", "Male"], nulls = false }
"""


@pytest.mark.outside
def test_the_lines_for_a_shell(adult: Path, tmp_path: Path) -> None:
    """The analyst's lines of the first screen, and those further down, but for pip."""
    shutil.copy(adult, tmp_path / "adult.csv")
    first, later = (one.body for one in blocks(ROOT / "docs" / "service.md") if "export DISCREET_SERVER" in one.body)
    lines = [line for line in first.splitlines() if not line.startswith(("python3 -m venv", "pip install"))]
    assert len(lines) == len(first.splitlines()) - 2
    beside = tmp_path / "analyst"
    beside.mkdir()
    with served(tmp_path, DECLARED) as service:
        usual = f'discreet() {{ "{sys.executable}" -m discreet "$@"; }}; set -e'
        script = "\n".join([usual, *lines, later]).replace("http://127.0.0.1:8443", service.url)
        (beside / "ana.token").write_text(service.tokens["ana"] + "\n", "ascii")
        given = {**os.environ, "NO_PROXY": "127.0.0.1"}
        said = subprocess.run(
            ["bash", "-c", script],
            cwd=beside,
            env=given,
            input=service.tokens["ana"] + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("price ε 0.2") == 3
    assert service.tokens["ana"] not in said.stdout + said.stderr


def test_python_and_curl_get_the_same_answer(adult: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(adult, tmp_path / "adult.csv")
    page = blocks(ROOT / "docs" / "service.md")
    python, jobs = (block.body for block in page if block.kind == "py")
    curl, job = (block.body for block in page if block.kind == "sh" and "curl" in block.body)
    with served(tmp_path, DECLARED) as service:
        names = {"url": service.url, "token": service.tokens["ana"]}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(python, "service.md", "exec"), names)
            exec(compile(jobs, "service.md", "exec"), names)
        assert "price ε 0.2" in printed.getvalue()
        made = Path("synthetic.csv").read_text("utf-8")
        if shutil.which("curl") is None:
            pytest.skip("curl is missing")
        environment = {**os.environ, "URL": service.url, "TOKEN": service.tokens["ana"], "NO_PROXY": "127.0.0.1"}
        said = subprocess.run(curl, shell=True, env=environment, capture_output=True, check=True)
        release = names["release"]
        assert json.loads(said.stdout)["rows"] == release.rows  # type: ignore[attr-defined]
        assert json.loads(said.stdout)["charged"] == {"epsilon": 0.0, "delta": 0.0}
        told = subprocess.run(job, shell=True, env=environment, capture_output=True, check=True).stdout
        assert told.startswith(b"event: end")
        assert Path("synthetic.csv").read_text("utf-8") == made
