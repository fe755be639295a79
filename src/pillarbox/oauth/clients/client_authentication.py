"""Which program sends a request, proved by the one method that it registered (RFC 6749, 2.3; oauth.md 6)."""

from __future__ import annotations

import hmac
from base64 import b64decode
from typing import NamedTuple
from urllib.parse import unquote_plus

from pillarbox.kernel.http.request import Request
from pillarbox.kernel.postgres.database import Source
from pillarbox.oauth.clients import clients
from pillarbox.oauth.clients.clients import BASIC, NONE, POST, Client
from pillarbox.oauth.failures import InvalidClient, InvalidRequest


class ClientCredentials(NamedTuple):
    """The credentials in a request of a program. `method` is what it used; a secret that is empty is none."""

    client_id: str
    secret: str | None
    method: str

    def refused(self, message: str = "the client is unknown or did not authenticate") -> InvalidClient:
        return InvalidClient(message, with_basic=self.method == BASIC)


class DescribedClient(NamedTuple):
    """A program that a document describes: what it may do stands with its grants."""

    id: str


def presented(request: Request, named: str | None, secret: str | None) -> ClientCredentials:
    """Return the client's credentials in the parameters or the header; raises InvalidRequest and
    InvalidClient."""
    authorization = request.header("authorization")
    if authorization is not None:
        client_id, password = _basic(authorization)
        if secret is not None:
            raise InvalidRequest("only one way of client authentication may be used")
        if named is not None and named != client_id:
            raise InvalidClient("client_id: is not the one of the Authorization header", with_basic=True)
        return ClientCredentials(client_id, password or None, BASIC)
    if named is None:
        raise InvalidRequest("client_id: is missing")
    return ClientCredentials(named, secret, NONE if secret is None else POST)


async def authenticated(source: Source, who: ClientCredentials) -> Client | DescribedClient:
    """Return the program, where it proves who it is; raises InvalidClient."""
    if clients.is_document_url(who.client_id):
        if who.secret is not None:
            raise who.refused()
        return DescribedClient(who.client_id)
    found = await clients.registered(source, who.client_id)
    if found is None or not _proves(who, found):
        raise who.refused()
    return found


def _proves(who: ClientCredentials, client: Client) -> bool:
    if client.auth_method == NONE:
        return who.secret is None
    if who.method != client.auth_method or who.secret is None or client.secret_hash is None:
        return False
    return hmac.compare_digest(clients.hashed(who.secret), client.secret_hash)


def _basic(authorization: str) -> tuple[str, str]:
    """Return the two parts of Basic authentication, form-decoded (RFC 6749, 2.3.1)."""
    scheme, _, encoded = authorization.strip().partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError
        client_id, separator, secret = (
            b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
        )
        client_id, secret = (unquote_plus(part, errors="strict") for part in (client_id, secret))
    except ValueError:
        raise InvalidClient("the Authorization header cannot be read", with_basic=True) from None
    if not separator or not client_id:
        raise InvalidClient("the Authorization header names no client", with_basic=True)
    return client_id, secret
