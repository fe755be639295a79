"""Mail of this installation to people: what it says is for its recipients, not for readers of the API.

It has links by which somebody gets into an account, and it is mail of a team whose keys may be in many hands.
"""

from __future__ import annotations

import json
from typing import Final

from pillarbox.emails.outgoing import EmailTag

MARK: Final = EmailTag("pillarbox_mail", "people")
"""The tag of such mail."""

REDACTED_TEXT: Final = "This email is for its recipient alone."

UNSEALED_TEXT: Final = (
    f"{REDACTED_TEXT} If you are its recipient and find no link here, please ask for another one."
)
"""The text that is stored in place of the mail's own, which is sealed apart (docs/decisions/0158)."""


def is_withheld(tags: str | None) -> bool:
    """Return whether these tags, as they are stored, are those of mail whose text the API does not show."""
    if tags is None or MARK.name not in tags:
        return False
    return MARK._asdict() in json.loads(tags)
