"""The sentences about a refused new password."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.texts import t
from pillarbox.people.passwords import LONGEST, SHORTEST, Complaint, complaint

TEXTS: Final = {
    Complaint.SHORT: "password.short",
    Complaint.LONG: "password.long",
    Complaint.COMMON: "password.common",
    Complaint.OWN: "password.own",
}


def wrong_with(password: str, *own: str | None) -> str | None:
    """Return the sentence against a new password; `own` are texts that others know of the person."""
    found = complaint(password, *own)
    return None if found is None else t(TEXTS[found], shortest=SHORTEST, longest=LONGEST)
