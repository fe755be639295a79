"""Decides what is tracked in a mail, and makes the links for it (emails.md 8).

It is decided when the mail is sent, by the flags of its domain and whether the host of its links is known to
lead here. Only recipients who get a copy of their own are tracked; `rows.drafted` gives one to each recipient
where tracking is active as the mail is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from pillarbox.domains.senders import SenderDomain
from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token, open_token

_ORIGIN = re.compile(r"https?://[^/?#\\]*+", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"<[ \t]*(https?:[^<>]*+)>", re.IGNORECASE)


def is_tracked(domain: SenderDomain | None, html: str | None) -> bool:
    """Return whether anything of the mail is tracked as its domain stands now."""
    return (
        bool(html)
        and domain is not None
        and domain.tracking_host is not None
        and (domain.open_tracking or domain.click_tracking)
    )


class EmailTracking(NamedTuple):
    """The tracking of one mail, or of all copies of a broadcast. Links begin with `base`; those in
    `untouched` stay as they are. Links that begin with one of `own` are ours already."""

    base: str
    key: LinkKey
    opens: bool
    clicks: bool
    own: tuple[str, ...]
    untouched: frozenset[str]

    def recipient(self, team_id: UUID, email_id: UUID, position: int) -> RecipientTracker:
        """Return the links of one recipient's copy."""
        return RecipientTracker(self, TrackedRecipient(team_id, email_id, position))


@dataclass(frozen=True, slots=True)
class RecipientTracker:
    """Links and picture of one recipient's copy, the same each time; a `mail.html.links.Tracker`."""

    tracking: EmailTracking
    who: TrackedRecipient

    def link(self, url: str, index: int) -> str | None:
        """Return where the link of this number leads now."""
        tracking = self.tracking
        if not tracking.clicks:
            return None
        compared = _compared(url)
        if compared.startswith(tracking.own) or compared in tracking.untouched:
            return None
        token = link_token(self.who, index, url, tracking.key)
        return None if token is None else f"{tracking.base}/t/c/{token}"

    def pixel(self) -> str | None:
        """Return the picture that is seen when the mail is opened."""
        if not self.tracking.opens:
            return None
        return f"{self.tracking.base}/t/o/{open_token(self.who, self.tracking.key)}.gif"


class TrackedCopies:
    """Finds out what is tracked."""

    def __init__(self, keys: LinkKeys, public_url: str) -> None:
        self._keys = keys
        self._public_url = public_url
        public = urlsplit(public_url)
        self._scheme = public.scheme
        self._port = "" if public.port is None else f":{public.port}"

    async def of(
        self,
        domain: SenderDomain | None,
        html: str | None,
        headers: Sequence[tuple[str, str]],
        accepted_at: datetime,
    ) -> EmailTracking | None:
        """Return the tracking of a mail accepted then, as its domain stands now; None for none."""
        if domain is None or domain.tracking_host is None or not is_tracked(domain, html):
            return None
        return EmailTracking(
            base=f"{self._scheme}://{domain.tracking_host}{self._port}",
            key=await self._keys.maker(accepted_at),
            opens=domain.open_tracking,
            clicks=domain.click_tracking,
            own=(_compared(f"{self._public_url}/unsubscribe/"), _compared(f"{self._public_url}/shared")),
            untouched=_to_unsubscribe(headers),
        )


def _to_unsubscribe(headers: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return the links to unsubscribe that the sender has given itself (RFC 2369)."""
    return frozenset(
        _compared(found.strip())
        for name, value in headers
        if name.lower() == "list-unsubscribe"
        for found in _IN_BRACKETS.findall(value)
    )


def _compared(url: str) -> str:
    """Return the URL with its scheme and host in lower case: they are the same in any (RFC 3986, 6.2.2.1)."""
    return _ORIGIN.sub(lambda found: found[0].lower(), url, count=1)
