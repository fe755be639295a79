"""The fields that are put in front of a received message (SMTP-13): Return-Path, Received,
Authentication-Results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from uuid import UUID

from pillarbox.mail.message import headers
from pillarbox.receiving.arrival import Arrival

UNREADABLE_LINE: Final = b"X-Unreadable-Line:\r\n"
"""Its value is the line behind it, which continues no field of the message."""


def fields(
    arrival: Arrival,
    recipients: Sequence[str],
    id: UUID,
    instant: datetime,
    hostname: str,
    results: bytes,
    mark: str,
    first_octet: bytes,
) -> bytes:
    """Return the fields, each with its CRLF. `recipients` are those that the reader of the message may know
    of. `results` is the field of authentication results, `mark` the comment by which we recognise the message
    when it comes to them again.

    A message whose `first_octet` is a blank begins with a line that would continue the field before it, so
    its sender could add results under our name (RFC 8601, 5): a field that means nothing takes that line.
    """
    named = "\r\n\t".join([f"<{address}>" for address in recipients])
    received = (
        f"Return-Path: <{_plain(arrival.mail_from)}>\r\n"
        f"Received: from {_plain(arrival.helo) or 'unknown'}{_client(arrival.client)}\r\n"
        f"\tby {hostname} with {arrival.protocol}{_tls(arrival.tls)} id {id}\r\n"
        f"\t{mark}\r\n"
        f"\tfor {named}; {_date(instant.replace(microsecond=0))}\r\n"
    )
    fields = received.encode("utf-8", "replace") + results
    return fields + UNREADABLE_LINE if first_octet in (b" ", b"\t") else fields


def _plain(text: str) -> str:
    """Return the text without anything that could begin a field of its own: `pillarbox inbound` may be given
    any."""
    return text if text.isprintable() else "".join([c if c.isprintable() else "?" for c in text])


@lru_cache(maxsize=1024)
def _client(address: str) -> str:
    """Return the address literal of the client (RFC 5321, 4.1.3)."""
    if not address:
        return ""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    return f" ([{found}])" if found.version == 4 else f" ([IPv6:{found}])"


def _tls(tls: tuple[str, str] | None) -> str:
    return f" ({tls[0]} {tls[1]})" if tls else ""


@lru_cache(maxsize=4)
def _date(instant: datetime) -> str:
    return headers.date("Date", instant)[len("Date: ") : -2].decode("ascii")
