"""A smarthost that refuses us and not a mail: nothing is lost, all waits, and flows once it is mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world
from kit.smtp_sink import Sink, TlsAuthority
from kit.world import Team, World, world
from pillarbox.delivery.queue import held_queries
from pillarbox.delivery.rate_control import HOLDS, RateControl, SiteLimits, SiteSignal

ITEMS = """
    SELECT tries, reached, uncertain, begun, first_attempt_at, owner, reason FROM deliveries ORDER BY email_id
"""
UNTOUCHED = {
    "tries": 0,
    "reached": False,
    "uncertain": 0,
    "begun": 0,
    "first_attempt_at": None,
    "owner": None,
}
PAST_WINDOW = timedelta(hours=97)
MAILS = 60


@asynccontextmanager
async def relayed(
    database_url: str, folder: Path, at: str, sink: Sink, clock: ManualClock | None = None
) -> AsyncIterator[tuple[World, Team]]:
    """A world whose smarthost is the sink, under this name and with these credentials."""
    route = f"relay:smtp://{at}:{sink.port}"
    async with manual_world(database_url, folder, clock, route=route) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        yield pillarbox, team


async def next_try(pillarbox: World) -> None:
    """Let the longest pause pass, and look again."""
    clock_of(pillarbox).advance(HOLDS[-1] + 1)
    await pillarbox.turn()


async def items(pillarbox: World) -> list[dict[str, Any]]:
    return [dict(row) for row in await pillarbox.pool.fetch(ITEMS)]


async def test_a_wrong_password_costs_no_mail_an_attempt(database_url: str, tmp_path: Path) -> None:
    """OUT-22: past its delivery window too; with the right one everything is delivered."""
    async with (
        Sink(users={"harbor": "right"}) as sink,
        relayed(database_url, tmp_path, "harbor:wrong@127.0.0.1", sink) as (pillarbox, team),
    ):
        emails = [await team.send(to=[f"ada@quay{number}.example"]) for number in range(MAILS)]
        await pillarbox.turn()
        waiting = await items(pillarbox)
        assert len(waiting) == MAILS
        reasons = {item.pop("reason") for item in waiting}
        odd = [item for item in waiting if item != UNTOUCHED]
        assert not odd
        [reason] = reasons - {None}
        assert reason.startswith("The smarthost 127.0.0.1 refuses our user name or password (535")
        assert await held_queries.reason_of_all(pillarbox.pool) == reason
        asked = len(sink.sessions)
        clock_of(pillarbox).advance(HOLDS[0] / 2)
        assert await pillarbox.turn() == 0
        clock_of(pillarbox).advance(PAST_WINDOW.total_seconds())
        await pillarbox.turn()
        # One mail asks, not each.
        assert len(sink.sessions) == asked + 1
        assert len(await items(pillarbox)) == MAILS
        sink._users = {"harbor": "wrong"}
        for _ in range(3):
            await next_try(pillarbox)
        assert len(sink.received) == MAILS
        assert await items(pillarbox) == []
        assert await held_queries.reason_of_all(pillarbox.pool) is None
        assert {(await team.email(email))["last_event"] for email in emails} == {"delivered"}


async def test_a_restart_with_the_right_password_sends_at_once(database_url: str, tmp_path: Path) -> None:
    async with Sink(users={"harbor": "right"}) as sink:
        async with relayed(database_url, tmp_path, "harbor:wrong@127.0.0.1", sink) as (pillarbox, team):
            email = await team.send()
            await pillarbox.turn()
            await pillarbox.engine.share_complaints()
            token, clock = team.token, clock_of(pillarbox)
        route = f"relay:smtp://harbor:right@127.0.0.1:{sink.port}"
        async with world(database_url, tmp_path, clock=clock, route=route) as pillarbox:
            await sink.messages(1)
            client = pillarbox.client(token)
            async with asyncio.timeout(10):
                while (await client.get(f"/emails/{email}")).json()["last_event"] != "delivered":
                    await asyncio.sleep(0.01)


async def test_mail_that_is_accepted_meanwhile_stays_in_the_queue(database_url: str, tmp_path: Path) -> None:
    """No process holds it in memory, so the queue shows it as it is, and simulated mail goes its way."""
    async with (
        Sink(users={}) as sink,
        relayed(database_url, tmp_path, "harbor:wrong@127.0.0.1", sink) as (pillarbox, team),
    ):
        await team.send()
        await pillarbox.turn()
        later = await team.send(to=["later@quay.example"])
        simulated = await team.send(to=["delivered@pillarbox.test"])
        await pillarbox.turn()
        assert [item["owner"] for item in await items(pillarbox)] == [None, None]
        assert (await team.email(later))["last_event"] == "queued"
        assert (await team.email(simulated))["last_event"] == "delivered"


async def test_a_relay_without_the_tls_that_a_password_needs(database_url: str, tmp_path: Path) -> None:
    async with (
        Sink(users={"harbor": "right"}, host="127.0.0.2") as sink,
        relayed(database_url, tmp_path, "harbor:right@127.0.0.2", sink) as (pillarbox, team),
    ):
        await team.send()
        await pillarbox.turn()
        [item] = await items(pillarbox)
        assert item.pop("reason") == (
            "The smarthost 127.0.0.2 gives no TLS that can be trusted, and without it gets no password "
            "(451 4.7.10 TLS is required and not offered)."
        )
        assert item == UNTOUCHED


async def test_a_relay_with_a_certificate_that_nobody_knows(database_url: str, tmp_path: Path) -> None:
    async with (
        Sink(users={"harbor": "right"}, host="127.0.0.2", tls=TlsAuthority("127.0.0.2").server) as sink,
        relayed(database_url, tmp_path, "harbor:right@127.0.0.2", sink) as (pillarbox, team),
    ):
        await team.send()
        await pillarbox.turn()
        clock_of(pillarbox).advance(PAST_WINDOW.total_seconds())
        await pillarbox.turn()
        [item] = await items(pillarbox)
        assert "gives no TLS that can be trusted" in item.pop("reason")
        assert item == UNTOUCHED
        assert all(session.login is None for session in sink.sessions)


async def test_a_relay_whose_name_has_no_address(database_url: str, tmp_path: Path) -> None:
    async with (
        Sink() as sink,
        relayed(database_url, tmp_path, "no-such-host.invalid", sink) as (pillarbox, team),
    ):
        await team.send()
        await pillarbox.turn()
        [item] = await items(pillarbox)
        assert item.pop("reason").startswith(
            "The smarthost no-such-host.invalid has no address in DNS (421 4.4.3 "
        )
        assert item == UNTOUCHED


@pytest.mark.parametrize(
    ("command", "answer", "words"),
    [
        ("CONNECT", "554 5.7.1 your address is not welcome", "sends this machine away"),
        ("CONNECT", "521 5.3.2 no mail here", "sends this machine away"),
        ("MAIL", "530 5.7.0 Authentication required", "takes mail only after a login or under TLS"),
        (
            "MAIL",
            "530 5.7.0 Must issue a STARTTLS command first",
            "takes mail only after a login or under TLS",
        ),
        ("RCPT", "530 5.7.0 Authentication required", "takes mail only after a login or under TLS"),
    ],
)
async def test_a_relay_that_takes_no_mail_from_us(
    database_url: str, tmp_path: Path, command: str, answer: str, words: str
) -> None:
    async with Sink() as sink, relayed(database_url, tmp_path, "127.0.0.1", sink) as (pillarbox, team):
        sink.script(command, then=answer)
        email = await team.send()
        await pillarbox.turn()
        [item] = await items(pillarbox)
        assert words in item.pop("reason")
        assert item == UNTOUCHED
        sink.script(command)
        await next_try(pillarbox)
        assert (await team.email(email))["last_event"] == "delivered"


async def test_what_a_relay_says_of_a_mail_counts_for_that_mail(database_url: str, tmp_path: Path) -> None:
    async with (
        Sink(users={"harbor": "right"}) as sink,
        relayed(database_url, tmp_path, "harbor:right@127.0.0.1", sink) as (pillarbox, team),
    ):
        sink.script("RCPT", "550 5.1.1 no such user", "451 4.3.0 later")
        bounced = await team.send()
        await pillarbox.turn()
        delayed = await team.send(to=["bob@quay.example"])
        await pillarbox.turn()
        assert (await team.email(bounced))["last_event"] == "bounced"
        assert (await team.email(delayed))["last_event"] == "delivery_delayed"


def test_the_pause_grows_and_one_success_ends_it() -> None:
    control = RateControl(SiteLimits(20, 100))
    now = 1000.0
    for seconds in (*HOLDS, HOLDS[-1]):
        control.begin(now)
        assert control.end(SiteSignal.HELD, now)
        assert control.is_held(now)
        assert control.opens_at() == now + seconds
        assert control.slots == 1
        now += seconds
        assert not control.is_held(now)
    control.begin(now)
    control.end(SiteSignal.CLEAN, now)
    assert control.slots == 20
    control.begin(now)
    control.end(SiteSignal.HELD, now)
    assert control.opens_at() == now + HOLDS[0]


def test_what_was_under_way_with_it_makes_no_pause_longer() -> None:
    control = RateControl(SiteLimits(20, 100))
    for _ in range(3):
        control.begin(1000.0)
    assert [control.end(SiteSignal.HELD, 1001.0) for _ in range(3)] == [True, False, False]
    assert control.opens_at() == 1001.0 + HOLDS[0]
