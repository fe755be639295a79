"""Marks of mail that was here before (SMTP-14)."""

from __future__ import annotations

import time

from pillarbox.mail.message.loop_marks import FIELD, LoopMarks, carried
from pillarbox.mail.message.parse import parse

HERE = ["help@harbor.example", "Info@Harbor.example"]


def mail(*fields: str) -> bytes:
    return "\r\n".join([*fields, "From: a@b.example", "", "x"]).encode()


def test_a_mark_is_found_in_a_received_field_and_in_its_own() -> None:
    marks = LoopMarks([b"new", b"old"])
    before = LoopMarks([b"old"])
    for found in (marks, before):
        comment = found.comment([*HERE, *[f"r{n}@harbor.example" for n in range(98)]])
        assert max(map(len, comment.split("\r\n"))) < 80
        for field in (
            f"Received: from a by b id 1\r\n\t{comment}\r\n\tfor <x@y>; date",
            f"{FIELD}: {found.of(HERE[1])}",
        ):
            headers = parse(mail("Received: from c by d", field)).headers
            assert marks.is_loop(["other@harbor.example", HERE[1].upper()], headers)
            assert not marks.is_loop(["other@harbor.example"], headers)


def test_whatever_stands_in_a_header_is_no_mark_of_ours() -> None:
    marks = LoopMarks([b"key"])
    foreign = LoopMarks([b"another"]).of(HERE[0])
    own = marks.of(HERE[0])
    for field in (
        f"Received: (mark {foreign})",
        f"Received: mark {own}",
        f"Subject: (mark {own})",
        f"{FIELD}: {own}x",
    ):
        assert not marks.is_loop(HERE, parse(mail(field)).headers)
    assert carried(parse(mail()).headers) == {}


def test_a_header_full_of_marks_is_read_in_linear_time() -> None:
    """INB-03."""
    began = time.process_time()
    for text in (f"(mark {'a' * 24}" * 1500, "(mark" + " " * 60_000, f"(mark{(' ' + 'a' * 24) * 2400}"):
        headers = parse(mail(f"Received: {text}")).headers
        assert not LoopMarks([b"key"]).is_loop(HERE, headers)
    assert time.process_time() - began < 1
