"""An OpenID Connect provider on loopback: Authlib's authorization server behind real sockets.

async with openid_world(database_url, folder) as (pillarbox, provider):
    browser = visit(pillarbox)
    provider.user = {"sub": "ada", "email": "ada@quay.example", "email_verified": True}
    answer = await goes_through(browser, provider)

The provider issues codes, checks PKCE and the client, and signs ID tokens. A test changes `user`, `alter` (of
claims), `sign` (of tokens), `discovery`, `keys`, or the `answers` of a path.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import httpx
from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request, grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import RSAKey

from kit.people import Visit
from kit.smtp_sink import TlsAuthority
from kit.world import World, world
from kit.zone import Zone
from pillarbox.kernel.clock import Clock

HOST = "id.quay.example"
CLIENT_ID = "pillarbox-harbor"
SECRET = "tide-table-of-1712"
CALLBACK = "/login/openid/callback"
NAME = "Quay Login"

Claims = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]


@dataclass(slots=True)
class Client:
    """Pillarbox, as the provider has registered it."""

    redirect_uri: str
    client_id: str = CLIENT_ID
    methods: tuple[str, ...] = ("client_secret_basic",)
    id_token_signed_response_alg: str = "RS256"

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, _: str) -> bool:
        return method in self.methods

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass(slots=True)
class Code:
    """A code that was issued, and for what."""

    code: str
    redirect_uri: str
    scope: str
    nonce: str | None
    user: Claims
    code_challenge: str | None
    code_challenge_method: str | None
    auth_time: int

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return self.auth_time

    def get_acr(self) -> str | None:
        return None

    def get_amr(self) -> list[str] | None:
        return None


class HttpRequest(OAuth2Request):
    """A request as Authlib reads it."""

    def __init__(self, method: str, target: str, headers: dict[str, str], fields: dict[str, str]) -> None:
        super().__init__(method, f"https://{HOST}{target}", headers=headers)
        self._fields = fields
        self.payload = BasicOAuth2Payload(fields)

    @property
    def args(self) -> dict[str, str]:
        return self._fields

    @property
    def form(self) -> dict[str, str]:
        return self._fields


class Server(AuthorizationServer):
    """Authlib's server without a framework."""

    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__(scopes_supported=["openid", "email", "profile"])
        self.provider = provider
        self.register_token_generator("default", BearerTokenGenerator(lambda *_, **__: "access-of-a-user"))

    def query_client(self, client_id: str) -> Client | None:
        client = self.provider.client
        return client if client_id == client.client_id else None

    def save_token(self, token: Any, request: Any) -> None:
        self.provider.issued += 1

    def send_signal(self, *_: Any, **__: Any) -> None:
        return None

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> Answer:
        octets = json.dumps(body).encode() if isinstance(body, dict) else (body or "").encode()
        return status, dict(headers), octets


class CodeGrant(grants.AuthorizationCodeGrant):
    """Codes that count once."""

    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = ["client_secret_basic", "client_secret_post"]

    def save_authorization_code(self, code: str, request: Any) -> None:
        asked, provider = request.payload.data, self.server.provider
        provider.nonces.add(asked.get("nonce"))
        provider.codes[code] = Code(
            code=code,
            redirect_uri=asked["redirect_uri"],
            scope=request.scope,
            nonce=asked.get("nonce"),
            user=request.user,
            code_challenge=asked.get("code_challenge"),
            code_challenge_method=asked.get("code_challenge_method"),
            auth_time=provider.authenticated_at or provider.now(),
        )

    def query_authorization_code(self, code: str, client: Any) -> Code | None:
        return self.server.provider.codes.get(code)

    def delete_authorization_code(self, authorization_code: Code) -> None:
        self.server.provider.codes.pop(authorization_code.code, None)

    def authenticate_user(self, authorization_code: Code) -> Claims:
        return authorization_code.user


class IdTokens(OpenIDCode):
    """ID tokens of the provider, which a test may alter before they are signed."""

    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__(require_nonce=True)
        self.provider = provider

    def exists_nonce(self, nonce: str, request: Any) -> bool:
        return nonce in self.provider.nonces

    def resolve_client_private_key(self, client: Client) -> RSAKey:
        return self.provider.keys[0]

    def get_client_claims(self, client: Client) -> Claims:
        return {"iss": self.provider.issuer, "aud": client.client_id}

    def get_encode_header(self, client: Client) -> dict[str, Any]:
        return {"alg": client.id_token_signed_response_alg, "kid": self.provider.keys[0].kid}

    def generate_user_info(self, user: Claims, scope: str) -> UserInfo:
        left_out = self.provider.left_out
        return UserInfo({name: value for name, value in user.items() if name not in left_out})

    def get_compatible_claims(self, request: Any) -> Claims:
        now = self.provider.now()
        return {**super().get_compatible_claims(request), "iat": now, "exp": now + 3600}

    def encode_id_token(self, token: Any, request: Any) -> str:
        made = super().encode_id_token(token, request)
        header, claims = (json.loads(_decoded(part)) for part in made.split(".")[:2])
        return self.provider.sign(header, self.provider.alter(claims))


@dataclass(slots=True)
class OpenIdProvider:
    """The provider, its only client, and who is logged in there."""

    issuer: str = ""
    port: int = 0
    client: Client = field(default_factory=lambda: Client(""))
    user: Claims | None = None
    codes: dict[str, Code] = field(default_factory=dict)
    nonces: set[str] = field(default_factory=set)
    keys: list[RSAKey] = field(default_factory=lambda: [new_key("first")])
    discovery: Claims = field(default_factory=dict)
    """Members that the discovery document has in place of the right ones; None leaves one out."""

    answers: dict[str, bytes | None] = field(default_factory=dict)
    """Answers of paths in place of the right ones; with None the server never answers."""

    alter: Callable[[Claims], Claims] = field(default=lambda claims: claims)
    sign: Callable[[Claims, Claims], str] = field(default=None)  # type: ignore[arg-type]
    left_out: frozenset[str] = frozenset()
    authenticated_at: int | None = None
    now: Callable[[], int] = field(default=lambda: int(time.time()))
    asks_first: bool = False
    """Whether somebody who is logged in sees a page of the provider before they are sent back."""

    requests: list[str] = field(default_factory=list)
    issued: int = 0
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Server(self)
        self.server.register_grant(CodeGrant, [IdTokens(self), CodeChallenge(required=True)])
        if self.sign is None:
            self.sign = self.signed

    def signed(self, header: Claims, claims: Claims) -> str:
        """Return a token signed by the first key."""
        return jwt.encode(header, claims, self.keys[0], [header["alg"]])

    def document(self) -> Claims:
        """Return the discovery document."""
        right: Claims = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        found = right | self.discovery
        return {name: value for name, value in found.items() if value is not None}

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer a request, as a provider does."""
        parts = urlsplit(target)
        pairs = dict(parse_qsl(parts.query if method == "GET" else body.decode()))
        if parts.path == "/.well-known/openid-configuration":
            return _json(self.document())
        if parts.path == "/keys":
            return _json({"keys": [key.as_dict(private=False) for key in self.keys]})
        if parts.path == "/userinfo":
            is_right = headers.get("authorization") == "Bearer access-of-a-user"
            return _json(self.user or {}) if is_right else (401, {}, b"")
        named = {"Authorization": headers["authorization"]} if "authorization" in headers else {}
        request = HttpRequest(method, target, named, pairs)
        if parts.path == "/authorize":
            return self._authorized(request)
        if parts.path == "/token":
            return self.server.create_token_response(request)
        return 404, {}, b""

    def _authorized(self, request: HttpRequest) -> Answer:
        grant = self.server.get_consent_grant(request, end_user=self.user)
        sent: Answer = self.server.create_authorization_response(request, grant_user=self.user, grant=grant)
        if not self.asks_first:
            return sent
        link = f'<a href="{escape(sent[1]["Location"])}">Go on</a>'
        page = f"<!doctype html><title>Quay</title><h1>Quay</h1>{link}"
        return 200, {"Content-Type": "text/html"}, page.encode()

    def sends_back(self, location: str) -> str:
        """Return the path of Pillarbox, with the code, to which the provider sends a browser back."""
        assert location.startswith(self.document()["authorization_endpoint"]), location
        status, headers, body = self.answer("GET", location.removeprefix(self.issuer), {}, b"")
        assert status == 302, (status, body)
        parts = urlsplit(headers["Location"])
        return f"{parts.path}?{parts.query}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of one connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            method, target, _ = lines[0].split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = target.partition("?")[0]
            self.requests.append(path)
            if path in self.answers:
                given = self.answers[path]
                if given is None:
                    await reader.read()
                else:
                    writer.write(given)
            else:
                writer.write(_octets(*self.answer(method, target, headers, body)))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def _decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _json(body: Claims) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


def _octets(status: int, headers: dict[str, str], body: bytes) -> bytes:
    fields = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {status} Answer", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def serving_provider(
    tls: ssl.SSLContext | None = None, host: str = HOST
) -> AsyncIterator[OpenIdProvider]:
    """Serve a provider on loopback; with `tls` under HTTPS."""
    provider = OpenIdProvider()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(provider.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    provider.port = server.sockets[0].getsockname()[1]
    provider.issuer = f"{'https' if tls else 'http'}://{host}:{provider.port}"
    try:
        yield provider
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def openid_world(
    database_url: str, folder: Path, *, clock: Clock | None = None, **settings: str
) -> AsyncIterator[tuple[World, OpenIdProvider]]:
    """Serve a Pillarbox whose people may log in at a provider on the operator's own network."""
    authority, zone = TlsAuthority(HOST), Zone(f"{HOST} A 127.0.0.1")
    async with serving_provider(authority.server) as provider:
        given = {**provider_settings(provider), **settings}
        async with world(
            database_url, folder, started=False, zone=zone, clock=clock, trust=authority.trust(), **given
        ) as pillarbox:
            provider.client.redirect_uri = f"{pillarbox.url}{CALLBACK}"
            yield pillarbox, provider


def provider_settings(provider: OpenIdProvider) -> dict[str, str]:
    """Return the settings that name the provider."""
    return {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": SECRET,
        "oidc_name": NAME,
    }


def user(name: str, *, verified: bool = True, **claims: Any) -> Claims:
    """Return the claims of somebody at the provider."""
    said = {"sub": f"sub-of-{name}", "email": f"{name}@quay.example", "email_verified": verified}
    return {**said, "name": name.title(), **claims}


async def sent_to_provider(browser: Visit, path: str = "/login/openid") -> str:
    """Return the address at the provider to which the browser is sent."""
    answer = await browser.get(path)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def goes_through(
    browser: Visit, provider: OpenIdProvider, somebody: Claims | None = None, path: str = "/login/openid"
) -> httpx.Response:
    """Send the browser to the provider, where somebody is logged in, and back; return the last answer."""
    provider.user = somebody or provider.user
    return await browser.get(provider.sends_back(await sent_to_provider(browser, path)))
