"""Postfix sends to us, through us and for us (SMTP-12, SMTP-13, SMTP-17)."""

from __future__ import annotations

import asyncio
import re
import smtplib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from kit.peers import RECEIVING, SENDER, Peered, eventually, peered, submitted
from kit.postfix import postfix
from kit.smtp_sink import Sink
from kit.submission import message_bytes

pytestmark = pytest.mark.sweep


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, databases: Any) -> Iterator[Peered]:
    """Everything by default but ports and database: the route is `capture`, the certificate self-made.

    One domain receives; nobody looks for its MX record.
    """
    url = databases.fresh()
    settings = {"processes": "1", "inbound_require_dns": "false", "lmtp": "127.0.0.1:0"}
    with peered(tmp_path_factory.mktemp("peers") / "data", url, **settings) as found:
        found.api("/domains", {"name": RECEIVING, "capabilities": {"receiving": "enabled"}})
        yield found
    databases.drop(url)


def test_postfix_submits_through_us(server: Peered) -> None:
    """A smarthost with AUTH and STARTTLS: five mails on its own connections, each id in its log."""
    with postfix(server.ports["submission"], login=True) as peer:
        with smtplib.SMTP("127.0.0.1", peer.port, timeout=30) as client:
            for number in range(5):
                client.sendmail(SENDER, ["ada@quay.example"], message_bytes(subject=f"postfix {number}"))
        eventually(lambda: peer.log.count("status=sent") == 5, "five in the log")
        said = re.findall(r"status=sent \(250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})\)", peer.log)
        assert sorted(said) == sorted(server.email(f"postfix {number}")["id"] for number in range(5))


def test_postfix_delivers_to_us(server: Peered) -> None:
    """Inbound, without AUTH: five mails over STARTTLS, one of them for two recipients and with 8-bit text."""
    there = [f"help@{RECEIVING}", f"Info@{RECEIVING}"]
    with postfix(server.ports["smtp"], login=False) as peer:
        with smtplib.SMTP("127.0.0.1", peer.port, timeout=30) as client:
            for number in range(4):
                text = message_bytes(sender="ada@quay.example", to=there[0], subject=f"inbound {number}")
                client.sendmail("ada@quay.example", there[:1], text)
            raw = "\r\n".join(
                ["From: ada@quay.example", f"To: {there[0]}", "Subject: eight", "", "..Gr\u00fc\u00dfe", "."]
            ).encode()
            client.sendmail("ada@quay.example", there, raw, mail_options=["BODY=8BITMIME"])
        eventually(lambda: peer.log.count("status=sent") == 6, "all recipients in the log")
        said = re.findall(r"status=sent \(250 2\.0\.0 Ok, stored as ([0-9a-f-]{36})\)", peer.log)
    found = [server.received(f"inbound {number}") for number in range(4)]
    eight = server.received("eight")
    assert sorted(said) == sorted([*(one["id"] for one in found), eight["id"], eight["id"]])
    for one in found:
        assert (one["text"], one["received_for"]) == ("Ready\n", there[:1])
    assert (eight["text"], sorted(eight["received_for"])) == ("..Gr\u00fc\u00dfe\n.\n", sorted(there))
    lines = eight["octets"].decode().split("\r\n")
    assert lines[:3] == [
        "Return-Path: <ada@quay.example>",
        "Received: from mta.quay.example ([127.0.0.1])",
        f"\tby mx.pillar.example with ESMTPS ({' '.join(tls_of(lines[2]))}) id {eight['id']}",
    ]
    assert "by mta.quay.example (Postfix) with ESMTP" in eight["octets"].decode()


def tls_of(line: str) -> tuple[str, str]:
    """Version and cipher of a Received line."""
    found = re.search(r"\((TLSv1\.[23]) ([A-Z0-9_-]+)\)", line)
    assert found is not None, line
    return found[1], found[2]


def test_postfix_gets_an_immediate_refusal_for_unknown_recipients(server: Peered) -> None:
    """SMTP-17: refused in the session, so that the bounce is its own; the mail for the others arrives."""
    to = [f"help@{RECEIVING}", "eve@elsewhere.example"]
    with postfix(server.ports["smtp"], login=False) as peer:
        with smtplib.SMTP("127.0.0.1", peer.port, timeout=30) as client:
            client.sendmail(
                "ada@quay.example", to, message_bytes(sender="ada@quay.example", subject="for two")
            )
        eventually(lambda: "status=bounced" in peer.log, "the refusal in the log")
        assert "550 5.7.1 We do not relay for this domain (in reply to RCPT TO command)" in peer.log
        eventually(lambda: "status=sent" in peer.log, "the mail in the log")
    assert server.received("for two")["received_for"] == to[:1]


def test_postfix_hands_in_by_lmtp(server: Peered) -> None:
    """receiving.md 5.4, RFC 2033: one session for two recipients of ours and one that is not; each has its
    own line in the log, and what it takes on itself it bounces itself."""
    there = [f"help@{RECEIVING}", "eve@elsewhere.example", f"info@{RECEIVING}"]
    with postfix(server.ports["lmtp"], login=False, lmtp=True) as peer:
        with smtplib.SMTP("127.0.0.1", peer.port, timeout=30) as client:
            client.sendmail(
                "ada@quay.example", there, message_bytes(sender="ada@quay.example", subject="by lmtp")
            )
        eventually(lambda: peer.log.count("status=sent") == 2, "both recipients in the log")
        eventually(lambda: "status=bounced" in peer.log, "the refusal in the log")
        said = re.findall(r"status=sent \(250 2\.0\.0 Ok, stored as ([0-9a-f-]{36})\)", peer.log)
        assert "550 5.7.1 We do not relay for this domain (in reply to RCPT TO command)" in peer.log
    found = server.received("by lmtp")
    assert said == [found["id"]] * 2
    assert sorted(found["received_for"]) == [there[0], there[2]]
    lines = found["octets"].decode().split("\r\n")
    assert lines[1:3] == [
        "Received: from mta.quay.example",
        f"\tby mx.pillar.example with LMTP id {found['id']}",
    ]


async def test_postfix_receives_from_us(database_url: str, tmp_path: Path) -> None:
    """The route `relay` to Postfix, which hands the mail on to a server of the test."""
    async with Sink() as sink:

        def through() -> None:
            with postfix(sink.port, login=False) as peer:
                route = f"relay:smtp://127.0.0.1:{peer.port}"
                with peered(tmp_path / "data", database_url, processes="1", route=route) as server:
                    submitted(server, message_bytes(subject="onwards", html="<p>Gr\u00fc\u00dfe</p>"))
                    assert server.email("onwards")["last_event"] == "delivered"
                    eventually(lambda: sink.received, "the mail behind Postfix")

        await asyncio.to_thread(through)
        [mail] = sink.received
        assert mail.recipients == ["ada@quay.example"]
        assert b"Subject: onwards" in mail.content
        assert b"by mta.quay.example (Postfix)" in mail.content


@pytest.mark.slow
async def test_large_mail_goes_through_a_relay_with_starttls(database_url: str, tmp_path: Path) -> None:
    """OUT-18: small mail behind it on the same relay arrives too."""
    certificate = trustme.CA().issue_cert("mta.quay.example").private_key_and_cert_chain_pem.bytes()
    async with Sink() as sink:

        def through() -> None:
            with postfix(sink.port, login=False, certificate=certificate) as peer:
                route = f"relay:smtp://127.0.0.1:{peer.port}"
                with peered(tmp_path / "data", database_url, processes="1", route=route) as server:
                    submitted(server, message_bytes(subject="large", html="<p>Ready</p>\n" * 150_000))
                    submitted(server, message_bytes(subject="small"))
                    for subject in ("large", "small"):
                        assert server.email(subject)["last_event"] == "delivered"
                    eventually(lambda: len(sink.received) == 2, "both behind Postfix")

        await asyncio.to_thread(through)
        for mail in sink.received:
            assert b"by mta.quay.example (Postfix) with ESMTPS id" in mail.content
