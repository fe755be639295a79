"""The states of a claim, the reasons that block or end it, and its time limits (domains.md section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

LIFETIME = timedelta(days=7)
"""How long the proof may be brought."""

LONGEST_BLOCK = timedelta(days=30)
LOOK_AGAIN = timedelta(hours=1)
"""How often a blocked claim is judged anew."""

TOKEN_PREFIX = "pillarbox-domain-verification"  # noqa: S105 - stands in public DNS


JOB = "domain.claim"
"""The kind of job that looks for the proof, judges and transfers; its subject is the claim."""


class Status(Enum):
    PENDING = "pending"
    VERIFIED = "verified"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELED = "canceled"
    FAILED = "failed"


OPEN = frozenset({Status.PENDING, Status.VERIFIED, Status.BLOCKED})
REUSABLE = frozenset({Status.EXPIRED, Status.SUPERSEDED, Status.FAILED})
"""The states of a claim whose placeholder serves the next claim."""


class ClaimFailure(Enum):
    OWNER_REMOVED_DOMAIN = "owner_removed_domain"
    BLOCKED_TOO_LONG = "blocked_too_long"
    TRANSFER_ERROR = "transfer_error"


class ClaimBlock(Enum):
    """Why a proven claim must wait, in the order in which the reasons are looked for."""

    GRACE_PERIOD = "grace_period"
    RECENT_OWNER_ACTIVITY = "recent_owner_activity"
    PENDING_SCHEDULED_EMAILS = "pending_scheduled_emails"


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """The operator's settings. None and False switch a check off."""

    grace: timedelta | None = timedelta(days=7)
    quiet: timedelta | None = timedelta(hours=24)
    scheduled: bool = True
    prefix: str = TOKEN_PREFIX
