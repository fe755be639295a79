"""A team with something on every screen, and an address for each screen of the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kit.world import Team
from pillarbox.application import SLICES
from pillarbox.dashboard.frame.screen_table import Screen, screens_of

Builds = Callable[[Team], Coroutine[Any, Any, str]]

HTML: Final = (
    "<h1>Your invoice</h1><p>Thank you for your order of <b>twelve lanterns</b>.</p>"
    '<p><a href="https://harbor.example/invoices/12">Open the invoice</a></p><img src=x onerror=alert(1)>'
)


def table() -> list[Screen]:
    """All screens of the program."""
    return screens_of([route.handler for entry in SLICES for route in entry.pages])


async def some_mail(team: Team) -> list[str]:
    """Emails with several fates; their ids, the oldest first."""
    sender = "Harbor <hello@harbor.example>"
    sent = [
        {"to": "ada@quay.example", "subject": "Your invoice", "html": HTML, "text": "Thank you."},
        {"to": "delivered+ben@resend.dev", "subject": "Your order is on its way", "html": HTML},
        {"to": "bounced@resend.dev", "subject": "Password reset", "text": "Follow the link."},
        {"to": "complained@resend.dev", "subject": "News of October", "html": HTML},
        {"to": "nell@quay.example", "subject": "A reminder", "text": "Soon.", "scheduled_at": "in 3 days"},
    ]
    ids = [await team.send(**{"from": sender, **fields}) for fields in sent]
    await team.world.turn()
    return ids


async def an_email(team: Team) -> str:
    return await team.send(to="ada@quay.example", subject="Your invoice", html=HTML, text="Thank you.")


SUBJECTS: Final[dict[str, Builds]] = {"email_id": an_email}
"""Makes what a path parameter of a screen names; returns its id."""


async def address_of(screen: Screen, team: Team) -> str:
    """A path at which the screen can be seen in this team."""
    path = screen.path
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", await SUBJECTS[name](team))
    return path
