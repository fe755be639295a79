"""The page behind a share link (emails.md 5.3, endpoint 10)."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from kit.client import http_server
from kit.clock import ManualClock
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.shared import SharedPages
from pillarbox.emails.sharing import shared_page
from pillarbox.emails.sharing.share import DEFAULT, ShareLinks
from pillarbox.emails.sharing.shared_page import MOST_PICTURE_BYTES, SharedMailSource, SharedScreens
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tokens import Signer
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.team_turns import MOST_OF_ONE
from pillarbox.receiving.reading import MessageReader
from pillarbox.receiving.sharing import SharedReceivedMail

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(slots=True)
class Shared:
    """A running page with one team's emails."""

    client: httpx.AsyncClient
    pool: Any
    clock: ManualClock
    sharing: ShareLinks
    team: UUID
    blobs: BlobStore
    work: PageWork
    port: int

    async def email(self, **columns: Any) -> UUID:
        """An accepted email that is right but for `columns`."""
        found = uuid4()
        row = {
            "sender": "Harbor <notes@harbor.example>",
            "to": ["Ada <ada@quay.example>", "cid@quay.example"],
            "cc": ["eve@dock.example"],
            "bcc": ["secret@hidden.example"],
            "subject": "Berth 12",
            "html": "<p>Ready</p>",
            "text": "Ready",
            **columns,
        }
        await self.pool.execute(
            "INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, cc_list,"
            " bcc_list, subject, domain_name, last_event, last_event_at)"
            " VALUES ($1, $2, $3, $2, '<x@harbor.example>', $4, $5, $6, $7, $8, '', 'delivered', $3)",
            self.team,
            found,
            self.clock.now(),
            row["sender"],
            json.dumps(row["to"]),
            None if row["cc"] is None else json.dumps(row["cc"]),
            json.dumps(row["bcc"]),
            row["subject"],
        )
        await self.pool.execute(
            "INSERT INTO contents (team_id, id, created_at, html, text) VALUES ($1, $2, $3, $4, $5)",
            self.team,
            found,
            self.clock.now(),
            row["html"],
            row["text"],
        )
        return found

    async def attach(
        self, email: UUID, filename: str, media: str, cid: str | None, data: bytes, *, blob: bool = False
    ) -> None:
        """A file of an email, in its row or in the blob store."""
        key = f"attachments/{uuid4()}" if blob else None
        if key:
            await self.blobs.put(key, data)
        await self.pool.execute(
            "INSERT INTO attachments VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, NULL, $10)",
            self.team,
            uuid4(),
            email,
            filename,
            media,
            cid,
            len(data),
            None if key else data,
            key,
            self.clock.now(),
        )

    async def page(self, email: UUID, ttl: timedelta = DEFAULT) -> httpx.Response:
        """What the link of an email shows."""
        return await self.client.get(
            self.sharing.link(self.team, email, ttl).removeprefix("https://out.example")
        )


@asynccontextmanager
async def shared(database_url: str, folder: Path) -> AsyncIterator[Shared]:
    clock = ManualClock()
    async with http_server(database_url, shared_page, clock=clock) as opened, opened.client() as client:
        sharing = ShareLinks(Signer(opened.services.use(KeyRing), clock), "https://out.example")
        work = PageWork()
        blobs = BlobStore.open(f"file:{folder}/blobs")
        opened.services.add(sharing)
        opened.services.add(blobs)
        opened.services.add(SharedPages(work), SharedScreens)
        opened.services.add(SharedReceivedMail(MessageReader(blobs, ThreadPoolExecutor(1))), SharedMailSource)
        team = await opened.team()
        yield Shared(
            client=client,
            pool=opened.pool,
            clock=clock,
            sharing=sharing,
            team=team.id,
            blobs=blobs,
            work=work,
            port=opened.port,
        )
        work.close()
        await blobs.close()


@pytest.fixture
def capture(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Shared]:
    return shared(database_url, tmp_path)


async def test_the_page_shows_the_email_without_bcc(capture: Shared) -> None:
    email = await capture.email()
    await capture.attach(email, "plan & <map>.pdf", "application/pdf", None, b"%PDF")
    answer = await capture.page(email)
    assert answer.status_code == 200
    for text in (
        "Harbor &lt;notes@harbor.example&gt;",
        "Ada &lt;ada@quay.example&gt;",
        "cid@quay.example",
        "eve@dock.example",
        "2026-10-03 08:15:00 UTC",
        "Berth 12",
        "<pre>Ready</pre>",
        "plan &amp; &lt;map&gt;.pdf",
        "&lt;p&gt;Ready&lt;/p&gt;",
    ):
        assert text in answer.text, text
    assert "hidden.example" not in answer.text
    assert "href=" not in answer.text.replace('<link rel="icon" href=', "")
    assert str(email) not in answer.text


async def test_the_headers_of_the_page(capture: Shared) -> None:
    """UI-04; the three headers that the contract names."""
    email = await capture.email()
    known = await capture.page(email)
    unknown = await capture.client.get("/shared?token=x")
    capture.clock.advance(timedelta(hours=1))
    for answer in (known, unknown):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["x-robots-tag"] == "noindex"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        for part in (
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ):
            assert part in policy
        assert "script-src" not in policy


async def test_the_html_stands_in_a_sandbox_without_scripts(database_url: str, tmp_path: Path) -> None:
    """UI-01, UI-02."""
    marker = "</pre><script>steal()</script><img src=https://spy.example/p.gif onerror=steal()>"
    async with shared(database_url, tmp_path) as world:
        email = await world.email(
            sender=marker, to=[marker], cc=[marker], subject=marker, html=marker, text=marker
        )
        await world.attach(email, marker, "text/html", None, b"x")
        page = (await world.page(email)).text
        assert page.count("<iframe") == 1
        frame = page.split("<iframe")[1].split("></iframe>")[0]
        assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in frame
        assert "steal" not in frame
        assert "spy.example" not in frame
        assert "<script" not in page
        assert "1 picture from elsewhere is not loaded." in page


async def test_a_link_ends_with_its_time(capture: Shared) -> None:
    email = await capture.email()
    link = capture.sharing.link(capture.team, email, timedelta(minutes=90)).removeprefix(
        "https://out.example"
    )
    capture.clock.advance(timedelta(minutes=89))
    assert (await capture.client.get(link)).status_code == 200
    capture.clock.advance(timedelta(minutes=1))
    over = await capture.client.get(link)
    assert over.status_code == 410
    assert "expired" in over.text
    assert "Berth" not in over.text


async def test_a_changed_token_shows_nothing(capture: Shared) -> None:
    email = await capture.email()
    token = capture.sharing.link(capture.team, email, DEFAULT).split("token=")[1]
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    changed = [
        base64.urlsafe_b64encode(raw[:at] + bytes((raw[at] ^ 1,)) + raw[at + 1 :]).rstrip(b"=").decode()
        for at in range(len(raw))
    ]
    for bad in (*changed, "", "x", token[:-1], token + "A", token + "=", "%00", "ü", "A" * 5000):
        answer = await capture.client.get(f"/shared?token={bad}")
        assert answer.status_code == 404, bad
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "Berth" not in answer.text
    assert (await capture.client.get("/shared")).status_code == 404


async def test_an_email_that_is_gone_or_of_another_team_is_not_shown(capture: Shared) -> None:
    email = await capture.email()
    assert (await capture.page(uuid4())).status_code == 404
    foreign = capture.sharing.link(uuid4(), email, DEFAULT).removeprefix("https://out.example")
    assert (await capture.client.get(foreign)).status_code == 404


async def test_viewing_changes_nothing(capture: Shared) -> None:
    """Viewing is not an open."""
    email = await capture.email()
    before = await capture.pool.fetchrow("SELECT * FROM emails")
    await capture.page(email)
    assert await capture.pool.fetchrow("SELECT * FROM emails") == before
    assert await capture.pool.fetchval("SELECT count(*) FROM timeline") == 0


async def test_a_mail_of_text_alone_has_no_frame(capture: Shared) -> None:
    page = (await capture.page(await capture.email(html=None, cc=None, text="a < b"))).text
    assert "<iframe" not in page
    assert "<pre>a &lt; b</pre>" in page
    assert "<dt>Cc</dt>" not in page


async def test_inline_pictures_stand_in_the_page(capture: Shared) -> None:
    """No further request is needed; what is too large or no picture is named as an attachment."""
    email = await capture.email(
        html='<img src="cid:one"><img src="cid:two"><img src="cid:svg"><img src="cid:big">'
    )
    await capture.attach(email, "one.png", "image/png", "one", PNG)
    await capture.attach(email, "two.png", "image/PNG; x=y", "two", PNG * 2, blob=True)
    await capture.attach(email, "drawing.svg", "image/svg+xml", "svg", b"<svg>")
    await capture.attach(email, "big.png", "image/png", "big", bytes(MOST_PICTURE_BYTES))
    page = (await capture.page(email)).text
    for picture in (PNG, PNG * 2):
        assert f"data:image/png;base64,{base64.b64encode(picture).decode()}&#34;" in page
    assert page.count("data:image/") == 3
    assert "drawing.svg" in page
    assert "big.png" in page
    assert "one.png" not in page


async def test_a_page_that_nobody_waits_for_is_not_made(capture: Shared) -> None:
    """TRAP-06: closing the connection gives up the place."""
    email = await capture.email(html="<p>Ready</p>")
    path = capture.sharing.link(capture.team, email, DEFAULT).removeprefix("https://out.example")
    begun, go = threading.Event(), threading.Event()
    busy = asyncio.create_task(capture.work.do(uuid4(), lambda: (begun.set(), go.wait(20))))
    await asyncio.to_thread(begun.wait, 20)
    writers = []
    for _ in range(MOST_OF_ONE):
        _, writer = await asyncio.open_connection("127.0.0.1", capture.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        writers.append(writer)
    await until(lambda: capture.work.waiting == MOST_OF_ONE)
    refused = await capture.page(email)
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "2"
    assert "This page is busy" in refused.text
    for writer in writers:
        writer.close()
        await writer.wait_closed()
    stays = asyncio.create_task(capture.page(email))
    await until(lambda: capture.work.waiting == 1)
    go.set()
    await busy
    assert (await stays).status_code == 200


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)
