"""SQL of policies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes.policy.rules import InboxPolicy, RecipientFacts
from pillarbox.inboxes.trust.confusables import shown_domain
from pillarbox.kernel.postgres.database import Source, TeamDb

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
NEWEST: Final = 1000
"""Mails of an address among which one has to be that came into the inbox."""

GET: Final = """
    SELECT applies_to, allowed_senders, blocked_senders, blocked_mail, may_write_to, allowed_recipients,
           blocked_recipients, attachments, messages_per_hour, messages_per_day, reply_only, footer, approval,
           updated_at
      FROM inbox_policies
     WHERE team_id = $1 AND inbox_id = $2
"""

PUT: Final = """
    INSERT INTO inbox_policies (team_id, inbox_id, applies_to, allowed_senders, blocked_senders, blocked_mail,
                                may_write_to, allowed_recipients, blocked_recipients, attachments,
                                messages_per_hour, messages_per_day, reply_only, footer, approval, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (team_id, inbox_id) DO UPDATE
       SET applies_to = excluded.applies_to, allowed_senders = excluded.allowed_senders,
           blocked_senders = excluded.blocked_senders, blocked_mail = excluded.blocked_mail,
           may_write_to = excluded.may_write_to, allowed_recipients = excluded.allowed_recipients,
           blocked_recipients = excluded.blocked_recipients, attachments = excluded.attachments,
           messages_per_hour = excluded.messages_per_hour, messages_per_day = excluded.messages_per_day,
           reply_only = excluded.reply_only, footer = excluded.footer, approval = excluded.approval,
           updated_at = excluded.updated_at
"""

# The address itself before the one without what follows a plus: it may be an inbox with a policy of its own.
OF_SENDER: Final = """
    SELECT p.inbox_id
      FROM directory_inboxes d
      LEFT JOIN inbox_policies p ON p.team_id = $1 AND p.inbox_id = d.inbox_id
     WHERE d.team_id = $1 AND d.address = ANY ($2::text[])
     ORDER BY array_position($2::text[], d.address)
     LIMIT 1
"""

# Mail in spam is nobody's letter. The newest mails of an address are looked for one by one in the inbox: it
# may have written a million times elsewhere.
RECIPIENTS: Final = """
    SELECT a.address,
           EXISTS (SELECT FROM contacts c WHERE c.team_id = $1 AND c.address = a.address) AS is_contact,
           EXISTS (SELECT
                     FROM ((SELECT e.id
                              FROM received_emails e
                             WHERE e.team_id = $1
                               AND md5(lower(substring(right(e.sender, 330) FROM '([^<> ]+)>?$')))::uuid
                                   = md5(a.address)::uuid
                             ORDER BY e.id DESC
                             LIMIT $5)
                           UNION ALL
                           (SELECT e.id
                              FROM received_emails e
                             WHERE e.team_id = $1 AND a.spelled <> a.address
                               AND md5(lower(substring(right(e.sender, 330) FROM '([^<> ]+)>?$')))::uuid
                                   = md5(a.spelled)::uuid
                             ORDER BY e.id DESC
                             LIMIT $5)) AS r
                    CROSS JOIN LATERAL (
                          SELECT
                            FROM inbox_messages m
                            JOIN inbox_threads t
                              ON t.team_id = $1 AND t.id = m.thread_id AND t.folder <> 'spam'
                           WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.id = r.id
                             AND m.direction = 'inbound'
                          OFFSET 0) AS of_inbox) AS has_written
      FROM unnest($3::text[], $4::text[]) AS a (address, spelled)
"""

# Several messages may have one id: of spam none is answered.
ANSWERED: Final = """
    SELECT m.direction = 'inbound' AS is_inbound, m.sender_key, m.to_list, m.cc_list, m.reply_to_list,
           r.to_list AS header_to
      FROM inbox_messages m
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id AND t.folder <> 'spam'
      LEFT JOIN received_emails r ON r.team_id = $1 AND r.id = m.id
     WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.message_key = $3
     ORDER BY m.id
     LIMIT 1
"""

# Spam counts too: it may be what was answered.
IS_SUSPICIOUS: Final = """
    SELECT EXISTS (SELECT
                     FROM inbox_messages m
                     JOIN message_trust t
                       ON t.team_id = $1 AND t.email_id = m.id AND t.inbox_id = $2 AND t.level = 'suspicious'
                    WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.message_key = ANY ($3::bigint[]))
           OR EXISTS (SELECT
                        FROM message_trust t
                       WHERE t.team_id = $1 AND t.email_id = $4 AND t.inbox_id = $2
                         AND t.level = 'suspicious')
"""

# One statement counts and compares, so that what is sent at the same moment does not exceed the limits. The
# next hour or day counts too: the clock of another process may be there already, and two that differ begin no
# new count each time.
SPEND: Final = """
    UPDATE inbox_policies
       SET sent_in_hour = CASE WHEN hour_at IN ($3, $4) THEN sent_in_hour ELSE 0 END + 1,
           hour_at = CASE WHEN hour_at = $4 THEN $4 ELSE $3 END,
           sent_in_day = CASE WHEN day_at IN ($5, $6) THEN sent_in_day ELSE 0 END + 1,
           day_at = CASE WHEN day_at = $6 THEN $6 ELSE $5 END
     WHERE team_id = $1 AND inbox_id = $2
       AND (messages_per_hour IS NULL OR sent_in_hour < messages_per_hour
            OR (hour_at IN ($3, $4)) IS NOT TRUE)
       AND (messages_per_day IS NULL OR sent_in_day < messages_per_day OR (day_at IN ($5, $6)) IS NOT TRUE)
"""

COUNTS: Final = """
    SELECT messages_per_day IS NOT NULL AND sent_in_day >= messages_per_day
           AND (day_at IN ($3, $4)) IS TRUE
      FROM inbox_policies
     WHERE team_id = $1 AND inbox_id = $2
"""

# Across teams: those to which mail comes.
REFUSING: Final = """
    SELECT DISTINCT team_id FROM inbox_policies WHERE team_id = ANY ($1::uuid[]) AND blocked_mail = 'refuse'
"""

REFUSED_SENDERS: Final = """
    SELECT coalesce(p.allowed_senders, '{}') AS allowed_senders,
           coalesce(p.blocked_senders, '{}') AS blocked_senders
      FROM directory_inboxes d
      LEFT JOIN inbox_policies p ON p.team_id = $1 AND p.inbox_id = d.inbox_id AND p.blocked_mail = 'refuse'
     WHERE d.team_id = $1 AND d.address = ANY ($2::text[])
     ORDER BY array_position($2::text[], d.address)
     LIMIT 1
"""


class AnsweredPeople(NamedTuple):
    """The addresses of a message; the `*_list` columns and `header_to` hold JSON."""

    is_inbound: bool
    sender_key: str
    to_list: str
    cc_list: str | None
    reply_to_list: str | None
    header_to: str | None


class ListedSenders(NamedTuple):
    """The lists of senders of a policy."""

    allowed_senders: Sequence[str]
    blocked_senders: Sequence[str]


async def get(db: TeamDb, inbox_id: UUID) -> InboxPolicy | None:
    return await db.one(InboxPolicy, GET, inbox_id)


async def put(db: TeamDb, inbox_id: UUID, policy: InboxPolicy) -> None:
    await db.run(
        PUT,
        inbox_id,
        policy.applies_to,
        policy.allowed_senders,
        policy.blocked_senders,
        policy.blocked_mail,
        policy.may_write_to,
        policy.allowed_recipients,
        policy.blocked_recipients,
        policy.attachments,
        policy.messages_per_hour,
        policy.messages_per_day,
        policy.reply_only,
        policy.footer,
        policy.approval,
        policy.updated_at,
    )


async def inbox_of_sender(db: TeamDb, addresses: Sequence[str]) -> UUID | None:
    """Return the inbox at the first of these addresses that is one, if it has a policy."""
    found: UUID | None = await db.value(OF_SENDER, addresses)
    return found


async def recipients(db: TeamDb, inbox_id: UUID, addresses: Sequence[str]) -> list[RecipientFacts]:
    """Return what is known about these addresses. Those who write may spell a domain that is not ASCII in
    either way."""
    spelled = [_spelled(one) for one in addresses]
    return await db.all(RecipientFacts, RECIPIENTS, inbox_id, addresses, spelled, NEWEST)


def _spelled(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local}@{shown_domain(domain)}"


async def answered(db: TeamDb, inbox_id: UUID, message_key: int) -> AnsweredPeople | None:
    """Return the people of the message of the inbox that has this key."""
    return await db.one(AnsweredPeople, ANSWERED, inbox_id, message_key)


async def is_suspicious(
    db: TeamDb, inbox_id: UUID, message_keys: Sequence[int], answered_id: UUID | None
) -> bool:
    """Return whether one of the messages of the inbox with these keys, or that of this id, is suspicious."""
    return bool(await db.value(IS_SUSPICIOUS, inbox_id, message_keys, answered_id))


async def spend(db: TeamDb, inbox_id: UUID, hour: datetime, day: datetime) -> bool:
    """Count a message; return False, and count nothing, where there were enough in this hour or day."""
    return await db.run(SPEND, inbox_id, hour, hour + HOUR, day, day + DAY) == 1


async def is_day_over(db: TeamDb, inbox_id: UUID, day: datetime) -> bool:
    """Return whether no message may be sent any more on this day."""
    return bool(await db.value(COUNTS, inbox_id, day, day + DAY))


async def refusing(source: Source, teams: Collection[UUID]) -> frozenset[UUID]:
    """Return those of the teams that have an inbox which refuses mail of blocked senders."""
    return frozenset([row["team_id"] for row in await source.fetch(REFUSING, list(teams))])


async def refused_senders(db: TeamDb, addresses: Sequence[str]) -> ListedSenders | None:
    """Return whom the inbox at the first of these addresses that is one refuses: empty lists where it
    refuses nobody."""
    return await db.one(ListedSenders, REFUSED_SENDERS, addresses)
