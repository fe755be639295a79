"""Delivery under MTA-STS policies, end to end: which servers get the mail, and what is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from kit.clock import ManualClock
from kit.http_outside import Server
from kit.smtp_sink import CLOSE, Sink, TlsAuthority
from kit.sts import DOMAIN, ZONE, document, policy, published
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.delivery import prometheus
from pillarbox.delivery.smtp.mta_sts_policies import Policies
from pillarbox.domains.senders import Senders
from pillarbox.kernel.network.outbound import Outbound

MX = f"mx.{DOMAIN}"


class Scene(NamedTuple):
    """A sender, the recipients' mail server and the server of their policy."""

    pillarbox: World
    team: Team
    sink: Sink
    site: Server
    zone: Zone

    async def tries(self, **fields: str) -> tuple[str, dict[str, str]]:
        """One attempt for a mail to the domain; its id and its last event."""
        email = await self.team.send(to=f"ada@{DOMAIN}", **fields)
        await self.pillarbox.turn()
        return email, (await self.team.events(email))[-1]

    async def tls_of(self, email: str) -> str:
        """What the attempt recorded of its encryption."""
        found = await self.team.db.source.fetchval(
            "SELECT detail->>'tls' FROM timeline WHERE email_id = $1 AND kind = 'delivered'", email
        )
        return str(found)


@asynccontextmanager
async def scene(
    database_url: str,
    folder: Path,
    body: bytes,
    *,
    certificate: TlsAuthority | None = None,
    clear: bool = False,
    zone: str = ZONE,
    **settings: str,
) -> AsyncIterator[Scene]:
    """`certificate` is another one than the policy's authority gave; `clear`: no STARTTLS at all."""
    async with published(document(body)) as (site, authority):
        tls = None if clear else (certificate or authority).server
        async with Sink(tls=tls) as sink:
            found = Zone(zone)
            async with world(
                database_url,
                folder,
                clock=ManualClock(),
                zone=found,
                started=False,
                trust=authority.trust(),
                https_port=site.port,
                route="direct",
                remote_smtp_port=str(sink.port),
                allow_private="127.0.0.0/8",
                **settings,
            ) as pillarbox:
                team = await pillarbox.team()
                await team.domain()
                yield Scene(pillarbox=pillarbox, team=team, sink=sink, site=site, zone=found)
                await pillarbox.app.need(Policies).close()
                await pillarbox.app.need(Outbound).close()


async def test_a_listed_server_with_its_certificate_gets_the_mail(database_url: str, tmp_path: Path) -> None:
    """TLS-03, TLS-06: verified, and recorded as such; one look-up for many mails."""
    async with scene(database_url, tmp_path, policy("enforce", f"*.{DOMAIN}")) as at:
        email, last = await at.tries()
        assert last["event"] == "delivered"
        assert (await at.tls_of(email)).endswith(" verified")
        assert at.sink.sessions[0].server_name == MX
        for _ in range(3):
            assert (await at.tries())[1]["event"] == "delivered"
        assert len(at.site.requests) == 1
        assert at.zone.questions.count((f"_mta-sts.{DOMAIN}", "TXT")) == 1


async def test_a_server_that_is_not_listed_gets_nothing(database_url: str, tmp_path: Path) -> None:
    """TLS-03: not a connection; the mail waits, says why, and ends failed when its window is over."""
    async with scene(database_url, tmp_path, policy("enforce", "mx9.quay.example")) as at:
        email, last = await at.tries()
        assert (last["event"], last["reason"]) == ("delivery_delayed", "tls_required")
        assert last["reply"] == ("451 4.7.5 the MTA-STS policy of quay.example does not name mx.quay.example")
        row = await at.team.db.source.fetchrow("SELECT reason, last_reply FROM deliveries")
        assert row["last_reply"] == last["reply"]
        assert "encryption" in row["reason"]
        assert not at.sink.sessions
        while (await at.team.email(email))["last_event"] == "delivery_delayed":
            at.pillarbox.clock.advance(4 * 3600 + 1800)  # type: ignore[attr-defined]
            await at.pillarbox.turn()
        last = (await at.team.events(email))[-1]
        assert (last["event"], last["reason"]) == ("failed", "tls_required")
        assert not at.sink.sessions


async def test_only_the_listed_one_of_two_servers_is_tried(database_url: str, tmp_path: Path) -> None:
    zone = f"{ZONE}\n{DOMAIN} MX 5 cheap.{DOMAIN}\ncheap.{DOMAIN} A 127.0.0.1\n"
    async with scene(database_url, tmp_path, policy("enforce", MX), zone=zone) as at:
        assert (await at.tries())[1]["host"] == MX
        assert [session.server_name for session in at.sink.sessions] == [MX]


@pytest.mark.parametrize("fault", ["another name", "another authority", "no STARTTLS"])
async def test_a_listed_server_without_a_valid_certificate_gets_nothing(
    database_url: str, tmp_path: Path, fault: str
) -> None:
    """TLS-03: chain and name; not even MAIL, and it is never tried in clear."""
    certificate = (
        None if fault == "no STARTTLS" else TlsAuthority(MX if "authority" in fault else "mx.example")
    )
    async with scene(
        database_url,
        tmp_path,
        policy("enforce", MX),
        certificate=certificate,
        clear=fault == "no STARTTLS",
    ) as at:
        _, last = await at.tries()
        assert (last["event"], last["reason"]) == ("delivery_delayed", "tls_required")
        assert last["reply"].endswith("(the MTA-STS policy of quay.example asks for it)")
        assert len(at.sink.sessions) == 1
        assert "MAIL" not in at.sink.sessions[0].verbs
        assert not at.sink.received


@pytest.mark.parametrize(
    ("hosts", "is_valid", "results"),
    [
        ((MX,), True, {"kept": 1}),
        (("mx9.quay.example",), True, {"not listed": 1}),
        ((MX,), False, {"no valid certificate": 1}),
    ],
)
async def test_testing_stops_no_mail_and_is_counted(
    database_url: str, tmp_path: Path, hosts: tuple[str, ...], is_valid: bool, results: dict[str, int]
) -> None:
    """TLS-03: `testing` records what `enforce` would have stopped; a broken certificate is tried once."""
    certificate = None if is_valid else TlsAuthority("mx.example")
    words = ("kept", "not listed", "no valid certificate")
    before = {word: prometheus.MTA_STS.value(("testing", word)) for word in words}
    async with scene(database_url, tmp_path, policy("testing", *hosts), certificate=certificate) as at:
        email, last = await at.tries()
        assert last["event"] == "delivered"
        assert (await at.tls_of(email)).endswith(" verified" if is_valid else " unverified")
        found = {word: prometheus.MTA_STS.value(("testing", word)) - before[word] for word in words}
        assert {word: number for word, number in found.items() if number} == results
        sessions = len(at.sink.sessions)
        assert (await at.tries())[1]["event"] == "delivered"
        assert len(at.sink.sessions) - sessions <= 1


async def test_a_policy_of_mode_none_and_no_policy_ask_for_nothing(database_url: str, tmp_path: Path) -> None:
    """TLS-01: any certificate, recorded as unverified."""
    async with scene(database_url, tmp_path, policy("none"), certificate=TlsAuthority("mx.example")) as at:
        email, last = await at.tries()
        assert last["event"] == "delivered"
        assert (await at.tls_of(email)).endswith(" unverified")


async def test_a_switch_leaves_policies_alone(database_url: str, tmp_path: Path) -> None:
    async with scene(database_url, tmp_path, policy("enforce", "mx9.quay.example"), mta_sts="off") as at:
        assert (await at.tries())[1]["event"] == "delivered"
        assert not at.site.requests


async def test_a_sender_that_asks_for_encryption_gets_what_is_more(database_url: str, tmp_path: Path) -> None:
    """TLS-02 with TLS-03: `tls` = enforced is satisfied by any certificate, the policy is not."""
    async with scene(
        database_url, tmp_path, policy("enforce", MX), certificate=TlsAuthority("mx.example")
    ) as at:
        await at.team.db.run("UPDATE domains SET tls = 'enforced' WHERE team_id = $1")
        at.pillarbox.app.need(Senders).forget(at.team.id)
        assert (await at.tries())[1]["event"] == "delivery_delayed"
        assert not at.sink.received


async def test_a_broken_handshake_is_remembered_for_three_days(database_url: str, tmp_path: Path) -> None:
    """TLS-01: without a policy mail goes in clear after a new connection, and TLS is tried again later."""
    zone = f"{DOMAIN} MX 10 {MX}\n{MX} A 127.0.0.1\n"
    async with scene(database_url, tmp_path, policy("none"), zone=zone) as at:
        at.sink.script("STARTTLS", then=b"220 go\r\nthis is no handshake\r\n")
        at.sink.script("DOT", then=("250 2.0.0 taken", CLOSE))
        for sessions in (2, 3):
            assert (await at.tries())[1]["event"] == "delivered"
            at.pillarbox.clock.advance(3600)  # type: ignore[attr-defined]
            assert len(at.sink.sessions) == sessions
        at.pillarbox.clock.advance(3 * 24 * 3600)  # type: ignore[attr-defined]
        at.sink.script("STARTTLS")
        email, last = await at.tries()
        assert last["event"] == "delivered"
        assert (await at.tls_of(email)).endswith(" unverified")
