"""An application as small as can be, for tests of the supervisor: `house.small_app:build`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from prometheus_client import Counter

from pillarbox.kernel import log
from pillarbox.kernel.config import Settings
from pillarbox.kernel.runtime import Receive, Runtime, Scope, Send

logger = log.get("small_app")
REQUESTS = Counter("small_app_requests", "Requests that the small application saw.")


class SmallApp:
    """Answers its process number; `/slow` answers when the file `released` is in the data folder."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        REQUESTS.inc()
        if scope["path"] == "/slow":
            logger.info("slow.began")
            await appeared(self._folder / "released")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": str(os.getpid()).encode()})

    async def start(self) -> None:
        (self._folder / f"started-{os.getpid()}").touch()

    def closing(self) -> None:
        return

    async def stop(self, grace: float) -> None:
        (self._folder / f"stopped-{os.getpid()}").touch()


async def appeared(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def build(settings: Settings, runtime: Runtime) -> SmallApp:
    return SmallApp(settings)


async def build_broken(settings: Settings, runtime: Runtime) -> SmallApp:
    raise RuntimeError("this application never starts")
