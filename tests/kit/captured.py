"""Captured mail over a real socket: the pages of the route `capture`, and settlements to store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx

from kit.client import HttpServer, http_server
from kit.http_client import http_client
from pillarbox.capture import json_routes, routes
from pillarbox.capture.access import CaptureAccess
from pillarbox.capture.reading import Reader
from pillarbox.capture.store import Capture
from pillarbox.dashboard.page_work import PageWork
from pillarbox.delivery.items import Item, LoadedEmail, OpenRecipient
from pillarbox.delivery.reports import AttemptSettlement, Report
from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.kinds import Network
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.mail.message.address import parse_mailbox
from pillarbox.mail.message.compose import OutgoingFile, OutgoingMessage, compose
from pillarbox.receiving.retention import ReceivedRetention

TOKEN = "token-of-this-start"
RING = KeyRing.parse(KeyRing.generate_text())
NOW = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)
GIB = 1024**3


def settled(
    team: UUID,
    email: UUID,
    *,
    to: Sequence[str] = ("ada@quay.example",),
    subject: str = "Berth 12",
    html: str | None = "<p>Ready</p>",
    text: str | None = "Ready",
    sender: str = "Harbor <notes@harbor.example>",
    attachments: Sequence[OutgoingFile] = (),
    headers: Sequence[tuple[str, str]] = (),
    grp: int = 0,
) -> AttemptSettlement:
    """Return what the engine settles when the route `capture` has taken one group of an email."""
    made: dict[str, Any] = {
        "sender": parse_mailbox(sender),
        "to": [parse_mailbox(address) for address in to],
        "cc": [],
        "reply_to": [],
        "subject": subject,
        "date": NOW,
        "message_id": f"<{email}@harbor.example>",
        "html": html,
        "text": text,
        "headers": headers,
    }
    raw = compose(OutgoingMessage(**made, attachments=attachments, seed=email.bytes))
    loaded = LoadedEmail(
        team_id=team,
        team_number=1,
        email_id=email,
        **made,
        attachments=(),
        return_path="send.harbor.example",
        tls_required=False,
        signing=None,
    )
    targets = [OpenRecipient(place, address, address.lower()) for place, address in enumerate(to)]
    item = Item(
        team_id=team,
        email_id=email,
        grp=grp,
        destination="quay.example",
        attempt=1,
        tries=0,
        reached=False,
        uncertain=False,
        first_attempt_at=NOW,
        targets=targets,
        email=loaded,
    )
    report = Report(NOW, NOW, True, host="capture", captured=raw, mail_from="token@send.harbor.example")
    return AttemptSettlement(item, [], None, report=report)


@dataclass(slots=True)
class CaptureWorld:
    """A running server with the capture view."""

    http_server: HttpServer
    capture: Capture
    blobs: BlobStore
    guard: CaptureAccess

    async def keeps(self, *settlements: AttemptSettlement) -> None:
        """Keep these in one transaction, and do what follows its commit."""
        async with transaction(self.http_server.pool) as conn:
            await self.capture.keep(conn, settlements)
        for settlement in settlements:
            assert settlement.report is not None
            assert settlement.report.on_settled is not None
            settlement.report.on_settled()

    async def mail(self, **fields: Any) -> UUID:
        """Keep a mail of a new team; the id of its email."""
        email = uuid4()
        await self.keeps(settled(fields.pop("team", None) or uuid4(), email, **fields))
        return email

    async def row(self, sql: str, *args: Any) -> asyncpg.Record:
        """Return the one row of a statement."""
        (found,) = await self.http_server.pool.fetch(sql, *args)
        return found

    async def captured_id(self, email: UUID) -> UUID:
        found: UUID = await self.http_server.pool.fetchval(
            "SELECT id FROM captured WHERE email_id = $1", email
        )
        return found

    def person(self, **headers: str) -> httpx.AsyncClient:
        """Return a browser that came by the printed link."""
        cookies = {"pillarbox_capture": self.guard.derived("cookie")}
        return http_client(self.http_server.url, cookies=cookies, headers=headers, timeout=30)

    def program(self) -> httpx.AsyncClient:
        """Return a test suite with the token."""
        return self.http_server.client(TOKEN)


@asynccontextmanager
async def capture_world(
    database_url: str,
    folder: Path,
    *,
    limit: int = GIB,
    clock: Clock | None = None,
    networks: Sequence[Network] = (),
) -> AsyncIterator[CaptureWorld]:
    """Yield the routes of captured mail on a free port; nothing runs in the background."""
    clock = clock or SystemClock()
    async with http_server(database_url, routes, json_routes, clock=clock) as opened:
        blobs = BlobStore.open(f"file:{folder}/blobs")
        capture = Capture(opened.pool, clock, Ids(clock), blobs, limit, RING)
        work = PageWork()
        guard = CaptureAccess.named(TOKEN, ["pillar.example"], "https://app.pillar.example:8443", networks)
        received = ReceivedRetention(opened.pool, clock, blobs, days=0)
        for part in (blobs, capture, received, guard, Reader(opened.pool, blobs, work, RING)):
            opened.services.add(part)
        yield CaptureWorld(opened, capture, blobs, guard)
        await capture.stop()
        work.close()
        await blobs.close()
