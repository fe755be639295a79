"""The page behind the link of a mail, its forms, and the one click of mail programs (topics.md 4).

A GET changes nothing: programs that look for dangerous links open every one. The token is the only authority,
so there are no cookies. Who asks too often is put off: 60 requests a minute for each address.
"""

from __future__ import annotations

from typing import Protocol

from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.security import link_tokens
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.unsubscribe.choices import Outcome, Preferences, Unsubscribing
from pillarbox.unsubscribe.forms import Action, submission

MOST_REQUESTS = 60
MINUTE = 60.0
FORM = "application/x-www-form-urlencoded"


class UnsubscribeScreens(Protocol):
    """Draws the pages; the dashboard gives it."""

    def preferences(self, shown: Preferences) -> Reply[Html]: ...

    def outcome(self, done: Outcome) -> Reply[Html]:
        """What a form has changed, and how to take it back."""
        ...

    def unknown(self) -> Reply[Html]: ...

    def not_understood(self) -> Reply[Html]: ...

    def too_many(self, seconds: int) -> Reply[Html]: ...


@route(
    "GET",
    "/unsubscribe/{token}",
    needs=Access.PUBLIC,
    pages=(404, 429),
    summary="Show a recipient what it gets",
)
async def show(request: Request) -> Reply[Html]:
    """The page behind the link of a mail."""
    screens = request.use(UnsubscribeScreens)  # type: ignore[type-abstract]
    if seconds := _pause(request):
        return screens.too_many(seconds)
    link = await link_tokens.read(request.param("token"), request.use(LinkKeys))
    if link is None:
        return screens.unknown()
    return screens.preferences(await request.use(Unsubscribing).preferences(link))


@route(
    "POST",
    "/unsubscribe/{token}",
    needs=Access.PUBLIC,
    multipart=True,
    media=FORM,
    pages=(400, 404, 429),
    summary="Unsubscribe, or choose what to get",
)
async def submit(request: Request) -> Reply[Html]:
    """A form of the page, or one click (RFC 8058); the latter is answered without a page."""
    screens = request.use(UnsubscribeScreens)  # type: ignore[type-abstract]
    if seconds := _pause(request):
        return screens.too_many(seconds)
    link = await link_tokens.read(request.param("token"), request.use(LinkKeys))
    if link is None:
        return screens.unknown()
    submitted = submission(bytes(request.raw), request.header("content-type") or "")
    if submitted is None:
        return screens.not_understood()
    unsubscribing = request.use(Unsubscribing)
    if submitted.action is Action.ONE_CLICK:
        await unsubscribing.click(link)
        return Reply.html("")
    return screens.outcome(await unsubscribing.submit(link, submitted))


def _pause(request: Request) -> int:
    """Count the request; how many seconds its sender has to wait, 0 where it is let in."""
    taken = request.use(Windows).take(key_for(f"unsubscribe {request.client}"), MOST_REQUESTS, MINUTE)
    return 0 if taken.allowed else taken.reset
