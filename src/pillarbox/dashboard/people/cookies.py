"""Cookies of pages: what they are called, and how they are set, read and taken away."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pillarbox.kernel.http.request import Request
from pillarbox.people.sessions import LONGEST

SESSION: Final = "__Host-pillarbox"
FORM_COOKIE: Final = "__Host-pillarbox-form"
LANGUAGE_COOKIE: Final = "pillarbox-language"
ZONE_COOKIE: Final = "pillarbox-zone"
"""Set by the person and by the script of the screens: how times and texts are shown, nothing more."""

SETTINGS: Final = "Path=/; Secure; HttpOnly; SameSite=Lax"


def cookie(request: Request, name: str = SESSION) -> str | None:
    """Return the value of one of our cookies; None where there is none, or two."""
    pairs = (pair.strip().partition("=") for pair in (request.header("cookie") or "").split(";"))
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else None


def session_cookie(token: str) -> str:
    """Return the Set-Cookie value of a session."""
    return set_cookie(SESSION, token, LONGEST)


def no_session_cookie() -> str:
    """Return the Set-Cookie value that takes the session's cookie away."""
    return no_cookie(SESSION)


def form_cookie(token: str) -> str:
    """Return the Set-Cookie value of what the forms of a guest belong to; it ends with the browser."""
    return f"{FORM_COOKIE}={token}; {SETTINGS}"


def set_cookie(name: str, value: str, lasts: timedelta) -> str:
    """Return the Set-Cookie value of a cookie that ends by itself."""
    return f"{name}={value}; Max-Age={int(lasts.total_seconds())}; {SETTINGS}"


def no_cookie(name: str) -> str:
    """Return the Set-Cookie value that takes a cookie away."""
    return f"{name}=; Max-Age=0; {SETTINGS}"
