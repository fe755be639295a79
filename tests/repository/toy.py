"""A slice that brings one of everything, for `test_plugins`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal
from uuid import UUID

import msgspec
import typer

from pillarbox.kernel.http.files import StoredFile
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, collect, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.slices import Background, Kit, Slice, Start, Stop
from pillarbox.kernel.work.jobs import Finished, Job, JobLimit
from pillarbox.kernel.work.periodic import Periodic

CHANNEL = "pillarbox_toys"
JOB, ROUND = "toys.paint", "toys.count"


class Toys:
    """What happened to the toys."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.steps: list[str] = []
        self.painted, self.counted, self.heard, self.looped = (asyncio.Event() for _ in range(4))

    async def start(self) -> None:
        self.steps.append("started")

    def closing(self) -> None:
        self.steps.append("closing")

    async def stop(self, grace: float) -> None:
        self.steps.append("stopped")

    async def paint(self, _: Job) -> Finished:
        self.painted.set()
        return Finished()

    async def count(self) -> str:
        self.counted.set()
        return "2 toys"

    async def loop(self) -> None:
        self.looped.set()
        await asyncio.Event().wait()


class ToyList(msgspec.Struct, kw_only=True):
    object: Literal["toys"] = "toys"
    steps: list[str]


class ToyData(msgspec.Struct):
    toy_id: str


@route("GET", "/toys", needs=Access.FULL, summary="List the toys")
async def listed(request: Request, db: TeamDb) -> Reply[ToyList]:
    return Reply(ToyList(steps=request.use(Toys).steps))


@route("GET", "/toys/secret", needs=Access.FULL, summary="Show the secret toy")
async def secret(request: Request, db: TeamDb) -> Reply[ToyList]:
    return Reply(ToyList(steps=[]))


ROUTES = collect(sys.modules[__name__])
GROUP = typer.Typer(help="Toys.")


@GROUP.callback(invoke_without_command=True)
def toys() -> None:
    """Count the toys."""
    print("2 toys")


async def opened(team_id: UUID, file_id: UUID) -> StoredFile:
    return StoredFile("toy.txt", "text/plain", 4, b"a to", None)


async def event_data(conn: Connection, team_id: UUID, subjects: Sequence[object]) -> list[bytes]:
    return [b'{"toy_id":"7"}' for _ in subjects]


def background(kit: Kit) -> Sequence[Background]:
    found = kit.need(Toys)
    return [Background((Start.ENGINES, found.start), found.closing, (Stop.ENGINES, found.stop))]


TOYS = Slice(
    name="toys",
    provides={Toys: lambda kit: Toys(kit.need(Ids))},
    routes=ROUTES[:1],
    closed_routes=ROUTES[1:],
    opens=lambda settings: settings.hostname == "toys.example",
    jobs=lambda kit: {JOB: kit.need(Toys).paint},
    job_limits=lambda _: [JobLimit((JOB,), 1, 1, 0.1)],
    periodic=lambda kit: [Periodic(ROUND, timedelta(days=1), kit.need(Toys).count)],
    listeners=lambda kit: {CHANNEL: kit.need(Toys).heard.set},
    background=background,
    loops=lambda kit: [kit.need(Toys).loop()],
    files=lambda _: {"toy": opened},
    webhook_shapes={"toy.made": ToyData},
    event_bodies={"toy": event_data},
    invariants=(Invariant("toy_missing", "The toy {toy} is missing.", "SELECT 7 AS toy LIMIT $1::int"),),
    commands={"toys": lambda: GROUP},
)
