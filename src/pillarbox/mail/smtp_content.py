"""What may be written after DATA, and how (RFC 5321, 4.5.2)."""

from __future__ import annotations


def assert_clean(content: bytes) -> None:
    """Raise ValueError unless every CR and LF is part of a CRLF and there is no NUL (TRAP-08).

    A bare CR or LF would let a message smuggle a second one past a server that is lax about line ends.
    """
    lines = content.count(b"\r\n")
    if content.count(b"\r") != lines or content.count(b"\n") != lines:
        raise ValueError("the content holds a bare CR or LF")
    if b"\0" in content:
        raise ValueError("the content holds a NUL")


def dot_stuffed(content: bytes) -> bytes:
    """`content` with a dot before each line that starts with one, ending in CRLF, without the final dot."""
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    if stuffed.startswith(b"."):
        stuffed = b"." + stuffed
    if stuffed and not stuffed.endswith(b"\r\n"):
        stuffed += b"\r\n"
    return stuffed
