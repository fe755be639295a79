"""Can people log in at the OpenID Connect provider, and which team do those of a named domain join?

The documents of the provider are fetched as a login does.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.settings.settings import Settings
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.openid.joined_team import joined_team
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.openid.provider import Provider
from pillarbox.people.settings import OIDC_ISSUER

NAME: Final = "login_provider"
TITLE: Final = "The provider lets people log in"
STEPS: Final = {
    OpenIdReason.UNREACHABLE: "Check `--oidc-issuer`, the provider, and the way there; endpoints on other "
    "private hosts need `--allow-private`.",
    OpenIdReason.ANSWER: "Write `--oidc-issuer` exactly as `issuer` in its discovery document.",
}


async def login_team(settings: Settings, source: Source) -> list[Check]:
    """Return the check of the team that people join by `--oidc-domains`; nothing where there is one, or
    nobody comes in by a domain."""
    policy = OpenIdPolicy.of(settings)
    if policy.issuer is None or not policy.domains or await joined_team(source, policy) is not None:
        return []
    found = "several teams, or none" if policy.team is None else f"no active team {policy.team}"
    return [
        Check(
            name=f"{NAME}.{OpenIdReason.NO_TEAM.value}",
            level=Level.PROBLEM,
            title="People of --oidc-domains have a team",
            found=found,
            expected="an active team: the one of `--oidc-team`, or the only one besides the demo's",
            step="Give `--oidc-team` the id of the team, which `pillarbox teams list` shows.",
        )
    ]


async def login_provider(settings: Settings, provider: Provider | None, now: datetime) -> list[Check]:
    """Return the check of the provider that the settings name; nothing where they name none."""
    issuer = settings[OIDC_ISSUER]
    if issuer is None or provider is None:
        return []
    expected = f"a discovery document of {issuer}, and keys for signatures"
    try:
        keys = await provider.examine(now)
    except OpenIdFailure as failure:
        return [
            Check(
                name=f"{NAME}.{failure.reason.value}",
                level=Level.PROBLEM,
                title=TITLE,
                found=failure.detail.removesuffix("."),
                expected=expected,
                step=STEPS.get(failure.reason),
            )
        ]
    if not keys:
        found, step = (
            "it has no key that can be used",
            "Ask whoever runs the provider for a key of RSA or EC.",
        )
        return [
            Check(
                name=f"{NAME}.keys",
                level=Level.PROBLEM,
                title=TITLE,
                found=found,
                expected=expected,
                step=step,
            )
        ]
    return [Check(name=NAME, level=Level.OK, title=TITLE, found=f"keys: {keys}", expected=expected)]
