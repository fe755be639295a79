"""Talking to the provider: discovery, keys, the exchange of a code, facts about a user.

Each request has five seconds and a bounded answer; redirects are not followed. Documents are kept for a
while, and are fetched by one caller at a time. After a failure the next fetch waits, so a provider that is
slow costs each process one request in a few seconds.

The operator has named the issuer, so its host may be on a private network. Endpoints on other hosts, which a
document names, are subject to `--allow-private`.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote_plus, urlencode

from pillarbox.kernel.network.fetch_result import FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.host_addresses import HostResolver
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import parse_url
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.settings.settings import Settings
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.openid.provider_document import (
    ProviderMetadata,
    ProviderTokens,
    key_documents,
    metadata_of,
    read_document,
)
from pillarbox.people.settings import OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ISSUER

if TYPE_CHECKING:
    # Loads the library of signatures, which most processes never need.
    from pillarbox.people.openid.id_tokens import ProviderKey, SubjectClaims

T = TypeVar("T")

CALLBACK: Final = "/login/openid/callback"
"""The path of the redirect URI."""

EVERYWHERE: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))
"""The operator has named the issuer, which may be on a private network."""

WELL_KNOWN: Final = "/.well-known/openid-configuration"
SCOPES: Final = "openid email profile"
CONNECT_SECONDS: Final = 2.0
SECONDS: Final = 5.0
MOST_BYTES: Final = 256 * 1024
SERVER_ERROR: Final = 500

FRESH: Final = timedelta(minutes=10)
"""For so long a document is not fetched again; a key that was withdrawn may count for as long."""

SERVES: Final = timedelta(hours=1)
"""For so long a document serves while its provider gives no other one."""

PAUSE: Final = timedelta(seconds=5)
"""After a failure, and before newer keys are looked for."""

ID_TOKENS: Final = "pillarbox.people.openid.id_tokens"


class CachedDocument(Generic[T]):
    """A document of the provider, fetched by one caller at a time."""

    def __init__(self, fetch: Callable[[datetime], Awaitable[T]]) -> None:
        self._fetch = fetch
        self._lock = asyncio.Lock()
        self._kept: tuple[datetime, T] | None = None
        self._failed: tuple[datetime, OpenIdFailure] | None = None

    async def get(self, now: datetime, *, fresh: timedelta = FRESH) -> T:
        """Return the document, fetched not longer ago than `fresh`; an older one while the provider fails.
        Raises OpenIdFailure."""
        kept = self._kept_within(now, fresh)
        if kept is None:
            async with self._lock:
                kept = self._kept_within(now, fresh) or await self._fetched(now)
        return kept[1]

    async def _fetched(self, now: datetime) -> tuple[datetime, T]:
        if self._failed is None or now - self._failed[0] >= PAUSE:
            try:
                self._kept, self._failed = (now, await self._fetch(now)), None
            except OpenIdFailure as failure:
                self._failed = now, failure
        if self._failed is None and self._kept is not None:
            return self._kept
        kept = self._kept_within(now, SERVES)
        if kept is None:
            assert self._failed is not None
            raise OpenIdFailure(self._failed[1].reason, self._failed[1].detail)
        return kept

    def _kept_within(self, now: datetime, age: timedelta) -> tuple[datetime, T] | None:
        return self._kept if self._kept is not None and now - self._kept[0] < age else None


@dataclass(frozen=True, slots=True)
class ProviderClient:
    """The provider, and how it knows this installation."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str


class Provider:
    """Asks the provider. `at_issuer` may reach every address, `elsewhere` public and allowed ones."""

    def __init__(self, client: ProviderClient, at_issuer: Outbound, elsewhere: Outbound) -> None:
        self.client = client
        self._at_issuer = at_issuer
        self._elsewhere = elsewhere
        self._host = parse_url(client.issuer).host
        self._metadata = CachedDocument(self._fetch_metadata)
        self._keys = CachedDocument(self._fetch_keys)

    @classmethod
    def of(
        cls,
        settings: Settings,
        addresses: HostResolver,
        elsewhere: Outbound,
        *,
        trust: ssl.SSLContext | None = None,
    ) -> Provider:
        """Return the provider that the settings name; ValueError where they name none."""
        issuer = settings[OIDC_ISSUER]
        if issuer is None:
            raise ValueError("the settings name no provider")
        client = ProviderClient(
            issuer=issuer,
            client_id=settings[OIDC_CLIENT_ID] or "",
            client_secret=settings[OIDC_CLIENT_SECRET] or "",
            redirect_uri=f"{settings.public_url}{CALLBACK}",
        )
        return cls(client, Outbound(addresses, EVERYWHERE, tls=trust), elsewhere)

    async def examine(self, now: datetime) -> int:
        """Return how many keys of the provider can sign; raises OpenIdFailure where nobody could log in."""
        await _load()
        return len(await self._keys.get(now))

    async def metadata(self, now: datetime) -> ProviderMetadata:
        """Return where the provider is asked; raises OpenIdFailure."""
        return await self._metadata.get(now)

    async def authorization_url(self, now: datetime, parameters: Mapping[str, str]) -> str:
        """Return the URL to which a browser is sent for a code; raises OpenIdFailure."""
        place = (await self.metadata(now)).authorization_endpoint
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.client.redirect_uri,
            "scope": SCOPES,
            "code_challenge_method": "S256",
            **parameters,
        }
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    async def exchange(self, now: datetime, code: str, verifier: str) -> ProviderTokens:
        """Return what the provider gives for a code; raises OpenIdFailure."""
        metadata, client = await self.metadata(now), self.client
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if metadata.is_secret_in_form:
            form |= {"client_id": client.client_id, "client_secret": client.client_secret}
        else:
            # Both parts are encoded as in a form (RFC 6749, section 2.3.1).
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        answer = await self._asked(
            "POST", metadata.token_endpoint, "token", headers, urlencode(form).encode()
        )
        found = read_document(answer.body, ProviderTokens, "token")
        if found.token_type.lower() != "bearer":
            raise OpenIdFailure(OpenIdReason.ANSWER, "token: the type of the token is not Bearer")
        return found

    async def claims(self, now: datetime, answer: ProviderTokens, nonce: str) -> SubjectClaims:
        """Return what the ID token says, if it is right; raises OpenIdFailure. Keys that are not known are
        looked for once more: the provider may have changed them."""
        await _load()
        from pillarbox.people.openid.id_tokens import ExpectedToken, KeyUnknown, checked_claims

        metadata = await self.metadata(now)
        expected = ExpectedToken(
            issuer=metadata.issuer,
            client_id=self.client.client_id,
            nonce=nonce,
            algorithms=metadata.algorithms,
            access_token=answer.access_token,
            now=now,
        )
        try:
            return checked_claims(answer.id_token, await self._keys.get(now), expected)
        except KeyUnknown:
            pass
        try:
            return checked_claims(answer.id_token, await self._keys.get(now, fresh=PAUSE), expected)
        except KeyUnknown:
            raise OpenIdFailure(OpenIdReason.TOKEN, "key") from None

    async def userinfo(self, now: datetime, access_token: str, subject: str) -> SubjectClaims | None:
        """Return what the provider says of a user beside the ID token; None where it says nothing of this
        subject (OpenID Connect Core 1.0, 5.3.2). Raises OpenIdFailure."""
        metadata = await self.metadata(now)
        if metadata.userinfo_endpoint is None:
            return None
        from pillarbox.people.openid.id_tokens import subject_claims

        headers = {"Accept": "application/json", "Authorization": f"Bearer {access_token}"}
        answer = await self._asked("GET", metadata.userinfo_endpoint, "userinfo", headers)
        found = subject_claims(read_document(answer.body, dict[str, Any], "userinfo"))
        return found if found.subject == subject else None

    async def _fetch_metadata(self, _: datetime) -> ProviderMetadata:
        url = self.client.issuer.removesuffix("/") + WELL_KNOWN
        answer = await self._asked("GET", url, "discovery", {"Accept": "application/json"})
        return metadata_of(answer.body, self.client.issuer)

    async def _fetch_keys(self, now: datetime) -> Sequence[ProviderKey]:
        from pillarbox.people.openid.id_tokens import provider_keys

        url = (await self.metadata(now)).jwks_uri
        answer = await self._asked("GET", url, "keys", {"Accept": "application/json"})
        return provider_keys(key_documents(answer.body))

    async def _asked(
        self, method: str, url: str, name: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """Return an answer of status 200; raises OpenIdFailure for all else."""
        outbound = self._at_issuer if parse_url(url).host == self._host else self._elsewhere
        limits = HttpLimits(max_bytes=MOST_BYTES, connect=CONNECT_SECONDS, total=SECONDS)
        try:
            answer = await outbound.fetch(method, url, limits, headers=headers, body=body)
        except FetchError as failure:
            raise OpenIdFailure(OpenIdReason.UNREACHABLE, f"{name}: {failure}") from None
        if answer.status >= SERVER_ERROR:
            raise OpenIdFailure(OpenIdReason.UNREACHABLE, f"{name}: status {answer.status}")
        if answer.status != 200:
            raise OpenIdFailure(OpenIdReason.ANSWER, f"{name}: status {answer.status}")
        return answer


async def _load() -> None:
    """Load the library of signatures in a thread: it takes longer than others should wait."""
    await in_thread(import_module, ID_TOKENS)
