"""Header fields as bytes, written by our own code.

Every function returns one complete field with its CRLF. What these functions promise, whatever the
values hold: one field per call and no second one hidden in it; lines of at most 998 octets, and of at
most 76 where white space allows to fold (RFC 5322 2.1.1, RFC 2047 2); a value that looks like an
encoded word comes out of every reader as the text that it was; no name or address is changed by
folding. Values that cannot be written so raise HeaderError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from pillarbox.mail.message import encoded_words
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN

COLUMNS = 76
LONGEST_LINE = 998
LONGEST_TOKEN = 900
"""A word that is longer is encoded where that is allowed; it leaves room for the name of the field."""
LONGEST_NAME = 76
LONGEST_VALUE = 2000
LONGEST_QUOTED = 500
LONGEST_CONTENT_ID = 128

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

RESERVED = frozenset(
    (
        *("from", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "sender"),
        *("received", "return-path", "authentication-results"),
        *("received-spf", "domainkey-signature"),
    )
)
RESERVED_PREFIXES = ("content-", "dkim-", "arc-", "resent-")
"""Fields that the `headers` object may not set: they are ours, or statements of mail servers."""

STRUCTURED = frozenset(("in-reply-to", "references", "auto-submitted", "precedence", "feedback-id"))
STRUCTURED_PREFIXES = ("list-",)
"""Fields whose words mean something to machines; they are folded, never encoded."""

ONCE = frozenset(
    ("in-reply-to", "references", "reply-to", "list-unsubscribe", "list-unsubscribe-post", "feedback-id")
)
"""Fields of which a message has at most one, besides the reserved ones (RFC 5322 3.6, RFC 8058 3.1)."""

_NAME = re.compile(r"[!-9;-~]{1,76}")
_TOKEN = re.compile(r" *[^ ]+")
_ATOM_WORDS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_MESSAGE_ID = re.compile(r"<[!#-'*+\-./0-9=?A-Z^_`a-z{|}~]+@[!-;=?-~]+>")
_CONTENT_ID = re.compile(r"[!-;=?-~]+")


class HeaderError(ValueError):
    """A name or value that may not stand in a header; the message is a sentence for its author."""


def unstructured(name: str, value: str) -> bytes:
    """Return a field of free text; what is not ASCII, looks encoded or is too long for a line is encoded."""
    value = _clean(name, value)
    if value.isascii() and "=?" not in value:
        if len(name) + 2 + len(value) <= COLUMNS:
            return f"{name}: {value}\r\n".encode("ascii")
        if len(value) <= LONGEST_TOKEN:
            return _folded(name, _tokens(value))
    return _folded(name, _encoded_where_needed(name, value))


def structured(name: str, value: str) -> bytes:
    """Return a field for machines: ASCII only, folded at white space only, nothing encoded (TRAP-03)."""
    value = _clean(name, value)
    if not value.isascii():
        raise HeaderError(f"The header {name} may hold only ASCII characters.")
    if "=?" in value and not encoded_words.are_harmless(value):
        raise HeaderError(
            f"The header {name} holds an encoded word that is broken or hides a control character."
        )
    return _folded(name, _tokens(value))


def custom(name: str, value: str) -> bytes:
    """Return a field that the sender of the mail named; its kind follows from the name."""
    return structured(name, value) if is_structured(name) else unstructured(name, value)


def addresses(name: str, mailboxes: Sequence[Mailbox]) -> bytes:
    """Return a list of mailboxes (RFC 5322 3.4), folded only between words that stand outside
    quotes (TRAP-02)."""
    _clean(name, "")
    if not mailboxes:
        raise HeaderError(f"The header {name} needs at least one address.")
    tokens: list[str] = []
    width = COLUMNS - len(name) - 2
    for mailbox in mailboxes:
        words = _mailbox_words(name, mailbox, width)
        words[-1] += ","
        tokens += words
        width = encoded_words.LONGEST_WORD
    tokens[-1] = tokens[-1].removesuffix(",")
    return _folded(name, [f" {token}" for token in tokens])


def message_ids(name: str, ids: Sequence[str]) -> bytes:
    """Return a list of message identifiers, each with its angle brackets (RFC 5322 3.6.4)."""
    for message_id in ids:
        if len(message_id) > LONGEST_TOKEN or not _MESSAGE_ID.fullmatch(message_id):
            raise HeaderError(f"The header {name} holds something that is no message id.")
    _clean(name, "")
    return _folded(name, [f" {message_id}" for message_id in ids])


def date(name: str, instant: datetime) -> bytes:
    """Return an instant in UTC with English names, whatever the locale or zone of the process (MSG-04)."""
    if instant.tzinfo is None:
        raise HeaderError(f"The header {name} needs an instant with a zone.")
    t = instant.astimezone(UTC)
    return (
        f"{name}: {DAYS[t.weekday()]}, {t.day:02} {MONTHS[t.month - 1]} {t.year:04} "
        f"{t.hour:02}:{t.minute:02}:{t.second:02} +0000\r\n"
    ).encode("ascii")


def is_reserved(name: str) -> bool:
    """Return whether a custom header of this name is dropped in silence (emails.md 1.3). Reply-To is not."""
    lower = name.lower()
    return lower in RESERVED or lower.startswith(RESERVED_PREFIXES)


def is_structured(name: str) -> bool:
    """Return whether the field is for machines: folded and never encoded."""
    lower = name.lower()
    return lower in STRUCTURED or lower.startswith(STRUCTURED_PREFIXES)


def check_custom_header(name: str, value: str) -> None:
    """Raise HeaderError unless the composer can write this custom header (emails.md 1.3)."""
    if not _NAME.fullmatch(name):
        raise HeaderError(
            f"A header name must have 1 to {LONGEST_NAME} printable ASCII characters without space and colon."
        )
    if len(value) > LONGEST_VALUE:
        raise HeaderError(f"The value of the header {name} is longer than {LONGEST_VALUE} characters.")
    custom(name, value)


def content_id(cid: str) -> bytes:
    """Return the Content-ID of a part; `cid` has no angle brackets."""
    if len(cid) > LONGEST_CONTENT_ID or not _CONTENT_ID.fullmatch(cid):
        raise HeaderError(
            f"A content id must have 1 to {LONGEST_CONTENT_ID} printable ASCII characters "
            "without spaces and angle brackets."
        )
    return structured("Content-ID", f"<{cid}>")


def _clean(name: str, value: str) -> str:
    """Return the value without white space at its ends, tabs as blanks; refuses what could end the field."""
    if not _NAME.fullmatch(name):
        raise HeaderError("A header name holds a character that is not allowed.")
    if FORBIDDEN.search(value):
        raise HeaderError(f"The header {name} holds a control character or line break.")
    return value.replace("\t", " ").strip(" ")


def _tokens(value: str) -> list[str]:
    """Return the words of the value, each with the blanks before it; joined they are the value again."""
    return _TOKEN.findall(f" {value}")


def _encoded_where_needed(name: str, value: str) -> list[str]:
    """Return the tokens with everything from the first to the last word that needs it encoded as one run."""
    width = COLUMNS - len(name) - 2
    tokens = _tokens(value)
    needing = [at for at, token in enumerate(tokens) if _needs_encoding(token)]
    # Readers disagree about several blanks beside an encoded word, so then the whole value is encoded.
    if not needing or "  " in value:
        return [f" {word}" for word in encoded_words.encode(value, width)] if needing else tokens
    first, last = needing[0], needing[-1]
    run = "".join(tokens[first : last + 1])[1:]
    words = encoded_words.encode(run, width if first == 0 else encoded_words.LONGEST_WORD)
    return [*tokens[:first], *(f" {word}" for word in words), *tokens[last + 1 :]]


def _needs_encoding(token: str) -> bool:
    return not token.isascii() or "=?" in token or len(token) > LONGEST_TOKEN


def _mailbox_words(name: str, mailbox: Mailbox, width: int) -> list[str]:
    address = mailbox.addr_spec
    display = mailbox.display
    if FORBIDDEN.search(address) or "\t" in address:
        raise HeaderError(f"The header {name} holds an address with a control character.")
    if not display:
        return [address]
    if len(display) > 2 * LONGEST_VALUE:
        raise HeaderError(f"The header {name} holds a name that is too long.")
    if FORBIDDEN.search(display):
        raise HeaderError(f"The header {name} holds a name with a control character or line break.")
    return [*_phrase(display.replace("\t", " "), width), f"<{address}>"]


@lru_cache(maxsize=1024)
def _phrase(display: str, width: int) -> tuple[str, ...]:
    """Return a display name as atoms, one quoted string or encoded words, never a mix (RFC 2047, 5
    rule 3)."""
    if not display.isascii() or "=?" in display or len(display) > LONGEST_QUOTED:
        return tuple(encoded_words.encode(display, width))
    if _ATOM_WORDS.fullmatch(display):
        return tuple(display.split(" "))
    return ('"' + display.replace("\\", "\\\\").replace('"', '\\"') + '"',)


def _folded(name: str, tokens: Sequence[str]) -> bytes:
    """Return the field from tokens that each begin with a blank; folds before a token, never before
    the first."""
    whole = f"{name}:{''.join(tokens)}\r\n"
    if len(whole) <= COLUMNS + 2:
        return whole.encode()
    lines: list[str] = []
    line = f"{name}:"
    is_first = True
    for token in tokens:
        if is_first or len(line) + len(token) <= COLUMNS:
            line += token
        else:
            lines.append(line)
            line = token
        is_first = False
    lines.append(line)
    field = ("\r\n".join(lines) + "\r\n").encode()
    if len(field) > LONGEST_LINE and any(len(line.encode()) > LONGEST_LINE for line in lines):
        raise HeaderError(f"The header {name} holds a word that is too long for a line.")
    return field
