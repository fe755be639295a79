-- compatible since: 16
-- Which mail came by SMTP or from an automation (docs/decisions/0177). The previous release writes none and asks for no
-- column of this name.
ALTER TABLE emails ADD COLUMN source text;

CREATE OR REPLACE VIEW complete_emails AS
    SELECT e.team_id, e.id, e.created_at, e.content_id,
           CASE WHEN e.broadcast_id IS NULL THEN e.message_id
                ELSE '<' || replace(e.id::text, '-', '') || '@' || e.domain_name || '>' END AS message_id,
           CASE WHEN e.broadcast_id IS NULL THEN e.sender
                ELSE coalesce((SELECT c.sender FROM contents c
                                WHERE c.team_id = e.team_id AND c.id = e.content_id), '') END AS sender,
           CASE WHEN e.broadcast_id IS NULL THEN e.to_list
                ELSE json_build_array((SELECT r.mailbox FROM recipients r
                                        WHERE r.team_id = e.team_id AND r.email_id = e.id AND r.position = 0))
                END AS to_list,
           e.cc_list, e.bcc_list,
           CASE WHEN e.broadcast_id IS NULL THEN e.reply_to_list
                ELSE (SELECT c.reply_to_list FROM contents c
                       WHERE c.team_id = e.team_id AND c.id = e.content_id) END AS reply_to_list,
           CASE WHEN e.broadcast_id IS NULL THEN e.subject
                ELSE coalesce((SELECT r.personal->>'subject' FROM recipients r
                                WHERE r.team_id = e.team_id AND r.email_id = e.id AND r.position = 0),
                              (SELECT c.subject FROM contents c
                                WHERE c.team_id = e.team_id AND c.id = e.content_id), '') END AS subject,
           e.tags, e.scheduled_at, e.topic_id, e.key_id, e.domain_id, e.domain_name, e.broadcast_id, e.last_event,
           e.last_event_at, e.sent_at, e.template_id, e.inbox_id,
           CASE WHEN e.broadcast_id IS NOT NULL THEN 'broadcast'
                WHEN e.inbox_id IS NOT NULL THEN 'inbox'
                ELSE coalesce(e.source, 'api') END AS source
      FROM emails e;
