"""What programs say about themselves, when they register and in their documents (RFC 7591, 2). Pure.

Each field is a function that gives the value or raises InvalidRequest with the name of the field.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.oauth.clients import redirects
from pillarbox.oauth.clients.clients import AUTHORIZATION_CODE, GRANT_TYPES
from pillarbox.oauth.failures import InvalidRequest

LONGEST_NAME: Final = 200
LONGEST_URL: Final = 2048
CODE: Final = "code"
SEEN: Final = "LNPS"
"""Letters, numbers, punctuation and symbols: a name of none of them is an empty place on a page."""

Metadata = Mapping[str, Any]


def name_of(metadata: Metadata) -> str | None:
    """The name, trimmed; None where none is given."""
    name = metadata.get("client_name")
    if name is None:
        return None
    if not isinstance(name, str) or not 1 <= len(trimmed := name.strip()) <= LONGEST_NAME:
        raise InvalidRequest(f"client_name: must be a text of 1 to {LONGEST_NAME} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in trimmed):
        raise InvalidRequest("client_name: must not have control characters")
    if not any(unicodedata.category(character)[0] in SEEN for character in trimmed):
        raise InvalidRequest("client_name: must have characters that can be seen")
    return trimmed


def listed_redirects(metadata: Metadata) -> tuple[str, ...]:
    """The redirect URIs, each once, before `refuse_redirects`."""
    found = _texts(metadata, "redirect_uris")
    if found is None:
        raise InvalidRequest("redirect_uris: is missing")
    if not 1 <= len(found) <= redirects.MOST:
        raise InvalidRequest(f"redirect_uris: must be a list of 1 to {redirects.MOST} URIs")
    return tuple(dict.fromkeys(found))


def refuse_redirects(uris: Sequence[str]) -> None:
    """Raise InvalidRequest for the first one that no program may have."""
    for number, uri in enumerate(uris):
        reason = redirects.refusal(uri)
        if reason is not None:
            raise InvalidRequest(f"redirect_uris[{number}]: {reason}")


def grant_types_of(metadata: Metadata) -> tuple[str, ...]:
    found = _texts(metadata, "grant_types")
    if found is None:
        return GRANT_TYPES
    if AUTHORIZATION_CODE not in found or any(name not in GRANT_TYPES for name in found):
        raise InvalidRequest("grant_types: must have authorization_code, and may have refresh_token")
    return tuple(dict.fromkeys(found))


def check_response_types(metadata: Metadata) -> None:
    found = _texts(metadata, "response_types")
    if found is not None and (not found or any(name != CODE for name in found)):
        raise InvalidRequest("response_types: only code is supported")


def url_of(metadata: Metadata, field: str, *schemes: str) -> str | None:
    """A URL as it was given; None where none is."""
    url = metadata.get(field)
    if url is None:
        return None
    expected = " or ".join(schemes)
    if not isinstance(url, str) or not is_url(url, *schemes):
        raise InvalidRequest(f"{field}: must be a URL of {expected} with at most {LONGEST_URL} characters")
    return url


def is_url(text: str, *schemes: str) -> bool:
    """Whether a text is a URL of these schemes that can be fetched, without white space."""
    if len(text) > LONGEST_URL or any(character.isspace() for character in text):
        return False
    try:
        return parse_url(text).scheme in schemes
    except BadUrl:
        return False


def _texts(metadata: Metadata, field: str) -> list[str] | None:
    found = metadata.get(field)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(value, str) for value in found):
        raise InvalidRequest(f"{field}: must be a list of texts")
    return found
