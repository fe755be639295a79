"""The counters of accepting for Prometheus (OPS-06)."""

from __future__ import annotations

from collections.abc import Iterable

from pillarbox.emails.rows import PreparedEmail
from pillarbox.kernel.observability.metrics import Counter

EMAILS = Counter("pillarbox_accepted_emails", "Emails that were committed.")
RECIPIENTS = Counter("pillarbox_accepted_recipients", "Recipients of the emails that were committed.")


def accepted(drafts: Iterable[PreparedEmail]) -> None:
    """Count emails that are committed."""
    emails = recipients = 0
    for draft in drafts:
        emails += 1
        recipients += len(draft.targets)
    EMAILS.add(emails)
    RECIPIENTS.add(recipients)
