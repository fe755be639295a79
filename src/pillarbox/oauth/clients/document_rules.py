"""Which URLs may describe a program, and what a document must say (client ID metadata documents; oauth.md 4).
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url
from pillarbox.kernel.wire.json_body import decode
from pillarbox.kernel.wire.problems import Problem
from pillarbox.oauth.clients import client_metadata
from pillarbox.oauth.clients.clients import DOCUMENT_PREFIX, GRANT_TYPES, NONE, Client
from pillarbox.oauth.failures import OAuthProblem, UnknownClient
from pillarbox.oauth.scopes import SUPPORTED, parsed

LONGEST_URL: Final = 2048
HTTPS_PORT: Final = 443

SHORTEST: Final = timedelta(seconds=60)
LONGEST: Final = timedelta(hours=24)
USUAL: Final = timedelta(seconds=300)

T = TypeVar("T")

_MEDIA = re.compile(r"application/json|[a-z0-9!#$&^_.-]+/[a-z0-9!#$&^_.-]+\+json", re.ASCII)
_AGE = re.compile(r'max-age\s*=\s*"?(\d{1,10})"?', re.ASCII)
_SECRETS = ("client_secret", "client_secret_expires_at")


def address_of(url: str) -> WebAddress:
    """Return the address of the document of a URL; UnknownClient where no document may be there."""
    if len(url) > LONGEST_URL or any(character.isspace() for character in url):
        raise UnknownClient("client_id: is not the URL of a document")
    try:
        parts, found = urlsplit(url), parse_url(url)
    except (ValueError, BadUrl):
        raise UnknownClient("client_id: is not the URL of a document") from None
    if not url.startswith(DOCUMENT_PREFIX) or not parts.path or "#" in url or "@" in parts.netloc:
        raise UnknownClient("client_id: must be an https URL with a path, and no fragment and no user")
    if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
        raise UnknownClient("client_id: must not have dot segments")
    if found.port != HTTPS_PORT:
        raise UnknownClient("client_id: must not name a port")
    return found


def is_json(media: str | None) -> bool:
    """Return whether a Content-Type is that of JSON, in UTF-8."""
    kind, _, parameters = (media or "").partition(";")
    charset = re.search(r'charset\s*=\s*"?([^";\s]+)', parameters, re.IGNORECASE)
    return _MEDIA.fullmatch(kind.strip().lower()) is not None and (
        charset is None or charset[1].lower() in ("utf-8", "utf8")
    )


def lifetime(cache_control: str | None) -> timedelta:
    """Return for how long a document may be used without fetching it again."""
    said = (cache_control or "").lower()
    if "no-store" in said or "no-cache" in said:
        return SHORTEST
    age = _AGE.search(said)
    return USUAL if age is None else min(max(timedelta(seconds=int(age[1])), SHORTEST), LONGEST)


def document_of(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; raises UnknownClient."""
    try:
        found = decode(body) if body else None
    except Problem:
        found = None
    if not isinstance(found, dict):
        raise UnknownClient("the document of the client is not a JSON object")
    return found


def described(url: str, host: str, document: Mapping[str, Any]) -> Client:
    """Return the program that a document describes; raises UnknownClient where it may not say that."""
    if document.get("client_id") != url:
        raise UnknownClient("the document of the client names another client_id")
    if any(name in document for name in _SECRETS):
        raise UnknownClient("the document of the client must not have a secret")
    if document.get("token_endpoint_auth_method", NONE) != NONE:
        raise UnknownClient("the document of the client must have the token_endpoint_auth_method none")
    try:
        uris = client_metadata.listed_redirects(document.get("redirect_uris"), "redirect_uris")
        client_metadata.refuse_redirects(uris)
        _given(document, "response_types", client_metadata.response_types_of)
        return Client(
            id=url,
            name=_given(document, "client_name", client_metadata.name_of) or host,
            redirect_uris=uris,
            grant_types=_given(document, "grant_types", client_metadata.grant_types_of) or GRANT_TYPES,
            auth_method=NONE,
            scopes=_scopes(document.get("scope")),
            client_uri=_url(document, "client_uri", "http", "https"),
            logo_uri=_url(document, "logo_uri", "https"),
            host=host,
        )
    except UnknownClient:
        raise
    except OAuthProblem as wrong:
        raise UnknownClient(f"the document of the client is wrong: {wrong.message}") from None


def _given(document: Mapping[str, Any], field: str, read: Callable[[object, str], T]) -> T | None:
    """Return the field's value as `read` parses it; None where it is absent or null."""
    value = document.get(field)
    return None if value is None else read(value, field)


def _scopes(text: object) -> tuple[str, ...]:
    """Return the supported ones of the scopes that the document names; UnknownClient where there are none."""
    if text is None:
        return SUPPORTED
    found = tuple(name for name in parsed(text) if name in SUPPORTED) if isinstance(text, str) else ()
    if not found:
        raise UnknownClient("the document of the client asks for no scope that is supported")
    return found


def _url(document: Mapping[str, Any], field: str, *schemes: str) -> str | None:
    """Return the text where it is a URL, else None: unimportant members of a document are not held against
    it."""
    url = document.get(field)
    return url if isinstance(url, str) and client_metadata.is_url(url, *schemes) else None
