"""What docs/psql.md says, to the letter."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from page_tools import ROOT, blocks
from service_tools import served

DECLARED = """
[engine]
answer_seconds = "off"

[budget]
epsilon = 3
delta = 1e-6

[tables.adult]
source = "adult.csv"
one_row_per_person = true
[tables.adult.columns]
sex = { type = "text", values = ["Female", "Male"], nulls = false }
"""


def test_the_lines_of_psql(adult: Path, tmp_path: Path) -> None:
    shutil.copy(adult, tmp_path / "adult.csv")
    (script,) = (one.body for one in blocks(ROOT / "docs" / "psql.md") if "PGPASSWORD" in one.body)
    with served(tmp_path, DECLARED) as service:
        (tmp_path / "ana.token").write_text(service.tokens["ana"] + "\n", "ascii")
        script = script.replace("5432", str(service.psql))
        said = subprocess.run(
            ["bash", "-ec", script], cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, check=False
        )
    assert said.returncode == 0, said.stderr
    assert "NOTICE:  ε 0.2 charged; " in said.stderr
    assert "NOTICE:  nothing charged (price ε 0.2); " in said.stderr
    assert "n_low" in said.stdout
    assert "nothing was spent" in said.stdout
