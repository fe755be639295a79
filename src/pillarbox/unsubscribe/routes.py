"""The page behind the link of a mail, its forms, and the one click of mail programs (topics.md 4).

A GET changes nothing: programs that look for dangerous links open every one. The token is the only authority,
so there are no cookies. Who asks too often is put off: 60 requests a minute for each address.
"""

from __future__ import annotations

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.security import link_tokens
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.unsubscribe.choices import SubscriptionChoices
from pillarbox.unsubscribe.forms import UnsubscribeAction, submission
from pillarbox.unsubscribe.prometheus import REQUESTS
from pillarbox.unsubscribe.screens import UnsubscribeScreens

MOST_REQUESTS = 60
MINUTE = 60.0
FORM = "application/x-www-form-urlencoded"


@route(
    "GET",
    "/unsubscribe/{token}",
    needs=Access.PUBLIC,
    pages=(404, 429),
    summary="Show a recipient what it gets",
)
async def show(request: Request) -> Reply[Html]:
    """Show the page behind the link of a mail."""
    screens = request.use(UnsubscribeScreens)  # type: ignore[type-abstract]
    link = await _link(request)
    if not isinstance(link, LinkToken):
        return link
    REQUESTS.add(1, ("page",))
    return screens.preferences(await request.use(SubscriptionChoices).preferences(link))


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
    """Take a form of the page, or one click (RFC 8058); the latter is answered without a page."""
    screens = request.use(UnsubscribeScreens)  # type: ignore[type-abstract]
    link = await _link(request)
    if not isinstance(link, LinkToken):
        return link
    submitted = submission(bytes(request.raw), request.header("content-type") or "")
    if submitted is None:
        REQUESTS.add(1, ("not_understood",))
        return screens.not_understood()
    unsubscribing = request.use(SubscriptionChoices)
    if submitted.action is UnsubscribeAction.ONE_CLICK:
        await unsubscribing.click(link)
        reply = Reply.html("")
    else:
        reply = screens.outcome(await unsubscribing.submit(link, submitted))
    REQUESTS.add(1, (submitted.action.value,))
    return reply


async def _link(request: Request) -> LinkToken | Reply[Html]:
    """Return the content of the request's link, or the page that refuses it."""
    screens = request.use(UnsubscribeScreens)  # type: ignore[type-abstract]
    screens.speak(request.header("accept-language"))
    key = key_for(f"unsubscribe {client_of(request.client)}")
    taken = request.use(Windows).take(key, MOST_REQUESTS, MINUTE)
    if not taken.allowed:
        REQUESTS.add(1, ("too_many",))
        return screens.too_many(taken.reset)
    link = await link_tokens.read(request.param("token"), request.use(LinkKeys))
    if link is None:
        REQUESTS.add(1, ("unknown_link",))
        return screens.unknown()
    return link
