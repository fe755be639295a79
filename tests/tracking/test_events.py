"""Events of opens and clicks: who hears of them, when they come early, and when the database is away."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.database_link import database_link
from kit.manual_world import clock_of, relayed_world
from kit.tracking import URL, Reader, hrefs, html_of, pixels, timeline_of, tracks
from kit.webhooks import hook
from kit.world import Team, world
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token
from pillarbox.tracking import hosts, recording
from pillarbox.tracking.hosts import TrackingHosts
from pillarbox.tracking.prometheus import EVENTS

HTML = '<a href="https://shop.example/?a=1&amp;b=2">shop</a>'


async def link_to(team: Team, email: str, position: int = 0) -> str:
    """A link as it would stand in an email."""
    key = await team.world.app.need(LinkKeys).maker(team.world.clock.now())
    token = link_token(TrackedRecipient(team.id, UUID(email), position), 0, "https://shop.example/", key)
    return f"{URL}/t/c/{token}"


async def until(found: Any, count: int) -> None:
    async with asyncio.timeout(10):
        while len(await found()) < count:
            await asyncio.sleep(0.02)


async def test_webhooks_hear_of_each_event(database_url: str, tmp_path: Path) -> None:
    """webhooks.md 7.1: a click has an address, a link, a time and a program; an open has none of that."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await tracks(team)
        email = await team.send(html=HTML, to=["ada@quay.example", "bob@quay.example"])
        await pillarbox.turn()
        message = next(one for one in await sink.messages(2) if one.recipients == ["bob@quay.example"])
        made = await hook(team, "email.opened", "email.clicked")
        html, reader = html_of(message), Reader(team)
        await reader.asks(pixels(html)[0])
        await reader.asks(hrefs(html)[0], user_agent="Mozilla/5.0 Firefox/128.0")
        opened, clicked = await made.payloads()
        assert (opened["type"], clicked["type"]) == ("email.opened", "email.clicked")
        assert opened["data"]["to"] == clicked["data"]["to"] == ["bob@quay.example"]
        assert opened["data"]["email_id"] == email
        assert "click" not in opened["data"]
        click = clicked["data"]["click"]
        assert list(click) == ["ipAddress", "link", "timestamp", "userAgent"]
        assert (click["ipAddress"], click["link"]) == ("127.0.0.1", "https://shop.example/?a=1&b=2")
        assert (click["timestamp"], click["userAgent"]) == (
            clicked["created_at"],
            "Mozilla/5.0 Firefox/128.0",
        )


async def test_an_event_that_comes_before_the_delivery_is_known_waits(
    database_url: str, tmp_path: Path
) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, _):
        team = await pillarbox.team()
        await team.domain()
        email = await team.send(html=HTML)
        link = await link_to(team, email)
        assert (await Reader(team).asks(link)).status_code == 302
        assert await timeline_of(team, email) == []
        # A scanner in the recipient's server follows links before that server says that it has the mail.
        after_click = clock_of(pillarbox).now() + timedelta(seconds=1)
        clock_of(pillarbox).advance(2)
        await pillarbox.turn()
        await until(lambda: timeline_of(team, email), 1)
        assert await team.kinds(email) == ["queued", "sent", "delivered", "clicked"]
        assert (await team.email(email))["last_event"] == "clicked"
        [row] = await timeline_of(team, email)
        assert datetime.fromisoformat(json.loads(row["detail"])["click"]["timestamp"]) < after_click


async def test_of_mail_that_did_not_arrive_or_is_gone_there_is_no_event(
    database_url: str, tmp_path: Path
) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        sink.script("RCPT", "550 5.1.1 no such user")
        email = await team.send(html=HTML)
        await pillarbox.turn()
        before = EVENTS.value(("without_delivery",))
        for link in (await link_to(team, email), await link_to(team, email, 7)):
            assert (await Reader(team).asks(link)).status_code == 302
        gone = await link_to(team, "0199a3c2-6a41-7c02-8f11-5e0d9b7a3c45")
        assert (await Reader(team).asks(gone)).status_code == 302
        assert await timeline_of(team, email) == []
        assert EVENTS.value(("without_delivery",)) == before + 3


async def test_a_link_works_without_the_database(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows it arrives, and the event counts as lost; also where the database just stands still."""
    monkeypatch.setattr(recording, "SECONDS", 0.3)
    monkeypatch.setattr(hosts, "REMEMBERED_SECONDS", 0.0)
    async with database_link(database_url) as wire, world(wire.url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        link, reader = await link_to(team, await team.send(html=HTML)), Reader(team)
        assert (await reader.asks(link)).status_code == 302
        before = EVENTS.value(("lost",))
        wire.stall()
        assert (await reader.asks(link)).status_code == 302
        assert EVENTS.value(("lost",)) == before + 1
        wire.flow()


async def test_names_of_hosts_are_looked_up_seldom_and_few_at_once(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, _):
        team = await pillarbox.team()
        await tracks(team)
        known = pillarbox.app.need(TrackingHosts)
        found = [
            await known.team_of(name)
            for name in (b"links.harbor.example", b"LINKS.harbor.example.:443", b"links.harbor.example \t")
        ]
        assert found == [team.id] * 3
        for name in (
            None,
            b"",
            b"harbor.example",
            b"other.harbor.example",
            b"127.0.0.1:80",
            b"[::1]",
            b"\xff.x.y",
        ):
            assert await known.team_of(name) is None
        assert await known.team_of(b"mail.pillar.example") is None
        flood = [b"a%d.harbor.example" % number for number in range(200)]
        asking = [asyncio.create_task(known.team_of(name)) for name in flood]
        await asyncio.sleep(0)
        assert len(known._asking) <= hosts.MOST_ASKING
        assert await asyncio.gather(*asking) == [None] * 200
        # Who does not own the name above gets no host: it may be somebody else's.
        quay = await pillarbox.team("Quay")
        await quay.post("/domains", {"name": "pier.example", "tracking_subdomain": "api"})
        await pillarbox.pool.execute("UPDATE domains SET tracking_ok = true")
        assert await known.team_of(b"api.pier.example") is None
