"""The frame of account pages: that of the screens. People without a team get a plain page."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.pages import prepare
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.visitors import Visitor

ACCOUNT: Final = "/account"
FRAMED: Final = "frame/layout.html"
PLAIN: Final = "people/plain.html"


async def draw_account(
    request: Request,
    visitor: Visitor,
    template: str,
    *,
    title: str,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
    **values: Any,
) -> Reply[Html]:
    """Return a page of the account. `title` is the key of a text, `problem` and `notice` are sentences."""
    layout = FRAMED if has_navigation(visitor) else PLAIN
    await prepare(layout)
    return await Visit(request, visitor, ACCOUNT, title).draw(
        template, status=status, problem=problem, notice=notice, layout=layout, **values
    )


async def account_message(
    request: Request, visitor: Visitor, title: str, text: str, *, status: int
) -> Reply[Html]:
    """Return a page of the account that says one thing, with the way back. Both are keys of texts."""
    return await draw_account(
        request, visitor, "people/account_message.html", title=title, status=status, text=t(text)
    )


def has_navigation(visitor: Visitor) -> bool:
    """Return whether there are screens for the person: of a team, or of the installation."""
    return visitor.team_id is not None or visitor.is_operator
