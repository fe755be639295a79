"""What may stand in a message as it is (RFC 5322 2.1.1, RFC 5321 4.1.1.4)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.message.transfer_encoding import encode_message, encode_text, is_clean

PARTS = [b"a", b"\r", b"\n", b"\r\n", b"\0", b"..", b""]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join))
def test_clean_is_what_has_no_line_end_but_crlf_and_no_nul(octets: bytes) -> None:
    """TRAP-08."""
    assert is_clean(octets) == (re.search(rb"[\r\n\0]", octets.replace(b"\r\n", b"")) is None)


@given(st.lists(st.sampled_from([0, 1, 500, 997, 998, 999, 1998]), max_size=8), st.booleans())
def test_plain_text_is_left_alone_where_its_lines_are_short(lengths: list[int], ends_line: bool) -> None:
    """MSG-01: 998 octets and no more, wherever the long line stands."""
    text = "\n".join("x" * length for length in lengths) + "\n" * ends_line
    is_short = max(lengths, default=0) <= 998
    assert (encode_text(text).encoding == "7bit") == is_short
    assert (encode_message(text.encode()) is not None) == is_short
