"""A browser for tests: Chromium without a window, told what to do through a pipe (Chrome DevTools Protocol)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60


class Browser:
    """One page of one browser with a profile of its own."""

    def __init__(self, profile: Path, *further: str) -> None:
        here_reads, there_writes = os.pipe()
        there_reads, here_writes = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        options += further
        # the protocol's descriptors are 3, which the browser reads, and 4, which it writes
        script = f'exec "$0" "$@" 3<&{there_reads} 4>&{there_writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, str(CHROMIUM), *options, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(there_reads, there_writes),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there_reads)
        os.close(there_writes)
        self._reads, self._writes, self._number, self._rest = here_reads, here_writes, 0, b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                result: dict[str, Any] = reply["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._reads], [], [], PATIENCE)[0], "the browser says nothing"
            self._rest += os.read(self._reads, 1 << 16)
        one, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def cookies(self) -> list[dict[str, Any]]:
        """All that the browser keeps, of whatever place, with what each says of itself."""
        found: list[dict[str, Any]] = self._ask("Storage.getCookies")["cookies"]
        return found

    def go(self, address: str) -> None:
        self._ask("Page.navigate", self._session, url=address)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page; a promise is waited for."""
        found = self._ask("Runtime.evaluate", self._session, expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until an expression holds."""
        step = (
            f"new Promise((done) => {{ const look = () => ({condition}) ? done(1) : setTimeout(look, 20); look(); }})"
        )
        self.run(step)

    def arrives(self, condition: str) -> None:
        """Waits until an expression holds, on whichever page: asked again and again, so pages may come and go."""
        for _ in range(PATIENCE * 20):
            self._number += 1
            message = {"id": self._number, "method": "Runtime.evaluate", "sessionId": self._session}
            message["params"] = {"expression": condition, "returnByValue": True}
            os.write(self._writes, json.dumps(message).encode() + b"\0")
            while (reply := self._next()).get("id") != self._number:
                pass
            if reply.get("result", {}).get("result", {}).get("value"):
                return
            time.sleep(0.05)
        raise AssertionError(f"this never came: {condition}")

    def window(self, width: int, height: int, *, dark: bool = False) -> None:
        """How large the window is, and which colours its user prefers; nothing moves between them."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", self._session, **size)
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        said = [{"name": name, "value": value} for name, value in features.items()]
        self._ask("Emulation.setEmulatedMedia", self._session, features=said)

    def picture(self, path: Path) -> None:
        """Writes the whole page, however long, as .png."""
        size = self._ask("Page.getLayoutMetrics", self._session)["cssContentSize"]
        wide = max(size["width"], self.run("innerWidth"))
        clip = {"x": 0, "y": 0, "width": wide, "height": min(size["height"], 8_000), "scale": 1}
        told = self._ask("Page.captureScreenshot", self._session, clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def press(self, key: str, *, shift: bool = False, control: bool = False) -> None:
        """Presses a key that has a name, as Tab, Enter and Escape, or types a text."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39}
        codes["Space"] = 32
        if key not in codes:
            self._ask("Input.insertText", self._session, text=key)
            return
        said = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 * shift + 2 * control}
        said |= {"text": "\r"} if key == "Enter" else {}
        said |= {"key": " ", "text": " "} if key == "Space" and not control else {}
        self._ask("Input.dispatchKeyEvent", self._session, type="keyDown", **said)
        self._ask("Input.dispatchKeyEvent", self._session, type="keyUp", **said)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._writes)
        os.close(self._reads)
        self._process.terminate()
        self._process.wait()
