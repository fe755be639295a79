"""The pages of authorization, as the dashboard draws them."""

from __future__ import annotations

from typing import Protocol

from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.oauth.authorization import AuthorizeRefusal
from pillarbox.oauth.failures import OAuthProblem


class OAuthScreens(Protocol):
    """Draws the pages; the dashboard gives it."""

    def failure(self, problem: OAuthProblem) -> Reply[Html]:
        """Show why nobody is sent on to a program."""
        ...

    async def is_known(self, request: Request) -> bool:
        """Return whether somebody has logged in in this browser."""
        ...

    def refusal(self, refusal: AuthorizeRefusal, *, is_known: bool) -> Reply[Html]:
        """Show what is wrong with the request of a program, and a link to the program. Whoever is known may
        go there."""
        ...
