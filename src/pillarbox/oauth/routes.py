"""HTTP routes of the server of authorization (oauth.md 2, 3, 5, 6 and 7): nobody brings an API key."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.http.failures import prefers_html
from pillarbox.kernel.http.request import Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.observability.metrics import Counter
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.json_body import decode
from pillarbox.oauth import access_tokens, parameters, prometheus, wire
from pillarbox.oauth.authorization import Authorization, AuthorizeRedirect
from pillarbox.oauth.browsers import browser_of, cookie
from pillarbox.oauth.clients import client_authentication, registration
from pillarbox.oauth.clients.client_authentication import ClientCredentials, DescribedClient
from pillarbox.oauth.clients.clients import AUTHORIZATION_CODE, GRANT_TYPES, REFRESH_TOKEN, Client
from pillarbox.oauth.clients.documents import Documents
from pillarbox.oauth.clients.registration import RegistrationLimit
from pillarbox.oauth.failures import (
    FAILURES,
    NOT_KEPT,
    InvalidRequest,
    OAuthProblem,
    TooManyRequests,
    UnauthorizedClient,
    UnsupportedGrantType,
)
from pillarbox.oauth.keys import SigningKeys
from pillarbox.oauth.parameters import FORM, need
from pillarbox.oauth.screens import OAuthScreens
from pillarbox.oauth.tokens import IssuedTokens, Tokens
from pillarbox.people.audit import program_of

LARGEST: Final = 64 * 1024
MOST_FAILURES: Final = 60
MINUTE: Final = 60.0
PUBLISHED: Final = {"cache-control": "public, max-age=300"}
SENT_ON: Final = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
JSON: Final = "application/json"
ACCESS_TOKEN: Final = "access_token"  # noqa: S105 - the name of a kind (RFC 7009, 2.1)


# What programs find out first ---------------------------------------------------------------------


@route(
    "GET",
    "/.well-known/oauth-authorization-server",
    needs=Access.PUBLIC,
    shared=True,
    summary="Describe the server of authorization (RFC 8414)",
)
async def server_metadata(request: Request) -> Reply[wire.ServerMetadata]:
    authorization, documents = request.use(Authorization), request.use(Documents)
    shown = wire.server_metadata(authorization.issuer, documents=documents.are_accepted)
    return Reply(shown, headers=PUBLISHED, media=JSON)


@route(
    "GET",
    "/.well-known/oauth-protected-resource",
    needs=Access.PUBLIC,
    shared=True,
    summary="Describe the API as a resource (RFC 9728)",
)
async def resource_metadata(request: Request) -> Reply[wire.ResourceMetadata]:
    shown = wire.resource_metadata(request.use(Authorization).issuer)
    return Reply(shown, headers=PUBLISHED, media=JSON)


@route(
    "GET",
    "/.well-known/jwks.json",
    needs=Access.PUBLIC,
    shared=True,
    summary="List the keys of access tokens",
)
async def jwks(request: Request) -> Reply[wire.KeyList]:
    keys = await request.use(SigningKeys).published()
    return Reply(wire.key_list(keys), headers=PUBLISHED, media=JSON)


# Registering --------------------------------------------------------------------------------------


@route(
    "POST",
    "/oauth/register",
    needs=Access.PUBLIC,
    status=201,
    multipart=True,
    media=JSON,
    body=wire.ClientRegistration,
    limit=LARGEST,
    problems=(400, 429),
    shared=True,
    failures=FAILURES,
    summary="Register a program (RFC 7591)",
)
async def register(request: Request) -> Reply[wire.RegisteredClient]:
    places = RegistrationLimit(request.use(SharedLimits), client_of(request.client))
    places.check()
    client = parse(wire.ClientRegistration, _json(request)).client()
    await places.take()
    made = await registration.register(request.use(asyncpg.Pool), request.at, client)
    return Reply(wire.registered(made, int(request.at.timestamp())), headers=NOT_KEPT)


def _json(request: Request) -> dict[str, Any]:
    encoding = (request.header("content-encoding") or "identity").strip().lower()
    if encoding not in ("", "identity") or not request.raw:
        raise InvalidRequest("the body must be a JSON object")
    body = decode(request.raw)
    if not isinstance(body, dict):
        raise InvalidRequest("the body must be a JSON object")
    return body


# Asking people ------------------------------------------------------------------------------------


@route(
    "GET",
    "/oauth/authorize",
    needs=Access.PUBLIC,
    status=302,
    query=wire.AUTHORIZATION_PARAMETERS,
    pages=(400, 429, 503),
    failures=FAILURES,
    summary="Ask somebody to let a program act",
)
async def authorize(request: Request) -> Reply[Html]:
    """Send the browser on to the page that asks. A failure sends it back to the program only where the person
    has logged in and the operator has verified the program: anybody may register one."""
    screens = request.services.find(OAuthScreens)  # type: ignore[type-abstract]
    is_page = screens is not None and prefers_html(request.header("accept"))
    try:
        begun = await request.use(Authorization).begin(
            request.at,
            parameters.of_query(request.scope["query_string"]),
            address=client_of(request.client),
            browser=browser_of(request),
            stored=request.method == "GET",
        )
    except OAuthProblem as problem:
        problem.headers = {**problem.headers, "referrer-policy": SENT_ON["referrer-policy"]}
        if screens is None or not is_page:
            raise
        return screens.failure(problem)
    if isinstance(begun, AuthorizeRedirect):
        headers = {**SENT_ON, "location": begun.location, "set-cookie": cookie(begun.browser)}
        return Reply.html("", 302, headers)
    is_known = screens is not None and await screens.is_known(request)
    if is_known and begun.client.is_verified:
        return Reply.html("", 302, {**SENT_ON, "location": begun.location})
    if screens is None or not is_page:
        begun.problem.headers = {**begun.problem.headers, "referrer-policy": SENT_ON["referrer-policy"]}
        raise begun.problem
    return screens.refusal(begun, is_known=is_known)


# Tokens -------------------------------------------------------------------------------------------


@route(
    "POST",
    "/oauth/token",
    needs=Access.PUBLIC,
    multipart=True,
    media=FORM,
    also_media=(JSON,),
    body=wire.TokenRequest,
    limit=LARGEST,
    problems=(400, 401, 429),
    shared=True,
    failures=FAILURES,
    summary="Exchange a code or a refresh token",
)
async def token(request: Request) -> Reply[wire.TokenAnswer]:
    async with FailureLimiter(request, prometheus.TOKENS) as counted:
        found = parse(wire.TokenRequest, parameters.of_body(request))
        counted.who = who = client_authentication.presented(request, found.client_id, found.client_secret)
        client = await _authenticated(request, who)
        issued = await _issued(request, found, client)
    prometheus.TOKENS.add(1, (prometheus.ISSUED,))
    seconds = int(access_tokens.LIFETIME.total_seconds())
    return Reply(wire.token_answer(issued, seconds), headers=NOT_KEPT)


@route(
    "POST",
    "/oauth/revoke",
    needs=Access.PUBLIC,
    multipart=True,
    media=FORM,
    also_media=(JSON,),
    body=wire.RevocationRequest,
    limit=LARGEST,
    problems=(400, 401, 429),
    shared=True,
    failures=FAILURES,
    summary="Revoke a grant by its refresh token (RFC 7009)",
)
async def revoke(request: Request) -> Reply[OctetsAnswer]:
    async with FailureLimiter(request) as counted:
        found = parse(wire.RevocationRequest, parameters.of_body(request))
        counted.who = who = client_authentication.presented(request, found.client_id, found.client_secret)
        client = await _authenticated(request, who)
        if found.token_type_hint == ACCESS_TOKEN:
            raise InvalidRequest("token_type_hint: access tokens cannot be revoked; revoke the refresh token")
        refresh_token = need("token", found.token)
        await request.use(Tokens).revoke(request.at, client, program_of(request), refresh_token)
    return Reply(b"", headers=NOT_KEPT)


async def _authenticated(request: Request, who: ClientCredentials) -> Client | DescribedClient:
    client = await client_authentication.authenticated(request.use(asyncpg.Pool), who)
    if isinstance(client, DescribedClient) and not request.use(Documents).permits(client.id):
        raise who.refused()
    return client


async def _issued(
    request: Request, asked: wire.TokenRequest, client: Client | DescribedClient
) -> IssuedTokens:
    grant_type = need("grant_type", asked.grant_type)
    if grant_type not in GRANT_TYPES:
        raise UnsupportedGrantType(f"grant_type: must be {AUTHORIZATION_CODE} or {REFRESH_TOKEN}")
    if isinstance(client, Client) and grant_type not in client.grant_types:
        raise UnauthorizedClient(f"the client is not registered for {grant_type}")
    tokens, who = request.use(Tokens), program_of(request)
    if grant_type == REFRESH_TOKEN:
        presented = need("refresh_token", asked.refresh_token)
        return await tokens.refresh(request.at, client, who, token=presented, scope=asked.scope)
    code, uri = need("code", asked.code), need("redirect_uri", asked.redirect_uri)
    verifier = need("code_verifier", asked.code_verifier)
    return await tokens.exchange(request.at, client, who, code=code, redirect_uri=uri, verifier=verifier)


class FailureLimiter:
    """Counts failures of a program and of an address. Whoever fails too often is told so instead of why; what
    succeeds does so for everybody, however often others fail in a program's name."""

    def __init__(self, request: Request, failures: Counter | None = None) -> None:
        self._failures = failures
        self._limits = request.use(SharedLimits)
        self._address = client_of(request.client)
        self.who: ClientCredentials | None = None

    async def __aenter__(self) -> FailureLimiter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, _: object
    ) -> None:
        if not isinstance(failure, OAuthProblem):
            return
        if self._failures is not None:
            self._failures.add(1, (failure.name,))
        # The address first: who is refused for it cannot have rows counted of names that it makes up.
        keys = [f"oauth failures at {client_of(self._address)}"]
        if self.who is not None:
            keys.append(f"oauth failures of {self.who.client_id}")
        for key in keys:
            taken = await self._limits.take(key_for(key), MOST_FAILURES, MINUTE)
            if not taken.allowed:
                raise TooManyRequests(taken.reset) from None
