"""Sites of programs that describe themselves: HTTPS on loopback, under names of a zone.

async with program_site(database_url, folder, answers) as site:
    site.pillarbox, site.server.requests
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.clock import ManualClock
from kit.http_outside import Handler, Server, answer, serving
from kit.manual_world import manual_world
from kit.oauth_flow import REDIRECT
from kit.smtp_sink import TlsAuthority
from kit.world import World
from kit.zone import Zone

HOST = "quill.example"
URL = f"https://{HOST}/app"
RECORDS = f"""
{HOST} A 127.0.0.1
logos.{HOST} A 127.0.0.1
inner.{HOST} A 10.0.0.7
"""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@dataclass(slots=True)
class ProgramSite:
    """A Pillarbox, and the site that it fetches from."""

    pillarbox: World
    server: Server
    clock: ManualClock
    zone: Zone


def described(**fields: Any) -> dict[str, Any]:
    """Return a document that is right, with `fields` put in its place (None removes one)."""
    body = {"client_id": URL, "client_name": "Quill", "redirect_uris": [REDIRECT], **fields}
    return {name: value for name, value in body.items() if value is not None}


def document(
    body: bytes | None = None,
    *headers: str,
    status: str = "200 OK",
    media: str = "application/json",
    **fields: Any,
) -> bytes:
    """Return an HTTP answer with a document."""
    octets = json.dumps(described(**fields)).encode() if body is None else body
    return answer(octets, f"Content-Type: {media}", *headers, status=status)


@asynccontextmanager
async def program_site(
    database_url: str, folder: Path, *answers: bytes | Handler, **settings: str
) -> AsyncIterator[ProgramSite]:
    """Yield a Pillarbox that may fetch from loopback, and a site that answers so in turn."""
    authority, zone, clock = TlsAuthority(HOST, f"logos.{HOST}"), Zone(RECORDS), ManualClock()
    given = {"allow_private": "127.0.0.1/32", **settings}
    async with (
        serving(*answers, tls=authority.server) as server,
        manual_world(
            database_url,
            folder,
            clock,
            zone=zone,
            trust=authority.trust(),
            https_port=server.port,
            **given,
        ) as pillarbox,
    ):
        yield ProgramSite(pillarbox, server, clock, zone)
