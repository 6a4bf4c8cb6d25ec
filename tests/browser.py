"""A headless Chromium, spoken to over a pipe in its own protocol: no driver, no package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0


def chromium() -> str | None:
    """The browser that there is."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A browser with one page, in which no script of the page runs unless `start_over` says so."""

    def __init__(self, profile: Path) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # fds 3 and 4 are what the browser expects; the originals are moved out of their way first
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in (theirs_in, theirs_out)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        program = chromium()
        assert program is not None
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1000,1400"]
        self.process = subprocess.Popen(
            [program, *options, f"--user-data-dir={profile}"],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self._out, self._in, self._read, self._number = ours_out, ours_in, b"", 0
        self.events: list[dict[str, Any]] = []
        self._session = self._context = ""
        self.start_over()

    def start_over(self, *, scripts: bool = False) -> None:
        """A new page that shares nothing with the one before: no cookie, no cache, no setting, no event."""
        self._session, self.events = "", []
        if self._context:
            self.call("Target.disposeBrowserContext", browserContextId=self._context)
        self._context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "DOM", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **({"sessionId": self._session} if self._session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def wait_for(self, event: str) -> None:
        """Until this has happened since the last time."""
        while not any(held["method"] == event for held in self.events):
            self._next()
        self.events = [held for held in self.events if held["method"] != event]

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE
        while b"\0" not in self._read:
            assert select.select([self._in], [], [], max(0, ends - time.monotonic()))[0], "the browser is silent"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser is gone"
            self._read += part
        one, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if "method" in message and message.get("sessionId", "") == self._session:
            self.events.append(message)
        return message

    # -- what a person does

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def awaited(self, expression: str) -> Any:
        """The value of a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """The value of an expression once it is true."""
        ends = time.monotonic() + seconds
        while not (value := self.value(expression)):
            assert time.monotonic() < ends, f"never true: {expression}"
            time.sleep(0.05)
        return value

    def fill(self, selector: str, text: str) -> None:
        self.value(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def choose(self, selector: str, *files: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file) for file in files], nodeId=node)

    def press(self, selector: str) -> None:
        """Click what leads to another page."""
        self.value(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_for("Page.loadEventFired")

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def complaints(self) -> list[str]:
        """What the browser wrote into its console: violations of the policy, resources that are missing."""
        entries = [held["params"]["entry"] for held in self.events if held["method"] == "Log.entryAdded"]
        return [f"{entry['text']} {entry.get('url', '')}".strip() for entry in entries]
