"""Can people log in at the OpenID Connect provider? Its documents are fetched as a login does."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.settings.settings import Settings
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.openid.provider import Provider
from pillarbox.people.settings import OIDC_ISSUER

NAME: Final = "login_provider"
TITLE: Final = "The provider lets people log in"
STEPS: Final = {
    OpenIdReason.UNREACHABLE: "Check `--oidc-issuer`, the provider, and the way there; endpoints on other "
    "private hosts need `--allow-private`.",
    OpenIdReason.ANSWER: "Write `--oidc-issuer` exactly as `issuer` in its discovery document.",
}


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
