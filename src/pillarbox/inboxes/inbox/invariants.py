"""The invariants of inboxes and their counts (`pillarbox verify`).

Rows that a deleted inbox has left behind are not checked; a job removes them.
"""

from __future__ import annotations

from pillarbox.inboxes.inbox.queries import JOB_REMOVE
from pillarbox.inboxes.threads.purge_queries import JOB_REMOVE as JOB_REMOVE_THREAD
from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "inbox_counts",
        "The inbox {inbox_id} counts {unread} unread threads and {drafts} drafts, and has {found_unread} and "
        "{found_drafts}.",
        """
        SELECT i.team_id, i.id AS inbox_id, i.unread, i.drafts, coalesce(t.unread, 0) AS found_unread,
               coalesce(d.drafts, 0) AS found_drafts
          FROM inboxes i
          LEFT JOIN (SELECT team_id, inbox_id, count(*) AS unread
                       FROM inbox_threads
                      WHERE folder = 'inbox' AND unread > 0
                      GROUP BY team_id, inbox_id) AS t
            ON t.team_id = i.team_id AND t.inbox_id = i.id
          LEFT JOIN (SELECT team_id, inbox_id, count(*) AS drafts
                       FROM inbox_drafts
                      WHERE email_id IS NULL
                      GROUP BY team_id, inbox_id) AS d
            ON d.team_id = i.team_id AND d.inbox_id = i.id
         WHERE (i.unread, i.drafts) <> (coalesce(t.unread, 0), coalesce(d.drafts, 0))
         LIMIT $1
        """,
    ),
    Invariant(
        "thread_counts",
        "The thread {thread_id} counts {messages} messages, {inbound} of them inbound, {unread} unread and "
        "{drafts} drafts, and has {found_messages}, {found_inbound}, {found_unread} and {found_drafts}.",
        """
        SELECT t.team_id, t.id AS thread_id, t.messages, t.inbound, t.unread, t.drafts,
               coalesce(m.messages, 0) AS found_messages, coalesce(m.inbound, 0) AS found_inbound,
               coalesce(m.unread, 0) AS found_unread, coalesce(d.drafts, 0) AS found_drafts
          FROM inbox_threads t
          JOIN inboxes i ON i.team_id = t.team_id AND i.id = t.inbox_id
          LEFT JOIN (SELECT n.team_id, n.inbox_id, n.thread_id, count(*) AS messages,
                            count(*) FILTER (WHERE n.direction = 'inbound') AS inbound,
                            count(*) FILTER (WHERE n.direction = 'inbound'
                                               AND NOT CASE WHEN n.marks = o.marks THEN n.is_read
                                                            ELSE o.marked_read END) AS unread
                       FROM inbox_messages n
                       JOIN inbox_threads o ON o.team_id = n.team_id AND o.id = n.thread_id
                      GROUP BY n.team_id, n.inbox_id, n.thread_id) AS m
            ON m.team_id = t.team_id AND m.inbox_id = t.inbox_id AND m.thread_id = t.id
          LEFT JOIN (SELECT team_id, thread_id, count(*) AS drafts
                       FROM inbox_drafts
                      WHERE email_id IS NULL AND thread_id IS NOT NULL
                      GROUP BY team_id, thread_id) AS d
            ON d.team_id = t.team_id AND d.thread_id = t.id
         WHERE (t.messages, t.inbound, t.unread, t.drafts)
               <> (coalesce(m.messages, 0), coalesce(m.inbound, 0), coalesce(m.unread, 0),
                   coalesce(d.drafts, 0))
         LIMIT $1
        """,
    ),
    Invariant(
        "thread_newest",
        "The thread {thread_id} does not show its newest message, or not whether it has attachments.",
        """
        SELECT t.team_id, t.id AS thread_id
          FROM inbox_threads t
          JOIN inboxes i ON i.team_id = t.team_id AND i.id = t.inbox_id
          JOIN (SELECT team_id, inbox_id, thread_id, max(received_at) AS received_at,
                       bool_or(attachments > 0) AS has_attachment
                  FROM inbox_messages
                 GROUP BY team_id, inbox_id, thread_id) AS m
            ON m.team_id = t.team_id AND m.inbox_id = t.inbox_id AND m.thread_id = t.id
         WHERE (t.received_at, t.has_attachment) <> (m.received_at, m.has_attachment)
            OR NOT EXISTS (SELECT FROM inbox_messages n
                            WHERE n.team_id = t.team_id AND n.inbox_id = t.inbox_id
                              AND n.id = t.last_message_id AND n.thread_id = t.id
                              AND n.received_at = t.received_at)
         LIMIT $1
        """,
    ),
    Invariant(
        "thread_kept_too_long",
        "The thread {thread_id} is in the trash until {purge_at}, which is more than 30 days away.",
        """
        SELECT team_id, id AS thread_id, purge_at
          FROM inbox_threads
         WHERE purge_at > now() + interval '31 days'
         LIMIT $1
        """,
    ),
    Invariant(
        "message_without_thread",
        "The message {message_id} of the inbox {inbox_id} is in the thread {thread_id}, which the inbox does "
        "not have.",
        """
        SELECT m.team_id, m.inbox_id, m.id AS message_id, m.thread_id
          FROM inbox_messages m
          JOIN inboxes i ON i.team_id = m.team_id AND i.id = m.inbox_id
         WHERE NOT EXISTS (SELECT FROM inbox_threads t
                            WHERE t.team_id = m.team_id AND t.id = m.thread_id AND t.inbox_id = m.inbox_id)
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = m.team_id AND j.kind = $2 AND j.subject_id = m.thread_id)
         LIMIT $1
        """,
        (JOB_REMOVE_THREAD,),
    ),
    Invariant(
        "draft_without_thread",
        "The draft {draft_id} answers in the thread {thread_id}, which its inbox does not have.",
        """
        SELECT d.team_id, d.id AS draft_id, d.thread_id
          FROM inbox_drafts d
          JOIN inboxes i ON i.team_id = d.team_id AND i.id = d.inbox_id
         WHERE d.thread_id IS NOT NULL AND d.email_id IS NULL
           AND NOT EXISTS (SELECT FROM inbox_threads t
                            WHERE t.team_id = d.team_id AND t.id = d.thread_id AND t.inbox_id = d.inbox_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "attachment_without_draft",
        "The attachment {attachment_id} belongs to the draft {draft_id}, which does not exist.",
        """
        SELECT a.team_id, a.id AS attachment_id, a.draft_id
          FROM inbox_draft_attachments a
         WHERE NOT EXISTS (SELECT FROM inbox_drafts d WHERE d.team_id = a.team_id AND d.id = a.draft_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "inbox_without_domain",
        "The inbox {inbox_id} is at the domain {domain_id}, which does not exist.",
        """
        SELECT i.team_id, i.id AS inbox_id, i.domain_id
          FROM inboxes i
         WHERE NOT EXISTS (SELECT FROM domains d WHERE d.team_id = i.team_id AND d.id = i.domain_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "inbox_addresses",
        "The addresses of the inbox {inbox_id} are not those that lead to it.",
        """
        SELECT coalesce(i.team_id, a.team_id) AS team_id, coalesce(i.id, a.inbox_id) AS inbox_id
          FROM inboxes i
          FULL JOIN (SELECT team_id, inbox_id, max(address) FILTER (WHERE NOT is_forwarded) AS own,
                            max(address) FILTER (WHERE is_forwarded) AS forwarded, count(*) AS addresses
                       FROM directory_inboxes
                      GROUP BY team_id, inbox_id) AS a
            ON a.team_id = i.team_id AND a.inbox_id = i.id
         WHERE i.email_address IS DISTINCT FROM a.own OR i.receiving_address IS DISTINCT FROM a.forwarded
            OR a.addresses <> num_nonnulls(i.email_address, i.receiving_address)
         LIMIT $1
        """,
    ),
    Invariant(
        "rows_without_inbox",
        "There are rows of the inbox {inbox_id}, which does not exist, and nothing removes them.",
        """
        SELECT k.team_id, k.inbox_id
          FROM (SELECT DISTINCT team_id, inbox_id FROM inbox_threads
                UNION SELECT DISTINCT team_id, inbox_id FROM inbox_messages
                UNION SELECT DISTINCT team_id, inbox_id FROM inbox_drafts
                UNION SELECT DISTINCT team_id, inbox_id FROM inbox_labels
                UNION SELECT team_id, inbox_id FROM inbox_agents
                UNION SELECT team_id, inbox_id FROM inbox_policies) AS k
         WHERE NOT EXISTS (SELECT FROM inboxes i WHERE i.team_id = k.team_id AND i.id = k.inbox_id)
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = k.team_id AND j.subject_id = k.inbox_id AND j.kind = $2)
         LIMIT $1
        """,
        (JOB_REMOVE,),
    ),
    Invariant(
        "inbox_keys",
        "The key {key_id} is for the inbox {inbox_id}, which does not exist, and is not inactive.",
        """
        SELECT k.team_id, k.id AS key_id, k.inbox_id
          FROM api_keys k
         WHERE k.inbox_id IS NOT NULL AND k.status <> 'inactive'
           AND NOT EXISTS (SELECT FROM inboxes i WHERE i.team_id = k.team_id AND i.id = k.inbox_id)
         LIMIT $1
        """,
    ),
)
