"""The commands of an SMTP session, parsed strictly (RFC 5321 4.1)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pillarbox.mail.smtp import answers
from pillarbox.mail.smtp.answers import SessionReply

LONGEST_PATH = 256
REMEMBERED = 512
"""Clients name themselves and each other again and again: so many arguments need not be read twice."""

_PATH = re.compile(
    r"""<(?:@[A-Za-z0-9.\-]+(?:,@[A-Za-z0-9.\-]+)*:)?      # an obsolete source route is dropped
        (?P<local>"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*"|[^\s<>()\[\]\\,;:@"\x00-\x1f\x7f]+)
        (?:@(?P<domain>\[[A-Za-z0-9.:\-]+\]|[^\s<>()\[\]\\,;:@"\x00-\x20\x7f.]+(?:\.[^\s<>()\[\]\\,;:@"\x00-\x20\x7f.]+)*\.?))?
        >""",
    re.VERBOSE,
)
_HELLO = re.compile(r"[A-Za-z0-9_\-](?:[A-Za-z0-9._\-]*)|\[[A-Za-z0-9.:\-]+\]")
_SIZE = re.compile(r"\d{1,20}", re.ASCII)


class Path(NamedTuple):
    """A sender or recipient. The null sender has neither part; `domain` is as it was written, without a last
    dot; a recipient without a domain is only ever `postmaster`."""

    local: str
    domain: str

    @property
    def is_null(self) -> bool:
        return not self.local

    def __str__(self) -> str:
        return f"{self.local}@{self.domain}" if self.domain else self.local


NULL = Path("", "")


class MailCommand(NamedTuple):
    """A MAIL command that is understood."""

    sender: Path
    size: int | None
    utf8: bool
    eight_bit: bool


def split(line: bytes) -> tuple[bytes, bytes]:
    """Return the verb in capitals and what follows it."""
    verb, _, rest = line.partition(b" ")
    return verb.upper(), rest


@lru_cache(REMEMBERED)
def hello(rest: bytes) -> str | None:
    """Return the name that a client gives itself, or None where it is no name."""
    text = rest.strip().decode("ascii", "replace")
    return text if len(text) <= 255 and _HELLO.fullmatch(text) else None


@lru_cache(REMEMBERED)
def mail(rest: bytes, *, extended: bool) -> MailCommand | SessionReply:
    """Parse `FROM:<path> [parameters]`."""
    if rest[:5].upper() != b"FROM:":
        return answers.BAD_ARGUMENT
    found = _path(rest[5:])
    if found is None:
        return answers.BAD_PATH
    path, parameters = found
    if not path.is_null and not path.domain:
        return answers.BAD_PATH
    size, utf8, eight_bit = None, False, False
    for name, value in parameters:
        if not extended:
            return answers.BAD_PARAMETER
        if name == "SIZE" and _SIZE.fullmatch(value):
            size = int(value)
        elif name == "BODY" and value.upper() in ("7BIT", "8BITMIME"):
            eight_bit = value.upper() == "8BITMIME"
        elif name == "SMTPUTF8" and not value:
            utf8 = True
        elif name != "AUTH":
            return answers.BAD_PARAMETER if name not in ("SIZE", "BODY") else answers.BAD_ARGUMENT
    if not utf8 and not str(path).isascii():
        return answers.NEEDS_UTF8
    return MailCommand(path, size, utf8, eight_bit)


@lru_cache(REMEMBERED)
def recipient(rest: bytes, *, utf8: bool) -> Path | SessionReply:
    """Parse `TO:<path>`; no parameter is known."""
    if rest[:3].upper() != b"TO:":
        return answers.BAD_ARGUMENT
    found = _path(rest[3:])
    if found is None:
        return answers.BAD_RECIPIENT
    path, parameters = found
    if path.is_null or (not path.domain and path.local.lower() != "postmaster"):
        return answers.BAD_RECIPIENT
    if parameters:
        return answers.BAD_PARAMETER
    if not utf8 and not str(path).isascii():
        return answers.NEEDS_UTF8
    return path


def _path(rest: bytes) -> tuple[Path, list[tuple[str, str]]] | None:
    """Parse a path in angle brackets and the parameters behind it."""
    try:
        text = rest.strip(b" ").decode("utf-8")
    except UnicodeDecodeError:
        return None
    if text.startswith("<>"):
        path, end = NULL, 2
    else:
        match = _PATH.match(text)
        if match is None or match.end() > LONGEST_PATH:
            return None
        path = Path(_unquoted(match["local"]), (match["domain"] or "").removesuffix("."))
        end = match.end()
    if text[end:] and text[end] != " ":
        return None
    words = text[end:].split()
    return path, [(name.upper(), value) for name, _, value in (word.partition("=") for word in words)]


def _unquoted(local: str) -> str:
    """Return a local part without the quotes that only the wire needs."""
    return re.sub(r"\\(.)", r"\1", local[1:-1]) if local.startswith('"') else local
