"""Messages whose attachments are read as they are sent: the same octets as those made in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.mail.authentication.dkim import BodyHash, relaxed_body
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.attachments import OutgoingFile, written
from pillarbox.mail.message.compose import OutgoingMessage, compose, compose_pieces
from pillarbox.mail.message.files import ExternalFile, FileChanged, in_base64, of_bytes
from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.smtp.content import dot_stuffed

MESSAGE = OutgoingMessage(
    sender=Mailbox("notes", "harbor.example"),
    to=(Mailbox("ann", "quay.example"),),
    subject="Charts",
    date=datetime(2026, 1, 1, tzinfo=UTC),
    message_id="<1@harbor.example>",
    seed=b"1" * 16,
    text=".\r\n.two\r\n",
    html="<p>",
)
FORWARDED = "Subject: x\n\n.\n..two\n.three\n"


def file_of(data: bytes, cuts: list[int] | None = None, *, size: int | None = None) -> ExternalFile:
    """`data` as a file that comes in chunks which end at `cuts`."""
    ends = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})

    async def read() -> AsyncIterator[bytes]:
        for start, end in pairwise(ends):
            yield data[start:end]

    return ExternalFile(len(data) if size is None else size, read)


async def long(message: OutgoingMessage, files: list[ExternalFile]) -> LongContent:
    """The message with these files in the place of its attachments' bytes."""
    read = [
        replace(attachment, content=await written(file, attachment.content_type))
        for attachment, file in zip(message.attachments, files, strict=True)
    ]
    return LongContent(compose_pieces(replace(message, attachments=read)))


async def gathered(content: LongContent) -> bytes:
    return b"".join([bytes(block) async for block in content.stuffed()])


def with_files(*files: tuple[str, bytes]) -> OutgoingMessage:
    return replace(
        MESSAGE, attachments=[OutgoingFile(f"{n}.x", kind, d) for n, (kind, d) in enumerate(files)]
    )


@pytest.mark.parametrize("size", [0, 1, 56, 57, 58, 114, 300_000])
async def test_a_file_becomes_what_its_bytes_become(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    message = with_files(("application/pdf", data[:size]), ("image/png", b"png"))
    content = await long(message, [file_of(data[:size]), of_bytes(b"png")])
    whole = compose(message)
    assert await content.whole() == whole
    assert await gathered(content) == dot_stuffed(whole)
    assert (content.size, content.is_ascii) == (len(whole), True)


KINDS = ["message/rfc822", "Message/RFC822", "message/global", "application/octet-stream"]
ATTACHED = [
    FORWARDED,
    FORWARDED.replace("\n", "\r\n"),
    "a\rb\n",
    "a\r",
    "é\n",
    "nul \0\n",
    "x" * 998 + "\n",
    "x" * 999,
    "short\n" + "y" * 999 + "\nshort",
    "",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ATTACHED)
async def test_an_attached_message_is_judged_alike(kind: str, text: str) -> None:
    """MSG-08: in 7bit where it can be, under another type where not, wherever the chunks end."""
    data = text.encode()
    message = with_files((kind, data))
    for step in (1, 7, 1000):
        content = await long(message, [file_of(data, list(range(0, len(data), step)))])
        assert await content.whole() == compose(message)


@given(
    st.lists(st.sampled_from([".", "a", "\r\n", "\n", "\r", " ", "=", "é"]), max_size=40).map("".join),
    st.lists(st.integers(0, 80), max_size=8),
    st.sampled_from(["message/rfc822", "text/csv"]),
)
@example(".\r\n.", [1, 2, 3], "message/rfc822")
def test_chunks_may_end_anywhere(text: str, cuts: list[int], kind: str) -> None:
    async def story() -> None:
        data = text.encode()
        message = with_files((kind, data))
        content = await long(message, [file_of(data, cuts)])
        whole = compose(message)
        assert await content.whole() == whole
        assert await gathered(content) == dot_stuffed(whole)
        assert content.size == len(whole)

    asyncio.run(story())


@given(
    st.lists(st.sampled_from(["a", " ", "\t", "\r\n", "b c", " \r\n", "\r\n\r\n"]), max_size=40),
    st.integers(1, 5),
)
def test_a_body_that_comes_in_blocks_has_the_same_hash(parts: list[str], step: int) -> None:
    """DKIM: RFC 6376, 3.4.4; empty lines at the end do not count, those between do."""
    found = BodyHash()
    for start in range(0, len(parts), step):
        found.add("".join(parts[start : start + step]).encode())
    assert found.digest() == sha256(relaxed_body("".join(parts).encode())).digest()


@pytest.mark.parametrize("kind", ["message/rfc822", "text/csv"])
async def test_a_file_that_has_changed_is_not_sent_to_its_end(kind: str) -> None:
    """What was signed and announced is sent, or nothing."""
    data = b"Subject: x\r\n\r\ntext\r\n"
    sizes = iter([data, data[:-2]])

    async def read() -> AsyncIterator[bytes]:
        yield next(sizes)

    file = ExternalFile(len(data), read)
    made = await written(file, kind)
    if made.encoding == "base64":
        next(sizes)
        made = in_base64(file_of(data[:-2], size=len(data)))
    with pytest.raises(FileChanged):
        [block async for block in made.blocks()]


def test_what_is_here_must_be_clean() -> None:
    """TRAP-08."""
    with pytest.raises(ValueError, match="bare CR or LF"):
        LongContent([b"Subject: x\r\n\r\n\n", in_base64(of_bytes(b"x")), b"\r\n"])
