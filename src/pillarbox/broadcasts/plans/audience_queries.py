"""SQL that counts who would get a broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pillarbox.contacts.conditions.compiling import filled
from pillarbox.contacts.conditions.filtering import ContactFilter, compiled_filter
from pillarbox.kernel.postgres.database import TeamDb

OF_MEMBERS: Final = """
    SELECT count(*) AS members,
           count(*) FILTER (WHERE m.unsubscribed) AS unsubscribed,
           count(*) FILTER (WHERE NOT m.unsubscribed AND m.is_out) AS topic_opt_out,
           count(*) FILTER (WHERE NOT m.unsubscribed AND NOT m.is_out AND m.is_suppressed) AS suppressed
      FROM (SELECT c.unsubscribed, s.address IS NOT NULL AS is_suppressed,
                   $3::uuid IS NOT NULL
                   AND coalesce(t.subscription,
                                (SELECT d.default_subscription FROM topics d
                                  WHERE d.team_id = $1 AND d.id = $3),
                                'opt_out') = 'opt_out' AS is_out
              FROM segment_members k
              JOIN contacts c ON c.team_id = k.team_id AND c.id = k.contact_id
              LEFT JOIN topic_choices t
                     ON t.team_id = k.team_id AND t.contact_id = k.contact_id AND t.topic_id = $3
              LEFT JOIN suppressions s ON s.team_id = k.team_id AND s.address = c.address
             WHERE k.team_id = $1 AND k.segment_id = $2) AS m
"""

# The same of those who fit the conditions of a segment.
OF_FITTING: Final = """
    SELECT count(*) AS members,
           count(*) FILTER (WHERE m.unsubscribed) AS unsubscribed,
           count(*) FILTER (WHERE NOT m.unsubscribed AND m.is_out) AS topic_opt_out,
           count(*) FILTER (WHERE NOT m.unsubscribed AND NOT m.is_out AND m.is_suppressed) AS suppressed
      FROM (SELECT c.unsubscribed, x.address IS NOT NULL AS is_suppressed,
                   $2::uuid IS NOT NULL
                   AND coalesce(o.subscription,
                                (SELECT d.default_subscription FROM topics d
                                  WHERE d.team_id = $1 AND d.id = $2),
                                'opt_out') = 'opt_out' AS is_out
              FROM contacts c
              LEFT JOIN topic_choices o ON o.team_id = $1 AND o.contact_id = c.id AND o.topic_id = $2
              LEFT JOIN suppressions x ON x.team_id = $1 AND x.address = c.address /* joins */
             WHERE c.team_id = $1 /* conditions */) AS m
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudienceCounts:
    """The members of a segment, and those of them who get no mail, each for the first reason alone."""

    members: int
    unsubscribed: int
    topic_opt_out: int
    suppressed: int


async def count(db: TeamDb, segment_id: UUID, topic_id: UUID | None) -> AudienceCounts:
    """Count the members of a segment by what a broadcast of a topic does with them."""
    [row] = await db.source.fetch(OF_MEMBERS, db.team_id, segment_id, topic_id)
    return AudienceCounts(**row)


async def count_fitting(db: TeamDb, contact_filter: ContactFilter, topic_id: UUID | None) -> AudienceCounts:
    """Count the contacts that fit a filter by what a broadcast of a topic does with them."""
    found = await compiled_filter(db, contact_filter, 3)
    [row] = await db.source.fetch(filled(OF_FITTING, found), db.team_id, topic_id, *found.args)
    return AudienceCounts(**row)
