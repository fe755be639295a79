"""The cookie of a browser that is known to be somebody's."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.dashboard.people.cookies import cookie, set_cookie
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.known_devices import LASTS, RENEWED_AFTER, KnownDevices

DEVICE: Final = "__Host-pillarbox-device"

BESIDE: Final = "Set-Cookie"
"""A second line of the header: an answer may set another cookie under the name in small letters."""


def with_device(request: Request, reply: Reply[Html], person_id: UUID, device_id: UUID) -> Reply[Html]:
    """Return the answer, which makes the browser a known one of the person unless it is one already."""
    devices = request.use(KnownDevices)
    known = devices.find(request.at, person_id, cookie(request, DEVICE))
    if known is not None and request.at - known.since < RENEWED_AFTER:
        return reply
    token = devices.token(request.at, person_id, known.id if known else device_id)
    reply.headers[BESIDE] = set_cookie(DEVICE, token, LASTS)
    return reply
