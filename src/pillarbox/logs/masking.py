"""Masks the parts of a body that are not written down (logs.md section 3)."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

MASK: Final = "[redacted]"

SECRETS: Final = frozenset(("token", "signing_secret", "client_secret", "access_token", "refresh_token"))
LINKS: Final = frozenset(("download_url",))
"""Links that are a credential from end to end."""
ATTACHED, CONTENT = "attachments", "content"
CONTAINERS: Final = (dict, list)
SHARED: Final = "url"
"""A link whose query is the credential."""

_SUSPECT = re.compile(
    rb'"(?:' + "|".join(sorted(SECRETS | LINKS)).encode() + rb')"|"' + SHARED.encode() + rb'":"[^"]*\?'
)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def masked_response(body: bytes) -> bytes:
    """Return the body of an answer without its secrets; the very same bytes where it has none."""
    if _SUSPECT.search(body) is None:
        return body
    return _encode(_masked(_decode(body)))


def masked_request(body: Any, *, well_formed: bool) -> Any:
    """Return the parsed body of a request without what it attaches. What was given is not changed; strings
    stay the very same. In one that was refused (not `well_formed`) they may stand anywhere."""
    if not well_formed:
        body = _without_files(body)
    if isinstance(body, dict):
        return _without_secrets(body)
    if isinstance(body, list):
        return [_without_secrets(item) if isinstance(item, dict) else item for item in body]
    return body


def _without_secrets(body: dict[str, Any]) -> dict[str, Any]:
    attached = body.get(ATTACHED)
    if attached is not None:
        body = {**body, ATTACHED: _without_content(attached)}
    if not SECRETS.isdisjoint(body):
        body = {
            name: MASK if name in SECRETS and value is not None else value for name, value in body.items()
        }
    return body


def _without_files(value: Any) -> Any:
    if type(value) is dict:
        return {
            name: member
            if type(member) not in CONTAINERS
            else _without_content(member)
            if name == ATTACHED
            else _without_files(member)
            for name, member in value.items()
        }
    return [_without_files(item) for item in value] if type(value) is list else value


def _without_content(attached: Any) -> Any:
    """Return what stands under `attachments` without content: an array of objects, if all is well."""
    if type(attached) is list:
        return [_without_content(item) for item in attached]
    if type(attached) is dict:
        return {
            name: MASK if name == CONTENT and value is not None else value for name, value in attached.items()
        }
    return attached


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, dict):
        return {name: _masked_member(name, member) for name, member in value.items()}
    return value


def _masked_member(name: str, value: Any) -> Any:
    if value is not None and (name in SECRETS or name in LINKS):
        return MASK
    if name == SHARED and isinstance(value, str) and "?" in value:
        return value[: value.index("?") + 1] + MASK
    return _masked(value)
