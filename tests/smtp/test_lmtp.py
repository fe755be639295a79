"""LMTP on the wire: its own greeting, and an answer for each recipient (RFC 2033)."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.smtp_listener import RecordingHandler, running_listener
from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.mail.smtp.session import SmtpSession

TEXT = b"Subject: Berth\r\n\r\nReady\r\n"


async def test_it_is_greeted_with_lhlo_alone() -> None:
    """4.1: HELO and EHLO are 500 and begin nothing; LHLO offers what section 5 asks for."""
    async with (
        running_listener(lmtp=True, offers_login=False) as found,
        found.dialog(greeted=False) as client,
    ):
        assert (await client.hear()).text == "mx.pillar.example LMTP ready"
        assert str(await client.ask("EHLO mta.quay.example")) == "500 5.5.1"
        assert str(await client.ask("HELO mta.quay.example")) == "500 5.5.1"
        assert (await client.ask("MAIL FROM:<a@b.example>")).text == "5.5.1 Say LHLO first"
        assert str(await client.ask("LHLO")) == "501 5.5.4"
        offered = await client.ask("LHLO mta.quay.example")
        assert offered.code == 250
        assert {"PIPELINING", "ENHANCEDSTATUSCODES", "8BITMIME"} <= set(offered.lines)
        assert not {"STARTTLS", "AUTH PLAIN LOGIN"} & set(offered.lines)
        assert str(await client.ask("STARTTLS")) == "502 5.5.1"
        assert str(await client.ask("AUTH PLAIN AGEAYg==")) == "502 5.5.1"
        assert "LHLO" in (await client.ask("HELP")).text
    async with running_listener() as found, found.dialog() as client:
        assert str(await client.ask("LHLO mta.quay.example")) == "500 5.5.2"


async def test_each_accepted_recipient_has_a_reply() -> None:
    """4.2: one for each yes to RCPT, also for the same address twice, and none for who was refused."""
    handler = RecordingHandler()
    async with running_listener(handler, lmtp=True) as found, found.dialog() as client:
        await client.ask("LHLO quay.example", "MAIL FROM:<a@b.example>")
        to = ["ann", "unknown", "ben", "ann"]
        codes = [(await client.ask(f"RCPT TO:<{name}@d.example>")).code for name in to]
        assert codes == [250, 550, 250, 250]
        assert (await client.ask("DATA")).code == 354
        client.write(TEXT + b".\r\nNOOP\r\n")
        assert [said.text for said in await client.hear_all(4)] == ["2.0.0 Ok"] * 4
        assert handler.messages[0].recipients == ["ann@d.example", "ben@d.example", "ann@d.example"]
        assert handler.messages[0].text == TEXT
        assert handler.ended_count == 1
        assert str(await client.ask("NOOP")) == "250 2.0.0"


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "later"])
async def test_the_replies_may_differ(is_late: bool) -> None:
    """4.2: in the order of RCPT, as the handler returns them."""
    said = say.each([say.OK, say.TROUBLE, say.answer(552, "5.2.2", "Full")])

    def verdict(session: SmtpSession, content: ReceivedText) -> SessionReply | asyncio.Future[SessionReply]:
        if not is_late:
            return said
        later: asyncio.Future[SessionReply] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, later.set_result, said)
        return later

    async with (
        running_listener(RecordingHandler(verdict=verdict), lmtp=True) as found,
        found.dialog() as client,
    ):
        await client.ask("LHLO quay.example")
        assert str(await client.send(TEXT, to=["a@d.example", "b@d.example", "c@d.example"])) == "250 2.0.0"
        assert [str(one) for one in await client.hear_all(2)] == ["451 4.3.0", "552 5.2.2"]
        assert str(await client.ask("NOOP")) == "250 2.0.0"


def broken(session: SmtpSession, content: ReceivedText) -> SessionReply:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        (TEXT, lambda session, content: say.TROUBLE, "451 4.3.0"),
        (TEXT, broken, "451 4.3.0"),
        (TEXT + b"x" * 2000 + b"\r\n", None, "552 5.3.4"),
        (b"Subject: bare\n\r\n", None, "550 5.5.2"),
    ],
    ids=["trouble", "a fault", "too big", "bare"],
)
async def test_a_refusal_of_the_text_is_said_to_everybody(
    text: bytes, verdict: Callable[[SmtpSession, ReceivedText], SessionReply] | None, expected: str
) -> None:
    """4.2: also where the handler is not asked, or fails."""
    handler = RecordingHandler(verdict=verdict)
    async with running_listener(handler, lmtp=True, most_octets=1000) as found, found.dialog() as client:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        await client.ask("LHLO quay.example")
        assert str(await client.send(text, to=["a@d.example", "b@d.example"])) == expected
        assert str(await client.hear()) == expected
        assert str(await client.ask("NOOP")) == "250 2.0.0"


async def test_without_an_accepted_recipient_data_is_503() -> None:
    """4.2: where SMTP says 554."""
    async with running_listener(lmtp=True) as found, found.dialog() as client:
        await client.ask("LHLO quay.example", "MAIL FROM:<a@b.example>", "RCPT TO:<unknown@d.example>")
        assert str(await client.ask("DATA")) == "503 5.5.1"
        assert str(await client.ask("RSET")) == "250 2.0.0"


async def test_two_transactions_in_three_packets() -> None:
    """5: PIPELINING, the answers of the first text before those of the next group."""
    handler = RecordingHandler()
    group = b"MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nRCPT TO:<e@d.example>\r\nDATA\r\n"
    async with running_listener(handler, lmtp=True) as found, found.dialog() as client:
        client.write(b"LHLO quay.example\r\n" + group)
        assert [said.code for said in await client.hear_all(5)] == [250, 250, 250, 250, 354]
        client.write(TEXT + b".\r\n" + group)
        assert [said.code for said in await client.hear_all(6)] == [250, 250, 250, 250, 250, 354]
        client.write(TEXT + b".\r\nQUIT\r\n")
        assert [said.code for said in await client.hear_all(3)] == [250, 250, 221]
        assert [kept.recipients for kept in handler.messages] == [["c@d.example", "e@d.example"]] * 2


async def test_many_unknown_recipients_are_no_reason_to_hang_up() -> None:
    """They are the mistakes of those who write to the server that brings us its mail."""
    async with running_listener(lmtp=True) as found, found.dialog() as client:
        await client.ask("LHLO quay.example", "MAIL FROM:<a@b.example>")
        for _ in range(100):
            assert str(await client.ask("RCPT TO:<unknown@d.example>")) == "550 5.1.1"
        assert str(await client.ask("RCPT TO:<known@d.example>")) == "250 2.1.5"


async def test_the_protocol_is_named_in_the_words_of_rfc_3848(tmp_path: Path) -> None:
    handler = RecordingHandler()
    async with running_listener(handler, lmtp=True) as found, found.dialog() as client:
        await client.ask("LHLO quay.example")
        assert (await client.send(TEXT)).code == 250
        await client.ask("MAIL FROM:<a@b.example> SMTPUTF8", "RCPT TO:<gr\u00fcn@d.example>", "DATA")
        client.write(TEXT + b".\r\n")
        assert (await client.hear()).code == 250
    assert [kept.protocol for kept in handler.messages] == ["LMTP", "UTF8LMTP"]


async def test_the_client_of_the_standard_library_is_served() -> None:
    handler = RecordingHandler()
    async with running_listener(handler, lmtp=True) as found:

        def bring() -> dict[str, tuple[int, bytes]]:
            with smtplib.LMTP("127.0.0.1", found.port, timeout=10) as client:
                return client.sendmail("a@b.example", ["c@d.example"], TEXT)

        assert await asyncio.to_thread(bring) == {}
    assert handler.messages[0].recipients == ["c@d.example"]
