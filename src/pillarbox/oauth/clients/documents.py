"""Fetching what the sites of programs say and show: their documents and logos (oauth.md 4 and 5.1).

Only people who are sent to the endpoint of authorization cause a fetch, and each fetch counts against the
address that asks, and against the URL. What strangers ask for under other URLs keeps no program out, and a
document that was valid serves on for a while when its host fails.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.network.fetch_result import FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.oauth.clients import document_queries, document_rules
from pillarbox.oauth.clients.clients import Client
from pillarbox.oauth.clients.document_queries import ClientLogo
from pillarbox.oauth.failures import TooManyRequests, UnknownClient

MOST_BYTES: Final = 5 * 1024
MOST_LOGO_BYTES: Final = 256 * 1024
CONNECT_SECONDS: Final = 2.0
SECONDS: Final = 5.0

TOO_MANY: Final = 429
SERVER_ERROR: Final = 500

MINUTE: Final = 60.0
MOST_OF_PATH: Final = 10
"""Of an address for one path, whatever the query; and of all together for one URL."""

MOST_OF_ADDRESS: Final = 30
SERVES_STALE: Final = timedelta(hours=24)
"""So long after its end a document describes its program while the host gives no answer."""

LOGO_KEPT: Final = timedelta(hours=1)

PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"GIF8", b"", "image/gif"),
)
"""How a picture begins, what follows four octets later, and its media type. SVG can hold programs."""


@dataclass(frozen=True, slots=True)
class DocumentPolicy:
    """The operator's. `hosts`: the only ones, where there are any. `port`: where HTTPS is served."""

    is_enabled: bool = True
    hosts: Collection[str] = ()
    refused_hosts: Collection[str] = ()
    port: int = 443

    def permits(self, host: str) -> bool:
        """Return whether documents of this host describe programs."""
        if not self.is_enabled or host in self.refused_hosts:
            return False
        return not self.hosts or host in self.hosts


class Documents:
    """Documents and logos, as they were fetched a while ago, or now."""

    def __init__(
        self, pool: asyncpg.Pool, outbound: Outbound, limits: SharedLimits, policy: DocumentPolicy
    ) -> None:
        self._pool = pool
        self._outbound = outbound
        self._limits = limits
        self._policy = policy

    @property
    def are_accepted(self) -> bool:
        return self._policy.is_enabled

    def permits(self, url: str) -> bool:
        """Return whether the operator lets the document of this URL describe a program."""
        try:
            return self._policy.permits(parse_url(url).host)
        except BadUrl:
            return False

    async def client(self, now: datetime, url: str, address: str) -> Client:
        """Return the program that the document of a URL describes, for a caller at this address; raises
        UnknownClient and TooManyRequests."""
        where = document_rules.address_of(url)
        if not self._policy.permits(where.host):
            raise UnknownClient("client_id: documents of this host are not accepted")
        stored = await document_queries.find(self._pool, _hashed(url), now, now - SERVES_STALE)
        said: dict[str, Any]
        kept = None
        if stored is not None:
            kept = document_rules.described(url, where.host, json.loads(stored.document))
        if stored is not None and kept is not None and stored.is_fresh:
            return kept
        try:
            answer = await self._fetched(where, address, "application/json", MOST_BYTES)
        except TooManyRequests:
            if kept is None:
                raise
            return kept
        if kept is not None and _is_failing(answer):
            return kept
        if answer is None or answer.status != 200 or not document_rules.is_json(_media(answer)):
            raise UnknownClient("the document of the client could not be fetched")
        said = document_rules.document_of(answer.body)
        found = document_rules.described(url, where.host, said)
        until = now + document_rules.lifetime(answer.headers.get("cache-control"))
        await document_queries.store(self._pool, _hashed(url), url, json.dumps(said), now, until)
        return found

    async def logo(self, now: datetime, url: str, address: str) -> ClientLogo | None:
        """Return the logo of a program; None where there is none that can be shown. Raises
        TooManyRequests."""
        stored = await document_queries.find_logo(self._pool, _hashed(url), now)
        if stored is not None:
            return stored
        try:
            where = parse_url(url)
        except BadUrl:
            return None
        # As for documents: whoever may register a program does not choose which ports we knock at.
        if where.port != document_rules.HTTPS_PORT:
            return None
        accepted = "image/png, image/jpeg, image/webp, image/gif"
        answer = await self._fetched(where, address, accepted, MOST_LOGO_BYTES)
        media = None if answer is None or answer.status != 200 else picture_media(answer.body)
        if answer is None or media is None:
            return None
        until = now + LOGO_KEPT
        logo = ClientLogo(media, answer.body)
        await document_queries.store_logo(self._pool, _hashed(url), url, logo, now, until)
        return logo

    async def _fetched(
        self, where: WebAddress, address: str, accepted: str, max_count: int
    ) -> HttpAnswer | None:
        """Return the answer of a site, whatever its status; None where it gave none that can be read."""
        # The address first: who is refused for it cannot have rows counted of hosts that it makes up.
        for key, limit in (
            (f"oauth fetch for {client_of(address)}", MOST_OF_ADDRESS),
            (f"oauth fetch of {where.host}{where.path} for {client_of(address)}", MOST_OF_PATH),
            (f"oauth fetch of {where}", MOST_OF_PATH),
        ):
            taken = await self._limits.take(key_for(key), limit, MINUTE)
            if not taken.allowed:
                raise TooManyRequests(taken.reset)
        target = replace(where, port=self._policy.port)
        try:
            limits = HttpLimits(max_bytes=max_count, connect=CONNECT_SECONDS, total=SECONDS)
            headers = {"Accept": accepted, "Host": where.authority}
            answer = await self._outbound.fetch("GET", str(target), limits, headers=headers)
        except FetchError:
            return None
        # Nothing is decompressed, so its size is what was counted.
        return None if answer.headers.get("content-encoding", "identity") != "identity" else answer


def picture_media(octets: bytes) -> str | None:
    """Return the media type that a picture really has; None for what is none of `PICTURES`."""
    for start, later, media in PICTURES:
        if octets.startswith(start) and octets[8 : 8 + len(later)] == later:
            return media
    return None


def _is_failing(answer: HttpAnswer | None) -> bool:
    """Return whether the host says nothing about its document: no answer, or that it has trouble."""
    return answer is None or answer.status == TOO_MANY or answer.status >= SERVER_ERROR


def _media(answer: HttpAnswer) -> str | None:
    return answer.headers.get("content-type")


def _hashed(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()
