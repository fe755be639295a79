"""What a mail server gets for a send request: envelope, headers, parts (emails.md 1, section 6; MSG-14)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kit.manual_world import parsed, relayed_world
from kit.smtp_sink import Message, Sink
from kit.world import Team, World

HOSTILE_NAMES = [
    ('"Lovelace, Ada" <ada@quay.example>', "Lovelace, Ada"),
    ('"Ada \\"the first\\" L." <ada@quay.example>', 'Ada "the first" L.'),
    ('"ada@evil.example" <ada@quay.example>', "ada@evil.example"),
    ('"a, b <c@evil.example>, d" <ada@quay.example>', "a, b <c@evil.example>, d"),
    ("Zoë Ångström <ada@quay.example>", "Zoë Ångström"),
    (
        "日本語の名前 <ada@quay.example>",
        "日本語の名前",
    ),
    ("=?utf-8?q?=3Cx=40evil.example=3E=2C_you?= <ada@quay.example>", "<x@evil.example>, you"),
    ("J. O'Neil & Co. <ada@quay.example>", "J. O'Neil & Co."),
]


async def one(pillarbox: World, sink: Sink, team: Team, **fields: Any) -> Message:
    """Send, deliver, and return what arrived last."""
    await team.send(**fields)
    await pillarbox.turn()
    return (await sink.messages(1))[-1]


async def test_display_names_never_become_addresses(relayed: tuple[World, Sink]) -> None:
    """TRAP-02: whatever a name holds, every reader finds one mailbox with that name."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain("quay.example")
    for text, display in HOSTILE_NAMES:
        message = await one(pillarbox, sink, team, from_=text, to=text, cc=[text], reply_to=text)
        for name in ("from", "to", "cc", "reply-to"):
            [address] = parsed(message)[name].addresses
            assert (address.display_name, address.addr_spec) == (display, "ada@quay.example"), name
        assert message.recipients == ["ada@quay.example"]
        assert all(line.isascii() for line in message.content.split(b"\r\n\r\n")[0].splitlines())


async def test_blind_copies_are_only_in_the_envelope(relayed: tuple[World, Sink]) -> None:
    """Section 6: From, To, Cc, never Bcc; one transaction per destination domain, each address once."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    await team.send(
        to=["a@quay.example", "A@QUAY.example"],
        cc=["b@pier.example", "a@quay.example"],
        bcc=["c@quay.example", "d@dock.example", "b@pier.example"],
    )
    await pillarbox.turn()
    envelopes = sorted(sorted(message.recipients) for message in sink.received)
    assert envelopes == [["a@quay.example", "c@quay.example"], ["b@pier.example"], ["d@dock.example"]]
    for message in sink.received:
        assert parsed(message)["bcc"] is None
        assert b"c@quay.example" not in message.content
        assert b"d@dock.example" not in message.content
        assert [a.addr_spec for a in parsed(message)["to"].addresses] == [
            "a@quay.example",
            "A@quay.example",
        ]
    assert len({parsed(message)["message-id"] for message in sink.received}) == 1


async def test_the_email_is_what_the_request_said(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    email = await team.send(subject="Grüße\tan Zoë", html="<p>Größe</p>", text="Größe")
    await pillarbox.turn()
    [message] = await sink.messages(1)
    mail = parsed(message)
    shown = await team.email(email)
    assert mail["message-id"] == shown["message_id"]
    assert mail["subject"] == "Grüße an Zoë"
    assert mail["mime-version"] == "1.0"
    assert len(mail.get_all("date") or []) == 1
    assert mail.get_content_type() == "multipart/alternative"
    bodies = [part.get_payload(decode=True) for part in mail.iter_parts()]
    assert [bytes(body).decode().strip() for body in bodies] == ["Größe", "<p>Größe</p>"]
    assert re.fullmatch(r"[^@]{1,64}@send\.harbor\.example", message.mail_from)
    assert message.content.count(b"DKIM-Signature:") == 1


async def test_an_empty_text_means_no_text_part(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    html_only = await one(pillarbox, sink, team, text="")
    assert parsed(html_only).get_content_type() == "text/html"
    text_only = await one(pillarbox, sink, team, html=None, text="Only")
    assert parsed(text_only).get_content_type() == "text/plain"


async def test_custom_headers_pass_and_ours_win(database_url: str, tmp_path: Path) -> None:
    """1.3: what is passed through, what is dropped in silence."""
    kept = {
        "In-Reply-To": "<first@quay.example>",
        "References": "<first@quay.example> <second@quay.example>",
        "List-Unsubscribe": "<https://harbor.example/off?u=1>, <mailto:off@harbor.example>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "X-Entity-Ref-ID": "42",
        "Feedback-ID": "spring:harbor:notes:pillarbox",
        "X-Name": "Zoë",
        "Auto-Submitted": "auto-generated",
    }
    dropped = dict.fromkeys(
        (
            *("From", "to", "CC", "Bcc", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"),
            *("content-transfer-encoding", "DKIM-Signature", "ARC-Seal", "Received", "Return-Path"),
            *("Sender", "Authentication-Results"),
        ),
        "evil",
    )
    async with relayed_world(database_url, tmp_path) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        message = await one(
            pillarbox, sink, team, headers=kept | dropped | {"reply-to": "Ann <r@quay.example>"}
        )
        mail = parsed(message)
        for name, value in kept.items():
            assert str(mail[name]) == value, name
        assert b"evil" not in message.content
        for name in ("from", "to", "subject", "date", "message-id", "mime-version", "content-type"):
            assert len(mail.get_all(name) or []) == 1, name
        assert str(mail["reply-to"]) == "Ann <r@quay.example>"
        both = await one(
            pillarbox, sink, team, headers={"Reply-To": "x@quay.example"}, reply_to="y@quay.example"
        )
        assert str(parsed(both)["reply-to"]) == "y@quay.example"


async def test_long_and_odd_values_make_no_second_header(relayed: tuple[World, Sink]) -> None:
    """TRAP-01, MSG: no line over 998 octets, no header that was not asked for."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    subject = "=?utf-8?q?a=0d=0aX-Evil:_1?= " + "long word " * 90
    message = await one(
        pillarbox, sink, team, subject=subject.strip(), headers={"X-Note": "w " * 900 + "end: =?x?="}
    )
    assert max(map(len, message.content.split(b"\r\n"))) <= 998
    names = [name.lower() for name, _ in parsed(message).items()]
    assert "x-evil" not in names
    assert sorted(names) == sorted(
        [
            *("from", "to", "subject", "date", "message-id", "mime-version", "content-type"),
            *("x-note", "dkim-signature"),
        ]
    )
