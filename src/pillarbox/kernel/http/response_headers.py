"""The headers of answers, as the OpenAPI document shows them (conventions sections 4, 7, 8 and 9)."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.security.authentication import Access

_COUNT = {"type": "integer", "minimum": 0}

REQUEST_ID = {
    "x-request-id": {
        "description": "Names this request; the id of its row in the log.",
        "required": True,
        "schema": {"type": "string", "format": "uuid"},
    }
}
RATE = {
    "ratelimit-limit": {"description": "Requests a second, where there is a limit.", "schema": _COUNT},
    "ratelimit-policy": {"schema": {"type": "string", "pattern": "^[0-9]+;w=1$"}},
    "ratelimit-remaining": {"schema": _COUNT},
    "ratelimit-reset": {"description": "Seconds to the next window.", "schema": _COUNT},
}
QUOTAS = {
    "x-resend-daily-quota": {"description": "Used today, where there is a quota.", "schema": _COUNT},
    "x-resend-monthly-quota": {"description": "Used this month, where there is a quota.", "schema": _COUNT},
}
RETRY_AFTER = {
    "retry-after": {
        "description": "Seconds to wait.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    }
}
CHALLENGE = {"www-authenticate": {"required": True, "schema": {"type": "string"}}}
REPLAYED = {
    "idempotent-replayed": {
        "description": "The answer that was given before under this key.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
ALLOWED_ORIGIN = {
    "access-control-allow-origin": {"required": True, "schema": {"type": "string", "const": "*"}}
}
PRAGMA = {"pragma": {"schema": {"type": "string", "const": "no-cache"}}}
BASIC = {"www-authenticate": {"schema": {"type": "string"}}}
LOCATION = {"location": {"required": True, "schema": {"type": "string"}}}
RANGE = {"content-range": {"required": True, "schema": {"type": "string"}}}

_OF_STATUS: dict[int, dict[str, Any]] = {
    206: RANGE,
    302: LOCATION,
    303: LOCATION,
    401: CHALLENGE,
    416: RANGE,
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}


ALL = {
    **ALLOWED_ORIGIN,
    **REQUEST_ID,
    **RATE,
    **QUOTAS,
    **RETRY_AFTER,
    **CHALLENGE,
    **REPLAYED,
    **LOCATION,
    **RANGE,
}


def of(entry: Route, status: int) -> dict[str, Any]:
    """Return the headers of a route's answer with this status; those that are not required may be missing."""
    found = {**REQUEST_ID, **_OF_STATUS.get(status, {})}
    if entry.needs is not Access.PUBLIC:
        found |= RATE | QUOTAS
    if entry.idempotent and status < 300:
        found |= REPLAYED
    if entry.shared:
        found |= ALLOWED_ORIGIN
    made: dict[str, Any] = {name: {"$ref": f"#/components/headers/{name}"} for name in found}
    if entry.failures is not None:
        made |= PRAGMA
    if entry.failures is not None and status == 401:
        made |= BASIC
    return made
