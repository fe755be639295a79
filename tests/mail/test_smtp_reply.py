"""Reading replies byte by byte (OUT-05, OUT-18, OUT-19)."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.smtp.reply import MAX_TEXT, ReplyReader, SmtpReply, our_reply


def read(data: bytes, step: int = 1 << 20) -> tuple[list[SmtpReply], str | None]:
    reader, replies, fault = ReplyReader(), deque[SmtpReply](), None
    for start in range(0, len(data), step):
        fault = fault or reader.feed(data[start : start + step], replies)
    return list(replies), fault


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_replies_come_out_whole_however_they_arrive(step: int) -> None:
    data = (
        b"250 2.1.0 ok\r\n550-5.1.1 The account\r\n550-5.1.1 does not\r\n550 5.1.1 exist.\r\n354\r\n"
        b"250-mx\r\n250 SIZE 9\r\n"
    )
    replies, fault = read(data, step)
    assert fault is None
    assert replies == [
        SmtpReply(250, "2.1.0", "ok"),
        SmtpReply(550, "5.1.1", "The account does not exist."),
        SmtpReply(354, None, ""),
        SmtpReply(250, None, "mx SIZE 9"),
    ]
    assert replies[3].lines == ("mx", "SIZE 9")
    assert str(replies[1]) == "550 5.1.1 The account does not exist."


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"250 ok\n", SmtpReply(250, None, "ok")),
        (b"250\r\n", SmtpReply(250, None, "")),
        (b"550 #5.1.0 Address rejected.\r\n", SmtpReply(550, "5.1.0", "Address rejected.")),
        (b"550 5.1.1\r\n", SmtpReply(550, "5.1.1", "")),
        (b"550 5.1.1.2 is no code\r\n", SmtpReply(550, None, "5.1.1.2 is no code")),
        (b"550 192.0.2.1 blocked\r\n", SmtpReply(550, None, "192.0.2.1 blocked")),
        (b"250-one\r\ntwo\r\n250 three\r\n", SmtpReply(250, None, "one two three")),
        (b"250-ok\r\n550 5.7.1 no\r\n", SmtpReply(550, "5.7.1", "ok no")),
    ],
)
def test_odd_but_clear_replies(line: bytes, wanted: SmtpReply) -> None:
    assert read(line) == ([wanted], None)


@pytest.mark.parametrize(
    "line",
    [b"\r\n", b"hello\r\n", b"25 ok\r\n", b"150 wait\r\n", b"650 x\r\n", b"2500 x\r\n", b"\0250 ok\r\n"],
)
def test_out_18_what_is_no_reply_is_a_fault(line: bytes) -> None:
    """OUT-18: 1xx, NULs, garbage."""
    replies, fault = read(line)
    assert replies == []
    assert fault is not None
    assert "\0" not in fault


def test_out_18_lines_and_replies_are_capped() -> None:
    """OUT-18: a line at 2 kB, a reply at 64 kB and 100 lines."""
    replies, fault = read(b"550 " + b"x" * 60_000 + b"\r\n", 777)
    assert fault is None
    assert len(replies[0].text.encode()) <= MAX_TEXT
    assert read(b"550 " + b"x" * 70_000, 777)[1] is not None
    assert read(b"250-x\r\n" * 99 + b"250 x\r\n")[1] is None
    assert read(b"250-x\r\n" * 101)[1] is not None
    assert read((b"250-" + b"y" * 1000 + b"\r\n") * 70)[1] is not None


def test_out_19_the_text_is_plain_and_short() -> None:
    """OUT-19: UTF-8 repaired, control and direction characters replaced, at most 2 kB."""
    [reply], _ = read(
        b"550 5.7.1 a\x00b\x1b[31m \xff \xe2\x80\xae \xc3\xa9\ttab <img src=x onerror=alert(1)>\r\n"
    )
    assert reply.text == "a\ufffdb\ufffd[31m \ufffd \ufffd é tab <img src=x onerror=alert(1)>"
    [long], _ = read("\r\n".join(["550-" + "é" * 900] * 3 + ["550 end"]).encode() + b"\r\n")
    assert len(long.text.encode()) <= MAX_TEXT
    assert our_reply(421, "4.4.2", "x\r\n\ud800").text == "x\ufffd\ufffd?"


@given(st.binary(max_size=500), st.integers(1, 20))
def test_out_18_any_bytes_read_the_same_in_any_pieces(data: bytes, step: int) -> None:
    """OUT-18."""
    whole, fault = read(data)
    pieces, second = read(data, step)
    assert [str(reply) for reply in pieces[: len(whole)]] == [str(reply) for reply in whole]
    assert (fault is None) == (second is None)
    assert all(reply.text.isprintable() or "\ufffd" in reply.text or reply.text for reply in whole)
