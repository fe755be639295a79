"""A web server that nothing may ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class Canary:
    """`asked` holds the paths that were asked for all the same."""

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
    """Yield the canary on a free loopback port; `pages` can be visited without being counted."""
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
