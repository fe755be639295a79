"""The cookie that binds an authorization to the browser in which it began (oauth.md 5.1)."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.http.request import Request

NAME: Final = "__Host-pillarbox-authorize"


def browser_of(request: Request) -> str | None:
    """Return the value of the cookie; None where there is none, or two."""
    pairs = (pair.strip().partition("=") for pair in (request.header("cookie") or "").split(";"))
    found = [value for key, _, value in pairs if key == NAME]
    return found[0] if len(found) == 1 else None


def cookie(value: str) -> str:
    """Return the Set-Cookie value."""
    return f"{NAME}={value}; Path=/; Secure; HttpOnly; SameSite=Lax"
