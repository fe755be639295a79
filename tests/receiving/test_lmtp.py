"""The LMTP listener: a mail server on this machine hands its mail in, and hears of each recipient (5.4)."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from kit.inbound_client import receiving_domain
from kit.receiving_team import HELP, message, raw_of, received, receiving_team
from kit.reports import about, bounce, token_of
from kit.smtp_listener import Dialog, SmtpReply, bound, dialog
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.kernel.http import maintenance
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.network.listeners import LMTP
from pillarbox.kernel.process import faults
from pillarbox.mail.authentication import dkim
from pillarbox.receiving.receive import MOST_OCTETS

ZONE = """
quay.example         TXT  "v=spf1 ip4:127.0.0.1 -all"
_dmarc.quay.example  TXT  "v=DMARC1; p=reject"
"""
THEIRS = "x@quay.example"
OK = "250 2.0.0"


class HttpServer(NamedTuple):
    """A Pillarbox whose LMTP listener is open, and a mail server that is connected to it."""

    pillarbox: World
    team: Team
    zone: Zone
    port: int
    mta: Dialog

    async def hands_in(
        self, raw: bytes, to: Sequence[str] = (HELP,), sender: str = "ada@quay.example"
    ) -> list[SmtpReply]:
        """The answers to the text, one for each recipient; all recipients have to be accepted."""
        said = await self.mta.send(raw.replace(b"\r\n.", b"\r\n.."), sender=sender, to=to)
        assert said.code != 354
        return [said, *await self.mta.hear_all(len(to) - 1)]


@asynccontextmanager
async def lmtp(database_url: str, folder: Path, **settings: str) -> AsyncIterator[HttpServer]:
    at = bound()
    port = at.getsockname()[1]
    zone = Zone(ZONE)
    async with world(database_url, folder, zone=zone, listeners={LMTP: at.detach()}, **settings) as pillarbox:
        team = await receiving_team(pillarbox)
        async with dialog(port) as mta:
            assert (await mta.ask("LHLO mta.quay.example")).code == 250
            yield HttpServer(pillarbox=pillarbox, team=team, zone=zone, port=port, mta=mta)


@pytest.fixture
def http_server(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[HttpServer]:
    return lmtp(database_url, tmp_path)


async def test_a_mail_is_stored_with_the_trace_of_how_it_came(http_server: HttpServer) -> None:
    """SMTP-13: `with LMTP`, and no address of a client; what came is kept octet for octet."""
    raw = message("Received: from a by mta.quay.example; Sat, 03 Oct 2026 08:00:00 +0000")
    [said] = await http_server.hands_in(raw)
    [found] = await received(http_server.team)
    assert said.text == f"2.0.0 Ok, stored as {found['id']}"
    whole = await raw_of(http_server.team, found["id"])
    assert whole.endswith(raw)
    assert whole.startswith(
        b"Return-Path: <ada@quay.example>\r\nReceived: from mta.quay.example\r\n"
        b"\tby mx.pillar.example with LMTP id " + found["id"].encode()
    )


async def test_the_size_is_that_of_received_mail(http_server: HttpServer) -> None:
    """One listener, one limit: 40 MiB."""
    offered = (await http_server.mta.ask("LHLO mta.quay.example")).lines
    assert str(await http_server.mta.ask("EHLO mta.quay.example")) == "500 5.5.1"
    assert f"SIZE {MOST_OCTETS}" in offered
    assert not {"STARTTLS", "AUTH PLAIN LOGIN"} & set(offered)
    assert str(await http_server.mta.ask(f"MAIL FROM:<a@b.example> SIZE={MOST_OCTETS + 1}")) == "552 5.3.4"


async def test_each_team_hears_the_id_of_its_own_mail(http_server: HttpServer) -> None:
    """RFC 2033 4.2 with receiving.md 5.3: one answer for each recipient, one email for each team."""
    theirs = await http_server.pillarbox.team("Quay")
    await receiving_domain(theirs, "quay.example")
    said = await http_server.hands_in(message(), [HELP, THEIRS, "info@harbor.example", "y@quay.example"])
    [ours], [other] = await received(http_server.team), await received(theirs)
    assert ours["received_for"] == [HELP, "info@harbor.example"]
    assert other["received_for"] == [THEIRS, "y@quay.example"]
    ids = [one.text.rpartition(" ")[2] for one in said]
    assert ids == [ours["id"], other["id"], ours["id"], other["id"]]


async def test_an_unknown_recipient_between_good_ones_has_no_answer_to_the_text(
    http_server: HttpServer,
) -> None:
    to = [HELP, "eve@elsewhere.example", "info@harbor.example"]
    lines = ["MAIL FROM:<ada@quay.example>", *(f"RCPT TO:<{address}>" for address in to), "DATA"]
    http_server.mta.write("".join(f"{line}\r\n" for line in lines).encode())
    codes = [str(said) for said in await http_server.mta.hear_all(4)]
    assert codes == ["250 2.1.0", "250 2.1.5", "550 5.7.1", "250 2.1.5"]
    assert (await http_server.mta.hear()).code == 354
    http_server.mta.write(message() + b".\r\nQUIT\r\n")
    assert [said.code for said in await http_server.mta.hear_all(3)] == [250, 250, 221]
    [found] = await received(http_server.team)
    assert found["received_for"] == [HELP, "info@harbor.example"]


async def test_what_could_not_be_stored_is_451_for_everybody(http_server: HttpServer) -> None:
    """SMTP-18: all teams or none; then it is taken, and a repetition of that is stored once (INB-08)."""
    theirs = await http_server.pillarbox.team("Quay")
    await receiving_domain(theirs, "quay.example")
    to = [HELP, THEIRS, "info@harbor.example"]
    with faults.armed("receive.before_commit=raise%1"):
        assert [str(said) for said in await http_server.hands_in(message(), to)] == ["451 4.3.0"] * 3
    assert [await received(team) for team in (http_server.team, theirs)] == [[], []]
    assert [str(said) for said in await http_server.hands_in(message(), to)] == [OK] * 3
    again = await http_server.hands_in(message(), to)
    assert [said.text for said in again] == ["2.0.0 Ok, it was stored before"] * 3
    assert [len(await received(team)) for team in (http_server.team, theirs)] == [1, 1]


async def test_reports_and_teams_in_one_transaction(http_server: HttpServer) -> None:
    """SMTP-15: each has an answer of its own here, so nobody has to come twice."""
    email = await http_server.team.send()
    await http_server.team.settled(email)
    report = f"{await token_of(http_server.pillarbox, email)}@send.harbor.example"
    raw = bounce(about("ada@quay.example"))
    with faults.armed("receive.before_commit=raise%1"):
        said = await http_server.hands_in(raw, [HELP, report, "info@harbor.example"], sender="")
    assert [str(one) for one in said] == ["451 4.3.0", OK, "451 4.3.0"]
    assert (await http_server.team.email(email))["last_event"] == "bounced"
    assert await received(http_server.team) == []
    assert [str(one) for one in await http_server.hands_in(raw, [report], sender="")] == [OK]
    assert [str(one) for one in await http_server.hands_in(raw, [report, HELP], sender="")] == [OK] * 2
    [found] = await received(http_server.team)
    assert found["received_for"] == [HELP]
    assert (await http_server.team.kinds(email)).count("bounced") == 1


async def test_spf_is_not_asked_and_nobody_is_refused_for_it(database_url: str, tmp_path: Path) -> None:
    """docs/decisions/0031: the peer's address says nothing about its client; DMARC goes by DKIM alone."""
    pair = dkim.generate_rsa_key()
    raw = message()
    signature = dkim.sign(
        raw, domain="quay.example", selector="s", key=dkim.load_key(pair.private), instant=1_700_000_000
    )
    async with lmtp(database_url, tmp_path, reject_dmarc_fail="true") as http_server:
        http_server.zone.add("s._domainkey.quay.example", "TXT", f"p={pair.public}")
        for text, dmarc, reason in (
            (signature + raw, "pass", None),
            (raw, "fail", "dmarc=fail policy=reject"),
        ):
            assert [str(said) for said in await http_server.hands_in(text)] == [OK]
            row = await http_server.pillarbox.pool.fetchrow(
                "SELECT spf, dmarc, spam_reason FROM received_emails ORDER BY id DESC LIMIT 1"
            )
            assert tuple(row) == ("none", dmarc, reason)


async def test_one_neighbour_has_as_many_sessions_as_it_wants(database_url: str, tmp_path: Path) -> None:
    """The limits of one client are for strangers; and nothing is taken while there is maintenance."""
    async with lmtp(database_url, tmp_path, smtp_client_sessions="1", smtp_client_rate="1") as http_server:
        for _ in range(5):
            async with dialog(http_server.port) as another:
                assert (await another.ask("LHLO mta.quay.example")).code == 250
        await maintenance.begin(http_server.pillarbox.pool)
        await http_server.pillarbox.app.need(Maintenance).look()
        assert str(await http_server.mta.ask("MAIL FROM:<a@b.example>")) == "451 4.3.2"


async def test_the_client_of_the_standard_library_hands_in(http_server: HttpServer) -> None:

    def bring() -> dict[str, tuple[int, bytes]]:
        with smtplib.LMTP("127.0.0.1", http_server.port, timeout=10) as client:
            return client.sendmail("ada@quay.example", [HELP, "eve@elsewhere.example"], message())

    refused = await asyncio.to_thread(bring)
    assert {address: code for address, (code, _) in refused.items()} == {"eve@elsewhere.example": 550}
    assert len(await received(http_server.team)) == 1
