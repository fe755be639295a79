"""Why an email waits, in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pillarbox.delivery.queue.overview import QueueGroup, Totals, WaitingItem
from pillarbox.delivery.reports import PLAIN
from pillarbox.kernel.terminal.answers import counted, instant

REASONS = {
    **PLAIN,
    "api_key_not_active": "The API key that was used is no longer active.",
    "attachment_download_failed": "An attachment could not be fetched.",
    "delivery_window_over": "No mail server was reached in all the time that delivery is tried.",
    "domain_not_verified": "The sender's domain is no longer verified.",
    "rendering_failed": "The email cannot be made into a message.",
    "previous_bounce": "The address bounced before.",
    "previous_complaint": "The recipient complained about an earlier mail.",
    "dropped_by_operator": "The operator of this installation dropped it from the queue.",
    "manual": "The team put the address on its suppression list.",
}
"""The meanings of the words of `failed.reason` and of suppressions; other reasons are sentences already."""


def reason_in_words(reason: str | None) -> str | None:
    return None if reason is None else REASONS.get(reason, reason)


CONDITIONS = {
    "due": "due",
    "working": "being worked on",
    "retry": "to be tried again",
    "scheduled": "scheduled",
    "fetching": "waiting for an attachment",
    "paused": "paused",
    "quarantined": "put aside",
}
"""How many items are in a condition, as the end of "3 …"."""


def why(item: WaitingItem, now: datetime) -> str:
    """Return the sentence that answers "why is this not delivered?"."""
    match item.condition:
        case "working" if item.leased_until is not None and item.leased_until < now:
            return "The process that held it went silent; another one takes it over."
        case "working":
            return "A delivery process is working on it."
        case "fetching":
            return "Waits for an attachment that is fetched from its URL."
        case "scheduled":
            return f"Scheduled for {instant(item.due_at)}."
        case "paused":
            return "Held back by the operator."
        case "quarantined":
            return f"{item.reason or 'It was put aside.'} `queue retry` lets it go once more."
        case "due" if item.reason is None:
            return "Due; waits for a delivery process."
    return reason_in_words(item.reason) or f"Waits until {instant(item.due_at)}."


def in_conditions(totals: Totals | QueueGroup, names: Iterable[str] = tuple(CONDITIONS)) -> str:
    """Return in words what there is, such as `2 due, 1 scheduled`."""
    counts = ((getattr(totals, name), CONDITIONS[name]) for name in names)
    return ", ".join(f"{number:,} {words}" for number, words in counts if number)


def attempts(item: WaitingItem) -> str:
    """Return `no attempt yet`, `1 failed attempt`, `3 failed attempts`."""
    return counted(item.tries, "failed attempt") if item.tries else "no failed attempt"
