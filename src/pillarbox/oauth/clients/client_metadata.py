"""Reads the metadata of programs, from their registration and their documents (RFC 7591, 2). Pure.

Each field is a function that gives the value or raises InvalidRequest with the name of the field. Null and
nothing are the matter of who asks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.oauth.clients import redirects
from pillarbox.oauth.clients.clients import AUTHORIZATION_CODE, GRANT_TYPES
from pillarbox.oauth.failures import InvalidRequest

LONGEST_NAME: Final = 200
LONGEST_URL: Final = 2048
CODE: Final = "code"
SEEN: Final = "LNPS"
"""Letters, numbers, punctuation and symbols: a name of none of them is an empty place on a page."""


def name_of(name: object, field: str) -> str:
    """Return the name, trimmed."""
    if not isinstance(name, str) or not 1 <= len(trimmed := name.strip()) <= LONGEST_NAME:
        raise InvalidRequest(f"{field}: must be a text of 1 to {LONGEST_NAME} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in trimmed):
        raise InvalidRequest(f"{field}: must not have control characters")
    if not any(unicodedata.category(character)[0] in SEEN for character in trimmed):
        raise InvalidRequest(f"{field}: must have characters that can be seen")
    return trimmed


def needed(value: object, field: str) -> object:
    """Return the value; InvalidRequest where there is none."""
    if value is None:
        raise InvalidRequest(f"{field}: is missing")
    return value


def listed_redirects(value: object, field: str) -> tuple[str, ...]:
    """Return the redirect URIs, each once, before `refuse_redirects`."""
    found = _texts(needed(value, field), field)
    if not 1 <= len(found) <= redirects.MOST:
        raise InvalidRequest(f"{field}: must be a list of 1 to {redirects.MOST} URIs")
    return tuple(dict.fromkeys(found))


def refuse_redirects(uris: Sequence[str]) -> None:
    """Raise InvalidRequest for the first one that no program may have."""
    for number, uri in enumerate(uris):
        reason = redirects.refusal(uri)
        if reason is not None:
            raise InvalidRequest(f"redirect_uris[{number}]: {reason}")


def grant_types_of(value: object, field: str) -> tuple[str, ...]:
    found = _texts(value, field)
    if AUTHORIZATION_CODE not in found or any(name not in GRANT_TYPES for name in found):
        raise InvalidRequest(f"{field}: must have authorization_code, and may have refresh_token")
    return tuple(dict.fromkeys(found))


def response_types_of(value: object, field: str) -> tuple[str, ...]:
    found = _texts(value, field)
    if not found or any(name != CODE for name in found):
        raise InvalidRequest(f"{field}: only code is supported")
    return tuple(found)


def url_of(url: object, field: str, *schemes: str) -> str:
    """Return a URL as it was given."""
    expected = " or ".join(schemes)
    if not isinstance(url, str) or not is_url(url, *schemes):
        raise InvalidRequest(f"{field}: must be a URL of {expected} with at most {LONGEST_URL} characters")
    return url


def is_url(text: str, *schemes: str) -> bool:
    """Return whether a text is a URL of these schemes that can be fetched, without white space."""
    if len(text) > LONGEST_URL or any(character.isspace() for character in text):
        return False
    try:
        return parse_url(text).scheme in schemes
    except BadUrl:
        return False


def _texts(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(f"{field}: must be a list of texts")
    return value
