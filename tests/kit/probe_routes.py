"""Routes for tests of the HTTP server itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import asyncpg
import msgspec

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.idempotency import AlreadyAnswered
from pillarbox.kernel.http.request import JSON, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb

Anything = Annotated[Any, msgspec.Meta(description="Whatever the test wants.")]


class Gate:
    """Holds the handler of `/probe/slow` until the test lets it go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()


class Count:
    """How often `/probe/once` had an effect."""

    def __init__(self) -> None:
        self.effects = 0


@route("POST", "/probe", needs=Access.FULL, limit=64 * 1024 * 1024, transaction=False)
async def echo(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"keys": sorted(request.json())})


@route("POST", "/probe/small", needs=Access.FULL, limit=1000)
async def small(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"keys": sorted(request.json())})


@route("POST", "/probe/large", needs=Access.FULL, transaction=False)
async def large(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"text": "x" * request.json().get("size", 0)})


@route("POST", "/probe/array", needs=Access.FULL, array=True)
async def array(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"items": len(request.json())})


@route("POST", "/probe/once", needs=Access.SENDING, idempotent=True, aliases=["/probe/again"])
async def once(request: Request, db: TeamDb) -> Reply[Anything]:
    request.use(Count).effects += 1
    body = msgspec.json.encode({"effect": request.use(Count).effects})
    wanted = request.idempotency
    if wanted is not None:
        try:
            await db.run(
                "INSERT INTO idempotency_keys VALUES ($1, $2, $3, $4, 200, $5, $6)",
                wanted.scope,
                wanted.key,
                wanted.fingerprint,
                body,
                SystemClock().now(),
            )
        except asyncpg.UniqueViolationError:
            raise AlreadyAnswered from None
    return Reply(body, media=JSON)


@route("POST", "/probe/slow", needs=Access.SENDING, idempotent=True, transaction=False)
async def slow(request: Request, db: TeamDb) -> Reply[Anything]:
    gate = request.use(Gate)
    gate.entered.set()
    await gate.open.wait()
    return Reply({"done": True})


@route("GET", "/probe/{probe_id}/{name}", needs=Access.ANY)
async def named(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"id": request.param("probe_id"), "name": request.param("name")})


@route("GET", "/probe/list", needs=Access.ANY)
async def listed(request: Request, db: TeamDb) -> Reply[Anything]:
    return Reply({"object": "list", "items": request.query.items("a"), "b": request.query.last("b")})


@route("POST", "/probe/fail", needs=Access.FULL)
async def fail(request: Request, db: TeamDb) -> Reply[Anything]:
    raise RuntimeError("secret detail")


@route("POST", "/probe/store", needs=Access.FULL)
async def store(request: Request, db: TeamDb) -> Reply[Anything]:
    await db.value("SELECT $1::uuid, $2::text::smallint", str(request.json()["number"]))
    return Reply({})


@route("POST", "/probe/lock", needs=Access.FULL)
async def lock(request: Request, db: TeamDb) -> Reply[Anything]:
    await db.source.execute("SET LOCAL lock_timeout = '50ms'")
    await db.value("SELECT id FROM teams WHERE id = $1 FOR UPDATE")
    return Reply({})


@route("GET", "/page", needs=Access.PUBLIC)
async def page(request: Request) -> Reply[Anything]:
    return Reply.html("<p>Hello</p>", headers={"cache-control": "private"})


@route("GET", "/part", needs=Access.PUBLIC)
async def part(request: Request) -> Reply[Anything]:
    return Reply(b"ell", 206, {"content-range": "bytes 1-3/5"}, "application/octet-stream")


@route("GET", "/stream", needs=Access.PUBLIC)
async def stream(request: Request) -> Reply[Anything]:
    async def parts() -> AsyncIterator[bytes]:
        for piece in (b"one", b"two"):
            yield piece

    return Reply.stream(parts(), size=6, media="text/plain", headers={})


@route("GET", "/who", needs=Access.PUBLIC)
async def who(request: Request) -> Reply[Anything]:
    return Reply({"client": request.client})
