"""A domain with an MTA-STS policy: its records, its HTTPS server, its mail server's certificate.

async with published(zone, policy("enforce", "mx.quay.example")) as site:
    site.port, site.requests
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kit.http_outside import Handler, Server, answer, serving
from kit.smtp_sink import TlsAuthority
from kit.zone import Zone

DOMAIN = "quay.example"
ZONE = f"""
{DOMAIN} MX 10 mx.{DOMAIN}
mx.{DOMAIN} A 127.0.0.1
mta-sts.{DOMAIN} A 127.0.0.1
_mta-sts.{DOMAIN} TXT "v=STSv1; id=one"
"""


def policy(mode: str, *hosts: str, max_age: int = 86400) -> bytes:
    """Return a policy with its lines in the usual order."""
    lines = ["version: STSv1", f"mode: {mode}", *[f"mx: {host}" for host in hosts], f"max_age: {max_age}"]
    return "\r\n".join([*lines, ""]).encode()


def document(body: bytes, *, status: str = "200 OK", media: str = "text/plain") -> bytes:
    """Return the HTTP answer with a policy."""
    return answer(body, f"Content-Type: {media}", status=status)


def renamed(zone: Zone, id: str) -> None:
    """Announce another policy."""
    zone.remove(f"_mta-sts.{DOMAIN}", "TXT")
    zone.add(f"_mta-sts.{DOMAIN}", "TXT", f'"v=STSv1; id={id}"')


@asynccontextmanager
async def published(
    *answers: bytes | Handler, authority: TlsAuthority | None = None
) -> AsyncIterator[tuple[Server, TlsAuthority]]:
    """Yield the HTTPS server of the policy, and the authority of its certificate."""
    made = authority or TlsAuthority(f"mta-sts.{DOMAIN}", f"mx.{DOMAIN}")
    async with serving(*answers, tls=made.server) as server:
        yield server, made
