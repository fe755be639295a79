"""What toys bring: one of everything."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import msgspec

from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, collect, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.personal_data import DataSubject, ErasedRows, PersonalData
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, StartOrder, Stop
from pillarbox.kernel.work.jobs import Job, JobFinished, JobLimit
from pillarbox.kernel.work.periodic import Periodic

from .settings import TOY_COLOUR, TOY_DAYS

CHANNEL = "pillarbox_toys"

READ_SECRETS = """
    SELECT team_id, id, secret AS sealed, name AS owner FROM toys WHERE team_id IS NOT NULL
"""
REPLACE_SECRET = """
    UPDATE toys SET secret = $4 WHERE team_id = $1 AND id = $2 AND secret = $3
"""
SECRETS = SealedColumn(
    table="toys",
    sentence="The secret of the toy {id} ({owner})",
    cure="Buy another one.",
    read=READ_SECRETS,
    replace=REPLACE_SECRET,
)
JOB, ROUND, RETENTION = "toys.paint", "toys.count", "toys.retention"


class Toys:
    """What happened to the toys."""

    def __init__(self, ids: Ids, colour: str, days: int) -> None:
        self.ids, self.colour, self.days = ids, colour, days
        self.steps: list[str] = []
        self.painted, self.counted, self.removed, self.heard, self.looped = (
            asyncio.Event() for _ in range(5)
        )

    async def start(self) -> None:
        self.steps.append("started")

    def closing(self) -> None:
        self.steps.append("closing")

    async def stop(self, grace: float) -> None:
        self.steps.append("stopped")

    async def paint(self, _: Job) -> JobFinished:
        self.painted.set()
        return JobFinished()

    async def count(self) -> str:
        self.counted.set()
        return "2 toys"

    async def remove_old(self) -> str:
        self.removed.set()
        return f"toys of {self.days} days"

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


@route("GET", "/toys/shelf", needs=Access.PUBLIC, summary="Show the shelf")
async def shelf(request: Request) -> Reply[Html]:
    return Reply.html(f"<p>{request.use(Toys).colour}</p>")


@route("GET", "/toys/cupboard", needs=Access.PUBLIC, summary="Show the cupboard")
async def cupboard(request: Request) -> Reply[Html]:
    return Reply.html("<p>shut</p>")


LISTED, SECRET, SHELF, CUPBOARD = collect(sys.modules[__name__])


async def opened(team_id: UUID, file_id: UUID) -> FileToServe:
    return FileToServe(filename="toy.txt", media="text/plain", size=4, data=b"a to", blob=None)


async def event_data(conn: Connection, team_id: UUID, subjects: Sequence[object]) -> list[bytes]:
    return [b'{"toy_id":"7"}' for _ in subjects]


def background(kit: Container) -> Sequence[Background]:
    found = kit.need(Toys)
    return [Background((StartOrder.ENGINES, found.start), found.closing, (Stop.ENGINES, found.stop))]


def is_open(settings: Settings) -> bool:
    return settings.hostname == "toys.example"


async def set_back(now: datetime) -> int:
    return 0


async def erase_toys(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    return ErasedRows(None, 1)


async def toys_of(db: TeamDb, person: DataSubject) -> AsyncIterator[Any]:
    yield {"owner": person.address}


SLICE = Slice(
    name="toys",
    provides={
        Toys: lambda kit: Toys(kit.need(Ids), kit.settings[TOY_COLOUR], kit.settings[TOY_DAYS]),
    },
    routes=[LISTED],
    pages=[SHELF],
    closed_routes=[SECRET],
    closed_pages=[CUPBOARD],
    opens=is_open,
    jobs=lambda kit: {JOB: kit.need(Toys).paint},
    job_limits=lambda _: [JobLimit((JOB,), 1, 1, 0.1)],
    periodic=lambda kit: [Periodic(ROUND, timedelta(days=1), kit.need(Toys).count)],
    retention=[
        Retention(
            [RetentionItem("toys", TOY_DAYS), RetentionItem("broken toys", timedelta(hours=2))],
            lambda kit: [Periodic(RETENTION, timedelta(days=1), kit.need(Toys).remove_old)],
        )
    ],
    listeners=lambda kit: {CHANNEL: kit.need(Toys).heard.set},
    background=background,
    loops=lambda kit: [kit.need(Toys).loop()],
    metrics=lambda kit: [kit.need(Toys).loop()],
    clock_corrections=lambda _: [set_back],
    files=lambda _: {"toy": opened},
    webhook_shapes={"toy.made": ToyData},
    event_bodies={"toy": event_data},
    sealed=[SECRETS],
    invariants=[Invariant("toy_missing", "The toy {toy} is missing.", "SELECT 7 AS toy LIMIT $1::int")],
    personal_data=[PersonalData(name="toys", order=99, eraser=lambda _: erase_toys, read=toys_of)],
)
