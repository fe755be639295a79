"""The operator's policy about logins by OpenID Connect; pages ask it what to show."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from pillarbox.kernel.settings.settings import Settings
from pillarbox.people.roles import TeamRole
from pillarbox.people.settings import OIDC_DOMAINS, OIDC_ISSUER, OIDC_NAME, OIDC_ONLY, OIDC_ROLE, OIDC_TEAM


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIdPolicy:
    """The operator's policy. `issuer` is None where people log in without a provider. `domains` are those
    whose people come in without an invitation, as members of `team` (an id; None: the only one) with
    `role`."""

    issuer: str | None
    name: str
    is_only: bool
    domains: Collection[str]
    team: str | None
    role: TeamRole

    @classmethod
    def of(cls, settings: Settings) -> OpenIdPolicy:
        """Return the policy of the settings."""
        issuer = settings[OIDC_ISSUER]
        return cls(
            issuer=issuer,
            name=settings[OIDC_NAME] or urlsplit(issuer or "").hostname or "",
            is_only=issuer is not None and settings[OIDC_ONLY],
            domains=settings[OIDC_DOMAINS],
            team=settings[OIDC_TEAM],
            role=TeamRole(settings[OIDC_ROLE]),
        )
