"""From the API to a mail server and back: its report comes in here (BNC-02, contract decision 30)."""

from __future__ import annotations

import smtplib
import socket
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from kit.clock import ManualClock
from kit.reports import about, bounce, complaint
from kit.smtp_sink import Sink
from kit.webhooks import hook
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.delivery.smtp.mta_sts_policies import Policies
from pillarbox.kernel.network.listeners import SMTP
from pillarbox.kernel.process import faults
from pillarbox.receiving.reports.return_path import FEEDBACK_PER_SECOND
from pillarbox.smtp.listeners import SmtpListeners

ZONE = """
quay.example  MX 10 mx.quay.example
mx.quay.example A 127.0.0.1
"""


class Port(NamedTuple):
    """A Pillarbox with an open SMTP listener, and the server that it delivers to."""

    pillarbox: World
    team: Team
    sink: Sink
    number: int

    async def brings(self, recipient: str, raw: bytes, sender: str = "") -> list[tuple[int, str]]:
        """Another server's session: the answers to RCPT and, where that was a yes, to the message."""
        return await to_thread(_session, self.number, sender, recipient, raw)

    async def last_event(self, email: str) -> str:
        return str((await self.team.email(email))["last_event"])


def _session(port: int, sender: str, recipient: str, raw: bytes) -> list[tuple[int, str]]:
    with smtplib.SMTP("127.0.0.1", port, "mx.quay.example", timeout=10) as client:
        client.ehlo()
        client.mail(sender)
        answers = [client.rcpt(recipient)]
        if answers[0][0] == 250:
            answers.append(client.data(raw))
        return [(code, text.decode()) for code, text in answers]


@asynccontextmanager
async def port(database_url: str, folder: Path) -> AsyncIterator[Port]:
    http_server = socket.create_server(("127.0.0.1", 0))
    number = http_server.getsockname()[1]
    async with (
        Sink() as sink,
        world(
            database_url,
            folder,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            listeners={SMTP: http_server.detach()},
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        assert pillarbox.app.need(SmtpListeners) is not None
        await pillarbox.app.need(SmtpListeners).open()
        team = await pillarbox.team()
        await team.domain()
        try:
            yield Port(pillarbox, team, sink, number)
        finally:
            await pillarbox.app.need(SmtpListeners).stop(1)
            await pillarbox.app.need(Policies).close()


async def test_a_report_to_the_envelope_sender_bounces_the_mail(database_url: str, tmp_path: Path) -> None:
    """The whole way: 250 to us, later a DSN to the signed address; email, suppression and webhook follow."""
    async with port(database_url, tmp_path) as at:
        made = await hook(at.team, "email.bounced")
        email = await at.team.send()
        await at.pillarbox.turn()
        [mail] = await at.sink.messages(1)
        assert await at.last_event(email) == "delivered"
        raw = bounce(about("ada@quay.example"), original=mail.content.decode().partition("\r\n\r\n")[0])
        answers = await at.brings(mail.mail_from, raw)
        assert [code for code, _ in answers] == [250, 250]
        assert await at.last_event(email) == "bounced"
        [told] = await made.payloads()
        assert told["data"]["email_id"] == email
        rows = await at.team.db.source.fetch("SELECT address, origin, source_id::text FROM suppressions")
        assert [tuple(row) for row in rows] == [("ada@quay.example", "bounce", email)]
        # The other server did not hear our 250 and brings it again.
        assert [code for code, _ in await at.brings(mail.mail_from.upper(), raw)] == [250, 250]
        assert (await at.team.kinds(email)).count("bounced") == 1
        assert await at.team.db.value("SELECT count(*) FROM received_emails WHERE team_id = $1") == 0


async def test_addresses_that_nobody_signed_are_refused_at_once(database_url: str, tmp_path: Path) -> None:
    """BNC-06: at RCPT, before a byte of the report; so are old ones and those at other hosts."""
    async with port(database_url, tmp_path) as at:
        email = await at.team.send()
        await at.pillarbox.turn()
        [mail] = await at.sink.messages(1)
        local, _, host = mail.mail_from.partition("@")
        raw = bounce(about("ada@quay.example"))
        turned = local[:-1] + ("a" if local[-1] != "a" else "b")
        for recipient in (f"{turned}@{host}", f"ada@{host}", f"{local}@quay.example"):
            [(code, text)] = await at.brings(recipient, raw)
            assert code == 550, text
        at.pillarbox.clock.advance(91 * 86_400)  # type: ignore[attr-defined]
        [(code, text)] = await at.brings(mail.mail_from, raw)
        assert code == 550, text
        assert await at.last_event(email) == "delivered"


async def test_a_complaint_comes_to_the_feedback_address(database_url: str, tmp_path: Path) -> None:
    """BNC-05: at the installation's host and at return paths; too many at once are asked to wait."""
    async with port(database_url, tmp_path) as at:
        first, second = await at.team.send(), await at.team.send(to="bob@quay.example")
        await at.pillarbox.turn()
        mails = {mail.recipients[0]: mail for mail in await at.sink.messages(2)}
        for email, address, feedback in (
            (first, "ada@quay.example", "fbl@mx.pillar.example"),
            (second, "bob@quay.example", "fbl@send.harbor.example"),
        ):
            mail = mails[address]
            original = f"Return-Path: <{mail.mail_from}>\n" + mail.content.decode()
            answers = await at.brings(feedback, complaint(original=original), "fbl@quay.example")
            assert [code for code, _ in answers] == [250, 250]
            assert await at.last_event(email) == "complained"
        junk = complaint(original="Subject: nothing of ours")
        codes = []
        for _ in range(FEEDBACK_PER_SECOND):
            codes.append((await at.brings("fbl@mx.pillar.example", junk))[-1][0])
        assert codes[0] == 250
        assert codes[-1] in (421, 451)


async def test_a_report_that_cannot_be_recorded_is_brought_again(database_url: str, tmp_path: Path) -> None:
    """DUR-01: 250 only after the commit."""
    async with port(database_url, tmp_path) as at:
        email = await at.team.send()
        await at.pillarbox.turn()
        [mail] = await at.sink.messages(1)
        raw = bounce(about("ada@quay.example"))
        with faults.armed("timeline.events=raise"):
            assert (await at.brings(mail.mail_from, raw))[-1][0] == 451
        assert await at.last_event(email) == "delivered"
        assert (await at.brings(mail.mail_from, raw))[-1][0] == 250
        assert await at.last_event(email) == "bounced"
