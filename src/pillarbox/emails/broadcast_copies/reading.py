"""Copies of broadcasts as they are shown: with the values that they were sent with.

The words for the link by which the recipient unsubscribes stay as they are written, as in mail of a topic:
readers of a mail may not follow that link (templates.md 6).
"""

from __future__ import annotations

from pillarbox.emails.broadcast_copies.parts import bodies_of
from pillarbox.emails.broadcast_copies.personal import decode
from pillarbox.kernel.process.offload import in_thread


async def shown_bodies(
    html: str | None, text: str | None, preview_text: str | None, personal: str
) -> tuple[str | None, str | None]:
    """Return the HTML and text of a copy, without what tracking adds; in a thread, because they may
    be long."""
    return await in_thread(_bodies, html, text, preview_text, personal)


def _bodies(
    html: str | None, text: str | None, preview_text: str | None, personal: str
) -> tuple[str | None, str | None]:
    made = bodies_of(html, text, preview_text).made(decode(personal).values, None)
    return made.html, made.text
