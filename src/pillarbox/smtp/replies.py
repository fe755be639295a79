"""The SMTP reply for each problem: the code of emails.md section 10 with the same text as in the API."""

from __future__ import annotations

from typing import Final

from pillarbox.emails.requests.attachment_input import AttachmentsTooLarge, BlockedFile
from pillarbox.emails.requests.parse import BodiesTooLarge
from pillarbox.kernel.security.authentication import (
    InactiveApiKey,
    InvalidApiKey,
    SuspendedApiKey,
    TeamBlocked,
)
from pillarbox.kernel.wire.problems import (
    ConcurrentIdempotentRequest,
    Forbidden,
    IdempotencyMismatch,
    Problem,
    RateLimited,
    ResourceLocked,
    ServerOverloaded,
)
from pillarbox.mail.smtp.answers import SessionReply, answer

KEY_REFUSED = (SuspendedApiKey, InactiveApiKey, InvalidApiKey, TeamBlocked)

TABLE: Final[tuple[tuple[tuple[type[Problem], ...], int, str], ...]] = (
    (KEY_REFUSED, 550, "5.7.1"),
    ((BlockedFile,), 554, "5.7.1"),
    ((AttachmentsTooLarge, BodiesTooLarge), 552, "5.3.4"),
    ((Forbidden,), 550, "5.7.1"),
    ((IdempotencyMismatch,), 554, "5.7.0"),
    ((ConcurrentIdempotentRequest, ResourceLocked, ServerOverloaded), 451, "4.3.0"),
    ((RateLimited,), 451, "4.7.1"),
)
"""The first row that fits."""

QUOTAS: Final = frozenset(("daily_quota_exceeded", "monthly_quota_exceeded"))
REFUSED: Final = (550, "5.6.0")
TROUBLE: Final = (451, "4.3.0")


def reply(problem: Problem) -> SessionReply:
    """The answer to a message that is not accepted."""
    return answer(*_code(problem), problem.message)


def _code(problem: Problem) -> tuple[int, str]:
    if problem.name in QUOTAS:
        return 452, "4.7.1"
    for kinds, code, enhanced in TABLE:
        if isinstance(problem, kinds):
            return code, enhanced
    return REFUSED if 400 <= problem.status < 500 else TROUBLE
