"""What the doctor says of the provider at which people log in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from kit.openid_provider import HOST, OpenIdProvider, provider_settings, serving_provider
from kit.smtp_sink import TlsAuthority
from kit.world import world
from kit.zone import Zone
from pillarbox.app import SETTINGS
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.login_provider import login_provider, login_team
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.settings.settings import settings_of
from pillarbox.people.openid.provider import Provider

NOW = datetime(2026, 11, 24, tzinfo=UTC)


@asynccontextmanager
async def served() -> AsyncIterator[tuple[OpenIdProvider, TlsAuthority]]:
    authority = TlsAuthority(HOST)
    async with serving_provider(authority.server) as provider:
        yield provider, authority


async def checked(provider: OpenIdProvider, authority: TlsAuthority) -> list[Check]:
    settings = settings_of(provider_settings(provider), SETTINGS)
    addresses = DnsAddresses(Zone(f"{HOST} A 127.0.0.1"))
    asked = Provider.of(settings, addresses, Outbound(addresses), trust=authority.trust())
    return await login_provider(settings, asked, NOW)


async def test_a_provider_that_answers_is_fine() -> None:
    async with served() as (provider, authority):
        [check] = await checked(provider, authority)
        assert (check.name, check.level, check.found) == ("login_provider", Level.OK, "keys: 1")


async def test_what_is_wrong_with_a_provider_is_said() -> None:
    async with served() as (provider, authority):
        provider.discovery = {"issuer": f"{provider.issuer}/"}
        [check] = await checked(provider, authority)
        assert (check.name, check.level) == ("login_provider.answer", Level.PROBLEM)
        assert check.found.endswith(f"calls itself {provider.issuer}/")
        provider.discovery = {}
        provider.keys = []
        [check] = await checked(provider, authority)
        assert check.name == "login_provider.keys"
        provider.answers = {"/keys": b""}
        [check] = await checked(provider, authority)
        assert check.name == "login_provider.unreachable"


async def test_without_a_provider_there_is_no_check() -> None:
    assert await login_provider(settings_of({}, SETTINGS), None, NOW) == []


async def test_people_of_a_domain_without_a_team_are_a_problem(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:

        async def found(**more: str) -> list[str]:
            given = {"oidc_issuer": "https://id.quay.example", "oidc_domains": "quay.example", **more}
            return [check.name for check in await login_team(settings_of(given, SETTINGS), pillarbox.pool)]

        assert await found() == ["login_provider.no_team"]
        harbor = await pillarbox.team()
        assert await found() == []
        await pillarbox.team("Pier")
        assert await found() == ["login_provider.no_team"]
        assert await found(oidc_team=str(harbor.id)) == []
        assert await found(oidc_domains="none") == []
