"""An application as small as can be, for tests of the supervisor: `repository.small_app:build`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.observability import log
from pillarbox.kernel.observability.metrics import Counter, MetricsFile
from pillarbox.kernel.process.runtime import Receive, Runtime, Scope, Send
from pillarbox.kernel.settings.settings import Settings

logger = log.get("small_app")
REQUESTS = Counter("small_app_requests", "Requests that the small application saw.")


class SmallApp:
    """Answers its process number; `/slow` answers when the file `released` is in the data folder."""

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._folder = settings.data
        folder = runtime.metrics_folder
        self._metrics_file = MetricsFile(folder, SystemClock()) if folder else None

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        REQUESTS.add()
        if self._metrics_file is not None:
            self._metrics_file.write()
        if scope["path"] == "/slow":
            logger.info("slow.began")
            await appeared(self._folder / "released")
        body = str(os.getpid()).encode()
        headers = [(b"connection", b"close"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def start(self) -> None:
        (self._folder / f"started-{os.getpid()}").touch()

    def closing(self) -> None:
        return

    def reload(self) -> None:
        (self._folder / f"reloaded-{os.getpid()}").touch()

    async def stop(self, grace: float) -> None:
        (self._folder / f"stopped-{os.getpid()}").touch()


async def appeared(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def build(settings: Settings, runtime: Runtime) -> SmallApp:
    return SmallApp(settings, runtime)


async def build_broken(settings: Settings, runtime: Runtime) -> SmallApp:
    raise RuntimeError("this application never starts")
