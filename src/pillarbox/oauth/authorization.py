"""Handles the requests of programs at the endpoint of authorization, and where the answer goes (RFC 6749,
4.1; oauth.md 5).

Until it is known that the program has this redirect URI nobody is sent anywhere: the failure is raised. From
then on each failure is an answer to the program. Anybody may register one, so the caller decides whether the
browser is sent there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE, Connection, Source
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.oauth import request_queries
from pillarbox.oauth.clients import clients, redirects
from pillarbox.oauth.clients.clients import AUTHORIZATION_CODE, Client
from pillarbox.oauth.clients.documents import Documents
from pillarbox.oauth.failures import (
    InvalidRequest,
    NotStored,
    OAuthProblem,
    TooManyRequests,
    UnauthorizedClient,
    UnknownClient,
    UnsupportedResponseType,
    described,
)
from pillarbox.oauth.parameters import Parameters, is_storable, need
from pillarbox.oauth.request_queries import RequestRow
from pillarbox.oauth.scopes import subset

log = get("oauth")

LIFETIME: Final = timedelta(minutes=10)
LONGEST_STATE: Final = 1024
MINUTE: Final = 60.0
MOST_OF_ADDRESS: Final = 120
"""So many requests an address may begin within a minute."""
ONCE: Final = (
    *("response_type", "scope", "state", "code_challenge", "code_challenge_method"),
    *("response_mode", "request", "request_uri"),
)

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A request of a program that is in order, for one of its redirect URIs."""

    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str | None
    challenge: str


class AuthorizeRedirect(NamedTuple):
    """The page of ours where a browser is sent next, and what its cookie says then."""

    location: str
    browser: str


class AuthorizeRefusal(NamedTuple):
    """A request that is not in order: why, the redirect URI with the failure, and whose it is."""

    problem: OAuthProblem
    location: str
    client: Client


class Authorization:
    """Begins authorizations, and keeps them until somebody decides."""

    def __init__(self, pool: asyncpg.Pool, documents: Documents, limits: SharedLimits, issuer: str) -> None:
        self._pool = pool
        self._limits = limits
        self._documents = documents
        self.issuer = issuer

    async def begin(
        self, now: datetime, parameters: Parameters, *, address: str, browser: str | None, stored: bool
    ) -> AuthorizeRedirect | AuthorizeRefusal:
        """Take a request of a program. `browser` is what the cookie said, `stored` False leaves nothing
        behind. Raises an OAuthProblem where nobody may be sent on."""
        client = await self._client(now, parameters, address)
        uri = redirect_of(parameters, client)
        state = parameters.get("state")
        try:
            asked = checked(parameters, client, uri)
        except OAuthProblem as wrong:
            shown = (
                state
                if state is not None and is_state(state) and "state" not in parameters.repeated
                else None
            )
            return AuthorizeRefusal(wrong, self.refusal(uri, shown, wrong.name, described(wrong)), client)
        request_id = clients.new_secret()
        known = browser if browser is not None and _SECRET.fullmatch(browser) else clients.new_secret()
        if stored:
            await self._count(address)
            try:
                await self._store(now, asked, request_id, known)
            except TROUBLE as trouble:
                log.error("oauth.request_not_stored", error=type(trouble).__name__)
                failure = NotStored("the request could not be stored; try again later")
                told = self.refusal(uri, state, failure.name, failure.message)
                return AuthorizeRefusal(failure, told, client)
        return AuthorizeRedirect(f"{self.issuer}/oauth/authorize/{request_id}", known)

    async def _count(self, address: str) -> None:
        """Count a request of the address; TooManyRequests above its limit, since anybody can have requests
        stored."""
        key = key_for(f"oauth requests of {client_of(address)}")
        taken = await self._limits.take(key, MOST_OF_ADDRESS, MINUTE)
        if not taken.allowed:
            raise TooManyRequests(taken.reset)

    async def _client(self, now: datetime, parameters: Parameters, address: str) -> Client:
        if "client_id" in parameters.repeated:
            raise InvalidRequest("client_id: is there more than once")
        client_id = need("client_id", parameters.get("client_id"))
        if clients.is_document_url(client_id):
            if not is_storable(client_id):
                raise UnknownClient("client_id: is not the URL of a document")
            return await self._documents.client(now, client_id, address)
        client = await clients.registered(self._pool, client_id)
        if client is None:
            raise UnknownClient("client_id: there is no such client")
        return client

    async def _store(self, now: datetime, asked: AuthorizationRequest, request_id: str, browser: str) -> None:
        request = RequestRow(
            client_id=asked.client.id,
            client=json.dumps(asked.client.snapshot()),
            redirect_uri=asked.redirect_uri,
            scopes=asked.scopes,
            state=asked.state,
            challenge=asked.challenge,
        )
        hashes = clients.hashed(request_id), clients.hashed(browser)
        await request_queries.add(self._pool, *hashes, request, now, now + LIFETIME)

    def refusal(self, uri: str, state: str | None, error: str, description: str) -> str:
        """Return the redirect URI with a failure (RFC 6749, 4.1.2.1; RFC 9207)."""
        return redirects.with_answer(
            uri,
            {"error": error, "error_description": description, "state": state, "iss": self.issuer},
        )

    def answer(self, asked: AuthorizationRequest, code: str) -> str:
        """Return the redirect URI with a code."""
        return redirects.with_answer(
            asked.redirect_uri, {"code": code, "state": asked.state, "iss": self.issuer}
        )


async def waiting(
    source: Source, now: datetime, request_id: str, browser: str | None
) -> AuthorizationRequest | None:
    """Return the request that the person at this browser has still to decide about; None where there is
    none."""
    if browser is None:
        return None
    keys = clients.hashed(request_id), clients.hashed(browser)
    row = await request_queries.waiting(source, *keys, now)
    return None if row is None else _asked(row)


async def decide(
    conn: Connection, now: datetime, request_id: str, browser: str | None
) -> AuthorizationRequest | None:
    """Return the request and decide it in this transaction: nobody decides it a second time."""
    if browser is None:
        return None
    keys = clients.hashed(request_id), clients.hashed(browser)
    row = await request_queries.decide(conn, *keys, now)
    return None if row is None else _asked(row)


def _asked(row: RequestRow) -> AuthorizationRequest:
    client = clients.from_snapshot(row.client_id, json.loads(row.client))
    return AuthorizationRequest(
        client=client,
        redirect_uri=row.redirect_uri,
        scopes=tuple(row.scopes),
        state=row.state,
        challenge=row.challenge,
    )


def redirect_of(parameters: Parameters, client: Client) -> str:
    """Return the redirect URI of a request; raises InvalidRequest where it is not one of the program's."""
    if "redirect_uri" in parameters.repeated:
        raise InvalidRequest("redirect_uri: is there more than once")
    uri = need("redirect_uri", parameters.get("redirect_uri"))
    if not redirects.matches(uri, client.redirect_uris):
        raise InvalidRequest("redirect_uri: is not one that the client has registered")
    return uri


def is_state(text: str) -> bool:
    """Return whether a state can be kept and given back as it came."""
    return len(text) <= LONGEST_STATE and is_storable(text)


def checked(parameters: Parameters, client: Client, uri: str) -> AuthorizationRequest:
    """Return the rest of a request, in the contract's order; raises an OAuthProblem that the program is
    told."""
    for name in ONCE:
        if name in parameters.repeated:
            raise InvalidRequest(f"{name}: is there more than once")
    if parameters.repeated:
        raise InvalidRequest("a parameter is there more than once")
    state = parameters.get("state")
    if state is not None and not is_state(state):
        raise InvalidRequest(f"state: must be a text of at most {LONGEST_STATE} characters")
    if need("response_type", parameters.get("response_type")) != "code":
        raise UnsupportedResponseType("response_type: only code is supported")
    if parameters.get("response_mode") not in (None, "query"):
        raise InvalidRequest("response_mode: only query is supported")
    if parameters.get("request") is not None or parameters.get("request_uri") is not None:
        raise InvalidRequest("request: request objects are not supported")
    if AUTHORIZATION_CODE not in client.grant_types:
        raise UnauthorizedClient("the client is not registered for authorization_code")
    challenge = parameters.get("code_challenge")
    if challenge is None or not _CHALLENGE.fullmatch(challenge):
        raise InvalidRequest("code_challenge: must be 43 characters of base64url")
    if parameters.get("code_challenge_method") != "S256":
        raise InvalidRequest("code_challenge_method: must be S256")
    return AuthorizationRequest(
        client=client,
        redirect_uri=uri,
        scopes=subset(parameters.get("scope"), client.scopes, "this client"),
        state=state,
        challenge=challenge,
    )
