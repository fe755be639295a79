"""SMTP replies: what the peer answered, and the reader that turns its bytes into answers.

Whatever a peer sends, reading costs bounded time and memory: a line is kept up to 2 kB, a reply ends
at 64 kB or 100 lines (standards OUT-18), and what is kept of it is plain text (OUT-19).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

MAX_LINE: Final = 2048
MAX_REPLY: Final = 64 * 1024
MAX_LINES: Final = 100
MAX_TEXT: Final = 2048

_LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])(.*))?", re.DOTALL)
_ENHANCED = re.compile(r"#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?: +|$)")
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_CACHED_LINE = 64


class SmtpStage(StrEnum):
    """How far a delivery had come when an answer decided it, in the order of a session."""

    ROUTE = "route"
    CONNECT = "connect"
    BANNER = "banner"
    HELLO = "hello"
    TLS = "tls"
    AUTH = "auth"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    DOT = "dot"


@dataclass(frozen=True, slots=True)
class SmtpReply:
    """One answer: its code, the enhanced code if there was one (RFC 3463), and its text on one line.

    `text` is at most 2 kB of UTF-8 without control characters. `ours` marks an answer that no server
    gave: we stopped by ourselves, or the connection ended before an answer came.
    `lines` holds the lines of a multi-line reply, for the reader of EHLO.
    """

    code: int
    enhanced: str | None
    text: str
    ours: bool = False
    lines: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_yes(self) -> bool:
        return 200 <= self.code < 300

    def __str__(self) -> str:
        return " ".join(part for part in (str(self.code), self.enhanced, self.text) if part)


def our_reply(code: int, enhanced: str, text: str) -> SmtpReply:
    """Return an answer that stands for the missing one of a server; its text is cleaned and cut
    like theirs."""
    return SmtpReply(code, enhanced, plain_text(text.encode("utf-8", "replace")), ours=True)


def plain_text(raw: bytes) -> str:
    """Return `raw` as at most 2 kB of text: UTF-8 repaired, control and direction characters replaced."""
    text = raw.decode("utf-8", "replace")
    if not (text.isascii() and text.isprintable()):
        text = _UNSAFE.sub("\ufffd", text.replace("\t", " "))
    if len(text) * 3 > MAX_TEXT:
        text = text.encode("utf-8")[:MAX_TEXT].decode("utf-8", "ignore")
    return text


class ReplyReader:
    """Collects bytes until they make replies; fails for good when they cannot be replies."""

    def __init__(self) -> None:
        self._pending = b""
        self._texts: list[bytes] = []
        self._size = 0

    @property
    def has_part(self) -> bool:
        """Whether the beginning of a reply is waiting for its end."""
        return bool(self._pending or self._texts)

    def feed(self, data: bytes, replies: deque[SmtpReply]) -> str | None:
        """Append each reply that `data` completes; the reason in words when the peer talks nonsense."""
        lines = (self._pending + data).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            fault = self._take(line, replies)
            if fault is not None:
                return fault
        return self._cut_pending()

    def _cut_pending(self) -> str | None:
        surplus = len(self._pending) - MAX_LINE
        if surplus > 0:
            self._size += surplus
            self._pending = self._pending[:MAX_LINE]
        if self._size + len(self._pending) > MAX_REPLY:
            return "the answer is longer than 64 kB"
        return None

    def _take(self, line: bytes, replies: deque[SmtpReply]) -> str | None:
        if not self._texts and len(line) <= _CACHED_LINE:
            reply = _short_reply(line)
            if reply is not None:
                replies.append(reply)
                self._size = 0
                return None
        return self._take_slowly(line, replies)

    def _take_slowly(self, line: bytes, replies: deque[SmtpReply]) -> str | None:
        self._size += len(line) + 1
        if self._size > MAX_REPLY or len(self._texts) >= MAX_LINES:
            return "the answer is longer than 64 kB or 100 lines"
        line = line[:MAX_LINE].removesuffix(b"\r")
        match = _LINE.fullmatch(line)
        if match is None:
            if not self._texts:
                return f"the answer is not SMTP: {plain_text(line[:80])}"
            # Inside a multi-line answer some servers forget the code: their words still count as text.
            self._texts.append(line)
            return None
        self._texts.append(match[3] or b"")
        if match[2] == b"-":
            return None
        # The last line decides when a server mixes codes.
        replies.append(_reply(int(match[1]), self._texts))
        self._texts = []
        self._size = 0
        return None


@lru_cache(maxsize=512)
def _short_reply(line: bytes) -> SmtpReply | None:
    """Return the reply that is this one line; servers say the same few lines all day."""
    match = _LINE.fullmatch(line.removesuffix(b"\r"))
    if match is None or match[2] == b"-":
        return None
    return _reply(int(match[1]), [match[3] or b""])


def _reply(code: int, raw: list[bytes]) -> SmtpReply:
    """Return the lines' text without the enhanced code that servers repeat on each line (RFC 2034, 4)."""
    texts = [plain_text(text) for text in raw]
    enhanced: str | None = None
    words = []
    for text in texts:
        match = _ENHANCED.match(text)
        if match is not None and enhanced in (None, match[1]):
            enhanced = match[1]
            text = text[match.end() :]
        words.append(text.strip())
    text = " ".join(word for word in words if word)
    if len(text) > MAX_TEXT // 3:
        text = plain_text(text.encode("utf-8"))
    return SmtpReply(code, enhanced, text, lines=tuple(texts) if len(texts) > 1 else ())
