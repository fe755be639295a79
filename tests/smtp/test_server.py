"""The SMTP server's side of a session: commands, their order, their limits (SMTP-03, 05, 06, 07, 19)."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.smtp_listener import HURRIED, RecordingHandler, SmtpReply, dialog, on_each_loop, running_listener
from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.conversation import SessionTimeouts

NEEDS_ENHANCED = re.compile(r"([245])\.\d{1,3}\.\d{1,3} [\x20-\x7e]+")


def told_well(said: SmtpReply) -> bool:
    """SMTP-19: a reply to MAIL, RCPT, DATA or AUTH has an enhanced code of its own class, in plain ASCII."""
    found = NEEDS_ENHANCED.fullmatch(said.text)
    return said.code in (354, 334) or (found is not None and found[1] == str(said.code)[0])


@on_each_loop
async def test_a_whole_conversation() -> None:
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        assert str(await client.ask("EHLO quay.example")) == "250"
        assert str(await client.ask("MAIL FROM:<ann@quay.example> SIZE=20 BODY=8BITMIME")) == "250 2.1.0"
        assert str(await client.ask("RCPT TO:<ben@harbor.example>")) == "250 2.1.5"
        assert str(await client.ask("DATA")) == "354"
        assert str(await client.ask("Subject: x\r\n\r\nhello\r\n.")) == "250 2.0.0"
        assert str(await client.ask("QUIT")) == "221 2.0.0"
        await client.over()
    [kept] = handler.messages
    assert (kept.sender, kept.recipients) == ("ann@quay.example", ["ben@harbor.example"])
    assert kept.text == b"Subject: x\r\n\r\nhello\r\n"
    assert kept.protocol == "ESMTP"
    assert handler.ended_count == 1


@on_each_loop
async def test_everything_in_one_packet_but_the_text() -> None:
    """SMTP-07, RFC 2920: the answers come in order, and a MAIL behind the final dot is heard."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        client.write(
            b"EHLO a.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<unknown@d.example>\r\n"
            b"RCPT TO:<c@d.example>\r\nDATA\r\n"
        )
        assert [said.code for said in await client.hear_all(5)] == [250, 250, 550, 250, 354]
        client.write(b"one\r\n.\r\nMAIL FROM:<e@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n")
        assert [said.code for said in await client.hear_all(4)] == [250, 250, 250, 354]
        client.write(b"two\r\n.\r\nQUIT\r\n")
        assert [said.code for said in await client.hear_all(2)] == [250, 221]
    assert [kept.text for kept in handler.messages] == [b"one\r\n", b"two\r\n"]


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["MAIL FROM:<a@b.example>"], "503 5.5.1"),
        (["EHLO x", "RCPT TO:<a@b.example>"], "503 5.5.1"),
        (["EHLO x", "DATA"], "503 5.5.1"),
        (["EHLO x", "MAIL FROM:<a@b.example>", "DATA"], "554 5.5.1"),
        (["EHLO x", "MAIL FROM:<a@b.example>", "MAIL FROM:<a@b.example>"], "503 5.5.1"),
        (["EHLO x", "MAIL FROM:<a@b.example>", "RSET", "RCPT TO:<c@d.example>"], "503 5.5.1"),
        (["EHLO x", "MAIL FROM:<a@b.example>", "EHLO x", "RCPT TO:<c@d.example>"], "503 5.5.1"),
        (["EHLO"], "501 5.5.4"),
        (["EHLO a b"], "501 5.5.4"),
        (["HELO x", "MAIL FROM:<a@b.example> SIZE=1"], "555 5.5.4"),
        (["EHLO x", "MAIL FROM:a@b.example"], "501 5.1.7"),
        (["EHLO x", "MAIL FROM:<a@b.example"], "501 5.1.7"),
        (["EHLO x", "MAIL FROM:<a b@c.example>"], "501 5.1.7"),
        (["EHLO x", "MAIL FROM:<nobody>"], "501 5.1.7"),
        (["EHLO x", "MAIL TO:<a@b.example>"], "501 5.5.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> SIZE=x"], "501 5.5.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> SIZE=1000001"], "552 5.3.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> BODY=BINARYMIME"], "501 5.5.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> REQUIRETLS"], "555 5.5.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> RET=HDRS"], "555 5.5.4"),
        (["EHLO x", "MAIL FROM:<a@b.example> AUTH=<>"], "250 2.1.0"),
        (["EHLO x", "MAIL FROM:<j\u00e4@b.example>"], "553 5.6.7"),
        (["EHLO x", "MAIL FROM:<j\u00e4@b.example> SMTPUTF8"], "250 2.1.0"),
        (["EHLO x", "MAIL FROM:<>"], "250 2.1.0"),
        (["EHLO x", "mail from:<a@b.example>"], "250 2.1.0"),
        (["EHLO x", "MAIL FROM: <a@b.example>"], "250 2.1.0"),
        (["EHLO x", "MAIL FROM:<@c.example,@d.example:a@b.example>"], "250 2.1.0"),
        (["EHLO x", 'MAIL FROM:<"a b"@c.example>'], "250 2.1.0"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<>"], "553 5.1.3"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<nobody>"], "553 5.1.3"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<Postmaster>"], "250 2.1.5"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<a@b.example> NOTIFY=NEVER"], "555 5.5.4"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<unknown@b.example>"], "550 5.1.1"),
        (["EHLO x", "MAIL FROM:<>", "RCPT TO:<a@b.example>", "DATA x"], "501 5.5.4"),
        (["NOOP", "NOOP anything"], "250 2.0.0"),
        (["RSET"], "250 2.0.0"),
        (["RSET now"], "501 5.5.4"),
        (["VRFY ann"], "252 2.1.5"),
        (["VRFY"], "501 5.5.4"),
        (["EXPN list"], "502 5.5.1"),
        (["BDAT 10 LAST"], "502 5.5.1"),
        (["HELP"], "214"),
        (["WHAT"], "500 5.5.2"),
        ([""], "500 5.5.2"),
        (["NOOP\0"], "500 5.5.2"),
        (["NOOP\nQUIT"], "500 5.5.2"),
        (["NOOP\rQUIT"], "500 5.5.2"),
        (["STARTTLS"], "502 5.5.1"),
        (["EHLO x", "AUTH PLAIN"], "502 5.5.1"),
        (["QUIT"], "221 2.0.0"),
    ],
)
async def test_one_command_one_answer(lines: list[str], answer: str) -> None:
    """SMTP-06."""
    async with running_listener() as found, found.dialog() as client:
        assert str(await client.ask(*lines)) == answer


async def test_who_says_helo_hears_no_extension() -> None:
    async with running_listener() as found, found.dialog() as client:
        assert (await client.ask("HELO x")).lines == ("mx.pillar.example",)


async def test_what_is_announced_without_tls_and_login() -> None:
    """SMTP-07. The other states are in `test_server_tls`."""
    async with running_listener() as found, found.dialog() as client:
        assert (await client.ask("EHLO x")).lines == (
            "mx.pillar.example",
            "PIPELINING",
            "SIZE 1000000",
            "8BITMIME",
            "SMTPUTF8",
            "ENHANCEDSTATUSCODES",
        )


@on_each_loop
async def test_who_talks_before_the_greeting_hears_nothing_else() -> None:
    """SMTP-03."""
    handler = RecordingHandler()
    timeouts = SessionTimeouts(greeting=0.2)
    async with running_listener(handler, timeouts=timeouts) as found, found.dialog(greeted=False) as client:
        client.write(b"EHLO x\r\nMAIL FROM:<a@b.example>\r\n")
        assert [str(said) for said in await client.over()] == ["554 5.5.0"]


@on_each_loop
async def test_text_before_the_go_ahead_ends_the_session() -> None:
    """SMTP-03, CVE-2023-51764: a text in the packet of DATA is no text, and no commands either."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        client.write(
            b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n"
            b"Subject: x\r\n\r\nx\r\n.\r\nMAIL FROM:<evil@b.example>\r\n"
        )
        assert [str(said) for said in await client.over()] == ["250", "250 2.1.0", "250 2.1.5", "554 5.5.0"]
    assert handler.messages == []


@pytest.mark.parametrize(
    "before", [b"", b"EHLO x\r\n", b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<unknown@d.example>\r\n"]
)
async def test_a_text_behind_a_data_that_is_refused_is_no_command(before: bytes) -> None:
    """SMTP-03: nobody smuggles commands in a text by having no recipient accepted."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        client.write(
            before + b"DATA\r\nSubject: x\r\n\r\nEHLO x\r\nMAIL FROM:<evil@b.example>\r\n"
            b"RCPT TO:<c@d.example>\r\nDATA\r\n"
        )
        assert str((await client.over())[-1]) == "554 5.5.0"
    assert handler.ended_count == (b"MAIL" in before)


@on_each_loop
async def test_a_line_of_ten_megabytes_is_refused_and_takes_no_memory() -> None:
    """SMTP-05."""
    async with running_listener() as found, found.dialog() as client:
        piece = b"NOOP " + b"x" * 65_531
        for _ in range(160):
            client.write(piece)
        client.write(b"\r\nNOOP\r\n")
        assert [str(said) for said in await client.hear_all(2)] == ["500 5.5.2", "250 2.0.0"]
        [session] = found.listener._sessions
        assert session._lines.pending.__sizeof__() < 1_000_000


async def test_lines_have_their_length_and_the_third_that_is_longer_ends_it() -> None:
    """SMTP-05: 512 octets, 2,048 once extensions are in play."""
    async with running_listener() as found, found.dialog() as client:
        assert str(await client.ask("NOOP " + "x" * 505)) == "250 2.0.0"
        assert str(await client.ask("NOOP " + "x" * 508)) == "500 5.5.2"
        assert (await client.ask("EHLO x")).code == 250
        assert str(await client.ask("NOOP " + "x" * 2043)) == "250 2.0.0"
        assert str(await client.ask("NOOP " + "x" * 2044)) == "500 5.5.2"
        assert str(await client.ask("NOOP " + "x" * 9000)) == "500 5.5.2"
        assert await client.over() == []


@on_each_loop
async def test_mistakes_are_answered_slowly_and_then_not_at_all() -> None:
    """SMTP-06."""
    timeouts = SessionTimeouts(greeting=0.0, slow=0.01)
    async with running_listener(timeouts=timeouts) as found, found.dialog() as client:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert {str(await client.ask("WHAT")) for _ in range(9)} == {"500 5.5.2"}
        quick = loop.time() - began
        client.write(b"WHAT\r\n" * 30)
        rest = await client.over()
        assert [str(said) for said in rest] == ["500 5.5.2"] * 10 + ["421 4.7.0"]
        assert loop.time() - began - quick >= 0.1


async def test_a_stored_message_forgives_the_mistakes_before_it() -> None:
    async with running_listener() as found, found.dialog() as client:
        await client.ask("EHLO x")
        for _ in range(4):
            for _ in range(8):
                assert (await client.ask("WHAT")).code == 500
            assert (await client.send(b"x\r\n")).code == 250


async def test_talk_without_a_message_has_an_end() -> None:
    """SMTP-21: a session that brings nothing is ended, however right its commands are."""
    async with running_listener() as found, found.dialog() as client:
        await client.ask("EHLO x")
        client.write(b"NOOP\r\n" * 1500)
        assert {str(said) for said in await client.hear_all(1500)} == {"250 2.0.0"}
        assert (await client.send(b"x\r\n")).code == 250
        client.write(b"MAIL FROM:<a@b.example>\r\nRSET\r\n" * 1001)
        rest = await client.over()
        assert [said.code for said in rest] == [250] * 2000 + [421]
        assert rest[-1].text == "4.7.0 Too many commands without a message"


async def test_refusals_for_now_are_no_mistakes() -> None:
    """A list with too many recipients is sent in parts; it may not be cut off in the middle."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>")
        codes = [(await client.ask(f"RCPT TO:<r{n}@d.example>")).code for n in range(150)]
        assert codes == [250] * 100 + [452] * 50
        assert (await client.ask("DATA")).code == 354
        assert (await client.ask("x\r\n.")).code == 250
    assert len(handler.messages[0].recipients) == 100


async def test_an_exception_of_a_handler_is_451_and_the_session_goes_on() -> None:
    """Architecture 6.6."""
    troubles: list[str] = []

    async def later() -> say.SessionReply:
        raise RuntimeError("later")

    def at_once() -> say.SessionReply:
        raise RuntimeError("at once")

    verdicts = [later, at_once]
    handler = RecordingHandler(verdict=lambda session, content: verdicts.pop()())
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: troubles.append(str(context["exception"]))
    )
    async with running_listener(handler) as found, found.dialog() as client:
        await client.ask("EHLO x")
        assert str(await client.send(b"x\r\n")) == "451 4.3.0"
        assert str(await client.send(b"x\r\n")) == "451 4.3.0"
        assert (await client.ask("NOOP")).code == 250
    assert troubles == ["at once", "later"]


@on_each_loop
async def test_who_says_all_and_closes_its_side_still_hears_the_answers() -> None:
    gate = asyncio.Event()

    async def stored() -> say.SessionReply:
        await gate.wait()
        return say.OK

    async with (
        running_listener(RecordingHandler(verdict=lambda session, content: stored())) as found,
        found.dialog() as client,
    ):
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
        client.write(b"x\r\n.\r\nQUIT\r\n")
        client.transport.write_eof()
        await asyncio.sleep(0.02)
        gate.set()
        assert [said.code for said in await client.over()] == [250, 221]


@on_each_loop
async def test_a_client_that_does_not_read_is_not_written_to_without_end() -> None:
    """Architecture 6.5: a stream of small questions makes large answers."""
    async with running_listener(most_commands=10_000_000) as found, found.dialog() as client:
        client.transport.pause_reading()
        question = b"EHLO x\r\n" * 8192
        for _ in range(64):
            client.write(question)
        [session] = found.listener._sessions
        async with asyncio.timeout(10):
            while session._writable:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert session._transport.get_write_buffer_size() < 300_000
        assert len(session._lines.pending) < 600_000


WORDS = st.sampled_from(
    [
        b"EHLO x", b"HELO y", b"EHLO", b"MAIL FROM:<a@b.example>", b"MAIL FROM:<>", b"MAIL",
        b"RCPT TO:<c@d.example>", b"*", b"AA==",
        b"RCPT TO:<unknown@d.example>", b"RCPT", b"RSET", b"NOOP", b"VRFY a", b"HELP", b"EXPN", b"AUTH PLAIN",
        b"AUTH PLAIN AGEAYg==", b"AUTH PLAIN AGFubgBzZWNyZXQ=", b"AUTH LOGIN", b"AUTH LOGIN !", b"AUTH X",
        b"AUTH",
        b"STARTTLS x", b"BDAT 3", b"\xff\xfe", b"", b"MAIL FROM:<a@b.example> SIZE=99999999",
    ]
)  # fmt: skip
RANDOM = (
    st.binary(max_size=40)
    .map(lambda line: line.replace(b"\n", b"").replace(b"\r", b""))
    .filter(lambda line: line.partition(b" ")[0].upper() != b"QUIT")
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(WORDS | RANDOM | st.just(b"DATA"), max_size=18), st.booleans())
def test_random_commands_get_one_answer_each(lines: list[bytes], at_once: bool) -> None:
    """SMTP-06, SMTP-19: whatever is said in whatever order, one answer to each, and never a crash."""

    async def story() -> None:
        troubles: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: troubles.append(context))
        handler = RecordingHandler(users={"ann": "secret"})
        async with (
            running_listener(handler, offers_login=True, login_needs_tls=False) as found,
            found.dialog() as client,
        ):
            sent = b""
            for line in lines:
                if at_once and line.strip().upper() != b"DATA":
                    sent += line + b"\r\n"
                    continue
                said = await client.ask(line)
                if said.code == 354:
                    said = await client.ask(b"text\r\n.")
                if line[:4].upper() in (b"MAIL", b"RCPT", b"DATA", b"AUTH") or said.code >= 400:
                    assert told_well(said), (line, said)
                if said.code in (221, 421):
                    break
            if not client.is_over:
                # An exchange of AUTH would take the QUIT for a response.
                client.write(sent + b"*\r\nQUIT\r\n")
                rest = await client.over()
                if rest[-1].code == 221:
                    assert len(rest) == sent.count(b"\r\n") + 2
                else:
                    # QUIT was the answer to AUTH, and the end of the connection ends the test.
                    assert rest[-1].code in (421, 501)
        assert troubles == []

    asyncio.run(story())


async def test_dialogs_end_with_the_client() -> None:
    handler = RecordingHandler()
    async with running_listener(handler) as found:
        async with dialog(found.port) as client:
            await client.ask("EHLO x", "MAIL FROM:<a@b.example>")
            assert found.listener.sessions == 1
        await found.empty()
    assert handler.ended_count == 1
    assert HURRIED.slow == 0
