"""A headless Chromium driven through its DevTools protocol, and a canary that counts what it asks for."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--window-size=1100,850",
)
PATIENCE = 30
QUIET = 0.15


def needs_chromium() -> str:
    """The path of a Chromium; skips the test where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium on this machine: the pages are not looked at in a browser")


class Tab:
    """One page. `requests` holds every address that it asked for, `dialogs` every alert."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._reading = asyncio.create_task(self._read())
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.violations: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return await asyncio.wait_for(answer, PATIENCE)

    async def open(self, url: str) -> None:
        """Go there, and return when all that it wants at the start has been asked for."""
        self._loaded.clear()
        answer = await self.call("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        await asyncio.wait_for(self._loaded.wait(), PATIENCE)
        # That nothing more comes can only be seen by watching for a while.
        await asyncio.sleep(QUIET)

    async def run(self, script: str) -> Any:
        """The value of an expression in the page's own world."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def submit(self, form: str) -> None:
        """Send a form, and return when its answer is shown."""
        self._loaded.clear()
        await self.run(f"document.querySelector({form!r}).requestSubmit()")
        await asyncio.wait_for(self._loaded.wait(), PATIENCE)

    async def screenshot(self, path: Path, *, dark: bool = False) -> None:
        """The page as a PNG file."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        answer = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    async def start(self) -> None:
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            content = message.json()
            if "id" in content:
                waiting = self._answers.pop(content["id"], None)
                if waiting is not None:
                    waiting.set_result(content.get("result", {}))
            else:
                await self._event(content["method"], content["params"])

    async def _event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            number = next(self._numbers)
            accept = {"id": number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            await self._socket.send_json(accept)
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.violations.append(params["entry"]["text"])


@asynccontextmanager
async def chromium() -> AsyncIterator[Tab]:
    """A tab of a browser of its own, with an empty profile."""
    program = needs_chromium()
    profile = Path(tempfile.mkdtemp(prefix="pillarbox-chromium-"))
    process = await asyncio.create_subprocess_exec(
        program,
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(profile)},
    )
    try:
        async with aiohttp.ClientSession() as session:
            url = await _page_socket(session, profile)
            tab = Tab(await session.ws_connect(url, max_msg_size=0))
            await tab.start()
            try:
                yield tab
            finally:
                await tab.close()
    finally:
        process.kill()
        await process.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _page_socket(session: aiohttp.ClientSession, profile: Path) -> str:
    """Where the first page takes commands; the browser writes its port when it is ready."""
    port_file = profile / "DevToolsActivePort"
    async with asyncio.timeout(PATIENCE):
        while not port_file.exists() or "\n" not in port_file.read_text():
            await asyncio.sleep(0.02)
        port = port_file.read_text().split("\n")[0]
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                for target in await answer.json(content_type=None):
                    if target["type"] == "page":
                        return str(target["webSocketDebuggerUrl"])
            await asyncio.sleep(0.02)


class Canary:
    """A web server that nothing may ask; `asked` holds the paths that were asked for all the same."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pages: dict[str, tuple[str, dict[str, str]]] = {}
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.pages:
            text, headers = self.pages[request.path]
            return web.Response(text=text, content_type="text/html", headers=headers)
        if request.path != "/favicon.ico":
            self.asked.append(request.path)
        return web.Response(text="", headers={"access-control-allow-origin": "*"})


@asynccontextmanager
async def canary() -> AsyncIterator[Canary]:
    """The canary on a free loopback port; `pages` can be visited without being counted."""
    bird = Canary()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", bird.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    bird.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield bird
    finally:
        await runner.cleanup()
