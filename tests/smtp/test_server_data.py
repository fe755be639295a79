"""The text of a message on its way in: its end, its dots, its limits (SMTP-01, 02, 04, 05; TRAP-07)."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.memory import resident
from kit.smtp_listener import RecordingHandler, on_each_loop, running_listener
from pillarbox.mail.smtp.answers import OK, SessionReply
from pillarbox.mail.smtp.client import SmtpConnection, TlsMode
from pillarbox.mail.smtp.content import dot_stuffed
from pillarbox.mail.smtp.intake import IN_MEMORY, DataIntake, ReceivedText
from pillarbox.mail.smtp.session import SmtpSession

FALSE_ENDS = {
    "LF.LF": b"\n.\n",
    "LF.CRLF": b"\n.\r\n",
    "CR.CR": b"\r.\r",
    "CR.LF": b"\r.\n",
    "CR.CRLF": b"\r.\r\n",
    "LF.CR": b"\n.\r",
    "CRLF NUL.CRLF": b"\r\n\0.\r\n",
    "CRLF.CRCRLF": b"\r\n.\r\r\n",
    "CRCRLF.CRCRLF": b"\r\r\n.\r\r\n",
    "CRLF.CR": b"\r\n.\r",
    "CRLF.LF": b"\r\n.\n",
}
SMUGGLED = b"MAIL FROM:<evil@b.example>\r\nRCPT TO:<victim@d.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nx"


def taken(*pieces: bytes, most: int = 10_000, normalize: bool = False) -> tuple[bytes | None, bytes]:
    """What an intake makes of pieces: the text, None where it is refused, and what came after it."""
    intake = DataIntake(most, normalize=normalize)
    for number, piece in enumerate(pieces):
        after = intake.feed(piece)
        if after is not None:
            rest = after + b"".join(pieces[number + 1 :])
            refused = intake.bare or intake.too_big
            return (None if refused else intake.content().read()), rest
    raise AssertionError("the end was not found")


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("end", FALSE_ENDS.values(), ids=FALSE_ENDS.keys())
async def test_nothing_but_the_true_end_ends_a_text(end: bytes, normalize: bool) -> None:
    """SMTP-01: at most one message, and never from the smuggled sender."""
    handler = RecordingHandler()
    async with running_listener(handler, normalize=normalize) as found, found.dialog() as client:
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
        client.write(b"Subject: x\r\n\r\nfirst" + end + SMUGGLED)
        client.write(b"\r\n.\r\nNOOP\r\n")
        said = await client.hear_all(2)
        assert said[1].code == 250
    senders = [kept.sender for kept in handler.messages]
    if normalize and b"\r" not in end.replace(b"\r\n", b"") and b"\0" not in end:
        # A bare LF was taken for a line end, and no more: it is one text with all of it inside.
        assert (senders, said[0].code) == (["a@b.example"], 250)
        assert b"Subject: smuggled" in handler.messages[0].text
    else:
        assert (senders, str(said[0])) == ([], "550 5.5.2")


@pytest.mark.parametrize("bad", [b"a\rb", b"a\nb", b"\0", b"\n", b"\r", b"a\r\r\n", b"a\n\r\n"])
async def test_bare_line_ends_and_nul_are_refused_after_the_real_end(bad: bytes) -> None:
    """SMTP-04."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        await client.ask("EHLO x")
        text = b"Subject: x\r\n\r\n" + bad + b"\r\nmore\r\n"
        assert str(await client.send(text)) == "550 5.5.2"
        assert str(await client.send(b"Subject: x\r\n\r\nclean\r\n")) == "250 2.0.0"
    assert [kept.text for kept in handler.messages] == [b"Subject: x\r\n\r\nclean\r\n"]


async def test_a_bare_line_feed_is_a_line_end_where_the_listener_normalizes() -> None:
    """SMTP-04: the setting `normalize`."""
    handler = RecordingHandler()
    async with running_listener(handler, normalize=True) as found, found.dialog() as client:
        await client.ask("EHLO x")
        assert (await client.send(b"Subject: x\n\none\n.two\n..three\r\n")).code == 250
        assert str(await client.send(b"a\rb\r\n")) == "550 5.5.2"
    assert [kept.text for kept in handler.messages] == [b"Subject: x\r\n\r\none\r\n.two\r\n..three\r\n"]


TEXTS = st.lists(
    st.sampled_from([b".", b"..", b"\r\n", b"a", b".\r\n", b"\r\n.", b"\r\n..\r\n", b"xyz"]), max_size=30
)
CUTS = st.lists(st.integers(1, 7), min_size=1, max_size=8)


def whole_lines(parts: list[bytes]) -> bytes:
    text = b"".join(parts)
    return text if not text or text.endswith(b"\r\n") else text + b"\r\n"


@settings(max_examples=400, deadline=None)
@given(TEXTS.map(whole_lines), CUTS, st.sampled_from([b"", b"QUIT\r\n", b".\r\n"]))
def test_a_text_is_what_it_was_however_it_is_cut(text: bytes, cuts: list[int], after: bytes) -> None:
    """SMTP-02: dots of our own client are taken away again, across all borders of buffers."""
    wire = io.BytesIO(dot_stuffed(text) + b".\r\n" + after)
    pieces = []
    while piece := wire.read(cuts[len(pieces) % len(cuts)]):
        pieces.append(piece)
    assert taken(*pieces) == (text, after)
    assert taken(*[bytes([octet]) for octet in wire.getvalue()]) == (text, after)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), CUTS)
def test_a_refusal_does_not_depend_on_the_cuts(noise: bytes, cuts: list[int]) -> None:
    """SMTP-04."""
    wire = io.BytesIO(noise + b"\r\n.\r\n")
    pieces = []
    while piece := wire.read(cuts[len(pieces) % len(cuts)]):
        pieces.append(piece)
    assert taken(*pieces) == taken(wire.getvalue())


@asynccontextmanager
async def dripping(port: int) -> AsyncIterator[int]:
    """A way to the port on which every octet towards the server is a packet of its own."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            for octet in data:
                writer.write(bytes([octet]))
                await asyncio.sleep(0)
        writer.close()

    async def back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, onward), back(there, writer), return_exceptions=True)

    server = await asyncio.start_server(joined, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@on_each_loop
async def test_our_own_client_is_understood_octet_by_octet() -> None:
    """SMTP-02: several mails on a connection, each octet written alone."""
    texts = [
        b".\r\nSubject: x\r\n\r\n.dot\r\n..\r\n...\r\nend.\r\n",
        b"..\r\n.\r\n\r\n.\r\n",
        b"Subject: plain\r\n\r\n" + b"line.\r\n.line\r\n" * 20,
    ]
    handler = RecordingHandler()
    async with running_listener(handler) as found, dripping(found.port) as port:
        connection = await SmtpConnection.open(
            ("127.0.0.1", port), server_name="mx", hello="out.example", tls=TlsMode.NONE
        )
        assert isinstance(connection, SmtpConnection)
        for text in texts:
            done = await connection.send("a@b.example", ["c@d.example", "unknown@d.example"], text)
            assert [answer.reply.code for answer in done.answers] == [250, 550]
        await connection.quit()
    assert [kept.text for kept in handler.messages] == texts


@on_each_loop
async def test_a_large_text_waits_in_a_file_of_the_folder(tmp_path: Path) -> None:
    """SMTP-05: what does not fit in a little memory is on disk while it is read, and gone afterwards."""
    text = (b"x" * 70 + b"\r\n") * 20_000
    assert len(text) > IN_MEMORY

    def look(session: SmtpSession, content: ReceivedText) -> SessionReply:
        assert held_in(tmp_path) == 1
        assert b"".join(content.blocks()) == text
        return OK

    handler = RecordingHandler(verdict=look)
    async with (
        running_listener(handler, most_octets=2_000_000, folder=str(tmp_path)) as found,
        found.dialog() as client,
    ):
        await client.ask("EHLO x")
        assert (await client.send(text)).code == 250
        assert held_in(tmp_path) == 0
    assert [(kept.text == text, kept.in_memory) for kept in handler.messages] == [(True, False)]


def held_in(folder: Path) -> int:
    """How many files of that folder this process has open."""
    with os.scandir("/proc/self/fd") as entries:
        places = [os.readlink(entry) for entry in entries if entry.is_symlink()]
    return sum(place.startswith(f"{folder}/") for place in places)


async def test_a_stream_beyond_the_limit_is_read_to_its_end_and_kept_nowhere(tmp_path: Path) -> None:
    """SMTP-05: 200 MB, and neither memory nor disk holds them."""
    handler = RecordingHandler()
    async with (
        running_listener(handler, folder=str(tmp_path), most_octets=20_000_000) as found,
        found.dialog() as client,
    ):
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
        block = (b"y" * 998 + b"\r\n") * 256
        before = resident()
        most = 0
        for _ in range(800):
            client.write(block)
            while client.transport.get_write_buffer_size() > 1_000_000:
                await asyncio.sleep(0)
            most = max(most, resident() - before)
        client.write(b".\r\n")
        assert str(await client.hear(60)) == "552 5.3.4"
        assert most < 30_000_000
        assert str(await client.send(b"small\r\n")) == "250 2.0.0"
    assert [kept.text for kept in handler.messages] == [b"small\r\n"]


async def test_the_largest_text_is_taken_and_one_octet_more_is_not() -> None:
    """SMTP-05."""
    handler = RecordingHandler()
    async with running_listener(handler, most_octets=5000) as found, found.dialog() as client:
        await client.ask("EHLO x")
        line = b"." + b"x" * 97 + b"\r\n"
        stuffed = (b"." + line) * 50
        assert str(await client.send(stuffed)) == "250 2.0.0"
        assert str(await client.send(stuffed + b"\r\n")) == "552 5.3.4"
        assert str(await client.ask("MAIL FROM:<a@b.example> SIZE=5001")) == "552 5.3.4"
        assert str(await client.ask("MAIL FROM:<a@b.example> SIZE=5000")) == "250 2.1.0"
    assert [len(kept.text) for kept in handler.messages] == [5000]


async def test_a_text_that_never_ends_is_stored_nowhere() -> None:
    handler = RecordingHandler()
    async with running_listener(handler) as found:
        async with found.dialog() as client:
            await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
            client.write(b"Subject: x\r\n\r\nhalf a mes")
        await found.empty()
    assert handler.messages == []
    assert handler.ended_count == 1
