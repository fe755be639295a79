"""Route `direct`: from the API to the recipients' own servers, with a scripted zone and a scripted sink."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import dkim

from kit.clock import ManualClock
from kit.dkim_verifier import verify
from kit.smtp_sink import DROP, Sink, TlsAuthority
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.domains.senders import Senders
from pillarbox.kernel.ids import Ids
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.teams.team import DEMO_MARK

ZONE = """
quay.example  MX 10 mx.quay.example
mx.quay.example A 127.0.0.1
"""


@asynccontextmanager
async def direct(
    database_url: str, folder: Path, sink: Sink, *, zone: Zone | None = None, **settings: str
) -> AsyncIterator[tuple[World, Team]]:
    """A Pillarbox that is driven by hand, with a trusted sender domain."""
    async with world(
        database_url,
        folder,
        clock=ManualClock(),
        zone=zone or Zone(ZONE),
        started=False,
        route="direct",
        remote_smtp_port=str(sink.port),
        allow_private="127.0.0.0/8",
        **settings,
    ) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        yield pillarbox, team


async def test_the_mail_arrives_signed_and_under_a_bounce_address(database_url: str, tmp_path: Path) -> None:
    """DKIM-01, OUT-15: two independent verifiers accept the bytes that the server got."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        email = await team.send(to=["Ada <ada@quay.example>"], bcc="eve@quay.example", text="Ready")
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        value = next(r["value"] for r in records if r["record"] == "DKIM")
        assert dkim.verify(mail.content, dnsfunc=lambda *_, **__: value.encode())
        verify(mail.content, lambda name: value)
        assert mail.recipients == ["ada@quay.example", "eve@quay.example"]
        assert b"eve@" not in mail.content
        local, _, host = mail.mail_from.partition("@")
        assert host == "send.harbor.example"
        bounced = pillarbox.app.need(VerpSigner).read(local)
        assert bounced is not None
        assert str(bounced.email_id) == email
        assert await team.kinds(email) == ["queued", "sent", "sent", "delivered", "delivered"]


async def test_mail_of_the_demo_reaches_nobody(database_url: str, tmp_path: Path) -> None:
    """Whatever somebody sends by hand from the demo's team: no server is asked."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, _):
        demo = await pillarbox.team("Demo", ids=Ids(pillarbox.clock, lambda count: DEMO_MARK[:count]))
        await demo.domain("demo.example")
        email = await demo.send(**{"from": "hello@demo.example"})
        assert await pillarbox.turn() == 1
        *_, last = await demo.events(email)
        assert (last["event"], last["reason"]) == (
            "failed",
            "Mail of the demo's team does not leave this machine.",
        )
        assert sink.sessions == []


async def test_a_full_mailbox_for_now_is_tried_again_after_a_minute(
    database_url: str, tmp_path: Path
) -> None:
    """OUT-10 and contract decision 11: the same bytes and the same bounce address a minute later."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("RCPT", "452 4.2.2 mailbox full")
        email = await team.send()
        assert await pillarbox.turn() == 1
        assert (await team.email(email))["last_event"] == "delivery_delayed"
        assert await pillarbox.turn() == 0
        pillarbox.clock.advance(61)
        assert await pillarbox.turn() == 1
        assert await team.kinds(email) == ["queued", "sent", "delivery_delayed", "delivered"]
        delayed = (await team.events(email))[2]
        assert delayed["reply"] == "452 4.2.2 mailbox full"
        assert delayed["next_attempt_at"] == "2026-10-03 08:16:00.001000+00"


async def test_an_unknown_user_bounces_and_is_suppressed(database_url: str, tmp_path: Path) -> None:
    """BNC-03: a bad address is entered with the email that showed it; the next mail skips it."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("RCPT", "550 5.1.1 no such user")
        email = await team.send()
        await pillarbox.turn()
        assert await team.kinds(email) == ["queued", "sent", "bounced"]
        assert (await team.events(email))[2]["bounce"] == {"type": "Permanent", "subType": "NoEmail"}
        rows = await team.db.source.fetch("SELECT * FROM suppressions WHERE team_id = $1", team.id)
        assert [(r["address"], r["origin"], str(r["source_id"])) for r in rows] == [
            ("ada@quay.example", "bounce", email)
        ]
        second = await team.send(to=["ADA@quay.example", "bob@quay.example"])
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        assert mail.recipients == ["bob@quay.example"]
        events = {e["recipient"]: e["event"] for e in await team.events(second)}
        assert events["ADA@quay.example"] == "suppressed"
        assert events["bob@quay.example"] == "delivered"


async def test_a_policy_refusal_never_suppresses(database_url: str, tmp_path: Path) -> None:
    """BNC-03: a listing of our address says nothing about the recipient's."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("RCPT", "554 5.7.1 Service unavailable; client host blocked using Spamhaus")
        email = await team.send()
        await pillarbox.turn()
        assert (await team.email(email))["last_event"] == "bounced"
        assert (await team.events(email))[-1]["bounce"]["type"] == "Undetermined"
        assert await team.db.value("SELECT count(*) FROM suppressions WHERE team_id = $1") == 0


async def test_recipients_of_one_mail_meet_different_fates(database_url: str, tmp_path: Path) -> None:
    """OUT-07: one transaction, three answers; only the delayed recipient is tried again."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("RCPT", "250 ok", "550 5.1.1 unknown", "450 4.2.1 later")
        email = await team.send(to=["a@quay.example", "b@quay.example", "c@quay.example"])
        await pillarbox.turn()
        pillarbox.clock.advance(61)
        await pillarbox.turn()
        assert [mail.recipients for mail in sink.received] == [["a@quay.example"], ["c@quay.example"]]
        assert sink.received[0].content == sink.received[1].content
        last = {e["recipient"]: e["event"] for e in await team.events(email) if e["recipient"]}
        assert last == {
            "a@quay.example": "delivered",
            "b@quay.example": "bounced",
            "c@quay.example": "delivered",
        }


async def test_a_connection_lost_after_the_dot_is_uncertain_and_tried_once_more(
    database_url: str, tmp_path: Path
) -> None:
    """OUT-08: the same Message-ID again, and the attempt says so."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("DOT", DROP)
        email = await team.send()
        await pillarbox.turn()
        assert (await team.events(email))[-1]["uncertain"] is True
        pillarbox.clock.advance(61)
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        assert (await team.email(email))["message_id"].encode() in mail.content
        assert (await team.email(email))["last_event"] == "delivered"


async def test_a_domain_that_does_not_exist_fails_without_a_server(database_url: str, tmp_path: Path) -> None:
    """OUT-03: no server was reached, so there is no `sent`; the address is bad for good."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        email = await team.send(to="ann@nowhere.example")
        await pillarbox.turn()
        assert "sent" not in await team.kinds(email)
        assert (await team.email(email))["last_event"] in {"failed", "bounced"}
        assert not sink.received


async def test_dns_trouble_is_waited_for_and_ends_as_failed(database_url: str, tmp_path: Path) -> None:
    """Contract decision 24: delayed before sent; a window that ends without a server: failed."""
    zone = Zone(ZONE)
    zone.fail("quay.example")
    async with Sink() as sink, direct(database_url, tmp_path, sink, zone=zone) as (pillarbox, team):
        email = await team.send()
        await run_out(pillarbox)
        assert (await team.email(email))["last_event"] == "failed"
        events = await team.events(email)
        assert events[-1]["reason"] == "delivery_window_over"
        assert {e["event"] for e in events} == {"queued", "delivery_delayed", "failed"}
        assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0


async def test_the_whole_window_of_retries_ends_in_a_transient_bounce(
    database_url: str, tmp_path: Path
) -> None:
    """OUT-09: 96 hours in moments; attempts follow the schedule and the last answer is kept."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        sink.script("RCPT", then="451 4.3.0 try later")
        email = await team.send()
        attempts = await run_out(pillarbox)
        hours = [round((at - attempts[0]).total_seconds() / 60) for at in attempts]
        assert hours[:8] == [0, 1, 6, 21, 51, 111, 231, 471]
        assert hours[-1] <= 96 * 60
        last = (await team.events(email))[-1]
        assert last["event"] == "bounced"
        assert last["bounce"]["type"] == "Transient"
        assert last["reply"] == "451 4.3.0 try later"
        counted = await team.db.value(
            "SELECT sum(delivery_delayed) FROM metric_increments WHERE team_id = $1"
        )
        assert counted == 1


async def test_enforced_tls_offers_nothing_in_clear(database_url: str, tmp_path: Path) -> None:
    """TLS-02: not even MAIL; after the window the mail ends failed with the reason."""
    async with Sink() as sink, direct(database_url, tmp_path, sink) as (pillarbox, team):
        await team.db.run("UPDATE domains SET tls = 'enforced' WHERE team_id = $1")
        pillarbox.app.need(Senders).forget(team.id)
        email = await team.send()
        await run_out(pillarbox)
        last = (await team.events(email))[-1]
        assert (last["event"], last["reason"]) == ("failed", "tls_required")
        assert all("MAIL" not in session.verbs for session in sink.sessions)


async def test_a_broken_handshake_falls_back_to_clear_text(database_url: str, tmp_path: Path) -> None:
    """TLS-01: opportunistic means that mail goes out all the same, over a new connection."""
    async with (
        Sink(tls=TlsAuthority().server) as sink,
        direct(database_url, tmp_path, sink) as (
            pillarbox,
            team,
        ),
    ):
        sink.script("STARTTLS", ("220 go ahead", b"this is not TLS\r\n"))
        email = await team.send()
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        assert not mail.session.is_encrypted
        assert (await team.email(email))["last_event"] == "delivered"


async def test_tls_is_used_where_it_is_offered(database_url: str, tmp_path: Path) -> None:
    """TLS-01, TLS-06: any certificate will do, and the attempt records what was negotiated."""
    async with (
        Sink(tls=TlsAuthority().server) as sink,
        direct(database_url, tmp_path, sink) as (
            pillarbox,
            team,
        ),
    ):
        await team.send()
        await pillarbox.turn()
        [mail] = await sink.messages(1)
        assert mail.session.is_encrypted


async def run_out(pillarbox: World) -> list:
    """Move the clock from attempt to attempt until nothing is left; returns the times of attempts."""
    times = []
    for _ in range(60):
        if await pillarbox.turn():
            times.append(pillarbox.clock.now())
        due = await pillarbox.pool.fetchval("SELECT min(due_at) FROM deliveries")
        if due is None:
            return times
        pillarbox.clock.set(due)
    raise AssertionError("the queue never ran empty")
