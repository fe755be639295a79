"""Parts of an examination of a running installation: the world outside, its listeners, and its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pillarbox.doctor.checks import Check, is_healthy
from pillarbox.doctor.outside import OutsideWorld, Tcp, ours
from pillarbox.doctor.smarthost import Smarthost
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.network.dns import DnsResolver
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.listeners import HTTP, LMTP, SMTP, submission_names
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.settings.kinds import HostPort
from pillarbox.kernel.settings.settings import Settings
from pillarbox.people.openid.provider import Provider
from pillarbox.people.settings import OIDC_ISSUER


def outside_of(settings: Settings) -> OutsideWorld:
    """Return the real world, as far as the settings let it in."""
    clock = SystemClock()
    servers = [(at.host, at.port) for at in settings.dns] or None
    dns = UncachedResolver(servers, clock, allowed=settings.allow_private)
    provider = None
    if settings[OIDC_ISSUER] is not None:
        addresses = DnsAddresses(DnsResolver(servers, clock=clock))
        provider = Provider.of(settings, addresses, Outbound(addresses, settings.allow_private))
    return OutsideWorld(
        dns=dns,
        clock=clock,
        connect=Tcp(),
        is_ours=ours,
        open_session=Smarthost(settings.hostname),
        provider=provider,
    )


def listeners_of(settings: Settings, names: Sequence[str]) -> Mapping[str, HostPort]:
    """Return the addresses of the listeners that the running server opened."""
    submission = [listener.at for listener in settings.submission]
    places: dict[str, HostPort | None] = {
        HTTP: settings.http,
        SMTP: settings.smtp,
        LMTP: settings.lmtp,
    }
    places |= dict(zip(submission_names(settings.submission), submission, strict=True))
    return {name: at for name in names if (at := places.get(name)) is not None}


def document(name: str | None, checks: Sequence[Check]) -> dict[str, object]:
    """Return the result as `pillarbox doctor --json` prints it."""
    return {
        "object": "examination",
        "healthy": is_healthy(checks),
        "domain": name,
        "checks": [msgspec.to_builtins(check) for check in checks],
    }
