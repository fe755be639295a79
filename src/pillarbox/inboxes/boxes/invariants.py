"""What must hold of inboxes and of what they count (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = ()
