"""What `deploy` says: the health check, the unit and the image, as far as they can be checked without running them."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from discreet.catalog import EngineLimits
from discreet.service.jobs import STOP_SECONDS
from face_tools import Data
from page_tools import ROOT
from service_tools import served

DEPLOY = ROOT / "deploy"


def test_the_health_check_asks_whether_it_is_ready(data: Data, tmp_path: Path) -> None:
    def check(url: str) -> int:
        command = [sys.executable, str(DEPLOY / "ready.py")]
        return subprocess.run(command, env={"READY_URL": url}, capture_output=True, check=False).returncode

    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path) as service:
        assert check(f"{service.url}/ready") == 0
        assert check(f"{service.url}/tables") != 0
    assert check(f"{service.url}/ready") != 0


def test_the_unit_waits_for_questions_and_holds_its_rights(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "discreet.service", "utf-8")
    service = unit["Service"]
    assert int(service["TimeoutStopSec"].removesuffix("s")) > EngineLimits().seconds + 2 * STOP_SECONDS
    assert service["KillMode"] == "mixed"  # or the engine is killed under a question, which has failed then
    assert service["StandardOutput"] == "null"  # a first token
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == service["MemoryDenyWriteExecute"] == "true"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    copy = tmp_path / "discreet.service"
    text = (DEPLOY / "discreet.service").read_text("utf-8").replace("/opt/discreet/bin/discreet", "/bin/true")
    copy.write_text(text, "utf-8")
    said = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert "discreet.service" not in said.stderr, said.stderr


def test_the_image_has_no_root_and_installs_what_is_locked() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    assert "--require-hashes" in text
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "pip install" not in last
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / copied).exists() for copied in line.split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["server"] + ["hatchling"]
    names = {re.split(r"[^a-z0-9-]", one.lower())[0] for one in wanted}
    locked = (ROOT / "requirements" / "server.txt").read_text("utf-8")
    assert names <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))


def test_proxies_wait_as_long_as_questions_and_not_for_silence() -> None:
    for name in ("nginx.conf", "Caddyfile"):
        text = (DEPLOY / name).read_text("utf-8")
        assert (
            int(re.findall(r"(?:proxy_read_timeout|response_header_timeout) (\d+)s", text)[0]) > EngineLimits().seconds
        )
        assert re.search(r"(?:client_header_timeout|read_header) 10s", text)
        assert "/metrics" in text
