"""The page that asks the browser for a passkey: the only one that needs a script."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg

from pillarbox.dashboard.people.page_visits import PageGuest, draw, message_page
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.factors.passkeys import PasskeyChallenge, Passkeys
from pillarbox.people.visitors import Visitor

MAKE = "make"


def passkey_page(
    request: Request,
    visitor: Visitor | PageGuest,
    asked: PasskeyChallenge,
    kind: str,
    action: str,
    back: str,
    to: str | None = None,
) -> Reply[Html]:
    """Show a form to `action`, which the script fills in and sends. `kind` is `login` or `confirm`."""
    values = passkey_values(request, asked, kind, action, back, to)
    title = t(f"passkey.{kind}.title")
    return draw("people/passkey.html", visitor=visitor, has_scripts=True, title=title, **values)


def passkey_values(
    request: Request, asked: PasskeyChallenge, kind: str, action: str, back: str, to: str | None = None
) -> dict[str, Any]:
    """Return what a page with the form for a passkey shows."""
    return {
        "asked": asked,
        "kind": kind,
        "action": action,
        "back": back,
        "to": to,
        "submit": t("passkey.make.submit" if kind == MAKE else "passkey.submit"),
        "url": request.use(Passkeys).origin,
    }


async def has_passkeys(request: Request, person_id: UUID) -> bool:
    """Return whether the person can prove by a passkey who they are."""
    if not request.use(Passkeys).are_possible:
        return False
    return await Passkeys.are_there(request.use(asyncpg.Pool), person_id)


def impossible() -> Reply[Html]:
    """Return the 409: browsers allow no passkeys where this installation is."""
    return message_page(
        t("passkey.login.title"), t("passkey.impossible"), status=409, link=("/", t("passkey.back"))
    )
