"""The invariants of captured mail (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "captured_without_bytes",
        "The captured mail {id} has no bytes.",
        """
        SELECT c.team_id, c.email_id, c.id
          FROM captured c
         WHERE c.blob IS NULL AND c.data IS NULL
         LIMIT $1
        """,
    ),
)
