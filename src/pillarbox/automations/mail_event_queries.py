"""SQL of the events of mail that automations wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

IS_NEEDED = """
    SELECT EXISTS (SELECT FROM automation_work
                    WHERE team_id = $1 AND event_name IS NOT NULL AND starts_with(event_name, 'resend:'))
        OR EXISTS (SELECT FROM automations a
                     JOIN automation_versions v
                       ON v.team_id = a.team_id AND v.automation_id = a.id AND v.version = a.version
                    WHERE a.team_id = $1 AND a.status = 'enabled' AND v.steps::text LIKE '%resend:email.%')
        OR EXISTS (SELECT FROM automation_runs r
                     JOIN automation_versions v
                       ON v.team_id = r.team_id AND v.automation_id = r.automation_id
                      AND v.version = r.version
                    WHERE r.team_id = $1 AND r.status = 'running' AND v.steps::text LIKE '%resend:email.%')
"""

# The mail that each run has sent last.
LAST_MAIL = """
    SELECT DISTINCT ON (s.run_id) s.run_id, (s.output->>'email_id')::uuid AS email_id
      FROM automation_steps s
     WHERE s.team_id = $1 AND s.run_id = ANY ($2::uuid[]) AND s.output->>'email_id' IS NOT NULL
     ORDER BY s.run_id, s.completed_at DESC, s.position DESC
"""


class SentMail(NamedTuple):
    """A mail of a run."""

    run_id: UUID
    email_id: UUID


async def is_needed(db: TeamDb) -> bool:
    """Return whether something of the team waits for what happens to mail, or may come to wait for it."""
    return bool(await db.value(IS_NEEDED))


async def last_mail(db: TeamDb, run_ids: Sequence[UUID]) -> list[SentMail]:
    """Return the mail that each of these runs has sent last, of those that have sent any."""
    return await db.all(SentMail, LAST_MAIL, run_ids)
