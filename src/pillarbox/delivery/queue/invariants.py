"""The invariants of the work of delivery (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.delivery.items import QUARANTINED
from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "delivery_quarantined",
        "The email {email_id} (group {grp}) is put aside, so nothing sends it: {reason}",
        """
        SELECT team_id, email_id, grp, reason
          FROM deliveries
         WHERE owner IS NULL AND due_at = $2 AND restored_due_at IS NULL
         LIMIT $1
        """,
        (QUARANTINED,),
    ),
)
