"""The header block of a message or part: where each field stands, and what it says.

Lines may end in CRLF or LF. A line that cannot be a field is passed over when the header goes on behind it,
as mail programs do: when a field that every reader knows stands between it and the next empty line. Otherwise
it ends the block, as it does for MTAs that then see a missing separator. What lies beyond the limits is
passed over: 1,000 fields, 256 KiB, 64 KiB of one value (standards, section 0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from pillarbox.mail.message import header_text
from pillarbox.mail.message.headers import MONTHS

MOST_FIELDS = 1000
LONGEST_BLOCK = 256 * 1024
LONGEST_VALUE = 64 * 1024
LINES_AT_ONCE = 64 * 1024
MOST_IDS = 1000

ONCE = frozenset(
    {
        *("from", "sender", "reply-to", "to", "cc", "bcc", "date", "subject"),
        *("message-id", "in-reply-to", "references", "mime-version", "auto-submitted"),
        *("content-type", "content-transfer-encoding", "content-disposition", "content-id"),
        *("content-description", "content-language"),
        *("list-id", "list-help", "list-unsubscribe", "list-unsubscribe-post", "list-subscribe"),
        *("list-post", "list-owner", "list-archive"),
    }
)
"""Fields that a header has once at most (RFC 5322 3.6, RFC 2045 3, RFC 2369 2, RFC 2919 3, RFC 3834 5), in
lower case. Signatures cover the lowest one of a name (RFC 6376 5.4.2), so of several the lowest is read."""

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:([^\n]*+(?>(?:\n[ \t][^\n]*+)*))\n?")
_BLANK = re.compile(rb"[ \t]*\r?\n")
_KNOWN_FIELD = re.compile(
    rb"\n(?=(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|in-reply-to|references|received|return-path"
    rb"|mime-version|dkim-signature|authentication-results|(?:arc|content|list|resent|x)-[!-9;-~]+)[ \t]*:)",
    re.IGNORECASE,
)
_MBOX_LINE = re.compile(rb">?From (?![ \t]*:)[^\n]*\n")
_FOR = re.compile(rb"for(?<=[\s;)]for)\s+<?\s*([^\s<>;,()\"]+@[^\s<>;,()\"]+)\s*>?(?=[\s;(]|$)")
_ID = re.compile(r"<([^<>\s\x00-\x1f]{1,998})>")
_BARE_ID = re.compile(r"[^<>\s,;]{1,996}")
_SPACED_ID = re.compile(r"<([^<>\x00-\x08\x0b\x0c\x0e-\x1f]{1,998})>")
_DATE = re.compile(
    r"(?:[A-Za-z]{2,12}[,.]?\s+)?(\d{1,2})[\s-]+([A-Za-z]{3})[A-Za-z]{0,8}\.?[\s-]+(\d{2,4})\s+"
    r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?(?:\.\d+)?\s*(?:([+-])(\d{2}):?(\d{2})|([A-Za-z]{1,5}))?",
    re.ASCII,
)
_MONTH = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_ZONES = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
"""RFC 5322 4.3; every other name means that the zone is not known."""


class HeaderField(NamedTuple):
    """One field: its name as written, its raw value without the last line end, and what people are shown."""

    name: str
    raw: bytes
    value: str


class HeaderBlock(NamedTuple):
    """The raw fields in order, where the body begins, and whether no limit made us pass over some."""

    fields: list[tuple[bytes, bytes]]
    body_start: int
    complete: bool


def split(raw: bytes, start: int, end: int) -> HeaderBlock:
    """Return the fields that stand from `start` on; the last `\\r` of a value is cut off with its
    line end."""
    fields: list[tuple[bytes, bytes]] = []
    at = start
    match = _FIELD.match
    limit = min(end, start + LONGEST_BLOCK + 1)
    header_end: int | None = None
    while True:
        found = match(raw, at, limit)
        if found is None:
            blank = _BLANK.match(raw, at, end)
            if blank is not None or at >= end:
                break
            found = match(raw, at, min(end, at + LONGEST_BLOCK))
        if found is None:
            if header_end is None:
                header_end = _header_end(raw, at, min(end, start + LONGEST_BLOCK))
            found = _next_field(raw, at, header_end)
            if found is None:
                break
        after = found.end()
        if len(fields) == MOST_FIELDS or after - start > LONGEST_BLOCK:
            return HeaderBlock(fields, _blank_later(raw, at, end), False)
        name, value = found.groups()
        fields.append((name, value.rstrip(b"\r\n")))
        at = after
    return HeaderBlock(fields, blank.end() if blank else at, True)


def _header_end(raw: bytes, index: int, end: int) -> int:
    """Return the place behind the last line of the header; `index` where no empty line ends it."""
    blank = _blank(raw, index, end)
    return blank[0] if blank else index


def _next_field(raw: bytes, index: int, header_end: int) -> re.Match[bytes] | None:
    """Return the first field that every reader knows behind lines that are none."""
    known = _KNOWN_FIELD.search(raw, index, header_end) if index < header_end else None
    return _FIELD.match(raw, known.end(), header_end) if known else None


def _blank(raw: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return where the first empty line begins and ends. Found by octets: a pattern takes ten times
    as long."""
    with_cr = raw.find(b"\n\r\n", start, end)
    # One that ends in LF alone counts only in front of the other, so nothing behind that is searched.
    alone = raw.find(b"\n\n", start, end if with_cr < 0 else with_cr + 1)
    if alone >= 0:
        return alone + 1, alone + 2
    return None if with_cr < 0 else (with_cr + 1, with_cr + 3)


def _blank_later(raw: bytes, start: int, end: int) -> int:
    """Return the text behind the first empty line."""
    blank = _blank(raw, start, end)
    return blank[1] if blank else end


def split_message(raw: bytes) -> HeaderBlock:
    """Return the header of a whole message, in front of which an mbox file may have put a line of its own."""
    return split(raw, _begin(raw), len(raw))


def extent(raw: bytes) -> tuple[int, int]:
    """Return where the header of a message begins and ends, however many fields it has and whatever else: at
    the first empty line."""
    begin = _begin(raw)
    if _BLANK.match(raw, begin):
        return begin, begin
    blank = _blank(raw, begin, len(raw))
    return begin, blank[0] if blank else len(raw)


def windows(raw: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of whole lines, so many octets at once that other threads may run in between."""
    while begin < end:
        near = raw.rfind(b"\n", begin, min(begin + LINES_AT_ONCE, end)) + 1
        stop = near or raw.find(b"\n", begin, end) + 1 or end
        if end - begin <= LINES_AT_ONCE:
            stop = end
        yield begin, stop
        begin = stop


def _begin(raw: bytes) -> int:
    found = _MBOX_LINE.match(raw) if raw.startswith((b"From ", b">From ")) else None
    return found.end() if found else 0


def readable(fields: Iterable[tuple[bytes, bytes]]) -> tuple[HeaderField, ...]:
    """Return the fields with their values decoded; of a value, what is beyond 64 KiB is not shown."""
    decoded, longest = header_text.decoded, LONGEST_VALUE
    return tuple(
        [HeaderField(name.decode("ascii"), value, decoded(value[:longest])) for name, value in fields]
    )


def by_name(headers: Iterable[HeaderField]) -> dict[str, list[HeaderField]]:
    """Return the fields under their names in lower case, in the order of the message."""
    named: dict[str, list[HeaderField]] = {}
    for header in headers:
        named.setdefault(header.name.lower(), []).append(header)
    return named


def instance(name: str, headers: Sequence[HeaderField]) -> HeaderField | None:
    """Return the field of this name, in lower case, that is read: the lowest of those that may stand only
    once, else the topmost."""
    if not headers:
        return None
    return headers[-1] if name in ONCE else headers[0]


def first_of_each(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return the raw value of the topmost field of each name (in lower case)."""
    named: dict[str, bytes] = {}
    for name, value in fields:
        named.setdefault(name.lower().decode("ascii"), value)
    return named


def joined(headers: Iterable[HeaderField]) -> dict[str, str]:
    """Return the values by name in lower case, several values of one name joined with `, `
    (receiving.md 2.2)."""
    return {name: ", ".join([h.value for h in found]) for name, found in by_name(headers).items()}


def received_for(values: Iterable[bytes]) -> tuple[str, ...]:
    """Return the addresses in `for` clauses of Received fields, newest hop first, each once
    (receiving.md 1.1)."""
    found: dict[str, None] = {}
    for value in values:
        value = value.replace(b"FOR", b"for")
        at = value.find(b"for")
        while 0 <= at < LONGEST_VALUE:
            if (clause := _FOR.match(value, at)) is not None:
                local, mark, domain = clause[1].decode("utf-8", "replace").rpartition("@")
                found[header_text.clean(f"{local}{mark}{domain.lower()}")] = None
            at = value.find(b"for", at + 3)
    return tuple(found)


def message_ids(text: str) -> tuple[str, ...]:
    """Return the message ids of a References, In-Reply-To or Message-ID, with their angle brackets, each
    once; of more than 1,000 the first and the last ones, which are the nearest.

    Where none is written as it should be, ids with white space inside (a fold) and ids without brackets
    count: who has written a Message-ID like that names it like that.
    """
    found = tuple(dict.fromkeys(f"<{inner}>" for inner in _ID.findall(text))) or _otherwise_written(text)
    return found if len(found) <= MOST_IDS else (found[0], *found[1 - MOST_IDS :])


def message_id(text: str) -> str | None:
    """Return the one id of a Message-ID, put in angle brackets when it came without."""
    found = message_ids(text)
    if found:
        return found[0]
    bare = _BARE_ID.search(text)
    return f"<{bare[0]}>" if bare is not None else None


def _otherwise_written(text: str) -> tuple[str, ...]:
    """Return ids that are written as RFC 5322 forbids; nothing where the text may as well be words."""
    spaced = ["".join(inner.split()) for inner in _SPACED_ID.findall(text)]
    if spaced:
        return tuple(dict.fromkeys([f"<{inner}>" for inner in spaced if "@" in inner]))
    words = text.replace(",", " ").split()
    if not all("@" in word and _BARE_ID.fullmatch(word) for word in words):
        return ()
    return tuple(dict.fromkeys([f"<{word}>" for word in words]))


def date(text: str) -> datetime | None:
    """Return the instant of a Date, in UTC; None for what is none. A zone that is not known counts as UTC."""
    found = _DATE.search(text[:200])
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes, zone = found.groups()
    offset = timedelta(hours=_ZONES.get((zone or "").lower(), 0))
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    try:
        return datetime(
            _full_year(int(year)),
            _MONTH[month.lower()],
            int(day),
            int(hour),
            int(minute),
            min(int(second or 0), 59),
            tzinfo=timezone(offset),
        ).astimezone(UTC)
    except (KeyError, ValueError, OverflowError):
        return None


def _full_year(year: int) -> int:
    """Return the year that two or three digits mean, as RFC 5322 4.3 reads them."""
    if year < 50:
        return year + 2000
    return year + 1900 if year < 1000 else year
